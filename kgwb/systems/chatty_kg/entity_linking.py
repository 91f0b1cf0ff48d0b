"""Entity linking of Chatty-KG: vertices by label, and in ``fast`` classes and what is near homonyms."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rdflib import BNode, URIRef
from rdflib.namespace import RDFS

from kgwb.flow import Candidate, Context, Link, Retrieved
from kgwb.kg.base import SCHEMA_SPACES
from kgwb.kg.queries import describe
from kgwb.kg.sparql import n3
from kgwb.kg.text import normal
from kgwb.run import Run, agent
from kgwb.systems.linking import candidates_of, select

SAMPLE, MOST_CLASSES = 100_000, 1_000
"""Types of things looked at to find the classes of a graph, and classes found at most."""
MOST_NEAR, MOST_VALUES, MOST_CHARS = 200, 3, 80
"""Triples read on each side of a homonym; values shown of a relation, and characters of each."""


@agent("entity_linking", subject="entity")
def link_entity(entity: str, question: str, context: Context, kinds: Collection[str], run: Run) -> Link:
    """Retrieve the candidates of one entity and choose one."""
    return select(retrieve(entity, question, kinds, run), question, context, run)


@agent("entity_retriever", subject="entity", kind="search")
def retrieve(entity: str, question: str, kinds: Collection[str], run: Run) -> Retrieved:
    """At most v_limit candidates, best first; ``fast`` keeps those worth showing and describes them.

    To an entity that is a kind of thing ``fast`` also offers the graph's classes, which no label search
    finds, and it shows what the relations of homonyms lead to.
    """
    retrieved = candidates_of(entity, run)
    if not run.settings.fast:
        return retrieved
    return _with_classes(retrieved, run) if entity in kinds else _with_neighbours(retrieved, question, run)


def _with_classes(retrieved: Retrieved, run: Run) -> Retrieved:
    """The classes and vertices that are called so; if none is, the likest classes and the candidates."""
    names = _classes(run)
    same = [iri for iri in names if normal(names[iri]) == normal(retrieved.entity)]
    exact = [candidate for candidate in retrieved.candidates if candidate.score >= 1]
    if same or exact:
        others = [candidate for candidate in exact if candidate.iri not in same]
        return replace(retrieved, candidates=(*_described(dict.fromkeys(same, 1.0), names, run), *others))
    distinct = sorted({*names.values()})
    close = dict(zip(distinct, run.similarity(retrieved.entity, distinct), strict=True)) if names else {}
    ranked = sorted(names, key=lambda iri: (-close[names[iri]], iri))
    most = run.settings.shown_candidates
    best = ranked[: most - min(len(retrieved.candidates), most // 2)]
    scores = {iri: round(min(max(close[names[iri]], 0.0), 0.99), 4) for iri in best}  # 1 is the name itself
    others = [candidate for candidate in retrieved.candidates if candidate.iri not in scores]
    return replace(retrieved, candidates=(*_described(scores, names, run), *others)[:most])


def _described(scores: Mapping[URIRef, float], names: Mapping[URIRef, str], run: Run) -> Iterator[Candidate]:
    """Classes as candidates, with what the graph says of them."""
    known = describe(run.kg, [*scores])
    for iri, score in scores.items():
        yield Candidate(iri, names[iri], score, ("class",), known[iri].description)


def _classes(run: Run) -> dict[URIRef, str]:
    """The classes of the graph by IRI, with their names."""
    types, above = " ".join(map(n3, run.kg.vocabulary.types)), n3(RDFS.subClassOf)
    rows = run.kg.select(
        f"SELECT DISTINCT ?c WHERE {{"
        f" {{ SELECT ?c WHERE {{ VALUES ?t {{ {types} }} ?v ?t ?c }} LIMIT {SAMPLE} }}"
        f" UNION {{ ?c {above} ?other }} UNION {{ ?other {above} ?c }} }} LIMIT {MOST_CLASSES}"
    ).rows
    iris = {c for (c,) in rows if isinstance(c, URIRef) and not str(c).startswith(SCHEMA_SPACES)}
    return dict(run.kg.names(sorted(iris)))


def _with_neighbours(retrieved: Retrieved, question: str, run: Run) -> Retrieved:
    """Homonyms with what their relations lead to, first what the question names: "member of: Marketing"."""
    same = [candidate for candidate in retrieved.candidates if candidate.relations]
    if len(same) < 2:
        return retrieved
    values = _neighbours([candidate.iri for candidate in same], run)
    asked = {*normal(question).split()} - {*normal(retrieved.entity).split()}

    def shown(candidate: Candidate, relation: str) -> str:
        shared = {
            label: len(asked & {*normal(label).split()})
            for label in values.get((candidate.iri, relation), ())
        }
        best = sorted(shared, key=lambda label: (-shared[label], label))[:MOST_VALUES]
        named = [label for label in best if shared[label]] or best[:1]
        words = ", ".join(label[:MOST_CHARS] for label in named)
        return f"{relation}: {words}" if words else relation

    with_values = (
        replace(candidate, relations=tuple(shown(candidate, relation) for relation in candidate.relations))
        for candidate in retrieved.candidates
    )
    return replace(retrieved, candidates=tuple(with_values))


def _neighbours(iris: Sequence[URIRef], run: Run) -> dict[tuple[URIRef, str], set[str]]:
    """The names of what each relation of vertices leads to, as far as MOST_NEAR triples tell."""
    parts = " UNION ".join(
        f'{{ SELECT ({n3(iri)} AS ?v) ?p ?o ("{way}" AS ?way) WHERE {{ {triple} }} LIMIT {MOST_NEAR} }}'
        for iri in iris
        for way, triple in (("", f"{n3(iri)} ?p ?o"), (" (incoming)", f"?o ?p {n3(iri)}"))
    )
    rows = [
        row for row in run.kg.select(f"SELECT ?v ?p ?o ?way WHERE {{ {parts} }}").rows if row[2] != row[0]
    ]
    names = run.kg.names(sorted({end for _, p, o, _ in rows for end in (p, o) if isinstance(end, URIRef)}))
    values: dict[tuple[URIRef, str], set[str]] = {}
    for vertex, predicate, value, way in rows:
        if isinstance(vertex, URIRef) and isinstance(predicate, URIRef) and not isinstance(value, BNode):
            label = names[value] if isinstance(value, URIRef) else str(value)
            values.setdefault((vertex, f"{names[predicate]}{way}"), set()).add(label)
    return values
