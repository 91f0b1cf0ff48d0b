"""What systems find in a graph, and how they write queries, beside ``run.kg`` itself.

``docs/reference/build.md`` and ``build_parts.md`` tell each name.
"""

from kgwb.disk import (
    append_text,
    cache_dir,
    check_regular_file,
    draft_of,
    read_json_lines,
    write_atomically,
)
from kgwb.kg import open_kg
from kgwb.kg.algebra import TriplePattern, analyze_query, patterns_to_sparql, variables_of
from kgwb.kg.base import SCHEMA_NAMESPACES, Vocabulary
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.kg.findings import Finding, find_measure, inspect_result
from kgwb.kg.queries import (
    MAX_TRIPLES_PER_VALUE,
    Description,
    Row,
    ValueMatch,
    describe_vertices,
    existing_triples,
    find_ask_support,
    find_class_names,
    find_exact_values,
    find_literal,
    find_predicates,
    find_support_by_row,
    find_support_by_value,
    find_triples,
    find_values_containing,
    parse_count,
    where_clause,
    with_display_names,
)
from kgwb.kg.sparql import (
    is_valid_iri,
    n3,
    split_clauses,
    union_clause,
    validate_query,
    values_clause,
)
from kgwb.kg.term_text import TermIds
from kgwb.run.replay import RecordedGraph
from kgwb.systems.queries import (
    execute_sparql,
    find_row_support,
    get_names_in_rows,
    is_number,
    label_terms,
)

__all__ = [
    "MAX_TRIPLES_PER_VALUE",
    "SCHEMA_NAMESPACES",
    "Description",
    "EmbeddingIndex",
    "Embeddings",
    "Finding",
    "RecordedGraph",
    "Row",
    "TermIds",
    "TriplePattern",
    "ValueMatch",
    "Vocabulary",
    "analyze_query",
    "append_text",
    "cache_dir",
    "check_regular_file",
    "describe_vertices",
    "draft_of",
    "execute_sparql",
    "existing_triples",
    "find_ask_support",
    "find_class_names",
    "find_exact_values",
    "find_literal",
    "find_measure",
    "find_predicates",
    "find_row_support",
    "find_support_by_row",
    "find_support_by_value",
    "find_triples",
    "find_values_containing",
    "get_names_in_rows",
    "inspect_result",
    "is_number",
    "is_valid_iri",
    "label_terms",
    "n3",
    "open_kg",
    "parse_count",
    "patterns_to_sparql",
    "read_json_lines",
    "split_clauses",
    "union_clause",
    "validate_query",
    "values_clause",
    "variables_of",
    "where_clause",
    "with_display_names",
    "write_atomically",
]
