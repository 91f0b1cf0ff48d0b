"""Records as HTML: by a view of their system, by a view of kgwb, or by the types of their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.flow import (
    CANNOT_EXPRESS,
    NOT_IN_GRAPH,
    UNGROUNDED_NOTE,
    Answer,
    Candidate,
    Link,
    RetrievedCandidates,
    Value,
)
from kgwb.kg.queries import EmptyResultCause
from kgwb.kg.survey_records import Survey
from kgwb.records import (
    EXPLANATION_PREFIXES,
    MAX_LINE_CHARS,
    ShownField,
    has_custom_str,
    is_record,
    is_table,
    one_line,
    shown_fields,
    summarize,
)
from kgwb.run.agents import View, current_version
from kgwb.show import html as h
from kgwb.show.explain import (
    PredicateExamples,
    QueryResult,
    render_blocking,
    render_examples,
    render_query_result,
)
from kgwb.show.html import Html
from kgwb.show.survey import render_survey
from kgwb.show.terms import (
    MAX_SUPPORT_TRIPLES,
    RenderContext,
    readable_query,
    render_candidate,
    render_curie,
    render_query,
    render_term,
    render_triples,
)
from kgwb.terms import name_from_iri
from kgwb.text import and_more, display_name, pluralize, shorten

MAX_DEGREE = 1_000
"""Degrees of vertices are counted up to this number."""
MAX_VALUES = 12
"""Values of an answer whose triples are shown at once; the others are collapsed."""
MAX_EDITOR_LINES = 16
EMPTY_VALUES = ("", (), None)


def render(value: Any, context: RenderContext) -> Html:
    """Render a record, or any other value.

    A view of the system for the record's class or a class it derives from comes first, then one of
    BUILT_IN_VIEWS; without either the fields are rendered by their types.
    """
    view = find_view(type(value), context.views)
    if view is not None:
        return Html(view(value, context))
    if isinstance(value, list | tuple):
        return (
            h.div("body", render_table(value, context)) if value else h.div("body soft", "nothing")
        )
    if is_record(value):
        return render_fields(value, context)
    text = str(value)
    if "\n" in text:
        return h.div("body", h.preformatted(value))
    return h.div("body", h.tag("bdi", shorten(text, MAX_LINE_CHARS)))


def find_view(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of a class or of the nearest class it derives from; None if there is none."""
    for candidate in record_class.__mro__:
        view = _view_of_class(candidate, views) or BUILT_IN_VIEWS.get(candidate)
        if view is not None:
            return current_version(view)
    return None


