"""The triples that the answer of any query stands on: of its plain patterns, in some of its solutions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rdflib import Literal, URIRef

from kgwb.errors import QueryError
from kgwb.flow import Answer, Term, Triple
from kgwb.kg.algebra import PATH, ground, parts_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import checked, n3, writable

ROWS, SOLUTIONS, TRIPLES = 60, 2_000, 60
"""Rows of an answer, solutions of its patterns, and triples of a row that are looked at."""
AT_ONCE = 500
"""Triples asked for at once."""
Row = tuple[Term | None, ...]


def support_of(
    kg: Graph, sparql: str, columns: Sequence[str], rows: Sequence[Row]
) -> dict[Row, tuple[Triple, ...]]:
    """For each of the first rows the triples of its solutions; of a group, the first of them.

    Without rows, of an ASK, under () what makes it true. Patterns of NOT EXISTS and paths give no triples,
    those of OPTIONAL and UNION where they hold. Raises a GraphError if the query cannot be taken apart.
    """
    patterns = [pattern for pattern in parts_of(sparql).patterns if PATH not in pattern]
    text = checked(sparql).text
    free = {end for pattern in patterns for end in pattern if end.startswith("?")}
    places = [place for place, column in enumerate(columns) if f"?{column}" in free]
    keys = {row: tuple(row[place] for place in places) for row in rows[:ROWS]} if rows else {(): ()}
    names = " ".join(f"?{columns[place]}" for place in places)
    lines = " ".join(f"({' '.join(map(_cell, key))})" for key in dict.fromkeys(keys.values()))
    values = f"VALUES ({names}) {{ {lines} }}" if names else ""
    head = re.split(r"\b(?:SELECT|ASK)\b", text, maxsplit=1, flags=re.IGNORECASE)[0]
    limit = SOLUTIONS if rows else 1
    solutions = kg.select(f"{head}SELECT * WHERE {{ {values} {_where(text)} }} LIMIT {limit}")
    triples: dict[Row, dict[Triple, None]] = defaultdict(dict)
    for solution in solutions.rows:
        pairs = zip(solutions.variables, solution, strict=True)
        binding = {f"?{name}": term for name, term in pairs if term is not None}
        mine = triples[tuple(binding.get(f"?{columns[place]}") for place in places)]
        whole = [p for p in patterns if all(end in binding for end in p if end.startswith("?"))]
        mine.update(dict.fromkeys(ground(whole, binding)[: TRIPLES - len(mine)]))
    there = _there(kg, {triple for each in triples.values() for triple in each})
    return {row: tuple(t for t in triples.get(key, ()) if t in there) for row, key in keys.items()}


def named(kg: Graph, answer: Answer) -> Answer:
    """The answer with the names of what it shows."""
    terms = {term for triple in answer.support for term in triple}
    terms |= {term for value in answer.values for term in value.terms}
    names = kg.names(sorted(term for term in terms if isinstance(term, URIRef)))
    return replace(answer, names=tuple(sorted(names.items())))


def _where(text: str) -> str:
    """What stands in the outermost braces of a query. Raises QueryError if there are none."""
    start, depth = text.find("{"), 0
    strings = r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|<[^<>\s]*>|[{}]"
    for token in re.finditer(strings, text[start:] if start >= 0 else ""):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "}":
            return text[start + 1 : start + token.start()]
    raise QueryError("the query has no WHERE { }", hint="write its patterns in braces")


def _cell(term: Term | None) -> str:
    return n3(term) if term is not None and _sayable(term) else "UNDEF"


def _sayable(term: Term) -> bool:
    return isinstance(term, Literal) or (isinstance(term, URIRef) and writable(term))


def _there(kg: Graph, triples: set[Triple]) -> set[Triple]:
    """Those that the graph has: a solution of a UNION grounds the patterns of each branch.

    Triples of blank nodes cannot be asked for, and pass.
    """
    sayable = sorted((t for t in triples if all(map(_sayable, t))), key=str)
    there = triples - set(sayable)
    for start in range(0, len(sayable), AT_ONCE):
        lines = " ".join(f"({' '.join(map(n3, t))})" for t in sayable[start : start + AT_ONCE])
        rows = kg.select(f"SELECT ?s ?p ?o WHERE {{ VALUES (?s ?p ?o) {{ {lines} }} ?s ?p ?o }}").rows
        there |= {(s, p, o) for s, p, o in rows if s is not None and isinstance(p, URIRef) and o is not None}
    return there
