"""What a gold query means to RoboData's agents: stages, the rungs of the oracle ladder, links.

The states that evaluate, the look at the local graph, and metacognition have no gold: no query says
in which turn a person would have gone on.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Literal

from rdflib import URIRef

from kgwb.build import (
    GoldDecisions,
    GoldQuery,
    Graph,
    GraphError,
    LinkedIris,
    Run,
    Rung,
    Term,
    Triple,
    assign_stages,
    execute_sparql,
    find_support_by_row,
    get_output,
    list_outputs,
    patterns_to_sparql,
)
from kgwb.systems.robodata.records import Position, Produced, Sentence, State
from kgwb.systems.robodata.states import TOOLS_BY_STATE


def _list_tools(state: State) -> str:
    return " ".join(tool.spec.name for tool in TOOLS_BY_STATE[state])


AGENTS_BY_STAGE = {
    "think": "assessment observation",
    "remote": f"remote eval_remote {_list_tools('REMOTE')}",
    "local": f"update eval_local local_graph {_list_tools('UPDATE')}",
    "look closer": f"local {_list_tools('LOCAL')}",
    "answer": "produce answer",
}
Kind = Literal["things", "count", "yes", "no", "nothing"]


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in a run's last local graph, and as candidates all terms in results of tools.

    The nodes count as vertices, and the predicates of its triples as predicates. The candidates of
    both kinds are the same. All are empty before the first turn has ended.
    """
    positions: list[Position] = list_outputs(run, "turn")
    if not positions:
        return LinkedIris(frozenset(), frozenset(), frozenset(), frozenset())
    last = positions[-1]
    vertices = set()
    for node in last.local.nodes:
        if isinstance(node, URIRef):
            vertices.add(str(node))
    predicates = set()
    for _, predicate, _ in last.local.support:
        predicates.add(str(predicate))
    seen = set()
    for cell in chain.from_iterable(_list_observed(last)):
        if cell:
            seen.add(str(cell))
    return LinkedIris(
        frozenset(vertices),
        frozenset(predicates),
        frozenset(seen),
        frozenset(seen),
    )


def _list_observed(position: Position) -> list[tuple[Term | None, ...]]:
    """Return the rows of all results of tools, of all turns up to a position, in order."""
    rows: list[tuple[Term | None, ...]] = []
    for visit in position.visits:
        for result in visit.results:
            rows += result.rows
    return rows


def _find_gold_triples(kg: Graph, gold: GoldQuery) -> list[Triple]:
    """Execute the gold query, and return the distinct triples that its rows are derived from.

    Empty if the graph cannot execute it. A boolean query is taken as one row.
    """
    try:
        columns: tuple[str, ...] = ()
        rows: tuple[tuple[Term | None, ...], ...] = ((),)
        if gold.kind != "boolean":
            result = kg.select(gold.sparql)
            columns = result.variables
            rows = result.rows
        support = find_support_by_row(kg, gold.sparql, columns, rows)
    except GraphError:
        return []
    return list(dict.fromkeys(chain.from_iterable(support.values())))


# The rungs


def make_graph_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the local graph with the missing gold triples added, to put in after the last turn.

    The machine is then in the state PRODUCE. UPDATE is blamed if tools had shown all missing
    triples, else REMOTE, which did not look for them. Returns None if none is missing, if no turn
    has ended, or without a graph that can be asked anew.
    """
    kg = run.unrecorded_graph
    turns = [step for step in run.steps if step.agent == "turn" and step.done]
    if kg is None or not turns:
        return None
    last = turns[-1]
    position: Position = last.output
    support = position.local.support
    missing = [triple for triple in _find_gold_triples(kg, gold) if triple not in support]
    if not missing:
        return None
    observed = {row[:3] for row in _list_observed(position)}
    blamed = "update" if observed.issuperset(missing) else "remote"
    iris: dict[URIRef, None] = {}
    for term in chain.from_iterable(missing):
        if isinstance(term, URIRef):
            iris[term] = None
    names = kg.names(list(iris))
    local = position.local.with_triples((), missing)
    local = local.with_names(names.items())
    corrected = replace(position, state="PRODUCE", local=local)
    return Rung(blamed, {last.key: corrected})


def make_answer_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the answer that the gold query gives, to put in at "produce".

    Returns None if the run gave the same, if it has produced none, or if the query cannot be
    executed. Asks the graph outside of the record.
    """
    kg = run.unrecorded_graph
    produced: Produced | None = get_output(run, "produce")
    if kg is None or produced is None:
        return None
    try:
        kind, answers = _find_gold_answer(kg, gold)
    except GraphError:
        return None
    if produced.kind == kind and set(produced.answers) == set(answers):
        return None
    sentence = Sentence("gold", tuple(_find_gold_triples(kg, gold)))
    return Rung("produce", {"produce": Produced((sentence,), kind, answers)})


def _find_gold_answer(kg: Graph, gold: GoldQuery) -> tuple[Kind, tuple[Term, ...]]:
    """Execute the gold query, and return the kind of its answer, and the distinct nodes that answer it.

    A boolean query has the kind "yes" or "no" and no nodes. For a count, the nodes that are counted
    are selected. Raises GraphError if the query cannot be executed.
    """
    if gold.kind == "boolean":
        return ("yes" if execute_sparql(kg, gold.sparql) else "no"), ()
    kind: Kind = "things"
    query = gold.sparql
    if gold.kind == "count":  # a count is the number of answering nodes
        kind = "count"
        query = f"SELECT DISTINCT {gold.target} WHERE {{ {patterns_to_sparql(gold.patterns)} }}"
    cells = chain.from_iterable(kg.select(query).rows)
    return kind, tuple(dict.fromkeys(cell for cell in cells if cell is not None))


LADDER = MappingProxyType({"local graph": make_graph_rung, "answer": make_answer_rung})
GOLD = GoldDecisions(assign_stages(AGENTS_BY_STAGE), LADDER, collect_linked_iris)
