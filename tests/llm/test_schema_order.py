"""The order in which a server lets a model write the fields of a reply: reasoning comes before the answer."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from model_servers import ModelServer, complete
from pydantic import Field

from kgwb.run.ask import Reply, Tool, _action_reply, schema_of
from kgwb.run.systems import SYSTEM_NAMES, load_system


class Part(Reply):
    default: str = ""
    """A field of this name, which is also a word of JSON schema."""
    part: int


class Optional(Reply):
    """A reply whose author gave defaults."""

    reasoning: str = ""
    parts: list[Part] = Field(default_factory=list)
    why: str | None = None
    answer: str
    kind: Literal["list", "count"] = "list"


class Look(Tool):
    tool: Literal["look"] = "look"
    note: str = ""
    place: str


class Stop(Tool):
    tool: Literal["stop"] = "stop"


CLASSES = [Optional, _action_reply((Look, Stop))]


def sent_schema(server: ModelServer, schema: Any) -> Any:
    """The schema as it arrives at a server."""
    complete(server.tiny(), schema=schema)
    body = server.chats[-1]
    if "format" in body:
        return body["format"]
    return body["response_format"]["json_schema"]["schema"]


def objects_in(schema: Any) -> list[Any]:
    """The schemas of objects in a schema, itself as well."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects_in(item)]
    if not isinstance(schema, dict):
        return []
    found = [part for value in schema.values() for part in objects_in(value)]
    return [schema, *found] if schema.get("type") == "object" else found


@pytest.mark.parametrize("reply_class", CLASSES, ids=lambda made: made.__name__)
def test_all_fields_are_required_in_the_schema_that_is_sent(
    server: ModelServer, reply_class: type[Reply]
) -> None:
    schema = schema_of(reply_class)
    before = json.dumps(schema)
    sent = sent_schema(server, schema)
    assert json.dumps(schema) == before  # it is part of the key of the call
    Draft202012Validator.check_schema(sent)
    for each in objects_in(sent):
        assert list(each["required"]) == list(each["properties"])
    assert [*sent["properties"]] == [*schema["properties"]]


def test_a_schema_of_required_fields_is_sent_as_it_is(server: ModelServer) -> None:
    """So it is with all replies of the systems, whose prompts are published."""
    schema = {
        "$defs": {"Part": {"type": "object", "properties": {"a": {"enum": [{"default": 1}]}}}},
        "type": "object",
        "properties": {"default": {"type": "string"}, "b": {"$ref": "#/$defs/Part"}},
        "required": ["default", "b"],
        "additionalProperties": {"type": "integer"},
    }
    schema["$defs"]["Part"]["required"] = ["a"]  # type: ignore[index]
    assert sent_schema(server, schema) == schema


def test_the_replies_of_the_systems_require_all_fields_and_reason_first() -> None:
    for name in SYSTEM_NAMES:
        load_system(name)
    pending: list[type[Reply]] = [*Reply.__subclasses__()]
    seen = []
    while pending:
        made = pending.pop()
        pending += made.__subclasses__()
        if made.__module__.startswith("kgwb.systems"):
            seen.append(made)
    assert len(seen) > 25
    for made in seen:
        for each in objects_in(schema_of(made)):
            names = list(each["properties"])
            assert names == each["required"]
            for thought in {"reasoning", "thought"} & set(names):
                assert names[0] == thought, made
