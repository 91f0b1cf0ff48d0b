"""Entity retriever: the vertices whose label holds the words of an entity (Chatty-KG, section 5.1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import URIRef

from kgwb.flow import Candidate, Retrieved
from kgwb.kg.base import Hit
from kgwb.kg.queries import describe
from kgwb.kg.sparql import n3
from kgwb.run import Run, agent


@agent("entity_retriever", subject="entity", kind="search")
def retrieve(entity: str, run: Run) -> Retrieved:
    """At most v_limit candidates, best first; ``fast`` keeps those worth showing and tells what they are.

    ``fast`` keeps all exact matches where there are any, else the best ``shown_candidates``.
    """
    settings = run.settings
    found = run.kg.search(entity, settings.v_limit)
    if not settings.fast:
        plain = tuple(Candidate(hit.iri, hit.label, hit.score) for hit in found.hits)
        return Retrieved(entity, plain, found.how, found.query, len(found.hits))
    exact = tuple(hit for hit in found.hits if hit.score >= 1)
    shown = (exact or found.hits)[: settings.shown_candidates]
    if len(found.hits) >= settings.v_limit:
        run.note(f"v_limit cut the search for {entity!r} at {settings.v_limit} vertices")
    return Retrieved(entity, _described(shown, run), found.how, found.query, len(found.hits))


def _described(hits: tuple[Hit, ...], run: Run) -> tuple[Candidate, ...]:
    """Types and descriptions for the choice; homonyms also show their relations."""
    if len(hits) == 1 and hits[0].score >= 1:  # nothing to tell apart
        return tuple(Candidate(hit.iri, hit.label, hit.score) for hit in hits)
    iris = [hit.iri for hit in hits]
    known = describe(run.kg, iris)
    relations = _relations(iris, run) if hits and hits[0].score >= 1 else {}
    candidates = []
    for hit in hits:
        types, description = known.get(hit.iri, ((), ""))
        relates = relations.get(hit.iri, ())
        candidates.append(Candidate(hit.iri, hit.label, hit.score, types, description, relates))
    return tuple(candidates)


def _relations(iris: Sequence[URIRef], run: Run) -> dict[URIRef, tuple[str, ...]]:
    """Names of the predicates at each vertex; those of others to it are marked."""
    values = " ".join(map(n3, iris))
    found: dict[URIRef, dict[str, None]] = {iri: {} for iri in iris}
    for triple, shown in (("?v ?p ?o", "{}"), ("?o ?p ?v", "{} (incoming)")):
        rows = run.kg.select(f"SELECT DISTINCT ?v ?p WHERE {{ VALUES ?v {{ {values} }} {triple} }}")
        hidden = run.kg.vocabulary.hidden
        iris_only = [(v, p) for v, p in rows.rows if isinstance(v, URIRef) and isinstance(p, URIRef)]
        pairs = [(v, p) for v, p in iris_only if v in found and p not in hidden]
        names = run.kg.names([p for _, p in pairs])
        for vertex, name in sorted((v, names[p]) for v, p in pairs):
            found[vertex][shown.format(name)] = None
    return {iri: tuple(names) for iri, names in found.items()}
