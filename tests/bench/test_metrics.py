"""What counts as right, question by question and on average."""

import pytest

from kgwb.bench.metrics import EVERYTHING, NOTHING, Scores, groups, score, table


@pytest.mark.parametrize(
    ("answers", "gold", "scores"),
    [
        (["a"], ["a"], EVERYTHING),
        (["b"], ["a"], NOTHING),
        (["a", "b"], ["b", "a"], EVERYTHING),
        (["a", "b"], ["a"], Scores(0.5, 1.0, 2 / 3, 1.0)),
        (["b", "a"], ["a"], Scores(0.5, 1.0, 2 / 3, 0.0)),
        (["a"], ["a", "b"], Scores(1.0, 0.5, 2 / 3, 1.0)),
        (["a", "a"], ["a"], EVERYTHING),
        ([], [], EVERYTHING),
        (["a"], [], NOTHING),
        ([], ["a"], NOTHING),
    ],
)
def test_the_scores_of_one_question(answers: list[str], gold: list[str], scores: Scores) -> None:
    assert score(answers, gold) == scores


def test_averages_are_over_questions_also_those_that_failed() -> None:
    rows = [row(1.0, hops=1), row(0.0, hops=1, error="no reply"), row(1.0, hops=2)]
    everything, one_hop, two_hops = groups(rows)
    assert (everything.name, everything.questions, everything.errors) == ("all", 3, 1)
    assert everything.scores.f1 == pytest.approx(2 / 3)
    assert (one_hop.name, one_hop.scores.hits1) == ("hops 1", 0.5)
    assert (two_hops.name, two_hops.scores.hits1) == ("hops 2", 1.0)


def test_types_get_their_own_lines() -> None:
    assert [group.name for group in groups([row(1.0, type="count"), row(0.0)])] == ["all", "type count"]


def test_no_question_is_no_division_by_zero() -> None:
    assert groups([])[0].scores == NOTHING


def test_the_table_has_a_line_for_each_group() -> None:
    head, *lines = table(groups([row(1.0, hops=1), row(0.5, hops=2)])).splitlines()
    assert head.split() == ["questions", "precision", "recall", "F1", "Hits@1", "errors"]
    assert lines[0].split() == ["all", "2", "0.750", "0.750", "0.750", "0.750", "0"]
    assert {len(line) for line in (head, *lines)} == {len(head)}


def row(share: float, *, error: str | None = None, **given: object) -> dict[str, object]:
    return {"precision": share, "recall": share, "f1": share, "hits1": share, "error": error, **given}
