"""Relation linking: ranked predicates in both directions, also behind a join."""

from __future__ import annotations

from typing import Any

import pytest
from small import FILMS, PAPER, alone, films, iri

from kgwb import profile
from kgwb.flow import Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.records import QIR, Fact, LinkedRelation
from kgwb.systems.chatty_kg.relation_linking import link_relations


def links(**vertices: str | None) -> tuple[Link, ...]:
    """Links written entity="vertex"."""
    return tuple(
        Link(entity, Candidate(iri(name), entity) if name else None) for entity, name in vertices.items()
    )


def linked(
    facts: list[tuple[str, str, str]],
    linked: tuple[Link, ...],
    settings: Settings | None = None,
    turtle: str = FILMS,
) -> tuple[LinkedRelation, ...]:
    qir = QIR(tuple(Fact(*fact) for fact in facts), "?x")
    result: Any = alone(lambda run: link_relations(qir, linked, run), kg=films(turtle), settings=settings)[0]
    return tuple(result)


def shown(relation: LinkedRelation) -> set[tuple[str, str]]:
    return {(predicate.name, predicate.direction) for predicate in relation.predicates}


ALL = profile("fast", predicates_per_relation=50)


@pytest.mark.parametrize("settings", [ALL, PAPER])
def test_predicates_are_found_in_both_directions_as_the_subject_sees_them(settings: Settings) -> None:
    [from_subject] = linked([("Denis", "directed", "?x")], links(Denis="denis"), settings)
    assert shown(from_subject) == {("birth place", "out"), ("number of children", "out"), ("director", "in")}
    [from_object] = linked([("?x", "directed by", "Denis")], links(Denis="denis"), settings)
    assert shown(from_object) == {("birth place", "in"), ("number of children", "in"), ("director", "out")}


def test_noise_is_left_out() -> None:
    noisy = (
        FILMS
        + "@prefix owl: <http://www.w3.org/2002/07/owl#> . :arrival owl:sameAs :dune ; rdfs:comment 'x' ."
    )
    [relation] = linked([("Arrival", "what", "?x")], links(Arrival="arrival"), ALL, noisy)
    assert shown(relation) == {
        ("director", "out"),
        ("runtime", "out"),
        ("starring", "out"),
        ("based on", "out"),
    }


def test_the_most_similar_comes_first_and_the_rest_is_cut() -> None:
    facts = [("Arrival", "directed by", "?x")]
    [relation] = linked(facts, links(Arrival="arrival"), profile("fast", predicates_per_relation=2))
    assert [predicate.name for predicate in relation.predicates][:1] == ["director"]
    assert len(relation.predicates) == 2
    similarities = [predicate.similarity for predicate in relation.predicates]
    assert similarities == sorted(similarities, reverse=True)


def test_equal_similarity_goes_by_iri() -> None:
    turtle = FILMS + "@prefix o: <http://other.org/> . :arrival o:director :lynch ."
    [relation] = linked([("Arrival", "director", "?x")], links(Arrival="arrival"), turtle=turtle)
    assert [str(predicate.iri) for predicate in relation.predicates][:2] == [
        "http://example.org/director",
        "http://other.org/director",
    ]


CHAIN = [("Arrival", "director", "?p"), ("?p", "birth place", "?x")]


def test_a_relation_between_two_unknowns_is_linked_along_the_join() -> None:
    _, second = linked(CHAIN, links(Arrival="arrival"))
    assert shown(second) >= {("birth place", "out")}
    assert second.predicates[0].name == "birth place"


def test_the_order_of_the_facts_does_not_matter() -> None:
    second, first = linked(CHAIN[::-1], links(Arrival="arrival"))
    assert (second.predicates[0].name, first.predicates[0].name) == ("birth place", "director")


def test_three_hops() -> None:
    facts = [("Amy", "starring", "?f"), ("?f", "director", "?p"), ("?p", "birth place", "?x")]
    assert [
        shown(relation) >= {expected}
        for relation, expected in zip(
            linked(facts, links(Amy="amy")),
            [("starring", "in"), ("director", "out"), ("birth place", "out")],
            strict=True,
        )
    ] == [True] * 3


def test_as_published_a_relation_between_two_unknowns_gets_none() -> None:
    first, second = linked(CHAIN, links(Arrival="arrival"), PAPER)
    assert ("director", "out") in shown(first)
    assert second.predicates == ()


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_an_entity_without_vertex_links_nothing(settings: Settings) -> None:
    [relation] = linked([("Nowhere", "director", "?x")], links(Nowhere=None), settings)
    assert relation.predicates == ()


def test_both_ends_linked() -> None:
    [relation] = linked([("Arrival", "director", "Denis")], links(Arrival="arrival", Denis="denis"))
    assert ("director", "out") in shown(relation)


def test_the_same_fact_twice_is_linked_once() -> None:
    first, second = linked([CHAIN[0], CHAIN[0]], links(Arrival="arrival"))
    assert first == second


def test_the_join_sample_bounds_what_is_looked_at() -> None:
    turtle = FILMS + "".join(f":f{n} :director :denis ; :p{n} :x{n} ." for n in range(5))
    settings = profile("fast", join_sample=1, predicates_per_relation=50)
    facts = [("?f", "director", "Denis"), ("?f", "p", "?x")]
    few = linked(facts, links(Denis="denis"), settings, turtle)[1]
    many = linked(facts, links(Denis="denis"), profile("fast", predicates_per_relation=50), turtle)[1]
    assert len(few.predicates) < len(many.predicates)
