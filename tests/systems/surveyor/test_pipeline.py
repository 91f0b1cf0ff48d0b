"""Surveyor as a whole: draft, execute, review, revise. A query that fails is feedback, not an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import rdflib
from rdflib import Literal
from small import EX, FILMS, SLOW, answer_of, asked, films, iri, keys
from surveying import (
    DIRECTED,
    FINE,
    NOT_HERE,
    QUESTION,
    REVIEWING,
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
from kgwb.errors import GraphTimeoutError, OverrideError, SettingError
from kgwb.kg.sparql import SYNTAX_HINT
from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_records import Survey
from kgwb.llm import Scripted
from kgwb.records import Record
from kgwb.run import Run
from kgwb.run.answers import NOT_IN_GRAPH, Dialogue, Turn
from kgwb.run.exports import to_cypher, to_graphml, to_json, to_networkx
from kgwb.show.answers import render_answer
from kgwb.show.subgraph import build_subgraph, subgraph_of_answer
from kgwb.show.subgraph_html import render_tables
from kgwb.show.terms import RenderContext
from kgwb.systems import surveyor as pipeline
from kgwb.systems.surveyor.records import Draft, Executed, Mention, Mentions, Part, Review

COUNT = "SELECT (COUNT(DISTINCT ?film) AS ?n) WHERE { ?film org:director org:denis }"
CALLS = {"mention_finder": 1, "drafter": 1, "reviewer": 1}


def reviewer_saw(model: Scripted, name: str) -> list[str]:
    """Return the value of a variable in each prompt of the reviewer."""
    return [
        request.variables[name] for request in model.requests if request.task == "surveyor/reviewer"
    ]


def drafter_saw(model: Scripted) -> list[str]:
    """Return the excerpt of the survey in each prompt of the drafter."""
    return [
        request.variables["survey"]
        for request in model.requests
        if request.task == "surveyor/drafter"
    ]


def serious_findings(run: Run, place: str = "draft") -> list[str]:
    """Return the findings that are likely to be mistakes, about the query of this place."""
    return [finding.text for finding in run.output(f"executor[{place}]").findings if finding.wrong]


# Answers


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
    # One title for two columns is not used.
    assert answer_of(named).columns == ("film", "minutes")


def test_a_thing_in_a_table_bears_its_own_label_in_pictures_and_exports() -> None:
    run, _ = answered(draft(TABLE, "table", "film", "length"))
    answer = answer_of(run)
    for subgraph in (build_subgraph(run), subgraph_of_answer(answer)):
        labels = {node.term: node.label for node in subgraph.nodes}
        assert (labels[iri("arrival")], labels[Literal(116)]) == ("Arrival", "116")
        assert "Arrival · 116" in render_tables(subgraph, RenderContext())
    nodes = to_networkx(answer).nodes(data=True)
    exported = {data["id"]: data["label"] for _, data in nodes}
    assert exported[str(iri("arrival"))] == "Arrival"
    assert exported[str(iri("dune"))] == "Dune"
    for text in (to_json(answer), to_graphml(answer), to_cypher(answer)):
        assert "·" not in text


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


def test_rows_without_a_term_are_not_an_answer() -> None:
    longest = "SELECT (MAX(?m) AS ?most) WHERE { ?f org:director org:ted ; org:runtime ?m }"
    run, model = answered(draft(longest))
    findings = serious_findings(run)
    assert '?f director "director" ted "Ted Chiang"' in findings[0]
    assert run.answer is not None and not run.answer
    assert run.answer.reason.startswith(NOT_IN_GRAPH) and findings[0] in run.answer.reason
    shown = reviewer_saw(model, "result")[0].splitlines()
    assert {f"! {finding}" for finding in findings} < set(shown)
    assert make_answer_query(run) == EMPTY_QUERY


@pytest.mark.parametrize(
    ("drafts", "reviews", "calls"),
    [
        (draft("", missing="what a film cost"), FINE, 2),
        (draft(), NOT_HERE, 3),
        (draft("", reason="what a film cost"), FINE, 2),
    ],
)
def test_the_reason_is_what_the_graph_lacks(drafts: Any, reviews: Any, calls: int) -> None:
    run, model = answered(drafts, reviews)
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {NOT_HERE['missing']}"
    assert model.call_count() == calls


# Revisions


def test_a_revision_is_run_and_reviewed_again() -> None:
    wrong = "SELECT ?film WHERE { org:denis org:director ?film }"
    run, model = answered(draft(wrong), [revise(DIRECTED, "film"), FINE])
    assert len(answer_of(run).values) == 3
    assert [step.key for step in run.steps if step.agent in ("executor", "reviewer")] == [
        *("executor[draft]", "reviewer[draft]", "executor[revision 1]", "reviewer[revision 1]")
    ]
    first, second = reviewer_saw(model, "result")
    [finding] = serious_findings(run)
    assert "denis" in finding and "other way round" in finding
    assert first.splitlines() == ["0 rows", f"! {finding}"]
    assert second.startswith("3 rows\n?film\n")
    assert 'arrival "Arrival"' in second
    assert reviewer_saw(model, "draft") == [wrong, DIRECTED]


def test_more_of_the_survey_is_asked_for_once() -> None:
    more = draft("", more=["Story"])
    settings = SURVEYOR.settings(survey_tokens=1, always_reviews=True)
    nothing_named = mention("Denis Villeneuve", classes=())
    run, model = answered([more, draft()], names=nothing_named, settings=settings)
    shown = drafter_saw(model)
    assert [text.partition(" ")[0] for text in shown] == ["org:Film", "org:Story"]
    assert shown[0].endswith(", org:Story 1")
    assert len(answer_of(run).values) == 3
    assert asked(model) == {"mention_finder": 1, "drafter": 2, "reviewer": 1}


def test_five_model_calls_are_the_most() -> None:
    queries = [f"SELECT ?f WHERE {{ ?f org:runtime ?m FILTER(?m > {n}) }}" for n in range(3)]
    run, model = answered(draft(), [revise(query, "film") for query in queries])
    assert (model.call_count(), answer_of(run).labels) == (5, ("Arrival",))
    assert keys(run)[-2:] == ["executor[revision 3]", "answer"]
    more = [draft("", more=["Story"]), draft()]
    settings = SURVEYOR.settings(survey_tokens=1, always_reviews=True)
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
def test_a_query_that_cannot_be_executed_is_feedback(problem: str) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=1)
    run, model = answered(draft(REFUSED[problem]), [revise(DIRECTED, "film"), FINE], kg=kg)
    error = run.output("executor[draft]").error
    assert "What to do" not in error and SYNTAX_HINT not in error  # hints are for people
    assert problem in error and reviewer_saw(model, "result")[0].startswith("! ")
    assert len(answer_of(run).values) == 3
    refused, model = answered(draft(REFUSED[problem]), revise("SELECT nonsense", "x"), kg=kg)
    assert refused.answer is not None and not refused.answer
    assert refused.answer.reason.endswith(refused.output("executor[revision 1]").error)
    assert (asked(model)["reviewer"], refused.status) == (2, "done")
    assert make_answer_query(refused) == EMPTY_QUERY


def test_a_query_is_not_replaced_by_a_revision_that_cannot_be_executed() -> None:
    broken = [revise(f"SELECT nonsense {n}", "nonsense") for n in range(3)]
    for reviews in (broken, [broken[0], FINE]):
        run, _ = answered(draft(DIRECTED, "list", "film"), reviews)
        assert (len(answer_of(run).values), run.status) == (3, "done")


def test_too_many_rows_are_cut_and_the_reviewer_sees_that() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), row_limit=5)
    run, model = answered(draft("SELECT ?a ?e WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"), kg=kg)
    [finding] = [text for text in serious_findings(run) if "cut" in text]
    assert "5" in finding and f"! {finding}" in reviewer_saw(model, "result")[0]
    assert 0 < len(answer_of(run).values) <= 5


def test_the_survey_may_take_as_long_as_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def watched(kg: Any, classes: Any, *, timeout_s: float) -> Survey:
        given.append(timeout_s)
        return survey_graph(kg, classes, timeout_s=timeout_s)

    monkeypatch.setattr(pipeline, "survey_graph", watched)
    surveyor(Scripted(script()), settings=SURVEYOR.settings(survey_seconds=7)).go(until="drafter")
    assert given == [7.0]


def test_the_model_is_told_the_day_that_the_settings_have_and_none_without_it() -> None:
    without_day = Scripted(script())
    surveyor(without_day).go()
    with_day = Scripted(script())
    run = surveyor(with_day, settings=REVIEWING.with_changes(today="2026-01-31")).go()
    for task in ("surveyor/drafter", "surveyor/reviewer"):
        [plain] = [each for each in without_day.requests if each.task == task]
        [dated] = [each for each in with_day.requests if each.task == task]
        assert plain.variables["question"] == QUESTION
        assert dated.variables["question"].startswith(f"{QUESTION}\nToday is 2026-01-31")
    # Of a fork with another day, the draft is asked for anew.
    later = run.fork(settings=REVIEWING.with_changes(today="2026-02-01")).go()
    assert asked(with_day) == {"mention_finder": 1, "drafter": 2, "reviewer": 2}
    assert later.output("mention_finder") == run.output("mention_finder")


@pytest.mark.parametrize("day", ["31.1.2026", "2026-1-31", "2026-02-30", "20260131", "today"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(SettingError, match="2026-01-31"):
        SURVEYOR.settings.of_profile("fast", today=day)


@pytest.mark.parametrize(
    ("condition", "functions"),
    [
        ("FILTER(YEAR(NOW()) > 2000)", "NOW()"),
        ("FILTER(rand() < 2 && isIRI(uuid()))", "RAND(), UUID()"),
        ('FILTER("NOW()" != "RAND()")', ""),
        ("FILTER(?now != 3) # NOW()", ""),
    ],
)
def test_a_query_whose_result_depends_on_the_time_has_a_remark(
    condition: str, functions: str
) -> None:
    query = f"SELECT ?film WHERE {{ ?film org:director org:denis BIND(1 AS ?now) {condition}\n}}"
    run, _ = answered(draft(query))
    answer = answer_of(run)
    assert len(answer.values) == 3
    if functions:
        [remark] = answer.remarks
        assert functions in remark
    else:
        assert answer.remarks == ()


def test_a_fork_with_another_time_limit_surveys_anew_and_one_with_the_same_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []

    def watched(kg: Any, classes: Any, *, timeout_s: float) -> Survey:
        given.append(timeout_s)
        return survey_graph(kg, classes, timeout_s=timeout_s)

    monkeypatch.setattr(pipeline, "survey_graph", watched)
    run = surveyor(Scripted(script())).go(until="drafter")
    for seconds in (60, 300, 300):
        settings = SURVEYOR.settings(survey_seconds=seconds)
        run = run.fork(settings=settings).go(until="drafter")
    assert given == [60.0, 300.0]
    [first, second] = [call.request for call in run.calls.values() if call.kind == "survey"]
    assert second == {**first, "seconds": 300}


def test_rows_have_no_names_if_the_graph_cannot_be_asked_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = surveyor(Scripted(script()), kg=kg).go(until="drafter")
    monkeypatch.setattr(kg, "names", Mock(side_effect=GraphTimeoutError("too slow")))
    run.go(until="reviewer[draft]")
    [note] = run["executor[draft]"].notes
    assert note.endswith(": too slow")
    executed = run.output("executor[draft]")
    assert len(executed.rows) == 3 and not executed.names


def test_a_path_has_no_triples_to_show() -> None:
    run, _ = answered(draft("SELECT ?film WHERE { ?film org:director/org:birthPlace ?place }"))
    assert [value.support for value in answer_of(run).values] == [()] * 4


# Dialogue


def test_a_long_earlier_answer_is_not_taken_for_all_of_it() -> None:
    model = Scripted(script([draft()], names=[mention("Denis Villeneuve")]))
    bench = kgwb.Workbench(films(), model, system="surveyor")
    earlier = Turn("Which films are there?", tuple(f"film {number}" for number in range(8)))
    bench.setup.begin("Which of them are his?", Dialogue((earlier,))).go()
    [turn] = model.requests[0].variables["earlier"]
    assert len(turn["answers"]) + turn["more_answers"] == len(earlier.answers)


def test_a_follow_up_question_is_completed_and_remembered() -> None:
    films_of_his, birth = draft(), draft("SELECT ?p WHERE { org:denis org:birthPlace ?p }")
    full_question = "Where was Denis Villeneuve born?"
    second = mention("Denis Villeneuve", question=full_question)
    model = Scripted(script([films_of_his, birth], names=[mention("Denis Villeneuve"), second]))
    bench = kgwb.Workbench(films(), model, system="surveyor", settings=REVIEWING)
    bench.ask(QUESTION)
    run = bench.ask("And where was he born?")
    assert str(run.answer) == "Gentilly"
    asked_again = model.requests[3].variables
    assert [turn["question"] for turn in asked_again["earlier"]] == [QUESTION]
    assert set(asked_again["earlier"][0]["answers"]) == {"Arrival", "Dune", "Sicario"}
    assert reviewer_saw(model, "question")[1] == run.turn.standalone == full_question


# Outputs that a person puts in


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
    problems = {"DROP ALL": "change the graph", "DESCRIBE <a:b>": "DESCRIBE", "?": "parse"}
    for query, problem in problems.items():
        with pytest.raises(OverrideError, match=problem):
            run.override("drafter", Draft(query))


def test_a_review_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = {"verdict": NOT_IN_GRAPH, "reason": "these are other films", "draft": None}
    run.override("reviewer[draft]", own).go()
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {own['reason']}"
    assert model.call_count() == 3


def test_a_survey_by_hand_changes_what_is_drafted() -> None:
    run, model = answered()
    seen = run.output("surveyor")
    assert isinstance(seen, Survey)
    only = [kind for kind in seen.classes if kind.name == "Story"]
    run.override("surveyor", replace(seen, classes=tuple(only))).go()
    assert ["org:Film" in text for text in drafter_saw(model)] == [True, False]


TEXTS: Sequence[tuple[Record, str]] = [
    (Mentions("Who?"), "no name; about anything"),
    (Mentions("Who?", (Mention("Denis"),), ("Film",)), "Denis; about Film"),
    (Mention("Denis"), "Denis: nothing"),
    (Draft("", missing="a price"), "not in this graph: a price"),
    (Draft("", more=("Film",)), "asks to see Film"),
    (Draft("ASK { }", "one", columns=("film",)), "one: film"),
    (Executed("", error="slow"), "could not be run: slow"),
    (Executed("ASK { }", truth=True), "true"),
    (Executed("SELECT * { }", ("a",), ((None,),)), "1 row"),
    (Part("", ("Film",), ("Story",)), "1 class: Film, 1 left out"),
    (Review("fine", "it is"), "fine"),
]


@pytest.mark.parametrize(("record", "text"), TEXTS)
def test_each_record_has_a_line_of_text(record: Record, text: str) -> None:
    assert str(record) == text


def test_prefix_lines_are_removed_from_a_query_but_not_from_its_texts() -> None:
    body = 'SELECT ?x\nWHERE { ?x e:p "PREFIX e: <x>" }'
    query = Draft(f"PREFIX e: <http://e/> {body}")
    assert query.sparql_without_prefixes.strip() == body


# What is open, and how else a question may be read

UNREVIEWED = SURVEYOR.settings()


@pytest.mark.parametrize(
    ("reply", "is_reviewed"),
    [
        (draft(), False),
        (draft(COUNT, "count"), False),
        (draft("ASK { org:dune org:director org:denis }", "yes or no"), False),
        (draft("SELECT ?f { ?f org:runtime ?m FILTER(?m > 100) }"), False),
        (draft(assumptions=["cinema films only"]), False),
        (draft(COUNT.replace("denis", "ted"), "count"), True),
        (draft("ASK { org:dune org:director org:amy }", "yes or no"), True),
        (draft("SELECT ?f { org:denis org:director ?f }"), True),
        (draft("SELECT DISTINCT ?f { ?f org:director ?d } ORDER BY ?f LIMIT 2"), True),
        (
            draft("SELECT DISTINCT ?f { ?f a org:Film FILTER NOT EXISTS { ?f org:runtime ?m } }"),
            True,
        ),
        (draft("SELECT ?d (COUNT(DISTINCT ?f) AS ?n) { ?f org:director ?d } GROUP BY ?d"), True),
        (draft("SELECT ?f { ?f org:director/org:birthPlace org:gentilly }"), False),
        (draft("SELECT ?f { ?f a org:Film OPTIONAL { ?f org:runtime ?m } }"), False),
        (
            draft("SELECT ?f { { ?f org:director org:denis } UNION { ?f org:director org:amy } }"),
            True,
        ),
    ],
)
def test_a_query_is_reviewed_only_if_something_about_it_is_open(
    reply: dict[str, Any], is_reviewed: bool
) -> None:
    _, model = answered(reply, settings=UNREVIEWED)
    assert model.call_count("surveyor/reviewer") == is_reviewed


def test_a_name_with_two_exact_candidates_is_open() -> None:
    twin = films(f'{FILMS}\n:other a :Person ; rdfs:label "Denis Villeneuve" .')
    _, model = answered(settings=UNREVIEWED, kg=twin)
    assert model.call_count("surveyor/reviewer") == 1


READ = {"taken": "films that he directed", "others": ["films that he wrote", "both", "a third"]}


def test_another_reading_asks_again_from_the_draft_on_and_nothing_else() -> None:
    other = draft("SELECT ?film { ?film org:director org:lynch }", assumptions=[])
    run, model = answered([draft(assumptions=[READ]), other], settings=UNREVIEWED)
    assert [(each.taken, each.other) for each in run.readings] == [
        (READ["taken"], "films that he wrote"),
        (READ["taken"], "both"),
    ]
    read = run.read_as(2).go()
    assert answer_of(read).labels == ("Dune",) and read.readings == ()
    assert asked(model)["mention_finder"] == 1 and asked(model)["drafter"] == 2
    first, second = (r for r in model.requests if r.task == "surveyor/drafter")
    added = set(second.variables["question"].splitlines()) - {first.variables["question"]}
    assert len(added) == 1 and "both" in added.pop()
    assert second.variables["survey"] == first.variables["survey"]
    assert set(answer_of(run).labels) == {"Arrival", "Dune", "Sicario"}
    for number in (0, 3):
        with pytest.raises(SettingError, match=f"no other reading {number}"):
            run.read_as(number)


def test_an_answer_without_values_offers_its_other_readings() -> None:
    nothing = draft("SELECT ?film { ?film org:director org:nobody }", assumptions=[READ])
    run, _ = answered([nothing, draft()], settings=UNREVIEWED)
    assert not answer_of(run).values
    assert [each.other for each in run.readings] == READ["others"][:2]
    assert set(answer_of(run.read_as(1).go()).labels) == {"Arrival", "Dune", "Sicario"}


def test_a_reading_keeps_what_was_assumed_about_other_words() -> None:
    of_films = {"taken": "films, not series", "others": ["series too"]}
    run, model = answered(draft(assumptions=[READ, of_films]), settings=UNREVIEWED)
    run.read_as(1).go()
    asked_again = model.requests[-1].variables["question"]
    assert of_films["taken"] in asked_again and READ["others"][0] in asked_again
    assert READ["taken"] not in asked_again


def test_readings_are_kept_by_a_review_and_in_a_file(tmp_path: Path) -> None:
    run, _ = answered(draft(assumptions=[READ]), [revise(TABLE, "film", "length"), FINE])
    assert [each.other for each in run.readings] == READ["others"][:2]
    loaded = Run.load(run.save(tmp_path / "run.jsonl"), SURVEYOR).go()
    assert loaded.readings == run.readings


def test_what_makes_a_yes_true_is_shown() -> None:
    run, model = answered(draft("ASK { ?film org:director org:denis }", "yes or no"))
    executed = run.output("executor[draft]")
    assert (executed.truth, executed.columns, len(executed.rows)) == (True, ("film",), 1)
    assert len(reviewer_saw(model, "result")[0].splitlines()) == 3
    assert answer_of(run).labels == ("true",)


# Names

PATIENTS = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:patient-0003 a :Patient ; rdfs:label "patient B-0003" ; :number "B-0003" ; :ward :w1 .
:p17 a :Patient ; rdfs:label "Ann" ; :number "A-0003" ; :ward :w1 ; :state "X7" .
:w1 a :Ward ; rdfs:label "West" . :ward rdfs:label "lies in" .
:state rdfs:comment "X7 is at home, X8 is in hospital" .
"""


