"""Query generator: joins that lose no triple, order and truncation."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import URIRef
from small import EX, PAPER, alone, films, iri

from kgwb import profile
from kgwb.flow import Candidate, Direction, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.queries import generate
from kgwb.systems.chatty_kg.records import QIR, Fact, Generated, Linked, LinkedRelation, RankedPredicate


def predicate(name: str, similarity: float = 1.0, direction: Direction = "out") -> RankedPredicate:
    return RankedPredicate(iri(name), name, direction, similarity)


def generated(
    facts: list[tuple[str, str, str, list[RankedPredicate]]],
    *,
    target: str = "?x",
    kind: Any = "list",
    unlinked: frozenset[str] = frozenset(),
    settings: Settings | None = None,
) -> Generated:
    """Queries of facts with their predicates; the entity "dune" is linked to :dune, unless ``unlinked``."""
    relations = tuple(LinkedRelation(Fact(s, r, o), tuple(ranked)) for s, r, o, ranked in facts)
    qir = QIR(tuple(relation.fact for relation in relations), target, kind)
    vertices = {name: None if name in unlinked else Candidate(iri(name), name) for name in qir.entities}
    linked = Linked(tuple(Link(name, vertex) for name, vertex in vertices.items()), relations)
    result: Generated = alone(lambda run: generate(qir, linked, run), settings=settings)[0]
    return result


def short(generated: Generated) -> list[str]:
    """The queries without the namespace, for reading."""
    return [
        query.sparql.replace(f"<{EX}", "").replace(">", "").replace(" }", "}") for query in generated.queries
    ]


DIRECTOR, STARRING, PLACE = [predicate("director")], [predicate("starring")], [predicate("birthPlace")]


@pytest.mark.parametrize(
    ("facts", "body"),
    [
        (["dune director ?x"], "dune director ?x ."),
        (["dune director ?p", "?p birthPlace ?x"], "dune director ?p . ?p birthPlace ?x ."),
        # what the reference code loses: parallel relations, cycles, joins at an entity, branches
        (["dune director ?x", "dune starring ?x"], "dune director ?x . dune starring ?x ."),
        (
            ["?x director ?y", "?y birthPlace ?z", "?z starring ?x"],
            "?x director ?y . ?y birthPlace ?z . ?z starring ?x .",
        ),
        (["?x director dune", "dune starring ?y"], "?x director dune . dune starring ?y ."),
        (
            ["?x director dune", "?x starring arrival", "?x birthPlace ?y"],
            "?x director dune . ?x starring arrival . ?x birthPlace ?y .",
        ),
    ],
)
@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_triple_is_lost(facts: list[str], body: str, settings: Settings) -> None:
    parts = [fact.split() for fact in facts]
    [query] = short(generated([(s, p, o, [predicate(p)]) for s, p, o in parts], settings=settings))
    assert body in query
    assert query.startswith("SELECT DISTINCT ?x WHERE { ")


def test_a_boolean_question_is_an_ask() -> None:
    facts = [("dune", "director", "denis", [predicate("director"), predicate("director", 1, "in")])]
    assert short(generated(facts, target="", kind="boolean")) == [
        "ASK { dune director denis .}",
        "ASK { denis director dune .}",
    ]


def test_the_best_score_comes_first_before_truncation() -> None:
    facts = [
        ("dune", "a", "?p", [predicate("a1", 0.9), predicate("a2", 0.8)]),
        ("?p", "b", "?x", [predicate("b1", 0.5), predicate("b2", 0.4), predicate("b3", 0.1)]),
    ]
    best = generated(facts, settings=profile("fast", query_num=3))
    assert [query.predicates for query in best.queries] == [("a1", "b1"), ("a2", "b1"), ("a1", "b2")]
    assert [query.score for query in best.queries] == [0.6708, 0.6325, 0.6]
    assert best.before_truncation == 6
    natural = generated(facts, settings=PAPER.changed(query_num=3))
    assert [query.predicates for query in natural.queries] == [("a1", "b1"), ("a1", "b2"), ("a1", "b3")]


def test_equal_scores_go_by_iri() -> None:
    facts = [("dune", "a", "?x", [predicate("z", 0.5), predicate("b", 0.5), predicate("b", 0.5, "in")])]
    assert [query.patterns[0] for query in generated(facts).queries] == [
        (iri("dune").n3(), iri("b").n3(), "?x"),
        ("?x", iri("b").n3(), iri("dune").n3()),
        (iri("dune").n3(), iri("z").n3(), "?x"),
    ]


def test_a_relation_without_predicate_gives_no_query_in_fast_and_is_left_out_in_paper() -> None:
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "?y", [])]
    assert generated(facts) == Generated((), 0)
    assert short(generated(facts, settings=PAPER)) == ["SELECT DISTINCT ?x WHERE { dune director ?x .}"]


def test_an_entity_without_vertex_is_a_variable() -> None:
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "xyzzy", PLACE)]
    [query] = generated(facts, unlinked=frozenset({"xyzzy"}), settings=PAPER).queries
    assert query.patterns[1][2].startswith("?unlinked")


def test_what_was_asked_about_is_no_answer_to_a_chain() -> None:
    facts = [("dune", "a", "?p", DIRECTOR), ("?x", "b", "?p", DIRECTOR)]
    [query] = generated(facts).queries
    assert f"FILTER(?x != {iri('dune').n3()})" in query.sparql
    [published] = generated(facts, settings=PAPER).queries
    assert "FILTER" not in published.sparql
    kg = films()
    values = {row[0] for row in kg.select(query.sparql).rows}
    assert (iri("dune") in values, iri("arrival") in values) == (False, True)


def test_same_queries_are_kept_once() -> None:
    same = RankedPredicate(URIRef(EX + "director"), "other", "out", 0.5)
    assert len(generated([("dune", "a", "?x", [predicate("director"), same])]).queries) == 1
