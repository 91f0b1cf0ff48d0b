"""What the rows of a query stand on, for the systems that answer by queries of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgwb.errors import GraphError
from kgwb.flow import Triples
from kgwb.kg.queries import Row, support_of
from kgwb.run import Run


def supports(sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run) -> Mapping[Row, Triples]:
    """Triples by row, see ``support_of``; where the graph does not say, none, and the step notes why."""
    try:
        return support_of(run.kg, sparql, columns, rows)
    except GraphError as error:
        run.note(f"what the answer stands on was not found: {error.message}")
        return {}
