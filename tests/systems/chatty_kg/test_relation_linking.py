"""Relation linking: ranked predicates in both directions, also behind a join."""

from __future__ import annotations

from typing import Any

import pytest
from small import FILMS, PAPER, alone, films, iri

from kgwb import profile
from kgwb.flow import Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.matching import link_relations
from kgwb.systems.chatty_kg.records import QIR, Fact, LinkedRelation


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


@pytest.mark.parametrize(
    ("facts", "settings", "best"),
    [
        (CHAIN, Settings(), [("director", "out"), ("birth place", "out")]),
        (CHAIN[::-1], Settings(), [("birth place", "out"), ("director", "out")]),
        (CHAIN, PAPER, [("director", "out"), None]),  # between two unknowns nothing, as published
        ([CHAIN[0], CHAIN[0]], Settings(), [("director", "out")] * 2),
        ([("Arrival", "director", "Denis")], Settings(), [("director", "out")]),
        (
            [("Amy", "starring", "?f"), ("?f", "director", "?p"), ("?p", "birth place", "?x")],
            Settings(),
            [("starring", "in"), ("director", "out"), ("birth place", "out")],
        ),
    ],
)
def test_relations_are_linked_along_the_joins_in_any_order(
    facts: list[tuple[str, str, str]], settings: Settings, best: list[Any]
) -> None:
    relations = linked(facts, links(Arrival="arrival", Denis="denis", Amy="amy"), settings)
    firsts = [relation.predicates[0] if relation.predicates else None for relation in relations]
    assert [first and (first.name, first.direction) for first in firsts] == best


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_an_entity_without_vertex_links_nothing(settings: Settings) -> None:
    [relation] = linked([("Nowhere", "director", "?x")], links(Nowhere=None), settings)
    assert relation.predicates == ()


def test_the_join_sample_bounds_what_is_looked_at() -> None:
    turtle = FILMS + "".join(f":f{n} :director :denis ; :p{n} :x{n} ." for n in range(5))
    settings = profile("fast", join_sample=1, predicates_per_relation=50)
    facts = [("?f", "director", "Denis"), ("?f", "p", "?x")]
    few = linked(facts, links(Denis="denis"), settings, turtle)[1]
    many = linked(facts, links(Denis="denis"), profile("fast", predicates_per_relation=50), turtle)[1]
    assert len(few.predicates) < len(many.predicates)
