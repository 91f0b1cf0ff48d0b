"""What is asked of the graph about predicates: those at a term, their names, and their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from rdflib import URIRef

from kgwb.build import Direction, Run
from kgwb.build.text import name_from_iri
from kgwb.systems.chatty_kg.records import RankedPredicate
from kgwb.systems.chatty_kg.settings import ChattySettings

TermByEnd = dict[str, str]
"""The SPARQL term of each end of the facts: an IRI in angle brackets, or a variable."""
PathsByEnd = dict[str, tuple[tuple[str, str], ...]]
"""By end of a fact, each path that leads to it, in SPARQL, with the SPARQL term of the end.

The path to a linked vertex is empty.
"""
Pair = tuple[URIRef, Direction]
"""A predicate with the direction in which it was found, seen from the subject of the fact."""
PREDICATE_VARIABLES: Mapping[Direction, str] = {"out": "?_out", "in": "?_in"}
"""The variable that a pattern of ``select_predicates`` has for its predicate, by direction.

No unknown of a QIR begins with "_".
"""
READABLE = re.compile(r"[^\W\d_]{2}")
"""Two letters: what a person can read, unlike "P57"."""


def is_literal(term: str) -> bool:
    """Return whether a SPARQL term is a literal, which cannot be a subject."""
    return not term.startswith(("<", "?"))


def name_predicates(iris: Sequence[URIRef], run: Run) -> Mapping[URIRef, str]:
    """Return the names of predicates by IRI: their labels, or with ``predicate_names`` the last parts of IRIs.

    A last part without two letters in a row, such as P57 in Wikidata, is no name: the label is
    taken.
    """
    return choose_predicate_names(iris, run.kg.names(iris), run)


def choose_predicate_names(
    iris: Iterable[URIRef], labels: Mapping[URIRef, str], run: Run
) -> Mapping[URIRef, str]:
    """Return the names of predicates as ``name_predicates`` does; ``labels`` has the label of each."""
    names = {iri: labels[iri] for iri in iris}
    if ChattySettings.of_run(run).predicate_names == "labels":
        return names
    for iri in names:
        segment = name_from_iri(iri)
        if READABLE.search(segment):
            names[iri] = segment
    return names


def make_sample_clause(where: str, term: str, limit: int) -> str:
    """Return a subquery for at most ``limit`` values of a term; "" for a linked vertex."""
    if not where:
        return ""
    return f"{{ SELECT DISTINCT {term} WHERE {{ {where} }} LIMIT {limit} }} "


def unite_patterns(patterns: Sequence[str]) -> str:
    """Return the graph pattern, as SPARQL, that matches whatever one of some patterns matches."""
    if len(patterns) == 1:
        return patterns[0]
    return " UNION ".join(f"{{ {pattern} }}" for pattern in patterns)


def make_samples_clause(wheres: Sequence[str], term: str, limit: int) -> str:
    """Return a subquery for the values of a term by several ways, at most ``limit`` by each; "" for a linked vertex.

    A value that several ways lead to is bound once.
    """
    samples = [make_sample_clause(where, term, limit) for where in wheres]
    if len(samples) == 1:
        return samples[0]
    return f"{{ SELECT DISTINCT {term} WHERE {{ {' UNION '.join(samples)}}} }} "


def select_predicates(patterns: Sequence[str], run: Run) -> set[Pair]:
    """Return the predicates that graph patterns bind to ?_out or ?_in, each with its direction.

    Predicates that the vocabulary of the graph excludes are left out; type predicates are kept with
    the setting ``keeps_type_predicates``. One query is sent for all patterns, none without any.
    """
    if not patterns:
        return set()
    where = unite_patterns(patterns)
    # Some engines refuse a variable that no pattern has.
    directions = [each for each, variable in PREDICATE_VARIABLES.items() if variable in where]
    columns = " ".join(PREDICATE_VARIABLES[direction] for direction in directions)
    vocabulary = run.kg.vocabulary
    excluded = vocabulary.excluded_predicates
    kept: Collection[URIRef] = ()
    if ChattySettings.of_run(run).keeps_type_predicates:
        kept = vocabulary.types
    found: set[Pair] = set()
    for row in run.kg.select(f"SELECT DISTINCT {columns} WHERE {{ {where} }}").rows:
        for iri, direction in zip(row, directions, strict=True):
            if isinstance(iri, URIRef) and (iri in kept or iri not in excluded):
                found.add((iri, direction))
    return found


def select_predicates_between(subject: str, object_: str, samples: str, run: Run) -> set[Pair]:
    """Return the predicates that connect two SPARQL terms, with their directions; one query is sent.

    ``samples`` has the subqueries that bind the terms; it is empty for linked vertices.
    """
    patterns = [f"{samples}{subject} ?_out {object_}", f"{samples}{object_} ?_in {subject}"]
    return select_predicates(patterns, run)


def make_ranking_key(predicate: RankedPredicate) -> tuple[float, str, str, bool, bool]:
    """Return a key that sorts predicates by similarity, the highest first, then by IRIs, then by directions.

    "out" comes first, but of two pairs over a node that differ in what leads onward only, "in":
    they are in the order of OVER_NODE_DIRECTIONS.
    """
    return (
        -predicate.similarity,
        str(predicate.iri),
        str(predicate.onward or ""),
        predicate.direction == "in",
        predicate.onward_direction == "out",
    )
