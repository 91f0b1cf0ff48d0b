"""TEXT2SPARQL's interface over HTTP: GET with ``dataset`` and ``question``, one SPARQL query as the answer.

https://text2sparql.aksw.org: the reply is JSON with ``dataset``, ``question`` and ``query``. The challenge's
client looks at no status, only whether these three are there; a failure has ``error`` and ``hint`` instead.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
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
from kgwb.flow import Dialogue
from kgwb.kg.sparql import n3, validate_query
from kgwb.run import Run
from kgwb.terms import Term
from kgwb.text import remove_controls

EMPTY_QUERY = "SELECT ?answer WHERE { ?answer ?property ?value FILTER(false) }"
"""What is sent where the graph has no answer: a query without solutions is that answer in SPARQL."""
ANY_DATASET = ""
"""The dataset under which a set-up answers for every dataset that is not named."""
REQUEST_TIMEOUT_S, REPLY_TIMEOUT_S = 10.0, 60.0
"""The longest that a request may take to arrive, and its reply to be taken."""
MAX_WAITING_REQUESTS = 60
"""Requests that are read, or wait for a worker, at the same time; later ones wait to be accepted."""
STATUS_BY_ERROR: tuple[tuple[Any, HTTPStatus], ...] = (
    (InputError, HTTPStatus.BAD_REQUEST),
    ((errors.GraphTimeoutError, errors.ModelTimeoutError), HTTPStatus.GATEWAY_TIMEOUT),
    ((errors.GraphError, errors.ModelError, errors.InvalidReplyError), HTTPStatus.BAD_GATEWAY),
    (KgwbError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
_log = logging.getLogger("kgwb")


def make_answer_query(run: Run) -> str:
    """One SPARQL query whose solutions are the values of a run's answer; NO_ANSWER if no query gives them.

    That is the first executed query with a column that has just these values, else the union of such columns
    as have nothing else, else of those that have more, narrowed to the values; or the count of what was
    found. A yes or no is the last query asked: what came before it held in no way. A table is its query.
    """
    answer = run.answer
    if not answer or not answer.queries:
        return EMPTY_QUERY
    if answer.kind == "boolean" or answer.columns:
        return answer.queries[-1]
    results = {
        call.request["query"]: call.result for call in run.calls.values() if call.kind == "select"
    }
    columns = [
        _ResultColumn(
            query,
            name,
            frozenset(row[place] for row in rows.rows) - {None},
            len(rows.variables) == 1,
        )
        for query in answer.queries
        if (rows := results.get(query))
        for place, name in enumerate(rows.variables)
    ]
    values = frozenset(value.term for value in answer.values)
    query, best = "", sorted(columns, key=lambda column: -len(column.terms & values))
    if exact := [column for column in columns if column.terms == values]:
        query = exact[0].query if exact[0].is_only_column else _build_union(exact[:1])
    elif inside := _find_covering_columns(
        [column for column in columns if column.terms <= values], values
    ):
        query = _build_union(inside)
    elif most := _find_covering_columns(best, values):
        with suppress(QueryError):  # no query can name a blank node
            query = _build_union(
                most, f" VALUES ?{{}} {{{{ {' '.join(sorted(map(n3, values)))} }}}}"
            )
    for name in dict.fromkeys(column.name for column in columns) if answer.kind == "count" else ():
        same = [column for column in columns if column.name == name and column.terms]
        if values == {Literal(len({term for column in same for term in column.terms}))}:
            query = query or _build_union(same, projection="(COUNT(DISTINCT ?{}) AS ?count)")
    query = query or EMPTY_QUERY
    validate_query(query)
    return query


class _ResultColumn(NamedTuple):
    query: str
    name: str
    terms: frozenset[Term | None]
    is_only_column: bool
    """Whether the query has no other."""


def _find_covering_columns(
    columns: Sequence[_ResultColumn], values: frozenset[Term]
) -> list[_ResultColumn]:
    """As many of the columns as it takes to hold all values; none if all do not."""
    missing, taken = set(values), []
    for column in columns:
        if not missing.isdisjoint(column.terms):
            missing -= column.terms
            taken.append(column)
    return [] if missing else taken


def _build_union(
    columns: Sequence[_ResultColumn], values_clause: str = "", projection: str = "DISTINCT ?{}"
) -> str:
    name, *others = dict.fromkeys(column.name for column in columns)
    parts = [f"{{ {column.query} }}" for column in columns]
    if others:
        name = "value_"
        renamed = zip(columns, parts, strict=True)
        parts = [
            f"{{ SELECT (?{column.name} AS ?value_) WHERE {{ {part} }} }}"
            for column, part in renamed
        ]
    return f"SELECT {projection.format(name)} WHERE {{ {' UNION '.join(parts)}{values_clause.format(name)} }}"


# --- over HTTP


class Text2SparqlServer(ThreadingHTTPServer):
    """Answers on one address; ``setups`` by the IRI of the dataset they are for, or ``ANY``.

    Every request is a run of its own, without a dialogue; at most ``workers`` are executed at once, the
    others wait.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], setups: Mapping[str, BenchSetup], *, workers: int = 4
    ) -> None:
        """Raises InputError if the address cannot be listened on."""
        self.setups = setups
        self._worker_slots, self._connection_slots = (
            BoundedSemaphore(workers),
            BoundedSemaphore(workers + MAX_WAITING_REQUESTS),
        )
        if not address[0].strip():  # to the operating system that is every address of this machine
            hint = "give 127.0.0.1 for this machine only, or 0.0.0.0 for all who can reach it"
            raise InputError("the host is empty", hint=hint)
        try:
            super().__init__(address, _RequestHandler)
        except (OSError, OverflowError, TypeError, ValueError) as exc:
            hint = "give another --port (0 takes a free one) or --host"
            raise InputError(
                f"cannot listen on {address[0]}:{address[1]}: {exc}", hint=hint
            ) from exc

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread, as soon as there are few enough."""
        self._connection_slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and leave its place to another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connection_slots.release()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def answer_question(self, dataset: str, question: str) -> dict[str, str]:
        """The challenge's reply; ``reason`` says why there is no answer. Raises what stops a run."""
        setup = self.setups.get(dataset) or self.setups[ANY_DATASET]
        with self._worker_slots:
            run = setup.begin(question, Dialogue()).go()
        query, reason = make_answer_query(run), run.answer.reason if run.answer is not None else ""
        reason = reason or ("no query gives just these values" if query == EMPTY_QUERY else "")
        reply = {"dataset": dataset, "question": question, "query": query, "reason": reason}
        return {name: text for name, text in reply.items() if text or name != "reason"}


