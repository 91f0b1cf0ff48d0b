"""The pictures of RoboData: the states lit as they go, the local graph, results, checked sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rdflib import URIRef

from kgwb.flow import Value
from kgwb.records import Role
from kgwb.run.agents import View
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, note, span, table
from kgwb.show.records import render_explanation
from kgwb.show.subgraph import Edge, Node, Subgraph, drawn, svg
from kgwb.show.terms import RenderContext, render_term, render_triples
from kgwb.systems.robodata import records
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.tools import Observed
from kgwb.terms import term_text
from kgwb.text import shorten


def diagram(position: records.Position) -> Html:
    """The states with their ways; those gone are lit, with how often."""
    gone = Counter((visit.state, visit.next) for visit in position.visits)
    iris = {state: URIRef(f"urn:state:{state}") for state in records.STATES}
    ways = [(start, end) for start, ends in records.NEXT.items() for end in ends]
    edges = {way: (iris[way[0]], URIRef("urn:next"), iris[way[1]]) for way in ways}
    known = {
        "EVAL_LOCAL": (Role("linked", "start"),)
    }  # on the left, so that the picture stays as it is
    now = {position.state: (*known.get(position.state, ()), Role("unknown", "now"))}
    nodes = tuple(Node(iri, state, (known | now).get(state, ())) for state, iri in iris.items())
    arrows = tuple(Edge(edges[way], str(gone[way] or "")) for way in ways)
    return svg(
        Subgraph(nodes, arrows), Value(iris[position.state], "", tuple(edges[way] for way in gone))
    )


def grown(local: LocalGraph, before: LocalGraph | None, context: RenderContext) -> Html:
    """The local graph; what a turn added is lit."""
    new = tuple(t for t in local.support if before and t not in before.support)
    lit = Value(new[0][0], "", new) if new else None
    listed = fold(
        aside("its triples"),
        render_triples(local.support, context.with_names(local.names)),
        key="triples",
    )
    return div(
        "stack",
        div("b", str(local)),
        svg(drawn(local), lit) if local else "",
        listed if local else "",
    )


def render_local_graph(value: LocalGraph, context: RenderContext) -> Html:
    return div("body", grown(value, context.input_of(LocalGraph), context))


def render_position(value: records.Position, context: RenderContext) -> Html:
    before = context.input_of(records.Position)
    words = render_explanation(value.visits[-1].thought, "thought") if value.visits else ""
    advice = render_explanation(value.advice, "metacognition advises")
    graph = grown(value.local, before.local if before else None, context)
    return div("body stack", div("b", value.statistics), diagram(value), words, advice, graph)


def render_decision(value: records.Decision, context: RenderContext) -> Html:
    uses = [
        (each.spec.name, shorten(each.model_dump_json(exclude={"tool"}))) for each in value.actions
    ]
    head = div("", span("type b", value.next), aside(" comes next"))
    return div(
        "body stack",
        head,
        render_explanation(value.thought, "thought"),
        table(("tool", "arguments"), uses),
    )


def render_observed(value: Observed, context: RenderContext) -> Html:
    context = context.with_names(value.names)
    cells = [
        ["" if c is None else render_term(c, context) for c in row]
        for row in value.rows[:MOST_ROWS]
    ]
    head = note(str(value), kind="bad") if value.error else div("b", shorten(str(value)))
    return div("body stack", head, table(value.columns, cells, of=len(value.rows)) if cells else "")


def render_produced(value: records.Produced, context: RenderContext) -> Html:
    position, parts = context.input_of(records.Position), list[object]()
    context = context.with_names(position.local.names if position else ())
    for number, each in enumerate(value.sentences, 1):
        nodes = join(*(span("ent", term_text(node, context.names)) for node in each.nodes))
        wrong = note(each.remark, kind="bad") if each.remark else ""
        parts.append(
            div(
                "stack tight",
                div("b", f"{number}. {shorten(each.text)}"),
                render_triples(each.support, context),
            )
        )
        parts += [nodes, wrong]
    return div("body stack", *parts, render_explanation(value.missing, "missing"))


VIEWS: Mapping[type, View] = {
    LocalGraph: render_local_graph,
    Observed: render_observed,
    records.Decision: render_decision,
    records.Position: render_position,
    records.Produced: render_produced,
}
