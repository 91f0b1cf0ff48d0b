"""The answer that a model writes from the sources: citations, kinds, and all rows of a source."""

from __future__ import annotations

from pathlib import Path

import pytest
from page import record_html
from ragonite import answered
from tables import read_table

from kgwb.errors import OverrideError
from kgwb.records import to_data
from kgwb.systems.ragonite.records import CitedAnswer, Source


@pytest.mark.parametrize(
    ("text", "numbers"), read_table(Path(__file__).with_name("cited_sources.jsonl"))
)
def test_a_source_that_the_text_cites_is_shown_as_cited(text: str, numbers: list[int]) -> None:
    source = Source("passages", "t", "x")
    answer = CitedAnswer(text, "list", (), (source,) * 5)
    assert answer.cited_numbers == set(numbers)
    drawn = record_html(answer, of_system="ragonite")
    assert drawn.count("not cited") == 5 - len(set(numbers) & set(range(1, 6)))


def test_an_answer_by_hand_cites_sources_that_are_there() -> None:
    run, _ = answered()
    wrong = {**to_data(run.output("answerer")), "values": [{"value": "x", "sources": [9]}]}
    with pytest.raises(OverrideError, match="source 9"):
        run.override("answerer", wrong)
