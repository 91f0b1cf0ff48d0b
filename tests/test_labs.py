"""The teaching labs: every check with right, wrong, empty and hostile answers; hand-ins, the class's page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from notebook_outputs import FOLDER

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.kg.text import normalize
from kgwb.labs import LabWork, recorded
from kgwb.labs.pages import collect_hand_ins, render_class_page
from kgwb.labs.tasks import LAB_MODULES, MAX_HINTS, load_lab

NUMBERS = range(1, len(LAB_MODULES) + 1)
TASKS = [(number, name) for number in NUMBERS for name in load_lab(number).tasks]
TEXT = (FOLDER.parent / "docs" / "labs_solutions.md").read_text(encoding="utf-8")
SOLUTIONS = dict(re.findall(r"^```python\n# (\d\.\d+)[^\n]*\n(.*?)^```", TEXT, re.M | re.S))
NO_ANSWERS = (None, ..., "")
"""What is no try yet: a cell as it came."""
HOSTILE: tuple[Any, ...] = (
    *NO_ANSWERS, 0, -1, 1e308, float("nan"), True, b"x", [], {}, (), [[]], [None], object(), print,
    "<script>alert(1)</script>", "\x1b[31m", "\ud800", "{" * 9_000, "[" * 9_000, "a" * 200_000, "' OR 1=1",
    "?x", [0] * 5_000, ["x" * 5_000] * 50, [("", "", "")], [("?", "?", "?")] * 3, ("a", "b", "c"),
    {1: {2: 3}}, "---\n" * 5_000, "DROP ALL; SELECT * WHERE { ?s ?p ?o }",
)  # fmt: skip


def cells(number: int) -> list[str]:
    """The code of a lab's notebook."""
    [path] = (FOLDER / "labs").glob(f"{number}_*.ipynb")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_every_task_has_a_cell_in_its_notebook_and_a_solution() -> None:
    asked = [
        name
        for number in NUMBERS
        for name in re.findall(r'lab.check\("(.*?)"', "\n".join(cells(number)))
    ]
    assert asked == [name for _, name in TASKS]
    assert set(SOLUTIONS) == {*asked}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.usefixtures("here")
def test_a_lab_run_with_its_solutions_passes_every_check(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")  # as the student's kernel
    known: dict[str, Any] = {}
    for source in cells(number):
        task = re.search(r'lab.check\("(.*?)"', source)
        solved = source.replace("answer = ...", f"{SOLUTIONS[task[1]]}#") if task else source
        exec(compile(solved, "cell", "exec"), known)  # as the notebook's kernel does
    work: LabWork = known["lab"]
    assert {name: tried.state for name, tried in work.submission.tasks.items()} == dict.fromkeys(
        work.lab.tasks, "solved"
    )
    assert f"{len(work.lab.tasks)} of {len(work.lab.tasks)} tasks solved" in repr(work)


@pytest.mark.parametrize(("number", "name"), TASKS)
def test_an_empty_wrong_or_hostile_answer_is_said_to_be_wrong(number: int, name: str) -> None:
    work = kgwb.lab(number, None)
    for answer in HOSTILE:
        remark = work.check(name, answer)
        assert remark.state == "wrong", answer
        assert remark.text and "<script" not in remark._repr_html_()
    assert work.submission.tasks[name].tries == len(HOSTILE) - len(NO_ANSWERS)


def test_before_an_answer_nothing_is_right() -> None:
    work = kgwb.lab(1, None)
    assert work.check("1.1", ...).text == "there is no answer yet"
    with pytest.raises(InputError, match=r"no task '9\.9'"):
        work.check("9.9", 1)
    with pytest.raises(InputError, match="there is no lab 7"):
        kgwb.lab(7)


@pytest.mark.parametrize(("number", "name"), TASKS)
def test_hints_come_one_by_one_and_none_gives_the_answer_away(number: int, name: str) -> None:
    work = kgwb.lab(number, None)
    task = work.lab.tasks[name]
    assert 1 <= len(task.hints) <= MAX_HINTS
    shown = [work.hint(name).text for _ in range(MAX_HINTS + 1)]
    assert [text.partition(": ")[2] for text in shown] == [*task.hints, task.hints[-1]]
    literals = [normalize(text) for text in re.findall(r'"([^"\n]{20,})"', SOLUTIONS[name])]
    assert not [text for text in literals for hint in task.hints if text in normalize(hint)]


def test_what_was_done_is_kept_and_handed_in(here: Path) -> None:
    kgwb.lab(1).check("1.1", [1])
    work = kgwb.lab(1)  # another kernel
    work.hint("1.1")
    assert work.check("1.1", [2, 4, 5]).state == "right"
    assert work.check("1.1", [1]).state == "wrong"
    handed = json.loads(work.hand_in(" Ada <b>\x1b Lovelace/.. ").read_text())
    assert handed["student"] == "Ada <b>� Lovelace/.."
    answers = ["[1]", "[2, 4, 5]", "[1]"]
    task = {"state": "solved", "tries": 3, "hints": 1, "answers": answers, "remark": ""}
    assert handed["tasks"]["1.1"] | {"remark": ""} == task
    assert [file.name for file in here.glob("lab1-*")] == ["lab1-Ada-b-Lovelace.json"]
    with pytest.raises(InputError, match="needs your name"):
        work.hand_in("  ")


def test_hand_ins_become_one_page_of_the_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, answers in {"Ada": [[2, 4, 5]], "<i>Bob": [[1], [2], [3]], "Cleo": []}.items():
        work = kgwb.lab(1, None)
        for answer in answers:
            work.check("1.1", answer)
        work.hand_in(name, tmp_path)
    hostile = {
        "bomb.json": "[" * 100_000,
        "code.json": "__import__('os').system('x')",
        "large.json": '{"kgwb_lab": 1, "student": "' + "x" * 1_100_000 + '"}',
        "wrong.json": '{"kgwb_lab": 1, "tasks": {"1.1": {"state": "<b>"}}}',
        "other.json": '{"kgwb_lab": 1, "tasks": {"8.8": {}}}',
        "lab.json": '{"kgwb_lab": 99}',
        "text.json": "\x00\xff",
    }
    (tmp_path / "lab1.json").write_text(
        '{"kgwb_lab": 1}'
    )  # what is kept beside the notebook has no name
    for file, text in hostile.items():
        (tmp_path / file).write_text(text)
    assert main(["labs", "collect", str(tmp_path), "--out", str(tmp_path / "class.html")]) == 0
    out = capsys.readouterr().out
    assert "lab 1: 4 hand-ins" in out and "1 of 4 solved, stuck: <i>Bob" in out
    assert (
        "not read: lab.json: there is no lab 99" in out and "not read: text.json: no hand-in" in out
    )
    page = (tmp_path / "class.html").read_text()
    assert "<i>Bob" not in page and "&lt;i&gt;Bob" in page
    [collected] = collect_hand_ins(tmp_path)
    assert [work.student for work in collected.hand_ins] == ["<i>Bob", "Ada", "Cleo", "lab1.json"]
    assert {*collected.rejected_files} == {*hostile}
    assert all(file in page for file in hostile)
    assert render_class_page([collected]) == page


def test_a_folder_without_hand_ins_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["labs", "collect", str(tmp_path)]) == 2
    assert "there are no hand-ins" in capsys.readouterr().err
    assert main(["labs", "grade", str(tmp_path)]) == 2
    assert "kgwb labs cannot grade" in capsys.readouterr().err


