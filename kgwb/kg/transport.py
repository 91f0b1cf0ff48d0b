"""One query over HTTP with SPARQLWrapper, and what its failures mean."""

from __future__ import annotations

import ast
import http.client
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError

from SPARQLWrapper import JSON, POST, TURTLE, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

from kgwb import __version__
from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError, QueryError
from kgwb.kg.sparql import Form

POST_FROM_CHARS = 2_000
"""Queries longer than this are sent by POST: servers and proxies cut long URLs."""


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


def ask(
    url: str,
    text: str,
    form: Form,
    timeout_s: float,
    parameters: Iterable[tuple[str, str]] = (),
    login: tuple[str, str] | None = None,
) -> Reply:
    """The reply to a query that passed the gate.

    Raises GraphUnreachableError, GraphTimeoutError, QueryError (the endpoint rejects it) or GraphError.
    """
    wrapper = SPARQLWrapper(url, agent=f"kgwb/{__version__}")
    wrapper.setOnlyConneg(True)
    for name, value in parameters:
        wrapper.addParameter(name, value)
    if login:
        wrapper.setCredentials(*login)
    # Set here, as SPARQLWrapper guesses the form by pattern and could take a query for an update.
    wrapper.queryString, wrapper.queryType = text, form.upper()
    wrapper.setReturnFormat(JSON if form in ("select", "ask") else TURTLE)
    if len(text) > POST_FROM_CHARS:
        wrapper.setMethod(POST)
    # Not by setTimeout, which cuts fractions off and takes 0 for no timeout.
    wrapper.timeout = timeout_s  # type: ignore[assignment]
    until = time.monotonic() + timeout_s
    try:
        return _read(wrapper.query().response, until)
    except SPARQLWrapperException as error:
        cause = error.__context__
        if isinstance(cause, HTTPError):
            raise _refused(url, cause, _said(error)) from error
        raise GraphError(f"{url} cannot be asked: {error}") from error
    except HTTPError as error:
        raise _refused(url, error, error.read()) from error
    except TimeoutError as error:
        raise _late(url, timeout_s) from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(url, timeout_s) from error
        raise GraphUnreachableError(f"{url} cannot be reached: {error.reason}", hint=_REACH) from error
    except (OSError, http.client.HTTPException) as error:
        raise GraphUnreachableError(f"{url} broke off: {error!r}", hint="try again") from error


def _read(response: Any, until: float) -> Reply:
    parts = []
    while part := response.read1(1 << 16):
        parts.append(part)
        if time.monotonic() > until:
            raise TimeoutError
    body = b"".join(parts)
    expected = response.headers.get("Content-Length")
    if expected and expected.isdigit() and len(body) < int(expected):
        raise http.client.IncompleteRead(body, int(expected) - len(body))
    partial = response.status == 206 or response.headers.get("X-SQL-State") == "S1TAT"
    most = response.headers.get("X-SPARQL-MaxRows", "")
    return Reply(body, response.headers.get_content_type(), partial, int(most) if most.isdigit() else None)


def _refused(url: str, error: HTTPError, body: bytes) -> GraphError:
    said = " ".join(body.decode("utf-8", errors="replace").split())[:500]
    code = error.code
    if code in (408, 504) or error.headers.get("X-SQL-State") in ("S1T00", "S1TAT"):
        return GraphTimeoutError(f"{url} gave up on the query (HTTP {code}): {said}", hint="ask for less")
    if code == 400:
        return QueryError(
            f"{url} rejects the query: {said}", hint="the engine's own words tell what it expects"
        )
    hints = {401: _LOGIN, 403: _LOGIN, 404: _REACH, 429: "wait, then ask less often"}
    return GraphUnreachableError(
        f"{url} fails (HTTP {code}): {said}", hint=hints.get(code, "try again later")
    )


_LOGIN = "give user and password in the URL: https://USER:PASSWORD@host/sparql"
_REACH = "check the URL and the network"


def _said(error: SPARQLWrapperException) -> bytes:
    # SPARQLWrapper has read the body and keeps it only inside its message, as a bytes literal.
    _, _, literal = str(error).partition("Response:\n")
    try:
        body = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return str(error).encode()
    return body if isinstance(body, bytes) else str(body).encode()


def _late(url: str, timeout_s: float) -> GraphTimeoutError:
    return GraphTimeoutError(
        f"{url} took longer than {timeout_s:g} s", hint="ask for less, or raise query_timeout_s"
    )
