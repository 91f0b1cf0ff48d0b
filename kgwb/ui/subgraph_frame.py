"""The page of the interactive subgraph, and the graph as this page draws it.

The page runs in a sandboxed frame. subgraph_frame.js draws what it receives by messages.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pyvis
from pyvis.network import Network

from kgwb.show import subgraph_html as picture
from kgwb.show.subgraph import Edge, Node, Subgraph
from kgwb.show.subgraph_layout import box_lines, compute_layout, edge_label
from kgwb.text import remove_controls

VIS_SCRIPT_PATH = max(Path(pyvis.__file__).parent.glob("lib/vis-*/vis-network.min.js"))
"""The library vis-network, which comes with pyvis."""
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
CURVE = 0.2
"""How far an edge bends that shares its nodes with another edge."""


def frame_page() -> str:
    """Return the HTML of an empty page for ``<iframe sandbox="allow-scripts" srcdoc>``.

    The window around it sends it messages ``{kgwb: {graph, theme, lit, picked}}``, and the page
    sends ``{kgwb: {picked}}`` when a node is clicked. It loads nothing from any network. pyvis's
    own page cannot be used: it loads Bootstrap, whatever its options are.
    """
    nonce = secrets.token_hex(16)
    # If markup got into the page, it could load nothing, and run nothing but these two scripts.
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
    )
    scripts = ""
    for path in (VIS_SCRIPT_PATH, FRAME_SCRIPT_PATH):
        script = path.read_text("utf-8")
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
