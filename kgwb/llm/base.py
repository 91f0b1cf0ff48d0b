"""The interface between kgwb and language models: one request, one reply, one method.

Here are also the models that need no server: a function, a script, and a person. Before the first
request to a hosted model, a notice says what leaves the machine: once for each graph and model. It
informs, and never keeps a request from being sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from kgwb.background import POLL_INTERVAL_S
from kgwb.disk import cache_dir
from kgwb.errors import Cancelled, ModelError
from kgwb.kg.base import Graph
from kgwb.network import is_loopback_host
from kgwb.records import JsonObject, Record, frozen
from kgwb.text import pluralize

DEFAULT_TIMEOUT_S = 60.0
LOCAL_KINDS = frozenset({"rules", "human", "scripted", "function"})
"""First words of the names of models without a server; no tokens at all is right for their replies."""
PUT_IN = "by hand"
"""Stands as the model of a reply that a person put in, for which nothing was asked."""
ReplyMode = Literal["schema", "json", "prompt", "none"]
"""How a reply's form was enforced: by JSON schema, by JSON mode, by the prompt alone, or not at all."""
ReplyData = dict[str, Any]
"""A reply as JSON data."""
Rule = Callable[..., ReplyData]
"""Answers a prompt without a language model: returns the reply as JSON data.

It takes by name what it needs of the prompt's variables, and ``kg`` (the Graph or None) and
``embeddings``.
"""


@frozen
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant", "developer", "tool"]
    content: str


@frozen
class ChatRequest:
    """A request to a model.

    Hosted models use ``messages``. The model ``rules`` uses ``rule`` and ``variables``.
    """

    task: str
    """Name of the prompt, such as "chatty_kg/qir"."""
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply; None asks for free text."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """The variables that the prompt was filled with, as JSON data."""
    temperature: float = 0.0
    seed: int | None = 7
    max_output_tokens: int = 2048
    timeout_s: float = DEFAULT_TIMEOUT_S
    """A run replaces the default by its setting ``model_timeout_s``."""
    rule: Rule | None = field(default=None, compare=False)
    """How the model ``rules`` answers; None if the system has no rule for this prompt."""
    options: Mapping[str, Any] | None = None
    """For the client of a pipeline: all else that it sends, as JSON data; the fields above then
    have no effect but for the messages."""
    tools: Mapping[str, Any] = field(default_factory=dict)
    """``tools`` and ``tool_choice`` of a chat completion, for a pipeline's call that is asked again.

    The messages are then the JSON of theirs (``text_of_fields``), and so is a reply with calls."""

    def recorded_content(self) -> JsonObject:
        """Return the part of a request by which its recorded reply is found again, as JSON data.

        These are messages (role and content), schema, temperature, seed, and the limit of tokens;
        or messages and ``options`` if there are options. The model and the number of the repeat are
        part of the key as well, but not of this. The timeout and the variables of the prompt do not
        count.
        """
        messages = [[message.role, message.content] for message in self.messages]
        if self.options is not None:
            return {"messages": messages, "options": self.options}
        return {
            "messages": messages,
            "schema": self.schema,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_output_tokens": self.max_output_tokens,
        }


SEEDS_APART = 1009
"""How far the seeds of two repeats are apart: a system may use those between for its own samples.

