"""What reaches an engine: only queries that read, and only in the forms that harmless texts give.

Whoever wrote it, a person, a model, a run file or a label.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib
from page import press, settle
from page import text as read
from rdflib import RDFS, Literal, URIRef
from small import DIRECTED, chatty, films

import kgwb
from hostile.corpus import HALVES, NO_IRIS, SEED, texts
from hostile.runs import EACH, HARMLESS, bundles, hostile_run
from hostile.servers import Server, serving
from kgwb import Workbench, open_kg
from kgwb.cli import main
from kgwb.errors import GraphError, KgwbError, OverrideError, QueryError, QueryRefusedError
from kgwb.flow import CandidateQuery, to_data
from kgwb.kg.dialects import DIALECTS
from kgwb.kg.sparql import checked
from kgwb.kg.text import spelled
from kgwb.kg.transport import Reply
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.show import explain
from kgwb.systems.chatty_kg.records import Generated
from kgwb.ui.cell import AgentCell
from kgwb.ui.session import session_of

EVIL = "http://127.0.0.1:9/evil"
LABELS = texts(1_000)
ARGUMENTS = {
    "graphdb-connector": ":labels/label",
    "neptune": ":http://127.0.0.1:9",
    "wikidata": ":http://127.0.0.1:9/api",
}
"""Names that some engines' search needs."""


def shape(query: str) -> str:
    """A query with its strings, IRIs and numbers blanked, and what is said several times said once."""
    blank = re.sub(r"[?$]\w+", "?v", checked(query, allow_service=True).shape)
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
    ):
        text = re.sub(rf"({unit})(?:(?: (?:\||& &|\| \||UNION|,))? {unit})*", r"\1 ...", text)
    return text


# --- label search


