"""SPARQL taken apart into triple patterns, and triple patterns as SPARQL and as triples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rdflib import BNode, Literal, URIRef, Variable
from rdflib.paths import Path
from rdflib.plugins.sparql.algebra import translateQuery, traverse
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.util import from_n3

from kgwb.errors import QueryError
from kgwb.flow import AnswerKind
from kgwb.kg.sparql import PARSE_ERRORS, exclusive_parser, n3, validate_query, walk_nodes
from kgwb.terms import Term, Triple

TriplePattern = tuple[str, str, str]
"""A triple pattern: terms in N-Triples form, variables as "?x"."""

PATH_PLACEHOLDER = "path"
"""What stands in a pattern for a property path."""
_NEGATION_NODES = ("Builtin_NOTEXISTS", "UnaryNot", "Minus")
"""Parts of rdflib's algebra that hold what must not be in the graph."""
_IRI_REFERENCE = re.compile(r"<([^<>\s]*)>")
_NUMBERED_IRI = re.compile(r"<urn:(\d+):")
_COUNT_IN_SELECT = re.compile(r"^[^{]*\bCOUNT\s*\(", re.IGNORECASE)
_SPARQL_NAMES = {
    "LeftJoin": "OPTIONAL",
    "Extend": "BIND, AS or an aggregate",
    "AggregateJoin": "an aggregate",
    "ToMultiSet": "VALUES or a query in the query",
    "Filter": "a filter in a group of its own",
}
"""Parts of rdflib's algebra by their names in SPARQL, where those differ."""


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """A SELECT or ASK taken apart."""

    kind: AnswerKind
    projected_variables: tuple[str, ...]
    """The variables that are asked for or counted, as "?x"; none of an ASK."""
    patterns: tuple[TriplePattern, ...]
    """All its triple patterns but for those of NOT EXISTS and MINUS; blank nodes are variables too."""
    filters: str
    """The FILTERs that stand beside the patterns, with every prefix resolved."""
    unsupported_feature: str
    """What it holds besides, by its name in SPARQL; empty for a conjunctive query."""


def analyze_query(sparql: str) -> QueryAnalysis:
    """A query in its parts. Raises QueryRefusedError for an update, QueryError if it is no SELECT or ASK."""
    query = validate_query(sparql, "select", "ask")
    if query.undeclared_prefixes:
        hint = "begin it with PREFIX lines, or write the IRIs out"
        raise QueryError(
            f"the query does not declare {', '.join(query.undeclared_prefixes)}:", hint=hint
        )
    iris: list[str] = _IRI_REFERENCE.findall(query.text)
    if "BASE" in query.text.upper() or "<urn:" in query.text:
        return _analyze_text(query.text)
    numbers = iter(range(len(iris)))
    try:  # queries that differ in IRIs only are read once
        parts = _analyze_text(_IRI_REFERENCE.sub(lambda _: f"<urn:{next(numbers)}:>", query.text))
    except QueryError:  # a "<" may be less-than
        return _analyze_text(query.text)

    def restored(text: str) -> str:
        return _NUMBERED_IRI.sub(lambda number: f"<{iris[int(number[1])]}", text)

    patterns = tuple((restored(s), restored(p), restored(o)) for s, p, o in parts.patterns)
    return QueryAnalysis(
        parts.kind,
        parts.projected_variables,
        patterns,
        restored(parts.filters),
        parts.unsupported_feature,
    )


def extract_patterns(sparql: str) -> tuple[tuple[TriplePattern, ...], str]:
    """The triple patterns and the filters of a conjunctive SELECT or ASK. Raises QueryError for any other."""
    parts = analyze_query(sparql)
    if parts.unsupported_feature:
        hint = (
            "use triple patterns and FILTERs only; other queries can be run, but not be taken apart"
        )
        raise QueryError(f"the query holds {parts.unsupported_feature}", hint=hint)
    if not parts.patterns:
        raise QueryError("the query has no triple pattern", hint="write at least one in WHERE { }")
    return parts.patterns, parts.filters


