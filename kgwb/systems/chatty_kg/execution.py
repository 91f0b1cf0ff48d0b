"""Query execution: run the selected queries and make one answer of them (sections 5.2.4 and 5.2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rdflib import Literal, URIRef
from rdflib.namespace import XSD

from kgwb.flow import NOT_HERE, Answer, CandidateQuery, Term, Triple, Value
from kgwb.kg.queries import counted, support, where, witness
from kgwb.run import Run, agent
from kgwb.systems.chatty_kg.records import QIR, Linked, Selection

SURE = 0.6
"""Score from which a query's wording decides the direction; "relatives" is both father and child."""
Supports = dict[Term, tuple[Triple, ...]]


@agent("execution", kind="sparql")
def execute(selection: Selection, qir: QIR, linked: Linked, run: Run) -> Answer:
    """The answer with the triples each value stands on; empty and with its reason if the graph has none.

    The union of all selected queries. ``fast`` counts where a count is asked and no stored number answers,
    and of queries that differ only in direction takes the first with rows, or the first at all if yes or no
    is asked.
    """
    missing = why_not(selection, linked, run)
    if missing:
        return Answer(qir.kind, reason=f"{NOT_HERE}: {missing}")
    if qir.kind == "boolean":
        return _named(_boolean(selection.queries, run), run)
    supports, executed, cut = _union(selection.queries, qir.target, run)
    if not supports:
        return Answer(qir.kind, queries=_texts(executed), reason=f"{NOT_HERE}: no selected query has rows")
    stored = all(isinstance(value, Literal) and value.datatype in NUMBERS for value in supports)
    if qir.kind == "count" and run.settings.fast and not stored:
        return _named(_count(supports, executed, qir.target, cut, run), run)
    names = run.kg.names([value for value in supports if isinstance(value, URIRef)])
    values = [
        Value(term, names[term] if isinstance(term, URIRef) else str(term), triples)
        for term, triples in supports.items()
    ]
    values.sort(key=lambda value: (value.label, str(value.term)))
    return _named(Answer(qir.kind, tuple(values), _texts(executed)), run)


def why_not(selection: Selection, linked: Linked, run: Run) -> str:
    """Which part of the question the graph has nothing for; empty if queries were selected."""
    if run.settings.fast:
        lost = [link.entity for link in linked.links if link.vertex is None]
        if lost:
            return "no vertex for " + ", ".join(lost)
        bare = [str(relation.fact) for relation in linked.relations if not relation.predicates]
        if bare:
            return "no predicate for " + ", ".join(bare)
    return "" if selection.queries else "no predicate fits the question"


def _union(
    queries: Sequence[CandidateQuery], target: str, run: Run
) -> tuple[Supports, list[CandidateQuery], bool]:
    """Values with support, the queries that were executed, and whether a result was cut."""
    supports: Supports = {}
    cut = False
    executed: list[CandidateQuery] = []
    settled: set[tuple[str, ...]] = set()
    for query in queries:
        undirected = _undirected(query)
        if undirected in settled or not any(target in pattern for pattern in query.patterns):
            continue
        rows = run.kg.select(query.sparql)
        executed.append(query)
        values = [row[0] for row in rows.rows if row[0] is not None]
        if values and run.settings.fast and query.score >= SURE:
            settled.add(undirected)
        cut = cut or rows.cut
        for value, triples in support(run.kg, query, target, values).items():
            supports[value] = tuple(dict.fromkeys((*supports.get(value, ()), *triples)))
    return supports, executed, cut


def _boolean(queries: Sequence[CandidateQuery], run: Run) -> Answer:
    """True if any selected query holds, with the triples that make it true."""
    executed: list[str] = []
    asked: set[tuple[str, ...]] = set()
    for query in queries:
        undirected = _undirected(query)
        if run.settings.fast and undirected in asked:
            continue
        asked.add(undirected)
        executed.append(query.sparql)
        if run.kg.ask(query.sparql):
            value = Value(Literal(True), "true", witness(run.kg, query))
            return Answer("boolean", (value,), tuple(executed))
    return Answer("boolean", (Value(Literal(False), "false"),), tuple(executed))


def _undirected(query: CandidateQuery) -> tuple[str, ...]:
    """What queries that differ only in direction share."""
    return tuple(predicate for _, predicate, _ in query.patterns)


NUMBERS = frozenset(
    XSD[name]
    for name in (
        *("integer", "int", "long", "short", "decimal", "double", "float"),
        *("nonNegativeInteger", "positiveInteger"),
    )
)


def _count(
    supports: Supports, executed: Sequence[CandidateQuery], target: str, cut: bool, run: Run
) -> Answer:
    """COUNT(DISTINCT target) where no stored number answers; a cut result is counted by the graph itself."""
    number, queries = len(supports), _texts(executed)
    triples = tuple(dict.fromkeys(triple for evidence in supports.values() for triple in evidence))
    if cut:
        patterns = " UNION ".join(f"{{ {where(query)} }}" for query in executed)
        counting = f"SELECT (COUNT(DISTINCT {target}) AS ?_n) WHERE {{ {patterns} }}"
        number = counted(next((row[0] for row in run.kg.select(counting).rows), None))
        queries = (*queries, counting)
    return Answer("count", (Value(Literal(number), str(number), triples),), queries)


def _texts(queries: Sequence[CandidateQuery]) -> tuple[str, ...]:
    return tuple(query.sparql for query in queries)


def _named(answer: Answer, run: Run) -> Answer:
    """The answer with the names of what it stands on."""
    iris = {term for triple in answer.support for term in triple if isinstance(term, URIRef)}
    return replace(answer, names=tuple(sorted(run.kg.names(sorted(iris)).items())))
