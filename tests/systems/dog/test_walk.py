"""The walk: from the topic entities hop by hop to an answer, or to why there is none."""

from __future__ import annotations

from typing import Any

import pytest
import rdflib
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
from small import DOG, FILMS, alone, answer_of, dog, films, iri, keys, run_of

from kgwb import open_kg, profile
from kgwb.errors import OverrideError
from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn, Value
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
        ("Solaris", {}, None, f"{NOT_IN_GRAPH}: no vertex for Solaris", 1),
        (
            "Arrival",
            {"answer_trying": trying()},
            profile("fast", iteration_limit=1),
            f"{NOT_IN_GRAPH}: no answer within the iteration limit of 1; the question left is: {MARKED}",
            3,
        ),
    ],
)
def test_a_walk_ends_with_an_answer_or_with_the_reason_why_there_is_none(
    topic: str, changed: dict[str, Any], settings: Settings | None, answer: str, calls: int
) -> None:
    model = two_hops(topic_entity={"entities": [topic]}, **changed)
    run = dog(QUESTION.replace("Arrival", topic), model, settings=settings).go()
    assert (str(run.answer), bool(run.answer)) == (answer, not answer.startswith("not"))
    assert model.call_count() == calls


def test_the_walk_starts_at_every_topic_entity() -> None:
    model = two_hops(
        topic_entity={"entities": ["Amy Adams", "Jeremy Renner"]},
        relation_filtering=filtering("~starring"),
        answer_trying=trying("Arrival"),
    )
    run = dog("Which film stars Amy Adams and Jeremy Renner?", model).go()
    names = ("Amy Adams", "Jeremy Renner")
    assert [key for key in keys(run) if "filling" in key] == [
        f"triple_filling[hop 1/{n}]" for n in names
    ]
    assert str(run.answer) == "Arrival"
    assert {triple[2] for triple in answer_of(run).support} == {iri("amy"), iri("jeremy")}


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


def test_an_answer_by_hand_ends_the_walk_there() -> None:
    model = two_hops()
    run = dog(QUESTION, model).go()
    run.override("answer_trying[hop 1]", TriedAnswer("yes", "enough", ("Denis Villeneuve",))).go()
    assert (str(run.answer), model.call_count()) == ("Denis Villeneuve", CALLS)
    assert "iteration[hop 2]" not in keys(run)
    assert str(run.remove_override("answer_trying[hop 1]").go().answer) == "Gentilly"


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


FREEBASE = """
@prefix ns: <http://rdf.freebase.com/ns/> .
ns:m.03_r3 ns:type.object.name "Jamaica"@en ; ns:common.topic.alias "Land of Wood and Water"@en ;
    ns:type.object.type ns:location.country ; ns:common.topic.notable_types ns:m.01mp ;
    ns:kg.object_profile.prominent_type ns:m.01mp ; ns:freebase.valuenotation.has_value ns:m.01mp ;
    ns:location.country.languages_spoken ns:m.01428y ;
    ns:government.governmental_jurisdiction.governing_officials ns:m.0med .
ns:m.01428y ns:type.object.name "Jamaican English"@en .
ns:m.0med ns:government.government_position_held.office_holder ns:m.0hold ;
    ns:government.government_position_held.from "2016" .
ns:m.0hold ns:type.object.name "Andrew Holness"@en ; ns:people.person.place_of_birth ns:m.0town .
ns:m.0town ns:type.object.name "Spanish Town"@en .
"""


def freebase() -> Graph:
    graph = rdflib.Graph().parse(data=FREEBASE, format="turtle")
    return open_kg(graph, vocabulary="freebase")


def test_a_walk_goes_on_behind_a_mediator() -> None:
    replies = {
        "dog/topic_entity": {"entities": ["Jamaica"]},
        "dog/relation_filtering": [
            filtering("government.governmental jurisdiction.governing officials"),
            filtering("people.person.place of birth"),
        ],
        "dog/answer_trying": [trying(), trying("Spanish Town")],
    }
    for role in ("simplifying_expert", "critic", "linguist"):
        replies[f"dog/{role}"] = {
            "remark": "",
            "question": "where was [2016 | Andrew Holness] born?",
        }
    model = Scripted(replies)
    run = run_of(DOG, "where was the official of Jamaica born?", model, kg=freebase()).go()
    assert str(run.answer) == "Spanish Town"
    found = run.output("triple_filling[hop 1/Jamaica]")
    assert found.labels == ("2016", "Andrew Holness")
    assert len(answer_of(run).support) == 3
