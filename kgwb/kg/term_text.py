"""Terms of a graph as text for a model: CURIEs, quoted values, and IDs that a model gives back.

Whatever the graph says stands in quotes or brackets, and cannot end them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
QUOTES = re.compile(r'^"(.*)"(@[\w-]+|\^\^\S+)$')
"""A literal in quotes, and its language or datatype."""
Prefixes = tuple[tuple[str, str], ...]
"""Prefixes, each with its namespace."""
H = TypeVar("H", bound=Hashable)


def quote_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text in quotes, on one line. Quotes in it are escaped.

    After ``max_chars`` it is cut, and "…" is added.
    """
    return json.dumps(cut_text(text, max_chars), ensure_ascii=False)


def cut_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return a text on one line. After ``max_chars`` it is cut, and "…" is added."""
    text = " ".join(text.split())
    if len(text) > max_chars:
        text = text[:max_chars] + "…"
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

    The datatype is a CURIE by ``prefixes``, or in brackets.
    """
    quoted = quote_text(literal, max_chars)
    if literal.language:
        return f"{quoted}@{literal.language}"
    datatype = literal.datatype or XSD.string
    return f"{quoted}^^{to_curie(datatype, prefixes)}"


def format_exactly(term: Term) -> str:
    """Return a term in full, like N-Triples: an IRI in brackets, a literal with what it has.

    The text of a literal is in ASCII, so that no two literals look the same.
    """
    if isinstance(term, URIRef):
        return bracket_iri(term)
    if not isinstance(term, Literal):
        return f"_:{term}"
    text = json.dumps(str(term))
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

    Prefixes and names are only ever added, so that the ID of an IRI keeps its meaning.
    """

    prefixes: Prefixes = ()
    """Those beside the well-known prefixes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Display names by IRI."""
    terms: tuple[Term, ...] = ()
    """Terms that are shown together: no two of them have the same ID."""

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> TermIds:
        """Return these IDs with more names, and a prefix for each new namespace among them."""
        known_names = dict(self.names) | dict(names)
        prefixes = dict(self.prefixes)
        namespaces = {split_iri(iri)[0] for iri in known_names}
        namespaces -= {*KNOWN_NAMESPACES.values(), *prefixes.values()}
        for namespace in sorted(namespaces):
            prefix = choose_prefix(namespace, {*KNOWN_NAMESPACES, *prefixes})
            prefixes[prefix] = namespace
        return TermIds(tuple(prefixes.items()), tuple(sorted(known_names.items())), self.terms)

    def with_terms(self, terms: Iterable[Term]) -> TermIds:
        """Return these IDs for more terms that are shown together."""
        return replace(self, terms=tuple(dict.fromkeys((*self.terms, *terms))))

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

    @cached_property
    def _id_of(self) -> Mapping[Term, str]:
        """The IDs of ``terms`` as a model writes them: literals in quotes only where need be.

        That is where another literal has that text, or where the text reads as the ID of an IRI.
        """
        iris = [term for term in self.terms if isinstance(term, URIRef)]
        texts_of_iris = {text for iri in iris for text in self._texts_of_iri(iri)}

        def format_shortly(term: Term) -> str:
            text = self._write_plainly(term)
            if isinstance(term, URIRef) or text not in texts_of_iris:
                return text
            return self._write_fully(term)

        return tell_apart(self.terms, (format_shortly, self._write_fully, format_exactly))

    def _texts_of_iri(self, iri: URIRef) -> tuple[str, ...]:
        """Return the texts by which a model may name an IRI: CURIE and IRI, also in brackets."""
        return (to_curie(iri, self._prefix_of), str(iri), f"<{iri}>", bracket_iri(iri))

    def _write_plainly(self, term: Term) -> str:
        """Return a CURIE, an IRI in brackets, or the text of a literal on one line."""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return cut_text(term, MAX_LITERAL_CHARS)

    def _write_fully(self, term: Term) -> str:
        """Return a CURIE, an IRI in brackets, or a literal with its language or datatype."""
        if isinstance(term, Literal):
            return format_typed_literal(term, self._prefix_of, MAX_LITERAL_CHARS)
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return format_exactly(term)

    def format_id(self, term: Term | None) -> str:
        """Return a CURIE, an IRI in brackets, or a literal in quotes; an empty text for None.

        Behind the quotes stands the language or the datatype where the text is not enough to tell
        the literal from other terms that are shown with it.
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
        return f"{term_id} {quote_text(name)}" if name else term_id

    def parse_id(self, text: str) -> URIRef:
        """Return the IRI that an ID stands for.

        It may also be an IRI, with or without brackets. Raises QueryError if it is neither.
        """
        text = text.strip()
        prefix, _, local = text.partition(":")
        namespace = dict(self.namespaces).get(prefix)
        is_curie = namespace is not None and not local.startswith("//")
        iri = f"{namespace}{local}" if is_curie else text.strip("<>")
        if not re.match(r"[A-Za-z][\w+.-]*:.", iri) or not is_valid_iri(iri):
            raise QueryError(f"{quote_text(text, MAX_SHOWN_ID_CHARS)} is no id of a tool's result")
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
        """The terms by the texts that mean them: their IDs, other texts of one term, and texts."""
        by_id: dict[str, dict[Term, None]] = defaultdict(dict)
        by_full_text: dict[str, dict[Term, None]] = defaultdict(dict)
        by_text: dict[str, dict[Term, None]] = defaultdict(dict)
        for term, written in self._id_of.items():
            for text in (written, self.format_id(term)):
                by_id[text][term] = None
            for text in self._full_texts(term):
                by_full_text[text][term] = None
            if not isinstance(term, URIRef):
                plain = self._write_plainly(term)
                for text in (str(term).strip(), plain, quote_text(term, MAX_LITERAL_CHARS)):
                    by_text[text][term] = None
        return by_id, by_full_text, by_text

    def _full_texts(self, term: Term) -> tuple[str, ...]:
        """Return texts, other than its ID, that mean only this term."""
        exact = format_exactly(term)
        if isinstance(term, URIRef):
            return (*self._texts_of_iri(term), exact)
        full = self._write_fully(term)
        # A model is told to leave out the quotes of a literal.
        without_quotes = [QUOTES.sub(r"\1\2", text) for text in (full, exact)]
        return (full, exact, *without_quotes)
