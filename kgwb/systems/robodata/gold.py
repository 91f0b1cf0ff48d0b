"""What a gold query means to RoboData's agents: stages, the rungs of the oracle ladder, links.

The states that evaluate, the look at the local graph, and metacognition have no gold: no query says
in which turn a person would have gone on.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
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
    collect_iris,
    execute_unrecorded,
    find_support_by_row,
    get_names_in_rows,
    get_output,
    list_outputs,
    patterns_to_sparql,
)
from kgwb.systems.robodata.records import Position, Produced, Sentence

Kind = Literal["things", "count", "yes", "no", "nothing"]


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in a run's last local graph, and as candidates all terms in results of tools.

    The nodes count as vertices, and the predicates of its triples as predicates. The candidates of
    both kinds are the same. All are empty before the first turn has ended.
    """
    last: list[Position] = list_outputs(run, "turn")[-1:]
    seen = collect_iris(last, lambda position: filter(None, chain(*_list_observed(position))))
    return LinkedIris(
        collect_iris(last, lambda position: filter(_is_iri, position.local.nodes)),
        collect_iris(last, lambda position: [triple[1] for triple in position.local.support]),
        seen,
        seen,
    )


def _is_iri(term: Term) -> bool:
    return isinstance(term, URIRef)


def _list_observed(position: Position) -> list[tuple[Term | None, ...]]:
    """Return the rows of all results of tools, of all turns up to a position, in order."""
    results = chain.from_iterable(visit.results for visit in position.visits)
    return list(chain.from_iterable(result.rows for result in results))


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
    names = get_names_in_rows(missing, kg)
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
    query = gold.sparql
    if gold.kind == "count":  # the nodes that are counted are the answers
        query = f"SELECT DISTINCT {gold.target} WHERE {{ {patterns_to_sparql(gold.patterns)} }}"
    result = execute_unrecorded(query, run)
    if result is None:
        return None
    kind: Kind = "count" if gold.kind == "count" else "things"
    answers: tuple[Term, ...] = ()
    if isinstance(result, bool):
        kind = "yes" if result else "no"
    else:
        cells = chain.from_iterable(result.rows)
        answers = tuple(dict.fromkeys(cell for cell in cells if cell is not None))
    if produced.kind == kind and set(produced.answers) == set(answers):
        return None
    sentence = Sentence("gold", tuple(_find_gold_triples(kg, gold)))
    return Rung("produce", {"produce": Produced((sentence,), kind, answers)})


LADDER = {"local graph": make_graph_rung, "answer": make_answer_rung}
GOLD = GoldDecisions(LADDER, collect_linked_iris)
