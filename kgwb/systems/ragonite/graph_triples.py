"""The triples of a graph, or of a part of it, that a database is made of."""

from __future__ import annotations

from collections.abc import Iterator

from rdflib import URIRef

from kgwb.build import (
    Graph,
    GraphError,
    GraphUnreachableError,
    SettingError,
    Triple,
    is_valid_iri,
    n3,
    parse_count,
    values_clause,
)
from kgwb.systems.ragonite.settings import RagoniteSettings

TRIPLES_PER_QUERY = 10_000
SECONDS_PER_1000_TRIPLES = 1.5
"""How long induction takes, as measured."""
MEGABYTES_PER_1000_TRIPLES = 1.2
"""How much memory induction takes, as measured."""
SIZE_HINT = (
    "if the graph is too large, choose a part of it by classes, such as"
    " --set part=http://example.org/Film, or raise the setting max_triples"
)


def read_triples(kg: Graph, settings: RagoniteSettings) -> Iterator[Triple]:
    """Yield the triples of the graph, or of the instances of the classes in the setting ``part``.

    They are counted first, then read TRIPLES_PER_QUERY at a time; an endpoint sorts them. Raises
    SettingError if ``part`` has an invalid IRI; GraphError if there are no triples, if there are
    more than ``max_triples``, or if they cannot be counted; and what the graph raises.
    """
    pattern = _pattern_of_part(kg, settings)
    problem = _find_size_problem(kg, pattern, settings.max_triples)
    if problem:
        raise GraphError(f"no database can be made of {kg.source}: {problem}", hint=SIZE_HINT)
    # A file always returns its triples in the same order. An endpoint does so only if it sorts.
    order = " ORDER BY ?s ?p ?o" if kg.remote else ""
    distinct = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }}{order}"
    start = 0
    while True:
        rows = kg.select(
            f"SELECT ?s ?p ?o WHERE {{ {{ {distinct} }} }} LIMIT {TRIPLES_PER_QUERY} OFFSET {start}"
        ).rows
        if not rows:
            break
        start += len(rows)
        for subject, predicate, object_ in rows:
            if subject is not None and predicate is not None and object_ is not None:
                yield subject, URIRef(predicate), object_


def _pattern_of_part(kg: Graph, settings: RagoniteSettings) -> str:
    """Return the graph pattern of the triples to read.

    With classes in the setting ``part``, these are the triples of their instances and of blank
    nodes that an instance leads to. Raises SettingError for an invalid IRI.
    """
    classes = [URIRef(iri.strip("<>")) for iri in settings.part.split()]
    for iri in classes:
        if not is_valid_iri(iri):
            raise SettingError(
                f"the setting part has {str(iri)!r}, which is not an IRI",
                hint="give the IRIs of classes, separated by blanks, such as --set part=http://example.org/Film",
            )
    if not classes:
        return "?s ?p ?o"
    types = "|".join(map(n3, kg.vocabulary.types))
    of_classes = values_clause("?c", classes)
    instances = f"{of_classes} ?s ({types}) ?c"
    nodes = f"{of_classes} ?v ({types}) ?c . ?v ?leads ?s FILTER(isBlank(?s))"
    return f"{{ {{ {instances} }} UNION {{ {nodes} }} }} ?s ?p ?o"


def _find_size_problem(kg: Graph, pattern: str, max_triples: int) -> str:
    """Count the triples of a pattern, and return why they cannot be read; "" if they can.

    There may be none, more than ``max_triples``, in which case the text has an estimate of time and
    memory, or the graph may not count them. Raises GraphUnreachableError.
    """
    try:
        [(number,)] = kg.select(f"SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}").rows
        count = parse_count(number)
    except GraphUnreachableError:
        raise
    except (GraphError, ValueError) as error:
        return f"its triples cannot be counted: {error}"
    if not count:
        return "it has no triples"
    if count <= max_triples:
        return ""
    minutes = count * SECONDS_PER_1000_TRIPLES / 60_000
    megabytes = count * MEGABYTES_PER_1000_TRIPLES / 1000
    return (
        f"{count:,} triples would take about {minutes:,.0f} minutes and {megabytes:,.0f} MB;"
        f" the limit (setting max_triples) is {max_triples:,}"
    )
