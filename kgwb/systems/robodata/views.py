"""The pictures of RoboData: the states lit as they go, the local graph, results, checked sentences."""

from __future__ import annotations

from collections import Counter

from rdflib import URIRef

from kgwb.flow import Value
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, note, span, table
from kgwb.show.subgraph import Edge, Node, Role, Subgraph, drawn, svg
from kgwb.show.tell import because, view
from kgwb.show.terms import Around, term, term_text, triples
from kgwb.systems.robodata import records
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.tools import Observed
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


def grown(local: LocalGraph, before: LocalGraph | None, around: Around) -> Html:
    """The local graph; what a turn added is lit."""
    new = tuple(t for t in local.support if before and t not in before.support)
    lit = Value(new[0][0], "", new) if new else None
    listed = fold(
        aside("its triples"), triples(local.support, around.named(local.names)), key="triples"
    )
    return div(
        "stack",
        div("b", str(local)),
        svg(drawn(local), lit) if local else "",
        listed if local else "",
    )


@view.register
def _(value: LocalGraph, around: Around) -> Html:
    return div("body", grown(value, around.of(LocalGraph), around))


@view.register
def _(value: records.Position, around: Around) -> Html:
    before = around.of(records.Position)
    words = because(value.visits[-1].thought, "thought") if value.visits else ""
    advice = because(value.advice, "metacognition advises")
    graph = grown(value.local, before.local if before else None, around)
    return div("body stack", div("b", value.statistics), diagram(value), words, advice, graph)


@view.register
def _(value: records.Decision, around: Around) -> Html:
    uses = [
        (each.spec.name, shorten(each.model_dump_json(exclude={"tool"}))) for each in value.actions
    ]
    head = div("", span("type b", value.next), aside(" comes next"))
    return div(
        "body stack", head, because(value.thought, "thought"), table(("tool", "arguments"), uses)
    )


@view.register
def _(value: Observed, around: Around) -> Html:
    around = around.named(value.names)
    cells = [["" if c is None else term(c, around) for c in row] for row in value.rows[:MOST_ROWS]]
    head = note(str(value), kind="bad") if value.error else div("b", shorten(str(value)))
    return div("body stack", head, table(value.columns, cells, of=len(value.rows)) if cells else "")


@view.register
def _(value: records.Produced, around: Around) -> Html:
    position, parts = around.of(records.Position), list[object]()
    around = around.named(position.local.names if position else ())
    for number, each in enumerate(value.sentences, 1):
        nodes = join(*(span("ent", term_text(node, around.names)) for node in each.nodes))
        wrong = note(each.remark, kind="bad") if each.remark else ""
        parts.append(
            div(
                "stack tight",
                div("b", f"{number}. {shorten(each.text)}"),
                triples(each.support, around),
            )
        )
        parts += [nodes, wrong]
    return div("body stack", *parts, because(value.missing, "missing"))
