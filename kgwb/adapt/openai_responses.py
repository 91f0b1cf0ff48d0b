"""The Responses API of openai: inside a run, its requests are model calls of the run.

``instructions`` is the first message, with the role system. The items of ``input`` are the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from kgwb.adapt.clients import ask_client, fields_of_text, text_of_fields, url_of_openai_client
from kgwb.adapt.openai_options import given_options, recorded_options
from kgwb.adapt.streams import events_of
from kgwb.llm.base import ChatReply, Message, parse_token_count
from kgwb.records import JsonObject, to_data
from kgwb.run import Run
from kgwb.run.calls import Call

API = {"api": "responses"}
"""Recorded with each request, which would else be equal to one of chat completions."""
CUT_OFF = "max_output_tokens"
"""The reason of a reply that reached the limit of its tokens; "length" in a run."""


def recorded_response(
    run: Run,
    name: Callable[[str], str],
    options: JsonObject,
    create: Callable[..., Any],
    make_stream: Callable[[list[Any]], Any],
) -> Any:
    """Return the recorded response; for ``stream=True``, a stream of its events.

    A request with ``background=True`` is sent as it is and not recorded, because its reply comes
    later.
    """
    given = given_options(options)
    if given.get("background"):
        return create(**given)
    is_stream = given.pop("stream", False)
    given.pop("stream_options", None)
    response = _recorded_whole(run, name, given, create)
    if not is_stream:
        return response
    return make_stream(list(events_of(response)))


def recorded_parsed_response(
    run: Run, name: Callable[[str], str], options: JsonObject, create: Callable[..., Any]
) -> Any:
    """Return the recorded response, parsed by openai as the class ``text_format`` says.

    A response that is not recorded is asked for by ``create`` and recorded. The class is sent as a
    JSON schema. Without a class the text stays a text; calls of tools are parsed in any case.
    """
    import openai
    from openai.lib._parsing._responses import parse_response, type_to_text_format_param

    given = given_options(options)
    text_format: Any = given.pop("text_format", None)
    if text_format is not None:
        text_options = given.get("text") or {}
        given["text"] = {**text_options, "format": type_to_text_format_param(text_format)}
    response = _recorded_whole(run, name, given, create)
    return parse_response(
        text_format=openai.omit if text_format is None else text_format,
        input_tools=given.get("tools", openai.omit),
        response=response,
    )


def _recorded_whole(
    run: Run, name: Callable[[str], str], options: JsonObject, create: Callable[..., Any]
) -> Any:
    """Return the response that the run recorded for a request; without one, ask and record it.

    Instructions are recorded as the first message, of the system. The messages of an earlier
    response of this run take the place of ``previous_response_id``. Messages that a person edited
    are sent in place of these.
    """
    given = dict(options)
    given_input = given.pop("input", ())
    has_instructions = isinstance(given.get("instructions"), str)
    messages = []
    if has_instructions:
        messages.append(Message("system", given.pop("instructions")))
    earlier = _call_of_response(run, given.get("previous_response_id"))
    if earlier is not None:
        del given["previous_response_id"]
        messages += _messages_of_call(earlier)
    messages += _messages_of_input(given_input)
    recorded = {**recorded_options(given), **API}
    if has_instructions:
        recorded["instructions"] = "the first message"

    def send(sent_messages: Sequence[Message]) -> ChatReply:
        """Send a request with these messages and the options of the pipeline.

        A first message of the system becomes the instructions if the pipeline gave instructions.
        The only message of a user is sent as a text if the pipeline gave a text.
        """
        sent = dict(given)
        rest = list(sent_messages)
        if has_instructions and rest and rest[0].role == "system":
            sent["instructions"] = rest.pop(0).content
        items = list(chain.from_iterable(map(_items_of_message, rest)))
        if items:
            sent["input"] = items
        if isinstance(given_input, str) and len(items) == 1 and items[0].get("role") == "user":
            sent["input"] = items[0]["content"]
        return _reply_of(create(**sent))

    model_name = name(str(given.get("model", "")))
    url = url_of_openai_client(model_name)
    call = ask_client(run, model_name, messages, recorded, send, url=url)
    return _response_of(call)


def _response_id(call: Call) -> str:
    """Return the id of the response that was recorded as a call."""
    return f"kgwb-{call.key[:24]}"


def _call_of_response(run: Run, response_id: str | None) -> Call | None:
    """Return the call of an earlier response of this run; None if the run has none of this id."""
    for call in run.calls.values():
        if call.kind == "model" and _response_id(call) == response_id:
            return call
    return None


def _messages_of_call(call: Call) -> list[Message]:
    """Return the messages and the reply of a recorded response, without its instructions.

    They take the place of ``previous_response_id``, which the server would not know. Instructions
    are left out because the API does not pass them on.
    """
    content = call.request["content"]
    messages = [Message(role, text) for role, text in content["messages"]]
    if "instructions" in content["options"]:
        messages = messages[1:]
    return [*messages, Message("assistant", call.result.text)]


def _messages_of_input(given_input: Any) -> list[Message]:
    """Return the messages of a request's input: a text, or items."""
    if isinstance(given_input, str):
        return [Message("user", text_of_fields({"content": given_input}))]
    return [_message_of_item(item) for item in given_input]


