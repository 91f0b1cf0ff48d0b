"""Random graphs, and random SPARQL queries over them, for tests that compare two ways to answer.

Graphs have few terms, so that patterns match: things of one name, literals that are equal in value but
not in form, predicates that are subjects too, and blank nodes.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import rdflib
from rdflib import XSD, BNode, Literal, URIRef

from kgwb.terms import Triple

SUBJECTS = [URIRef(f"http://x/s{number}") for number in range(6)]
PREDICATES = [URIRef(f"http://x/p{number}") for number in range(3)]
LITERALS = [
    Literal("1"),
    Literal("1", datatype=XSD.integer),
    Literal("1.0", datatype=XSD.decimal),
    Literal("1", lang="en"),
    Literal("a"),
    Literal("a", lang="en"),
    Literal("a", lang="de"),
    Literal("true", datatype=XSD.boolean),
    Literal("2016", datatype=XSD.gYear),
    Literal("http://x/s1"),
]
VARIABLES = ["?a", "?b", "?c", "?d"]
FORMS = [
    "select",
    "select",
    "select",
    "distinct",
    "star",
    "star",
    "count",
    "group",
    "ask",
    "construct",
]


class Case(NamedTuple):
    """A graph, some of its triples to mute, and a query."""

    graph: rdflib.Graph
    muted: tuple[Triple, ...]
    query: str


def random_case(seed: int) -> Case:
    """Return the case of a seed, always the same one."""
    random = Random(seed)
    graph = random_graph(random)
    triples = sorted(graph, key=repr)
    without_blank_nodes = [
        triple for triple in triples if not any(isinstance(term, BNode) for term in triple)
    ]
    muted = random.sample(without_blank_nodes, min(len(without_blank_nodes), random.randint(1, 3)))
    return Case(graph, tuple(muted), QueryWriter(random, triples).query())


def random_graph(random: Random) -> rdflib.Graph:
    """Return a graph of some fifteen triples."""
    graph = rdflib.Graph()
    blank_nodes = [BNode(f"n{number}") for number in range(2)]
    for _ in range(random.randint(8, 18)):
        subject = random.choice([*SUBJECTS, *SUBJECTS, PREDICATES[0], *blank_nodes])
        object_ = random.choice([*SUBJECTS, *SUBJECTS, *LITERALS, PREDICATES[1], *blank_nodes])
        graph.add((subject, random.choice(PREDICATES), object_))
    return graph


class QueryWriter:
    """Writes a random query, most of whose terms stand in the graph."""

    def __init__(self, random: Random, triples: list[Triple]) -> None:
        self.random = random
        self.triples = triples
        self.blank_labels = 0

    def query(self) -> str:
        """Return a query of a random form."""
        form = self.random.choice(FORMS)
        group = self.group(depth=2)
        variables = self.random.sample(VARIABLES, self.random.randint(1, 3))
        columns = " ".join(variables)
        if form == "ask":
            return f"ASK {group}"
        if form == "construct":
            subject, object_ = self.random.sample(VARIABLES, 2)
            return f"CONSTRUCT {{ {subject} <http://x/made> {object_} }} WHERE {group}"
        if form == "star":
            return f"SELECT {self.random.choice(['', 'DISTINCT '])}* {group}"
        if form == "count":
            return f"SELECT (COUNT(*) AS ?n) {group}"
        if form == "group":
            key = variables[0]
            return f"SELECT {key} (COUNT(*) AS ?n) {group} GROUP BY {key}"
        return f"SELECT {'DISTINCT ' if form == 'distinct' else ''}{columns} {group}"

    def group(self, depth: int) -> str:
        """Return a group of patterns in braces."""
        parts = [self.block()]
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            parts.append(self.part(depth))
        if depth < 2 and self.random.random() < 0.2:
            self.random.shuffle(parts)
        return "{ " + " ".join(parts) + " }"

    def part(self, depth: int) -> str:  # noqa: PLR0911  # a table of kinds
        """Return what may follow a block of triple patterns."""
        kind = self.random.choice(
            [
                "block",
                "optional",
                "union",
                "minus",
                "exists",
                "subquery",
                "values",
                "bind",
                "filter",
            ]
        )
        if kind == "block" or (
            depth == 0 and kind in ("optional", "union", "minus", "exists", "subquery")
        ):
            return f". {self.block()}"
        if kind == "optional":
            return f"OPTIONAL {self.group(depth - 1)}"
        if kind == "union":
            return f"{self.group(depth - 1)} UNION {self.group(depth - 1)}"
        if kind == "minus":
            return f"MINUS {self.group(depth - 1)}"
        if kind == "exists":
            word = self.random.choice(["EXISTS", "NOT EXISTS"])
            return f"FILTER {word} {self.group(depth - 1)}"
        if kind == "subquery":
            inner = self.random.choice(["*", *VARIABLES, "DISTINCT *"])
            return f"{{ SELECT {inner} {self.group(depth - 1)} }}"
        if kind == "values":
            terms = " ".join(self.term(2) for _ in range(2))
            return f"VALUES {self.random.choice(VARIABLES)} {{ {terms} }}"
        if kind == "bind":
            return f"BIND({self.random.choice(['1 = 1', '?a', 'STR(?b)'])} AS ?bound{self.random.randint(1, 99)})"
        return (
            f"FILTER({self.random.choice(['BOUND(?a)', 'isIRI(?b)', '?a != ?b', 'isLiteral(?c)'])})"
        )

    def block(self) -> str:
        """Return one to three triple patterns, with ; and , and blank nodes."""
        patterns = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            pattern = f"{self.node(0)} {self.verb()} {self.node(2)}"
            if self.random.random() < 0.15:
                pattern += f" , {self.node(2)}"
            if self.random.random() < 0.2:
                pattern += f" ; {self.verb()} {self.node(2)}"
            patterns.append(pattern)
        return " . ".join(patterns)

    def node(self, position: int) -> str:
        """Return a variable, a term of the graph, or a blank node, for a subject (0) or an object (2)."""
        choice = self.random.random()
        if choice < 0.55:
            return self.random.choice(VARIABLES)
        if choice < 0.85:
            return self.term(position)
        if choice < 0.9:
            return "[]"
        if choice < 0.95:
            return f"[ {self.verb()} {self.node(2)} ]"
        self.blank_labels += 1
        return f"_:b{self.blank_labels // 2}"

    def term(self, position: int) -> str:
        """Return a term that stands in this position of a triple, no blank node."""
        term = self.random.choice(self.triples)[position]
        return self.random.choice(SUBJECTS).n3() if isinstance(term, BNode) else term.n3()

    def verb(self) -> str:
        """Return a predicate, a variable in its place, or a property path."""
        choice = self.random.random()
        if choice < 0.5:
            return self.random.choice(PREDICATES).n3()
        if choice < 0.65:
            return self.random.choice(VARIABLES)
        return self.path(depth=2)

    def path(self, depth: int) -> str:
        """Return a property path; rarely one without a fixed length, or a negated one."""
        predicate = self.random.choice(PREDICATES).n3()
        if depth == 0:
            return predicate
        kind = self.random.choice(
            ["plain", "inverse", "inverse", "sequence", "sequence", "either", "either", "odd"]
        )
        if kind == "inverse":
            return f"^({self.path(depth - 1)})"
        if kind == "sequence":
            return f"({self.path(depth - 1)}/{self.path(depth - 1)})"
        if kind == "either":
            return f"({self.path(depth - 1)}|{self.path(depth - 1)})"
        if kind == "odd" and self.random.random() < 0.4:
            other = self.random.choice(PREDICATES).n3()
            return self.random.choice(
                [
                    f"{predicate}*",
                    f"{predicate}+",
                    f"{predicate}?",
                    f"!({predicate})",
                    f"!(^{predicate}|{other})",
                ]
            )
        return predicate
