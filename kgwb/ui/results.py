"""A step's result as a widget: its static form, and what a person may ask of the graph about it.

What is asked goes to the graph itself, not through the run: the run's record stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any, TypeVar

import ipywidgets as widgets
from rdflib import URIRef

from kgwb.aside import aside
from kgwb.errors import GraphError, InputError
from kgwb.flow import Answer, CandidateQuery, Generated, Link, LinkedRelation, Retrieved, Selection
from kgwb.kg.base import Graph
from kgwb.kg.queries import degrees
from kgwb.record import Step
from kgwb.render.html import MOST_ROWS, Html, tag
from kgwb.render.records import DEGREE_CAP, blocking_html, record, step_record
from kgwb.render.sparql import laid_out, sparql
from kgwb.render.text import outcome
from kgwb.render.words import clean, names_in
from kgwb.show import explain
from kgwb.ui.kit import Panel, body, field, markup, row
from kgwb.ui.session import Session

T = TypeVar("T")
WIDE = "min(100%, 72em)"


def result_view(step: Step, session: Session, panel: Panel) -> widgets.Widget:
    """What a step yielded, in the form a person reads it, and the questions that may be asked about it.

    Failures are told in ``panel``'s message. It shows the step as it is now: make it anew once it changed.
    """
    if not step.done:
        return markup(outcome(step))
    shown = markup(step_record(step, names_in(session.steps.values(), session.run.calls)))
    if questions.dispatch(type(step.output)) is questions.dispatch(object):
        return shown
    if session.run.graph is None:
        told = "A recording without its graph: nothing more can be asked. Open it with its graph, by kg=..."
        more: tuple[widgets.Widget, ...] = (markup(tag("div", told, class_="kgwb-note")),)
    else:
        more = questions(step.output, Asking(step, session, panel, session.run.graph, shown))
    return widgets.VBox((shown, *more), layout=widgets.Layout(width="auto"))


class Asking:
    """Asks the graph about a step, one question at a time, on a thread that ``stop`` leaves behind."""

    def __init__(self, step: Step, session: Session, panel: Panel, graph: Graph, shown: widgets.HTML) -> None:
        self.step, self.panel, self.graph, self.shown = step, panel, graph, shown
        self.settings = session.run.settings
        self.steps = tuple(session.steps.values())
        self.names = names_in(self.steps, session.run.calls)
        self.told = partial(record, names=self.names)
        self.stop = panel.button("Stop", self._stop, disabled=True)
        self._buttons: list[widgets.Button] = []

    def button(
        self, text: str, ask: Callable[[], T], show: Callable[[T], Html], out: widgets.HTML
    ) -> widgets.Button:
        """A button that asks the graph, and shows what it says in ``out``."""

        def work() -> None:
            with self.panel.message.guarding():
                found = aside(ask, watch=self._watch)
                self.panel.message.clear()
                out.value = body(show(found))
            self._busy(False)

        def clicked() -> None:
            if out is not self.shown:
                out.value = ""
            self._busy(True)
            self.panel.message.say("asking the graph …")
            threading.Thread(target=work, name="kgwb-result", daemon=True).start()

        self._buttons.append(self.panel.button(text, clicked))
        return self._buttons[-1]

    def _busy(self, busy: bool) -> None:
        for button in self._buttons:
            button.disabled = busy
        self.stop.disabled = not busy

    def _stop(self) -> None:
        self.stop.disabled = True  # which the one who waits looks at

    def _watch(self) -> None:
        if self.stop.disabled:
            hint = "it may work on until its time limit; ask for less"
            raise GraphError("stopped: nobody waits for the graph any more", hint=hint)


@singledispatch
def questions(output: Any, asking: Asking) -> tuple[widgets.Widget, ...]:
    """The widgets by which a person asks about a kind of result."""
    return ()


# --- candidates


@questions.register
def _(output: Retrieved | Link, asking: Asking) -> tuple[widgets.Widget, ...]:
    name = widgets.Text(placeholder="a name or an IRI", layout=widgets.Layout(width="22em"))
    out = markup()

    def where() -> explain.Whereabouts:
        if not name.value.strip():
            raise InputError("nothing was typed to look for", hint="type a name or an IRI, then look again")
        return explain.whereabouts(asking.graph, name.value, output, asking.settings.v_limit)

    def count() -> Mapping[URIRef, int]:
        return degrees(asking.graph, [c.iri for c in output.candidates[:MOST_ROWS]], DEGREE_CAP)

    def with_degrees(found: Mapping[URIRef, int]) -> Html:
        return step_record(asking.step, asking.names, found)

    look = asking.button("Look for it", where, asking.told, out)
    count_all = asking.button("Show degrees", count, with_degrees, asking.shown)
    ask = field(f"Is this among the candidates for “{output.entity}”?", row(name, look))
    return (row(count_all), ask, out) if output.candidates else (ask, out)


# --- predicates


@questions.register
def _(output: LinkedRelation, asking: Asking) -> tuple[widgets.Widget, ...]:
    if not output.predicates:
        return ()
    options = [(clean(f"{n}. {p.name} ({p.direction})"), p) for n, p in enumerate(output.predicates, 1)]
    choice = widgets.Dropdown(options=options, layout=widgets.Layout(width="22em"))
    links = [step.output for step in asking.steps if step.done and isinstance(step.output, Link)]
    vertices = {link.entity: link.vertex.iri for link in reversed(links) if link.vertex}
    subject, object_ = map(vertices.get, output.fact.ends)
    out = markup()

    def look() -> explain.Examples:
        return explain.examples(asking.graph, (subject, object_), choice.value)

    button = asking.button("Examples of its values", look, asking.told, out)
    return field("predicate", row(choice, button)), out


# --- queries


@questions.register
def _(output: Generated | Selection, asking: Asking) -> tuple[widgets.Widget, ...]:
    return _queries([(_label(query), query.sparql) for query in output.queries], False, asking)


@questions.register
def _(output: Answer, asking: Asking) -> tuple[widgets.Widget, ...]:
    labels = {query.sparql: _label(query) for query in _made(asking.steps)}
    no = [value.label for value in output.values] == ["false"] and output.kind == "boolean"
    named = [(labels.get(query, "query"), query) for query in output.queries]
    return _queries(named, no or not output.values, asking)


def _made(steps: Iterable[Step]) -> list[CandidateQuery]:
    made = [step.output for step in steps if isinstance(step.output, Generated | Selection)]
    return [query for one in made for query in one.queries]


def _label(query: CandidateQuery) -> str:
    return clean(f"{', '.join(query.predicates)} ({query.score:.2f})")


def _queries(named: Sequence[tuple[str, str]], empty: bool, asking: Asking) -> tuple[widgets.Widget, ...]:
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
    run = asking.button("Run query", lambda: explain.executed(asking.graph, editor.value), yielded, out)
    why = asking.button("Why is it empty?", lambda: _why(editor.value, asking), lambda told: told, out)
    why.layout.display = "" if empty else "none"
    asked = row(run, asking.stop, why)
    return field("query", choice), shown, field("SPARQL, to edit and run", editor), asked, out


def _why(text: str, asking: Asking) -> Html:
    known = {laid_out(query.sparql): query for query in _made(asking.steps)}.get(text)
    patterns, filters = (known.patterns, known.filters) if known else explain.patterns_of(text)
    found = explain.blocking(asking.graph, patterns, filters)
    parts = (*found.culprits, *found.unmatched)
    return blocking_html(found, {part: explain.author(asking.steps, part) for part in parts}, asking.names)


def _height(text: str) -> int:
    return min(max(text.count("\n") + 2, 4), 16)
