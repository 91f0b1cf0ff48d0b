"""Records as HTML: whole, by their fields, and as candidates with their scores."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.kg.sparql import is_query, without_fence
from kgwb.kg.survey_records import Survey
from kgwb.records import (
    EXPLANATION_PREFIXES,
    MAX_LINE_CHARS,
    ShownField,
    has_custom_str,
    is_record,
    is_table,
    one_line,
    shown_data,
    shown_fields,
    summarize,
)
from kgwb.run.agents import View, current_version
from kgwb.run.answers import Answer, Candidate, Link, RetrievedCandidates
from kgwb.show.answers import render_answer
from kgwb.show.explain import REPLY_VIEWS, render_graph_result
from kgwb.show.form import field_label
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    collapsible,
    div,
    join,
    preformatted,
    render_template,
    score_bar,
    span,
    table,
    tag,
)
from kgwb.show.survey import render_survey
from kgwb.show.terms import (
    RenderContext,
    render_candidate,
    render_curie,
    render_query,
    render_term,
    render_triples,
)
from kgwb.text import and_more, display_name, shorten, shorten_at_word

EMPTY_VALUES = ("", (), None)
"""Values of fields that are not shown."""


def render_fields(record: Any, context: RenderContext) -> Html:
    """Render the line of a record, and below it those of its fields that are not empty.

    A field with the same text as the line is left out. Hidden fields are left out.
    """
    line = one_line(record)
    pieces = [div("b", line)]
    for field in shown_fields(record):
        is_empty = field.value in EMPTY_VALUES
        is_repeated = str(field.value) == str(record)
        if not is_empty and not is_repeated:
            pieces.append(_render_field(record, field, context))
    return div("body stack", *pieces)


def _render_field(record: Any, field: ShownField, context: RenderContext) -> Html:
    """Render a field by its mark and type, with its label.

    Nothing is rendered for a plain value of a record with its own ``__str__``, which should say it.
    Explanations, tables, queries, scores, records and tuples are always rendered.
    """
    if field.mark == "explanation":
        lead = EXPLANATION_PREFIXES.get(field.name, "because")
        return render_explanation(field.value, lead)
    if is_table(field.value):
        return render_table(field.value, context)
    if field.mark == "sparql":
        return render_query(field.value, context)
    is_composite = is_record(field.value) or isinstance(field.value, tuple)
    is_plain = not is_composite and field.mark != "score"
    if is_plain and has_custom_str(record):
        return Html()
    label = span("soft", f"{display_name(field.name)} ")
    value = render_cell(field.value, field.mark, context)
    return div("", label, value)


def render_explanation(text: str, lead: str = "because") -> Html:
    """Render "because" or another lead, and an explanation; nothing if the text is empty."""
    if not text:
        return Html()
    leading_word = span("soft", f"{lead} ")
    return div("why", leading_word, tag("bdi", text))


def render_table(records: Sequence[Any], context: RenderContext) -> Html:
    """Render records of one class as a table, with a column for each field that any of them has.

    Fields that are empty in all records have no column. Values that are not records are a table of
    one column without a heading. There must be at least one record or value. The columns are those
    of the first record; a record without such a field has an empty cell.
    """
    first = records[0]
    if not is_record(first):
        rows = [[render_cell(value, "", context)] for value in records]
        return table((), rows)
    columns = [field for field in shown_fields(first) if _is_filled(field.name, records)]
    rows = []
    for record in records:
        cells = []
        for column in columns:
            value = getattr(record, column.name, "")
            cells.append(render_cell(value, column.mark, context))
        rows.append(cells)
    headings = [field_label(column.name) for column in columns]
    return table(headings, rows)


def render_object(data: Mapping[str, Any], context: RenderContext) -> Html:
    """Render an object of JSON as a table: the name of each field, and its value.

    Queries are highlighted, and texts keep their lines. Lists and objects in it are JSON text.
    """
    rows = []
    for name, value in data.items():
        shown_name = span("soft", str(name))
        rows.append([shown_name, _render_json(value, context)])
    return table((), rows)


def _render_json(value: Any, context: RenderContext) -> Html:
    """Render a value of a JSON object; nothing for None.

    A query is highlighted. Another text, or JSON for any other value, is cut at MAX_LINE_CHARS;
    line ends are kept.
    """
    text = ""
    if isinstance(value, str):
        text = value
    elif value is not None:
        text = json.dumps(value, ensure_ascii=False, default=shown_data)
    if is_query(text):
        return render_query(without_fence(text), context)
    cut = shorten(text, MAX_LINE_CHARS)
    if "\n" in cut:
        return preformatted(cut)
    return tag("bdi", cut)


def _is_filled(field_name: str, records: Sequence[Any]) -> bool:
    """Return whether any of the records has a value in a field that is not in EMPTY_VALUES."""
    return any(getattr(record, field_name, None) not in EMPTY_VALUES for record in records)


def render_cell(value: Any, mark: str, context: RenderContext) -> Html:
    """Render a value in a table, or after the name of its field; ``mark`` is that of the field.

    A score is a bar, a query is highlighted, an IRI is its CURIE, a literal has its language or
    datatype, and a list is its items. Anything else is its text, which is cut if it is long; None
    is empty.
    """
    if mark == "score":
        return score_bar(value)
    if mark == "sparql":
        return render_query(value, context)
    if isinstance(value, URIRef):
        return render_curie(value, context)
    if isinstance(value, Literal | BNode):
        return render_term(value, context)
    if isinstance(value, list | tuple):
        return _render_items(value, context)
    text = ""
    if value is not None:
        text = str(value)
    return _render_long_text(text)


def _render_long_text(text: str) -> Html:
    """Render a text; a long one by its first words, which expand to all of it."""
    start = shorten_at_word(text)
    if start == text:
        return tag("bdi", text)
    first_words = tag("bdi", start)
    all_words = tag("bdi", shorten(text, MAX_LINE_CHARS))
    return collapsible(first_words, all_words)


def _is_triple(item: Any) -> bool:
    """Return whether an item is a tuple of a subject, a predicate and an object of a graph."""
    if not isinstance(item, tuple) or len(item) != 3:
        return False
    subject, predicate, object_ = item
    is_fact = isinstance(subject, URIRef | BNode) and isinstance(predicate, URIRef)
    return is_fact and isinstance(object_, URIRef | BNode | Literal)


def _render_items(items: Sequence[Any], context: RenderContext) -> Html:
    """Render the items of a list in one line with commas; IRIs as CURIEs, and triples, one a line.

    The line is shortened if it is long. The first item decides whether they are IRIs.
    """
    if items and all(map(_is_triple, items)):
        return render_triples(items, context)
    if items and isinstance(items[0], URIRef):
        lines = []
        for iri in items:
            curie = render_curie(iri, context)
            lines.append(div("", curie))
        return join(*lines)
    line = ", ".join(map(one_line, items))
    return tag("bdi", shorten(line))


MAX_DEGREE = 1_000
"""Degrees of vertices are counted up to this number."""
NO_CANDIDATE_LABEL = "none of these: it is not in the graph"


def render_choices(
    options: Sequence[object],
    selected: Collection[int],
    none_label: str,
    context: RenderContext,
) -> Html:
    """Render a row for each option, and a last row for choosing none of them.

    The options at the positions ``selected`` are marked as taken; -1 is none. In an interactive context,
    the other rows say "take this one", and a click on a row sends the event "take" with its
    position. ``options`` are HTML or texts; ``none_label`` stands in the last row.
    """
    no_option = span("soft", none_label)
    return render_template(
        "show/templates/choices.html",
        options=[*enumerate(options), (-1, no_option)],
        selected=selected,
        is_interactive=context.is_interactive,
    )


def render_link(link: Link, context: RenderContext) -> Html:
    """Render the candidates of a mention, the chosen ones marked, and the reason for the choice.

    In an interactive context, a click chooses another candidate, or none, and questions about
    candidates can be put to the graph. At most MAX_ROWS candidates are shown. A chosen vertex that
    is not among the candidates comes last.
    """
    candidates = list(dict.fromkeys(link.candidates))
    candidates += [vertex for vertex in link.vertices if vertex not in candidates]
    shown = candidates[:MAX_ROWS]
    selected = [shown.index(vertex) for vertex in link.vertices if vertex in shown]
    if not selected:
        selected = [-1]
    options = [_render_candidate_with_degree(candidate, context) for candidate in shown]
    omitted = len(link.candidates) - len(shown)
    parts = [
        render_choices(options, selected, NO_CANDIDATE_LABEL, context),
        _render_omitted(omitted),
    ]
    if link.reason:
        explanation = render_explanation(link.reason)
        parts.append(div("band", explanation))
    parts.append(_render_candidate_queries(link, context))
    return join(*parts)


def render_retrieved(retrieved: RetrievedCandidates, context: RenderContext) -> Html:
    """Render the candidates that the label search found, with their scores, and how it searched.

    At most MAX_ROWS candidates are shown, each with its score as a number and a bar, and then how
    many more there are. In an interactive context, questions about candidates can be asked below.
    """
    return render_template(
        "show/templates/retrieved.html",
        retrieved=retrieved,
        candidates=retrieved.candidates[:MAX_ROWS],
        render_candidate=partial(_render_candidate_with_degree, context=context),
        omitted=_render_omitted(len(retrieved.candidates) - MAX_ROWS),
        candidate_queries=_render_candidate_queries(retrieved, context),
    )


def _render_omitted(number: int) -> Html:
    """Render "and N more"; nothing if the number is not positive."""
    if number <= 0:
        return Html()
    return div("band soft", and_more(number))


def _render_candidate_with_degree(candidate: Candidate, context: RenderContext) -> Html:
    """Render a candidate, and below it its degree, if the person has asked for the degrees.

    Degrees are counted up to MAX_DEGREE, which is shown as "degree 1,000+".
    """
    shown = render_candidate(candidate, context)
    degrees = context.graph_results.get("degrees", {})
    degree = degrees.get(candidate.iri)
    if degree is None:
        return shown
    text = f"degree {degree:,}"
    if degree >= MAX_DEGREE:  # where counting stopped
        text += "+"
    return join(shown, span("under soft", text))


def _render_candidate_queries(record: RetrievedCandidates | Link, context: RenderContext) -> Html:
    """Render the questions about candidates that a person can put to the graph, and the replies.

    One looks for a vertex by its name or IRI, and sends the event "where". The other, which is
    offered once, asks for the degrees of all candidates. Nothing is rendered if the context is not
    interactive.
    """
    if not context.is_interactive:
        return Html()
    return render_template(
        "show/templates/candidate_queries.html",
        label=f"Is this among the candidates for “{record.entity}”?",
        can_show_degrees=record.candidates and "degrees" not in context.graph_results,
        reply=render_graph_result("where", context),
    )


BUILT_IN_VIEWS: Mapping[type, View] = {
    Answer: render_answer,
    Link: render_link,
    RetrievedCandidates: render_retrieved,
    Survey: render_survey,
    **REPLY_VIEWS,
}
"""How records that several systems share, and replies of the graph, are rendered."""


def render(value: Any, context: RenderContext) -> Html:
    """Render a record, or any other value, by the first of these that applies.

    A view of the system for the record's class, or one that it derives from; then one of
    BUILT_IN_VIEWS. A list is a table, or "nothing" if it is empty. A record is shown by the types
    of its fields, and an object of JSON as a table of its fields. Anything else is its text: a
    query is highlighted, a text with line ends keeps them, and another one is cut at
    MAX_LINE_CHARS.
    """
    view = find_view(type(value), context.views)
    if view is not None:
        return Html(view(value, context))
    if isinstance(value, list | tuple):
        if not value:
            return div("body soft", "nothing")
        return div("body", render_table(value, context))
    if is_record(value):
        return render_fields(value, context)
    if isinstance(value, dict) and value:
        return div("body", render_object(value, context))
    return div("body", _render_text(value, context))


def _render_text(value: Any, context: RenderContext) -> Html:
    """Render a value as its text.

    A query is highlighted, a text with line ends is kept as it is, and another one is cut at
    MAX_LINE_CHARS.
    """
    text = str(value)
    if is_query(text):
        return render_query(without_fence(text), context)
    if "\n" in text:
        return preformatted(value)
    return tag("bdi", shorten(text, MAX_LINE_CHARS))


def find_view(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of a class or of the nearest class it derives from; None if there is none.

    A view among ``views`` comes before the built-in view of the same class. If the module of the
    view was loaded again, its new version is returned.
    """
    for candidate in record_class.__mro__:
        view = _view_of_class(candidate, views) or BUILT_IN_VIEWS.get(candidate)
        if view is not None:
            return current_version(view)
    return None


def _view_of_class(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of exactly this class; None if there is none.

    A class is found by module and name, because its module may have been loaded again since.
    """
    if record_class in views:
        return views[record_class]
    place = (record_class.__module__, record_class.__qualname__)
    for other, view in views.items():
        if (other.__module__, other.__qualname__) == place:
            return view
    return None


def has_details(value: Any, context: RenderContext) -> bool:
    """Return whether rendering a value shows more than its one line.

    That is so for a dictionary, a query, a value whose type has a view, and a value whose summary has
    several lines.
    """
    if isinstance(value, dict):
        return True
    if isinstance(value, str) and is_query(value):
        return True
    has_view = find_view(type(value), context.views) is not None
    return has_view or "\n" in summarize(value)
