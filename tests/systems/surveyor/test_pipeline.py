"""Surveyor as a whole: draft, run, review, revise; what is refused is feedback, and never an error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import rdflib
from rdflib import Literal
from small import FILMS, SLOW, answer_of, asked, films, iri, keys
from surveying import (
    DIRECTED,
    FINE,
    NOT_HERE,
    QUESTION,
    SURVEYOR,
    TABLE,
    answered,
    draft,
    mention,
    revise,
    script,
    surveyor,
)

import kgwb
from kgwb.bench.serve import EMPTY_QUERY, make_answer_query
from kgwb.errors import GraphTimeoutError, OverrideError
from kgwb.kg.survey_records import Survey
from kgwb.llm import Scripted
from kgwb.systems.surveyor.records import Draft, Executed, Mentions, Part

COUNT = "SELECT (COUNT(DISTINCT ?film) AS ?n) WHERE { ?film org:director org:denis }"
CALLS = {"mention_finder": 1, "drafter": 1, "reviewer": 1}


def told(model: Scripted, name: str) -> list[str]:
    """What one value of the reviewer's prompt was, each time."""
    return [r.variables[name] for r in model.requests if r.task == "surveyor/reviewer"]


# --- what is answered


def test_a_list_is_answered_with_the_triples_of_each_value() -> None:
    run, model = answered()
    answer = answer_of(run)
    directed = {value.term: value.support for value in answer.values}
    films_of_his = [iri(name) for name in ("arrival", "dune", "sicario")]
    assert directed == {film: ((film, iri("director"), iri("denis")),) for film in films_of_his}
    assert (answer.kind, sorted(answer.labels)) == ("list", ["Arrival", "Dune", "Sicario"])
    assert dict(answer.names)[iri("denis")] == "Denis Villeneuve"
    assert answer.queries == (f"PREFIX org: <http://example.org/>\n{DIRECTED}",)
    assert (asked(model), run.totals.live_model_calls) == (CALLS, 3)
    assert [step.agent for step in run.steps] == [
        *("surveyor", "mention_finder", "entity_retriever", "value_finder", "drafter", "executor"),
        *("reviewer", "answer"),
    ]


def test_a_table_keeps_its_columns_and_rows() -> None:
    run, _ = answered(draft(TABLE, "table", "film", "length"))
    answer = answer_of(run)
    rows = {value.row: (value.label, len(value.support)) for value in answer.values}
    assert (answer.kind, answer.columns) == ("list", ("film", "length"))
    assert rows == {
        (iri("arrival"), Literal(116)): ("Arrival · 116", 2),
        (iri("dune"), None): ("Dune · ", 1),
        (iri("sicario"), None): ("Sicario · ", 1),
    }
    assert make_answer_query(run) == answer.queries[-1]
    named, _ = answered(draft(TABLE, "table", "film"))
    assert answer_of(named).columns == ("film", "minutes"), "one name for two columns is none"


@pytest.mark.parametrize(
    ("query", "kind", "label", "support"),
    [
        (COUNT, "count", "3", 3),
        (COUNT.replace("denis", "ted"), "count", "0", 0),
        ("ASK { org:dune org:director org:denis }", "boolean", "true", 1),
        ("ASK { org:dune org:director org:amy }", "boolean", "false", 0),
    ],
)
def test_a_number_and_a_truth_value(query: str, kind: str, label: str, support: int) -> None:
    run, _ = answered(draft(query, "count" if kind == "count" else "yes or no"))
    answer = answer_of(run)
    assert (answer.kind, answer.labels, len(answer.support)) == (kind, (label,), support)


def test_a_count_that_became_a_table_is_no_count() -> None:
    by_director = "SELECT ?d (COUNT(?f) AS ?n) WHERE { ?f org:director ?d } GROUP BY ?d"
    run, _ = answered(draft(COUNT, "count"), [revise(by_director, "director", "films"), FINE])
    answer = answer_of(run)
    assert (answer.kind, answer.columns) == ("list", ("director", "films"))
    assert {value.label: len(value.support) for value in answer.values} == {
        "Denis Villeneuve · 3": 3,
        "David Lynch · 1": 1,
    }


def test_rows_without_a_value_are_no_answer() -> None:
    longest = "SELECT (MAX(?m) AS ?most) WHERE { ?f org:director org:ted ; org:runtime ?m }"
    run, model = answered(draft(longest))
    assert not run.answer
    assert 'nothing in the graph matches ?f director "director" ted "Ted Chiang"' in str(run.answer)
    assert "! nothing in the graph matches" in told(model, "result")[0]
    assert make_answer_query(run) == EMPTY_QUERY


