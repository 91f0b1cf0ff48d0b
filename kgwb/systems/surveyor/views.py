"""The pictures of Surveyor's records: the draft with its terms explained, the findings, the revision."""

from __future__ import annotations

from collections.abc import Mapping

from kgwb.run.agents import View
from kgwb.show import html
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    collapsible,
    div,
    join,
    muted_text,
    note,
    span,
    table,
    tag,
)
from kgwb.show.records import render, render_explanation
from kgwb.show.terms import (
    RenderContext,
    render_candidate,
    render_curie,
    render_query,
    render_term,
    render_term_labels,
)
from kgwb.systems.surveyor import records
from kgwb.text import shorten


def _render_labelled(head: str, text: str) -> Html:
    return div("", span("soft", f"{head} "), tag("bdi", shorten(text))) if text else Html()


def render_mentions(value: records.Mentions, context: RenderContext) -> Html:
    question, about = (
        tag("b", shorten(value.question)),
        _render_labelled("about", ", ".join(value.classes)),
    )
    names = (render(mention, context) for mention in value.found)
    return join(div("body stack", question, about, render_explanation(value.reason)), *names)


def render_mention(value: records.Mention, context: RenderContext) -> Html:
    rows = [render_candidate(each, context) for each in value.candidates]
    rows += [
        join(
            render_term(each.value, context),
            " ",
            span("under soft", "a value of ", render_curie(each.predicate, context)),
        )
        for each in value.values
    ]
    listed = tag("ol", *(tag("li", div("cand plain", row)) for row in rows), class_="rows")
    return join(div("band", tag("b", shorten(value.name))), listed if rows else "")


def render_draft(value: records.Draft, context: RenderContext) -> Html:
    asked = context.input_of(records.Mentions)
    question = div("b", shorten(asked.question)) if asked else ""
    if not value.sparql:
        return div(
            "body stack", question, note(f"Not in this graph: {value.missing or value.reason}")
        )
    columns = _render_labelled(value.asked, ", ".join(value.columns))
    assumed = (_render_labelled("assumed", text) for text in value.assumptions)
    query = render_query(value.sparql, context), render_term_labels(value.sparql, context)
    return div("body stack", question, columns, *query, *assumed, render_explanation(value.reason))


def render_query_result(value: records.Executed, context: RenderContext) -> Html:
    context = context.with_names(value.names)
    head = note(value.error, level="bad") if value.error else div("b", shorten(str(value)))
    findings = [
        tag("li", tag("b" if each.wrong else "bdi", shorten(each.text))) for each in value.findings
    ]
    cells = [
        ["" if c is None else render_term(c, context) for c in row] for row in value.rows[:MAX_ROWS]
    ]
    rows = table([f"?{column}" for column in value.columns], cells, total=len(value.rows))
    query = collapsible(muted_text("the query"), render_query(value.sparql, context), key="query")
    return div(
        "body stack", head, tag("ul", *findings) if findings else "", rows if cells else "", query
    )


def render_review(value: records.Review, context: RenderContext) -> Html:
    verdict = div("b", "revised" if value.draft else value.verdict)
    if value.draft is None:
        return div("body stack", verdict, render_explanation(value.reason))
    before = context.input_of(records.Draft)
    changed = zip(
        ("before", "after"),
        html.mark_changed_words(
            before.sparql_without_prefixes if before else "", value.draft.sparql_without_prefixes
        ),
        strict=True,
    )
    pair = [
        part
        for word, text in changed
        for part in (span("soft", word), tag("pre", text, class_="src"))
    ]
    terms = render_term_labels(value.draft.sparql, context)
    return div("body stack", verdict, render_explanation(value.reason), div("kv", *pair), terms)


VIEWS: Mapping[type, View] = {
    records.Draft: render_draft,
    records.Executed: render_query_result,
    records.Mention: render_mention,
    records.Mentions: render_mentions,
    records.Review: render_review,
}
