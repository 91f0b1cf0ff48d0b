"""The libraries that send HTTP requests: each is patched once, so that a run records what it sends.

A library is patched at its public door that all of its clients go through, if there is one. Outside of
runs, and for requests that are left alone, the library works as it is.
"""

from __future__ import annotations

import copy
import http.client
import inspect
import io
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import lru_cache, partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from types import SimpleNamespace
from typing import Any, TypeVar
from urllib.parse import urlencode
from weakref import WeakSet

from kgwb.errors import NotRecordedError
from kgwb.run.diagnostics import count_past_call, executing_frame, watch_threads
from kgwb.run.http_recorder import HttpReply, HttpRequest, make_reply, recording_run, reply_to

T = TypeVar("T")
_lock = threading.Lock()
_patched: set[str] = set()
"""The names of the libraries that are patched."""


def watch_requests() -> None:
    """Begin to record the HTTP requests of runs, and to count those that go past.

    Each library is patched once for the life of the process: now, or when it is imported.
    """
    if not any(isinstance(finder, _PatchingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _PatchingFinder())
    for name in PATCHES:
        if name not in _patched and name in sys.modules:
            _patch(name, sys.modules[name])


def _patch(name: str, library: Any) -> None:
    """Patch a library, unless it is patched already.

    One that another thread is importing may lack a part: it is patched at its end, or by the next
    execution.
    """
    with _lock, suppress(AttributeError):
        if name not in _patched:
            PATCHES[name](library)
            _patched.add(name)


class _PatchingFinder(MetaPathFinder):
    """Finds the libraries that are patched, and has them patched when they are imported."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the spec of a library whose loader patches it; None for any other module."""
        if fullname not in PATCHES:
            return None
        spec = PathFinder.find_spec(fullname, path)
        loader: Any = getattr(spec, "loader", None)
        if loader is not None:
            load = loader.exec_module

            def load_and_patch(module: Any) -> None:
                """Execute the module, and patch it."""
                load(module)
                _patch(fullname, module)

            loader.exec_module = load_and_patch
        return spec


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method of a class, for good, by what ``make`` makes of it."""
    method = getattr(owner, name)
    setattr(owner, name, wraps(method)(make(method)))


def _lower_case(headers: Any) -> dict[str, str]:
    """Return headers, which may be None, by name in lower case."""
    return {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}


def _without_length(headers: Any) -> dict[str, str]:
    """Return the headers of a request without the length of its body, which a person has changed."""
    return {
        str(name): value for name, value in headers.items() if str(name).lower() != "content-length"
    }


# http.client


def _patch_http_client(library: Any) -> None:
    """Count the requests that go past a run, and remember which step starts a thread."""

    def make(putrequest: Any) -> Any:
        def counted(connection: Any, *arguments: Any, **options: Any) -> Any:
            """Begin a request, and count it."""
            count_past_call(str(connection.host))
            return putrequest(connection, *arguments, **options)

        return counted

    _replace(library.HTTPConnection, "putrequest", make)
    watch_threads()


# httpx and httpx2


def _patch_httpx(library: Any) -> None:
    """Record what the transports of httpx, or of httpx2, send."""
    handler = partial(_recorded_handler, library)
    async_handler = partial(_recorded_async_handler, library)
    for transport in (library.HTTPTransport, library.MockTransport):
        _replace(transport, "handle_request", handler)
    for transport in (library.AsyncHTTPTransport, library.MockTransport):
        _replace(transport, "handle_async_request", async_handler)


def _httpx_request(library: Any, request: Any, sent: HttpRequest) -> Any:
    """Return a request of httpx; a copy with another body if a person has changed the body."""
    if sent.body == request.content:
        return request
    return library.Request(
        request.method,
        request.url,
        headers=_without_length(request.headers),
        content=sent.body,
        extensions=request.extensions,
    )


def _httpx_response(library: Any, reply: HttpReply) -> Any:
    """Return a reply as a response of httpx."""
    body = library.ByteStream(reply.body)
    return library.Response(reply.status, headers=reply.headers, stream=body)


def _httpx_run(library: Any, request: Any) -> Any:
    """Return the run that records a request; without one, or if its body can only be awaited, None."""
    run = None
    if isinstance(request.stream, library.SyncByteStream):
        run = recording_run(request.headers)
    if run is None:
        count_past_call(str(request.url.host))
    return run


def _recorded_handler(library: Any, plain_handle: Any) -> Any:
    """Return the method of a transport that asks the run first."""

    def handle(transport: Any, request: Any) -> Any:
        """Return the response to a request: the recorded one, or that of the plain transport."""
        run = _httpx_run(library, request)
        if run is None:
            return plain_handle(transport, request)

        def exchange(sent: HttpRequest) -> HttpReply:
            """Send the request, and read the response to its end."""
            response = plain_handle(transport, _httpx_request(library, request, sent))
            body = response.read()
            return make_reply(response.status_code, response.headers, body)

        asked = HttpRequest(request.method, str(request.url), request.headers, request.read())
        return _httpx_response(library, reply_to(run, asked, exchange))

    return handle


_transports_of_runs: WeakSet[Any] = WeakSet()
"""Asynchronous transports that a run has used: their connections belong to the loop of the clients."""


def _recorded_async_handler(library: Any, plain_handle: Any) -> Any:
    """Return the method of an asynchronous transport that asks the run first.

    Inside a run it blocks until the reply is there, so that the steps of several branches have the
    same order each time.
    """

    async def handle(transport: Any, request: Any) -> Any:
        """Return the response to a request: the recorded one, or that of the plain transport."""
        run = _httpx_run(library, request)
        if run is None and transport not in _transports_of_runs:
            return await plain_handle(transport, request)

        async def exchange(sent: HttpRequest) -> HttpReply:
            """Send the request, and read the response to its end."""
            response = await plain_handle(transport, _httpx_request(library, request, sent))
            body = await response.aread()
            return make_reply(response.status_code, response.headers, body)

        _transports_of_runs.add(transport)
        asked = HttpRequest(request.method, str(request.url), request.headers, request.read())
        if run is None:
            reply = await await_on_client_loop(exchange(asked))
        else:
            reply = reply_to(run, asked, lambda sent: wait_for(exchange(sent)))
        return _httpx_response(library, reply)

    return handle


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, which is executed on a thread of its own.

    All such coroutines share one event loop: the connections of a client belong to a loop, and
    outlive an execution of a run. Raises what the coroutine raises.
    """
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _client_loop()).result()


