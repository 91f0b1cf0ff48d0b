"""Queries to a SPARQL endpoint over HTTP, what counts as an answer, and the meaning of failures."""

from __future__ import annotations

import base64
import hashlib
import http.client
import logging
import re
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache, partial
from io import BytesIO
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

import pyoxigraph

from kgwb.background import run_in_thread
from kgwb.disk import USER_AGENT
from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    QueryError,
    SettingError,
)
from kgwb.kg.base import QueryLimits, ResultSet, Vocabulary, vocabulary_for_url
from kgwb.kg.files import parse_response
from kgwb.kg.local import read_triples
from kgwb.kg.responses import SERVER_TIME_HINT, TIME_LIMIT, EndpointResponse
from kgwb.kg.sparql import QueryForm, ValidatedQuery, match_both_strings, validate_query
from kgwb.network import (
    MAX_ERROR_BYTES,
    check_redirect,
    identify_certificates,
    read_body,
    read_retry_after,
)
from kgwb.terms import Triple, Triples
from kgwb.text import (
    SECRET_NAME_PATTERN,
    is_distinctive_secret,
    is_safe_parameter,
    mask_secrets,
    mask_url,
    truncate_at_word,
)

VIRTUOSO_SORT_LIMIT_ERROR = "SR353"
"""Virtuoso sorts at most 10,000 rows in a query with a LIMIT, and any number in one without."""
VIRTUOSO_MIN_TIMEOUT_MS = 1000
MIN_SILENT_ROW_LIMIT = 100
"""The smallest number of rows that is taken for a possible limit of an endpoint."""
_TIMEOUT_HINT = (
    "give the query a LIMIT or fewer patterns, or raise query_timeout_s (--query-timeout)"
)
_log = logging.getLogger("kgwb")