class _DeadlineReader(RawIOBase):
    """The bytes of one request, all of which must have come within READ_S, however they are spread."""

    def __init__(self, connection: socket) -> None:
        self.connection, self.deadline = connection, monotonic() + REQUEST_TIMEOUT_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(max(self.deadline - monotonic(), 0.001))
        return self.connection.recv_into(buffer)


class _RequestHandler(BaseHTTPRequestHandler):
    server: Text2SparqlServer
    server_version, sys_version = "kgwb", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = BufferedReader(_DeadlineReader(self.connection))

    def do_GET(self) -> None:
        ask, known = f"ask {self.server.url}", self.server.setups
        try:
            parts = urlsplit(self.path)
        except ValueError as exc:
            self._send_problem(HTTPStatus.BAD_REQUEST, f"this is no address: {exc}", ask)
            return
        fields = {
            name: values[-1] for name, values in parse_qs(parts.query, errors="replace").items()
        }
        dataset, question = fields.get("dataset"), fields.get("question")
        if parts.path not in ("", "/"):
            self._send_problem(HTTPStatus.NOT_FOUND, f"there is nothing at {parts.path}", ask)
        elif dataset is None or question is None:
            missing = "dataset" if dataset is None else "question"
            self._send_problem(
                HTTPStatus.BAD_REQUEST,
                f"{missing!r} is missing",
                f"{ask}?dataset=IRI&question=TEXT",
            )
        elif dataset not in known and ANY_DATASET not in known:
            hint = f"ask one of {', '.join(known)}"
            self._send_problem(HTTPStatus.NOT_FOUND, f"no dataset {dataset!r} is served", hint)
        else:
            try:
                self._send_json(HTTPStatus.OK, self.server.answer_question(dataset, question))
            except KgwbError as exc:
                status = next(status for kinds, status in STATUS_BY_ERROR if isinstance(exc, kinds))
                self._send_problem(status, exc.message, exc.hint)

    def _send_problem(self, status: HTTPStatus | int, error: str, hint: str = "") -> None:
        self._send_json(status, {"error": remove_controls(error), "hint": remove_controls(hint)})

    def _send_json(self, status: HTTPStatus | int, reply: Mapping[str, str]) -> None:
        body = json.dumps(reply).encode()
        self.connection.settimeout(REPLY_TIMEOUT_S)
        with suppress(ConnectionError, TimeoutError):  # whoever asked has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the protocol itself refuses: another method, an address that is too long."""
        self.close_connection = True
        self._send_problem(
            code, message or HTTPStatus(code).phrase, f"ask {self.server.url} with GET"
        )

    def log_message(self, form: str, *args: Any) -> None:
        _log.info("%s asks: %s", self.client_address[0], remove_controls(form % args))