async def await_on_client_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that is executed as by ``wait_for``, without blocking."""
    import asyncio

    future = asyncio.run_coroutine_threadsafe(coroutine, _client_loop())
    return await asyncio.wrap_future(future)


@lru_cache(maxsize=1)
def _client_loop() -> Any:
    """Return the event loop of the clients, which a background thread executes."""
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kgwb-clients", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_client_loop.cache_clear)  # no thread survives a fork


# urllib3, and requests on it


def _patch_urllib3(library: Any) -> None:
    """Record what the connection pools of urllib3 send."""

    def make(plain_urlopen: Any) -> Any:
        def urlopen(
            pool: Any,
            method: str,
            url: str,
            body: Any = None,
            headers: Any = None,
            *arguments: Any,
            **options: Any,
        ) -> Any:
            """Return the response to a request: the recorded one, or that of the plain pool."""
            given = _lower_case(pool.headers if headers is None else headers)
            content = body.encode() if isinstance(body, str) else body or b""
            run = recording_run(given)
            if run is None or not isinstance(content, bytes):
                return plain_urlopen(pool, method, url, body, headers, *arguments, **options)
            address = url
            if url.startswith("/"):  # else the pool is one of a proxy
                default_port = {"http": 80, "https": 443}.get(pool.scheme)
                port = ""
                if pool.port not in (None, default_port):
                    port = f":{pool.port}"
                address = f"{pool.scheme}://{pool.host}{port}{url}"
            asked = HttpRequest(method, address, given, content)

            def exchange(sent: HttpRequest) -> HttpReply:
                """Send the request, whose body a person may have edited."""
                outgoing, sent_headers = body, headers
                if sent is not asked:
                    outgoing, sent_headers = sent.body, _without_length(headers or pool.headers)
                whole = {**options, "preload_content": True, "decode_content": True}
                response = plain_urlopen(
                    pool, method, url, outgoing, sent_headers, *arguments, **whole
                )
                return make_reply(response.status, response.headers, response.data)

            reply = reply_to(run, asked, exchange)
            return library.HTTPResponse(
                body=io.BytesIO(reply.body),
                headers=reply.headers,
                status=reply.status,
                reason=reply.reason,
                version=11,
                preload_content=options.get("preload_content", True),
                decode_content=options.get("decode_content", True),
                request_method=method,
                request_url=url,
            )

        return urlopen

    _replace(library.connectionpool.HTTPConnectionPool, "urlopen", make)


# urllib


class _ReplySocket:
    """A recorded reply in place of the socket that a response of http.client is read from."""

    def __init__(self, reply: HttpReply) -> None:
        headers = {**reply.headers, "content-length": str(len(reply.body))}
        lines = [f"HTTP/1.1 {reply.status} {reply.reason}"]
        for name, value in headers.items():
            lines.append(f"{name}: {value}")
        lines += ["", ""]
        self._head = "\r\n".join(lines).encode("latin-1", "replace")
        self._body = reply.body

    def makefile(self, mode: str) -> io.BytesIO:
        """Return the reply as it comes from a socket."""
        return io.BytesIO(self._head + self._body)


def _patch_urllib(library: Any) -> None:
    """Record what the handlers of urllib send."""

    def make(plain_open: Any) -> Any:
        def do_open(handler: Any, http_class: Any, request: Any, **options: Any) -> Any:
            """Return the response to a request: the recorded one, or that of the plain handler."""
            headers = _lower_case(dict(request.header_items()))
            content = request.data or b""
            run = recording_run(headers)
            if run is None or not isinstance(content, bytes):
                return plain_open(handler, http_class, request, **options)
            asked = HttpRequest(request.get_method(), request.full_url, headers, content)

            def exchange(sent: HttpRequest) -> HttpReply:
                """Send the request, whose body a person may have edited."""
                outgoing = copy.copy(request)
                if sent is not asked:
                    outgoing.data = sent.body  # this also removes its length from the headers
                with plain_open(handler, http_class, outgoing, **options) as response:
                    return make_reply(response.status, response.headers, response.read())

            reply = reply_to(run, asked, exchange)
            socket_like: Any = _ReplySocket(reply)
            response = http.client.HTTPResponse(socket_like, method=asked.method)
            response.begin()
            response.url = request.full_url
            response.msg = response.reason  # type: ignore[assignment]  # as urllib does
            return response

        return do_open

    _replace(library.AbstractHTTPHandler, "do_open", make)


# aiohttp


def _patch_aiohttp(library: Any) -> None:
    """Record what the sessions of aiohttp send."""
    import asyncio

    def make(plain_request: Any) -> Any:
        async def request(session: Any, method: str, url: Any, **options: Any) -> Any:
            """Return the response to a request: the recorded one, or that of the plain session.

            A request is sent on the loop of the session, which goes on meanwhile.
            """
            address = session._build_url(url)
            if options.get("params"):
                address = address.extend_query(options["params"])
            headers = _lower_case(session._prepare_headers(options.get("headers")))
            content = _aiohttp_body(session, options)
            run = recording_run(headers)
            if run is None or content is None:
                count_past_call(str(address.host))
                return await plain_request(session, method, url, **options)
            asked = HttpRequest(method.upper(), str(address), headers, content)
            raises = options.pop("raise_for_status", None)
            if raises is None:
                raises = session._raise_for_status
            loop = asyncio.get_running_loop()

            async def read(sent: HttpRequest) -> HttpReply:
                """Send the request, whose body a person may have edited."""
                outgoing = options
                if sent is not asked:
                    sent_headers = {**headers, "content-type": "application/json"}
                    outgoing = {**options, "json": None, "data": sent.body}
                    outgoing["headers"] = _without_length(sent_headers)
                whole = {**outgoing, "raise_for_status": False}
                async with await plain_request(session, method, url, **whole) as response:
                    body = await response.read()
                    return make_reply(response.status, response.headers, body)

            def refuse(sent: HttpRequest) -> HttpReply:
                raise _NotYetSentError

            def exchange(sent: HttpRequest) -> HttpReply:
                return asyncio.run_coroutine_threadsafe(read(sent), loop).result()

            try:
                reply = reply_to(run, asked, refuse)
            except _NotYetSentError:
                reply = await asyncio.to_thread(reply_to, run, asked, exchange)
            response = _aiohttp_response(library, session, address, asked, reply)
            if callable(raises):
                await raises(response)
            elif raises:
                response.raise_for_status()
            return response

        return request

    _replace(library.ClientSession, "_request", make)


class _NotYetSentError(Exception):
    """No reply is recorded, so that the request has to be sent."""


def _aiohttp_body(session: Any, options: dict[str, Any]) -> bytes | None:
    """Return the body of a request of aiohttp; None for one that is read as it is sent."""
    data = options.get("data")
    if options.get("json") is not None:
        data = session._json_serialize(options["json"])
    elif isinstance(data, dict):
        data = urlencode(data)
    if isinstance(data, str):
        data = data.encode()
    if data is None:
        return b""
    return data if isinstance(data, bytes) else None


def _aiohttp_response(
    library: Any, session: Any, url: Any, asked: HttpRequest, reply: HttpReply
) -> Any:
    """Return a reply as a response of aiohttp, whose constructor varies with the version."""
    parts = library.client_reqrep
    headers = parts.CIMultiDictProxy(parts.CIMultiDict(reply.headers))
    loop = session._loop
    arguments = {
        "writer": None,
        "continue100": None,
        "timer": None,
        "request_info": library.RequestInfo(url, asked.method, headers, url),
        "traces": [],
        "loop": loop,
        "session": session,
        "stream_writer": SimpleNamespace(output_size=0),
    }
    known = inspect.signature(library.ClientResponse).parameters
    taken = {name: value for name, value in arguments.items() if name in known}
    response = library.ClientResponse(asked.method, url, **taken)
    response.status = reply.status
    response.reason = reply.reason
    response._headers = headers
    response._raw_headers = tuple(
        (name.encode(), value.encode()) for name, value in reply.headers.items()
    )
    protocol = library.client_proto.ResponseHandler(loop)
    response.content = library.StreamReader(protocol, len(reply.body), loop=loop)
    response.content.feed_data(reply.body)
    response.content.feed_eof()
    return response


# Replays


CONNECTING_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto")
_has_guard = False


def guard_replays() -> None:
    """Refuse connections in replays from now on; Python has no way to take this back.

    Sockets that native code opens are not seen.
    """
    global _has_guard  # noqa: PLW0603 - a hook of the process
    if not _has_guard:
        _has_guard = True
        sys.addaudithook(_refuse_connection)


def _refuse_connection(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise NotRecordedError if a replay opens a connection.

    ``socket.socketpair``, which event loops need, is let through: on Windows it connects.
    """
    if event not in CONNECTING_EVENTS:
        return
    frame = executing_frame()
    if frame is None or not frame.run.is_replay:
        return
    if sys._getframe(1).f_code.co_name.endswith("socketpair"):
        return
    place = arguments[0]
    if event != "socket.getaddrinfo":
        place = arguments[-1]
    problem = (
        f"a connection to {place!r} was refused: no run records it, and a replay sends nothing"
    )
    if problem not in frame.step.notes:
        frame.step.notes.append(problem)
    raise NotRecordedError(
        problem,
        hint="send the request by httpx, requests, urllib or aiohttp, or through run.call",
    )


PATCHES = {
    "http.client": _patch_http_client,
    "httpx": _patch_httpx,
    "httpx2": _patch_httpx,
    "urllib3": _patch_urllib3,
    "urllib.request": _patch_urllib,
    "aiohttp": _patch_aiohttp,
}
