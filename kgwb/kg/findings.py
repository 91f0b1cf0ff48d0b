"""What is odd about the result of a query, in sentences for the model that wrote the query.

The sentences are part of recorded prompts: changing one makes recordings unusable. Here is also the
number by which a query chose its rows (``find_measure``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain

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
from kgwb.kg.queries import Row, explain_empty_result, parse_count
from kgwb.kg.sparql import select_also, split_clauses, validate_query
from kgwb.kg.survey_records import NUMERIC_DATATYPES, PropertySurvey, Survey
from kgwb.kg.term_text import bracket_iri, format_value, quote_text, short_name
from kgwb.records import frozen
from kgwb.terms import Iri, Term, name_from_iri
from kgwb.text import list_first, pluralize, tell_apart

MAX_PATTERNS = 10
"""Triple patterns of a query without rows that are tried one by one."""
MAX_EXTRA_ROWS = 20
"""Rows beyond a LIMIT that are looked at."""
MAX_SHOWN_ROWS = 8
MAX_SHOWN_EXTRA_ROWS = 3
MAX_UNITS = 12
"""A predicate with more distinct values is not taken for a unit or currency."""
MIN_THINGS_FOR_VALUE = 3
"""If a value of a predicate has so many things on average, the predicate leads from many to few."""
MAX_FILTER_CHARS = 300
NUMBER_PATTERN = re.compile(r"[-+]?\d+([.,]\d+)?")
MAY_UNBIND = ("OPTIONAL", "UNION", "VALUES", "BIND")
"""What may leave a variable of a query unbound in some solutions."""
AGGREGATE = re.compile(r"\s*(COUNT|SUM|AVG)\s*\(\s*\?(\w+)\s*\)\s*", re.IGNORECASE)
"""An aggregate of a variable, without DISTINCT."""


ENDING_AGGREGATE = re.compile(r"\b(?:SUM|AVG|MIN|MAX)\s*\([^()]*\)", re.IGNORECASE)
"""An aggregate that is empty if one row of its group has no value (SPARQL 1.1, section 18.5.1)."""
ENDED_AGGREGATE = (
    "is empty where one row of the group has no value, as by OPTIONAL, or no number; leave such rows"
    " out by FILTER(BOUND(...))"
)


@frozen
class QuantityWithUnit:
    """A number whose unit or currency is another value of the same node."""

    of: Iri
    """The predicate that leads to the node."""
    number: Iri
    """The predicate from the node to the number."""
    unit: Iri
    """The predicate from the node to the unit or currency."""
    kinds: int
    """How many units or currencies there are."""

    def __str__(self) -> str:
        return f"{self.number} beside {self.unit}"


@frozen
class SchemaFacts:
    """Facts of a survey that a query is compared with."""

    one_way: tuple[Iri, ...] = ()
    """Predicates within a class whose triples are not all asserted in both directions."""
    amounts: tuple[QuantityWithUnit, ...] = ()

    def __str__(self) -> str:
        predicates = pluralize(len(self.one_way), "predicate")
        return f"{predicates} in one direction, {pluralize(len(self.amounts), 'amount')}"


@frozen
class Finding:
    """Something about a query's result that a reader should know."""

    text: str
    wrong: bool = False
    """Whether it is likely to be a mistake of the query, and not just how the graph is."""
    settled: bool = False
    """Whether it only describes the result, and is no sign of a mistake."""
    told: bool = False
    """Whether the person who asked should know it beside the answer."""
    more_rows: int = 0
    """How many more rows a LIMIT would have to allow, so that it cuts among no equals."""

    def __str__(self) -> str:
        return self.text


UNTYPED_CONCAT = re.compile(
    r"GROUP_CONCAT\s*\(\s*(?:DISTINCT\s+)?\?(\w+)[^()]*\)\s*AS\s+\?(\w+)", re.IGNORECASE
)
"""GROUP_CONCAT over a variable as it is, and the variable that it is bound to."""


def describe_unbound_concat(query: str, result: ResultSet) -> str:
    """Return a warning if a GROUP_CONCAT of a query left its variable unbound in a row, else "".

    The cause is that GROUP_CONCAT takes texts only: an IRI must be made a text by STR (SPARQL 1.1,
    section 18.5.1.7). Only a GROUP_CONCAT of a variable alone counts. The first one is described.
    """
    for match in UNTYPED_CONCAT.finditer(query):
        source, variable = match.groups()
        if variable not in result.variables:
            continue
        column = result.variables.index(variable)
        cells = [row[column] for row in result.rows]
        if None in cells:
            return (
                f"GROUP_CONCAT bound no ?{variable}: it takes texts only. "
                f"If ?{source} is an IRI, write GROUP_CONCAT(STR(?{source}))"
            )
    return ""


