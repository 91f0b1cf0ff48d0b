"""The linked subgraph of a run: lit along what an answer stands on; click through it, expand it."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import pyvis
from pyvis.network import Network
from rdflib import URIRef

from kgwb.errors import GraphError, SettingError
from kgwb.flow import Value
from kgwb.kg.queries import Description, describe_vertices
from kgwb.records import MAX_LINE_CHARS
from kgwb.show import subgraph_html as picture
from kgwb.show.html import Html, button, div, join, muted_text, span, tabs, tag
from kgwb.show.run import render_question_header
from kgwb.show.subgraph import Subgraph, build_subgraph, expand_node
from kgwb.show.subgraph_layout import box_lines, compute_layout, edge_label, fit_width
from kgwb.show.terms import context_of, render_curie
from kgwb.text import remove_controls, shorten, single_line
from kgwb.ui.live import Event, Live
from kgwb.ui.session import Session, Worker

Item = TypeVar("Item")
MAX_PICTURE_NODES, MAX_ANSWER_TABS = 60, 12
"""Nodes that a picture shows readably, and answers to mark."""
NEIGHBOUR_TRIPLES, MAX_EXPANDED_NODES = 5, 8
"""Triples around a node that are shown at once, if no more nodes than these stand on the way."""
VIEWS = (("picture", "Picture", ""), ("graph", "To move around in", ""), ("table", "Table", ""))
MAX_TAB_CHARS = 60
GRAPH_HINT = (
    "Click a node to see what it is. Drag, arrow keys and wheel move it, a double-click fits it."
)
VIS_SCRIPT_PATH = max(Path(pyvis.__file__).parent.glob("lib/vis-*/vis-network.min.js"))
FRAME_SCRIPT_PATH = Path(__file__).with_name("subgraph_frame.js")
FRAME_STYLE = """
html, body, #graph { margin: 0; height: 100%; overflow: hidden; background: var(--ground);
  font: 13px sans-serif }
.vis-network:focus { outline: none }
div.vis-tooltip { position: absolute; visibility: hidden; padding: 4px 8px;
  background: var(--ground); color: var(--text); border: 1px solid var(--aside);
  border-radius: 3px; max-width: 24em; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  z-index: 5 }
