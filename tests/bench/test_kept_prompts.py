"""Prompts that won are kept in a folder of the person's, with a history that can be gone back."""

import json
import re
from pathlib import Path

import pytest

from kgwb.bench.lab import HISTORY_FILE, PromptHistory
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


@pytest.mark.parametrize(("folder", "outcome"), [("r", "fixed"), (None, "broken")])
def test_the_history_has_the_questions_that_were_fixed_and_broken(
    retried: Path, folder: str | None, outcome: str
) -> None:
    path = Path(folder or retried, "results.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[1]["f1"] = rows[2]["f1"] = 0.0
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    line = json.loads((KEPT / HISTORY_FILE).read_text(encoding="utf-8"))
    ids = {"fixed": [], "broken": []} | {outcome: [rows[1]["id"], rows[2]["id"]]}
    assert {name: line[name] for name in ids} == ids
    [change] = PromptHistory(KEPT).changes
    assert f"{outcome} {rows[1]['id']}, {rows[2]['id']}" in change.effect


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


def test_what_was_edited_by_hand_is_not_lost(retried: Path) -> None:
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    by_hand = write_prompt(KEPT, "By hand.")
    with pytest.raises(InputError, match="edited"):
        PromptHistory(KEPT).undo()
    assert (KEPT / f"{QIR}.md").read_text() == by_hand
    assert main(["keep", "my_prompts", "--results", str(retried)]) == 0
    assert PromptHistory(KEPT).changes[-1].before == {QIR: by_hand}


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
