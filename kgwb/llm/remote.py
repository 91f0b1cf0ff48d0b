"""Models behind a server: one request over HTTP, its reply and its failures, and when it is repeated.

The SDKs use httpx, or httpx2 since version 3 of openai. Both have the same classes. What they do not
have is here: redirects stay on one server, replies are bounded, and a reply that nobody waits for
any more is not read to its end. A server that refuses the format of a request is asked in another.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from abc import abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from kgwb.background import poll_interval_s, run_in_thread
from kgwb.errors import (
    Cancelled,
    KeyRefusedError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    UnknownModelError,
)
from kgwb.kg.base import Graph
from kgwb.llm.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyMode,
    announce,
    fields_of_text,
)
from kgwb.network import (
    MAX_ERROR_BYTES,
    RedirectError,
    check_redirect,
    identify_certificates,
    read_body,
    read_retry_after,
)
from kgwb.records import JsonObject, frozen
from kgwb.text import KEY_PATTERN, MASK, is_distinctive_secret, mask_secrets, mask_url

MAX_REPLY_BYTES = 32_000_000
"""Bytes that are read of one reply, including what a stream wraps its tokens in."""
MAX_JSON_DOCUMENT_BYTES = 2_000_000
"""Bytes of one JSON document, which in a stream is a line. Parsed it may take 300 times as much."""
STREAM_REQUEST = re.compile(rb'"stream": ?true')
NO_EVENT = threading.Event()
T = TypeVar("T")

abandoned_event: ContextVar[threading.Event] = ContextVar("abandoned", default=NO_EVENT)
"""An event that is set when the reply that is being read is not needed any more."""
ABANDON_CHECK_INTERVAL_S = 0.1
"""How often the event is looked at, at first, while nothing comes from the server."""


def make_client(
    create_client: Callable[..., T],
    url: str,
    package: str,
) -> T:
    """Return what ``create_client`` creates, given headers, event hooks and certificates.

    They are those of ``package``, httpx or httpx2. The client follows redirects only on the server
    of ``url``, limits the size and time of replies, and closes its connection soon after
    ``abandoned_event`` is set. Raises UnknownModelError if no client can be created with the present
    environment variables; the original message is left out, because it may hold the password of a
    proxy.
    """
    errors: tuple[type[Exception], ...] = (ImportError, OSError, ValueError, *transport_errors())

    def prepare_request(request: Any) -> None:
        """Check a request before it is sent: raise RedirectError if it goes to another server.

        New connections of the request are watched, so that they end when nobody waits for the
        reply.
        """
        url_class = type(request.url)  # the transport may spell the same URL in another way
        check_redirect(str(url_class(url)), str(request.url))
        request.extensions["trace"] = _watch_new_connection

    try:
        hooks = {"request": [prepare_request], "response": [_limit_response]}
        return create_client(
            headers={"Accept-Encoding": "identity"},
            event_hooks=hooks,
            verify=_make_tls_context(package, identify_certificates()),
        )
    except errors as error:
        # Not its message, which may hold the password of a proxy, and not as the cause either
        error_type = type(error).__name__
    raise UnknownModelError(
        f"no connection is possible with the present environment variables ({error_type})",
        hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (for a SOCKS proxy, install "
        "socksio), SSL_CERT_FILE, SSL_CERT_DIR, OLLAMA_HOST and the key",
    )


@lru_cache(maxsize=2)
def _make_tls_context(package: str, _certificates: object) -> ssl.SSLContext:
    """Return what clients of httpx or httpx2 check the certificates of servers with.

    It is the default of the package. Clients share it: otherwise each reads all certificates of the
    machine, which takes 20 to 80 ms. It is made anew when the certificates have changed. Raises
    OSError if SSL_CERT_FILE or SSL_CERT_DIR names no certificates.
    """
    context: ssl.SSLContext = import_module(package).create_ssl_context()
    return context


def _watch_new_connection(event: str, info: Mapping[str, Any]) -> None:
    """Make a connection that was just opened look for ``abandoned_event`` while it is read.

    It is called with the events of the ``trace`` extension of httpx and httpx2. A connection is kept
    for further requests, each of which has an event of its own.
    """
    if event.endswith(("connect_tcp.complete", "start_tls.complete")):
        connection = info["return_value"]
        connection.read = partial(_read_unless_abandoned, connection.read)


def _read_unless_abandoned(
    read: Callable[[int, float], bytes], max_bytes: int, timeout: float | None = None
) -> bytes:
    """Return the next bytes of a connection, at most ``max_bytes``.

    A server that is still thinking sends nothing, so it is waited for in short intervals. Raises
    ConnectionAbortedError, upon which the transport closes the connection, if ``abandoned_event`` is
    set, and what ``read`` raises after ``timeout`` seconds.
    """
    started = time.monotonic()
    deadline = inf if timeout is None else started + timeout
    while True:
        if abandoned_event.get().is_set():
            raise ConnectionAbortedError("the reply is not needed any more")
        now = time.monotonic()
        check_s = max(ABANDON_CHECK_INTERVAL_S, poll_interval_s(now - started))
        interval_s = min(check_s, max(0.001, deadline - now))
        try:
            return read(max_bytes, interval_s)
        except Exception as error:
            is_timeout = type(error).__name__ == "ReadTimeout"  # of httpcore or httpcore2
            if not is_timeout or time.monotonic() >= deadline:
                raise


def _limit_response(response: Any) -> None:
    """Replace the stream of a response by a _BoundedStream, which unpacks and limits its body."""
    package = type(response).__module__.partition(".")[0]
    stream_class = import_module(package).SyncByteStream
    bounded_class = type("BoundedStream", (_BoundedStream, stream_class), {})
    response.stream = bounded_class(response)


class _BoundedStream:
    """The body of a response, unpacked and within bounds, in parts."""

    def __init__(self, response: Any) -> None:
        """Take over the stream of a response, and decide on its character set.

        That is UTF-8, even if the server names another one: JSON is UTF-8, and Python has codecs that
        are not character sets.
        """
        response.encoding = "utf-8"
        self._source = response.stream
        # Taken out of the headers, so that httpx, which has no bound, unpacks nothing
        self._encoding = response.headers.pop("content-encoding", "")
        request = response.request
        self._is_streamed = STREAM_REQUEST.search(request.read()) is not None
        timeout_s = request.extensions["timeout"]["read"]
        self._deadline = time.monotonic() + timeout_s
        self._is_finished = False
        if response.is_success:
            self._parts = self._read_reply()
        else:
            self._parts = self._read_error()

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        """Close the connection; if the reply is finished, read it to its end before.

        The SDK of OpenAI stops at "[DONE]", and only a connection that was read to its end can be
        used again. Errors while it is read are ignored.
        """
        with suppress(OSError, ValueError, *transport_errors()):
            if self._is_finished:
                for _ in self._parts:
                    pass
        self._source.close()

    def _read_error(self) -> Iterator[bytes]:
        """Yield the beginning of the body of an error; if it cannot be read, the status counts."""
        with closing(self._source), suppress(ValueError):
            yield from read_body(self._source, self._encoding, MAX_ERROR_BYTES, self._deadline)

    def _read_reply(self) -> Iterator[bytes]:
        """Yield the body of a reply in parts, unpacked.

        Raises ValueError if it is longer than MAX_REPLY_BYTES, has a JSON document longer than
        MAX_JSON_DOCUMENT_BYTES, or is not UTF-8. In a stream each line is a document, otherwise the
        whole body is. Raises TimeoutError if it takes longer than the request may.
        """
        size = 0
        document_size = 0
        decoder = getincrementaldecoder("utf-8")()
        max_bytes = MAX_REPLY_BYTES + 1
        for part in read_body(self._source, self._encoding, max_bytes, self._deadline):
            line = part
            if self._is_streamed and b"\n" in part:
                _, _, line = part.rpartition(b"\n")
                document_size = 0
            size += len(part)
            document_size += len(line)
            _check_size(size, MAX_REPLY_BYTES)
            _check_size(document_size, MAX_JSON_DOCUMENT_BYTES)
            decoder.decode(part)
            self._is_finished = b"[DONE]" in part
            yield part


def _check_size(size: int, max_bytes: int) -> None:
    """Raise ValueError, which names the limit, if ``size`` is larger than ``max_bytes``."""
    if size > max_bytes:
        raise ValueError(f"more than {max_bytes:,} bytes")


def httpx_package(client_class: type) -> str:
    """Return which of the packages httpx and httpx2 a class of clients belongs to."""
    packages = {base.__module__.partition(".")[0] for base in client_class.__mro__}
    if "httpx2" in packages:
        return "httpx2"
    return "httpx"


@cache
def transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that httpx and httpx2 raise, of those that are installed.

    They are the classes HTTPError and InvalidURL. Without either package the tuple is empty.
    """
    errors: list[type[Exception]] = []
    for name in ("httpx", "httpx2"):
        if find_spec(name):
            package = import_module(name)
            errors += [package.HTTPError, package.InvalidURL]
    return tuple(errors)


