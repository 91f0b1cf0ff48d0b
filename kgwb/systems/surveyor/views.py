"""The pictures of Surveyor's records: the draft with its terms explained, the findings, the revision."""

from __future__ import annotations

from collections.abc import Mapping

from kgwb.run.agents import View
from kgwb.show import html
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, note, span, table, tag
from kgwb.show.records import render, render_explanation
from kgwb.show.terms import (
    RenderContext,
    curie,
    render_candidate,
    render_legend,
    render_query,
    render_term,
)
from kgwb.systems.surveyor import records
from kgwb.text import shorten


def _line(head: str, text: str) -> Html:
    return div("", span("soft", f"{head} "), tag("bdi", shorten(text))) if text else Html()


def render_mentions(value: records.Mentions, context: RenderContext) -> Html:
    question, about = tag("b", shorten(value.question)), _line("about", ", ".join(value.classes))
    names = (render(mention, context) for mention in value.found)
    return join(div("body stack", question, about, render_explanation(value.reason)), *names)


def render_mention(value: records.Mention, context: RenderContext) -> Html:
    rows = [render_candidate(each, context) for each in value.candidates]
    rows += [
        join(
            render_term(each.value, context),
            " ",
            span("under soft", "a value of ", curie(each.predicate, context)),
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
    columns = _line(value.asked, ", ".join(value.columns))
    assumed = (_line("assumed", text) for text in value.assumptions)
    query = render_query(value.sparql, context), render_legend(value.sparql, context)
    return div("body stack", question, columns, *query, *assumed, render_explanation(value.reason))


def render_executed(value: records.Executed, context: RenderContext) -> Html:
    context = context.with_names(value.names)
    head = note(value.error, kind="bad") if value.error else div("b", shorten(str(value)))
    findings = [
        tag("li", tag("b" if each.wrong else "bdi", shorten(each.text))) for each in value.findings
    ]
    cells = [
        ["" if c is None else render_term(c, context) for c in row]
        for row in value.rows[:MOST_ROWS]
    ]
    rows = table([f"?{column}" for column in value.columns], cells, of=len(value.rows))
    query = fold(aside("the query"), render_query(value.sparql, context), key="query")
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
        html.word_changes(before.body if before else "", value.draft.body),
        strict=True,
    )
    pair = [
        part
        for word, text in changed
        for part in (span("soft", word), tag("pre", text, class_="src"))
    ]
    terms = render_legend(value.draft.sparql, context)
    return div("body stack", verdict, render_explanation(value.reason), div("kv", *pair), terms)


VIEWS: Mapping[type, View] = {
    records.Draft: render_draft,
    records.Executed: render_executed,
    records.Mention: render_mention,
    records.Mentions: render_mentions,
    records.Review: render_review,
}
