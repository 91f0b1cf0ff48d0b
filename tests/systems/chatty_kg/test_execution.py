"""Query execution: one answer of all results, each value with the triples it stands on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import rdflib
from rdflib import Literal
from small import FILMS, PAPER, alone, chatty, films, iri, qir

from kgwb import open_kg
from kgwb.flow import Answer, Candidate, CandidateQuery, Kind, Link
from kgwb.kg import Graph
from kgwb.kg.algebra import conjunction
from kgwb.llm import Scripted
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.queries import execute
from kgwb.systems.chatty_kg.records import QIR, Fact, Linked, LinkedRelation, RankedPredicate, Selection

ANY = (RankedPredicate(iri("r"), "r", "out", 1.0),)
GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")


def query(*patterns: tuple[str, str, str], score: float = 1.0, ask: bool = False) -> CandidateQuery:
    """A query of patterns written ("dune", "director", "?x")."""
    full = tuple(
        tuple(end if end.startswith("?") else iri(end).n3() for end in pattern) for pattern in patterns
    )
    body = " ".join(f"{s} {p} {o} ." for s, p, o in full)
    head = "ASK" if ask else "SELECT DISTINCT ?x WHERE"
    names = tuple(pattern[1] for pattern in patterns)
    return CandidateQuery(f"{head} {{ {body} }}", full, names, score)  # type: ignore[arg-type]


def executed(
    *queries: CandidateQuery, kind: Kind = "list", settings: Settings | None = None, kg: Graph | None = None
) -> Any:
    """The answer of selected queries, and its run."""
    qir = QIR((Fact("A", "r", "?x"),), "" if kind == "boolean" else "?x", kind)
    linked = Linked((Link("A", Candidate(iri("a"), "A")),), (LinkedRelation(qir.facts[0], ANY),))
    selection = Selection(queries, ())
    answer, run, _ = alone(lambda run: execute(selection, qir, linked, run), kg=kg, settings=settings)
    return answer, run


def stands_on_the_graph(answer: Answer) -> bool:
    return all(value.support and all(triple in GRAPH for triple in value.support) for value in answer.values)


DIRECTED = query(("?x", "director", "denis"))
APART = f"FILTER(?x != {iri('dune').n3()}) "


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_values_come_by_label_with_their_triples(settings: Settings) -> None:
    answer, run = executed(DIRECTED, settings=settings)
    assert answer.labels == ("Arrival", "Dune", "Sicario")
    assert answer.values[0].support == ((iri("arrival"), iri("director"), iri("denis")),)
    assert stands_on_the_graph(answer)
    assert answer.queries == (DIRECTED.sparql,)
    assert run.totals.queries == 1


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_the_values_of_all_queries_are_united(settings: Settings) -> None:
    twice = query(("?x", "director", "?someone"), ("?x", "starring", "amy"), score=0.99)
    others = query(("?y", "author", "ted"), ("?x", "basedOn", "?y"), ("?x", "starring", "?x2"))
    answer, _ = executed(DIRECTED, others, twice, settings=settings)
    assert answer.labels == ("Arrival", "Dune", "Sicario")
    assert stands_on_the_graph(answer)
    assert (iri("story"), iri("author"), iri("ted")) in answer.values[0].support
    assert (iri("arrival"), iri("starring"), iri("amy")) in answer.values[0].support
    assert (iri("arrival"), iri("director"), iri("denis")) in answer.values[0].support


def test_every_value_of_a_long_join_stands_on_the_graph_and_a_literal_is_a_value_too() -> None:
    answer, _ = executed(query(("?f", "starring", "amy"), ("?f", "director", "?d"), ("?x", "director", "?d")))
    assert answer.labels == ("Arrival", "Dune", "Sicario")
    assert stands_on_the_graph(answer)
    assert all(len(value.support) >= 2 for value in answer.values)
    answer, _ = executed(query(("arrival", "runtime", "?x")))
    assert [(value.term, value.label) for value in answer.values] == [(Literal(116), "116")]
    assert stands_on_the_graph(answer)


# --- counts


@pytest.mark.parametrize(
    ("patterns", "settings", "labels", "support"),
    [
        (("?x", "director", "denis"), Settings(), ("3",), 3),
        (("?x", "director", "denis"), PAPER, ("Arrival", "Dune", "Sicario"), 3),  # nothing is counted
        (("denis", "numberOfChildren", "?x"), Settings(), ("3",), 1),  # a stored number
        (("lynch", "starring", "?x"), Settings(), (), 0),
    ],
)
def test_a_count_without_a_stored_number_is_counted(
    patterns: tuple[str, str, str], settings: Settings, labels: tuple[str, ...], support: int
) -> None:
    answer, _ = executed(query(patterns), kind="count", settings=settings)
    assert (answer.labels, len(answer.support)) == (labels, support)
    assert stands_on_the_graph(answer)
    assert bool(answer) == (answer.reason != "not in this graph: no selected query has rows")


def test_cut_results_are_counted_together_by_the_graph() -> None:
    answer, run = executed(DIRECTED, kind="count", kg=open_kg(GRAPH, row_limit=2))
    assert answer.labels == ("3",)
    assert "the result was cut at 2 rows" in run["execution"].notes
    starring = query(("?x", "starring", "amy"))
    answer, _ = executed(DIRECTED, starring, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("3",)  # Arrival is in both


@pytest.mark.parametrize(
    "typed",
    [
        "SELECT DISTINCT ?x\nWHERE {{ {body} }}",
        "select distinct ?x where {{ {body} }}",
        "SELECT DISTINCT ?x {{ {body} }}",
        "SELECT DISTINCT ?x WHERE {{ {body} }} LIMIT 200",
    ],
)
def test_a_cut_result_is_counted_however_its_query_is_written(typed: str) -> None:
    text = typed.format(body=f"{conjunction(DIRECTED.patterns)} {APART}")
    query = replace(DIRECTED, sparql=text, filters=APART)
    answer, _ = executed(query, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("2",)


def test_queries_that_differ_in_direction_alone_are_not_united() -> None:
    married = FILMS + ":lynch :influenced :denis . :ted :influenced :lynch ."
    out, back = query(("lynch", "influenced", "?x")), query(("?x", "influenced", "lynch"), score=0.98)
    assert executed(out, back, kg=films(married))[0].labels == ("Denis Villeneuve",)
    assert executed(out, back, kg=films(married), settings=PAPER)[0].labels == (
        "Denis Villeneuve",
        "Ted Chiang",
    )


# --- booleans


@pytest.mark.parametrize("settings", [Settings(), PAPER])
@pytest.mark.parametrize(
    ("patterns", "truth", "support"),
    [
        ([("arrival", "director", "denis")], "true", 1),
        ([("arrival", "director", "?p"), ("?p", "birthPlace", "gentilly")], "true", 2),
        ([("arrival", "director", "lynch")], "false", 0),
    ],
)
def test_a_yes_stands_on_triples_and_a_no_is_an_answer(
    patterns: list[tuple[str, str, str]], truth: str, support: int, settings: Settings
) -> None:
    answer, _ = executed(query(*patterns, ask=True), kind="boolean", settings=settings)
    assert (answer.labels, len(answer.support), bool(answer)) == ((truth,), support, True)
    assert all(triple in GRAPH for triple in answer.support)
    assert answer.values[0].term == Literal(truth == "true")


def test_one_true_query_is_enough() -> None:
    no, yes = query(("arrival", "basedOn", "amy"), ask=True), query(("arrival", "starring", "amy"), ask=True)
    answer, run = executed(no, yes, no, kind="boolean")
    assert (answer.labels, answer.queries) == (("true",), (no.sparql, yes.sparql))
    assert run.totals.queries == 2


# --- nothing found


@pytest.mark.parametrize("kind", ["list", "count", "boolean"])
@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_query_is_not_in_this_graph(kind: Kind, settings: Settings) -> None:
    answer, _ = executed(kind=kind, settings=settings)
    assert not answer
    assert str(answer) == "not in this graph: no predicate fits the question"


def test_no_rows_is_not_in_this_graph() -> None:
    nothing = query(("lynch", "starring", "?x"))
    answer, _ = executed(nothing)
    assert (answer.values, answer.queries) == ((), (nothing.sparql,))
    assert answer.reason == "not in this graph: no selected query has rows"


@pytest.mark.parametrize(
    ("vertex", "ranked", "reason"),
    [(None, (), "no vertex for A"), (Candidate(iri("a"), "A"), (), "no predicate for ⟨A, r, ?x⟩")],
)
def test_what_is_missing_is_named(vertex: Candidate | None, ranked: Any, reason: str) -> None:
    qir = QIR((Fact("A", "r", "?x"),), "?x")
    linked = Linked((Link("A", vertex),), (LinkedRelation(qir.facts[0], ranked),))
    answer, _, _ = alone(lambda run: execute(Selection((), ()), qir, linked, run))
    assert answer.reason == f"not in this graph: {reason}"


def test_a_stored_false_is_no_yes() -> None:
    graph = rdflib.Graph().parse(
        data=FILMS + ":arrival :subtitled false . :sicario :subtitled true .", format="turtle"
    )
    for film, truth in (("Arrival", "false"), ("Sicario", "true")):
        script = {"chatty_kg/qir": qir(f"{film} | subtitled | ?x", target="?x")}
        run = chatty(f"Is {film} subtitled?", Scripted(script), open_kg(graph)).go()
        assert run.answer is not None
        assert run.answer.labels == (truth,)
