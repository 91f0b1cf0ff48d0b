"""Clients of the library openai: inside a run, their requests to a model are calls of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from kgwb.adapt.clients import (
    ask_client,
    await_on_client_loop,
    data_from_message,
    fields_of_text,
    message_from_data,
    text_of_fields,
    url_of_openai_client,
    wait_for,
)
from kgwb.adapt.openai_options import given_options, recorded_options
from kgwb.adapt.openai_responses import recorded_parsed_response, recorded_response
from kgwb.adapt.streams import RecordedAsyncStream, RecordedStream, chunks_of
from kgwb.errors import SettingError
from kgwb.llm.base import ChatReply, Message, parse_token_count
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.calls import Call
from kgwb.run.steps import current_run
from kgwb.text import mask_url

Client = TypeVar("Client")
SendRequest = Callable[..., Any]
"""The plain ``create`` of a client; that of an asynchronous one is waited for."""
NameModel = Callable[[str], str]
"""Names a model of the client's server as kgwb does."""
Record = Callable[[Run, NameModel, JsonObject, SendRequest, Callable[[list[Any]], Any]], Any]
"""Returns the recorded reply to a request with these parameters, or makes it; the last argument
makes a stream."""
RecordParsed = Callable[[Run, NameModel, JsonObject, SendRequest], Any]
"""Returns the recorded reply, parsed as a class of the pipeline."""
OPENAI_URL = "https://api.openai.com/v1/"
PLAIN_CHOICE_FIELDS = {"index", "message", "finish_reason"}


def wrap_openai(client: Client) -> Client:
    """Return an OpenAI or AsyncOpenAI client whose requests to a model go through the run.

    Inside a run, ``create`` and ``parse`` of ``chat.completions`` and of ``responses`` are recorded
    with all their parameters, found again, and their messages can be edited. Outside of a run it is
    the plain client. The given client does not change.

    With ``stream=True`` the reply is asked for whole inside a run, and comes as a stream of few
    chunks (``streams``).

    Raises SettingError if it is no client of the library openai.
    """
    import openai

    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise SettingError(
            f"wrap_openai got a {type(client).__name__}, which is not a client of the library openai",
            hint="pass openai.OpenAI(...) or openai.AsyncOpenAI(...)",
        )
    wrapped: Any = client.copy()
    name = _name_prefix(str(client.base_url))
    wrap = _wrap_async if isinstance(client, openai.AsyncOpenAI) else _wrap_sync
    wrap(wrapped.chat.completions, name, _recorded_reply, _recorded_parsed)
    wrap(wrapped.responses, name, recorded_response, recorded_parsed_response)
    return wrapped  # type: ignore[no-any-return]


def _name_prefix(base_url: str) -> NameModel:
    """Return a function that names a model of a server as kgwb does: "openai:MODEL@URL"."""
    server = "" if base_url == OPENAI_URL else f"@{mask_url(base_url)}"
    return lambda model: f"openai:{model}{server}"


def _wrap_sync(resource: Any, name: NameModel, record: Record, record_parsed: RecordParsed) -> None:
    """Replace ``create`` and ``parse`` of a client's resource by functions that ask the run.

    Inside a run they return the reply that ``record`` or ``record_parsed`` finds or makes. Outside
    of a run they call the plain functions. ``name`` makes a model's name that has the server's
    address.
    """
    plain_create = resource.create
    plain_parse = resource.parse

    @wraps(plain_create)
    def create(**options: Any) -> Any:
        """Return the reply that the run recorded for this request, or asks for and records now.

        Outside of a run, and for a raw response, the plain client is asked.
        """
        run = current_run()
        if run is None or _asks_for_raw_response(options):
            return plain_create(**options)
        return record(run, name, options, plain_create, RecordedStream)

    @wraps(plain_parse)
    def parse(**options: Any) -> Any:
        """Return the reply that the run recorded, or asks for and records now, parsed by openai.

        Outside of a run the plain client is asked.
        """
        run = current_run()
        if run is None:
            return plain_parse(**options)
        return record_parsed(run, name, options, plain_create)

    resource.create = create
    resource.parse = parse


def _wrap_async(
    resource: Any, name: NameModel, record: Record, record_parsed: RecordParsed
) -> None:
    """Replace ``create`` and ``parse`` of an asynchronous resource by functions of the run.

    Inside a run they block until the reply is there, so that the steps of several branches have the
    same order each time. Outside of a run they ask the plain client.
    """
    plain_create = resource.create
    plain_parse = resource.parse

    async def make(send: SendRequest, options: JsonObject) -> Any:
        """Await a request."""
        return await send(**options)

    def create_and_wait(**options: Any) -> Any:
        """Send a request by the plain client, and wait for the reply."""
        return wait_for(make(plain_create, options))

    async def send_plainly(send: SendRequest, options: JsonObject) -> Any:
        """Return what the plain client returns. Its connections stay on the loop of the clients.

        A stream is read on the loop of the caller, so it is asked for there.
        """
        if options.get("stream"):
            return await send(**options)
        return await await_on_client_loop(make(send, options))

    @wraps(plain_create)
    async def create(**options: Any) -> Any:
        """Return the reply that the run recorded for this request, or waits for and records now.

        Outside of a run, and for a raw response, the plain client is awaited.
        """
        run = current_run()
        if run is None or _asks_for_raw_response(options):
            return await send_plainly(plain_create, options)
        return record(run, name, options, create_and_wait, RecordedAsyncStream)

    @wraps(plain_parse)
    async def parse(**options: Any) -> Any:
        """Return the reply that the run recorded, or waits for and records now, parsed by openai.

        Outside of a run the plain client is awaited.
        """
        run = current_run()
        if run is None:
            return await send_plainly(plain_parse, options)
        return record_parsed(run, name, options, create_and_wait)

    resource.create = create
    resource.parse = parse