@lru_cache(maxsize=1024)
def _analyze_text(sparql: str) -> QueryAnalysis:
    known: dict[BNode, BNode] = {}

    def renamed(node: Any) -> BNode | None:  # so that blank nodes have the same names each time
        return (
            known.setdefault(node, BNode(f"_{len(known) + 1}")) if isinstance(node, BNode) else None
        )

    try:
        with exclusive_parser():
            algebra = translateQuery(traverse(parseQuery(sparql), visitPost=renamed)).algebra
            filters, other = _split_conjunction(algebra.p)
    except (*PARSE_ERRORS, SPARQLError, NotImplementedError, RecursionError) as error:
        raise QueryError(
            f"rdflib does not read the query: {error}", hint="write it more plainly"
        ) from error
    present = list(walk_nodes(algebra, _NEGATION_NODES))
    triples = [triple for node in present if node.name == "BGP" for triple in node.triples]
    if any(isinstance(predicate, Path) for _, predicate, _ in triples):
        other = other or "a property path"
    patterns = tuple(
        dict.fromkeys(
            (_term_to_pattern_text(s), _term_to_pattern_text(p), _term_to_pattern_text(o))
            for s, p, o in triples
        )
    )
    if algebra.name == "AskQuery":
        return QueryAnalysis("boolean", (), patterns, filters, other)
    counted = [
        node.vars
        for node in present
        if node.name == "Aggregate_Count" and _COUNT_IN_SELECT.search(sparql)
    ][:1]
    asked = tuple(f"?{name}" for name in counted or algebra.PV)
    return QueryAnalysis("count" if counted else "list", asked, patterns, filters, other)


def _split_conjunction(node: CompValue) -> tuple[str, str]:
    """The filters of a query as SPARQL, and what it holds beside them and triple patterns."""
    filters = ""
    try:
        while node.name in ("Project", "Distinct", "Reduced", "OrderBy", "Slice", "Filter"):
            if node.name == "Filter":
                filters += f"FILTER({_expression_to_sparql(node.expr)}) "
            node = node.p
    except NotImplementedError as error:
        return "", str(error)
    joined = [node]
    for part in joined:
        if part.name == "Join":
            joined += part.p1, part.p2
        elif part.name != "BGP":
            return "", _SPARQL_NAMES.get(part.name, part.name.upper())
    return filters, ""


def _term_to_pattern_text(term: Any) -> str:
    if isinstance(term, Variable | BNode):  # a blank node of a query is a variable without a name
        return f"?{term}"
    return PATH_PLACEHOLDER if isinstance(term, Path) else n3(term)


def _expression_to_sparql(node: Any) -> str:
    """A filter of rdflib's algebra as SPARQL. Raises NotImplementedError for what is too much for it."""
    if not isinstance(node, CompValue):
        return _term_to_pattern_text(node)
    name = node.name.removeprefix("Builtin_")
    if name in ("ConditionalOrExpression", "ConditionalAndExpression"):
        sign = " || " if name == "ConditionalOrExpression" else " && "
        return f"({sign.join(map(_expression_to_sparql, (node.expr, *node.other)))})"
    if name == "UnaryNot":
        return f"!({_expression_to_sparql(node.expr)})"
    if name == "RelationalExpression":
        right = (
            _arguments_to_sparql(node.other)
            if isinstance(node.other, list)
            else _expression_to_sparql(node.other)
        )
        return f"({_expression_to_sparql(node.expr)} {node.op} {right})"
    if name == node.name or name.endswith("EXISTS"):
        raise NotImplementedError(
            "EXISTS" if name.endswith("EXISTS") else "arithmetic or a foreign function"
        )
    return name + _arguments_to_sparql(value for key, value in node.items() if key != "_vars")


def _arguments_to_sparql(nodes: Iterable[Any]) -> str:
    flat = (item for node in nodes for item in (node if isinstance(node, list) else [node]))
    return f"({', '.join(map(_expression_to_sparql, flat))})"


# --- patterns


def patterns_to_sparql(patterns: Iterable[TriplePattern]) -> str:
    """Triple patterns as SPARQL."""
    return " ".join(f"{s} {p} {o} ." for s, p, o in patterns)


def patterns_and_filters_to_sparql(patterns: Iterable[TriplePattern], filters: str) -> str:
    """Triple patterns and filters as SPARQL; without filters on what no pattern binds, which never hold."""
    patterns = list(patterns)
    bound = {*re.findall(r"\?\w+", filters)} <= {*variables_of(patterns)}
    return f"{patterns_to_sparql(patterns)} {filters if bound else ''}"


def variables_of(patterns: Iterable[TriplePattern]) -> tuple[str, ...]:
    """The variables of triple patterns, in order of appearance."""
    return tuple(
        dict.fromkeys(end for pattern in patterns for end in pattern if end.startswith("?"))
    )


def term_from_text(text: str) -> Term:
    """The RDF term of its N-Triples form."""
    if text.startswith("<"):
        return URIRef(text[1:-1])
    term: Any = from_n3(text)
    return term if isinstance(term, URIRef | Literal) else Literal(text)


def instantiate_patterns(
    patterns: Iterable[TriplePattern], binding: Mapping[str, Any]
) -> tuple[Triple, ...]:
    """The patterns with their variables replaced by the terms of a row."""

    def term(text: str) -> Any:
        return binding[text] if text in binding else term_from_text(text)

    return tuple((term(s), term(p), term(o)) for s, p, o in patterns)
