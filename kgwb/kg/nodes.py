"""Lists, other containers and blank nodes: what the graph says of them, and how a person reads them.

An rdf:List, rdf:Seq, rdf:Bag or rdf:Alt is read as its members, in order. Any other blank node is
read by its name, or else by what it has: "offer: currency EUR; price 100".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import rdflib
from rdflib import RDF, RDFS, BNode, Literal, URIRef
from rdflib.graph import Seq

from kgwb.kg.algebra import LIST_MEMBER
from kgwb.kg.base import Direction, Graph
from kgwb.kg.label_search import language_rank, names_unit
from kgwb.kg.labels import NAMES_OF_NAME_PREDICATES
from kgwb.kg.queries import values_table
from kgwb.kg.sparql import is_serializable, n3, values_clause
from kgwb.records import frozen
from kgwb.terms import (
    NAMELESS,
    Term,
    Triple,
    format_term,
    is_number,
    local_part,
    name_from_iri,
    node_key,
)

_LIST_PREDICATES = (str(RDF.first), str(RDF.rest))
_MEMBER_NAMESPACE = f"{RDF}_"
"""How the predicates of the members of a container begin: rdf:_1, rdf:_2, ..."""
CONTAINERS = frozenset((RDF.Seq, RDF.Bag, RDF.Alt))
NUMBER_WORDS = frozenset("amount magnitude number numericvalue quantity value".split())
"""Local parts of predicates that lead from a node to the number that it stands for."""
MAX_DESCRIBED_FACTS = 8
"""How much of what a blank node has its description tells."""
LIST_STEP = f"{n3(RDF.rest)}|{n3(RDF.first)}"
NEAR = f"({LIST_STEP})*/(!({LIST_STEP})/({LIST_STEP})*)?"
"""The path from a node to the cells of its list, to nodes that are members of it, and one step further.