def extract_schema_facts(survey: Survey) -> SchemaFacts:
    """Return the one-way predicates and the quantities with a unit that a survey of a graph shows.

    A predicate is one-way if the survey compared its triples with the reversed ones, and at least
    one of them does not hold in both directions. One that leads from many things to few, such as
    that of a manager, has a direction and is none of them. Each quantity stands once, in the order of the
    survey.
    """
    directed = _find_directed(survey)
    one_way = []
    for predicate, triples, both in survey.both_ways:
        if both < triples and predicate not in directed:
            one_way.append(predicate)
    amounts: list[QuantityWithUnit] = []
    for surveyed in survey.classes:
        for prop in surveyed.properties:
            amounts += _find_quantities(prop)
    distinct_amounts = dict.fromkeys(amounts)
    return SchemaFacts(tuple(one_way), tuple(distinct_amounts))


def _find_directed(survey: Survey) -> set[URIRef]:
    """Return the predicates that lead from many things to few, at most one value to a thing."""
    things: Counter[URIRef] = Counter()
    triples: Counter[URIRef] = Counter()
    most_values: Counter[URIRef] = Counter()
    for surveyed in survey.classes:
        for prop in surveyed.properties:
            things[prop.predicate] += prop.things
            triples[prop.predicate] += prop.triples
            distinct = sum(values.distinct for values in prop.values)
            most_values[prop.predicate] = max(most_values[prop.predicate], distinct)
    directed = set()
    for predicate, number in triples.items():
        min_number = most_values[predicate] * MIN_THINGS_FOR_VALUE
        if number == things[predicate] and number >= min_number:
            directed.add(predicate)
    return directed


def _find_quantities(prop: PropertySurvey) -> Iterator[QuantityWithUnit]:
    """Yield the quantities of the nodes that a predicate leads to.

    The nodes must have exactly one predicate with numbers. Every other predicate of theirs with 2
    to MAX_UNITS distinct values is taken for a unit.
    """
    numbers = []
    for inner in prop.inner:
        datatypes = {values.of for values in inner.values}
        if not NUMERIC_DATATYPES.isdisjoint(datatypes):
            numbers.append(inner)
    if len(numbers) != 1:
        return
    [number] = numbers
    for inner in prop.inner:
        kinds = sum(values.distinct for values in inner.values)
        if inner is not number and 1 < kinds <= MAX_UNITS:
            yield QuantityWithUnit(prop.predicate, number.predicate, inner.predicate, kinds)


def inspect_result(
    kg: Graph, sparql: str, result: ResultSet | bool, facts: SchemaFacts
) -> Iterator[Finding]:
    """Yield what is odd about the rows of a SELECT, or about the answer "no" to an ASK.

    ``facts`` are what the survey says on directions and units. Findings on the rows come first,
    then those on directions and units. Some need queries of their own, which are sent to ``kg``. A
    finding whose query the graph refuses is left out.
    """
    if isinstance(result, ResultSet):
        yield from _inspect_rows(kg, sparql, result)
    elif not result:
        yield from _explain_empty_result(sparql, kg)
    yield from _check_directions_and_units(sparql, facts, kg)


def _inspect_rows(kg: Graph, sparql: str, result: ResultSet) -> Iterator[Finding]:
    """Yield what is odd about the rows of a SELECT, in this order.

    The result was cut by the row limit (``wrong``). It has no rows, or only unbound cells and
    zeros: then come the triple patterns to blame. A column has empty cells, or only numbers as
    strings. Rows are repeated (``wrong``). The LIMIT cuts among equal rows.
    """
    rows = result.rows
    if result.cut:
        yield Finding(f"the result was cut at {pluralize(len(rows), 'row')}", wrong=True)
    causes = []
    terms = chain.from_iterable(rows)
    if all(term is None or str(term) == "0" for term in terms):
        causes = list(_explain_empty_result(sparql, kg))
    yield from causes
    for position, variable in enumerate(result.variables):
        cells = [row[position] for row in rows]
        aggregate = ""
        if None in cells and not causes:
            aggregate = _find_aggregate_of(variable, sparql)
        yield from _inspect_column(variable, cells, sparql, aggregate)

    yield from _find_mutual_pairs(rows)
    repeated = len(rows) - len(set(rows))
    if repeated:
        text = f"{pluralize(repeated, 'row')} repeat another one; DISTINCT leaves them out"
        yield Finding(text, wrong=True)
    yield from _find_ties_at_limit(sparql, result.variables, rows, kg)
    yield from _find_repeated_values(sparql, kg)


