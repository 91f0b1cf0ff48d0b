"""How a model names what is in a graph: by CURIEs, with names in quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rdflib import URIRef

from kgwb.errors import QueryError
from kgwb.flow import Iri, Term
from kgwb.kg.sparql import writable
from kgwb.kg.survey_text import Prefixes, curie, quoted
from kgwb.kg.text import KNOWN_PREFIXES, prefix_of, split

USUAL = {prefix: space for space, prefix in KNOWN_PREFIXES.items()}
LITERAL = 300
"""Letters of a literal that are shown."""


@dataclass(frozen=True)
class Ids:
    """Prefixes beside the usual ones, and names; both only grow, so that an id keeps its meaning."""

    prefixes: Prefixes = ()
    names: tuple[tuple[Iri, str], ...] = ()

    def knowing(self, names: Iterable[tuple[Iri, str]]) -> Ids:
        """With these names, and a prefix for each of their namespaces."""
        known, prefixes = dict(self.names) | dict(names), dict(self.prefixes)
        for space in sorted({split(iri)[0] for iri in known} - {*USUAL.values(), *prefixes.values()}):
            prefixes[prefix_of(space, {*USUAL, *prefixes})] = space
        return Ids(tuple(prefixes.items()), tuple(sorted(known.items())))

    @property
    def spaces(self) -> Prefixes:
        """All prefixes with their namespaces."""
        return (*USUAL.items(), *self.prefixes)

    @cached_property
    def _prefix_of(self) -> dict[str, str]:
        return {space: prefix for prefix, space in self.spaces}

    @cached_property
    def _name_of(self) -> dict[URIRef, str]:
        return dict(self.names)

    def write(self, term: Term | None) -> str:
        """A CURIE, an IRI in brackets, or a literal in quotes."""
        if isinstance(term, URIRef):
            return curie(term, self._prefix_of)
        return "" if term is None else quoted(term, LITERAL)

    def named(self, term: Term | None) -> str:
        """The id of a term, with its name."""
        name = self._name_of.get(term, "") if isinstance(term, URIRef) else ""
        return f"{self.write(term)} {quoted(name)}" if name else self.write(term)

    def read(self, text: str) -> URIRef:
        """The IRI that an id stands for. Raises QueryError if it is none."""
        prefix, _, local = text.strip().partition(":")
        space = dict(self.spaces).get(prefix)
        iri = text.strip().strip("<>") if space is None else space + local
        if not re.match(r"[A-Za-z][\w+.-]*:.", iri) or not writable(iri):
            raise QueryError(f"{quoted(text, 80)} is no id of a tool's result")
        return URIRef(iri)

    def means(self, text: str, term: Term) -> bool:
        """Whether a text stands for a term: as its id, its IRI, or its lexical form."""
        return text.strip() in (self.write(term), str(term), f"<{term}>")