@pytest.mark.parametrize(
    ("drafts", "reviews", "calls"),
    [
        (draft("", missing="what a film cost"), FINE, 2),
        (draft(), NOT_HERE, 3),
        (draft("", reason="what a film cost"), FINE, 2),
    ],
)
def test_what_the_graph_has_nothing_for_is_said(drafts: Any, reviews: Any, calls: int) -> None:
    run, model = answered(drafts, reviews)
    assert (str(run.answer), bool(run.answer)) == ("not in this graph: what a film cost", False)
    assert model.call_count() == calls


# --- revisions


def test_a_revision_is_run_and_reviewed_again() -> None:
    wrong = "SELECT ?film WHERE { org:denis org:director ?film }"
    run, model = answered(draft(wrong), [revise(DIRECTED, "film"), FINE])
    assert len(answer_of(run).values) == 3
    assert [step.key for step in run.steps if step.agent in ("executor", "reviewer")] == [
        *("executor[draft]", "reviewer[draft]", "executor[revision 1]", "reviewer[revision 1]")
    ]
    first, second = told(model, "result")
    assert first.startswith("0 rows\n! nothing in the graph matches denis")
    assert "the other way round it holds" in first
    assert second.startswith("3 rows\n?film\n")
    assert 'arrival "Arrival"' in second
    assert told(model, "draft") == [wrong, DIRECTED]


def test_more_of_the_survey_is_asked_for_once() -> None:
    more = draft("", more=["Story"])
    settings = SURVEYOR.settings(survey_tokens=1)
    nothing_named = mention("Denis Villeneuve", classes=())
    run, model = answered([more, draft()], names=nothing_named, settings=settings)
    shown = [r.variables["survey"] for r in model.requests if r.task == "surveyor/drafter"]
    assert [text.partition(" ")[0] for text in shown] == ["org:Film", "org:Story"]
    assert "Other classes, not shown here: without a class 8, org:Story 1" in shown[0]
    assert len(answer_of(run).values) == 3
    again, model = answered([more, more], settings=settings)
    assert not again.answer
    assert asked(model) == {"mention_finder": 1, "drafter": 2}


def test_five_model_calls_are_the_most() -> None:
    queries = [f"SELECT ?f WHERE {{ ?f org:runtime ?m FILTER(?m > {n}) }}" for n in range(3)]
    run, model = answered(draft(), [revise(query, "film") for query in queries])
    assert (model.call_count(), answer_of(run).labels) == (5, ("Arrival",))
    assert keys(run)[-2:] == ["executor[revision 3]", "answer"], "the last revision stands"
    more = [draft("", more=["Story"]), draft()]
    settings = SURVEYOR.settings(survey_tokens=1)
    _, model = answered(more, [revise(query, "film") for query in queries[:2]], settings=settings)
    assert asked(model) == {"mention_finder": 1, "drafter": 2, "reviewer": 2}


def test_the_same_query_again_is_no_revision() -> None:
    _, model = answered(draft(), revise(DIRECTED, "film"))
    assert asked(model) == CALLS


REFUSED = {
    "does not parse": "SELECT ?film WHERE { ?film org:director }",
    "DESCRIBE": "DESCRIBE org:dune",
    "INSERT": "INSERT DATA { org:a org:b org:c }",
    "SERVICE": "SELECT ?x WHERE { SERVICE <http://evil.example/> { ?x ?y ?z } }",
    "declare nope": "SELECT ?x WHERE { ?x nope:director ?y }",
    "took longer": SLOW,
    "parse at line 1": "Welche Filme hat er gedreht?",
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_run_is_feedback(problem: str) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=0.5)
    run, model = answered(draft(REFUSED[problem]), [revise(DIRECTED, "film"), FINE], kg=kg)
    assert problem in told(model, "result")[0]
    assert len(answer_of(run).values) == 3
    refused, model = answered(draft(REFUSED[problem]), revise("SELECT nonsense", "x"), kg=kg)
    assert str(refused.answer).startswith("no query could be run: ")
    assert (asked(model)["reviewer"], refused.status, make_answer_query(refused)) == (
        2,
        "done",
        EMPTY_QUERY,
    )


def test_what_could_be_run_stands_where_no_revision_can() -> None:
    broken = [revise(f"SELECT nonsense {n}", "nonsense") for n in range(3)]
    for reviews in (broken, [broken[0], FINE]):
        run, _ = answered(draft(DIRECTED, "list", "film"), reviews)
        assert (len(answer_of(run).values), run.status) == (3, "done")


