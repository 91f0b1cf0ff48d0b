"""A SPARQL endpoint on the network, through SPARQLWrapper."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import starmap
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import pyoxigraph
from rdflib import BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, QueryError, SettingError
from kgwb.flow import Term, Triple, literal
from kgwb.kg import wikibase
from kgwb.kg.base import Found, Hit, Limits, Rows, Vocabulary
from kgwb.kg.dialects import STAGES, Dialect, Stage, named
from kgwb.kg.local import from_ox
from kgwb.kg.naming import WIKIBASE, language_rank
from kgwb.kg.parsing import reply_parsed
from kgwb.kg.probing import recognised
from kgwb.kg.queries import Labelling, labelling, schema
from kgwb.kg.sparql import HALF, Checked, Form, checked, n3, quoted, writable
from kgwb.kg.text import local_name, normal, ranked, spelled
from kgwb.kg.transport import Reply, Secret, ask, hidden_in
from kgwb.kg.vocabularies import well_known
from kgwb.masking import SECRET_NAME, cut, is_plain, shown, without

_STRING = "http://www.w3.org/2001/XMLSchema#string"
_AT_ONCE = 100
_VALUES = 200  # at once in a query: Virtuoso 7.2.5 loses rows of a VALUES of some 700, and says nothing
_SPELLINGS = 4  # of a label
_log = logging.getLogger("kgwb")


class Endpoint:
    """A Graph behind a URL. Its methods block while the endpoint works, and raise GraphError.

    An endpoint whose time is over may send what it has. Of a query that only gathers (``Checked.monotone``)
    rows are handed on and said to be cut, and a true ASK is true. All else would be a wrong answer and is a
    GraphTimeoutError: no row at all, a number that was counted, the first rows of an order, what is said not
    to be there, a false ASK, triples (which cannot say that they are cut), and a search for labels.
    """

    remote = True

    def __init__(
        self,
        url: str,
        *,
        dialect: str | Dialect | None = None,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._named = None if dialect is None else named(dialect)
        parts = _parts(url)
        login, _, host = parts.netloc.rpartition("@")
        self._url = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self._parameters = list(starmap(_parameter, parse_qsl(parts.query, keep_blank_values=True)))
        user, password = (Secret(unquote(part)) for part in login.partition(":")[::2])
        self._login = (user, password) if user else None
        self.source = shown(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))
        self.identity = self.source + _fingerprint(self._parameters)
        self.vocabulary, self.limits = vocabulary or well_known(url), limits or Limits()
        self.server = ""

    @cached_property
    def dialect(self) -> Dialect:
        """How labels are searched here: as named, else as remembered or probed (see ``recognised``)."""
        return self._named or recognised(self, self._whole)

    def select(self, query: str) -> Rows:
        """See Graph."""
        return self._select(query)[0]

    def _select(self, query: str, magic: str = "") -> tuple[Rows, Reply]:
        """The rows, and the reply that they were in."""
        found = checked(query, allow_service=self.limits.allow_service, magic=magic)
        reply = self._send(found.text + self._limit(found), found.form, "select")
        named, found_rows = _table(reply)
        variables = found.variables or named  # what was asked for, whatever the reply says
        if any(found_rows) and not any(row.keys() & set(variables) for row in found_rows):
            raise _no_result(reply, f"it has no column of {', '.join(variables)}")
        try:
            rows = tuple(
                tuple(_term(row[name]) if name in row else None for name in variables)
                for row in found_rows[: self.limits.row_limit]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _no_result(reply, error) from error
        if reply.partial and not (rows and found.monotone):
            raise self._out_of_time()
        most = min(self.limits.row_limit + 1, reply.most_rows or sys.maxsize)
        return Rows(variables, rows, cut=reply.partial or len(found_rows) >= most), reply

    def _whole(self, query: str, magic: str = "", *, intact: bool = False) -> Rows:
        """The rows of a query whose use cannot say that some are missing, or that their texts are broken."""
        rows, reply = self._select(query, magic)
        if reply.partial:
            raise self._out_of_time()
        if intact and reply.broken:
            raise _no_result(reply, reply.broken)
        return rows

    def ask(self, query: str) -> bool:
        """See Graph."""
        found = checked(query, allow_service=self.limits.allow_service)
        reply = self._send(found.text, found.form, "ask")
        if not isinstance(truth := _json(reply).get("boolean"), bool):
            named, rows = _table(reply)  # Virtuoso 7 answers with a row instead, or with none
            try:
                truths = [{"1": True, "0": False}[row["__ASK_RETVAL"]["value"]] for row in rows]
            except (KeyError, TypeError) as error:
                raise _no_result(reply, error) from error
            if named != ("__ASK_RETVAL",):
                raise _no_result(reply, "neither true nor false")
            truth = any(truths)
        if reply.partial and not (truth and found.monotone):
            raise self._out_of_time()
        return truth

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        found = checked(query, allow_service=self.limits.allow_service)
        reply = self._send(found.text + self._limit(found), found.form, "construct", "describe")
        if reply.partial:
            raise self._out_of_time()
        # An error told in JSON is no JSON-LD without triples
        kind = reply.kind.replace("application/json", "")
        form = pyoxigraph.RdfFormat.from_media_type(kind) or pyoxigraph.RdfFormat.TURTLE
        triples: dict[Triple, None] = {}
        try:
            for quad in reply_parsed(reply.body, form, self._url, self.limits.query_timeout_s):
                triples[from_ox(quad.subject), URIRef(quad.predicate.value), from_ox(quad.object)] = None
                if len(triples) == self.limits.row_limit:
                    break
        except TimeoutError:
            said = f"parsing what {self.source} sent took longer than {self.limits.query_timeout_s:g} s"
            raise GraphTimeoutError(said, hint="ask for less, or raise query_timeout_s") from None
        except (SyntaxError, ValueError) as error:
            raise _no_result(reply, error) from error
        if not triples and b"error" in reply.body.lower():  # in a comment, or as JSON-LD that says nothing
            raise _no_result(reply, "no triples, but an error")
        return tuple(triples)

    def search(self, text: str, limit: int) -> Found:
        """See Graph; a close spelling is not looked for."""
        asked, query = spelled(text), ""
        exact = self._spelled([text])
        for stage in STAGES:
            found = self._searched(text, asked, 4 * limit, stage) if asked else ([], query)
            if found is None:
                continue
            rows, query = exact + found[0], found[1]
            labels = [(iri, label, normal(label)) for iri, label in rows]
            if hits := self._searchable(ranked(normal(text), labels, len(rows)), limit):
                return Found(hits, stage, query)
        return Found((), "nothing", query)

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """See Graph; letter case is varied only as far as titles and lower case go."""
        found: dict[str, set[str]] = {}
        wanted = list(dict.fromkeys(labels))
        at_once = max(1, _VALUES // (_SPELLINGS * max(1, len(self._labelling.languages)))) if wanted else 1
        rows = [row for n in range(0, len(wanted), at_once) for row in self._spelled(wanted[n : n + at_once])]
        hits = self._searchable([(URIRef(iri), label, 1.0) for iri, label in rows], len(rows))
        for hit in hits:
            found.setdefault(normal(hit.label), set()).add(hit.iri)
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
        if (dialect := self.__dict__.get("dialect")) and dialect.name == "virtuoso":
            # Virtuoso takes up to twice this time; then it tells what it has, which beats hanging up on it.
            parameters.append(("timeout", str(max(1000, int(self.limits.query_timeout_s * 500)))))
        reply = ask(self._url, text, form, self.limits, parameters, self._login)
        self.server = reply.server
        return reply

    def _limit(self, found: Checked) -> str:
        return "" if found.limited or found.values else f"\nLIMIT {self.limits.row_limit + 1}"

    def _out_of_time(self) -> GraphTimeoutError:
        return GraphTimeoutError(
            f"{self.source} ran out of time, and what it found until then is no answer",
            hint="ask for less, or raise query_timeout_s",
        )

    def _searched(
        self, text: str, words: Sequence[str], limit: int, stage: Stage
    ) -> tuple[list[tuple[str, str]], str] | None:
        """What the dialect finds, and what it asked; None where it has no such stage."""
        dialect = self.dialect
        if not dialect.pattern:
            only = stage == STAGES[0]
            return (
                wikibase.find(dialect.names["api"], text, limit, self.vocabulary, self.limits)
                if only
                else None
            )
        query = dialect.search_query(words, limit, stage, self.vocabulary)
        return (self._vertices(query, dialect.magic), query) if query else None

    def _spelled(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        """The vertices, with their label, of labels spelled like this but for capitals."""
        spellings = {
            form for label in labels for form in (label, label.lower(), label.title(), label.capitalize())
        }
        predicates, languages = self._labelling
        literals = [Literal(form, lang=tag or None) for form in sorted(spellings) for tag in languages]
        if not literals:
            return []
        return self._vertices(
            f"SELECT DISTINCT ?v ?label WHERE {{ VALUES ?label {{ {' '.join(map(n3, literals))} }}"
            f" VALUES ?p {{ {' '.join(map(n3, predicates))} }} ?v ?p ?label FILTER(isIRI(?v)) }}"
        )

    def _vertices(self, query: str, magic: str = "") -> list[tuple[str, str]]:
        return [
            (str(vertex), str(label))
            for vertex, label in self._whole(query, magic, intact=True).rows
            if vertex is not None and label is not None and writable(vertex)
        ]

    def _searchable(self, found: Sequence[tuple[URIRef, str, float]], limit: int) -> tuple[Hit, ...]:
        """The first hits but for predicates and classes, which have names and are not searched for."""
        hits: list[Hit] = []
        for start in range(0, len(found), _VALUES):
            some = found[start : start + _VALUES]
            left_out = schema(self, [iri for iri, _, _ in some])
            hits += [Hit(*hit) for hit in some if hit[0] not in left_out]
            if len(hits) >= limit:
                break
        return tuple(hits[:limit])

    @cached_property
    def _labelling(self) -> Labelling:
        return labelling(self)

    def _labels(self, iris: Sequence[URIRef], *, preferred: bool) -> dict[str, str]:
        languages, predicates = self.vocabulary.languages, self._labelling.predicates
        if not predicates:
            return {}
        tests = (f"LANGMATCHES(LANG(?l), {quoted(tag)})" if tag else 'LANG(?l) = ""' for tag in languages)
        only = f"FILTER({' || '.join(tests)})" if preferred else ""
        rows = self._whole(
            f"SELECT ?v ?p ?l WHERE {{ VALUES ?v {{ {' '.join(map(n3, iris))} }}"
            f" VALUES ?p {{ {' '.join(map(n3, predicates))} }}"
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


def _parts(url: str) -> SplitResult:
    """The parts of an address. Raises SettingError, without urllib's words, which may hold a password."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if "@" not in f"{parts.path}{parts.query}{parts.fragment}":  # else a login may have ended too early
            _ = parts.port
            return parts
    hint = "write it like https://dbpedia.org/sparql; in user and password write %2F %3F %23 for / ? #"
    raise SettingError(f"{shown(url)!r} is not an address", hint=f"{hint}, and after the host %40 for @")


