"""How the records of Surveyor are shown: the query with its terms, the findings, and the revision."""

from __future__ import annotations

from collections.abc import Mapping

from kgwb.build import (
    MAX_ROWS,
    Answer,
    Html,
    RenderContext,
    Value,
    View,
    collapsible,
    div,
    join,
    mark_changed_words,
    muted_text,
    note,
    render,
    render_candidate,
    render_curie,
    render_explanation,
    render_query,
    render_term,
    render_term_labels,
    shorten,
    span,
    table,
    tag,
    with_unique_names,
)
from kgwb.systems.surveyor import records


def _render_labelled(label: str, text: str) -> Html:
    """Render a text after its label; nothing if the text is empty."""
    if not text:
        return Html()
    return div("", span("soft", f"{label} "), tag("bdi", shorten(text)))


def render_mentions(mentions: records.Mentions, context: RenderContext) -> Html:
    """Render the question in full, its classes and the model's reason, then each mention."""
    head = div(
        "body stack",
        tag("b", shorten(mentions.question)),
        _render_labelled("about", ", ".join(mentions.classes)),
        render_explanation(mentions.reason),
    )
    found = []
    for mention in mentions.found:
        found.append(render(mention, context))
    return join(head, *found)


def render_mention(mention: records.Mention, context: RenderContext) -> Html:
    """Render a name, and below it a list of its candidates and of the values that contain it.

    Without any of them it is the name alone.
    """
    rows = [render_candidate(candidate, context) for candidate in mention.candidates]
    for match in mention.values:
        predicate = render_curie(match.predicate, context)
        source = span("under soft", "a value of ", predicate)
        rows.append(join(render_term(match.value, context), " ", source))
    head = div("band", tag("b", shorten(mention.name)))
    if not rows:
        return head
    items = []
    for row in rows:
        items.append(tag("li", div("cand plain", row)))
    return join(head, tag("ol", *items, class_="rows"))


def render_draft(draft: records.Draft, context: RenderContext) -> Html:
    """Render the question and the query with its terms, columns, assumptions and reason.

    Without a query, what is missing in the graph is shown in its place. The question is left out if
    the step does not have the mentions as input.
    """
    parts: list[Html] = []
    mentions = context.input_of(records.Mentions)
    if mentions:
        parts.append(div("b", shorten(mentions.question)))
    if draft.sparql:
        parts += [
            _render_labelled(draft.asked, ", ".join(draft.columns)),
            render_query(draft.sparql, context),
            render_term_labels(draft.sparql, context),
        ]
        for text in draft.assumptions:
            parts.append(_render_labelled("assumed", text))
        for reading in draft.readings:
            parts.append(_render_labelled("or", str(reading)))
        parts.append(render_explanation(draft.reason))
    else:
        parts.append(note(f"Not in this graph: {draft.missing or draft.reason}"))
    return div("body stack", *parts)


def render_query_result(executed: records.Executed, context: RenderContext) -> Html:
    """Render the size of a result or its error, the findings, the rows, and the query collapsed.

    What contradicts the survey comes first, and is bold, as are findings that are likely to be
    mistakes. At most MAX_ROWS rows are shown, with the number of all. Unbound cells are empty. Terms
    that share a name are told apart.
    """
    context = with_unique_names(_rows_as_answer(executed), context.with_names(executed.names))
    if executed.error:
        head = note(executed.error, level="bad")
    else:
        head = div("b", shorten(str(executed)))
    parts = [head]
    findings = []
    for text in executed.contradictions:
        findings.append(tag("li", tag("b", shorten(text))))
    for finding in executed.findings:
        element = "b" if finding.wrong else "bdi"
        findings.append(tag("li", tag(element, shorten(finding.text))))
    if findings:
        parts.append(tag("ul", *findings))

    rows = []
    for row in executed.rows[:MAX_ROWS]:
        rows.append(["" if cell is None else render_term(cell, context) for cell in row])
    headings = [f"?{column}" for column in executed.columns]
    query = render_query(executed.sparql, context)
    parts += [
        table(headings, rows, total=len(executed.rows)),
        collapsible(muted_text("the query"), query, key="query"),
    ]
    return div("body stack", *parts)


def _rows_as_answer(executed: records.Executed) -> Answer:
    """Return the first MAX_ROWS rows of a result as the values of an answer, without empty rows."""
    values = []
    for row in executed.rows[:MAX_ROWS]:
        terms = [cell for cell in row if cell is not None]
        if terms:
            values.append(Value(terms[0], str(terms[0]), (), row))
    return Answer("list", tuple(values))


def render_review(review: records.Review, context: RenderContext) -> Html:
    """Render the verdict with its reason; of a revision also the query before and after it.

    In both queries the words that the other one does not have are marked.
    """
    reason = render_explanation(review.reason)
    if review.draft is None:
        return div("body stack", div("b", review.verdict), reason)
    draft = context.input_of(records.Draft)
    before, after = mark_changed_words(
        draft.sparql_without_prefixes if draft else "", review.draft.sparql_without_prefixes
    )
    queries = div(
        "kv",
        span("soft", "before"),
        tag("pre", before, class_="src"),
        span("soft", "after"),
        tag("pre", after, class_="src"),
    )
    terms = render_term_labels(review.draft.sparql, context)
    return div("body stack", div("b", "revised"), reason, queries, terms)


VIEWS: Mapping[type, View] = {
    records.Draft: render_draft,
    records.Executed: render_query_result,
    records.Mention: render_mention,
    records.Mentions: render_mentions,
    records.Review: render_review,
}
