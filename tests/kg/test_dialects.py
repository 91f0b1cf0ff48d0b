"""Label search in each engine's own dialect: the text of its queries, and how an endpoint's is found."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pyoxigraph
import pytest
import rdflib
from engines import free_port
from hostile.servers import Said, Seen, serving
from rdflib import URIRef
from rdflib.namespace import FOAF, RDF, RDFS
from tables import read_table

from kgwb.cli import main
from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    KgwbError,
    SettingError,
)
from kgwb.kg import VOCABULARIES, QueryLimits, Vocabulary, cache_dir, dialects, open_kg
from kgwb.kg.base import vocabulary_for_url
from kgwb.kg.dialects import DIALECTS, SEARCH_STAGES, Dialect, parse_dialect
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.label_search import lowercase_words
from kgwb.kg.local import LocalGraph
from kgwb.kg.sparql import validate_query

TWO = Vocabulary(labels=(RDFS.label, FOAF.name))
ARGUMENTS = {"graphdb-connector": ":people/label", "neptune": ":https://search.example"}
SPARQL = [
    parse_dialect(name + ARGUMENTS.get(name, ""))
    for name, dialect in DIALECTS.items()
    if dialect.pattern
]
QUERIES = Path(__file__).with_name("dialect_queries.txt")
"""The query of each dialect and stage for the words "ada" and "love", which have no operator of an index."""


def test_each_stage_is_asked_in_the_engines_own_words() -> None:
    written = []
    for dialect in SPARQL:
        for stage in SEARCH_STAGES:
            query = dialect.build_search_query(lowercase_words('Ada* "Love"~'), 7, stage, TWO)
            written.append(f"# {dialect.name}, {stage}\n{query}\n")
            if query is not None:
                gate = validate_query(query, allowed_service_iri=dialect.service_iri)
                assert not gate.undeclared_prefixes
    assert "\n".join(written) == QUERIES.read_text()


def test_short_words_get_no_wildcard_where_the_engine_refuses_it() -> None:
    asked = {each.name for each in SPARQL if each.build_search_query(["ada"], 7, "prefix", TWO)}
    assert asked == set(
        "jena graphdb-fts rdf4j blazegraph stardog graphdb-connector neptune".split()
    )


def test_names_of_a_site_are_checked() -> None:
    assert '("ada" "en" 70)' in (
        parse_dialect("graphdb-fts:en").build_search_query(["ada"], 7, "all words", TWO) or ""
    )
    assert str(parse_dialect("generic")) == "generic (named)"
    own = Dialect("mine", "?v ?p ?label FILTER($test)")
    assert Endpoint("http://127.0.0.1:9/sparql", dialect=own).dialect is own
    for wrong in (
        *("", "sesame", "virtuoso:x", "neptune", "neptune:ftp://search.example"),
        *("neptune:https://ada:secret@search.example", "neptune:https://search.example?key=secret"),
        *(
            'neptune:https://search.example" . ?s ?p ?o . #',
            "graphdb-connector",
            "graphdb-connector:people",
        ),
        *("graphdb-connector:people> . ?s ?p ?o/label", "graphdb-connector:people/label:(x"),
    ):
        with pytest.raises(SettingError) as caught:
            open_kg("http://127.0.0.1:9/sparql", dialect=wrong)
        assert caught.value.hint


# --- which dialect an endpoint speaks

SAMPLE = "STRLEN(STR(?label)) >="
HIT = b"""{"head": {"vars": ["v", "label"]}, "results": {"bindings": [{
 "v": {"type": "uri", "value": "http://example.org/charles"},
 "label": {"type": "literal", "value": "Charles Babbage", "xml:lang": "en"}}]}}"""
NONE = b'{"head": {"vars": ["v", "label"]}, "results": {"bindings": []}}'
SIGNS = {
    "virtuoso": "bif:contains",
    "jena": "text:query",
    "graphdb-fts": "onto:fts",
    "rdf4j": "search:matches",
    "blazegraph": "bds:search",
    "qlever": "ql:contains-word",
    "stardog": "fts:textMatch>|search:textMatch>",
}


OTHERS = {
    "ignores": (200, NONE),
    "refuses": (400, b"what is that?"),
    "fails": (500, b"no such function"),
}


class Fake:
    """An engine over the graph of ``people`` that knows one dialect, and what it does with the ``others``."""

    def __init__(
        self, people: LocalGraph, sign: str, others: str = "ignores", name: str = ""
    ) -> None:
        self.people, self.sign, self.others, self.name = people, sign, others, name
        self.url, self.asked, self.stopped = "", list[str](), threading.Event()

    def __call__(self, seen: Seen) -> Said:
        query = seen.fields["query"][0]
        self.asked.append(query)
        foreign = re.search("|".join(SIGNS.values()), query)
        if foreign and self.sign and re.search(self.sign, query):
            status, body = 200, HIT
        elif self.others == "is broken" and SAMPLE not in query:
            status, body = 500, b"out of memory"
        elif foreign:
            self.stopped.wait(60 if self.others == "hangs" else 0)
            status, body = OTHERS.get(self.others, (200, NONE))
        else:
            result: Any = self.people.store.query(query)
            status, body = 200, result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        return status, {"Content-Type": "application/sparql-results+json"}, body


Engine = Callable[..., Fake]


@pytest.fixture
def engine(people: LocalGraph) -> Iterator[Engine]:
    with ExitStack() as stack:

        def started(*options: str, **more: str) -> Fake:
            fake = Fake(people, *options, **more)
            server = stack.enter_context(serving(fake))
            fake.url, server.software = f"{server.url}/sparql", fake.name
            stack.callback(fake.stopped.set)
            return fake

        yield started


@pytest.mark.parametrize(
    ("name", "others"),
    [*product(("virtuoso", "generic"), OTHERS), *product(list(SIGNS)[1:], ["ignores"])],
)
def test_the_dialect_that_finds_a_label_is_taken_and_remembered(
    engine: Engine, name: str, others: str
) -> None:
    """An engine without full text is searched in plain SPARQL."""
    fake = engine(SIGNS.get(name, ""), others)
    kg = Endpoint(fake.url)
    assert str(kg.dialect) == f"{name} (probed)"
    searched = kg.search("babbage", 3)
    assert searched.hits[0].label == "Charles Babbage"
    assert re.search(SIGNS.get(name, "CONTAINS"), searched.query)
    before = len(fake.asked)
    again = Endpoint(fake.url)
    assert str(again.dialect).startswith(f"{name} (remembered in ")
    assert len(fake.asked) == before


@pytest.mark.parametrize(
    ("said", "first"), [("Virtuoso/07.20", "virtuoso"), ("Stardog 9", "stardog"), ("", "virtuoso")]
)
def test_what_a_server_calls_itself_is_tried_first(engine: Engine, said: str, first: str) -> None:
    """No other host learns what is searched: Neptune's, Wikidata's and the like name hosts to ask."""
    fake = engine("", name=said)
    assert Endpoint(fake.url).dialect.name == "generic"
    tried = [name for query in fake.asked for name, sign in SIGNS.items() if re.search(sign, query)]
    assert tried[0] == first
    assert sorted(tried) == sorted(SIGNS)
    services = {found for query in fake.asked for found in re.findall(r"SERVICE <([^>]*)>", query)}
    assert services == {"tag:stardog:api:search:textMatch"}


def test_an_endpoint_that_fails_while_probed_is_said_to_fail(engine: Engine) -> None:
    with pytest.raises(GraphUnreachableError, match="out of memory"):
        Endpoint(engine("", "is broken").url).dialect  # noqa: B018 (probes)
    slow = Endpoint(engine("", "hangs").url, limits=QueryLimits(query_timeout_s=0.5))
    with pytest.raises(GraphTimeoutError, match=r"longer than 0\.5 s .*dialect virtuoso") as caught:
        slow.search("ada", 3)
    assert 'dialect="generic"' in caught.value.hint
    with pytest.raises(GraphUnreachableError, match="cannot be reached"):
        Endpoint(f"http://127.0.0.1:{free_port()}/sparql").dialect  # noqa: B018 (probes)
    assert not list(cache_dir().rglob("*.json"))


def test_an_empty_graph_is_probed_again_when_it_is_no_longer_empty(engine: Engine) -> None:
    fake = engine(SIGNS["virtuoso"])
    nothing = rdflib.Graph().parse(data="<http://e/a> <http://e/b> 1 .", format="turtle")
    full, fake.people = fake.people, LocalGraph.from_rdflib(nothing)
    assert str(Endpoint(fake.url).dialect) == "generic (no label to probe with)"
    fake.people = full
    assert str(Endpoint(fake.url).dialect) == "virtuoso (probed)"


def test_a_memory_that_is_damaged_or_old_is_made_again(engine: Engine) -> None:
    fake = engine(SIGNS["jena"])
    assert Endpoint(fake.url).dialect.name == "jena"
    (file,) = cache_dir().rglob("*.json")
    for damage in (
        "",
        "\xff\xfe",
        "[]",
        *map('{{"dialect": {}}}'.format, ('"sesame"', "[]", '"neptune"')),
    ):
        file.write_text(damage, encoding="latin-1")
        assert str(Endpoint(fake.url).dialect) == "jena (probed)", damage
        assert json.loads(file.read_bytes())["dialect"] == "jena"
    fake.sign = ""
    assert Endpoint(fake.url).dialect.name == "jena"
    old = time.time() - dialects.DIALECT_CACHE_LIFETIME_S - 60
    os.utime(file, (old, old))
    assert str(Endpoint(fake.url).dialect) == "generic (probed)"


def test_a_memory_that_cannot_be_written_is_said(
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "kgwb"):
        assert Endpoint(engine(SIGNS["jena"]).url).dialect.name == "jena"
    assert "cannot be written" in caplog.text


def test_no_password_is_remembered_and_many_may_probe_at_once(engine: Engine) -> None:
    fake = engine(SIGNS["jena"])
    url = fake.url.replace("//", "//ada:s3cret@") + "?api_key=s3cret"
    kgs = [Endpoint(url) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert {dialect.name for dialect in pool.map(lambda kg: kg.dialect, kgs)} == {"jena"}
    (file,) = cache_dir().rglob("*.json")
    assert "s3cret" not in file.read_text() + str(file)
    assert "remembered" in str(Endpoint(url).dialect)


# --- Wikidata's own API


class Wikibase:
    """Answers wbsearchentities by the type asked for, with entities or what else is in ``bodies``."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.bodies: dict[str, Any] = {"item": {"search": []}, "property": {"search": []}}
        self.code, self.api = 200, ""

    def __call__(self, seen: Seen) -> Said:
        self.asked.append({name: values[0] for name, values in seen.fields.items()})
        return self.code, {"Content-Type": "application/json"}, self.bodies[self.asked[-1]["type"]]


