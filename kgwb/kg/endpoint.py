"""A SPARQL endpoint, through SPARQLWrapper: queried, and searched in its engine's own dialect."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from urllib.parse import urlencode
from urllib.request import Request

import pyoxigraph
from pydantic import BaseModel, ValidationError
from rdflib import Literal, URIRef

from kgwb import disk
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
from kgwb.kg.dialects import DIALECTS, SEARCH_STAGES, Dialect, SearchStage, parse_dialect
from kgwb.kg.local import read_triples
from kgwb.kg.muting import add_muted, rewrite_without
from kgwb.kg.parsing import parse_response
from kgwb.kg.queries import find_label_usage, find_schema_terms
from kgwb.kg.sparql import (
    QueryForm,
    ValidatedQuery,
    is_valid_iri,
    string_literal,
    validate_query,
    values_clause,
)
from kgwb.kg.text import language_rank, lowercase_words, normalize, rank_labels
from kgwb.kg.transport import (
    USER_AGENT,
    EndpointResponse,
    EndpointUrl,
    parse_cell,
    send_query,
    send_request,
)
from kgwb.terms import Triple, Triples, name_from_iri

DIALECT_CACHE_LIFETIME_S = 30 * 24 * 3600
"""After this time an endpoint is probed again: it may have got an index."""
_MAX_PROBE_LABELS, _MAX_PROBE_HITS, _MAX_PROBE_WORDS, _MIN_PROBE_WORD_LETTERS = (
    20,
    50,
    3,
    4,
)  # labels to choose from; hits; words asked for, of 4 letters
_MAX_VALUES_PER_QUERY = (
    200  # at once in a query: Virtuoso 7.2.5 loses rows of a VALUES of some 700, and says nothing
)
_CASE_VARIANTS = 4  # of a label
_IRIS_PER_NAME_QUERY = 100  # IRIs at once
_MAX_WIKIBASE_HITS, _MAX_WIKIBASE_CHARS = 50, 250  # that its API gives, and takes
_MAX_WIKIBASE_BYTES = 1_000_000  # of so many hits
_CHECK_API_HINT = (
    'check the address of the API in dialect="wikidata:ADDRESS", which ends in api.php'
)
_VIRTUOSO_SORT_LIMIT_ERROR = "SR353"
"""Virtuoso sorts 10,000 rows at most where a query has a LIMIT, and any number where it has none."""
_log = logging.getLogger("kgwb")
_LabelledVertices = list[tuple[str, str]]
"""Vertices, each with a label."""


class Endpoint:
    """A Graph behind a URL. Its methods block while the endpoint works, and raise GraphError.

    An endpoint whose time is over may send what it has. Of a query that only gathers (``Checked.monotone``)
    rows are handed on and marked as cut, and a true ASK is true. All else would be a wrong answer and is a
    GraphTimeoutError: no row at all, a number that was counted, the first rows of an order, what must not
    be there, a false ASK, triples (which cannot say that they are cut), and a search for labels.
    """

    remote = True
    muted: Triples = ()
    server = ""
    """What the server calls itself, once it was asked."""

    def __init__(
        self,
        url: str,
        *,
        dialect: str | Dialect | None = None,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
    ) -> None:
        self._requested_dialect = None if dialect is None else parse_dialect(dialect)
        self.whole_graph: Graph = self
        self._address = EndpointUrl(url)
        self.source, self.identity = self._address.source, self._address.identity
        self.vocabulary, self.limits = (
            vocabulary or vocabulary_for_url(url),
            limits or QueryLimits(),
        )

    def without(self, *triples: Triple) -> Endpoint:
        """See Graph. Raises GraphError for a label that is searched by an API, which knows no muting."""
        if not self.dialect.pattern and any(
            triple[1] in self.vocabulary.labels for triple in triples
        ):
            raise GraphError(
                "a label cannot be muted where an API searches the labels",
                hint='open the graph with dialect="generic", which searches by SPARQL',
            )
        graph = copy(self)
        graph.__dict__.pop("_labelling", None)
        graph.muted = add_muted(self.muted, triples)
        return graph

    def select(self, query: str) -> ResultSet:
        """See Graph."""
        return self._select(query, require_complete=False)

    def _select(
        self,
        query: str,
        allowed_service_iri: str = "",
        *,
        require_complete: bool = True,
        require_valid_text: bool = False,
    ) -> ResultSet:
        """The rows of a query; ``whole`` where its use cannot say that some are missing.

        ``allowed_service_iri`` as for the gate; ``intact``, their texts are too: a broken one is an error.
        """
        request, reply = self._validate_and_send(query, ("select",), allowed_service_iri)
        names, table = reply.read_bindings(intact=require_valid_text)
        variables = request.variables or names  # what was asked for, whatever the reply says
        if any(table) and not any(row.keys() & set(variables) for row in table):
            raise reply.invalid_response_error(f"it has no column of {', '.join(variables)}")
        try:
            rows = tuple(
                tuple(parse_cell(row[name]) if name in row else None for name in variables)
                for row in table[: self.limits.row_limit]
            )
        except ValueError as error:
            raise reply.invalid_response_error(error) from error
        if reply.is_partial and (require_complete or not (rows and request.is_monotonic)):
            raise self._timeout_error()
        most = min(self.limits.row_limit + 1, reply.max_rows or sys.maxsize)
        return ResultSet(variables, rows, cut=reply.is_partial or len(table) >= most)

    def ask(self, query: str) -> bool:
        """See Graph."""
        request, reply = self._validate_and_send(query, ("ask",))
        if not isinstance(truth := reply.parse_json().get("boolean"), bool):
            names, rows = (
                reply.read_bindings()
            )  # Virtuoso 7 answers with a row instead, or with none
            try:
                truths = [{"1": True, "0": False}[row["__ASK_RETVAL"]["value"]] for row in rows]
            except (KeyError, TypeError) as error:
                raise reply.invalid_response_error(error) from error
            if names != ("__ASK_RETVAL",):
                raise reply.invalid_response_error("neither true nor false")
            truth = any(truths)
        if reply.is_partial and not (truth and request.is_monotonic):
            raise self._timeout_error()
        return truth

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        _, reply = self._validate_and_send(query, ("construct", "describe"))
        if reply.is_partial:
            raise self._timeout_error()
        # An error written in JSON is no JSON-LD without triples
        kind = reply.media_type.replace("application/json", "")
        form = pyoxigraph.RdfFormat.from_media_type(kind) or pyoxigraph.RdfFormat.TURTLE
        try:
            quads = parse_response(reply.body, form, self._address.url, self.limits.query_timeout_s)
            triples = read_triples(quads, max_triples=self.limits.row_limit)
        except TimeoutError:
            what = f"parsing what {self.source} sent took longer than {self.limits.query_timeout_s:g} s"
            raise GraphTimeoutError(what, hint="ask for less, or raise query_timeout_s") from None
        except (SyntaxError, ValueError) as error:
            raise reply.invalid_response_error(getattr(error, "msg", error)) from error
        if (
            not triples and b"error" in reply.body.lower()
        ):  # in a comment, or as JSON-LD that says nothing
            raise reply.invalid_response_error("no triples, but an error")
        return triples

    def __repr__(self) -> str:
        return f"Endpoint({self.source!r})"

    def _validate_and_send(
        self, query: str, forms: tuple[QueryForm, ...], allowed_service_iri: str = ""
    ) -> tuple[ValidatedQuery, EndpointResponse]:
        """What the gate reads of a query of one of these forms, and the reply to it."""
        request = validate_query(
            query,
            *forms,
            allow_service=self.limits.allow_service,
            allowed_service_iri=allowed_service_iri,
        )
        if self.muted:
            text = rewrite_without(request.text, self.muted)
            request = validate_query(
                text,
                allow_service=self.limits.allow_service,
                allowed_service_iri=allowed_service_iri,
            )
        parameters = []
        if (dialect := self.__dict__.get("dialect")) and dialect.name == "virtuoso":
            # Virtuoso takes up to twice this time; then it sends what it has, which beats hanging up on it.
            parameters.append(("timeout", str(max(1000, int(self.limits.query_timeout_s * 500)))))
        text = (
            f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
            if request.accepts_limit
            else request.text
        )
        try:
            reply = send_query(self._address, text, request.form, self.limits, parameters)
        except QueryError as error:
            if not request.accepts_limit or _VIRTUOSO_SORT_LIMIT_ERROR not in error.message:
                raise
            reply = send_query(self._address, request.text, request.form, self.limits, parameters)
        self.server = reply.server
        return request, reply

    def _timeout_error(self) -> GraphTimeoutError:
        return GraphTimeoutError(
            f"{self.source} ran out of time, and what it found until then is no answer",
            hint="ask for less, or raise query_timeout_s",
        )

    # --- labels

    def search(self, text: str, limit: int) -> SearchResult:
        """See Graph; a close spelling is not looked for."""
        words, query = lowercase_words(text), ""
        exact = self._find_case_variants([text])
        for stage in SEARCH_STAGES:
            matching = (
                self._search_with_dialect(self.dialect, text, words, 4 * limit, stage)
                if words
                else ([], query)
            )
            if matching is None:
                continue
            rows, query = exact + matching[0], matching[1]
            labels = [(iri, label, normalize(label)) for iri, label in rows]
            if hits := self._without_schema_terms(
                rank_labels(normalize(text), labels, len(rows)), limit
            ):
                return SearchResult(hits, stage, query)
        return SearchResult((), "nothing", query)

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """See Graph; letter case is varied only as far as titles and lower case go."""
        wanted = list(dict.fromkeys(labels))
        if not wanted:
            return {}
        _, languages = self._label_usage
        at_once = max(1, _MAX_VALUES_PER_QUERY // (_CASE_VARIANTS * max(1, len(languages))))
        rows = [
            row
            for n in range(0, len(wanted), at_once)
            for row in self._find_case_variants(wanted[n : n + at_once])
        ]
        by_key: dict[str, set[URIRef]] = {}
        for hit in self._without_schema_terms(
            [Hit(URIRef(iri), label, 1.0) for iri, label in rows], len(rows)
        ):
            by_key.setdefault(normalize(hit.label), set()).add(hit.iri)
        return {
            label: tuple(sorted(by_key[key]))
            for label in labels
            if (key := normalize(label)) in by_key
        }

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """See Graph."""
        labels: dict[str, str] = {}
        for start in range(0, len(iris), _IRIS_PER_NAME_QUERY):
            chunk = [
                iri
                for iri in dict.fromkeys(iris[start : start + _IRIS_PER_NAME_QUERY])
                if is_valid_iri(iri)
            ]
            labels |= self._best_labels(chunk, preferred=True)
            labels |= self._best_labels(
                [iri for iri in chunk if str(iri) not in labels], preferred=False
            )
        return {iri: labels.get(str(iri)) or name_from_iri(iri) for iri in iris}

    @cached_property
    def _label_usage(self) -> tuple[tuple[URIRef, ...], tuple[str, ...]]:
        return find_label_usage(self)

    def _search_with_dialect(
        self,
        dialect: Dialect,
        text: str,
        words: Sequence[str],
        limit: int,
        stage: SearchStage,
        *,
        intact: bool = True,
    ) -> tuple[_LabelledVertices, str] | None:
        """What a dialect finds, and what it asked; None where it has no such stage."""
        if not dialect.pattern:
            api, limits = dialect.argument_fields["api"], self.limits
            return (
                search_wikibase(api, text, limit, self.vocabulary, limits)
                if stage == SEARCH_STAGES[0]
                else None
            )
        query = dialect.build_search_query(words, limit, stage, self.vocabulary)
        return (
            (self._select_labelled_vertices(query, dialect.service_iri, intact=intact), query)
            if query
            else None
        )

    def _find_case_variants(self, labels: Sequence[str]) -> _LabelledVertices:
        """The vertices, with their label, of labels spelled like this but for capitals."""
        forms = {
            form
            for text in labels
            for form in (text, text.lower(), text.title(), text.capitalize())
        }
        predicates, languages = self._label_usage
        literals = [Literal(form, lang=tag or None) for form in sorted(forms) for tag in languages]
        if not literals:
            return []
        return self._select_labelled_vertices(
            f"SELECT DISTINCT ?v ?label WHERE {{ {values_clause('?label', literals)} {values_clause('?p', predicates)}"
            " ?v ?p ?label FILTER(isIRI(?v)) }"
        )

    def _select_labelled_vertices(
        self, query: str, allowed_service_iri: str = "", *, intact: bool = True
    ) -> _LabelledVertices:
        rows = self._select(query, allowed_service_iri, require_valid_text=intact).rows
        return [
            (str(v), str(label)) for v, label in rows if v and label is not None and is_valid_iri(v)
        ]

    def _without_schema_terms(self, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
        """The first hits but for predicates and classes, which have names and are not searched for."""
        kept: list[Hit] = []
        for start in range(0, len(hits), _MAX_VALUES_PER_QUERY):
            chunk = hits[start : start + _MAX_VALUES_PER_QUERY]
            left_out = find_schema_terms(self, [hit.iri for hit in chunk])
            kept += [hit for hit in chunk if hit.iri not in left_out]
            if len(kept) >= limit:
                break
        return tuple(kept[:limit])

    def _best_labels(self, iris: Sequence[URIRef], *, preferred: bool) -> dict[str, str]:
        """The best label of each IRI, in a preferred language or in any."""
        (predicates, _), languages = self._label_usage, self.vocabulary.languages
        if not (iris and predicates):
            return {}
        tests = (
            f"LANGMATCHES(LANG(?l), {string_literal(tag)})" if tag else 'LANG(?l) = ""'
            for tag in languages
        )
        only = f"FILTER({' || '.join(tests)})" if preferred else ""
        rows = self._select(
            f"SELECT ?v ?p ?l WHERE {{ {values_clause('?v', iris)} {values_clause('?p', predicates)}"
            f" {{ ?v ?p ?l }} UNION {{ ?e <{WIKIBASE_NAMESPACE}directClaim> ?v . ?e ?p ?l }} {only} }}"
        ).rows
        best: dict[str, tuple[bool, int, int, str]] = {}
        for vertex, predicate, label in rows:
            if isinstance(label, Literal) and predicate in self.vocabulary.labels and label.strip():
                order = self.vocabulary.labels.index(URIRef(predicate))
                language = language_rank(label.language or "", languages)
                rank = (language >= len(languages), order, language, str(label).strip())
                best[str(vertex)] = min(best.get(str(vertex), rank), rank)
        return {iri: rank[-1] for iri, rank in best.items()}

    # --- which dialect

    @cached_property
    def dialect(self) -> Dialect:
        """How labels are searched here: as named, else as remembered, else the first that finds a label.

        A site whose full-text index is off, empty or not for labels is asked in ``generic``: that a query is
        understood proves nothing, as an unknown predicate is an ordinary one that happens to have no triples.
        Raises what the endpoint does when it fails.
        """
        if self._requested_dialect:
            return self._requested_dialect
        name = f"{hashlib.sha256(self.identity.encode()).hexdigest()}.json"
        file = disk.cache_dir() / "dialects" / name
        # A file that is not there, or damaged, can be made again
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            if time.time() - file.stat().st_mtime < DIALECT_CACHE_LIFETIME_S:
                dialect = DIALECTS[json.loads(file.read_bytes())["dialect"]]
                if dialect.is_complete:
                    return replace(dialect, selection_reason=f"remembered in {file}")
        # A label of the graph to look for, in a preferred language if it has one
        label, predicates = "", values_clause("?p", self.vocabulary.labels)
        languages = ", ".join(map(string_literal, self.vocabulary.languages))
        for only in (f" && LANG(?label) IN ({languages})", ""):
            rows = self._select(
                f"SELECT ?label WHERE {{ {predicates} ?v ?p ?label"
                f" FILTER(isIRI(?v) && STRLEN(STR(?label)) >= {_MIN_PROBE_WORD_LETTERS}{only}) }}"
                f" LIMIT {_MAX_PROBE_LABELS}"
            ).rows
            if labels := [
                str(term) for (term,) in rows if term is not None and _probe_words(str(term))
            ]:
                label = max(labels, key=lambda each: (len(_probe_words(each)), -len(each), each))
                break
        hints = f"{self.identity} {self.server}".lower()
        usable = [
            dialect
            for name, dialect in DIALECTS.items()
            if dialect.is_complete and name != "generic"
        ]
        hinted = [
            dialect for dialect in usable if any(hint in hints for hint in dialect.engine_hints)
        ]
        likely = [
            *hinted,
            *(
                dialect
                for dialect in usable
                if dialect.probe_without_hint and dialect not in hinted
            ),
        ]
        finding = (dialect for dialect in likely if label and self._dialect_finds(dialect, label))
        dialect = next(finding, DIALECTS["generic"])
        if not label:
            return replace(dialect, selection_reason="no label to probe with")
        try:
            disk.write_atomically(
                file, [json.dumps({"endpoint": self.identity, "dialect": dialect.name})]
            )
        except OSError as error:
            _log.warning(
                "%s cannot be written (%s); the endpoint will be probed again", file, error
            )
        return replace(dialect, selection_reason="probed")

    def _dialect_finds(self, dialect: Dialect, label: str) -> bool:
        """Whether a label with these words comes back."""
        words = _probe_words(label)
        try:
            rows, _ = self._search_with_dialect(
                dialect, label, words, _MAX_PROBE_HITS, SEARCH_STAGES[0], intact=False
            ) or (
                [],
                "",
            )
        except GraphTimeoutError as error:
            message = f"{error.message} (asked for a label in the dialect {dialect.name})"
            raise GraphTimeoutError(
                message, hint='name the dialect: dialect="generic", for one'
            ) from error
        except GraphError:
            self.ask("ASK { ?s ?p ?o }")  # is it the dialect that fails, or the endpoint?
            return False
        wanted = set(normalize(" ".join(words)).split())
        return any(wanted <= set(normalize(text).split()) for _, text in rows)


def _probe_words(label: str) -> list[str]:
    """Some words that any index should have: short ones may be left out of it."""
    return [word for word in lowercase_words(label) if len(word) >= _MIN_PROBE_WORD_LETTERS][
        :_MAX_PROBE_WORDS
    ]


# --- Wikidata's own API


class _WikibaseEntity(BaseModel):
    concepturi: str
    label: str = ""
    match: dict[str, str] = {}


class _WikibaseResponse(BaseModel):
    search: tuple[_WikibaseEntity, ...] = ()
    error: dict[str, object] = {}


def search_wikibase(
    api: str, text: str, limit: int, vocabulary: Vocabulary, limits: QueryLimits
) -> tuple[_LabelledVertices, str]:
    """Items of a Wikibase with a label or alias like ``text``, else properties, and the URL asked.

    Raises GraphUnreachableError, GraphTimeoutError or GraphError. Source: MediaWiki's wbsearchentities.
    """
    language = next(filter(None, vocabulary.languages), "en")
    limits = replace(limits, byte_limit=min(limits.byte_limit, _MAX_WIKIBASE_BYTES))
    words = " ".join(text.split())[:_MAX_WIKIBASE_CHARS]
    parameters = {
        "action": "wbsearchentities",
        "format": "json",
        "search": words,
        "language": language,
    }
    parameters |= {"uselang": language, "limit": str(min(limit, _MAX_WIKIBASE_HITS))}
    for kind in ("item", "property"):
        url = f"{api}?{urlencode({**parameters, 'type': kind})}"
        request = Request(url, headers={"User-Agent": USER_AGENT, "Accept": "application/json"})
        body = send_request(url, request, limits).body
        try:
            reply = _WikibaseResponse.model_validate_json(body)
        except ValidationError as error:
            start = body[:200].decode(errors="replace")
            raise GraphError(
                f"{url} sent what is no list of entities: {start!r}", hint=_CHECK_API_HINT
            ) from error
        if reply.error:
            reason = str(reply.error.get("info", "it does not say why"))[:500]
            raise GraphError(f"{url} rejects the search: {reason}", hint=_CHECK_API_HINT)
        if reply.search:
            break
    labels = (
        (entity.concepturi, label)
        for entity in reply.search
        for label in (entity.label, entity.match.get("text", ""))
    )
    return [(iri, label) for iri, label in labels if label and is_valid_iri(iri)], url