@pytest.mark.parametrize("name", DIALECTS)
def test_no_label_changes_what_an_engine_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query for a hostile text has the form of that for as many harmless words of the same lengths."""
    sent: list[str] = []
    with serving() as server:
        kg: Any = open_kg(f"{server.url}/sparql", dialect=name + ARGUMENTS.get(name, ""))
        monkeypatch.setattr("kgwb.kg.endpoint.ask", lambda _, text, *more: sent.append(text) or NOTHING)
        shapes(kg, "once", sent)  # what is learnt of the graph before the first search
        asked = 0
        for text in LABELS if name in ("generic", "virtuoso") else LABELS[::10]:
            tame = " ".join(
                f"{'abcdefghijklmnopqrstuvwxyz'[n % 26]}{n}".ljust(len(word), "x")[: max(len(word), 1)]
                for n, word in enumerate(spelled(text))
            )
            hostile, harmless = shapes(kg, text, sent), shapes(kg, tame or "-", sent)
            assert hostile <= harmless, f"{text!r:.300}: {hostile - harmless}"
            asked += len(hostile)
        assert asked or name == "wikidata", "which is no SPARQL"
        assert not server.seen or name == "wikidata"


NOTHING = Reply(b'{"head": {"vars": []}, "results": {"bindings": []}, "boolean": false}', "text/json", False)


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
    vertices = {URIRef(f"http://example.org/v{n}"): text for n, text in enumerate(LABELS) if text.strip()}
    for vertex, text in vertices.items():
        made.add((vertex, RDFS.label, Literal(text)))
    kg = open_kg(made)
    names = kg.names(sorted(vertices))
    for vertex, text in vertices.items():
        assert names[vertex] == text.strip()
        found = kg.search(text, 600)
        assert found.how, text
        if spelled(text) and len(text) < 1_000:
            assert vertex in kg.exact([text]).get(text, ()), f"{text!r} is not found"


@pytest.mark.parametrize("text", [*HALVES, *NO_IRIS])
def test_what_no_query_can_say_is_said(text: str) -> None:
    with serving() as server:
        kg = open_kg(f"{server.url}/sparql", dialect="generic")
        names = kg.names([URIRef(text)] if text in NO_IRIS else [])
        assert all(isinstance(name, str) for name in names.values())
        try:
            kg.search(text, 5)
        except QueryError as error:
            assert "half a character" in str(error)
        assert_only_reading(server)


# --- generated queries


def test_no_text_changes_the_form_of_a_generated_query() -> None:
    harmless = {
        shape(query)
        for start in range(EACH)
        for query in queries_of(hostile_run(HARMLESS[start : start + EACH], start))
    }
    asked = 0
    for number, bundle in enumerate(bundles(LABELS)):
        run = hostile_run(bundle, number)
        for query in queries_of(run):
            asked += 1
            assert shape(query) in harmless, f"{query}\nof {bundle!r:.500}"
    assert asked > 1_000


def queries_of(run: Run) -> list[str]:
    return [call.request["query"] for call in run.calls.values() if "query" in call.request]


def test_rules_make_nothing_of_hostile_questions() -> None:
    """The whole pipeline with `rules`, on the sample graph: an answer, or that there is none."""
    bench = Workbench(open_kg("films"), "rules")
    for text in LABELS[::4]:
        if len(text) > 2_000 or not text.strip():
            continue
        run = bench.begin(f"Who directed {text}?")
        bench.forget()
        try:
            run.go()
        except KgwbError as error:
            assert run.status == "failed", error
        for query in queries_of(run):
            assert_reads(query)


def test_prompts_are_filled_once() -> None:
    """No placeholder inside a value is filled, and no value begins a message of its own."""
    for number, bundle in enumerate(bundles(LABELS)):
        run = hostile_run(bundle, number)
        for call in run.calls.values():
            if call.kind != "model":
                continue
            messages = call.request["content"]["messages"]
            assert [role for role, _ in messages] == ["system", "user"]
            told = messages[1][1]
            if call.request["task"].endswith("qir"):
                assert run["qir"].inputs["question"].strip() in told
            for braces in ("{{question}}", "{{entity}}", "{{candidates}}"):
                assert told.count(braces) >= run.question.count(braces) * ("qir" in call.request["task"])


# --- what would change, load, or ask elsewhere

WRITES = (
    "INSERT DATA {{ <a:a> <a:b> <a:c> }}",
    "DELETE DATA {{ <a:a> <a:b> <a:c> }}",
    "DELETE WHERE {{ ?s ?p ?o }}",
    "INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o }}",
    "WITH <a:g> DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}",
    "LOAD <{evil}>",
    "LOAD SILENT <{evil}> INTO GRAPH <a:g>",
    "CLEAR ALL",
    "CLEAR DEFAULT",
    "DROP ALL",
    "DROP SILENT GRAPH <a:g>",
    "CREATE GRAPH <a:g>",
    "COPY DEFAULT TO <a:g>",
    "MOVE <a:g> TO DEFAULT",
    "ADD <a:g> TO <a:h>",
)
ELSEWHERE = (
    "SELECT * {{ SERVICE <{evil}> {{ ?s ?p ?o }} }}",
    "SELECT * {{ SERVICE SILENT <{evil}> {{ ?s ?p ?o }} }}",
    "ASK {{ SERVICE ?where {{ ?s ?p ?o }} }}",
    "CONSTRUCT {{ ?s ?p ?o }} WHERE {{ SERVICE <{evil}> {{ ?s ?p ?o }} }}",
    "DESCRIBE ?s WHERE {{ SERVICE <{evil}> {{ ?s ?p ?o }} }}",
    "SELECT * {{ {{ SELECT * {{ SERVICE <{evil}> {{ ?s ?p ?o }} }} }} }}",
    "SELECT * {{ ?s ?p ?o FILTER EXISTS {{ SERVICE <{evil}> {{ ?s ?p ?o }} }} }}",
    "SELECT * {{ ?s ?p ?o MINUS {{ SERVICE <{evil}> {{ ?s ?p ?o }} }} }}",
    "SELECT * {{ OPTIONAL {{ SERVICE <{evil}> {{ ?s ?p ?o }} }} }}",
    "PREFIX service: <{evil}> SELECT * {{ SERVICE service: {{ ?s ?p ?o }} }}",
    "PREFIX e: <{evil}> SELECT * {{ SERVICE e: {{ ?s ?p ?o }} }}",
    "BASE <{evil}> SELECT * {{ SERVICE <> {{ ?s ?p ?o }} }}",
    "SELECT * {{ ?s ?p ?o }} ; {write}",
    "SELECT * {{ ?s ?p ?o }} {write}",
    "{write} ; SELECT * {{ ?s ?p ?o }}",
    "SELECT * {{ SERVICE <tag:stardog:api:search:textMatch> {{ ?s ?p ?o }} }}",
    "SELECT * {{ SERVICE <http://wikiba.se/ontology#mwapi> {{ ?s ?p ?o }} }}",
)
WORDS = "SERVICE SILENT INSERT DELETE LOAD CLEAR DROP CREATE COPY MOVE ADD WITH DATA".split()


def _between(sign: str) -> Any:
    return lambda query, chance: query.replace(" ", sign)


DISGUISES: dict[str, Any] = {
    "as it is": lambda query, chance: query,
    "lower case": lambda query, chance: re.sub(r"\b[A-Z]{3,}\b", lambda word: word[0].lower(), query),
    "mixed case": lambda query, chance: re.sub(
        r"\b[A-Z]{3,}\b", lambda word: "".join(chance.choice((c, c.lower())) for c in word[0]), query
    ),
    "comments": _between(" # SELECT * { ?s ?p ?o }\n"),
    "comments that end at a carriage return": _between(" # \r"),
    "comments with quotes": _between(" #'\"\n"),
    "line ends": _between("\r\n"),
    "tabs": _between("\t"),
    "form feeds": _between("\x0c"),
    "line separators": _between("\u2028"),
    "no-break spaces": _between("\xa0"),
    "zero-width spaces": _between("\u200b "),
    "escaped letters": lambda query, chance: _words(query, lambda word: f"\\u{ord(word[0]):04x}{word[1:]}"),
    "long escapes": lambda query, chance: _words(query, lambda word: f"{word[:-1]}\\U{ord(word[-1]):08X}"),
    "wide letters": lambda query, chance: _words(
        query, lambda word: "".join(chr(ord(c) + 0xFEE0) for c in word)
    ),
    "homoglyphs": lambda query, chance: _words(query, lambda word: word.replace("E", "Е").replace("O", "О")),
    "no spaces": lambda query, chance: re.sub(r"\s*([{}<>;])\s*", r"\1", query),
    "after a string": lambda query, chance: f'SELECT * {{ ?s ?p "#" }} {query}',
    "after a string with a quote": lambda query, chance: f"""SELECT * {{ ?s ?p '"', "'" . {query} }}""",
    "inside a long string that ends": lambda query, chance: (
        f'SELECT * {{ ?s ?p """a"""" . {query} . ?a ?b """" }}'
    ),
    "after an IRI with a number sign": lambda query, chance: f"SELECT * {{ ?s <a:#> ?o . {query} }}",
    "after less-than": lambda query, chance: f"SELECT * {{ ?s ?p ?o FILTER(?a<?b) {query} FILTER(?a>?b) }}",
    "after less-than and a quote": lambda query, chance: (
        f"SELECT * {{ FILTER(?a<?b&&'>'='\"') {query} ?s ?p '\"' }}"
    ),
    "as a subquery": lambda query, chance: f"SELECT * {{ {{ {query} }} }}",
    "after an escaped quote": lambda query, chance: f'SELECT * {{ ?s ?p "a\\u0022 . {query} . ?a ?b "b" }}',
    "after a backslash": lambda query, chance: f'SELECT * {{ ?s ?p "\\\\" . {query} . ?a ?b "" }}',
    "after a parameter": lambda query, chance: f"SELECT * {{ ?s ?p ?o }}&update={query}",
    "with a mark before": lambda query, chance: f"\ufeff{query}",
    "with a NUL before": lambda query, chance: f"\x00{query}",
    "with a NUL inside": lambda query, chance: query.replace(" ", " \x00", 1),
    "after a prefix": lambda query, chance: f"PREFIX service: <a:b> {query}",
    "in a pragma": lambda query, chance: f'DEFINE input:inference "x" {query}',
    "after a statement": lambda query, chance: f"ASK {{}} ; {query}",
    "after the end": lambda query, chance: f"SELECT * {{ ?s ?p ?o }} VALUES ?s {{ <a:a> }} {query}",
}


