"""What an answer of any query stands on: the triples of its plain patterns in some of its solutions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from rdflib import BNode, Literal, URIRef

from kgwb.errors import GraphError
from kgwb.flow import Term, Triple
from kgwb.kg.algebra import PATH, ground, parts_of
from kgwb.kg.sparql import checked, n3, writable
from kgwb.run import Run

ROWS, SOLUTIONS, TRIPLES = 60, 2_000, 60
"""Rows of an answer, solutions of its patterns, and triples of a row that are looked at."""
Row = tuple[Term | None, ...]


def support_of(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> dict[Row, tuple[Triple, ...]]:
    """For each of the first rows the triples that its solutions have; of a group, the first of them.

    Without rows, of an ASK, what makes it true. A row of a query that cannot be taken apart has none.
    """
    try:
        patterns = [p for p in parts_of(sparql).patterns if PATH not in p]
        inside = where_of(checked(sparql).text)
        free = {end[1:] for pattern in patterns for end in pattern if end.startswith("?")}
        known = [place for place, column in enumerate(columns) if column in free]
        bound = [tuple(row[place] for place in known) for row in rows[:ROWS]]
        values = _values([columns[place] for place in known], bound)
        head = sparql[: re.search(r"\b(SELECT|ASK)\b", sparql, re.IGNORECASE).start()]  # type: ignore[union-attr]
        limit = SOLUTIONS if rows else 1
        found = run.kg.select(f"{head}SELECT * WHERE {{ {values} {inside} }} LIMIT {limit}")
    except (GraphError, ValueError, AttributeError) as error:
        run.note(f"what the answer stands on was not found: {getattr(error, 'message', error)}")
        return {}
    triples: dict[Row, dict[Triple, None]] = defaultdict(dict)
    for solution in found.rows:
        binding = {
            f"?{name}": term for name, term in zip(found.variables, solution, strict=True) if term is not None
        }
        key = tuple(binding.get(f"?{columns[place]}") for place in known)
        whole = [p for p in patterns if all(end in binding for end in p if end.startswith("?"))]
        for triple in ground(whole, binding):
            if len(triples[key]) < TRIPLES and isinstance(triple[1], URIRef):
                triples[key][triple] = None
    there = _there({triple for each in triples.values() for triple in each}, run)
    keys = dict(zip(rows, bound, strict=False)) if rows else {(): ()}
    return {row: tuple(t for t in triples.get(key, ()) if t in there) for row, key in keys.items()}


def where_of(text: str) -> str:
    """What stands in the outermost braces of a query. Raises ValueError if there are none."""
    start = text.index("{")
    depth = 0
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>\s]*>|[{}]', text[start:]):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return text[start + 1 : start + token.start()]
    raise ValueError("the query has no WHERE { }")


def _values(columns: Sequence[str], rows: Sequence[Row]) -> str:
    if not columns or not rows:
        return ""
    lines = " ".join(f"({' '.join(map(_writable, row))})" for row in dict.fromkeys(rows))
    return f"VALUES ({' '.join(f'?{column}' for column in columns)}) {{ {lines} }}"


def _writable(term: Term | None) -> str:
    return (
        "UNDEF"
        if term is None or isinstance(term, BNode) or (isinstance(term, URIRef) and not writable(term))
        else n3(term)
    )


def _there(triples: set[Triple], run: Run) -> set[Triple]:
    """Those that the graph has: of a UNION, a solution grounds the patterns of each branch. Blank nodes pass."""
    sure = {t for t in triples if any(isinstance(end, BNode) for end in t)}
    left = sorted(triples - sure, key=str)
    while left:
        some = list(islice(left, 500))
        lines = " ".join(
            f"({' '.join(map(n3, triple))})" for triple in some if all(_sayable(t) for t in triple)
        )
        rows = run.kg.select(f"SELECT ?s ?p ?o WHERE {{ VALUES (?s ?p ?o) {{ {lines} }} ?s ?p ?o }}").rows
        sure |= {(s, p, o) for s, p, o in rows if s is not None and isinstance(p, URIRef) and o is not None}
        left = left[500:]
    return sure


def _sayable(term: Term) -> bool:
    return isinstance(term, Literal) or (isinstance(term, URIRef) and writable(term))
