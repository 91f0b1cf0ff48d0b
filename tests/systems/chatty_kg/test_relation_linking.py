"""Relation linking: ranked predicates in both directions, along the joins, and over nodes."""

from pathlib import Path

import pytest
from rdflib import Literal
from rdflib.namespace import RDF
from small import (
    BOATS,
    FILMS,
    TUGS,
    alone,
    answer_of,
    chatty,
    films,
    iri,
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
from kgwb.systems.chatty_kg.relation_linking import link_relations


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
