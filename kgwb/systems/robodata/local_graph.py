"""The local graph: a record of what a run has fetched so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from rdflib import Literal

from kgwb.build import (
    Answer,
    AnswerKind,
    Hidden,
    Iri,
    Prefixes,
    Term,
    TermIds,
    Triple,
    Value,
    pluralize,
)

MAX_NAMED_PARTS = 6
"""Unconnected parts of the local graph that a prompt names."""


@dataclass(frozen=True)
class LocalGraph(Answer):
    """The nodes and triples that a run has fetched. The paper keeps them in a Neo4j database.

    Its values are the nodes, which may be literals. The support of a node are the triples with it
    as subject. Because it is an Answer, the subgraph of a run shows it, and ``run.exports`` writes
    it, like an answer's support. Unlike other records it has no slots, so that it keeps its ids.
    """

    kind: AnswerKind = "list"
    prefixes: Hidden[Prefixes] = ()
    """The prefixes of ids, besides the well-known ones."""

    def __str__(self) -> str:
        nodes = pluralize(len(self.values), "node")
        edges = pluralize(len(self.support), "edge")
        return f"{nodes}, {edges}"

    @cached_property
    def id_mapping(self) -> TermIds:
        """The ids under which a model is shown terms, and by which it names them.

        They tell all nodes and predicates of the graph apart.
        """
        predicates = [predicate for _, predicate, _ in self.support]
        return TermIds(self.prefixes, self.names).with_terms([*self.nodes, *predicates])

    @property
    def nodes(self) -> tuple[Term, ...]:
        """The terms of the nodes."""
        return tuple(value.term for value in self.values)

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> Self:
        """Return the graph with more display names, and with prefixes for the ids of their IRIs.

        The IRIs need not be nodes. A prefix that was given before does not change.
        """
        ids = self.id_mapping.with_names(names)
        return replace(self, names=ids.names, prefixes=ids.prefixes)

    def with_triples(self, nodes: Iterable[Term], triples: Iterable[Triple]) -> Self:
        """Return a copy of the graph with more nodes and triples. The ends of the triples become nodes.

        Nodes keep their order; new ones come last. Each triple stands once.
        """
        outgoing: dict[Term, list[Triple]] = {}
        for node in (*self.nodes, *nodes):
            outgoing[node] = []
        all_triples = dict.fromkeys(self.support)
        all_triples.update(dict.fromkeys(triples))
        for triple in all_triples:
            subject, _, object_ = triple
            outgoing.setdefault(subject, []).append(triple)
            outgoing.setdefault(object_, [])
        names: dict[Term, str] = dict(self.names)
        values = []
        for node, support in outgoing.items():
            label = names.get(node, str(node))
            value = Value(node, label, tuple(support))
            values.append(value)
        return replace(self, values=tuple(values))

    def without(self, nodes: Collection[Term], triples: Collection[Triple]) -> Self:
        """Return a copy of the graph without some triples, and without some nodes and all triples at them.

        The ends of a removed triple stay as nodes.
        """
        kept_nodes = [node for node in self.nodes if node not in nodes]
        kept_triples = []
        for triple in self.support:
            subject, _, object_ = triple
            has_node = subject in nodes or object_ in nodes
            if triple not in triples and not has_node:
                kept_triples.append(triple)
        return replace(self, values=()).with_triples(kept_nodes, kept_triples)

    def find_parts(self) -> list[list[Term]]:
        """Return the nodes of each connected part of the graph, the largest part first.

        Directions of triples do not count. Parts of one size, and the nodes of a part, are in the
        order of the graph.
        """
        part_of: dict[Term, list[Term]] = {}
        for node in self.nodes:
            part_of[node] = [node]
        for subject, _, object_ in self.support:
            first = part_of[subject]
            second = part_of[object_]
            if first is not second:
                first += second
                part_of.update(dict.fromkeys(second, first))
        order = {node: place for place, node in enumerate(self.nodes)}
        parts = []
        for part in {id(part): part for part in part_of.values()}.values():
            in_order = sorted(part, key=order.__getitem__)
            parts.append(in_order)
        parts.sort(key=lambda part: (-len(part), order[part[0]]))
        return parts

    def describe_parts(self) -> str:
        """Return how many parts of the graph are not connected, and name them; "" if there are not at least two.

        A part is named by its first node, with its ID and size. At most MAX_NAMED_PARTS are named.
        """
        parts = self.find_parts()
        if len(parts) < 2:
            return ""
        named = []
        for part in parts[:MAX_NAMED_PARTS]:
            size = "alone" if len(part) == 1 else pluralize(len(part), "node")
            named.append(f"{self.id_mapping.format_named_id(part[0])} ({size})")
        if len(parts) > MAX_NAMED_PARTS:
            named.append(f"{len(parts) - MAX_NAMED_PARTS} more")
        return f"{len(parts)} parts are not connected: {', '.join(named)}"

    def find_elements(self, ids: Sequence[str]) -> tuple[tuple[Term, ...], ...]:
        """Return the nodes or triples of the graph that a model names by IDs, as tuples of one or three terms.

        One ID names a node, three name a triple. Empty if the graph has no such element, or for
        another number of IDs. Several elements are returned if an ID is the text of several
        literals.
        """
        elements: Sequence[tuple[Term, ...]] = self.support
        if len(ids) != 3:
            elements = [(node,) for node in self.nodes]
        known_ids = self.id_mapping
        meant = [set(known_ids.find(id_)) for id_ in ids]
        found = []
        for element in elements:
            if len(element) != len(ids):
                continue
            if all(term in terms for term, terms in zip(element, meant, strict=True)):
                found.append(element)
        return tuple(found)

    def format_for_prompt(self, max_chars: int) -> str:
        """Return the graph as text for a prompt: entities, relations, and triples, by their IDs.

        It is cut between lines before ``max_chars`` characters are reached, with the number of
        lines left out. "empty" if there are no nodes. Literals are only in the triples.
        """
        if not self.values:
            return "empty"
        return fit_lines(self.format_lines(), max_chars)

    def format_lines(self) -> list[str]:
        """Return the whole graph as lines of text, under the headings Entities, Relations and Triples.

        A node or predicate is shown by its ID and name, a triple by three IDs. Literals are only in
        the triples.
        """
        ids = self.id_mapping
        entities = [node for node in self.nodes if not isinstance(node, Literal)]
        relations = dict.fromkeys(triple[1] for triple in self.support)
        lines = ["Entities", *map(ids.format_named_id, entities)]
        lines += ["Relations", *map(ids.format_named_id, relations), "Triples"]
        for triple in self.support:
            lines.append(" | ".join(map(ids.format_id, triple)))
        return lines


def fit_lines(lines: Sequence[str], max_chars: int) -> str:
    """Join the first lines that have fewer than ``max_chars`` characters together, and say how many are left out.

    Line ends are not counted. A line is never cut. Nothing is added if all lines fit.
    """
    chars = 0
    for position, line in enumerate(lines):
        chars += len(line)
        if chars >= max_chars:
            omitted = pluralize(len(lines) - position, "more line")
            return "\n".join([*lines[:position], f"({omitted}, not shown)"])
    return "\n".join(lines)
