"""The forms of results: an editor for each kind of record that a person may want to put in by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, TypeVar

import ipywidgets as widgets
from rdflib import URIRef

from kgwb import explain, flow, walk
from kgwb.errors import GraphError, OverrideError
from kgwb.kg.text import local_name
from kgwb.record import Step
from kgwb.render.html import fold
from kgwb.render.sparql import sparql
from kgwb.render.text import summary
from kgwb.render.words import clean
from kgwb.ui.fields import Field, blank, form_field, read, record_of
from kgwb.ui.kit import Panel, body, field, markup, row, tag
from kgwb.ui.schema_form import WIDE, SchemaForm
from kgwb.ui.session import Session

T = TypeVar("T")
BY_HAND = "chosen by hand"
NO_RELATION = "no relation: none fits, or another entity comes first"
NO_VERTEX = "no vertex: the graph does not have it"


class Editor(Generic[T]):
    """The form of a step's result, to be put in by hand; ``widget`` shows it."""

    inputs: tuple[widgets.Widget, ...]
    """What a person may change."""

    def __init__(self, step: Step, session: Session, panel: Panel) -> None:
        self.step, self.session, self.panel = step, session, panel
        self.widget = self.build()
        self._before = self.typed()

    def typed(self) -> tuple[Any, ...]:
        """What stands in the fields, right or wrong."""
        return tuple(one.typed() if isinstance(one, SchemaForm) else one.value for one in self.inputs)

    def value(self) -> T:
        """The result as it was typed. Raises OverrideError that says what is wrong where."""
        untouched = self.step.done and self.typed() == self._before
        made: T = self.step.output if untouched else self.read()
        return made

    def build(self) -> widgets.Widget:
        """The form, filled with the step's output; sets ``inputs``."""
        raise NotImplementedError

    def read(self) -> T:
        """The result of what was typed. Raises OverrideError."""
        raise NotImplementedError

    def came_in(self, form: type) -> Any:
        """What an earlier agent handed to the step, by its type; None if nothing of that type."""
        return next((value for value in self.step.inputs.values() if isinstance(value, form)), None)


def editor(step: Step, session: Session, panel: Panel) -> Editor[Any]:
    """The editor that fits a step's result; failures of its buttons are shown in ``panel``."""
    return EDITORS.get(step.form, RecordEditor)(step, session, panel)


class RecordEditor(Editor[Any]):
    """Any record, field by field; without a result yet, parts that came in by the same name are filled in."""

    def build(self) -> widgets.Widget:
        whole = self.field()
        data = flow.to_data(self.step.output, self.step.form) if self.step.done else blank(whole)
        if whole.kind == "group" and not self.step.done:
            known = {part.name: self.step.inputs.get(part.name) for part in whole.fields}
            data |= {name: flow.to_data(value) for name, value in known.items() if value is not None}
        self.form = SchemaForm(whole, data, self.panel)
        self.inputs = (self.form,)
        return self.form

    def read(self) -> Any:
        return record_of(self.form.value(), self.step.form)

    def field(self) -> Field:
        """What the form is made of."""
        return replace(form_field(self.step.form), label="result")


class RelationEditor(RecordEditor):
    """The ranked predicates; one without a name gets the graph's."""

    def field(self) -> Field:
        whole = super().field()
        fact, predicates = whole.fields
        *others, similarity = predicates.fields
        columns = (*others, replace(similarity, default=1.0))
        return replace(whole, fields=(fact, replace(predicates, fields=columns)))

    def read(self) -> flow.LinkedRelation:
        made: flow.LinkedRelation = super().read()
        measured = {one.similarity for one in self.step.output.predicates} if self.step.done else set()
        for number, one in enumerate(made.predicates, 1):
            if not (0 <= one.similarity <= 1 or one.similarity in measured):
                told = f"predicates, row {number}: similarity {one.similarity:g} is not between 0 and 1"
                raise OverrideError(told, hint="1 says just what the relation says, 0 has nothing of it")
        named = (replace(one, name=one.name or _name_of(one.iri, self.session)) for one in made.predicates)
        return replace(made, predicates=tuple(named))


