"""What the adapters of model servers share: forms of a request, repeats, addresses, errors by their cause."""

from __future__ import annotations

import json
import re
import threading
import time
from abc import abstractmethod
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from kgwb.deprecated import RenamedAttribute
from kgwb.errors import (
    Cancelled,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    UnknownModelError,
)
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, ReplyMode
from kgwb.masking import MASK, is_distinctive_secret, mask_secrets, mask_url
from kgwb.network import MAX_ERROR_BYTES, RedirectError, check_redirect, read_body
from kgwb.threads import run_in_thread

MAX_RETRIES = 2
"""How often a request that failed for a passing reason is repeated."""
INITIAL_BACKOFF_S = 0.5
"""Wait before the first repeat where the server names none; doubled for the next."""
MAX_RETRY_AFTER_S = 60.0
"""A server that asks for a longer wait is not asked again."""
CONNECT_TIMEOUT_S = 5.0
"""Longest wait for the connection itself."""
MAX_EXCERPT_CHARS = 300
"""Characters of a server's own words that an error shows."""
MAX_REPLY_BYTES = 32_000_000
"""Bytes read of one reply, with all that a stream wraps its tokens in; more is no model's reply."""
MAX_JSON_DOCUMENT_BYTES = 2_000_000
"""Bytes of a JSON document in it, which is a line of a stream: what is made of it may take 300 times that."""
MAX_REPLY_CHARS = 1_000_000
"""Length of a reply's text; a longer one would be sent back with what is wrong with it."""
OPTIONAL_FIELDS = (
    "max_tokens",
    "max_completion_tokens",
    "stream_options",
    "stream",
    "temperature",
    "seed",
)
"""Fields of a request that some servers refuse."""

_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_KEY_LIKE = re.compile(
    r"""\b(?:sk|pk|rk|gsk|hf|xai|ghp|nvapi)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}"""
    r"""|(?<=Bearer )\S+|(?<=Basic )\S+|(?:(?<=api_key=)|(?<=api-key=)|(?<=apikey=))[^\s&"']+""",
    re.IGNORECASE,
)
_abandoned_event: ContextVar[threading.Event] = ContextVar("abandoned", default=threading.Event())  # noqa: B039
"""Set when nobody waits for the reply any more that is being read."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why one request brought no reply.

    A value and not an exception: what the SDKs raise holds the request with its key, and must not be chained.
    """

    kind: Literal["timeout", "connection", "status", "nonsense"]
    message: str = field(default="", repr=False)
    """In the words of the server or the SDK, uncut; may hold a key."""
    status: int = 0
    """HTTP status, for kind "status"."""
    refused_field: str = field(default="", repr=False)
    """The request's field that the server refuses."""
    is_format_problem: bool = False
    """The form of the request seems to be at fault, whatever the status: another one may do."""
    is_transient: bool = False
    """The same request may succeed a moment later. Timeouts do not count: their time is spent."""
    retry_after_s: float | None = None
    """Wait that the server asks for."""


INTERRUPTED_STREAM = RequestFailure(
    "connection",
    "the reply broke off in the middle",
    refused_field="stream",
    is_format_problem=True,
)
"""Asked again without a stream: some servers cannot keep one up."""
EMPTY_RESPONSE = replace(INTERRUPTED_STREAM, kind="nonsense", message="an empty page")
"""The same, for a server that does not stream, or can only say without a stream what is wrong."""


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """How a request is put; servers differ in what they accept."""

    modes: tuple[str, ...]
    """Ways to enforce the form of a reply, best first: those that the server has not refused."""
    omitted_fields: frozenset[str] = frozenset()
    """Those of ``OPTIONAL`` that are left out."""

    def fallback_for(self, failure: RequestFailure, *, with_schema: bool) -> RequestFormat | None:
        """The form without what the server seems to refuse: a field it names, else the enforcement."""
        if (
            failure.status not in (400, 422) and not failure.is_format_problem
        ) or failure.refused_field in self.omitted_fields:
            return None
        named = failure.refused_field or failure.message
        if "response_format" not in named:
            for field in OPTIONAL_FIELDS:
                if field not in self.omitted_fields and re.search(rf"\b{field}\b", named):
                    return replace(self, omitted_fields=self.omitted_fields | {field})
        # JSON mode may be refused by naming "messages", where they lack the word
        elsewhere = self.modes[0] == "schema" and not failure.refused_field.startswith(
            "response_format"
        )
        if not with_schema or (failure.refused_field and elsewhere) or len(self.modes) == 1:
            return None
        return replace(self, modes=self.modes[1:])


