"""Queries that systems write themselves: how they are run, what their rows stand on, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number

from rdflib import Literal, URIRef

from kgwb.errors import GraphError, QueryError
from kgwb.kg.base import Graph, Rows
from kgwb.kg.queries import Row, support_of
from kgwb.kg.sparql import checked
from kgwb.run import Run
from kgwb.terms import Term, Triples


def result_of(kg: Graph, sparql: str) -> Rows | bool:
    """The rows of a SELECT, or the truth of an ASK. Raises a GraphError, also for a query of another form."""
    if (form := checked(sparql).form) not in ("select", "ask"):
        raise QueryError(f"it is a {form.upper()}; write a SELECT or an ASK")
    return kg.ask(sparql) if form == "ask" else kg.select(sparql)


def labels_of(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """What each term is called: an IRI by its name, anything else as it is written."""
    distinct = dict.fromkeys(terms)
    names = run.kg.names([term for term in distinct if isinstance(term, URIRef)])
    return {term: names[term] if isinstance(term, URIRef) else str(term) for term in distinct}


def is_number(term: Term) -> bool:
    """Whether a term is a literal whose value is a number."""
    value = term.value if isinstance(term, Literal) else None
    return isinstance(value, Number) and not isinstance(value, bool)


def names_in(rows: Iterable[Row], run: Run) -> Mapping[URIRef, str]:
    """What the IRIs in some rows are called."""
    return run.kg.names(sorted({cell for row in rows for cell in row if isinstance(cell, URIRef)}))


def supports(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> Mapping[Row, Triples]:
    """Triples by row, see ``support_of``; where the graph does not say, none, and the step notes why."""
    try:
        return support_of(run.kg, sparql, columns, rows)
    except GraphError as error:
        run.note(f"what the answer stands on was not found: {error.message}")
        return {}
