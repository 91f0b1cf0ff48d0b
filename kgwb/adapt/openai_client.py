"""Clients of the library openai: inside a run, their requests to a model are calls of the run.

A client is wrapped at its HTTP client. The body of a request is read as messages, which a person can
edit, and all else. The body of the reply is recorded as it came, and openai reads it in each replay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from kgwb.adapt.clients import (
    ask_client,
    await_on_client_loop,
    data_from_message,
    fields_of_text,
    message_from_data,
    text_of_fields,
    wait_for,
)
from kgwb.errors import SettingError
from kgwb.llm.base import ChatReply, Message, parse_token_count
from kgwb.llm.openai import OPENAI_URL
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.steps import current_run
from kgwb.text import mask_url

Client = TypeVar("Client")
Exchange = Callable[[Any], Any]
"""Sends a request of HTTP by the plain client, and returns the response, read to its end."""
PLAIN_CHOICE_FIELDS = {"index", "message", "finish_reason"}
INSTRUCTIONS_MARK = "the first message"
"""Recorded as ``instructions`` of a request whose instructions are its first message."""
FINISH_REASONS = {"completed": "stop", "max_output_tokens": "length"}
"""How chat completions call why a response ended, where they have another word for it."""


class Api(NamedTuple):
    """How the bodies of one of openai's APIs are read and written."""

    path: str
    """The end of the path of its requests."""
    items_of: Callable[[JsonObject], list[JsonObject]]
    """Returns the messages of a request."""
    with_items: Callable[[JsonObject, list[JsonObject]], JsonObject]
    """Returns a request with other messages."""
    options_of: Callable[[JsonObject], JsonObject]
    """Returns what is recorded of a request besides its messages."""
    whole_of: Callable[[list[JsonObject]], JsonObject]
    """Returns the whole reply that the events of a stream make."""
    reply_of: Callable[[JsonObject], ChatReply]
    data_of: Callable[[ChatReply], JsonObject]
    """Returns the data of a reply that was recorded without its body."""


def wrap_openai(client: Client) -> Client:
    """Return an OpenAI or AsyncOpenAI client whose requests to a model go through the run.

    Inside a run, chat completions and responses are recorded with all their parameters, found
    again, and their messages can be edited. That holds for ``create``, ``parse``, streams and raw
    responses. Outside of a run it is the plain client. The given client does not change.

    Raises SettingError if it is no client of the library openai.
    """
    import openai

    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise SettingError(
            f"wrap_openai got a {type(client).__name__}, which is not a client of the library openai",
            hint="pass openai.OpenAI(...) or openai.AsyncOpenAI(...)",
        )
    plain: Any = client._client
    send = _recorded_sending(plain.send)
    if isinstance(client, openai.AsyncOpenAI):
        send = _recorded_async_sending(plain.send)
    # The plain client is kept, and closed at its own end: both share their connections.
    methods = {"send": send, "plain_client": plain, "__del__": lambda self: None}
    recorded_class = type("RecordedHttpClient", (type(plain),), methods)
    recorded: Any = object.__new__(recorded_class)
    recorded.__dict__ = plain.__dict__
    wrapped: Any = client.copy(http_client=recorded)
    return wrapped  # type: ignore[no-any-return]


