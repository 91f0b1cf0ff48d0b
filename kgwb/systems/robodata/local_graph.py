"""The local graph: what a run has fetched so far, as a record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from rdflib import Literal

from kgwb.flow import Answer, AnswerKind, Value
from kgwb.kg.term_text import Prefixes, TermIds
from kgwb.records import Hidden
from kgwb.terms import Iri, Term, Triple
from kgwb.text import pluralize


@dataclass(frozen=True, slots=True)
class LocalGraph(Answer):
    """Its values are the nodes, literals with them, each with the triples that leave it.

    It is an Answer in the making: the picture of what a run stands on grows with it; see ``kg.exports`` too.
    """

    kind: AnswerKind = "list"
    prefixes: Hidden[Prefixes] = ()

    def __str__(self) -> str:
        return f"{pluralize(len(self.values), 'node')}, {pluralize(len(self.support), 'edge')}"

    @property
    def id_mapping(self) -> TermIds:
        return TermIds(self.prefixes, self.names)

    @property
    def nodes(self) -> tuple[Term, ...]:
        return tuple(value.term for value in self.values)

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> Self:
        """With these names, and ids for what bears them."""
        ids = self.id_mapping.with_names(names)
        return replace(self, names=ids.names, prefixes=ids.prefixes)

    def with_triples(self, nodes: Iterable[Term], triples: Iterable[Triple]) -> Self:
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

    def without(self, nodes: Collection[Term], triples: Collection[Triple]) -> Self:
        """Without these triples, and without these nodes and all triples at them."""
        kept = [t for t in self.support if t not in triples and not {t[0], t[2]} & {*nodes}]
        return replace(self, values=()).with_triples(
            (node for node in self.nodes if node not in nodes), kept
        )

    def find_elements(self, ids: Sequence[str]) -> tuple[tuple[Term, ...], ...]:
        """The node that one id stands for, or the triples that three do; nothing if they are not here."""
        id_mapping = self.id_mapping
        nodes = tuple((node,) for node in self.nodes)
        parts: tuple[tuple[Term, ...], ...] = self.support if len(ids) == 3 else nodes
        return tuple(
            p for p in parts if len(p) == len(ids) and all(map(id_mapping.matches, ids, p))
        )

    def format_for_prompt(self, max_chars: int) -> str:
        """Entities, relations and triples as a model reads them, cut after so many letters."""
        ids, relations = self.id_mapping, dict.fromkeys(triple[1] for triple in self.support)
        lines = [
            "Entities",
            *(ids.format_named_id(node) for node in self.nodes if not isinstance(node, Literal)),
        ]
        lines += ["Relations", *map(ids.format_named_id, relations), "Triples"]
        lines += [" | ".join(map(ids.format_id, triple)) for triple in self.support]
        return fit_lines(lines, max_chars) if self.values else "empty"


def fit_lines(lines: Sequence[str], max_chars: int) -> str:
    """The first lines that have room, and how many do not."""
    shown = 0
    while shown < len(lines) and (max_chars := max_chars - len(lines[shown])) > 0:
        shown += 1
    left = pluralize(len(lines) - shown, "more line")
    return "\n".join([*lines[:shown], *([f"({left}, not shown)"] if shown < len(lines) else [])])
