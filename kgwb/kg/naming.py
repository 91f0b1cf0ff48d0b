"""Which names the things of a local graph have, and which of them can be searched for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from pyoxigraph import Literal, NamedNode, Store
from rdflib import URIRef
from rdflib.namespace import OWL, RDF, RDFS

from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import Label
from kgwb.kg.sparql import n3
from kgwb.kg.text import local_name

WIKIBASE = "http://wikiba.se/ontology#"
_CLAIMS = ("directClaim", "claim", "statementProperty", "qualifier")
SCHEMA_SPACES = (str(RDF), str(RDFS), str(OWL), WIKIBASE)
"""What these say of a predicate or class are no facts about it."""
SCHEMA_CLASSES = (
    RDF.Property,
    RDFS.Class,
    OWL.Class,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.AnnotationProperty,
    URIRef(WIKIBASE + "Property"),
)


def collect(store: Store, vocabulary: Vocabulary) -> list[Label]:
    """The labels of every IRI that has one, or that facts are told about: such a vertex is named by its IRI.

    Predicates and classes have names but cannot be searched for, unless facts are told about them as of any
    other vertex.
    """
    # Side by side, as both mostly wait for Oxigraph.
    with ThreadPoolExecutor(1) as executor:
        asked = executor.submit(_Things, store, vocabulary)
        ranked = _ranked(store, vocabulary)
        things = asked.result()
    schema = ranked.keys() & things.schema
    schema -= things.ordinary(schema)
    found: list[Label] = []
    for iri, ranks in ranked.items():
        searched = iri not in schema
        texts = dict.fromkeys(rank[-1] for rank in sorted(ranks))
        found.extend(Label(iri, text, not place, searched) for place, text in enumerate(texts))
    found.extend(Label(iri, local_name(iri), True, True) for iri in things.unlabelled)
    found.extend(_claims(store, ranked, things.unlabelled))
    return found


def _ranked(store: Store, vocabulary: Vocabulary) -> dict[str, list[tuple[bool, int, int, str]]]:
    """The labels of every IRI with their rank: first those in a preferred language, then by predicate."""
    found: dict[str, list[tuple[bool, int, int, str]]] = {}
    for order, predicate in enumerate(vocabulary.labels):
        for quad in store.quads_for_pattern(None, NamedNode(predicate), None, None):
            subject, label = quad.subject, quad.object
            if isinstance(label, Literal) and isinstance(subject, NamedNode):
                rank = language_rank(label.language or "", vocabulary.languages)
                if text := label.value.strip():
                    labels = found.setdefault(subject.value, [])
                    labels.append((rank >= len(vocabulary.languages), order, rank, text))
    return found


def _claims(
    store: Store, ranked: Mapping[str, list[tuple[bool, int, int, str]]], unlabelled: Collection[str]
) -> Iterator[Label]:
    """Wikidata's predicates, named by the property entity they stand for."""
    for claim in _CLAIMS:
        for quad in store.quads_for_pattern(None, NamedNode(WIKIBASE + claim), None, None):
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode):
                entity, predicate = quad.subject.value, quad.object.value
                if entity in ranked and predicate not in ranked and predicate not in unlabelled:
                    yield Label(predicate, min(ranked[entity])[-1], True, False)


@lru_cache(maxsize=1024)
def language_rank(language: str, languages: tuple[str, ...]) -> int:
    """The place of a language tag in the order of preference ("en-GB" is "en"); past its end if none."""
    language = language.lower()
    for rank, preferred in enumerate(languages):
        if language == preferred or (preferred and language.startswith(preferred + "-")):
            return rank
    return len(languages)


class _Things:
    """What Oxigraph says about the things of a store, whatever their labels."""

    def __init__(self, store: Store, vocabulary: Vocabulary) -> None:
        self._store = store
        predicates = _column(store, "?s ?v ?o")
        hidden = {str(predicate) for predicate in vocabulary.hidden}
        silent = [
            n3(URIRef(iri)) for iri in sorted(predicates) if iri in hidden or iri.startswith(SCHEMA_SPACES)
        ]
        only = " && ".join(f"!sameTerm(?p, {predicate})" for predicate in silent) or "true"
        self._facts = (f"?v ?p ?o FILTER({only})", f"?s ?p ?v FILTER({only})")
        labels, types, schema = (
            " ".join(map(n3, iris)) for iris in (vocabulary.labels, vocabulary.types, SCHEMA_CLASSES)
        )
        # MINUS on distinct terms is far faster than FILTER NOT EXISTS: it compares numbers and reads no text.
        labelled = f"MINUS {{ VALUES ?l {{ {labels} }} ?v ?l ?text }}"
        self.unlabelled = _column(
            store, *(f"{{ SELECT DISTINCT ?v {{ {told} }} }} {labelled}" for told in self._facts)
        )
        """IRIs without label that facts are told about."""
        self.schema = predicates | _column(
            store, f"VALUES ?t {{ {types} }} ?s ?t ?v", f"VALUES ?c {{ {schema} }} ?v {n3(RDF.type)} ?c"
        )
        """Predicates and classes."""

    def ordinary(self, iris: Collection[str]) -> set[str]:
        """Those of the IRIs that facts are told about."""
        listed = " ".join(n3(URIRef(iri)) for iri in sorted(iris))
        return (
            _column(self._store, *(f"VALUES ?v {{ {listed} }} {told}" for told in self._facts))
            if iris
            else set()
        )


def _column(store: Store, *patterns: str) -> set[str]:
    """The IRIs that ?v stands for in any of the patterns."""
    found: set[str] = set()
    for pattern in patterns:
        rows: Any = store.query(f"SELECT DISTINCT ?v WHERE {{ {pattern} }}", use_default_graph_as_union=True)
        found.update(term.value for (term,) in rows if isinstance(term, NamedNode))
    return found
