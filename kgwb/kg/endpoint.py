"""A SPARQL endpoint as a graph: queries, label search, and names for IRIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from rdflib import Literal, URIRef

from kgwb.errors import GraphError
from kgwb.kg.base import (
    WIKIBASE_NAMESPACE,
    Graph,
    Hit,
    QueryLimits,
    ResultSet,
    SearchResult,
    Vocabulary,
)
from kgwb.kg.dialects import (
    SEARCH_STAGES,
    Dialect,
    LabelledVertices,
    choose_dialect,
    labelled_vertices,
    parse_dialect,
    search_labels,
)
from kgwb.kg.label_search import lowercase_words, match_exactly, normalize, rank_labels
from kgwb.kg.labels import LabelRank, rank_label
from kgwb.kg.queries import IRIS_PER_NAME_QUERY, find_label_usage, find_schema_terms
from kgwb.kg.sparql import (
    is_valid_iri,
    string_literal,
    union_over_predicates,
    values_clause,
)
from kgwb.kg.sparql_client import SparqlClient
from kgwb.terms import Triple, name_from_iri, split_into_batches

MAX_VALUES_PER_QUERY = 200
"""Terms in one VALUES clause. Virtuoso 7.2.5 silently loses rows of a clause of about 700."""
MAX_CASE_VARIANTS = 4
"""How many spellings of a label ``_case_variants`` returns at most."""
OVERFETCH_FACTOR = 4
"""How many times the hits wanted are fetched. Some are left out, or are labels of one vertex."""
LabelUsage = tuple[tuple[URIRef, ...], tuple[str, ...]]
"""Label predicates, and languages of labels."""


class Endpoint(SparqlClient):
    """A graph behind a URL.

    Everything is asked of the endpoint. Only the dialect, and the label predicates and languages
    that the graph has, are kept.
    """

    remote = True

    def __init__(
        self,
        url: str,
        *,
        dialect: str | Dialect | None = None,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
    ) -> None:
        self._requested_dialect: Dialect | None = None
        if dialect is not None:
            self._requested_dialect = parse_dialect(dialect)
        super().__init__(url, vocabulary, limits)
        self.whole_graph: Graph = self
        self._label_usages: list[LabelUsage] = []
        """At most one. Copies of the endpoint with other limits have it in common."""

    def __repr__(self) -> str:
        return f"Endpoint({self.source!r})"

    def without(self, *triples: Triple) -> Graph:
        """Raise GraphError: an endpoint is not copied, so it cannot be read without some triples."""
        raise GraphError(
            "no triple of an endpoint can be muted: that takes a copy of the graph",
            hint="CONSTRUCT the part that the question needs, write it to a file, and open the file",
        )

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect that labels are searched in: the one asked for, else see ``choose_dialect``.

        Raises GraphError if the endpoint fails while it is probed.
        """
        dialect = self._requested_dialect or choose_dialect(self)
        self.is_virtuoso = dialect.name == "virtuoso"
        return dialect

    @property
    def _label_usage(self) -> LabelUsage:
        """The label predicates of the graph, and the languages of its labels. Asked for once."""
        if not self._label_usages:
            self._label_usages.append(find_label_usage(self))
        return self._label_usages[0]

    def search(self, text: str, limit: int) -> SearchResult:
        """Return at most ``limit`` vertices with a label that has the words of a text, best first.

        The stages of the dialect are tried in turn, until one finds a vertex: all words, beginnings
        of words, any word. A stage that the engine cannot search in is skipped. Misspelled words
        are not corrected. Labels that differ from the text only in capitals are found at every
        stage. Predicates and classes are left out. The result names the stage that found the
        vertices, "nothing" if none did, and the last search query that was sent.
        """
        words = lowercase_words(text)
        equal = self._find_case_variants([text])
        matching: LabelledVertices = []
        query = ""
        for stage in SEARCH_STAGES:
            if words:
                count = OVERFETCH_FACTOR * limit
                found = search_labels(self, self.dialect, text, words, count, stage)
                if found is None:
                    continue
                matching, query = found
            labels = [(iri, label, normalize(label)) for iri, label in equal + matching]
            ranked = rank_labels(text, labels, len(labels))
            hits = self._without_schema_terms(ranked, limit)
            if hits:
                return SearchResult(hits, stage, query)
        return SearchResult((), "nothing", query)

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """Return the vertices that have each text as a label, sorted by IRI.

        Texts that are no label are left out. Of letter case only four forms are tried: the text as
        it is, in lower case, in title case, and with only the first capital. So a label in mixed
        case such as "iPhone" is not found by "IPHONE". Predicates and classes are left out. Several
        queries are sent if one would need more than MAX_VALUES_PER_QUERY literals.
        """
        if not labels:
            return {}
        _, languages = self._label_usage
        literals_per_label = MAX_CASE_VARIANTS * max(1, len(languages))
        labels_per_query = max(1, MAX_VALUES_PER_QUERY // literals_per_label)
        distinct_labels = list(dict.fromkeys(labels))
        hits: list[Hit] = []
        for chunk in split_into_batches(distinct_labels, labels_per_query):
            found = self._find_case_variants(chunk)
            hits += [Hit(URIRef(iri), label, 1.0) for iri, label in found]
        vertices = self._without_schema_terms(hits, len(hits))
        return match_exactly(labels, [(hit.iri, hit.label) for hit in vertices])

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """Return a display name for each IRI: its best label, else words from the IRI.

        A label in a preferred language of the vocabulary is better than one in another language. An
        IRI that cannot be written in a query is named without a query. The graph is asked for
        IRIS_PER_NAME_QUERY IRIs at a time, and again for those without a label in a preferred
        language.
        """
        labels: dict[str, str] = {}
        for chunk in split_into_batches(iris, IRIS_PER_NAME_QUERY):
            distinct_iris = dict.fromkeys(chunk)
            valid_iris = list(filter(is_valid_iri, distinct_iris))
            labels |= self._best_labels(valid_iris, in_preferred_language=True)
            unlabelled = [iri for iri in valid_iris if str(iri) not in labels]
            labels |= self._best_labels(unlabelled, in_preferred_language=False)
        names = {}
        for iri in iris:
            names[iri] = labels.get(str(iri)) or name_from_iri(iri)
        return names

    def _find_case_variants(self, labels: Iterable[str]) -> LabelledVertices:
        """Return the vertices whose label is one of these texts, or a case variant of one.

        Each is a pair of an IRI and its label, in the endpoint's order. The variants are asked for
        as literals in every language of the graph, because the endpoint looks literals up in its
        index of triples. One query is sent, and none without labels.
        """
        variants: set[str] = set()
        for label in labels:
            variants |= _case_variants(label)
        predicates, languages = self._label_usage
        literals = []
        for variant in sorted(variants):
            for language in languages:
                literals.append(Literal(variant, lang=language or None))
        if not literals:
            return []
        label_values = values_clause("?label", literals)
        predicate_values = values_clause("?p", predicates)
        query = (
            f"SELECT DISTINCT ?v ?label WHERE {{ {label_values}"
            f" {predicate_values} ?v ?p ?label FILTER(isIRI(?v)) }}"
        )
        result = self.select_complete(query)
        return labelled_vertices(result)

    def _without_schema_terms(self, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
        """Return the first ``limit`` hits that are neither predicates nor classes, in order.

        Predicates and classes have labels, but they are no answer to a label search. Hits are
        looked up in the graph in chunks of MAX_VALUES_PER_QUERY, until there are enough.
        """
        kept: list[Hit] = []
        for chunk in split_into_batches(hits, MAX_VALUES_PER_QUERY):
            schema_terms = find_schema_terms(self, [hit.iri for hit in chunk])
            kept += [hit for hit in chunk if hit.iri not in schema_terms]
            if len(kept) >= limit:
                break
        return tuple(kept[:limit])

    def _best_labels(
        self, iris: Sequence[URIRef], *, in_preferred_language: bool
    ) -> dict[str, str]:
        """Return the best label of each IRI that has one, by the IRI as a string.

        Only labels in a preferred language count if ``in_preferred_language``, else labels in any.
        A predicate of Wikidata also has the labels of the property entity that it stands for. IRIs
        without such a label are left out. One query is sent, and none without IRIs or in a graph
        without labels.
        """
        predicates, _ = self._label_usage
        if not iris or not predicates:
            return {}
        language_filter = ""
        if in_preferred_language:
            condition = " || ".join(map(_language_condition, self.vocabulary.languages))
            language_filter = f"FILTER({condition})"
        vertices = values_clause("?v", iris)
        entities = f"{vertices} ?e <{WIKIBASE_NAMESPACE}directClaim> ?v ."
        own = union_over_predicates(vertices, "?v", predicates)
        of_entities = union_over_predicates(entities, "?e", predicates)
        result = self.select_complete(
            f"SELECT ?v ?p ?l WHERE {{ {own} UNION {of_entities} {language_filter} }}"
        )
        return _pick_best_labels(result, self.vocabulary)


def _case_variants(label: str) -> set[str]:
    """Return a label as it is, in lower case, in title case, and with only the first capital."""
    return {label, label.lower(), label.title(), label.capitalize()}


def _language_condition(language: str) -> str:
    """Return the SPARQL condition that the label ?l is in a language; "" is for none."""
    if not language:
        return 'LANG(?l) = ""'
    return f"LANGMATCHES(LANG(?l), {string_literal(language)})"


def _pick_best_labels(result: ResultSet, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the best label of each vertex in a result with the columns vertex, predicate, label.

    A label in a preferred language is better than another one. Then the order of the label
    predicates decides, then that of the languages, then the alphabet. Blank labels are ignored.
    """
    best: dict[str, LabelRank] = {}
    for vertex, predicate, label in result.rows:
        if not isinstance(label, Literal) or predicate not in vocabulary.all_labels:
            continue
        text = label.strip()
        if not text:
            continue
        order = vocabulary.all_labels.index(URIRef(predicate))
        rank = rank_label(text, label.language, order, vocabulary)
        iri = str(vertex)
        if iri not in best or rank < best[iri]:
            best[iri] = rank
    return {iri: text for iri, (_, text) in best.items()}
