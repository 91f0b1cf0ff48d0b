"""The labels of a local graph: which of its IRIs have which names, and which can be searched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, parse
from rdflib import URIRef
from rdflib.namespace import RDF

from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_NAMESPACES, WIKIBASE_NAMESPACE, Vocabulary
from kgwb.kg.label_index import Label
from kgwb.kg.sparql import n3, string_literal, values_clause
from kgwb.kg.text import language_rank
from kgwb.terms import name_from_iri

_CLAIM_PREDICATES = ("directClaim", "claim", "statementProperty", "qualifier")
"""Predicates of Wikibase from a property entity to the predicates of its triples."""
_NAMES_OF_NAME_PREDICATES = ("name", "full name", "label", "title")
"""What a graph calls a label predicate of its own, the preferred first: ``:name``, ``:fullName``."""
_LABEL_LINE = rb"""(?x)
\n(< ([^>\n]*) > \x20 < (%s) > \x20
  " ([^"\\\n]* (?: \\. [^"\\\n]* )*) " (?: @([A-Za-z]+(?:-[A-Za-z0-9]+)*) )? .*)
"""
"""A line of N-Quads with a label: the line, the IRI, the predicate, the text, and its language.

It begins with the end of the line before: Python finds that fastest.
"""
LabelRank = tuple[bool, int, int, str]
"""By which the labels of an IRI are sorted, the preferred first.

Whether its language is not preferred, the position of its predicate in the vocabulary, the position
of its language there, and the text.
"""


class _SchemaScan(NamedTuple):
    """The vertices that facts are about, and those of the schema."""

    fact_patterns: tuple[str, str]
    """Patterns whose ?v is the subject, and the object, of a triple that is a fact."""
    unlabelled: set[str]
    """IRIs without a label that a fact is about."""
    schema: set[str]
    """Predicates and classes."""


class LabelReader:
    """Reads the labels of a graph from its N-Quads, while they are loaded into a store.

    Reading them from the store takes three times as long, as it looks up the text of each term.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._orders: dict[URIRef, int] = {}
        """The position of each label predicate in the vocabulary."""
        patterns = []
        for order, predicate in enumerate(vocabulary.labels):
            self._orders[predicate] = order
            written = str(predicate).encode()
            patterns.append(re.escape(written))
        any_predicate = b"|".join(patterns)
        self._labels = re.compile(_LABEL_LINE % any_predicate)
        self._rank_starts: dict[tuple[bytes, bytes], tuple[bool, int, int]] = {}
        """What the ranks of a predicate and a language begin with."""
        self.ranked: dict[str, list[LabelRank]] = defaultdict(list)
        """The labels so far by IRI, each as the key that it is sorted by, unsorted."""

    def read(self, lines: bytes) -> None:
        """Add the labels of whole lines of N-Quads, in the form that Oxigraph writes."""
        matches = self._labels.findall(b"\n" + lines)
        for line, iri, predicate, text, language in matches:
            if b"\\" in line:
                self._read_escaped(line)
                continue
            label = text.decode().strip()
            if not label:
                continue
            start = self._rank_starts.get((predicate, language))
            if start is None:
                order = self._orders[URIRef(predicate.decode())]
                rank = rank_label("", language.decode(), order, self._vocabulary)
                start = rank[:-1]
                self._rank_starts[predicate, language] = start
            ranks = self.ranked[iri.decode()]
            ranks.append((*start, label))

    def _read_escaped(self, line: bytes) -> None:
        """Add the label of a line that has escaped characters."""
        for quad in parse(line, RdfFormat.N_QUADS, lenient=True):
            order = self._orders[URIRef(quad.predicate.value)]
            _add_rank(self.ranked, quad, order, self._vocabulary)


def collect_labels(
    store: Store, vocabulary: Vocabulary, ranked: Mapping[str, list[LabelRank]] | None = None
) -> list[Label]:
    """Return the labels of all IRIs that have one, or that are subject or object of a fact.

    A fact is a triple whose predicate is not excluded by the vocabulary, as labels are, and not in
    a schema's namespace. An IRI without a label is named by its values of a predicate with one of
    _NAMES_OF_NAME_PREDICATES, else by its local part, or, if it is a predicate of Wikidata, by its
    property entity. Predicates and classes are not searchable, unless
    they are also subject or object of a fact. An IRI has each text once. The first is its display
    name, by the order of ``rank_label``.

    ``ranked`` are the labels in the graph, if a LabelReader has read them.
    """
    with ThreadPoolExecutor(1) as executor:
        # At the same time, because both mostly wait for Oxigraph.
        scan = executor.submit(_scan_schema, store, vocabulary)
        if ranked is None:
            ranked = _rank_stored_labels(store, vocabulary)
        fact_patterns, unlabelled, schema = scan.result()

    hidden = schema & ranked.keys()
    if hidden:
        iris = map(URIRef, sorted(hidden))
        values = values_clause("?v", iris)
        as_subject, as_object = fact_patterns
        in_facts = _select_iris(store, f"{values} {as_subject}", f"{values} {as_object}")
        hidden -= in_facts

    labels = []
    for iri, ranks in ranked.items():
        is_searchable = iri not in hidden
        if len(ranks) == 1:  # most IRIs
            text = ranks[0][-1]
            labels.append(Label(iri, text, True, is_searchable))
            continue
        texts = _distinct_texts(ranks)
        labels += _labels_of_iri(iri, texts, is_searchable)
    own_names = _find_own_names(store, unlabelled, vocabulary)
    for iri in unlabelled:
        ranks = own_names.get(iri, [])
        texts = _distinct_texts(ranks)
        if not texts:
            texts = [name_from_iri(iri)]
        labels += _labels_of_iri(iri, texts, True)
    for predicate, entity in _find_claim_predicates(store):
        has_name = predicate in ranked or predicate in unlabelled
        if entity in ranked and not has_name:
            best = min(ranked[entity])
            labels.append(Label(predicate, best[-1], True, False))
    return labels


def _distinct_texts(ranks: Iterable[LabelRank]) -> list[str]:
    """Return each text of the labels of an IRI once, the best first."""
    texts = [rank[-1] for rank in sorted(ranks)]
    distinct_texts = dict.fromkeys(texts)
    return list(distinct_texts)


def _labels_of_iri(iri: str, texts: Iterable[str], is_searchable: bool) -> Iterator[Label]:
    """Yield the labels of an IRI, of which the first text is the preferred one."""
    is_preferred = True
    for text in texts:
        yield Label(iri, text, is_preferred, is_searchable)
        is_preferred = False


def _rank_stored_labels(store: Store, vocabulary: Vocabulary) -> Mapping[str, list[LabelRank]]:
    """Return the labels in the graph by IRI, each as the key that it is sorted by, unsorted."""
    return _rank_values(store, vocabulary.labels, vocabulary)


def _find_own_names(
    store: Store, unlabelled: Collection[str], vocabulary: Vocabulary
) -> Mapping[str, list[LabelRank]]:
    """Return the names of IRIs without a label by name predicates of the graph's own, as their keys.

    Many small graphs have such a predicate, ``:name``, and no label at all.
    """
    if not unlabelled:
        return {}
    by_name: dict[str, list[str]] = defaultdict(list)
    for predicate in sorted(_select_iris(store, "?s ?v ?o")):
        name = name_from_iri(predicate).casefold()
        by_name[name].append(predicate)
    predicates: list[str] = []
    for name in _NAMES_OF_NAME_PREDICATES:
        predicates += by_name.get(name, [])
    ranked = _rank_values(store, predicates, vocabulary)
    own_names = {}
    for iri, ranks in ranked.items():
        if iri in unlabelled:
            own_names[iri] = ranks
    return own_names


def _rank_values(
    store: Store, predicates: Iterable[str], vocabulary: Vocabulary
) -> Mapping[str, list[LabelRank]]:
    """Return the values of predicates by IRI, each as the key that a label is sorted by, unsorted.

    ``predicates`` are in their order of preference. Values of blank nodes, values that are no
    literals, and blank texts are left out.
    """
    ranked: dict[str, list[LabelRank]] = defaultdict(list)
    for order, predicate in enumerate(predicates):
        node = NamedNode(predicate)
        quads = store.quads_for_pattern(None, node, None, None)
        for quad in quads:
            _add_rank(ranked, quad, order, vocabulary)
    return ranked


def _add_rank(
    ranked: dict[str, list[LabelRank]], quad: Quad, order: int, vocabulary: Vocabulary
) -> None:
    """Add the label of a quad to those of its IRI, as the key that it is sorted by.

    Nothing is added for a blank node, a value that is no literal, and a blank text.
    """
    iri = quad.subject
    label = quad.object
    if not isinstance(iri, NamedNode):
        return
    if not isinstance(label, Literal):
        return
    text = label.value.strip()
    if text:
        rank = rank_label(text, label.language, order, vocabulary)
        ranked[iri.value].append(rank)


def rank_label(text: str, language: str | None, order: int, vocabulary: Vocabulary) -> LabelRank:
    """Return the key that a label of an IRI is sorted by: the smallest is the best.

    Labels in the vocabulary's languages come before others. Then the predicate decides, of which
    ``order`` is the position in the vocabulary, then the language, then the alphabet.
    """
    languages = vocabulary.languages
    position = language_rank(language or "", languages)
    is_foreign = position >= len(languages)
    return is_foreign, order, position, text


def _find_claim_predicates(store: Store) -> Iterator[tuple[str, str]]:
    """Yield the predicates of Wikidata's triples, each with the property entity that has its label.

    An example are ``wdt:P50`` and ``wd:P50``, as IRIs.
    """
    for claim in _CLAIM_PREDICATES:
        wikibase_predicate = NamedNode(WIKIBASE_NAMESPACE + claim)
        quads = store.quads_for_pattern(None, wikibase_predicate, None, None)
        for quad in quads:
            entity = quad.subject
            predicate = quad.object
            if isinstance(entity, NamedNode) and isinstance(predicate, NamedNode):
                yield predicate.value, entity.value


def _scan_schema(store: Store, vocabulary: Vocabulary) -> _SchemaScan:
    """Find the IRIs without a label that facts are about, and the predicates and classes.

    A class is the type of a vertex, or an instance of one of SCHEMA_CLASSES.
    """
    predicates = _select_iris(store, "?s ?v ?o")
    is_fact = _fact_filter(predicates, vocabulary)
    as_subject = f"?v ?p ?o {is_fact}"
    as_object = f"?s ?p ?v {is_fact}"
    as_either = f"{{ {as_subject} }} UNION {{ {as_object} }}"

    # MINUS on distinct terms is far faster in Oxigraph than FILTER NOT EXISTS: it compares the
    # numbers of terms and reads no text.
    labels = values_clause("?l", vocabulary.labels)
    labelled = f"MINUS {{ {labels} ?v ?l ?text }}"
    in_facts = f"{{ SELECT DISTINCT ?v {{ {as_either} }} }}"
    unlabelled = _select_iris(store, f"{in_facts} {labelled}")

    types = values_clause("?t", vocabulary.types)
    schema_classes = values_clause("?c", SCHEMA_CLASSES)
    used = f"{types} ?s ?t ?v"
    declared = f"{schema_classes} ?v {n3(RDF.type)} ?c"
    classes = _select_iris(store, used, declared)
    fact_patterns = (as_subject, as_object)
    schema = predicates | classes
    return _SchemaScan(fact_patterns, unlabelled, schema)


def fact_condition(vocabulary: Vocabulary) -> str:
    """Return a SPARQL condition that is true if the predicate ?p is that of a fact.

    A predicate that the vocabulary excludes, and one in the namespaces of RDF, RDFS, OWL and
    Wikibase, is not that of a fact. The condition holds for any graph, so it is written without
    looking at one.
    """
    predicates = sorted(vocabulary.excluded_predicates)
    excluded = ", ".join(map(n3, predicates))
    conditions = [f"?p NOT IN ({excluded})"]
    for namespace in SCHEMA_NAMESPACES:
        start = string_literal(namespace)
        conditions.append(f"!STRSTARTS(STR(?p), {start})")
    return " && ".join(conditions)


def _fact_filter(predicates: Iterable[str], vocabulary: Vocabulary) -> str:
    """Return a SPARQL FILTER that keeps triples whose predicate ?p is that of a fact.

    ``predicates`` are all that the graph has. The filter names those of them that are excluded,
    which is faster in Oxigraph than ``fact_condition``. If none is, the filter is always true.
    """
    excluded = set(map(str, vocabulary.excluded_predicates))
    conditions = []
    for predicate in sorted(predicates):
        is_of_schema = predicate.startswith(SCHEMA_NAMESPACES)
        if is_of_schema or predicate in excluded:
            term = n3(URIRef(predicate))
            conditions.append(f"!sameTerm(?p, {term})")
    if not conditions:
        return "FILTER(true)"
    condition = " && ".join(conditions)
    return f"FILTER({condition})"


def _select_iris(store: Store, *patterns: str) -> set[str]:
    """Return the IRIs that the variable ?v has in a solution of any of the patterns.

    All named graphs are read as one with the default graph.
    """
    iris: set[str] = set()
    for pattern in patterns:
        query = f"SELECT DISTINCT ?v WHERE {{ {pattern} }}"
        select: Callable[[], Any] = partial(store.query, query, use_default_graph_as_union=True)
        # No variable holds the solutions. Only the thread that made them may free them, and a
        # variable can live on in the frame of a traceback after its thread has ended.
        for (term,) in select():
            if isinstance(term, NamedNode):
                iris.add(term.value)
    return iris