def _find_mutual_pairs(rows: Sequence[Row]) -> Iterator[Finding]:
    """Yield how many rows of two IRIs are another row with both exchanged."""
    pairs = set()
    for row in rows:
        are_iris = all(isinstance(cell, URIRef) for cell in row)
        is_pair = len(row) == 2 and row[0] != row[1]
        if are_iris and is_pair:
            pairs.add(row)
    mutual = [pair for pair in pairs if pair[::-1] in pairs]
    if mutual:
        text = f"{pluralize(len(mutual), 'row')} of {len(rows)} are another row turned round"
        yield Finding(f"{text}: each of these pairs is there twice", wrong=True)


def _find_repeated_values(sparql: str, kg: Graph) -> Iterator[Finding]:
    """Yield whether COUNT, SUM or AVG takes a value of one thing several times.

    That happens where a join repeats it. A query of a single pattern has no join: several solutions
    have the value there. Only a query with one such aggregate, without DISTINCT and without a
    subquery, is looked at, and it may be grouped by variables only. The variable of SUM and AVG must
    be the object of a pattern. Only solutions that bind the variable count, as for the aggregate.
    """
    with suppress(GraphError):
        clauses = split_clauses(sparql)
        aggregates = []
        for expression, _ in clauses.aliases:
            match = AGGREGATE.fullmatch(expression)
            if match:
                aggregates.append(match)
        if "SELECT" in clauses.words or len(aggregates) != 1:
            return
        name, variable = aggregates[0].groups()
        keys = list(clauses.group_by)
        if not all(map(_is_variable, keys)):
            # A value may stand in several groups, which only the expression tells apart.
            return
        value = f"?{variable}"
        keys.append(value)
        aggregate = name.upper()
        if aggregate != "COUNT":
            # The same number of two things is no repetition.
            patterns = analyze_query(sparql).patterns
            subjects = [pattern[0] for pattern in patterns if pattern[2] == value]
            if not subjects:
                return
            keys += filter(_is_variable, subjects)
        where = clauses.where
        if not clauses.words.isdisjoint(MAY_UNBIND):
            where = f"{{ {where} }} FILTER(BOUND({value}))"
        counted = f"{clauses.prologue} SELECT (COUNT(*) AS ?n_) {clauses.dataset} WHERE"
        distinct_keys = " ".join(dict.fromkeys(keys))
        each = f"{{ SELECT DISTINCT {distinct_keys} WHERE {{ {where} }} }}"
        [[number]] = kg.select(f"{counted} {{ {where} }}").rows or [[None]]
        [[distinct]] = kg.select(f"{counted} {{ {each} }}").rows or [[None]]
        if number and distinct and parse_count(distinct) < parse_count(number):
            text = f"{aggregate} takes {number} values of {value}, of which {distinct} differ"
            reason = "a join repeats them"
            if len(analyze_query(sparql).patterns) == 1:
                reason = (
                    f"several solutions have one; {aggregate}(DISTINCT {value}) takes each once"
                )
            yield Finding(f"{text}: {reason}", wrong=True)


def _is_variable(term: str) -> bool:
    """Return whether a term of a pattern, or a key, is a variable."""
    return re.fullmatch(r"\?[\w.]+", term) is not None


def _inspect_column(
    variable: str, cells: Sequence[Term | None], sparql: str, aggregate: str
) -> Iterator[Finding]:
    """Yield whether a column has empty cells, and whether it has numbers as strings that are compared.

    The finding on empty cells says "wrong" if all cells are, or if ``aggregate`` is not "": the
    aggregate that is bound to the variable. Numbers as strings do no harm if
    the query only shows them. Nothing is yielded for a column that is full, or has no cells.
    """
    empty = cells.count(None)
    if empty:
        text = f"?{variable} is empty in {empty} of {pluralize(len(cells), 'row')}"
        if aggregate:
            text += f": {aggregate} {ENDED_AGGREGATE}"
        is_settled = empty < len(cells) and not aggregate
        yield Finding(text, wrong=not is_settled, settled=is_settled)
    if cells and all(map(_is_number_as_text, cells)) and _is_compared(variable, sparql):
        yield Finding(f"?{variable} holds numbers kept as texts: as they are, 9 is greater than 10")


