"""What is odd about the result of a query, in plain words: feedback for who wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rdflib import XSD, Literal, URIRef

from kgwb.errors import GraphError
from kgwb.kg.algebra import (
    PATH_PLACEHOLDER,
    TriplePattern,
    analyze_query,
    patterns_and_filters_to_sparql,
    patterns_to_sparql,
)
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.queries import Row, explain_empty_result
from kgwb.kg.queries import parse_count as number_of
from kgwb.kg.sparql import split_clauses, validate_query
from kgwb.kg.survey_records import Survey
from kgwb.kg.survey_text import format_value, quote_text, short_name
from kgwb.terms import Iri, name_from_iri
from kgwb.text import list_first, pluralize

MAX_PATTERNS = 10
"""Patterns of an empty query that are asked for one by one."""
MAX_EXTRA_ROWS = 20
"""Rows beyond a LIMIT that are looked at."""
NUMBER_PATTERN = re.compile(r"[-+]?\d+([.,]\d+)?")
LIMIT_CLAUSE = re.compile(r"\bLIMIT\s+(\d+)\s*$", re.IGNORECASE)
ORDER_BY_CLAUSE = re.compile(r"\bORDER\s+BY\s+(?:(?:ASC|DESC)\s*\(\s*)?\?(\w+)", re.IGNORECASE)
NUMERIC_DATATYPES = frozenset(
    XSD[name] for name in ("decimal", "double", "float", "integer", "int", "long")
)


@dataclass(frozen=True, slots=True)
class QuantityWithUnit:
    """A number that stands beside its unit or currency."""

    of: Iri
    """What leads to the node that both stand at."""
    number: Iri
    unit: Iri
    kinds: int
    """How many units or currencies there are."""

    def __str__(self) -> str:
        return f"{self.number} beside {self.unit}"


@dataclass(frozen=True, slots=True)
class SchemaFacts:
    """What a query is compared with: facts of a survey."""

    one_way: tuple[Iri, ...] = ()
    """Predicates within a class that are not asserted both ways."""
    amounts: tuple[QuantityWithUnit, ...] = ()

    def __str__(self) -> str:
        amounts = pluralize(len(self.amounts), "amount")
        return f"{pluralize(len(self.one_way), 'predicate')} in one direction, {amounts}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a query's result that a reader should know."""

    text: str
    wrong: bool = False
    """Whether it is likely to be a mistake, rather than how things are."""

    def __str__(self) -> str:
        return self.text


def extract_schema_facts(survey: Survey) -> SchemaFacts:
    """The predicates of one direction, and the amounts that stand beside a unit or currency."""
    one_way = tuple(predicate for predicate, n, both in survey.both_ways if both < n)
    amounts: dict[QuantityWithUnit, None] = {}
    for each in (each for kind in survey.classes for each in kind.properties):
        numbers = [p for p in each.inner if any(v.of in NUMERIC_DATATYPES for v in p.values)]
        for beside in (p for p in each.inner if len(numbers) == 1 and p is not numbers[0]):
            if 1 < (kinds := sum(values.distinct for values in beside.values)) <= 12:
                amounts[
                    QuantityWithUnit(each.predicate, numbers[0].predicate, beside.predicate, kinds)
                ] = None
    return SchemaFacts(one_way, tuple(amounts))


def inspect_result(
    kg: Graph, sparql: str, result: ResultSet | bool, facts: SchemaFacts
) -> Iterator[Finding]:
    """What is odd about the rows of a SELECT, or the truth of an ASK. What the graph refuses is left out."""
    if isinstance(result, bool):
        yield from () if result else _explain_empty_result(sparql, kg)
    else:
        rows = result.rows
        if result.cut:
            yield Finding(f"the result was cut at {pluralize(len(rows), 'row')}", wrong=True)
        if all(
            cell is None or str(cell) == "0" for row in rows for cell in row
        ):  # or there are none
            yield from _explain_empty_result(sparql, kg)
        for place, column in enumerate(result.variables):
            cells = [row[place] for row in rows]
            if empty := cells.count(None):
                text = f"?{column} is empty in {empty} of {pluralize(len(cells), 'row')}"
                yield Finding(text, wrong=empty == len(cells))
            texts = [
                c for c in cells if isinstance(c, Literal) and c.datatype in (None, XSD.string)
            ]
            if texts and len(texts) == len(cells) and all(map(NUMBER_PATTERN.fullmatch, texts)):
                yield Finding(
                    f"?{column} holds numbers kept as texts: as they are, 9 is greater than 10"
                )
        if twice := len(rows) - len(set(rows)):
            yield Finding(
                f"{pluralize(twice, 'row')} repeat another one; DISTINCT leaves them out",
                wrong=True,
            )
        yield from _find_ties_at_limit(sparql, result.variables, rows, kg)
    yield from _check_directions_and_units(sparql, facts, kg)


