"""One query over HTTP with SPARQLWrapper: the reply, and what its failures mean."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import logging
import re
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from rdflib import XSD, Literal
from SPARQLWrapper import JSON, POST, TURTLE, SPARQLWrapper

from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    QueryError,
    SettingError,
)
from kgwb.kg.base import Limits
from kgwb.kg.sparql import HALF, Form
from kgwb.masking import SECRET_NAME, cut, is_key, is_plain, shown, without
from kgwb.network import ERROR_BYTES, check_redirect, received
from kgwb.terms import Term, term_from_data
from kgwb.threads import run_in_thread
from kgwb.version import __version__

AGENT = f"kgwb/{__version__}"
POST_FROM_CHARS = 2_000
"""Queries longer than this are sent by POST: servers and proxies cut long URLs."""
VIRTUOSO_QUERY = re.compile(r"Virtuoso (22|37|42)\w{3} ")
"""How Virtuoso begins, with status 500, what is wrong with a query or its data: a class of SQLSTATE."""
_CHECK = "check the URL and the network"
_CHECK_PAGE = "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
_LOGIN = "give user and password in the URL: https://USER:PASSWORD@host/sparql"
_ADDRESS = (
    "write it like https://dbpedia.org/sparql; in user and password write %2F %3F %23 for / ? #,"
    " and after the host %40 for @"
)


_log = logging.getLogger("kgwb")


class Secret(str):
    """A password or a key: it is sent, and not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class Address:
    """An endpoint's address, with what of it may not be shown. Raises SettingError if it is none."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            _ = parts.port
            valid = (
                "@" not in f"{parts.path}{parts.query}{parts.fragment}"
            )  # else a login ended too early
        except ValueError:  # without urllib's words, which may hold a password
            valid = False
        if not valid:
            raise SettingError(f"{shown(url)!r} is not an address", hint=_ADDRESS)
        login, _, host = parts.netloc.rpartition("@")
        self.url = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self.source = shown(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))
        self.parameters: list[tuple[str, str]] = []
        self.hidden: list[str] = []
        """What may not be shown of what is sent; a body may hold it where it is a word of the data."""
        self.keys: list[str] = []
        """Those that are secrets for certain."""
        values = []  # hidden ones that are no keys
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            parameter = name, value
            if not is_plain(name, value):
                parameter = (name, Secret(value)) if value.strip("=") else (Secret(name), value)
                secret = next(text for text in parameter if isinstance(text, Secret))
                self.hidden.append(secret)
                if SECRET_NAME.search(name):
                    self.keys.append(secret)
                else:
                    values.append(parameter)
            self.parameters.append(parameter)
        # It sets apart addresses that are shown alike, and is too short to find a value by.
        digest = hashlib.sha256(urlencode(values).encode()).hexdigest()[:6]
        self.identity = self.source + (f"#{digest}" if values else "")
        self.authorization: str = ""
        user, password = (Secret(unquote(part)) for part in login.partition(":")[::2])
        if user:
            both = Secret(f"{user}:{password}")
            token = Secret(base64.b64encode(both.encode()).decode())
            self.authorization = Secret(f"Basic {token}")
            self.hidden += token, both, password or user
            self.keys += token, both, password or user


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
    hidden: Sequence[str] = field(default=(), repr=False)
    """What was sent and may not be shown."""

    def json(self, *, intact: bool = False) -> dict[str, Any]:
        """Its object; what of its texts is not UTF-8 is replaced, or if ``intact`` an error."""
        try:
            text = self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            broken = f"not UTF-8 throughout: {error}"
            if intact:
                raise self.wrong(broken) from error
            _log.warning("%s; broken characters of texts are replaced", broken)
            text = self.body.decode("utf-8", errors="replace")
        try:
            data = json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"broken JSON: {error}") from error
        if not isinstance(data, dict):
            raise self.wrong("JSON of another kind")
        if problem := data.get("error") or data.get("exception"):
            raise self.wrong(f"it says {problem!r}")
        return data

    def table(self, *, intact: bool = False) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        """The variables and the rows of a result."""
        data = self.json(intact=intact)
        try:
            names, rows = data["head"]["vars"], data["results"]["bindings"]
        except (KeyError, TypeError) as error:
            raise self.wrong(error) from error
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise self.wrong("its variables are no list of names")
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise self.wrong("its rows are no list of rows")
        return tuple(names), rows

    def wrong(self, problem: object) -> GraphError:
        """That it is no result."""
        start = self.body[:1000].decode("utf-8", errors="replace").strip()
        what = (
            "a web page"
            if start[:1] == "<" and self.kind[-3:] != "xml"
            else "what is no SPARQL result"
        )
        message = f"the endpoint sent {what} ({self.kind}): {cut(start, 200)!r}; {problem}"
        return GraphError(without(message, self.hidden), hint=_CHECK_PAGE)


def read_term(data: Any) -> Term:
    """The term of a cell; half a character of a text is replaced. Raises ValueError.

    An IRI or a number with a character replaced is another one than was meant, and an error.
    """
    term = term_from_data(data)
    if HALF.search(term) or "\ufffd" in term:
        if not (isinstance(term, Literal) and term.datatype in (None, XSD.string)):
            raise ValueError(f"not an RDF term, as a character is broken: {data!r}")
        term = term_from_data({**data, "value": HALF.sub("\ufffd", term)})
    return term


def ask(
    address: Address, text: str, form: Form, limits: Limits, more: Sequence[tuple[str, str]] = ()
) -> Reply:
    """The whole reply to a query that passed the gate, within the time and the bytes that ``limits`` allow.

    ``more`` are parameters beside the address's own. Raises GraphUnreachableError, GraphTimeoutError,
    QueryError (the endpoint rejects the query) or GraphError.
    """
    wrapper = SPARQLWrapper(address.url, agent=AGENT)
    wrapper.setOnlyConneg(True)
    for name, value in (*address.parameters, *more):
        wrapper.addParameter(name, value)
    # Set here, as SPARQLWrapper guesses the form by pattern and could take a query for an update.
    wrapper.queryString, wrapper.queryType = text, form.upper()
    wrapper.setReturnFormat(JSON if form in ("select", "ask") else TURTLE)
    if len(text) > POST_FROM_CHARS:
        wrapper.setMethod(POST)
    # Not wrapper.query(), which reads whatever an error says to its end, however far that is.
    request = wrapper._createRequest()
    if address.authorization:
        request.add_header("Authorization", address.authorization)
    hidden = address.hidden
    try:
        reply = sent(address.url, request, limits)
        body = without(reply.body, filter(is_key, address.keys))
        return replace(reply, body=body, server=without(reply.server, hidden), hidden=hidden)
    except GraphError as error:
        if not any(hidden):
            raise
        kind, message, hint = (
            type(error),
            without(error.message, hidden),
            without(error.hint, hidden),
        )
    raise kind(message, hint=hint)  # on its own: what urllib raises holds what was sent


def sent(url: str, request: Request, limits: Limits) -> Reply:
    """The whole reply to a request; raises what ``ask`` does, naming ``url``."""
    late = GraphTimeoutError(
        f"{url} took longer than {limits.query_timeout_s:g} s",
        hint="ask for less, or raise query_timeout_s",
    )
    try:  # Aside, as the socket's own timeout begins anew with every byte.
        return run_in_thread(
            lambda: _answer(url, request, limits), timeout_s=limits.query_timeout_s
        )
    except TimeoutError as error:
        raise late from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise late from error
        raise GraphUnreachableError(
            f"{url} cannot be reached: {error.reason}", hint=_CHECK
        ) from error
    except http.client.InvalidURL:  # its words may hold the password of a proxy
        problem = "it, or what HTTP_PROXY or HTTPS_PROXY says, is no address"
        raise GraphUnreachableError(f"{url} cannot be asked: {problem}", hint=_CHECK) from None
    except ValueError as error:  # of an address, where it was given or where a redirection leads
        raise GraphUnreachableError(f"{url} cannot be asked: {error}", hint=_CHECK) from error
    except (OSError, http.client.HTTPException) as error:
        raise GraphUnreachableError(f"{url} broke off: {error!r}", hint="try again") from error


class _SameServer(HTTPRedirectHandler):
    """A redirect stays on its server, and takes body and login along: urllib leaves the body behind."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request:
        fp.close()  # urllib reads it to its end, however far that is
        check_redirect(req.full_url, newurl)
        return Request(
            newurl, req.data, req.headers, origin_req_host=req.origin_req_host, unverifiable=True
        )


