"""The classes of a graph, with their names."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.kg.base import SCHEMA_NAMESPACES, Graph
from kgwb.kg.sparql import n3, values_clause

MAX_SAMPLED_TYPES = 100_000
"""Type statements that are read to find the classes of a graph."""
MAX_CLASSES = 1_000
"""Classes of a graph that are considered."""


def find_class_names(kg: Graph) -> Mapping[URIRef, str]:
    """Return the names of a graph's classes by IRI, in one query.

    A class is the type of a vertex, or stands in a subclass statement. Classes of the schema
    languages themselves, such as owl:Class, are left out. At most MAX_SAMPLED_TYPES types are
    looked at, and at most MAX_CLASSES classes returned, sorted by IRI.
    """
    types = values_clause("?t", kg.vocabulary.types)
    subclass_of = n3(RDFS.subClassOf)
    rows = kg.select(
        f"SELECT DISTINCT ?c WHERE {{"
        f" {{ SELECT ?c WHERE {{ {types} ?v ?t ?c }} LIMIT {MAX_SAMPLED_TYPES} }}"
        f" UNION {{ ?c {subclass_of} ?other }} UNION {{ ?other {subclass_of} ?c }} }}"
        f" LIMIT {MAX_CLASSES}"
    ).rows
    classes = set()
    for (iri,) in rows:
        if isinstance(iri, URIRef) and not str(iri).startswith(SCHEMA_NAMESPACES):
            classes.add(iri)
    return kg.names(sorted(classes))