def validate_url(url: str) -> str:
    """Return an address of a model server without its closing slashes.

    It must be of http or https, with a host, a port other than 0, and no blank. Raises
    UnknownModelError if it is not, or if it holds a login or a query: the address is recorded and
    shown.
    """
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https")
        is_usable = is_http and bool(parts.hostname) and parts.port != 0
        has_query = is_usable and bool(parts.query)
    except ValueError:
        is_usable = False
        has_query = False
    # The address is part of the name of the model, which is recorded and shown
    if "@" in url or has_query:
        raise UnknownModelError(
            "the address of a model server must not hold a name, a password or a key",
            hint="give the address alone, and put the key in the environment variable "
            "OPENAI_API_KEY",
        )
    if not is_usable or re.search(r"\s", url):
        raise UnknownModelError(
            f"{mask_url(url)!r} is not the address of a model server",
            hint="write it like http://localhost:8000/v1",
        )
    return url.rstrip("/")


MAX_EXCERPT_CHARS = 300
"""Characters of a server's own words that an error shows."""
TRANSIENT_STATUSES = frozenset({408, 409, 429})
"""HTTP statuses below 500 after which the same request may succeed."""
FORMAT_WORDS = ("format", "schema", "grammar")
STATUS_FIELDS = ("code", "status", "status_code", "type", "message")
"""Where an error inside a reply says what kind of error it is."""
STATUS_WORDS = {
    429: "rate.?limit|too.?many.?requests|resource.?exhausted",
    503: "overloaded|unavailable",
    401: "authentica|api.?key",
    400: "invalid|bad.?request|context.?length|context.?window",
}
"""Words in these fields, as a regular expression, and the HTTP status that such an error has."""
ASKED_WAIT = re.compile(
    r"(?:again|retry|wait)\D{1,20}?(?:(\d+)m)?(\d+(?:\.\d+)?) ?(ms|s\b|sec)", re.IGNORECASE
)
"""A wait in the words of a server: "Please try again in 1m2.5s", "Please retry after 7 seconds"."""


