"""Questions that several agents ask a graph in SPARQL 1.1, and the triples that an answer stands on."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rdflib import BNode, Literal, URIRef
from rdflib.namespace import RDF

from kgwb.deprecated import renamed_names
from kgwb.errors import QueryError
from kgwb.flow import Answer, CandidateQuery, Direction
from kgwb.kg.algebra import (
    PATH_PLACEHOLDER,
    TriplePattern,
    analyze_query,
    instantiate_patterns,
    patterns_and_filters_to_sparql,
    patterns_to_sparql,
    variables_of,
)
from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_NAMESPACES, Graph
from kgwb.kg.sparql import (
    LANGUAGE_TAG,
    is_serializable,
    n3,
    split_clauses,
    string_literal,
    values_clause,
)
from kgwb.kg.text import language_rank, normalize
from kgwb.terms import Iri, Term, Triple, local_part

MAX_SAMPLED_LABELS, MAX_LANGUAGES = 10_000, 8
"""Labels of each predicate looked at to learn their languages, and languages learnt at most."""
MAX_INCOMING_TRIPLES = 1_000
"""Triples that lead to a class or predicate, read at most to see whether one of them is a fact about it."""
MAX_VALUE_MATCHES = 40
"""Values that are read to find those that hold a name."""
MAX_SUPPORT_BINDINGS = 500
"""Bindings read at once to find the support of an answer; values they miss are asked for by name."""
VALUES_PER_QUERY = 50
"""Values asked for by name at once."""
MAX_TRIPLES_PER_VALUE = 60
"""Supporting triples kept for one value or row; a value of a many-to-many chain can have thousands."""
MAX_SUPPORTED_ROWS, MAX_SOLUTIONS = 60, 2_000
"""Rows of an answer, and solutions of its patterns, that are looked at."""
TRIPLES_PER_QUERY = 500
"""Triples asked for at once."""
AGGREGATE_CALL = re.compile(r"\b(?:COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT)\s*\(", re.IGNORECASE)
AnswerType = TypeVar("AnswerType", bound=Answer)
Row = tuple[Term | None, ...]


class Description(NamedTuple):
    """What a graph says a vertex is."""

    types: tuple[str, ...] = ()
    """Names of its types, by IRI of the type."""
    description: str = ""
    """In the preferred language; empty if there is none."""


def describe_vertices(kg: Graph, iris: Sequence[URIRef]) -> dict[URIRef, Description]:
    """Types and description of each vertex, in one query (and one for the names of the types)."""
    if not iris:
        return {}
    predicates = values_clause("?p", (*kg.vocabulary.types, *kg.vocabulary.descriptions))
    rows = kg.select(
        f"SELECT ?v ?p ?o WHERE {{ {values_clause('?v', iris)} {predicates} ?v ?p ?o }}"
    ).rows
    types: dict[Term | None, set[URIRef]] = defaultdict(set)
    texts: dict[Term | None, list[tuple[int, int, str]]] = defaultdict(list)
    for vertex, predicate, value in rows:
        if isinstance(value, URIRef) and predicate in kg.vocabulary.types:
            types[vertex].add(value)
        elif isinstance(value, Literal) and predicate in kg.vocabulary.descriptions:
            language = language_rank(value.language or "", kg.vocabulary.languages)
            order = kg.vocabulary.descriptions.index(URIRef(predicate))
            texts[vertex].append((language, order, str(value)))
    names = kg.names(sorted(set().union(*types.values())))
    kinds = {iri: tuple(dict.fromkeys(names[kind] for kind in sorted(types[iri]))) for iri in iris}
    return {iri: Description(kinds[iri], min(texts[iri])[-1] if texts[iri] else "") for iri in iris}


def count_degrees(kg: Graph, iris: Sequence[URIRef], limit: int) -> dict[URIRef, int]:
    """How many triples touch each vertex, counted up to ``cap``."""
    if not iris:
        return {}
    # One bounded subquery a vertex: a vertex of millions of triples must not cost more than the cap.
    parts = " UNION ".join(
        f"{{ SELECT ({n3(iri)} AS ?v) (COUNT(*) AS ?n) WHERE {{ SELECT ?p WHERE {{"
        f" {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?p {n3(iri)} }} }} LIMIT {limit} }} }}"
        for iri in dict.fromkeys(iris)
    )
    rows = kg.select(f"SELECT ?v ?n WHERE {{ {parts} }}").rows
    counts = {vertex: parse_count(count) for vertex, count in rows}
    return {iri: counts.get(iri, 0) for iri in iris}


def find_predicates(kg: Graph, *vertices: URIRef | Literal) -> tuple[tuple[URIRef, Direction], ...]:
    """The predicates of vertices but for hidden ones, by IRI, each "out" (vertex is subject) before "in"."""
    these = values_clause("?v", vertices)
    rows = kg.select(
        f'SELECT DISTINCT ?p ?d WHERE {{ {{ {these} ?v ?p ?o BIND("out" AS ?d) }}'
        f' UNION {{ {these} ?s ?p ?v BIND("in" AS ?d) }} }}'
    ).rows
    hidden = kg.vocabulary.excluded_predicates
    shown = {(p, str(d)) for p, d in rows if isinstance(p, URIRef) and p not in hidden}
    directions: tuple[Direction, ...] = ("out", "in")
    return tuple(
        (p, d) for p in sorted({p for p, _ in shown}) for d in directions if (p, d) in shown
    )


def find_label_usage(kg: Graph) -> tuple[tuple[URIRef, ...], tuple[str, ...]]:
    """The label predicates that the graph has, and the languages of its labels, in two bounded queries.

    The languages, "" for none, are all, or the preferred and the commonest of a sample.
    """
    labels, languages = kg.vocabulary.labels, kg.vocabulary.languages
    there = kg.select(
        f"SELECT ?p WHERE {{ {values_clause('?p', labels)} FILTER EXISTS {{ ?v ?p ?label }} }}"
    ).rows
    predicates = tuple(predicate for predicate in labels if (predicate,) in there)
    if not predicates:
        return (), ()
    subqueries = (
        f"SELECT ?label WHERE {{ ?v {n3(iri)} ?label }} LIMIT {MAX_SAMPLED_LABELS}"
        for iri in predicates
    )
    parts = " UNION ".join(f"{{ {subquery} }}" for subquery in subqueries)
    rows = kg.select(
        f"SELECT ?tag (COUNT(*) AS ?n) WHERE {{ {parts} BIND(LANG(?label) AS ?tag) }}"
        f" GROUP BY ?tag ORDER BY DESC(?n) ?tag LIMIT {MAX_LANGUAGES}"
    ).rows
    tags = [str(tag) for tag, _ in rows if tag is not None]
    tags = [tag for tag in tags if not tag or LANGUAGE_TAG.fullmatch(tag)]
    whole = (
        len(rows) < MAX_LANGUAGES
        and sum(parse_count(count) for _, count in rows) < MAX_SAMPLED_LABELS
    )
    return predicates, tuple(dict.fromkeys(tags if whole else (*languages, *tags)))


def find_schema_terms(kg: Graph, iris: Sequence[URIRef]) -> frozenset[URIRef]:
    """Those that are only predicates or classes: no fact is about them as it is about other vertices."""
    if not iris:
        return frozenset()
    silent = ", ".join(map(n3, sorted(kg.vocabulary.excluded_predicates)))
    spaces = "".join(
        f" && !STRSTARTS(STR(?p), {string_literal(space)})" for space in SCHEMA_NAMESPACES
    )
    fact = f"FILTER(?p NOT IN ({silent}){spaces})"
    rows = kg.select(
        f"SELECT ?v WHERE {{ {values_clause('?v', iris)} FILTER(EXISTS {{ ?s ?v ?o }}"
        f" || EXISTS {{ {values_clause('?t', kg.vocabulary.types)} ?s ?t ?v }}"
        f" || EXISTS {{ {values_clause('?c', SCHEMA_CLASSES)} ?v {n3(RDF.type)} ?c }})"
        f" FILTER NOT EXISTS {{ ?v ?p ?o {fact} }} }}"
    ).rows
    suspects = sorted({vertex for (vertex,) in rows if isinstance(vertex, URIRef)})
    # One bounded subquery each, as in ``degrees``: a class can have millions of instances.
    parts = " UNION ".join(
        f"{{ SELECT ({n3(iri)} AS ?v) ?p WHERE {{ ?s ?p {n3(iri)} }} LIMIT {MAX_INCOMING_TRIPLES} }}"
        for iri in suspects
    )
    described = kg.select(f"SELECT DISTINCT ?v WHERE {{ {parts} {fact} }}").rows if suspects else ()
    return frozenset(suspects) - {vertex for (vertex,) in described}


def parse_count(number: Term | None) -> int:
    """The number that a graph counted. Raises QueryError if it is none."""
    try:
        return int(str(number))
    except ValueError as error:
        raise QueryError(
            f"the graph counted {number!r}", hint="ask again, or try another graph"
        ) from error


def find_triples(
    kg: Graph,
    subjects: Sequence[Term],
    predicates: Sequence[Term],
    objects: Sequence[Term],
    max_triples: int,
) -> tuple[list[Triple], bool]:
    """Triples with one of each of these, or with any where there are none; and whether these are all.

    In order; without blank nodes and, where no predicate is given, without noise, labels and descriptions.
    """
    wanted = zip("spo", (subjects, predicates, objects), strict=True)
    values = "".join(
        f"VALUES ?{n} {{ {' '.join(map(n3, terms))} }} " for n, terms in wanted if terms
    )
    rows = kg.select(
        f"SELECT DISTINCT ?s ?p ?o WHERE {{ {values}?s ?p ?o }} LIMIT {max_triples}"
    ).rows
    hidden = set() if predicates else {*kg.vocabulary.excluded_predicates} - {*kg.vocabulary.types}
    triples = [
        (s, p, o)
        for s, p, o in rows
        if isinstance(p, URIRef) and p not in hidden and not isinstance(s, BNode | None)
        if not isinstance(o, BNode | None)
    ]
    return sorted(triples, key=str), len(rows) < max_triples


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A value of a predicate that holds the words of a name."""

    predicate: Iri
    value: Term
    triples: int