def _parameter(name: str, value: str) -> tuple[str, str]:
    """A parameter as it is sent, with what of it may not be shown as a Secret."""
    if is_plain(name, value):
        return name, value
    return (name, Secret(value)) if value.strip("=") else (Secret(name), value)


def _fingerprint(parameters: Sequence[tuple[str, str]]) -> str:
    """What sets addresses apart whose parameters are hidden, but for keys: too short to find a value by."""
    hidden = [pair for pair in parameters if hidden_in([pair]) and not SECRET_NAME.search(pair[0])]
    return f"#{hashlib.sha256(urlencode(hidden).encode()).hexdigest()[:6]}" if hidden else ""


_CHECK = "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"


def _json(reply: Reply) -> dict[str, Any]:
    text = reply.body.decode("utf-8", errors="replace")
    if broken := reply.broken:
        _log.warning("%s; broken characters of texts are replaced", broken)
    try:
        data = json.loads(text, strict=False, object_hook=_unbroken if broken else None)
    except (ValueError, RecursionError) as error:
        raise _no_result(reply, f"broken JSON: {error}") from error
    if not isinstance(data, dict):
        raise _no_result(reply, "JSON of another kind")
    if said := data.get("error") or data.get("exception"):
        raise _no_result(reply, f"it says {said!r}")
    return data


