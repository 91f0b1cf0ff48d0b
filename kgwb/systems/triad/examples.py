"""Examples of what a relation leads to, so that the decision-maker sees what kind of thing it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rdflib import BNode, Literal, URIRef

from kgwb.build import Direction, Run, Term
from kgwb.build.graph import describe_vertices, label_terms, values_clause
from kgwb.build.text import shorten
from kgwb.systems.triad.records import Relation, Triplet

MAX_EXAMPLE_CHARS = 60
NO_NAME = "a node without a name"
"""What is shown of a blank node."""
Reached = dict[tuple[URIRef, Direction], Term]
"""A term that each relation leads to, by predicate and direction of the triplet."""


def add_examples(
    relations: Sequence[Relation], triplet: Triplet, ends: Mapping[str, Sequence[Term]], run: Run
) -> list[Relation]:
    """Return copies of relations with an example of what each leads to from the known ends of a triplet.

    ``ends`` has the terms of these ends. An example is a name with its types, or a value; it is
    empty if the relation leads nowhere from them. If both ends are named in the question, relations
    that lead to a literal are left out. Asks the graph.
    """
    reached: Reached = {}
    for end, terms in ends.items():
        named_terms = [term for term in terms if not isinstance(term, BNode)]
        found = _find_reached(relations, named_terms, end == triplet.subject, run)
        reached = {**found, **reached}
    shown = _describe_terms(reached.values(), run)

    with_examples = []
    for relation in relations:
        term = reached.get((relation.iri, relation.direction))
        if isinstance(term, Literal) and _leads_to_mention(triplet):
            continue
        example = shown[term] if term is not None else ""
        with_examples.append(replace(relation, example=example))
    return with_examples


def _leads_to_mention(triplet: Triplet) -> bool:
    """Return whether both ends of a triplet are named, so that it relates two vertices."""
    return not any(end.startswith("?") for end in triplet.ends)


def _find_reached(
    relations: Iterable[Relation], terms: Sequence[URIRef | Literal], is_subject: bool, run: Run
) -> Reached:
    """Return, by predicate and direction, the first term that each relation leads to from some terms.

    First is the smallest in the order of SPARQL, where a vertex goes before a value. ``is_subject``
    says whether the terms are those of the triplet's subject. One query is sent for each direction
    that a relation has. Relations that lead nowhere are missing.
    """
    reached: Reached = {}
    for direction in ("out", "in"):
        predicates = [each.iri for each in relations if each.direction == direction]
        if not predicates or not terms:
            continue
        is_forward = is_subject == (direction == "out")
        pattern = "?v ?p ?x" if is_forward else "?x ?p ?v"
        where = f"{values_clause('?v', terms)} {values_clause('?p', predicates)} {pattern}"
        group = f"SELECT ?p (MIN(?x) AS ?first) WHERE {{ {where} }} GROUP BY ?p"
        for predicate, first in run.kg.select(group).rows:
            if isinstance(predicate, URIRef) and first is not None:
                reached[predicate, direction] = first
    return reached


def _describe_terms(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """Return the text of each term: the name of an IRI with its types in brackets, or the value of a literal.

    A text is cut at MAX_EXAMPLE_CHARS characters. A blank node is called NO_NAME. Names and types
    are asked of the graph.
    """
    labels = label_terms(terms, run)
    iris = [term for term in labels if isinstance(term, URIRef)]
    descriptions = describe_vertices(run.kg, iris)
    described = {}
    for term, label in labels.items():
        text = label
        if isinstance(term, BNode):
            text = NO_NAME
        elif isinstance(term, URIRef) and descriptions[term].types:
            text = f"{label} ({', '.join(descriptions[term].types)})"
        described[term] = shorten(text, MAX_EXAMPLE_CHARS)
    return described
