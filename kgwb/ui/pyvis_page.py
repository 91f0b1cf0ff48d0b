"""A subgraph for a sandboxed frame: pyvis, whose page takes what it shows, and talks, by messages alone."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pyvis
from pyvis.network import Network

from kgwb.errors import harmless
from kgwb.show.picture import ARROW_CHARS, about, box_lines, is_pale, layout, shorten
from kgwb.show.subgraph import Subgraph

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


def page() -> str:
    """The HTML for ``<iframe sandbox="allow-scripts" srcdoc>``, still empty: it asks nothing of any network.

    It takes messages ``{kgwb: {graph, theme, lit, picked}}`` from the window around it, and sends it
    ``{kgwb: {picked}}`` when a node is clicked. pyvis's own page loads Bootstrap whatever its options are.
    """
    nonce = secrets.token_hex(16)
    # Even if something in the page wanted to, it may load nothing, and run nothing but these scripts.
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
    scripts = (f'<script nonce="{nonce}">{path.read_text("utf-8")}</script>' for path in (VIS, SCRIPT))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style></head>'
        f'<body><div id="graph"></div>{"".join(scripts)}</body></html>'
    )


def graph(subgraph: Subgraph) -> dict[str, Any]:
    """Nodes and edges as pyvis hands them to vis-network; an id is a place in the subgraph."""
    network, drawn = Network(directed=True), layout(subgraph)
    for number, (node, place) in enumerate(zip(subgraph.nodes, drawn.places, strict=True)):
        look: dict[str, Any] = {"kind": node.shape, "told": harmless(about(node)), "x": place.x, "y": place.y}
        shape = "ellipse" if node.shape == "unknown" else "box"
        network.add_node(number, harmless("\n".join(box_lines(node))), shape, **look)
    for number, (edge, ends, bend) in enumerate(zip(subgraph.edges, drawn.ends, drawn.bends, strict=True)):
        turn = {"enabled": True, "type": "curvedCCW" if bend > 0 else "curvedCW", "roundness": 0.2}
        look = {"label": harmless(shorten(edge.label, ARROW_CHARS)), "told": harmless(about(edge))}
        look |= {"found": is_pale(edge), "smooth": turn if bend else False}
        network.add_edge(*ends, id=number, **look)
    return {"nodes": network.nodes, "edges": network.edges}
