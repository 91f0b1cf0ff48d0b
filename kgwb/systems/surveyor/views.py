"""The pictures of Surveyor's records: the draft with its terms explained, the findings, the revision."""

from __future__ import annotations

from kgwb.show import html
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, note, span, table, tag
from kgwb.show.tell import because, view
from kgwb.show.terms import Around, candidate_line, curie, legend, sparql, term
from kgwb.systems.surveyor import records
from kgwb.text import shorten


def _line(head: str, text: str) -> Html:
    return div("", span("soft", f"{head} "), tag("bdi", shorten(text))) if text else Html()


@view.register
def _(value: records.Mentions, around: Around) -> Html:
    question, about = tag("b", shorten(value.question)), _line("about", ", ".join(value.classes))
    names = (view(mention, around) for mention in value.found)
    return join(div("body stack", question, about, because(value.reason)), *names)


@view.register
def _(value: records.Mention, around: Around) -> Html:
    rows = [candidate_line(each, around) for each in value.candidates]
    rows += [
        join(
            term(each.value, around),
            " ",
            span("under soft", "a value of ", curie(each.predicate, around)),
        )
        for each in value.values
    ]
    listed = tag("ol", *(tag("li", div("cand plain", row)) for row in rows), class_="rows")
    return join(div("band", tag("b", shorten(value.name))), listed if rows else "")


@view.register
def _(value: records.Draft, around: Around) -> Html:
    asked = around.of(records.Mentions)
    question = div("b", shorten(asked.question)) if asked else ""
    if not value.sparql:
        return div(
            "body stack", question, note(f"Not in this graph: {value.missing or value.reason}")
        )
    columns = _line(value.asked, ", ".join(value.columns))
    assumed = (_line("assumed", text) for text in value.assumptions)
    query = sparql(value.sparql, around), legend(value.sparql, around)
    return div("body stack", question, columns, *query, *assumed, because(value.reason))


@view.register
def _(value: records.Executed, around: Around) -> Html:
    around = around.named(value.names)
    head = note(value.error, kind="bad") if value.error else div("b", shorten(str(value)))
    findings = [
        tag("li", tag("b" if each.wrong else "bdi", shorten(each.text))) for each in value.findings
    ]
    cells = [["" if c is None else term(c, around) for c in row] for row in value.rows[:MOST_ROWS]]
    rows = table([f"?{column}" for column in value.columns], cells, of=len(value.rows))
    query = fold(aside("the query"), sparql(value.sparql, around), key="query")
    return div(
        "body stack", head, tag("ul", *findings) if findings else "", rows if cells else "", query
    )


@view.register
def _(value: records.Review, around: Around) -> Html:
    verdict = div("b", "revised" if value.draft else value.verdict)
    if value.draft is None:
        return div("body stack", verdict, because(value.reason))
    before = around.of(records.Draft)
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
    terms = legend(value.draft.sparql, around)
    return div("body stack", verdict, because(value.reason), div("kv", *pair), terms)
