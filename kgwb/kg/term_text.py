"""Terms of a graph as text for a model: CURIEs, quoted values, and IDs that a model gives back.

Whatever the graph says stands in quotes or brackets, and cannot end them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote

from rdflib import XSD, Literal, URIRef

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
H = TypeVar("H", bound=Hashable)


def quote_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text in quotes, on one line. Quotes in it are escaped.

    After ``max_chars`` it is cut, and "…" is added.
    """
    text = " ".join(text.split())
    if len(text) > max_chars:
        text = text[:max_chars] + "…"
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
    return local if SAFE_LOCAL_PART.fullmatch(local) else bracket_iri(iri)


def format_value(term: Term | None) -> str:
    """Return a term in quotes or brackets, but a number or a date as it is, and None as "nothing"."""
    if term is None:
        return "nothing"
    if isinstance(term, URIRef):
        return bracket_iri(term)
    return str(term) if UNQUOTED_VALUE.fullmatch(term) else quote_text(term)


def format_typed_literal(
    literal: Literal, prefixes: Mapping[str, str], max_chars: int = MAX_VALUE_CHARS
) -> str:
    """Return a literal in quotes with its language or datatype: "Dune"@en, "5"^^xsd:integer.

    The datatype is a CURIE by ``prefixes``, or in brackets. A string has neither.
    """
    quoted = quote_text(literal, max_chars)
    if literal.language:
        return f"{quoted}@{literal.language}"
    if literal.datatype and literal.datatype != XSD.string:
        return f"{quoted}^^{to_curie(literal.datatype, prefixes)}"
    return quoted


def format_exactly(term: Term) -> str:
    """Return a term in N-Triples form but for escapes, in full: equal only for equal terms."""
    if isinstance(term, URIRef):
        return f"<{term}>"
    if not isinstance(term, Literal):
        return f"_:{term}"
    text = json.dumps(str(term), ensure_ascii=False)
    if term.language:
        return f"{text}@{term.language}"
    return f"{text}^^<{term.datatype or XSD.string}>"


def tell_apart(
    items: Iterable[H], forms: Sequence[Callable[[H], str]], *, fold_case: bool = False
) -> dict[H, str]:
    """Return a text for each item, so that no two of them look the same where they stand together.

    It is the first of the ``forms`` in which the item differs from all others. The last form must
    differ for all items. Texts that differ only in their normal form (NFC) look the same, and with
    ``fold_case`` those that differ in letter case: for texts that are compared without it.
    """
    form_numbers = dict.fromkeys(items, 0)
    last_number = len(forms) - 1
    while True:
        texts = {item: forms[number](item) for item, number in form_numbers.items()}
        items_by_look: dict[str, list[H]] = defaultdict(list)
        for item, text in texts.items():
            look = unicodedata.normalize("NFC", text)
            if fold_case:
                look = look.casefold()
            items_by_look[look].append(item)

        unclear: list[H] = []
        for alike in items_by_look.values():
            if len(alike) > 1:
                unclear += [item for item in alike if form_numbers[item] < last_number]
        if not unclear:
            return texts
        for item in unclear:
            form_numbers[item] += 1


def add_missing_prefixes(sparql: str, prefixes: Prefixes) -> str:
    """Return a query with PREFIX lines for those of the prefixes that it uses and does not declare.

    Raises a GraphError if the text is not a query that only reads.
    """
    namespaces = dict(prefixes)
    lines = []
    for prefix in validate_query(sparql).undeclared_prefixes:
        if prefix in namespaces:
            lines.append(f"PREFIX {prefix}: <{namespaces[prefix]}>")
    return "\n".join([*lines, sparql.strip()])


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
        known_names = dict(self.names) | dict(names)
        prefixes = dict(self.prefixes)
        namespaces = {split_iri(iri)[0] for iri in known_names}
        namespaces -= {*KNOWN_NAMESPACES.values(), *prefixes.values()}
        for namespace in sorted(namespaces):
            prefix = choose_prefix(namespace, {*KNOWN_NAMESPACES, *prefixes})
            prefixes[prefix] = namespace
        return TermIds(tuple(prefixes.items()), tuple(sorted(known_names.items())))

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
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return "" if term is None else quote_text(term, MAX_LITERAL_CHARS)

    def format_named_id(self, term: Term | None) -> str:
        """Return the ID of a term, followed by its name in quotes if it has one."""
        term_id = self.format_id(term)
        name = self._name_of.get(term)
        return f"{term_id} {quote_text(name)}" if name else term_id

    def parse_id(self, text: str) -> URIRef:
        """Return the IRI that an ID stands for.

        It may also be an IRI, with or without brackets. Raises QueryError if it is neither.
        """
        text = text.strip()
        prefix, _, local = text.partition(":")
        namespace = dict(self.namespaces).get(prefix)
        iri = text.strip("<>") if namespace is None else namespace + local
        if not re.match(r"[A-Za-z][\w+.-]*:.", iri) or not is_valid_iri(iri):
            raise QueryError(f"{quote_text(text, MAX_SHOWN_ID_CHARS)} is no id of a tool's result")
        return URIRef(iri)

    def matches(self, text: str, term: Term) -> bool:
        """Return whether a text is the ID of a term, its IRI (also in brackets) or its lexical form."""
        return text.strip() in (self.format_id(term), str(term), f"<{term}>")
