"""The forms of results: an editor for each kind of record that a person may want to put in by hand."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import Any, Generic, TypeVar

import ipywidgets as widgets
from rdflib import URIRef

from kgwb.errors import GraphError, OverrideError
from kgwb.flow import (
    QIR,
    Candidate,
    Fact,
    Generated,
    Link,
    LinkedRelation,
    RankedPredicate,
    Retrieved,
    Selection,
    to_data,
)
from kgwb.kg.sparql import writable
from kgwb.kg.text import local_name
from kgwb.record import Step
from kgwb.ui.fields import blank, form_field, record_of
from kgwb.ui.kit import Panel, body, field, markup, row, tag
from kgwb.ui.schema_form import LABELS, WIDE, SchemaForm
from kgwb.ui.session import Session

T = TypeVar("T")
BY_HAND = "chosen by hand"
NO_VERTEX = "no vertex: the graph does not have it"


class Editor(Generic[T]):
    """The form of a step's result, to be put in by hand; ``widget`` shows it."""

    widget: widgets.Widget

    def __init__(self, step: Step, session: Session, panel: Panel) -> None:
        self.step, self.session, self.panel = step, session, panel
        self.widget = self.build()
        self._before = self.typed()

    @property
    def changed(self) -> bool:
        """Whether it shows something else than the step's output."""
        return bool(self.typed() != self._before)

    def value(self) -> T:
        """The result as it was typed. Raises OverrideError that says what is wrong where."""
        raise NotImplementedError

    def build(self) -> widgets.Widget:
        """The form, filled with the step's output."""
        raise NotImplementedError

    def typed(self) -> Any:
        """What stands in the fields, right or wrong."""
        raise NotImplementedError

    def came_in(self, form: type) -> Any:
        """What an earlier agent handed to the step, by its type; None if nothing of that type."""
        return next((value for value in self.step.inputs.values() if isinstance(value, form)), None)


def editor(step: Step, session: Session, panel: Panel) -> Editor[Any]:
    """The editor that fits a step's result; failures of its buttons are shown in ``panel``."""
    return EDITORS.get(step.form, RecordEditor)(step, session, panel)


class RecordEditor(Editor[Any]):
    """Any record, field by field."""

    def build(self) -> widgets.Widget:
        plain = form_field(self.step.form)
        field = plain if plain.kind == "group" else replace(plain, label="result")
        data = to_data(self.step.output, self.step.form) if self.step.done else blank(field)
        self.form = SchemaForm(field, data, self.panel)
        return self.form

    def typed(self) -> Any:
        return self.form.typed()

    def value(self) -> Any:
        return record_of(self.form.value(), self.step.form)


class QirEditor(Editor[QIR]):
    """The triples as a table; the target is one of their unknowns."""

    def build(self) -> widgets.Widget:
        before = self.step.output or QIR(())
        facts, _, kind = form_field(QIR).fields
        self._told = markup()
        self._unknowns: tuple[str, ...] = ()
        self.kind = widgets.Dropdown(
            options=kind.choices, value=before.kind, description="kind", style=LABELS
        )
        self.target = widgets.Dropdown(description="target", style=LABELS)
        self.facts = SchemaForm(facts, to_data(before)["facts"], self.panel, self._tell)
        self._tell()
        if before.target in self._unknowns:
            self.target.value = before.target
        self.panel.watch(self.kind, lambda _: self._tell())
        return widgets.VBox((field("triples", self.facts), self._told, self.kind, self.target))

    def typed(self) -> Any:
        return self.facts.typed(), self.target.value, self.kind.value

    def value(self) -> QIR:
        return replace(self._qir(), target=self.target.value or "", kind=self.kind.value)

    def _qir(self) -> QIR:
        rows = [[cell.strip() for cell in cells] for cells in self.facts.typed()]
        return QIR(tuple(Fact(*cells) for cells in rows if any(cells)))

    def _tell(self) -> None:
        """Say what is an entity and what an unknown; the target follows an unknown that is renamed."""
        qir = self._qir()
        entities, unknowns = ", ".join(qir.entities) or "none", ", ".join(qir.unknowns) or "none"
        self._told.value = body(f"entities: {entities}; unknowns: {unknowns}")
        self.target.disabled = self.kind.value == "boolean"
        names = () if self.target.disabled else qir.unknowns
        if names == self._unknowns:
            return
        target, before = self.target.value, self._unknowns
        self._unknowns = names
        self.target.options = names
        if target in names:
            self.target.value = target
        elif target in before and len(before) == len(names):
            self.target.value = names[before.index(target)]


