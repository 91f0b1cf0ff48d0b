"""The pictures of DoG's records: the debate, the question as it shrinks, the relations offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgwb.run.agents import View
from kgwb.show import html
from kgwb.show.html import MAX_ROWS, Html, collapsible, div, join, muted_text, span, table, tag
from kgwb.show.records import render, render_answer_parts, render_choices, render_explanation
from kgwb.show.terms import RenderContext, render_curie
from kgwb.systems.dog import records as walk
from kgwb.text import pluralize, shorten


def render_question(text: str) -> Html:
    """A question with its linked names as pills."""
    parts = walk.BRACKETED_NAME.split(text)
    return join(*(span("ent", part) if place % 2 else part for place, part in enumerate(parts)))


def render_bracketed_question(
    value: walk.TopicEntities | walk.HopInput, context: RenderContext
) -> Html:
    return div("body", render_question(value.question))


def render_relations(value: walk.Relations, context: RenderContext) -> Html:
    rows = [
        (shorten(str(each)), *_render_in_graph(value.head, each, context)) for each in value.found
    ]
    return div(
        "body", table(("relation", "in the graph", "predicate"), rows) or muted_text("no relation")
    )


def _render_in_graph(
    head: str, relation: walk.Relation, context: RenderContext
) -> tuple[str, Html]:
    """The way that a relation is gone from a head, and its predicates."""
    way = f"{head} → …" if relation.direction == "out" else f"… → {head}"
    return way, join(*(div("", render_curie(iri, context)) for iri in relation.iris))


def render_filtered_relation(value: walk.FilteredRelation, context: RenderContext) -> Html:
    offered = list((context.input_of(walk.Relations) or walk.Relations(value.head, ())).found)
    offered += [value.relation] if value.relation and value.relation not in offered else []
    shown = offered[:MAX_ROWS]
    rows = []
    for relation in shown:
        way, predicates = _render_in_graph(value.head, relation, context)
        rows.append(
            join(tag("b", shorten(str(relation))), " ", muted_text(way), span("under", predicates))
        )
    taken = shown.index(value.relation) if value.relation in shown else -1
    chosen = div(
        "",
        render_question(f"[{value.head}]"),
        " → ",
        tag("b", str(value.relation or "no relation")),
    )
    return join(
        div(
            "body stack",
            chosen,
            render_explanation(value.subquestion, "to answer"),
            render_explanation(value.reason),
        ),
        render_choices(
            rows, taken, "no relation: none fits, or another entity comes first", context
        ),
        div("band soft", f"and {len(offered) - MAX_ROWS:,} more")
        if len(offered) > MAX_ROWS
        else "",
    )


def render_filled_triples(value: walk.FilledTriples, context: RenderContext) -> Html:
    wide = max((len(triple) for triple in value.triples), default=3)
    heads = (
        ("head", "relation", "tail")
        if wide == 3
        else ("head", "relation", "between", "relation", "tail")
    )
    rows = [
        triple if len(triple) == wide else (*triple[:2], "", "", triple[2])
        for triple in value.triples
    ]
    stands = muted_text("what each tail stands on, from where the walk began")
    of = f"{pluralize(value.found, 'tail')} found, {len(value.values)} kept"
    return div(
        "body stack",
        div("", render_question(f"[{value.head}]"), f" {value.relation or ''}"),
        muted_text("; ".join(filter(None, (of if value.values else value.reason, value.note)))),
        table(heads, [tuple(map(shorten, row)) for row in rows[:MAX_ROWS]], total=len(rows)),
        collapsible(stands, *render_answer_parts(value, context), key="tails"),
    )


def render_tried_answer(value: walk.TriedAnswer, context: RenderContext) -> Html:
    label = "these triples answer it" if value.answers else "another hop is needed"
    asked = context.input_of(str)
    return div(
        "body stack",
        div("", span("type b", value.sufficient), " ", label),
        div("", muted_text("question "), render_question(asked)) if asked else "",
        render_explanation(", ".join(map(shorten, value.answers)), "answers"),
        render_explanation(value.reason),
    )


def render_remark(value: walk.Remark, context: RenderContext) -> Html:
    parts = (part for part in context.inputs if isinstance(part, tuple))
    earlier = [remark for part in parts for remark in part if isinstance(remark, walk.Remark)]
    return div("body", render_debate([*earlier, value], current=len(earlier)))


def render_simplified_question(value: walk.SimplifiedQuestion, context: RenderContext) -> Html:
    changed = html.render_word_diff(value.original, value.question)
    return div("body stack", changed, render_debate(value.debate))


def render_debate(debate: Sequence[walk.Remark], current: int = -1) -> Html:
    """A debate as its speakers had it, each with the question proposed; who speaks ``now`` stands out."""
    roles, turns = list(dict.fromkeys(remark.role for remark in debate)), []
    for place, remark in enumerate(debate):
        look = f"says turn-{roles.index(remark.role) % 3}{' now' if place == current else ''}"
        words, question = div("", tag("bdi", remark.words)), render_question(remark.question)
        turns.append(div(look, tag("b", remark.role), words, div("", muted_text("→ "), question)))
    return div("stack", *turns)


def render_hop(value: walk.Hop, context: RenderContext) -> Html:
    """The question as it shrank up to here, and what this hop went along."""
    questions = [*value.before, value.question, *([value.left.question] if value.left else [])]
    last = len(questions) - 1 if value.left else -1
    rows = [
        (str(n + 1), render_question(text), "left" if n == last else "")
        for n, text in enumerate(questions)
    ]
    gone = [div("", render_question(str(result))) for result in value.filled]
    tried = (
        render(value.tried, RenderContext(context.names, context.prefixes, views=context.views))
        if value.tried
        else ""
    )
    return join(
        div("body stack", table(("", "the question, shorter by each hop", ""), rows), *gone), tried
    )


VIEWS: Mapping[type, View] = {
    walk.FilledTriples: render_filled_triples,
    walk.FilteredRelation: render_filtered_relation,
    walk.HopInput: render_bracketed_question,
    walk.Hop: render_hop,
    walk.Relations: render_relations,
    walk.Remark: render_remark,
    walk.SimplifiedQuestion: render_simplified_question,
    walk.TopicEntities: render_bracketed_question,
    walk.TriedAnswer: render_tried_answer,
}