def _find_aggregate_of(variable: str, sparql: str) -> str:
    """Return the aggregate, such as "AVG(?age)", that a query binds to a variable; "" if none."""
    with suppress(GraphError, ValueError):
        for expression, name in split_clauses(sparql).aliases:
            aggregate = ENDING_AGGREGATE.search(expression)
            if aggregate and name.lstrip("?$") == variable:
                return aggregate[0]
    return ""


def _is_compared(variable: str, sparql: str) -> bool:
    """Return whether a query compares a variable, orders by it, or takes the least or greatest.

    A variable that is cast to a number first, as in xsd:integer(?x), is not compared as it is.
    """
    sparql = validate_query(sparql).skeleton
    aggregate = rf"\b(?:MIN|MAX)\s*\(\s*(?:DISTINCT\s+)?\?\w+\s*\)\s*AS\s+\?{variable}\b"
    if re.search(aggregate, sparql, re.IGNORECASE):
        return True
    uncast = re.sub(rf"[\w:>]+\s*\(\s*\?{variable}\s*\)", " ", sparql)
    without_direction = re.sub(r"\b(ASC|DESC)\s*\(", "(", uncast)
    ordered = rf"\bORDER\s+BY\b[^{{}}]*\?{variable}\b"
    if re.search(ordered, without_direction, re.IGNORECASE | re.DOTALL):
        return True
    first_key = rf"\bORDER\s+BY\s+(?:ASC|DESC)\s*\(\s*\?{variable}\b"
    if re.search(first_key, sparql, re.IGNORECASE):
        return True
    compared = rf"\?{variable}\s*[<>]|[<>]=?\s*\?{variable}\b"
    return re.search(compared, uncast) is not None


def _is_number_as_text(term: Term | None) -> bool:
    """Return whether a term is a string whose characters are those of a number."""
    if not isinstance(term, Literal):
        return False
    is_string = term.datatype in (None, XSD.string)
    return is_string and NUMBER_PATTERN.fullmatch(term) is not None


def _explain_empty_result(sparql: str, kg: Graph) -> Iterator[Finding]:
    """Yield findings on the triple patterns and filters that leave a query without rows.

    The first MAX_PATTERNS patterns without a property path are tried one by one. A pattern that
    nothing matches is reported, and whether it matches with subject and object exchanged. Then
    those patterns and filters are reported without which there would be rows. This second part is
    left out for a query with more patterns, with a path, or with something else such as OPTIONAL.
    Yields nothing if the query cannot be analyzed. Ends early if the graph fails.
    """
    with suppress(GraphError):
        parts = analyze_query(sparql)
        terms = chain.from_iterable(parts.patterns)
        short_names = _choose_short_names(_iris_among(terms))
        without_path = [each for each in parts.patterns if PATH_PLACEHOLDER not in each]
        patterns = without_path[:MAX_PATTERNS]
        if len(patterns) < len(parts.patterns) or parts.unsupported_feature:
            unmatched = [pattern for pattern in patterns if not _has_match(kg, pattern)]
            yield from _describe_unmatched(kg, unmatched, short_names)
            return

        cause = explain_empty_result(kg, patterns, parts.filters)
        yield from _describe_unmatched(kg, cause.unmatched_patterns, short_names)
        for part in cause.blocking_patterns:
            if isinstance(part, str):
                shown = part[:MAX_FILTER_CHARS]
                yield Finding(f"without the filters there are matches: {shown}")
            elif part not in cause.unmatched_patterns:
                others = [pattern for pattern in patterns if pattern != part]
                where = patterns_and_filters_to_sparql(others, parts.filters)
                matches = pluralize(_count_solutions(kg, where.strip()), "match")
                shown = _format_pattern(part, short_names, kg)
                yield Finding(f"without {shown} there would be {matches}")


