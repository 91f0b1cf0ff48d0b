"""How model servers are asked over HTTP: the messages in the bodies of requests, and the bodies of replies.

A request is read as messages, which a person can edit, and all else. A reply is read as a text with
its cost, and kept whole. A text that a person put in for a reply becomes a body, streamed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kgwb.llm.base import (
    THOUGHTS,
    ChatReply,
    Message,
    fields_of_text,
    parse_token_count,
    said_in,
    text_of_fields,
)
from kgwb.records import JsonObject
from kgwb.text import text_or_json

INSTRUCTIONS_MARK = "the first message"
"""Recorded as ``instructions`` of a request whose instructions are its first message."""
FINISH_REASONS = {
    "completed": "stop",
    "max_output_tokens": "length",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
"""How chat completions call why a reply ended, by the word of another protocol."""


def read_model_request(method: str, path: str, body: bytes) -> tuple[Api, JsonObject] | None:
    """Return the protocol and the data of a request to a model; None for any other request.

    A reply that comes later (``background``) is not that of a model.
    """
    if method != "POST":
        return None
    for api in APIS:
        if path.endswith(api.path):
            try:
                data = json.loads(body)
                if data.get("background") or not all(map(dict, api.items_of(data))):
                    return None
            except (ValueError, KeyError, TypeError, AttributeError):
                return None
            return api, data
    return None


def reply_of_body(api: Api, body: str) -> ChatReply:
    """Return what is recorded of the body of a reply, which may be a stream.

    That is a stream of events, or lines of JSON. Raises ValueError, KeyError, TypeError or
    AttributeError for a body that is no reply.
    """
    text = body.strip()
    events: list[JsonObject] = []
    if text.startswith("{"):
        try:
            reply = api.reply_of(json.loads(text))
            return replace(reply, body=text)
        except json.JSONDecodeError:
            for line in text.split("\n"):
                if line.strip():
                    events.append(json.loads(line))
    else:
        for line in text.split("\n"):
            field, _, data = line.partition(":")
            if field == "data" and data.strip() != "[DONE]":
                events.append(json.loads(data))
    reply = api.reply_of(api.whole_of(events))
    return replace(reply, body=body)


def body_of_reply(api: Api, reply: ChatReply, *, is_streamed: bool) -> tuple[str, str]:
    """Return the body of a reply with its content type: as it came, else made of its text."""
    body = reply.body
    if not body:
        data = api.data_of(reply)
        body = json.dumps(data)
        if is_streamed and not api.streams_lines:
            body = "".join(map(_event_text, api.events_of(data)))
            body += "data: [DONE]\n\n"
    if not body.startswith("{"):
        return body, "text/event-stream"
    if is_streamed and api.streams_lines:
        return body, "application/x-ndjson"
    return body, "application/json"


def _event_text(event: JsonObject) -> str:
    """Return an event of a stream as text; its name is its type, if it has one."""
    name = ""
    if "type" in event:
        name = f"event: {event['type']}\n"
    return f"{name}data: {json.dumps(event)}\n\n"


# Messages


def message_from_data(data: Mapping[str, Any]) -> Message:
    """Return the message of a run for a message, or an item, in a form of OpenAI.

    One with more than a text, such as calls of tools, has the JSON of its fields as its text:
    ``{"message": {"tool_calls": [...]}}``. One without a role is of "tool" if it is an output, else
    of "assistant".
    """
    fields = {name: value for name, value in data.items() if value is not None}
    default_role = "assistant"
    if str(fields.get("type", "")).endswith("_output"):
        default_role = "tool"
    role = fields.pop("role", default_role)
    return Message(role, text_of_fields(fields))


def data_from_message(message: Message) -> JsonObject:
    """Return the message in OpenAI's form, as ``message_from_data`` read it or a person edited it."""
    fields = fields_of_text(message.content)
    if fields.get("type", "message") != "message":
        return fields  # an item without a role
    return {"role": message.role, **fields}