def find_values_containing(
    kg: Graph, predicates: Sequence[URIRef], name: str
) -> tuple[ValueMatch, ...]:
    """The texts, and IRIs by their local names, that hold a name as whole words; the shortest first."""
    text = normalize(name)
    if not predicates or len(text) < 2:
        return ()
    plain = "LCASE(REPLACE(STR(?o), '[_-]', ' '))"
    rows = kg.select(
        f"SELECT ?p ?o (COUNT(*) AS ?n) WHERE {{ {values_clause('?p', predicates)} ?s ?p ?o"
        f" FILTER(!isBlank(?o) && CONTAINS({plain}, {string_literal(name.lower())})) }}"
        f" GROUP BY ?p ?o ORDER BY STRLEN(STR(?o)) ?p LIMIT {MAX_VALUE_MATCHES}"
    ).rows
    whole = re.compile(rf"(?<![^\W_]){re.escape(text)}(?![^\W_])")
    return tuple(
        ValueMatch(URIRef(p), o, parse_count(n))
        for p, o, n in rows
        if p
        and o is not None
        and whole.search(normalize(local_part(o) if isinstance(o, URIRef) else o))
    )


# --- the triples that an answer stands on


def where_clause(query: CandidateQuery) -> str:
    """The query's triple patterns and filters as the inside of a WHERE clause."""
    return f"{patterns_to_sparql(query.patterns)} {query.filters}".strip()