class LinkEditor(Editor[flow.Link]):
    """One of the candidates, no vertex, or another vertex by its IRI: what was said last counts."""

    def build(self) -> widgets.Widget:
        entity = str(self.step.inputs.get("entity", self.step.subject))
        found = self.came_in(flow.Retrieved) or flow.Retrieved(entity, ())
        self.before: flow.Link = self.step.output or flow.Link(found.entity, None, found.candidates)
        vertex = self.before.vertex
        self.offered = tuple(dict.fromkeys((*self.before.candidates, *((vertex,) if vertex else ()))))
        self._first = self.offered.index(vertex) if vertex else -1
        options = [
            (clean(f"{summary(one)} {one.description}"), place) for place, one in enumerate(self.offered)
        ]
        options.append((NO_VERTEX, -1))
        wide, rows = widgets.Layout(width=WIDE), min(max(len(options), 3), 10)
        self.choice = widgets.Select(options=options, value=self._first, rows=rows, layout=wide)
        self.iri = widgets.Text(placeholder="http://...", continuous_update=False, layout=wide)
        self.reason = widgets.Text(placeholder=BY_HAND, layout=wide)
        self.inputs = self.choice, self.iri, self.reason
        self._known = markup()
        self.panel.watch(self.choice, self._chosen)
        self.panel.watch(self.iri, self._look_up)
        choice = field(f"the vertex that {self.before.entity!r} means", self.choice)
        iri = field("or another vertex of the graph, by its IRI", self.iri)
        return widgets.VBox((choice, iri, self._known, field("why", self.reason)))

    def read(self) -> flow.Link:
        if self.iri.value.strip():
            iri = _iri(self.iri.value)
            known = next((one for one in self.offered if one.iri == iri), None)
            vertex = known or flow.Candidate(iri, _name_of(iri, self.session))
        else:
            vertex = self.offered[self.choice.value] if self.choice.value >= 0 else None
        reason = read(Field("why", "text", "why"), self.reason.value) or BY_HAND
        return replace(self.before, vertex=vertex, reason=reason)

    def _chosen(self, place: int | None) -> None:
        if place is not None:
            self.iri.value = ""

    def _look_up(self, text: str) -> None:
        """Say what the typed IRI is called, and whether the graph has it; then no candidate is marked."""
        self._known.value = ""
        if not text.strip():
            if self.choice.value is None:
                self.choice.value = self._first
            return
        self.choice.value = None
        iri, graph = _iri(text), self.session.run.graph
        query = f"ASK {{ {{ <{iri}> ?p ?o }} UNION {{ ?s ?p <{iri}> }} }}"
        known = graph is None or graph.remote or graph.ask(query)
        lost = "" if known else " (careful: no triple of this graph has it)"
        name = tag("b", _name_of(iri, self.session))
        self._known.value = body("this is ", name, ", taken instead of a candidate", lost)


class SelectionEditor(Editor[flow.Selection]):
    """Which of the candidate queries are kept: those that are ticked."""

    def build(self) -> widgets.Widget:
        before, generated = self.step.output or flow.Selection((), ()), self.came_in(flow.Generated)
        self.offered = generated.queries if generated else before.queries
        kept = {query.sparql for query in before.queries}
        narrow = widgets.Layout(width="22px")
        self.inputs = tuple(  # ipywidgets typesets a description as TeX: what the graph says stands beside it
            widgets.Checkbox(one.sparql in kept, tooltip=_scored(one), indent=False, layout=narrow)
            for one in self.offered
        )
        pairs = zip(self.inputs, self.offered, strict=True)
        lines = [row(tick, markup(fold(_scored(one), sparql(one.sparql)))) for tick, one in pairs]
        return _scrolled("queries to execute", lines)

    def read(self) -> flow.Selection:
        kept = tuple(query for query, tick in zip(self.offered, self.inputs, strict=True) if tick.value)
        return flow.Selection(kept, tuple(dict.fromkeys(name for query in kept for name in query.predicates)))


