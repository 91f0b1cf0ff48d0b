"""What systems share about queries: executing a query, and naming and supporting what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rdflib import BNode, URIRef

from kgwb.errors import GraphError, QueryError
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.queries import Row, find_support_by_row
from kgwb.kg.sparql import validate_query
from kgwb.run import Run
from kgwb.terms import NAMELESS, Term, Triples


def execute_sparql(kg: Graph, sparql: str) -> ResultSet | bool:
    """Check and execute a query; return the rows of a SELECT, or the truth of an ASK.

    Raises QueryError for any other form, QueryError or QueryRefusedError for a query that does not
    pass the gate, and the GraphErrors of its execution.
    """
    form = validate_query(sparql).form
    if form == "ask":
        return kg.ask(sparql)
    if form == "select":
        return kg.select(sparql)
    raise QueryError(f"it is a {form.upper()}; write a SELECT or an ASK")


def execute_unrecorded(sparql: str, run: Run) -> ResultSet | bool | None:
    """Execute a query outside of the record of a run, such as a gold query; see ``execute_sparql``.

    None if the graph rejects it, or without a graph that can be asked, as in a replay.
    """
    kg = run.unrecorded_graph
    if kg is None:
        return None
    try:
        return execute_sparql(kg, sparql)
    except GraphError:
        return None


def label_terms(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """Return the label of each distinct term, in their order: the display name of an IRI, or a literal's text.

    A blank node is NAMELESS. Names are asked of the graph with one request for all IRIs.
    """
    labels = {}
    for term in terms:
        labels[term] = NAMELESS if isinstance(term, BNode) else str(term)
    iris = [term for term in labels if isinstance(term, URIRef)]
    for iri, name in run.kg.names(iris).items():
        labels[iri] = name
    return labels


def get_names_in_rows(rows: Iterable[Row], kg: Graph) -> Mapping[URIRef, str]:
    """Return the display names of the IRIs in some rows, by IRI, with one request to the graph for all."""
    iris: set[URIRef] = set()
    for row in rows:
        iris.update(cell for cell in row if isinstance(cell, URIRef))
    return kg.names(sorted(iris))


def find_row_support(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> Mapping[Row, Triples]:
    """Return, by row, the triples of the graph that support it, see ``find_support_by_row``.

    ``columns`` are the variables of the rows' cells. If the graph fails to answer, an empty mapping
    is returned and the step gets a note with the reason, so that the answer is not lost.
    """
    try:
        return find_support_by_row(run.kg, sparql, columns, rows)
    except GraphError as error:
        run.note(f"the support of the answer was not found: {error.message}")
        return {}
