"""Queries that systems write themselves: how they are run, what their rows stand on, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING

from rdflib import Literal, URIRef

from kgwb.deprecated import renamed_names
from kgwb.errors import GraphError, QueryError
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.queries import Row, find_support_by_row
from kgwb.kg.sparql import validate_query
from kgwb.run import Run
from kgwb.terms import Term, Triples


def execute_sparql(kg: Graph, sparql: str) -> ResultSet | bool:
    """The rows of a SELECT, or the truth of an ASK. Raises a GraphError, also for a query of another form."""
    if (form := validate_query(sparql).form) not in ("select", "ask"):
        raise QueryError(f"it is a {form.upper()}; write a SELECT or an ASK")
    return kg.ask(sparql) if form == "ask" else kg.select(sparql)


def label_terms(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """What each term is called: an IRI by its name, anything else as it is written."""
    distinct = dict.fromkeys(terms)
    names = run.kg.names([term for term in distinct if isinstance(term, URIRef)])
    return {term: names[term] if isinstance(term, URIRef) else str(term) for term in distinct}


def is_number(term: Term) -> bool:
    """Whether a term is a literal whose value is a number."""
    value = term.value if isinstance(term, Literal) else None
    return isinstance(value, Number) and not isinstance(value, bool)


def get_names_in_rows(rows: Iterable[Row], run: Run) -> Mapping[URIRef, str]:
    """What the IRIs in some rows are called."""
    return run.kg.names(sorted({cell for row in rows for cell in row if isinstance(cell, URIRef)}))


def find_row_support(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> Mapping[Row, Triples]:
    """Triples by row, see ``support_of``; where the graph does not say, none, and the step notes why."""
    try:
        return find_support_by_row(run.kg, sparql, columns, rows)
    except GraphError as error:
        run.note(f"what the answer stands on was not found: {error.message}")
        return {}


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
