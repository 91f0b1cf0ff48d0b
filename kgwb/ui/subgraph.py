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
from kgwb.kg.queries import Description, describe
from kgwb.records import MAX_LINE_CHARS
from kgwb.show import subgraph as picture
from kgwb.show.html import Html, aside, button, div, join, span, tabs, tag
from kgwb.show.run import run_head
from kgwb.show.subgraph import Subgraph, expand, subgraph
from kgwb.show.terms import context_of, curie
from kgwb.text import remove_controls, shorten, single_line
from kgwb.ui.live import Event, Live
from kgwb.ui.session import Session, Worker

Item = TypeVar("Item")
MOST_DRAWN, MOST_OFFERED = 60, 12
"""Nodes that a picture shows readably, and answers to mark."""
AROUND, CORE = 5, 8
"""Triples around a node that are shown at once, if no more nodes than these stand on the way."""
VIEWS = (("picture", "Picture", ""), ("graph", "To move around in", ""), ("table", "Table", ""))
CHARS = 60
HINT = "Click a node to see what it is. Drag, arrow keys and wheel move it, a double-click fits it."
VIS = max(Path(pyvis.__file__).parent.glob("lib/vis-*/vis-network.min.js"))
SCRIPT = Path(__file__).with_name("subgraph_frame.js")
STYLE = """
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
        self.session, self.outer = session, outer
        self.subgraph = Subgraph()
        self.shown = ""  # the chosen view; empty for the one that fits
        self.lit, self.picked = 0, -1
        """The answer whose support stands out, and the node that is looked at; -1 for none."""
        self.about: dict[
            int, Description
        ] = {}  # the graph's descriptions of nodes, by their numbers
        self.asking = Worker()
        self._outputs: object = None
        self._linked: object = None
        self._taking = threading.RLock()
        super().__init__(self.asking, *(() if outer else (session,)))

    def _take(self) -> None:
        """Take the run's subgraph anew if what the run yielded has changed."""
        with self._taking:
            run = self.session.run
            done = run.status == "done"
            outputs = run.answer, done, [step.output for step in tuple(run.steps)]
            if outputs == self._outputs:
                return
            linked, self._outputs = subgraph(run), outputs
            if self._linked == (linked, done):
                return
            self._linked, self.subgraph = (linked, done), linked
            self.lit, self.picked, self.about = 0, -1, {}
            if done and run.graph and not run.graph.remote and len(linked.nodes) <= CORE:
                for node in linked.nodes:  # what lies around a short path, where that costs nothing
                    if node.shape in ("linked", "unknown") and isinstance(node.term, URIRef):
                        with suppress(GraphError):
                            self.subgraph = expand(run.graph, self.subgraph, node.term, AROUND)

    @property
    def marked(self) -> Value | None:
        """The answer whose support stands out."""
        return _at(self.subgraph.answers, self.lit)

    def view(self) -> Html:
        self._take()
        top = Html() if self.outer else run_head(self.session.run)
        if not self.subgraph.nodes:
            return join(top, picture.NOTHING)
        shown = self.shown or ("picture" if len(self.subgraph.nodes) <= MOST_DRAWN else "graph")
        labels = [
            picture.fit_width(single_line(value.label), CHARS) for value in self.subgraph.answers
        ]
        numbers = (n + 1 if labels.count(label) > 1 else "" for n, label in enumerate(labels))
        options = [*zip(map(str, range(len(labels))), labels, numbers, strict=True)][:MOST_OFFERED]
        marks = tabs([*options, ("-1", "nothing marked", "")], str(self.lit), "lit", bare=True)
        bar = div("row controls", marks, span("grow"), tabs(VIEWS, shown, "drawn", bare=True))
        lit, parts = self.marked, [picture.legend(self.subgraph, self.marked)]
        if shown == "table":
            parts.insert(0, picture.tables(self.subgraph, context_of(self.session.run)))
        elif shown == "picture":
            parts.insert(0, picture.svg(self.subgraph, lit, do="node"))
        else:
            parts.insert(0, self._frame())
        if lit is not None and not lit.support:
            parts.append(div("", tag("b", shorten(lit.label)), " has no supporting triple."))
        return join(top, div("band", bar), div("body stack", *parts, self._node()))

    def static_view(self) -> Html:
        self._take()
        shown, lit = self.subgraph, self.marked
        if not shown.nodes:
            return picture.NOTHING
        words = picture.tables(shown, context_of(self.session.run))
        return div("body stack", picture.svg(shown, lit), picture.legend(shown, lit), words)

    def _frame(self) -> Html:
        top: Live = self
        while isinstance(top.outer, Live):
            top = top.outer
        top.page = top.page or page()
        lit = picture.lit_parts(self.subgraph, self.marked)
        shown = {"graph": graph(self.subgraph), "lit": lit, "picked": self.picked}
        title = shorten(f"Subgraph of: {single_line(self.session.run.question)}")
        # as Html, because JSON may not be cut as other texts are
        text = Html(escape(json.dumps(shown, ensure_ascii=False), quote=True))
        data = {"data_page": "node", "data_keep": "graph", "data_graph": text}
        return join(div("frame", **data, title=title, id="graph"), aside(HINT))

    def _node(self) -> Html:
        """The node that is looked at, and what may be asked about it."""
        node = _at(self.subgraph.nodes, self.picked)
        if node is None:
            return aside("Click a node to see what it is, and to expand it.")
        about = self.about.get(self.picked, Description())
        parts = [
            tag("b", shorten(node.label)),
            *(span("type", shorten(name)) for name in about.types),
        ]
        if isinstance(node.term, URIRef):
            iri = curie(node.term, context_of(self.session.run))
            parts += [iri, span("grow"), button("Expand one hop", "expand", "plus")]
        lines = [aside(picture.in_words(node.roles))] if node.roles else []
        lines += [div("", shorten(about.description, MAX_LINE_CHARS))] if about.description else []
        lines += [aside(self.asking.failure.message)] if self.asking.failure else []
        return div("well stack tight", div("row", *parts), *lines)

    def do_drawn(self, event: Event) -> None:
        self.shown = str(event["arg"])

    def do_lit(self, event: Event) -> None:
        self.lit = int(event["arg"])

    def do_node(self, event: Event) -> None:
        """Look at a node; an answer shows what it stands on too."""
        self.picked = number = int(event["arg"])
        node, kg = _at(self.subgraph.nodes, number), self.session.run.graph
        if node is None:
            return
        answers = [n for n, value in enumerate(self.subgraph.answers) if value.term == node.term]
        self.lit = answers[0] if answers else self.lit
        term, about = node.term, self.about
        if kg and isinstance(term, URIRef) and number not in about:
            self.asking.do(
                "asking the graph", lambda: about.update({number: describe(kg, [term])[term]})
            )

    def do_expand(self, event: Event) -> None:
        kg, before = self.session.run.graph, self.subgraph
        node = _at(before.nodes, self.picked)
        if node is None:
            raise SettingError("no node is chosen", hint="click a node")
        if kg is None:
            hint = "open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))"
            raise SettingError("this run is a replay: there is no graph to ask", hint=hint)

        def grow() -> None:
            grown = expand(kg, before, node.term)
            with self._taking:
                if self.subgraph is before:  # the run may have gone on
                    self.subgraph = grown

        self.asking.do("asking the graph", grow)


