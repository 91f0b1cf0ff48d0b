"""Endpoints: a server on loopback that speaks SPARQL over a small graph, and misbehaves when told to."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyoxigraph
import pytest
from hostile.servers import Said, Seen, Server, serving
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
JSON = {"Content-Type": "application/sparql-results+json; charset=utf-8"}
RESULT = b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "%s"}}]}}'
SELECT, ASK, CONSTRUCT = "SELECT ?x { ?x ?p ?o }", "ASK { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"
FAULTS: dict[str, tuple[int, str, bytes, type[GraphError], str]] = {
    "html": (200, "text/html", b"<html>Welcome</html>", GraphError, "a web page .*Welcome"),
    "page": (200, "application/sparql-results+json", b"<!DOCTYPE html>", GraphError, "a web page"),
    "cut": (200, "application/sparql-results+json", RESULT[:40], GraphError, "broken JSON"),
    "odd": (200, "application/json", b'{"rows": []}', GraphError, "no SPARQL result"),
    "list": (200, "application/json", b"[]", GraphError, "no SPARQL result"),
    "triple": (200, "text/json", RESULT.replace(b"literal", b"triple"), GraphError, "no SPARQL result"),
    "short": (200, "application/json", RESULT, GraphUnreachableError, "broke off"),
    "400": (400, "text/plain", b"Virtuoso 37000 Error SP030: at 'x'", QueryError, "SP030: at 'x'"),
    "401": (401, "text/plain", b"who are you", GraphUnreachableError, "who are you"),
    "404": (404, "text/plain", b"nothing here", GraphUnreachableError, "nothing here"),
    "429": (429, "text/plain", b"too many", GraphUnreachableError, "too many"),
    "500": (500, "text/plain", b"stack overflow", GraphUnreachableError, "stack overflow"),
    "504": (504, "text/plain", b"gateway timeout", GraphTimeoutError, "gave up"),
    "slow": (200, "application/json", RESULT, GraphTimeoutError, "longer than 0.2 s"),
}


@pytest.fixture
def server(people: LocalGraph) -> Iterator[Server]:
    """Answers from the graph, or with the fault that the path names."""

    def answer(seen: Seen) -> Said:
        name = urlsplit(seen.path).path.strip("/")
        if name in FAULTS:
            status, kind, body, *_ = FAULTS[name]
            time.sleep(1 if name == "slow" else 0)
            return (
                status,
                {"Content-Type": kind, **({"Content-Length": "9999"} if name == "short" else {})},
                body,
            )
        try:
            result = people.store.query(seen.fields["query"][0])
        except SyntaxError as error:
            return 400, {}, str(error)
        if isinstance(result, pyoxigraph.QueryTriples):
            triples = result.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES)
            return 200, {"Content-Type": "application/n-triples"}, triples
        return 200, JSON, result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)  # type: ignore[union-attr]

    with serving(answer) as server:
        yield server


@pytest.fixture
def kg(server: Server) -> Endpoint:
    return Endpoint(f"{server.url}/sparql", dialect="generic")


def test_queries_are_answered_as_by_the_file(kg: Endpoint, people: LocalGraph) -> None:
    query = "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o"
    assert kg.select(query) == people.select(query)
    assert kg.ask(f"ASK {{ <{ADA}> ?p ?o }}")
    construct = f"CONSTRUCT {{ ?s <{EX}at> ?o }} WHERE {{ ?s <{EX}bornIn> ?o }}"
    assert set(kg.construct(construct)) == set(people.construct(construct))
    assert queries.describe(kg, [ADA, LONDON]) == queries.describe(people, [ADA, LONDON])
    assert queries.degrees(kg, [ADA, LONDON], 3) == queries.degrees(people, [ADA, LONDON], 3)
    assert queries.predicates(kg, ADA) == queries.predicates(people, ADA)
    iris = [ADA, URIRef(EX + "bornIn"), URIRef(EX + "releaseYear")]
    assert kg.names(iris) == people.names(iris)
    assert (kg.remote, people.remote) == (True, False)


def test_labels_are_searched_by_the_generic_dialect(kg: Endpoint, people: LocalGraph) -> None:
    found = kg.search("ada", 5)
    assert found.hits == people.search("ada", 5).hits
    assert (found.how, "CONTAINS" in found.query) == ("all words", True)
    loose = kg.search("Countess Lovelace", 5)
    assert (loose.how, loose.hits[0].iri) == ("any word", ADA)
    assert {kg.search(text, 5).how for text in ("xyzzy", '"} ; DROP ALL # \\', "")} == {"nothing"}
    assert kg.exact(["ada lovelace", "LONDON", "nobody"]) == {"ada lovelace": (ADA,), "LONDON": (LONDON,)}


def test_nothing_but_reading_is_sent(kg: Endpoint, server: Server) -> None:
    for query in ("DROP ALL", "SELECT * { SERVICE <http://e/s> { ?s ?p ?o } }"):
        with pytest.raises(QueryRefusedError):
            kg.select(query)
    with pytest.raises(QueryError, match="no ASK query"):
        kg.ask("SELECT * { ?s ?p ?o }")
    assert server.seen == []
    kg.select("PREFIX insert: <http://e/insert> SELECT * { ?s insert:data ?o }")
    assert set(server.seen[0].fields) == {"query"}


def test_long_queries_are_posted_and_the_agent_named(kg: Endpoint, server: Server) -> None:
    kg.select("SELECT * { ?s ?p ?o }")
    kg.select("SELECT * { ?s ?p ?o FILTER(?o != 'x" + "x" * 2_000 + "') }")
    assert [seen.method for seen in server.seen] == ["GET", "POST"]
    assert all(seen.headers["User-Agent"].startswith("kgwb/") for seen in server.seen)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("SELECT * { ?s ?p ?o } # all", "\nLIMIT 4"),
        ("SELECT * { ?s ?p ?o } LIMIT 9", "LIMIT 9"),
        ("SELECT * { ?s ?p ?o } VALUES ?x { 1 2 3 4 5 }", "}"),
    ],
)
def test_rows_are_cut_at_the_limit(server: Server, query: str, sent: str) -> None:
    rows = Endpoint(f"{server.url}/sparql", limits=Limits(row_limit=3)).select(query)
    assert (len(rows.rows), rows.cut) == (3, True)
    assert server.seen[0].fields["query"][0].endswith(sent)


def select(body: bytes, status: int = 200) -> Any:
    with serving(lambda seen: (status, JSON, body)) as server:
        return Endpoint(server.url).select(SELECT)


def test_partial_results_and_broken_characters_are_told(caplog: pytest.LogCaptureFixture) -> None:
    rows = select(RESULT % b"part", 206)
    assert (rows.rows, rows.cut) == (((Literal("part"),),), True)
    assert select(RESULT % rb"x\ud800").rows == ((Literal("x\ufffd"),),)
    with caplog.at_level(logging.WARNING, "kgwb"):
        assert select(RESULT % b"caf\xe9").rows == ((Literal("caf\ufffd"),),)
    assert "not UTF-8" in caplog.text


@pytest.mark.parametrize("fault", FAULTS)
def test_failures_say_what_came(server: Server, fault: str) -> None:
    *_, error, says = FAULTS[fault]
    kg = Endpoint(f"{server.url}/{fault}", limits=Limits(query_timeout_s=0.2))
    with pytest.raises(error, match=says) as caught:
        kg.select(SELECT)
    assert caught.value.hint


def test_a_closed_port_an_unknown_host_and_an_odd_path_are_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/sparql"
        for source in (url, "http://nowhere.invalid/sparql"):
            with pytest.raises(GraphUnreachableError, match="cannot be reached"):
                open_kg(source).select(SELECT)
    with pytest.raises(GraphUnreachableError, match="cannot be asked"):
        open_kg("http://127.0.0.1:1/\xe4/sparql").ask(ASK)


def test_a_password_stays_out_of_sight(server: Server) -> None:
    url = server.url.replace("//", "//ada:s%40crt@") + "/400?api_key=abc&default-graph-uri=urn:g"
    kg = open_kg(url)
    assert kg.source == kg.identity == server.url + "/400?api_key=***&default-graph-uri=urn:g"
    with pytest.raises(QueryError) as caught:
        kg.select(SELECT)
    assert not any(secret in f"{caught.value} {kg!r}" for secret in ("s%40crt", "s@crt", "abc"))
    (seen,) = server.seen
    assert seen.headers["Authorization"] == "Basic YWRhOnNAY3J0"
    assert (seen.fields["api_key"], seen.fields["default-graph-uri"]) == (["abc"], ["urn:g"])


TABLE = '{"head": {"vars": %s}, "results": {"bindings": %s}}'
ROW = '[{"x": {"type": "literal", "value": %s}}]'
LYING: tuple[tuple[str, str, str], ...] = (
    (SELECT, '{"error": "no memory", "head": {"vars": ["x"]}, "results": {"bindings": []}}', "no memory"),
    (SELECT, TABLE % ('["y"]', '[{"y": {"type": "literal", "value": "1"}}]'), "no column of x"),
    (SELECT, TABLE % ('["x"]', '["zz"]'), "no list of rows"),
    (SELECT, TABLE % ('["x"]', '"xyz"'), "no list of rows"),
    (SELECT, TABLE % ('"x"', "[]"), "no list of names"),
    (SELECT, TABLE % ('["x"]', ROW % '["http://a"]'), "not an RDF term"),
    (SELECT, TABLE % ('["x"]', ROW.replace("literal", "uri") % r'"http://a\ud800"'), "not an RDF term"),
    (ASK, '{"boolean": false, "exception": "no memory"}', "no memory"),
    (ASK, TABLE % ('["x"]', "[]"), "neither true nor false"),
    (ASK, TABLE % ('["__ASK_RETVAL"]', '[{"__ASK_RETVAL": {"value": "true"}}]'), "true"),
    (CONSTRUCT, "# Error: no memory", "no triples, but an error"),
)


@pytest.mark.parametrize(("query", "body", "says"), LYING)
def test_what_is_no_answer_is_not_taken_for_one(query: str, body: str, says: str) -> None:
    kind = {"Content-Type": "text/turtle"} if query == CONSTRUCT else JSON
    with serving(lambda seen: (200, kind, body)) as server, pytest.raises(GraphError) as caught:
        getattr(Endpoint(server.url), query.split(maxsplit=1)[0].lower())(query)
    assert says in caught.value.message


@pytest.mark.parametrize("url", ["http://[bad", "http://host:port/sparql"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(SettingError, match="is not an address"):
        open_kg(url)


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
