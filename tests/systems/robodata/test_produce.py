"""The answer that a model writes from the local graph: sentences, support sets, nodes."""

from __future__ import annotations

from typing import Any

from machine import (
    IDS,
    KG,
    LOCAL,
    TRIPLES,
    answered,
    as_written,
    produce,
    script,
)
from rdflib import Literal
from small import answer_of

from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.terms import value_of_term


def produced_with(*answers: str, support: Any = ()) -> Run:
    """A run that has the whole graph as its local graph, and produces these answers."""
    run, _ = answered(KG, produce=produce())
    run.override("local_graph[turn 5]", LOCAL)
    replies = script(produce=produce(*support, answers=answers))
    return run.fork(models=Scripted(replies)).go()


def test_answers_and_support_are_the_terms_whose_ids_are_given() -> None:
    ids = [as_written(id_) for id_ in IDS]
    support = [[as_written(id_) for id_ in line.split(" | ")] for line in TRIPLES]
    run = produced_with(*ids, support=support)
    produced = run.output("produce")
    assert set(produced.answers) == set(LOCAL.nodes)
    assert produced.sentences[0].support == LOCAL.support
    assert produced.sentences[0].failed == ()
    assert len(answer_of(run).values) == len(set(map(value_of_term, LOCAL.nodes)))


def test_a_text_that_several_nodes_have_means_all_of_them_and_is_noted() -> None:
    run = produced_with("Same")
    assert set(run.output("produce").answers) == {Literal("Same", lang=tag) for tag in ("en", "de")}
    [note] = run["produce"].notes
    assert "Same" in note
