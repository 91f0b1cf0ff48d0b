"""The triples that the answer of any query stands on: of its plain patterns, in some of its solutions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from rdflib import Literal, URIRef

from kgwb.flow import Answer, Term, Triple
from kgwb.kg.algebra import PATH, ground, parts_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import Outline, n3, outline, writable

ROWS, SOLUTIONS, TRIPLES = 60, 2_000, 60
"""Rows of an answer, solutions of its patterns, and triples of a row that are looked at."""
AT_ONCE = 500
"""Triples asked for at once."""
AGGREGATE = re.compile(r"\b(?:COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT)\s*\(", re.IGNORECASE)
SomeAnswer = TypeVar("SomeAnswer", bound=Answer)
Row = tuple[Term | None, ...]


def support_of(
    kg: Graph, sparql: str, columns: Sequence[str], rows: Sequence[Row]
) -> dict[Row, tuple[Triple, ...]]:
    """For each of the first rows the triples of its solutions; of a group, the first of them.

    Without rows, of an ASK, under () what makes it true. Patterns of NOT EXISTS and paths give no triples,
    those of OPTIONAL and UNION where they hold. Raises a GraphError if the query cannot be taken apart.
    """
    patterns = [pattern for pattern in parts_of(sparql).patterns if PATH not in pattern]
    parts, columns = outline(sparql), columns if rows else ()
    free = {end[1:] for pattern in patterns for end in pattern if end.startswith("?")}
    given = [place for place, column in enumerate(columns) if column in free]
    names = " ".join(f"?{columns[place]}" for place in given)
    cells = dict.fromkeys(" ".join(_cell(row[place]) for place in given) for row in rows[:ROWS])
    values = f"VALUES ({names}) {{ {' '.join(f'({line})' for line in cells)} }}" if names else ""
    binding = re.search(r"\bBIND\b", parts.where, re.IGNORECASE)  # whose variable must not be there before
    body = f"{{ {parts.where} }}" if binding else parts.where
    trailing = re.search(r"\s\bVALUES\b.*|$", parts.rest, re.IGNORECASE | re.DOTALL)
    solutions = kg.select(
        f"{parts.prologue}SELECT * {parts.dataset}WHERE {{ {values} {body}{_made(parts)} }}"
        f" LIMIT {SOLUTIONS if rows else 1}{trailing[0] if trailing else ''}"
    )
    places = [place for place, column in enumerate(columns) if column in solutions.variables]
    keys = {row: tuple(row[place] for place in places) for row in rows[:ROWS]} if rows else {(): ()}
    triples: dict[Row, dict[Triple, None]] = defaultdict(dict)
    for solution in solutions.rows:
        pairs = zip(solutions.variables, solution, strict=True)
        bound = {f"?{name}": term for name, term in pairs if term is not None}
        mine = triples[tuple(bound.get(f"?{columns[place]}") for place in places)]
        whole = [p for p in patterns if all(end in bound for end in p if end.startswith("?"))]
        mine.update(dict.fromkeys(ground(whole, bound)[: TRIPLES - len(mine)]))
    held = there(kg, {triple for each in triples.values() for triple in each})
    return {row: tuple(t for t in triples.get(key, ()) if t in held) for row, key in keys.items()}


def named(kg: Graph, answer: SomeAnswer) -> SomeAnswer:
    """The answer with the names of what it shows."""
    terms = {term for triple in answer.support for term in triple}
    terms |= {term for value in answer.values for term in value.terms}
    names = kg.names(sorted(term for term in terms if isinstance(term, URIRef)))
    return replace(answer, names=tuple(sorted(names.items())))


def _made(parts: Outline) -> str:
    """The columns that each solution gives by itself, as BINDs; no aggregate, and nothing made of one."""
    binds, grouped = [], set[str]()
    for expression, name in parts.made:
        if AGGREGATE.search(expression) or grouped & {*re.findall(r"[?$](\w+)", expression)}:
            grouped.add(name)
        else:
            binds.append(f" BIND({expression} AS ?{name})")
    return "".join(binds)


def _cell(term: Term | None) -> str:
    return n3(term) if term is not None and _sayable(term) else "UNDEF"


def _sayable(term: Term) -> bool:
    return isinstance(term, Literal) or (isinstance(term, URIRef) and writable(term))


def there(kg: Graph, triples: Collection[Triple]) -> set[Triple]:
    """Those that the graph has: a solution of a UNION grounds the patterns of each branch.

    Triples of blank nodes cannot be asked for, and pass.
    """
    sayable = sorted((t for t in triples if all(map(_sayable, t))), key=str)
    held = set(triples) - set(sayable)
    for start in range(0, len(sayable), AT_ONCE):
        lines = " ".join(f"({' '.join(map(n3, t))})" for t in sayable[start : start + AT_ONCE])
        rows = kg.select(f"SELECT ?s ?p ?o WHERE {{ VALUES (?s ?p ?o) {{ {lines} }} ?s ?p ?o }}").rows
        held |= {(s, p, o) for s, p, o in rows if s is not None and isinstance(p, URIRef) and o is not None}
    return held