@pytest.fixture
def wikibase() -> Iterator[Wikibase]:
    made = Wikibase()
    with serving(made) as server:
        made.api = f"{server.url}/w/api.php"
        yield made


def _entity(iri: str, label: str, match: str, kind: str = "label") -> dict[str, Any]:
    return {
        "id": iri[-3:],
        "concepturi": iri,
        "label": label,
        "match": {"type": kind, "text": match},
    }


def test_wikidata_is_searched_by_its_own_api(engine: Engine, wikibase: Wikibase) -> None:
    wd = "http://www.wikidata.org/entity/"
    entities = [
        _entity(wd + "Q42", "Douglas Adams", "Douglas Noël Adams", "alias"),
        _entity(wd + "Q28", "Douglas Adams", "Douglas Adams"),
        _entity("http://e/ no iri", "Douglas Adams", "Douglas Adams"),
    ]
    wikibase.bodies["item"] = {"search": entities}
    kg = Endpoint(engine("").url, dialect=f"wikidata:{wikibase.api}")
    found = kg.search(" douglas\n adams", 5)
    assert [str(hit.iri) for hit in found.hits] == [wd + "Q28", wd + "Q42"]
    assert {(hit.label, hit.score) for hit in found.hits} == {("Douglas Adams", 1.0)}
    assert found.how == "all words"
    assert found.query.startswith(f"{wikibase.api}?action=wbsearchentities&")
    asked = "action=wbsearchentities&format=json&language=en&uselang=en&type=item&limit=20"
    assert wikibase.asked == [{**dict(parse_qsl(asked)), "search": "douglas adams"}]


