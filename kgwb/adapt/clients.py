"""What the wrappers of clients share: a client as the model that a run asks, its messages as those of a
run, waiting for coroutines, and thread pools."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from kgwb.errors import NotRecordedError, SettingError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message
from kgwb.llm.notice import announce
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.calls import Call
from kgwb.run.steps import current_run

TASK = "chat"
"""The task of every request of a client: it has no prompt."""
SendMessages = Callable[[Sequence[Message]], ChatReply]
"""Sends messages by the client with all else that the pipeline gave it, and returns the reply."""


class ClientModel(ChatModel):
    """Answers one request of a pipeline by the pipeline's own client."""

    remote = True

    def __init__(self, name: str, url: str, send: SendMessages) -> None:
        """``url`` is the address of the client's server; empty if it is not known."""
        self.name = name
        self.url = url
        self._send = send

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the client's reply to the messages of the request, which a person may have edited.

        If the client's server is on another machine, a notice first says what leaves this one.
        Raises what the client raises.
        """
        announce(self.name, self.url, kg)
        return self._send(request.messages)


def ask_client(
    run: Run,
    name: str,
    messages: Sequence[Message],
    options: JsonObject,
    send: SendMessages,
    *,
    url: str,
) -> Call:
    """Return the recorded call of a client, or make and record it.

    ``url`` is the address of its server; empty if it is not known. ``options`` are all the
    parameters that decide the reply besides the messages. Raises what ``send`` raises, and
    NotRecordedError in a replay that lacks the call.
    """
    request = ChatRequest(TASK, tuple(messages), options=options)
    with missing_calls_noted(run):
        call, _ = run.chat(request, ClientModel(name, url, send))
    return call


def json_options(options: Mapping[str, Any]) -> JsonObject:
    """Return options of a client as JSON data. What has no JSON form is the name of its class.

    An object in memory, such as a callback, has no text that is the same the next time.
    """
    return {name: _json_value(value) for name, value in options.items()}


def _json_value(value: Any) -> Any:
    """Return a value of a request as JSON data that identifies it.

    A class with a JSON schema becomes that schema, an object of pydantic its fields, and another
    object the name of its type.
    """
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return value.model_json_schema()
    if isinstance(value, Mapping):
        return json_options(value)
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return type(value).__qualname__


WRAPPER = "message"
"""The only name in the JSON text of a message that is more than a text."""


def message_from_data(data: Mapping[str, Any]) -> Message:
    """Return the message of a run for a message, or an item, in a form of OpenAI.

    One with more than a text, such as calls of tools, has the JSON of its fields as its text:
    ``{"message": {"tool_calls": [...]}}``. One without a role is of "tool" if it is an output, else
    of "assistant".
    """
    fields = {name: value for name, value in data.items() if value is not None}
    is_output = str(fields.get("type", "")).endswith("_output")
    role = fields.pop("role", "tool" if is_output else "assistant")
    return Message(role, text_of_fields(fields))


def data_from_message(message: Message) -> JsonObject:
    """Return the message in OpenAI's form, as ``message_from_data`` read it or a person edited it."""
    fields = fields_of_text(message.content)
    if fields.get("type", "message") != "message":
        return fields  # an item without a role
    return {"role": message.role, **fields}


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


NOT_RECORDED_NOTE = (
    "a request is not in this recording, as it failed or was never sent; if the pipeline caught that "
    "error, what follows may differ from the recorded run"
)


@contextmanager
def missing_calls_noted(run: Run) -> Iterator[None]:
    """Leave a note on the step if the code inside raises NotRecordedError.

    A pipeline often catches every error, to try again or to go on without a reply. A replay would
    then come to its end, perhaps with another answer, and nothing would say why.
    """
    try:
        yield
    except NotRecordedError:
        run.note(NOT_RECORDED_NOTE)
        raise


T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, which is executed on a thread of its own.

    All such coroutines share one event loop: the connections of a client belong to a loop, and
    outlive an execution of a run. Raises what the coroutine raises.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _client_loop()).result()


async def await_on_client_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that is executed as by ``wait_for``, without blocking."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _client_loop())
    return await asyncio.wrap_future(future)


@lru_cache(maxsize=1)
def _client_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the clients, which a background thread executes."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kgwb-clients", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_client_loop.cache_clear)  # no thread survives a fork


def wrap_executor(executor: Executor) -> Executor:
    """Return an executor that inside a run executes what is submitted at once, on this thread.

    So the branches of a pipeline belong to the run, and their steps have the same order each time.
    Outside of a run it is the plain executor, such as a ThreadPoolExecutor.

    Raises SettingError for what is no executor.
    """
    if not isinstance(executor, Executor):
        raise SettingError(
            f"wrap_executor got a {type(executor).__name__}, which is not a ThreadPoolExecutor",
            hint="pass a concurrent.futures.ThreadPoolExecutor()",
        )
    return RunExecutor(executor)


class NumberedFuture(Future[T]):
    """A future whose place in a set depends on its number, and not on its address in memory.

    ``concurrent.futures.as_completed`` and ``wait`` keep futures in sets. So a pipeline that uses
    them sees the results of done futures in the same order in each execution of a run.
    """

    def __init__(self, number: int) -> None:
        """``number`` is how many futures were made before in the execution of the run."""
        super().__init__()
        self._number = number

    def __hash__(self) -> int:
        """Return a number that makes ``as_completed``, which takes the last first, keep the order."""
        return -2 - self._number


class RunExecutor(Executor):
    """Executes by another executor outside of a run, and at once inside. See ``wrap_executor``."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function, and return a future with its result or its exception.

        Inside a run it is called here and now, so the future is done. Outside, the plain executor
        calls it.
        """
        run = current_run()
        if run is None:
            return self._executor.submit(function, *args, **kwargs)
        future: Future[T] = NumberedFuture(run.execution.next_branch_number())
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future raises it where it is asked
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the plain executor down."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)