def _view_of_class(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of exactly this class, also after its module was loaded again."""
    if record_class in views:
        return views[record_class]
    place = (record_class.__module__, record_class.__qualname__)
    for other, view in views.items():
        if (other.__module__, other.__qualname__) == place:
            return view
    return None


def has_details(value: Any, context: RenderContext) -> bool:
    """Return whether rendering a value shows more than its one line."""
    has_view = find_view(type(value), context.views) is not None
    return has_view or "\n" in summarize(value)


# By the types of fields


def render_fields(record: Any, context: RenderContext) -> Html:
    """Render the line of a record, and its fields by their types."""
    pieces = [h.div("b", one_line(record))]
    for field in shown_fields(record):
        is_in_line = str(field.value) == str(record)
        if field.value not in EMPTY_VALUES and not is_in_line:
            pieces.append(_render_field(record, field, context))
    return h.div("body stack", *pieces)


def _render_field(record: Any, field: ShownField, context: RenderContext) -> Html:
    if field.mark == "explanation":
        return render_explanation(field.value, EXPLANATION_PREFIXES.get(field.name, "because"))
    if is_table(field.value):
        return render_table(field.value, context)
    if field.mark == "sparql":
        return render_query(field.value, context)
    is_composite = is_record(field.value) or isinstance(field.value, tuple)
    if not (is_composite or field.mark == "score" or not has_custom_str(record)):
        return Html()  # the line of the record says it
    label = h.span("soft", f"{display_name(field.name)} ")
    return h.div("", label, render_cell(field.value, field.mark, context))


def render_explanation(text: str, lead: str = "because") -> Html:
    """Render an explanation after the word that leads to it; nothing if it is empty."""
    if not text:
        return Html()
    return h.div("why", h.span("soft", f"{lead} "), h.tag("bdi", text))


def render_table(records: Sequence[Any], context: RenderContext) -> Html:
    """Render records of one class as a table, with a column for each field that any of them has."""
    if not is_record(records[0]):
        return h.table((), [(render_cell(value, "", context),) for value in records])
    columns = []
    for field in shown_fields(records[0]):
        values = [getattr(record, field.name, None) for record in records]
        if any(value not in EMPTY_VALUES for value in values):
            columns.append(field)
    heads = ["IRI" if column.name == "iri" else display_name(column.name) for column in columns]
    rows = []
    for record in records:
        cells = []
        for column in columns:
            cells.append(render_cell(getattr(record, column.name, ""), column.mark, context))
        rows.append(cells)
    return h.table(heads, rows)


def render_cell(value: Any, mark: str, context: RenderContext) -> Html:
    """Render a value in a table or after its name; ``mark`` is that of its field."""
    if mark == "score":
        return h.score_bar(value)
    if mark == "sparql":
        return render_query(value, context)
    if isinstance(value, URIRef):
        return render_curie(value, context)
    if isinstance(value, Literal | BNode):
        return render_term(value, context)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], URIRef):
            return h.join(*(h.div("", render_curie(iri, context)) for iri in value))
        value = ", ".join(one_line(item) for item in value)
    return h.tag("bdi", "" if value is None else shorten(str(value)))


# Choices and questions to the graph


def render_choices(
    options: Sequence[object], selected: int, none_label: str, context: RenderContext
) -> Html:
    """Render a row for each option, and a last one for taking none of them.

    The option at position ``taken`` is marked; -1 is none. Where the person can choose, a click on
    another row takes it.
    """
    rows = [
        _render_choice(position, option, position == selected, context)
        for position, option in enumerate(options)
    ]
    rows.append(_render_choice(-1, h.span("soft", none_label), selected == -1, context))
    return h.tag("ol", *rows, class_="rows")


def _render_choice(
    position: int, option: object, is_selected: bool, context: RenderContext
) -> Html:
    attributes: dict[str, object] = {"type": "button", "aria_pressed": str(is_selected).lower()}
    action: object = ""
    if context.is_interactive:
        attributes |= {"data_do": "take", "data_arg": position, "id": f"take-{position}"}
        action = h.span("btn ghost", "take this one" if position >= 0 else "take none")
    if is_selected:
        action = h.state_badge("ok", "taken")
    row = h.tag(
        "button",
        h.span("mark"),
        h.span("grow", option),
        h.span("take", action),
        class_="cand",
        **attributes,
    )
    return h.tag("li", row, class_="taken" if is_selected else None)


def render_graph_result(question: str, context: RenderContext) -> Html:
    """Render what the graph replied to a question; nothing if it was not asked."""
    if question not in context.graph_results:
        return Html()
    reply = context.graph_results[question]
    if isinstance(reply, list) and reply:
        return h.div("well", *(h.div("", line) for line in reply))
    return h.div("well", render(reply, context))


def render_link(link: Link, context: RenderContext) -> Html:
    """Render the candidates of a mention with the vertex chosen; a click chooses another one."""
    options = list(dict.fromkeys(link.candidates))
    if link.vertex and link.vertex not in options:
        options.append(link.vertex)
    options = options[: h.MAX_ROWS]
    taken = options.index(link.vertex) if link.vertex in options else -1
    rows = [_render_candidate_with_degree(option, context) for option in options]
    return h.join(
        render_choices(rows, taken, "none of them: the graph does not have it", context),
        _render_omitted_count(len(link.candidates) - len(options)),
        h.div("band", render_explanation(link.reason)) if link.reason else "",
        _render_candidate_queries(link, context),
    )


def render_retrieved(retrieved: RetrievedCandidates, context: RenderContext) -> Html:
    """Render the candidates that the label search found, with their scores, and the search."""
    rows = []
    for rank, candidate in enumerate(retrieved.candidates[: h.MAX_ROWS], 1):
        bar = h.span("minibar", h.bar(candidate.score))
        score = h.span("take row", bar, h.span("num", f"{candidate.score:.2f}"))
        label = h.span("grow", _render_candidate_with_degree(candidate, context))
        row = h.div("cand plain", h.span("num", rank), label, score)
        rows.append(h.tag("li", row))
    how = h.span("soft", f" by {retrieved.how}" if retrieved.how else "")
    search = ""
    if retrieved.query:
        text = h.span("id", shorten(retrieved.query))
        search = h.div("band", h.collapsible(h.muted_text("the search as it was sent"), text))
    return h.join(
        h.div("band", h.tag("b", str(retrieved)), how),
        h.tag("ol", *rows, class_="rows"),
        _render_omitted_count(len(retrieved.candidates) - h.MAX_ROWS),
        search,
        _render_candidate_queries(retrieved, context),
    )


def _render_omitted_count(number: int) -> Html:
    return h.div("band soft", and_more(number)) if number > 0 else Html()


def _render_candidate_with_degree(candidate: Candidate, context: RenderContext) -> Html:
    """Render a vertex, and how many triples it has if that was asked."""
    line = render_candidate(candidate, context)
    degree = context.graph_results.get("degrees", {}).get(candidate.iri)
    if degree is None:
        return line
    at_least = "+" if degree >= MAX_DEGREE else ""
    return h.join(line, h.span("under soft", f"degree {degree:,}{at_least}"))


def _render_candidate_queries(record: RetrievedCandidates | Link, context: RenderContext) -> Html:
    """Render the questions about candidates that a person can put to the graph."""
    if not context.is_interactive:
        return Html()
    label = f"Is this among the candidates for “{record.entity}”?"
    typed = h.tag(
        "input",
        type="text",
        name="name",
        placeholder="a name or an IRI",
        id="among",
        aria_label=label,
    )
    can_ask_degrees = record.candidates and "degrees" not in context.graph_results
    form = h.tag(
        "form",
        h.tag("label", h.span("", label), typed, class_="f grow"),
        h.button("Look for it", "where"),
        h.button("Show degrees", "degrees") if can_ask_degrees else "",
        class_="row ends controls",
        data_do="where",
    )
    return h.div("band stack", form, render_graph_result("where", context))


def render_query_block(
    number: int,
    query: str,
    context: RenderContext,
    *,
    head: object = "",
    can_replace: bool = False,
    is_empty: bool = False,
) -> Html:
    """Render a query below its ``head``. Where the person can, it can be edited and run.

    ``number`` distinguishes the queries of one record. A ``usable`` query can be taken as the result
    of the step. If the query is ``empty``, that is without rows, the person can ask why.
    """
    shown = render_query(query, context)
    if not context.is_interactive:
        return h.div("", head, shown)
    executed = context.graph_results.get(f"query {number}")
    has_no_rows = is_empty if executed is None else executed.is_empty
    text = readable_query(query, context)
    editor = h.tag(
        "textarea",
        text,
        class_="mono",
        name="sparql",
        rows=min(text.count("\n") + 1, MAX_EDITOR_LINES),
        id=f"sparql-{number}",
        spellcheck="false",
        aria_label="SPARQL",
        data_rev=shorten(query, 40),
    )
    buttons = [h.button("Run query", "query", "run", arg=number)]
    if can_replace:
        buttons.append(h.button("Use this query", "use", arg=number))
    if has_no_rows:
        buttons.append(h.button("Why is it empty?", "why", arg=number))
    controls = h.div("row controls", *buttons)
    form = h.tag("form", editor, controls, class_="stack tight", data_do="query", data_arg=number)
    key = f"{'empty' if is_empty else 'edit'}-{number}"
    fold = h.collapsible(h.muted_text("edit and run"), form, key=key, expanded=is_empty)
    replies = [
        render_graph_result(f"{question} {number}", context) for question in ("query", "why")
    ]
    return h.div("", head, h.div("edited", fold, shown), *replies)


# Answers


def render_answer(answer: Answer, context: RenderContext) -> Html:
    """Render what supports an answer, or why there is none, and its queries."""
    return h.div("body stack", *render_answer_parts(answer, context))


def render_answer_parts(answer: Answer, context: RenderContext) -> list[Html]:
    """Return the parts of a rendered answer: text or reason, values with support, queries."""
    context = _with_unique_names(answer, context.with_names(answer.names))
    parts = []
    if answer.ungrounded:
        parts.append(h.note(UNGROUNDED_NOTE, level="bad"))
    if answer.text:
        parts.append(h.div("b", shorten(answer.text, MAX_LINE_CHARS)))
    if not answer.values:
        parts.append(h.note(_reason_text(answer.reason)))
    if answer.columns:
        parts.append(_render_answer_table(answer, context))
    values = [
        _render_numbered_value(number, value, context)
        for number, value in enumerate(answer.values[: h.MAX_ROWS], 1)
    ]
    if answer.columns:
        title = h.muted_text("the triples that each row stands on")
        parts.append(h.collapsible(title, *values, key="support"))
    else:
        parts += values[:MAX_VALUES]
        if values[MAX_VALUES:]:
            title = h.muted_text(f"{len(values) - MAX_VALUES} more")
            parts.append(h.collapsible(title, *values[MAX_VALUES:]))
    parts.append(h.omitted_count(len(answer.values) - h.MAX_ROWS))
    if answer.queries:
        parts.append(_render_answer_queries(answer, context))
    return parts


def _reason_text(reason: str) -> str:
    if reason.startswith(CANNOT_EXPRESS):
        return reason
    return f"The graph holds no answer: {reason.removeprefix(f'{NOT_IN_GRAPH}: ')}"


def _render_answer_table(answer: Answer, context: RenderContext) -> Html:
    rows = []
    for value in answer.values[: h.MAX_ROWS]:
        rows.append(["" if cell is None else render_term(cell, context) for cell in value.row])
    return h.table(answer.columns, rows, total=len(answer.values))


def _render_numbered_value(number: int, value: Value, context: RenderContext) -> Html:
    """Render a value of an answer with its number and the triples that support it."""
    support: Html = h.muted_text("no triple")
    if value.support:
        support = render_triples(value.support, context, [value.term])
    ends = {str(end) for triple in value.support for end in triple[::2]}
    label = Html()
    if str(value.term) not in ends:  # else the triples show it
        label = _render_value_label(value, context)
    return h.div("row top", h.span("num", number), h.div("grow stack tight", label, support))


def _render_value_label(value: Value, context: RenderContext) -> Html:
    name = value.label
    if not value.row:
        name = context.names.get(str(value.term), value.label)
    exact = Html()
    if isinstance(value.term, URIRef):
        exact = render_curie(value.term, context)
    elif str(value.term) != value.label:
        exact = render_term(value.term, context)
    return h.div("row", h.tag("b", shorten(name)), exact)


def _render_answer_queries(answer: Answer, context: RenderContext) -> Html:
    is_empty = not answer.values or (answer.kind == "boolean" and answer.labels == ("false",))
    blocks = [
        render_query_block(number, query, context, is_empty=is_empty)
        for number, query in enumerate(answer.queries)
    ]
    title = h.join("The SPARQL it came from ", h.muted_text(pluralize(len(blocks), "query")))
    if answer.values:
        return h.collapsible(title, *blocks, key="queries")
    # With another key: a page keeps collapsed what the person collapsed, and here the person
    # must see at once that the query can be asked why it is empty.
    return h.collapsible(title, *blocks, key="empty", expanded=context.is_interactive)


def _with_unique_names(answer: Answer, context: RenderContext) -> RenderContext:
    """Return a context in which vertices of one name have their local names beside it."""
    iris_by_name: dict[str, list[str]] = {}
    labels = {
        str(value.term): value.label
        for value in answer.values[: h.MAX_ROWS]
        if isinstance(value.term, URIRef)
    }
    for iri in sorted({*_support_iris(answer), *labels}):
        name = context.names.get(iri) or labels.get(iri) or name_from_iri(iri)
        iris_by_name.setdefault(name, []).append(iri)
    names = dict(context.names)
    for name, iris in iris_by_name.items():
        if len(iris) == 1:
            names[iris[0]] = name
            continue
        for iri, distinction in zip(iris, _distinctions(iris), strict=True):
            names[iri] = f"{shorten(name)} ({distinction})"
    return replace(context, names=names)


def _support_iris(answer: Answer) -> set[str]:
    """Return the IRIs in the supporting triples that are shown."""
    iris: set[str] = set()
    for value in answer.values[: h.MAX_ROWS]:
        for triple in value.support[:MAX_SUPPORT_TRIPLES]:
            iris.update(str(term) for term in triple if isinstance(term, URIRef))
    return iris


def _distinctions(iris: Sequence[str]) -> Sequence[str]:
    """Return the last part of each IRI; the whole IRIs if these parts are not unique."""
    tails = [re.split(r"[/#:]", iri.rstrip("/#:"))[-1] for iri in iris]
    return tails if len(set(tails)) == len(iris) else iris


BUILT_IN_VIEWS: Mapping[type, View] = {
    Answer: render_answer,
    EmptyResultCause: render_blocking,
    PredicateExamples: render_examples,
    QueryResult: render_query_result,
    Link: render_link,
    RetrievedCandidates: render_retrieved,
    Survey: render_survey,
}
"""How records that several systems share, and replies of the graph, are rendered."""