def _message_of_item(item: Any) -> Message:
    """Return an item of an input as a message of a run.

    An item with more than a text, such as the output of a tool, has the JSON of its fields as its
    text. An item without a role is of "tool" if it is an output, else of "assistant".
    """
    if not isinstance(item, Mapping):
        item = item.model_dump(mode="json", exclude_none=True)
    fields = to_data(dict(item), JsonObject)
    text = _text_of_output([fields])
    if text is not None:
        return Message("assistant", text_of_fields({"content": text}))
    if fields.get("type") == "message":
        del fields["type"]
    role = fields.pop("role", "")
    if not role:
        is_tool = str(fields.get("type", "")).endswith("_output")
        role = "tool" if is_tool else "assistant"
    return Message(role, text_of_fields(fields))


def _items_of_message(message: Message) -> list[JsonObject]:
    """Return the items of an input that a message of a run stands for.

    There are several for a whole reply; otherwise it is one.
    """
    fields = fields_of_text(message.content)
    if "output" in fields and "type" not in fields:
        return list(fields["output"])
    if fields.get("type", "message") != "message":
        return [fields]
    return [{"role": message.role, **fields}]


def _text_of_output(output: Sequence[JsonObject]) -> str | None:
    """Return the text of a response's output; None unless one plain text is all of it.

    That is one message with one part, a text without annotations and log probabilities.
    """
    if len(output) != 1 or output[0].get("type") != "message":
        return None
    content = output[0].get("content")
    if not isinstance(content, list) or len(content) != 1:
        return None
    part = content[0]
    if part.get("type") != "output_text" or part.get("annotations") or part.get("logprobs"):
        return None
    return str(part["text"])


def _reply_of(response: Any) -> ChatReply:
    """Return a response as a ChatReply, as it is recorded.

    The text is that of the output, or the JSON of the output if it has more, and of its error. The
    finish reason is "stop" if it is complete, "length" if it was cut off, else its reason or
    status.
    """
    data = response.model_dump(mode="json", exclude_none=True)
    output = data.get("output", [])
    text = _text_of_output(output)
    fields: JsonObject = {"content": text}
    if "error" in data:
        fields = {"output": output, "error": data["error"]}
    elif text is None:
        fields = {"output": output}
    usage = data.get("usage", {})
    return ChatReply(
        text_of_fields(fields),
        model=str(data.get("model", "")),
        prompt_tokens=parse_token_count(usage.get("input_tokens")),
        completion_tokens=parse_token_count(usage.get("output_tokens")),
        finish_reason=_finish_reason_of(data),
    )


def _finish_reason_of(data: JsonObject) -> str:
    """Return why a response ended, in the words of chat completions where they have one."""
    details = data.get("incomplete_details", {})
    reason = details.get("reason")
    if reason == CUT_OFF:
        return "length"
    if reason:
        return str(reason)
    status = data.get("status", "completed")
    return "stop" if status == "completed" else str(status)


def _response_of(call: Call) -> Any:
    """Return openai's Response for a recorded call: output, error, tokens and status.

    Its ids are made of the call's key, and its time is that of the call. If no output was recorded,
    it is one message with the recorded text.
    """
    from openai.types.responses import Response

    reply: ChatReply = call.result
    fields = fields_of_text(reply.text)
    output = fields.get("output")
    if output is None:
        part = {"type": "output_text", "text": fields["content"], "annotations": []}
        message = {"id": f"msg-{call.key[:24]}", "type": "message", "role": "assistant"}
        output = [{**message, "status": "completed", "content": [part]}]
    return Response.construct(
        id=_response_id(call),
        object="response",
        created_at=datetime.fromisoformat(call.taken_at).timestamp(),
        model=reply.model,
        output=output,
        error=fields.get("error"),
        usage=_usage_of(reply),
        **_status_of(reply.finish_reason),
    )


def _status_of(finish_reason: str) -> JsonObject:
    """Return the field ``status`` of a response for a finish reason, as a dict.

    "stop" is "completed"; "failed" and "cancelled" are themselves. Any other reason is
    "incomplete", with the reason in ``incomplete_details``, where "length" is called CUT_OFF.
    """
    if finish_reason == "stop":
        return {"status": "completed"}
    if finish_reason in ("failed", "cancelled"):
        return {"status": finish_reason}
    reason = CUT_OFF if finish_reason == "length" else finish_reason
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def _usage_of(reply: ChatReply) -> JsonObject:
    """Return the tokens of a reply as the field ``usage`` of a response; cached ones count as 0."""
    return {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