@frozen
class RequestFailure:
    """Why one request brought no reply.

    It is a value and not an exception: the exceptions of the SDKs hold the request with its key, and
    must not become the cause of another exception.
    """

    kind: Literal["timeout", "connection", "broken", "status", "nonsense"]
    """ "broken" is a connection that was made, and ended before the reply did."""
    message: str = field(default="", repr=False)
    """The whole message of the server or the SDK. It may hold a key."""
    status: int = 0
    """HTTP status, for kind "status"."""
    refused_field: str = field(default="", repr=False)
    """The field of the request that the server refuses."""
    is_format_problem: bool = False
    """Whether a request in another format may succeed, independent of the status."""
    is_transient: bool = False
    """Whether the same request may succeed a moment later. After a timeout there is no time left."""
    retry_after_s: float | None = None
    """How long the server asks to wait."""


INTERRUPTED_STREAM = RequestFailure(
    "broken",
    "the reply broke off in the middle",
    refused_field="stream",
    is_format_problem=True,
)
"""A stream without an end. Some servers cannot keep one up, so it is asked again without a stream."""
EMPTY_RESPONSE = replace(INTERRUPTED_STREAM, kind="nonsense", message="an empty page")
"""A response without a body. The server may not stream, or report its error only without a stream."""


def failure_from_report(error: Any) -> RequestFailure:
    """Return the failure for an error inside a reply: that of the HTTP status that fits it.

    The status is the number in one of STATUS_FIELDS, else that of their STATUS_WORDS, else 500.
    """
    fields = error if isinstance(error, dict) else {"message": error}
    values = [str(fields.get(name)) for name in STATUS_FIELDS]
    status = _find_status(values)
    message = f"{error_message(error)} (said inside a reply that began with status 200)"
    return failure_from_status(status, message, {}, str(fields.get("param") or ""))


def _find_status(values: Sequence[str]) -> int:
    """Return the first value that is the status of an error, else that of words in the values, else 500."""
    for value in values:
        if re.fullmatch(r"[45]\d\d", value):
            return int(value)
    for status, words in STATUS_WORDS.items():
        if re.search(words, " ".join(values), re.IGNORECASE):
            return status
    return 500


