"""Queries: a template filled with each combination, and what has no result."""

from unittest.mock import Mock

import pytest
from small import answer_of, films
from triads import (
    SCRIPT,
    TRIAD,
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
