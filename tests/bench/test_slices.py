"""Questions chosen by their tags and fields, and the test part of a set, by which nothing is chosen."""

import json
from pathlib import Path

import pytest
from commands import (
    DENIS,
    FILM,
    bench,
    measure,
    once,
    retries,
    retry,
    rows,
    write_questions,
)

from kgwb.bench import lab
from kgwb.bench.figures import LoadedResults
from kgwb.bench.questions import BenchQuestion
from kgwb.cli import main

Capture = pytest.CaptureFixture[str]


def measure_parts() -> None:
    """Measure four questions of each part; every second one is lost."""
    asked = []
    for part, name in (("dev", "dev"), ("test", "held")):
        for number in range(4):
            fields = {"id": f"{name}-{number}", "split": part, "hops": number}
            gold = f"{FILM}Dune" if number % 2 else DENIS
            tags = ["short", "film"] if number < 3 else "film"
            asked.append({**fields, "answers": [gold], "tags": tags})
    measure(*asked, options=["--save-runs"])


measured = once(measure_parts)


def ids_in(folder: Path | str) -> list[str]:
    return [row["id"] for row in rows(folder)]


@pytest.mark.parametrize(
    ("slices", "ids"),
    [
        (["tag=short", "split=dev"], ["dev-0", "dev-1", "dev-2"]),
        (["tag=shor"], []),
    ],
)
def test_a_slice_is_measured(
    slices: list[str], ids: list[str], measured: Path, capsys: Capture
) -> None:
    chosen = [argument for text in slices for argument in ("--slice", text)]
    assert bench(*chosen, out="part") == (0 if ids else 2)
    if ids:
        assert ids_in("part") == ids
    else:
        assert "tag=short" in capsys.readouterr().err


def test_figures_are_given_by_tag_and_by_part(measured: Path) -> None:
    groups = LoadedResults.read(Path("r")).groups
    sizes = {name: len(groups[name].rows) for name in groups if name.startswith(("tag", "split"))}
    assert sizes == {"split dev": 4, "split test": 4, "tag film": 8, "tag short": 6}
    assert groups["tag short"].mean_scores.f1 == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("tags", "read"),
    [(["a", 1], ("a", "1")), ("a", ("a",)), (None, ()), ("", ()), (2, ("2",)), ([], ())],
)
def test_tags_are_read_as_files_have_them(tags: object, read: tuple[str, ...]) -> None:
    question = {"id": "1", "question": "?", "tags": tags, "split": 1}
    assert BenchQuestion.model_validate(question).tags == read


def test_a_slice_of_a_dialogue_has_its_earlier_turns(here: Path) -> None:
    second = {"question": "When was he born?", "dialogue": "d", "turn": 2, "tags": ["later"]}
    write_questions({"dialogue": "d", "turn": 1}, second, {"question": "Who directed Dune?"})
    assert bench("--slice", "tag=later") == 0
    assert ids_in("r") == ["1", "2"]


def test_what_is_lost_of_the_test_part_is_not_shown(measured: Path, capsys: Capture) -> None:
    assert bench() == 0
    printed = capsys.readouterr().out
    assert retry("--slice", "split=test", "--only", "all", "--set", "theta=5") == 0
    [folder] = retries()
    assert ids_in(folder) == [f"held-{number}" for number in range(4)]
    assert main(["report", "r", str(folder), "--out", "page.html"]) == 0
    page = Path("page.html").read_text()
    again = capsys.readouterr().out
    assert "held-" not in printed + again and "(--only all --slice split=test)" in again
    assert retry("--slice", "tag=short", "--set", "theta=5") == 0
    assert "(--slice tag=short)" in capsys.readouterr().out
    assert ">held-" not in page
    assert "dev-1" in printed and ">dev-1" in page


def test_nothing_is_chosen_by_the_test_part(measured: Path, capsys: Capture) -> None:
    known: set[Path] = set()
    for number, chosen in enumerate(([], ["--only", "all"]), 4):
        assert retry(*chosen, "--set", f"theta={number}") == 0
        [folder] = retries() - known
        known.add(folder)
        assert {id_.partition("-")[0] for id_ in ids_in(folder)} == {"dev"}
    test_part = ["--slice", "split=test"]
    for chosen in (
        ["--only", "held-1"],
        test_part,
        [*test_part, "--only", "lost"],
        [*test_part, "--only", "all", "--only", "held-1"],
        ["--slice", "split=other"],
    ):
        assert retry(*chosen, "--set", "theta=7") == 2
    assert retries() == known
    assert bench("--slice", "split=test", out="held") == 0
    capsys.readouterr()
    assert main(["retry", "held", "--only", "all", "--set", "theta=7"]) == 2
    assert "split=test" in capsys.readouterr().err


def test_looks_at_the_test_part_are_counted_and_limited(
    measured: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "MAX_TEST_LOOKS", 2)
    look = ["--slice", "split=test", "--only", "all", "--set"]
    for theta, number in ((4, 1), (4, 1), (5, 2)):  # the same change is the same look
        capsys.readouterr()
        assert retry(*look, f"theta={theta}") == 0
        assert f"{number} of 2 changes" in capsys.readouterr().err
    assert retry(*look, "theta=6") == 2
    assert retry("--only", "all", "--set", "theta=6") == 0


def test_a_slice_of_the_answers_is_judged_and_other_scores_stay(measured: Path) -> None:
    Path("s.py").write_text("def score(row):\n    return len(row['id']) == 5\n")
    score = ["score", "r", "--scorer", "./s.py:score"]
    for chosen, judged in ((["hops=3"], 2), (["tag=short", "split=dev"], 5)):
        slices = [argument for text in chosen for argument in ("--slice", text)]
        assert main([*score, *slices]) == 0
        assert len(Path("r/scores.jsonl").read_text().splitlines()) == judged
    assert main(["rate", "r", "--who", "ann", "--slice", "hops=3"]) == 0
    forms = Path("r/ratings.ann.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in forms] == ["dev-3", "held-3"]
    for wrong in (["--slice", "hops=3"], ["--sample", "9", "--slice", "split=test"]):
        assert main(["errors", "r", *wrong]) == 2
    assert main(["errors", "r", "--sample", "9", "--slice", "tag=short"]) == 0
    sample = json.loads(Path("r/errors.json").read_text())
    assert (sample["ids"], sample["lost_count"], sample["slices"]) == (["dev-1"], 1, ["tag=short"])


def test_a_turn_of_the_test_part_that_only_comes_before_a_chosen_one_is_no_look(
    here: Path,
) -> None:
    first = {"answers": ["x"], "dialogue": "d", "turn": 1, "split": "test"}
    measure(first, {**first, "question": "When was he born?", "turn": 2, "split": "dev"})
    for chosen, is_test in ((["all"], False), (["all", "--slice", "split=test"], True)):
        known = retries()
        assert retry("--set", "theta=5", "--only", *chosen) == 0
        for folder in retries() - known:
            assert LoadedResults.read(folder).has_test_part == is_test
    assert len(retries()) == 2
