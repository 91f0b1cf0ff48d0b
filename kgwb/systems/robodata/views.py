"""The pictures of RoboData: the states lit as they go, the local graph, results, checked sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rdflib import URIRef

from kgwb.flow import Value
from kgwb.records import Role
from kgwb.run.agents import View
from kgwb.show.html import MAX_ROWS, Html, collapsible, div, join, muted_text, note, span, table
from kgwb.show.records import render_explanation
from kgwb.show.subgraph import Edge, Node, Subgraph, subgraph_of_answer
from kgwb.show.subgraph_html import render_svg
from kgwb.show.terms import RenderContext, render_term, render_triples
from kgwb.systems.robodata import records
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.tools import Observed
from kgwb.terms import format_term
from kgwb.text import shorten


def render_state_diagram(position: records.Position) -> Html:
    """The states with their ways; those gone are lit, with how often."""
    gone = Counter((visit.state, visit.next) for visit in position.visits)
    iris = {state: URIRef(f"urn:state:{state}") for state in records.STATES}
    ways = [(start, end) for start, ends in records.TRANSITIONS.items() for end in ends]
    edges = {way: (iris[way[0]], URIRef("urn:next"), iris[way[1]]) for way in ways}
    known = {
        "EVAL_LOCAL": (Role("linked", "start"),)
    }  # on the left, so that the picture stays as it is
    now = {position.state: (*known.get(position.state, ()), Role("unknown", "now"))}
    nodes = tuple(Node(iri, state, (known | now).get(state, ())) for state, iri in iris.items())
    arrows = tuple(Edge(edges[way], str(gone[way] or "")) for way in ways)
    return render_svg(
        Subgraph(nodes, arrows), Value(iris[position.state], "", tuple(edges[way] for way in gone))
    )


def render_graph_with_additions(
    local: LocalGraph, before: LocalGraph | None, context: RenderContext
) -> Html:
    """The local graph; what a turn added is lit."""
    new = tuple(t for t in local.support if before and t not in before.support)
    lit = Value(new[0][0], "", new) if new else None
    listed = collapsible(
        muted_text("its triples"),
        render_triples(local.support, context.with_names(local.names)),
        key="triples",
    )
    return div(
        "stack",
        div("b", str(local)),
        render_svg(subgraph_of_answer(local), lit) if local else "",
        listed if local else "",
    )


def render_local_graph(value: LocalGraph, context: RenderContext) -> Html:
    return div("body", render_graph_with_additions(value, context.input_of(LocalGraph), context))


def render_machine_state(value: records.Position, context: RenderContext) -> Html:
    before = context.input_of(records.Position)
    words = render_explanation(value.visits[-1].thought, "thought") if value.visits else ""
    advice = render_explanation(value.advice, "metacognition advises")
    graph = render_graph_with_additions(value.local, before.local if before else None, context)
    return div(
        "body stack", div("b", value.statistics), render_state_diagram(value), words, advice, graph
    )


def render_decision(value: records.Decision, context: RenderContext) -> Html:
    uses = [
        (each.spec.name, shorten(each.model_dump_json(exclude={"tool"}))) for each in value.actions
    ]
    head = div("", span("type b", value.next), muted_text(" comes next"))
    return div(
        "body stack",
        head,
        render_explanation(value.thought, "thought"),
        table(("tool", "arguments"), uses),
    )


def render_tool_result(value: Observed, context: RenderContext) -> Html:
    context = context.with_names(value.names)
    cells = [
        ["" if c is None else render_term(c, context) for c in row] for row in value.rows[:MAX_ROWS]
    ]
    head = note(str(value), level="bad") if value.error else div("b", shorten(str(value)))
    return div(
        "body stack", head, table(value.columns, cells, total=len(value.rows)) if cells else ""
    )


def render_produced_answer(value: records.Produced, context: RenderContext) -> Html:
    position, parts = context.input_of(records.Position), list[object]()
    context = context.with_names(position.local.names if position else ())
    for number, each in enumerate(value.sentences, 1):
        nodes = join(*(span("ent", format_term(node, context.names)) for node in each.nodes))
        wrong = note(each.problem, level="bad") if each.problem else ""
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
    Observed: render_tool_result,
    records.Decision: render_decision,
    records.Position: render_machine_state,
    records.Produced: render_produced_answer,
}
