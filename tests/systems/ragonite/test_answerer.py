"""The answer that a model writes from the sources: citations, kinds, and all rows of a source."""

from __future__ import annotations

import pytest
from page import record_html
from ragonite import answered

from kgwb.errors import OverrideError
from kgwb.records import to_data
from kgwb.systems.ragonite.records import CitedAnswer, Source


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("So [1]. And so [3]", [1, 3]),
        ("So [1, 3].", [1, 3]),
        ("So [2-4][1].", [2, 3, 4, 1]),
        ("In [4-2] and [1-999]", [4, 2, 1, 999]),
        ("No number [a], [] or 7", []),
    ],
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
