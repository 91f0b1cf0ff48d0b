"""The machine: states in turns, the limit of turns, and what a person puts in."""

from __future__ import annotations

from typing import Any

import pytest
from machine import (
    DIRECTED,
    FETCHED,
    STARRING,
    answered,
    robodata,
    script,
)
from page import pictures
from small import answer_of, iri

from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.show.comparison import to_html
from kgwb.show.subgraph import build_subgraph


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