def _explain_empty_result(sparql: str, kg: Graph) -> Iterator[Finding]:
    """Which pattern leaves a query without rows, and whether it holds in the other direction."""
    with suppress(GraphError):
        parts = analyze_query(sparql)
        patterns = [pattern for pattern in parts.patterns if PATH_PLACEHOLDER not in pattern][
            :MAX_PATTERNS
        ]
        if (
            len(patterns) < len(parts.patterns) or parts.unsupported_feature
        ):  # part of it: each pattern for itself
            lonely = [pattern for pattern in patterns if not _has_match(kg, pattern)]
            culprits: Sequence[TriplePattern | str] = ()
        else:
            blocked = explain_empty_result(kg, patterns, parts.filters)
            lonely, culprits = list(blocked.unmatched_patterns), blocked.blocking_patterns
        for s, p, o in lonely:
            turned = not o.startswith('"') and _has_match(kg, (o, p, s))
            more = "; the other way round it holds" if turned else ""
            yield Finding(
                f"nothing in the graph matches {_format_pattern((s, p, o), kg)}{more}", wrong=True
            )
        for part in culprits:
            if isinstance(part, str):
                yield Finding(f"without the filters there are matches: {part[:300]}")
            elif part not in lonely:
                rest = [pattern for pattern in patterns if pattern != part]
                n = pluralize(
                    _count_solutions(
                        kg, patterns_and_filters_to_sparql(rest, parts.filters).strip()
                    ),
                    "match",
                )
                yield Finding(f"without {_format_pattern(part, kg)} there would be {n}")


def _count_solutions(kg: Graph, patterns: str) -> int:
    """How many solutions there are; some engines give no row where there is none."""
    rows = kg.select(f"SELECT (COUNT(*) AS ?n_) WHERE {{ {patterns} }}").rows
    return sum(number_of(cell) for row in rows for cell in row)


def _has_match(kg: Graph, pattern: TriplePattern) -> bool:
    return kg.ask(f"ASK {{ {patterns_to_sparql([pattern])} }}")


def _format_pattern(pattern: TriplePattern, kg: Graph) -> str:
    """A pattern with the names of its terms."""
    iris = [URIRef(end[1:-1]) for end in pattern if end.startswith("<")]
    names = kg.names(iris) if iris else {}
    named = {
        f"<{iri}>": f"{short_name(iri)} {quote_text(names.get(iri) or name_from_iri(iri))}"
        for iri in iris
    }
    return " ".join(named.get(end, end) for end in pattern)


def _find_ties_at_limit(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], kg: Graph
) -> Iterator[Finding]:
    """Whether rows beyond a LIMIT are level with the last one within it."""
    with suppress(GraphError, ValueError):
        text, rest = validate_query(sparql).text, split_clauses(sparql).modifiers
        limit, order = LIMIT_CLAUSE.search(rest), ORDER_BY_CLAUSE.search(rest)
        if not (limit and order and rows and len(rows) == int(limit[1])):
            return
        name, wider = (
            order[1],
            f"{text[: text.rindex(limit[0])]}LIMIT {int(limit[1]) + MAX_EXTRA_ROWS}",
        )
        if name not in columns:
            shown = rf"SELECT \1?{name} "
            wider = re.sub(r"\bSELECT\s+(DISTINCT\s+)?", shown, wider, count=1, flags=re.IGNORECASE)
        more = kg.select(wider)
        place = more.variables.index(name)
        repeated = len({row[:place] + row[place + 1 :] for row in more.rows}) < len(more.rows)
        if repeated and name not in columns and "DISTINCT" in text.upper():
            return  # what it is ordered by tells equal rows apart
        values = [row[place] for row in more.rows]
        inside, beyond = values[: len(rows)], values[len(rows) :]
        then = f"; beyond the LIMIT {list_first(map(format_value, beyond), 3)}" if beyond else ""
        yield Finding(f"ordered by ?{name}: {list_first(map(format_value, inside), 8)}{then}")
        if inside[-1] is not None and (level := beyond.count(inside[-1])):
            equals = f"{pluralize(level, 'more row')} with the same ?{name}"
            yield Finding(f"the LIMIT cuts among equals: {equals}", wrong=len(rows) == 1)


def _check_directions_and_units(sparql: str, facts: SchemaFacts, kg: Graph) -> Iterator[Finding]:
    """What predicates of one direction give in the other one, and amounts without their unit."""
    with suppress(GraphError):
        parts = analyze_query(sparql)
        used = [predicate[1:-1] for _, predicate, _ in parts.patterns]
        for pattern in parts.patterns if not parts.unsupported_feature else ():
            s, p, o = pattern
            if (
                URIRef(p[1:-1]) in facts.one_way
                and used.count(p[1:-1]) == 1
                and not o.startswith('"')
            ):
                turned = ((o, p, s) if each == pattern else each for each in parts.patterns)
                if n := _count_solutions(kg, patterns_and_filters_to_sparql(turned, parts.filters)):
                    yield Finding(
                        f"{short_name(p[1:-1])} the other way round has {pluralize(n, 'match')}"
                    )
        for amount in facts.amounts:
            if {str(amount.of), str(amount.number)} <= {*used} and str(amount.unit) not in used:
                beside = f"{short_name(amount.unit)}, of which there are {amount.kinds}"
                text = f"{short_name(amount.number)} stands beside {beside}; the query does not look at it"
                yield Finding(text, wrong=True)
