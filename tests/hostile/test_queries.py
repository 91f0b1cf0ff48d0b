"""Only queries that read reach an engine, and only in the forms that harmless texts give.

This holds whether a query comes from a person, a model, a run file or a label.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib
from rdflib import RDFS, Literal, URIRef
from small import DIRECTED, chatty, films

import kgwb
from hostile.corpus import FORBIDDEN as STATEMENTS
from hostile.corpus import SEED, texts
from hostile.runs import EACH, HARMLESS, bundles, bundles_with_long_texts, hostile_run
from hostile.servers import Server, serving
from kgwb import open_kg
from kgwb.errors import GraphError, KgwbError, QueryError, QueryRefusedError
from kgwb.kg.dialects import DIALECTS
from kgwb.kg.label_search import lowercase_words
from kgwb.kg.queries import CandidateQuery
from kgwb.kg.responses import EndpointResponse
from kgwb.kg.sparql import validate_query
from kgwb.llm import Scripted
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.show.explain import execute_query

LABELS = texts(1_000)
ARGUMENTS = {
    "graphdb-connector": ":labels/label",
    "neptune": ":http://127.0.0.1:9",
    "wikidata": ":http://127.0.0.1:9/api",
}
"""Names that some engines' search needs."""


def shape(query: str) -> str:
    """A query with its strings, IRIs and numbers blanked, and what is said several times said once."""
    blank = re.sub(r"[?$]\w+", "?v", validate_query(query, allow_service=True).skeleton)
    text = " ".join(re.findall(r'"s"|<%>|\?v|@[\w-]+|\w+|\S', re.sub("1e0", "1", blank)))
    for unit in (
        r"(?:<%>|\?v) <%> (?:<%>|\?v) \.",
        r"FILTER \( \?v ! = <%> \)",
        r'CONTAINS \( LCASE \( STR \( \?v \) \) , "s" \)',
        r'"s"(?: @[\w-]+)?',
        "<%>",
        r"\?v",
        r"\{ [^{}]* \}",
        r"\{ SELECT [^{}]*\{ [^{}]* \}[^{}]* \}",
        r"\{ \{ SELECT [^{}]*\{ [^{}]* \}[^{}]* \}[^{}]* \}",
    ):
        text = re.sub(rf"({unit})(?:(?: (?:\||& &|\| \||UNION|,))? {unit})*", r"\1 ...", text)
    # what the predicates at an end are asked with: a vertex, a text, or a sample of what paths lead to
    text = re.sub(
        r'\{ SELECT DISTINCT \?v \.\.\. WHERE \{ [?v<%>"s. ]+ \} \.\.\. LIMIT 1 \}', "(s)", text
    )
    text = re.sub(r"\{ SELECT DISTINCT \?v \.\.\. WHERE \{ \(s\) \.\.\. \} \.\.\. \}", "(s)", text)
    ends = r'\{ (?:<%>|\?v) \.\.\. (?:\?v|"s") \.\.\. \}|\(s\)(?: \.\.\.)? \{ \?v \.\.\. \}(?: \.\.\.)?'
    text = re.sub(rf"\{{ (?:{ends}) \}}|{ends}", "(end)", text)
    text = re.sub(r"\(end\)(?: \.\.\.)?(?: UNION \(end\))*", "(end)", text)
    # an example of a predicate has the ends of one triple or of two, each an IRI, a text or a variable
    return re.sub(r'(\( (?:"s"|<%>|\?v) \.\.\. AS \?v \.\.\. \) ?)+', "(*) ", text)


# --- label search