def find_support_by_value(
    kg: Graph, query: CandidateQuery, target: str, values: Sequence[Term]
) -> dict[Term, tuple[Triple, ...]]:
    """For each value of ``target`` ("?x") the triples of the patterns in at least one binding of it.

    Costs no query where the target is the only unknown. Raises a GraphError.
    """
    unknowns = variables_of(query.patterns)
    if unknowns == (target,):
        return {value: instantiate_patterns(query.patterns, {target: value}) for value in values}
    triples: dict[Term | None, dict[Triple, None]] = {value: {} for value in values}

    def collect(only: str) -> None:
        columns = " ".join(unknowns)
        rows = kg.select(
            f"SELECT DISTINCT {columns} WHERE {{ {only}{where_clause(query)} }} LIMIT {MAX_SUPPORT_BINDINGS}"
        )
        for row in rows.rows:
            binding = dict(zip(unknowns, row, strict=True))
            supporting = triples.get(binding[target])
            if supporting is not None and len(supporting) < MAX_TRIPLES_PER_VALUE:
                supporting |= dict.fromkeys(instantiate_patterns(query.patterns, binding))

    collect("")
    missing = [value for value in values if not triples[value] and is_serializable(value)]
    while missing:
        collect(f"VALUES {target} {{ {' '.join(map(n3, missing[:VALUES_PER_QUERY]))} }} ")
        left = [value for value in missing if not triples[value]]
        missing = left if len(left) < len(missing) else missing[VALUES_PER_QUERY:]
    return {value: tuple(triples[value]) for value in values}


