"""Support: the triples of a graph that an answer, a value or a row of a result is derived from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeVar

from rdflib import URIRef

from kgwb.flow import MAX_SUPPORTED_ROWS, Answer, CandidateQuery
from kgwb.kg.algebra import (
    PATH_PLACEHOLDER,
    TriplePattern,
    analyze_query,
    constants_of,
    instantiate_patterns,
    patterns_to_sparql,
    variables_of,
)
from kgwb.kg.base import Graph
from kgwb.kg.query_parser import Token, tokenize
from kgwb.kg.sparql import is_serializable, n3, split_clauses, values_clause
from kgwb.terms import Term, Triple, Triples

MAX_SUPPORT_BINDINGS = 500
"""Bindings that one query for the support of values reads at most."""
VALUES_PER_QUERY = 50
"""Values that one query names, for the values that had no binding among those read first."""
MAX_TRIPLES_PER_VALUE = 60
"""Supporting triples that are kept for one row, and about so many for one value.

A value can have thousands of bindings, for example at the end of a chain of patterns.
"""
MAX_SOLUTIONS = 2_000
"""Solutions that are read to find the support of the rows."""
TRIPLES_PER_QUERY = 500
"""Triples that one query checks for existence."""
AGGREGATES = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))

AnswerType = TypeVar("AnswerType", bound=Answer)
Row = tuple[Term | None, ...]
"""A row of a result; None where a variable is unbound."""
TripleSet = dict[Triple, None]
"""Triples in the order in which they were added, each once."""
Binding = dict[str, Term | None]
"""The terms of variables ("?x") in a row or a solution."""


# Support of a query that is known by its triple patterns


def where_clause(query: CandidateQuery) -> str:
    """Return the triple patterns and filters of a query as the inside of a WHERE clause."""
    patterns = patterns_to_sparql(query.patterns)
    return f"{patterns} {query.filters}".strip()


def find_support_by_value(
    kg: Graph, query: CandidateQuery, target: str, values: Sequence[Term]
) -> dict[Term, Triples]:
    """Return the support of each value of the variable ``target`` ("?x").

    The support of a value is the triples that the patterns become in each binding with this value;
    () if there is no such binding. One query is sent for all values, and further ones for values
    that it found nothing for; values that cannot be written in a query are not asked for again. At
    MAX_TRIPLES_PER_VALUE triples, further bindings of a value are ignored. If the target is the
    only variable, no query is sent. Raises a GraphError if the graph cannot be queried.
    """
    if variables_of(query.patterns) == (target,):
        constants = constants_of(query.patterns)
        made = {}
        for value in values:
            made[value] = instantiate_patterns(query.patterns, {**constants, target: value})
        return made
    support: dict[Term | None, TripleSet] = {}
    for value in values:
        support[value] = {}
    _add_support(kg, query, target, support)

    # The limit may have cut off all bindings of some values, so further queries name these values.
    # The limit may do the same there. So a batch is tried again as long as a query finds any value
    # of it, and dropped after a query that finds none.
    missing = []
    for value in values:
        if not support[value] and is_serializable(value):
            missing.append(value)
    while missing:
        batch = missing[:VALUES_PER_QUERY]
        restriction = values_clause(target, batch)
        _add_support(kg, query, target, support, f"{restriction} ")
        still_missing = [value for value in missing if not support[value]]
        if len(still_missing) == len(missing):
            still_missing = missing[VALUES_PER_QUERY:]
        missing = still_missing
    support_by_value = {}
    for value in values:
        support_by_value[value] = tuple(support[value])
    return support_by_value


def _add_support(
    kg: Graph,
    query: CandidateQuery,
    target: str,
    support: dict[Term | None, TripleSet],
    values: str = "",
) -> None:
    """Add the triples of the first bindings to the support of the values.

    At most MAX_SUPPORT_BINDINGS bindings are read. The triples of each are added to ``support``
    under its value of ``target``, if that is a key and has fewer than MAX_TRIPLES_PER_VALUE
    triples. ``values`` is a VALUES clause that restricts the bindings.
    """
    variables = variables_of(query.patterns)
    columns = " ".join(variables)
    where = values + where_clause(query)
    result = kg.select(
        f"SELECT DISTINCT {columns} WHERE {{ {where} }} LIMIT {MAX_SUPPORT_BINDINGS}"
    )
    constants = constants_of(query.patterns)
    for row in result.rows:
        binding = {**constants, **dict(zip(variables, row, strict=True))}
        triples = support.get(binding[target])
        if triples is None or len(triples) >= MAX_TRIPLES_PER_VALUE:
            continue
        found = instantiate_patterns(query.patterns, binding)
        triples.update(dict.fromkeys(found))


def find_ask_support(kg: Graph, query: CandidateQuery) -> Triples:
    """Return the triples of one binding that makes an ASK of the query true.

    Empty if it is false. If the patterns have no variables, they are returned as triples without
    asking the graph.
    """
    variables = variables_of(query.patterns)
    if not variables:
        return instantiate_patterns(query.patterns, {})
    columns = " ".join(variables)
    where = where_clause(query)
    result = kg.select(f"SELECT {columns} WHERE {{ {where} }} LIMIT 1")
    if not result.rows:
        return ()
    first_row = result.rows[0]
    binding = dict(zip(variables, first_row, strict=True))
    return instantiate_patterns(query.patterns, binding)


# Support of any query


def find_support_by_row(
    kg: Graph, sparql: str, columns: Sequence[str], rows: Sequence[Row]
) -> dict[Row, Triples]:
    """Return the support of the first MAX_SUPPORTED_ROWS rows of a SELECT or ASK.

    ``columns`` are the names of the variables in a row. The support of a row is the triples of the
    graph that its solutions match; of a row that groups many solutions, those of the first. At most
    MAX_TRIPLES_PER_VALUE triples are kept for a row. Without rows, as for an ASK, the support of
    one solution is returned under the key ().

    Patterns in OPTIONAL and UNION give triples where they match. Property paths and the patterns in
    NOT EXISTS and MINUS give none. Raises a GraphError if the query cannot be analyzed or executed.
    """
    patterns = []
    for pattern in analyze_query(sparql).patterns:
        if PATH_PLACEHOLDER not in pattern:
            patterns.append(pattern)
    limit = MAX_SOLUTIONS
    if not rows:  # one solution is enough, for a row without columns
        limit = 1
        columns = ()
        rows = [()]
    bindings = {}
    for row in rows[:MAX_SUPPORTED_ROWS]:
        bindings[row] = _bind(columns, row)
    named_rows = list(bindings.values())
    query = _solutions_query(sparql, patterns, named_rows, limit)
    solutions = kg.select(query)

    # A solution belongs to the rows that have the same terms in the columns that it has variables
    # for.
    shared = []
    for column in columns:
        if column in solutions.variables:
            shared.append(f"?{column}")
    support: dict[Row, TripleSet] = defaultdict(dict)
    for solution in solutions.rows:
        binding = _bind(solutions.variables, solution)
        matched = [pattern for pattern in patterns if _is_bound(pattern, binding)]
        found = instantiate_patterns(matched, binding)
        key = _project(binding, shared)
        triples = support[key]
        room = MAX_TRIPLES_PER_VALUE - len(triples)
        triples.update(dict.fromkeys(found[:room]))

    all_triples = set(chain.from_iterable(support.values()))
    existing = existing_triples(kg, all_triples)
    support_by_row = {}
    for row, binding in bindings.items():
        key = _project(binding, shared)
        triples = support.get(key, {})
        supporting = [triple for triple in triples if triple in existing]
        support_by_row[row] = tuple(supporting)
    return support_by_row


def _bind(names: Iterable[str], row: Row) -> Binding:
    """Return the terms of a row by its variables. ``names`` are the variables without "?"."""
    binding: dict[str, Term | None] = {}
    for name, term in zip(names, row, strict=True):
        binding[f"?{name}"] = term
    return binding


def _is_bound(pattern: TriplePattern, binding: Binding) -> bool:
    """Return whether all variables of a pattern have a term."""
    variables = variables_of([pattern])
    return None not in _project(binding, variables)


def _project(binding: Binding, variables: Iterable[str]) -> Row:
    """Return the terms of these variables ("?x") in a binding, in order; None if unbound."""
    return tuple(map(binding.get, variables))


def _solutions_query(
    sparql: str, patterns: Iterable[TriplePattern], rows: Sequence[Binding], limit: int
) -> str:
    """Return a SELECT of the solutions that a query's rows were made of, without groups and order.

    All variables are selected. The WHERE clause is that of the query, with a VALUES clause of the
    rows in the columns that are variables of the patterns. An expression with a name is added as a
    BIND where a single solution gives it a value.
    """
    clauses = split_clauses(sparql)
    pattern_variables = variables_of(patterns)
    columns = [variable for variable in rows[0] if variable in pattern_variables]
    values = ""
    if columns:
        cells = [_project(row, columns) for row in rows]
        values = _values_table(columns, cells)
    body = clauses.where
    if _find_keyword(body, "BIND") is not None:
        # The variable of a BIND must not be bound before it in its group, but may be by the VALUES
        # of the rows.
        body = f"{{ {body} }}"
    binds = _binds_of_aliases(clauses.aliases)
    where = f"{{ {values} {body}{binds} }}"
    query = f"{clauses.prologue}SELECT * {clauses.dataset}WHERE {where} LIMIT {limit}"
    values_start = _find_keyword(clauses.modifiers, "VALUES")
    if values_start is not None:
        # The character before it is kept if it is a blank: recorded runs know the query as it is.
        blank = clauses.modifiers[:values_start][-1:]
        if not blank.isspace():
            blank = " "
        own_values = clauses.modifiers[values_start:]
        query += f"{blank}{own_values}"
    return query


def _find_keyword(text: str, keyword: str) -> int | None:
    """Return the position at which a keyword of SPARQL first stands in a part of a query, or None.

    ``keyword`` is in upper case. A word inside of a string, an IRI or a name does not count.
    """
    for token in tokenize(text).tokens:
        if token.lastgroup == "word" and token[0].upper() == keyword:
            return token.start()
    return None


def _values_table(variables: Iterable[str], rows: Iterable[Row]) -> str:
    """Return "VALUES (?x ?y) { (...) (...) }" of several variables and the distinct rows.

    A cell that is unbound, or a term that cannot stand in a query, becomes UNDEF.
    """
    lines: dict[str, None] = {}
    for row in rows:
        cells = " ".join(map(_cell_to_sparql, row))
        lines[f"({cells})"] = None
    head = " ".join(variables)
    body = " ".join(lines)
    return f"VALUES ({head}) {{ {body} }}"


def _cell_to_sparql(term: Term | None) -> str:
    """Return a term as SPARQL; "UNDEF" for an unbound cell, and for a term no query can contain."""
    if term is None or not is_serializable(term):
        return "UNDEF"
    return n3(term)


def _binds_of_aliases(aliases: Iterable[tuple[str, str]]) -> str:
    """Return "BIND(expression AS ?name)" for each alias that a single solution gives a value.

    ``aliases`` are pairs of an expression and a name without "?". Aggregates are left out, and
    expressions that use the name of an aggregate. The BINDs stand in one text, with a space before
    each.
    """
    binds = ""
    aggregates: set[str] = set()
    for expression, name in aliases:
        tokens = tokenize(expression).tokens
        used = set()
        for token in tokens:
            if token.lastgroup == "variable":
                used.add(token[0][1:])
        uses_aggregate = not aggregates.isdisjoint(used)
        if uses_aggregate or _has_aggregate(tokens):
            aggregates.add(name)
        else:
            binds += f" BIND({expression} AS ?{name})"
    return binds


def _has_aggregate(tokens: Sequence[Token]) -> bool:
    """Return whether one of AGGREGATES is called: a word of these, followed by a bracket."""
    for token, following in pairwise(tokens):
        is_aggregate = token.lastgroup == "word" and token[0].upper() in AGGREGATES
        if is_aggregate and following[0] == "(":
            return True
    return False


def existing_triples(kg: Graph, triples: Collection[Triple]) -> set[Triple]:
    """Return those of the triples that the graph has, asking for TRIPLES_PER_QUERY at a time.

    Triples with a blank node, or an invalid IRI, cannot be looked up and count as existing. Support
    must be checked in this way: a solution of one branch of a UNION can bind all variables of the
    other branch, without matching it.
    """
    known = []
    existing = set()
    for triple in triples:
        if all(map(is_serializable, triple)):
            known.append(triple)
        else:
            existing.add(triple)
    known.sort(key=str)
    for start in range(0, len(known), TRIPLES_PER_QUERY):
        batch = known[start : start + TRIPLES_PER_QUERY]
        values = _values_table(("?s", "?p", "?o"), batch)
        result = kg.select(f"SELECT ?s ?p ?o WHERE {{ {values} ?s ?p ?o }}")
        existing |= set(batch).intersection(result.rows)
    return existing


# Names


def with_display_names(
    kg: Graph, answer: AnswerType, known: Mapping[URIRef, str] | None = None
) -> AnswerType:
    """Return a copy of an answer with new ``names``: one for each IRI of its values and support.

    The graph is asked for them, unless ``known`` has all of them. They are pairs of IRI and name,
    sorted by IRI, and replace the earlier ones.
    """
    terms = set(chain.from_iterable(answer.support))
    for value in answer.values:
        terms.update(value.terms)
    iris = [term for term in terms if isinstance(term, URIRef)]
    iris.sort(key=str)  # comparing texts is far faster than comparing URIRefs
    if known is None or not all(iri in known for iri in iris):
        known = kg.names(iris)
    return replace(answer, names=tuple((iri, known[iri]) for iri in iris))