def names_shown(*names: str, data: str = PATIENTS, classes: Sequence[str] = ()) -> list[str]:
    """Return what the drafter sees under Names, for these names, over a graph in Turtle."""
    one = draft("SELECT ?p { ?p a org:Patient }")
    _, model = answered(one, names=mention(*names, classes=classes), kg=films(data))
    [request] = [r for r in model.requests if r.task == "surveyor/drafter"]
    lines: list[str] = request.variables["names"].splitlines()
    return lines


def test_an_exact_value_of_any_predicate_comes_first_and_likeness_of_codes_is_no_match() -> None:
    [heading, found] = names_shown("patient A-0003")
    assert heading == '"patient A-0003"'
    assert found.split()[0] == '"A-0003"' and "org:number" in found and found.endswith("org:p17")


TITLED = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Nurse rdfs:subClassOf :Person . :Doctor rdfs:subClassOf :Person .
:n a :Nurse ; rdfs:label "Anna Keller" ; :phone "1" . :d a :Doctor ; rdfs:label "Dr Anna Keller" .
:s a :Ship ; rdfs:label "Anna Keller II" . :t a :Nurse ; rdfs:label "Anna Keller 17" .
:q a :Doctor ; rdfs:label "Prof Dr med Anna Keller" .
"""


@pytest.mark.parametrize(
    ("name", "classes", "found"),
    [
        ("Anna Keller", [], ["n", "d"]),
        ("anna keller", [], ["n", "d"]),
        ("Anna Keller", ["Ship"], ["n", "d", "s"]),
        ("Dr Anna Keller", [], ["d", "q"]),
        ("Anna Keller II", ["Nurse"], ["s"]),
    ],
)
def test_an_exact_name_does_not_hide_a_longer_one_of_the_same_kind(
    name: str, classes: list[str], found: list[str]
) -> None:
    [_, *lines] = names_shown(name, data=TITLED, classes=classes)
    assert [line.split()[0] for line in lines] == [f"org:{each}" for each in found]
    assert ("[org:phone" in lines[0]) == (found[0] == "n")


HEADS = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:h1 a :Post ; rdfs:label "Head of Procurement" . :h2 a :Post ; rdfs:label "Master of the port" .
:h3 a :Firm ; rdfs:label "IBM" .
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("date of birth", []),
        ("head of the port", ["h1", "h2"]),
        ("office of procurment", ["h1"]),
        ("of the", ["h2"]),
        ("IBM Germany", ["h3"]),
    ],
)
def test_a_word_such_as_of_alone_is_no_match(name: str, found: list[str]) -> None:
    [_, *lines] = names_shown(name, data=HEADS)
    assert sorted(line.split()[0] for line in lines) == [f"org:{each}" for each in found]


def test_a_name_that_only_a_description_has_is_found() -> None:
    [heading, found] = names_shown("X8")
    assert heading == '"X8"' and "org:state" in found and "X8 is in hospital" in found


def test_classes_and_predicates_of_a_name_are_written_as_a_query_needs_them() -> None:
    [_, found] = names_shown("West")
    assert found == '  org:w1 "West" a org:Ward [^org:ward "lies in"]'


def test_the_reviewer_sees_how_many_different_things_there_are() -> None:
    table = "SELECT ?who ?film WHERE { ?film org:director ?who }"
    _, model = answered(draft(table, "table", "who", "film"))
    heading = reviewer_saw(model, "result")[0].splitlines()[0]
    assert heading.startswith("4 rows") and heading.endswith("2 different ?who")


# What the reviewer is shown

STAFF = f"""
@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :Clerk ; rdfs:label "Ann" ; :phone "1" ; :memberOf :u .
:b a :Manager ; rdfs:label "Bob" ; :phone "2" ; :leads :u .
:f a :Firm ; rdfs:label "Firm" ; :phone "3" .
:u a :Unit ; rdfs:label "Unit" ; :budget :p .
:p a :Price ; :amount 5 ; :currency "EUR" .
"""


@pytest.mark.parametrize(
    ("sparql", "shown", "others"),
    [
        ("SELECT ?p { ?c a org:Clerk . ?c org:phone ?p }", ["Clerk"], ["Manager", "Firm"]),
        ("SELECT ?u { ?c a org:Clerk . ?c org:memberOf ?u }", ["Clerk", "Unit"], []),
        (
            "SELECT ?p { ?m org:leads org:u . ?m org:phone ?p }",
            ["Unit", "Manager"],
            ["Clerk", "Firm"],
        ),
        ("SELECT ?x { ?p a org:Price . ?p org:amount ?x }", ["Price"], []),
    ],
)
def test_the_reviewer_sees_the_classes_that_a_query_uses(
    sparql: str, shown: list[str], others: list[str]
) -> None:
    _, model = answered(draft(sparql), names=mention("Unit", classes=()), kg=films(STAFF))
    [request] = [each for each in model.requests if each.task == "surveyor/reviewer"]
    lines = request.variables["survey"].splitlines()
    assert [line.split()[0] for line in lines if " instances" in line] == [
        f"org:{s}" for s in shown
    ]
    named = [line for line in lines if line.startswith("Predicates of the query at other classes")]
    assert [name for name in others if f"org:{name}" not in "".join(named)] == []
    assert bool(named) == bool(others)


def test_the_measure_of_a_superlative_is_beside_its_rows() -> None:
    longest = (
        "SELECT ?f { ?f org:runtime ?m { SELECT (MAX(?x) AS ?m) WHERE { ?y org:runtime ?x } } }"
    )
    run, model = answered(draft(longest))
    executed = run["executor[draft]"].output
    assert (executed.measure, [str(value) for value in executed.measured]) == ("?m", ["116"])
    [request] = [each for each in model.requests if each.task == "surveyor/reviewer"]
    assert "?f | [measure, no column: ?m]" in request.variables["result"].splitlines()


def test_of_equal_rows_the_measure_is_that_of_the_first() -> None:
    longest = "SELECT ?d { ?f org:director ?d ; org:minutes ?m } ORDER BY DESC(?m) LIMIT 3"
    minutes = films(FILMS + ":arrival :minutes 90 . :dune :minutes 50 . :lynchs_dune :minutes 40 .")
    run, _ = answered(draft(longest), kg=minutes)
    measured = [(value.label, str(value.measure)) for value in answer_of(run).values]
    assert measured == [("Denis Villeneuve", "90"), ("David Lynch", "40")]


def test_the_measure_and_what_ties_are_told_beside_the_answer_and_one_click_away() -> None:
    longest = (
        "SELECT ?f { ?f org:runtime ?m { SELECT (MAX(?x) AS ?m) WHERE { ?y org:runtime ?x } } }"
    )
    run, _ = answered(draft(longest))
    answer = answer_of(run)
    assert (answer.measure, [str(value.measure) for value in answer.values]) == ("?m", ["116"])
    assert answer.labels == ("Arrival",)
    [reading] = run.readings
    assert "?m" in reading.other
    assert "(measure: 116)" in answer.summary()
    first = "SELECT ?f { ?f org:director ?d } ORDER BY ?d LIMIT 1"
    tied = answer_of(answered(draft(first))[0])
    assert len(tied.remarks) == 1 and "2 more rows" in tied.remarks[0]
    assert len(tied.readings) == 2
    assert tied.remarks[0] in tied.summary().splitlines()


def test_a_measure_is_rendered_behind_the_columns() -> None:
    table = "SELECT ?f ?d { ?f org:director ?d ; org:runtime ?m } ORDER BY ?m LIMIT 1"
    run, _ = answered(draft(table, "table", "film", "director"))
    html = str(render_answer(answer_of(run), RenderContext()))
    assert "measure ?m" in html and "116" in html
