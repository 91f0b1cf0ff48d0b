"""The interface between kgwb and language models: one request, one reply, one method.

Before the first request to a hosted model, a notice says what leaves the machine: once for each graph
and model. It informs, and never keeps a request from being sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from kgwb.disk import cache_dir
from kgwb.kg.base import Graph
from kgwb.network import is_loopback_host
from kgwb.records import Record

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


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant", "developer", "tool"]
    content: str


@dataclass(frozen=True, slots=True)
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

    def recorded_content(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
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


def text_of_fields(fields: dict[str, Any]) -> str:
    """Return the fields of a message, without its role, as one text.

    That is the content if it is the only field and a text; otherwise the JSON ``{WRAPPER:
    fields}``.
    """
    content = fields.get("content")
    is_text = isinstance(content, str) and len(fields) == 1
    if is_text and _wrapped_fields(content) is None:
        return str(content)
    return json.dumps({WRAPPER: fields}, ensure_ascii=False)


def fields_of_text(text: str) -> dict[str, Any]:
    """Return the fields of the message that ``text_of_fields`` wrote as this text.

    A text that is not the JSON of wrapped fields is the content.
    """
    fields = _wrapped_fields(text)
    if fields is None:
        return {"content": text}
    return fields


def _wrapped_fields(text: Any) -> dict[str, Any] | None:
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


def said_in(message: dict[str, Any]) -> str:
    """Return what a message of a model says: its content, or the JSON of its fields if there are others.

    Its thoughts are left out, and what is empty.
    """
    fields: dict[str, Any] = {"content": message.get("content")}
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


@dataclass(frozen=True, slots=True)
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


Present = Callable[[DataNotice], None]
Collect = Callable[[DataNotice], None]


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


presenter: ContextVar[Present] = ContextVar("presenter", default=show_notice)
"""How a notice is shown. A widget shows it in itself."""
collector: ContextVar[Collect | None] = ContextVar("collector", default=None)
"""What keeps the notices of the requests that are sent; None for nothing."""
_lock = threading.Lock()
"""Held while a notice is shown, so that no other thread sends a request before."""
_shown_here: dict[Path, str] = {}
"""When a notice was shown, by its file: the folder may not be writable."""


@contextmanager
def notices_collected_by(collect: Collect) -> Iterator[None]:
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