def _describe_unmatched(
    kg: Graph, patterns: Iterable[TriplePattern], short_names: Mapping[URIRef, str]
) -> Iterator[Finding]:
    """Yield a ``wrong`` finding for each pattern: nothing matches it.

    It is not ``wrong`` if only a thing lacks a value of a predicate that others have. It adds
    whether the pattern holds with subject and object exchanged. That is asked of the graph,
    and only where both are vertices or variables.
    """
    for pattern in patterns:
        shown = _format_pattern(pattern, short_names, kg)
        text = f"nothing in the graph matches {shown}"
        is_wrong = True
        if _can_be_reversed(pattern) and _has_match(kg, pattern[::-1]):
            text += "; the other way round it holds"
        elif _lacks_only_a_value(kg, pattern):
            text += "; other things have the predicate"
            is_wrong = False
        yield Finding(text, wrong=is_wrong)


def _lacks_only_a_value(kg: Graph, pattern: TriplePattern) -> bool:
    """Return whether a pattern asks for the values of a thing, and other things have the predicate."""
    subject, predicate, object_ = pattern
    asks_for_values = subject.startswith("<") and object_.startswith("?")
    return asks_for_values and _has_match(kg, ("?s_", predicate, "?o_"))


def _can_be_reversed(pattern: TriplePattern) -> bool:
    """Return whether subject and object can be exchanged: a literal is no subject."""
    return not pattern[2].startswith('"')


def _count_solutions(kg: Graph, where: str) -> int:
    """Return how many solutions a group of patterns has; 0 if the engine returns no row.

    Raises QueryError if the count is not a number.
    """
    rows = kg.select(f"SELECT (COUNT(*) AS ?n_) WHERE {{ {where} }}").rows
    if not rows:
        return 0
    return parse_count(rows[0][0])


def _has_match(kg: Graph, pattern: TriplePattern) -> bool:
    """Return whether the graph has a triple that matches the pattern, by an ASK."""
    return kg.ask(f"ASK {{ {patterns_to_sparql([pattern])} }}")


def _choose_short_names(iris: Iterable[URIRef]) -> Mapping[URIRef, str]:
    """Return the local part of each IRI; the IRI in brackets where another has that local part."""
    return tell_apart(iris, (short_name, bracket_iri))


def _iris_among(terms: Iterable[str]) -> list[URIRef]:
    """Return the IRIs among terms in N-Triples form, in their order, without the angle brackets."""
    return [URIRef(term[1:-1]) for term in terms if term.startswith("<")]


def _format_pattern(pattern: TriplePattern, short_names: Mapping[URIRef, str], kg: Graph) -> str:
    """Return a triple pattern as text, with the short name and the display name of each IRI.

    ``short_names`` must have every IRI of the pattern. The display names are looked up in the
    graph, and stand in quotes after the short names.
    """
    iris = _iris_among(pattern)
    if not iris:
        return " ".join(pattern)
    names = kg.names(iris)
    shown = {}
    for iri in iris:
        name = quote_text(names.get(iri) or name_from_iri(iri))
        shown[f"<{iri}>"] = f"{short_names[iri]} {name}"
    return " ".join(shown.get(term, term) for term in pattern)


def _find_ties_at_limit(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], kg: Graph
) -> Iterator[Finding]:
    """Yield what a query's rows are ordered by, and whether its LIMIT cuts among equal rows.

    That is only done for a query that ends with ORDER BY and LIMIT, and has exactly as many rows as
    the LIMIT. It is sent again with MAX_EXTRA_ROWS more rows; what it orders by is added if it was
    not selected. Yields nothing without rows, for another query, if the graph fails, or if adding
    the keys splits rows that DISTINCT made one.
    """
    with suppress(GraphError, ValueError):
        clauses = split_clauses(sparql)
        if not rows or len(rows) != clauses.limit:
            return
        ordered = order_rows(sparql, columns, kg, MAX_EXTRA_ROWS)
        if ordered:
            names, values = ordered
            yield from _describe_order(names, values[: len(rows)], values[len(rows) :])


def order_rows(
    sparql: str, columns: Sequence[str], kg: Graph, extra: int = 0
) -> tuple[tuple[str, ...], list[Row]] | None:
    """Return what a query with ORDER BY and LIMIT orders by, and the values of these keys in each row.

    A key is "?x", or the expression as it is written. The rows of the query come first, then up to
    ``extra`` of those beyond its LIMIT. None for a query without both clauses, or if adding the
    keys to what is selected splits rows that DISTINCT made one. Raises GraphError.
    """
    clauses = split_clauses(sparql)
    keys = clauses.order_by
    if clauses.limit is None or not keys:
        return None
    added = []
    variables = []
    for number, key in enumerate(keys):
        variable = key[1:]
        if not _is_variable(key):
            variable = f"key_{number}"
            added.append(f"({key} AS ?{variable})")
        elif variable not in columns:
            added.append(key)
        variables.append(variable)
    query = select_also(sparql, " ".join(added), clauses.limit + extra)
    wider = kg.select(query)
    is_distinct = bool(added) and "DISTINCT" in query.upper()
    if is_distinct and len(set(_rows_of(columns, wider))) < len(wider.rows):
        # With the keys added, rows that DISTINCT made one are several.
        return None
    return keys, _rows_of(variables, wider)


