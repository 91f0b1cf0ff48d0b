"""What the adapters of model servers share: forms of a request, repeats, addresses, errors by their cause."""

from __future__ import annotations

import re
import threading
import time
from abc import abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeVar, cast
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
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Mode
from kgwb.masking import is_key, shown, without
from kgwb.network import ERROR_BYTES, RedirectError, check_redirect, received

if TYPE_CHECKING:
    import httpx

    from kgwb.kg.base import Graph

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
MOST_BYTES = 32_000_000
"""Bytes read of one reply, with all that a stream wraps its tokens in; more is no model's reply."""
MOST_DOCUMENT_BYTES = 2_000_000
"""Bytes of a JSON document in it, which is a line of a stream: what is made of it may take 300 times that."""
MOST_LETTERS = 1_000_000
"""Length of a reply's text; a longer one would be sent back with what is wrong with it."""

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
    text: str = field(repr=False)
    """In the words of the server or the SDK, uncut; may hold a key, so only ``as_error`` shows it."""
    status: int = 0
    """HTTP status, for kind "status"."""
    param: str = field(default="", repr=False)
    """The request's field that the server says it turns away."""
    formal: bool = False
    """The form of the request seems to be at fault, whatever the status: another one may do."""
    wait_s: float | None = None
    """Wait that the server asks for."""
    final: bool = False
    """The server says that a repeat is of no use."""

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed a moment later. Timeouts do not count: their time is spent."""
        if self.final or self.formal or (self.wait_s or 0.0) > LONGEST_WAIT_S:
            return False
        return self.kind == "connection" or self.status in _TRANSIENT or self.status >= 500


@dataclass(frozen=True, slots=True)
class Form:
    """How a request is put; servers differ in what they take."""

    mode: Literal["schema", "json", "prompt"] = "schema"
    tokens_field: str = "max_completion_tokens"
    without: frozenset[str] = frozenset()
    """Those of ``OPTIONAL`` that are left out, and "schema" where JSON mode takes none."""

    def gentler(self, failure: Failure, *, with_schema: bool) -> Form | None:
        """The form without what the server seems to refuse: a field it names, else the enforcement."""
        if (failure.status not in (400, 422) and not failure.formal) or failure.param in self.without:
            return None
        named = failure.param or failure.text
        if "response_format" not in named:
            if re.search(rf"\b{self.tokens_field}\b", named):
                return replace(self, tokens_field=_OTHER_TOKENS_FIELD[self.tokens_field])
            for field in OPTIONAL:
                if field not in self.without and re.search(rf"\b{field}\b", named):
                    return replace(self, without=self.without | {field})
        # JSON mode may be refused by naming "messages", where they lack the word
        elsewhere = self.mode == "schema" and not failure.param.startswith("response_format")
        if not with_schema or (failure.param and elsewhere) or self.mode == "prompt":
            return None
        if self.mode == "json" and "schema" not in self.without:
            return replace(self, without=self.without | {"schema"})
        return replace(self, mode="json" if self.mode == "schema" else "prompt")


OPTIONAL = ("stream_options", "stream", "temperature", "seed")
"""Fields of a request that a server may turn away."""
_OTHER_TOKENS_FIELD = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


class Arriving:
    """The text of one reply, as far as it is here."""

    def __init__(self, request: ChatRequest, keys: Sequence[str]) -> None:
        self.first_token_s: float | None = None
        self._request, self._keys = request, keys
        self._parts: list[str] = []
        self._started = time.perf_counter()

    @property
    def text(self) -> str:
        """What has arrived, without the keys."""
        return without("".join(self._parts), self._keys)

    def add(self, text: str) -> None:
        """Take the next part, and tell whoever watches."""
        if not text:
            return
        if self.first_token_s is None:
            self.first_token_s = time.perf_counter() - self._started
        self._parts.append(text)
        if self._request.on_text is None:
            return
        text = self.text
        if not any(text.endswith(key[:size]) for key in self._keys for size in range(3, len(key))):
            self._request.on_text(text)  # else a key may be on its way

    def cut(self, failure: Failure) -> Failure:
        """The failure; where the connection broke off in the middle, as one that another form may heal."""
        middle = failure.kind == "connection" and self._parts
        return replace(BROKEN_OFF, text=failure.text) if middle else failure


class RemoteModel(ChatModel):
    """A model behind a server: asked in the form that the server takes, which is remembered."""

    remote = True

    def __init__(self, kind: str, model: str, url: str, usual_url: str) -> None:
        self.model, self.url = model, url
        self.name = f"{kind}:{model}" if url == usual_url else f"{kind}:{model}@{url}"
        self._lock = threading.Lock()
        self._form = Form()
        self._schema_works = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The model's answer; raises Cancelled or a ModelError (unreachable, timeout, refused).

        It is streamed where the server can: a cancel then closes the connection, and the server stops.
        """
        started = time.perf_counter()
        with_schema = request.schema is not None
        with self._lock:
            form = self._form
        refused: set[Form] = set()
        tries = 0
        while True:
            send = partial(self._send, form, request)
            outcome, sent = send_repeatedly(send, cancel, request.timeout_s)
            tries += sent
            if not isinstance(outcome, Failure) and len(outcome.text) > MOST_LETTERS:
                outcome = Failure("nonsense", f"{len(outcome.text):,} letters: {outcome.text[:EXCERPT]}")
            if not isinstance(outcome, Failure):
                break
            refused.add(form)
            gentler = form.gentler(outcome, with_schema=with_schema)
            if gentler is None or gentler in refused:
                raise self._error(outcome, request.timeout_s)
            form = gentler
        self._remember(form, with_schema=with_schema)
        mode: Mode = form.mode if with_schema else "none"
        outcome = replace(outcome, mode=mode, seconds=time.perf_counter() - started, tries=tries)
        text, named, ended = (
            without(said, self._keys()) for said in (outcome.text, outcome.model, outcome.finish_reason)
        )
        return replace(outcome, text=text, model=named, finish_reason=ended)

    def models(self, timeout_s: float = 2.0) -> tuple[str, ...]:
        """Names of the models that the server lists, sorted; raises a ModelError. Asks once only."""
        outcome = self._listed(timeout_s)
        if isinstance(outcome, Failure):
            raise self._error(outcome, timeout_s, name_models=False)
        return tuple(without(name, self._keys()) for name in outcome)

    def _listed(self, timeout_s: float) -> tuple[str, ...] | Failure:
        try:  # no timeout of a socket sees a name looked up for long, or interim responses without end
            return aside(partial(self._list, timeout_s), most_s=1.5 * timeout_s)
        except TimeoutError:
            return Failure("timeout", "")

    @abstractmethod
    def _send(self, form: Form, request: ChatRequest, left: threading.Event) -> ChatReply | Failure:
        """Send once; ``left`` is set when nobody waits for the reply any more."""

    @abstractmethod
    def _list(self, timeout_s: float) -> tuple[str, ...] | Failure: ...

    @abstractmethod
    def _key(self) -> str:
        """What the server is given as key; may be empty."""

    def _keys(self) -> tuple[str, ...]:
        """What must never be shown or kept."""
        return tuple(filter(is_key, [self._key()]))

    @abstractmethod
    def _hints(self) -> tuple[str, str]:
        """What to do about a refused key, and about a model that is not there."""

    def _remember(self, form: Form, *, with_schema: bool) -> None:
        with self._lock:
            self._schema_works |= with_schema and form.mode == "schema"
            # A server that has honoured a schema refused this one, not all of them
            lower = with_schema and not self._schema_works
            self._form = replace(form, mode=form.mode if lower else self._form.mode)

    def _error(self, failure: Failure, timeout_s: float, *, name_models: bool = True) -> ModelError:
        key_hint, missing_hint = self._hints()
        if failure.status == 404 and name_models:
            listed = self._listed(min(timeout_s, 2.0))
            models = (
                () if isinstance(listed, Failure) else tuple(scrub(name, self._keys()) for name in listed)
            )
            return no_such_model(self.model, self.url, models, missing_hint)
        return as_error(failure, self.url, timeout_s=timeout_s, keys=self._keys(), key_hint=key_hint)