def shown_text(content: str) -> str:
    """Return the content of a recorded message as people read it: of a list of texts, the texts."""
    fields = fields_of_text(content)
    texts = _joined_texts(fields.get("content"))
    if isinstance(texts, str) and len(fields) == 1:
        return texts
    return content


def _without(data: JsonObject, *names: str) -> JsonObject:
    """Return data without the fields of these names."""
    return {name: value for name, value in data.items() if name not in names}


def _make_reply(
    text: str, data: JsonObject, reason: object, prompt_name: str, completion_name: str
) -> ChatReply:
    """Return what is recorded of a reply besides its body.

    The names are those of the numbers of tokens, in "usage" or, as Ollama has them, in the data.
    """
    usage = data.get("usage") or data
    return ChatReply(
        text,
        model=str(data.get("model") or ""),
        prompt_tokens=parse_token_count(usage.get(prompt_name)),
        completion_tokens=parse_token_count(usage.get(completion_name)),
        finish_reason=str(reason),
        fingerprint=str(data.get("system_fingerprint") or ""),
    )


# A recorded call for a model of another protocol


OUTPUT_TYPES = ("function_call_output", "tool_result")
"""The types of what a tool returned, where it is an item or a part of a message."""
OUTPUT_IDS = ("tool_call_id", "call_id", "tool_use_id")
"""The fields that say which call an output is for."""


def tools_of_options(options: Mapping[str, Any]) -> JsonObject:
    """Return the tools that a request of any protocol offers, and which of them must be called.

    These are ``tools`` and ``tool_choice`` of a chat completion; {} without tools. Tools that only
    the server of the request has are left out.
    """
    tools = []
    for tool in options.get("tools") or ():
        function = tool.get("function", tool)
        if "name" in function:
            schema = function.get("input_schema")
            offered = {
                "name": function["name"],
                "description": function.get("description") or "",
                "parameters": function.get("parameters", schema),
            }
            tools.append({"type": "function", "function": offered})
    choice = options.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        name = choice.get("function", choice).get("name")
        if name:
            choice = {"type": "function", "function": {"name": name}}
        else:
            choice = choice["type"]
    if choice == "any":  # Anthropic's word
        choice = "required"
    if not tools:
        return {}
    return {"tools": tools, "tool_choice": choice}


def as_chat_messages(messages: Iterable[Message]) -> list[JsonObject]:
    """Return the messages of any protocol, with calls of tools, as a chat completion has them.

    Calls and outputs that have no id, as with Ollama, get one: outputs come in the order of the
    calls. An output without a call is a message of the user, and so is what stands beside outputs.
    """
    sent: list[JsonObject] = []
    open_ids: list[str] = []
    for message in messages:
        data = data_from_message(message)
        parts = _parts_of(data)
        calls = _calls_in(data)
        outputs = list(filter(_is_output, parts))
        for number, call in enumerate(calls):
            call["id"] = call["id"] or f"call_{len(sent)}_{number}"
            open_ids.append(call["id"])
        for output in outputs:
            sent.append(_chat_output(output, open_ids))
        if calls and "role" not in data and sent and "tool_calls" in sent[-1]:
            sent[-1]["tool_calls"] += calls  # each call is an item of its own
        elif calls:
            texts = [part.get("text", part.get("content")) for part in parts]
            content = "\n".join(filter(None, texts))
            sent.append({"role": "assistant", "content": content, "tool_calls": calls})
        elif "role" in data and len(outputs) < len(parts):
            said = data.get("content") or data.get("refusal") or ""
            if outputs:
                said = [part for part in parts if not _is_output(part)]
            sent.append({"role": message.role, "content": _joined_texts(said)})
    return sent


