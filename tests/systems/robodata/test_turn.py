"""The machine: states in turns, the limit of turns, and what a person puts in."""

from __future__ import annotations

from typing import Any

import pytest
from machine import (
    ANSWER,
    CALLS,
    DIRECTED,
    FETCHED,
    STARRING,
    answered,
    goes,
    judges,
    robodata,
    script,
    search,
)
from page import pictures
from small import answer_of, asked, iri, keys

from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.show.notebook import to_html
from kgwb.show.subgraph import build_subgraph


def test_the_states_are_visited_and_the_answer_has_its_support() -> None:
    run, model = answered()
    answer = answer_of(run)
    assert (answer.labels, answer.support) == ((ANSWER,), (DIRECTED, STARRING))
    assert answer.text == f"{run.output('produce').sentences[0].text} (1)"
    assert asked(model) == CALLS
    position = run.output("turn[turn 6]")
    assert position.state == "PRODUCE"
    assert [visit.state for visit in position.visits] == [
        *("EVAL_LOCAL", "REMOTE", "REMOTE", "EVAL_REMOTE", "UPDATE", "EVAL_LOCAL")
    ]
    assert position.statistics == "6 turns, 4 tool calls, 3 nodes, 2 edges"
    first_steps = """
        turn[turn 1], eval_local[turn 1], turn[turn 2], remote[turn 2],
        search_entities[turn 2/use 1], local_graph[turn 2]
    """
    assert keys(run)[:6] == [key.strip() for key in first_steps.split(",")]


def test_a_run_that_never_produces_ends_at_its_limit() -> None:
    loop = {"eval_local": judges("REMOTE"), "remote": goes("EVAL_REMOTE", search())}
    run, model = answered(**loop, settings={"turn_limit": 8})
    assert (model.call_count(), answer_of(run).labels) == (8 - 2 + 1, (ANSWER,))
    assert "limit of 8" in answer_of(run).text


def test_nothing_is_produced_from_an_empty_local_graph() -> None:
    remote = goes("REMOTE", search("nobody"))
    run, model = answered(remote=remote, settings={"turn_limit": 4})
    assert not run.answer
    assert not answer_of(run).reason.startswith(NOT_IN_GRAPH)
    assert "limit of 4" in answer_of(run).reason
    assert asked(model) == {"remote": 2}


def test_an_override_of_a_result_changes_the_local_graph() -> None:
    run = robodata(Scripted(script())).go()
    key = "fetch_relationship_from_node[turn 5/use 2]"
    run.override(key, {"effect": "added", "use": "nothing"}).go()
    assert STARRING not in run.output("local_graph[turn 5]").support
    assert answer_of(run).support == (DIRECTED,)


def uri(term: str) -> dict[str, str]:
    return {"type": "uri", "value": str(term)}


UNKNOWN_SUPPORT = [uri(iri("dune")), str(iri("director")), uri(iri("lynch"))]


@pytest.mark.parametrize(
    ("key", "output", "problem"),
    [
        ("eval_remote", {"thought": "", "next": "PRODUCE"}, "EVAL_REMOTE .* PRODUCE"),
        (
            "remote[turn 2]",
            {"thought": "", "next": "REMOTE", "actions": [FETCHED["actions"][0]]},
            "tool",
        ),
        (
            "produce",
            {"sentences": [{"text": "x", "support": [UNKNOWN_SUPPORT]}], "kind": "things"},
            "local graph",
        ),
    ],
)
def test_an_override_must_be_possible(key: str, output: Any, problem: str) -> None:
    run, _ = answered()
    with pytest.raises(OverrideError, match=problem):
        run.override(key, output)


def test_an_override_of_a_decision_changes_the_next_state() -> None:
    run, model = answered()
    run.override(
        "remote[turn 2]", {"thought": "", "next": "EVAL_REMOTE", "actions": [search("Arrival")]}
    )
    run.go(until="turn[turn 2]")
    assert run.output("turn[turn 2]").state == "EVAL_REMOTE"
    assert model.call_count() == sum(CALLS.values())


def test_the_subgraph_shows_the_local_graph_while_it_grows() -> None:
    run = robodata(Scripted(script()))
    sizes = []
    for turn in (4, 5):
        run.go(until=f"turn[turn {turn}]")
        shown = build_subgraph(run)
        sizes.append((len(shown.nodes), len(shown.edges)))
    assert sizes == [(0, 0), (3, 2)]
    step = run["turn[turn 5]"]
    page = to_html(step)
    for text in ("EVAL_REMOTE", "PRODUCE", "✓"):
        assert text in pictures(page)
    assert step.output.statistics in page
    assert "2 rows" in to_html(run["search_entities"])
