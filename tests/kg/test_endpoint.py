"""Endpoints: a local server answers SPARQL over a small graph, or replies as each test says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from engines import free_port
from hostile.servers import Said, Seen, Server, said, serving
from rdflib import Literal, URIRef
from tables import read_table

from kgwb import errors
from kgwb.errors import (
    GraphTimeoutError,
    GraphUnreachableError,
    QueryError,
    QueryRefusedError,
    SettingError,
)
from kgwb.kg import QueryLimits, open_kg
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph

EX = "http://example.org/"
ADA, LONDON = URIRef(EX + "ada"), URIRef(EX + "london")
KIND = "application/sparql-results+json"
RESULT = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "%s"}}]}}'
SELECT, ASK = "SELECT ?x { ?x ?p ?o }", "ASK { ?s ?p ?o }"
QUERIES = {"select": SELECT, "ask": ASK, "construct": "CONSTRUCT WHERE { ?s ?p ?o }"}


def answers_from(store: pyoxigraph.Store) -> Callable[[Seen], Said]:
    def answer(seen: Seen) -> Said:
        result: Any = store.query(seen.fields["query"][0])
        return said(result.serialize(format=pyoxigraph.QueryResultsFormat.JSON))

    return answer


@pytest.fixture
def server(people: LocalGraph) -> Iterator[Server]:
    with serving(answers_from(people.store)) as server:
        yield server


@pytest.fixture
def kg(server: Server) -> Endpoint:
    return Endpoint(f"{server.url}/sparql", dialect="generic")


def test_generic_dialect_finds_the_same_labels_as_a_local_graph(
    kg: Endpoint, people: LocalGraph
) -> None:
    found = kg.search("ada", 5)
    assert found.hits == people.search("ada", 5).hits
    assert (found.how, "CONTAINS" in found.query) == ("all words", True)
    assert (kg.remote, people.remote) == (True, False)
    loose = kg.search("Countess Lovelace", 5)
    assert (loose.how, loose.hits[0].iri) == ("any word", ADA)
    assert {kg.search(text, 5).how for text in ("xyzzy", '"} ; DROP ALL # \\', "")} == {"nothing"}
    assert kg.exact(["ada lovelace", "LONDON", "nobody"]) == {
        "ada lovelace": (ADA,),
        "LONDON": (LONDON,),
    }


def test_nothing_is_asked_for_nothing(kg: Endpoint, server: Server) -> None:
    assert (kg.exact([]), kg.names([])) == ({}, {})
    assert server.seen == []


def test_only_queries_that_read_are_sent(kg: Endpoint, server: Server) -> None:
    for query in ("DROP ALL", "SELECT * { SERVICE <http://e/s> { ?s ?p ?o } }"):
        with pytest.raises(QueryRefusedError):
            kg.select(query)
    with pytest.raises(QueryError, match="ASK"):
        kg.ask("SELECT * { ?s ?p ?o }")
    assert server.seen == []
    kg.select("PREFIX insert: <http://e/insert> SELECT * { ?s insert:data ?o }")
    assert set(server.seen[0].fields) == {"query"}


@pytest.mark.parametrize(
    ("software", "dialect", "timeouts"),
    [
        ("Virtuoso/07.20.3229", None, [None, ["10000"]]),  # once it has said its name
        ("other", "virtuoso", [["10000"]]),
        ("other", "jena", [None]),
    ],
)
def test_only_virtuoso_is_told_to_stop_in_time(
    software: str, dialect: str | None, timeouts: list[list[str] | None], server: Server
) -> None:
    server.software = software
    kg = Endpoint(server.url, dialect=dialect, limits=QueryLimits(query_timeout_s=20))
    assert dialect is None or kg.dialect.name == dialect
    for _ in timeouts:
        kg.select("SELECT * { ?s ?p ?o }")
    assert [seen.fields.get("timeout") for seen in server.seen] == timeouts


@pytest.mark.parametrize(
    ("labels", "name"),
    [('" "', "some thing"), ('" ", "Z"@fr, "Y"@fr', "Y"), ('" ", "Y"@fr, "Z"@en', "Z")],
)
def test_a_name_is_the_best_label_that_is_not_blank(labels: str, name: str) -> None:
    store, thing = pyoxigraph.Store(), URIRef(EX + "someThing")
    text = f"<{thing}> <http://www.w3.org/2000/01/rdf-schema#label> {labels} ."
    store.load(text.encode(), pyoxigraph.RdfFormat.TURTLE)
    with serving(answers_from(store)) as server:
        assert Endpoint(server.url, dialect="generic").names([thing]) == {thing: name}


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("SELECT * { ?s ?p ?o } # all", "\nLIMIT 4"),
        ("SELECT * { ?s ?p ?o } LIMIT 9", "LIMIT 9"),
        ("SELECT * { ?s ?p ?o } VALUES ?x { 1 2 3 4 5 }", "}"),
    ],
)
def test_rows_are_cut_at_the_limit(server: Server, query: str, sent: str) -> None:
    rows = Endpoint(f"{server.url}/sparql", limits=QueryLimits(row_limit=3)).select(query)
    assert (len(rows.rows), rows.cut) == (3, True)
    assert server.seen[0].fields["query"][0].endswith(sent)


@pytest.fixture
def members() -> pyoxigraph.Store:
    """Return a club with 300 members."""
    store = pyoxigraph.Store()
    triples = [f"<{EX}club> <{EX}member> <{EX}member{number}> .\n" for number in range(300)]
    store.load("".join(triples).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    return store


@pytest.mark.parametrize(
    ("silent_limit", "query", "row_count", "is_cut"),
    [
        (200, "SELECT ?x { ?c ?p ?x }", 200, True),
        (300, "SELECT ?x { ?c ?p ?x }", 300, False),  # exactly as many rows as there are
        (200, "SELECT ?x { ?c ?p ?x } LIMIT 200", 200, False),  # the query's own limit
        (200, "SELECT ?x { ?c ?p ?x } OFFSET 10", 200, False),  # it takes no second OFFSET
    ],
)
def test_rows_that_an_endpoint_leaves_out_without_a_word_are_noticed(
    members: pyoxigraph.Store, silent_limit: int, query: str, row_count: int, is_cut: bool
) -> None:
    def answer(seen: Seen) -> Said:
        result: Any = members.query(seen.fields["query"][0])
        reply = json.loads(result.serialize(format=pyoxigraph.QueryResultsFormat.JSON))
        del reply["results"]["bindings"][silent_limit:]
        return said(json.dumps(reply))

    with serving(answer) as server:
        rows = Endpoint(server.url, dialect="generic").select(query)
    assert (len(rows.rows), rows.cut) == (row_count, is_cut)


def test_a_reply_that_does_not_heed_offset_and_limit_shows_no_missing_row() -> None:
    bindings = [{"x": {"type": "literal", "value": "same"}}] * 100
    reply = {"head": {"vars": ["x"]}, "results": {"bindings": bindings}}
    rows = select(json.dumps(reply))
    assert (len(rows.rows), rows.cut) == (100, False)


@pytest.mark.parametrize(
    ("status", "wait", "busy_replies", "request_count", "is_answered"),
    [
        (429, "0", 1, 2, True),
        (503, "0.01", 2, 3, True),
        (429, "0", 9, 3, False),  # asked twice more, and no further
        (429, "600", 1, 1, False),  # longer than the time of a query
        (500, "0", 1, 1, False),
    ],
)
def test_a_busy_endpoint_is_asked_again_after_the_wait_that_it_asks_for(
    status: int, wait: str, busy_replies: int, request_count: int, is_answered: bool
) -> None:
    def answer(seen: Seen) -> Said:
        if len(server.seen) <= busy_replies:
            headers = {"Retry_After": wait} if wait else {}
            return said("busy", status=status, **headers)
        return said(RESULT % "here")

    with serving(answer) as server:
        endpoint = Endpoint(server.url, dialect="generic", limits=QueryLimits(query_timeout_s=20))
        if is_answered:
            assert endpoint.select(SELECT).rows == ((Literal("here"),),)
        else:
            with pytest.raises(GraphUnreachableError) as caught:
                endpoint.select(SELECT)
            assert ("600" in caught.value.hint) == (wait == "600")
        assert len(server.seen) == request_count


def select(body: str, **options: Any) -> Any:
    with serving(lambda seen: said(body, **options)) as server:
        return Endpoint(server.url).select(SELECT)


def test_partial_results_are_marked_and_half_characters_replaced() -> None:
    rows = select(RESULT % "part", status=206)
    assert (rows.rows, rows.cut) == (((Literal("part"),),), True)
    assert select(RESULT % r"x\ud800").rows == ((Literal("x\ufffd"),),)


def test_closed_port_unknown_host_and_invalid_path_are_unreachable() -> None:
    for source in (f"http://127.0.0.1:{free_port()}/sparql", "http://nowhere.invalid/sparql"):
        with pytest.raises(GraphUnreachableError, match="reached"):
            open_kg(source).select(SELECT)
    with pytest.raises(GraphUnreachableError, match="queried"):
        open_kg("http://127.0.0.1:1/\xe4/sparql").ask(ASK)


def test_password_is_sent_but_not_shown() -> None:
    with serving(lambda seen: said("not with s@crt and abc", status=400)) as server:
        url = server.url.replace("//", "//ada:s%40crt@") + "/?api_key=abc&default-graph-uri=urn:g"
        kg = open_kg(url)
        assert kg.source == kg.identity == server.url + "/?api_key=***&default-graph-uri=urn:g"
        with pytest.raises(QueryError) as caught:
            kg.select(SELECT)
    shown = f"{caught.value} {kg!r}"
    assert not any(secret in shown for secret in ("s%40crt", "s@crt", "abc"))
    (seen,) = server.seen
    assert seen.headers["Authorization"] == "Basic YWRhOnNAY3J0"
    assert (seen.fields["api_key"], seen.fields["default-graph-uri"]) == (["abc"], ["urn:g"])


@pytest.mark.parametrize("query", [SELECT, f"{SELECT} # {'long ' * 1000}"])
def test_a_query_in_the_address_is_not_sent(query: str) -> None:
    with serving(lambda seen: said("no", status=400)) as server, pytest.raises(QueryError):
        open_kg(f"{server.url}/?query=SELECT+1&a=1").select(query)
    (seen,) = server.seen
    assert seen.fields["a"] == ["1"]
    [sent] = seen.fields["query"]
    assert "SELECT 1" not in sent


@pytest.mark.parametrize(
    "row", read_table(Path(__file__).with_name("faulty_replies.toml")), ids=itemgetter("says")
)
def test_faulty_reply_raises_an_error(row: dict[str, Any]) -> None:
    headers = {"Content_Length": row["length"]} if "length" in row else {}
    reply = said(row["body"], row.get("kind", KIND), row.get("status", 200), **headers)
    error, method = getattr(errors, row["error"]), row.get("method", "select")
    with serving(lambda _: reply) as server, pytest.raises(error, match=row["says"]) as caught:
        getattr(Endpoint(server.url), method)(QUERIES[method])
    assert caught.value.hint


def test_a_reply_that_does_not_end_is_left() -> None:
    reply = said(iter(lambda: time.sleep(0.05) or b" ", b""))
    with serving(lambda _: reply) as server, pytest.raises(GraphTimeoutError, match="than 1 s"):
        Endpoint(server.url, limits=QueryLimits(query_timeout_s=1.0)).select(SELECT)


@pytest.mark.parametrize("url", ["http://[bad", "http://host:port/sparql"])
def test_invalid_address_is_an_error(url: str) -> None:
    with pytest.raises(SettingError, match="address"):
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
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        open_kg("films", **options)
