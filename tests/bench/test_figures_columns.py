"""What a table of a report shows where many of its measures are the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kgwb.bench.comparisons import ResultsComparison
from kgwb.bench.figures import LoadedResults, make_question_types_table
from kgwb.show.tables import Table

HEADERS = ("", "questions", "F1", "precision", "recall")
ROWS = (("all", 20, "0.8 [0.6, 0.9]", "0.8", "0.7"), ("list", 10, "0.5 [0.2, 0.9]", "0.5", "0.6"))


def shown_headers(table: Table) -> list[str]:
    """The headers of the table that is seen at once; a column without a name has none."""
    return re.findall(r"<th>(.*?)</th>", table.render().partition("<details")[0])


def test_a_measure_with_the_numbers_of_another_is_folded_and_named() -> None:
    table = Table(HEADERS, ROWS, folds_equal_columns=True)
    assert shown_headers(table) == ["questions", "F1", "recall"]
    folded = table.render().partition("<details")[2]
    assert "precision" in folded.partition("<table")[0]
    assert re.findall(r"<th>(.*?)</th>", folded) == list(HEADERS[1:])
    rows = (("all", 20, "0.8 [0.6, 0.9]", "0.9", "0.7"),)  # where all differ
    assert "<details" not in Table(HEADERS, rows, folds_equal_columns=True).render()


def results_of(*rows: dict[str, Any]) -> LoadedResults:
    """Results in memory, with these rows."""
    shared = {"question": "q", "answers": [], "gold": [], "error": None, "f1": 0}
    by_id = {str(number): shared | row for number, row in enumerate(rows)}
    return LoadedResults("r", Path("r"), {}, by_id, {})


def test_solved_questions_and_their_size_are_told_by_type() -> None:
    results = results_of(
        {"type": "factoid", "exact": 1, "words": 4, "predicates": 1},
        {"type": "factoid", "exact": 0.0, "words": 6, "predicates": 2},
        {"type": "count", "gold": None, "words": 8},
    )
    assert list(make_question_types_table([results]).rows) == [
        ("every type", "1/2", "6.00", "1.50"),
        ("count", "0/0", "8.00", "–"),
        ("factoid", "1/2", "5.00", "1.50"),
    ]
    assert make_question_types_table([results_of({"words": 4})]).rows == []


def test_the_same_measure_has_the_same_interval_in_every_table() -> None:
    gold = [f"<urn:{number}>" for number in range(10)]
    found_counts = [number * 6 % 11 for number in range(20)]
    sides = []
    for counts in (found_counts, found_counts[::-1]):
        rows = []
        for number, count in enumerate(counts):
            answers = gold[:count]
            rows.append({"id": str(number), "gold": gold, "answers": answers, "f1": count / 10})
        sides.append(results_of(*rows))
    before, after = sides
    shown = ResultsComparison(before, after).describe_f1()
    for results in sides:
        assert str(results.groups["all"].estimate("f1")) in shown