def error_message(body: Any) -> str:
    """Return the message in the body of an error: its field "message", else the body as text.

    A list of one error stands for that error, as Gemini sends it: ``[{"error": {...}}]``.
    """
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], dict):
        body = body[0].get("error") or body[0]
    message = body
    if isinstance(body, dict):
        message = body.get("message") or body
    return str(message or "")


def failure_from_status(status: int, text: str, headers: Any, param: str = "") -> RequestFailure:
    """Return the failure that an HTTP status stands for.

    ``text`` is the message of the server, and ``param`` the field of the request that it names. The
    failure is transient for TRANSIENT_STATUSES and from 500 on; but a 500 whose text has one of
    FORMAT_WORDS is a problem of the request's format. ``retry_after_s`` is that of the headers,
    else the wait that the text asks for.
    """
    retry_after_s = read_retry_after(headers)
    asked_wait = ASKED_WAIT.search(text)
    if retry_after_s is None and asked_wait:
        minutes, seconds, unit = asked_wait.groups()
        retry_after_s = 60.0 * int(minutes or 0) + float(seconds)
        if unit.lower() == "ms":
            retry_after_s = float(seconds) / 1000
    # Ollama and llama.cpp answer 500, and not 400, if they cannot make a grammar of a schema
    names_format = any(word in text.lower() for word in FORMAT_WORDS)
    is_format_problem = status == 500 and names_format
    is_transient = status in TRANSIENT_STATUSES or status >= 500
    return RequestFailure(
        "status",
        text,
        status=status,
        refused_field=param,
        is_format_problem=is_format_problem,
        is_transient=is_transient and not is_format_problem,
        retry_after_s=retry_after_s,
    )