class GeneratedEditor(Editor[flow.Generated]):
    """The SPARQL of each candidate query."""

    def build(self) -> widgets.Widget:
        self.before: flow.Generated = self.step.output or flow.Generated((), 0)
        wide = widgets.Layout(width=WIDE)
        self.inputs = tuple(widgets.Textarea(one.sparql, rows=4, layout=wide) for one in self.before.queries)
        pairs = enumerate(zip(self.before.queries, self.inputs, strict=True), 1)
        lines = [field(f"query {number}: {_scored(query)}", text) for number, (query, text) in pairs]
        return _scrolled("SPARQL of the candidate queries", lines)

    def read(self) -> flow.Generated:
        queries = []
        for number, (query, text) in enumerate(zip(self.before.queries, self.typed(), strict=True), 1):
            new = read(Field("", "text", f"query {number}"), text)
            try:
                queries.append(query if text == query.sparql else explain.edited(query, new))
            except GraphError as exc:
                raise OverrideError(f"query {number}: {exc.message}", hint=exc.hint) from exc
        return replace(self.before, queries=tuple(queries))


class FilteredEditor(Editor[walk.Filtered]):
    """One of the relations that were offered, or none."""

    def build(self) -> widgets.Widget:
        found = self.came_in(walk.Relations) or walk.Relations(self.step.subject, ())
        self.before: walk.Filtered = self.step.output or walk.Filtered(found.head, "", None)
        options: list[tuple[str, walk.Relation | None]] = [(str(one), one) for one in found.found]
        options.append((NO_RELATION, None))
        wide = widgets.Layout(width=WIDE)
        self.choice = widgets.Select(
            options=options, value=self.before.relation, rows=min(max(len(options), 3), 12), layout=wide
        )
        self.subquestion = widgets.Text(self.before.subquestion, layout=wide)
        self.reason = widgets.Text(placeholder=BY_HAND, layout=wide)
        self.inputs = self.choice, self.subquestion, self.reason
        choice = field(f"the relation to go along from {found.head!r}", self.choice)
        first = field("the first hop of the question", self.subquestion)
        return widgets.VBox((choice, first, field("why", self.reason)))

    def read(self) -> walk.Filtered:
        said = read(Field("why", "text", "why"), self.reason.value) or BY_HAND
        first = read(Field("subquestion", "text", "first hop"), self.subquestion.value)
        return replace(self.before, subquestion=first, relation=self.choice.value, reason=said)


EDITORS: dict[Any, type[Editor[Any]]] = {
    walk.Filtered: FilteredEditor,
    flow.Link: LinkEditor,
    flow.LinkedRelation: RelationEditor,
    flow.Selection: SelectionEditor,
    flow.Generated: GeneratedEditor,
}
"""The editors of results in which a person chooses among what an earlier agent offered."""


def _iri(text: str) -> URIRef:
    return URIRef(read(Field("iri", "iri"), text))


def _name_of(iri: URIRef, session: Session) -> str:
    """What an IRI is called; a graph far away is not asked, as a click must not wait for it."""
    graph = session.run.graph
    return local_name(iri) if graph is None or graph.remote else graph.names([iri])[iri]


def _scored(query: flow.CandidateQuery) -> str:
    return clean(f"{query.score:.2f} {', '.join(query.predicates)}")


def _scrolled(title: str, lines: list[widgets.Widget]) -> widgets.Widget:
    layout = widgets.Layout(max_height="30em", overflow="auto", display="block")
    return field(title, widgets.VBox(lines or [markup("no query was offered")], layout=layout))