def find_ask_support(kg: Graph, query: CandidateQuery) -> tuple[Triple, ...]:
    """The triples that make an ASK of the query's patterns true: one binding's. Empty if it is false."""
    unknowns = variables_of(query.patterns)
    if not unknowns:
        return instantiate_patterns(query.patterns, {})
    rows = kg.select(f"SELECT {' '.join(unknowns)} WHERE {{ {where_clause(query)} }} LIMIT 1").rows
    return (
        instantiate_patterns(query.patterns, dict(zip(unknowns, rows[0], strict=True)))
        if rows
        else ()
    )


def find_support_by_row(
    kg: Graph, sparql: str, columns: Sequence[str], rows: Sequence[Row]
) -> dict[Row, tuple[Triple, ...]]:
    """For each of the first rows the triples of its solutions; of a group, the first of them.

    Without rows, of an ASK, under () what makes it true. Patterns of NOT EXISTS and paths give no triples,
    those of OPTIONAL and UNION where they hold. Raises a GraphError if the query cannot be taken apart.
    """
    patterns = [
        pattern for pattern in analyze_query(sparql).patterns if PATH_PLACEHOLDER not in pattern
    ]
    parts, columns = split_clauses(sparql), columns if rows else ()
    free = {end[1:] for pattern in patterns for end in pattern if end.startswith("?")}
    free_places = [place for place, column in enumerate(columns) if column in free]
    names = " ".join(f"?{columns[place]}" for place in free_places)

    def cell(term: Term | None) -> str:
        return n3(term) if term is not None and is_serializable(term) else "UNDEF"

    cells = dict.fromkeys(
        " ".join(cell(row[place]) for place in free_places) for row in rows[:MAX_SUPPORTED_ROWS]
    )
    values = f"VALUES ({names}) {{ {' '.join(f'({line})' for line in cells)} }}" if names else ""
    binding = re.search(
        r"\bBIND\b", parts.where, re.IGNORECASE
    )  # whose variable must not be there before
    body = f"{{ {parts.where} }}" if binding else parts.where
    # The columns that each solution gives by itself, as BINDs: no aggregate, and nothing made of one
    binds, grouped = "", set[str]()
    for expression, name in parts.aliases:
        if AGGREGATE_CALL.search(expression) or grouped & {*re.findall(r"[?$](\w+)", expression)}:
            grouped.add(name)
        else:
            binds += f" BIND({expression} AS ?{name})"
    trailing = re.search(r"\s\bVALUES\b.*|$", parts.modifiers, re.IGNORECASE | re.DOTALL)
    solutions = kg.select(
        f"{parts.prologue}SELECT * {parts.dataset}WHERE {{ {values} {body}{binds} }}"
        f" LIMIT {MAX_SOLUTIONS if rows else 1}{trailing[0] if trailing else ''}"
    )
    places = [place for place, column in enumerate(columns) if column in solutions.variables]
    keys = (
        {row: tuple(row[place] for place in places) for row in rows[:MAX_SUPPORTED_ROWS]}
        if rows
        else {(): ()}
    )
    triples: dict[Row, dict[Triple, None]] = defaultdict(dict)
    for solution in solutions.rows:
        pairs = zip(solutions.variables, solution, strict=True)
        bound = {f"?{name}": term for name, term in pairs if term is not None}
        mine = triples[tuple(bound.get(f"?{columns[place]}") for place in places)]
        whole = [p for p in patterns if all(end in bound for end in p if end.startswith("?"))]
        mine.update(
            dict.fromkeys(instantiate_patterns(whole, bound)[: MAX_TRIPLES_PER_VALUE - len(mine)])
        )
    held = existing_triples(kg, {triple for each in triples.values() for triple in each})
    return {row: tuple(t for t in triples.get(key, ()) if t in held) for row, key in keys.items()}