class RemoteModel(ChatModel):
    """A model behind a server: asked in the form that the server accepts, which is remembered.

    An adapter says in ``_parts`` and ``_names`` how its SDK is called; both may raise what that raises.
    """

    remote = True

    def __init__(
        self, name: str, model: str, url: str, form: RequestFormat, hints: tuple[str, str]
    ) -> None:
        """``hints`` say what to do about a refused key, and about a model that is not there."""
        self.name, self.model, self.url = name, model, url
        self._hints = hints
        self._lock = threading.Lock()
        self._request_format = form
        self._schema_works = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """The model's answer; raises Cancelled or a ModelError (unreachable, timeout, refused).

        It is streamed where the server can: a cancel then closes the connection, and the server stops.
        """
        started = time.perf_counter()
        with_schema = request.schema is not None
        with self._lock:
            form = self._request_format

        def watch() -> None:
            if cancel.is_set():
                raise Cancelled

        tries = repeats = 0
        while True:
            watch()
            outcome = self._read_reply(form, request, watch)
            tries += 1
            if isinstance(outcome, ChatReply):
                break
            if gentler := form.fallback_for(outcome, with_schema=with_schema):
                form, repeats = gentler, 0
            elif (
                outcome.is_transient
                and repeats < MAX_RETRIES
                and (outcome.retry_after_s or 0.0) <= MAX_RETRY_AFTER_S
            ):
                cancel.wait(
                    INITIAL_BACKOFF_S * 2**repeats
                    if outcome.retry_after_s is None
                    else outcome.retry_after_s
                )
                repeats += 1
            else:
                raise self._to_error(outcome, request.timeout_s)
        with self._lock:
            self._schema_works |= with_schema and form.modes[0] == "schema"
            # A server that has honoured a schema refused this one, not all of them
            lower = with_schema and not self._schema_works
            self._request_format = (
                form if lower else replace(form, modes=self._request_format.modes)
            )
        mode: ReplyMode = form.modes[0].partition(" ")[0] if with_schema else "none"  # type: ignore[assignment]
        return replace(outcome, mode=mode, seconds=time.perf_counter() - started, tries=tries)

    def list_models(self, timeout_s: float = 2.0) -> tuple[str, ...]:
        """Names of the models that the server lists, sorted; raises a ModelError. Asks once only."""
        names = self._try_list_models(timeout_s)
        if isinstance(names, RequestFailure):
            raise self._to_error(names, timeout_s, listing=True)
        return names

    @abstractmethod
    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ChatReply]:
        """What one request brings, piece by piece; the last one but for counts has a finish reason."""

    @abstractmethod
    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        """Names of the models that the server lists."""

    @abstractmethod
    def _api_key(self) -> str:
        """What the server is given as key; may be empty."""

    def _classify_error(self, error: Exception) -> RequestFailure:
        """What an exception of a transport or of a reader says; the SDKs' own ones are the adapters'."""
        kind = type(error).__name__  # equal in httpx and httpx2
        if isinstance(error, RedirectError) or kind == "TooManyRedirects":
            return RequestFailure("connection", str(error))
        if kind in ("ConnectTimeout", "PoolTimeout"):
            return RequestFailure("connection", "no connection in time")
        if kind in ("ReadTimeout", "WriteTimeout", "TimeoutError"):
            return RequestFailure("timeout")
        if isinstance(error, transport_errors()):
            return RequestFailure("connection", str(error) or kind, is_transient=True)
        if isinstance(error, json.JSONDecodeError):
            return RequestFailure("nonsense", error.doc) if error.doc.strip() else EMPTY_RESPONSE
        return RequestFailure("nonsense", str(error))

    def _call_sdk(
        self, work: Callable[[], T], timeout_s: float, poll: Callable[[], None] | None = None
    ) -> T | RequestFailure:
        """What a call of an SDK brings within a time.

        Its own timeouts begin anew with every byte, and see no name that is looked up for long.
        """
        try:
            return run_in_thread(work, poll=poll, timeout_s=timeout_s)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001  # of an SDK that reads what any server may send
            return self._classify_error(error)

    def _read_reply(
        self, form: RequestFormat, request: ChatRequest, watch: Callable[[], None]
    ) -> ChatReply | RequestFailure:
        """The reply to one request, put together from its parts, without the key."""
        started, keys, abandoned = time.perf_counter(), self._secrets(), threading.Event()
        parts: list[ChatReply] = []

        def read() -> None:
            _abandoned_event.set(abandoned)
            for part in self._stream_reply(form, request):
                parts.append(replace(part, first_token_s=time.perf_counter() - started))

        try:
            failure = self._call_sdk(read, request.timeout_s + CONNECT_TIMEOUT_S, watch)
        finally:
            abandoned.set()
        text = "".join(part.text for part in parts)
        reasons = [part.finish_reason for part in parts if part.finish_reason]
        first_token_s = next((part.first_token_s for part in parts if part.text), None)
        if failure and not reasons:
            return (
                replace(INTERRUPTED_STREAM, message=failure.message)
                if text and failure.is_transient
                else failure
            )
        if not reasons:
            return INTERRUPTED_STREAM if parts else EMPTY_RESPONSE
        if len(text) > MAX_REPLY_CHARS:
            return RequestFailure("nonsense", f"{len(text):,} letters: {text[:MAX_EXCERPT_CHARS]}")
        return ChatReply(
            text=mask_secrets(text, keys),
            model=mask_secrets(next((part.model for part in parts if part.model), ""), keys),
            prompt_tokens=max(part.prompt_tokens for part in parts),
            completion_tokens=max(part.completion_tokens for part in parts),
            first_token_s=first_token_s if len(parts) > 1 else None,
            finish_reason=mask_secrets("refusal" if "refusal" in reasons else reasons[-1], keys),
        )

    def _try_list_models(self, timeout_s: float) -> tuple[str, ...] | RequestFailure:
        def listed() -> tuple[str, ...]:
            return tuple(
                sorted(
                    mask_secrets(str(name), self._secrets())
                    for name in self._model_names(timeout_s)
                    if name
                )
            )

        return self._call_sdk(listed, 1.5 * timeout_s)

    def _secrets(self) -> list[str]:
        """What must never be shown or kept."""
        return [key for key in [self._api_key()] if is_distinctive_secret(key)]

    def _to_error(
        self, failure: RequestFailure, timeout_s: float, *, listing: bool = False
    ) -> ModelError:
        """The error to raise for a failure: what was asked, what was seen, what to do; without the keys."""
        words, status = masked_excerpt(failure.message, self._secrets()), failure.status
        error: type[ModelError] = ModelUnreachableError
        message = f"{self.url} answers {status}: {words}"
        hint = "try again later, or look into the server's log"
        if failure.kind == "timeout":
            error, message = ModelTimeoutError, f"no reply from {self.url} within {timeout_s:g} s"
            hint = "allow more with the setting model_timeout_s, or take a smaller model"
        elif failure.kind == "connection":
            message = f"{self.url} cannot be reached: {words}"
            hint = "check that the server runs, and that the address is right"
        elif failure.kind == "nonsense":
            message = f"{self.url} answers with something other than a model's reply: {words}"
            hint = (
                "look into the server's log, and check the address: for an OpenAI-compatible server it "
                "usually ends in /v1"
            )
        elif status == 404 and not listing:
            error, message = ModelRefusedError, f"no model named {self.model} at {self.url}"
            listed = self._try_list_models(min(timeout_s, 2.0))
            names = () if isinstance(listed, RequestFailure) else listed
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            hint = (
                f"it has {masked_excerpt(', '.join(names[:8]))}{more}" if names else self._hints[1]
            )
        elif status in (401, 403):
            error, hint = ModelRefusedError, self._hints[0]
        elif status == 429:
            hint = "wait a little, or check the quota of the key"
        elif not failure.is_transient:
            error = ModelRefusedError
            hint = "shorten the request or take another model, as the server's words say"
        return error(message, hint=hint)

    models = RenamedAttribute("models", "list_models")