@cache
def _opener() -> OpenerDirector:
    return build_opener(_SameServer)


def _answer(url: str, request: Request, limits: Limits) -> Reply:
    until = time.monotonic() + limits.query_timeout_s
    try:
        response = _opener().open(request, timeout=limits.query_timeout_s)
    except HTTPError as error:
        code, words = error.code, str(error.reason)  # which says why a redirect is not followed
        # Not ``with error``, as that of a redirect in a circle is closed already; the status counts, also
        # with a body that cannot be unpacked
        with closing(error), suppress(ValueError):
            if code >= 400:
                words = _read(error, until, ERROR_BYTES).decode("utf-8", errors="replace")
        words = cut(" ".join(words.split()), 500)
        if code in (408, 504) or error.headers.get("X-SQL-State") in ("S1T00", "S1TAT"):
            why = f"{url} gave up on the query (HTTP {code}): {words}"
            raise GraphTimeoutError(why, hint="ask for less") from error
        if code == 400 or VIRTUOSO_QUERY.match(words):
            hint = "the engine's own words tell what it expects"
            raise QueryError(f"{url} rejects the query: {words}", hint=hint) from error
        hints = {401: _LOGIN, 403: _LOGIN, 404: _CHECK, 429: "wait, then ask less often"}
        hint = hints.get(code, _CHECK if code < 400 else "try again later")
        raise GraphUnreachableError(f"{url} fails (HTTP {code}): {words}", hint=hint) from error
    with response:
        body = _read(response, until, limits.byte_limit + 1)
        if len(body) > limits.byte_limit:
            hint = "ask for less: fewer rows, or rows without long texts"
            raise GraphError(f"{url} sent more than {limits.byte_limit:,} bytes", hint=hint)
        if response.length:  # announced, and not sent
            raise http.client.IncompleteRead(body, response.length)
        headers = response.headers
        partial = response.status == 206 or headers.get("X-SQL-State") == "S1TAT"
        most = headers.get("X-SPARQL-MaxRows", "")
        most_rows = int(most[:18]) if most.isdecimal() else None
        return Reply(
            body, headers.get_content_type(), partial, most_rows, headers.get("Server", "")
        )


def _read(response: Any, until: float, most: int) -> bytes:
    """The body, or its first ``most`` bytes."""
    chunks = iter(lambda: response.read1(1 << 16), b"")
    return b"".join(received(chunks, response.headers.get("Content-Encoding", ""), most, until))
