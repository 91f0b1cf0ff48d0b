"""The local graph: what a run has fetched so far, as a record, with the ids by which a model names things."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from rdflib import Literal, URIRef

from kgwb.errors import QueryError
from kgwb.flow import Answer, Hidden, Iri, Kind, Term, Triple, Value, counted
from kgwb.kg.sparql import writable
from kgwb.kg.survey_text import Prefixes, curie, prefix_for, quoted
from kgwb.kg.text import KNOWN_PREFIXES, local_part

USUAL = {prefix: space for space, prefix in KNOWN_PREFIXES.items()}


@dataclass(frozen=True, slots=True)
class LocalGraph(Answer):
    """Its values are the nodes, literals with them, each with the triples that leave it.

    It is an Answer in the making, so that the picture of what a run stands on grows with it; ``kg.exports``
    writes it as JSON, GraphML or Cypher.
    """

    kind: Kind = "list"
    prefixes: Hidden[Prefixes] = ()
    """Of ids, beside the usual ones; they only grow, so that an id keeps its meaning."""

    def __str__(self) -> str:
        return f"{counted(len(self.values), 'node')}, {counted(len(self.support), 'edge')}"

    @property
    def outcome(self) -> str:
        return str(self)

    @property
    def nodes(self) -> tuple[Term, ...]:
        return tuple(value.term for value in self.values)

    def plus(self, nodes: Iterable[Term], triples: Iterable[Triple]) -> Self:
        triples = tuple(dict.fromkeys((*self.support, *triples)))
        ends = (end for triple in triples for end in triple[::2])
        leaving: dict[Term, list[Triple]] = {node: [] for node in (*self.nodes, *nodes, *ends)}
        for triple in triples:
            leaving[triple[0]].append(triple)
        names: dict[Term, str] = dict(self.names)
        values = (Value(node, names.get(node, str(node)), tuple(away)) for node, away in leaving.items())
        return replace(self, values=tuple(values))

    def minus(self, nodes: Collection[Term], triples: Collection[Triple]) -> Self:
        """Without these triples, and without these nodes and all triples at them."""
        kept = [t for t in self.support if t not in triples and not {t[0], t[2]} & {*nodes}]
        return replace(self, values=()).plus((node for node in self.nodes if node not in nodes), kept)

    def knowing(self, names: Iterable[tuple[Iri, str]]) -> Self:
        """With these names, and an id for each of their IRIs."""
        known, prefixes = dict(self.names) | dict(names), dict(self.prefixes)
        for space in sorted({iri[: len(iri) - len(local_part(iri))] for iri in known}):
            if space not in (*USUAL.values(), *prefixes.values()):
                prefixes[prefix_for(space, {*USUAL, *prefixes})] = space
        return replace(self, names=tuple(sorted(known.items())), prefixes=tuple(prefixes.items()))

    @property
    def spaces(self) -> Prefixes:
        """All prefixes with their namespaces."""
        return (*USUAL.items(), *self.prefixes)

    def write(self, term: Term | None) -> str:
        """The id of a term: a CURIE, an IRI in brackets, or a literal in quotes."""
        if isinstance(term, URIRef):
            return curie(term, self.spaces)
        return "" if term is None else quoted(term, 300)

    def named(self, term: Term | None) -> str:
        """The id of a term, with its name."""
        name = dict(self.names).get(term, "") if isinstance(term, URIRef) else ""
        return f"{self.write(term)} {quoted(name)}" if name else self.write(term)

    def read(self, text: str) -> URIRef:
        """The IRI that an id stands for. Raises QueryError if it is none."""
        prefix, _, local = text.strip().partition(":")
        space = dict(self.spaces).get(prefix)
        iri = text.strip().strip("<>") if space is None else space + local
        if not re.match(r"[A-Za-z][\w+.-]*:.", iri) or not writable(iri):
            raise QueryError(f"{quoted(text, 80)} is no id of a tool's result")
        return URIRef(iri)

    def node(self, text: str) -> Term | None:
        """The node that an id, or the text of a literal, stands for; None if there is none."""
        names = ((node, (self.write(node), str(node), f"<{node}>")) for node in self.nodes)
        return next((node for node, texts in names if text.strip() in texts), None)

    def edge(self, texts: Sequence[str]) -> tuple[Triple, ...]:
        """The triples that three ids stand for: one, or several literals of one text; none if not here."""
        known = (zip(triple, texts, strict=True) for triple in self.support if len(texts) == 3)
        here = [
            all(text.strip() in (self.write(t), str(t), f"<{t}>") for t, text in pairs) for pairs in known
        ]
        return tuple(triple for triple, is_it in zip(self.support, here, strict=False) if is_it)

    def listing(self, most: int) -> str:
        """Entities, relations and triples as a model reads them, cut after so many letters."""
        relations = dict.fromkeys(triple[1] for triple in self.support)
        lines = ["Entities", *(self.named(node) for node in self.nodes if not isinstance(node, Literal))]
        lines += ["Relations", *map(self.named, relations), "Triples"]
        lines += [" | ".join(map(self.write, triple)) for triple in self.support]
        return fitting(lines, most) if self.values else "empty"


def fitting(lines: Sequence[str], most: int) -> str:
    """The first lines that have room, and how many do not."""
    shown = 0
    while shown < len(lines) and (most := most - len(lines[shown])) > 0:
        shown += 1
    left = counted(len(lines) - shown, "more line")
    return "\n".join([*lines[:shown], *([f"({left}, not shown)"] if shown < len(lines) else [])])
