"""HTTP for the adapters of model servers: addresses, redirects, and bounds of what is read.

The SDKs use httpx, or httpx2 since version 3 of openai. Both have the same classes.
"""

from __future__ import annotations

import re
import ssl
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kgwb.background import poll_interval_s
from kgwb.errors import UnknownModelError
from kgwb.network import MAX_ERROR_BYTES, check_redirect, identify_certificates, read_body
from kgwb.text import mask_url

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
            verify=_tls_context(package),
        )
    except errors as error:
        # Not its message, which may hold the password of a proxy, and not as the cause either
        error_type = type(error).__name__
    raise UnknownModelError(
        f"no connection is possible with the present environment variables ({error_type})",
        hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (for a SOCKS proxy, install "
        "socksio), SSL_CERT_FILE, SSL_CERT_DIR, OLLAMA_HOST and the key",
    )


def _tls_context(package: str) -> ssl.SSLContext:
    """Return what clients of httpx or httpx2 check the certificates of servers with.

    It is the default of the package. Clients share it: otherwise each reads all certificates of the
    machine, which takes 20 to 80 ms. It is made anew when the certificates have changed. Raises
    OSError if SSL_CERT_FILE or SSL_CERT_DIR names no certificates.
    """
    return _make_tls_context(package, identify_certificates())


@lru_cache(maxsize=2)
def _make_tls_context(package: str, _certificates: object) -> ssl.SSLContext:
    """Make the default context of a package, which reads the certificates."""
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
            _, newline, rest = part.rpartition(b"\n")
            if newline and self._is_streamed:
                document_size = 0
            size += len(part)
            document_size += len(rest)
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