class SparqlClient:
    """Sends queries to an endpoint. Its methods wait for the reply, and raise GraphError.

    An endpoint that runs out of time may send the part of a result that it has by then. This part
    is used only where it cannot be wrong: the rows of a monotonic query
    (``ValidatedQuery.is_monotonic``) are returned and marked as cut, and an ASK that is true is
    true. In all other cases GraphTimeoutError is raised: for no rows, counts, the first rows of an
    order, negation, a false ASK, triples, which cannot be marked as cut, and ``select_complete``.

    An endpoint may also have a limit of rows of its own and not say so. A result with a round
    number of rows is therefore looked into by one more query, see ``_has_unsent_row``.
    """

    muted: Triples = ()
    server = ""
    """The name of the server's software, known after the first query."""
    is_virtuoso = False
    """Whether the server is known to be Virtuoso, which can be told to stop in time."""

    def __init__(self, url: str, vocabulary: Vocabulary | None, limits: QueryLimits | None) -> None:
        self._address = EndpointUrl(url)
        self.source = self._address.source
        self.identity = self._address.identity
        self.vocabulary = vocabulary or vocabulary_for_url(url)
        self.limits = limits or QueryLimits()

    def select(self, query: str) -> ResultSet:
        """Run a SELECT query and return its rows, at most the row limit.

        Raises GraphTimeoutError if the endpoint ran out of time, unless it sent rows and the query
        is monotonic: then they are returned, marked as cut.
        """
        request, reply = self._validate_and_send(query, ("select",))
        result = self._parse_rows(request, reply)
        self._check_complete(reply, is_usable=request.is_monotonic and bool(result.rows))
        return result

    def select_complete(self, query: str, allowed_service_iri: str = "") -> ResultSet:
        """Run a SELECT query whose rows must not be partial, and return them.

        It is for results that are used where nothing could show that rows are missing. Raises
        GraphTimeoutError if the endpoint ran out of time, even if it sent rows. The row limit still
        cuts the result, which is then marked as cut. The query may have SERVICE of
        ``allowed_service_iri`` only, which is for the label search of kgwb itself.
        """
        request, reply = self._validate_and_send(query, ("select",), allowed_service_iri)
        result = self._parse_rows(request, reply)
        self._check_complete(reply)
        return result

    def ask(self, query: str) -> bool:
        """Run an ASK query and return its truth value.

        Raises GraphTimeoutError if the endpoint ran out of time, unless the value is true and the
        query is monotonic.
        """
        request, reply = self._validate_and_send(query, ("ask",))
        is_true = reply.parse_boolean()
        self._check_complete(reply, is_usable=request.is_monotonic and is_true)
        return is_true

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Run a CONSTRUCT or DESCRIBE query and return its triples, at most the row limit.

        The reply is parsed in another process. Raises GraphTimeoutError if the endpoint ran out of
        time or parsing takes longer than ``query_timeout_s``, and GraphError if the reply does not
        parse, or has no triple but the word "error".
        """
        _, reply = self._validate_and_send(query, ("construct", "describe"))
        self._check_complete(reply)
        timeout_s = self.limits.query_timeout_s
        try:
            quads = parse_response(
                reply.body, rdf_format(reply.media_type), self._address.url, timeout_s
            )
            triples = read_triples(quads, max_triples=self.limits.row_limit)
        except TimeoutError:
            raise GraphTimeoutError(
                f"parsing what {self.source} sent took longer than {timeout_s:g} s",
                hint=_TIMEOUT_HINT,
            ) from None
        except (SyntaxError, ValueError) as error:
            raise reply.broken_response_error(getattr(error, "msg", error)) from error
        if not triples and b"error" in reply.body.lower():
            # Some engines report an error in a comment, or in JSON-LD that holds no triple.
            raise reply.invalid_response_error("no triples, but an error")
        return triples

    def _parse_rows(self, request: ValidatedQuery, reply: EndpointResponse) -> ResultSet:
        """Return the rows of the reply to a SELECT, at most the row limit.

        They are marked as cut where rows are missing, also where the endpoint left them out without
        a word.
        """
        result = reply.parse_result_set(request.variables, self.limits.row_limit)
        if result.cut or not self._has_unsent_row(request, len(result.rows)):
            return result
        return replace(result, cut=True)

    def _has_unsent_row(self, request: ValidatedQuery, row_count: int) -> bool:
        """Return whether a query has a row after the first ``row_count``, which were sent.

        One row after them is asked for, if their number may be a limit of the endpoint. False if
        the query takes no OFFSET, or if the endpoint fails or does not heed OFFSET and LIMIT.
        """
        if not request.accepts_limit or not _may_be_row_limit(row_count):
            return False
        next_row = f"{request.text}\nOFFSET {row_count}\nLIMIT 1"
        try:
            validate_query(next_row, allow_service=True)
            reply = self._send(next_row, request.form)
            found = reply.parse_result_set(request.variables, 1)
        except GraphError as error:
            _log.debug("not known whether %s has more rows: %s", self.source, error.message)
            return False
        return len(found.rows) == 1 and not found.cut

    def _validate_and_send(
        self, query: str, forms: tuple[QueryForm, ...], allowed_service_iri: str = ""
    ) -> tuple[ValidatedQuery, EndpointResponse]:
        """Send a query of one of these forms, with a LIMIT.

        The LIMIT is one above the row limit, so that one row more shows that rows are missing. It
        is left out where the query does not accept one, and where Virtuoso then refuses to sort.
        Returns what the gate found out about the query, and the reply. Raises QueryRefusedError or
        QueryError if it does not pass the gate.
        """
        request = validate_query(
            query,
            *forms,
            allow_service=self.limits.allow_service,
            allowed_service_iri=allowed_service_iri,
        )
        if not request.accepts_limit:
            return request, self._send(request.text, request.form)
        limited = f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
        try:
            return request, self._send(limited, request.form)
        except QueryError as error:
            if VIRTUOSO_SORT_LIMIT_ERROR not in error.message:
                raise
            return request, self._send(request.text, request.form)

    def _send(self, text: str, form: QueryForm) -> EndpointResponse:
        """Send a validated query, keep the name of the server's software, and return the reply.

        A server that is known to be Virtuoso is told to stop after half of ``query_timeout_s``, at
        least VIRTUOSO_MIN_TIMEOUT_MS: it takes up to twice the time that it is given, and then
        sends the part of the result that it has, which is better than no reply. It is asked for
        both forms of a text (``match_both_strings``). If only the reply tells that the
        server is Virtuoso, such a query is sent again. Raises what ``send_query`` does.
        """
        parameters = list(self._address.parameters)
        sent = text
        if self.is_virtuoso:
            half_time_ms = int(self.limits.query_timeout_s * 500)
            timeout_ms = max(VIRTUOSO_MIN_TIMEOUT_MS, half_time_ms)
            parameters.append(("timeout", str(timeout_ms)))
            sent = match_both_strings(text)
        reply = send_query(self._address, sent, form, self.limits, parameters)
        self.server = reply.server
        if "virtuoso" in reply.server.lower() and not self.is_virtuoso:
            self.is_virtuoso = True
            if match_both_strings(text) != text:
                return self._send(text, form)
        return reply

    def _check_complete(self, reply: EndpointResponse, *, is_usable: bool = False) -> None:
        """Raise GraphTimeoutError for a partial result, unless it is usable as it is."""
        if reply.is_partial and not is_usable:
            raise GraphTimeoutError(
                f"{self.source} reached its time limit and sent only a part of the result",
                hint=_TIMEOUT_HINT,
            )


def _may_be_row_limit(row_count: int) -> bool:
    """Return whether a number of rows looks like a limit: so many hundreds, or a power of two."""
    if row_count < MIN_SILENT_ROW_LIMIT:
        return False
    is_power_of_two = row_count.bit_count() == 1
    return row_count % 100 == 0 or is_power_of_two


def rdf_format(media_type: str) -> pyoxigraph.RdfFormat:
    """Return the format of a CONSTRUCT result. It is Turtle for an unknown media type.

    It is Turtle for application/json too, though that could be JSON-LD: an error in JSON would be
    valid JSON-LD without triples, but is not valid Turtle.
    """
    if media_type == "application/json":
        return pyoxigraph.RdfFormat.TURTLE
    return pyoxigraph.RdfFormat.from_media_type(media_type) or pyoxigraph.RdfFormat.TURTLE


# How a query is sent

ACCEPTED_RESULTS = (
    "application/sparql-results+json,application/json,text/javascript,application/javascript,"
    "application/sparql-results+xml;q=0.6,text/tab-separated-values;q=0.4,text/csv;q=0.2"
)
ACCEPTED_GRAPHS = "application/turtle,text/turtle"
MAX_GET_CHARS = 2_000
"""Queries longer than this are sent by POST: servers and proxies cut long URLs."""
POST_REFUSED_STATUSES = (403, 405, 411, 415, 501)
"""Statuses with which a server may say that it takes no POST, or not in this form."""
GET_REFUSED_STATUSES = (413, 414, 431)
"""Statuses with which a server says that an address is too long for it."""
LONG_ADDRESS_ERROR = re.compile(
    r"(?:URI|URL|query string|request(?:[ -](?:header|line|header fields))?s?)(?: is| was)? too (?:long|large)",
    re.IGNORECASE,
)
"""Matches how a server says with status 400 or 404 that an address is too long for it."""
VIRTUOSO_QUERY_ERROR = re.compile(r"Virtuoso (22|37|42)\w{3} ")
"""Matches the message of Virtuoso, sent with status 500, that a query or its data is wrong.

