"""The picture of a subgraph, for a view that draws one.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.show.subgraph import Edge, Node, Subgraph, subgraph_of_answer
from kgwb.show.subgraph_html import render_svg

__all__ = [
    "Edge",
    "Node",
    "Subgraph",
    "render_svg",
    "subgraph_of_answer",
]
