"""The linked subgraph of a run: lit along what an answer stands on; click through it, expand it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from rdflib import URIRef

from kgwb.errors import GraphError, SettingError
from kgwb.flow import Value
from kgwb.kg.queries import Description, describe
from kgwb.show.html import Html, aside, button, clean, div, join, short, span, tabs, tag
from kgwb.show.picture import NOTHING, in_words, legend, lit_parts, shorten, svg, tables
from kgwb.show.run import head
from kgwb.show.subgraph import Node, Subgraph, expand, subgraph
from kgwb.show.tell import MOST_LINE
from kgwb.show.terms import Around, around, curie
from kgwb.ui.live import Event, Live
from kgwb.ui.pyvis_page import graph, page
from kgwb.ui.session import Session, Worker

Part = TypeVar("Part")
MOST_DRAWN, MOST_OFFERED = 60, 12
"""Nodes that a picture shows readably, and answers to mark."""
AROUND, CORE = 5, 8
"""Triples around a node that are shown at once, if no more nodes than these stand on the way."""
VIEWS = (("picture", "Picture", ""), ("graph", "To move around in", ""), ("table", "Table", ""))
CHARS = 60


class SubgraphPanel(Live):
    """What a run stands on: a picture, a graph to move around in, and a table; it follows the run."""

    def __init__(self, session: Session, *, inside: bool = False) -> None:
        """``inside``: something around it says which run it is of."""
        self.session, self.inside = session, inside
        self.subgraph = Subgraph()
        self.shown = ""
        """The chosen view; empty for the one that fits."""
        self.lit, self.picked = 0, -1
        """The answer whose support stands out, and the node that is looked at; -1 for none."""
        self.about: dict[int, Description] = {}
        """What the graph says of nodes, by their numbers."""
        self.asking = Worker(self.redraw)
        self._made_of: object = None
        self._found: Subgraph | None = None
        self._taking = threading.RLock()
        super().__init__()
        session.listeners.append(self.redraw)
        self.redraw()

    def close(self) -> None:
        """Stop following the run."""
        if self.redraw in self.session.listeners:
            self.session.listeners.remove(self.redraw)
        super().close()

    @property
    def working(self) -> bool:
        return bool(self.asking.busy)

    def _take(self) -> None:
        """Take the run's subgraph anew if what it is made of has changed."""
        with self._taking:
            run = self.session.run
            made_of = (run.answer, [step.output for step in tuple(run.steps)])
            if made_of == self._made_of:
                return
            found, self._made_of = subgraph(run), made_of
            if found != self._found:
                self._found, self.subgraph = found, self._surrounded(found)
                self.lit, self.picked, self.about = 0, -1, {}

    def _surrounded(self, found: Subgraph) -> Subgraph:
        """With something of what lies around a short path of a finished run, where that costs nothing."""
        run = self.session.run
        if run.status != "done" or run.graph is None or run.graph.remote or len(found.nodes) > CORE:
            return found
        for node in found.nodes:
            if node.shape in ("linked", "unknown") and isinstance(node.term, URIRef):
                with suppress(GraphError):
                    found = expand(run.graph, found, node.term, AROUND)
        return found

    # --- what is shown --------------------------------------------------------------------------------------

    @property
    def marked(self) -> Value | None:
        """The answer whose support stands out."""
        return _at(self.subgraph.answers, self.lit)

    def view(self) -> Html:
        self._take()
        top = head(self.session.run) if not self.inside else ""
        if not self.subgraph.nodes:
            return join(top, NOTHING)
        views = tabs(VIEWS, self._view(), "drawn", bare=True)
        bar = div("row controls", self._chooser(), span("grow"), views)
        shown = (self._picture(), legend(self.subgraph, self.marked), self._standing(), self._node())
        return join(top, div("band", bar), div("body stack", *shown))

    def _view(self) -> str:
        return self.shown or ("picture" if len(self.subgraph.nodes) <= MOST_DRAWN else "graph")

    def static_view(self) -> Html:
        self._take()
        found, lit = self.subgraph, self.marked
        if not found.nodes:
            return NOTHING
        return div("body stack", svg(found, lit), legend(found, lit), tables(found, self._around()))

    def _around(self) -> Around:
        return around(self.session.run)

    def _chooser(self) -> Html:
        labels = [shorten(clean(one.label), CHARS) for one in self.subgraph.answers]
        options = (
            (str(n), label, n + 1 if labels.count(label) > 1 else "") for n, label in enumerate(labels)
        )
        return tabs(
            [*list(options)[:MOST_OFFERED], ("-1", "nothing marked", "")], str(self.lit), "lit", bare=True
        )

    def _picture(self) -> Html:
        found, lit = self.subgraph, self.marked
        if self._view() == "table":
            return tables(found, self._around())
        if self._view() == "picture":
            return svg(found, lit, do="node")
        if not self.page:
            self.page = page()
        marked = lit_parts(found, lit)
        parts = {"nodes": marked.nodes, "edges": marked.edges} if marked else None
        data = json.dumps({"graph": graph(found), "lit": parts, "picked": self.picked}, ensure_ascii=False)
        title = f"Subgraph of: {clean(self.session.run.question)}"
        words = aside(
            "Click a node to see what it is. Drag, arrow keys and wheel move it, a double-click fits it."
        )
        return join(
            div(
                "frame",
                data_page="node",
                data_keep="graph",
                data_graph=Html(_quoted(data)),
                title=short(title),
                id="graph",
            ),
            words,
        )

    def _standing(self) -> Html:
        """The marked answer's support in words, for who cannot see the picture."""
        lit = self.marked
        if lit is None or lit.support:
            return Html()
        return div("", tag("b", short(lit.label)), " has no supporting triple.")

    def _node(self) -> Html:
        """The node that is looked at, and what may be asked about it."""
        node = _at(self.subgraph.nodes, self.picked)
        if node is None:
            return aside("Click a node to see what it is, and to expand it.")
        told = self.about.get(self.picked, Description())
        iri = curie(node.term, self._around()) if isinstance(node.term, URIRef) else ""
        more = button("Expand one hop", "expand", "plus") if isinstance(node.term, URIRef) else ""
        failed = aside(str(self.asking.failure.message)) if self.asking.failure else ""
        return div(
            "well stack tight",
            div(
                "row",
                tag("b", short(node.label)),
                *(span("type", short(one)) for one in told.types),
                iri,
                span("grow"),
                more,
            ),
            aside(in_words(node.roles)) if node.roles else "",
            div("", short(told.description, MOST_LINE)) if told.description else "",
            failed,
        )

    # --- what the person does -------------------------------------------------------------------------------

    def do_drawn(self, event: Event) -> None:
        self.shown = str(event["arg"])

    def do_lit(self, event: Event) -> None:
        self.lit = int(event["arg"])

    def do_node(self, event: Event) -> None:
        """A node was clicked; an answer shows what it stands on too."""
        self.picked = int(event["arg"])
        node, kg = _at(self.subgraph.nodes, self.picked), self.session.run.graph
        answers = [n for n, one in enumerate(self.subgraph.answers) if node and one.term == node.term]
        self.lit = answers[0] if answers else self.lit
        if (
            node
            and kg
            and isinstance(node.term, URIRef)
            and self.picked not in self.about
            and not self.asking.busy
        ):
            number, term = self.picked, node.term
            self.asking.do(
                "asking the graph", lambda: self.about.update({number: describe(kg, [term])[term]})
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
            found = expand(kg, before, node.term)
            with self._taking:
                if self.subgraph is before:  # the run may have gone on
                    self.subgraph = found

        self.asking.do("asking the graph", grow)


def _quoted(data: str) -> str:
    """JSON as the value of an attribute; unlike other texts it may not be cut."""
    return data.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _at(parts: Sequence[Part], number: int) -> Part | None:
    return parts[number] if 0 <= number < len(parts) else None


__all__ = ["Node", "SubgraphPanel"]
