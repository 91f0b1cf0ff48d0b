"""What systems write for people and models: names, terms, prefixes, shortened texts.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.kg.label_search import names_unit, normalize, normalized_words
from kgwb.kg.term_text import (
    Prefixes,
    add_missing_prefixes,
    bracket_iri,
    format_exactly,
    format_typed_literal,
    quote_text,
    quote_unless_number,
    short_name,
    to_curie,
)
from kgwb.records import MAX_SUMMARY_PARTS, NO_NAMES, QueryPart, one_line, summarize_fields
from kgwb.terms import (
    KNOWN_PREFIXES,
    DisplayNames,
    choose_prefix,
    format_term,
    local_part,
    name_from_iri,
    split_iri,
    term_from_data,
    term_to_data,
)
from kgwb.text import and_more, list_first, pluralize, shorten, single_line, tell_apart

__all__ = [
    "KNOWN_PREFIXES",
    "MAX_SUMMARY_PARTS",
    "NO_NAMES",
    "DisplayNames",
    "Prefixes",
    "QueryPart",
    "add_missing_prefixes",
    "and_more",
    "bracket_iri",
    "choose_prefix",
    "format_exactly",
    "format_term",
    "format_typed_literal",
    "list_first",
    "local_part",
    "name_from_iri",
    "names_unit",
    "normalize",
    "normalized_words",
    "one_line",
    "pluralize",
    "quote_text",
    "quote_unless_number",
    "short_name",
    "shorten",
    "single_line",
    "split_iri",
    "summarize_fields",
    "tell_apart",
    "term_from_data",
    "term_to_data",
    "to_curie",
]
