"""IDs by which a model names the terms that it was shown, and the terms that they mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rdflib import Literal, URIRef

from kgwb.errors import QueryError
from kgwb.kg.distinct_texts import format_exactly, format_typed_literal
from kgwb.kg.sparql import is_valid_iri
from kgwb.kg.term_text import Prefixes, bracket_iri, cut_text, quote_text, to_curie
from kgwb.terms import KNOWN_PREFIXES, Iri, Term, choose_prefix, split_iri
from kgwb.text import tell_apart

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
        has_new_prefix = all_prefixes != self.prefixes
        has_new_name = all_names != self.names
        if not has_new_prefix and not has_new_name:
            return self
        return replace(self, prefixes=all_prefixes, names=all_names)

    def with_terms(self, terms: Iterable[Term]) -> TermIds:
        """Return these IDs for more terms that are shown together."""
        all_terms = (*self.terms, *terms)
        distinct_terms = dict.fromkeys(all_terms)
        return replace(self, terms=tuple(distinct_terms))

    @property
    def namespaces(self) -> Prefixes:
        """All prefixes, each with its namespace."""
        return (*KNOWN_NAMESPACES.items(), *self.prefixes)

    @cached_property
    def _prefix_of(self) -> dict[str, str]:
        """The prefix of each namespace, by namespace."""
        prefixes = {}
        for prefix, namespace in self.namespaces:
            prefixes[namespace] = prefix
        return prefixes

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
        curie = to_curie(iri, self._prefix_of)
        bracketed = bracket_iri(iri)
        return (curie, str(iri), f"<{iri}>", bracketed)

    def _write_plainly(self, term: Term) -> str:
        """Return a CURIE, an IRI in brackets, or the text of a literal on one line."""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return cut_text(term, MAX_LITERAL_CHARS)

    def _write_fully(self, term: Term) -> str:
        """Return a CURIE, an IRI in brackets, or a literal with its language or datatype.

        A literal is cut at MAX_LITERAL_CHARS characters. A blank node is written as "_:" and its
        label.
        """
        if isinstance(term, Literal):
            return format_typed_literal(term, self._prefix_of, MAX_LITERAL_CHARS)
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
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
            own_text = str(term).strip()
            plain = self._write_plainly(term)
            quoted = quote_text(term, MAX_LITERAL_CHARS)
            by_text[own_text][term] = None
            by_text[plain][term] = None
            by_text[quoted][term] = None
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
