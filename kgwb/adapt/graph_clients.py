"""Graphs of rdflib and endpoints of SPARQLWrapper: inside a run, their queries are queries of the run."""

from __future__ import annotations

import copy
import hashlib
import io
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyoxigraph
import rdflib
from oxrdflib._converter import to_ox
from rdflib import BNode, Variable
from rdflib.query import Result
from SPARQLWrapper import SPARQLWrapper
from SPARQLWrapper.Wrapper import QueryResult

from kgwb.adapt.clients import missing_calls_noted
from kgwb.errors import GraphError, QueryError, SettingError
from kgwb.kg.base import ResultSet
from kgwb.kg.local import read_triples
from kgwb.kg.responses import parse_cell
from kgwb.kg.sparql import is_serializable, n3, validate_query
from kgwb.kg.sparql_client import rdf_format
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.steps import current_run
from kgwb.terms import Term, Triple
from kgwb.text import mask_url


def record_query(
    run: Run,
    form: str,
    identity: str,
    query: str,
    make: Callable[[], Any],
    *,
    parameters: JsonObject | None = None,
) -> Any:
    """Return the recorded result of a query; without one, call ``make`` and record what it returns.

    ``form`` is "select", "ask" or "construct": the result is a ResultSet, a bool, or triples.
    ``identity`` is that of the pipeline's graph. ``query`` is recorded with the triples that are
    muted in the run and, if given, ``parameters``. ``make`` is not called in a replay.

    Raises NotRecordedError in a replay that lacks the query, and what ``make`` raises.
    """
    request: JsonObject = {"graph": identity, "query": query, **run.kg.muted_data}
    if parameters:
        request["parameters"] = parameters
    with missing_calls_noted(run):
        return run.call(form, request, None if run.is_replay else make)


Bindings = Mapping[str, Term]
"""Terms by the name of their variable."""
_reading_runs: weakref.WeakSet[Run] = weakref.WeakSet()
"""The runs in which a wrapped graph was read."""


def wrap_rdflib(graph: rdflib.Graph) -> rdflib.Graph:
    """Return a graph with the same triples whose queries go through the run.

    Inside a run, ``query`` is recorded and found again, and neither queries nor methods such as
    ``objects`` see the triples that are muted in the run. Outside of a run it is the plain graph.
    Both graphs share their triples.

    Raises SettingError for a Dataset, and for what is no graph of rdflib.
    """
    is_dataset = isinstance(graph, rdflib.Dataset | rdflib.ConjunctiveGraph)
    if not isinstance(graph, rdflib.Graph) or is_dataset:
        raise SettingError(
            f"wrap_rdflib got a {type(graph).__name__}, which is not a single rdflib.Graph",
            hint="pass one graph, such as a named graph of a Dataset",
        )
    return RecordedRdflibGraph(graph)


