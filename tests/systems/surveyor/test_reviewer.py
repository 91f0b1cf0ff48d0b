"""When a draft is reviewed, what the reviewer is shown, and how its revisions are used."""

from __future__ import annotations

from typing import Any

import pytest
from nasty_graphs import b
from rdflib import XSD
from small import EX, FILMS, answer_of, asked, films, keys
from surveying import (
    CALLS,
    COUNT,
    DIRECTED,
    FINE,
    SURVEYOR,
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

LONG = "a" * 90


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


def test_the_same_query_again_is_no_revision() -> None:
    _, model = answered(draft(), revise(DIRECTED, "film"))
    assert asked(model) == CALLS


def test_a_query_is_not_replaced_by_a_revision_that_cannot_be_executed() -> None:
    broken = [revise(f"SELECT nonsense {n}", "nonsense") for n in range(3)]
    for reviews in (broken, [broken[0], FINE]):
        run, _ = answered(draft(DIRECTED, "list", "film"), reviews)
        assert (len(answer_of(run).values), run.status) == (3, "done")


def test_a_review_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = {"verdict": NOT_IN_GRAPH, "reason": "these are other films", "draft": None}
    run.override("reviewer[draft]", own).go()
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {own['reason']}"
    assert model.call_count() == 3


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


def test_the_reviewer_sees_how_many_different_things_there_are() -> None:
    table = "SELECT ?who ?film WHERE { ?film org:director ?who }"
    _, model = answered(draft(table, "table", "who", "film"))
    heading = variables_of(model, "reviewer", "result")[0].splitlines()[0]
    assert heading.startswith("4 rows") and heading.endswith("2 different ?who")


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


def test_a_query_without_a_class_shows_the_reviewer_no_class() -> None:
    run, _ = ask_twins(draft('SELECT ?x WHERE { ?x ?p <None> FILTER(STR(?x) != "a:Film") }'))
    assert run["reviewer"].inputs["part"].classes == ()


@pytest.mark.parametrize(
    "sparql",
    [
        "SELECT ?x WHERE { ?x a b:Film }",
        f"SELECT ?x WHERE {{ ?x a <{b('Film')}> }}",
        f"PREFIX a: <{b('')}> SELECT ?x WHERE {{ ?x a a:Film }}",
    ],
)
def test_the_reviewer_sees_the_class_that_a_query_means_however_it_writes_it(sparql: str) -> None:
    run, _ = ask_twins(draft(sparql))
    assert run["reviewer"].inputs["part"].classes[:1] == ("Film (b:Film)",)
    assert "Film (a:Film)" in run["reviewer"].inputs["part"].classes


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


@pytest.mark.parametrize(("number", "is_reviewed"), [(60, False), (61, True)])
def test_a_result_of_many_rows_is_reviewed(number: int, is_reviewed: bool) -> None:
    items = " ".join(f":item{each} a :Item ." for each in range(number))
    kg = films(f"{FILMS} {items}")
    _, model = answered(draft("SELECT ?x { ?x a org:Item }"), settings=UNREVIEWED, kg=kg)
    assert model.call_count("surveyor/reviewer") == is_reviewed
