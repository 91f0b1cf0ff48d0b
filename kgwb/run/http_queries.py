"""Queries of SPARQL's protocol among HTTP requests: how they are read, and their results in the formats of the web."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pyoxigraph
import rdflib
from oxrdflib._converter import to_ox
from rdflib import Variable
from rdflib.query import Result

from kgwb.errors import QueryError
from kgwb.kg.base import ResultSet
from kgwb.kg.local import read_triples
from kgwb.kg.responses import EndpointResponse
from kgwb.kg.sparql import validate_query
from kgwb.kg.sparql_client import rdf_format
from kgwb.terms import Triple
from kgwb.text import MASK, SECRET_NAME_PATTERN, mask_url

FORMAT_PARAMETERS = ("format", "output", "results")
"""Parameters in which clients name the format of a result. They do not decide what the result is."""
RESULT_FORMATS = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
}
"""The media type in which the result of a SELECT or ASK is written, by the format's name in media types."""
GRAPH_FORMATS = {
    "turtle": "text/turtle",
    "n-triples": "application/n-triples",
    "xml": "application/rdf+xml",
    "json": "application/ld+json",
}
"""The media type in which a graph is written, by the format's name in media types."""


class WebQuery(NamedTuple):
    """A query that is sent to an endpoint by SPARQL's protocol."""

    form: str
    """"select", "ask", "construct" or "describe"."""
    text: str
    endpoint: str
    """The address without parameters, and with secrets masked."""
    parameters: Mapping[str, list[str]]
    """The other parameters that decide the result."""
    accepted: str
    """What the client says of the format that it wants."""

    @property
    def kind(self) -> str:
        """The kind of call that it is."""
        return "construct" if self.form == "describe" else self.form

    @property
    def wanted_formats(self) -> list[str]:
        """The names of the formats that the client asks for; empty if it takes any."""
        formats = GRAPH_FORMATS if self.kind == "construct" else RESULT_FORMATS
        return [name for name in formats if name in self.accepted]

    def accepts(self, media_type: str) -> bool:
        """Return whether the client takes a result of this media type."""
        wanted = self.wanted_formats
        return not wanted or any(name in media_type for name in wanted)


def read_web_query(
    method: str, url: str, headers: Mapping[str, str], body: bytes
) -> WebQuery | None:
    """Return the query of an HTTP request; None for any other request, such as an update.

    A query is sent in the address, as a form, or as the body.
    """
    if method not in ("GET", "POST"):
        return None
    address, _, _ = url.partition("?")
    parameters = parse_qs(urlsplit(url).query)
    content_type = headers.get("content-type", "")
    text = body.decode("utf-8", "replace")
    if content_type.startswith("application/x-www-form-urlencoded"):
        parameters.update(parse_qs(text))
    elif content_type.startswith("application/sparql-query"):
        parameters["query"] = [text]
    [query] = parameters.pop("query", [""])[:1]
    try:
        form = validate_query(query, allow_service=True).form
    except QueryError:
        return None
    accepted = headers.get("accept", "")
    kept = {}
    for name, values in parameters.items():
        if name in FORMAT_PARAMETERS:
            accepted += f" {values[0]}"
        else:
            kept[name] = [MASK] if SECRET_NAME_PATTERN.search(name) else values
    return WebQuery(form, query, mask_url(address), kept, accepted.lower())


def parse_result(query: WebQuery, media_type: str, body: bytes) -> Any:
    """Return the result of a query as a run records it, from the body of an endpoint's reply.

    Raises GraphError, ValueError or SyntaxError for a body of another form.
    """
    if query.kind == "construct":
        quads = pyoxigraph.parse(
            body, rdf_format(media_type), base_iri=query.endpoint, lenient=True
        )
        return read_triples(quads, max_triples=sys.maxsize)
    reply = EndpointResponse(body, media_type, is_partial=False)
    if query.kind == "ask":
        return reply.parse_boolean()
    return reply.parse_result_set((), sys.maxsize)


def write_result(query: WebQuery, recorded: Any) -> tuple[bytes, str]:
    """Return the result of a query in a format that its client asks for, with the media type.

    Graphs are written and read by Oxigraph: rdflib cuts doubles to seven digits in Turtle, and may
    leave INF and NaN out of JSON-LD.
    """
    wanted = query.wanted_formats
    if query.kind == "construct":
        form = wanted[0] if wanted else "turtle"
        media_type = GRAPH_FORMATS[form]
        quads: Any = map(to_ox, recorded)
        body = pyoxigraph.serialize(quads, format=rdf_format(media_type))
        return body or b"", media_type
    form = wanted[0] if wanted else "json"
    media_type = RESULT_FORMATS[form]
    body = result_of(query.form, recorded).serialize(format=media_type)
    return body or b"", media_type


# Results of rdflib


def recorded_form(result: Result) -> Any:
    """Return a result of rdflib as a run records it.

    A ResultSet for SELECT, a bool for ASK, a tuple of triples for CONSTRUCT and DESCRIBE. Raises
    QueryError for a triple term, which oxrdflib shows as a tuple: RDF 1.1 has none.
    """
    if result.type == "ASK":
        return bool(result.askAnswer)
    if result.type != "SELECT":
        return tuple(result.graph or ())
    variables = list(result.vars or ())
    rows: list[Any] = []
    for binding in result.bindings:
        row = tuple(map(binding.get, variables))
        if any(isinstance(cell, tuple) for cell in row):
            raise QueryError(
                "the result holds a triple term of RDF 1.2, which a run cannot record",
                hint="leave its variable out, or select SUBJECT(?t), PREDICATE(?t) and OBJECT(?t)",
            )
        rows.append(row)
    names = tuple(map(str, variables))
    return ResultSet(names, tuple(rows))


def result_of(form: str, recorded: Any) -> Result:
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