It is a prime, so that models which look at the remainder of a seed see another one each time."""


def seed_of_repeat(seed: int, number: int) -> int:
    """Return the seed with which the same is asked again, so that the reply can be another one.

    ``number`` counts the repeats; 0 is the first time, which has the seed itself.
    """
    return seed + number * SEEDS_APART


@frozen
class ChatReply:
    """The reply of a model, and what it cost."""

    text: str
    mode: ReplyMode = "none"
    model: str = ""
    """Name of the model, as the server gives it."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    finish_reason: str = "stop"
    """Why the reply ended, in the server's words: "stop", "length", "content_filter", "refusal"."""
    tries: int = 1
    """How often the request was sent: after a transient failure or a refused format it is repeated."""
    first_token_s: float | None = None
    """Seconds from sending the request until the first text came; None if it was not streamed.

    If the request was repeated, only the last time counts.
    """
    fingerprint: str = ""
    """What the server says of the version behind the model's name (OpenAI's ``system_fingerprint``)."""
    body: str = ""
    """The whole reply as the server sent it, for the client of a pipeline; else empty."""

    def is_counted(self, asked: str) -> bool:
        """Whether the tokens of both prompt and reply are known: no prompt has 0 of them.

        ``asked`` is the name of the model that the call was made for. A local model, and a person
        who puts in a reply, may say no tokens; a server must say both numbers.
        """
        if not self.prompt_tokens and not self.completion_tokens:
            return is_local(asked) or self.model == PUT_IN
        return self.prompt_tokens > 0 and (self.completion_tokens > 0 or not self.text)


def is_local(model: str) -> bool:
    """Return whether a model's name says that it has no server, as "function:ask" does."""
    kind, _, _ = model.partition(":")
    return kind in LOCAL_KINDS


def parse_token_count(value: object) -> int:
    """Return the number of tokens that a server reports; 0 for anything but a count below 2**53."""
    if type(value) is int and 0 <= value < 2**53:
        return value
    return 0


class ChatModel(Protocol):
    """A language model, or a replacement for one."""

    name: str
    """The specification that makes it, such as "openai:gpt-4o".

    It is part of the key of recorded calls, and must not hold a secret.
    """
    remote: bool
    """Whether a call may take long. Then it runs on a thread of its own, so that it can be cancelled."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply to one request.

        ``kg`` is the graph of the run, for models that look names up in it. ``cancel`` is set when
        the run is cancelled.

        Raises a ModelError if there is no reply. Text that is not valid is not an error here: the
        caller validates it.
        """
        ...


# The texts of messages


WRAPPER = "message"
"""The only name in the JSON text of a message that is more than a text."""
THOUGHTS = {"reasoning", "reasoning_content", "reasoning_details", "thinking"}
"""Fields of a message with what a model thought. They are no part of what it said."""


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


def said_in(message: JsonObject) -> str:
    """Return what a message of a model says: its content, or the JSON of its fields if there are others.

    Its thoughts are left out, and what is empty.
    """
    fields: JsonObject = {"content": message.get("content")}
    for name, value in message.items():
        if value and name not in THOUGHTS and name != "role":
            fields[name] = value
    if fields["content"] is None and len(fields) > 1:
        del fields["content"]
    return text_of_fields(fields)


# What leaves the machine


SENT = (
    "your questions, with the earlier questions and answers of their dialogue",
    "labels, descriptions and IRIs of the graph",
    "rows of query results",
    "the survey of the graph",
    "texts of documents",
    "what you or your students write into prompts, questions and replies",
)
"""What kgwb's prompts may hold. Which of it is sent depends on the system and the question."""
SWITCH = "KGWB_HOSTED_NOTICE"
"""The environment variable that acknowledges the notice: "off" leaves it out."""
SHOWN_ONCE = f"This is said once for each graph and model; {SWITCH}=off leaves it out."
"""What is said below a notice."""
NOTICES_FOLDER = "notices"
"""The folder in the cache folder that says for which graphs and models the notice was shown, and when."""


@frozen
class DataNotice(Record):
    """What leaves the machine with one model and one graph, and where it goes."""

    model: str
    """The name of the model, such as "openai:gpt-4o"."""
    host: str
    """The host of its server. No key is part of it."""
    graph: str
    """The identity of the graph; empty for a request without one."""
    sent: tuple[str, ...] = SENT
    shown: str = ""
    """When it was first shown: UTC, ISO 8601. Empty if SWITCH acknowledges it."""

    def __str__(self) -> str:
        """Return in one line which model is asked where, and what leaves the machine with its prompts."""
        listed = "; ".join(self.sent)
        return f"The prompts of {self.model} leave this machine, to {self.host}. They may hold: {listed}."