@pytest.mark.parametrize("name", DIALECTS)
def test_no_label_changes_what_an_engine_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query for a hostile text has the form of that for as many harmless words of the same lengths."""
    sent: list[str] = []
    with serving() as server:
        kg: Any = open_kg(f"{server.url}/sparql", dialect=name + ARGUMENTS.get(name, ""))
        monkeypatch.setattr(
            "kgwb.kg.sparql_client.send_query", lambda _, text, *more: sent.append(text) or NOTHING
        )
        shapes(kg, "once", sent)  # what is learnt of the graph before the first search
        asked = 0
        for text in LABELS[:: 2 if name in ("generic", "virtuoso") else 10]:
            tame = " ".join(
                f"{'abcdefghijklmnopqrstuvwxyz'[n % 26]}{n}".ljust(len(word), "x")[
                    : max(len(word), 1)
                ]
                for n, word in enumerate(lowercase_words(text))
            )
            hostile, harmless = shapes(kg, text, sent), shapes(kg, tame or "-", sent)
            assert hostile <= harmless, f"{text!r:.300}: {hostile - harmless}"
            asked += len(hostile)
        assert asked or name == "wikidata", "the search of wikidata is not SPARQL"
        assert not server.seen or name == "wikidata"


NOTHING = EndpointResponse(
    b'{"head": {"vars": []}, "results": {"bindings": []}, "boolean": false}', "text/json", False
)


def shapes(kg: Any, text: str, sent: list[str]) -> set[str]:
    sent.clear()
    try:
        kg.search(text, 5)
        kg.exact([text])
    except GraphError as error:
        assert "half a character" in str(error) or "127.0.0.1:9" in str(error), error
    return {shape(query) for query in sent}


def test_every_label_is_found_and_read_as_it_was_written() -> None:
    made = rdflib.Graph()
    vertices = {
        URIRef(f"http://example.org/v{n}"): text for n, text in enumerate(LABELS) if text.strip()
    }
    for vertex, text in vertices.items():
        made.add((vertex, RDFS.label, Literal(text)))
    kg = open_kg(made)
    names = kg.names(sorted(vertices))
    for vertex, text in vertices.items():
        assert names[vertex] == text.strip()
        found = kg.search(text, 600)
        assert found.how, text
        if lowercase_words(text) and len(text) < 1_000:
            assert vertex in kg.exact([text]).get(text, ()), f"{text!r} is not found"


# --- generated queries


def test_no_text_changes_the_form_of_a_generated_query() -> None:
    harmless = {
        shape(query)
        for start in range(EACH)
        for query in queries_of(hostile_run(HARMLESS[start : start + EACH], start))
    }
    for number, bundle in enumerate(bundles_with_long_texts()):
        harmless.update(map(shape, queries_of(hostile_run(bundle, number))))
    asked = 0
    for number, bundle in enumerate(bundles(LABELS)):
        for query in queries_of(hostile_run(bundle, number)):
            asked += 1
            assert shape(query) in harmless, f"{query}\nof {bundle!r:.500}"
    assert asked > 1_000


def queries_of(run: Run) -> list[str]:
    return [call.request["query"] for call in run.calls.values() if "query" in call.request]


# --- what would change, load, or ask elsewhere

WORDS = "SERVICE SILENT INSERT DELETE LOAD CLEAR DROP CREATE COPY MOVE ADD WITH DATA".split()


CHANCE = random.Random(SEED)


def between(sign: str) -> Callable[[str], str]:
    return lambda query: query.replace(" ", sign)


def words(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda query: re.sub(rf"\b({'|'.join(WORDS)})\b", lambda word: change(word[0]), query)


def capitals(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda query: re.sub(r"\b[A-Z]{3,}\b", lambda word: change(word[0]), query)


DISGUISES: dict[str, str | Callable[[str], str]] = {
    "as it is": "%s",
    "lower case": capitals(str.lower),
    "mixed case": capitals(lambda word: "".join(CHANCE.choice((c, c.lower())) for c in word)),
    "comments": between(" # SELECT * { ?s ?p ?o }\n"),
    "comments that end at a carriage return": between(" # \r"),
    "comments with quotes": between(" #'\"\n"),
    "line ends": between("\r\n"),
    "tabs": between("\t"),
    "form feeds": between("\x0c"),
    "line separators": between("\u2028"),
    "no-break spaces": between("\xa0"),
    "zero-width spaces": between("\u200b "),
    "escaped letters": words(lambda word: f"\\u{ord(word[0]):04x}{word[1:]}"),
    "long escapes": words(lambda word: f"{word[:-1]}\\U{ord(word[-1]):08X}"),
    "wide letters": words(lambda word: "".join(chr(ord(c) + 0xFEE0) for c in word)),
    "homoglyphs": words(lambda word: word.replace("E", "Е").replace("O", "О")),
    "no spaces": lambda query: re.sub(r"\s*([{}<>;])\s*", r"\1", query),
    "after a string": 'SELECT * { ?s ?p "#" } %s',
    "after a string with a quote": """SELECT * { ?s ?p '"', "'" . %s }""",
    "inside a long string that ends": 'SELECT * { ?s ?p """a"""" . %s . ?a ?b """" }',
    "after an IRI with a number sign": "SELECT * { ?s <a:#> ?o . %s }",
    "after less-than": "SELECT * { ?s ?p ?o FILTER(?a<?b) %s FILTER(?a>?b) }",
    "after less-than and a quote": "SELECT * { FILTER(?a<?b&&'>'='\"') %s ?s ?p '\"' }",
    "as a subquery": "SELECT * { { %s } }",
    "after an escaped quote": 'SELECT * { ?s ?p "a\\u0022 . %s . ?a ?b "b" }',
    "after a backslash": 'SELECT * { ?s ?p "\\\\" . %s . ?a ?b "" }',
    "after a parameter": "SELECT * { ?s ?p ?o }&update=%s",
    "with a mark before": "\ufeff%s",
    "with a NUL before": "\x00%s",
    "with a NUL inside": lambda query: query.replace(" ", " \x00", 1),
    "after a prefix": "PREFIX service: <a:b> %s",
    "in a pragma": 'DEFINE input:inference "x" %s',
    "after a statement": "ASK {} ; %s",
    "after the end": "SELECT * { ?s ?p ?o } VALUES ?s { <a:a> } %s",
}
FORBIDDEN = tuple(
    dict.fromkeys(
        disguise % statement if isinstance(disguise, str) else disguise(statement)
        for statement, disguise in product(STATEMENTS, DISGUISES.values())
    )
)
"""Every forbidden statement in every disguise; those that the disguise makes harmless are among them."""


