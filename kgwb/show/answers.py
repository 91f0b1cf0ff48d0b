"""Answers as HTML: their values with the triples that support them, their queries, and texts beside the graph.

A text that supports an answer is marked, and looks like no triple.
"""

from __future__ import annotations

import sys
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
    Value,
    was_graph_asked,
)
from kgwb.show.explain import render_graph_result
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    div,
    muted_text,
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
from kgwb.text import MAX_LABEL_CHARS, look_of, shorten, tell_apart

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
    return div("body stack", *render_answer_parts(answer, context))


def render_answer_parts(
    answer: Answer, context: RenderContext, *, is_doubt_shown: bool = False
) -> list[Html]:
    """Return a rendered answer, in one part: warnings, text, values with support, queries.

    There is a warning for an answer from a model's own knowledge, and one that tells of a doubt,
    unless ``is_doubt_shown`` elsewhere, as in a banner. Below them is, collapsed, what else a name may
    mean that was read as another one. An answer without values has the reason in their place. At most
    MAX_ROWS values are shown: MAX_VALUES at once, the others collapsed. An answer of several columns
    is a table, and the support of its rows is collapsed. Vertices that share a name are told apart
    by their IRIs.
    """
    context = with_unique_names(answer, context.with_names(answer.names))
    rendered = render_template(
        "show/templates/answer.html",
        view=sys.modules[__name__],
        max_chars=MAX_LINE_CHARS,
        render_triples=render_triples,
        ungrounded_note=UNGROUNDED_NOTE,
        answer=answer,
        doubt="" if is_doubt_shown else answer.doubt,
        context=context,
    )
    return [rendered]


def reason_text(reason: str) -> str:
    """Return why there is no answer, as a sentence that says whether the graph lacks it.

    If it does not (``was_graph_asked``), the reason is returned as it is. A leading NOT_IN_GRAPH of
    the reason is not repeated.
    """
    if not was_graph_asked(reason):
        return reason
    cause = reason.removeprefix(f"{NOT_IN_GRAPH}: ")
    return f"The graph holds no answer: {cause}"


def render_answer_table(answer: Answer, context: RenderContext) -> Html:
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


def render_value_label(value: Value, context: RenderContext) -> Html:
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