"""


class SubgraphPanel(Live):
    """What a run stands on: a picture, a graph to move around in, and a table; it follows the run."""

    def __init__(self, session: Session, *, outer: Live | None = None) -> None:
        """``outer`` is a widget of the same session that it is shown inside of."""
        self.session, self.parent = session, outer
        self.subgraph = Subgraph()
        self.selected_view = ""  # the chosen view; empty for the one that fits
        self.highlighted_number, self.selected_number = 0, -1
        """The answer whose support stands out, and the node that is looked at; -1 for none."""
        self.descriptions: dict[
            int, Description
        ] = {}  # the graph's descriptions of nodes, by their numbers
        self.worker = Worker()
        self._last_outputs: object = None
        self._last_subgraph: object = None
        self._update_lock = threading.RLock()
        super().__init__(self.worker, *(() if outer else (session,)))

    def _update_subgraph(self) -> None:
        """Take the run's subgraph anew if what the run yielded has changed."""
        with self._update_lock:
            run = self.session.run
            done = run.status == "done"
            outputs = run.answer, done, [step.output for step in tuple(run.steps)]
            if outputs == self._last_outputs:
                return
            linked, self._last_outputs = build_subgraph(run), outputs
            if self._last_subgraph == (linked, done):
                return
            self._last_subgraph, self.subgraph = (linked, done), linked
            self.highlighted_number, self.selected_number, self.descriptions = 0, -1, {}
            if (
                done
                and run.unrecorded_graph
                and not run.unrecorded_graph.remote
                and len(linked.nodes) <= MAX_EXPANDED_NODES
            ):
                for node in linked.nodes:  # what lies around a short path, where that costs nothing
                    if node.shape in ("linked", "unknown") and isinstance(node.term, URIRef):
                        with suppress(GraphError):
                            self.subgraph = expand_node(
                                run.unrecorded_graph, self.subgraph, node.term, NEIGHBOUR_TRIPLES
                            )

    @property
    def highlighted_answer(self) -> Value | None:
        """The answer whose support stands out."""
        return _item_at(self.subgraph.answers, self.highlighted_number)

    def view(self) -> Html:
        self._update_subgraph()
        top = Html() if self.parent else render_question_header(self.session.run)
        if not self.subgraph.nodes:
            return join(top, picture.EMPTY_MESSAGE)
        shown = self.selected_view or (
            "picture" if len(self.subgraph.nodes) <= MAX_PICTURE_NODES else "graph"
        )
        labels = [
            fit_width(single_line(value.label), MAX_TAB_CHARS) for value in self.subgraph.answers
        ]
        numbers = (n + 1 if labels.count(label) > 1 else "" for n, label in enumerate(labels))
        options = [*zip(map(str, range(len(labels))), labels, numbers, strict=True)][
            :MAX_ANSWER_TABS
        ]
        marks = tabs(
            [*options, ("-1", "nothing marked", "")],
            str(self.highlighted_number),
            "lit",
            borderless=True,
        )
        bar = div("row controls", marks, span("grow"), tabs(VIEWS, shown, "drawn", borderless=True))
        lit, parts = (
            self.highlighted_answer,
            [picture.render_legend(self.subgraph, self.highlighted_answer)],
        )
        if shown == "table":
            parts.insert(0, picture.render_tables(self.subgraph, context_of(self.session.run)))
        elif shown == "picture":
            parts.insert(0, picture.render_svg(self.subgraph, lit, event="node"))
        else:
            parts.insert(0, self._render_frame())
        if lit is not None and not lit.support:
            parts.append(div("", tag("b", shorten(lit.label)), " has no supporting triple."))
        return join(top, div("band", bar), div("body stack", *parts, self._render_selected_node()))

    def render_static(self) -> Html:
        self._update_subgraph()
        shown, lit = self.subgraph, self.highlighted_answer
        if not shown.nodes:
            return picture.EMPTY_MESSAGE
        words = picture.render_tables(shown, context_of(self.session.run))
        return div(
            "body stack", picture.render_svg(shown, lit), picture.render_legend(shown, lit), words
        )

    def _render_frame(self) -> Html:
        top: Live = self
        while isinstance(top.parent, Live):
            top = top.parent
        top.frame_page = top.frame_page or frame_page()
        lit = picture.highlighted_parts(self.subgraph, self.highlighted_answer)
        shown = {"graph": to_vis_network(self.subgraph), "lit": lit, "picked": self.selected_number}
        title = shorten(f"Subgraph of: {single_line(self.session.run.question)}")
        # as Html, because JSON may not be cut as other texts are
        text = Html(escape(json.dumps(shown, ensure_ascii=False), quote=True))
        data = {"data_page": "node", "data_keep": "graph", "data_graph": text}
        return join(div("frame", **data, title=title, id="graph"), muted_text(GRAPH_HINT))

    def _render_selected_node(self) -> Html:
        """The node that is looked at, and what may be asked about it."""
        node = _item_at(self.subgraph.nodes, self.selected_number)
        if node is None:
            return muted_text("Click a node to see what it is, and to expand it.")
        about = self.descriptions.get(self.selected_number, Description())
        parts = [
            tag("b", shorten(node.label)),
            *(span("type", shorten(name)) for name in about.types),
        ]
        if isinstance(node.term, URIRef):
            iri = render_curie(node.term, context_of(self.session.run))
            parts += [iri, span("grow"), button("Expand one hop", "expand", "plus")]
        lines = [muted_text(picture.describe_roles(node.roles))] if node.roles else []
        lines += [div("", shorten(about.description, MAX_LINE_CHARS))] if about.description else []
        lines += [muted_text(self.worker.failure.message)] if self.worker.failure else []
        return div("well stack tight", div("row", *parts), *lines)

    def do_drawn(self, event: Event) -> None:
        self.selected_view = str(event["arg"])

    def do_lit(self, event: Event) -> None:
        self.highlighted_number = int(event["arg"])

    def do_node(self, event: Event) -> None:
        """Look at a node; an answer shows what it stands on too."""
        self.selected_number = number = int(event["arg"])
        node, kg = _item_at(self.subgraph.nodes, number), self.session.run.unrecorded_graph
        if node is None:
            return
        answers = [n for n, value in enumerate(self.subgraph.answers) if value.term == node.term]
        self.highlighted_number = answers[0] if answers else self.highlighted_number
        term, about = node.term, self.descriptions
        if kg and isinstance(term, URIRef) and number not in about:
            self.worker.submit(
                "asking the graph",
                lambda: about.update({number: describe_vertices(kg, [term])[term]}),
            )

    def do_expand(self, event: Event) -> None:
        kg, before = self.session.run.unrecorded_graph, self.subgraph
        node = _item_at(before.nodes, self.selected_number)
        if node is None:
            raise SettingError("no node is chosen", hint="click a node")
        if kg is None:
            hint = "open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))"
            raise SettingError("this run is a replay: there is no graph to ask", hint=hint)

        def grow() -> None:
            grown = expand_node(kg, before, node.term)
            with self._update_lock:
                if self.subgraph is before:  # the run may have gone on
                    self.subgraph = grown

        self.worker.submit("asking the graph", grow)