@pytest.fixture
def server() -> Iterator[Server]:
    """An engine; nothing but reading may have reached it in the end."""
    with serving() as made:
        yield made
        assert_only_reading(made)


def test_nothing_but_reading_reaches_an_engine(server: Server) -> None:
    """In all forms, by every method of a graph, on an endpoint and on a local graph."""
    assert len(FORBIDDEN) > 700
    local, refused = films(), 0
    before = len(local.store)  # type: ignore[attr-defined]
    kg = open_kg(f"{server.url}/sparql?default-graph-uri=a:g", dialect="generic")
    for query, graph in product(FORBIDDEN, (kg, local)):
        for ask in (graph.select, graph.ask, graph.construct, partial(execute_query, graph)):
            try:
                ask(query)
            except (QueryError, QueryRefusedError) as error:
                refused += 1
                assert error.message
            except GraphError as error:
                assert "no SPARQL" in str(error) or "sent" in str(error), error
    assert len(local.store) == before  # type: ignore[attr-defined]
    assert refused > 0.9 * 8 * len(FORBIDDEN), (
        "nearly all are refused; a disguise may make one harmless"
    )


def overrides_with(query: str, place: int) -> str:
    """The lines of a run file that put a query in the place of two agents' outputs.

    It is the query itself in every second place, else it is in the parts that a query is made of.
    """
    made = CandidateQuery(query, (("<a:a>", "<a:b>", "?person"),), ("director",), 0.9)
    if place % 2:
        patterns = ((query, "<a:b>", "?person"),)
        made = replace(made, sparql="SELECT ?person { }", patterns=patterns, filters=query)
    queries = [to_data(made)]
    values = {
        "query_generator": {"queries": queries, "before_truncation": 1},
        "predicate_selection": {"queries": queries, "predicates": ["director"]},
    }
    overrides = [{"override": {"step": step, "value": value}} for step, value in values.items()]
    return "".join(json.dumps(override) + "\n" for override in overrides)


def test_a_run_file_with_a_forbidden_override_asks_nothing(tmp_path: Path, server: Server) -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    path = run.save(tmp_path / "run.jsonl")
    kg = open_kg(f"{server.url}/sparql", dialect="generic")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    header = json.loads(lines[0]) | {"source": f"{server.url}/sparql"}
    calls = [line for line in lines if line.startswith('{"call"')]
    for place, query in enumerate(FORBIDDEN[::15]):
        entries = [json.dumps(header) + "\n", *calls, overrides_with(query, place)]
        path.write_text("".join(entries))
        seen = len(server.seen)
        kgwb.load_run(path)
        assert len(server.seen) == seen, "loading a run file sends no query"
        with suppress(KgwbError):
            kgwb.load_run(path, kg=kg, model="rules")


CHANGING = set("SERVICE INSERT DELETE LOAD CLEAR DROP CREATE".split())
PARAMETERS = set("query default-graph-uri timeout format search language action type limit".split())


def assert_only_reading(server: Server) -> None:
    """Every request is a query (never an update), and every query reads, for Oxigraph as for a plain eye."""
    for seen in {str(one): one for one in server.seen}.values():
        fields = seen.fields
        assert set(fields) <= PARAMETERS, seen
        assert seen.method in ("GET", "POST")
        for query in fields.get("query", []):
            assert_reads(query)


def assert_reads(query: str) -> None:
    pyoxigraph.Store().query(query, prefixes={})  # raises for an update
    strings = r"""\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>"""
    bare = re.sub(strings, " x ", query, flags=re.S)
    words = set(re.findall(r"(?<![?$:\w])[A-Za-z]+(?![\w:])", bare))
    assert not {word.upper() for word in words} & CHANGING, query
