"""Units of numbers: what a blank node says beside a number (``shows_units``)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from rdflib import BNode, URIRef

from kgwb.build import CandidateQuery, Run, Term, Triple
from kgwb.build.graph import is_number, patterns_to_sparql
from kgwb.build.text import names_unit

UNIT_PREDICATE = "?_unit_predicate"
UNIT = "?_unit"
Units = Mapping[Term, tuple[Term, ...]]
"""The units of each number that has any. Nodes with one number and different units give several."""


def find_units(
    query: CandidateQuery, variable: str, supports: Mapping[Term, tuple[Triple, ...]], run: Run
) -> Units:
    """Return the units of the numbers among the values of a query.

    A number has a unit if a blank node has it, and says with another predicate in what it is
    counted (``names_unit``). ``variable`` is that of the values, and ``supports`` has their triples.
    One query is sent if there is such a number, and none otherwise.
    """
    nodes = []
    for subject, _, object_ in query.patterns:
        if object_ == variable and subject.startswith("?"):
            nodes.append(subject)
    if not nodes or not _has_number_at_node(supports):
        return {}
    patterns = (*query.patterns, (nodes[0], UNIT_PREDICATE, UNIT))
    body = f"{patterns_to_sparql(patterns)} {query.filters}".strip()
    columns = f"{variable} {UNIT_PREDICATE} {UNIT}"
    rows = run.kg.select(f"SELECT DISTINCT {columns} WHERE {{ {body} }}").rows
    predicates = {predicate for _, predicate, _ in rows if isinstance(predicate, URIRef)}
    names = run.kg.names(sorted(predicates))
    units: dict[Term, dict[Term, None]] = {}
    for value, predicate, unit in rows:
        if value is None or unit is None or isinstance(unit, BNode):
            continue
        if isinstance(predicate, URIRef) and names_unit(names[predicate]) and is_number(value):
            units.setdefault(value, {})[unit] = None
    return {value: tuple(found) for value, found in units.items()}


def _has_number_at_node(supports: Mapping[Term, tuple[Triple, ...]]) -> bool:
    """Return whether a triple that supports a value leads from a blank node to a number."""
    for subject, _, object_ in chain.from_iterable(supports.values()):
        if isinstance(subject, BNode) and object_ in supports and is_number(object_):
            return True
    return False