def test_too_many_rows_are_cut_and_said() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), row_limit=5)
    run, model = answered(draft("SELECT ?a ?e WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"), kg=kg)
    assert "! the result was cut at 5 rows" in told(model, "result")[0]
    assert 0 < len(answer_of(run).values) <= 5


def test_names_that_cannot_be_asked_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films()
    run = surveyor(Scripted(script()), kg=kg).go(until="drafter")
    monkeypatch.setattr(kg, "names", Mock(side_effect=GraphTimeoutError("too slow")))
    run.go(until="reviewer[draft]")
    assert [*run["executor[draft]"].notes] == ["the rows stay without names: too slow"]
    assert len(run.output("executor[draft]").rows) == 3


def test_a_path_has_no_triples_to_show() -> None:
    run, _ = answered(draft("SELECT ?film WHERE { ?film org:director/org:birthPlace ?place }"))
    assert [value.support for value in answer_of(run).values] == [()] * 4


# --- dialogue


def test_a_follow_up_is_read_alone_and_remembered() -> None:
    films_of_his, birth = draft(), draft("SELECT ?p WHERE { org:denis org:birthPlace ?p }")
    second = mention("Denis Villeneuve", question="Where was Denis Villeneuve born?")
    model = Scripted(script([films_of_his, birth], names=[mention("Denis Villeneuve"), second]))
    bench = kgwb.Workbench(films(), model, system="surveyor")
    bench.ask(QUESTION)
    run = bench.ask("And where was he born?")
    assert str(run.answer) == "Gentilly"
    asked_again = model.requests[3].variables
    assert [turn["question"] for turn in asked_again["earlier"]] == [QUESTION]
    assert set(asked_again["earlier"][0]["answers"]) == {"Arrival", "Dune", "Sicario"}
    assert told(model, "question")[1] == "Where was Denis Villeneuve born?"
    assert run.turn.standalone == "Where was Denis Villeneuve born?"


# --- by hand


def test_a_draft_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = Draft(
        "PREFIX : <http://example.org/>\nSELECT ?f WHERE { ?f :director :lynch }", columns=("film",)
    )
    run.override("drafter", own).go()
    assert (answer_of(run).labels, asked(model)["drafter"], asked(model)["reviewer"]) == (
        ("Dune",),
        1,
        2,
    )
    assert len(answer_of(run.remove_override("drafter").go()).values) == 3
    problems = {"DROP ALL": "change the graph", "DESCRIBE <a:b>": "no SELECT or ASK", "?": "parse"}
    for query, problem in problems.items():
        with pytest.raises(OverrideError, match=problem):
            run.override("drafter", Draft(query))


def test_a_review_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = {"verdict": "not in this graph", "reason": "these are other films", "draft": None}
    run.override("reviewer[draft]", own).go()
    assert (str(run.answer), model.call_count()) == ("not in this graph: these are other films", 3)


def test_a_survey_by_hand_changes_what_is_drafted() -> None:
    run, model = answered()
    seen = run.output("surveyor")
    assert isinstance(seen, Survey)
    only = [kind for kind in seen.classes if kind.name == "Story"]
    run.override("surveyor", replace(seen, classes=tuple(only))).go()
    shown = [r.variables["survey"] for r in model.requests if r.task == "surveyor/drafter"]
    assert ["org:Film" in text for text in shown] == [True, False]


def test_records_say_what_they_hold() -> None:
    run, _ = answered(draft(TABLE, "table", "film", "minutes"))
    outputs = {step.agent: str(step.output) for step in run.steps}
    assert outputs["mention_finder"] == "Denis Villeneuve; about Film"
    assert outputs["value_finder"].startswith("Denis Villeneuve: Denis Villeneuve")
    assert (outputs["executor"], outputs["reviewer"]) == ("3 rows", "fine")
    assert str(Draft("", missing="a price")) == "not in this graph: a price"
    assert str(Draft("", more=("Film",))) == "asks to see Film"
    assert str(Executed("", error="slow")) == "could not be run: slow"
    assert str(Mentions("Who?")) == "no name; about anything"
    assert str(Part("", ("Film",), ("Story",))) == "1 class: Film, 1 left out"
    one_line = Draft('PREFIX e: <http://e/> SELECT ?x\nWHERE { ?x e:p "PREFIX e: <x>" }')
    assert one_line.sparql_without_prefixes.strip() == 'SELECT ?x\nWHERE { ?x e:p "PREFIX e: <x>" }'
