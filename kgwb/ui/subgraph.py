"""The widget of a run's subgraph: what supports an answer is highlighted, and nodes expand."""

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
from kgwb.kg.base import Graph
from kgwb.kg.queries import Description, describe_vertices
from kgwb.records import MAX_LINE_CHARS
from kgwb.run.answers import Value
from kgwb.show import html as h
from kgwb.show import subgraph_picture as picture
from kgwb.show.html import Html
from kgwb.show.run import render_question_header
from kgwb.show.run_state import answer_icon
from kgwb.show.subgraph import Edge, Node, Subgraph, build_subgraph, expand_node
from kgwb.show.subgraph_picture import box_lines, compute_layout, edge_label
from kgwb.show.terms import context_of, render_curie
from kgwb.text import fit_width, pluralize, remove_controls, shorten, single_line
from kgwb.ui.live import Event, Live, TabOption, argument_of, read_scripts, render_page
from kgwb.ui.session import Session
from kgwb.ui.worker import Worker

Item = TypeVar("Item")
MAX_PICTURE_NODES = 60
"""A larger subgraph is not readable as a picture; by default it is shown interactively."""
MAX_ANSWER_TABS = 12
MAX_TAB_CHARS = 60
NEIGHBOUR_TRIPLES = 5
"""Triples around a node that are added at once, see ``SubgraphPanel._add_neighbours``."""
MAX_EXPANDED_NODES = 8
"""They are added only if the subgraph has no more nodes than this."""
NOTHING = -1
"""The number of no node or no answer."""
VIEWS = (("picture", "Picture", ""), ("graph", "Interactive", ""), ("table", "Table", ""))
GRAPH_HINT = (
    "Click a node to see what it is, or choose one with the arrow keys; Escape leaves the picture. "
    "Drag to move, turn the wheel to zoom, double-click to see all."
)


