"""What a table of a report shows where many of its measures are the same."""

from __future__ import annotations

import re

from kgwb.bench.figures import ReportTable

HEADERS = ("", "questions", "F1", "precision", "recall")
ROWS = (("all", 20, "0.8 [0.6, 0.9]", "0.8", "0.7"), ("list", 10, "0.5 [0.2, 0.9]", "0.5", "0.6"))


def shown_headers(table: ReportTable) -> list[str]:
    """The headers of the table that is seen at once."""
    return re.findall(r"<th>(.*?)</th>", table.render().partition("<details")[0])


def test_a_measure_with_the_numbers_of_another_is_folded_and_named() -> None:
    table = ReportTable(HEADERS, ROWS, folds_equal_columns=True)
    assert shown_headers(table) == ["", "questions", "F1", "recall"]
    folded = table.render().partition("<details")[2]
    assert "precision" in folded.partition("<table")[0]
    assert re.findall(r"<th>(.*?)</th>", folded) == list(HEADERS)


def test_where_all_measures_differ_nothing_is_folded() -> None:
    rows = (("all", 20, "0.8 [0.6, 0.9]", "0.9", "0.7"),)
    assert "<details" not in ReportTable(HEADERS, rows, folds_equal_columns=True).render()
