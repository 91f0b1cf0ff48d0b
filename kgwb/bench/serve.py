"""TEXT2SPARQL's interface over HTTP: GET with ``dataset`` and ``question`` is answered with a SPARQL query.

The reply is JSON with ``dataset``, ``question`` and ``query`` (https://text2sparql.aksw.org). The
challenge's client ignores the status, and only looks whether these three are there. A failure has
``error`` and ``hint`` instead.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from socket import socket
from threading import BoundedSemaphore
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from rdflib import Literal

from kgwb import errors
from kgwb.bench.runner import BenchSetup
from kgwb.errors import InputError, KgwbError, QueryError
from kgwb.kg.base import ResultSet
from kgwb.kg.sparql import n3, validate_query
from kgwb.run import Run
from kgwb.run.answers import Answer, Dialogue
from kgwb.terms import Term
from kgwb.text import remove_controls

EMPTY_QUERY = "SELECT ?answer WHERE { ?answer ?property ?value FILTER(false) }"
"""The query that is sent if the graph has no answer: it has no solutions."""
ANY_DATASET = ""
"""The dataset name of the setup that answers for every dataset that has no setup of its own."""
REQUEST_TIMEOUT_S = 10.0
"""How long a request may take to arrive."""
REPLY_TIMEOUT_S = 60.0
"""How long a client may take to receive its reply."""
MAX_WAITING_REQUESTS = 60
"""Requests that may be read, or wait for a worker, at the same time. More wait to be accepted."""
STATUS_BY_ERROR: tuple[tuple[Any, HTTPStatus], ...] = (
    (InputError, HTTPStatus.BAD_REQUEST),
    ((errors.GraphTimeoutError, errors.ModelTimeoutError), HTTPStatus.GATEWAY_TIMEOUT),
    ((errors.GraphError, errors.ModelError, errors.InvalidReplyError), HTTPStatus.BAD_GATEWAY),
    (KgwbError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
"""The status of each error; the first class that fits counts."""
_log = logging.getLogger("kgwb")


class _ResultColumn(NamedTuple):
    """A column in the result of a query that a run executed."""

    query: str
    name: str
    terms: frozenset[Term | None]
    is_only_column: bool
    """Whether the query has no other column."""


def make_answer_query(run: Run) -> str:
    """Return a SPARQL query whose solutions are the values of a run's answer.

    It is made of the queries that the run executed:
    - For a boolean answer, it is the last query: the ones before it did not hold.
    - For a table, it is the table's query, the last one.
    - If a column has exactly the values of the answer, it is the query of the first such column.
    - Else it is the union of columns that have no other values, if together they have all values.
    - Else it is the union of columns that have all values, restricted to these.
    - A count may instead be the number of distinct terms in all columns of one name.
    Returns EMPTY_QUERY if none of these applies. The graph is not asked.
    """
    answer = run.answer
    if not answer or not answer.queries:
        return EMPTY_QUERY
    if answer.kind == "boolean" or answer.columns:
        return answer.queries[-1]
    columns = _find_result_columns(run, answer.queries)
    values = frozenset(value.term for value in answer.values)
    query = _query_for_values(columns, values)
    if not query and answer.kind == "count":
        query = _query_for_count(columns, values)
    query = query or EMPTY_QUERY
    validate_query(query)
    return query


def _find_result_columns(run: Run, queries: Iterable[str]) -> list[_ResultColumn]:
    """Return a column for each variable of these queries, with the distinct terms that the run recorded for it.

    Queries whose result the run does not have are left out.
    """
    results: dict[str, ResultSet] = {}
    for call in run.calls.values():
        if call.kind == "select":
            results[call.request["query"]] = call.result
    columns = []
    for query in queries:
        result = results.get(query)
        if result is None:
            continue
        is_only_column = len(result.variables) == 1
        for place, name in enumerate(result.variables):
            terms = {row[place] for row in result.rows}
            terms.discard(None)
            column = _ResultColumn(query, name, frozenset(terms), is_only_column)
            columns.append(column)
    return columns


def _query_for_values(columns: Sequence[_ResultColumn], values: frozenset[Term]) -> str:
    """Return a query whose solutions are these values; "" if there is none.

    Tried in turn are the first column with exactly these values, a union of columns that have no
    others, and a union of any columns with a VALUES clause, of which those with most of the values
    come first. See ``make_answer_query``.
    """
    for column in columns:
        if column.terms == values:
            return column.query if column.is_only_column else _build_union([column])
    inside = [column for column in columns if column.terms <= values]
    covering = _find_covering_columns(inside, values)
    if covering:
        return _build_union(covering)
    by_overlap = sorted(columns, key=lambda column: -len(column.terms & values))
    covering = _find_covering_columns(by_overlap, values)
    if not covering:
        return ""
    try:
        terms = " ".join(sorted(map(n3, values)))
    except QueryError:  # no query can name a blank node
        return ""
    return _build_union(covering, values_clause=f" VALUES ?{{}} {{{{ {terms} }}}}")


def _query_for_count(columns: Sequence[_ResultColumn], values: frozenset[Term]) -> str:
    """Return a query that counts the distinct terms in all columns of one name; "" if there is none.

    It is made of the first name whose count equals the only value.
    """
    columns_by_name: dict[str, list[_ResultColumn]] = {}
    for column in columns:
        same_name = columns_by_name.setdefault(column.name, [])
        if column.terms:
            same_name.append(column)
    for same_name in columns_by_name.values():
        terms = set().union(*(column.terms for column in same_name))
        if values == {Literal(len(terms))}:
            return _build_union(same_name, projection="(COUNT(DISTINCT ?{}) AS ?count)")
    return ""


def _find_covering_columns(
    columns: Iterable[_ResultColumn], values: frozenset[Term]
) -> list[_ResultColumn]:
    """Return columns that together have all values; an empty list if even all columns do not.

    Columns are taken in order, and those that add no missing value are left out.
    """
    missing = set(values)
    covering = []
    for column in columns:
        if not missing.isdisjoint(column.terms):
            missing -= column.terms
            covering.append(column)
    if missing:
        return []
    return covering


def _build_union(
    columns: Sequence[_ResultColumn], values_clause: str = "", projection: str = "DISTINCT ?{}"
) -> str:
    """Return a query for the union of the terms in columns.

    ``{}`` in ``projection`` and in ``values_clause``, which is put after the union, stands for the
    variable's name: the columns' own if they share it, else ``value_``.
    """
    names = {column.name for column in columns}
    is_shared = len(names) == 1
    name = "value_"
    if is_shared:
        name = columns[0].name
    parts = []
    for column in columns:
        part = f"{{ {column.query} }}"
        if not is_shared:
            part = f"{{ SELECT (?{column.name} AS ?value_) WHERE {{ {part} }} }}"
        parts.append(part)
    union = " UNION ".join(parts)
    clause = values_clause.format(name)
    selected = projection.format(name)
    return f"SELECT {selected} WHERE {{ {union}{clause} }}"


# --- over HTTP


class Text2SparqlServer(ThreadingHTTPServer):
    """A server that answers on one address.

    Every request is a run of its own, without a dialogue. At most ``workers`` runs are executed at a
    time; further requests wait.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], setups: Mapping[str, BenchSetup], *, workers: int = 4
    ) -> None:
        """Listen on an address (host and port).

        ``setups`` has the setup of each dataset by the dataset's IRI, or ANY_DATASET. Raises
        InputError if the address cannot be used.
        """
        self.setups = setups
        self._worker_slots = BoundedSemaphore(workers)
        self._connection_slots = BoundedSemaphore(workers + MAX_WAITING_REQUESTS)
        host, port = address
        if not host.strip():  # the operating system would take it as every address of this machine
            raise InputError(
                "the server was not started: its host is empty",
                hint="give --host 127.0.0.1 for this machine only, or 0.0.0.0 for all who can reach it",
            )
        try:
            super().__init__(address, _RequestHandler)
        except (OSError, OverflowError, TypeError, ValueError) as exc:
            raise InputError(
                f"the server was not started: it cannot listen on {host}:{port}: {exc}",
                hint="give another --port (0 takes a free one) or --host",
            ) from exc

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection. If there are too many, wait until one ends."""
        self._connection_slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection in its thread, and then release its slot, also after an error."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connection_slots.release()

    @property
    def url(self) -> str:
        """The address that it listens on."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def answer_question(self, dataset: str, question: str) -> dict[str, str]:
        """Ask a question in a run of its own, and return the challenge's reply: dataset, question and query.

        If there is no answer, "reason" says why. It waits while as many questions are answered as
        there are workers. Raises KgwbError if the run fails, and KeyError if no setup answers for
        the dataset.
        """
        setup = self.setups.get(dataset) or self.setups[ANY_DATASET]
        with self._worker_slots:
            run = setup.begin(question, Dialogue())
            run.go_explained()
        query = make_answer_query(run)
        reply = {"dataset": dataset, "question": question, "query": query}
        reason = _reason_of(run.answer, query)
        if reason:
            reply["reason"] = reason
        return reply


