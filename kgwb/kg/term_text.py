"""Terms of a graph as text for a model: CURIEs, quoted values, and IDs that a model gives back.

Whatever the graph says stands in quotes or brackets, and cannot end them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote

from rdflib import XSD, Literal, URIRef

from kgwb.errors import QueryError
from kgwb.kg.sparql import is_valid_iri, validate_query
from kgwb.terms import KNOWN_PREFIXES, Iri, Term, choose_prefix, local_part, split_iri
from kgwb.text import tell_apart

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
    return str(term) in ("true", "false") or UNQUOTED_VALUE.fullmatch(term) is not None


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
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}…"


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
    encoded = INVALID_IRI_CHARACTER.sub(lambda match: quote(match[0], errors="replace"), iri)
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
    missing = [prefix for prefix in query.undeclared_prefixes if prefix in namespaces]
    lines = [f"PREFIX {prefix}: <{namespaces[prefix]}>" for prefix in missing]
    return "\n".join([*lines, sparql.strip()])


def format_typed_literal(
    literal: Literal, prefixes: Mapping[str, str], max_chars: int = MAX_VALUE_CHARS
) -> str:
    """Return a literal in quotes with its language or datatype: "Dune"@en, "5"^^xsd:integer.

    The datatype is a CURIE by ``prefixes``, or in brackets. The text is cut at ``max_chars``. A
    literal without a datatype has xsd:string.
    """
    quoted = quote_text(literal, max_chars)
    if literal.language:
        return f"{quoted}@{literal.language}"
    datatype = to_curie(literal.datatype or XSD.string, prefixes)
    return f"{quoted}^^{datatype}"


def format_exactly(term: Term) -> str:
    """Return a term in full, like N-Triples: <IRI>, "text"@en, "text"^^<datatype>, _:id.

    The text is in ASCII, with JSON's escapes, so that no two terms look the same. A literal without
    a datatype has that of xsd:string.
    """
    if isinstance(term, URIRef):
        quoted_iri = json.dumps(bracket_iri(term))
        return quoted_iri[1:-1]
    if not isinstance(term, Literal):
        return f"_:{term}"
    text = json.dumps(str(term))
    if term.language:
        return f"{text}@{term.language}"
    datatype = term.datatype or XSD.string
    return f"{text}^^<{datatype}>"


MAX_LITERAL_CHARS = 300
"""Characters of a literal that are shown."""
MAX_SHOWN_ID_CHARS = 80
"""Characters of an invalid ID that an error shows."""
KNOWN_NAMESPACES = {prefix: namespace for namespace, prefix in KNOWN_PREFIXES.items()}
QUOTES = re.compile(r'^"(.*)"(@[\w-]+|\^\^\S+)$')
"""A literal in quotes, and its language or datatype."""


@dataclass(frozen=True)
class TermIds:
    """IDs by which a model names the terms that it was shown.

    Prefixes and names are only ever added, so that the ID of an IRI keeps its meaning.
    """

    prefixes: Prefixes = ()
    """Those beside the well-known prefixes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Display names by IRI."""
    terms: tuple[Term, ...] = ()
    """Terms that are shown together: no two of them have the same ID."""

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> TermIds:
        """Return new IDs with more names, and a prefix for each new namespace among them.

        A later name of an IRI replaces an earlier one. If nothing is new, these IDs themselves are
        returned, with what they have computed; otherwise they do not change.
        """
        known_names = dict(self.names)
        known_names.update(names)
        namespaces = {split_iri(iri)[0] for iri in known_names}
        known_prefixes = dict(self.namespaces)
        prefixes = dict(self.prefixes)
        new_namespaces = namespaces.difference(known_prefixes.values())
        for namespace in sorted(new_namespaces):
            prefix = choose_prefix(namespace, known_prefixes)
            known_prefixes[prefix] = namespace
            prefixes[prefix] = namespace
        all_prefixes = tuple(prefixes.items())
        all_names = tuple(sorted(known_names.items()))
        if (all_prefixes, all_names) == (self.prefixes, self.names):
            return self
        return replace(self, prefixes=all_prefixes, names=all_names)

    def with_terms(self, terms: Iterable[Term]) -> TermIds:
        """Return these IDs for more terms that are shown together."""
        distinct_terms = dict.fromkeys((*self.terms, *terms))
        return replace(self, terms=tuple(distinct_terms))

    @property
    def namespaces(self) -> Prefixes:
        """All prefixes, each with its namespace."""
        return (*KNOWN_NAMESPACES.items(), *self.prefixes)

    @cached_property
    def _prefix_of(self) -> dict[str, str]:
        """The prefix of each namespace, by namespace."""
        return {namespace: prefix for prefix, namespace in self.namespaces}

    @cached_property
    def _name_of(self) -> Mapping[Term | None, str]:
        """The name of each named IRI, by IRI."""
        return dict(self.names)

    @cached_property
    def _id_of(self) -> Mapping[Term, str]:
        """The ID of each term of ``terms``: the shortest text that no other of them has.

        An IRI has its CURIE. A literal has its plain text; but with quotes and its language or
        datatype where another literal has that text, or where the text reads as the ID of an IRI.
        Terms that still look the same are written exactly.
        """
        texts_of_iris: set[str] = set()
        for term in self.terms:
            if isinstance(term, URIRef):
                texts_of_iris.update(self._texts_of_iri(term))

        def format_shortly(term: Term) -> str:
            """Return a CURIE or a plain text; what reads as the ID of an IRI is written in full."""
            text = self._write_plainly(term)
            if isinstance(term, URIRef) or text not in texts_of_iris:
                return text
            return self._write_fully(term)

        forms = (format_shortly, self._write_fully, format_exactly)
        return tell_apart(self.terms, forms)

    def _texts_of_iri(self, iri: URIRef) -> tuple[str, ...]:
        """Return the texts by which a model may name an IRI: CURIE and IRI, also in brackets."""
        return (to_curie(iri, self._prefix_of), str(iri), f"<{iri}>", bracket_iri(iri))

    def _write_plainly(self, term: Term) -> str:
        """Return a CURIE, an IRI in brackets, or the text of a literal on one line."""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return cut_text(term, MAX_LITERAL_CHARS)

    def _write_fully(self, term: Term) -> str:
        """Return a literal with its language or datatype, cut at MAX_LITERAL_CHARS; any other term exactly."""
        if isinstance(term, Literal):
            return format_typed_literal(term, self._prefix_of, MAX_LITERAL_CHARS)
        return format_exactly(term)

    def format_id(self, term: Term | None) -> str:
        """Return a CURIE, an IRI in brackets, or a literal in quotes; an empty text for None.

        The language or the datatype follows the quotes where ``terms`` has another term with that
        text. A literal is cut at MAX_LITERAL_CHARS.
        """
        if term is None:
            return ""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        written = self._id_of.get(term)
        if written is None or written == self._write_plainly(term):
            return quote_text(term, MAX_LITERAL_CHARS)
        return written

    def format_named_id(self, term: Term | None) -> str:
        """Return the ID of a term, followed by its name in quotes if it has one."""
        term_id = self.format_id(term)
        name = self._name_of.get(term)
        if not name:
            return term_id
        return f"{term_id} {quote_text(name)}"

    def parse_id(self, text: str) -> URIRef:
        """Return the IRI for an ID that a model wrote: a CURIE, or an IRI with or without brackets.

        A known prefix is replaced by its namespace. The graph is not asked whether it has the IRI.
        Raises QueryError if the text is neither.
        """
        text = text.strip()
        prefix, _, local = text.partition(":")
        namespace = dict(self.namespaces).get(prefix)
        if namespace is None or local.startswith("//"):
            iri = text.strip("<>")
        else:
            iri = namespace + local
        has_scheme = re.match(r"[A-Za-z][\w+.-]*:.", iri)
        if not has_scheme or not is_valid_iri(iri):
            shown = quote_text(text, MAX_SHOWN_ID_CHARS)
            raise QueryError(f"{shown} is neither an ID of a tool's result nor an IRI")
        return URIRef(iri)

    def find(self, text: str) -> tuple[Term, ...]:
        """Return those of ``terms`` that a text means; none if it means none.

        The ID of a term means this term. Otherwise an IRI, with or without brackets, means the IRI,
        and a literal with its language or datatype, with or without quotes, means that literal. Any
        other text means all literals that have it.
        """
        text = text.strip()
        for terms_by_text in self._terms_by_text:
            if text in terms_by_text:
                return tuple(terms_by_text[text])
        return ()

    @cached_property
    def _terms_by_text(self) -> tuple[Mapping[str, Mapping[Term, None]], ...]:
        """The terms by the texts that mean them: their IDs, other texts of one term, and texts.

        These are three mappings, to be looked up in this order. A text may mean several terms.
        """
        by_id: dict[str, dict[Term, None]] = defaultdict(dict)
        by_full_text: dict[str, dict[Term, None]] = defaultdict(dict)
        by_text: dict[str, dict[Term, None]] = defaultdict(dict)
        for term, written in self._id_of.items():
            by_id[written][term] = None
            by_id[self.format_id(term)][term] = None
            for text in self._full_texts(term):
                by_full_text[text][term] = None
            if isinstance(term, URIRef):
                continue
            plain = self._write_plainly(term)
            for text in (str(term).strip(), plain, quote_text(term, MAX_LITERAL_CHARS)):
                by_text[text][term] = None
        return by_id, by_full_text, by_text

    def _full_texts(self, term: Term) -> tuple[str, ...]:
        """Return texts, other than its ID, that mean only this term.

        Those of an IRI are the IRI with and without brackets and its CURIE. Those of a literal are
        its text with the language or datatype, cut and in full, each also without the quotes.
        """
        exact = format_exactly(term)
        if isinstance(term, URIRef):
            return (*self._texts_of_iri(term), exact)
        full = self._write_fully(term)
        # A model is told to leave out the quotes of a literal.
        full_without_quotes = QUOTES.sub(r"\1\2", full)
        exact_without_quotes = QUOTES.sub(r"\1\2", exact)
        return (full, exact, full_without_quotes, exact_without_quotes)