class LinkEditor(Editor[Link]):
    """One of the candidates, no vertex, or another vertex by its IRI."""

    def build(self) -> widgets.Widget:
        retrieved, output = self.came_in(Retrieved), self.step.output
        entity = retrieved.entity if retrieved else str(self.step.inputs.get("entity", self.step.subject))
        self.before: Link = output or Link(entity, None, retrieved.candidates if retrieved else ())
        vertex = self.before.vertex
        self.offered = (*self.before.candidates, *((vertex,) if vertex else ()))
        self.offered = tuple(dict.fromkeys(self.offered))
        options = [(_candidate_text(one), place) for place, one in enumerate(self.offered)]
        self.choice = widgets.Select(
            options=[*options, (NO_VERTEX, -1)],
            value=self.offered.index(vertex) if vertex else -1,
            rows=min(max(len(options) + 1, 3), 10),
            layout=widgets.Layout(width=WIDE),
        )
        wide = {"layout": widgets.Layout(width=WIDE)}
        self.iri = widgets.Text(placeholder="http://...", continuous_update=False, **wide)
        self.reason = widgets.Text(placeholder=BY_HAND, **wide)
        self._told = markup()
        self.panel.watch(self.iri, lambda _: self._look_up())
        return widgets.VBox(
            (
                field(f"the vertex that {self.before.entity!r} means", self.choice),
                field("or another vertex of the graph, by its IRI", self.iri),
                self._told,
                field("why", self.reason),
            )
        )

    def typed(self) -> Any:
        return self.choice.value, self.iri.value, self.reason.value

    def value(self) -> Link:
        if not self.changed and self.step.done:
            return self.before
        vertex = self._typed_vertex() or (self.offered[self.choice.value] if self.choice.value >= 0 else None)
        return replace(self.before, vertex=vertex, reason=self.reason.value.strip() or BY_HAND)

    def _typed_vertex(self) -> Candidate | None:
        if not self.iri.value.strip():
            return None
        iri = checked_iri(self.iri.value)
        return next((one for one in self.offered if one.iri == iri), None) or Candidate(
            iri, name_of(iri, self.session)
        )

    def _look_up(self) -> None:
        """Say what the typed IRI is called, and whether the graph has it."""
        self._told.value = ""
        graph, text = self.session.run.graph, self.iri.value
        if not text.strip():
            return
        iri = checked_iri(text)

        def look() -> None:
            anywhere = f"{{ <{iri}> ?p ?o }} UNION {{ ?s ?p <{iri}> }}"
            try:
                known = graph.ask(f"ASK {{ {anywhere} }}") if graph else True
                name = graph.names([iri])[iri] if graph else local_name(iri)
            except GraphError as exc:
                self._told.value = body(exc.message)
                return
            if self.iri.value == text:
                lost = "" if known else " (careful: no triple of this graph has it)"
                self._told.value = body("this is ", tag("b", name), lost)

        if graph and graph.remote:
            threading.Thread(target=look, name="kgwb-look-up", daemon=True).start()
        else:
            look()