class SubgraphPanel(Live):
    """The subgraph of a run as a picture, an interactive graph, or tables. It follows the run."""

    def __init__(self, session: Session, *, outer: Live | None = None) -> None:
        """``outer`` is a widget of the same session in which this one is shown."""
        self.run = session.run
        self.parent = outer
        self.subgraph = Subgraph()
        self.selected_view = ""
        """The view that the person chose; empty for the one that fits the number of nodes."""
        self.highlighted_number = 0
        """The position of the answer whose support is highlighted, or NOTHING."""
        self.selected_number = NOTHING
        """The position of the node that was clicked last, or NOTHING."""
        self.descriptions: dict[int, Description] = {}
        """What the graph says of nodes that were clicked, by their positions."""
        self.worker = Worker()
        """Asks the graph about nodes."""
        self._last_outputs: object = None
        """The outputs of the run from which the subgraph was built."""
        self._last_subgraph: object = None
        """The subgraph without added neighbours, and whether the run was done."""
        self._update_lock = threading.RLock()
        super().__init__(self.worker)
        if outer is None:
            self.subscribe_to(session)

    # The subgraph

    def _update_subgraph(self) -> None:
        """Build the subgraph again if the outputs of the run have changed since it was last built.

        If it is another one, it replaces the old one and its expanded nodes; the first answer is
        highlighted, and no node is selected. If the run is done and its graph is local, neighbours
        are added.
        """
        with self._update_lock:
            run = self.run
            is_done = run.status == "done"
            steps = tuple(run.steps)
            outputs = (run.answer, is_done, [step.output for step in steps])
            if outputs == self._last_outputs:
                return
            subgraph = build_subgraph(run)
            self._last_outputs = outputs
            if self._last_subgraph == (subgraph, is_done):
                return
            self._last_subgraph = (subgraph, is_done)
            self.subgraph = subgraph
            self.highlighted_number = 0
            self.selected_number = NOTHING
            self.descriptions = {}
            graph = run.unrecorded_graph
            if is_done and graph is not None and not graph.remote:
                self._add_neighbours(graph)

    def _add_neighbours(self, graph: Graph) -> None:
        """Add at most NEIGHBOUR_TRIPLES triples around each linked vertex and unknown with an IRI.

        The graph is queried here and now, so it must be a local one. A subgraph of more than
        MAX_EXPANDED_NODES nodes stays as it is. A vertex at which the graph fails gets none.
        """
        nodes = self.subgraph.nodes
        if len(nodes) > MAX_EXPANDED_NODES:
            return
        for node in nodes:
            term = node.term
            can_be_expanded = node.shape in ("linked", "unknown")
            if not can_be_expanded or not isinstance(term, URIRef):
                continue
            with suppress(GraphError):
                self.subgraph = expand_node(graph, self.subgraph, term, NEIGHBOUR_TRIPLES)

    @property
    def highlighted_answer(self) -> Value | None:
        """The answer whose support is highlighted."""
        return _item_at(self.subgraph.answers, self.highlighted_number)

    def announcement(self) -> str:
        """Return the label of the node that was clicked last, its roles, and how large the picture is."""
        node = _item_at(self.subgraph.nodes, self.selected_number)
        if node is None:
            return ""
        roles = picture.describe_roles(node.roles)
        return f"{node.name}, {roles}: {pluralize(len(self.subgraph.nodes), 'node')} in the picture"

    # The page

    def view(self) -> Html:
        """Render the subgraph in the selected view, the tabs, the legend, and the clicked node.

        The subgraph is built anew if the run has changed. Without nodes it is a message. Inside
        another widget, the question is left out. If the highlighted answer has no support, its name
        is shown with a remark.
        """
        self._update_subgraph()
        header = Html()
        if self.parent is None:
            header = render_question_header(self.run)
        if not self.subgraph.nodes:
            return h.join(header, picture.EMPTY_MESSAGE)
        fitting = "graph" if len(self.subgraph.nodes) > MAX_PICTURE_NODES else "picture"
        view = self.selected_view or fitting
        answer = self.highlighted_answer
        return render_page(
            "subgraph.html",
            header=header,
            answer_tabs=self._render_answer_tabs(),
            view_tabs=h.tabs(VIEWS, view, "drawn", self._panel_id, borderless=True),
            panel_id=self._panel_id,
            subgraph=self._render_subgraph(view),
            legend=picture.render_legend(self.subgraph, answer),
            answer=answer,
            selected_node=self._render_selected_node(),
        )

    def _render_answer_tabs(self) -> Html:
        """Render the first MAX_ANSWER_TABS answers as tabs, and one that highlights nothing.

        An answer that is a node is called as the node. Answers whose labels are the same are
        numbered. The tab of the highlighted answer is selected.
        """
        names = {node.term: node.name for node in self.subgraph.nodes}
        labels = []
        for answer in self.subgraph.answers[:MAX_ANSWER_TABS]:
            label = answer.label
            if not answer.row:
                label = names.get(answer.term, label)
            labels.append(fit_width(single_line(label), MAX_TAB_CHARS))
        options: list[TabOption] = []
        for position, label in enumerate(labels):
            number: object = ""
            if labels.count(label) > 1:
                number = position + 1
            options.append((str(position), label, number))
        options.append((str(NOTHING), "no highlight", ""))
        selected = str(self.highlighted_number)
        return h.tabs(options, selected, "lit", self._panel_id, borderless=True)

    @property
    def _panel_id(self) -> str:
        """The id of what both rows of tabs change."""
        return f"subgraph-{id(self):x}"

    def _render_subgraph(self, view: str) -> Html:
        """Render the subgraph as tables, as a picture, or in a frame, as ``view`` says.

        "table" and "picture", whose nodes can be clicked; any other view is the interactive frame.
        """
        if view == "table":
            context = context_of(self.run)
            return picture.render_tables(self.subgraph, context)
        if view == "picture":
            return picture.render_svg(
                self.subgraph,
                self.highlighted_answer,
                event="node",
                chosen=self.selected_number,
                answer_icon=answer_icon(self.run),
            )
        return self._render_frame()

    def render_static(self) -> Html:
        """Render the picture, its legend, and the tables; a message if the subgraph is empty."""
        self._update_subgraph()
        if not self.subgraph.nodes:
            return picture.EMPTY_MESSAGE
        answer = self.highlighted_answer
        context = context_of(self.run)
        return h.div(
            "body stack",
            picture.render_svg(self.subgraph, answer, answer_icon=answer_icon(self.run)),
            picture.render_legend(self.subgraph, answer),
            picture.render_tables(self.subgraph, context),
        )

    def _render_frame(self) -> Html:
        """Render the place of the interactive graph, with the graph as data.

        The script of the outermost widget puts the frame there. So that widget gets the page of the
        frame, when it is first needed: the page is half a megabyte.
        """
        outermost: Live = self
        while isinstance(outermost.parent, Live):
            outermost = outermost.parent
        if not outermost.frame_page:
            outermost.frame_page = frame_page()
        data = {
            "graph": to_vis_network(self.subgraph),
            "lit": picture.highlighted_parts(self.subgraph, self.highlighted_answer),
            "picked": self.selected_number,
        }
        json_text = json.dumps(data, ensure_ascii=False)
        question = single_line(self.run.question)
        frame = h.div(
            f"frame {answer_icon(self.run)}",
            data_page="node",
            data_keep="graph",
            data_then="drawn-graph",  # the tab that has led into the frame
            # Escaped here, because a text that is no Html would be shortened.
            data_graph=Html(escape(json_text, quote=True)),
            title=shorten(f"Subgraph of: {question}"),
            id="graph",
        )
        return h.join(frame, h.muted_text(GRAPH_HINT))

    def _render_selected_node(self) -> Html:
        """Render label, types, IRI, roles and description of the node that was clicked.

        Without a clicked node it is a hint. Types and description are empty until the graph has
        replied; a failure of that is shown.
        """
        node = _item_at(self.subgraph.nodes, self.selected_number)
        if node is None:
            return h.muted_text("Click a node to see what it is, and to expand it.")
        iri_link = Html()
        if isinstance(node.term, URIRef):
            iri_link = render_curie(node.term, context_of(self.run))
        return render_page(
            "subgraph_node.html",
            node=node,
            iri_link=iri_link,
            described=self.descriptions.get(self.selected_number, Description()),
            max_chars=MAX_LINE_CHARS,
            failure=self.worker.failure,
        )

    # Events

    def do_drawn(self, event: Event) -> None:
        """Select the view that the event's ``arg`` names: "picture", "graph" or "table"."""
        self.selected_view = argument_of(event)

    def do_lit(self, event: Event) -> None:
        """Highlight the support of the answer at the position in the event's ``arg``."""
        self.highlighted_number = int(event["arg"])

    def do_node(self, event: Event) -> None:
        """Select the node whose position is the event's ``arg``, and ask the graph to describe it.

        If the node is an answer, its support is highlighted. Nothing is asked in a replay, for a
        node without an IRI, or again.
        """
        number = int(event["arg"])
        self.selected_number = number
        node = _item_at(self.subgraph.nodes, number)
        if node is None:
            return
        for position, answer in enumerate(self.subgraph.answers):
            if answer.term == node.term:
                self.highlighted_number = position
                break
        if number in self.descriptions or not isinstance(node.term, URIRef):
            return
        graph = self.run.unrecorded_graph
        if graph is not None:
            self._submit_description(graph, number, node.term)

    def _submit_description(self, graph: Graph, number: int, iri: URIRef) -> None:
        """Submit a question for types and description of an IRI; the reply is kept for the node.

        An error is in ``worker.failure``.
        """
        descriptions = self.descriptions  # another subgraph, whose numbers differ, has its own

        def describe() -> None:
            """Ask the graph, and keep the description under the node's number."""
            described = describe_vertices(graph, [iri])
            descriptions[number] = described[iri]

        self.worker.submit("asking the graph", describe)

    def do_expand(self, event: Event) -> None:
        """Submit the expansion of the selected node: the triples around it are added.

        Raises SettingError if no node is selected, or in a replay.
        """
        graph = self.run.unrecorded_graph
        before = self.subgraph
        node = _item_at(before.nodes, self.selected_number)
        if node is None:
            raise SettingError(
                "no neighbours were added: no node is selected",
                hint="first click a node of the picture",
            )
        if graph is None:
            raise SettingError(
                "no neighbours were added: this run is a replay without a graph",
                hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
            )
        term = node.term

        def expand() -> None:
            """Expand the node, unless the run has changed the subgraph meanwhile."""
            expanded = expand_node(graph, before, term)
            with self._update_lock:
                if self.subgraph is before:
                    self.subgraph = expanded

        self.worker.submit("asking the graph", expand)


