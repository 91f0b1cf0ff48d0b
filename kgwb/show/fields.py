"""Records as HTML by the types and marks of their fields, for record classes without a view."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.kg.sparql import is_query, without_fence
from kgwb.records import (
    EXPLANATION_PREFIXES,
    MAX_LINE_CHARS,
    ShownField,
    has_custom_str,
    is_record,
    is_table,
    one_line,
    shown_fields,
)
from kgwb.show.form import field_label
from kgwb.show.html import Html, collapsible, div, join, preformatted, score_bar, span, table, tag
from kgwb.show.terms import (
    RenderContext,
    render_curie,
    render_query,
    render_term,
    render_triples,
)
from kgwb.text import display_name, shorten, shorten_at_word

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
    rows = []
    if not is_record(first):
        for value in records:
            cell = render_cell(value, "", context)
            rows.append([cell])
        return table((), rows)
    columns = []
    for field in shown_fields(first):
        if _is_filled(field.name, records):
            columns.append(field)
    for record in records:
        cells = []
        for column in columns:
            value = getattr(record, column.name, "")
            cell = render_cell(value, column.mark, context)
            cells.append(cell)
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
        text = json.dumps(value, ensure_ascii=False, default=str)
    if is_query(text):
        return render_query(without_fence(text), context)
    cut = shorten(text, MAX_LINE_CHARS)
    if "\n" in cut:
        return preformatted(cut)
    return tag("bdi", cut)


def _is_filled(field_name: str, records: Sequence[Any]) -> bool:
    """Return whether any of the records has a value in a field that is not in EMPTY_VALUES."""
    for record in records:
        value = getattr(record, field_name, None)
        if value not in EMPTY_VALUES:
            return True
    return False


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
    texts = [one_line(item) for item in items]
    line = ", ".join(texts)
    return tag("bdi", shorten(line))
