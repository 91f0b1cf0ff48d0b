"""Terms of a graph as text for a model: CURIEs, quoted values, and IDs that a model gives back.

Whatever the graph says stands in quotes or brackets, and cannot end them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from rdflib import URIRef

from kgwb.errors import QueryError
from kgwb.kg.sparql import is_valid_iri, validate_query
from kgwb.terms import KNOWN_PREFIXES, Iri, Term, choose_prefix, local_part, split_iri

MAX_VALUE_CHARS = 48
"""Characters of a value that are shown."""
MAX_LITERAL_CHARS = 300
"""Characters of a literal that are shown beside IDs."""
MAX_SHOWN_ID_CHARS = 80
UNQUOTED_VALUE = re.compile(r"[-+\d.:TZeE]+")
"""Numbers, dates and times, which need no quotes."""
SAFE_LOCAL_PART = re.compile(r"(?![\xaa-\xbe])\w(?:(?![\xaa-\xbe])[\w-])*")
"""Local parts that can stand in a CURIE as they are. Ordinals and superscripts cannot."""
INVALID_IRI_CHARACTER = re.compile(r"[\s<>\"{}|\\^`\x00-\x20\x7f-\x9f\ud800-\udfff]")
"""Characters that no IRI may have. Some engines have them all the same."""
KNOWN_NAMESPACES = {prefix: namespace for namespace, prefix in KNOWN_PREFIXES.items()}
Prefixes = tuple[tuple[str, str], ...]
"""Prefixes, each with its namespace."""


def quote_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text in quotes, on one line. Quotes in it are escaped.

    After ``max_chars`` it is cut, and "…" is added.
    """
    text = " ".join(text.split())
    if len(text) > max_chars:
        beginning = text[:max_chars]
        text = f"{beginning}…"
    return json.dumps(text, ensure_ascii=False)


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
    """Return an IRI in angle brackets. Characters that no IRI may have are percent-encoded."""
    encoded = INVALID_IRI_CHARACTER.sub(lambda found: quote(found[0], errors="replace"), iri)
    return f"<{encoded}>"


def short_name(iri: str) -> str:
    """Return the local part of an IRI; the IRI in brackets if that is not a single word."""
    local = local_part(iri)
    if SAFE_LOCAL_PART.fullmatch(local):
        return local
    return bracket_iri(iri)


def format_value(term: Term | None) -> str:
    """Return a term in quotes or brackets, but a number or a date as it is, and None as "nothing"."""
    if term is None:
        return "nothing"
    if isinstance(term, URIRef):
        return bracket_iri(term)
    if UNQUOTED_VALUE.fullmatch(term):
        return str(term)
    return quote_text(term)


def add_missing_prefixes(sparql: str, prefixes: Prefixes) -> str:
    """Return a query with PREFIX lines for those of the prefixes that it uses and does not declare.

    Raises a GraphError if the text is not a query that only reads.
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


@dataclass(frozen=True)
class TermIds:
    """IDs by which a model names the terms that it was shown.

    Prefixes and names are only ever added, so that an ID keeps its meaning.
    """

    prefixes: Prefixes = ()
    """Those beside the well-known prefixes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Display names by IRI."""

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> TermIds:
        """Return these IDs with more names, and a prefix for each new namespace among them."""
        known_names = dict(self.names)
        known_names.update(names)
        namespaces = {split_iri(iri)[0] for iri in known_names}
        known_prefixes = dict(self.namespaces)
        prefixes = dict(self.prefixes)
        for namespace in sorted(namespaces.difference(known_prefixes.values())):
            prefix = choose_prefix(namespace, known_prefixes)
            known_prefixes[prefix] = namespace
            prefixes[prefix] = namespace
        sorted_names = sorted(known_names.items())
        return TermIds(tuple(prefixes.items()), tuple(sorted_names))

    @property
    def namespaces(self) -> Prefixes:
        """All prefixes, each with its namespace."""
        return (*KNOWN_NAMESPACES.items(), *self.prefixes)

    @cached_property
    def _prefix_of(self) -> dict[str, str]:
        return {namespace: prefix for prefix, namespace in self.namespaces}

    @cached_property
    def _name_of(self) -> Mapping[Term | None, str]:
        return dict(self.names)

    def format_id(self, term: Term | None) -> str:
        """Return a CURIE, an IRI in brackets, or a literal in quotes; an empty text for None."""
        if term is None:
            return ""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return quote_text(term, MAX_LITERAL_CHARS)

    def format_named_id(self, term: Term | None) -> str:
        """Return the ID of a term, followed by its name in quotes if it has one."""
        term_id = self.format_id(term)
        name = self._name_of.get(term)
        if not name:
            return term_id
        return f"{term_id} {quote_text(name)}"

    def parse_id(self, text: str) -> URIRef:
        """Return the IRI that an ID stands for.

        It may also be an IRI, with or without brackets. Raises QueryError if it is neither.
        """
        text = text.strip()
        prefix, _, local = text.partition(":")
        namespace = dict(self.namespaces).get(prefix)
        if namespace is None:
            iri = text.strip("<>")
        else:
            iri = namespace + local
        has_scheme = re.match(r"[A-Za-z][\w+.-]*:.", iri)
        if not has_scheme or not is_valid_iri(iri):
            shown = quote_text(text, MAX_SHOWN_ID_CHARS)
            raise QueryError(f"{shown} is neither an ID of a tool's result nor an IRI")
        return URIRef(iri)

    def matches(self, text: str, term: Term) -> bool:
        """Return whether a text is the ID of a term, its IRI (also in brackets) or its lexical form."""
        forms = (self.format_id(term), str(term), f"<{term}>")
        return text.strip() in forms