def masked_excerpt(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the beginning of a server's text in one line, with keys masked.

    It has up to MAX_EXCERPT_CHARS characters. Masked are ``secrets``, and text that looks like a
    key. " …" is added to a text that is cut.
    """
    # The text is cut first, because masking takes far more time and memory than a text of this size
    masked = mask_secrets(text[: 2 * MAX_ERROR_BYTES], secrets)
    masked = KEY_PATTERN.sub(MASK, masked[:MAX_ERROR_BYTES])
    line = " ".join(masked.split())
    if len(line) <= MAX_EXCERPT_CHARS:
        return line
    return line[:MAX_EXCERPT_CHARS] + " …"


def require_all(schema: Any) -> Any:
    """Return a JSON schema in which all properties are required, inside of it too, without defaults.

    llama.cpp's grammar puts optional properties last: a model would write its reasoning after the
    answer. OpenAI refuses a strict schema with optional ones. A schema whose properties are all
    required is the same after it.
    """
    if isinstance(schema, list):
        return [require_all(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed: JsonObject = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            changed[name] = {key: require_all(inner) for key, inner in value.items()}
        elif name in ("const", "enum"):
            changed[name] = value
        elif name != "default":
            changed[name] = require_all(value)
    if "properties" in schema:
        changed["required"] = list(schema["properties"])
    return changed


def join_arguments(functions: Iterable[Any]) -> str:
    """Return the arguments of the tools that a message calls, as the texts of JSON objects, joined.

    kgwb offers no tools, but some models and servers put the reply there.
    """
    texts = []
    for function in functions:
        arguments = getattr(function, "arguments", None) or ""
        texts.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
    return "".join(texts)


MAX_RETRIES = 2
"""How often a request is repeated after transient failures."""
INITIAL_BACKOFF_S = 0.5
"""Wait before the first repeat if the server does not name one. It is doubled for the next."""
MAX_RETRY_AFTER_S = 60.0
"""A server that asks for a longer wait is not asked again."""
CONNECT_TIMEOUT_S = 5.0
"""How long the connection itself may take."""
BROKEN_CONNECTIONS = ("ReadError", "WriteError", "RemoteProtocolError")
"""How httpcore, below httpx, names what ends a connection that was made."""
SERVER_FAILED_HINT = "try again later, or look into the server's log"
LISTING_TIMEOUT_S = 2.0
MAX_NAMED_MODELS = 8
"""How many models of a server an error names."""
MAX_REPLY_CHARS = 1_000_000
"""Length of a reply's text. A longer one would be sent back to the model with its problems."""
OPTIONAL_FIELDS = (
    "max_tokens",
    "max_completion_tokens",
    "stream_options",
    "stream",
    "temperature",
    "seed",
)
"""Fields of a request that some servers refuse."""
STATUSES_WITHOUT_LIST = (404, 405, 501)
"""HTTP statuses of a server that has no list of its models."""
REPLY_MODES: dict[str, ReplyMode] = {
    "schema": "schema",
    "json with schema": "json",
    "json": "json",
    "prompt": "prompt",
}
"""The mode of a reply, by the mode of the RequestFormat."""


@frozen
class RequestFormat:
    """The format of requests. Servers differ in the formats that they accept."""

    modes: tuple[str, ...]
    """Ways to enforce the form of a reply that the server has not refused, the best first."""
    omitted_fields: frozenset[str] = frozenset()
    """Fields of OPTIONAL_FIELDS that are not sent."""

    def is_streamed(self, request: ChatRequest) -> bool:
        """Return whether the reply is to come in parts: without tools, unless "stream" is omitted.

        Calls of tools would come in pieces, which would have to be put together.
        """
        return "stream" not in self.omitted_fields and not request.tools

    def select_fields(self, fields: JsonObject) -> JsonObject:
        """Return the fields of a request that have a value and are not omitted."""
        selected = {}
        for name, value in fields.items():
            if value is not None and name not in self.omitted_fields:
                selected[name] = value
        return selected

    def fallback_for(self, failure: RequestFailure, *, with_schema: bool) -> RequestFormat | None:
        """Return the format of request to try after a failure; None if no other format would help.

        Another format is tried for a problem of the format and for the statuses 400 and 422. It is
        this one without the optional field that the failure names. If it names none, the first of
        ``modes`` is dropped: that is only done for a request with a schema, if another mode is
        left, and if the failure does not name another field.
        """
        may_be_format = failure.is_format_problem or failure.status in (400, 422)
        if not may_be_format or failure.refused_field in self.omitted_fields:
            return None
        refused_text = failure.refused_field or failure.message
        if "response_format" not in refused_text:
            for field in OPTIONAL_FIELDS:
                is_named = re.search(rf"\b{field}\b", refused_text)
                if is_named and field not in self.omitted_fields:
                    return replace(self, omitted_fields=self.omitted_fields | {field})

        if not with_schema or len(self.modes) == 1:
            return None
        # In JSON mode a server may name "messages" as the field, if they lack the word "JSON"
        is_mode_named = failure.refused_field.startswith("response_format")
        if self.modes[0] == "schema" and failure.refused_field and not is_mode_named:
            return None
        return replace(self, modes=self.modes[1:])


@frozen
class ReplyPart(ChatReply):
    """A part of a reply, as a server sends it."""

    reasoning: str = ""
    """Thoughts of the model, which some servers send apart from the text."""


class RemoteModel(ChatModel):
    """A model behind a server.

    The format of requests that the server has accepted is kept for the next request. The adapters
    of the SDKs implement the abstract methods, which raise what the SDK raises.
    """

    remote = True

    def __init__(
        self, name: str, model: str, url: str, form: RequestFormat, hints: tuple[str, str, str]
    ) -> None:
        """Set the specification, the model's name on the server, and the format of the first request.

        ``hints`` say what to do about a refused key, about a model that is not there, and about an
        answer of another form than the protocol's.
        """
        self.name = name
        self.model = model
        self.url = url
        self._key_hint, self._model_hint, self._protocol_hint = hints
        self._lock = threading.Lock()
        self._request_format = form
        self._schema_works = False
        """Whether the server has ever replied to a request with a JSON schema."""

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Send the request until the server replies, and return the reply. ``kg`` is not used.

        The reply is streamed if the server can, so that the server stops when a cancel closes the
        connection. If the server refuses the format of the request, another format is tried at
        once, and kept for later requests. After a transient failure the request is repeated up to
        MAX_RETRIES times. The wait before a retry is what the server asks for, else
        INITIAL_BACKOFF_S, doubled each time; a longer wait than MAX_RETRY_AFTER_S is an error at
        once. The reply has the mode, the duration in seconds and the number of requests. Before
        the first request, a notice says what leaves the machine (``kgwb.llm.base``).

        Raises Cancelled if ``cancel`` is set, ModelUnreachableError, ModelTimeoutError and
        ModelRefusedError.
        """
        self.announce(kg)
        started = time.perf_counter()
        with_schema = request.schema is not None
        stop_if_cancelled = partial(_stop_if_set, cancel)
        with self._lock:
            form = self._request_format
        tries = 0
        retries = 0
        while True:
            stop_if_cancelled()
            outcome = self._read_reply(form, request, stop_if_cancelled)
            tries += 1
            if isinstance(outcome, ChatReply):
                break
            fallback = form.fallback_for(outcome, with_schema=with_schema)
            wait_s = outcome.retry_after_s
            if wait_s is None:
                wait_s = INITIAL_BACKOFF_S * 2**retries
            if fallback is not None:
                form = fallback
                retries = 0
            elif outcome.is_transient and retries < MAX_RETRIES and wait_s <= MAX_RETRY_AFTER_S:
                cancel.wait(wait_s)
                retries += 1
            else:
                raise self._error_of(outcome, request.timeout_s)

        self._keep_format(form, with_schema=with_schema)
        mode: ReplyMode = "none"
        if with_schema:
            mode = REPLY_MODES[form.modes[0]]
        seconds = time.perf_counter() - started
        return replace(outcome, mode=mode, seconds=seconds, tries=tries)

    def announce(self, kg: Graph | None) -> None:
        """Show what leaves the machine with requests about a graph, unless it was shown before."""
        announce(self.name, self.url, kg)

    def _keep_format(self, form: RequestFormat, *, with_schema: bool) -> None:
        """Remember the format that the server has just accepted, for later requests.

        The omitted fields are always remembered. The mode is remembered if the request had a
        schema, unless the server has ever accepted a JSON schema: then it has refused this schema
        and not all of them.
        """
        with self._lock:
            if with_schema and form.modes[0] == "schema":
                self._schema_works = True
            if not with_schema or self._schema_works:
                form = replace(form, modes=self._request_format.modes)
            self._request_format = form

    def list_models(self, timeout_s: float = LISTING_TIMEOUT_S) -> tuple[str, ...]:
        """Ask the server for its models, and return their names, sorted.

        It is asked once, without a retry, and may take up to 1.5 times ``timeout_s``. The tuple is
        empty if the server lists none. Raises a ModelError if it fails.
        """
        names = self._try_list_models(timeout_s)
        if isinstance(names, RequestFailure):
            raise self._error_of(names, timeout_s, is_listing=True)
        return names

    def find_listed_models(self, timeout_s: float = LISTING_TIMEOUT_S) -> tuple[str, ...] | None:
        """Ask the server for its models, as ``list_models`` does, to see whether it can be used.

        None if it answers but has no list: some servers reply to questions alone. Raises a ModelError
        if it cannot be reached, refuses the key or fails.
        """
        names = self._try_list_models(timeout_s)
        if isinstance(names, RequestFailure):
            if names.status in STATUSES_WITHOUT_LIST:
                return None
            raise self._error_of(names, timeout_s, is_listing=True)
        return names

    @abstractmethod
    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ReplyPart]:
        """Send one request, and yield the parts of the reply.

        A part with a finish reason ends the text. Only counts may follow it.
        """

    @abstractmethod
    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        """Return the names of the models that the server lists."""

    @abstractmethod
    def _api_key(self) -> str:
        """Return the key that the server is given; it may be empty."""

    def _classify_error(self, error: Exception) -> RequestFailure:
        """Return the failure for an exception of the transport or of reading a reply.

        Refused redirects, and connections that took too long, are of kind "connection", other
        timeouts of kind "timeout"; these are not transient. Any other error of the transport is a
        transient failure, "broken" or of kind "connection". An empty body is EMPTY_RESPONSE, and every other exception
        is "nonsense", with the text that could not be read. Adapters extend this by the exceptions
        of their SDK.
        """
        name = type(error).__name__  # equal in httpx and httpx2
        if isinstance(error, RedirectError) or name == "TooManyRedirects":
            return RequestFailure("connection", str(error))
        if name in ("ConnectTimeout", "PoolTimeout"):
            return RequestFailure("connection", "no connection in time")
        if name in ("ReadTimeout", "WriteTimeout", "TimeoutError"):
            return RequestFailure("timeout")
        if isinstance(error, transport_errors()):
            kind: Literal["broken", "connection"] = "connection"
            if type(error.__cause__).__name__ in BROKEN_CONNECTIONS:
                kind = "broken"
            return RequestFailure(kind, str(error) or name, is_transient=True)
        if not isinstance(error, json.JSONDecodeError):
            return RequestFailure("nonsense", str(error))
        return RequestFailure("nonsense", error.doc) if error.doc.strip() else EMPTY_RESPONSE

    def _call_sdk(
        self, work: Callable[[], T], timeout_s: float, poll: Callable[[], None] | None = None
    ) -> T | RequestFailure:
        """Call ``work`` on a thread; return its result, or the failure that its exception means.

        After ``timeout_s`` the thread is abandoned, and its connection closed. The SDK's own
        timeouts are not enough: they begin anew with every byte, and do not include the lookup of a
        host name. ``poll`` is called meanwhile; what it raises, and a ModelError of ``work``, is
        raised.
        """
        abandoned = threading.Event()

        def call() -> T:
            """Do the work, which can see in ``abandoned_event`` that nobody waits for it."""
            abandoned_event.set(abandoned)
            return work()

        try:
            return run_in_thread(call, poll=poll, timeout_s=timeout_s)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001  # of an SDK that reads what any server may send
            return self._classify_error(error)
        finally:
            abandoned.set()

    def _read_reply(
        self, form: RequestFormat, request: ChatRequest, poll: Callable[[], None]
    ) -> ChatReply | RequestFailure:
        """Send one request, and return the whole reply or the failure.

        A reply with a finish reason is whole, even if an error follows it. INTERRUPTED_STREAM means
        that it broke off, EMPTY_RESPONSE that no part came. Raises what ``poll`` raises, which is
        called while the reply is read.
        """
        started = time.perf_counter()
        parts: list[ReplyPart] = []

        def read_parts() -> None:
            """Add the parts of the reply, each with the time since the request was sent."""
            for part in self._stream_reply(form, request):
                elapsed_s = time.perf_counter() - started
                parts.append(replace(part, first_token_s=elapsed_s))

        timeout_s = request.timeout_s + CONNECT_TIMEOUT_S
        failure = self._call_sdk(read_parts, timeout_s, poll)
        if any(part.finish_reason for part in parts):
            return self._join_parts(parts)
        if failure is None:
            return INTERRUPTED_STREAM if parts else EMPTY_RESPONSE
        has_text = any(part.text for part in parts)
        if has_text and failure.kind == "broken":
            return replace(INTERRUPTED_STREAM, message=failure.message)
        return failure

    def _join_parts(self, parts: list[ReplyPart]) -> ChatReply | RequestFailure:
        """Return the reply that is made of parts, with the key masked in it.

        The texts are joined; if there is reasoning alone, that is the text, as thoughts without an
        end. Model and fingerprint are the first that are named, and the counts are the highest.
        The finish reason is "refusal" if any part has that, else the last one. The time to the first
        token is None for a single part. Returns a failure of kind "nonsense" if the text is longer
        than MAX_REPLY_CHARS.
        """
        text = "".join(part.text for part in parts)
        reasoning = "".join(part.reasoning for part in parts)
        if reasoning and not text.strip():
            text = f"<think>{reasoning}"
        if len(text) > MAX_REPLY_CHARS:
            message = f"{len(text):,} letters: {text[:MAX_EXCERPT_CHARS]}"
            return RequestFailure("nonsense", message)
        model = ""
        fingerprint = ""
        finish_reason = ""
        first_token_s = None
        for part in parts:
            model = model or part.model
            fingerprint = fingerprint or part.fingerprint
            if part.text and first_token_s is None:
                first_token_s = part.first_token_s
            if part.finish_reason and finish_reason != "refusal":
                finish_reason = part.finish_reason
        if len(parts) == 1:  # not streamed
            first_token_s = None
        secrets = self._secrets()
        return ChatReply(
            text=mask_secrets(text, secrets),
            model=mask_secrets(model, secrets),
            prompt_tokens=max(part.prompt_tokens for part in parts),
            completion_tokens=max(part.completion_tokens for part in parts),
            first_token_s=first_token_s,
            finish_reason=mask_secrets(finish_reason, secrets),
            fingerprint=mask_secrets(fingerprint, secrets),
        )

    def _try_list_models(self, timeout_s: float) -> tuple[str, ...] | RequestFailure:
        """Return the names of the server's models, sorted and with the key masked, or the failure.

        It takes up to 1.5 times ``timeout_s``.
        """

        def list_names() -> tuple[str, ...]:
            """Return the names that are not empty."""
            names = []
            for name in self._model_names(timeout_s):
                if name:
                    names.append(mask_secrets(str(name), self._secrets()))
            return tuple(sorted(names))

        return self._call_sdk(list_names, 1.5 * timeout_s)

    def _secrets(self) -> list[str]:
        """Return the key in a list, or [] if it is too plain to be masked in texts."""
        key = self._api_key()
        return [key] if is_distinctive_secret(key) else []

    def _error_of(
        self, failure: RequestFailure, timeout_s: float, *, is_listing: bool = False
    ) -> ModelError:
        """Return the error to raise for a failure, with a hint and without the key.

        ``timeout_s`` is the timeout of the request; ``is_listing`` is whether models were listed.
        For status 404 the server is asked which models it has, and the hint names them. A timeout
        is a ModelTimeoutError, no connection and an unreadable answer a ModelUnreachableError, 404
        a ModelRefusedError, and other statuses as in ``_error_of_status``.
        """
        text = masked_excerpt(failure.message, self._secrets())
        if failure.kind == "timeout":
            return ModelTimeoutError(
                f"no reply from the model server {self.url} within {timeout_s:g} s",
                hint="allow more with the setting model_timeout_s, or take a smaller model",
            )
        if failure.kind == "connection":
            return ModelUnreachableError(
                f"the model server {self.url} cannot be reached: {text}",
                hint="check that the server runs, and that the address is right",
            )
        if failure.kind == "broken":
            return ModelUnreachableError(
                f"the connection to the model server {self.url} was interrupted: {text}",
                hint=SERVER_FAILED_HINT,
            )
        if failure.kind == "nonsense":
            return ModelUnreachableError(
                f"the model server {self.url} answers with something other than a model's reply: {text}",
                hint=self._protocol_hint,
            )
        if failure.status == 404 and not is_listing:
            return ModelRefusedError(
                f"the model server {self.url} has no model named {self.model}",
                hint=self._hint_for_missing_model(timeout_s),
            )
        message = f"the model server {self.url} answers with HTTP status {failure.status}: {text}"
        return self._error_of_status(failure, message)

    def _error_of_status(self, failure: RequestFailure, message: str) -> ModelError:
        """Return the error for a failure with an HTTP status, with a hint for that status.

        It is KeyRefusedError for 401, ModelUnreachableError for 429 and transient failures, and else
        ModelRefusedError.
        """
        if failure.status == 401:
            return KeyRefusedError(message, hint=self._key_hint)
        if failure.status == 403:
            return ModelRefusedError(message, hint=self._key_hint)
        if failure.status == 429:
            hint = "wait a little, or check the quota of the key"
            return ModelUnreachableError(message, hint=hint)
        if failure.is_transient:
            return ModelUnreachableError(message, hint=SERVER_FAILED_HINT)
        return ModelRefusedError(
            message,
            hint="shorten the request or take another model, depending on the server's message",
        )

    def _hint_for_missing_model(self, timeout_s: float) -> str:
        """Return a hint that names up to MAX_NAMED_MODELS models of the server.

        The server is asked for them, with LISTING_TIMEOUT_S at most. If it lists none, it is the hint
        of the adapter.
        """
        names = self._try_list_models(min(timeout_s, LISTING_TIMEOUT_S))
        if not names or isinstance(names, RequestFailure):
            return self._model_hint
        shown = masked_excerpt(", ".join(names[:MAX_NAMED_MODELS]))
        more = len(names) - MAX_NAMED_MODELS
        if more > 0:
            return f"name one of its models: {shown} and {more} more"
        return f"name one of its models: {shown}"


def announce_models(models: Iterable[ChatModel], kg: Graph | None) -> None:
    """Show what leaves the machine with each hosted model, unless it was shown before."""
    for model in models:
        if isinstance(model, RemoteModel):
            model.announce(kg)


def _stop_if_set(cancel: threading.Event) -> None:
    """Raise Cancelled if the event is set."""
    if cancel.is_set():
        raise Cancelled


def messages_to_data(request: ChatRequest) -> list[JsonObject]:
    """Return the messages of a request as dicts with "role" and "content".

    Both protocols have this form. With tools there may be other fields, too. Half a surrogate pair,
    as models sometimes write it, becomes "?", because it cannot be encoded as UTF-8.
    """
    messages = []
    for message in request.messages:
        content = message.content.encode("utf-8", "replace").decode()
        fields: JsonObject = {"content": content}
        if request.tools:
            fields = fields_of_text(content)
        messages.append({"role": message.role, **fields})
    return messages
