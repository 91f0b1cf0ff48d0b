"""Chat messages of a client as the messages of a run, which are a role and a text, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kgwb.llm.base import Message
from kgwb.records import JsonObject, to_data

WRAPPER = "message"
"""The only name in the JSON text of a message that is more than a text."""


def message_from_data(data: Any) -> Message:
    """Return the message of a run for one in OpenAI's form: a mapping, or an object of its library.

    A message with more than a text, such as calls of tools, has the JSON of its fields as its text:
    ``{"message": {"tool_calls": [...]}}``.
    """
    if not isinstance(data, Mapping):
        data = data.model_dump(mode="json", exclude_none=True)
    fields = to_data(dict(data), JsonObject)
    role = fields.pop("role")
    return Message(role, text_of_fields(fields))


def data_from_message(message: Message) -> JsonObject:
    """Return the message in OpenAI's form, as ``message_from_data`` read it or a person edited it."""
    return {"role": message.role, **fields_of_text(message.content)}


def text_of_fields(fields: JsonObject) -> str:
    """Return the fields of a message, without its role, as one text.

    That is the content if it is the only field and a text; otherwise the JSON ``{WRAPPER:
    fields}``.
    """
    content = fields.get("content")
    is_text = isinstance(content, str) and len(fields) == 1
    if is_text and _wrapped_fields(content) is None:
        return str(content)
    return json.dumps({WRAPPER: fields}, ensure_ascii=False)


def fields_of_text(text: str) -> JsonObject:
    """Return the fields of the message that ``text_of_fields`` wrote as this text.

    A text that is not the JSON of wrapped fields is the content.
    """
    fields = _wrapped_fields(text)
    if fields is None:
        return {"content": text}
    return fields


def _wrapped_fields(text: Any) -> JsonObject | None:
    """Return the fields in a text that is the JSON ``{WRAPPER: fields}``; else None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or list(data) != [WRAPPER]:
        return None
    fields = data[WRAPPER]
    if not isinstance(fields, dict):
        return None
    return fields
