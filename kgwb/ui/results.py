"""A step's result as a widget: its static form, and what a person may ask of the graph about it.

What is asked goes to the graph itself, not through the run: the run's record stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeVar

import ipywidgets as widgets
from rdflib import URIRef

from kgwb import explain
from kgwb.errors import InputError
from kgwb.flow import Answer, CandidateQuery, Generated, Link, LinkedRelation, Retrieved, Selection
from kgwb.kg.base import Graph
from kgwb.kg.queries import degrees
from kgwb.record import Step
from kgwb.render.html import MOST_ROWS, Html, tag
from kgwb.render.records import DEGREE_CAP, blocking_html, record, step_record
from kgwb.render.sparql import laid_out, sparql
from kgwb.render.text import outcome
from kgwb.render.words import Names, names_in
from kgwb.ui.kit import Panel, body, field, markup, row
from kgwb.ui.session import Session

T = TypeVar("T")
WIDE = "min(100%, 72em)"
PATIENCE_S = 0.2
"""A local graph that answers within this time does so before the click is done with."""


def result_view(step: Step, session: Session, panel: Panel) -> widgets.Widget:
    """What a step yielded, in the form a person reads it, and the questions that may be asked about it.

    Failures are told in ``panel``'s message. It shows the step as it is now: make it anew once it changed.
    """
    if not step.done:
        return markup(outcome(step))
    names = names_in(session.steps.values(), session.run.calls)
    shown = markup(step_record(step, names))
    kind = type(step.output)
    if questions.dispatch(kind) is questions.dispatch(object):
        return shown
    graph = session.run.graph
    if graph is None:
        told = "A recording without its graph: nothing more can be asked. Open it with its graph, by kg=..."
        return _column(shown, markup(tag("div", told, class_="kgwb-note")))
    return _column(shown, *questions(step.output, _Asking(step, session, panel, graph, names, shown)))


def background(
    panel: Panel, work: Callable[[], T], show: Callable[[T], None], *busy: widgets.Widget
) -> threading.Thread:
    """Have ``work`` done on a thread of its own and its result shown; a failure is told in the panel.

    The widgets ``busy`` are disabled meanwhile.
    """

    def run() -> None:
        try:
            with panel.message.guarding():
                found = work()
                panel.message.clear()
                show(found)
        finally:
            for widget in busy:
                widget.disabled = False

    for widget in busy:
        widget.disabled = True
    panel.message.say("asking the graph …")
    thread = threading.Thread(target=run, name="kgwb-result", daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True, slots=True)
class _Asking:
    """What the questions about a step need."""

    step: Step
    session: Session
    panel: Panel
    graph: Graph
    names: Names
    shown: widgets.HTML
    """The static form."""

    def button(
        self, text: str, ask: Callable[[], T], show: Callable[[T], Html], out: widgets.HTML
    ) -> widgets.Button:
        """A button that asks the graph, and shows what it says in ``out``."""

        def clicked() -> None:
            if out is not self.shown:
                out.value = ""
            thread = background(self.panel, ask, lambda found: self._show(out, show(found)), made)
            if not self.graph.remote:
                thread.join(PATIENCE_S)

        made = self.panel.button(text, clicked)
        return made

    def told(self, value: Any) -> Html:
        return record(value, self.names)

    def _show(self, out: widgets.HTML, content: Html) -> None:
        out.value = body(content)


@singledispatch
def questions(output: Any, asking: _Asking) -> tuple[widgets.Widget, ...]:
    """The widgets by which a person asks about a kind of result."""
    return ()


# --- candidates


@questions.register
def _(output: Retrieved | Link, asking: _Asking) -> tuple[widgets.Widget, ...]:
    graph, limit = asking.graph, asking.session.run.settings.v_limit
    name = widgets.Text(placeholder="a name or an IRI", layout=widgets.Layout(width="22em"))
    out = markup()

    def where() -> explain.Whereabouts:
        if not name.value.strip():
            raise InputError("nothing was typed to look for", hint="type a name or an IRI, then look again")
        return explain.whereabouts(graph, name.value, output, limit)

    def count() -> Mapping[URIRef, int]:
        return degrees(graph, [c.iri for c in output.candidates[:MOST_ROWS]], DEGREE_CAP)

    def with_degrees(found: Mapping[URIRef, int]) -> Html:
        return step_record(asking.step, asking.names, found)

    look = asking.button("Look for it", where, asking.told, out)
    count_all = asking.button("Show degrees", count, with_degrees, asking.shown)
    question = f"Is this among the candidates for “{output.entity}”?"
    ask = field(question, row(name, look))
    return (row(count_all), ask, out) if output.candidates else (ask, out)


# --- predicates


@questions.register
def _(output: LinkedRelation, asking: _Asking) -> tuple[widgets.Widget, ...]:
    if not output.predicates:
        return ()
    options = [(f"{n}. {p.name} ({p.direction})", p) for n, p in enumerate(output.predicates, 1)]
    choice = widgets.Dropdown(options=options, layout=widgets.Layout(width="22em"))
    subject, object_ = (_vertex(end, asking.session.steps.values()) for end in output.fact.ends)
    out = markup()

    def look() -> explain.Examples:
        return explain.examples(asking.graph, (subject, object_), choice.value.iri, choice.value.direction)

    button = asking.button("Examples of its values", look, asking.told, out)
    return field("predicate", row(choice, button)), out


def _vertex(entity: str, steps: Iterable[Step]) -> URIRef | None:
    links = (step.output for step in steps if step.done and isinstance(step.output, Link))
    return next((link.vertex.iri for link in links if link.entity == entity and link.vertex), None)


# --- queries


@questions.register
def _(output: Generated | Selection, asking: _Asking) -> tuple[widgets.Widget, ...]:
    return _queries([(_label(query), query.sparql) for query in output.queries], False, asking)


@questions.register
def _(output: Answer, asking: _Asking) -> tuple[widgets.Widget, ...]:
    labels = {query.sparql: _label(query) for query in _made(asking.session.steps.values())}
    no = [value.label for value in output.values] == ["false"] and output.kind == "boolean"
    named = [(labels.get(query, "query"), query) for query in output.queries]
    return _queries(named, no or not output.values, asking)


def _made(steps: Iterable[Step]) -> list[CandidateQuery]:
    made = [step.output for step in steps if isinstance(step.output, Generated | Selection)]
    return [query for one in made for query in one.queries]


def _label(query: CandidateQuery) -> str:
    return f"{', '.join(query.predicates)} ({query.score:.2f})"


def _queries(named: Sequence[tuple[str, str]], empty: bool, asking: _Asking) -> tuple[widgets.Widget, ...]:
    """A query to choose, to read, to edit and to run; and why it is empty, if it is."""
    if not named:
        return ()
    typed = [laid_out(query) for _, query in named]  # kept while another query is looked at
    options = [(f"{n}. {label}", n - 1) for n, (label, _) in enumerate(named, 1)]
    choice = widgets.Dropdown(options=options, layout=widgets.Layout(width=WIDE))
    shown, out = markup(sparql(typed[0], asking.names)), markup()
    editor = widgets.Textarea(typed[0], rows=_height(typed[0]), layout=widgets.Layout(width=WIDE))

    def chosen(number: int) -> None:
        editor.value, editor.rows = typed[number], _height(typed[number])
        out.value = ""

    def edited(text: str) -> None:
        typed[choice.value] = text
        shown.value = body(sparql(text, asking.names))

    def yielded(found: explain.Executed) -> Html:
        why.layout.display = "" if found.empty else "none"
        return asking.told(found)

    asking.panel.watch(choice, chosen)
    asking.panel.watch(editor, edited)
    run = asking.button(
        "Run query", lambda: explain.executed(asking.graph, editor.value, named=MOST_ROWS), yielded, out
    )
    why = asking.button("Why is it empty?", lambda: _why(editor.value, asking), lambda told: told, out)
    why.layout.display = "" if empty else "none"
    return field("query", choice), shown, field("SPARQL, to edit and run", editor), row(run, why), out


def _why(text: str, asking: _Asking) -> Html:
    steps = tuple(asking.session.steps.values())
    known = {laid_out(query.sparql): query for query in _made(steps)}.get(text)
    patterns, filters = (known.patterns, known.filters) if known else explain.patterns_of(text)
    found = explain.blocking(asking.graph, patterns, filters)
    parts = (*found.culprits, *found.unmatched)
    return blocking_html(found, {part: explain.author(steps, part) for part in parts}, asking.names)


def _height(text: str) -> int:
    return min(max(text.count("\n") + 2, 4), 16)


def _column(*children: widgets.Widget) -> widgets.VBox:
    return widgets.VBox(children, layout=widgets.Layout(width="auto"))
