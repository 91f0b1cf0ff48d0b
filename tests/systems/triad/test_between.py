"""Nodes between two things, and other things that readers of the prompts ran into."""

from __future__ import annotations

from typing import Any

import pytest
import triads
from page import record_html
from rdflib import URIRef
from small import answer_of, asked, films
from triads import SCRIPT, TRIAD, answered, choice, template, triad, triplets

from kgwb.kg.queries import CandidateQuery
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.links import Candidate, RetrievedCandidates
from kgwb.systems.triad.records import Choice, Filled

OFFERS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Offer rdfs:label "Offer" .
:bolt rdfs:label "Bolt M8" ; :width 8 ; :offered_in :offer1 . :nut rdfs:label "Nut" ; :fits :bolt .
:offer1 a :Offer ; rdfs:label "Offer 17" ; :supplier :acme . :acme rdfs:label "Acme" .
"""
DIRECT = {
    "triad/triplets": triplets("Bolt M8 | supplied by | ?supplier"),
    "triad/template": template("SELECT ?supplier WHERE { <Bolt M8> <supplied by> ?supplier . }"),
}
IN_TWO_STEPS = {
    "triad/triplets": triplets("Bolt M8 | offered in | ?offer", "?offer | supplier | ?supplier"),
    "triad/template": template(
        "SELECT ?supplier WHERE { <Bolt M8> <offered in> ?offer . ?offer <supplier> ?supplier . }"
    ),
}


def number_of(name: str, shown: Any) -> dict[str, Any]:
    """The reply that chooses the relations of this name."""
    return choice(*[each["number"] for each in shown["relations"] if each["triple"][1] == name])


def run_with(answer: Any, **settings: Any) -> tuple[Run, Scripted]:
    model = Scripted(answer)
    kg = films(OFFERS)
    settings_ = TRIAD.settings(**settings)
    question = "Who is the supplier of the Bolt M8?"
    return triads.triad(model, question, kg=kg, settings=settings_).go(), model


def test_a_relation_is_shown_with_what_it_leads_to() -> None:
    def answer(request: Any) -> Any:
        return {
            **DIRECT,
            "triad/relation_choice": choice(),
            "triad/answer_type": {"type": "select"},
        }[request.task]

    run, model = run_with(answer)
    shown = triads.requests_of(model, "relation_choice")[0].variables["relations"]
    leads_to = {each["triple"][1]: each["leads to"] for each in shown}
    assert leads_to == {"offered in": "Offer 17 (Offer)", "width": "8", "fits": "Nut"}
    run, model = run_with(answer, relation_examples=False)
    shown = triads.requests_of(model, "relation_choice")[0].variables["relations"]
    assert all("leads to" not in each for each in shown)
    assert not run.answer


def test_a_single_query_whose_results_are_of_another_kind_is_refused_and_parsed_anew() -> None:
    def answer(request: Any) -> Any:
        shown = request.variables
        task = request.task
        if task == "triad/relation_choice":
            named = {"offered in": "offered in", "supplied by": "offered in"}
            return number_of(named.get(shown["triplet"][1], "supplier"), shown)
        if task == "triad/query_choice_judgement":
            is_offer = shown["queries"][0]["first"] == ["Offer 17"]
            return {"reason": "an offer is no supplier", "numbers": []} if is_offer else choice(1)
        script = DIRECT if not shown["failed"] else IN_TWO_STEPS
        return script[task]

    run, model = run_with(answer)
    assert answer_of(run).labels == ("Acme",)
    first, _ = (step.output for step in run.steps if step.agent == "attempt")
    assert (first.back, "an offer is no supplier" in first.fault) == ("parsing", True)
    assert asked(model)["query_choice_judgement"] == 2
    run, _ = run_with(answer, may_refuse_queries=False)
    assert answer_of(run).labels == ("Offer 17",)


def test_a_value_is_no_relation_between_two_named_things() -> None:
    def answer(request: Any) -> Any:
        return {
            "triad/triplets": triplets("Bolt M8 | sold by | Acme"),
            "triad/relation_choice": choice(),
            "triad/answer_type": {"type": "yes or no"},
        }[request.task]

    run, _ = run_with(answer, tries=1)
    [step] = [step for step in run.steps if step.agent == "relations"]
    assert "width" not in {relation.name for relation in step.output}


def test_a_fault_names_the_triplet_that_failed_and_not_those_behind_it() -> None:
    run, model = answered(relation_choice=choice(), settings={"tries": 1})
    [attempt] = [step.output for step in run.steps if step.agent == "attempt"]
    assert "⟨Dune, directed by, ?person⟩" in attempt.fault
    assert "born in" not in attempt.fault
    [_, _, behind] = attempt.linked
    assert (behind.was_looked_for, behind.chosen) == (False, ())
    assert asked(model)["relation_choice"] == 1


@pytest.mark.parametrize(
    ("sparql", "kind"),
    [
        ("ASK { <Arrival> <starring> ?x . }", "boolean"),
        ("SELECT (COUNT(?x) AS ?n) WHERE { <Arrival> <starring> ?x . }", "count"),
        ("SELECT ?x WHERE { <Arrival> <starring> ?x . }", "list"),
    ],
)
def test_the_query_says_the_type_of_the_answer_and_no_model_is_asked(
    sparql: str, kind: str
) -> None:
    run, model = answered(
        triplets=triplets("Arrival | starring | ?x"),
        template=template(sparql),
        query_choice_judgement=choice(1),
    )
    assert (answer_of(run).kind, asked(model)["answer_type"]) == (kind, 0)


@pytest.mark.parametrize(
    ("question", "relation", "labels"),
    [
        ("How many actors star in Arrival?", "starring", ("2",)),
        ("What is the number of actors in Arrival?", "starring", ("2",)),
        ("Which actors star in Arrival?", "starring", ("Amy Adams", "Jeremy Renner")),
        ("How many children does Denis Villeneuve have?", "number of children", ("3",)),
    ],
)
def test_what_a_query_lists_is_counted_if_the_question_asks_how_many(
    question: str, relation: str, labels: tuple[str, ...]
) -> None:
    subject = "Denis Villeneuve" if "children" in question else "Arrival"

    def model(request: Any) -> Any:
        if request.task != "triad/relation_choice":
            return replies[request.task]
        relations = request.variables["relations"]
        return choice(*(each["number"] for each in relations if each["triple"][1] == relation))

    replies = SCRIPT | {
        "triad/triplets": triplets(f"{subject} | {relation} | ?x"),
        "triad/template": template(f"SELECT ?x WHERE {{ <{subject}> <{relation}> ?x . }}"),
        "triad/query_choice_judgement": choice(1),
    }
    answer = answer_of(triad(Scripted(model), question).go())
    assert tuple(sorted(answer.labels)) == labels
    assert answer.kind == ("list" if question.startswith("Which") else "count")


def test_a_choice_is_shown_among_all_that_it_was_chosen_from() -> None:
    """Of two films of one name the second is taken; the query is shown as SPARQL."""
    films = tuple(
        Candidate(URIRef(f"http://example.org/{year}"), "The Mummy", score, ("film",))
        for year, score in (("1932", 0.9), ("1999", 0.8))
    )
    retrieved = RetrievedCandidates("The Mummy", films)
    taken = Choice("The Mummy", films[1:], "it has a composer")
    shown = record_html(taken, of_system="triad", inputs=(retrieved,))
    rows = shown.partition("<table")[2].split("<tr>")[2:]
    assert ["taken" in row for row in rows] == [False, True]
    assert ["0.90" in rows[0], "0.80" in rows[1]] == [True, True]
    alone = record_html(taken, of_system="triad")
    assert alone.count("The Mummy") == 2


def test_a_chosen_query_is_shown_as_code() -> None:
    sparql = "SELECT ?x WHERE { <http://example.org/a> <http://example.org/p> ?x }"
    filled = Filled(CandidateQuery(sparql, (), ("p",), 1.0), ("a",), sparql, ("b",), 1)
    shown = record_html(Choice("query", (filled,)), of_system="triad")
    assert 'class="kw">SELECT' in shown
