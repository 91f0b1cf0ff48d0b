"""Random queries over a graph with muted triples answer as over the graph without them.

Oxigraph answers both: the query rewritten by kgwb on the whole graph, and the query as it is on the
graph that lacks the triples.
"""

from __future__ import annotations

import re
from collections import Counter

import pyoxigraph as ox
import pytest
import rdflib
from oxrdflib._converter import to_ox
from random_queries import Case, random_case

from kgwb.errors import QueryError
from kgwb.kg.local import find_lost_nodes
from kgwb.kg.muting import rewrite_without
from kgwb.kg.sparql import validate_query

CASES = 20_000
PARTS = 8
REFUSED = re.compile(
    r"the path .* leads over its predicate"
    r"|may match one of its nodes with itself"
    r"|the blank node .* stands in several groups"
    r"|SELECT \* selects no variable"
)
"""All reasons for which a muted query may be refused."""


def store_of(graph: rdflib.Graph, muted: tuple[object, ...] = ()) -> ox.Store:
    store = ox.Store()
    store.extend(ox.Quad(*map(to_ox, triple)) for triple in graph if triple not in muted)
    return store


def answer(store: ox.Store, query: str) -> object:
    """Return what a query gives, so that two answers can be compared."""
    result = store.query(query)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    if isinstance(result, ox.QueryTriples):
        return {str(triple) for triple in result}
    variables = [variable.value for variable in result.variables]
    rows = [tuple(None if cell is None else str(cell) for cell in row) for row in result]
    return sorted(variables), sorted(
        repr(sorted(zip(variables, row, strict=True), key=repr)) for row in rows
    )


def outcome_of(case: Case) -> str:
    """Return "equal", "wrong", "refused: why", or "invalid" for a query that is not SPARQL."""
    try:
        expected = answer(store_of(case.graph, case.muted), case.query)
        validate_query(case.query)
    except (SyntaxError, QueryError):
        return "invalid"
    try:
        whole = store_of(case.graph)
        lost = find_lost_nodes(whole, case.muted)
        rewritten = rewrite_without(
            case.query, case.muted, has_distinct_paths=True, lost_nodes=lost
        )
    except QueryError as error:
        return f"refused: {error.message}"
    return "equal" if answer(whole, rewritten) == expected else "wrong"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_muted_queries_answer_as_without_the_triples(part: int) -> None:
    outcomes = {seed: outcome_of(random_case(seed)) for seed in range(part, CASES, PARTS)}
    wrong = [seed for seed, outcome in outcomes.items() if outcome == "wrong"]
    assert wrong == []
    refused = [text for text in outcomes.values() if text.startswith("refused")]
    assert [text for text in refused if not REFUSED.search(text)] == []
    counts = Counter(outcome.partition(":")[0] for outcome in outcomes.values())
    assert counts["refused"] <= 0.15 * (counts["equal"] + counts["refused"])
    assert counts["invalid"] <= 0.1 * len(outcomes)