def test_a_recording_is_replayed_without_graph_and_model() -> None:
    run = kgwb.recording("lost/chatty_kg/4")
    assert run.answer is not None and not run.answer.values and run.unrecorded_graph is None
    with pytest.raises(InputError, match="there is no recording 'films/none/1'"):
        kgwb.recording("films/none/1")


def test_recordings_of_two_systems_are_compared() -> None:
    page = kgwb.compare(
        kgwb.recording("films/chatty_kg/4"), kgwb.recording("films/ragonite/4")
    ).static_html()
    assert "vertex selection" in page and "answerer" in page  # each an agent of one of them


def test_a_recorded_run_that_somebody_edits_changes_no_figure() -> None:
    row = recorded.answers_of_system("dog")[4]
    row.run.step_back(3)
    assert row.run.answer is not None and row.run.totals.model_calls == row.totals.model_calls


@pytest.mark.parametrize(
    ("places", "remark"),
    [
        ((), "without these is left: Inception, Interstellar, The Dark Knight, The Prestige"),
        ((1, 2), "without these is left: Inception, The Prestige"),
        ((0, 1, 2, 3), "without these is left: nothing"),
        ((1, 2, 3), "right"),
    ],
)
def test_what_is_left_without_triples_is_said(places: tuple[int, ...], remark: str) -> None:
    answer = kgwb.recording("films/chatty_kg/4").answer
    assert answer is not None
    work = kgwb.lab(3, None)
    assert work.check("3.5", [answer.values[place].support[-1] for place in places]).text == remark
    both = [triple for place in places for triple in answer.values[place].support]
    assert remark != "right" or work.check("3.5", both).text == "it can be done with fewer triples"


def test_a_recording_with_a_model_asks_it_what_an_edit_needs_alone() -> None:
    run = kgwb.recording("films/chatty_kg/3", kg=kgwb.open_kg("films"), model="rules")
    assert run.answer == kgwb.recording("films/chatty_kg/3").answer
    run.edit_prompt("chatty_kg/qir", run.prompts.text("chatty_kg/qir") + "\nBe brief.").go()
    asked = [run.calls[key].request["model"] for key in run["qir"].calls]
    assert asked == ["rules"]
    assert run.fork(models="rules").go()["qir"].live_calls == 0


def test_recordings_are_small() -> None:
    files = list((FOLDER.parent / "recordings").rglob("*.gz"))
    assert sum(file.stat().st_size for file in files) <= 10_000_000