The numbers are classes of SQLSTATE.
"""
SQL_STATE_HEADER = "X-SQL-State"
"""The header in which Virtuoso sends the SQLSTATE of an error, also with status 200."""
PARTIAL_RESULT_STATE = "S1TAT"
"""The SQLSTATE of a result that was cut because its time was over."""
TIMEOUT_STATES = ("S1T00", PARTIAL_RESULT_STATE)
BUSY_STATUSES = (429, 503)
"""HTTP statuses with which a server may say how long to wait before the same request."""
MAX_WAITS = 2
"""How often a query is sent again after a wait that the server asked for."""
MAX_ERROR_CHARS = 500
READ_CHUNK_BYTES = 1 << 16
_CHECK_URL_HINT = "check the URL of the endpoint and the network"
_LOGIN_HINT = "put user and password into the URL: https://USER:PASSWORD@host/sparql"
_URL_HINT = (
    "write it like https://dbpedia.org/sparql; in user and password write %2F %3F %23 for / ? #,"
    " and after the host %40 for @"
)
_HINT_BY_STATUS = {
    401: _LOGIN_HINT,
    403: _LOGIN_HINT,
    404: _CHECK_URL_HINT,
    429: "wait, then send fewer queries",
}


class Secret(str):
    """A password or a key. It can be sent, but its repr does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class EndpointUrl:
    """The address of an endpoint, taken apart into what is sent and what may be shown.

    Raises SettingError for a text that is not an address.
    """

    def __init__(self, url: str) -> None:
        parts = _split_url(url)
        login, _, host = parts.netloc.rpartition("@")
        without_login = parts._replace(netloc=host, fragment="")
        without_query = without_login._replace(query="")
        self.url = without_query.geturl()
        """The address without login, parameters and fragment."""
        self.source = mask_url(without_login.geturl())
        """The address for people. The values of parameters that may be secret are masked."""
        self.parameters: list[tuple[str, str]] = []
        """The parameters of the address, to be sent with every query."""
        self.max_get_chars = MAX_GET_CHARS
        """Longer queries are sent by POST. It changes when the server refuses a way."""
        self.authorization: str = ""
        """The Authorization header; empty if the address has no user."""
        self.secrets: list[str] = []
        """Everything that is sent and must not be shown."""
        self.certain_secrets: list[str] = []
        """The secrets that are passwords or keys for certain.

        Only these are masked in the bodies of results, where others may be words of the data.
        """
        hidden_parameters = self._add_parameters(parts.query)
        self.identity = self.source
        """The address for people, made distinct from other addresses that look the same."""
        if hidden_parameters:
            # A digest this short cannot be used to find the hidden value by trying.
            hidden = urlencode(hidden_parameters)
            digest = hashlib.sha256(hidden.encode()).hexdigest()
            self.identity += f"#{digest[:6]}"
        self._add_login(login)

    def _add_parameters(self, query: str) -> list[tuple[str, str]]:
        """Add the parameters of a URL's query string to ``parameters``, secrets to ``secrets``.

        A value is secret unless ``is_safe_parameter`` accepts it. In a parameter without a value,
        such as "?KEY" or "?KEY==", the name is the secret. Returns those hidden parameters whose
        name is not that of a key: they may select one of several graphs.
        """
        hidden_parameters: list[tuple[str, str]] = []
        for name, value in parse_qsl(query, keep_blank_values=True):
            if is_safe_parameter(name, value):
                self.parameters.append((name, value))
                continue
            if value.strip("="):
                secret = Secret(value)
                parameter: tuple[str, str] = (name, secret)
            else:
                secret = Secret(name)
                parameter = (secret, value)
            self.parameters.append(parameter)
            self.secrets.append(secret)
            if SECRET_NAME_PATTERN.search(name):
                self.certain_secrets.append(secret)
            else:
                hidden_parameters.append(parameter)
        return hidden_parameters

    def _add_login(self, login: str) -> None:
        """Set ``authorization`` for a percent-encoded "USER:PASSWORD" or "USER"; add its secrets.

        The user is a secret where there is no password, because some services take a key as the
        user. With an empty user nothing is set.
        """
        quoted_user, _, quoted_password = login.partition(":")
        user = Secret(unquote(quoted_user))
        password = Secret(unquote(quoted_password))
        if not user:
            return
        credentials = Secret(f"{user}:{password}")
        encoded = base64.b64encode(credentials.encode())
        token = Secret(encoded.decode())
        self.authorization = Secret(f"Basic {token}")
        login_secrets = (token, credentials, password or user)
        self.secrets += login_secrets
        self.certain_secrets += login_secrets


