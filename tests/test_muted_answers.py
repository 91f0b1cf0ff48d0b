"""Muting a triple of an answer's support gives the answer of a graph that does not have the triple."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import rdflib
from test_same_answers import conversations, held, outcome, questions

from kgwb import open_kg
from kgwb.bench.metrics import normalize_value
from kgwb.kg import Graph, sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.run import Run
from kgwb.terms import Triple

FILMS = sample_path("films")
GRAPH = rdflib.Graph().parse(FILMS)


@pytest.mark.parametrize("engine", ["file", "virtuoso"])
@pytest.mark.timeout(1200)
def test_films(engine: str, request: pytest.FixtureRequest) -> None:
    source = FILMS if engine == "file" else request.getfixturevalue("virtuoso").load(FILMS)
    really = runs(open_kg(FILMS))
    muted = really if source == FILMS else runs(open_kg(source))
    pairs = [
        (run, other, triple)
        for run, other in zip(muted, really, strict=True)
        for triple in (run.answer.support if run.answer is not None else ())
    ]
    lacking = {
        triple: without(triple) for triple in dict.fromkeys(triple for _, _, triple in pairs)
    }

    def differs(pair: tuple[Run, Run, Triple]) -> str:
        run, other, triple = pair
        here, there = outcome(run.mute(triple)), outcome(other.fork(kg=lacking[triple]))
        return (
            f"{run.question} without {triple}: {here} instead of {there}" if here != there else ""
        )

    with ThreadPoolExecutor(2) as pool:
        different = list(filter(None, pool.map(differs, pairs)))
    changed = sum(
        outcome(other.fork(kg=lacking[triple])) != outcome(other) for _, other, triple in pairs
    )
    sys.stdout.write(
        f"{engine}: {len(pairs)} triples of {len(muted)} answers muted, {changed} answers change\n"
    )
    assert len(muted) == 60 and changed > len(pairs) / 2
    assert not different


def runs(kg: Graph) -> list[Run]:
    """Return the run of every question, in its dialogue."""
    asked, embeddings = questions(FILMS.with_name("films.questions.jsonl")), Embeddings("lexical")
    return [run for turns in conversations(asked) for run in held(kg, turns, embeddings)]


def without(triple: Triple) -> Graph:
    """Return the graph without a triple. An engine may write its literal differently: 1 as 1.0."""
    s, p, o = triple
    [same] = (
        t
        for t in GRAPH.triples((s, p, None))
        if t[2] == o or normalize_value(str(t[2])) == normalize_value(str(o))
    )
    GRAPH.remove(same)
    try:
        return open_kg(GRAPH)
    finally:
        GRAPH.add(same)
