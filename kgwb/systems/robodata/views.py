"""The views of RoboData's records: state diagram, local graph, results, checked sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rdflib import URIRef

from kgwb.build import (
    MAX_ROWS,
    Edge,
    Html,
    Node,
    RenderContext,
    Role,
    Subgraph,
    Triple,
    Value,
    View,
    collapsible,
    div,
    format_term,
    join,
    muted_text,
    note,
    render,
    render_explanation,
    render_svg,
    render_term,
    render_triples,
    shorten,
    span,
    subgraph_of_answer,
    table,
)
from kgwb.systems.robodata import records
from kgwb.systems.robodata.records import LocalGraph, Observed
from kgwb.systems.robodata.states import Decision


def render_state_diagram(position: records.Position) -> Html:
    """Render a picture of the states and transitions; those that were made stand out, with their number.

    The start (EVAL_LOCAL) and the present state are marked.
    """
    counts = Counter((visit.state, visit.next) for visit in position.visits)
    transitions: dict[tuple[records.State, records.State], None] = {}
    for start, ends in records.TRANSITIONS.items():
        for end in ends:
            transitions[start, end] = None
    transitions.update(dict.fromkeys(counts))
    iris = {state: URIRef(f"urn:state:{state}") for state in records.STATES}
    edges = []
    made: list[Triple] = []
    for start, end in transitions:
        triple = (iris[start], URIRef("urn:next"), iris[end])
        count = counts[start, end]
        label = ""
        if count:
            label = str(count)
            made.append(triple)
        edges.append(Edge(triple, label))
    nodes = []
    for state, iri in iris.items():
        roles = []
        if state == "EVAL_LOCAL":
            roles.append(Role("linked", "start"))  # on the left, so that the layout stays the same
        if state == position.state:
            roles.append(Role("unknown", "now"))
        nodes.append(Node(iri, state, tuple(roles)))
    highlighted = Value(iris[position.state], "", tuple(made))
    return render_svg(Subgraph(tuple(nodes), tuple(edges)), highlighted)


def render_graph_with_additions(
    local: LocalGraph, before: LocalGraph | None, context: RenderContext
) -> Html:
    """Render the size of the local graph and, unless it is empty, a picture and a folded list of triples.

    In the picture, triples that are not in the graph ``before`` stand out; without a graph before,
    none do.
    """
    parts = [div("b", str(local))]
    if local:
        added = []
        if before:
            added = [triple for triple in local.support if triple not in before.support]
        highlighted = None
        if added:
            first_subject, _, _ = added[0]
            highlighted = Value(first_subject, "", tuple(added))
        triples = render_triples(local.support, context.with_names(local.names))
        parts += [
            render_svg(subgraph_of_answer(local), highlighted),
            collapsible(muted_text("its triples"), triples, key="triples"),
        ]
    return div("stack", *parts)


def render_local_graph(value: LocalGraph, context: RenderContext) -> Html:
    """Render a local graph; what the turn added to it stands out."""
    return div("body", render_graph_with_additions(value, context.input_of(LocalGraph), context))


def render_machine_state(value: records.Position, context: RenderContext) -> Html:
    """Render a position: sizes, state diagram, last thought, judgement, advice, and local graph.

    Triples that the turn added to the local graph stand out. A thought, judgement or advice that is
    missing is left out.
    """
    before = context.input_of(records.Position)
    graph_before = None
    if before:
        graph_before = before.local
    judgement = ""
    if value.observations:
        judgement = value.observations[-1].judgement
    thought = ""
    if value.visits:
        thought = value.visits[-1].thought
    return div(
        "body stack",
        div("b", value.statistics),
        render_state_diagram(value),
        render_explanation(thought, "thought"),
        render_explanation(judgement, "metacognition judges"),
        render_explanation(value.advice, "metacognition advises"),
        render_graph_with_additions(value.local, graph_before, context),
    )


def render_decision(value: Decision, context: RenderContext) -> Html:
    """Render a decision: the next state, the thought, and a table of the tool uses with their arguments.

    Without tool uses there is no table.
    """
    rows = []
    for action in value.actions:
        arguments = action.model_dump(mode="json", exclude={"tool"})
        rows.append((action.spec.name, render(arguments, context)))
    return div(
        "body stack",
        div("", span("type b", value.next), muted_text(" comes next")),
        render_explanation(value.thought, "thought"),
        table(("tool", "arguments"), rows),
    )


def render_tool_result(value: Observed, context: RenderContext) -> Html:
    """Render the result of a tool: its line or error, and its first rows as a table.

    At most MAX_ROWS rows are shown, with the number of all. An unbound cell is empty. Without rows
    there is no table.
    """
    context = context.with_names(value.names)
    parts = [div("b", shorten(str(value)))]
    if value.error:
        parts = [note(str(value), level="bad")]
    rows = []
    for row in value.rows[:MAX_ROWS]:
        rows.append(["" if cell is None else render_term(cell, context) for cell in row])
    parts.append(table(value.columns, rows, total=len(value.rows)))
    return div("body stack", *parts)


def render_produced_answer(value: records.Produced, context: RenderContext) -> Html:
    """Render each sentence with its support, nodes and problem, then what is missing for an answer.

    Sentences are numbered from 1. Terms have the names of the local graph, if the step has it as
    input.
    """
    position = context.input_of(records.Position)
    if position:
        context = context.with_names(position.local.names)
    parts: list[object] = []
    for number, sentence in enumerate(value.sentences, 1):
        text = div("b", f"{number}. {shorten(sentence.text)}")
        triples = render_triples(sentence.support, context)
        parts.append(div("stack tight", text, triples))
        nodes = []
        for node in sentence.nodes:
            name = format_term(node, context.names)
            nodes.append(span("ent", name))
        parts.append(join(*nodes))
        if sentence.problem:
            parts.append(note(sentence.problem, level="bad"))
    missing = render_explanation(value.missing, "missing")
    return div("body stack", *parts, missing)


VIEWS: Mapping[type, View] = {
    LocalGraph: render_local_graph,
    Observed: render_tool_result,
    Decision: render_decision,
    records.Position: render_machine_state,
    records.Produced: render_produced_answer,
}
