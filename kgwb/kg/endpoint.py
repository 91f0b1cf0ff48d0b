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
from kgwb.kg.base import WIKIBASE, Found, Graph, Hit, Limits, Rows, Vocabulary, well_known
from kgwb.kg.dialects import DIALECTS, STAGES, Dialect, Stage, named
from kgwb.kg.local import triples_of
from kgwb.kg.muting import hide, mute
from kgwb.kg.parsing import reply_parsed
from kgwb.kg.queries import labelling, schema
from kgwb.kg.sparql import Checked, Form, checked, one_of, quoted, writable
from kgwb.kg.text import language_rank, normal, ranked, spelled
from kgwb.kg.transport import AGENT, Address, Reply, ask, read_term, sent
from kgwb.terms import Triple, Triples, local_name

REMEMBERED_S = 30 * 24 * 3600
"""After this time an endpoint is probed again: it may have got an index."""
_LABELS, _HITS, _WORDS, _LETTERS = (
    20,
    50,
    3,
    4,
)  # labels to choose from; hits; words asked for, of 4 letters
_VALUES = (
    200  # at once in a query: Virtuoso 7.2.5 loses rows of a VALUES of some 700, and says nothing
)
_SPELLINGS = 4  # of a label
_NAMED = 100  # IRIs at once
_WIKIBASE_HITS, _WIKIBASE_CHARS = 50, 250  # that its API gives, and takes
_WIKIBASE_BYTES = 1_000_000  # of so many hits
_CHECK_API = 'check the address of the API in dialect="wikidata:ADDRESS", which ends in api.php'
_SORTED_TOP = "SR353"
"""Virtuoso sorts 10,000 rows at most where a query has a LIMIT, and any number where it has none."""
_log = logging.getLogger("kgwb")
_Labels = list[tuple[str, str]]
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
        limits: Limits | None = None,
    ) -> None:
        self._named = None if dialect is None else named(dialect)
        self.whole_graph: Graph = self
        self._address = Address(url)
        self.source, self.identity = self._address.source, self._address.identity
        self.vocabulary, self.limits = vocabulary or well_known(url), limits or Limits()

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
        graph.muted = mute(self.muted, triples)
        return graph

    def select(self, query: str) -> Rows:
        """See Graph."""
        return self._select(query, whole=False)

    def _select(
        self, query: str, magic: str = "", *, whole: bool = True, intact: bool = False
    ) -> Rows:
        """The rows of a query; ``whole`` where its use cannot say that some are missing.

        ``magic`` as for the gate; ``intact``, their texts are too: a broken one is an error.
        """
        request, reply = self._asked(query, ("select",), magic)
        names, table = reply.table(intact=intact)
        variables = request.variables or names  # what was asked for, whatever the reply says
        if any(table) and not any(row.keys() & set(variables) for row in table):
            raise reply.wrong(f"it has no column of {', '.join(variables)}")
        try:
            rows = tuple(
                tuple(read_term(row[name]) if name in row else None for name in variables)
                for row in table[: self.limits.row_limit]
            )
        except ValueError as error:
            raise reply.wrong(error) from error
        if reply.partial and (whole or not (rows and request.monotone)):
            raise self._out_of_time()
        most = min(self.limits.row_limit + 1, reply.most_rows or sys.maxsize)
        return Rows(variables, rows, cut=reply.partial or len(table) >= most)

    def ask(self, query: str) -> bool:
        """See Graph."""
        request, reply = self._asked(query, ("ask",))
        if not isinstance(truth := reply.json().get("boolean"), bool):
            names, rows = reply.table()  # Virtuoso 7 answers with a row instead, or with none
            try:
                truths = [{"1": True, "0": False}[row["__ASK_RETVAL"]["value"]] for row in rows]
            except (KeyError, TypeError) as error:
                raise reply.wrong(error) from error
            if names != ("__ASK_RETVAL",):
                raise reply.wrong("neither true nor false")
            truth = any(truths)
        if reply.partial and not (truth and request.monotone):
            raise self._out_of_time()
        return truth

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        _, reply = self._asked(query, ("construct", "describe"))
        if reply.partial:
            raise self._out_of_time()
        # An error written in JSON is no JSON-LD without triples
        kind = reply.kind.replace("application/json", "")
        form = pyoxigraph.RdfFormat.from_media_type(kind) or pyoxigraph.RdfFormat.TURTLE
        try:
            quads = reply_parsed(reply.body, form, self._address.url, self.limits.query_timeout_s)
            triples = triples_of(quads, most=self.limits.row_limit)
        except TimeoutError:
            what = f"parsing what {self.source} sent took longer than {self.limits.query_timeout_s:g} s"
            raise GraphTimeoutError(what, hint="ask for less, or raise query_timeout_s") from None
        except (SyntaxError, ValueError) as error:
            raise reply.wrong(getattr(error, "msg", error)) from error
        if (
            not triples and b"error" in reply.body.lower()
        ):  # in a comment, or as JSON-LD that says nothing
            raise reply.wrong("no triples, but an error")
        return triples

    def __repr__(self) -> str:
        return f"Endpoint({self.source!r})"

    def _asked(self, query: str, forms: tuple[Form, ...], magic: str = "") -> tuple[Checked, Reply]:
        """What the gate reads of a query of one of these forms, and the reply to it."""
        request = checked(query, *forms, allow_service=self.limits.allow_service, magic=magic)
        if self.muted:
            text = hide(request.text, self.muted)
            request = checked(text, allow_service=self.limits.allow_service, magic=magic)
        parameters = []
        if (dialect := self.__dict__.get("dialect")) and dialect.name == "virtuoso":
            # Virtuoso takes up to twice this time; then it sends what it has, which beats hanging up on it.
            parameters.append(("timeout", str(max(1000, int(self.limits.query_timeout_s * 500)))))
        text = (
            f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
            if request.unlimited
            else request.text
        )
        try:
            reply = ask(self._address, text, request.form, self.limits, parameters)
        except QueryError as error:
            if not request.unlimited or _SORTED_TOP not in error.message:
                raise
            reply = ask(self._address, request.text, request.form, self.limits, parameters)
        self.server = reply.server
        return request, reply

    def _out_of_time(self) -> GraphTimeoutError:
        return GraphTimeoutError(
            f"{self.source} ran out of time, and what it found until then is no answer",
            hint="ask for less, or raise query_timeout_s",
        )

    # --- labels

    def search(self, text: str, limit: int) -> Found:
        """See Graph; a close spelling is not looked for."""
        words, query = spelled(text), ""
        exact = self._spelled([text])
        for stage in STAGES:
            matching = (
                self._matching(self.dialect, text, words, 4 * limit, stage)
                if words
                else ([], query)
            )
            if matching is None:
                continue
            rows, query = exact + matching[0], matching[1]
            labels = [(iri, label, normal(label)) for iri, label in rows]
            if hits := self._searchable(ranked(normal(text), labels, len(rows)), limit):
                return Found(hits, stage, query)
        return Found((), "nothing", query)

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """See Graph; letter case is varied only as far as titles and lower case go."""
        wanted = list(dict.fromkeys(labels))
        if not wanted:
            return {}
        _, languages = self._labelling
        at_once = max(1, _VALUES // (_SPELLINGS * max(1, len(languages))))
        rows = [
            row
            for n in range(0, len(wanted), at_once)
            for row in self._spelled(wanted[n : n + at_once])
        ]
        by_key: dict[str, set[URIRef]] = {}
        for hit in self._searchable(
            [Hit(URIRef(iri), label, 1.0) for iri, label in rows], len(rows)
        ):
            by_key.setdefault(normal(hit.label), set()).add(hit.iri)
        return {
            label: tuple(sorted(by_key[key]))
            for label in labels
            if (key := normal(label)) in by_key
        }

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """See Graph."""
        labels: dict[str, str] = {}
        for start in range(0, len(iris), _NAMED):
            chunk = [iri for iri in dict.fromkeys(iris[start : start + _NAMED]) if writable(iri)]
            labels |= self._labels(chunk, preferred=True)
            labels |= self._labels(
                [iri for iri in chunk if str(iri) not in labels], preferred=False
            )
        return {iri: labels.get(str(iri)) or local_name(iri) for iri in iris}

    @cached_property
    def _labelling(self) -> tuple[tuple[URIRef, ...], tuple[str, ...]]:
        return labelling(self)

    def _matching(
        self,
        dialect: Dialect,
        text: str,
        words: Sequence[str],
        limit: int,
        stage: Stage,
        *,
        intact: bool = True,
    ) -> tuple[_Labels, str] | None:
        """What a dialect finds, and what it asked; None where it has no such stage."""
        if not dialect.pattern:
            api, limits = dialect.names["api"], self.limits
            return (
                search_wikibase(api, text, limit, self.vocabulary, limits)
                if stage == STAGES[0]
                else None
            )
        query = dialect.search_query(words, limit, stage, self.vocabulary)
        return (self._vertices(query, dialect.magic, intact=intact), query) if query else None

    def _spelled(self, labels: Sequence[str]) -> _Labels:
        """The vertices, with their label, of labels spelled like this but for capitals."""
        forms = {
            form
            for text in labels
            for form in (text, text.lower(), text.title(), text.capitalize())
        }
        predicates, languages = self._labelling
        literals = [Literal(form, lang=tag or None) for form in sorted(forms) for tag in languages]
        if not literals:
            return []
        return self._vertices(
            f"SELECT DISTINCT ?v ?label WHERE {{ {one_of('?label', literals)} {one_of('?p', predicates)}"
            " ?v ?p ?label FILTER(isIRI(?v)) }"
        )

    def _vertices(self, query: str, magic: str = "", *, intact: bool = True) -> _Labels:
        rows = self._select(query, magic, intact=intact).rows
        return [
            (str(v), str(label)) for v, label in rows if v and label is not None and writable(v)
        ]

    def _searchable(self, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
        """The first hits but for predicates and classes, which have names and are not searched for."""
        kept: list[Hit] = []
        for start in range(0, len(hits), _VALUES):
            chunk = hits[start : start + _VALUES]
            left_out = schema(self, [hit.iri for hit in chunk])
            kept += [hit for hit in chunk if hit.iri not in left_out]
            if len(kept) >= limit:
                break
        return tuple(kept[:limit])

    def _labels(self, iris: Sequence[URIRef], *, preferred: bool) -> dict[str, str]:
        """The best label of each IRI, in a preferred language or in any."""
        (predicates, _), languages = self._labelling, self.vocabulary.languages
        if not (iris and predicates):
            return {}
        tests = (
            f"LANGMATCHES(LANG(?l), {quoted(tag)})" if tag else 'LANG(?l) = ""' for tag in languages
        )
        only = f"FILTER({' || '.join(tests)})" if preferred else ""
        rows = self._select(
            f"SELECT ?v ?p ?l WHERE {{ {one_of('?v', iris)} {one_of('?p', predicates)}"
            f" {{ ?v ?p ?l }} UNION {{ ?e <{WIKIBASE}directClaim> ?v . ?e ?p ?l }} {only} }}"
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
        if self._named:
            return self._named
        name = f"{hashlib.sha256(self.identity.encode()).hexdigest()}.json"
        file = disk.cache_dir() / "dialects" / name
        # A file that is not there, or damaged, can be made again
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            if time.time() - file.stat().st_mtime < REMEMBERED_S:
                dialect = DIALECTS[json.loads(file.read_bytes())["dialect"]]
                if dialect.whole:
                    return replace(dialect, known=f"remembered in {file}")
        # A label of the graph to look for, in a preferred language if it has one
        label, predicates = "", one_of("?p", self.vocabulary.labels)
        languages = ", ".join(map(quoted, self.vocabulary.languages))
        for only in (f" && LANG(?label) IN ({languages})", ""):
            rows = self._select(
                f"SELECT ?label WHERE {{ {predicates} ?v ?p ?label"
                f" FILTER(isIRI(?v) && STRLEN(STR(?label)) >= {_LETTERS}{only}) }} LIMIT {_LABELS}"
            ).rows
            if labels := [str(term) for (term,) in rows if term is not None and _words(str(term))]:
                label = max(labels, key=lambda each: (len(_words(each)), -len(each), each))
                break
        hints = f"{self.identity} {self.server}".lower()
        usable = [
            dialect for name, dialect in DIALECTS.items() if dialect.whole and name != "generic"
        ]
        hinted = [dialect for dialect in usable if any(hint in hints for hint in dialect.hints)]
        likely = [
            *hinted,
            *(dialect for dialect in usable if dialect.blind and dialect not in hinted),
        ]
        finding = (dialect for dialect in likely if label and self._finds(dialect, label))
        dialect = next(finding, DIALECTS["generic"])
        if not label:
            return replace(dialect, known="no label to probe with")
        try:
            disk.replace(file, [json.dumps({"endpoint": self.identity, "dialect": dialect.name})])
        except OSError as error:
            _log.warning(
                "%s cannot be written (%s); the endpoint will be probed again", file, error
            )
        return replace(dialect, known="probed")

    def _finds(self, dialect: Dialect, label: str) -> bool:
        """Whether a label with these words comes back."""
        words = _words(label)
        try:
            rows, _ = self._matching(dialect, label, words, _HITS, STAGES[0], intact=False) or (
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
        wanted = set(normal(" ".join(words)).split())
        return any(wanted <= set(normal(text).split()) for _, text in rows)


def _words(label: str) -> list[str]:
    """Some words that any index should have: short ones may be left out of it."""
    return [word for word in spelled(label) if len(word) >= _LETTERS][:_WORDS]


# --- Wikidata's own API


class _Entity(BaseModel):
    concepturi: str
    label: str = ""
    match: dict[str, str] = {}


class _Reply(BaseModel):
    search: tuple[_Entity, ...] = ()
    error: dict[str, object] = {}


def search_wikibase(
    api: str, text: str, limit: int, vocabulary: Vocabulary, limits: Limits
) -> tuple[_Labels, str]:
    """Items of a Wikibase with a label or alias like ``text``, else properties, and the URL asked.

    Raises GraphUnreachableError, GraphTimeoutError or GraphError. Source: MediaWiki's wbsearchentities.
    """
    language = next(filter(None, vocabulary.languages), "en")
    limits = replace(limits, byte_limit=min(limits.byte_limit, _WIKIBASE_BYTES))
    words = " ".join(text.split())[:_WIKIBASE_CHARS]
    parameters = {
        "action": "wbsearchentities",
        "format": "json",
        "search": words,
        "language": language,
    }
    parameters |= {"uselang": language, "limit": str(min(limit, _WIKIBASE_HITS))}
    for kind in ("item", "property"):
        url = f"{api}?{urlencode({**parameters, 'type': kind})}"
        request = Request(url, headers={"User-Agent": AGENT, "Accept": "application/json"})
        body = sent(url, request, limits).body
        try:
            reply = _Reply.model_validate_json(body)
        except ValidationError as error:
            start = body[:200].decode(errors="replace")
            raise GraphError(
                f"{url} sent what is no list of entities: {start!r}", hint=_CHECK_API
            ) from error
        if reply.error:
            reason = str(reply.error.get("info", "it does not say why"))[:500]
            raise GraphError(f"{url} rejects the search: {reason}", hint=_CHECK_API)
        if reply.search:
            break
    labels = (
        (entity.concepturi, label)
        for entity in reply.search
        for label in (entity.label, entity.match.get("text", ""))
    )
    return [(iri, label) for iri, label in labels if label and writable(iri)], url
