"""When a draft is reviewed, what the reviewer is shown, and how its revisions are used."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest
from rdflib import XSD
from small import answer_of, asked, keys
from surveying import (
    COUNT,
    DIRECTED,
    FINE,
    QUESTION,
    SURVEYOR,
    TABLE,
    UNREVIEWED,
    answered,
    ask_twins,
    draft,
    mention,
    revise,
    serious_findings,
    variables_of,
)

from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.show.run import render_step_page

LONG = "a" * 90
ONE_CLASS_REVIEWED = SURVEYOR.settings(survey_tokens=1, always_reviews=True)


def test_a_revision_is_run_and_reviewed_again() -> None:
    wrong = "SELECT ?film WHERE { org:denis org:director ?film }"
    run, model = answered(draft(wrong), [revise(DIRECTED, "film"), FINE])
    assert len(answer_of(run).values) == 3
    assert [step.key for step in run.steps if step.agent in ("executor", "reviewer")] == [
        *("executor[draft]", "reviewer[draft]", "executor[revision 1]", "reviewer[revision 1]")
    ]
    first, second = variables_of(model, "reviewer", "result")
    [finding] = serious_findings(run)
    assert "denis" in finding and "other way round" in finding
    assert first.splitlines() == ["0 rows", f"! {finding}"]
    assert second.startswith("3 rows\n?film\n")
    assert 'arrival "Arrival"' in second
    assert variables_of(model, "reviewer", "draft") == [wrong, DIRECTED]


def test_five_model_calls_are_the_most() -> None:
    queries = [f"SELECT ?f WHERE {{ ?f org:runtime ?m FILTER(?m > {n}) }}" for n in range(3)]
    run, model = answered(draft(), [revise(query, "film") for query in queries])
    assert (model.call_count(), answer_of(run).labels) == (5, ("Arrival",))
    assert keys(run)[-2:] == ["executor[revision 3]", "answer"]
    more = [draft("", more=["Story"]), draft()]
    settings = SURVEYOR.settings(survey_tokens=1, always_reviews=True)
    _, model = answered(more, [revise(query, "film") for query in queries[:2]], settings=settings)
    assert asked(model) == {"mention_finder": 1, "drafter": 2, "reviewer": 2}


def test_a_review_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = {"verdict": NOT_IN_GRAPH, "reason": "these are other films", "draft": None}
    run.override("reviewer[draft]", own).go()
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {own['reason']}"
    assert model.call_count() == 3


ALL = "SELECT ?f { ?f a org:Film }"
NAMED = " ?f org:director org:denis "
LABELS = "SELECT ?label { ?f org:director org:denis . ?f rdfs:label ?label }"
MINUTES = "SELECT ?f { ?f org:director org:denis . ?f org:runtime ?m FILTER(?m > 100) }"


@pytest.mark.parametrize(
    ("question", "reply", "is_reviewed"),
    [
        (QUESTION, draft(), False),
        (QUESTION, draft(COUNT, "count"), False),
        (QUESTION, draft("ASK { org:dune org:director org:denis }", "yes or no"), False),
        (QUESTION, draft(assumptions=["cinema films only"]), False),
        (QUESTION, draft(COUNT.replace("denis", "ted"), "count"), True),
        (QUESTION, draft("ASK { org:dune org:director org:amy }", "yes or no"), True),
        (QUESTION, draft("SELECT ?f { org:denis org:director ?f }"), True),
        (QUESTION, draft(f"SELECT DISTINCT ?f {{ {NAMED} }} ORDER BY ?f LIMIT 2"), False),
        (QUESTION, draft(f"SELECT ?f {{ {NAMED} ?f org:director ?d }} ORDER BY ?d LIMIT 1"), True),
        # What is no sign: a negation, groups, a path, OPTIONAL, a union.
        (
            QUESTION,
            draft(f"SELECT ?f {{ {NAMED} FILTER NOT EXISTS {{ ?f org:runtime ?m }} }}"),
            False,
        ),
        (
            QUESTION,
            draft(
                f"SELECT ?f (COUNT(?m) AS ?n) {{ {NAMED} OPTIONAL {{ ?f org:runtime ?m }} }} GROUP BY ?f"
            ),
            False,
        ),
        (
            QUESTION,
            draft(f"SELECT ?f {{ {{ {NAMED} }} UNION {{ ?f org:director org:amy }} }}"),
            False,
        ),
        # A name or a number of the question that the query lacks.
        (QUESTION, draft(ALL), True),
        (f"{QUESTION} Over 1,00 minutes", draft(MINUTES), False),
        (f"{QUESTION} Over 90 minutes", draft(MINUTES), True),
        # A label in place of the thing, and several rows where one value is asked for.
        (QUESTION, draft(LABELS), True),
        (QUESTION, draft(DIRECTED, "one"), True),
    ],
)
def test_a_query_is_reviewed_only_if_something_foretells_that_it_is_wrong(
    question: str, reply: dict[str, Any], is_reviewed: bool
) -> None:
    names = mention("Denis Villeneuve", question=question)
    _, model = answered(reply, names=names, settings=UNREVIEWED)
    assert model.call_count("surveyor/reviewer") == is_reviewed


def test_what_the_survey_denies_makes_a_review_and_is_shown_to_the_reviewer() -> None:
    wrong = "SELECT ?f { ?f org:director org:denis . ?f org:directr ?d }"
    run, model = answered(draft(wrong), [revise(DIRECTED, "film")], settings=UNREVIEWED)
    [denied] = run.output("executor[draft]").contradictions
    assert "org:directr" in denied and denied.endswith("org:director")
    [result] = variables_of(model, "reviewer", "result")
    assert f"! {denied}" in result.splitlines()
    assert run.output("executor[revision 1]").contradictions == ()
    assert escape(denied) in render_step_page(run["executor[draft]"])


def test_the_reviewer_sees_the_survey_that_the_drafter_saw() -> None:
    _, model = answered(draft(), [revise(TABLE, "film", "length"), FINE])
    seen = {*variables_of(model, "drafter", "survey"), *variables_of(model, "reviewer", "survey")}
    assert len(seen) == 1
    more = draft("", more=["Story"])
    _, model = answered([more, draft()], names=mention(classes=()), settings=ONE_CLASS_REVIEWED)
    first, second = variables_of(model, "drafter", "survey")
    assert variables_of(model, "reviewer", "survey") == [second] != [first]


def rows_shown(sparql: str) -> list[str]:
    """The rows of a query's result as the reviewer is shown them."""
    _, model = ask_twins(draft(sparql))
    [result] = variables_of(model, "reviewer", "result")
    _, _, rows = result.partition("\n?x\n")
    return list(rows.splitlines())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("a:dune b:dune", ['a:dune "Dune"', 'b:dune "Dune"']),
        ("a:dune a:ann", ['dune "Dune"', 'ann "Ann"']),
        ('"Same"@en "Same"@de', ['"Same"@en', '"Same"@de']),
        ('"5" 5', ['"5"', "5"]),
        ('"1"^^a:day "1"^^b:day', ['"1"^^a:day', '"1"^^b:day']),
        ("<http://e/1/x> <http://e/2/x>", ['<http://e/1/x> "x"', '<http://e/2/x> "x"']),
        (f'"{LONG}1" "{LONG}2"', [f'"{LONG}{n}"^^<{XSD.string}>' for n in (1, 2)]),
        ('"http://example.org/a/dune" a:dune', ['"http://example.org/a/dune"', 'dune "Dune"']),
    ],
)
def test_terms_are_shown_differently_to_the_reviewer(values: str, expected: list[str]) -> None:
    sparql = f"SELECT ?x WHERE {{ VALUES ?x {{ {values} }} }}"
    assert rows_shown(sparql) == expected
