"""The pictures of Chatty-KG's records: the QIR as chains, ranked predicates, kept queries, changed words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kgwb import flow
from kgwb.run.agents import View
from kgwb.show import html as h
from kgwb.show.explain import part_text
from kgwb.show.records import (
    render,
    render_explanation,
    render_query_block,
    render_reply,
    render_table,
)
from kgwb.show.terms import RenderContext, curie
from kgwb.systems.chatty_kg import records
from kgwb.text import pluralize, shorten

MOST_RANKED, MOST_KEPT, MOST_OTHERS = 8, 3, 40
"""Predicates and kept queries shown at once, and other queries that unfold."""


def pill(name: str, target: str = "") -> h.Html:
    """An end of a fact: an entity is solid, an unknown dashed, what is asked for double."""
    if not records.is_unknown(name):
        return h.span("ent", shorten(name), title="entity")
    look, title = ("unk asked", "asked for") if name == target else ("unk", "unknown")
    return h.span(look, name, title=title)


def chains(qir: records.QIR) -> h.Html:
    """The facts from left to right; one that goes on from where another ended stands on its line."""
    lines: list[list[h.Html]] = []
    last = ""
    for fact in qir.facts:
        piece = [h.span("rel", h.tag("em", shorten(fact.relation))), pill(fact.object, qir.target)]
        if lines and fact.subject == last:
            lines[-1] += piece
        else:
            lines.append([pill(fact.subject, qir.target), *piece])
        last = fact.object
    return h.div("stack", *(h.div("chain", *line) for line in lines))


def render_qir(value: records.QIR, context: RenderContext) -> h.Html:
    asks = {"list": "", "count": "asks how many", "boolean": "asks whether it is so"}[value.kind]
    parts = [chains(value), h.aside(asks) if asks else ""]
    if value.beyond:
        parts.append(h.note(f"{flow.CANNOT_EXPRESS}: {'; '.join(map(shorten, value.beyond))}"))
    if value.facts:
        parts.append(
            h.fold(h.aside("as a table"), render_table(value.facts, context), key="qir-table")
        )
    return h.div("body stack", *parts)


def render_classified(value: records.Classified, context: RenderContext) -> h.Html:
    quoted = re.findall(r"['\"‘“]([^'\"‘’“”]+)['\"’”]", value.reason)
    question = context.input_of(str)
    asked = h.div("", h.marked(question, quoted)) if question else ""
    return h.div(
        "body stack", h.span("type b", value.label), asked, render_explanation(value.reason)
    )


def render_rephrased(value: records.Rephrased, context: RenderContext) -> h.Html:
    earlier = context.input_of(flow.Context)
    shown = h.join(h.div("b", value.question), h.aside("nothing was changed"))
    if value.question != value.original:
        shown = h.changed_words(value.original, value.question)
    dialogue: object = ""
    if earlier and earlier.turns:
        title = h.aside("the dialogue as it came in")
        dialogue = h.fold(title, render(earlier, context), key="dialogue")
    return h.div("body stack", shown, dialogue)


def render_linked_relation(value: records.LinkedRelation, context: RenderContext) -> h.Html:
    kept = [
        step.output
        for step in context.steps
        if step.done and isinstance(step.output, records.Selection)
    ]
    best = kept[-1].queries[:1] if kept else ()
    used = {predicate.strip("<>") for query in best for _, predicate, _ in query.patterns}
    relation = h.span("rel", h.tag("em", shorten(value.fact.relation)))
    ends = pill(value.fact.subject), relation, pill(value.fact.object)
    rows = []
    for place, predicate in enumerate(value.predicates):
        is_used, out = str(predicate.iri) in used, predicate.direction == "out"
        way = "from subject to object" if out else "from object to subject"
        mark = h.join(" ", h.state_sign("ok", "used")) if is_used else ""
        arrow = h.span("soft", "→" if out else "←", title=way)
        name = h.span(
            "cut", h.tag("b" if is_used else "span", shorten(predicate.name)), " ", arrow, mark
        )
        score = h.bar(predicate.similarity), h.span("num", f"{predicate.similarity:.2f}")
        ask = h.button("examples", "examples", class_="ghost", arg=place) if context.live else ""
        cells = (
            h.span("num", place + 1),
            name,
            *score,
            h.span("cut", curie(predicate.iri, context)),
            ask,
        )
        more = f"examples {place}"
        examples = h.div("body", render_reply(more, context)) if more in context.replies else ""
        rows.append(h.join(h.div(f"rank{' used' if is_used else ''}", *cells), examples))
    if rows[MOST_RANKED:]:
        left = h.fold(h.aside(f"{len(rows) - MOST_RANKED} more"), *rows[MOST_RANKED:], key="ranked")
        rows[MOST_RANKED:] = [h.div("band", left)]
    elif not rows:
        rows = [h.div("body", "no predicate: nothing linked touches it")]
    return h.div("ranks", h.div("chain lead", *ends, h.aside("may be said in the graph by")), *rows)


def render_generated(value: records.Generated, context: RenderContext) -> h.Html:
    kept = len(value.queries)
    cut = f"{kept:,} kept (query_num)" if kept < value.before_truncation else "all kept"
    head = (
        f"{pluralize(value.before_truncation, 'combination')}, {cut}" if kept else "no combination"
    )
    others = _others(value.queries, MOST_KEPT, context, takes=False) if kept > MOST_KEPT else ""
    return h.div("body stack", h.aside(head), *_kept(value, context), others)


def render_selection(value: records.Selection, context: RenderContext) -> h.Html:
    """The queries kept, and those that came in: a click takes one of them instead."""
    generated = context.input_of(records.Generated)
    nothing = "" if value.queries else h.note("no query was kept")
    offered = generated.queries if generated else ()
    others = _others(offered, 0, context, takes=context.live) if offered else ""
    return h.div("body stack", *_kept(value, context), nothing, others)


def _kept(value: records.Generated | records.Selection, context: RenderContext) -> list[h.Html]:
    blocks, usable = [], isinstance(value, records.Generated)
    for place, query in enumerate(value.queries[:MOST_KEPT]):
        first = h.span("num", place + 1) if usable else h.state_sign("ok", "kept")
        score = (
            h.aside("score"),
            h.span("minibar", h.bar(query.score)),
            h.span("num", f"{query.score:.2f}"),
        )
        head = h.div(
            "row", first, *score, h.span("soft cut", " · ".join(map(shorten, query.predicates)))
        )
        blocks.append(render_query_block(place, query.sparql, context, head=head, usable=usable))
    return blocks


def _others(
    offered: Sequence[flow.CandidateQuery], shown: int, context: RenderContext, *, takes: bool
) -> h.Html:
    """Other candidate queries, of which a click may take one; ``shown`` are shown already."""
    rows = []
    for place, query in [*enumerate(offered)][shown : shown + MOST_OTHERS]:
        reads = h.join(
            *(h.div("", shorten(part_text(pattern, context.names))) for pattern in query.patterns)
        )
        take = h.button("take this one", "take", class_="ghost", arg=place) if takes else ""
        rows.append((f"{query.score:.2f}", shorten(" · ".join(query.predicates)), reads, take))
    others = len(offered) - shown
    more = h.aside(f"and {others - len(rows):,} more") if others > len(rows) else ""
    head = h.aside(pluralize(others, "other candidate query"))
    return h.fold(
        head, h.table(("score", "predicates", "reads as", ""), rows), more, key="other-queries"
    )


VIEWS: Mapping[type, View] = {
    records.Classified: render_classified,
    records.Generated: render_generated,
    records.LinkedRelation: render_linked_relation,
    records.QIR: render_qir,
    records.Rephrased: render_rephrased,
    records.Selection: render_selection,
}