def _item_at(items: Sequence[Item], position: int) -> Item | None:
    """Return the item at a position; None if the position is negative or too large."""
    if 0 <= position < len(items):
        return items[position]
    return None


VIS_SCRIPT_PATH = max(Path(pyvis.__file__).parent.glob("lib/vis-*/vis-network.min.js"))
"""The library vis-network, which comes with pyvis."""
FRAME_STYLE = """
html, body, #graph { margin: 0; height: 100%; overflow: hidden; background: var(--ground);
  font: 13px sans-serif }
.vis-network:focus { outline: none }
body.focused::after { content: ""; position: fixed; inset: 0; z-index: 6; pointer-events: none;
  border: 2px solid var(--linked); border-radius: 4px }
div.vis-tooltip { position: absolute; visibility: hidden; padding: 4px 8px;
  background: var(--ground); color: var(--text); border: 1px solid var(--aside);
  border-radius: 3px; max-width: 24em; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  z-index: 5 }
"""
CURVE = 0.2
"""How far an edge bends that shares its nodes with another edge."""


def frame_page() -> str:
    """Return the HTML of an empty page for ``<iframe sandbox="allow-scripts" srcdoc>``.

    The window around it sends it messages ``{kgwb: {graph, theme, lit, picked}}``, and the page
    sends ``{kgwb: {picked}}`` when a node is chosen, and ``{kgwb: {left}}`` when Escape is pressed.
    It loads nothing from any network. pyvis's own page cannot be used: it loads Bootstrap, whatever
    its options are.
    """
    nonce = secrets.token_hex(16)
    # If markup got into the page, it could load nothing, and run nothing but these two scripts.
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
    )
    vis_script = VIS_SCRIPT_PATH.read_text("utf-8")
    own_script = read_scripts("nearest.js", "subgraph_frame.js")
    scripts = ""
    for script in (vis_script, own_script):
        scripts += f'<script nonce="{nonce}">{script}</script>'
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{FRAME_STYLE}</style></head>'
        f'<body><div id="graph"></div>{scripts}</body></html>'
    )