class RetrievedEditor(Editor[Retrieved]):
    """The candidates, some removed or in another order."""

    def build(self) -> widgets.Widget:
        self.before: Retrieved = self.step.output or Retrieved(str(self.step.inputs.get("entity", "")), ())
        self.order = list(range(len(self.before.candidates)))
        self.list = widgets.SelectMultiple(
            rows=min(max(len(self.order), 3), 12), layout=widgets.Layout(width=WIDE)
        )
        actions = {"Up": self.up, "Down": self.down, "Remove": self.remove, "Put all back": self.reset}
        self._show(())
        buttons = row(*(self.panel.button(text, action) for text, action in actions.items()))
        return field(f"candidates for {self.before.entity!r}, best first", widgets.VBox((self.list, buttons)))

    def typed(self) -> Any:
        return tuple(self.order)

    def value(self) -> Retrieved:
        return replace(self.before, candidates=tuple(self.before.candidates[place] for place in self.order))

    def up(self) -> None:
        """Move the marked candidates up by one."""
        self._move(-1)

    def down(self) -> None:
        """Move the marked candidates down by one."""
        self._move(1)

    def remove(self) -> None:
        """Leave the marked candidates out."""
        self.order = [place for place in self.order if place not in self.list.value]
        self._show(())

    def reset(self) -> None:
        """Have all candidates in their first order."""
        self.order = list(range(len(self.before.candidates)))
        self._show(())

    def _move(self, by: int) -> None:
        marked = set(self.list.value)
        order = self.order[::-by]
        for place in range(1, len(order)):
            if order[place] in marked and order[place - 1] not in marked:
                order[place - 1], order[place] = order[place], order[place - 1]
        self.order = order[::-by]
        self._show(tuple(marked))

    def _show(self, marked: tuple[int, ...]) -> None:
        self.list.options = [(_candidate_text(self.before.candidates[place]), place) for place in self.order]
        self.list.value = tuple(place for place in self.order if place in marked)


class RelationEditor(Editor[LinkedRelation]):
    """The ranked predicates as a table; one without a name gets the graph's."""

    def build(self) -> widgets.Widget:
        self.before: LinkedRelation = self.step.output or LinkedRelation(
            self.came_in(Fact) or Fact("", "", ""), ()
        )
        predicates = form_field(LinkedRelation).fields[1]
        columns = {column.name: column for column in predicates.fields}
        columns["similarity"] = replace(columns["similarity"], default=1.0)
        order = ("similarity", "direction", "name", "iri")
        table = replace(predicates, fields=tuple(columns[name] for name in order))
        self.form = SchemaForm(table, to_data(self.before)["predicates"], self.panel)
        return field(f"predicates for {self.before.fact}, best first", self.form)

    def typed(self) -> Any:
        return self.form.typed()

    def value(self) -> LinkedRelation:
        ranked: tuple[RankedPredicate, ...] = record_of(self.form.value(), tuple[RankedPredicate, ...])
        named = []
        for predicate in ranked:
            iri = checked_iri(predicate.iri)
            named.append(replace(predicate, iri=iri, name=predicate.name or name_of(iri, self.session)))
        return replace(self.before, predicates=tuple(named))


class SelectionEditor(Editor[Selection]):
    """Which of the candidate queries are kept."""

    def build(self) -> widgets.Widget:
        self.before: Selection = self.step.output or Selection((), ())
        generated = self.came_in(Generated)
        self.offered = generated.queries if generated else self.before.queries
        kept = {query.sparql for query in self.before.queries}
        self.ticks = [
            widgets.Checkbox(
                query.sparql in kept,
                description=f"{query.score:.2f} {', '.join(query.predicates)}",
                indent=False,
                layout=widgets.Layout(width="18em"),
            )
            for query in self.offered
        ]
        lines = [
            row(tick, markup(tag("code", _short(query.sparql))))
            for tick, query in zip(self.ticks, self.offered, strict=True)
        ]
        scrolled = widgets.Layout(max_height="30em", overflow="auto", display="block")
        box = widgets.VBox(lines or [markup("no query was offered")], layout=scrolled)
        return field("queries to execute", box)

    def typed(self) -> Any:
        return tuple(tick.value for tick in self.ticks)

    def value(self) -> Selection:
        if not self.changed and self.step.done:
            return self.before
        kept = tuple(query for query, tick in zip(self.offered, self.ticks, strict=True) if tick.value)
        return Selection(kept, tuple(dict.fromkeys(name for query in kept for name in query.predicates)))