def _recorded_sending(plain_send: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method ``send`` of a client of httpx that asks the run first."""

    def send(self: Any, request: Any, **options: Any) -> Any:
        """Return the response to a request: the recorded one, or that of the plain client."""

        def exchange(sent: Any) -> Any:
            """Send a request, and read the response to its end."""
            response = plain_send(sent, **options)
            response.read()
            return response

        run, api = current_run(), _api_of(request)
        if run is None or api is None:
            return plain_send(request, **options)
        return _recorded_response(run, api, request, exchange)

    return send


def _recorded_async_sending(plain_send: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method ``send`` of an asynchronous client of httpx that asks the run first.

    Inside a run it blocks until the reply is there, so that the steps of several branches have the
    same order each time.
    """

    async def send(self: Any, request: Any, **options: Any) -> Any:
        """Return the response to a request: the recorded one, or that of the plain client."""

        async def read(sent: Any) -> Any:
            """Send a request, and read the response to its end."""
            response = await plain_send(sent, **options)
            await response.aread()
            return response

        run, api = current_run(), _api_of(request)
        if run is not None and api is not None:
            return _recorded_response(run, api, request, lambda sent: wait_for(read(sent)))
        if options.get("stream"):  # it is read on the loop of the caller
            return await plain_send(request, **options)
        return await await_on_client_loop(read(request))

    return send


def _api_of(request: Any) -> Api | None:
    """Return the API of a request whose reply is recorded; None for any other request.

    A reply that comes later (``background``) is not recorded.
    """
    for api in (CHAT_COMPLETIONS, RESPONSES):
        if request.method == "POST" and request.url.path.endswith(api.path):
            return None if json.loads(request.content).get("background") else api
    return None


class _NotRecordedError(Exception):
    """A response that is no reply of a model, such as a refusal of the server."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.response = response


def _recorded_response(run: Run, api: Api, request: Any, exchange: Exchange) -> Any:
    """Return the response that the run recorded for a request; without one, send and record it.

    Messages that a person edited are sent in place of those of the request. A response of another
    status than 200, and one that cannot be read, is returned without being recorded.
    """
    body = json.loads(request.content)
    messages = [message_from_data(item) for item in api.items_of(body)]

    def send(sent: Sequence[Message]) -> ChatReply:
        """Send the request with these messages."""
        edited = request
        if list(sent) != messages:
            items = [data_from_message(message) for message in sent]
            edited = _with_body(request, api.with_items(body, items))
        response = exchange(edited)
        try:
            if response.status_code == 200:
                return _reply_of_body(api, response.text)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # openai says what is wrong with it
        raise _NotRecordedError(response)

    address = str(request.url.copy_with(query=None)).removesuffix(api.path) + "/"
    server = "" if address == f"{OPENAI_URL}/" else f"@{mask_url(address)}"
    name = f"openai:{body.get('model', '')}{server}"
    try:
        call = ask_client(run, name, messages, api.options_of(body), send, url=address)
    except _NotRecordedError as error:
        return error.response
    # An earlier version recorded no body. Its plain requests are found, those of streams are not.
    recorded: str = call.result.body or json.dumps(api.data_of(call.result))
    content_type = "application/json" if recorded.startswith("{") else "text/event-stream"
    library = import_module(type(request).__module__.partition(".")[0])  # httpx or httpx2
    return library.Response(
        200, headers={"content-type": content_type}, text=recorded, request=request
    )


def _with_body(request: Any, body: JsonObject) -> Any:
    """Return a request of HTTP with another body."""
    headers = {key: value for key, value in request.headers.items() if key != "content-length"}
    content = json.dumps(body, ensure_ascii=False).encode()
    return type(request)(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions=request.extensions,
    )


def _reply_of_body(api: Api, body: str) -> ChatReply:
    """Return what is recorded of the body of a reply, which may be the events of a stream."""
    text = body.strip()
    if text.startswith("{"):
        return replace(api.reply_of(json.loads(text)), body=text)
    events = []
    for line in text.split("\n"):
        field, _, data = line.partition(":")
        if field == "data" and data.strip() != "[DONE]":
            events.append(json.loads(data))
    return replace(api.reply_of(api.whole_of(events)), body=body)


# Chat completions


def _items_of_chat(body: JsonObject) -> list[JsonObject]:
    """Return the messages of a request for a chat completion."""
    return list(body["messages"])


def _with_chat_items(body: JsonObject, items: list[JsonObject]) -> JsonObject:
    """Return a request for a chat completion with other messages."""
    return {**body, "messages": items}


def _options_of_chat(body: JsonObject) -> JsonObject:
    """Return what a request for a chat completion has besides its messages."""
    return {name: value for name, value in body.items() if name != "messages"}


def _completion_of_chunks(chunks: list[JsonObject]) -> JsonObject:
    """Return the completion that the chunks of a stream make."""
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.construct(**chunk))
    completion: JsonObject = state.current_completion_snapshot.model_dump(
        mode="json", exclude_none=True, warnings=False
    )
    return completion


def _reply_of_completion(data: JsonObject) -> ChatReply:
    """Return what is recorded of a completion besides its body.

    The text is the content of its message, or the JSON of the message's fields if there are others.
    If there are several choices, or one with more than a message, it is the JSON of all of them.
    Servers write null for what a choice does not have.
    """
    choices = []
    for choice in data["choices"]:
        choices.append({name: value for name, value in choice.items() if value is not None})
    text = text_of_fields({"choices": choices})
    if len(choices) == 1 and choices[0].keys() <= PLAIN_CHOICE_FIELDS:
        text = message_from_data(choices[0]["message"]).content
    usage = data.get("usage") or {}
    return ChatReply(
        text,
        model=str(data.get("model") or ""),
        prompt_tokens=parse_token_count(usage.get("prompt_tokens")),
        completion_tokens=parse_token_count(usage.get("completion_tokens")),
        finish_reason=str(choices[0].get("finish_reason", "stop") if choices else "stop"),
        fingerprint=str(data.get("system_fingerprint") or ""),
    )


def _completion_of_reply(reply: ChatReply) -> JsonObject:
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


# Responses


def _items_of_response(body: JsonObject) -> list[JsonObject]:
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
        fields = {
            name: value for name, value in item.items() if (name, value) != ("type", "message")
        }
        text = _text_of_output([item])
        if text is not None:
            fields = {"role": "assistant", "content": text}
        items.append(fields)
    return items


def _with_response_items(body: JsonObject, items: list[JsonObject]) -> JsonObject:
    """Return a request for a response with other messages.

    A first message of the system becomes the instructions if there were instructions. The only
    message of a user is sent as a text if the input was a text.
    """
    sent = {name: value for name, value in body.items() if name not in ("instructions", "input")}
    rest = list(items)
    if isinstance(body.get("instructions"), str) and rest and rest[0].get("role") == "system":
        sent["instructions"] = rest.pop(0)["content"]
    sent["input"] = rest
    if isinstance(body.get("input"), str) and [item.get("role") for item in rest] == ["user"]:
        sent["input"] = rest[0]["content"]
    return sent


def _options_of_response(body: JsonObject) -> JsonObject:
    """Return what a request for a response has besides its messages, and what tells it from others.

    Otherwise a request of another API, or with a message of the system for its instructions, would
    be equal to it.
    """
    options = {name: value for name, value in body.items() if name != "input"}
    if isinstance(body.get("instructions"), str):
        options["instructions"] = INSTRUCTIONS_MARK
    return {**options, "api": "responses"}


def _response_of_events(events: list[JsonObject]) -> JsonObject:
    """Return the response that the last event of a stream has."""
    response: JsonObject = events[-1]["response"]
    return response


def _text_of_output(output: list[JsonObject]) -> str | None:
    """Return the text of an output if one text is all of it; else None."""
    contents: list[JsonObject] = []
    for item in output:
        content = item.get("content")
        contents += content if isinstance(content, list) and content else [item]
    if [content.get("type") for content in contents] != ["output_text"]:
        return None
    return str(contents[0]["text"])


def _reply_of_response(data: JsonObject) -> ChatReply:
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
    usage = data.get("usage") or {}
    return ChatReply(
        text_of_fields(fields),
        model=str(data.get("model") or ""),
        prompt_tokens=parse_token_count(usage.get("input_tokens")),
        completion_tokens=parse_token_count(usage.get("output_tokens")),
        finish_reason=FINISH_REASONS.get(reason, str(reason)),
    )


def _response_of_reply(reply: ChatReply) -> JsonObject:
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


CHAT_COMPLETIONS = Api(
    "/chat/completions",
    _items_of_chat,
    _with_chat_items,
    _options_of_chat,
    _completion_of_chunks,
    _reply_of_completion,
    _completion_of_reply,
)
RESPONSES = Api(
    "/responses",
    _items_of_response,
    _with_response_items,
    _options_of_response,
    _response_of_events,
    _reply_of_response,
    _response_of_reply,
)