BROKEN_OFF = Failure("connection", "the reply broke off in the middle", param="stream", formal=True)
"""Asked again without a stream: some servers cannot keep one up."""
EMPTY = replace(BROKEN_OFF, kind="nonsense", text="an empty page")
"""The same, for a server that can say only without a stream what is wrong."""


def chat_messages(request: ChatRequest) -> list[dict[str, str]]:
    """The messages in the form that both protocols share."""
    # Half an emoji, as models write it now and then, has no UTF-8 and would stop the transport
    return [
        {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}
        for message in request.messages
    ]


def send_repeatedly(
    send: Callable[[threading.Event], T | Failure], cancel: threading.Event, timeout_s: float
) -> tuple[T | Failure, int]:
    """What ``send`` brought in the end, and how often it was called; raises Cancelled.

    The event that ``send`` is given is set when its outcome is not waited for any more.
    """

    def watch() -> None:
        if cancel.is_set():
            raise Cancelled

    tries = 0
    while True:
        watch()
        left = threading.Event()
        try:  # the transports' own timeouts start anew with every byte
            outcome = aside(partial(send, left), watch=watch, most_s=timeout_s + CONNECT_S)
        except TimeoutError:
            outcome = Failure("timeout", "")
        finally:
            left.set()
        tries += 1
        if not isinstance(outcome, Failure) or not outcome.transient or tries > REPEATS:
            return outcome, tries
        # A cancel is seen at the top of the loop
        cancel.wait(BACKOFF_S * 2 ** (tries - 1) if outcome.wait_s is None else outcome.wait_s)