def _reason_of(answer: Answer | None, query: str) -> str:
    """Return that there is no query for the values of an answer, or the reason that it gives; else ""."""
    reason = "" if answer is None else answer.reason
    has_values = bool(answer)
    if query == EMPTY_QUERY and (has_values or not reason):
        return "no query gives just these values"
    return reason


class _DeadlineReader(RawIOBase):
    """The bytes of one request, all of which must arrive within REQUEST_TIMEOUT_S.

    A timeout of the socket alone would start again with every byte.
    """

    def __init__(self, connection: socket) -> None:
        self.connection = connection
        self.deadline = monotonic() + REQUEST_TIMEOUT_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(max(self.deadline - monotonic(), 0.001))
        return self.connection.recv_into(buffer)


class _RequestHandler(BaseHTTPRequestHandler):
    """Answers the request of one connection."""

    server: Text2SparqlServer
    server_version = "kgwb"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = BufferedReader(_DeadlineReader(self.connection))

    def do_GET(self) -> None:
        """Answer the question in the address, or reply with an error, its hint and a status.

        The parameters are "dataset" and "question"; of several the last counts. A missing one is
        400, another path or an unknown dataset 404, and an error of the run the status in
        STATUS_BY_ERROR.
        """
        how_to_ask = f"ask {self.server.url}"
        setups = self.server.setups
        try:
            parts = urlsplit(self.path)
        except ValueError as exc:
            problem = f"this is no address: {exc}"
            self._send_problem(HTTPStatus.BAD_REQUEST, problem, how_to_ask)
            return
        fields = parse_qs(parts.query, errors="replace")
        if parts.path not in ("", "/"):
            problem = f"there is nothing at {parts.path}"
            self._send_problem(HTTPStatus.NOT_FOUND, problem, how_to_ask)
            return
        for name in ("dataset", "question"):
            if name not in fields:
                hint = f"{how_to_ask}?dataset=IRI&question=TEXT"
                self._send_problem(HTTPStatus.BAD_REQUEST, f"{name!r} is missing", hint)
                return
        dataset = fields["dataset"][-1]
        if dataset not in setups and ANY_DATASET not in setups:
            problem = f"no dataset {dataset!r} is served"
            hint = f"ask one of {', '.join(setups)}"
            self._send_problem(HTTPStatus.NOT_FOUND, problem, hint)
            return
        try:
            reply = self.server.answer_question(dataset, fields["question"][-1])
        except KgwbError as exc:
            status = next(status for kinds, status in STATUS_BY_ERROR if isinstance(exc, kinds))
            self._send_problem(status, exc.message, exc.hint)
        else:
            self._send_json(HTTPStatus.OK, reply)

    def _send_problem(self, status: HTTPStatus | int, error: str, hint: str) -> None:
        reply = {
            "error": remove_controls(error),
            "hint": remove_controls(hint),
        }
        self._send_json(status, reply)

    def _send_json(self, status: HTTPStatus | int, reply: Mapping[str, str]) -> None:
        """Send a reply as JSON with a status.

        The client is waited for REPLY_TIMEOUT_S at most. If it has closed the connection, or does
        not read, nothing is raised.
        """
        body = json.dumps(reply).encode()
        self.connection.settimeout(REPLY_TIMEOUT_S)
        with suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Reply to a request that the HTTP server refuses: another method, or too long an address."""
        self.close_connection = True
        status = HTTPStatus(code)
        problem = message or status.phrase
        hint = f"ask {self.server.url} with GET"
        self._send_problem(status, problem, hint)

    def log_message(self, form: str, *args: Any) -> None:
        _log.info("%s asks: %s", self.client_address[0], remove_controls(form % args))
