"""Which names the things of a local graph have, and which of them can be searched for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyoxigraph import Literal, NamedNode, Store
from rdflib import URIRef
from rdflib.namespace import OWL, RDF, RDFS

from kgwb.kg.base import Vocabulary
from kgwb.kg.sparql import n3
from kgwb.kg.text import local_name

WIKIBASE = "http://wikiba.se/ontology#"
_CLAIMS = ("directClaim", "claim", "statementProperty", "qualifier")
_SCHEMA = (str(RDF), str(RDFS), str(OWL), WIKIBASE)
_SCHEMA_CLASSES = (
    RDF.Property,
    RDFS.Class,
    OWL.Class,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.AnnotationProperty,
    URIRef(WIKIBASE + "Property"),
)


def collect(store: Store, vocabulary: Vocabulary) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The name to show for each IRI that has one, and the labels of those that can be searched for.

    A vertex without label is named by its IRI. Predicates and classes have names but cannot be searched for,
    unless facts are told about them as of any other vertex.
    """
    found = _labels(store, vocabulary)
    names = {iri: min(ranks)[-1] for iri, ranks in found.items()}
    for claim in _CLAIMS:
        for quad in store.quads_for_pattern(None, NamedNode(WIKIBASE + claim), None, None):
            if isinstance(quad.object, NamedNode) and isinstance(quad.subject, NamedNode):
                name = names.get(quad.subject.value)
                names.setdefault(quad.object.value, name or local_name(quad.object.value))
    predicates = _column(store, "?s ?v ?o")
    told = _told(vocabulary, predicates)
    labels = " ".join(map(n3, vocabulary.labels))
    # MINUS is far faster here than FILTER NOT EXISTS: it compares numbers and reads no text.
    unlabelled = _column(
        store, f"{{ {told} }} MINUS {{ VALUES ?l {{ {labels} }} ?v ?l ?text }} FILTER isIRI(?v)"
    )
    schema = found.keys() & (predicates | _classes(store, vocabulary))
    listed = " ".join(n3(URIRef(iri)) for iri in sorted(schema))
    ordinary = _column(store, f"VALUES ?v {{ {listed} }} {told}") if schema else set()
    names.update((iri, names.get(iri) or local_name(iri)) for iri in unlabelled)
    searched = sorted((found.keys() - schema) | ordinary | unlabelled)
    return names, {iri: _texts(found[iri]) if iri in found else [names[iri]] for iri in searched}


def _texts(ranks: Sequence[tuple[bool, int, int, str]]) -> list[str]:
    return list(dict.fromkeys(rank[-1] for rank in ranks))


def _labels(store: Store, vocabulary: Vocabulary) -> dict[str, list[tuple[bool, int, int, str]]]:
    """The labels of every IRI with their rank: first those in a preferred language, then by predicate."""
    found: dict[str, list[tuple[bool, int, int, str]]] = {}
    for order, predicate in enumerate(vocabulary.labels):
        for quad in store.quads_for_pattern(None, NamedNode(predicate), None, None):
            subject, label = quad.subject, quad.object
            if (
                isinstance(label, Literal)
                and isinstance(subject, NamedNode)
                and (text := label.value.strip())
            ):
                rank = language_rank(label.language or "", vocabulary.languages)
                other = rank >= len(vocabulary.languages)
                found.setdefault(subject.value, []).append((other, order, rank, text))
    return found


def language_rank(language: str, languages: tuple[str, ...]) -> int:
    """The place of a language tag in the order of preference ("en-GB" is "en"); past its end if none."""
    for rank, preferred in enumerate(languages):
        if language == preferred or (preferred and language.startswith(preferred + "-")):
            return rank
    return len(languages)


def _told(vocabulary: Vocabulary, predicates: Iterable[str]) -> str:
    """The pattern of what facts are told about."""
    hidden = {str(predicate) for predicate in vocabulary.hidden}
    silent = [n3(URIRef(iri)) for iri in sorted(predicates) if iri in hidden or iri.startswith(_SCHEMA)]
    only = " && ".join(f"!sameTerm(?p, {predicate})" for predicate in silent) or "true"
    return f"{{ ?v ?p ?o FILTER({only}) }} UNION {{ ?o ?p ?v FILTER({only}) }}"


def _classes(store: Store, vocabulary: Vocabulary) -> set[str]:
    types, schema = (" ".join(map(n3, iris)) for iris in (vocabulary.types, _SCHEMA_CLASSES))
    used = _column(store, f"VALUES ?t {{ {types} }} ?s ?t ?v FILTER isIRI(?v)")
    return used | _column(store, f"VALUES ?c {{ {schema} }} ?v {n3(RDF.type)} ?c FILTER isIRI(?v)")


def _column(store: Store, where: str) -> set[str]:
    query = f"SELECT DISTINCT ?v WHERE {{ {where} }}"
    return {row[0].value for row in store.query(query, use_default_graph_as_union=True)}  # type: ignore[union-attr]
