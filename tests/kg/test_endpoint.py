"""Endpoints: a server on loopback that speaks SPARQL over a small graph, and misbehaves when told to."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyoxigraph
import pytest
from rdflib import Literal, URIRef

from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    QueryError,
    QueryRefusedError,
    SettingError,
)
from kgwb.kg import Limits, open_kg, queries
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph

EX = "http://example.org/"
ADA, LONDON = URIRef(EX + "ada"), URIRef(EX + "london")
RESULT = b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "%s"}}]}}'
FAULTS: dict[str, tuple[int, str, bytes]] = {
    "html": (200, "text/html", b"<html>Welcome</html>"),
    "page": (200, "application/sparql-results+json", b"<!DOCTYPE html>"),
    "cut": (200, "application/sparql-results+json", RESULT[:40]),
    "odd": (200, "application/json", b'{"rows": []}'),
    "list": (200, "application/json", b"[]"),
    "triple": (200, "application/json", RESULT.replace(b"literal", b"triple")),
    "400": (400, "text/plain", b"Virtuoso 37000 Error SP030: syntax error at 'x'"),
    "401": (401, "text/plain", b"who are you"),
    "404": (404, "text/plain", b"nothing here"),
    "429": (429, "text/plain", b"too many"),
    "500": (500, "text/plain", b"stack overflow"),
    "503": (503, "text/plain", b"busy"),
    "504": (504, "text/plain", b"gateway timeout"),
    "latin1": (200, "application/sparql-results+json", RESULT % b"caf\xe9"),
    "206": (206, "application/sparql-results+json", RESULT % b"part"),
}


@dataclass
class Server:
    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def server(people: LocalGraph) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def answer(self, encoded: str) -> None:
            given = {name: values[0] for name, values in parse_qs(encoded).items()}
            found.asked.append({"method": self.command, "headers": dict(self.headers), **given})
            name = urlsplit(self.path).path.strip("/")
            if name in FAULTS:
                return self.send(*FAULTS[name])
            if name == "slow":
                time.sleep(1)
            if name == "short":
                return self.send(200, "application/json", RESULT, length=10_000)
            try:
                result = people.store.query(given["query"])
            except SyntaxError as error:
                return self.send(400, "text/plain", str(error).encode())
            if isinstance(result, pyoxigraph.QueryTriples):
                body = result.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES)
                return self.send(200, "application/n-triples", body or b"")
            body = result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
            return self.send(200, "application/sparql-results+json; charset=utf-8", body or b"")

        def send(self, code: int, kind: str, body: bytes, length: int | None = None) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        found = Server(f"http://127.0.0.1:{listening.server_address[1]}")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield found
        listening.shutdown()
        thread.join()


@pytest.fixture
def kg(server: Server) -> Endpoint:
    return Endpoint(f"{server.url}/sparql", dialect="generic")


def test_queries_are_answered_as_by_the_file(kg: Endpoint, people: LocalGraph) -> None:
    query = "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o"
    assert kg.select(query) == people.select(query)
    assert kg.ask(f"ASK {{ <{ADA}> ?p ?o }}")
    construct = f"CONSTRUCT {{ ?s <{EX}at> ?o }} WHERE {{ ?s <{EX}bornIn> ?o }}"
    assert set(kg.construct(construct)) == set(people.construct(construct))
    assert kg.remote
    assert not people.remote


def test_shared_questions_work_over_the_network(kg: Endpoint, people: LocalGraph) -> None:
    assert queries.describe(kg, [ADA, LONDON]) == queries.describe(people, [ADA, LONDON])
    assert queries.degrees(kg, [ADA, LONDON], 3) == queries.degrees(people, [ADA, LONDON], 3)
    assert queries.predicates(kg, ADA) == queries.predicates(people, ADA)
    iris = [ADA, URIRef(EX + "bornIn"), URIRef(EX + "releaseYear")]
    assert kg.names(iris) == people.names(iris)
    assert kg.names(iris)[ADA] == "Ada Lovelace"


def test_labels_are_searched_by_the_generic_dialect(kg: Endpoint, people: LocalGraph) -> None:
    found = kg.search("ada", 5)
    assert found.hits == people.search("ada", 5).hits
    assert (found.how, "CONTAINS" in found.query) == ("all words", True)
    loose = kg.search("Countess Lovelace", 5)
    assert (loose.how, loose.hits[0].iri) == ("any word", ADA)
    assert kg.search("xyzzy", 5).how == "nothing"
    assert kg.search('"} ; DROP ALL # \\', 5).how == "nothing"
    assert kg.search("", 5).hits == ()


def test_exact_labels_are_found_in_other_capitals(kg: Endpoint) -> None:
    assert kg.exact(["ada lovelace", "LONDON", "nobody"]) == {"ada lovelace": (ADA,), "LONDON": (LONDON,)}


def test_nothing_but_reading_is_sent(kg: Endpoint, server: Server) -> None:
    for query in ("DROP ALL", "SELECT * { SERVICE <http://e/s> { ?s ?p ?o } }"):
        with pytest.raises(QueryRefusedError):
            kg.select(query)
    with pytest.raises(QueryError, match="no ASK query"):
        kg.ask("SELECT * { ?s ?p ?o }")
    assert server.asked == []
    kg.select("PREFIX insert: <http://e/insert> SELECT * { ?s insert:data ?o }")
    assert "update" not in server.asked[0]


def test_long_queries_are_posted_and_the_agent_named(kg: Endpoint, server: Server) -> None:
    kg.select("SELECT * { ?s ?p ?o }")
    kg.select("SELECT * { ?s ?p ?o FILTER(?o != 'x" + "x" * 2_000 + "') }")
    assert [asked["method"] for asked in server.asked] == ["GET", "POST"]
    assert all(asked["headers"]["User-Agent"].startswith("kgwb/") for asked in server.asked)
    assert set(server.asked[0]) == {"method", "headers", "query"}


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("SELECT * { ?s ?p ?o } # all", "\nLIMIT 4"),
        ("SELECT * { ?s ?p ?o } LIMIT 9", "LIMIT 9"),
        ("SELECT * { ?s ?p ?o } VALUES ?x { 1 2 3 4 5 }", "}"),
    ],
)
def test_rows_are_cut_at_the_limit(server: Server, query: str, sent: str) -> None:
    kg = Endpoint(f"{server.url}/sparql", limits=Limits(row_limit=3))
    rows = kg.select(query)
    assert (len(rows.rows), rows.cut) == (3, True)
    assert server.asked[0]["query"].endswith(sent)


def test_partial_results_are_told(server: Server) -> None:
    rows = Endpoint(f"{server.url}/206").select("SELECT ?x { ?x ?p ?o }")
    assert (rows.rows, rows.cut) == (((Literal("part"),),), True)


def test_broken_characters_are_replaced_with_a_warning(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kgwb"):
        rows = Endpoint(f"{server.url}/latin1").select("SELECT ?x { ?x ?p ?o }")
    assert rows.rows == ((Literal("caf\ufffd"),),)
    assert "not UTF-8" in caplog.text


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("html", GraphError, "a web page .*Welcome"),
        ("page", GraphError, "a web page"),
        ("cut", GraphError, "broken JSON"),
        ("odd", GraphError, "no SPARQL result"),
        ("list", GraphError, "no SPARQL result"),
        ("triple", GraphError, "no SPARQL result"),
        ("short", GraphUnreachableError, "broke off"),
        ("400", QueryError, "SP030: syntax error at 'x'"),
        ("401", GraphUnreachableError, "who are you"),
        ("404", GraphUnreachableError, "nothing here"),
        ("429", GraphUnreachableError, "too many"),
        ("500", GraphUnreachableError, "stack overflow"),
        ("503", GraphUnreachableError, "busy"),
        ("504", GraphTimeoutError, "gave up"),
        ("slow", GraphTimeoutError, "longer than 0.2 s"),
    ],
)
def test_failures_say_what_came(server: Server, fault: str, error: type[GraphError], says: str) -> None:
    kg = Endpoint(f"{server.url}/{fault}", limits=Limits(query_timeout_s=0.2))
    with pytest.raises(error, match=says) as caught:
        kg.select("SELECT ?x { ?x ?p ?o }")
    assert caught.value.hint


def test_a_closed_port_and_an_unknown_host_are_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/sparql"
        for source in (url, "http://nowhere.invalid/sparql"):
            with pytest.raises(GraphUnreachableError, match="cannot be reached"):
                open_kg(source).select("SELECT * { ?s ?p ?o }")


def test_a_password_stays_out_of_sight(server: Server) -> None:
    url = server.url.replace("//", "//ada:s%40crt@") + "/400?api_key=abc&default-graph-uri=urn:g"
    kg = open_kg(url)
    assert kg.source == kg.identity == server.url + "/400?api_key=***&default-graph-uri=urn:g"
    with pytest.raises(QueryError) as caught:
        kg.select("SELECT * { ?s ?p ?o }")
    assert not any(secret in f"{caught.value} {kg!r}" for secret in ("s%40crt", "s@crt", "abc"))
    (asked,) = server.asked
    assert asked["headers"]["Authorization"] == "Basic YWRhOnNAY3J0"
    assert (asked["api_key"], asked["default-graph-uri"]) == ("abc", "urn:g")


def test_the_dialect_is_probed_once_or_named(server: Server) -> None:
    kg = Endpoint(f"{server.url}/sparql")
    assert kg.dialect.name == "generic"
    asked = len(server.asked)
    kg.search("ada", 1)
    assert not any("bif:" in later["query"] for later in server.asked[asked:])
    with pytest.raises(QueryError):
        Endpoint(f"{server.url}/400").dialect  # noqa: B018 (probes)
    assert Endpoint(f"{server.url}/sparql", dialect="virtuoso").dialect.name == "virtuoso"
    with pytest.raises(SettingError, match="no dialect named 'sesame'"):
        open_kg(server.url, dialect="sesame")


TABLE = '{"head": {"vars": %s}, "results": {"bindings": %s}}'
ROW = '[{"x": {"type": "literal", "value": %s}}]'
LYING: tuple[tuple[str, str, str], ...] = (
    ("select", '{"error": "no memory", "head": {"vars": ["x"]}, "results": {"bindings": []}}', "no memory"),
    ("select", TABLE % ('["y"]', '[{"y": {"type": "literal", "value": "1"}}]'), "no column of x"),
    ("select", TABLE % ('["x"]', '["zz"]'), "no list of rows"),
    ("select", TABLE % ('["x"]', '"xyz"'), "no list of rows"),
    ("select", TABLE % ('"x"', "[]"), "no list of names"),
    ("select", TABLE % ('["x"]', ROW % '["http://a"]'), "not an RDF term"),
    ("select", TABLE % ('["x"]', ROW.replace("literal", "uri") % r'"http://a\ud800"'), "not an RDF term"),
    ("ask", '{"boolean": false, "exception": "no memory"}', "no memory"),
    ("ask", TABLE % ('["x"]', "[]"), "neither true nor false"),
    ("ask", TABLE % ('["__ASK_RETVAL"]', '[{"__ASK_RETVAL": {"value": "true"}}]'), "true"),
    ("construct", "# Error: no memory", "no triples, but an error"),
)
QUERIES = {
    "select": "SELECT ?x { ?x ?p ?o }",
    "ask": "ASK { ?s ?p ?o }",
    "construct": "CONSTRUCT WHERE { ?s ?p ?o }",
}


@pytest.mark.parametrize(("form", "body", "says"), LYING)
def test_what_is_no_answer_is_not_taken_for_one(
    server: Server, monkeypatch: pytest.MonkeyPatch, form: str, body: str, says: str
) -> None:
    kind = "text/turtle" if form == "construct" else "application/sparql-results+json"
    monkeypatch.setitem(FAULTS, "lying", (200, kind, body.encode()))
    with pytest.raises(GraphError) as caught:
        getattr(Endpoint(f"{server.url}/lying"), form)(QUERIES[form])
    assert says in caught.value.message


def test_half_a_character_in_a_label_is_replaced(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    body = TABLE % ('["x"]', ROW % r'"x\ud800"')
    monkeypatch.setitem(FAULTS, "half", (200, "application/json", body.encode()))
    [[label]] = Endpoint(f"{server.url}/half").select(QUERIES["select"]).rows
    assert str(label) == "x\ufffd"


@pytest.mark.parametrize("url", ["http://[bad", "http://host:port/sparql"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(SettingError, match="is not an address"):
        open_kg(url)


def test_an_address_that_cannot_be_asked_is_said() -> None:
    with pytest.raises(GraphUnreachableError, match="cannot be asked"):
        open_kg("http://127.0.0.1:1/\xe4/sparql").ask(QUERIES["ask"])


@pytest.mark.parametrize(
    "options",
    [
        {"query_timeout_s": -1},
        {"query_timeout_s": float("nan")},
        {"query_timeout_s": "5"},
        {"row_limit": 0},
        {"row_limit": "5"},
        {"dialect": 5},
        {"vocabulary": 5},
        {"dialect": "generic"},
    ],
)
def test_options_that_cannot_be_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        open_kg("films", **options)