class RecordedRdflibGraph(rdflib.Graph):
    """An rdflib graph whose queries are recorded inside a run. See ``wrap_rdflib``."""

    def __init__(self, graph: rdflib.Graph) -> None:
        super().__init__(
            store=graph.store,
            identifier=graph.identifier,
            namespace_manager=graph.namespace_manager,
            base=graph.base,
        )
        self._digest = (-1, "")
        """The number of triples at the last digest, and the digest."""
        self._digest_lock = threading.Lock()

    def triples(self, triple: Any) -> Iterator[Any]:  # type: ignore[override]
        """Yield the triples that match a pattern, without those that are muted in the run.

        The run is noted as one that read a wrapped graph.
        """
        run = current_run()
        muted: Any = ()
        if run is not None:
            _reading_runs.add(run)
            muted = run.kg.muted
        for found in super().triples(triple):
            if found not in muted:
                yield found

    def query(
        self,
        query_object: Any,
        processor: Any = "sparql",
        result: Any = "sparql",
        initNs: Mapping[str, Any] | None = None,
        initBindings: Mapping[Any, Any] | None = None,
        use_store_provided: bool = True,
        **options: Any,
    ) -> Result:
        """Return the run's result of a query; without one, ask rdflib and record it.

        Outside of a run rdflib is asked. It is also asked for a query that kgwb does not accept,
        such as one with a mistake; the step then has a note that it was not recorded.
        """
        plain_query = super().query

        run = current_run()
        # A store that answers queries itself would not ask ``triples``, which leaves out the muted.
        if run is not None and run.kg.muted:
            use_store_provided = False

        def query_plainly() -> Result:
            """Ask rdflib itself."""
            return plain_query(
                query_object, processor, result, initNs, initBindings, use_store_provided, **options
            )

        if run is None:
            return query_plainly()
        try:
            text = self._self_contained(query_object, initNs)
            bindings = _named_bindings(initBindings or {})
            form = validate_query(text, allow_service=True).form
        except QueryError as error:
            run.note(f"a query of rdflib was not recorded: {error.message}")
            return query_plainly()
        kind = "construct" if form == "describe" else form

        def make() -> Any:
            """Return the result of the query as a run records it."""
            return _recorded_form(query_plainly())

        if bindings:
            text += _values_of(bindings)
        recorded = record_query(run, kind, self._identity(), text, make)
        return _result_of(form, recorded)

    def _self_contained(self, query: Any, prefixes: Mapping[str, Any] | None) -> str:
        """Return the text of a query with PREFIX lines for the prefixes that it does not declare.

        As in rdflib, these are the given prefixes, else those of the graph. ``query`` may be
        prepared by rdflib. Raises QueryError for a text that is not a query.
        """
        text = query
        original = getattr(query, "_original_args", None)  # of rdflib's prepareQuery
        if original is not None:
            text, prepared_prefixes, _ = original
            prefixes = {**(prefixes or {}), **(prepared_prefixes or {})}
        known = dict(prefixes or self.namespaces())
        lines = []
        for prefix in validate_query(str(text), allow_service=True).undeclared_prefixes:
            if prefix in known:
                lines.append(f"PREFIX {prefix}: <{known[prefix]}>")
        return "\n".join([*lines, str(text)])

    def _identity(self) -> str:
        """Return a digest of the triples, in which all blank nodes are equal.

        It is computed again only if the number of triples has changed.
        """
        with self._digest_lock:
            size = len(self.store)
            if self._digest[0] != size:
                self._digest = (size, _digest_of(super().triples((None, None, None))))
            return self._digest[1]


def has_read_wrapped_graph(run: Run) -> bool:
    """Return whether a wrapped graph was read in a run, by a query or by methods such as ``objects``."""
    return run in _reading_runs


def _digest_of(triples: Iterable[Any]) -> str:
    """Return a digest of triples, "rdflib:" and 64 hexadecimal digits.

    It does not depend on the order of the triples, nor on the names of blank nodes, which all count
    as one.
    """
    total = 0
    for triple in triples:
        parts = ["_:" if isinstance(term, BNode) else term.n3() for term in triple]
        text = " ".join(parts).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(text).digest()
        total += int.from_bytes(digest, "big")
    return f"rdflib:{total % 2**256:064x}"


def _named_bindings(bindings: Mapping[Any, Any]) -> Bindings:
    """Return bindings by the name of the variable, without "?".

    Raises QueryError for a term that cannot stand in a query.
    """
    named = {}
    for variable, term in bindings.items():
        if not is_serializable(term):
            raise QueryError(
                f"{variable} is bound to {term!r}, which cannot stand in a query",
                hint="in initBindings, give each variable a URIRef or a Literal with valid characters",
            )
        named[str(variable).lstrip("?")] = term
    return named


def _values_of(bindings: Bindings) -> str:
    """Return a VALUES clause that binds the variables as ``initBindings`` does."""
    variables = [f"?{name}" for name in bindings]
    terms = map(n3, bindings.values())
    return f"\nVALUES ({' '.join(variables)}) {{ ({' '.join(terms)}) }}"


def _recorded_form(result: Result) -> Any:
    """Return a result of rdflib as a run records it.

    A ResultSet for SELECT, a bool for ASK, a tuple of triples for CONSTRUCT and DESCRIBE.
    """
    if result.type == "ASK":
        return bool(result.askAnswer)
    if result.type != "SELECT":
        return tuple(result.graph or ())
    variables = list(result.vars or ())
    rows: list[Any] = []
    for binding in result.bindings:
        row = map(binding.get, variables)
        rows.append(tuple(row))
    names = tuple(map(str, variables))
    return ResultSet(names, tuple(rows))