def failure_from_status(status: int, text: str, headers: Any, param: str = "") -> RequestFailure:
    """The failure that an HTTP status says, with the wait that the headers ask for."""
    # Ollama and llama.cpp answer 500, and not 400, to a form that they cannot make a grammar of
    formal = status == 500 and any(word in text.lower() for word in ("format", "schema", "grammar"))
    transient = not formal and (status in _TRANSIENT_STATUSES or status >= 500)
    wait_s = None
    with suppress(KeyError, ValueError):  # absent, or a date
        wait_s = max(0.0, float(headers["retry-after"]))
    return RequestFailure("status", text, status, param, formal, transient, wait_s)


def messages_to_data(request: ChatRequest) -> list[dict[str, str]]:
    """The messages in the form that both protocols share."""
    # Half an emoji, as models write it now and then, has no UTF-8 and would stop the transport
    return [
        {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}
        for message in request.messages
    ]


def make_client(create_client: Callable[..., T], url: str) -> T:
    """The client that ``make`` makes with options for httpx or httpx2: no redirect leaves the server.

    Raises UnknownModelError where the environment allows none.
    """
    errors: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *transport_errors())

    def check(request: Any) -> None:
        check_redirect(str(type(request.url)(url)), str(request.url))  # spelled alike

    try:
        hooks = {"request": [check], "response": [_limit_response]}
        return create_client(headers={"Accept-Encoding": "identity"}, event_hooks=hooks)
    except errors as error:
        kind = type(error).__name__  # and not its words, which may hold the password of a proxy
    raise UnknownModelError(
        f"no connection can be set up with what the environment says ({kind})",
        hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (for a SOCKS proxy, install socksio), "
        "SSL_CERT_FILE, SSL_CERT_DIR, OLLAMA_HOST and the key",
    )


