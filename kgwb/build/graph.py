"""What systems find in a graph, and how they write queries, beside ``run.kg`` itself.

``docs/reference/build.md`` tells each name.
"""

from kgwb.kg.queries import (
    describe_vertices,
    find_literal,
    find_predicates,
    find_triples,
    with_display_names,
)
from kgwb.kg.sparql import n3, validate_query, values_clause
from kgwb.systems.queries import execute_sparql, find_row_support, label_terms

__all__ = [
    "describe_vertices",
    "execute_sparql",
    "find_literal",
    "find_predicates",
    "find_row_support",
    "find_triples",
    "label_terms",
    "n3",
    "validate_query",
    "values_clause",
    "with_display_names",
]
