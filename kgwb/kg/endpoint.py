"""A SPARQL endpoint on the network, through SPARQLWrapper."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import pyoxigraph
from rdflib import BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError, QueryError, SettingError
from kgwb.flow import Term, Triple
from kgwb.kg.base import Found, Hit, Limits, Rows, Vocabulary
from kgwb.kg.dialects import DIALECTS, STAGES, Dialect
from kgwb.kg.local import from_ox
from kgwb.kg.naming import WIKIBASE, language_rank
from kgwb.kg.sparql import Form, checked, n3, writable
from kgwb.kg.text import local_name, normal, ranked, spelled
from kgwb.kg.transport import Reply, ask

_SECRET = re.compile("key|token|secret|password|auth", re.IGNORECASE)
_STRING = URIRef("http://www.w3.org/2001/XMLSchema#string")
_AT_ONCE = 100
_log = logging.getLogger("kgwb")


class Endpoint:
    """A Graph behind a URL. Its methods block while the endpoint works, and raise GraphError."""

    remote = True

    def __init__(
        self,
        url: str,
        *,
        dialect: str | None = None,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
    ) -> None:
        if dialect is not None and dialect not in DIALECTS:
            raise SettingError(f"no dialect named {dialect!r}", hint=f"choose one of {', '.join(DIALECTS)}")
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._url = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self._parameters = parse_qsl(parts.query, keep_blank_values=True)
        self._login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        shown = urlencode(
            [(name, "***" if _SECRET.search(name) else value) for name, value in self._parameters]
        )
        self.source = self.identity = urlunsplit((parts.scheme, host, parts.path, shown, ""))
        self.vocabulary, self.limits = vocabulary or Vocabulary(), limits or Limits()
        self._named = dialect

    @cached_property
    def dialect(self) -> Dialect:
        """How labels are searched here: as named, else probed once."""
        for name, dialect in DIALECTS.items():
            if name == (self._named or name) and (
                self._named or not dialect.probe or self._fits(dialect.probe)
            ):
                return dialect()
        raise AssertionError("the last dialect fits any engine")

    def select(self, query: str) -> Rows:
        """See Graph."""
        found = checked(query, allow_service=self.limits.allow_service)
        reply = self._send(found.text + self._limit(query), found.form, "select")
        data = _json(reply)
        try:
            variables, found_rows = tuple(data["head"]["vars"]), data["results"]["bindings"]
            rows = tuple(
                tuple(_term(row[name]) if name in row else None for name in variables)
                for row in found_rows[: self.limits.row_limit]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise GraphError(
                f"{self.source} sent what is no SPARQL result: {error!r}", hint=_CHECK
            ) from error
        if reply.partial and not rows:
            raise self._out_of_time()
        most = min(self.limits.row_limit + 1, reply.most_rows or sys.maxsize)
        return Rows(variables, rows, cut=reply.partial or len(found_rows) >= most)

    def ask(self, query: str) -> bool:
        """See Graph."""
        found = checked(query, allow_service=self.limits.allow_service)
        reply = self._send(found.text, found.form, "ask")
        data = _json(reply)
        if isinstance(truth := data.get("boolean"), bool):
            return truth
        try:  # Virtuoso 7 answers with a row instead
            truth = any(row["__ASK_RETVAL"]["value"] == "1" for row in data["results"]["bindings"])
        except (KeyError, TypeError) as error:
            what = f"{self.source} answered an ASK query without true or false"
            raise GraphError(what, hint=_CHECK) from error
        if reply.partial and not truth:
            raise self._out_of_time()
        return truth

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        found = checked(query, allow_service=self.limits.allow_service)
        reply = self._send(found.text + self._limit(query), found.form, "construct", "describe")
        form = pyoxigraph.RdfFormat.from_media_type(reply.kind) or pyoxigraph.RdfFormat.TURTLE
        try:
            quads = [*pyoxigraph.parse(reply.body, form, base_iri=self._url)]
        except (SyntaxError, ValueError) as error:
            raise GraphError(f"{self.source} sent triples that do not parse: {error}", hint=_CHECK) from error
        triples = (
            (from_ox(quad.subject), URIRef(quad.predicate.value), from_ox(quad.object)) for quad in quads
        )
        return tuple(dict.fromkeys(triples))[: self.limits.row_limit]

    def search(self, text: str, limit: int) -> Found:
        """See Graph; a close spelling is not looked for."""
        asked, query = spelled(text), ""
        exact = self._spelled([text])
        for stage in STAGES if asked else ():
            sent = self.dialect.search_query(asked, 4 * limit, stage, self.vocabulary)
            if sent is None:
                continue
            query = sent
            rows = exact + [
                (str(v), str(label)) for v, label in self.select(query).rows if v and label and writable(v)
            ]
            if rows:
                best = ranked(normal(text), [(iri, label, normal(label)) for iri, label in rows], limit)
                return Found(tuple(Hit(*hit) for hit in best), stage, query)
        return Found((), "nothing", query)

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """See Graph; letter case is varied only as far as titles and lower case go."""
        found: dict[str, set[str]] = {}
        for start in range(0, len(labels), _AT_ONCE):
            for iri, label in self._spelled(labels[start : start + _AT_ONCE]):
                found.setdefault(normal(label), set()).add(iri)
        return {
            label: tuple(map(URIRef, sorted(found[normal(label)])))
            for label in labels
            if normal(label) in found
        }

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """See Graph."""
        found: dict[str, str] = {}
        for start in range(0, len(iris), _AT_ONCE):
            chunk = [iri for iri in dict.fromkeys(iris[start : start + _AT_ONCE]) if writable(iri)]
            if not chunk:
                continue
            found.update(self._labels(chunk, preferred=True))
            if missing := [iri for iri in chunk if str(iri) not in found]:
                found.update(self._labels(missing, preferred=False))
        return {iri: found.get(str(iri)) or local_name(iri) for iri in iris}

    def __repr__(self) -> str:
        return f"Endpoint({self.source!r})"

    def _send(self, text: str, form: Form, *wanted: Form) -> Reply:
        if form not in wanted:
            raise QueryError(f"this is no {wanted[0].upper()} query but {form.upper()}")
        parameters = [*self._parameters]
        if isinstance(self.__dict__.get("dialect"), DIALECTS["virtuoso"]):
            # Virtuoso takes up to twice this time; then it tells what it has, which beats hanging up on it.
            parameters.append(("timeout", str(max(1000, int(self.limits.query_timeout_s * 500)))))
        return ask(self._url, text, form, self.limits.query_timeout_s, parameters, self._login)

    def _limit(self, query: str) -> str:
        found = checked(query, allow_service=self.limits.allow_service)
        return "" if found.limited or found.values else f"\nLIMIT {self.limits.row_limit + 1}"

    def _out_of_time(self) -> GraphTimeoutError:
        return GraphTimeoutError(
            f"{self.source} ran out of time before it found anything", hint="ask for less"
        )

    def _fits(self, probe: str) -> bool:
        try:
            return self.ask(probe)
        except (QueryError, GraphUnreachableError):
            self.ask("ASK { ?s ?p ?o }")  # is it the probe that fails, or the endpoint?
            return False

    def _spelled(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        """The vertices, with their label, of labels spelled like this but for capitals."""
        spellings = {
            form for label in labels for form in (label, label.lower(), label.title(), label.capitalize())
        }
        literals = (
            Literal(form, lang=tag or None) for form in sorted(spellings) for tag in self.vocabulary.languages
        )
        rows = self.select(
            f"SELECT DISTINCT ?v ?label WHERE {{ VALUES ?label {{ {' '.join(map(n3, literals))} }}"
            f" VALUES ?p {{ {' '.join(map(n3, self.vocabulary.labels))} }} ?v ?p ?label FILTER(isIRI(?v)) }}"
        ).rows
        return [(str(vertex), str(label)) for vertex, label in rows if vertex and writable(vertex)]

    def _labels(self, iris: Sequence[URIRef], *, preferred: bool) -> dict[str, str]:
        languages = self.vocabulary.languages
        tests = (f'LANGMATCHES(LANG(?l), "{tag}")' if tag else 'LANG(?l) = ""' for tag in languages)
        only = f"FILTER({' || '.join(tests)})" if preferred else ""
        rows = self.select(
            f"SELECT ?v ?p ?l WHERE {{ VALUES ?v {{ {' '.join(map(n3, iris))} }}"
            f" VALUES ?p {{ {' '.join(map(n3, self.vocabulary.labels))} }}"
            f" {{ ?v ?p ?l }} UNION {{ ?e <{WIKIBASE}directClaim> ?v . ?e ?p ?l }} {only} }}"
        ).rows
        best: dict[str, tuple[bool, int, int, str]] = {}
        for vertex, predicate, label in rows:
            if isinstance(label, Literal) and predicate in self.vocabulary.labels and label.strip():
                order = self.vocabulary.labels.index(URIRef(predicate))
                tongue = language_rank(label.language or "", languages)
                rank = (tongue >= len(languages), order, tongue, str(label).strip())
                best[str(vertex)] = min(best.get(str(vertex), rank), rank)
        return {iri: rank[-1] for iri, rank in best.items()}


_CHECK = "check that the URL is the SPARQL endpoint itself, not its web page"


def _json(reply: Reply) -> dict[str, Any]:
    try:
        text = reply.body.decode("utf-8")
    except UnicodeDecodeError as error:
        _log.warning(
            "the endpoint's reply is not UTF-8 throughout (%s); broken characters are replaced", error
        )
        text = reply.body.decode("utf-8", errors="replace")
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        what = "a web page" if text.lstrip()[:1] == "<" else "broken JSON"
        raise GraphError(f"the endpoint sent {what} ({reply.kind}): {text[:200]!r}", hint=_CHECK) from error
    if not isinstance(data, dict):
        raise GraphError(f"the endpoint sent JSON that is no SPARQL result: {text[:200]!r}", hint=_CHECK)
    return data


def _term(data: Mapping[str, str]) -> Term:
    value = data["value"]
    match data["type"]:
        case "uri":
            return URIRef(value)
        case "bnode":
            return BNode(value)
        case "literal" | "typed-literal":
            datatype = URIRef(data["datatype"]) if "datatype" in data else None
            if data.get("xml:lang"):
                return Literal(value, lang=data["xml:lang"])
            return Literal(value, datatype=None if datatype == _STRING else datatype, normalize=False)
    raise ValueError(f"not an RDF term: {data!r}")
