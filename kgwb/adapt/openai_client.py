"""Clients of the library openai: inside a run, their chat completions are model calls of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from kgwb.adapt.chat_messages import (
    data_from_message,
    fields_of_text,
    message_from_data,
    text_of_fields,
)
from kgwb.adapt.client_model import ask_client, json_options
from kgwb.adapt.streams import RecordedAsyncStream, RecordedStream, chunks_of
from kgwb.adapt.waiting import await_on_client_loop, wait_for
from kgwb.errors import SettingError
from kgwb.llm.base import ChatReply, Message, parse_token_count
from kgwb.masking import mask_url
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.calls import Call
from kgwb.run.execution import current_run

Client = TypeVar("Client")
SendRequest = Callable[..., Any]
"""The plain ``create`` of a client; that of an asynchronous one is waited for."""
OPENAI_URL = "https://api.openai.com/v1/"
DELIVERY_OPTIONS = frozenset({"extra_headers", "timeout"})
"""Parameters that say how a request is sent; they are not recorded, and may hold secrets."""
PLAIN_CHOICE_FIELDS = {"index", "message", "finish_reason"}


def wrap_openai(client: Client) -> Client:
    """Return an OpenAI or AsyncOpenAI client whose chat completions go through the run.

    Inside a run, ``chat.completions.create`` and ``.parse`` are recorded with all their parameters,
    found again, and their messages can be edited. Outside of a run it is the plain client. The
    given client does not change.

    With ``stream=True`` the reply is asked for whole inside a run, and comes as a stream of few
    chunks (``streams``).

    Raises SettingError if it is no client of the library openai.
    """
    import openai

    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise SettingError(
            f"{type(client).__name__} is no client of openai",
            hint="give openai.OpenAI(...) or openai.AsyncOpenAI(...)",
        )
    wrapped: Any = client.copy()
    completions = wrapped.chat.completions
    name = _name_prefix(str(client.base_url))
    if isinstance(client, openai.AsyncOpenAI):
        _wrap_async(completions, name)
    else:
        _wrap_sync(completions, name)
    return wrapped  # type: ignore[no-any-return]


def _name_prefix(base_url: str) -> Callable[[str], str]:
    """Return a function that names a model of a server as kgwb does: "openai:MODEL@URL"."""
    server = "" if base_url == OPENAI_URL else f"@{mask_url(base_url)}"
    return lambda model: f"openai:{model}{server}"


def _wrap_sync(completions: Any, name: Callable[[str], str]) -> None:
    """Replace ``create`` and ``parse`` of a client's completions by functions that ask the run."""
    plain_create = completions.create
    plain_parse = completions.parse

    @wraps(plain_create)
    def create(**options: Any) -> Any:
        """Return the run's completion; outside of a run, the plain one."""
        run = current_run()
        if run is None:
            return plain_create(**options)
        return _recorded_reply(run, name, options, plain_create, RecordedStream)

    @wraps(plain_parse)
    def parse(**options: Any) -> Any:
        """Return the run's parsed completion; outside of a run, the plain one."""
        run = current_run()
        if run is None:
            return plain_parse(**options)
        return _recorded_parsed(run, name, options, plain_create)

    completions.create = create
    completions.parse = parse


def _wrap_async(completions: Any, name: Callable[[str], str]) -> None:
    """Replace ``create`` and ``parse`` of an asynchronous client's completions.

    Inside a run each is waited for, so that the steps of several branches have the same order each
    time.
    """
    plain_create = completions.create
    plain_parse = completions.parse

    async def make(send: SendRequest, options: JsonObject) -> Any:
        return await send(**options)

    def create_and_wait(**options: Any) -> Any:
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
        """Return the run's completion; outside of a run, the plain one."""
        run = current_run()
        if run is None:
            return await send_plainly(plain_create, options)
        return _recorded_reply(run, name, options, create_and_wait, RecordedAsyncStream)

    @wraps(plain_parse)
    async def parse(**options: Any) -> Any:
        """Return the run's parsed completion; outside of a run, the plain one."""
        run = current_run()
        if run is None:
            return await send_plainly(plain_parse, options)
        return _recorded_parsed(run, name, options, create_and_wait)

    completions.create = create
    completions.parse = parse


def _recorded_reply(
    run: Run,
    name: Callable[[str], str],
    options: JsonObject,
    create: SendRequest,
    make_stream: Callable[[list[Any]], Any],
) -> Any:
    """Return the recorded completion, or the stream of its chunks if the pipeline asks for one."""
    given = _given_options(options)
    is_stream = given.pop("stream", False)
    stream_options = given.pop("stream_options", None) or {}
    completion = _recorded_completion(run, name, given, create)
    if not is_stream:
        return completion
    return make_stream(list(chunks_of(completion, bool(stream_options.get("include_usage")))))


def _recorded_completion(
    run: Run, name: Callable[[str], str], options: JsonObject, create: SendRequest
) -> Any:
    """Return the completion that the run has recorded for these options, or makes by ``create``."""
    given = _given_options(options)
    messages = [message_from_data(message) for message in given.pop("messages")]
    recorded = {key: value for key, value in given.items() if key not in DELIVERY_OPTIONS}

    def send(sent_messages: Sequence[Message]) -> ChatReply:
        """Send the messages with the options of the pipeline."""
        data = [data_from_message(message) for message in sent_messages]
        return _reply_of(create(messages=data, **given))

    model_name = name(str(given.get("model", "")))
    call = ask_client(run, model_name, messages, json_options(recorded), send)
    return _completion_of(call)


def _given_options(options: JsonObject) -> JsonObject:
    """Return the parameters that have a value, without openai's marks for those that have none."""
    import openai

    missing = (openai.NotGiven, openai.Omit)
    return {key: value for key, value in options.items() if not isinstance(value, missing)}


def _recorded_parsed(
    run: Run, name: Callable[[str], str], options: JsonObject, create: SendRequest
) -> Any:
    """Return the recorded completion with its content parsed as the class ``response_format``."""
    from openai.lib._parsing import (
        parse_chat_completion,
        type_to_response_format_param,
        validate_input_tools,
    )

    given = _given_options(options)
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

    The text is that of its message, see ``text_of_fields``. If there are several choices, or one
    with more than a message, it is the JSON of all of them.
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
    """Return the completion that was recorded as a call."""
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