def _at(items: Sequence[Item], number: int) -> Item | None:
    return items[number] if 0 <= number < len(items) else None


def page() -> str:
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
        f'<script nonce="{nonce}">{path.read_text("utf-8")}</script>' for path in (VIS, SCRIPT)
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style></head>'
        f'<body><div id="graph"></div>{"".join(scripts)}</body></html>'
    )


def graph(subgraph: Subgraph) -> dict[str, Any]:
    """Nodes and edges as pyvis hands them to vis-network; an id is a place in the subgraph."""
    network, drawn = Network(directed=True), picture.layout(subgraph)
    for number, (node, place) in enumerate(zip(subgraph.nodes, drawn.places, strict=True)):
        look: dict[str, Any] = {
            "kind": node.shape,
            "told": remove_controls(picture.about(node)),
            "x": place.x,
            "y": place.y,
        }
        shape = "ellipse" if node.shape == "unknown" else "box"
        network.add_node(number, remove_controls("\n".join(picture.box_lines(node))), shape, **look)
    for number, (edge, ends, bend) in enumerate(
        zip(subgraph.edges, drawn.ends, drawn.bends, strict=True)
    ):
        turn = {"enabled": True, "type": "curvedCCW" if bend > 0 else "curvedCW", "roundness": 0.2}
        look = {
            "label": remove_controls(picture.fit_width(edge.label, picture.ARROW_CHARS)),
            "told": remove_controls(picture.about(edge)),
        }
        look |= {"found": picture.is_pale(edge), "smooth": turn if bend else False}
        network.add_edge(*ends, id=number, **look)
    return {"nodes": network.nodes, "edges": network.edges}
