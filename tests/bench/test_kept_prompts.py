"""Prompts that won are kept in a folder of the person's, with a history that can be gone back."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from kgwb.bench.figures import LoadedResults
from kgwb.bench.lab import HISTORY_FILE, PromptHistory, list_retries
from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.kg import sample_path
from kgwb.run.prompts import Prompts

QIR = "chatty_kg/qir"
KEPT = Path("my_prompts")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def retried(here: Path) -> Path:
    """Four questions, measured, and asked again with a changed prompt. Returns the retry."""
    write_prompt(here / "mine", "Take care.")
    file = str(sample_path("films").with_suffix(".questions.jsonl"))
    bench = ["bench", "--kg", "films", "--questions", file, "--out", "r", "--limit", "4"]
    assert main([*bench, "--save-runs"]) == 0
    assert main(["retry", "r", "--prompts", "mine", "--only", "all"]) == 0
    [folder] = [path for path in Path("r/retries").iterdir() if path.is_dir()]
    return folder


def test_a_history_without_a_change_says_so_where_it_is_shown(here: Path) -> None:
    text = re.sub("<.*?>", "", PromptHistory(KEPT)._repr_html_())
    assert "Nothing was kept in my_prompts yet." in text


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
    assert main(["keep", "my_prompts", "--results", str(retried), "--note", "more care"]) == 0
    assert (KEPT / f"{QIR}.md").read_text() == Path("mine", f"{QIR}.md").read_text()
    [change] = PromptHistory(KEPT).changes
    assert (change.note, change.models, list(change.after)) == ("more care", {"": "rules"}, [QIR])
    assert change.before == {QIR: None}
    assert "0 fixed, 0 broken" in change.effect and "F1" in change.effect
    capsys.readouterr()
    assert main(["keep", "my_prompts"]) == 0
    assert "more care" in capsys.readouterr().out
    assert main(["retry", "r", "--prompts", "my_prompts", "--only", "all"]) == 0
    fingerprints = {
        read_results(folder)[0]["prompts"][QIR]
        for folder in Path("r/retries").iterdir()
        if folder.is_dir()
    }
    assert len(fingerprints) == 1


def test_the_history_has_the_questions_that_were_fixed_and_broken(retried: Path) -> None:
    set_right(Path("r"), False, False, True, True)
    set_right(retried, True, True, False, True)
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    line = json.loads((KEPT / HISTORY_FILE).read_text(encoding="utf-8"))
    first, second, third, _ = (row["id"] for row in read_results(retried)[1])
    assert (line["fixed"], line["broken"]) == ([first, second], [third])
    [change] = PromptHistory(KEPT).changes
    assert f"fixed {first}, {second}" in change.effect and f"broken {third}" in change.effect


def retry_with(words: str, *more: str) -> Path:
    """Ask again with a changed prompt, and return the folder of the retry."""
    known = set(Path("r/retries").iterdir())
    write_prompt(Path(words), words)
    assert main(["retry", "r", "--prompts", words, *more]) == 0
    [folder] = [path for path in Path("r/retries").iterdir() if path.is_dir() and path not in known]
    return folder


def set_right(folder: Path, *right: bool) -> None:
    """Write which questions came out right."""
    path = folder / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row, is_right in zip(rows, right, strict=True):
        row["answers"] = row["gold"] if is_right else []
        row["f1"] = row["precision"] = row["recall"] = float(is_right)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_verdict_belongs_to_its_sample_and_the_widest_is_kept(
    retried: Path, capsys: Capture
) -> None:
    again = ["retry", "r", "--prompts", "mine", "--only"]
    for chosen in ("type=list", "lost"):
        if chosen == "lost":
            set_right(Path("r"), False, True, True, True)
        capsys.readouterr()
        assert main([*again, chosen]) == 0
        shown = capsys.readouterr().out
        assert "from 4 questions" not in shown
        asked = [line for line in shown.splitlines() if line.startswith(f"{retried.name}: ")]
        assert [line for line in asked if ": 1 question: " in line]
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    assert "from 4 questions" in PromptHistory(KEPT).changes[-1].effect
    narrow = retry_with("Narrow.", "--only", "type=list")
    assert main(["keep", "my_prompts", "--results", str(narrow)]) == 0
    change = PromptHistory(KEPT).changes[-1]
    for effect in (change.effect, change.effect_on_kept):
        assert effect.endswith("from 1 question (--only type=list)")


def test_a_second_change_is_compared_with_what_is_kept_now(retried: Path, capsys: Capture) -> None:
    second = retry_with("Second.", "--only", "all")
    third = retry_with("Third.", "--only", "all")
    set_right(Path("r"), False, False, False, True)
    set_right(retried, False, True, True, True)
    set_right(second, True, True, True, False)
    set_right(third, False, False, False, False)

    def keep(folder: Path) -> tuple[str, str]:
        assert main(["keep", "my_prompts", "--results", str(folder)]) == 0
        change = PromptHistory(KEPT).changes[-1]
        return change.effect.partition(", 0")[0], change.effect_on_kept.partition(";")[0]

    def counts(fixed: int, broken: int) -> str:
        return f"{fixed} fixed, {broken} broken"

    assert keep(retried)[1] == ""
    effect, on_kept = keep(second)
    assert effect.startswith(counts(3, 1)) and on_kept.startswith(counts(1, 1))
    change = PromptHistory(KEPT).changes[-1]  # it was chosen among three that were asked
    assert all("as one of 3 by" in said for said in (change.effect, change.effect_on_kept))
    capsys.readouterr()
    assert main(["keep", "my_prompts"]) == 0
    assert capsys.readouterr().out.count("F1") == 3
    for _ in range(3):
        assert main(["keep", "my_prompts", "--undo"]) == 0
    assert PromptHistory(KEPT).kept_results == str(retried)
    capsys.readouterr()
    assert keep(third)[1].startswith(counts(0, 3))
    assert capsys.readouterr().err.count("worse than") == 2  # the first, and what was kept


def test_what_was_kept_twice_is_refused_and_a_retry_says_how_to_keep(
    retried: Path, capsys: Capture
) -> None:
    assert main(["retry", "r", "--prompts", "mine", "--only", "all"]) == 0
    assert f"kgwb keep my_prompts --results {retried}" in capsys.readouterr().err
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 2
    assert "already" in capsys.readouterr().err
    assert len(PromptHistory(KEPT).changes) == 1


def test_the_latest_change_is_undone_and_so_is_the_undo(retried: Path) -> None:
    kept = KEPT / f"{QIR}.md"
    assert main(["keep", "my_prompts", "--undo"]) == 2
    write_prompt(KEPT, "Earlier.")
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    texts = [kept.read_text()]
    for _ in range(2):
        assert main(["keep", "my_prompts", "--undo"]) == 0
        texts.append(kept.read_text())
    assert ["Earlier." in text for text in texts] == [False, True, False]
    assert len(PromptHistory(KEPT).changes) == 3
    assert main(["keep", "my_prompts", "--results", str(retried), "--undo"]) == 2


def test_what_was_edited_by_hand_is_not_lost(retried: Path, capsys: Capture) -> None:
    path = KEPT / f"{QIR}.md"
    for number, words in enumerate(("Before the first.", "After the first."), 1):
        by_hand = write_prompt(KEPT, words)
        if number > 1:
            with pytest.raises(InputError, match="edited"):
                PromptHistory(KEPT).undo()
        assert path.read_text() == by_hand
        capsys.readouterr()
        assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
        copy = path.with_name(f"qir.md.{number}")
        assert copy.read_text() == by_hand and str(copy) in capsys.readouterr().out
        change = PromptHistory(KEPT).changes[-1]
        assert (change.before, change.copies) == ({QIR: by_hand}, (str(copy),))
    assert main(["keep", "my_prompts", "--undo"]) == 0
    assert path.read_text() == by_hand
    assert main(["keep", "my_prompts"]) == 0
    assert str(copy) in capsys.readouterr().out


def test_an_edit_of_the_kept_prompts_is_measured_and_kept(retried: Path, capsys: Capture) -> None:
    """The files have the prompts already: the history gets what they did."""
    set_right(Path("r"), False, True, True, True)
    set_right(retried, True, True, True, True)
    shutil.copytree("mine", KEPT)
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    capsys.readouterr()
    by_hand = write_prompt(KEPT, "Better still.")
    again = ["retry", "r", "--prompts", "my_prompts", "--only", "all"]
    assert main([*again, "--base", "my_prompts"]) == 0
    shown, said = capsys.readouterr()
    [command] = [line for line in said.splitlines() if "kgwb keep my_prompts" in line]
    assert f"\n{retried.name}: 4 questions: 4 right" in shown and "\nr: " not in shown
    keep = shlex.split(command.partition("kgwb ")[2])
    set_right(Path(keep[-1]), False, True, True, True)
    assert main(keep) == 0
    assert capsys.readouterr().err.count("worse than") == 1  # what was kept, and not the first
    changes = PromptHistory(KEPT).changes
    assert [list(change.after.values()) for change in changes][1:] == [[by_hand]]
    assert changes[1].before == changes[0].after and not changes[1].copies
    assert main(["keep", "my_prompts", "--undo"]) == 0
    assert (KEPT / f"{QIR}.md").read_text() == Path("mine", f"{QIR}.md").read_text()
    for wrong in (["--base", "mine"], ["--base", "my_prompts", "--repeats", "2"]):
        assert main([*again, *wrong]) == 2


def test_a_history_from_elsewhere_cannot_write_outside_of_its_folder(here: Path) -> None:
    line = {"date": "", "before": {"../evil": "x"}, "after": {"../evil": None}}
    KEPT.mkdir()
    (KEPT / HISTORY_FILE).write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="line 1") as caught:
        PromptHistory(KEPT)
    assert caught.value.message.count("../evil") == 1
    (KEPT / HISTORY_FILE).write_text("nonsense\n")
    with pytest.raises(InputError, match="line 1"):
        PromptHistory(KEPT)


def test_two_states_of_the_prompts_are_compared_and_0_is_kgwb_s_own(
    retried: Path, capsys: Capture
) -> None:
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    second = retry_with("Second.", "--only", "all")
    assert main(["keep", "my_prompts", "--results", str(second)]) == 0
    for pair, changed in (
        ("0,1", ["+Take care."]),
        ("1,2", ["-Take care.", "+Second."]),
        ("2,0", ["-Second."]),
        ("1,1", []),
    ):
        capsys.readouterr()
        assert main(["keep", "my_prompts", "--compare", pair]) == 0
        lines = capsys.readouterr().out.splitlines()
        shown = [line for line in lines if line[:1] in "+-" and line.endswith(".")]
        assert shown == changed
    for wrong in ("0,3", "-1,0", "1", "a,b"):
        assert main(["keep", "my_prompts", f"--compare={wrong}"]) == 2


def test_the_notes_on_a_retry_are_all_kept_and_its_calls_are_said(
    retried: Path, capsys: Capture
) -> None:
    for note in ("first thought", "second thought", "first thought"):
        capsys.readouterr()
        again = ["retry", "r", "--prompts", "mine", "--only", "all"]
        assert main([*again, "--note", note]) == 0
        assert "0 model calls made" in capsys.readouterr().out
    [retry] = list_retries(LoadedResults.read(Path("r")))
    assert retry.note.splitlines() == ["first thought", "second thought"]
    assert "first thought; second thought" in str(retry)


def test_a_model_at_an_address_is_named_by_its_option(retried: Path, capsys: Capture) -> None:
    path = Path("r/config.json")
    config = json.loads(path.read_text())
    for agent, option in (("qir", "--agent-model qir="), ("", "--model ")):
        models = {"": "rules", agent: "openai:m@http://h.example/v1"}
        path.write_text(json.dumps({**config, "models": models}))
        capsys.readouterr()
        again = ["retry", "r", "--prompts", "mine", "--only", "all"]
        assert main(again) == 2
        assert f"{option}openai:m@http://h.example/v1" in capsys.readouterr().err
        assert main([*again, *f"{option}rules".split()]) == 0