def _words(query: str, change: Any) -> str:
    return re.sub(r"\b(" + "|".join(WORDS) + r")\b", lambda word: change(word[0]), query)


def forbidden() -> Iterator[str]:
    """Every forbidden statement in every disguise; those that the disguise makes harmless are among them."""
    chance = random.Random(SEED)
    statements = [
        one.format(evil=EVIL, write=WRITES[n % len(WRITES)].format(evil=EVIL))
        for n, one in enumerate((*WRITES, *ELSEWHERE))
    ]
    yield from dict.fromkeys(
        disguise(one, chance) for one, disguise in product(statements, DISGUISES.values())
    )


FORBIDDEN = tuple(forbidden())


def test_nothing_but_reading_reaches_an_engine() -> None:
    """In all forms, by every method of a graph, on an endpoint and on a local graph."""
    assert len(FORBIDDEN) > 700
    local, refused = films(), 0
    before = len(local.store)  # type: ignore[attr-defined]
    with serving() as server:
        kg = open_kg(f"{server.url}/sparql?default-graph-uri=a:g", dialect="generic")
        for query in FORBIDDEN:
            for graph in (kg, local):
                for ask in (
                    graph.select,
                    graph.ask,
                    graph.construct,
                    lambda text, on=graph: explain.executed(on, text),
                ):
                    try:
                        ask(query)
                    except (QueryError, QueryRefusedError) as error:
                        refused += 1
                        assert error.message
                    except GraphError as error:
                        assert "no SPARQL" in str(error) or "sent" in str(error), error
        assert_only_reading(server)
    assert len(local.store) == before  # type: ignore[attr-defined]
    assert refused > 0.9 * 8 * len(FORBIDDEN), "nearly all are refused; a disguise may make one harmless"