def _split_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises SettingError if urllib cannot split it.

    An "@" after the host is taken as an error: a "/", "?" or "#" in the password has probably ended
    the login too early.
    """
    # The message of urllib is left out, as it may hold a password.
    with suppress(ValueError):
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port that is not a number
        after_host = f"{parts.path}{parts.query}{parts.fragment}"
        if "@" not in after_host:
            return parts
    raise SettingError(f"{mask_url(url)!r} is not the address of an endpoint", hint=_URL_HINT)


def send_query(
    address: EndpointUrl,
    query: str,
    form: QueryForm,
    limits: QueryLimits,
    parameters: Sequence[tuple[str, str]],
) -> EndpointResponse:
    """Send a query that has passed the gate, and return the whole reply with its secrets masked.

    ``limits`` has the time and the number of bytes that the reply may take. ``parameters`` are sent
    besides the query, as name and value.

    Raises GraphUnreachableError, GraphTimeoutError, QueryError if the endpoint rejects the query,
    and GraphError if the reply is too long.
    """
    by_post = len(query) > address.max_get_chars
    build = partial(_build_request, address, query, form, parameters)
    requests = [build(by_post), build(not by_post)]
    secrets = address.secrets
    try:
        reply = send_request(address.url, requests, limits)
    except GraphError as error:
        if not any(secrets):
            raise
        message = mask_secrets(error.message, secrets)
        masked_error = type(error)(message, hint=error.hint)
    else:
        if reply.by_post and not by_post:
            address.max_get_chars = len(query) - 1
        elif by_post and not reply.by_post:
            address.max_get_chars = sys.maxsize
        masked_in_body = filter(is_distinctive_secret, address.certain_secrets)
        return replace(
            reply,
            body=mask_secrets(reply.body, masked_in_body),
            server=mask_secrets(reply.server, secrets),
            secrets=secrets,
        )
    # Raised here, after the except clause: in it, the first error would be kept as the context, and
    # that error holds what was sent.
    raise masked_error


def _build_request(
    address: EndpointUrl,
    query: str,
    form: QueryForm,
    parameters: Sequence[tuple[str, str]],
    by_post: bool,
) -> Request:
    """Return the HTTP request for a query by the SPARQL 1.1 Protocol.

    It has the login of the address. The result is asked for in JSON for SELECT and ASK, if the server
    has that, and in Turtle for CONSTRUCT and DESCRIBE.
    """
    headers = {"User-Agent": USER_AGENT, "Accept": ACCEPTED_GRAPHS}
    if form in ("select", "ask"):
        headers["Accept"] = ACCEPTED_RESULTS
    if address.authorization:
        headers["Authorization"] = address.authorization
    # An address that was copied from a browser may have a query of its own.
    others = [(name, value) for name, value in parameters if name != "query"]
    sent = urlencode([*others, ("query", query)])
    if by_post:
        return Request(address.url, sent.encode(), headers)
    return Request(f"{address.url}?{sent}", headers=headers)


def send_request(url: str, requests: Sequence[Request], limits: QueryLimits) -> EndpointResponse:
    """Send an HTTP request and return the whole reply. ``url`` is the address named in errors.

    The further ``requests`` ask the same in another way. Each is sent only if the server refuses the
    way of the one before. It runs on a background thread, which is abandoned after
    ``query_timeout_s``.

    Raises GraphTimeoutError then, GraphUnreachableError if the connection fails, breaks off, or is
    redirected to another server, and GraphError for a reply that is too long or an HTTP error.
    """
    timeout_error = GraphTimeoutError(
        f"{url} took longer than {limits.query_timeout_s:g} s", hint=_TIMEOUT_HINT
    )
    receive = partial(_receive_response, url, requests, limits)
    try:
        # On a thread that can be left, because the timeout of a socket starts anew with every byte.
        return run_in_thread(receive, timeout_s=limits.query_timeout_s)
    except TimeoutError as error:
        raise timeout_error from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise timeout_error from error
        raise GraphUnreachableError(
            f"{url} cannot be reached: {error.reason}", hint=_CHECK_URL_HINT
        ) from error
    except http.client.InvalidURL:  # its message may hold the password of a proxy
        problem = "the URL, or the value of HTTP_PROXY or HTTPS_PROXY, is not a valid address"
        raise GraphUnreachableError(
            f"{url} cannot be queried: {problem}", hint=_CHECK_URL_HINT
        ) from None
    except ValueError as error:  # an invalid address, given by the person or by a redirect
        raise GraphUnreachableError(
            f"{url} cannot be queried: {error}",
            hint=f"{_CHECK_URL_HINT}; percent-encode characters outside of ASCII",
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise GraphUnreachableError(
            f"the connection to {url} was interrupted: {error!r}",
            hint="try again; if it happens again, give the query a LIMIT",
        ) from error


class _SameOriginRedirects(HTTPRedirectHandler):
    """Follows redirects on the same server only, and sends body and login again.

    The handler of urllib follows redirects to other servers, and drops the body.
    """

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request:
        """Return the same request for the new address: method, body, headers and login stay.

        Raises RedirectError for another server.
        """
        fp.close()  # urllib would read the body of the redirect to its end, however long that is
        check_redirect(req.full_url, newurl)
        return Request(
            newurl, req.data, req.headers, origin_req_host=req.origin_req_host, unverifiable=True
        )


def _opener() -> OpenerDirector:
    """Return an opener that follows redirects within one server only.

    Queries share it: Python 3.11 would otherwise read all certificates of the machine for each, which
    takes 20 to 80 ms. It is made anew when the certificates have changed, or another function was
    put in place of the one that makes Python's default context, as those do who check none.
    """
    return _make_opener(identify_certificates(), ssl._create_default_https_context)


@lru_cache(maxsize=1)
def _make_opener(
    _certificates: object, create_context: Callable[[], ssl.SSLContext]
) -> OpenerDirector:
    """Make a new opener, which reads the certificates. Its context is as ``http.client`` has it."""
    context = create_context()
    context.set_alpn_protocols(["http/1.1"])
    context.post_handshake_auth = True
    return build_opener(HTTPSHandler(context=context), _SameOriginRedirects)


def _receive_response(
    url: str, requests: Sequence[Request], limits: QueryLimits
) -> EndpointResponse:
    """Send a request and return the whole reply, on the calling thread.

    It may take ``limits.query_timeout_s`` seconds, with the waits that the server asks for. Raises
    GraphError for a reply longer than ``limits.byte_limit`` and for an HTTP error, IncompleteRead
    for a reply shorter than announced, and what urllib raises.
    """
    deadline = time.monotonic() + limits.query_timeout_s
    response, request = _open_one_way(url, requests, limits, deadline)
    with response:
        body = _read_body(response, deadline, limits.byte_limit + 1)
        if len(body) > limits.byte_limit:
            raise GraphError(
                f"{url} sent more than {limits.byte_limit:,} bytes",
                hint="ask for fewer rows with LIMIT, or for rows without long texts",
            )
        if response.length:  # bytes that Content-Length announced and that did not come
            raise http.client.IncompleteRead(body, response.length)
        return _response_from(response, body, request)


def _open_one_way(
    url: str, requests: Sequence[Request], limits: QueryLimits, deadline: float
) -> tuple[Any, Request]:
    """Send the first request whose way the server does not refuse.

    Returns the reply, which is not read yet, and the request. Raises GraphError for an HTTP error:
    that of the first request if all ways are refused.
    """
    refusal: GraphError | None = None
    for request in requests:
        try:
            return _open_after_waits(request, limits, deadline), request
        except HTTPError as error:
            message = _error_message(error, deadline)
            problem = _graph_error(url, error, message)
            if not _refuses_way(request, error.code, message):
                raise problem from error
            refusal = refusal or problem
    assert refusal is not None
    raise refusal


def _refuses_way(request: Request, status: int, message: str) -> bool:
    """Return whether an HTTP error may say that the request must be sent by another method."""
    if request.data is not None:
        return status in POST_REFUSED_STATUSES
    is_too_long = status in (400, 404) and LONG_ADDRESS_ERROR.search(message) is not None
    return is_too_long or status in GET_REFUSED_STATUSES


def _open_after_waits(request: Request, limits: QueryLimits, deadline: float) -> Any:
    """Send a request and return the reply whose body is not read yet.

    A server that is busy may say how long to wait. Then the request is sent again, at most
    MAX_WAITS times, if the wait ends before the deadline, a value of ``time.monotonic()``. Raises
    what urllib raises, among others the HTTPError of the last reply.
    """
    waits = 0
    while True:
        try:
            return _opener().open(request, timeout=limits.query_timeout_s)
        except HTTPError as error:
            wait_s = _asked_wait(error)
            if wait_s is None or waits == MAX_WAITS or time.monotonic() + wait_s >= deadline:
                raise
            error.close()
        waits += 1
        time.sleep(wait_s)


def _asked_wait(error: HTTPError) -> float | None:
    """Return how many seconds a busy server asks to wait; None if it does not."""
    if error.code not in BUSY_STATUSES:
        return None
    return read_retry_after(error.headers)


def _response_from(response: Any, body: bytes, request: Request) -> EndpointResponse:
    """Return the reply with its media type and server, and whether it is partial, from its headers.

    It is partial if Virtuoso's header says so, or for status 206. ``max_rows`` is the number of
    rows that Virtuoso sends at most, from the header X-SPARQL-MaxRows; None without it.
    """
    headers = response.headers
    is_cut = headers.get(SQL_STATE_HEADER) == PARTIAL_RESULT_STATE
    max_rows = None
    announced_rows = headers.get("X-SPARQL-MaxRows", "")
    if announced_rows.isdecimal():
        max_rows = int(announced_rows[:18])
    return EndpointResponse(
        body=body,
        media_type=headers.get_content_type(),
        charset=headers.get_content_charset(""),
        is_partial=is_cut or response.status == 206,
        max_rows=max_rows,
        server=headers.get("Server", ""),
        by_post=request.data is not None,
    )


def _error_message(error: HTTPError, deadline: float) -> str:
    """Return the beginning of the body of an HTTP error on one line, else its reason phrase.

    The body is used for a status from 400 on, if it can be unpacked; MAX_ERROR_BYTES are read and
    MAX_ERROR_CHARS returned. Below 400, the reason says why a redirect was not followed. The reply
    is closed.
    """
    message = str(error.reason)
    # Not ``with error``: for a redirect in a circle it is closed already, and cannot be entered.
    with closing(error), suppress(ValueError):
        if error.code >= 400:
            body = _read_body(error, deadline, MAX_ERROR_BYTES)
            message = body.decode("utf-8", errors="replace")
    line = " ".join(message.split())
    return truncate_at_word(line, MAX_ERROR_CHARS)


def _graph_error(url: str, error: HTTPError, message: str) -> GraphError:
    """Return the error to raise for an HTTP error.

    - GraphTimeoutError for 408, 504, Virtuoso's timeouts, and what engines say of their time limit.
    - QueryError for 400, and where Virtuoso says that the query is wrong.
    - GraphUnreachableError for any other status.
    """
    code = error.code
    sql_state = error.headers.get(SQL_STATE_HEADER)
    is_timeout = code in (408, 504) or sql_state in TIMEOUT_STATES
    if is_timeout or TIME_LIMIT.search(message):
        return GraphTimeoutError(
            f"{url} gave up on the query (HTTP {code}): {message}", hint=SERVER_TIME_HINT
        )
    if code == 400 or VIRTUOSO_QUERY_ERROR.match(message):
        return QueryError(
            f"{url} rejects the query: {message}",
            hint="correct the query; the message of the engine says what is wrong",
        )
    default_hint = "try again later; the log of the server may say why"
    if code < 400:
        default_hint = _CHECK_URL_HINT
    hint = _HINT_BY_STATUS.get(code, default_hint)
    wait_s = _asked_wait(error)
    if wait_s is not None:
        hint = f"the endpoint asks to wait {wait_s:,.0f} s; then send fewer queries"
    return GraphUnreachableError(f"{url} fails (HTTP {code}): {message}", hint=hint)


def _read_body(response: Any, deadline: float, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` bytes of a body, unpacked; what follows is not read.

    Raises what ``read_body`` does, TimeoutError after ``deadline`` among others.
    """
    chunks = iter(partial(response.read1, READ_CHUNK_BYTES), b"")
    content_encoding = response.headers.get("Content-Encoding", "")
    body = BytesIO()  # a list of chunks would be in memory beside the whole body
    body.writelines(read_body(chunks, content_encoding, max_bytes, deadline))
    return body.getvalue()
