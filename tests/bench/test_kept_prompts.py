"""Prompts that won are kept in a folder of the person's, with a history that can be gone back."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
from commands import (
    FILMS_QUESTIONS,
    Rows,
    bench,
    change_rows,
    once,
    retries,
    retry,
    rows,
)

from kgwb.bench.figures import LoadedResults
from kgwb.bench.lab import HISTORY_FILE, PromptHistory, list_retries
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.run.prompts import Prompts

QIR = "chatty_kg/qir"
KEPT = Path("my_prompts")
Capture = pytest.CaptureFixture[str]


def measure_and_retry() -> None:
    """Measure four questions, and ask them again with a changed prompt."""
    write_prompt(Path("mine"), "Take care.")
    assert bench("--limit", "4", "--save-runs", questions=FILMS_QUESTIONS) == 0
    assert retry("--prompts", "mine", "--only", "all") == 0


working_folder = once(measure_and_retry)


@pytest.fixture
def retried(working_folder: Path) -> Path:
    """The folder of what was asked again."""
    [folder] = retries()
    return folder


def keep(*options: str | Path) -> int:
    return main(["keep", "my_prompts", *map(str, options)])


def write_prompt(folder: Path, words: str) -> str:
    text = f"{Prompts().text(QIR)}\n{words}\n"
    path = folder / f"{QIR}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return text


def test_the_winner_of_a_retry_is_kept_with_what_it_did_and_measured_again(
    retried: Path, capsys: Capture
) -> None:
    capsys.readouterr()
    assert "Nothing was kept" in PromptHistory(KEPT)._repr_html_()
    set_right(Path("r"), "--++")
    set_right(retried, "++-+")
    assert keep("--results", retried, "--note", "more care") == 0
    assert (KEPT / f"{QIR}.md").read_text() == Path("mine", f"{QIR}.md").read_text()
    [change] = PromptHistory(KEPT).changes
    assert (change.note, change.models, list(change.after)) == ("more care", {"": "rules"}, [QIR])
    assert change.before == {QIR: None}
    assert "2 fixed, 1 broken" in change.effect and "F1" in change.effect
    line = json.loads((KEPT / HISTORY_FILE).read_text(encoding="utf-8"))
    first, second, third, _ = (row["id"] for row in rows(retried))
    assert (line["fixed"], line["broken"]) == ([first, second], [third])
    assert f"fixed {first}, {second}" in change.effect and f"broken {third}" in change.effect
    capsys.readouterr()
    assert keep() == 0
    assert "more care" in capsys.readouterr().out
    assert retry("--prompts", "my_prompts", "--only", "all") == 0
    assert retries() == {retried}


def retry_with(words: str, *more: str) -> Path:
    """Ask again with a changed prompt, and return the folder of the retry."""
    known = retries()
    write_prompt(Path(words), words)
    assert retry("--prompts", words, *more) == 0
    [folder] = retries() - known
    return folder


def set_right(folder: Path, right: str) -> None:
    """Write which questions came out right, as "+", and which did not."""

    def change(rows: Rows) -> None:
        for row, sign in zip(rows, right, strict=True):
            row["answers"] = row["gold"] if sign == "+" else []
            row["f1"] = row["precision"] = row["recall"] = float(sign == "+")

    change_rows(folder, change)


def test_a_verdict_belongs_to_its_sample_and_the_widest_is_kept(
    retried: Path, capsys: Capture
) -> None:
    again = ["--prompts", "mine", "--only"]
    for chosen in ("type=list", "lost"):
        if chosen == "lost":
            set_right(Path("r"), "-+++")
        capsys.readouterr()
        assert retry(*again, chosen) == 0
        shown = capsys.readouterr().out
        assert "from 4 questions" not in shown
        asked = [line for line in shown.splitlines() if line.startswith(f"{retried.name}: ")]
        assert [line for line in asked if ": 1 question: " in line]
    assert keep("--results", retried) == 0
    assert "from 4 questions" in PromptHistory(KEPT).changes[-1].effect
    narrow = retry_with("Narrow.", "--only", "type=list")
    assert keep("--results", narrow) == 0
    change = PromptHistory(KEPT).changes[-1]
    for effect in (change.effect, change.effect_on_kept):
        assert effect.endswith("from 1 question (--only type=list)")


def test_a_second_change_is_compared_with_what_is_kept_now(retried: Path, capsys: Capture) -> None:
    second = retry_with("Second.", "--only", "all")
    third = retry_with("Third.", "--only", "all")
    set_right(Path("r"), "---+")
    set_right(retried, "-+++")
    set_right(second, "+++-")
    set_right(third, "----")

    def effects(folder: Path) -> tuple[str, str]:
        assert keep("--results", folder) == 0
        change = PromptHistory(KEPT).changes[-1]
        return change.effect.partition(", 0")[0], change.effect_on_kept.partition(";")[0]

    assert effects(retried)[1] == ""
    effect, on_kept = effects(second)
    assert effect.startswith("3 fixed, 1 broken") and on_kept.startswith("1 fixed, 1 broken")
    change = PromptHistory(KEPT).changes[-1]  # it was chosen among three that were asked
    assert all("as one of 3 by" in said for said in (change.effect, change.effect_on_kept))
    capsys.readouterr()
    assert keep() == 0
    assert capsys.readouterr().out.count("F1") == 3
    for _ in range(3):
        assert keep("--undo") == 0
    assert PromptHistory(KEPT).kept_results == str(retried)
    capsys.readouterr()
    assert effects(third)[1].startswith("0 fixed, 3 broken")
    assert capsys.readouterr().err.count("worse than") == 2  # the first, and what was kept


def test_the_latest_change_is_undone_and_so_is_the_undo(retried: Path) -> None:
    kept = KEPT / f"{QIR}.md"
    assert keep("--undo") == 2
    write_prompt(KEPT, "Earlier.")
    assert [keep("--results", retried) for _ in range(2)] == [0, 2]
    assert len(PromptHistory(KEPT).changes) == 1
    texts = [kept.read_text()]
    for _ in range(2):
        assert keep("--undo") == 0
        texts.append(kept.read_text())
    assert ["Earlier." in text for text in texts] == [False, True, False]
    assert len(PromptHistory(KEPT).changes) == 3
    assert keep("--results", retried, "--undo") == 2


def test_what_was_edited_by_hand_is_not_lost(retried: Path, capsys: Capture) -> None:
    path = KEPT / f"{QIR}.md"
    for number, words in enumerate(("Before the first.", "After the first."), 1):
        by_hand = write_prompt(KEPT, words)
        if number > 1:
            with pytest.raises(InputError, match="edited"):
                PromptHistory(KEPT).undo()
        assert path.read_text() == by_hand
        capsys.readouterr()
        assert keep("--results", retried) == 0
        copy = path.with_name(f"qir.md.{number}")
        assert copy.read_text() == by_hand and str(copy) in capsys.readouterr().out
        change = PromptHistory(KEPT).changes[-1]
        assert (change.before, change.copies) == ({QIR: by_hand}, (str(copy),))
    assert keep("--undo") == 0
    assert path.read_text() == by_hand
    assert keep() == 0
    assert str(copy) in capsys.readouterr().out


def test_an_edit_of_the_kept_prompts_is_measured_and_kept(retried: Path, capsys: Capture) -> None:
    """The files have the prompts already: the history gets what they did."""
    set_right(Path("r"), "-+++")
    set_right(retried, "++++")
    shutil.copytree("mine", KEPT)
    assert keep("--results", retried) == 0
    capsys.readouterr()
    by_hand = write_prompt(KEPT, "Better still.")
    again = ["--prompts", "my_prompts", "--only", "all"]
    assert retry(*again, "--base", "my_prompts") == 0
    shown, said = capsys.readouterr()
    [line] = [line for line in said.splitlines() if "kgwb keep my_prompts" in line]
    assert f"\n{retried.name}: 4 questions: 4 right" in shown and "\nr: " not in shown
    command = shlex.split(line.partition("kgwb ")[2])
    set_right(Path(command[-1]), "-+++")
    assert main(command) == 0
    assert capsys.readouterr().err.count("worse than") == 1  # what was kept, and not the first
    changes = PromptHistory(KEPT).changes
    assert [list(change.after.values()) for change in changes][1:] == [[by_hand]]
    assert changes[1].before == changes[0].after and not changes[1].copies
    assert keep("--undo") == 0
    assert (KEPT / f"{QIR}.md").read_text() == Path("mine", f"{QIR}.md").read_text()
    for wrong in (["--base", "mine"], ["--base", "my_prompts", "--repeats", "2"]):
        assert retry(*again, *wrong) == 2


def test_a_history_from_elsewhere_cannot_write_outside_of_its_folder(here: Path) -> None:
    KEPT.mkdir()
    line = json.dumps({"date": "", "before": {"../evil": "x"}, "after": {"../evil": None}})
    for text in (line, "nonsense"):
        (KEPT / HISTORY_FILE).write_text(f"{text}\n")
        with pytest.raises(InputError, match="line 1"):
            PromptHistory(KEPT)


def test_two_states_of_the_prompts_are_compared_and_0_is_kgwb_s_own(
    retried: Path, capsys: Capture
) -> None:
    assert keep("--results", retried) == 0
    second = retry_with("Second.", "--only", "all")
    assert keep("--results", second) == 0
    for pair, changed in (
        ("0,1", ["+Take care."]),
        ("1,2", ["-Take care.", "+Second."]),
        ("2,0", ["-Second."]),
        ("1,1", []),
    ):
        capsys.readouterr()
        assert keep("--compare", pair) == 0
        lines = capsys.readouterr().out.splitlines()
        shown = [line for line in lines if line[:1] in "+-" and line.endswith(".")]
        assert shown == changed
    for wrong in ("0,3", "-1,0", "1", "a,b"):
        assert keep(f"--compare={wrong}") == 2


def test_the_notes_on_a_retry_are_all_kept_and_its_calls_are_said(
    retried: Path, capsys: Capture
) -> None:
    for note in ("first thought", "second thought", "first thought"):
        capsys.readouterr()
        assert retry("--prompts", "mine", "--only", "all", "--note", note) == 0
        assert "0 model calls made" in capsys.readouterr().out
    [listed] = list_retries(LoadedResults.read(Path("r")))
    assert listed.note.splitlines() == ["first thought", "second thought"]
    assert "first thought; second thought" in str(listed)


def test_a_model_at_an_address_is_named_by_its_option(retried: Path, capsys: Capture) -> None:
    path = Path("r/config.json")
    config = json.loads(path.read_text())
    for agent, option in (("qir", "--agent-model qir="), ("", "--model ")):
        models = {"": "rules", agent: "openai:m@http://h.example/v1"}
        path.write_text(json.dumps({**config, "models": models}))
        capsys.readouterr()
        again = ["--prompts", "mine", "--only", "all"]
        assert retry(*again) == 2
        assert f"{option}openai:m@http://h.example/v1" in capsys.readouterr().err
        assert retry(*again, *f"{option}rules".split()) == 0
