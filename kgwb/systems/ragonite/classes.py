"""Which table each subject of a graph is in (RAGonite, section 2.1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from rdflib import RDFS, BNode, URIRef

from kgwb.build import Term, Triple
from kgwb.build.graph import SCHEMA_NAMESPACES, Vocabulary
from kgwb.build.survey import GENERIC_CLASSES


class GraphClasses:
    """The classes of a graph, read from its triples.

    Classes that say nothing, such as owl:Thing, are types like others, but no superclasses.
    """

    def __init__(self, triples: Iterable[Triple], vocabulary: Vocabulary) -> None:
        """Read types, superclasses and schema terms from the triples, once."""
        self.types: dict[Term, set[URIRef]] = defaultdict(set)
        """The types of each term that has one."""
        self.used_classes: set[URIRef] = set()
        """The classes that are the type of a term."""
        self.schema_terms: set[Term] = set()
        """Classes, predicates, and terms whose type is one of RDF, RDFS, OWL or Wikibase."""
        self._superclasses: dict[Term, URIRef] = {}
        self._incoming_predicates: dict[Term, URIRef] = {}
        """The predicate that leads to a blank node."""
        for subject, predicate, object_ in triples:
            self.schema_terms.add(predicate)
            if isinstance(object_, BNode):
                _keep_least(self._incoming_predicates, object_, predicate)
            elif not isinstance(object_, URIRef):
                continue
            elif predicate in vocabulary.types:
                self.types[subject].add(object_)
            elif predicate == RDFS.subClassOf and object_ not in GENERIC_CLASSES:
                _keep_least(self._superclasses, subject, object_)

        for term, types in self.types.items():
            self.used_classes.update(types)
            specific_types = types.difference(GENERIC_CLASSES)
            if any(str(type_).startswith(SCHEMA_NAMESPACES) for type_ in specific_types):
                self.schema_terms.add(term)
        self.schema_terms.update(self.used_classes)

    def group_subjects(self, triples: Iterable[Triple]) -> dict[Term, URIRef | None]:
        """Return, for each subject, the IRI of the class whose table it is in.

        That is the highest superclass of its types; if there are several, the one with the most
        instances, then the first by IRI. For a blank node without a type it is the predicate that
        leads to it. For any other subject without a type it is None. Schema terms are left out,
        unless they are also instances of a class of the graph: a genre may be a class of films. The
        paper has a table for each combination of types instead.
        """
        root_classes: dict[Term, set[URIRef]] = {}
        sizes = Counter[URIRef]()
        for subject, _, _ in triples:
            if subject in root_classes:
                continue
            roots = self._find_root_classes(subject)
            if roots or subject not in self.schema_terms:
                root_classes[subject] = roots
                sizes.update(roots)

        groups: dict[Term, URIRef | None] = {}
        for subject, roots in root_classes.items():
            groups[subject] = self._incoming_predicates.get(subject)
            if roots:
                groups[subject] = min(roots, key=lambda root: (-sizes[root], root))
        return groups

    def _find_root_classes(self, term: Term) -> set[URIRef]:
        """Return the highest superclass of each type of a term; empty for a term without a type.

        Types that are generic classes, or those of RDF, RDFS, OWL or Wikibase, are left out.
        """
        types = self.types.get(term, set()).difference(GENERIC_CLASSES)
        own_types = [type_ for type_ in types if not str(type_).startswith(SCHEMA_NAMESPACES)]
        return {find_root_class(type_, self._superclasses) for type_ in own_types}


def find_root_class(class_iri: URIRef, superclasses: Mapping[Term, URIRef]) -> URIRef:
    """Return the highest superclass of a class, or the class itself if it has no superclass.

    ``superclasses`` has one superclass of each class. In a cycle, it is the first IRI, by order, of
    all that were visited.
    """
    visited = {class_iri}
    while class_iri in superclasses:
        class_iri = superclasses[class_iri]
        if class_iri in visited:
            return min(visited)
        visited.add(class_iri)
    return class_iri


def _keep_least(least: dict[Term, URIRef], key: Term, iri: URIRef) -> None:
    """Put an IRI in under a key, unless the IRI that is there comes first by order."""
    least[key] = min(iri, least.get(key, iri))
