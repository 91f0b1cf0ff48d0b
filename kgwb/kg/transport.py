"""One query over HTTP with SPARQLWrapper, and what its failures mean."""

from __future__ import annotations

import base64
import http.client
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from SPARQLWrapper import JSON, POST, TURTLE, SPARQLWrapper

from kgwb import __version__
from kgwb.aside import aside
from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError, QueryError
from kgwb.kg.base import Limits
from kgwb.kg.sparql import Form
from kgwb.masking import SECRET_NAME, cut, without
from kgwb.network import ERROR_BYTES, check_redirect, is_key, received

POST_FROM_CHARS = 2_000
"""Queries longer than this are sent by POST: servers and proxies cut long URLs."""


class Secret(str):
    """A password or a key: it is sent, and not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    body: bytes
    kind: str
    """Media type, without parameters."""
    partial: bool
    """Whether the endpoint says that it is not all."""
    most_rows: int | None = None
    """Rows the endpoint gives at most, where it says so."""
    server: str = ""
    """What the server calls itself."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """What was sent and may not be shown; a body may hold it where it may be a word of the data."""

    @property
    def broken(self) -> str:
        """Where the body is not UTF-8; empty if it is."""
        try:
            self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"not UTF-8 throughout: {error}"
        return ""


def ask(
    url: str,
    text: str,
    form: Form,
    limits: Limits,
    parameters: Sequence[tuple[str, str]] = (),
    login: tuple[str, str] | None = None,
) -> Reply:
    """The whole reply to a query that passed the gate, within the time and the bytes that ``limits`` allow.

    Raises GraphUnreachableError, GraphTimeoutError, QueryError (the endpoint rejects it) or GraphError.
    """
    wrapper = SPARQLWrapper(url, agent=f"kgwb/{__version__}")
    wrapper.setOnlyConneg(True)
    for name, value in parameters:
        wrapper.addParameter(name, value)
    # Set here, as SPARQLWrapper guesses the form by pattern and could take a query for an update.
    wrapper.queryString, wrapper.queryType = text, form.upper()
    wrapper.setReturnFormat(JSON if form in ("select", "ask") else TURTLE)
    if len(text) > POST_FROM_CHARS:
        wrapper.setMethod(POST)
    # Not wrapper.query(), which reads whatever an error says to its end, however far that is.
    request = wrapper._createRequest()
    hidden = hidden_in(parameters)
    keys = hidden_in(pair for pair in parameters if SECRET_NAME.search(pair[0]))
    if login:
        both = Secret(":".join(login))
        token = Secret(base64.b64encode(both.encode()).decode())
        request.add_header("Authorization", Secret(f"Basic {token}"))
        hidden, keys = ([*some, token, both, login[1] or login[0]] for some in (hidden, keys))
    try:
        reply = sent(url, request, limits)
        body, server = without(reply.body, filter(is_key, keys)), without(reply.server, hidden)
        return replace(reply, body=body, server=server, secrets=hidden)
    except GraphError as error:
        if not any(hidden):
            raise
        kind, message, hint = type(error), without(error.message, hidden), without(error.hint, hidden)
    raise kind(message, hint=hint)  # on its own: what urllib raises holds what was sent


def hidden_in(parameters: Iterable[tuple[str, str]]) -> list[str]:
    """What may not be shown of the parameters of an address."""
    return [text for pair in parameters for text in pair if isinstance(text, Secret)]


def sent(url: str, request: Request, limits: Limits) -> Reply:
    """The whole reply to a request; raises what ``ask`` does, naming ``url``."""
    timeout_s = limits.query_timeout_s
    try:  # Aside, as the socket's own timeout begins anew with every byte.
        return aside(lambda: _answer(url, request, limits), most_s=timeout_s)
    except TimeoutError as error:
        raise _late(url, timeout_s) from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(url, timeout_s) from error
        raise GraphUnreachableError(f"{url} cannot be reached: {error.reason}", hint=_REACH) from error
    except http.client.InvalidURL:  # its words may hold the password of a proxy
        said = f"{url} cannot be asked: it, or what HTTP_PROXY or HTTPS_PROXY says, is no address"
        raise GraphUnreachableError(said, hint=_REACH) from None
    except ValueError as error:  # of an address, where it was given or where a redirection leads
        raise GraphUnreachableError(f"{url} cannot be asked: {error}", hint=_REACH) from error
    except (OSError, http.client.HTTPException) as error:
        raise GraphUnreachableError(f"{url} broke off: {error!r}", hint="try again") from error


def _answer(url: str, request: Request, limits: Limits) -> Reply:
    until = time.monotonic() + limits.query_timeout_s
    try:
        response = _opener().open(request, timeout=limits.query_timeout_s)
    except HTTPError as error:
        with closing(error):  # not ``with error``, as that of a redirect in a circle is closed already
            raise _refused(url, error, until) from error
    with response:
        body = _read(response, until, limits.byte_limit + 1)
        if len(body) > limits.byte_limit:
            said = f"{url} sent more than {limits.byte_limit:,} bytes"
            raise GraphError(said, hint="ask for less: fewer rows, or rows without long texts")
        if response.length:  # announced, and not sent
            raise http.client.IncompleteRead(body, response.length)
        partial = response.status == 206 or response.headers.get("X-SQL-State") == "S1TAT"
        most = response.headers.get("X-SPARQL-MaxRows", "")
        kind, server = response.headers.get_content_type(), response.headers.get("Server", "")
        return Reply(body, kind, partial, int(most[:18]) if most.isdecimal() else None, server)


class _Redirected(HTTPRedirectHandler):
    """A redirect stays on its server, and takes body and login along: urllib leaves the body behind."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request:
        fp.close()  # urllib reads it to its end, however far that is
        check_redirect(req.full_url, newurl)
        return Request(newurl, req.data, req.headers, origin_req_host=req.origin_req_host, unverifiable=True)


@cache
def _opener() -> OpenerDirector:
    return build_opener(_Redirected)


def _read(response: Any, until: float, most: int) -> bytes:
    """The body, or its first ``most`` bytes."""
    chunks = iter(lambda: response.read1(1 << 16), b"")
    return b"".join(received(chunks, response.headers.get("Content-Encoding", ""), most, until))


def _refused(url: str, error: HTTPError, until: float) -> GraphError:
    code, said = error.code, str(error.reason)  # which says why a redirect is not followed
    with suppress(ValueError):  # the status counts, also with a body that cannot be unpacked
        said = said if code < 400 else _read(error, until, ERROR_BYTES).decode("utf-8", errors="replace")
    said = cut(" ".join(said.split()), 500)
    if code in (408, 504) or error.headers.get("X-SQL-State") in ("S1T00", "S1TAT"):
        return GraphTimeoutError(f"{url} gave up on the query (HTTP {code}): {said}", hint="ask for less")
    if code == 400:
        return QueryError(
            f"{url} rejects the query: {said}", hint="the engine's own words tell what it expects"
        )
    hints = {401: _LOGIN, 403: _LOGIN, 404: _REACH, 429: "wait, then ask less often"}
    return GraphUnreachableError(
        f"{url} fails (HTTP {code}): {said}",
        hint=hints.get(code, _REACH if code < 400 else "try again later"),
    )


_LOGIN = "give user and password in the URL: https://USER:PASSWORD@host/sparql"
_REACH = "check the URL and the network"


def _late(url: str, timeout_s: float) -> GraphTimeoutError:
    return GraphTimeoutError(
        f"{url} took longer than {timeout_s:g} s", hint="ask for less, or raise query_timeout_s"
    )
