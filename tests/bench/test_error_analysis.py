"""Error analysis: a seeded sample, the categories of several people, and how far they agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import FILM, measure, once, write_lines

from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    WRONG_GOLD,
    ErrorAnalysis,
    add_coding,
    draw_sample,
    read_codings,
)
from kgwb.bench.statistics import compute_kappa
from kgwb.cli import main
from kgwb.errors import InputError

RESULTS = Path("r")
Capture = pytest.CaptureFixture[str]


def measure_losses() -> None:
    """Measure ten questions with gold that no system gives, and two that are right.

    The ladder blames ``qir`` for six of the lost ones, and ``linking`` for two.
    """
    lost = [{"answers": [f"{FILM}Nobody{number}"]} for number in range(10)]
    measure(*lost, {}, {})
    losses = []
    for number in range(1, 9):
        agent = "qir" if number <= 6 else "entity_linking"
        loss = {"id": f"{number}", "f1": 0.0, "error": None, "agent": agent, "why": ""}
        losses.append({**loss, "stage": None})
    write_lines(RESULTS / "ladder.jsonl", losses)


working_folder = once(measure_losses)


@pytest.fixture
def measured(working_folder: Path) -> LoadedResults:
    return LoadedResults.read(RESULTS)


def test_kappa_needs_two_categories() -> None:
    assert compute_kappa([]) is compute_kappa([("a", "a")] * 2) is None


def test_a_sample_has_the_shares_of_the_agents_and_the_same_seed_draws_it_again(
    measured: LoadedResults,
) -> None:
    sample = draw_sample(measured, 5, seed=7)
    blamed = [measured.losses_by_id.get(id_, {}).get("agent") for id_ in sample.ids]
    assert (blamed.count("qir"), blamed.count("entity_linking"), blamed.count(None)) == (3, 1, 1)
    assert sample.lost_count == 10
    with pytest.raises(InputError, match="no sample was drawn"):
        draw_sample(measured, 5, seed=8)
    for size, seed, is_same in ((5, 7, True), (5, 8, False), (99, 0, False)):
        (RESULTS / "errors.json").unlink()
        again = draw_sample(measured, size, seed=seed)
        assert (again == sample, len(again.ids)) == (is_same, min(size, 10))


def test_a_sample_that_makes_no_sense_is_refused_and_nothing_is_written(
    measured: LoadedResults,
) -> None:
    right = measured.with_rows([measured.rows["11"]])
    for results, options in (
        (right, {}),
        (measured, {"size": 0}),
        (measured, {"stratified_by": "moon"}),
        (measured, {"categories": ["a", "a"]}),
        (measured, {"categories": [" "]}),
    ):
        with pytest.raises(InputError):
            draw_sample(results, **options)
    assert not (RESULTS / "errors.json").exists()


def test_two_people_code_and_the_tables_say_what_and_how_far_they_agree(
    measured: LoadedResults, capsys: Capture
) -> None:
    sample = draw_sample(measured, 10, categories=["wording", "linking"])
    assert sample.categories == ("wording", "linking", WRONG_GOLD)
    for place, id_ in enumerate(sample.ids):
        add_coding(measured, sample, "ann", id_, "wording" if place < 5 else WRONG_GOLD)
        add_coding(measured, sample, "b/ob", id_, "wording" if place < 4 else WRONG_GOLD, "odd")
    analysis = ErrorAnalysis.read(measured)
    categories = analysis.make_category_table()
    assert list(categories.headers) == ["category", "ann", "b/ob", "example"]
    assert [row[0] for row in categories.rows] == ["wording", WRONG_GOLD]
    assert str(categories.rows[0][1]).startswith("5 of 10")
    [agreement] = analysis.make_agreement_table().rows
    # Observed 0.9; by chance 0.5 * 0.4 + 0.5 * 0.6 = 0.5: (0.9 - 0.5) / (1 - 0.5) = 0.8.
    assert agreement[:2] == ("ann, b/ob", "9 of 10")
    assert str(agreement[2]).startswith("0.80 [")
    [disagreement] = analysis.make_disagreement_table().rows
    assert disagreement[1:] == ("wording", f"{WRONG_GOLD}: odd")
    everything, without = analysis.make_gold_table().rows
    assert (everything[1], without[1]) == (12, 7)
    assert main(["errors", "r"]) == 0
    assert "0.80 [" in capsys.readouterr().out
    assert main(["report", "r", "--to", "latex", "--table", "errors"]) == 0
    table = capsys.readouterr().out
    assert "0.80 [" in table and "wording & 5 of 10" in table


def test_a_coding_counts_while_its_answer_and_gold_stay_and_the_last_one_of_a_question(
    measured: LoadedResults,
) -> None:
    sample = draw_sample(measured, 10)
    id_ = sample.ids[0]
    add_coding(measured, sample, "ann", id_, WRONG_GOLD)
    add_coding(measured, sample, "ann", id_, "qir")
    assert read_codings(measured, sample, "ann")[id_].category == "qir"
    row = {**measured.rows[id_], "answers": []}
    changed = measured.with_rows([*measured.rows.values(), row])
    assert read_codings(changed, sample, "ann") == {}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"id": "1"}',
        '{"id": "1", "category": "unknown", "question": "", "answers": [], "gold": []}',
    ],
)
def test_a_line_that_is_no_coding_is_named_and_nothing_is_lost(
    measured: LoadedResults, line: str
) -> None:
    sample = draw_sample(measured, 10)
    add_coding(measured, sample, "ann", sample.ids[0], "qir")
    path = RESULTS / "errors.ann.jsonl"
    path.write_text(path.read_text() + line)  # without a line end, as an editor leaves it
    with pytest.raises(InputError, match="line 2"):
        read_codings(measured, sample, "ann")
    assert line in path.read_text()


def test_bad_input_of_a_coder_is_refused(measured: LoadedResults) -> None:
    sample = draw_sample(measured, 10)
    for coder, id_, category in (
        (" ", sample.ids[0], "qir"),
        ("ann", "12", "qir"),
        ("ann", sample.ids[0], "moon"),
    ):
        with pytest.raises(InputError):
            add_coding(measured, sample, coder, id_, category)
    with pytest.raises(InputError, match="error analysis"):
        (RESULTS / "errors.json").unlink()
        ErrorAnalysis.read(measured)


def test_the_command_draws_a_sample_with_categories_of_ones_own(
    measured: LoadedResults, capsys: Capture
) -> None:
    assert main(["errors", "r"]) == 2
    assert main(["errors", "r", "--category", "wording"]) == 2
    command = ["errors", "r", "--sample", "4", "--by", "kind", "--category", "wording"]
    assert main(command) == 0
    assert "4 of 10 lost questions, by kind, seed 0" in capsys.readouterr().out


def test_a_category_is_listed_also_if_its_example_is_an_empty_question(
    measured: LoadedResults,
) -> None:
    measured.rows["1"]["question"] = ""
    sample = draw_sample(measured, 10, categories=["wording"])
    add_coding(measured, sample, "ann", "1", "wording")
    [row] = ErrorAnalysis.read(measured).make_category_table().rows
    assert row[0] == "wording"
