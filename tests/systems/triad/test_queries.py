"""Queries: a template filled with each combination, and what has no result."""

from unittest.mock import Mock

import pytest
from small import answer_of, films
from triads import (
    SCRIPT,
    TRIAD,
    triad,
)

from kgwb.errors import GraphError, GraphTimeoutError, QueryError
from kgwb.llm import Scripted


@pytest.mark.parametrize("error", [QueryError("refused"), GraphTimeoutError("too slow")])
def test_a_query_that_the_graph_cannot_run_has_no_result_but_a_note(
    error: GraphError, monkeypatch: pytest.MonkeyPatch
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg, settings=TRIAD.settings(tries=1)).go(until="template")
    monkeypatch.setattr(kg, "select", Mock(side_effect=error))
    monkeypatch.setattr(kg, "ask", Mock(side_effect=error))
    run.go()
    [empty, _] = run.output("queries[try 1/parsing]").empty
    assert empty.reads in answer_of(run).reason
    [note] = run["queries[try 1/parsing]"].notes
    assert error.message in note