Receive = Callable[[DataNotice], None]


def show_notice(notice: DataNotice) -> None:
    """Show a notice to the person: in a notebook below the cell, else on the error output.

    Nothing is raised if there is nowhere to show it.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if hasattr(shell, "kernel"):
        from IPython.display import display

        display(notice)
        return
    with suppress(
        OSError, ValueError, AttributeError
    ):  # the error output is closed, or there is none
        sys.stderr.write(f"kgwb: {notice}\n  {SHOWN_ONCE}\n")
        sys.stderr.flush()


presenter: ContextVar[Receive] = ContextVar("presenter", default=show_notice)
"""How a notice is shown. A widget shows it in itself."""
collector: ContextVar[Receive | None] = ContextVar("collector", default=None)
"""What keeps the notices of the requests that are sent; None for nothing."""
_lock = threading.Lock()
"""Held while a notice is shown, so that no other thread sends a request before."""
_shown_here: dict[Path, str] = {}
"""When a notice was shown, by its file: the folder may not be writable."""


@contextmanager
def notices_collected_by(collect: Receive) -> Iterator[None]:
    """Give the notice of each request that the code inside sends to a hosted model to ``collect``."""
    token = collector.set(collect)
    try:
        yield
    finally:
        collector.reset(token)


def announce(model: str, url: str, graph: Graph | None) -> None:
    """Show what leaves the machine with the requests of a model, unless it was shown before.

    Every model behind an address calls it before each request. ``url`` is the address. For a server
    on this machine nothing happens. The notice is also given to the ``collector``, whether it is new
    or not.
    """
    host = urlsplit(url).hostname or ""
    if not host or is_loopback_host(host):
        return
    identity = graph.identity if graph is not None else ""
    notice = DataNotice(model, host, identity)
    switch = os.environ.get(SWITCH, "").strip()
    if switch.lower() != "off":
        with _lock:
            notice = _show_once(notice)
    collect = collector.get()
    if collect is not None:
        collect(notice)


def _show_once(notice: DataNotice) -> DataNotice:
    """Show a notice if it was not shown yet, and return it with the time at which it was first shown.

    The time is kept in a file for each graph and model. A file that cannot be read has none, and
    nothing is raised if it cannot be written: the notice is then shown again another time.
    """
    identity = f"{notice.graph}\n{notice.model}".encode("utf-8", "replace")
    file = cache_dir() / NOTICES_FOLDER / hashlib.sha256(identity).hexdigest()
    if file not in _shown_here:
        try:
            shown = file.read_text("ascii")
            datetime.fromisoformat(shown)
        except (OSError, ValueError):
            shown = datetime.now(UTC).isoformat(timespec="milliseconds")
            show = presenter.get()
            show(replace(notice, shown=shown))
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(shown, "ascii")
        _shown_here[file] = shown
    return replace(notice, shown=_shown_here[file])


# Models without a server: a function, a script, and a person who is shown the prompts


ChatFunction = Callable[[Sequence[dict[str, str]]], str]
"""Takes messages of the form {"role": ..., "content": ...}, and returns the text of the reply."""


class FunctionModel(ChatModel):
    """A model that is a function of a person: a request is passed on as messages."""

    remote = True
    """It may take long, so it runs on a thread of its own."""

    def __init__(self, function: ChatFunction, *, name: str = "") -> None:
        """Wrap a function. ``name`` is part of the key of its calls; by default the function's."""
        own_name = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = name or f"function:{own_name}"
        self._function = function

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return what the function replies to the messages.

        The messages are given as a list of dictionaries with "role" and "content". ``kg``,
        ``cancel`` and the schema are not used.

        Raises ModelError if it returns no text, and what the function raises.
        """
        started = time.perf_counter()
        messages = []
        for message in request.messages:
            messages.append({"role": message.role, "content": message.content})
        text = self._function(messages)
        if not isinstance(text, str):
            raise ModelError(
                f"the model {self.name} returned {type(text).__name__}, not a text",
                hint="correct the function of this model: it must return the text of the reply",
            )
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)


ScriptedReply = str | Mapping[str, Any] | ChatReply | BaseException
"""One scripted answer: text, data to send as JSON, a whole reply, or an exception to raise."""
ScriptedReplies = ScriptedReply | Sequence[ScriptedReply]
"""One answer for every call, or a list with one answer for each call."""
ScriptFunction = Callable[[ChatRequest], ScriptedReplies]
"""Returns the answers to a request, which has ``task`` and ``messages``; each has ``content``."""
Script = ScriptFunction | Mapping[str, ScriptedReplies | ScriptFunction]
"""A function of the request, or by task the answers or such a function."""


class Scripted(ChatModel):
    """Answers from a script, and keeps the requests.

    >>> Scripted({"chatty_kg/classifier": [{"kind": "follow-up"}, {"kind": "independent"}]})
    Scripted('scripted')
    """

    def __init__(
        self, script: Script, *, name: str = "scripted", remote: bool = False, delay_s: float = 0.0
    ) -> None:
        """Set the script; ``delay_s`` is how long each answer takes, unless it is cancelled."""
        self.name = name
        self.remote = remote
        self._script = script
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self._requests: list[ChatRequest] = []
        self._reply_counts: Counter[str] = Counter()

    @property
    def requests(self) -> list[ChatRequest]:
        """A copy of the list of all requests so far, in order, also of those that failed."""
        with self._lock:
            return list(self._requests)

    def call_count(self, task: str | None = None) -> int:
        """Return how many requests came, for one task or for all."""
        tasks = [request.task for request in self.requests]
        if task is None:
            return len(tasks)
        return tasks.count(task)

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the next scripted answer, after the delay.

        An answer that is a dictionary becomes JSON text. Every request is kept. ``kg`` is not used.

        Raises the exception that the script has as the answer, ModelError if it has no answer, and
        Cancelled if ``cancel`` is set during the delay.
        """
        started = time.perf_counter()
        with self._lock:
            self._requests.append(request)
        if cancel.wait(self._delay_s):
            raise Cancelled
        reply = self._next_reply(request)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Mapping):
            reply = json.dumps(reply, ensure_ascii=False)
        if isinstance(reply, str):
            reply = ChatReply(reply, model=self.name)
        return replace(reply, seconds=time.perf_counter() - started)

    def _next_reply(self, request: ChatRequest) -> ScriptedReply:
        """Return what the script has for a request; of a list of replies, the next one of its task.

        A function in the script, or in place of it, is called with the request. Raises ModelError
        if the script does not have the task, if its list is used up, or if what it has is no reply.
        """
        task = request.task
        replies: ScriptedReplies | ScriptFunction
        if callable(self._script):
            replies = self._script
        elif task in self._script:
            replies = self._script[task]
        else:
            tasks = ", ".join(self._script) or "no task at all"
            raise ModelError(
                f"the script has no reply for the prompt {task!r}",
                hint=f"add a reply for it to the script, which has replies for: {tasks}",
            )
        if callable(replies):
            replies = replies(request)
        if isinstance(replies, str | Mapping | ChatReply | BaseException):
            return replies
        if not isinstance(replies, Sequence):
            raise ModelError(
                f"what the script has for the prompt {task!r} is no reply: {replies!r}",
                hint="give a text, a dictionary, a list of them, or a function of the request",
            )

        with self._lock:
            position = self._reply_counts[task]
            self._reply_counts[task] += 1
        if position >= len(replies):
            raise ModelError(
                f"the script has no reply for call {position + 1} of the prompt {task!r}: "
                f"it has {pluralize(len(replies), 'reply')}",
                hint="add a reply, or give one reply that is not in a list: it is used for every call",
            )
        return replies[position]


