"""The SPARQL queries of a trace, executed again on a graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rdflib import Literal

from kgwb.errors import GraphError
from kgwb.flow import Answer, Value
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.sparql import validate_query
from kgwb.kg.support import find_support_by_row, with_display_names
from kgwb.records import Record, Sparql, one_line
from kgwb.run import Run
from kgwb.terms import Term, Triples
from kgwb.traces.conventions import query_of
from kgwb.traces.entries import step_keys
from kgwb.traces.otlp_file import Span


@dataclass(frozen=True, slots=True)
class TracedQuery(Record):
    """A query that a program executed."""

    result: str
    """Its result, as the trace has it."""
    sparql: Sparql
    run_again: Answer | None = None
    """What it returned when it was executed again; None if it was not."""

    def __str__(self) -> str:
        return self.result


def add_queries(run: Run, spans: Sequence[Span], kg: Graph | None) -> None:
    """Set the output of each step that executed a query to a TracedQuery.

    With a graph the queries are executed again; one that fails gets a note on its step. The answer
    of the run gets values and support of the last query that has values, and keeps its text.
    """
    keys = step_keys(spans)
    steps = run.steps_by_key
    for span in spans:
        sparql = query_of(span)
        if not sparql:
            continue
        step = steps[keys[span.span_id]]
        result = "no result in the trace"
        if step.output is not None:
            result = one_line(_plain(step.output))
        traced = TracedQuery(result, sparql)
        if kg is not None:
            try:
                traced = replace(traced, run_again=_execute(kg, sparql))
            except GraphError as error:
                step.notes.append(f"it could not be executed again: {error.message}")
        step.output = traced
        found = traced.run_again
        if found and run.answer is not None:
            run.answer = replace(found, text=run.answer.text)


def _plain(output: Any) -> str:
    """Return the result of a query as text, or as JSON text."""
    if isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False)


def _execute(kg: Graph, sparql: str) -> Answer:
    """Execute a SELECT or ASK on a graph, and return the result as an answer with its support.

    Each row is a value: its first cell that is bound. Raises GraphError if the query is refused,
    rejected, too slow, or has another form.
    """
    if validate_query(sparql, "select", "ask").form == "ask":
        return _execute_ask(kg, sparql)
    result = kg.select(sparql)
    support = find_support_by_row(kg, sparql, result.variables, result.rows)
    values = []
    for row in result.rows:
        cells = [cell for cell in row if cell is not None]
        if cells:
            values.append(Value(cells[0], str(cells[0]), support.get(row, ()), row))
    return _with_labels(kg, _answer_of_rows(result, values, sparql))


def _answer_of_rows(result: ResultSet, values: Sequence[Value], sparql: str) -> Answer:
    """Return an answer of the kind "list" with these values; without any, the reason says so.

    It is a table with columns if the result has several variables.
    """
    columns: tuple[str, ...] = tuple(result.variables)
    if len(columns) == 1:
        values = [replace(value, row=()) for value in values]
        columns = ()
    reason = "" if values else "the query has no rows"
    return Answer("list", tuple(values), (sparql,), reason=reason, columns=columns)


def _with_labels(kg: Graph, answer: Answer) -> Answer:
    """Return the answer with a display name for each IRI, which its values have as labels.

    The graph is asked for the names. Other values keep their labels.
    """
    named = with_display_names(kg, answer)
    names: dict[Term, str] = dict(named.names)
    values = []
    for value in named.values:
        label = names.get(value.term, value.label)
        values.append(replace(value, label=label))
    return replace(named, values=tuple(values))


def _execute_ask(kg: Graph, sparql: str) -> Answer:
    """Return the truth value of an ASK as an answer; if true, with one solution's triples."""
    is_true = kg.ask(sparql)
    support: Triples = ()
    if is_true:
        support = find_support_by_row(kg, sparql, (), ()).get((), ())
    label = str(is_true).lower()
    value = Value(Literal(is_true), label, support)
    return with_display_names(kg, Answer("boolean", (value,), (sparql,)))
