"""The pictures of Chatty-KG's records: the QIR as chains, ranked predicates, kept queries, changed words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kgwb import flow
from kgwb.show.explain import missing, part_text, written_by
from kgwb.show.html import (
    Html,
    aside,
    bar,
    button,
    count,
    div,
    fold,
    join,
    marked,
    note,
    short,
    span,
    state_sign,
    table,
    tag,
    word_changes,
)
from kgwb.show.subgraph import relation_words
from kgwb.show.tell import because, parts_table, query_block, shown_of, view
from kgwb.show.terms import Around, curie
from kgwb.systems.chatty_kg import records

UNLIKE = 0.6
"""A best predicate less similar than this is worth a word where there is no answer."""
MOST_RANKED, MOST_KEPT, MOST_OTHERS = 8, 3, 40
"""Predicates and kept queries shown at once, and other queries that unfold."""


def pill(name: str, target: str = "") -> Html:
    """An end of a fact: an entity is solid, an unknown dashed, what is asked for double."""
    if not records.is_unknown(name):
        return span("ent", short(name), title="entity")
    look, title = ("unk asked", "asked for") if name == target else ("unk", "unknown")
    return span(look, name, title=title)


def chains(qir: records.QIR) -> Html:
    """The facts from left to right; one that goes on from where another ended stands on its line."""
    lines: list[list[Html]] = []
    last = ""
    for fact in qir.facts:
        piece = [span("rel", tag("em", short(fact.relation))), pill(fact.object, qir.target)]
        if lines and fact.subject == last:
            lines[-1] += piece
        else:
            lines.append([pill(fact.subject, qir.target), *piece])
        last = fact.object
    return div("stack", *(div("chain", *line) for line in lines))


@view.register
def _(value: records.QIR, around: Around) -> Html:
    asks = {"list": "", "count": "asks how many", "boolean": "asks whether it is so"}[value.kind]
    return div(
        "body stack",
        chains(value),
        aside(asks) if asks else "",
        note(f"{flow.CANNOT_EXPRESS}: {'; '.join(map(short, value.beyond))}") if value.beyond else "",
        fold(aside("as a table"), parts_table(value.facts, around), key="qir-table") if value.facts else "",
    )


@view.register
def _(value: records.Classified, around: Around) -> Html:
    quoted = re.findall(r"['\"‘“]([^'\"‘’“”]+)['\"’”]", value.reason)
    question = around.of(str)
    asked = div("", marked(question, quoted)) if question else ""
    return div("body stack", span("type b", value.label), asked, because(value.reason))


@view.register
def _(value: records.Rephrased, around: Around) -> Html:
    context = around.of(flow.Context)
    shown = join(div("b", value.question), aside("nothing was changed"))
    if value.question != value.original:
        before, after = word_changes(value.original, value.question)
        shown = div("kv", span("soft", "before"), span("", before), span("soft", "after"), span("b", after))
    if not (context and context.turns):
        return div("body stack", shown, "")
    dialogue = fold(aside("the dialogue as it came in"), view(context, around), key="dialogue")
    return div("body stack", shown, dialogue)


@view.register
def _(value: records.LinkedRelation, around: Around) -> Html:
    kept = [step.output for step in around.steps if step.done and isinstance(step.output, records.Selection)]
    best = kept[-1].queries[:1] if kept else ()
    used = {predicate.strip("<>") for query in best for _, predicate, _ in query.patterns}
    fact = value.fact
    relation = span("rel", tag("em", short(fact.relation)))
    head = div(
        "chain lead", pill(fact.subject), relation, pill(fact.object), aside("may be said in the graph by")
    )
    rows = []
    for place, predicate in enumerate(value.predicates):
        is_used, out = str(predicate.iri) in used, predicate.direction == "out"
        way = "from subject to object" if out else "from object to subject"
        mark = join(" ", state_sign("ok", "used")) if is_used else ""
        arrow = span("soft", "→" if out else "←", title=way)
        name = span("cut", tag("b" if is_used else "span", short(predicate.name)), " ", arrow, mark)
        score = bar(predicate.similarity), span("num", f"{predicate.similarity:.2f}")
        ask = button("examples", "examples", class_="ghost", arg=place) if around.live else ""
        cells = (span("num", place + 1), name, *score, span("cut", curie(predicate.iri, around)), ask)
        more = f"examples {place}"
        examples = div("body", shown_of(more, around)) if more in around.more else ""
        rows.append(join(div(f"rank{' used' if is_used else ''}", *cells), examples))
    left = len(rows) - MOST_RANKED
    more = div("band", fold(aside(f"{left} more"), *rows[MOST_RANKED:], key="ranked")) if left > 0 else ""
    nothing = "" if rows else div("body", "no predicate: nothing linked touches it")
    return div("ranks", head, *rows[:MOST_RANKED], more, nothing)


@view.register
def _(value: records.Generated, around: Around) -> Html:
    kept = len(value.queries)
    cut = f"{kept:,} kept (query_num)" if kept < value.before_truncation else "all kept"
    head = f"{count(value.before_truncation, 'combination')}, {cut}" if kept else "no combination"
    others = _others(value.queries, MOST_KEPT, around, takes=False) if kept > MOST_KEPT else ""
    return div("body stack", aside(head), *_kept(value, around, sign=False), others)


@view.register
def _(value: records.Selection, around: Around) -> Html:
    """The queries kept, and those that came in: a click takes one of them instead."""
    generated = around.of(records.Generated)
    nothing = "" if value.queries else note("no query was kept")
    offered = generated.queries if generated else ()
    others = _others(offered, 0, around, takes=around.live) if offered else ""
    return div("body stack", *_kept(value, around, sign=True), nothing, others)


def _kept(value: records.Generated | records.Selection, around: Around, *, sign: bool) -> list[Html]:
    blocks = []
    for place, query in enumerate(value.queries[:MOST_KEPT]):
        first = state_sign("ok", "kept") if sign else span("num", place + 1)
        score = (aside("score"), span("minibar", bar(query.score)), span("num", f"{query.score:.2f}"))
        head = div("row", first, *score, span("soft cut", " · ".join(map(short, query.predicates))))
        usable = isinstance(value, records.Generated)
        blocks.append(query_block(place, query.sparql, around, head=head, usable=usable))
    return blocks


def _others(offered: Sequence[flow.CandidateQuery], shown: int, around: Around, *, takes: bool) -> Html:
    """Other candidate queries, of which a click may take one; ``shown`` are shown already."""
    rows = []
    others = [(place, query) for place, query in enumerate(offered) if place >= shown]
    for place, query in others[:MOST_OTHERS]:
        reads = join(*(div("", short(part_text(pattern, around.names))) for pattern in query.patterns))
        take = button("take this one", "take", class_="ghost", arg=place) if takes else ""
        rows.append((f"{query.score:.2f}", short(" · ".join(query.predicates)), reads, take))
    more = aside(f"and {len(others) - len(rows):,} more") if len(others) > len(rows) else ""
    head = aside(count(len(others), "other candidate query"))
    return fold(head, table(("score", "predicates", "reads as", ""), rows), more, key="other-queries")


# --- what the records say to a person's questions, and of the subgraph


@missing.register
def _(value: records.LinkedRelation) -> str:
    relation, best = value.fact.relation, value.predicates[:3]
    if not best:
        return f"no predicate for “{relation}”: nothing that was linked touches one"
    near = ", ".join(f"{predicate.name} ({predicate.similarity:.2f})" for predicate in best)
    return f"no predicate is like “{relation}”: nearest are {near}" if best[0].similarity < UNLIKE else ""


@written_by.register
def _(value: records.LinkedRelation) -> Iterator[tuple[str, str]]:
    yield from (("predicate", f"<{predicate.iri}>") for predicate in value.predicates)


@written_by.register
def _(value: records.Generated) -> Iterator[tuple[str, str]]:
    yield from (("filters", query.filters.strip()) for query in value.queries)


@relation_words.register
def _(value: records.Linked) -> tuple[str, ...]:
    return tuple(relation.fact.relation for relation in value.relations if relation.predicates)