class GeneratedEditor(Editor[Generated]):
    """The SPARQL of each candidate query."""

    def build(self) -> widgets.Widget:
        self.before: Generated = self.step.output or Generated((), 0)
        self.texts = [query.sparql for query in self.before.queries]
        wide = widgets.Layout(width=WIDE)
        options = [
            (f"{place + 1}: {query.score:.2f} {', '.join(query.predicates)}", place)
            for place, query in enumerate(self.before.queries)
        ]
        self.which = widgets.Dropdown(options=options, layout=wide)
        self._told = markup()
        self.sparql = widgets.Textarea(rows=6, layout=wide)
        if not self.texts:
            return markup("There is no candidate query to edit.")
        self._show(0)
        self.panel.watch(self.which, self._show)
        self.panel.watch(self.sparql, self._keep)
        return widgets.VBox((field("candidate query", self.which), field("SPARQL", self.sparql), self._told))

    def typed(self) -> Any:
        return tuple(self.texts)

    def value(self) -> Generated:
        from kgwb.explain import edited

        queries = []
        for number, (query, text) in enumerate(zip(self.before.queries, self.texts, strict=True), 1):
            try:
                queries.append(query if text == query.sparql else edited(query, text))
            except GraphError as exc:
                raise OverrideError(f"query {number}: {exc.message}", hint=exc.hint) from exc
        return replace(self.before, queries=tuple(queries))

    def _show(self, place: int | None) -> None:
        if place is not None:
            self.sparql.value = self.texts[place]

    def _keep(self, text: str) -> None:
        self.texts[self.which.value] = text
        texts = zip(self.texts, self.before.queries, strict=True)
        changed = [str(number) for number, (new, query) in enumerate(texts, 1) if new != query.sparql]
        self._told.value = body(f"edited: query {', '.join(changed)}") if changed else ""


EDITORS: dict[Any, type[Editor[Any]]] = {
    QIR: QirEditor,
    Link: LinkEditor,
    Retrieved: RetrievedEditor,
    LinkedRelation: RelationEditor,
    Selection: SelectionEditor,
    Generated: GeneratedEditor,
}
"""The editors of results in which a person chooses among what an earlier agent offered."""


def checked_iri(text: str) -> URIRef:
    """An IRI as a person types it. Raises OverrideError for a text that is none."""
    plain = text.strip().removeprefix("<").removesuffix(">")
    if not re.match(r"[A-Za-z][\w+.-]*:.", plain) or not writable(plain):
        hint = "copy it from a table of results or from your graph, as in http://example.org/Arrival"
        raise OverrideError(f"{text.strip()!r} is not an IRI", hint=hint)
    return URIRef(plain)


def name_of(iri: URIRef, session: Session) -> str:
    """What an IRI is called; a graph far away is not asked, as a click must not wait for it."""
    graph = session.run.graph
    return local_name(iri) if graph is None or graph.remote else graph.names([iri])[iri]


def _candidate_text(one: Candidate) -> str:
    types = f" ({', '.join(one.types)})" if one.types else ""
    told = f": {one.description}" if one.description else ""
    return f"{one.label}{types}{told} <{re.split('[/#]', one.iri)[-1]}>"


def _short(sparql: str) -> str:
    """A query to be recognised by: IRIs by their last part."""
    return re.sub(r"<[^<>]*[/#]([^<>/#]+)>", r"\1", sparql)


__all__ = ["Editor", "SchemaForm", "editor"]