def _table(reply: Reply) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The variables and the rows of a result."""
    data = _json(reply)
    try:
        named, rows = data["head"]["vars"], data["results"]["bindings"]
    except (KeyError, TypeError) as error:
        raise _no_result(reply, error) from error
    if not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise _no_result(reply, "its variables are no list of names")
    if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise _no_result(reply, "its rows are no list of rows")
    return tuple(named), rows


def _unbroken(data: dict[str, Any]) -> dict[str, Any]:
    """An object of a reply that is not UTF-8: an IRI or a number with a character replaced is another one."""
    if (data.get("type") == "uri" or "datatype" in data) and "\ufffd" in str(data.get("value")):
        raise ValueError(f"{data['value']} is not UTF-8")
    return data


def _no_result(reply: Reply, seen: object) -> GraphError:
    said = reply.body[:1000].decode("utf-8", errors="replace").strip()
    what = "a web page" if said[:1] == "<" and reply.kind[-3:] != "xml" else "what is no SPARQL result"
    message = f"the endpoint sent {what} ({reply.kind}): {cut(said, 200)!r}; {seen}"
    return GraphError(without(message, reply.secrets), hint=_CHECK)


def _term(data: Mapping[str, str]) -> Term:
    value = data["value"]
    if not isinstance(value, str) or (data["type"] == "uri" and HALF.search(value)):
        raise ValueError(f"not an RDF term: {data!r}")
    value = HALF.sub("\ufffd", value)
    match data["type"]:
        case "uri":
            return URIRef(value)
        case "bnode":
            return BNode(value)
        case "literal" | "typed-literal":
            datatype = data.get("datatype", "")
            return literal(value, "" if datatype == _STRING else datatype, data.get("xml:lang", ""))
    raise ValueError(f"not an RDF term: {data!r}")
