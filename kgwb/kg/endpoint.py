"""A SPARQL endpoint on the network, through SPARQLWrapper."""

from __future__ import annotations

import json
import logging
import sys
from copy import copy
from typing import Any

import pyoxigraph
from rdflib import URIRef

from kgwb.errors import GraphError, GraphTimeoutError, QueryError
from kgwb.flow import Term, Triple, term_from_data
from kgwb.kg.base import Limits, Rows, Vocabulary
from kgwb.kg.dialects import Dialect, named
from kgwb.kg.local import from_ox
from kgwb.kg.muting import hide, mute
from kgwb.kg.parsing import reply_parsed
from kgwb.kg.searching import SearchedByQueries
from kgwb.kg.sparql import HALF, Checked, Form, checked
from kgwb.kg.transport import Address, Reply, ask
from kgwb.kg.vocabularies import well_known
from kgwb.masking import cut, without

_CHECK = "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
_SORTED_TOP = "SR353"
"""Virtuoso sorts 10,000 rows at most where a query has a LIMIT, and any number where it has none."""
_log = logging.getLogger("kgwb")


class Endpoint(SearchedByQueries):
    """A Graph behind a URL. Its methods block while the endpoint works, and raise GraphError.

    An endpoint whose time is over may send what it has. Of a query that only gathers (``Checked.monotone``)
    rows are handed on and marked as cut, and a true ASK is true. All else would be a wrong answer and is a
    GraphTimeoutError: no row at all, a number that was counted, the first rows of an order, what must not
    be there, a false ASK, triples (which cannot say that they are cut), and a search for labels.
    """

    def __init__(
        self,
        url: str,
        *,
        dialect: str | Dialect | None = None,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(None if dialect is None else named(dialect))
        self._address = Address(url)
        self.source, self.identity = self._address.source, self._address.identity
        self.vocabulary, self.limits = vocabulary or well_known(url), limits or Limits()

    def without(self, *triples: Triple) -> Endpoint:
        """See Graph. Raises GraphError for a label that is searched by an API, which knows no muting."""
        if not self.dialect.pattern and any(triple[1] in self.vocabulary.labels for triple in triples):
            raise GraphError(
                "a label cannot be muted where an API searches the labels",
                hint='open the graph with dialect="generic", which searches by SPARQL',
            )
        graph = copy(self)
        graph.__dict__.pop("_labelling", None)
        graph.muted, graph.whole_graph = mute(self.muted, triples), self.whole_graph
        return graph

    def select(self, query: str) -> Rows:
        """See Graph."""
        return self._select(query)

    def whole(self, query: str, magic: str = "", *, intact: bool = False) -> Rows:
        """See SearchedByQueries."""
        return self._select(query, magic, whole=True, intact=intact)

    def _select(self, query: str, magic: str = "", *, whole: bool = False, intact: bool = False) -> Rows:
        request, reply = self._asked(query, ("select",), magic)
        names, table = _table(reply, intact=intact)
        variables = request.variables or names  # what was asked for, whatever the reply says
        if any(table) and not any(row.keys() & set(variables) for row in table):
            raise _no_result(reply, f"it has no column of {', '.join(variables)}")
        try:
            rows = tuple(
                tuple(_term(row[name]) if name in row else None for name in variables)
                for row in table[: self.limits.row_limit]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _no_result(reply, error) from error
        if reply.partial and (whole or not (rows and request.monotone)):
            raise self._out_of_time()
        most = min(self.limits.row_limit + 1, reply.most_rows or sys.maxsize)
        return Rows(variables, rows, cut=reply.partial or len(table) >= most)

    def ask(self, query: str) -> bool:
        """See Graph."""
        request, reply = self._asked(query, ("ask",))
        if not isinstance(truth := _json(reply).get("boolean"), bool):
            names, rows = _table(reply)  # Virtuoso 7 answers with a row instead, or with none
            try:
                truths = [{"1": True, "0": False}[row["__ASK_RETVAL"]["value"]] for row in rows]
            except (KeyError, TypeError) as error:
                raise _no_result(reply, error) from error
            if names != ("__ASK_RETVAL",):
                raise _no_result(reply, "neither true nor false")
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
        triples: dict[Triple, None] = {}
        try:
            for quad in reply_parsed(reply.body, form, self._address.url, self.limits.query_timeout_s):
                triples[from_ox(quad.subject), URIRef(quad.predicate.value), from_ox(quad.object)] = None
                if len(triples) == self.limits.row_limit:
                    break
        except TimeoutError:
            what = f"parsing what {self.source} sent took longer than {self.limits.query_timeout_s:g} s"
            raise GraphTimeoutError(what, hint="ask for less, or raise query_timeout_s") from None
        except (SyntaxError, ValueError) as error:
            raise _no_result(reply, getattr(error, "msg", error)) from error
        if not triples and b"error" in reply.body.lower():  # in a comment, or as JSON-LD that says nothing
            raise _no_result(reply, "no triples, but an error")
        return tuple(triples)

    def __repr__(self) -> str:
        return f"Endpoint({self.source!r})"

    def _asked(self, query: str, forms: tuple[Form, ...], magic: str = "") -> tuple[Checked, Reply]:
        """What the gate reads of a query of one of these forms, and the reply to it."""
        request = checked(query, allow_service=self.limits.allow_service, magic=magic)
        if request.form not in forms:
            raise QueryError(f"this is no {forms[0].upper()} query but {request.form.upper()}")
        if self.muted:
            text = hide(request.text, self.muted)
            request = checked(text, allow_service=self.limits.allow_service, magic=magic)
        parameters = []
        if (dialect := self.__dict__.get("dialect")) and dialect.name == "virtuoso":
            # Virtuoso takes up to twice this time; then it sends what it has, which beats hanging up on it.
            parameters.append(("timeout", str(max(1000, int(self.limits.query_timeout_s * 500)))))
        unlimited = request.form == "ask" or request.limited or request.values
        text = request.text if unlimited else f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
        try:
            reply = ask(self._address, text, request.form, self.limits, parameters)
        except QueryError as error:
            if unlimited or _SORTED_TOP not in error.message:
                raise
            reply = ask(self._address, request.text, request.form, self.limits, parameters)
        self.server = reply.server
        return request, reply

    def _out_of_time(self) -> GraphTimeoutError:
        return GraphTimeoutError(
            f"{self.source} ran out of time, and what it found until then is no answer",
            hint="ask for less, or raise query_timeout_s",
        )


def _json(reply: Reply, *, intact: bool = False) -> dict[str, Any]:
    """The object of a reply; what of its texts is not UTF-8 is replaced, or if ``intact`` an error."""
    hook = None
    try:
        text = reply.body.decode("utf-8")
    except UnicodeDecodeError as error:
        broken = f"not UTF-8 throughout: {error}"
        if intact:
            raise _no_result(reply, broken) from error
        _log.warning("%s; broken characters of texts are replaced", broken)
        text, hook = reply.body.decode("utf-8", errors="replace"), _unbroken
    try:
        data = json.loads(text, strict=False, object_hook=hook)
    except (ValueError, RecursionError) as error:
        raise _no_result(reply, f"broken JSON: {error}") from error
    if not isinstance(data, dict):
        raise _no_result(reply, "JSON of another kind")
    if problem := data.get("error") or data.get("exception"):
        raise _no_result(reply, f"it says {problem!r}")
    return data


def _unbroken(data: dict[str, Any]) -> dict[str, Any]:
    """An object of a reply that is not UTF-8: an IRI or a number with a character replaced is another one."""
    if (data.get("type") == "uri" or "datatype" in data) and "\ufffd" in str(data.get("value")):
        raise ValueError(f"{data['value']} is not UTF-8")
    return data


def _table(reply: Reply, *, intact: bool = False) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The variables and the rows of a result."""
    data = _json(reply, intact=intact)
    try:
        names, rows = data["head"]["vars"], data["results"]["bindings"]
    except (KeyError, TypeError) as error:
        raise _no_result(reply, error) from error
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise _no_result(reply, "its variables are no list of names")
    if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise _no_result(reply, "its rows are no list of rows")
    return tuple(names), rows


def _no_result(reply: Reply, problem: object) -> GraphError:
    start = reply.body[:1000].decode("utf-8", errors="replace").strip()
    what = "a web page" if start[:1] == "<" and reply.kind[-3:] != "xml" else "what is no SPARQL result"
    message = f"the endpoint sent {what} ({reply.kind}): {cut(start, 200)!r}; {problem}"
    return GraphError(without(message, reply.hidden), hint=_CHECK)


def _term(data: Any) -> Term:
    value = data["value"]
    broken = not isinstance(value, str) or HALF.search(value) or "\ufffd" in value
    if broken and (not isinstance(value, str) or data["type"] == "uri"):  # another IRI than was meant
        raise ValueError(f"not an RDF term: {data!r}")
    return term_from_data({**data, "value": HALF.sub("\ufffd", value)})