def test_properties_are_found_where_no_item_is(engine: Engine, wikibase: Wikibase) -> None:
    p19 = "http://www.wikidata.org/entity/P19"
    wikibase.bodies["property"] = {"search": [_entity(p19, "Geburtsort", "Geburtsort")]}
    german = replace(VOCABULARIES["wikidata"], languages=("", "de", "en"))
    kg = Endpoint(engine("").url, dialect=f"wikidata:{wikibase.api}", vocabulary=german)
    found = kg.search("geburtsort", 50)
    assert [str(hit.iri) for hit in found.hits] == [p19]
    assert "type=property" in found.query
    asked = [(each["type"], each["language"], each["limit"]) for each in wikibase.asked]
    assert asked == [("item", "de", "50"), ("property", "de", "50")]
    wikibase.bodies["property"] = wikibase.bodies["item"]
    assert kg.search("zzz", 5).how == "nothing"
    assert kg.search("?!", 5).query == ""


@pytest.mark.parametrize(
    ("code", "body", "error", "says"),
    [
        (200, {"error": {"code": "maxlag", "info": "Waiting"}}, GraphError, "Waiting"),
        (200, b"<html>Welcome</html>", GraphError, "not send a list of entities.*Welcome"),
        (200, {"search": [{"id": "Q1"}]}, GraphError, "not send a list of entities"),
        (200, b"\xff", GraphError, "not send a list of entities"),
        (429, b"slow down", GraphUnreachableError, "429.*slow down"),
        (500, b"oops", GraphUnreachableError, "500.*oops"),
    ],
)
def test_faults_of_the_api_are_said(
    engine: Engine, wikibase: Wikibase, code: int, body: Any, error: type[KgwbError], says: str
) -> None:
    wikibase.code, wikibase.bodies["item"] = code, body
    kg = Endpoint(engine("").url, dialect=f"wikidata:{wikibase.api}")
    with pytest.raises(error, match=says) as caught:
        kg.search("ada", 5)
    assert caught.value.hint


