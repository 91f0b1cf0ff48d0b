"""The number by which a query chose its rows: what is largest, and how large."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kgwb.errors import GraphError
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.findings import LIMIT_CLAUSE, MAX_EXTRA_ROWS, order_rows, select_also
from kgwb.kg.queries import Row
from kgwb.kg.sparql import split_clauses, validate_query
from kgwb.terms import Term

EXTREME = re.compile(
    r"\{\s*SELECT\s+\(\s*(?:MAX|MIN)\s*\(.*?\)\s*AS\s+\?(\w+)\s*\)\s*WHERE\b",
    re.IGNORECASE | re.DOTALL,
)
"""A subquery for the greatest or least of something alone, and the variable that has it."""
_ABOVE_OR_BELOW = r"\bFILTER\s*\(\s*(?:\?(\w+)\s*[<>]=?[^()&|]*\?{0}\b|\?{0}\s*[<>]=?\s*\?(\w+))"
"""A condition that a variable is above or below something computed with the variable in place of {0}."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What decided which rows a query has, with its value in each row."""

    name: str
    """A variable as "?n", or an expression."""
    values: tuple[Term | None, ...] = ()
    """In the order of the rows."""

    def __str__(self) -> str:
        return self.name


def find_measure(kg: Graph, sparql: str, result: ResultSet) -> Measure | None:
    """Return what a superlative was decided by, if the query does not select it.

    That is the first key of an ORDER BY with LIMIT, or the variable of the only subquery for a MAX
    or MIN. If that is only a bound, as in FILTER(?size >= ?third), it is what is compared with it:
    the number that each thing has itself. The query is sent again with it added. None for another
    query, if a column has the values already, if adding it changes the rows, or if the graph fails.
    """
    if not result.rows:
        return None
    with suppress(GraphError, ValueError):
        clauses = split_clauses(sparql)
        ordered = _order_rows(kg, sparql, result)
        if ordered:
            names, keys = ordered
            row_count = len(result.rows)
            first_keys = [row[0] for row in keys[:row_count]]
            return _measure_unless_shown(names[0], first_keys, result)
        variables = set(EXTREME.findall(clauses.where))
        is_computed = bool(clauses.aliases) or "GROUP" in clauses.modifiers.upper()
        if len(variables) != 1 or is_computed:
            return None
        [variable] = variables
        pattern = _ABOVE_OR_BELOW.format(variable)
        bound = re.search(pattern, clauses.where, re.IGNORECASE)
        if bound:
            variable = bound[1] or bound[2]
        if variable in result.variables:
            return None
        query = validate_query(sparql).text
        query = select_also(query, f"?{variable}")
        wider = kg.select(query)
        position = wider.variables.index(variable)
        measured: dict[Row, Term | None] = {}
        for row in wider.rows:
            before = row[:position]
            after = row[position + 1 :]
            measured[before + after] = row[position]
        is_same_number = len(wider.rows) == len(result.rows)
        if is_same_number and set(measured) == set(result.rows):
            values = [measured[row] for row in result.rows]
            return _measure_unless_shown(f"?{variable}", values, result)
    return None


def _order_rows(
    kg: Graph, sparql: str, result: ResultSet
) -> tuple[tuple[str, ...], list[Row]] | None:
    """Return what orders the rows of a query, and the values of these keys, as ``order_rows`` does.

    Where the LIMIT is reached, the query is the one that looks for ties beyond it: a graph whose
    results are kept has answered it already. If the rows beyond the LIMIT are split by their keys,
    the query is sent without them.
    """
    limit = LIMIT_CLAUSE.search(split_clauses(sparql).modifiers)
    if limit and len(result.rows) == int(limit[1]):
        ordered = order_rows(sparql, result.variables, kg, MAX_EXTRA_ROWS)
        if ordered:
            return ordered
    return order_rows(sparql, result.variables, kg)


def _measure_unless_shown(
    name: str, values: Sequence[Term | None], result: ResultSet
) -> Measure | None:
    """Return the measure; None if it is empty, does not fit the rows, or is a column of them."""
    if len(values) != len(result.rows) or None in values:
        return None
    listed = list(values)
    for position in range(len(result.variables)):
        column = [row[position] for row in result.rows]
        if column == listed:
            return None
    return Measure(name, tuple(values))
