"""Answers as HTML: their values with the triples that support them, their queries, and texts beside the graph.

A text that supports an answer is marked, and looks like no triple.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rdflib import Literal, URIRef

from kgwb.records import MAX_LINE_CHARS
from kgwb.run.answers import (
    NOT_IN_GRAPH,
    UNGROUNDED_NOTE,
    Answer,
    CitedText,
    NameReading,
    Value,
    was_graph_asked,
)
from kgwb.show.explain import render_graph_result
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    collapsible,
    div,
    join,
    muted_text,
    note,
    omitted_count,
    render_template,
    span,
    table,
    tag,
)
from kgwb.show.terms import (
    MAX_SUPPORT_TRIPLES,
    RenderContext,
    readable_query,
    render_cell,
    render_curie,
    render_query,
    render_term,
    render_triples,
)
from kgwb.terms import Term, describe_term, format_term, last_part, name_from_iri
from kgwb.text import MAX_LABEL_CHARS, look_of, pluralize, shorten, tell_apart

MAX_SHOWN_TEXTS = 5
"""Texts that are shown of one value."""
MAX_CITED_CHARS = 1_000
"""Characters of a text that are shown."""


def render_texts(texts: Sequence[CitedText]) -> Html:
    """Render texts with the mark "text", their file and place, and their words.

    At most MAX_SHOWN_TEXTS are shown, and then how many more there are.
    """
    parts = [render_text(cited) for cited in texts[:MAX_SHOWN_TEXTS]]
    return div("stack tight", *parts, omitted_count(len(texts) - MAX_SHOWN_TEXTS))


def render_text(cited: CitedText) -> Html:
    """Render one text with its mark and its place."""
    head = div("row", span("chip", "text"), muted_text(str(cited)))
    words = tag("bdi", shorten(cited.text, MAX_CITED_CHARS))
    return div("", head, words)


MAX_DISTINCT_CHARS = 150
"""Characters of a name that are shown before what tells it apart from an equal one."""
MAX_VALUES = 12
"""Values of an answer whose triples are shown at once; the others are collapsed."""
MAX_EDITOR_LINES = 16
MAX_REVISION_CHARS = 40
"""Characters of a query by which a page notices that another query is in the editor."""


def render_answer(answer: Answer, context: RenderContext) -> Html:
    """Render what is in doubt, what supports an answer, or why there is none, and its queries."""
    doubt = note(answer.doubt) if answer.doubt else Html()
    return div("body stack", doubt, *render_answer_parts(answer, context))


def render_answer_parts(answer: Answer, context: RenderContext) -> list[Html]:
    """Return the parts of a rendered answer: warnings, text, values with support, queries.

    There is a warning for an answer from a model's own knowledge; a banner tells of a doubt. Below it
    is, collapsed, what else a name may mean that was read as another one. An answer without values
    has the reason in their place. At most MAX_ROWS values are shown: MAX_VALUES at once, the others
    collapsed. An answer of several columns is a table, and the support of its rows is collapsed.
    Vertices that share a name are told apart by their IRIs.
    """
    context = with_unique_names(answer, context.with_names(answer.names))
    parts = []
    if answer.ungrounded:
        parts.append(note(UNGROUNDED_NOTE))
    parts += [_render_other_candidates(reading, context) for reading in answer.read_names]
    if answer.text:
        parts.append(div("b", shorten(answer.text, MAX_LINE_CHARS)))
    if not answer.values and (answer.reason or not answer.text):
        parts.append(note(_reason_text(answer.reason)))
    if answer.evidence:
        parts.append(render_triples(answer.evidence, context))
    parts += [div("soft", remark) for remark in answer.remarks]
    if answer.measure:
        title = f"decided by the measure {shorten(answer.measure)}, which is no column"
        parts.append(div("soft", title))
    values = []
    for number, value in enumerate(answer.values[:MAX_ROWS], 1):
        values.append(_render_numbered_value(number, value, context))
    if answer.columns:
        parts.append(_render_answer_table(answer, context))
        title = muted_text("the triples that support each row")
        parts.append(collapsible(title, *values, key="support"))
    else:
        parts += values[:MAX_VALUES]
        more = values[MAX_VALUES:]
        if more:
            parts.append(collapsible(muted_text(f"{len(more)} more"), *more))
    parts.append(omitted_count(len(answer.values) - MAX_ROWS))
    if answer.queries:
        parts.append(_render_answer_queries(answer, context))
    return parts


def _render_other_candidates(reading: NameReading, context: RenderContext) -> Html:
    """Render what else a name may mean, collapsed; nothing if nothing else was found."""
    if not reading.others:
        return Html()
    rows = []
    for other in reading.others[:MAX_ROWS]:
        label = shorten(other.label_with_types)
        description = shorten(other.description)
        rows.append([label, description, render_curie(other.iri, context)])
    title = f"what else “{shorten(reading.name or reading.read_as)}” may mean"
    listed = table(["thing", "description", "IRI"], rows, total=len(reading.others))
    return collapsible(muted_text(title), listed)


def _reason_text(reason: str) -> str:
    """Return why there is no answer, as a sentence that says whether the graph lacks it.

    If it does not (``was_graph_asked``), the reason is returned as it is. A leading NOT_IN_GRAPH of
    the reason is not repeated.
    """
    if not was_graph_asked(reason):
        return reason
    cause = reason.removeprefix(f"{NOT_IN_GRAPH}: ")
    return f"The graph holds no answer: {cause}"


def _render_answer_table(answer: Answer, context: RenderContext) -> Html:
    """Render the first MAX_ROWS rows of an answer that is a table, and how many more there are.

    Unbound cells are empty. A measure stands behind the columns, under its own heading.
    """
    headings = list(answer.columns)
    if answer.measure:
        headings.append(f"measure {answer.measure}")
    rows = []
    for value in answer.values[:MAX_ROWS]:
        cells = [render_cell(term, context) for term in value.row]
        if answer.measure:
            cells.append(render_cell(value.measure, context))
        rows.append(cells)
    total = len(answer.values)
    return table(headings, rows, total=total)


def _render_numbered_value(number: int, value: Value, context: RenderContext) -> Html:
    """Render a value of an answer with its number and the triples that support it.

    The value itself is only written if no triple has it as subject or object, and shows it. Texts
    beside the graph are marked as such. A value without support says "no triple". Its measure comes
    before the triples.
    """
    content = []
    is_end_of_triple = any(
        value.term in (subject, object_) for subject, _, object_ in value.support
    )
    if not is_end_of_triple:
        content.append(_render_value_label(value, context))
    if value.measure is not None:
        measure = render_cell(value.measure, context)
        content.append(div("soft", "measure ", measure))
    if value.support:
        content.append(render_triples(value.support, context, [value.term]))
    if value.texts:
        content.append(render_texts(value.texts))
    elif not value.support:
        content.append(muted_text("no triple"))
    return div("row top", span("num", number), div("grow stack tight", *content))


def _render_value_label(value: Value, context: RenderContext) -> Html:
    """Render the name of a value, and beside it the CURIE, or a literal if it differs from the name.

    The name is that of the context, but a row of a table has its own.
    """
    name = value.label
    exact = Html()
    if isinstance(value.term, URIRef):
        if not value.row:
            name = context.names.get(str(value.term), value.label)
        exact = render_curie(value.term, context)
    elif value.term in context.ambiguous_literals:
        exact = muted_text(describe_term(value.term))
    elif str(value.term) != value.label:
        exact = render_term(value.term, context)
    title = tag("b", shorten(name))
    return div("row", title, exact)


# Queries


def _render_answer_queries(answer: Answer, context: RenderContext) -> Html:
    """Render the queries of an answer, collapsed.

    Without values they are expanded, if the person can ask why a query is empty. The "no" to a
    yes-or-no question counts as empty, too.
    """
    is_false = answer.kind == "boolean" and answer.labels == ("false",)
    is_empty = is_false or not answer.values
    blocks = []
    for number, query in enumerate(answer.queries):
        block = render_query_block(number, query, context, is_empty=is_empty)
        blocks.append(block)
    count = muted_text(pluralize(len(blocks), "query"))
    title = join("The SPARQL it came from ", count)
    if answer.values:
        return collapsible(title, *blocks, key="queries")
    # With another key: a page keeps collapsed what the person collapsed, and here the person
    # must see at once that the query can be asked why it is empty.
    return collapsible(title, *blocks, key="empty", expanded=context.is_interactive)


def render_query_block(
    number: int,
    query: str,
    context: RenderContext,
    *,
    head: object = "",
    can_replace: bool = False,
    is_empty: bool = False,
) -> Html:
    """Render a query below its ``head``; in an interactive context, with a form to edit and run it.

    The form has what the graph replied below it. ``number`` tells the queries of one record apart.
    ``can_replace`` adds a button that makes the query the result of the step. ``is_empty`` means
    that the query has no rows: the form is expanded, and the person can ask why. Once the person
    has run a query, the result of that decides whether they can.
    """
    shown = render_query(query, context)
    if not context.is_interactive:
        return div("", head, shown)
    result = context.graph_results.get(f"query {number}")
    has_no_rows = is_empty
    if result is not None:
        has_no_rows = result.is_empty
    text = readable_query(query, context)
    line_count = text.count("\n") + 1
    return render_template(
        "show/templates/query_block.html",
        number=number,
        head=head,
        query=shown,
        is_empty=is_empty,
        text=text,
        rows=min(line_count, MAX_EDITOR_LINES),
        revision=shorten(query, MAX_REVISION_CHARS),
        can_replace=can_replace,
        has_no_rows=has_no_rows,
        result=render_graph_result(f"query {number}", context),
        reason=render_graph_result(f"why {number}", context),
    )


# Names


def with_unique_names(answer: Answer, context: RenderContext) -> RenderContext:
    """Return a context in which the vertices of an answer have names that differ.

    Those that share a name have the last part of their IRI added: "Dune (Dune_2021)", or the IRI
    where that is shared, too.
    """
    name_of = _names_of_iris(answer, context)

    def short_name(iri: str) -> str:
        """Return the name of an IRI, cut at MAX_DISTINCT_CHARS."""
        return shorten(name_of[iri], MAX_DISTINCT_CHARS)

    def name_with_ending(iri: str) -> str:
        """Return the short name with the last part of the IRI in brackets."""
        return f"{short_name(iri)} ({last_part(iri)})"

    def name_with_iri(iri: str) -> str:
        """Return the short name with the whole IRI in brackets."""
        return f"{short_name(iri)} ({iri})"

    def name_alone(iri: str) -> str:
        """Return the name; if it is longer than MAX_LABEL_CHARS, the short name."""
        name = name_of[iri]
        if len(name) <= MAX_LABEL_CHARS:
            return name
        return short_name(iri)

    names = tell_apart(name_of, (name_alone, name_with_ending, name_with_iri, ascii))
    ambiguous_literals = _find_ambiguous_literals(answer, names)
    all_names = {**context.names, **names}
    return replace(context, names=all_names, ambiguous_literals=ambiguous_literals)


def _find_ambiguous_literals(answer: Answer, names: Mapping[str, str]) -> frozenset[Term]:
    """Return the literals of an answer that look like another term of its values or support.

    So are its values if they are texts of several languages. Only what is shown counts. ``names``
    are the display names of the IRIs.
    """
    terms_by_look: dict[str, set[Term]] = defaultdict(set)
    for value in answer.values[:MAX_ROWS]:
        triples = value.support[:MAX_SUPPORT_TRIPLES]
        for term in (*value.terms, *chain.from_iterable(triples)):
            look = look_of(format_term(term, names))
            terms_by_look[look].add(term)
    ambiguous: set[Term] = set()
    if len(answer.languages) > 1:
        ambiguous.update(value.term for value in answer.values if value.language)
    for terms in terms_by_look.values():
        if len(terms) > 1:
            ambiguous.update(term for term in terms if isinstance(term, Literal))
    return frozenset(ambiguous)


def _names_of_iris(answer: Answer, context: RenderContext) -> dict[str, str]:
    """Return the names of the IRIs among the values and supporting triples that are shown.

    The name is that of the context, else the label of the value, else made of the IRI.
    """
    labels = {}
    for value in answer.values[:MAX_ROWS]:
        for term in value.terms:
            if isinstance(term, URIRef):
                labels[str(term)] = value.term_label
    names = {}
    for iri in sorted(_support_iris(answer).union(labels)):
        known_name = context.names.get(iri) or labels.get(iri)
        names[iri] = known_name or name_from_iri(iri)
    return names


def _support_iris(answer: Answer) -> set[str]:
    """Return the IRIs in the supporting triples that are shown, predicates among them.

    Shown are MAX_SUPPORT_TRIPLES triples of each of the first MAX_ROWS values, and as many of the
    evidence.
    """
    triples = list(answer.evidence[:MAX_SUPPORT_TRIPLES])
    for value in answer.values[:MAX_ROWS]:
        triples += value.support[:MAX_SUPPORT_TRIPLES]
    terms = chain.from_iterable(triples)
    return {str(term) for term in terms if isinstance(term, URIRef)}