@pytest.mark.parametrize(("rest", "expected"), [(200, "wikidata"), (500, "wikidata-mwapi")])
def test_wikidata_is_known_by_its_host(
    engine: Engine, wikibase: Wikibase, monkeypatch: pytest.MonkeyPatch, rest: int, expected: str
) -> None:
    fake = engine("")
    charles = _entity("http://example.org/charles", "Charles Babbage", "Charles Babbage")
    wikibase.code, wikibase.bodies["item"] = rest, {"search": [charles]}
    monkeypatch.setitem(SIGNS, "mwapi", "wikibase:apiOutputItem")
    fake.sign = "wikibase:apiOutputItem"
    for name, own in (("wikidata", {"argument": wikibase.api}), ("wikidata-mwapi", {})):
        monkeypatch.setitem(
            DIALECTS, name, replace(DIALECTS[name], engine_hints=("//127.0.0.1:",), **own)
        )
    kg = Endpoint(fake.url)
    assert str(kg.dialect) == f"{expected} (probed)"
    assert kg.search("babbage", 3).hits[0].label == "Charles Babbage"


# --- vocabularies


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://dbpedia.org/sparql", "dbpedia"),
        ("https://live.DBpedia.org:443/sparql", "dbpedia"),
        ("https://qlever.dev/api/wikidata", "wikidata"),
        ("https://qlever.dev/api/osm-planet", "default"),
        ("http://127.0.0.1:8890/dbpedia", "default"),
        ("https://dbpedia.org.example.com/sparql", "default"),
    ],
)
def test_well_known_graphs_have_their_vocabulary(url: str, name: str) -> None:
    assert vocabulary_for_url(url) is VOCABULARIES[name]
    assert open_kg(url).vocabulary is VOCABULARIES[name]
    assert open_kg(url, vocabulary="yago").vocabulary is VOCABULARIES["yago"]


def test_a_vocabulary_can_be_extended_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = VOCABULARIES["default"].with_added(
        noise=["http://e/p", "http://e/p", RDF.type], languages=["de"]
    )
    assert mine.noise == (*Vocabulary().noise, URIRef("http://e/p"))
    assert mine.languages == ("en", "", "de")
    monkeypatch.setitem(VOCABULARIES, "mine", mine)
    assert open_kg("films", vocabulary="mine", cache=False).vocabulary is mine
    assert open_kg("films").vocabulary == Vocabulary()
    file = tmp_path / "own.json"
    file.write_text('{"labels": ["http://e/name"], "noise": ["http://e/"]}')
    own = open_kg("films", vocabulary=str(file), cache=False).vocabulary
    assert (own.labels, own.noise) == ((URIRef("http://e/name"),), (URIRef("http://e/"),))
    assert URIRef("http://e/x") in own.excluded_predicates


@pytest.mark.parametrize(
    "text", [*read_table(QUERIES.with_name("unusable_vocabularies.jsonl")), None]
)
def test_a_vocabulary_that_cannot_be_used_is_said(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "own.json"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    with pytest.raises(SettingError, match=r"own\.json") as caught:
        open_kg("films", vocabulary=str(file))
    assert "dbpedia" in caught.value.hint


def test_both_can_be_named_on_the_command_line(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = engine(SIGNS["virtuoso"])
    options = ["--dialect", "generic", "--vocabulary", "dbpedia"]
    assert main(["ask", "--kg", fake.url, *options, "Where was Ada Lovelace born?"]) == 0
    assert not any("bif:" in query for query in fake.asked)
    assert any("alternativeName" in query for query in fake.asked)
    assert main(["doctor", "--kg", fake.url]) in (0, 1)
    assert "virtuoso (probed)" in capsys.readouterr().out