def _rows_of(variables: Iterable[str], result: ResultSet) -> list[Row]:
    """Return each row of a result with only the cells of some variables, in their order."""
    positions = [result.variables.index(variable) for variable in variables]
    rows = []
    for row in result.rows:
        rows.append(tuple(row[position] for position in positions))
    return rows


def _describe_order(
    keys: Sequence[str], inside: Sequence[Row], beyond: Sequence[Row]
) -> Iterator[Finding]:
    """Yield the values of the first key that rows are ordered by, and whether the LIMIT cuts a tie.

    ``inside`` are the values of the keys in the rows that the LIMIT allows, ``beyond`` those in the
    next rows. At most MAX_SHOWN_ROWS and MAX_SHOWN_EXTRA_ROWS values are shown. Rows tie if they
    have the same value of the first key, as numbers of several datatypes may have; a further key that
    decides among them is named. A tie says "wrong" only if the LIMIT is 1. Empty cells are no tie.
    """
    values = [format_value(row[0]) for row in inside]
    text = f"ordered by {keys[0]}: {list_first(values, MAX_SHOWN_ROWS)}"
    if beyond:
        values_beyond = [format_value(row[0]) for row in beyond]
        text += f"; beyond the LIMIT {list_first(values_beyond, MAX_SHOWN_EXTRA_ROWS)}"
    yield Finding(text, settled=True)

    empty = [row for row in (*inside, *beyond) if row[0] is None]
    aggregate = ENDING_AGGREGATE.search(keys[0])
    if empty and aggregate:
        rows = pluralize(len(empty), "row")
        yield Finding(f"{keys[0]} is empty in {rows}: {aggregate[0]} {ENDED_AGGREGATE}", wrong=True)

    last = list(map(_comparable, inside[-1]))
    tied = []
    for row in beyond:
        compared = list(map(_comparable, row))
        if compared[0] == last[0]:
            tied.append(compared)
    if not tied or last[0] is None:
        return
    text = (
        f"the LIMIT cuts among equals: {pluralize(len(tied), 'more row')} with the same {keys[0]}"
    )
    if last not in tied:
        text += f", put in order by {', '.join(keys[1:])}"
    # Of more rows than were looked at, it is not known how many are level.
    more_rows = len(tied) if len(tied) < MAX_EXTRA_ROWS else 0
    yield Finding(text, wrong=len(inside) == 1, told=True, more_rows=more_rows)


def _comparable(term: Term | None) -> object:
    """Return the value of a number, which is the same in several datatypes; any other term as it is."""
    if isinstance(term, Literal) and isinstance(term.value, int | float | Decimal):
        return term.value
    return term


def _check_directions_and_units(sparql: str, facts: SchemaFacts, kg: Graph) -> Iterator[Finding]:
    """Yield one-way predicates that match in the other direction, and numbers without their unit.

    A predicate of ``facts.one_way`` is tried with subject and object exchanged if the query has it
    exactly once, between vertices or variables, and has nothing unsupported such as OPTIONAL. The
    finding gives the number of matches. A quantity of ``facts.amounts`` that is queried without its
    unit is ``wrong``, see ``_ignores_unit``. Yields nothing if the query cannot be analyzed, and
    ends early if the graph fails.
    """
    with suppress(GraphError):
        parts = analyze_query(sparql)
        used = [URIRef(predicate[1:-1]) for _, predicate, _ in parts.patterns]
        short_names = _choose_short_names(used)
        for position, predicate in enumerate(used):
            is_one_way = predicate in facts.one_way and used.count(predicate) == 1
            if parts.unsupported_feature or not is_one_way:
                continue
            pattern = parts.patterns[position]
            if not _can_be_reversed(pattern):
                continue
            patterns = list(parts.patterns)
            patterns[position] = pattern[::-1]
            where = patterns_and_filters_to_sparql(patterns, parts.filters)
            number = _count_solutions(kg, where)
            if number:
                yield Finding(
                    f"{short_names[predicate]} is followed in one direction; in the other one it has"
                    f" {pluralize(number, 'match')}, which count as well if it is symmetric in meaning"
                )

        iris = _iris_among(chain.from_iterable(parts.steps))
        for amount in facts.amounts:
            if _ignores_unit(amount, parts.steps):
                short_names = _choose_short_names([*iris, amount.unit])
                text = (
                    f"{short_names[amount.number]} stands beside {short_names[amount.unit]}, of which"
                    f" there are {amount.kinds}; the query does not look at it"
                )
                yield Finding(text, wrong=True)


