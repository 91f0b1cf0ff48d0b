"""The pictures of RoboData: the states lit as they go, the local graph, results, checked sentences."""

from __future__ import annotations

from collections import Counter

from rdflib import URIRef

from kgwb.flow import Value
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, note, short, span, table, tag
from kgwb.show.picture import svg
from kgwb.show.subgraph import Edge, Node, Role, Subgraph
from kgwb.show.tell import because, view
from kgwb.show.terms import Around, term, term_text, triples
from kgwb.systems.robodata import records
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.tools import Observed

MOST_DRAWN = 60


def diagram(position: records.Position) -> Html:
    """The states with their ways; those gone are lit, with how often, and the state reached."""
    gone = Counter((visit.state, visit.next) for visit in position.visits)
    iris = {state: URIRef(f"urn:state:{state}") for state in records.STATES}
    ways = [(start, end) for start, ends in records.NEXT.items() for end in ends]
    edges = {way: (iris[way[0]], URIRef("urn:next"), iris[way[1]]) for way in ways}
    nodes = tuple(
        Node(iris[state], state, (Role("linked", "now"),) if state == position.state else ())
        for state in records.STATES
    )
    drawn = tuple(Edge(edges[way], str(gone[way] or "")) for way in ways)
    return svg(Subgraph(nodes, drawn), Value(iris[position.state], "", tuple(edges[way] for way in gone)))


def graph_view(local: LocalGraph, before: LocalGraph | None, around: Around) -> Html:
    """The local graph; what came in this turn is lit."""
    around = around.named(local.names)
    new = tuple(t for t in local.support if before is None or t not in before.support)
    if not local:
        return aside("the local graph is empty")
    values = local.values[:MOST_DRAWN]
    edges = tuple(t for t in local.support if {t[0], t[2]} <= {value.term for value in values})
    drawn = Subgraph(
        tuple(Node(value.term, value.label, (Role("support"),)) for value in values),
        tuple(Edge(triple, term_text(triple[1], around.names)) for triple in edges),
    )
    lit = Value(new[0][0], "", new) if new and before else None
    rest = fold(aside("as triples"), triples(local.support, around), key="triples")
    return div("stack", div("b", str(local)), svg(drawn, lit), rest)


@view.register
def _(value: LocalGraph, around: Around) -> Html:
    return div("body", graph_view(value, around.of(LocalGraph), around))


@view.register
def _(value: records.Position, around: Around) -> Html:
    before = around.of(records.Position)
    advice = because(value.advice, "metacognition says")
    thought = because(value.visits[-1].thought, "thought") if value.visits else ""
    graph = graph_view(value.local, before.local if before else None, around)
    return div("body stack", div("b", value.statistics), diagram(value), thought, advice, graph)


@view.register
def _(value: records.Decision, around: Around) -> Html:
    uses = (tag("li", tag("bdi", short(each.model_dump_json()))) for each in value.actions)
    head = div("", span("type b", value.next), aside(" comes next"))
    return div(
        "body stack", head, because(value.thought, "thought"), tag("ul", *uses) if value.actions else ""
    )


@view.register
def _(value: Observed, around: Around) -> Html:
    around = around.named(value.names)
    cells = [["" if c is None else term(c, around) for c in row] for row in value.rows[:MOST_ROWS]]
    rows = table(value.columns, cells, of=len(value.rows)) if cells else ""
    return div(
        "body stack", note(str(value), kind="bad") if value.error else div("b", short(str(value))), rows
    )


@view.register
def _(value: records.Produced, around: Around) -> Html:
    position = around.of(records.Position)
    around = around.named(position.local.names if position else ())
    parts = []
    for number, each in enumerate(value.sentences, 1):
        nodes = join(*(span("ent", term_text(node, around.names)) for node in each.nodes))
        wrong = note(each.remark, kind="bad") if each.remark else ""
        parts.append(
            div(
                "stack tight",
                div("b", f"{number}. {short(each.text)}"),
                triples(each.support, around),
                nodes,
                wrong,
            )
        )
    return div("body stack", *parts, because(value.missing, "missing"))