def _limit_response(response: Any) -> None:
    """Unpack a body; a reply that is too long is a ValueError, a late one a TimeoutError, an error is cut."""
    source, abandoned = response.stream, _abandoned_event.get()
    coding = response.headers.pop(
        "content-encoding", ""
    )  # so httpx, which has no bound, unpacks nothing
    response.encoding = (
        "utf-8"  # whatever it says: JSON is UTF-8, and Python has codecs that are no charset
    )
    finished = False
    until = time.monotonic() + response.request.extensions["timeout"]["read"]

    def error() -> Iterator[bytes]:
        with (
            closing(source),
            suppress(ValueError),
        ):  # the status counts, also with a body that is unreadable
            yield from read_body(source, coding, MAX_ERROR_BYTES, until)

    def reply() -> Iterator[bytes]:
        nonlocal finished
        size, document, decoder = 0, 0, getincrementaldecoder("utf-8")()
        streamed = re.search(rb'"stream": ?true', response.request.read())
        for part in read_body(source, coding, MAX_REPLY_BYTES + 1, until):
            _, newline, rest = part.rpartition(b"\n")
            size, document = size + len(part), len(rest) + (0 if newline and streamed else document)
            for length, most in ((size, MAX_REPLY_BYTES), (document, MAX_JSON_DOCUMENT_BYTES)):
                if length > most:
                    raise ValueError(f"more than {most:,} bytes")
            decoder.decode(part)
            if abandoned.is_set():
                return
            finished = b"[DONE]" in part
            yield part

    body = reply() if response.is_success else error()

    class Bound(import_module(type(response).__module__.partition(".")[0]).SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return body

        def close(self) -> None:
            # The SDK stops at [DONE], and only a connection that was read to its end can be used again
            with suppress(OSError, ValueError, *transport_errors()):
                deque(body if finished else (), maxlen=0)
            source.close()

    response.stream = Bound()


@cache
def transport_errors() -> tuple[type[Exception], ...]:
    """What a transport may raise: httpx, and httpx2, which openai 3 uses."""
    packages = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    return tuple(error for package in packages for error in (package.HTTPError, package.InvalidURL))


def masked_excerpt(text: str, keys: Iterable[str] = ()) -> str:
    """An excerpt of a server's words in one line, with everything masked that is, or looks like, a key."""
    # Cut first: what follows takes far more time and memory than a text of this size
    text = " ".join(
        _KEY_LIKE.sub(
            MASK, mask_secrets(text[: 2 * MAX_ERROR_BYTES], keys)[:MAX_ERROR_BYTES]
        ).split()
    )
    return text if len(text) <= MAX_EXCERPT_CHARS else text[:MAX_EXCERPT_CHARS] + " …"


def validate_url(url: str) -> str:
    """The address without a closing slash; raises UnknownModelError if it is none, or holds a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    # The address is part of the model's name, which is recorded and shown
    if "@" in url or (usable and parts.query):
        raise UnknownModelError(
            "the address of a model server must not hold a name, a password or a key",
            hint="give a plain address; the key belongs into the environment variable OPENAI_API_KEY",
        )
    if not usable or re.search(r"\s", url):
        raise UnknownModelError(
            f"{mask_url(url)!r} is not the address of a server",
            hint="write it like http://localhost:8000/v1",
        )
    return url.rstrip("/")
