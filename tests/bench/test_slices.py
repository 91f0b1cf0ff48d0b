"""Questions chosen by their tags and fields, and the test part of a set, by which nothing is chosen."""

import json
from pathlib import Path

import pytest

from kgwb.bench.figures import LoadedResults
from kgwb.bench.lab import MAX_TEST_LOOKS
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import read_results
from kgwb.cli import main

FILM = "https://kgwb.example/films/"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bench(here: Path) -> list[str]:
    """The command that measures four questions of each part; every second one is lost."""
    lines = []
    for part, name in (("dev", "dev"), ("test", "held")):
        for number in range(4):
            gold = "Dune" if number % 2 else "Denis_Villeneuve"
            line = {"id": f"{name}-{number}", "question": "Who directed Arrival?", "split": part}
            tags = ["short", "film"] if number < 3 else "film"
            lines.append(
                json.dumps({**line, "answers": [FILM + gold], "tags": tags, "hops": number})
            )
    Path("q.jsonl").write_text("\n".join(lines))
    return "bench --kg films --questions q.jsonl --out r".split()


def ids_in(folder: Path | str) -> list[str]:
    return [row["id"] for row in read_results(folder)[1]]


def retries(folder: str = "r") -> set[Path]:
    return {path.parent for path in Path(folder).glob("retries/*/results.jsonl")}


@pytest.mark.parametrize(
    ("slices", "ids"),
    [
        (["tag=short"], ["dev-0", "dev-1", "dev-2", "held-0", "held-1", "held-2"]),
        (["tag=short", "split=dev"], ["dev-0", "dev-1", "dev-2"]),
        (["tag=film", "hops=3"], ["dev-3", "held-3"]),
        (["tag=shor"], []),
        (["tag=short", "hops=3"], []),
    ],
)
def test_a_slice_is_measured(
    slices: list[str], ids: list[str], bench: list[str], capsys: Capture
) -> None:
    chosen = [argument for text in slices for argument in ("--slice", text)]
    assert main([*bench, *chosen]) == (0 if ids else 2)
    if ids:
        assert ids_in("r") == ids
    else:
        assert "tag=short" in capsys.readouterr().err


def test_figures_are_given_by_tag_and_by_part(bench: list[str]) -> None:
    assert main(bench) == 0
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
    lines = []
    for turn, question in enumerate(("Who directed Arrival?", "When was he born?"), 1):
        line = {"id": f"{turn}", "question": question, "answers": ["x"], "dialogue": "d"}
        lines.append(json.dumps({**line, "turn": turn, "tags": [f"turn {turn}"]}))
    lines.append(json.dumps({"id": "alone", "question": "Who directed Dune?", "answers": ["x"]}))
    Path("q.jsonl").write_text("\n".join(lines))
    bench = "bench --kg films --questions q.jsonl --out r --slice".split()
    assert main([*bench, "tag=turn 2"]) == 0
    assert ids_in("r") == ["1", "2"]


def test_what_is_lost_of_the_test_part_is_not_shown(bench: list[str], capsys: Capture) -> None:
    assert main([*bench, "--save-runs"]) == 0
    printed = capsys.readouterr().out
    assert main(["retry", "r", "--slice", "split=test", "--only", "all", "--set", "theta=5"]) == 0
    [folder] = retries()
    assert ids_in(folder) == [f"held-{number}" for number in range(4)]
    assert main(["report", "r", str(folder), "--out", "page.html"]) == 0
    page = Path("page.html").read_text()
    again = capsys.readouterr().out
    assert "held-" not in printed + again and "(--only all --slice split=test)" in again
    assert main(["retry", "r", "--slice", "tag=short", "--set", "theta=5"]) == 0
    assert "(--slice tag=short)" in capsys.readouterr().out
    assert ">held-" not in page
    assert "dev-1" in printed and ">dev-1" in page


def test_nothing_is_chosen_by_the_test_part(bench: list[str], capsys: Capture) -> None:
    assert main(bench) == 0
    known: set[Path] = set()
    for number, chosen in enumerate(([], ["--only", "lost"], ["--only", "all"]), 4):
        assert main(["retry", "r", *chosen, "--set", f"theta={number}"]) == 0
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
        assert main(["retry", "r", *chosen, "--set", "theta=7"]) == 2
    assert retries() == known
    assert main([*bench[:-1], "held", "--slice", "split=test"]) == 0
    capsys.readouterr()
    assert main(["retry", "held", "--only", "all", "--set", "theta=7"]) == 2
    assert "split=test" in capsys.readouterr().err


def test_looks_at_the_test_part_are_counted_and_limited(bench: list[str], capsys: Capture) -> None:
    assert main(bench) == 0
    look = ["retry", "r", "--slice", "split=test", "--only", "all", "--set"]
    for number in range(1, MAX_TEST_LOOKS + 1):
        for _again in range(2):  # the same change is the same look
            capsys.readouterr()
            assert main([*look, f"theta={number + 3}"]) == 0
            assert f"{number} of {MAX_TEST_LOOKS} changes" in capsys.readouterr().err
    assert main([*look, f"theta={MAX_TEST_LOOKS + 4}"]) == 2
    assert main(["retry", "r", "--only", "all", "--set", f"theta={MAX_TEST_LOOKS + 4}"]) == 0


def test_a_slice_of_the_answers_is_judged_and_other_scores_stay(bench: list[str]) -> None:
    assert main(bench) == 0
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
    lines = []
    turns = ("Who directed Arrival?", "test"), ("When was he born?", "dev")
    for turn, (question, part) in enumerate(turns, 1):
        line = {"id": f"{turn}", "question": question, "answers": ["x"], "dialogue": "d"}
        lines.append(json.dumps({**line, "turn": turn, "split": part}))
    Path("q.jsonl").write_text("\n".join(lines))
    assert main("bench --kg films --questions q.jsonl --out r".split()) == 0
    for chosen, is_test in (
        (["all"], False),
        (["lost"], False),
        (["all", "--slice", "split=test"], True),
    ):
        known = retries()
        assert main(["retry", "r", "--set", "theta=5", "--only", *chosen]) == 0
        for folder in retries() - known:
            assert LoadedResults.read(folder).has_test_part == is_test
    assert len(retries()) == 2