def to_vis_network(subgraph: Subgraph) -> dict[str, Any]:
    """Return a subgraph as data for vis-network: lists of "nodes" and "edges".

    The id of a node or edge is its position in the subgraph. Nodes are placed as in the picture.
    Unknowns are ellipses, all others boxes.
    """
    network = Network(directed=True)
    layout = compute_layout(subgraph)
    nodes = zip(subgraph.nodes, layout.boxes, strict=True)
    for position, (node, box) in enumerate(nodes):
        shape = "box"
        if node.shape == "unknown":
            shape = "ellipse"
        lines = box_lines(node)
        network.add_node(
            position,
            remove_controls("\n".join(lines)),
            shape,
            kind=node.shape,
            told=_tooltip(node),
            x=box.x,
            y=box.y,
        )
    edges = zip(subgraph.edges, layout.endpoints, layout.curvatures, strict=True)
    for position, (edge, endpoints, curvature) in enumerate(edges):
        label = edge_label(edge)
        network.add_edge(
            *endpoints,
            id=position,
            label=remove_controls(label),
            told=_tooltip(edge),
            found=picture.is_only_expanded(edge),
            smooth=_curve(curvature),
        )
    return {"nodes": network.nodes, "edges": network.edges}


def _tooltip(item: Node | Edge) -> str:
    return remove_controls(picture.tooltip_text(item))


def _curve(curvature: float) -> dict[str, Any] | bool:
    """Return vis-network's setting for how an edge bends; False for a straight one.

    The sign of the curvature decides the side.
    """
    if not curvature:
        return False
    direction = "curvedCW"
    if curvature > 0:
        direction = "curvedCCW"
    return {"enabled": True, "type": direction, "roundness": CURVE}
