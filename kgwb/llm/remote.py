"""What the adapters of model servers share: addresses, repeats of passing failures, errors by their cause."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from kgwb.aside import aside
from kgwb.errors import (
    Cancelled,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    UnknownModelError,
)
from kgwb.llm.base import ChatRequest

REPEATS = 2
"""How often a send that failed for a passing reason is repeated."""
BACKOFF_S = 0.5
"""Wait before the first repeat where the server names none; doubled for the next."""
LONGEST_WAIT_S = 60.0
"""A server that asks for a longer wait is not asked again."""
CONNECT_S = 5.0
"""Longest wait for the connection itself."""
EXCERPT = 300
"""Characters of a server's own words that an error shows."""

_TRANSIENT = frozenset({408, 409, 429})
_KEY_LIKE = re.compile(
    r"""\b(?:sk|pk|rk|gsk|hf|xai|ghp|nvapi)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}"""
    r"""|(?<=Bearer )\S+|(?<=Basic )\S+|(?:(?<=api_key=)|(?<=api-key=)|(?<=apikey=))[^\s&"']+""",
    re.IGNORECASE,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one send brought no reply.

    A value and not an exception: what the SDKs raise holds the request with its key, and must not be chained.
    """

    kind: Literal["timeout", "connection", "status", "nonsense"]
    text: str
    """In the words of the server or the SDK, uncut; may hold a key, so only ``as_error`` shows it."""
    status: int = 0
    """HTTP status, for kind "status"."""
    param: str = ""
    """The request's field that the server says it turns away."""
    wait_s: float | None = None
    """Wait that the server asks for."""
    final: bool = False
    """The server says that a repeat is of no use."""

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed a moment later. Timeouts do not count: their time is spent."""
        if self.final or (self.wait_s or 0.0) > LONGEST_WAIT_S:
            return False
        return self.kind == "connection" or self.status in _TRANSIENT or self.status >= 500


def chat_messages(request: ChatRequest) -> list[dict[str, str]]:
    """The messages in the form that both protocols share."""
    # Half an emoji, as models write it now and then, has no UTF-8 and would stop the transport
    return [
        {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}
        for message in request.messages
    ]


def send_repeatedly(
    send: Callable[[], T | Failure], cancel: threading.Event, timeout_s: float
) -> tuple[T | Failure, int]:
    """What ``send`` brought in the end, and how often it was called; raises Cancelled."""
    tries = 0
    while True:
        if cancel.is_set():
            raise Cancelled
        try:  # the transports' own timeouts start anew with every byte
            outcome = aside(send, most_s=timeout_s + CONNECT_S)
        except TimeoutError:
            outcome = Failure("timeout", "")
        tries += 1
        if not isinstance(outcome, Failure) or not outcome.transient or tries > REPEATS:
            return outcome, tries
        # A cancel is seen at the top of the loop
        cancel.wait(BACKOFF_S * 2 ** (tries - 1) if outcome.wait_s is None else outcome.wait_s)


def transport_failure(error: BaseException) -> Failure:
    """The failure behind an exception of httpx, or of httpx2, which openai 3 uses: the same names in both."""
    if type(error).__name__ in ("ConnectTimeout", "PoolTimeout"):
        return Failure("connection", "no connection in time", final=True)
    if type(error).__name__ in ("ReadTimeout", "WriteTimeout"):
        return Failure("timeout", "")
    return Failure("connection", str(error) or type(error).__name__)


def as_error(
    failure: Failure, url: str, *, timeout_s: float, keys: Sequence[str], key_hint: str
) -> ModelError:
    """The error to raise for a failure: what was asked, what was seen, what to do; without the keys."""
    said = scrub(failure.text, keys)
    if failure.kind == "timeout":
        return ModelTimeoutError(
            f"no reply from {url} within {timeout_s:g} s",
            hint="allow more with the setting model_timeout_s, or take a smaller model",
        )
    if failure.kind == "connection":
        return ModelUnreachableError(
            f"{url} cannot be reached: {said}",
            hint="check that the server runs, and that the address is right",
        )
    if failure.kind == "nonsense":
        return ModelUnreachableError(
            f"{url} answers with something other than a model's reply: {said}",
            hint="check the address; that of an OpenAI-compatible server usually ends in /v1",
        )
    return _status_error(failure.status, f"{url} answers {failure.status}: {said}", key_hint)


def _status_error(status: int, message: str, key_hint: str) -> ModelError:
    if status in (401, 403):
        return ModelRefusedError(message, hint=key_hint)
    if status == 429:
        return ModelUnreachableError(message, hint="wait a little, or check the quota of the key")
    if status in _TRANSIENT or status >= 500:
        return ModelUnreachableError(message, hint="try again later, or look into the server's log")
    return ModelRefusedError(
        message, hint="shorten the request or take another model, as the server's words say"
    )


def no_such_model(model: str, url: str, models: tuple[str, ...], hint: str) -> ModelRefusedError:
    """The error for a 404; ``models`` are those the server lists, if it does, and up to 8 are named."""
    listed = ", ".join(models[:8]) + (f" and {len(models) - 8} more" if len(models) > 8 else "")
    return ModelRefusedError(f"no model named {model} at {url}", hint=f"it has {listed}" if models else hint)


def scrub(text: str, keys: Sequence[str] = ()) -> str:
    """An excerpt of a server's words in one line, with everything masked that is, or looks like, a key."""
    for key in filter(None, keys):
        text = text.replace(key, "***")
    text = " ".join(_KEY_LIKE.sub("***", text).split())
    return text if len(text) <= EXCERPT else text[:EXCERPT] + " …"


def checked_url(url: str) -> str:
    """The address without a closing slash; raises UnknownModelError if it is none, or holds a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not re.search(r"\s", url)
    except ValueError:
        usable = False
    # The address is part of the model's name, which is recorded and shown
    if "@" in url or (usable and parts.query):
        raise UnknownModelError(
            "the address of a model server must not hold a name, a password or a key",
            hint="give a plain address; the key belongs into the environment variable OPENAI_API_KEY",
        )
    if not usable:
        raise UnknownModelError(
            f"{url!r} is not the address of a server", hint="write it like http://localhost:8000/v1"
        )
    return url.rstrip("/")
