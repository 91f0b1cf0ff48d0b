"""What people see of hostile labels, literals, questions and replies: text, and nothing that acts."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import ipywidgets as widgets
import pytest
from page import record_html
from rdflib import Literal, URIRef
from small import films

from hostile.corpus import IRIS, NO_IRIS, texts
from hostile.runs import EACH, HARMLESS, Page, as_shown, bundles, graph, hostile_run, plain
from kgwb.cli.ask import print_answer_and_steps
from kgwb.errors import GraphError
from kgwb.kg.survey import survey_graph
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.answers import Answer, Candidate, Value
from kgwb.run.steps import format_tree
from kgwb.show.comparison import to_html
from kgwb.show.html import iri_link as linked
from kgwb.show.html import static_page
from kgwb.show.static_form import load_style
from kgwb.show.subgraph import build_subgraph
from kgwb.show.timeline import render_waterfall
from kgwb.text import CONTROL_CHARACTERS
from kgwb.ui.cell import AgentCell
from kgwb.ui.choosers import GraphChooser
from kgwb.ui.debugger import VIEW_LABELS, ComparisonPanel, Debugger
from kgwb.ui.live import Live
from kgwb.ui.session import session_of
from kgwb.ui.subgraph import SubgraphPanel, to_vis_network
from kgwb.workbench import Workbench

COUNT = 500
"""Texts tried in every place a run shows."""
ALL = tuple(enumerate(bundles(texts(COUNT))))
BATCHES = 4
AS_IT_IS = re.compile(r'(<style>[^<]*</style>)?<section class="kg tex2jax_ignore mathjax_ignore"')
"""How all markup begins: MathJax leaves alone what is inside."""


@cache
def runs(batch: int) -> tuple[tuple[tuple[str, ...], Run], ...]:
    """Hostile runs with what they are made of."""
    return tuple((bundle, hostile_run(bundle, number)) for number, bundle in ALL[batch::BATCHES])


@cache
def harmless_runs() -> tuple[Run, ...]:
    """Runs of the same forms that hold nothing odd."""
    return tuple(hostile_run(HARMLESS[start : start + EACH], start) for start in range(EACH))


def static_forms(run: Run, other: Run) -> Iterator[tuple[str, str]]:
    """Everything that can be shown of a run without a widget, by name."""
    yield "run", to_html(run)
    for step in run.steps:
        yield "step", to_html(step)
    if run.answer is not None:
        yield "record", record_html(run.answer)
    yield "differences", to_html(run.diff(other))
    yield "subgraph", SubgraphPanel(session_of(run)).static_html()
    yield "waterfall", static_page(render_waterfall(run.steps, run.calls))


@cache
def usual() -> frozenset[tuple[str, str]]:
    """The elements and attributes of harmless runs."""
    first, *others = harmless_runs()
    pages = [Page(html) for run in others for _, html in static_forms(run, first)]
    for run in (first, *others[:2]):
        pages += [Page(html) for html in shown_by_widgets(run, 1)]
    return frozenset().union(*(page.parts for page in pages))


def assert_only_text(html: str, where: str) -> Page:
    page = Page(html)
    assert page.odd == [], where
    assert page.parts <= usual(), (where, page.parts - usual())
    for style in page.styles:
        assert "@import" not in style, where
        assert all(body in load_style() for body in re.findall(r"{[^{}]*}", style)), where
    assert not CONTROL_CHARACTERS.search(html), where
    assert not page.text or AS_IT_IS.match(html), where
    html.encode()
    return page


@pytest.mark.parametrize("batch", range(BATCHES))
def test_static_forms_show_text_and_nothing_else(batch: int) -> None:
    for bundle, run in runs(batch):
        for where, html in static_forms(run, harmless_runs()[0]):
            page = assert_only_text(html, f"{where} of {bundle!r:.300}")
            if where == "run":
                label, question = plain(bundle[0]), plain(bundle[7])
                assert as_shown(question) in page.text
                assert as_shown(label) in page.text


@pytest.mark.parametrize("batch", range(BATCHES))
def test_texts_for_a_terminal_do_nothing_to_it(
    batch: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for bundle, run in runs(batch):
        print_answer_and_steps(run, True)
        shown = [
            *map(repr, (run, run.diff(harmless_runs()[0]), *run.steps)),
            format_tree(run.steps, run.calls),
        ]
        for text in (*shown, capsys.readouterr().out):
            assert not CONTROL_CHARACTERS.search(text), f"{text!r:.300} of {bundle!r:.300}"
            text.encode()


# --- widgets


def shown_by_widgets(run: Run, one_in: int = 9) -> Iterator[str]:
    """What widgets show of a run, in every view; of the cells of its steps one in so many."""
    session = session_of(run)
    debugger = Debugger(session)
    for view in VIEW_LABELS:
        debugger.update({"do": "view", "arg": view})
        yield from markup(debugger)
    for step in run.steps[len(run.question) % one_in :: one_in]:
        cell = AgentCell(session, step.key)
        for section, _, _ in cell.sections(cell.key, cell.step):
            cell.update({"do": "section", "arg": section})
            yield from markup(cell)
    yield from markup(ComparisonPanel(run, run))
    widgets.Widget.close_all()


def markup(widget: Live) -> Iterator[str]:
    """What a page shows, and what is shown without a kernel. A worker may draw meanwhile."""
    widget.update({"do": "shown", "display": "page"})
    with widget._draw_lock:
        shown, packed = widget.html, widget.packed
    assert zlib.decompress(packed).decode() == shown
    yield shown
    yield widget.static_html()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_widgets_show_text_and_nothing_else(batch: int) -> None:
    for bundle, run in runs(batch):
        for html in shown_by_widgets(run):
            page = assert_only_text(html, f"{bundle!r:.300}")
            assert "report this" not in page.text


def test_the_chat_shows_text_and_nothing_else() -> None:
    for bundle in [*bundles(texts(COUNT))][::8]:
        bench = Workbench(films(), Scripted(lambda request: "no JSON"))
        for question in bundle:
            if question.strip():
                bench.begin(question)
        chat = bench.chat()
        for number in range(len(bench.runs)):
            chat.update({"do": "open", "arg": str(number)})
            for html in markup(chat):
                found = Page(html)
                assert (found.odd, CONTROL_CHARACTERS.search(html)) == ([], None), (
                    f"{bundle!r:.300}"
                )
        widgets.Widget.close_all()


def test_a_survey_shows_text_and_nothing_else() -> None:
    """On its page, in the chooser that searches in it, and in the terminal."""
    chooser = GraphChooser()
    glance = chooser.overview
    assert glance is not None and glance.thread is not None
    glance.thread.join()

    def pages(bundle: tuple[str, ...]) -> Iterator[str]:
        glance.survey, glance.example_answers = (
            survey_graph(graph(bundle)),
            {bundle[0]: Answer("list")},
        )
        yield record_html(glance.survey)
        for words in ("", bundle[1]):
            chooser.update({"do": "find", "value": words})
            yield from markup(chooser)

    usual = frozenset().union(*(Page(html).parts for html in pages(HARMLESS[:EACH])))
    for _, bundle in ALL[::3]:
        for html in pages(bundle):
            page = Page(html)
            acts = (page.odd, page.parts - usual, CONTROL_CHARACTERS.search(html))
            assert acts == ([], set(), None), f"{bundle!r:.300}"
            assert "report this" not in page.text
        text = repr(glance.survey)
        assert not CONTROL_CHARACTERS.search(text.replace("\n", "")) and text.count("\n") < 17
        text.encode()
    widgets.Widget.close_all()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_graph_of_the_frame_is_data(batch: int) -> None:
    """The page of the frame is always the same; labels go there as data, and are drawn as text."""
    known = {
        (kind, name)
        for run in harmless_runs()
        for kind, name in keys(to_vis_network(build_subgraph(run)))
    }
    for bundle, run in runs(batch):
        data = to_vis_network(build_subgraph(run))
        json.dumps(data, ensure_ascii=False).encode()
        assert set(keys(data)) <= known
        for one in (*data["nodes"], *data["edges"]):
            assert not CONTROL_CHARACTERS.search(one["label"] + one["told"]), f"{bundle!r:.300}"
            assert len(one["label"]) < 100


def keys(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((kind, name) for kind, ones in data.items() for one in ones for name in one)


# --- IRIs


@pytest.mark.parametrize("value", [*IRIS, *NO_IRIS])
def test_only_addresses_of_the_web_are_links(value: str) -> None:
    html = linked(value, "label")
    assert Page(html).odd == []
    assert ("href" in html) == value.startswith(("http://", "https://"))


@pytest.mark.parametrize("value", NO_IRIS)
def test_what_is_no_iri_is_shown_and_not_asked_for(value: str) -> None:
    """A stranger's run file may hold such a vertex, and be opened with a graph."""
    run = hostile_run(HARMLESS[:EACH])
    chosen = next(step for step in run.steps if step.agent == "vertex_selection")
    vertex = Candidate(URIRef(value), "x")
    link = replace(chosen.output, vertex=vertex, candidates=(vertex,))
    assert Page(record_html(link)).odd == []
    before = len(run.calls)
    with pytest.raises(GraphError):
        run.override(chosen.key, link).go()
    assert not [
        call for call in [*run.calls.values()][before:] if value in str(call.request.get("query"))
    ]


def test_right_to_left_texts_stand_alone() -> None:
    """Such letters turn the signs around them too: each text is isolated from what stands beside it."""
    term = Literal("עברית")
    triple = (URIRef("x:a"), URIRef("x:b"), Literal("אבג"))
    html = record_html(Answer("list", (Value(term, "עברית", (triple,)),)))
    for text in ("עברית", "אבג"):
        assert set(re.findall(rf"<(\w+)[^<]*>{text}<", html)) <= {"bdi", "a", "span", "b"}
    rule = ".kg :is(a,b,bdi,del,em,ins,mark,span,summary,td,th){unicode-bidi:isolate}"
    assert rule in load_style()
