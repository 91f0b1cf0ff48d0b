"""What a gold query means to the agents of a system, for the oracle ladder.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.run.gold import assign_stages, get_output, list_outputs
from kgwb.systems.alignment import Alignment, align_facts, has_literal, reword_fact
from kgwb.systems.linking import collect_vertices, make_link_rung

__all__ = [
    "Alignment",
    "align_facts",
    "assign_stages",
    "collect_vertices",
    "get_output",
    "has_literal",
    "list_outputs",
    "make_link_rung",
    "reword_fact",
]