def _result_of(form: str, recorded: Any) -> Result:
    """Return a recorded result as rdflib's Result; ``form`` is that of the query."""
    result = Result(form.upper())
    if form == "ask":
        result.askAnswer = recorded
    elif form == "select":
        fill_select_result(result, recorded)
    else:
        result.graph = graph_of(recorded)
    return result


def fill_select_result(result: Result, recorded: ResultSet) -> None:
    """Set ``vars`` and ``bindings`` of rdflib's result to the variables and rows of a run's result.

    An unbound cell is not in the binding of its row.
    """
    variables = [Variable(name) for name in recorded.variables]
    bindings: list[Any] = []
    for row in recorded.rows:
        pairs = zip(variables, row, strict=True)
        bindings.append({variable: term for variable, term in pairs if term is not None})
    result.vars = variables
    result.bindings = bindings


def graph_of(triples: tuple[Triple, ...]) -> rdflib.Graph:
    """Return a graph of rdflib with these triples."""
    graph = rdflib.Graph()
    for triple in triples:
        graph.add(triple)
    return graph


RESULT_FORMATS = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
}
"""The content type of each format in which the result of a SELECT or ASK can be returned."""
GRAPH_FORMATS = {
    "xml": "application/rdf+xml",
    "rdf": "application/rdf+xml",
    "rdf+xml": "application/rdf+xml",
    "turtle": "text/turtle",
    "n3": "text/turtle",
    "json-ld": "application/ld+json",
}
"""The content type of each format in which a graph can be returned."""


def wrap_sparqlwrapper(wrapper: SPARQLWrapper) -> SPARQLWrapper:
    """Return a SPARQLWrapper with the same settings whose queries go through the run.

    Inside a run, ``query`` and ``queryAndConvert`` are recorded and found again. In a run with
    muted triples they raise GraphError, because an endpoint cannot leave them out. Outside of a run
    it is the plain wrapper; updates are sent plainly in any case. The given wrapper does not change.

    Raises SettingError for anything but a SPARQLWrapper.
    """
    if type(wrapper) is not SPARQLWrapper:
        raise SettingError(
            f"wrap_sparqlwrapper got a {type(wrapper).__name__}, which is not a SPARQLWrapper",
            hint="pass a SPARQLWrapper.SPARQLWrapper",
        )
    wrapped = copy.copy(wrapper)
    wrapped.__class__ = RecordedSPARQLWrapper
    return wrapped


