"""Surveyor on a graph in which everything has a twin: what is offered can be chosen, what is shown differs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from nasty_graphs import a, b, twins
from rdflib import Literal
from small import answer_of, asked
from surveying import FINE, SURVEYOR, answered, draft, mention

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.kg.survey import SurveyBuilder
from kgwb.kg.survey_text import SurveyWriter
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.systems.surveyor.mentions import titles_to_choose_from
from kgwb.systems.surveyor.records import Draft, Part

ONE_CLASS = SURVEYOR.settings(survey_tokens=1)
"""Settings with which an excerpt has one class, and names the others."""
NO_CLASSES = mention(classes=())
FILMS_OF_ONE_NAME = "SELECT ?film WHERE { VALUES ?film { a:dune b:dune } }"


def ask_twins(
    drafts: Any = None, reviews: Any = FINE, names: Any = NO_CLASSES, **options: Any
) -> Any:
    """A finished run on the graph of twins, and the model that it asked."""
    drafts = drafts or draft(FILMS_OF_ONE_NAME)
    return answered(drafts, reviews, names, kg=twins(), **options)


def variables_of(model: Scripted, task: str, name: str) -> list[Any]:
    """The values of a variable in the prompts of a task."""
    requests = [request for request in model.requests if request.task == f"surveyor/{task}"]
    return [request.variables[name] for request in requests]


def part_of(run: Run) -> Part:
    """The excerpt that the drafter was shown first."""
    part: Part = run["drafter"].inputs["part"]
    return part


def described_classes(excerpt: str) -> list[str]:
    """The CURIEs of the classes that an excerpt describes."""
    return re.findall(r"^([\w<:/.>]+) .*instances", excerpt, re.MULTILINE)


WRITER = SurveyWriter(SurveyBuilder(twins()).build())
OFFERED_TITLES = titles_to_choose_from(WRITER)
NAMED_CLASSES = tuple(map(WRITER.format_title, WRITER.groups))
"""The classes as a survey names those that it has no room for."""


# Classes of one name


def test_classes_of_one_name_are_all_described() -> None:
    run, model = ask_twins()
    [excerpt] = variables_of(model, "drafter", "survey")
    classes = described_classes(excerpt)
    assert {"a:Film", "b:Film", "a:Picture", "a:Cafe", "b:Cafe", "a:Person", "b:Person"} < set(
        classes
    )
    assert len(classes) == len(set(classes))
    assert {"Film (a:Film)", "Film (b:Film)", "film (a:Picture)", "Language C"} < {
        *part_of(run).classes
    }


def test_classes_of_one_name_are_all_named_where_there_is_no_room() -> None:
    run, model = ask_twins(settings=ONE_CLASS)
    [excerpt] = variables_of(model, "drafter", "survey")
    named = excerpt.splitlines()[-1].partition("not shown here: ")[2].split(", ")
    curies = [*described_classes(excerpt), *(text.partition(" ")[0] for text in named)]
    assert {"a:Film", "b:Film", "a:Cafe", "b:Cafe"} < set(curies)
    assert len(curies) == len(set(curies)) == len(NAMED_CLASSES)
    assert len(set(part_of(run).left)) == len(named)


@pytest.mark.parametrize("title", OFFERED_TITLES)
def test_each_class_that_the_mention_finder_is_offered_can_be_chosen(title: str) -> None:
    assert len({offered.casefold() for offered in OFFERED_TITLES}) == len(OFFERED_TITLES)
    for name in (title, title.upper()):
        run, _ = ask_twins(names=mention(classes=[name]), settings=ONE_CLASS)
        assert run.output("mention_finder").classes == (title,)
        assert part_of(run).classes[0] in (title, "Ship")  # one group with Vessel


def test_a_name_without_its_curie_means_all_classes_of_that_name() -> None:
    run, _ = ask_twins(names=mention(classes=["Film"]))
    titles = ("Film (a:Film)", "film (a:Picture)", "Film (b:Film)")
    assert sorted(run.output("mention_finder").classes) == sorted(titles)
    assert sorted(part_of(run).classes[:3]) == sorted(titles)


@pytest.mark.parametrize("named", NAMED_CLASSES)
def test_each_class_that_is_only_named_can_be_asked_for(named: str) -> None:
    curie = named.partition(" ")[0]
    first_shown = mention(classes=["Language C" if curie == "a:Id" else "id"])
    for name in (named, curie):
        more = draft("", more=[name])
        run, model = ask_twins([more, draft()], names=first_shown, settings=ONE_CLASS)
        shown = variables_of(model, "drafter", "survey")[1]
        assert described_classes(shown) == [curie]
        assert run.output("drafter").more == (name,)


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


# Nothing more to show


def test_a_draft_that_asks_for_more_where_nothing_is_left_is_asked_again() -> None:
    run, model = ask_twins([draft("", more=["Studio"]), draft(FILMS_OF_ONE_NAME)])
    assert len(answer_of(run).values) == 2
    assert asked(model) == {"mention_finder": 1, "drafter": 2, "reviewer": 1}
    assert "Studio" in model.requests[2].messages[-1].content
    assert len(run["drafter"].attempts) == 2


def test_a_draft_that_asks_for_a_class_that_is_not_there_is_told_which_there_are() -> None:
    _, model = ask_twins([draft("", more=["Studio"]), draft(FILMS_OF_ONE_NAME)], settings=ONE_CLASS)
    complaint = model.requests[2].messages[-1].content
    assert "Studio" in complaint
    assert "Film (b:Film)" in complaint


def test_classes_are_shown_once_and_then_the_drafter_has_to_decide() -> None:
    more = draft("", more=["b:Film"])
    run, _ = ask_twins([more, more, draft(FILMS_OF_ONE_NAME)], settings=ONE_CLASS)
    assert len(answer_of(run).values) == 2
    assert [len(step.attempts) for step in run.steps if step.agent == "drafter"] == [1, 2]
    with pytest.raises(InvalidReplyError, match="b:Film"):
        ask_twins(more, settings=ONE_CLASS)


@pytest.mark.parametrize(
    ("drafts", "reviews"),
    [
        (draft("", reason="", more=["Studio"]), FINE),
        (draft("", reason=" ", more=[]), FINE),
        (draft(), {**FINE, "verdict": NOT_IN_GRAPH, "reason": ""}),
    ],
)
def test_no_run_ends_without_a_query_an_answer_or_a_reason(drafts: Any, reviews: Any) -> None:
    with pytest.raises(InvalidReplyError):
        ask_twins(drafts, reviews)


def test_a_draft_that_a_person_puts_in_says_why_it_has_no_query() -> None:
    run, _ = ask_twins()
    for decision in (Draft(""), Draft("", more=("Studio",))):
        with pytest.raises(OverrideError):
            run.override("drafter", decision)
    run.override("drafter", Draft("", missing="a price")).go()
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: a price"


# What stands side by side


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
        ('"http://example.org/a/dune" a:dune', ['"http://example.org/a/dune"', 'dune "Dune"']),
    ],
)
def test_terms_are_shown_differently_to_the_reviewer(values: str, expected: list[str]) -> None:
    sparql = f"SELECT ?x WHERE {{ VALUES ?x {{ {values} }} }}"
    assert rows_shown(sparql) == expected


def test_texts_that_differ_late_are_shown_in_full() -> None:
    first, second = rows_shown(f'SELECT ?x WHERE {{ VALUES ?x {{ "{"a" * 90}1" "{"a" * 90}2" }} }}')
    assert first != second


def test_values_of_one_text_are_shown_differently_to_the_drafter() -> None:
    _, model = ask_twins(names=mention("Same", "5", classes=()))
    [names] = variables_of(model, "drafter", "names")
    lines = [line for line in names.splitlines() if "value of a:name" in line]
    assert sorted(line.split()[0] for line in lines) == ['"Same"@de', '"Same"@en']
    assert len(set(names.splitlines())) == len(names.splitlines())


def test_a_literal_that_looks_like_an_iri_is_no_name_of_a_thing() -> None:
    run, _ = ask_twins(draft("SELECT ?x WHERE { a:film1984 a:page ?x }"))
    labels = {value.term: value.label for value in answer_of(run).values}
    assert labels == {
        a("dune"): "Dune",
        Literal("http://example.org/a/dune"): "http://example.org/a/dune",
    }


def test_findings_name_predicates_and_things_of_one_name_differently() -> None:
    run, _ = ask_twins(draft("SELECT ?x WHERE { ?x a:director a:dune ; b:director b:dune }"))
    findings = [finding.text for finding in run.output("executor[draft]").findings]
    assert len(set(findings)) == len(findings) == 2
    assert f"<{a('director')}>" in findings[0] and f"<{b('dune')}>" in findings[1]
