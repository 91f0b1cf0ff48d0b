"""Relation linking: ranked predicates in both directions, along the joins, and over nodes."""

from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal
from rdflib.namespace import RDF
from small import (
    BOATS,
    FILMS,
    PAPER,
    REFERENCE,
    TUGS,
    alone,
    answer_of,
    boats_asked,
    chatty,
    films,
    iri,
    qir,
)

from kgwb import open_kg, profile
from kgwb.bench.serve import make_answer_query
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.answers import Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.query_planning import generate_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.chatty_kg.relation_linking import link_relations, make_ranking_key


@pytest.mark.parametrize(
    "engine",
    [
        "file",
        pytest.param("oxigraph", marks=pytest.mark.long),
        pytest.param("virtuoso", marks=pytest.mark.long),
    ],
)
def test_a_kind_is_a_class_and_its_instances_are_those_of_its_subclasses_too(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "boats.ttl"
    file.write_text(BOATS)
    kg = open_kg(file if engine == "file" else request.getfixturevalue(engine).load(file))
    model = Scripted({"chatty_kg/qir": TUGS})
    run = chatty("Which tugs are at home in Oslo?", model, kg).go()
    answer = answer_of(run)
    assert (answer.labels, model.call_count()) == (("Brisk", "Gale"), 1)
    assert (iri("brisk"), RDF.type, iri("RiverTug")) in answer.support
    rows = {row[0] for row in kg.select(make_answer_query(run)).rows}
    assert rows == {iri("brisk"), iri("gale")}


def test_instances_give_the_candidates_of_the_other_triples_and_the_ontology_gives_none() -> None:
    run, _ = boats_asked("Which tugs are at home in Oslo?", TUGS)
    kind, home = (step.output for step in run.steps if step.agent == "relation_linking")
    [by_type] = kind.predicates  # no domain, no subclass, nothing that is a fact about the class
    assert (by_type.iri, by_type.classes) == (RDF.type, (iri("RiverTug"), iri("Tug")))
    assert {predicate.name for predicate in home.predicates} == {"home port", "owner"}


@pytest.mark.parametrize(
    ("question", "reply", "answers"),
    [
        ("Is Brisk a tug?", qir("Brisk | type | tug", kind="boolean"), ("true",)),
        ("Is Mary a tug?", qir("Mary | type | tug", kind="boolean"), ("false",)),
        ("Which pilot?", qir("?who | occupation | pilot", "?who | steers | Mary"), ("Ada",)),
        (
            "Who paints?",
            qir("?who | occupation | painter"),
            ("Ada",),
        ),  # no class but a vertex is called so
        *(
            ("Which tugs?", {**TUGS, "beyond": nothing}, ("Brisk", "Gale"))
            for nothing in ([], [" "], ["None."])
        ),
    ],
)
def test_a_type_or_an_occupation_may_be_a_class_or_a_vertex(
    question: str, reply: Any, answers: tuple[str, ...]
) -> None:
    run, model = boats_asked(question, reply)
    assert (answer_of(run).labels, model.call_count()) == (answers, 1)


VERTICES = {"Denis": "denis", "Amy": "amy", "Arrival": "arrival"}


def linked(
    *facts: str, settings: Settings | None = None, turtle: str = FILMS
) -> list[tuple[RankedPredicate, ...]]:
    """The predicates of facts written "Arrival | director | ?x"."""
    qir = QIR(tuple(Fact(*fact.split(" | ")) for fact in facts), "?x")
    links = tuple(
        Link(name, Candidate(iri(VERTICES[name]), name) if name in VERTICES else None)
        for name in qir.entities
    )
    relations, _, _ = alone(
        lambda run: link_relations(qir, links, run), kg=films(turtle), settings=settings
    )
    return [relation.predicates for relation in relations]


def shown(ranked: tuple[RankedPredicate, ...]) -> list[tuple[str, str]]:
    return [(predicate.name, predicate.direction) for predicate in ranked]


ALL = profile("fast", predicates_per_relation=50)


@pytest.mark.parametrize("settings", [ALL, PAPER])
def test_predicates_are_found_in_both_directions_as_the_subject_sees_them(
    settings: Settings,
) -> None:
    outgoing = ["birth place", "number of children"]
    if settings is PAPER:
        outgoing.append("label")
    [from_subject] = linked("Denis | directed | ?x", settings=settings)
    assert {*shown(from_subject)} == {("director", "in"), *((name, "out") for name in outgoing)}
    [from_object] = linked("?x | directed by | Denis", settings=settings)
    assert {*shown(from_object)} == {("director", "out"), *((name, "in") for name in outgoing)}


def test_excluded_predicates_are_left_out() -> None:
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> . :arrival owl:sameAs :dune ; rdfs:comment 'x' ."
    [relation] = linked("Arrival | what | ?x", settings=ALL, turtle=FILMS + owl)
    assert {*shown(relation)} == {
        (name, "out") for name in ("director", "runtime", "starring", "based on")
    }


CHAIN = ["Arrival | director | ?p", "?p | birth place | ?x"]


@pytest.mark.parametrize(
    ("facts", "settings", "best"),
    [
        (CHAIN, Settings(), [("director", "out"), ("birth place", "out")]),
        (CHAIN[::-1], Settings(), [("birth place", "out"), ("director", "out")]),
        (CHAIN, PAPER, [("director", "out"), ("birth place", "out")]),
        (CHAIN, REFERENCE, [("director", "out"), None]),  # nothing between two unknowns
        (CHAIN[:1] * 2, Settings(), [("director", "out")] * 2),
        (["Arrival | director | Denis"], Settings(), [("director", "out")]),
        (
            ["Amy | starring | ?f", "?f | director | ?p", "?p | birth place | ?x"],
            Settings(),
            [("starring", "in"), ("director", "out"), ("birth place", "out")],
        ),
        (["Nowhere | director | ?x"], Settings(), [None]),  # no vertex
        (["Nowhere | director | ?x"], PAPER, [None]),
    ],
)
def test_relations_are_linked_along_the_joins_in_any_order(
    facts: list[str], settings: Settings, best: list[Any]
) -> None:
    assert [next(iter(shown(ranked)), None) for ranked in linked(*facts, settings=settings)] == best


def test_the_join_sample_bounds_what_is_looked_at() -> None:
    turtle = FILMS + "".join(f":f{n} :director :denis ; :p{n} :x{n} ." for n in range(5))
    few, many = (
        linked("?f | director | Denis", "?f | p | ?x", settings=settings, turtle=turtle)[1]
        for settings in (ALL.with_changes(join_sample=1), ALL)
    )
    assert len(few) < len(many)


@pytest.mark.parametrize(
    ("facts", "is_asked"),
    [
        # Each predicate at Denis leads to something, as it was found there.
        (("Denis | directed | ?film", "?film | starring | ?x"), False),
        # From there several paths lead on, and a predicate of one need not follow another.
        (("Denis | directed | ?film", "?film | starring | ?y", "?y | birth place | ?x"), True),
    ],
)
def test_the_graph_is_asked_whether_a_path_leads_to_anything_only_where_that_is_open(
    facts: tuple[str, ...], is_asked: bool
) -> None:
    qir = QIR(tuple(Fact(*fact.split(" | ")) for fact in facts), "?x")
    links = (Link("Denis", Candidate(iri("denis"), "Denis")),)
    relations, run, _ = alone(lambda run: link_relations(qir, links, run), kg=films(FILMS))
    queries = [str(call.request.get("query")) for call in run.calls.values()]
    # Only the query about several paths numbers what it found.
    assert any("AS ?_i)" in query for query in queries) is is_asked
    assert all(relation.predicates for relation in relations)


def test_one_query_looks_in_both_directions_at_all_that_an_end_may_be() -> None:
    qir = QIR((Fact("Denis", "directed", "?film"), Fact("?film", "starring", "?x")), "?x")
    links = (Link("Denis", Candidate(iri("denis"), "Denis")),)
    settings = ALL.with_changes(joins_over_node=False)
    relations, run, _ = alone(
        lambda run: link_relations(qir, links, run), kg=films(FILMS), settings=settings
    )
    directions = {each.direction for relation in relations for each in relation.predicates}
    assert directions == {"in", "out"}
    selects = [call for call in run.calls.values() if call.kind == "select"]
    assert len(selects) == len(qir.facts)


def test_pairs_that_differ_in_the_way_onward_only_have_an_order() -> None:
    pairs = []
    for onward_direction in ("in", "out"):
        pairs.append(
            RankedPredicate(
                iri("a"), "a", "in", 0.5, onward=iri("b"), onward_direction=onward_direction
            )
        )
    backwards = [pairs[1], pairs[0]]
    assert sorted(pairs, key=make_ranking_key) == pairs
    assert sorted(backwards, key=make_ranking_key) == pairs


BOTH_WAYS = FILMS + ":denis :influenced :lynch . :lynch :influenced :denis ."


@pytest.mark.parametrize(
    ("relation", "ranked"),
    [
        ("director", [("director", "in", 1.0)]),  # in one direction only, so it is not lowered
        ("influenced", [("influenced", "out", 1.0), ("influenced", "in", 0.98)]),
        ("influencer", [("influenced", "in", 1.0), ("influenced", "out", 0.98)]),
    ],
)
def test_of_two_directions_the_one_that_the_wording_speaks_for_is_nearer(
    relation: str, ranked: list[tuple[str, str, float]]
) -> None:
    [found] = linked(f"Denis | {relation} | ?x", turtle=BOTH_WAYS)
    best = max(predicate.similarity for predicate in found)
    named = [
        (each.name, each.direction, round(each.similarity / best, 2))
        for each in found
        if each.name == ranked[0][0]
    ]
    assert named == ranked


def test_of_directions_that_count_alike_the_one_from_the_subject_comes_first() -> None:
    [found] = linked("Denis | influenced | ?x", turtle=BOTH_WAYS, settings=PAPER)
    assert shown(found)[:2] == [("influenced", "out"), ("influenced", "in")]


def test_a_literal_is_never_a_subject() -> None:
    qir = QIR((Fact("Arrival", "director", "?p"), Fact("3", "number of children", "?p")), "?p")
    links = (
        Link("Arrival", Candidate(iri("arrival"), "Arrival")),
        Link("3", None, value=Literal(3)),
    )
    relations, _, _ = alone(lambda run: link_relations(qir, links, run), settings=ALL)
    assert {direction for _, direction in shown(relations[1].predicates)} == {"in"}
    assert shown(relations[1].predicates)[0] == ("number of children", "in")


def test_a_link_to_several_vertices_restricts_its_own_entity_alone() -> None:
    dunes = (Candidate(iri("dune"), "Dune"), Candidate(iri("lynchs_dune"), "Dune"))
    qir = QIR((Fact("Dune", "director", "?x"),), "?x")
    links = (
        Link("Dune", dunes[0], others=dunes[1:]),
        Link("no entity of this question", dunes[0], others=dunes[1:]),
    )

    def generate(run: Run) -> GeneratedQueries:
        linking = LinkingResult(links, link_relations(qir, links, run))
        return generate_queries(qir, linking, run)

    generated, _, _ = alone(generate)
    both = f"{iri('dune').n3()}, {iri('lynchs_dune').n3()}"
    [query, *_] = generated.queries
    assert query.filters == f"FILTER(?_any0 IN ({both})) "
    rows = films().select(query.sparql).rows
    assert {row[0] for row in rows} == {iri("denis"), iri("lynch")}


BEAM = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:denis :p1 :n1 ; :p2 :n2 ; :p3 :n3 ; :p4 :n4 ; :p5 :n5 .
:n1 :q1 :x1 ; :q2 :x2 ; :q3 :x3 . :n2 :q1 :x4 ; :q2 :x5 . :n3 :q4 :x6 . :n4 :q5 :x7 . :n5 :q4 :x8 .
:x1 :t :y .
"""
for number in range(1, 6):
    BEAM += f':p{number} rdfs:label "p" . :q{number} rdfs:label "q" . '


@pytest.mark.parametrize(("dropped", "queries"), [("", 1), (" ; :q2 :x5", 2)])
def test_the_graph_is_asked_about_paths_until_the_beam_is_full(dropped: str, queries: int) -> None:
    """Of the first ten of 25 paths five lead on, or four."""
    turtle = BEAM.replace(dropped, "")
    qir = QIR((Fact("Denis", "p", "?a"), Fact("?a", "q", "?b"), Fact("?b", "t", "?x")), "?x")
    links = (Link("Denis", Candidate(iri("denis"), "Denis")),)
    _, run, _ = alone(lambda run: link_relations(qir, links, run), kg=films(turtle))
    asked = [call for call in run.calls.values() if "AS ?_i)" in str(call.request.get("query"))]
    assert len(asked) == queries
