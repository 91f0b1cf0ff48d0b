"""Predicate selection: what a model is shown, and the queries that its reply keeps."""

from typing import Any

import pytest
from generated import predicate
from small import (
    FILMS,
    alone,
    films,
    iri,
    predicates,
)

from kgwb import profile
from kgwb.kg.queries import CandidateQuery
from kgwb.run import Run
from kgwb.systems.chatty_kg.predicate_selection import select_predicates
from kgwb.systems.chatty_kg.query_planning import (
    generate_queries,
)
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
)


def of_names(*names: str) -> CandidateQuery:
    return CandidateQuery(f"SELECT {names}", (), names, 1.0)


OFFERED = (
    of_names("director", "birth place"),
    of_names("director", "birth date"),
    of_names("writer", "birth place"),
)


FACTS = (Fact("Dune", "directed by", "?p"), Fact("?p", "born in", "?x"))


def selected(*replies: Any) -> Any:
    """The selection among queries whose predicates are all as near to their relation."""
    by_fact = zip(*(query.predicates for query in OFFERED), strict=True)
    relations = tuple(
        LinkedRelation(fact, tuple(predicate(name, 0.5) for name in dict.fromkeys(names)))
        for fact, names in zip(FACTS, by_fact, strict=True)
    )
    linked, generated = LinkingResult((), relations), GeneratedQueries(OFFERED, len(OFFERED))
    work = lambda run: select_predicates(generated, "Who?", linked, run)  # noqa: E731
    return alone(work, {"predicate_selection": list(replies)})


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (predicates(["director", "writer"], ["birth place"]), [0, 2]),
        (predicates(["director", "made up"], ["birth date"]), [1]),
        (predicates([], ["birth place"]), []),
    ],
)
def test_a_query_must_be_right_in_every_triple(reply: Any, kept: list[int]) -> None:
    selection, _, model = selected(reply)
    assert (selection.queries, model.call_count()) == (tuple(OFFERED[number] for number in kept), 1)
    assert "made up" not in selection.predicates


@pytest.mark.parametrize(
    ("name", "similarities", "calls"),
    [
        ("Directed by", (0.5, 0.5), 0),  # the relation's very name
        ("director", (0.7, 0.4), 0),  # near enough, and by far the nearest
        ("director", (0.75, 0.5), 0),
        ("director", (0.8, 0.6), 1),
        ("director", (0.6, 0.1), 1),
    ],
)
def test_no_model_is_asked_if_one_predicate_is_certain(
    name: str, similarities: tuple[float, float], calls: int
) -> None:
    relation = LinkedRelation(FACTS[0], tuple(map(predicate, (name, "writer"), similarities)))
    generated, linked = (
        GeneratedQueries((of_names(name), of_names("writer")), 2),
        LinkingResult((), (relation,)),
    )
    replies = {"predicate_selection": predicates([name])}
    selection, run, model = alone(
        lambda run: select_predicates(generated, "Who?", linked, run), replies
    )
    assert ([query.predicates for query in selection.queries], model.call_count()) == (
        [(name,)],
        calls,
    )
    assert len(run["predicate_selection"].notes) == 1 - calls


@pytest.mark.parametrize("relations", [(), (LinkedRelation(FACTS[0], ()),)])
@pytest.mark.parametrize("name", ["fast", "paper"])
def test_queries_that_were_put_in_without_linked_facts_are_all_kept(
    name: str, relations: tuple[LinkedRelation, ...]
) -> None:
    generated = GeneratedQueries(OFFERED, len(OFFERED))
    linked = LinkingResult((), relations)
    selection, run, model = alone(
        lambda run: select_predicates(generated, "Who?", linked, run), {}, settings=profile(name)
    )
    assert (selection.queries, model.call_count()) == (OFFERED, 0)
    assert run["predicate_selection"].notes


def test_an_example_over_a_node_is_found_where_both_ends_are_open() -> None:
    over_node = RankedPredicate(iri("director"), "over", "out", 0.6, onward=iri("birthPlace"))
    relation = LinkedRelation(Fact("?film", "place", "?x"), (over_node,))
    linking = LinkingResult((), (relation,))
    qir = QIR((relation.fact,), "?x")

    def select(run: Run) -> QuerySelection:
        return select_predicates(generate_queries(qir, linking, run), "Where?", linking, run)

    replies = {"predicate_selection": predicates(["over"])}
    _, run, model = alone(select, replies, kg=films(FILMS), settings=profile("fast"))
    [fact] = model.requests[0].variables["relations"]
    [predicate] = fact["predicates"]
    to_node, onward = predicate["example"].split(" ; ")
    film, _, director = to_node.split(" | ")
    assert film in ("Arrival", "Dune", "Sicario")
    places = {"Denis Villeneuve": "Gentilly", "David Lynch": "Missoula"}
    assert onward == f"{director} | birth place | {places[director]}"
    # Each director is tried once, and not once for each film.
    [select] = [call for call in run.calls.values() if call.kind == "select"]
    assert "SELECT DISTINCT ?_node" in select.request["query"]