def _item_at(items: Sequence[Item], number: int) -> Item | None:
    return items[number] if 0 <= number < len(items) else None


def frame_page() -> str:
    """The HTML for ``<iframe sandbox="allow-scripts" srcdoc>``, still empty: it asks nothing of any network.

    It takes messages ``{kgwb: {graph, theme, lit, picked}}`` from the window around it, and sends it
    ``{kgwb: {picked}}`` when a node is clicked. pyvis's own page loads Bootstrap whatever its options are.
    """
    nonce = secrets.token_hex(16)
    # Even if something in the page wanted to, it may load nothing, and run nothing but these scripts.
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
    )
    scripts = (
        f'<script nonce="{nonce}">{path.read_text("utf-8")}</script>'
        for path in (VIS_SCRIPT_PATH, FRAME_SCRIPT_PATH)
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{FRAME_STYLE}</style></head>'
        f'<body><div id="graph"></div>{"".join(scripts)}</body></html>'
    )


def to_vis_network(subgraph: Subgraph) -> dict[str, Any]:
    """Nodes and edges as pyvis hands them to vis-network; an id is a place in the subgraph."""
    network, drawn = Network(directed=True), compute_layout(subgraph)
    for number, (node, place) in enumerate(zip(subgraph.nodes, drawn.boxes, strict=True)):
        look: dict[str, Any] = {
            "kind": node.shape,
            "told": remove_controls(picture.tooltip_text(node)),
            "x": place.x,
            "y": place.y,
        }
        shape = "ellipse" if node.shape == "unknown" else "box"
        network.add_node(number, remove_controls("\n".join(box_lines(node))), shape, **look)
    for number, (edge, ends, bend) in enumerate(
        zip(subgraph.edges, drawn.endpoints, drawn.curvatures, strict=True)
    ):
        turn = {"enabled": True, "type": "curvedCCW" if bend > 0 else "curvedCW", "roundness": 0.2}
        look = {
            "label": remove_controls(edge_label(edge)),
            "told": remove_controls(picture.tooltip_text(edge)),
        }
        look |= {"found": picture.is_only_expanded(edge), "smooth": turn if bend else False}
        network.add_edge(*ends, id=number, **look)
    return {"nodes": network.nodes, "edges": network.edges}
