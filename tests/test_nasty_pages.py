"""Both nasty graphs on the pages of benchmarks, the prompt lab, the labs, and the chat.

Two things of one name are two rows, two links and two buttons. Where both are shown, they differ.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from page import Page, press, record_html
from page import page as page_of
from rdflib import BNode, Literal, URIRef
from small import films
from test_nasty_graphs import GRAPHS, check_page, each_graph, nodes_of, searchable_names

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results
from kgwb.bench.metrics import is_iri
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import MAX_SHOWN_VALUES
from kgwb.bench.results import make_row
from kgwb.build import Reply, ask_model
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.pages import render_class_page
from kgwb.labs.points import Grading
from kgwb.llm import Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Candidate, Link, Value
from kgwb.show.comparison import render_record_page
from kgwb.show.explain import locate_vertices
from kgwb.show.subgraph import build_subgraph
from kgwb.systems.surveyor.records import Executed
from kgwb.text import look_of, tell_apart


@cache
def things_by_name(graph: str) -> dict[str, list[URIRef]]:
    """The things that have exactly one of the names that a search finds, by the name."""
    kg = GRAPHS[graph]
    things: dict[str, list[URIRef]] = {}
    for name in searchable_names(graph):
        found = kg.names(kg.exact([name]).get(name, ()))
        things[name] = sorted(iri for iri, other in found.items() if other == name)
    return {name: iris for name, iris in things.items() if iris}


class CountReply(Reply):
    """How many things of the name are the answer."""

    count: int


PROMPT = "[user]\nHow many of {{name}}?"


@agent(kind="model")
def list_things(name: str, run: Run) -> Answer:
    """The first things of a name, as many as the model says."""
    [graph] = [graph for graph, kg in GRAPHS.items() if kg is run.unrecorded_graph]
    count = ask_model("namer/say", {"name": name}, CountReply, run).count
    ask_model("namer/other/say", {"name": name}, CountReply, run)
    iris = things_by_name(graph)[name][:count]
    return Answer("list", tuple(Value(iri, name) for iri in iris))


def answer(question: Any, dialogue: Any, run: Run) -> Answer:
    return list_things(question.text, run)


NAMER = System(
    "namer", answer, [list_things], prompts={"namer/say": PROMPT, "namer/other/say": PROMPT}
)


def measure(graph: str, folder: Path, count: int) -> Path:
    """The results folder of all questions, each of which is answered by the first things of its name."""
    model = Scripted(lambda request: {"count": count})
    workbench = kgwb.Workbench(GRAPHS[graph], model, system=NAMER)
    setup = BenchSetup.from_workbench(workbench)
    Benchmark(setup, Results(folder, setup.to_config()), save_runs=True).run(questions_of(graph))
    return folder


def questions_of(graph: str) -> list[BenchQuestion]:
    """A question for each thing, with its name as the text and its IRI as the id.

    Right are all things of the name.
    """
    asked = []
    for name, iris in things_by_name(graph).items():
        gold = tuple(map(str, iris))
        asked += [BenchQuestion(id=iri, question=name, answers=gold) for iri in gold]
    return asked


@pytest.fixture
def measured(graph: str, tmp_path: Path) -> Path:
    """Results in which one of several things of a name is answered."""
    return measure(graph, tmp_path / "first", 1)


@pytest.fixture
def improved(graph: str, tmp_path: Path) -> Path:
    """Results in which all things of a name are answered."""
    return measure(graph, tmp_path / "second", 99)


def lab_of(graph: str, *folders: Path) -> kgwb.PromptLab:
    return kgwb.PromptLab(*folders, kg=GRAPHS[graph], model=Scripted({}), system=NAMER)


def looks(texts: list[str]) -> set[str]:
    """The texts by what a person sees of them."""
    numbered = dict(enumerate(texts))
    shown = tell_apart(numbered, (numbered.__getitem__, lambda number: f"#{number}"))
    return {text for text in shown.values() if not text.startswith("#")}


@each_graph
def test_each_question_of_the_prompt_lab_has_a_button_of_its_own_that_opens_it(
    graph: str, measured: Path, improved: Path
) -> None:
    lab = lab_of(graph, measured, improved)
    shown = page_of(lab)
    opened = [one for one in shown.elements if one.attributes.get("data-do") == "open"]
    ids = {one.attributes["data-arg"].partition("\t")[2] for one in opened}
    assert len(looks([one.text for one in opened])) == len(opened) == len(ids)
    left_out = {question.id for question in questions_of(graph)} - ids
    assert not left_out or f"and {len(left_out)} more" in shown.text
    for button in opened[:12]:
        press(lab, button.text)
        assert lab.debugger is not None
        answer = lab.debugger.run.answer
        assert answer is not None
        id_ = button.attributes["data-arg"].partition("\t")[2]
        assert URIRef(id_) in [value.term for value in answer.values]


@each_graph
def test_each_prompt_of_the_lab_has_a_tab_of_its_own(graph: str, measured: Path) -> None:
    lab = lab_of(graph, measured)
    tabs = [one for one in page_of(lab).elements if one.attributes.get("data-do") == "prompt"]
    assert {one.attributes["data-arg"] for one in tabs} == {"namer/say", "namer/other/say"}
    assert len(looks([one.text for one in tabs])) == 2
    for tab in tabs:
        press(lab, tab.text)
        assert lab.selected_prompt == tab.attributes["data-arg"]


def linked_names(html: str) -> dict[str, str]:
    """The text of each IRI that is shown as a link, or as a name with the IRI as its tooltip."""
    texts: dict[str, str] = {}
    for one in Page(html).elements:
        iri = one.attributes.get("title", "")
        if one.tag in ("a", "span") and ":" in iri and " " not in iri:
            assert texts.setdefault(iri, one.text) == one.text
    return texts


@each_graph
def test_a_report_has_a_row_for_every_question_in_which_each_answer_has_a_name_of_its_own(
    graph: str, measured: Path, improved: Path, tmp_path: Path
) -> None:
    report = Report(measured, improved)
    html = report.save(tmp_path / "report.html").read_text()
    check_page(report._repr_html_())
    check_page(html)
    asked = questions_of(graph)
    _, *rows = html.split('<tr id="question-')
    assert len(rows) == len(asked)
    for row, question in zip(rows, asked, strict=True):
        names = linked_names(row)
        right = question.answers or ()
        shown = right[:MAX_SHOWN_VALUES]
        assert set(names) >= {iri for iri in shown if is_iri(iri)}
        assert all(iri in row for iri in shown if not is_iri(iri))
        assert len(right) <= MAX_SHOWN_VALUES or f"and {len(right) - MAX_SHOWN_VALUES} more" in row
        assert len(looks(list(names.values()))) == len(names)


@each_graph
def test_every_page_of_a_saved_run_names_each_answer(graph: str, measured: Path) -> None:
    Report(measured).save(measured / "report.html")
    pages = list((measured / "runs").glob("*.html"))
    assert len(pages) == len(questions_of(graph))
    for page in pages:
        check_page(page.read_text())


# The labs


def hand_in_all(names: list[str], folder: Path) -> None:
    for name in names:
        work = kgwb.lab(1, None)
        work.check("1.1", name)
        work.hand_in(name, folder)


@each_graph
@pytest.mark.parametrize("copies", [1, 2])
def test_students_with_the_names_of_a_nasty_graph_are_all_on_the_page_of_the_class(
    graph: str, copies: int, tmp_path: Path
) -> None:
    names = copies * [name for name in things_by_name(graph) if name.strip()]
    hand_in_all(names, tmp_path)
    [collected] = collect_hand_ins(tmp_path)
    assert len(collected.works) == len(names)
    students = [work.name for work in collected.works]
    assert len(looks(students)) == len(students)
    shown = check_page(render_class_page([collected], Grading()))
    rows = [row.text for row in shown.elements if row.tag == "tr"]
    stages = 4  # a table of three, with its head
    assert len(looks(rows)) == len(rows) == 2 * (len(names) + 1) + stages


# Answers


def terms_of_one_text(graph: str) -> list[list[Any]]:
    """The nodes that one short text stands for, for each text that stands for several."""
    names = GRAPHS[graph].names([node for node in nodes_of(graph) if isinstance(node, URIRef)])
    groups: dict[str, list[Any]] = {}
    for node in nodes_of(graph):
        groups.setdefault(look_of(names.get(node, str(node))), []).append(node)
    return [nodes for nodes in groups.values() if len(nodes) > 1]


@each_graph
def test_values_of_one_name_are_told_apart_in_a_line_and_on_a_page(graph: str) -> None:
    groups = terms_of_one_text(graph)
    assert len(groups) > 3
    kg = GRAPHS[graph]
    for terms in groups:
        names = kg.names([term for term in terms if isinstance(term, URIRef)])
        values = tuple(Value(term, names.get(term, str(term))) for term in terms)
        given = Answer("list", values, names=tuple(names.items()))
        for one, other in combinations(values, 2):
            line = look_of(str(Answer("list", (one, other))))
            half = (len(line) - len(", ")) // 2
            assert line[:half] != line[-half:]
        shown = Page(render_record_page(given))
        rows = [one for one in shown.elements if one.attributes.get("class") == "row top"]
        assert len(rows) == len(terms)
        assert len(looks([one.text.split(" ", 1)[1] for one in rows])) == len(rows)


ADDRESS = "http://example.org/a/dune"


def test_a_literal_with_the_text_of_an_iri_is_not_taken_for_it() -> None:
    support = (
        (URIRef("http://example.org/a/ann"), URIRef("http://example.org/a/p"), URIRef(ADDRESS)),
    )
    given = Answer("list", (Value(Literal(ADDRESS), ADDRESS, support),))
    shown = Page(render_record_page(given))
    answers = [one for one in shown.elements if "asked" in one.attributes.get("class", "")]
    assert not answers  # no pill of the triple is the answer
    assert ADDRESS in shown.text  # the answer, which no pill shows, is written itself
    both = Answer("list", (Value(URIRef(ADDRESS), "Dune"), Value(Literal(ADDRESS), "a literal")))
    run = answered(both)
    labels = {node.term: node.label for node in build_subgraph(run).nodes}
    assert labels == {URIRef(ADDRESS): "Dune", Literal(ADDRESS): ADDRESS}
    row = make_row(BenchQuestion(id="1", question="Which?"), run, None)
    assert row["labels"] == {ADDRESS: "Dune"}


def answered(given: Answer) -> Run:
    """A run with this answer."""
    system = System("given", lambda question, dialogue, run: given, [list_things])
    return Run(system, "Which?", kg=GRAPHS["twins"], models=None).go()


@pytest.mark.parametrize(("name", "label"), [("C++", "C#"), ("Café", "Cafe"), ("A+", "A-")])
def test_a_vertex_is_not_said_to_have_a_name_that_differs_in_a_sign(name: str, label: str) -> None:
    other = Candidate(URIRef("http://example.org/other"), label, 0.9)
    mention = Link(name, None, (other,))
    lines = locate_vertices(films(), name, mention, 10)
    assert not any("is candidate" in line for line in lines)


@each_graph
def test_rows_of_a_table_are_told_apart_in_a_line_and_in_the_table(graph: str) -> None:
    names = GRAPHS[graph].names([node for node in nodes_of(graph) if isinstance(node, URIRef)])
    rows = [tuple(terms[:2]) for terms in terms_of_one_text(graph)]
    pairs = [((URIRef(ADDRESS), one), (URIRef(ADDRESS), other)) for one, other in rows]
    for first, second in pairs:
        if any(isinstance(term, BNode) for term in (*first, *second)):
            continue
        values = []
        for row in (first, second):
            label = " · ".join(names.get(term, str(term)) for term in row)
            values.append(Value(row[0], label, (), row))
        given = Answer("list", tuple(values), names=tuple(names.items()), columns=("a", "b"))
        line = look_of(str(given))
        half = (len(line) - len(", ")) // 2
        assert line[:half] != line[-half:]
        shown = Page(render_record_page(given))
        cells = [one.text for one in shown.elements if one.tag == "tr"][1:3]
        assert len(looks(cells)) == 2


@each_graph
def test_rows_of_a_result_of_surveyor_are_told_apart(graph: str) -> None:
    names = GRAPHS[graph].names([node for node in nodes_of(graph) if isinstance(node, URIRef)])
    for terms in terms_of_one_text(graph):
        rows = tuple((term,) for term in terms if not isinstance(term, BNode))
        executed = Executed("SELECT ?a {}", rows=rows, columns=("a",), names=tuple(names.items()))
        shown = Page(record_html(executed, of_system="surveyor"))
        cells = [one.text for one in shown.elements if one.tag == "td"]
        assert len(looks(cells)) == len(rows)