LISTENER_TIMEOUT_S = 1.0
"""How long a request waits for a listener. A widget begins to listen shortly after a run begins."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingRequest:
    """A request that waits for the person's reply. Equal requests are different objects."""

    request: ChatRequest
    cancel: threading.Event
    """The cancel event of the run that asks. Each run has its own."""


class Human(ChatModel):
    """A model whose replies are given by a person, who is shown the requests by a listener.

    Several requests can wait at the same time, also those of several runs. They wait without a time
    limit, until the person replies or the run is cancelled.
    """

    name = "human"
    remote = True  # so that a waiting request can be cancelled

    def __init__(self) -> None:
        """Begin without listeners and requests."""
        self.listeners: dict[Callable[[], None], threading.Event | None] = {}
        """Functions that are called, on any thread, whenever ``pending_requests`` has changed.

        The value is the cancel event of the run that the listener answers, None if it answers all.
        """
        self._lock = threading.Lock()
        self._replies: dict[PendingRequest, str | None] = {}

    def __repr__(self) -> str:
        return f"Human({len(self.pending_requests)} waiting)"

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """The requests without a reply, oldest first."""
        waiting = []
        with self._lock:
            for pending, reply in self._replies.items():
                if reply is None:
                    waiting.append(pending)
        return tuple(waiting)

    def reply(self, text: str, pending: PendingRequest) -> None:
        """Give a request the person's reply, and call the listeners.

        Raises ModelError if the request has a reply already, or is not waiting any more.
        """
        with self._lock:
            if pending not in self._replies or self._replies[pending] is not None:
                raise ModelError(
                    "the reply was not taken: this request is no longer waiting for one",
                    hint="run the agent again, then reply",
                )
            self._replies[pending] = text
        self._notify_listeners()

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Wait for the person's reply, and return it.

        The listeners are called when the request begins and ends to wait. ``kg`` and the timeout of
        the request are not used.

        Raises Cancelled if ``cancel`` is set, and ModelError if there has been no listener for this
        run for LISTENER_TIMEOUT_S.
        """
        pending = PendingRequest(request, cancel)
        started = time.perf_counter()
        with self._lock:
            self._replies[pending] = None
        self._notify_listeners()
        try:
            text = self._wait_for_reply(pending)
        finally:
            with self._lock:
                del self._replies[pending]
            self._notify_listeners()
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)

    def _wait_for_reply(self, pending: PendingRequest) -> str:
        """Wait for the reply to a request, and return it. It is looked for every POLL_INTERVAL_S.

        Raises Cancelled if the run is cancelled. Raises ModelError if for LISTENER_TIMEOUT_S no
        listener was registered for this run or for all runs: no widget shows the request then.
        """
        last_listened = time.monotonic()
        while True:
            text = self._replies[pending]
            if text is not None:
                return text
            if pending.cancel.wait(POLL_INTERVAL_S):
                raise Cancelled
            answered_runs = list(self.listeners.values())
            if None in answered_runs or pending.cancel in answered_runs:
                last_listened = time.monotonic()
            elif time.monotonic() - last_listened > LISTENER_TIMEOUT_S:
                raise ModelError(
                    f"the model human cannot reply to {pending.request.task}: no widget shows this run",
                    hint="a person types the reply in a notebook: open workbench.cell(AGENT) or "
                    "workbench.debug(QUESTION) and run from there; or choose another model",
                )

    def _notify_listeners(self) -> None:
        """Call all listeners, without arguments, on the calling thread."""
        for listener in list(self.listeners):
            listener()


@cache
def shared_human() -> Human:
    """Return the one ``Human`` of this process, which plays any number of agents."""
    return Human()