def _ignores_unit(amount: QuantityWithUnit, steps: Iterable[TriplePattern]) -> bool:
    """Return whether a query reads the number of a quantity, and of no such node the unit.

    ``steps`` are those of ``QueryAnalysis``. The unit is looked at where a step leads from the node
    to it, or from another node that the same predicate leads to from the same thing: two paths,
    such as p:price/p:amount and p:price/p:currency, meet in one node without naming it. A step
    with a variable as predicate may lead to the unit.
    """
    unit_predicate = bracket_iri(amount.unit)
    starts: dict[str, set[str]] = defaultdict(set)
    with_number = set()
    with_unit = set()
    for subject, predicate, object_ in steps:
        if predicate == bracket_iri(amount.of):
            starts[object_].add(subject)
        elif predicate == bracket_iri(amount.number):
            with_number.add(subject)
        elif predicate == unit_predicate or predicate.startswith("?"):
            with_unit.add(subject)
    starts_with_unit: set[str] = set()
    for node in with_unit:
        starts_with_unit |= starts.get(node, set())
    without_unit = with_number.intersection(starts) - with_unit
    return any(starts[node].isdisjoint(starts_with_unit) for node in without_unit)


EXTREME = re.compile(
    r"\{\s*SELECT\s+\(\s*(?:MAX|MIN)\s*\(.*?\)\s*AS\s+\?(\w+)\s*\)\s*WHERE\b",
    re.IGNORECASE | re.DOTALL,
)
"""A subquery for the greatest or least of something alone, and the variable that has it."""
_ABOVE_OR_BELOW = r"\bFILTER\s*\(\s*(?:\?(\w+)\s*[<>]=?[^()&|]*\?{0}\b|\?{0}\s*[<>]=?\s*\?(\w+))"
"""A condition that a variable is above or below something computed with the variable in place of {0}."""


@frozen
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
        ordered = None
        if len(result.rows) == clauses.limit:
            # The query that looks for ties beyond the LIMIT: where results are kept, it was asked.
            ordered = order_rows(sparql, result.variables, kg, MAX_EXTRA_ROWS)
        if not ordered:  # also if the rows beyond the LIMIT are split by their keys
            ordered = order_rows(sparql, result.variables, kg)
        if ordered:
            names, keys = ordered
            first_keys = [row[0] for row in keys[: len(result.rows)]]
            return _measure_unless_shown(names[0], first_keys, result)
        variables = set(EXTREME.findall(clauses.where))
        if len(variables) != 1 or clauses.aliases or clauses.group_by:
            return None
        [variable] = variables
        pattern = _ABOVE_OR_BELOW.format(variable)
        bound = re.search(pattern, clauses.where, re.IGNORECASE)
        if bound:
            variable = bound[1] or bound[2]
        if variable in result.variables:
            return None
        wider = kg.select(select_also(sparql, f"?{variable}"))
        position = wider.variables.index(variable)
        measured: dict[Row, Term | None] = {}
        for row in wider.rows:
            measured[row[:position] + row[position + 1 :]] = row[position]
        if len(wider.rows) == len(result.rows) and set(measured) == set(result.rows):
            values = [measured[row] for row in result.rows]
            return _measure_unless_shown(f"?{variable}", values, result)
    return None


def _measure_unless_shown(
    name: str, values: Iterable[Term | None], result: ResultSet
) -> Measure | None:
    """Return the measure; None if it is empty, does not fit the rows, or is a column of them."""
    measured = tuple(values)
    if len(measured) != len(result.rows) or None in measured:
        return None
    columns = zip(*result.rows, strict=True)
    if measured in columns:
        return None
    return Measure(name, measured)
