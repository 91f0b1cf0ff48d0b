"""Relations: what leads on from a head, in both directions (DoG, "get_relations")."""

from __future__ import annotations

from rdflib import BNode, Literal, URIRef

from kgwb.flow import Direction, Iri
from kgwb.kg.queries import predicates
from kgwb.run import Run, agent
from kgwb.systems.dog.records import Head, Relation, Relations


@agent("relations", subject="head", kind="sparql")
def get_relations(head: Head, run: Run) -> Relations:
    """The relations of all vertices of a head but for noise, "~" before those that lead to it.

    No model is asked. Predicates of one name and direction are one relation.
    """
    terms = [value.term for value in head.values if not isinstance(value.term, BNode)]
    if not terms:
        return Relations(head.name, ())
    pairs = predicates(run.kg, *(term for term in terms if isinstance(term, URIRef | Literal)))
    names = run.kg.names(sorted({iri for iri, _ in pairs}))
    iris: dict[tuple[str, Direction], list[Iri]] = {}
    for iri, direction in pairs:
        iris.setdefault((names[iri], direction), []).append(iri)
    in_order = sorted(iris.items(), key=lambda item: (item[0][0], item[0][1] == "in"))
    return Relations(head.name, tuple(Relation(name, way, tuple(group)) for (name, way), group in in_order))