def _asks_for_raw_response(options: JsonObject) -> bool:
    """Return whether a request came by ``with_raw_response`` or ``with_streaming_response``.

    It gets the response of HTTP, with its headers, which is not recorded: it goes past the run.
    """
    from openai._constants import RAW_RESPONSE_HEADER

    return RAW_RESPONSE_HEADER in (options.get("extra_headers") or {})


def _recorded_reply(
    run: Run,
    name: NameModel,
    options: JsonObject,
    create: SendRequest,
    make_stream: Callable[[list[Any]], Any],
) -> Any:
    """Return the recorded completion; for ``stream=True``, a stream of its chunks.

    A completion that is not recorded is asked for whole by ``create``, without a stream, and
    recorded. ``make_stream`` makes the stream of the chunks. ``name`` makes the model's name in the
    record.
    """
    given = given_options(options)
    is_stream = given.pop("stream", False)
    stream_options = given.pop("stream_options", None) or {}
    completion = _recorded_completion(run, name, given, create)
    if not is_stream:
        return completion
    return make_stream(list(chunks_of(completion, bool(stream_options.get("include_usage")))))


def _recorded_completion(
    run: Run, name: NameModel, options: JsonObject, create: SendRequest
) -> Any:
    """Return the completion that the run recorded for a request; without one, ask and record it.

    ``create`` is the plain client's function. Messages that a person edited are sent in place of
    those in ``options``.
    """
    given = given_options(options)
    messages = [message_from_data(message) for message in given.pop("messages")]
    recorded = recorded_options(given)

    def send(sent_messages: Sequence[Message]) -> ChatReply:
        """Send the messages with the options of the pipeline."""
        data = [data_from_message(message) for message in sent_messages]
        return _reply_of(create(messages=data, **given))

    model_name = name(str(given.get("model", "")))
    url = url_of_openai_client(model_name)
    call = ask_client(run, model_name, messages, recorded, send, url=url)
    return _completion_of(call)


def _recorded_parsed(run: Run, name: NameModel, options: JsonObject, create: SendRequest) -> Any:
    """Return the recorded completion, parsed by openai as the class ``response_format`` says.

    A completion that is not recorded is asked for by ``create`` and recorded. The class is sent as
    a JSON schema. Without a class the content stays a text; calls of tools are parsed in any case.
    """
    from openai.lib._parsing import (
        parse_chat_completion,
        type_to_response_format_param,
        validate_input_tools,
    )

    given = given_options(options)
    response_format: Any = given.pop("response_format", None)
    tools = validate_input_tools(given.get("tools", ()))
    if response_format is not None:
        given["response_format"] = type_to_response_format_param(response_format)
    completion = _recorded_completion(run, name, given, create)
    import openai

    return parse_chat_completion(
        response_format=openai.omit if response_format is None else response_format,
        input_tools=tools,
        chat_completion=completion,
    )


def _reply_of(completion: Any) -> ChatReply:
    """Return what is recorded of a completion.

    The text is the content of its message, or the JSON of the message's fields if there are others.
    If there are several choices, or one with more than a message, it is the JSON of all of them.
    """
    data = completion.model_dump(mode="json", exclude_none=True)
    choices = data.get("choices", [])
    if len(choices) == 1 and set(choices[0]) <= PLAIN_CHOICE_FIELDS:
        text = message_from_data(choices[0]["message"]).content
    else:
        text = text_of_fields({"choices": choices})
    first = choices[0] if choices else {}
    usage = data.get("usage", {})
    return ChatReply(
        text,
        model=str(data.get("model", "")),
        prompt_tokens=parse_token_count(usage.get("prompt_tokens")),
        completion_tokens=parse_token_count(usage.get("completion_tokens")),
        finish_reason=str(first.get("finish_reason", "stop")),
        fingerprint=str(data.get("system_fingerprint", "")),
    )


def _completion_of(call: Call) -> Any:
    """Return openai's ChatCompletion for a recorded call: choices, time and tokens.

    Its id is made of the call's key, and its time is that of the call. If no choices were recorded,
    it has one choice with the recorded message.
    """
    from openai.types.chat import ChatCompletion

    reply: ChatReply = call.result
    fields = fields_of_text(reply.text)
    choices = fields.get("choices")
    if choices is None:
        message = {"role": "assistant", "content": None, **fields}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        choices = [choice]
    usage = {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
    return ChatCompletion.construct(
        id=f"kgwb-{call.key[:24]}",
        object="chat.completion",
        created=int(datetime.fromisoformat(call.taken_at).timestamp()),
        model=reply.model,
        choices=choices,
        usage=usage,
    )