def client_of(make: Callable[[], T]) -> T:
    """A client that ``make`` makes. Raises UnknownModelError where the environment allows none."""
    errors: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *transport_errors())
    try:
        return make()
    except errors as error:
        kind = type(error).__name__  # and not its words, which may hold the password of a proxy
    raise UnknownModelError(
        f"no connection can be set up with what the environment says ({kind})",
        hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (for a SOCKS proxy, install socksio), "
        "SSL_CERT_FILE, SSL_CERT_DIR, OLLAMA_HOST and the key",
    )


HEADERS = {"Accept-Encoding": "identity"}
"""Headers of a client: replies are short, and need no compression."""


def hooks(url: str) -> dict[str, list[Callable[..., None]]]:
    """Event hooks of a client of httpx or httpx2: redirects stay on the server, and a body is bounded."""

    def check(request: httpx.Request) -> None:
        check_redirect(str(type(request.url)(url)), str(request.url))  # spelled alike

    return {"request": [check], "response": [_bound]}


def _bound(response: httpx.Response) -> None:
    """Unpack a body; a reply that is too long is a ValueError, a late one a TimeoutError, an error is cut."""
    source = cast("httpx.SyncByteStream", response.stream)
    coding = response.headers.pop("content-encoding", "")  # so httpx, which has no bound, unpacks nothing
    response.encoding = "utf-8"  # whatever it says: JSON is UTF-8, and Python has codecs that are no charset
    until = time.monotonic() + response.request.extensions["timeout"]["read"]

    def error() -> Iterator[bytes]:
        with closing(source), suppress(ValueError):  # the status counts, also with a body that is unreadable
            yield from received(source, coding, ERROR_BYTES, until)

    def reply() -> Iterator[bytes]:
        size, document, decoder = 0, 0, getincrementaldecoder("utf-8")()
        streamed = re.search(rb'"stream": ?true', response.request.read())
        for part in received(source, coding, MOST_BYTES + 1, until):
            _, newline, rest = part.rpartition(b"\n")
            size, document = size + len(part), len(rest) + (0 if newline and streamed else document)
            for length, most in ((size, MOST_BYTES), (document, MOST_DOCUMENT_BYTES)):
                if length > most:
                    raise ValueError(f"more than {most:,} bytes")
            decoder.decode(part)
            yield part

    class Bound(import_module(type(response).__module__.partition(".")[0]).SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return reply() if response.is_success else error()

        def close(self) -> None:
            source.close()

    response.stream = Bound()


@cache
def transport_errors() -> tuple[type[Exception], ...]:
    """What a transport may raise: httpx, and httpx2, which openai 3 uses; and what ``hooks`` do."""
    packages = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    raised = [error for package in packages for error in (package.HTTPError, package.InvalidURL)]
    return (RedirectError, TimeoutError, *raised)


def status_failure(status: int, text: str, headers: Mapping[str, str], param: str = "") -> Failure:
    """The failure that an HTTP status tells, with the wait that the headers ask for."""
    # Ollama and llama.cpp answer 500, and not 400, to a form that they cannot make a grammar of
    formal = status == 500 and any(word in text.lower() for word in ("format", "schema", "grammar"))
    final = headers.get("x-should-retry") == "false"
    return Failure("status", text, status, param, formal, _wait_s(headers), final)


def _wait_s(headers: Mapping[str, str]) -> float | None:
    for name, parts_of_a_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / parts_of_a_second)
        except (KeyError, ValueError):  # absent, or a date
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def transport_failure(error: BaseException) -> Failure:
    """The failure behind an exception of ``transport_errors``: the names are the same in httpx and httpx2."""
    if isinstance(error, RedirectError) or type(error).__name__ == "TooManyRedirects":
        return Failure("connection", str(error), final=True)
    if type(error).__name__ in ("ConnectTimeout", "PoolTimeout"):
        return Failure("connection", "no connection in time", final=True)
    if type(error).__name__ in ("ReadTimeout", "WriteTimeout", "TimeoutError"):
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
            hint="look into the server's log, and check the address: for an OpenAI-compatible server it "
            "usually ends in /v1",
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
    # Cut first: what follows takes far more time and memory than a text of this size
    text = " ".join(_KEY_LIKE.sub("***", without(text, keys)[:ERROR_BYTES]).split())
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
            f"{shown(url)!r} is not the address of a server", hint="write it like http://localhost:8000/v1"
        )
    return url.rstrip("/")