That step leaves the list: the cells behind each cell of a list are as many as its length squared.
"""


def is_of_container(predicate: Term | None) -> bool:
    """Return whether containers are made of a predicate: rdf:first, rdf:rest, rdf:_1, rdf:_2, ..."""
    text = str(predicate)  # each question asks this of many predicates, and texts compare fastest
    return text.startswith(_MEMBER_NAMESPACE) or text in _LIST_PREDICATES


def write_membership(predicate: Any) -> str:
    """Return a predicate as SPARQL; rdf:first stands for all members of a list, however far they are."""
    if predicate == RDF.first:
        return LIST_MEMBER
    return n3(predicate)


def find_paths_over_containers(
    kg: Graph, members: Sequence[URIRef | Literal], predicates: Iterable[tuple[URIRef, Direction]]
) -> dict[tuple[URIRef, Direction], str]:
    """Return the predicates of the containers that some things are in, each with a path over the container.

    ``predicates`` are those of the things. The path is written as SPARQL, and stands in a query in
    place of the predicate. One query is sent for each predicate that leads to a member.
    """
    paths: dict[tuple[URIRef, Direction], list[str]] = defaultdict(list)
    for membership, membership_direction in predicates:
        if membership_direction == "out" or not is_of_container(membership):
            continue
        member = write_membership(membership)
        ends = '{ ?l ?p ?o BIND("out" AS ?d) } UNION { ?o ?p ?l BIND("in" AS ?d) }'
        where = f"{values_clause('?v', members)} ?l {member} ?v {ends}"
        for predicate, direction in kg.select(f"SELECT DISTINCT ?p ?d WHERE {{ {where} }}").rows:
            if not isinstance(predicate, URIRef) or is_of_container(predicate):
                continue
            if str(direction) == "in":
                paths[predicate, "in"].append(f"{n3(predicate)}/{member}")
            elif predicate != RDF.type:
                paths[predicate, "out"].append(f"^({member})/{n3(predicate)}")
    return {pair: "|".join(alternatives) for pair, alternatives in paths.items()}


@frozen
class Nodes:
    """What the graph says of some blank nodes, and of the lists that begin with them."""

    kg: Graph
    triples: rdflib.Graph
    """The triples of the graph with these nodes as subjects."""
    kinds: Mapping[Any, Term | None]
    """The nodes that were asked about, each with the predicate that leads to it; None if that is unknown."""
    names: Mapping[str, str]
    """The display names of IRIs."""

    def facts(self, node: Term) -> list[tuple[Any, Any]]:
        """Return the predicates and objects of a node, sorted by their text."""
        return sorted(self.triples.predicate_objects(node), key=str)

    def members(self, node: Term) -> list[Any] | None:
        """Return the members of a container in their order, each as often as it stands there.

        None for anything else. A list that leads back to itself ends there.
        """
        members: list[Any] = list(Seq(self.triples, node))
        if (node, RDF.rest, None) in self.triples:
            with suppress(ValueError):
                members += self.triples.items(node)
        is_container = not CONTAINERS.isdisjoint(self.triples.objects(node, RDF.type))
        if members or is_container or node == RDF.nil:
            return members
        return None

    def name(self, node: Term) -> str:
        """Return the name that a node has, in the language that is preferred; "" if it has none."""
        if self.members(node) == []:
            return "(empty list)"
        vocabulary = self.kg.vocabulary
        names = []
        for predicate, value in self.facts(node):
            is_label = predicate in vocabulary.labels
            is_name = name_from_iri(predicate).casefold() in NAMES_OF_NAME_PREDICATES
            if (is_label or is_name) and isinstance(value, Literal):
                rank = language_rank(value.language or "", vocabulary.languages)
                names.append((not is_label, rank, str(value)))
        if not names:
            return ""
        _, _, best = min(names)
        return best

    def describe(self, term: Term, around: tuple[Term, ...] = ()) -> str:
        """Return the text of a term: a name, a literal's text, "(Xena, Yara)", or what a blank node has.

        ``around`` are the nodes whose description it is part of, which may lead back to each other.
        """
        if not isinstance(term, BNode) and term != RDF.nil:
            return format_term(term, self.names)
        name = self.name(term)
        facts = self.facts(term)
        if name or not facts or term in around:
            return name or NAMELESS
        inside = (*around, term)
        members = self.members(term)
        if members:
            listed = ", ".join(self.describe(member, inside) for member in members)
            return f"({listed})"
        kind = self.kinds.get(term)
        described = []
        for predicate, value in facts:
            if predicate == RDF.type:
                kind = value
            else:
                described.append(f"{self.describe(predicate)} {self.describe(value, inside)}")
        text = "; ".join(described[:MAX_DESCRIBED_FACTS])
        if around:
            return f"({text})"
        return f"{self.describe(kind)}: {text}" if kind else text

    def unit(self, node: Term) -> str:
        """Return the name of the unit that a node has beside a number; "" if it has none."""
        for predicate, value in self.facts(node):
            if names_unit(self.describe(predicate)):
                return self.describe(value)
        return ""

    def number(self, node: Term) -> Literal | None:
        """Return the number that a node stands for: ``[ :amount 60 ; :unit :metre ]``; None for another node.

        It is the only number of the node, which also has a unit, or whose predicate says so.
        """
        numbers = set()
        for predicate, value in self.facts(node):
            if is_number(value):
                numbers.add((local_part(predicate).casefold(), value))
        if len(numbers) != 1:
            return None
        [(word, number)] = numbers
        if word in NUMBER_WORDS or self.unit(node):
            return Literal(number)
        return None

    def display_names(self) -> dict[URIRef, str]:
        """Return the names of IRIs, and the descriptions of the blank nodes under their ``node_key``.

        Of a list, the inner cells have none unless they were asked about.
        """
        names = {URIRef(iri): name for iri, name in self.names.items()}
        nodes: set[Any] = set(self.triples.subjects())
        inner_cells = set(self.triples.objects(predicate=RDF.rest))
        for node in nodes - (inner_cells - set(self.kinds)):
            names[URIRef(node_key(node))] = self.describe(node)
        return names


def read_nodes(kg: Graph, triples: Collection[Triple], names: Mapping[str, str]) -> Nodes:
    """Return what the graph says of the blank nodes in some of its triples, and of those next to them.

    A query cannot name a blank node, so that it is found again from the other end of its triples.
    One query is sent if there are any, and one request for names. ``names`` are those that are known.
    """
    ends: dict[tuple[Term, Term], None] = {}
    kinds: dict[Any, Term | None] = {}
    for subject, predicate, object_ in triples:
        if isinstance(object_, BNode):
            ends[subject, predicate] = None
            if predicate != RDFS.member:
                kinds[object_] = predicate
        if isinstance(subject, BNode):
            ends[object_, predicate] = None
            kinds.setdefault(subject, None)
    found = rdflib.Graph()
    known = [end for end in ends if is_serializable(end[0])]
    if known:
        query = (
            f"SELECT DISTINCT ?_c ?_p ?_o WHERE {{ {values_table('?_e ?_q', known)}"
            f" {{ ?_e ?_q ?_n }} UNION {{ ?_n ?_q ?_e }} FILTER(isBlank(?_n))"
            f" ?_n {NEAR} ?_c . ?_c ?_p ?_o FILTER(isBlank(?_c)) }}"
        )
        rows: Any = kg.select(query).rows
        for row in rows:
            found.add(row)
    terms = {*kinds.values(), *chain.from_iterable(found)}
    iris = sorted(term for term in terms if isinstance(term, URIRef))
    all_names = {**names, **{str(iri): name for iri, name in kg.names(iris).items()}}
    return Nodes(kg, found, kinds, all_names)