def comparable_reply(text: str) -> str:
    """Return the text of a reply with its calls of tools as names and arguments, in JSON.

    So the replies of models of all protocols can be compared. Other texts are returned as they are.
    """
    fields = fields_of_text(text)
    calls: list[JsonObject] = []
    for data in fields.get("output") or [fields]:
        calls += _calls_in(data)
    if not calls:
        return text
    said: JsonObject = {"calls": []}
    for call in calls:
        name, arguments = call["function"].values()
        with suppress(ValueError):  # else they are shown as the model wrote them
            arguments = json.loads(arguments)
        said["calls"].append({name: arguments})
    if isinstance(fields.get("content"), str) and fields["content"]:
        said["content"] = fields["content"]
    return json.dumps(said, ensure_ascii=False)


def _parts_of(data: JsonObject) -> list[JsonObject]:
    """Return the parts of the content of a message; the message or item itself if it is one part."""
    content = data.get("content")
    if data.get("role") == "tool" or not isinstance(content, list):
        return [data]
    return content


def _is_output(part: JsonObject) -> bool:
    """Return whether a part of a message, or a message, is what a tool returned."""
    return part.get("type") in OUTPUT_TYPES or part.get("role") == "tool"


def _calls_in(data: JsonObject) -> list[JsonObject]:
    """Return the calls of tools in a message or item, in the form of a chat completion."""
    calls = []
    for part in (*_parts_of(data), *data.get("tool_calls", ())):
        function = part.get("function", part)
        arguments = function.get("arguments", function.get("input"))
        if "name" in function and arguments is not None:
            call = {
                "id": part.get("call_id", part.get("id")),
                "type": "function",
                "function": {"name": function["name"], "arguments": text_or_json(arguments)},
            }
            calls.append(call)
    return calls


def _chat_output(part: JsonObject, open_ids: list[str]) -> JsonObject:
    """Return what a tool returned as a message of a chat completion.

    The id of its call is taken out of ``open_ids``: the one that it names, else the first.
    """
    output = part.get("output", part.get("content"))
    content = text_or_json(_joined_texts(output))
    if not open_ids:
        return {"role": "user", "content": content}
    known = [part[name] for name in OUTPUT_IDS if part.get(name) in open_ids]
    call_id = (known or open_ids)[0]
    open_ids.remove(call_id)
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _joined_texts(content: Any) -> Any:
    """Return the texts of a content that is a list of texts, joined; any other content as it is."""
    if isinstance(content, list) and all("text" in part for part in content):
        return "\n".join(part["text"] for part in content)
    return content


def _text_of_output(output: list[JsonObject]) -> str | None:
    """Return the text of an output if one text is all of it; else None."""
    contents: list[JsonObject] = []
    for item in output:
        content = item.get("content")
        if isinstance(content, list) and content:
            contents += content
        else:
            contents.append(item)
    if [content.get("type") for content in contents] != ["output_text"]:
        return None
    return str(contents[0]["text"])


# The protocols


