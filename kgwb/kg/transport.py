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
from kgwb.kg.base import QueryLimits
from kgwb.kg.sparql import LONE_SURROGATE, QueryForm
from kgwb.masking import (
    SECRET_NAME_PATTERN,
    is_distinctive_secret,
    is_safe_parameter,
    mask_secrets,
    mask_url,
    truncate_at_word,
)
from kgwb.network import MAX_ERROR_BYTES, check_redirect, read_body
from kgwb.terms import Term, term_from_data
from kgwb.threads import run_in_thread
from kgwb.version import __version__

USER_AGENT = f"kgwb/{__version__}"
MAX_GET_CHARS = 2_000
"""Queries longer than this are sent by POST: servers and proxies cut long URLs."""
VIRTUOSO_QUERY_ERROR = re.compile(r"Virtuoso (22|37|42)\w{3} ")
"""How Virtuoso begins, with status 500, what is wrong with a query or its data: a class of SQLSTATE."""
_CHECK_URL_HINT = "check the URL and the network"
_CHECK_ENDPOINT_HINT = (
    "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
)
_LOGIN_HINT = "give user and password in the URL: https://USER:PASSWORD@host/sparql"
_URL_HINT = (
    "write it like https://dbpedia.org/sparql; in user and password write %2F %3F %23 for / ? #,"
    " and after the host %40 for @"
)


_log = logging.getLogger("kgwb")


