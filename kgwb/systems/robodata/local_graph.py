"""The local graph: what a run has fetched so far, as a record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from rdflib import Literal

from kgwb.flow import Answer, Kind, Value
from kgwb.kg.survey_text import Ids, Prefixes
from kgwb.records import Hidden
from kgwb.terms import Iri, Term, Triple
from kgwb.text import pluralize


@dataclass(frozen=True, slots=True)
class LocalGraph(Answer):
    """Its values are the nodes, literals with them, each with the triples that leave it.

    It is an Answer in the making: the picture of what a run stands on grows with it; see ``kg.exports`` too.
    """

    kind: Kind = "list"
    prefixes: Hidden[Prefixes] = ()

    def __str__(self) -> str:
        return f"{pluralize(len(self.values), 'node')}, {pluralize(len(self.support), 'edge')}"

    @property
    def ids(self) -> Ids:
        return Ids(self.prefixes, self.names)

    @property
    def nodes(self) -> tuple[Term, ...]:
        return tuple(value.term for value in self.values)

    def knowing(self, names: Iterable[tuple[Iri, str]]) -> Self:
        """With these names, and ids for what bears them."""
        ids = self.ids.knowing(names)
        return replace(self, names=ids.names, prefixes=ids.prefixes)

    def plus(self, nodes: Iterable[Term], triples: Iterable[Triple]) -> Self:
        triples = tuple(dict.fromkeys((*self.support, *triples)))
        ends = (end for triple in triples for end in triple[::2])
        leaving: dict[Term, list[Triple]] = {node: [] for node in (*self.nodes, *nodes, *ends)}
        for triple in triples:
            leaving[triple[0]].append(triple)
        names: dict[Term, str] = dict(self.names)
        values = (
            Value(node, names.get(node, str(node)), tuple(away)) for node, away in leaving.items()
        )
        return replace(self, values=tuple(values))

    def minus(self, nodes: Collection[Term], triples: Collection[Triple]) -> Self:
        """Without these triples, and without these nodes and all triples at them."""
        kept = [t for t in self.support if t not in triples and not {t[0], t[2]} & {*nodes}]
        return replace(self, values=()).plus(
            (node for node in self.nodes if node not in nodes), kept
        )

    def found(self, texts: Sequence[str]) -> tuple[tuple[Term, ...], ...]:
        """The node that one id stands for, or the triples that three do; nothing if they are not here."""
        nodes, ids = tuple((node,) for node in self.nodes), self.ids
        parts: tuple[tuple[Term, ...], ...] = self.support if len(texts) == 3 else nodes
        return tuple(p for p in parts if len(p) == len(texts) and all(map(ids.means, texts, p)))

    def listing(self, most: int) -> str:
        """Entities, relations and triples as a model reads them, cut after so many letters."""
        ids, relations = self.ids, dict.fromkeys(triple[1] for triple in self.support)
        lines = [
            "Entities",
            *(ids.named(node) for node in self.nodes if not isinstance(node, Literal)),
        ]
        lines += ["Relations", *map(ids.named, relations), "Triples"]
        lines += [" | ".join(map(ids.write, triple)) for triple in self.support]
        return fitting(lines, most) if self.values else "empty"


def fitting(lines: Sequence[str], most: int) -> str:
    """The first lines that have room, and how many do not."""
    shown = 0
    while shown < len(lines) and (most := most - len(lines[shown])) > 0:
        shown += 1
    left = pluralize(len(lines) - shown, "more line")
    return "\n".join([*lines[:shown], *([f"({left}, not shown)"] if shown < len(lines) else [])])
