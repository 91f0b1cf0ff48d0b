"""What a gold query means to RAGonite's agents: stages, the rungs of the oracle ladder, links.

SQL, passages and SPARQL have no gold of their own: each of them may find what answers a question, so
that the agent which chooses tools is to blame where none did.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from rdflib import URIRef

from kgwb.build import (
    GoldDecisions,
    GoldQuery,
    GraphError,
    LinkedIris,
    Run,
    Rung,
    get_output,
)
from kgwb.systems.ragonite.records import CitedAnswer, CitedValue, Source
from kgwb.systems.ragonite.tool_selector import query_graph


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in the triples of the sources that values cite, and as candidates those of all sources."""
    sources: tuple[Source, ...] = get_output(run, "tool_selector") or ()
    cited_answer: CitedAnswer | None = get_output(run, "answerer")
    cited = [
        source
        for number, source in enumerate(sources, 1)
        if cited_answer and number in cited_answer.cited_numbers
    ]
    vertices, predicates = _list_iris(cited)
    vertex_candidates, predicate_candidates = _list_iris(sources)
    return LinkedIris(vertices, predicates, vertex_candidates, predicate_candidates)


def _list_iris(sources: Iterable[Source]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the IRIs of the vertices and of the predicates in the triples of sources."""
    triples = list(chain.from_iterable(source.triples for source in sources))
    ends = chain.from_iterable(triple[::2] for triple in triples)
    vertices = frozenset(str(end) for end in ends if isinstance(end, URIRef))
    return vertices, frozenset(str(predicate) for _, predicate, _ in triples)


def _find_gold_source(run: Run, gold: GoldQuery) -> Source | None:
    """Execute the gold query, and return its rows and support as a source.

    None if it cannot be executed, or without a graph that can be asked outside of the record.
    """
    kg = run.unrecorded_graph
    if kg is None:
        return None
    try:
        return query_graph(kg, gold.sparql)
    except GraphError:
        return None


def _has_values_of(sources: Iterable[Source], gold_source: Source) -> bool:
    """Return whether sources have every cell of the gold source, as a term or as the text of a cell."""
    known: set[str] = set()
    for source in sources:
        known.update(str(term) for _, term in source.terms)
        known.update(str(meaning.term) for meaning in source.meanings)
        known.update(chain.from_iterable(source.rows))
    return known.issuperset(chain.from_iterable(gold_source.rows))


# The rungs


def make_source_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the sources with the result of the gold query before them, to put in at "tool_selector".

    Returns None if the sources have all its values, if no tools were used yet, or if the query
    cannot be executed.
    """
    sources: tuple[Source, ...] | None = get_output(run, "tool_selector")
    gold_source = _find_gold_source(run, gold)
    if sources is None or gold_source is None or _has_values_of(sources, gold_source):
        return None
    return Rung("tool_selector", {"tool_selector": (gold_source, *sources)})


def make_answer_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return an answer that cites the result of the gold query, to put in at "answerer".

    Its values are the cells of the first column. Returns None if the query cannot be executed.
    """
    sources: tuple[Source, ...] = get_output(run, "tool_selector") or ()
    gold_source = _find_gold_source(run, gold)
    if gold_source is None:
        return None
    number = len(sources) + 1
    values = []
    for cells in gold_source.rows:
        values.append(CitedValue(cells[0], (number,)))
    cited = CitedAnswer("gold", gold.kind, tuple(values), (*sources, gold_source))
    return Rung("answerer", {"answerer": cited})


LADDER = {"sources": make_source_rung, "answer": make_answer_rung}
GOLD = GoldDecisions(LADDER, collect_linked_iris)