def with_display_names(kg: Graph, answer: AnswerType) -> AnswerType:
    """The answer with the names of what it shows."""
    terms = {term for triple in answer.support for term in triple}
    terms |= {term for value in answer.values for term in value.terms}
    names = kg.names(sorted(term for term in terms if isinstance(term, URIRef)))
    return replace(answer, names=tuple(sorted(names.items())))


def existing_triples(kg: Graph, triples: Collection[Triple]) -> set[Triple]:
    """Those that the graph has: a solution of a UNION grounds the patterns of each branch.

    Triples of blank nodes cannot be asked for, and pass.
    """
    asked = sorted((t for t in triples if all(map(is_serializable, t))), key=str)
    held = set(triples) - set(asked)
    for start in range(0, len(asked), TRIPLES_PER_QUERY):
        lines = " ".join(
            f"({' '.join(map(n3, t))})" for t in asked[start : start + TRIPLES_PER_QUERY]
        )
        rows = kg.select(
            f"SELECT ?s ?p ?o WHERE {{ VALUES (?s ?p ?o) {{ {lines} }} ?s ?p ?o }}"
        ).rows
        held |= {
            (s, p, o)
            for s, p, o in rows
            if s is not None and isinstance(p, URIRef) and o is not None
        }
    return held


# --- why a query has no rows


@dataclass(frozen=True, slots=True)
class EmptyResultCause:
    """Why a query has no rows."""

    is_empty: bool
    """Whether it has none at all."""
    blocking_patterns: tuple[TriplePattern | str, ...] = ()
    """The patterns, or the filters, each of which alone, once removed, brings rows back."""
    unmatched_patterns: tuple[TriplePattern, ...] = ()
    """The patterns that nothing in the graph matches, each asked for alone."""


def explain_empty_result(
    kg: Graph, patterns: Sequence[TriplePattern], filters: str = ""
) -> EmptyResultCause:
    """Which triple pattern, or the filters, of a conjunctive query brings rows back once removed.

    Asks two questions a pattern at most, each for yes or no. Raises a GraphError.
    """

    def holds(patterns: Sequence[TriplePattern], only: str = "") -> bool:
        return kg.ask(f"ASK {{ {patterns_and_filters_to_sparql(patterns, only)} }}")

    patterns = tuple(dict.fromkeys(patterns))
    if holds(patterns, filters):
        return EmptyResultCause(is_empty=False)
    unmatched = tuple(pattern for pattern in patterns if not holds([pattern]))
    culprits: list[TriplePattern | str] = []
    for pattern in patterns:
        rest = [other for other in patterns if other != pattern]
        if rest and set(unmatched) <= {pattern} and holds(rest, filters):
            culprits.append(pattern)
    if filters and not unmatched and holds(patterns):
        culprits.append(filters.strip())
    return EmptyResultCause(True, tuple(culprits), unmatched)


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
