"""Names are shown and are no keys: every entity, relation and query that is offered can be chosen."""

from __future__ import annotations

from typing import Any

import pytest
import triads
from small import films, iri
from triads import TRIAD, choice, template, triplets

from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.systems.triad.generalist import fill_template, find_template_problems
from kgwb.systems.triad.records import Choice, Triplet

PAIR = (
    Triplet("Plato", "admires", "Aristotle"),
    Triplet("Aristotle", "admires", "Plato"),
)
BOTH = "ASK { <Plato> <admires> <Aristotle> . <Aristotle> <admires> <Plato> . }"


def test_two_triplets_that_are_each_others_reverse_are_a_pair() -> None:
    assert list(find_template_problems(BOTH, PAIR)) == []
    filled = fill_template(BOTH, PAIR, ["<e:p>", "<e:a>"], [("<e:1>", "out"), ("<e:2>", "in")])
    assert filled == "ASK { <e:p> <e:1> <e:a> . <e:p> <e:2> <e:a> . }"
    once = "ASK { <Plato> <admires> <Aristotle> . }"
    [problem] = find_template_problems(once, PAIR)
    assert "<Aristotle> <admires> <Plato>" in problem


FRUIT = (Triplet("Orange", "named after", "orange"),)


@pytest.mark.parametrize(
    "sparql",
    [
        "ASK { <Orange> <named after> <orange> }",
        "ASK { < Orange >  <Named After> <orange> }",
    ],
)
def test_names_that_differ_in_letter_case_are_slots_of_their_own(sparql: str) -> None:
    assert list(find_template_problems(sparql, FRUIT)) == []
    filled = fill_template(sparql, FRUIT, ["<e:city>", "<e:fruit>"], [("<e:p>", "out")])
    assert filled == "ASK { <e:city> <e:p> <e:fruit> }"


def test_a_slot_that_may_be_either_of_two_names_is_none() -> None:
    [lacking, *_] = find_template_problems("ASK { <ORANGE> <named after> <orange> }", FRUIT)
    assert "lacks" in lacking


TWINS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:orange_city rdfs:label "Orange" ; :near :x ; :close :x .
:orange_river rdfs:label "Orange" ; :near :y ; :close :y .
:orange_fruit rdfs:label "orange" ; :near :z ; :x_near :z .
:near rdfs:label "near" . :close rdfs:label "near" . :x_near rdfs:label "Near" .
:x rdfs:label "Echo" . :y rdfs:label "Echo" . :z rdfs:label "Echo" .
"""
"""Three things of one name, with relations of one name, to three things of one name."""
ONE = {
    "triad/triplets": triplets("Orange | near | ?what"),
    "triad/template": template("SELECT ?what WHERE { <Orange> <near> ?what . }"),
    "triad/answer_type": {"type": "select"},
}


def run_with(settings: dict[str, Any], **replies: Any) -> tuple[Run, Scripted]:
    """An executed run on the twins, and its model. ``replies`` by prompt take the options."""

    def answer(request: Any) -> Any:
        name = request.task.removeprefix("triad/")
        if name in replies:
            return replies[name](request.variables)
        return ONE[request.task.removesuffix("_published")]

    model = Scripted(answer)
    run = triads.triad(model, "?", kg=films(TWINS), settings=TRIAD.settings(**settings))
    return run.go(), model


CASE = {"entities": 3, "relations": 9, "merge_results": False, "query_limit": 1000}
NUMBERS = {
    "entity_choice": lambda shown: choice(*range(1, len(shown["candidates"]) + 1)),
    "relation_choice": lambda shown: choice(*range(1, len(shown["relations"]) + 1)),
    "query_choice_judgement": lambda shown: choice(1),
}
URIS = {
    "entity_choice_published": lambda shown: {"uris": shown["uris"].splitlines()},
    "relation_choice_published": lambda shown: {"uris": shown["uris"].splitlines()},
    "query_choice_published": lambda shown: {"sparql": shown["queries"].splitlines()[0]},
}
AS_URIS = {"entity_options": "uris", "relation_options": "uris", "query_options": "sparql"}


@pytest.mark.parametrize(("settings", "replies"), [({}, NUMBERS), (AS_URIS, URIS)])
def test_every_entity_and_relation_that_is_offered_can_be_chosen(
    settings: dict[str, Any], replies: dict[str, Any]
) -> None:
    run, _ = run_with({**CASE, **settings}, **replies)
    [entity] = [step.output for step in run.steps if step.agent == "entity_choice"]
    assert {option.iri for option in entity.chosen} == {
        iri(f"orange_{kind}") for kind in ("city", "river", "fruit")
    }
    [relation] = [step.output for step in run.steps if step.agent == "relation_choice"]
    assert {option.iri for option in relation.chosen} == {iri("near"), iri("close"), iri("x_near")}


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("shows_sparql", [False, True])
def test_every_query_that_is_offered_can_be_chosen(number: int, shows_sparql: bool) -> None:
    replies = {**NUMBERS, **URIS}
    replies["query_choice_judgement"] = lambda shown: choice(number + 1)
    replies["query_choice_published"] = lambda shown: {
        "sparql": shown["queries"].splitlines()[number]
    }
    settings = {"query_options": "sparql"} if shows_sparql else {}
    run, _ = run_with({**CASE, **settings}, **replies)
    kept = run.output("queries[try 1/parsing]").kept
    assert run.answer
    assert run.answer.queries == (kept[number].query.sparql,)


def test_results_of_one_name_that_are_different_things_are_not_merged() -> None:
    run, _ = run_with({"entities": 3, "relations": 9}, **NUMBERS)
    kept = run.output("queries[try 1/parsing]").kept
    assert [query.results for query in kept] == [("Echo",)] * 3
    assert len({query.query.sparql for query in kept}) == 3


@pytest.mark.parametrize("name", ["city", "river", "fruit"])
def test_every_entity_can_be_put_in_by_hand(name: str) -> None:
    run, _ = run_with({"entities": 3, "relations": 9}, **NUMBERS)
    candidates = run.output("entity_retriever[try 1/parsing/Orange]").candidates
    [wanted] = [each for each in candidates if each.iri == iri(f"orange_{name}")]
    run.override("entity_choice[try 1/parsing/Orange]", Choice("Orange", (wanted,))).go()
    assert run.answer
    assert str(wanted.iri) in run.answer.queries[0]