class Api:
    """How the bodies of one protocol of model servers are read and written: here of chat completions."""

    provider = "openai"
    """The beginning of the names of its models."""
    path = "/chat/completions"
    """The end of the path of its requests."""
    url = "https://api.openai.com/v1"
    """The address of its usual server, which is left out of the names of its models."""
    streams_lines = False
    """Whether a stream is lines of JSON, and not events."""

    def items_of(self, body: JsonObject) -> list[JsonObject]:
        """Return the messages of a request for a chat completion."""
        return list(body["messages"])

    def with_items(self, body: JsonObject, items: list[JsonObject]) -> JsonObject:
        """Return a request for a chat completion with other messages."""
        return {**body, "messages": items}

    def options_of(self, body: JsonObject) -> JsonObject:
        """Return what a request for a chat completion has besides its messages."""
        return _without(body, "messages")

    def whole_of(self, events: list[JsonObject]) -> JsonObject:
        """Return the completion that the events of a stream make."""
        from openai.lib.streaming.chat import ChatCompletionStreamState
        from openai.types.chat import ChatCompletionChunk

        state: Any = ChatCompletionStreamState()
        for chunk in events:
            state.handle_chunk(ChatCompletionChunk.construct(**chunk))
        completion: JsonObject = state.current_completion_snapshot.model_dump(
            mode="json", exclude_none=True, warnings=False
        )
        return completion

    def reply_of(self, data: JsonObject) -> ChatReply:
        """Return what is recorded of a completion besides its body.

        The text is what its message says. If there are several choices, it is the JSON of all of them.
        Servers write null for what a choice does not have.
        """
        choices = []
        for choice in data["choices"]:
            given = {name: value for name, value in choice.items() if value is not None}
            choices.append(given)
        text = text_of_fields({"choices": choices})
        if len(choices) == 1:
            text = said_in(choices[0]["message"])
        reason = "stop"
        if choices:
            reason = choices[0].get("finish_reason", reason)
        return _make_reply(text, data, reason, "prompt_tokens", "completion_tokens")

    def data_of(self, reply: ChatReply) -> JsonObject:
        """Return the completion of a reply; without recorded choices, it has the recorded message."""
        fields = fields_of_text(reply.text)
        message = {"role": "assistant", "content": None, **fields}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        return {
            "id": "recorded",
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "choices": fields.get("choices", [choice]),
            "usage": {
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
                "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            },
        }

    def events_of(self, data: JsonObject) -> Iterator[JsonObject]:
        """Yield a completion as one chunk of a stream."""
        choices = []
        for choice in data["choices"]:
            delta = dict(choice["message"])
            calls = []
            for place, call in enumerate(delta.get("tool_calls") or ()):
                calls.append({"index": place, **call})
            delta["tool_calls"] = calls
            choices.append({**choice, "delta": delta})
        yield {**data, "object": "chat.completion.chunk", "choices": choices}


class Responses(Api):
    """The protocol of OpenAI's responses."""

    path = "/responses"

    def items_of(self, body: JsonObject) -> list[JsonObject]:
        """Return the messages of a request for a response: its instructions, of the system, and its input.

        A message has its role and content only if it is a text, as in earlier output that is sent on.
        """
        items = []
        if isinstance(body.get("instructions"), str):
            items.append({"role": "system", "content": body["instructions"]})
        given = body.get("input", ())
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        for item in given:
            text = _text_of_output([item])
            if text is not None:
                items.append({"role": "assistant", "content": text})
            elif item.get("type") == "message":
                items.append(_without(item, "type"))
            else:
                items.append(item)
        return items

    def with_items(self, body: JsonObject, items: list[JsonObject]) -> JsonObject:
        """Return a request for a response with other messages.

        A first message of the system becomes the instructions if there were instructions. The only
        message of a user is sent as a text if the input was a text.
        """
        sent = _without(body, "instructions", "input")
        rest = list(items)
        had_instructions = isinstance(body.get("instructions"), str)
        if had_instructions and rest and rest[0].get("role") == "system":
            first = rest.pop(0)
            sent["instructions"] = first["content"]

        sent["input"] = rest
        was_text = isinstance(body.get("input"), str)
        if was_text and len(rest) == 1 and rest[0].get("role") == "user":
            sent["input"] = rest[0]["content"]
        return sent

    def options_of(self, body: JsonObject) -> JsonObject:
        """Return what a request for a response has besides its messages, and what tells it from others.

        Otherwise a request of another API, or with a message of the system for its instructions, would
        be equal to it.
        """
        options = _without(body, "input")
        if isinstance(body.get("instructions"), str):
            options["instructions"] = INSTRUCTIONS_MARK
        return {**options, "api": "responses"}

    def whole_of(self, events: list[JsonObject]) -> JsonObject:
        """Return the response that the last event of a stream has."""
        response: JsonObject = events[-1]["response"]
        return response

    def reply_of(self, data: JsonObject) -> ChatReply:
        """Return what is recorded of a response besides its body.

        The text is that of the output if one text is all of it, else the JSON of the output and of its
        error. The finish reason is in the words of chat completions where they have one.
        """
        output = data["output"]
        fields: JsonObject = {"output": output}
        text = _text_of_output(output)
        if text is not None:
            fields = {"content": text}
        if data.get("error"):
            fields = {"output": output, "error": data["error"]}
        details = data.get("incomplete_details") or {}
        reason = details.get("reason") or data.get("status", "completed")
        reason = FINISH_REASONS.get(reason, reason)
        return _make_reply(text_of_fields(fields), data, reason, "input_tokens", "output_tokens")

    def data_of(self, reply: ChatReply) -> JsonObject:
        """Return the response of a reply; without a recorded output, it has the recorded text."""
        fields = fields_of_text(reply.text)
        part: JsonObject = {"type": "output_text", "text": fields.get("content"), "annotations": []}
        message = {"id": "recorded", "type": "message", "role": "assistant", "status": "completed"}
        return {
            "id": "recorded",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": reply.model,
            "output": fields.get("output", [{**message, "content": [part]}]),
            "error": fields.get("error"),
            "usage": {
                "input_tokens": reply.prompt_tokens,
                "output_tokens": reply.completion_tokens,
                "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            },
        }

    def events_of(self, data: JsonObject) -> Iterator[JsonObject]:
        """Yield the events of a stream that make a response, each part of its output in one piece."""
        events: list[JsonObject] = [{"type": "created", "response": {**data, "output": []}}]
        for index, item in enumerate(data["output"]):
            place = {"output_index": index, "item_id": item.get("id", "recorded")}
            if "content" in item:
                begun = {**item, "content": []}
            else:
                begun = {**item, "arguments": ""}
            events.append({"type": "output_item.added", **place, "item": begun})
            for number, part in enumerate(item.get("content", ())):
                at = {**place, "content_index": number, "part": part}
                text = part.get("text")
                empty = {**part, "text": ""}
                events += [
                    {"type": "content_part.added", **at, "part": empty},
                    {"type": "output_text.delta", **at, "delta": text, "logprobs": []},
                    {"type": "output_text.done", **at, "text": text, "logprobs": []},
                    {"type": "content_part.done", **at},
                ]
            if "arguments" in item:
                said = {"delta": item["arguments"], "arguments": item["arguments"]}
                events.append({"type": "function_call_arguments.delta", **place, **said})
                events.append({"type": "function_call_arguments.done", **place, **said})
            events.append({"type": "output_item.done", **place, "item": item})
        events.append({"type": "completed", "response": data})
        for number, event in enumerate(events):
            yield {**event, "type": f"response.{event['type']}", "sequence_number": number}


class Ollama(Api):
    """The protocol of Ollama, whose requests are those of chat completions."""

    provider = "ollama"
    path = "/api/chat"
    url = "http://127.0.0.1:11434"
    streams_lines = True

    def whole_of(self, events: list[JsonObject]) -> JsonObject:
        """Return the whole reply that the events of a stream of Ollama make."""
        message: JsonObject = {"role": "assistant", "content": ""}
        for line in events:
            for name, value in line["message"].items():
                if name != "role" and value:
                    message[name] = message.get(name, type(value)()) + value
        return {**events[-1], "message": message}

    def reply_of(self, data: JsonObject) -> ChatReply:
        """Return what is recorded of a reply of Ollama besides its body."""
        reason = data.get("done_reason") or "stop"
        return _make_reply(
            said_in(data["message"]), data, reason, "prompt_eval_count", "eval_count"
        )

    def data_of(self, reply: ChatReply) -> JsonObject:
        """Return the reply of Ollama with this text."""
        message = {"role": "assistant", "content": "", **fields_of_text(reply.text)}
        return {
            "model": reply.model,
            "created_at": "1970-01-01T00:00:00Z",
            "message": message,
            "done": True,
            "done_reason": reply.finish_reason,
            "prompt_eval_count": reply.prompt_tokens,
            "eval_count": reply.completion_tokens,
        }


class Anthropic(Api):
    """The protocol of Anthropic's messages."""

    provider = "anthropic"
    path = "/v1/messages"
    url = "https://api.anthropic.com"

    def items_of(self, body: JsonObject) -> list[JsonObject]:
        """Return the messages of a request to Anthropic; its instructions are the first, of the system."""
        if "max_tokens" not in body:
            raise ValueError("a request of another protocol")
        items = list(body["messages"])
        if body.get("system"):
            items.insert(0, {"role": "system", "content": body["system"]})
        return items

    def with_items(self, body: JsonObject, items: list[JsonObject]) -> JsonObject:
        """Return a request to Anthropic with other messages; those of the system are its instructions."""
        sent = _without(body, "system")
        sent["messages"] = [item for item in items if item["role"] != "system"]
        for item in items:
            if item["role"] == "system":
                sent["system"] = item["content"]
        return sent

    def options_of(self, body: JsonObject) -> JsonObject:
        """Return what a request to Anthropic has besides its messages."""
        options = super().options_of(body)
        if body.get("system"):
            options["system"] = INSTRUCTIONS_MARK
        return options

    def whole_of(self, events: list[JsonObject]) -> JsonObject:
        """Return the message that the events of a stream of Anthropic make."""
        message: JsonObject = {}
        blocks: dict[int, JsonObject] = {}
        inputs: dict[int, str] = {}
        for event in events:
            match event["type"]:
                case "message_start":
                    message = dict(event["message"])
                case "content_block_start":
                    blocks[event["index"]] = dict(event["content_block"])
                case "content_block_delta":
                    for name, value in event["delta"].items():
                        if name == "partial_json":
                            inputs[event["index"]] = inputs.get(event["index"], "") + value
                        elif isinstance(value, str) and name != "type":  # not a citation
                            block = blocks[event["index"]]
                            block[name] = block.get(name, "") + value
                case "message_delta":
                    usage = {**message["usage"], **event["usage"]}
                    message.update(event["delta"], usage=usage)
        for index, text in inputs.items():
            blocks[index]["input"] = json.loads(text or "{}")
        return {**message, "content": list(blocks.values())}

    def reply_of(self, data: JsonObject) -> ChatReply:
        """Return what is recorded of a message of Anthropic besides its body.

        The text is that of its blocks if all of them are texts, else the JSON of the blocks, without
        thoughts.
        """
        blocks = [block for block in data["content"] if block["type"] not in THOUGHTS]
        content: Any = blocks
        if {block["type"] for block in blocks} <= {"text"}:
            content = "".join(block["text"] for block in blocks)
        text = text_of_fields({"content": content})
        reason = data.get("stop_reason") or "end_turn"
        reason = FINISH_REASONS.get(reason, reason)
        return _make_reply(text, data, reason, "input_tokens", "output_tokens")

    def data_of(self, reply: ChatReply) -> JsonObject:
        """Return the message of Anthropic with this text, or with the blocks that it describes."""
        content = fields_of_text(reply.text).get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        return {
            "id": "recorded",
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.prompt_tokens,
                "output_tokens": reply.completion_tokens,
            },
        }

    def events_of(self, data: JsonObject) -> Iterator[JsonObject]:
        """Yield the events of a stream that make a message of Anthropic."""
        yield {"type": "message_start", "message": {**data, "content": [], "stop_reason": None}}
        for index, block in enumerate(data["content"]):
            delta = {"type": "text_delta", "text": block.get("text", "")}
            begun = {**block, "text": ""}
            if block["type"] == "tool_use":
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                begun = {**block, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": begun}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": data["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": data["usage"]}
        yield {"type": "message_stop"}


ANTHROPIC = Anthropic()
APIS = (Api(), Responses(), Ollama(), ANTHROPIC)
