"""The pictures of Chatty-KG's records: the QIR as chains, ranked predicates, kept queries, changed words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kgwb import flow
from kgwb.run.agents import View
from kgwb.show import html as h
from kgwb.show.explain import query_part_text
from kgwb.show.records import (
    render,
    render_explanation,
    render_graph_result,
    render_query_block,
    render_table,
)
from kgwb.show.terms import RenderContext, render_curie
from kgwb.systems.chatty_kg import records
from kgwb.text import pluralize, shorten

MAX_RANKED, MAX_KEPT, MAX_OTHERS = 8, 3, 40
"""Predicates and kept queries shown at once, and other queries that unfold."""


def render_fact_end(name: str, target: str = "") -> h.Html:
    """An end of a fact: an entity is solid, an unknown dashed, what is asked for double."""
    if not records.is_unknown(name):
        return h.span("ent", shorten(name), title="entity")
    look, title = ("unk asked", "asked for") if name == target else ("unk", "unknown")
    return h.span(look, name, title=title)


def render_facts(qir: records.QIR) -> h.Html:
    """The facts from left to right; one that goes on from where another ended stands on its line."""
    lines: list[list[h.Html]] = []
    last = ""
    for fact in qir.facts:
        piece = [
            h.span("rel", h.tag("em", shorten(fact.relation))),
            render_fact_end(fact.object, qir.target),
        ]
        if lines and fact.subject == last:
            lines[-1] += piece
        else:
            lines.append([render_fact_end(fact.subject, qir.target), *piece])
        last = fact.object
    return h.div("stack", *(h.div("chain", *line) for line in lines))


def render_qir(value: records.QIR, context: RenderContext) -> h.Html:
    asks = {"list": "", "count": "asks how many", "boolean": "asks whether it is so"}[value.kind]
    parts = [render_facts(value), h.muted_text(asks) if asks else ""]
    if value.beyond:
        parts.append(h.note(f"{flow.CANNOT_EXPRESS}: {'; '.join(map(shorten, value.beyond))}"))
    if value.facts:
        parts.append(
            h.collapsible(
                h.muted_text("as a table"), render_table(value.facts, context), key="qir-table"
            )
        )
    return h.div("body stack", *parts)


def render_classification(value: records.Classification, context: RenderContext) -> h.Html:
    quoted = re.findall(r"['\"‘“]([^'\"‘’“”]+)['\"’”]", value.reason)
    question = context.input_of(str)
    asked = h.div("", h.highlight_words(question, quoted)) if question else ""
    return h.div(
        "body stack", h.span("type b", value.label), asked, render_explanation(value.reason)
    )


def render_rephrased_question(value: records.RephrasedQuestion, context: RenderContext) -> h.Html:
    earlier = context.input_of(flow.Context)
    shown = h.join(h.div("b", value.question), h.muted_text("nothing was changed"))
    if value.question != value.original:
        shown = h.render_word_diff(value.original, value.question)
    dialogue: object = ""
    if earlier and earlier.turns:
        title = h.muted_text("the dialogue as it came in")
        dialogue = h.collapsible(title, render(earlier, context), key="dialogue")
    return h.div("body stack", shown, dialogue)


def render_linked_relation(value: records.LinkedRelation, context: RenderContext) -> h.Html:
    kept = [
        step.output
        for step in context.steps
        if step.done and isinstance(step.output, records.QuerySelection)
    ]
    best = kept[-1].queries[:1] if kept else ()
    used = {predicate.strip("<>") for query in best for _, predicate, _ in query.patterns}
    relation = h.span("rel", h.tag("em", shorten(value.fact.relation)))
    ends = render_fact_end(value.fact.subject), relation, render_fact_end(value.fact.object)
    rows = []
    for place, predicate in enumerate(value.predicates):
        is_used, out = str(predicate.iri) in used, predicate.direction == "out"
        way = "from subject to object" if out else "from object to subject"
        mark = h.join(" ", h.state_badge("ok", "used")) if is_used else ""
        arrow = h.span("soft", "→" if out else "←", title=way)
        name = h.span(
            "cut", h.tag("b" if is_used else "span", shorten(predicate.name)), " ", arrow, mark
        )
        score = h.bar(predicate.similarity), h.span("num", f"{predicate.similarity:.2f}")
        ask = (
            h.button("examples", "examples", class_="ghost", arg=place)
            if context.is_interactive
            else ""
        )
        cells = (
            h.span("num", place + 1),
            name,
            *score,
            h.span("cut", render_curie(predicate.iri, context)),
            ask,
        )
        more = f"examples {place}"
        examples = (
            h.div("body", render_graph_result(more, context))
            if more in context.graph_results
            else ""
        )
        rows.append(h.join(h.div(f"rank{' used' if is_used else ''}", *cells), examples))
    if rows[MAX_RANKED:]:
        left = h.collapsible(
            h.muted_text(f"{len(rows) - MAX_RANKED} more"), *rows[MAX_RANKED:], key="ranked"
        )
        rows[MAX_RANKED:] = [h.div("band", left)]
    elif not rows:
        rows = [h.div("body", "no predicate: nothing linked touches it")]
    return h.div(
        "ranks", h.div("chain lead", *ends, h.muted_text("may be said in the graph by")), *rows
    )


def render_generated_queries(value: records.GeneratedQueries, context: RenderContext) -> h.Html:
    kept = len(value.queries)
    cut = f"{kept:,} kept (query_num)" if kept < value.before_truncation else "all kept"
    head = (
        f"{pluralize(value.before_truncation, 'combination')}, {cut}" if kept else "no combination"
    )
    others = (
        _render_other_queries(value.queries, MAX_KEPT, context, can_be_chosen=False)
        if kept > MAX_KEPT
        else ""
    )
    return h.div("body stack", h.muted_text(head), *_render_kept_queries(value, context), others)


def render_query_selection(value: records.QuerySelection, context: RenderContext) -> h.Html:
    """The queries kept, and those that came in: a click takes one of them instead."""
    generated = context.input_of(records.GeneratedQueries)
    nothing = "" if value.queries else h.note("no query was kept")
    offered = generated.queries if generated else ()
    others = (
        _render_other_queries(offered, 0, context, can_be_chosen=context.is_interactive)
        if offered
        else ""
    )
    return h.div("body stack", *_render_kept_queries(value, context), nothing, others)


def _render_kept_queries(
    value: records.GeneratedQueries | records.QuerySelection, context: RenderContext
) -> list[h.Html]:
    blocks, usable = [], isinstance(value, records.GeneratedQueries)
    for place, query in enumerate(value.queries[:MAX_KEPT]):
        first = h.span("num", place + 1) if usable else h.state_badge("ok", "kept")
        score = (
            h.muted_text("score"),
            h.span("minibar", h.bar(query.score)),
            h.span("num", f"{query.score:.2f}"),
        )
        head = h.div(
            "row", first, *score, h.span("soft cut", " · ".join(map(shorten, query.predicates)))
        )
        blocks.append(
            render_query_block(place, query.sparql, context, head=head, can_replace=usable)
        )
    return blocks


def _render_other_queries(
    offered: Sequence[flow.CandidateQuery],
    skipped: int,
    context: RenderContext,
    *,
    can_be_chosen: bool,
) -> h.Html:
    """Other candidate queries, of which a click may take one; ``shown`` are shown already."""
    rows = []
    for place, query in [*enumerate(offered)][skipped : skipped + MAX_OTHERS]:
        reads = h.join(
            *(
                h.div("", shorten(query_part_text(pattern, context.names)))
                for pattern in query.patterns
            )
        )
        take = h.button("take this one", "take", class_="ghost", arg=place) if can_be_chosen else ""
        rows.append((f"{query.score:.2f}", shorten(" · ".join(query.predicates)), reads, take))
    others = len(offered) - skipped
    more = h.muted_text(f"and {others - len(rows):,} more") if others > len(rows) else ""
    head = h.muted_text(pluralize(others, "other candidate query"))
    return h.collapsible(
        head, h.table(("score", "predicates", "reads as", ""), rows), more, key="other-queries"
    )


VIEWS: Mapping[type, View] = {
    records.Classification: render_classification,
    records.GeneratedQueries: render_generated_queries,
    records.LinkedRelation: render_linked_relation,
    records.QIR: render_qir,
    records.RephrasedQuestion: render_rephrased_question,
    records.QuerySelection: render_query_selection,
}