def test_what_a_person_types_in_a_widget_does_not_reach_it() -> None:
    with serving() as server:
        run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
        fork = run.fork(kg=open_kg(f"{server.url}/sparql", dialect="generic"))
        cell = AgentCell(session_of(run), "query_generator")
        graph = run.graph
        assert graph is not None
        size = len(graph.store)  # type: ignore[attr-defined]
        for query in FORBIDDEN[::25]:
            press(cell, "Run query", sparql=query)
            settle(cell.asking)
            assert "Failed" in read(cell) or "row" in read(cell)
        assert len(graph.store) == size  # type: ignore[attr-defined]
        assert fork.graph is not None
        assert_only_reading(server)


def overridden(query: str) -> Generated:
    return Generated((CandidateQuery(query, (("<a:a>", "<a:b>", "?person"),), ("director",), 0.9),), 1)


@pytest.mark.parametrize("patterns", [True, False], ids=["in the patterns", "as the query"])
def test_what_is_put_in_by_hand_does_not_reach_it(patterns: bool) -> None:
    """A stranger's run file may hold such an override, and be opened with a graph."""
    recorded = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    with serving() as server:
        kg = open_kg(f"{server.url}/sparql", dialect="generic")
        for query in FORBIDDEN[::20]:
            made = overridden(query)
            if patterns:
                hidden = {"patterns": ((query, "<a:b>", "?person"),), "filters": query}
                made = Generated((replace(made.queries[0], sparql="SELECT ?person { }", **hidden),), 1)
            live = recorded.fork().fork(kg=kg)
            live.replace("query_generator", made)
            chosen = {"queries": [to_data(one) for one in made.queries], "predicates": ["director"]}
            live.replace("predicate_selection", chosen)
            with suppress(GraphError, OverrideError):
                live.go()
            assert_only_reading(server)


def test_a_run_file_with_a_forbidden_override_asks_nothing(tmp_path: Path) -> None:
    path = chatty("Who directed Arrival?", Scripted(DIRECTED)).go().save(tmp_path / "run.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    calls = [line for line in lines if line.startswith('{"call"')]
    with serving() as server:
        header = json.loads(lines[0]) | {"source": f"{server.url}/sparql"}
        kg = open_kg(f"{server.url}/sparql", dialect="generic")
        for query in FORBIDDEN[::40]:
            queries = [to_data(overridden(query).queries[0])]
            made = {"step": "query_generator", "value": {"queries": queries, "before_truncation": 1}}
            chosen = {
                "step": "predicate_selection",
                "value": {"queries": queries, "predicates": ["director"]},
            }
            overrides = [json.dumps({"override": one}) + "\n" for one in (made, chosen)]
            path.write_text("".join([json.dumps(header) + "\n", *calls, *overrides]))
            kgwb.load_run(path)
            assert server.seen == [], "loading asks nobody"
            with suppress(KgwbError):
                kgwb.load_run(path, kg=kg, model="rules")
            assert_only_reading(server)
            server.seen.clear()


def test_what_a_model_says_does_not_reach_it() -> None:
    with serving() as server:
        kg = open_kg(f"{server.url}/sparql", dialect="generic")
        for query in FORBIDDEN[::15]:
            said = {
                "entities": [query],
                "unknowns": ["?x"],
                "target": "?x } " + query,
                "question_type": "list",
                "beyond": [],
                "triples": [{"subject": query, "predicate": query, "object": f"?x {query}"}],
            }
            model = Scripted(lambda request, said=said: said)
            with suppress(KgwbError):
                chatty(query, model, kg).go()
        assert server.seen
        assert_only_reading(server)


def test_what_the_command_line_is_given_does_not_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        for query in FORBIDDEN[::60]:
            question = query.replace("\x00", "").strip() or "?"
            main(["ask", "--kg", f"{server.url}/sparql", "--", question])
        assert server.seen
        assert_only_reading(server)
    capsys.readouterr()


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
