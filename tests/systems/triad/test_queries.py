"""Queries: a template filled with each combination, and what has no result."""

from unittest.mock import Mock

import pytest
from small import answer_of, films
from triads import (
    NUMBERS,
    SCRIPT,
    TRIAD,
    on_twins,
    triad,
)

from kgwb.errors import GraphTimeoutError
from kgwb.llm import Scripted

TOO_SLOW = Mock(side_effect=GraphTimeoutError("too slow"))


def test_a_query_that_takes_too_long_has_no_result_but_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg, settings=TRIAD.settings(tries=1)).go(until="template")
    monkeypatch.setattr(kg, "select", TOO_SLOW)
    monkeypatch.setattr(kg, "ask", TOO_SLOW)
    run.go()
    [empty, _] = run.output("queries[try 1/parsing]").empty
    assert empty.reads in answer_of(run).reason
    [note] = run["queries[try 1/parsing]"].notes
    assert "too slow" in note


def test_results_of_one_name_that_are_different_things_are_not_merged() -> None:
    run, _ = on_twins({"entities": 3, "relations": 9}, **NUMBERS)
    kept = run.output("queries[try 1/parsing]").kept
    assert [query.results for query in kept] == [("Echo",)] * 3
    assert len({query.query.sparql for query in kept}) == 3