class Secret(str):
    """A password or a key: it is sent, and not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class EndpointUrl:
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
            raise SettingError(f"{mask_url(url)!r} is not an address", hint=_URL_HINT)
        login, _, host = parts.netloc.rpartition("@")
        self.url = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self.source = mask_url(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))
        self.parameters: list[tuple[str, str]] = []
        self.secrets: list[str] = []
        """What may not be shown of what is sent; a body may hold it where it is a word of the data."""
        self.certain_secrets: list[str] = []
        """Those that are secrets for certain."""
        values = []  # hidden ones that are no keys
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            parameter = name, value
            if not is_safe_parameter(name, value):
                parameter = (name, Secret(value)) if value.strip("=") else (Secret(name), value)
                secret = next(text for text in parameter if isinstance(text, Secret))
                self.secrets.append(secret)
                if SECRET_NAME_PATTERN.search(name):
                    self.certain_secrets.append(secret)
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
            self.secrets += token, both, password or user
            self.certain_secrets += token, both, password or user


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """What came back."""

    body: bytes
    media_type: str
    """Media type, without parameters."""
    is_partial: bool
    """Whether the endpoint says that it is not all."""
    max_rows: int | None = None
    """Rows the endpoint gives at most, where it says so."""
    server: str = ""
    """What the server calls itself."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """What was sent and may not be shown."""

    def parse_json(self, *, require_valid_text: bool = False) -> dict[str, Any]:
        """Its object; what of its texts is not UTF-8 is replaced, or if ``intact`` an error."""
        try:
            text = self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            broken = f"not UTF-8 throughout: {error}"
            if require_valid_text:
                raise self.invalid_response_error(broken) from error
            _log.warning("%s; broken characters of texts are replaced", broken)
            text = self.body.decode("utf-8", errors="replace")
        try:
            data = json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            raise self.invalid_response_error(f"broken JSON: {error}") from error
        if not isinstance(data, dict):
            raise self.invalid_response_error("JSON of another kind")
        if problem := data.get("error") or data.get("exception"):
            raise self.invalid_response_error(f"it says {problem!r}")
        return data

    def read_bindings(
        self, *, intact: bool = False
    ) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        """The variables and the rows of a result."""
        data = self.parse_json(require_valid_text=intact)
        try:
            names, rows = data["head"]["vars"], data["results"]["bindings"]
        except (KeyError, TypeError) as error:
            raise self.invalid_response_error(error) from error
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise self.invalid_response_error("its variables are no list of names")
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise self.invalid_response_error("its rows are no list of rows")
        return tuple(names), rows

    def invalid_response_error(self, problem: object) -> GraphError:
        """That it is no result."""
        start = self.body[:1000].decode("utf-8", errors="replace").strip()
        what = (
            "a web page"
            if start[:1] == "<" and self.media_type[-3:] != "xml"
            else "what is no SPARQL result"
        )
        message = f"the endpoint sent {what} ({self.media_type}): {truncate_at_word(start, 200)!r}; {problem}"
        return GraphError(mask_secrets(message, self.secrets), hint=_CHECK_ENDPOINT_HINT)


def parse_cell(data: Any) -> Term:
    """The term of a cell; half a character of a text is replaced. Raises ValueError.

    An IRI or a number with a character replaced is another one than was meant, and an error.
    """
    term = term_from_data(data)
    if LONE_SURROGATE.search(term) or "\ufffd" in term:
        if not (isinstance(term, Literal) and term.datatype in (None, XSD.string)):
            raise ValueError(f"not an RDF term, as a character is broken: {data!r}")
        term = term_from_data({**data, "value": LONE_SURROGATE.sub("\ufffd", term)})
    return term


def send_query(
    address: EndpointUrl,
    query: str,
    form: QueryForm,
    limits: QueryLimits,
    extra_parameters: Sequence[tuple[str, str]] = (),
) -> EndpointResponse:
    """The whole reply to a query that passed the gate, within the time and the bytes that ``limits`` allow.

    ``more`` are parameters beside the address's own. Raises GraphUnreachableError, GraphTimeoutError,
    QueryError (the endpoint rejects the query) or GraphError.
    """
    wrapper = SPARQLWrapper(address.url, agent=USER_AGENT)
    wrapper.setOnlyConneg(True)
    for name, value in (*address.parameters, *extra_parameters):
        wrapper.addParameter(name, value)
    # Set here, as SPARQLWrapper guesses the form by pattern and could take a query for an update.
    wrapper.queryString, wrapper.queryType = query, form.upper()
    wrapper.setReturnFormat(JSON if form in ("select", "ask") else TURTLE)
    if len(query) > MAX_GET_CHARS:
        wrapper.setMethod(POST)
    # Not wrapper.query(), which reads whatever an error says to its end, however far that is.
    request = wrapper._createRequest()
    if address.authorization:
        request.add_header("Authorization", address.authorization)
    secrets = address.secrets
    try:
        reply = send_request(address.url, request, limits)
        body = mask_secrets(reply.body, filter(is_distinctive_secret, address.certain_secrets))
        return replace(
            reply, body=body, server=mask_secrets(reply.server, secrets), secrets=secrets
        )
    except GraphError as error:
        if not any(secrets):
            raise
        kind, message, hint = (
            type(error),
            mask_secrets(error.message, secrets),
            mask_secrets(error.hint, secrets),
        )
    raise kind(message, hint=hint)  # on its own: what urllib raises holds what was sent


def send_request(url: str, request: Request, limits: QueryLimits) -> EndpointResponse:
    """The whole reply to a request; raises what ``ask`` does, naming ``url``."""
    late = GraphTimeoutError(
        f"{url} took longer than {limits.query_timeout_s:g} s",
        hint="ask for less, or raise query_timeout_s",
    )
    try:  # Aside, as the socket's own timeout begins anew with every byte.
        return run_in_thread(
            lambda: _receive_response(url, request, limits), timeout_s=limits.query_timeout_s
        )
    except TimeoutError as error:
        raise late from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise late from error
        raise GraphUnreachableError(
            f"{url} cannot be reached: {error.reason}", hint=_CHECK_URL_HINT
        ) from error
    except http.client.InvalidURL:  # its words may hold the password of a proxy
        problem = "it, or what HTTP_PROXY or HTTPS_PROXY says, is no address"
        raise GraphUnreachableError(
            f"{url} cannot be asked: {problem}", hint=_CHECK_URL_HINT
        ) from None
    except ValueError as error:  # of an address, where it was given or where a redirection leads
        raise GraphUnreachableError(
            f"{url} cannot be asked: {error}", hint=_CHECK_URL_HINT
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise GraphUnreachableError(f"{url} broke off: {error!r}", hint="try again") from error


class _SameOriginRedirects(HTTPRedirectHandler):
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
    return build_opener(_SameOriginRedirects)


def _receive_response(url: str, request: Request, limits: QueryLimits) -> EndpointResponse:
    until = time.monotonic() + limits.query_timeout_s
    try:
        response = _opener().open(request, timeout=limits.query_timeout_s)
    except HTTPError as error:
        code, words = error.code, str(error.reason)  # which says why a redirect is not followed
        # Not ``with error``, as that of a redirect in a circle is closed already; the status counts, also
        # with a body that cannot be unpacked
        with closing(error), suppress(ValueError):
            if code >= 400:
                words = _read_body(error, until, MAX_ERROR_BYTES).decode("utf-8", errors="replace")
        words = truncate_at_word(" ".join(words.split()), 500)
        if code in (408, 504) or error.headers.get("X-SQL-State") in ("S1T00", "S1TAT"):
            why = f"{url} gave up on the query (HTTP {code}): {words}"
            raise GraphTimeoutError(why, hint="ask for less") from error
        if code == 400 or VIRTUOSO_QUERY_ERROR.match(words):
            hint = "the engine's own words tell what it expects"
            raise QueryError(f"{url} rejects the query: {words}", hint=hint) from error
        hints = {
            401: _LOGIN_HINT,
            403: _LOGIN_HINT,
            404: _CHECK_URL_HINT,
            429: "wait, then ask less often",
        }
        hint = hints.get(code, _CHECK_URL_HINT if code < 400 else "try again later")
        raise GraphUnreachableError(f"{url} fails (HTTP {code}): {words}", hint=hint) from error
    with response:
        body = _read_body(response, until, limits.byte_limit + 1)
        if len(body) > limits.byte_limit:
            hint = "ask for less: fewer rows, or rows without long texts"
            raise GraphError(f"{url} sent more than {limits.byte_limit:,} bytes", hint=hint)
        if response.length:  # announced, and not sent
            raise http.client.IncompleteRead(body, response.length)
        headers = response.headers
        partial = response.status == 206 or headers.get("X-SQL-State") == "S1TAT"
        most = headers.get("X-SPARQL-MaxRows", "")
        most_rows = int(most[:18]) if most.isdecimal() else None
        return EndpointResponse(
            body, headers.get_content_type(), partial, most_rows, headers.get("Server", "")
        )


def _read_body(response: Any, deadline: float, max_bytes: int) -> bytes:
    """The body, or its first ``most`` bytes."""
    chunks = iter(lambda: response.read1(1 << 16), b"")
    return b"".join(
        read_body(chunks, response.headers.get("Content-Encoding", ""), max_bytes, deadline)
    )
