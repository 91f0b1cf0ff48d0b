"""The walk: from the topic entities hop by hop to an answer, or to why there is none."""

from typing import Any

import pytest
from debate import (
    ARRIVAL,
    CALLS,
    KEYS,
    LEFT,
    MARKED,
    QUESTION,
    filtering,
    trying,
    two_hops,
)
from small import DOG, FILMS, alone, answer_of, dog, films, iri, keys

from kgwb import profile
from kgwb.errors import OverrideError
from kgwb.kg import Graph
from kgwb.run.answers import Dialogue, Turn, Value, was_graph_asked
from kgwb.settings import Settings
from kgwb.systems.dog import NOT_IN_GRAPH
from kgwb.systems.dog.hop import (
    fill_triples,
    find_answer_values,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    TriedAnswer,
)
from kgwb.terms import Triple


def test_two_hops_with_a_debate_between_them() -> None:
    model = two_hops()
    run = dog(QUESTION, model).go()
    assert (keys(run), model.call_count(), str(run.answer)) == (KEYS, CALLS, "Gentilly")
    walked = ("arrival", "director", "denis"), ("denis", "birthPlace", "gentilly")
    assert answer_of(run).values[0].support == tuple(tuple(map(iri, triple)) for triple in walked)
    assert run.output("topic_entity").question == MARKED
    assert run.output("simplifying").question == LEFT
    assert len(answer_of(run).queries) == 2


@pytest.mark.parametrize(
    ("topic", "changed", "settings", "answer", "calls"),
    [
        # without a debate
        ("Arrival", {"answer_trying": trying("Denis Villeneuve")}, None, "Denis Villeneuve", 3),
        (
            "Arrival",
            {"relation_filtering": filtering("")},
            None,
            f"{NOT_IN_GRAPH}: [Arrival]: it says so",
            2,
        ),
        ("Solaris", {}, None, "no vertex for Solaris", 1),
        (
            "Arrival",
            {"answer_trying": trying()},
            profile("fast", iteration_limit=1),
            f"no answer within the iteration limit of 1; the question left is: {MARKED}",
            3,
        ),
    ],
)
def test_a_walk_ends_with_an_answer_or_with_the_reason_why_there_is_none(
    topic: str, changed: dict[str, Any], settings: Settings | None, answer: str, calls: int
) -> None:
    model = two_hops(topic_entity={"entities": [topic]}, **changed)
    run = dog(QUESTION.replace("Arrival", topic), model, settings=settings).go()
    assert (str(run.answer), bool(run.answer)) == (answer, answer == "Denis Villeneuve")
    assert model.call_count() == calls


def test_dog_reads_each_question_alone() -> None:
    earlier = Dialogue((Turn("Who directed Sicario?", ("Denis Villeneuve",)),))
    model = two_hops()
    run = dog(QUESTION, model, dialogue=earlier).go()
    assert str(run.answer) == "Gentilly"
    assert not any("Sicario" in str(request.messages) for request in model.requests)
    vertices = tuple(map(iri, ("arrival", "denis", "gentilly")))
    assert run.turn == Turn(
        QUESTION, ("Gentilly",), entities=("Arrival",), linked=vertices[:1], vertices=vertices
    )


def test_a_walk_that_ends_after_a_hop_that_found_something_gave_up() -> None:
    model = two_hops(relation_filtering=[filtering("director"), filtering("")])
    run = dog(QUESTION, model).go()
    assert not run.answer
    assert not was_graph_asked(answer_of(run).reason)


FILTERED, TRIED = "relation_filtering[hop 1/Arrival]", "answer_trying[hop 1]"


STRANGE = {"name": "x", "direction": "in", "iris": []}


@pytest.mark.parametrize(
    ("step", "value", "problem"),
    [
        ("topic_entity", {"question": QUESTION, "entities": ["Arrival"]}, "is not in the question"),
        ("topic_entity", {"question": MARKED, "entities": []}, "no topic entity"),
        (
            FILTERED,
            {"head": "Arrival", "subquestion": "", "relation": STRANGE},
            "~x is not in the list",
        ),
        (
            FILTERED,
            {"head": "Dune", "subquestion": "", "relation": None},
            "the relation is for 'Dune'",
        ),
        (TRIED, {"sufficient": "yes", "reason": "", "answers": ["Paris"]}, "not in the triples"),
        (TRIED, {"sufficient": "no", "reason": "", "answers": ["Arrival"]}, "with answers"),
        (
            "simplifying",
            {"question": " ", "original": MARKED, "debate": []},
            "the question is empty",
        ),
        ("critic", {"role": "critic", "words": "no", "question": ""}, "the question is empty"),
        ("critic", "no", "Remark"),
    ],
)
def test_an_override_is_checked(step: str, value: Any, problem: str) -> None:
    run = dog(QUESTION, two_hops()).go()
    with pytest.raises(OverrideError, match=problem):
        run.override(step, value)
    assert run.overrides == {}


def filled(
    name: str, way: Any, start: Head, turtle: str = "", kg: Graph | None = None, **settings: Any
) -> tuple[FilledTriples, list[str]]:
    """The triples of a head and a predicate, and the notes on the step."""
    chosen = FilteredRelation(start.name, "", Relation(name, way, (iri(name),)))
    kg, fast = kg or films(FILMS + turtle), profile("fast", **settings)
    result, run, _ = alone(
        lambda run: fill_triples(chosen, start, run), kg=kg, settings=fast, of=DOG
    )
    return result, run.steps[-1].notes


AMY, FILM = iri("amy"), iri("arrival")


PLAYS = (FILM, iri("starring"), AMY)


def amy(*support: Triple) -> FilledTriples:
    return FilledTriples("list", (Value(AMY, "Amy Adams", support),))


YES = TriedAnswer("yes", "", ("Amy Adams",))


def test_all_triples_that_lead_to_an_answer_support_it() -> None:
    sicario = (iri("sicario"), iri("starring"), AMY)
    assert find_answer_values(YES, [amy(PLAYS), amy(sicario)], ()) == (
        Value(AMY, "Amy Adams", (PLAYS, sicario)),
    )


def test_of_vertices_with_one_label_the_answer_is_the_one_that_most_entities_lead_to() -> None:
    homonyms = FilledTriples(
        "list", (Value(AMY, "Amy Adams"), Value(iri("other_amy"), "Amy Adams"))
    )
    assert [value.term for value in find_answer_values(YES, [homonyms, amy()], ())] == [AMY]
    assert len(find_answer_values(YES, [homonyms], ())) == 2


def test_a_head_can_be_the_answer() -> None:
    heads = (Head("Arrival and Dune", (Value(FILM, "Arrival"), Value(iri("dune"), "Dune"))),)
    named = find_answer_values(TriedAnswer("yes", "", ("arrival",)), [amy(PLAYS)], heads)
    assert named == (Value(FILM, "Arrival", (PLAYS,)),)


def test_answers_come_in_the_order_in_which_the_model_gives_them() -> None:
    result, _ = filled("starring", "out", ARRIVAL)
    for names in (("Jeremy Renner", "Amy Adams"), ("Amy Adams", "Jeremy Renner")):
        values = find_answer_values(TriedAnswer("yes", "", names), [result], ())
        assert tuple(value.label for value in values) == names
