"""The answer: values, a number or a truth value, with the triples that support them."""

from unittest.mock import Mock

import pytest
from small import answer_of, films
from triads import SCRIPT, triad

from kgwb.errors import GraphTimeoutError
from kgwb.llm import Scripted

TOO_SLOW = Mock(side_effect=GraphTimeoutError("too slow"))


def test_an_answer_whose_triples_cannot_be_looked_for_has_no_support_but_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg).go(until="query_choice")
    monkeypatch.setattr(kg, "select", TOO_SLOW)
    run.go()
    assert (answer_of(run).labels, answer_of(run).support) == (("Missoula",), ())
    [note] = run["answer"].notes
    assert "too slow" in note
