"""A SPARQL endpoint as a graph: queries, label search, and names for IRIs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TypeVar

from rdflib import Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, QueryError
from kgwb.kg.base import (
    WIKIBASE_NAMESPACE,
    Graph,
    Hit,
    QueryLimits,
    ResultSet,
    SearchResult,
    Vocabulary,
    vocabulary_for_url,
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
from kgwb.kg.files import parse_response
from kgwb.kg.label_search import lowercase_words, match_exactly, normalize, rank_labels
from kgwb.kg.labels import LabelRank, rank_label
from kgwb.kg.local import read_triples
from kgwb.kg.queries import IRIS_PER_NAME_QUERY, find_label_usage, find_schema_terms
from kgwb.kg.responses import EndpointResponse
from kgwb.kg.sparql import (
    QueryForm,
    ValidatedQuery,
    is_valid_iri,
    match_both_strings,
    string_literal,
    union_over_predicates,
    validate_query,
    values_clause,
)
from kgwb.kg.sparql_client import TIMEOUT_HINT, EndpointUrl, rdf_format, send_query
from kgwb.terms import Triple, Triples, name_from_iri

VIRTUOSO_SORT_LIMIT_ERROR = "SR353"
"""Virtuoso sorts at most 10,000 rows in a query with a LIMIT, and any number in one without."""
VIRTUOSO_MIN_TIMEOUT_MS = 1000
MIN_SILENT_ROW_LIMIT = 100
"""The smallest number of rows that is taken for a possible limit of an endpoint."""
MAX_VALUES_PER_QUERY = 200
"""Terms in one VALUES clause. Virtuoso 7.2.5 silently loses rows of a clause of about 700."""
MAX_CASE_VARIANTS = 4
"""How many spellings of a label ``_case_variants`` returns at most."""
OVERFETCH_FACTOR = 4
"""How many times the hits wanted are fetched. Some are left out, or are labels of one vertex."""
_log = logging.getLogger("kgwb")
T = TypeVar("T")
LabelUsage = tuple[tuple[URIRef, ...], tuple[str, ...]]
"""Label predicates, and languages of labels."""


class Endpoint:
    """A graph behind a URL. Its methods wait for the reply, and raise GraphError.

    Everything is asked of the endpoint. Only the dialect, and the label predicates and languages
    that the graph has, are kept.

    An endpoint that runs out of time may send the part of a result that it has by then. This part
    is used only where it cannot be wrong: the rows of a monotonic query
    (``ValidatedQuery.is_monotonic``) are returned and marked as cut, and an ASK that is true is
    true. In all other cases GraphTimeoutError is raised: for no rows, counts, the first rows of an
    order, negation, a false ASK, triples, which cannot be marked as cut, and ``select_complete``.

    An endpoint may also have a limit of rows of its own and not say so. A result with a round
    number of rows is therefore looked into by one more query, see ``_has_unsent_row``.
    """

    remote = True
    muted: Triples = ()
    server = ""
    """The name of the server's software, known after the first query."""
    is_virtuoso = False
    """Whether the server is known to be Virtuoso, which can be told to stop in time."""

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
        self._address = EndpointUrl(url)
        self.source = self._address.source
        self.identity = self._address.identity
        self.vocabulary = vocabulary or vocabulary_for_url(url)
        self.limits = limits or QueryLimits()
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

    def select(self, query: str) -> ResultSet:
        """Run a SELECT query and return its rows, at most the row limit.

        Raises GraphTimeoutError if the endpoint ran out of time, unless it sent rows and the query
        is monotonic: then they are returned, marked as cut.
        """
        request, reply = self._validate_and_send(query, ("select",))
        result = self._parse_rows(request, reply)
        self._check_complete(reply, is_usable=request.is_monotonic and bool(result.rows))
        return result

    def select_complete(
        self, query: str, allowed_service_iri: str = "", *, require_valid_text: bool = False
    ) -> ResultSet:
        """Run a SELECT query whose rows must not be partial, and return them.

        It is for results that are used where nothing could show that rows are missing. Raises
        GraphTimeoutError if the endpoint ran out of time, even if it sent rows. The row limit still
        cuts the result, which is then marked as cut. The query may have SERVICE of
        ``allowed_service_iri`` only, which is for the label search of kgwb itself. With
        ``require_valid_text``, bytes that are not UTF-8 raise GraphError instead of being replaced.
        """
        request, reply = self._validate_and_send(query, ("select",), allowed_service_iri)
        if require_valid_text:
            reply.require_valid_text()
        result = self._parse_rows(request, reply)
        self._check_complete(reply)
        return result

    def ask(self, query: str) -> bool:
        """Run an ASK query and return its truth value.

        Raises GraphTimeoutError if the endpoint ran out of time, unless the value is true and the
        query is monotonic.
        """
        request, reply = self._validate_and_send(query, ("ask",))
        is_true = reply.parse_boolean()
        self._check_complete(reply, is_usable=request.is_monotonic and is_true)
        return is_true

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Run a CONSTRUCT or DESCRIBE query and return its triples, at most the row limit.

        The reply is parsed in another process. Raises GraphTimeoutError if the endpoint ran out of
        time or parsing takes longer than ``query_timeout_s``, and GraphError if the reply does not
        parse, or has no triple but the word "error".
        """
        _, reply = self._validate_and_send(query, ("construct", "describe"))
        self._check_complete(reply)
        timeout_s = self.limits.query_timeout_s
        try:
            quads = parse_response(
                reply.body, rdf_format(reply.media_type), self._address.url, timeout_s
            )
            triples = read_triples(quads, max_triples=self.limits.row_limit)
        except TimeoutError:
            raise GraphTimeoutError(
                f"parsing what {self.source} sent took longer than {timeout_s:g} s",
                hint=TIMEOUT_HINT,
            ) from None
        except (SyntaxError, ValueError) as error:
            raise reply.broken_response_error(getattr(error, "msg", error)) from error
        if not triples and b"error" in reply.body.lower():
            # Some engines report an error in a comment, or in JSON-LD that holds no triple.
            raise reply.invalid_response_error("no triples, but an error")
        return triples

    def _parse_rows(self, request: ValidatedQuery, reply: EndpointResponse) -> ResultSet:
        """Return the rows of the reply to a SELECT, at most the row limit.

        They are marked as cut where rows are missing, also where the endpoint left them out without
        a word.
        """
        result = reply.parse_result_set(request.variables, self.limits.row_limit)
        if result.cut or not self._has_unsent_row(request, len(result.rows)):
            return result
        return replace(result, cut=True)

    def _has_unsent_row(self, request: ValidatedQuery, row_count: int) -> bool:
        """Return whether a query has a row after the first ``row_count``, which were sent.

        One row after them is asked for, if their number may be a limit of the endpoint. False if
        the query takes no OFFSET, or if the endpoint fails or does not heed OFFSET and LIMIT.
        """
        if not request.accepts_limit or not _may_be_row_limit(row_count):
            return False
        next_row = f"{request.text}\nOFFSET {row_count}\nLIMIT 1"
        try:
            validate_query(next_row, allow_service=True)
            reply = self._send(next_row, request.form)
            found = reply.parse_result_set(request.variables, 1)
        except GraphError as error:
            _log.debug("not known whether %s has more rows: %s", self.source, error.message)
            return False
        return len(found.rows) == 1 and not found.cut

    def _validate_and_send(
        self, query: str, forms: tuple[QueryForm, ...], allowed_service_iri: str = ""
    ) -> tuple[ValidatedQuery, EndpointResponse]:
        """Send a query of one of these forms, with a LIMIT.

        The LIMIT is one above the row limit, so that one row more shows that rows are missing. It
        is left out where the query does not accept one, and where Virtuoso then refuses to sort.
        Returns what the gate found out about the query, and the reply. Raises QueryRefusedError or
        QueryError if it does not pass the gate.
        """
        request = validate_query(
            query,
            *forms,
            allow_service=self.limits.allow_service,
            allowed_service_iri=allowed_service_iri,
        )
        if not request.accepts_limit:
            return request, self._send(request.text, request.form)
        limited = f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
        try:
            return request, self._send(limited, request.form)
        except QueryError as error:
            if VIRTUOSO_SORT_LIMIT_ERROR not in error.message:
                raise
            return request, self._send(request.text, request.form)

    def _send(self, text: str, form: QueryForm) -> EndpointResponse:
        """Send a validated query, keep the name of the server's software, and return the reply.

        A server that is known to be Virtuoso is told to stop after half of ``query_timeout_s``, at
        least VIRTUOSO_MIN_TIMEOUT_MS: it takes up to twice the time that it is given, and then
        sends the part of the result that it has, which is better than no reply. It is asked for
        both forms of a text (``match_both_strings``). If only the reply tells that the
        server is Virtuoso, such a query is sent again. Raises what ``send_query`` does.
        """
        parameters = list(self._address.parameters)
        sent = text
        if self.is_virtuoso:
            half_time_ms = int(self.limits.query_timeout_s * 500)
            timeout_ms = max(VIRTUOSO_MIN_TIMEOUT_MS, half_time_ms)
            parameters.append(("timeout", str(timeout_ms)))
            sent = match_both_strings(text)
        reply = send_query(self._address, sent, form, self.limits, parameters)
        self.server = reply.server
        if "virtuoso" in reply.server.lower() and not self.is_virtuoso:
            self.is_virtuoso = True
            if match_both_strings(text) != text:
                return self._send(text, form)
        return reply

    def _check_complete(self, reply: EndpointResponse, *, is_usable: bool = False) -> None:
        """Raise GraphTimeoutError for a partial result, unless it is usable as it is."""
        if reply.is_partial and not is_usable:
            raise GraphTimeoutError(
                f"{self.source} reached its time limit and sent only a part of the result",
                hint=TIMEOUT_HINT,
            )

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
        for chunk in _chunks(distinct_labels, labels_per_query):
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
        for chunk in _chunks(iris, IRIS_PER_NAME_QUERY):
            valid_iris = list(dict.fromkeys(filter(is_valid_iri, chunk)))
            labels |= self._best_labels(valid_iris, in_preferred_language=True)
            unlabelled = [iri for iri in valid_iris if str(iri) not in labels]
            labels |= self._best_labels(unlabelled, in_preferred_language=False)
        return {iri: labels.get(str(iri)) or name_from_iri(iri) for iri in iris}

    def _find_case_variants(self, labels: Iterable[str]) -> LabelledVertices:
        """Return the vertices whose label is one of these texts, or a case variant of one.

        Each is a pair of an IRI and its label, in the endpoint's order. The variants are asked for
        as literals in every language of the graph, because the endpoint looks literals up in its
        index of triples. One query is sent, and none without labels. Raises GraphError for a reply
        that is not UTF-8.
        """
        variants: set[str] = set()
        for label in labels:
            variants |= _case_variants(label)
        predicates, languages = self._label_usage
        literals = [
            Literal(variant, lang=language or None)
            for variant, language in product(sorted(variants), languages)
        ]
        if not literals:
            return []
        label_values = values_clause("?label", literals)
        predicate_values = values_clause("?p", predicates)
        query = (
            f"SELECT DISTINCT ?v ?label WHERE {{ {label_values}"
            f" {predicate_values} ?v ?p ?label FILTER(isIRI(?v)) }}"
        )
        result = self.select_complete(query, require_valid_text=True)
        return labelled_vertices(result)

    def _without_schema_terms(self, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
        """Return the first ``limit`` hits that are neither predicates nor classes, in order.

        Predicates and classes have labels, but they are no answer to a label search. Hits are
        looked up in the graph in chunks of MAX_VALUES_PER_QUERY, until there are enough.
        """
        kept: list[Hit] = []
        for chunk in _chunks(hits, MAX_VALUES_PER_QUERY):
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


def _may_be_row_limit(row_count: int) -> bool:
    """Return whether a number of rows looks like a limit: so many hundreds, or a power of two."""
    is_power_of_two = row_count.bit_count() == 1
    return row_count >= MIN_SILENT_ROW_LIMIT and (row_count % 100 == 0 or is_power_of_two)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, in sequences of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


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
