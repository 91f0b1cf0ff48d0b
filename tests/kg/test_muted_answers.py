"""Muting a triple of an answer's support gives the answer of a graph that does not have the triple."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import rdflib
from test_same_answers import conversations, held, outcome, questions

from kgwb import open_kg
from kgwb.kg import Graph, sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.run import Run
from kgwb.terms import Triple

FILMS = sample_path("films")
GRAPH = rdflib.Graph().parse(FILMS)


@pytest.mark.timeout(1200)
def test_films() -> None:
    asked = runs(open_kg(FILMS))
    pairs = [
        (run, triple)
        for run in asked
        for triple in (run.answer.support if run.answer is not None else ())
    ]
    lacking = {triple: without(triple) for _, triple in pairs}

    def differs(pair: tuple[Run, Triple]) -> str:
        run, triple = pair
        here, there = outcome(run.mute(triple)), outcome(run.fork(kg=lacking[triple]))
        return (
            f"{run.question} without {triple}: {here} instead of {there}" if here != there else ""
        )

    with ThreadPoolExecutor(2) as pool:
        different = list(filter(None, pool.map(differs, pairs)))
    changed = sum(outcome(run.fork(kg=lacking[triple])) != outcome(run) for run, triple in pairs)
    sys.stdout.write(
        f"{len(pairs)} triples of {len(asked)} answers muted, {changed} answers change\n"
    )
    assert len(asked) == 60 and changed > len(pairs) / 2
    assert not different


def runs(kg: Graph) -> list[Run]:
    """Return the run of every question, in its dialogue."""
    asked, embeddings = questions(FILMS.with_name("films.questions.jsonl")), Embeddings("lexical")
    return [run for turns in conversations(asked) for run in held(kg, turns, embeddings)]


def without(triple: Triple) -> Graph:
    """Return the graph without a triple."""
    assert triple in GRAPH
    GRAPH.remove(triple)
    try:
        return open_kg(GRAPH)
    finally:
        GRAPH.add(triple)