class RecordedSPARQLWrapper(SPARQLWrapper):
    """A SPARQLWrapper whose queries are recorded inside a run. See ``wrap_sparqlwrapper``."""

    def query(self) -> QueryResult:
        """Return the run's result of the present query, in the format that was set.

        Outside of a run, and for an update, the plain wrapper sends it.
        """
        run = current_run()
        form = self._form()
        if run is None or form not in ("select", "ask", "construct", "describe"):
            return super().query()
        if form in ("construct", "describe"):
            return self._query_graph(run, form)
        return self._query_result(run, form)

    def _form(self) -> str:
        """Return the form of the present query, in lower case.

        SPARQLWrapper tells it by a search for words, which finds those in comments, too. It is asked
        only for what does not parse as a query, such as an update.
        """
        try:
            return validate_query(self.queryString, allow_service=True).form
        except GraphError:
            return str(self.queryType).lower()

    def _query_result(self, run: Run, form: str) -> QueryResult:
        """Return the run's result of a SELECT or ASK, serialized in the format that was set.

        Raises SettingError for a format that is not in RESULT_FORMATS.
        """
        content_type = _content_type(RESULT_FORMATS, self.returnFormat)
        recorded = self._record(run, form, self._send_query)
        result = Result(form.upper())
        if form == "ask":
            result.askAnswer = recorded
        else:
            fill_select_result(result, recorded)
        body = result.serialize(format=self.returnFormat) or b""
        return self._response(body, content_type)

    def _query_graph(self, run: Run, form: str) -> QueryResult:
        """Return the run's result of a CONSTRUCT or DESCRIBE in the format that was set.

        It is written and read by Oxigraph: rdflib cuts doubles to seven digits in Turtle, and may
        leave INF and NaN out of JSON-LD. Raises SettingError for a format that is not in
        GRAPH_FORMATS.
        """
        content_type = _content_type(GRAPH_FORMATS, self.returnFormat)
        triples = []
        for triple in self._record(run, "construct", self._send_graph_query):
            terms: Any = map(to_ox, triple)
            triples.append(pyoxigraph.Triple(*terms))
        body = pyoxigraph.serialize(triples, format=rdf_format(content_type))
        return self._response(body or b"", content_type)

    def _response(self, body: bytes, content_type: str) -> QueryResult:
        """Return a result as if the endpoint had sent it in the format that was set."""
        response: Any = _Response(body, content_type, self.endpoint)
        return QueryResult((response, self.returnFormat))

    def _record(self, run: Run, kind: str, send: Any) -> Any:
        """Return the recorded result of the present query; without one, send and record it.

        It is recorded under the endpoint, with secrets masked, and all parameters besides the
        query. Raises GraphError in a run with muted triples.
        """
        if run.kg.muted:
            raise GraphError(
                "a SPARQLWrapper asks an endpoint, which cannot leave out the muted triples",
                hint="CONSTRUCT the part that the question needs, parse it into an rdflib.Graph, and"
                " ask that through wrap_rdflib",
            )
        parameters = {name: values for name, values in self.parameters.items() if name != "query"}
        return record_query(
            run, kind, mask_url(self.endpoint), self.queryString, send, parameters=parameters
        )

    def _plain(self, return_format: str) -> Any:
        """Send the present query by a plain wrapper with these settings, and return the response."""
        plain: Any = copy.copy(self)
        plain.__class__ = SPARQLWrapper
        plain.setReturnFormat(return_format)
        return plain.query()

    def _send_query(self) -> ResultSet | bool:
        """Send the present SELECT or ASK to the endpoint; return its rows or its truth value.

        The reply is asked for in JSON. Raises ValueError for a cell that is not an RDF term.
        """
        data: JsonObject = self._plain("json").convert()
        if "boolean" in data:
            return bool(data["boolean"])
        variables = tuple(data["head"].get("vars", ()))
        rows = tuple(_row_of(binding, variables) for binding in data["results"]["bindings"])
        return ResultSet(variables, rows)

    def _send_graph_query(self) -> tuple[Any, ...]:
        """Return the triples of the present CONSTRUCT or DESCRIBE, which is sent to the endpoint."""
        response = self._plain("turtle").response
        file_format = rdf_format(response.info()["content-type"] or "")
        body = response.read()
        quads = pyoxigraph.parse(body, file_format, base_iri=self.endpoint, lenient=True)
        return read_triples(quads, max_triples=sys.maxsize)


def _row_of(binding: JsonObject, variables: tuple[str, ...]) -> tuple[Term | None, ...]:
    """Return the terms of a row in the order of the variables; None for an unbound one."""
    cells = []
    for variable in variables:
        cell = binding.get(variable)
        cells.append(None if cell is None else parse_cell(cell))
    return tuple(cells)


def _content_type(formats: dict[str, str], return_format: str) -> str:
    """Return the content type of a result format, one of ``formats``.

    Raises SettingError, which lists them, for another format: a run cannot write it.
    """
    if return_format not in formats:
        raise SettingError(
            f"a SPARQLWrapper cannot return the format {return_format} inside a run",
            hint=f"call setReturnFormat with one of {', '.join(formats)}",
        )
    return formats[return_format]


class _Response(io.BytesIO):
    """A recorded result in the form of the response of an endpoint."""

    def __init__(self, body: bytes, content_type: str, url: str) -> None:
        super().__init__(body)
        self._content_type = content_type
        self._url = url

    def info(self) -> dict[str, str]:
        """Return the headers of the response."""
        return {"content-type": self._content_type}

    def geturl(self) -> str:
        """Return the address of the endpoint."""
        return self._url

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.getvalue().splitlines(keepends=True))
