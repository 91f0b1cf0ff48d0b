"""Executor: a query is run, and what is odd about its result is noticed."""

from __future__ import annotations

from rdflib import URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.flow import Term, counted
from kgwb.kg.findings import Facts, findings_of
from kgwb.kg.survey_text import quoted, short_name
from kgwb.run import Run, agent
from kgwb.systems.queries import result_of
from kgwb.systems.surveyor.records import Executed


@agent("executor", subject="place", kind="sparql")
def execute(place: str, sparql: str, facts: Facts, run: Run) -> Executed:
    """The rows of a query with what is odd about them; what the graph refuses is told, and is no error."""
    try:
        result = result_of(run.kg, sparql)
    except GraphUnreachableError:
        raise
    except GraphError as error:
        return Executed(sparql, error=error.message)
    findings = tuple(findings_of(run.kg, sparql, result, facts))
    if isinstance(result, bool):
        return Executed(sparql, truth=result, findings=findings)
    iris = sorted({cell for row in result.rows for cell in row if isinstance(cell, URIRef)})
    try:
        names = dict(run.kg.names(iris)) if iris else {}
    except GraphError as error:
        names = {}
        run.note(f"the rows stay without names: {error.message}")
    return Executed(sparql, result.variables, result.rows, findings, names=tuple(sorted(names.items())))


def result_text(executed: Executed, most: int) -> str:
    """A result as a reviewer reads it: the findings, then the first rows with labels in quotes."""
    if executed.error:
        return f"! It could not be run: {quoted(executed.error, 600)}"
    names = dict(executed.names)
    lines = [executed.outcome, *(f"{'! ' if each.wrong else '- '}{each}" for each in executed.findings)]

    def cell(term: Term | None) -> str:
        if isinstance(term, URIRef):
            return f"{short_name(term)} {quoted(names.get(term, ''))}"
        return "" if term is None else quoted(term, 80)

    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
        lines += [" | ".join(map(cell, row)) for row in executed.rows[:most]]
        if len(executed.rows) > most:
            lines.append(f"and {counted(len(executed.rows) - most, 'more row')}")
    return "\n".join(lines)
