"""A subgraph as the page of a sandboxed frame: pyvis with all it needs, and no way out but messages."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

from pyvis.network import Network

from kgwb.render.layout import EDGE_CHARS, NODE_CHARS, layout, second_line, shorten
from kgwb.render.subgraph import told
from kgwb.subgraph import Edge, Node, Subgraph

OPTIONS = {
    "physics": {"enabled": False},  # the places are the layout's, the same each time
    "interaction": {"hover": True, "tooltipDelay": 400, "zoomView": False, "keyboard": {"enabled": True}},
    "nodes": {"margin": 10},
}
SCRIPT = Path(__file__).with_name("subgraph_frame.js")
STYLE = """
html, body { margin: 0; height: 100%; overflow: hidden; background: var(--ground); font: 13px sans-serif }
#mynetwork, .card { position: absolute !important; inset: 0; width: auto !important; height: auto !important;
  border: 0 !important; background: transparent !important }
.vis-network:focus { outline: none }
div.vis-tooltip { position: absolute; visibility: hidden; padding: 4px 8px;
  background: var(--ground); color: var(--text); border: 1px solid var(--aside);
  border-radius: 3px; max-width: 24em; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  z-index: 5 }
"""


def page(subgraph: Subgraph) -> str:
    """The HTML for ``<iframe sandbox="allow-scripts" srcdoc>``: it asks nothing of any network.

    It takes messages ``{kgwb: {graph, theme, lit, picked}}`` from the window around it, and sends it
    ``{kgwb: {picked}}`` when a node is clicked.
    """
    html: str = _network(subgraph).generate_html(notebook=True)
    head, _, body = html.rpartition("<body>")
    # pyvis fetches Bootstrap whatever it is told, and has vis-network's style with 200 kB of icons inline.
    head = re.sub(
        r"<link\s[^>]*>|<script\s+src=[^>]*></script>|<!--.*?-->|<h1>.*?</h1>", "", head, flags=re.DOTALL
    )
    head = re.sub(r"<style>.*?</style>", "", head, count=1, flags=re.DOTALL)
    nonce = secrets.token_hex(16)
    # Even if something in the page wanted to, it may load nothing, and run nothing but these scripts.
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
    meta = f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'
    own = f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>"
    head = head.replace("<head>", meta, 1).replace("</head>", f"<style>{STYLE}</style></head>")
    body = body.replace("</body>", f"\n{own}</body>")
    tagged = re.sub(
        r"^(\s*)<script\b[^>]*>", rf'\1<script nonce="{nonce}">', f"{head}<body>{body}", flags=re.MULTILINE
    )
    return f"<!DOCTYPE html>{tagged}"


def graph(subgraph: Subgraph) -> dict[str, Any]:
    """Nodes and edges as pyvis hands them to vis-network; a node's id is "n" and its number."""
    network = _network(subgraph)
    return {"nodes": network.nodes, "edges": network.edges}


def _network(subgraph: Subgraph) -> Network:
    network = Network(directed=True, cdn_resources="in_line", bgcolor="transparent")
    network.prep_notebook()
    network.options = OPTIONS
    placed = layout(subgraph)
    ids = {node.term: f"n{number}" for number, node in enumerate(subgraph.nodes)}
    for node, place in zip(subgraph.nodes, placed.places, strict=True):
        shape = "ellipse" if node.shape == "unknown" else "box"
        network.add_node(
            ids[node.term], _label(node), shape, x=place.x, y=place.y, kind=node.shape, told=told(node)
        )
    for number, (edge, bend) in enumerate(zip(subgraph.edges, placed.bends, strict=True)):
        network.add_edge(ids[edge.subject], ids[edge.object], id=f"e{number}", **_look(edge, bend))
    return network


def _label(node: Node) -> str:
    return "\n".join(filter(None, (shorten(node.label, NODE_CHARS), second_line(node))))


def _look(edge: Edge, bend: float) -> dict[str, Any]:
    """How vis-network draws an edge; ``told`` is shown under the pointer, as text."""
    turn = {"enabled": True, "type": "curvedCCW" if bend > 0 else "curvedCW", "roundness": 0.2}
    return {
        "label": shorten(edge.label, EDGE_CHARS),
        "told": "\n".join((edge.label, ", ".join(map(str, edge.roles)), str(edge.predicate))),
        "found": all(role.kind == "neighbour" for role in edge.roles),
        "smooth": turn if bend else False,
    }
