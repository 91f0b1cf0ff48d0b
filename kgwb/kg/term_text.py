"""Terms of a graph as text for a model: CURIEs, quoted values, and IDs that a model gives back.

Whatever the graph says stands in quotes or brackets, and cannot end them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import quote

from rdflib import XSD, Literal, URIRef

from kgwb.kg.sparql import validate_query
from kgwb.terms import Term, local_part, split_iri

MAX_VALUE_CHARS = 48
"""Characters of a value that are shown."""
UNQUOTED_VALUE = re.compile(r"[-+\d.:TZeE]+")
"""Numbers, dates and times, which need no quotes."""
SAFE_LOCAL_PART = re.compile(r"(?![\xaa-\xbe])\w(?:(?![\xaa-\xbe])[\w-])*")
"""Local parts that can stand in a CURIE as they are. Ordinals and superscripts cannot."""
INVALID_IRI_CHARACTER = re.compile(r"[\s<>\"{}|\\^`\x00-\x20\x7f-\x9f\ud800-\udfff]")
"""Characters that no IRI may have. Some engines have them all the same."""
Prefixes = tuple[tuple[str, str], ...]
"""Prefixes, each with its namespace."""


def quote_unless_number(term: Term, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return the text of a literal in quotes, but a number, a date, a time or a boolean without.

    So a number is told from a text that holds one. A quoted text is cut at ``max_chars``.
    """
    if _is_number_or_boolean(term):
        return str(term)
    return quote_text(term, max_chars)


def _is_number_or_boolean(term: Term) -> bool:
    """Return whether a term has a datatype of XML Schema and is written as its values without text.

    These are numbers, dates, times and booleans. A string is none, whatever it holds.
    """
    if not isinstance(term, Literal) or term.datatype is None:
        return False
    has_schema_type = term.datatype.startswith(str(XSD))
    if not has_schema_type or term.datatype == XSD.string:
        return False
    is_boolean = str(term) in ("true", "false")
    return is_boolean or UNQUOTED_VALUE.fullmatch(term) is not None


def quote_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text in quotes, on one line. Quotes in it are escaped.

    After ``max_chars`` it is cut, and "…" is added.
    """
    shown = cut_text(text, max_chars)
    return json.dumps(shown, ensure_ascii=False)


def cut_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text on one line, each run of white space as one space, cut at ``max_chars``.

    "…" is added where it was cut.
    """
    text = " ".join(text.split())
    if len(text) > max_chars:
        beginning = text[:max_chars]
        text = f"{beginning}…"
    return text


def to_curie(iri: str, prefixes: Mapping[str, str]) -> str:
    """Return a CURIE; the IRI in brackets if it has no prefix or its local part is not safe.

    ``prefixes`` has the prefix of each namespace.
    """
    namespace, local = split_iri(iri)
    prefix = prefixes.get(namespace)
    if prefix and SAFE_LOCAL_PART.fullmatch(local):
        return f"{prefix}:{local}"
    return bracket_iri(iri)


def bracket_iri(iri: str) -> str:
    """Return an IRI in angle brackets, with characters that no IRI may have percent-encoded."""

    def percent_encode(match: re.Match[str]) -> str:
        """Return the matched character percent-encoded."""
        return quote(match[0], errors="replace")

    encoded = INVALID_IRI_CHARACTER.sub(percent_encode, iri)
    return f"<{encoded}>"


def short_name(iri: str) -> str:
    """Return the local part of an IRI; the IRI in brackets if that is not a single word."""
    local = local_part(iri)
    if SAFE_LOCAL_PART.fullmatch(local):
        return local
    return bracket_iri(iri)


def format_value(term: Term | None) -> str:
    """Return a term in quotes or brackets, but a number or a date as it is, and None as "nothing".

    IRIs are in angle brackets. A quoted text is on one line, and cut at MAX_VALUE_CHARS.
    """
    if term is None:
        return "nothing"
    if isinstance(term, URIRef):
        return bracket_iri(term)
    if UNQUOTED_VALUE.fullmatch(term):
        return str(term)
    return quote_text(term)


def add_missing_prefixes(sparql: str, prefixes: Prefixes) -> str:
    """Return a query with PREFIX lines for the prefixes that it uses and does not declare.

    Only those among ``prefixes`` are added, before the query; others stay undeclared. Raises a
    GraphError if the text is not a query that only reads.
    """
    namespaces = dict(prefixes)
    query = validate_query(sparql)
    lines = []
    for prefix in query.undeclared_prefixes:
        if prefix in namespaces:
            namespace = namespaces[prefix]
            lines.append(f"PREFIX {prefix}: <{namespace}>")
    lines.append(sparql.strip())
    return "\n".join(lines)
