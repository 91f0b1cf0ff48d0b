"""Which table each subject of a graph is in (RAGonite, section 2.1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from rdflib import RDFS, BNode, URIRef

from kgwb.build import GENERIC_CLASSES, SCHEMA_NAMESPACES, Term, Triple, Vocabulary

TableGroup = tuple[URIRef, ...]
"""The classes that a table is for, or the predicate that leads to its blank nodes, or nothing."""


class GraphClasses:
    """The classes of a graph, read from its triples.

    Classes that say nothing, such as owl:Thing, are types like others, but no superclasses.
    """

    def __init__(self, triples: Iterable[Triple], vocabulary: Vocabulary) -> None:
        """Read types, superclasses and schema terms from the triples, once."""
        self.types: dict[Term, set[URIRef]] = defaultdict(set)
        """The types of each term that has one."""
        self.class_sizes = Counter[URIRef]()
        """How many terms have a class as their type, for each class that is one."""
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
            self.class_sizes.update(types)
            specific_types = types.difference(GENERIC_CLASSES)
            if any(str(type_).startswith(SCHEMA_NAMESPACES) for type_ in specific_types):
                self.schema_terms.add(term)
        self.schema_terms.update(self.class_sizes)

    def group_subjects(
        self, triples: Iterable[Triple], *, by_combination: bool = False
    ) -> dict[Term, TableGroup]:
        """Return for each subject the IRIs whose table it is in.

        That is the highest superclass of its types; if there are several, the one with the most
        instances, then the first by IRI. ``by_combination``, these are all of its types, in the
        order of their IRIs (section 2.1, figure 2). For a blank node without a type it is the
        predicate that leads to it. For any other subject without a type there is none. Schema terms
        are left out, unless they are also instances of a class of the graph: a genre may be a class
        of films.
        """
        classes_by_subject: dict[Term, set[URIRef]] = {}
        sizes = Counter[URIRef]()
        for subject, _, _ in triples:
            if subject in classes_by_subject:
                continue
            classes = self._own_types(subject)
            if not by_combination:
                classes = {find_root_class(type_, self._superclasses) for type_ in classes}
            if classes or subject not in self.schema_terms:
                classes_by_subject[subject] = classes
                sizes.update(classes)

        groups: dict[Term, TableGroup] = {}
        for subject, classes in classes_by_subject.items():
            if classes and by_combination:
                groups[subject] = tuple(sorted(classes))
            elif classes:
                groups[subject] = (min(classes, key=lambda root: (-sizes[root], root)),)
            elif subject in self._incoming_predicates:
                groups[subject] = (self._incoming_predicates[subject],)
            else:
                groups[subject] = ()
        return groups

    def _own_types(self, term: Term) -> set[URIRef]:
        """Return the types of a term.

        Types that are generic classes, or those of RDF, RDFS, OWL or Wikibase, are left out.
        """
        types = self.types.get(term, set()).difference(GENERIC_CLASSES)
        return {type_ for type_ in types if not str(type_).startswith(SCHEMA_NAMESPACES)}


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
