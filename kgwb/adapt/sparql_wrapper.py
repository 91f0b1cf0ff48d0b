"""SPARQLWrapper: inside a run, its queries are queries of the run."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from typing import Any

import rdflib
from rdflib.query import Result
from SPARQLWrapper import SPARQLWrapper
from SPARQLWrapper.Wrapper import QueryResult

from kgwb.adapt.rdflib_graph import fill_select_result, graph_of
from kgwb.adapt.recorded_queries import record_query
from kgwb.errors import GraphError, SettingError
from kgwb.kg.base import ResultSet
from kgwb.kg.responses import parse_cell
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.steps import current_run
from kgwb.terms import Term
from kgwb.text import mask_url

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
        form = str(self.queryType).lower()
        if run is None or form not in ("select", "ask", "construct", "describe"):
            return super().query()
        if form in ("construct", "describe"):
            return self._query_graph(run, form)
        return self._query_result(run, form)

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

        Raises SettingError for a format that is not in GRAPH_FORMATS.
        """
        content_type = _content_type(GRAPH_FORMATS, self.returnFormat)
        graph = graph_of(self._record(run, "construct", self._send_graph_query))
        file_format = "xml" if self.returnFormat.startswith("rdf") else self.returnFormat
        body = graph.serialize(format=file_format, encoding="utf-8")
        return self._response(body, content_type)

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
        body = self._plain("turtle").response.read()
        return tuple(rdflib.Graph().parse(data=body, format="turtle"))


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
