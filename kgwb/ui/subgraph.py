"""The linked subgraph of a run: click through it, expand it, see what an answer stands on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anywidget
import ipywidgets as widgets
import traitlets
from rdflib import URIRef

from kgwb.errors import SettingError
from kgwb.flow import Answer, Link, Linked, Value
from kgwb.kg.base import Graph
from kgwb.kg.queries import Description, describe
from kgwb.render.html import aside, iri, short
from kgwb.render.layout import MARGIN, layout, shorten
from kgwb.render.records import triples
from kgwb.render.subgraph import NOTHING, diagram, in_words, legend, lit_parts, subgraph_html, svg, tables
from kgwb.render.words import MOST_SAID, clean
from kgwb.show.subgraph import Node, Subgraph, expand, subgraph
from kgwb.ui.kit import Html, Panel, body, field, markup, row, tag
from kgwb.ui.pyvis_page import graph, page
from kgwb.ui.session import Session

Part = TypeVar("Part")
VIEWS = ("Graph", "Picture", "Table")
HEIGHTS = 200, 600
"""Pixels: the least and the most that the frame takes."""
CHARS = 60
HELP = "Click a node to see what it is. Drag, arrow keys and wheel move the graph, a double-click fits it. "


class Frame(anywidget.AnyWidget):
    """The sandboxed frame. ``picked``, the id of a node of ``graph``, alone comes back from the page."""

    _esm = Path(__file__).with_name("subgraph.js").read_text(encoding="utf-8")
    page = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(HEIGHTS[0]).tag(sync=True)
    graph: Any = traitlets.Dict({"nodes": [], "edges": []}).tag(sync=True)
    lit = traitlets.Dict().tag(sync=True)
    picked = traitlets.Int(-1).tag(sync=True)


class SubgraphPanel(Panel):
    """What a run stands on, as a graph, a picture and a table; it follows the run."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.subgraph = Subgraph()
        self._seen: object = None
        self._lock = threading.RLock()
        self.view = widgets.ToggleButtons(
            options=VIEWS, tooltips=[f"Show the {view.lower()}" for view in VIEWS]
        )
        self.supports = widgets.Dropdown(layout=widgets.Layout(width="22em"))
        self.vertex = widgets.Dropdown(layout=widgets.Layout(width="22em"))
        self.expand = self.button("Expand one hop", self._expand, icon="plus")
        self.frame = Frame(title=f"Subgraph of: {clean(session.run.question)}", page=page())
        self.place, self.about, self.remarks = markup(), markup(), markup()
        self.watch(self.view, lambda _: self._draw())
        self.watch(self.supports, lambda _: self._draw())
        self.watch(self.vertex, self._pick)
        self.watch(self.frame, self._clicked, "picked")
        self._changed()
        chosen = row(field("Show what supports", self.supports), field("Look at", self.vertex), self.expand)
        chosen.layout.align_items = "flex-end"
        self.show(self.view, chosen, self.frame, self.place, self.remarks, self.about)
        session.listeners.append(self._changed)

    def static(self) -> str:
        return subgraph_html(self.subgraph)

    def close(self) -> None:
        """Stop following the run."""
        if self._changed in self.session.listeners:
            self.session.listeners.remove(self._changed)
        super().close()

    # --- following the run ----------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Take the run's subgraph anew if what it is made of has changed."""
        with self.message.guarding(), self._lock:
            run = self.session.run
            outputs = [step.output for step in tuple(run.steps)]
            seen = (run.answer, [one for one in outputs if isinstance(one, Answer | Link | Linked)])
            if seen != self._seen:
                self._take(subgraph(run))
                self._seen = seen

    def _take(self, found: Subgraph) -> None:
        """Show another subgraph; what was chosen stays chosen where it is still there."""
        self.subgraph = found
        _offer(self.supports, "(nothing marked)", found.answers)
        _offer(self.vertex, "(no node chosen)", found.nodes)
        with self.frame.hold_sync():
            self.frame.graph = graph(found)
            height = layout(*diagram(found)).height + 2 * MARGIN
            self.frame.height = int(min(max(height, HEIGHTS[0]), HEIGHTS[1]))
        self._draw()

    # --- what is shown --------------------------------------------------------------------------------------

    @property
    def lit(self) -> Value | None:
        """The answer whose support stands out."""
        return _at(self.subgraph.answers, self.supports.value)

    def _draw(self) -> None:
        view, lit, found = self.view.value, self.lit, self.subgraph
        self.frame.layout.display = "" if view == "Graph" and found.nodes else "none"
        marked = lit_parts(found, lit)
        self.frame.lit = marked._asdict() if marked else {}
        other = {"Picture": lambda: svg(found, lit), "Table": lambda: tables(found)}.get(view)
        self.place.value = body(other() if other else "" if found.nodes else NOTHING)
        told = (aside(HELP) if view == "Graph" else "", legend(found)) if found.nodes else ()
        self.remarks.value = body(*told, self._standing(lit))

    def _standing(self, lit: Value | None) -> Html:
        """The marked answer's support in words."""
        if lit is None:
            return Html()
        names = {str(node.term): node.label for node in self.subgraph.nodes}
        names.update({str(edge.triple[1]): edge.label for edge in self.subgraph.edges})
        said = " stands on:" if lit.support else " has no supporting triple."
        head = tag("div", tag("b", lit.label), said)
        return tag("div", head, triples(lit.support, names), class_="kgwb-good")

    # --- one node -------------------------------------------------------------------------------------------

    def _clicked(self, picked: int) -> None:
        """A node was clicked; an answer shows what it stands on too."""
        node = _at(self.subgraph.nodes, picked)
        if node and picked != self.vertex.value:  # whatever else the page says
            self.vertex.value = picked
            answers = [number for number, one in enumerate(self.subgraph.answers) if one.term == node.term]
            self.supports.value = answers[0] if answers else self.supports.value

    def _pick(self, number: int) -> None:
        node, kg = _at(self.subgraph.nodes, number), self.session.run.graph
        self.message.clear()
        self.frame.picked = number
        self.expand.disabled = node is None
        self.about.value = _about(node, Description()) if node else ""

        def tell(node: Node, term: URIRef, kg: Graph) -> None:
            told = describe(kg, [term])[term]
            if _at(self.subgraph.nodes, self.vertex.value) == node:  # another may be chosen by now
                self.about.value = _about(node, told)

        if node and kg and isinstance(node.term, URIRef):
            term = node.term
            self._ask(kg, lambda: tell(node, term, kg))

    def _expand(self) -> None:
        kg, before = self.session.run.graph, self.subgraph
        node = _at(before.nodes, self.vertex.value)
        if node is None:
            raise SettingError("no node is chosen", hint="click a node, or choose it under “Look at”")
        if kg is None:
            hint = "open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))"
            raise SettingError("this run is a replay: there is no graph to ask", hint=hint)
        self.message.say(f"asking the graph for the triples of {node.label} …")

        def grow() -> None:
            found = expand(kg, before, node.term)
            with self._lock:
                if self.subgraph is before:  # the run may have gone on
                    self.supports.value = -1  # a mark would make the new ones recede
                    self._take(found)
            self.message.clear()

        self._ask(kg, grow)

    def _ask(self, kg: Graph, work: Callable[[], Any]) -> None:
        """Do what asks the graph; a remote one must not hold up the page."""

        def guarded() -> None:
            with self.message.guarding():
                work()

        if kg.remote:
            threading.Thread(target=guarded, name="kgwb-subgraph", daemon=True).start()
        else:
            guarded()


def _at(parts: tuple[Part, ...], number: int | None) -> Part | None:
    return parts[number] if number is not None and 0 <= number < len(parts) else None


def _about(node: Node, told: Description) -> Html:
    return body(
        tag("div", tag("b", node.label), f": {in_words(node.roles)}" if node.roles else ""),
        tag("div", aside("type: "), short(", ".join(told.types))) if told.types else "",
        tag("div", short(told.description, MOST_SAID)) if told.description else "",
        tag("div", iri(node.term)) if isinstance(node.term, URIRef) else "",
    )


def _offer(chooser: widgets.Dropdown, nothing: str, parts: tuple[Node, ...] | tuple[Value, ...]) -> None:
    """Let choose among nodes or answers by label; equal ones are told apart by their number."""
    labels, before = [shorten(clean(part.label), CHARS) for part in parts], chooser.label
    options = [
        (f"{label} ({number + 1})" if labels.count(label) > 1 else label, number)
        for number, label in enumerate(labels)
    ]
    chooser.options = [(nothing, -1), *options]
    chooser.value = dict(options).get(before, -1)
