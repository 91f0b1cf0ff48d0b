"""The teaching labs: every check with right, wrong, empty and hostile answers; hand-ins; the class page."""

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from lab_classes import hand_in
from lost_repairs import REFERENCE_REPAIRS, find_first_wrong_agents

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.kg.label_search import normalize
from kgwb.labs import LabWork, recorded, two
from kgwb.labs.changed_graphs import to_display_name
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.material import REPLIES
from kgwb.labs.pages import render_class_page
from kgwb.labs.points import Grading
from kgwb.labs.recorded import LOST_RUNS, open_lost_run
from kgwb.labs.tasks import LAB_MODULES, MAX_HINTS, load_lab, open_sample
from kgwb.labs.texts import load_texts, translate_notebook
from kgwb.llm import Scripted
from kgwb.records import to_data
from kgwb.run.prompts import Prompts
from kgwb.workbench import Workbench

NUMBERS = range(1, len(LAB_MODULES) + 1)
TASKS = [(number, name) for number in NUMBERS for name in load_lab(number).tasks]
ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "labs_solutions.md").read_text(encoding="utf-8")
SOLUTIONS = dict(re.findall(r"^```python\n# (\d\.\d+)[^\n]*\n(.*?)^```", TEXT, re.M | re.S))
NO_ANSWERS = (None, ..., "")
"""What is not counted as a try: the cell of a notebook as it came."""
HOSTILE: tuple[Any, ...] = (
    *NO_ANSWERS, 0, -1, 1e308, float("nan"), True, b"x", [], {}, (), [[]], [None], object(), print,
    "<script>alert(1)</script>", "\x1b[31m", "\ud800", "{" * 9_000, "[" * 9_000, "a" * 200_000, "' OR 1=1",
    "?x", [0] * 5_000, ["x" * 5_000] * 50, [("", "", "")], [("?", "?", "?")] * 3, ("a", "b", "c"),
    {1: {2: 3}}, "---\n" * 5_000, "DROP ALL; SELECT * WHERE { ?s ?p ?o }",
)  # fmt: skip


def read_code_cells(number: int, language: str = "en") -> list[str]:
    """Return the code of a lab's notebook in a language, cell by cell."""
    [path] = (ROOT / "notebooks" / "labs").glob(f"{number}_*.ipynb")
    notebook = json.loads(translate_notebook(path, load_texts(language)))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_every_task_has_a_cell_in_its_notebook_and_a_solution() -> None:
    asked = []
    for number in NUMBERS:
        asked += re.findall(r'lab.check\("(.*?)"', "\n".join(read_code_cells(number)))
    assert asked == [name for _, name in TASKS]
    assert set(SOLUTIONS) == set(asked)


@pytest.mark.parametrize("language", ["en", pytest.param("de", marks=pytest.mark.long)])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.usefixtures("here")
def test_a_lab_run_with_its_solutions_passes_every_check(
    number: int, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")  # as in the student's kernel
    variables: dict[str, Any] = {}
    for source in read_code_cells(number, language):
        task = re.search(r'lab.check\("(.*?)"', source)
        code = source
        if task:
            code = source.replace("answer = ...", f"{SOLUTIONS[task[1]]}#")
        exec(compile(code, "cell", "exec"), variables)  # as the notebook's kernel does
    work: LabWork = variables["lab"]
    states = {name: progress.state for name, progress in work.submission.tasks.items()}
    assert states == dict.fromkeys(work.lab.tasks, "solved")
    assert repr(work).count(str(len(states))) == 2


@pytest.mark.parametrize(("number", "name"), TASKS)
def test_an_empty_wrong_or_hostile_answer_is_wrong(number: int, name: str) -> None:
    work = kgwb.lab(number, None)
    for answer in HOSTILE:
        feedback = work.check(name, answer)
        assert feedback.state == "wrong", answer
        assert feedback.text and "<script" not in feedback._repr_html_()
    assert work.submission.tasks[name].tries == len(HOSTILE) - len(NO_ANSWERS)


def test_what_is_right_to_choose_is_what_the_systems_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")  # as in the student's kernel
    choices = recorded.DATA["choices"]
    rejected = []
    for number, reply in enumerate(REPLIES, 1):
        _, problem = two._run_with_reply(two.MUSIC_QUESTION, reply)
        if problem:
            rejected.append(number)
    assert choices["2.3"]["right"] == rejected
    assert choices["2.3"]["options"] == list(range(1, len(REPLIES) + 1))
    question = "From which story was the film Stalker taken?"
    run = Workbench(open_sample("films"), "rules").begin(question)
    recorded.set_triples(run, [("Stalker", "story taken from", "?story")], "?story")
    answers: dict[str, list[str]] = {}
    for query in run.go(until="query_generator").output("query_generator").queries:
        [predicate] = query.predicates
        fork = run.fork().override(
            "predicate_selection", {"predicates": query.predicates, "queries": [to_data(query)]}
        )
        answer = fork.go().answer
        assert answer is not None
        answers.setdefault(to_display_name(predicate), []).extend(answer.labels)
    assert {name: sorted(labels) for name, labels in answers.items()} == recorded.DATA[
        "story_answers"
    ]
    assert choices["2.7"]["options"] == [agent.name for agent in open_lost_run(1).system.agents]
    assert choices["3.1"]["options"] == list(recorded.recorded_systems())
    for system, (lowest, highest) in choices["3.1"]["numbers"].items():
        mean = fmean(answer.f1 for answer in recorded.answers_of_system(system))
        assert (lowest + highest) / 2 == pytest.approx(mean, abs=1e-4)


def test_an_unknown_lab_or_task_is_an_error() -> None:
    with pytest.raises(InputError, match=r"'9\.9'"):
        kgwb.lab(1, None).check("9.9", 1)
    with pytest.raises(InputError, match="lab '7'"):
        kgwb.lab(7)


@pytest.mark.parametrize(("number", "name"), TASKS)
def test_hints_come_one_by_one_and_do_not_give_the_answer_away(number: int, name: str) -> None:
    work = kgwb.lab(number, None)
    task = work.lab.tasks[name]
    assert 1 <= len(task.hints) <= MAX_HINTS
    shown = [work.hint(name).text for _ in range(MAX_HINTS + 1)]
    assert [text.partition(": ")[2] for text in shown] == [*task.hints, task.hints[-1]]
    literals = [normalize(text) for text in re.findall(r'"([^"\n]{20,})"', SOLUTIONS[name])]
    assert not [text for text in literals for hint in task.hints if text in normalize(hint)]


def test_work_is_kept_and_handed_in(here: Path) -> None:
    kgwb.lab(1).check("1.1", [1])
    work = kgwb.lab(1)  # as after a restart of the kernel
    work.hint("1.1")
    assert work.check("1.1", iter([2, 4, 5])).state == "right"
    assert work.check("1.1", [1]).state == "wrong"
    handed = json.loads(work.hand_in(" Ada <b>\x1b Lovelace/.. ").read_text())
    assert handed["student"] == "Ada <b>� Lovelace/.."
    answers = ["[1]", "[2, 4, 5]", "[1]"]
    task = {"state": "solved", "tries": 3, "hints": 1, "answers": answers, "remark": ""}
    kept = handed["tasks"]["1.1"]
    assert {name: kept[name] for name in task} | {"remark": ""} == task
    assert kept["data"] == {"value": [2, 4, 5], "run": None}  # the right one
    [file] = here.glob("lab1-*")
    assert file.name == f"lab1-Ada-b-Lovelace-{handed['work_id']}.json"
    with pytest.raises(InputError, match="name"):
        work.hand_in("  ")


REJECTED = {
    "bomb.json": "[" * 100_000,
    "code.json": "__import__('os').system('x')",
    "wrong.json": '{"kgwb_lab": 1, "tasks": {"1.1": {"state": "<b>"}}}',
    "other.json": '{"kgwb_lab": 1, "tasks": {"8.8": {}}}',
    "text.json": "\x00\xff",
}
"""Files that are not hand-ins."""


def write_class(folder: Path) -> None:
    """Write the hand-ins of four students, one of them without a name, and the REJECTED files."""
    for name, answers in {"Ada": [[2, 4, 5]], "<i>Bob": [[1], [2], [3]], "Cleo": []}.items():
        hand_in(name, folder, *answers)
    (folder / "lab1.json").write_text('{"kgwb_lab": 1}')  # as it is kept beside a notebook
    for file, text in REJECTED.items():
        (folder / file).write_text(text)


def test_a_work_keeps_its_identity_when_the_kernel_is_restarted(here: Path) -> None:
    (here / "lab1.json").write_text('{"kgwb_lab": 1}')  # of an earlier version
    files = {kgwb.lab(1).hand_in("Ada").name for _ in range(2)}
    assert len(files) == 1


def test_the_class_page_shows_all_hand_ins_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_class(tmp_path)
    file = tmp_path / "class.html"
    for _ in range(2):  # the page of the first time is none of the submissions
        assert main(["labs", "collect", str(tmp_path), "--out", str(file)]) == 0
    [collected] = collect_hand_ins(tmp_path, skipped={file})
    assert [work.name for work in collected.works] == ["<i>Bob", "Ada", "Cleo", "lab1.json"]
    assert (collected.count_solved("1.1"), collected.stuck_students("1.1")) == (1, ["<i>Bob"])
    problems = {row.place: row.problem for row in collected.missing}
    assert set(problems) == set(REJECTED)
    assert "8.8" in problems["other.json"]
    assert str(collected) in capsys.readouterr().out
    page = file.read_text()
    assert page == render_class_page([collected], Grading())
    assert "<i>" not in page and page.count("&lt;i&gt;Bob") == 3  # two tables, and who is stuck
    assert "&amp;lt;" not in page and "&lt;span" not in page
    assert all(name in page for name in ("Ada", "Cleo", "lab1.json", *REJECTED))
    assert page.count("<details open>") == 1
    assert '<pre class="src">[2, 4, 5]</pre>' in page


def test_a_table_of_ones_own_work_shows_the_states_as_pictures(here: Path) -> None:
    shown = kgwb.lab(1)._repr_html_()
    assert "&lt;" not in shown and "<svg" in shown


def test_a_file_that_a_hand_in_names_as_its_lab_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    executed = tmp_path / "executed"
    code = tmp_path / "own.py"
    code.write_text(f"open({str(executed)!r}, 'w').close()")
    write_class(tmp_path / "class")
    named = json.dumps({"kgwb_lab": str(code)[-30:], "tasks": {}})
    for name in (named, json.dumps({"kgwb_lab": "own.py", "tasks": {}})):
        (tmp_path / "class" / "other.json").write_text(name)
        [collected] = collect_hand_ins(tmp_path / "class")
        assert not executed.exists()
        assert "own.py" in {row.place: row.problem for row in collected.missing}["other.json"]


@pytest.mark.parametrize("text", ["wrong", "missing", "the number", "see part.number"])
def test_a_text_that_is_no_key_stays_as_it_is(text: str) -> None:
    assert load_texts().get(text) == text


def test_a_folder_without_hand_ins_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["labs", "collect", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert main(["labs", "grade", str(tmp_path)]) == 2
    assert "grade" in capsys.readouterr().err


def test_a_recording_is_replayed_without_graph_and_model() -> None:
    run = kgwb.recording("lost/chatty_kg/4")
    assert run.answer is not None and not run.answer.values and run.unrecorded_graph is None
    with pytest.raises(InputError, match="'films/none/1'"):
        kgwb.recording("films/none/1")


def test_recordings_of_two_systems_are_compared() -> None:
    page = kgwb.compare(
        kgwb.recording("films/chatty_kg/4"), kgwb.recording("films/ragonite/4")
    ).static_html()
    assert "vertex selection" in page and "answerer" in page  # each an agent of one of them


def test_editing_a_recorded_run_changes_no_figure() -> None:
    row = recorded.answers_of_system("dog")[4]
    row.run.step_back(3)
    assert row.run.answer is not None and row.run.totals.model_calls == row.totals.model_calls


def test_a_recording_with_a_model_asks_it_only_what_an_edit_needs() -> None:
    run = kgwb.recording("films/chatty_kg/3", kg=kgwb.open_kg("films"), model="rules")
    assert run.answer == kgwb.recording("films/chatty_kg/3").answer
    assert run.fork().go().totals.live_model_calls == 0
    run.edit_prompt("chatty_kg/qir", run.prompts.text("chatty_kg/qir") + "\nBe brief.").go()
    asked = [run.calls[key].request["model"] for key in run["qir"].calls]
    assert asked == ["rules"]
    assert run.fork(models="rules").go()["qir"].live_calls == 0


@pytest.mark.parametrize(
    ("name", "agent", "attempts", "is_ungrounded"),
    [
        ("paper/chatty_kg/1", "predicate_selection", 1, False),
        ("paper/chatty_kg/2", "qir", 2, False),
        ("paper/dog/1", "linguist", 2, False),
        ("paper/robodata/1", "observation", 7, False),
        ("paper/ragonite/2", "tool_selector", 3, False),
        ("paper/ragonite/7", "tool_selector", 3, False),
        ("paper/ragonite/8", "tool_selector", 3, False),
        ("paper/dog/2", "own_knowledge", 1, True),
        ("paper/triad/1", "query_choice", 1, False),
        ("paper/triad/2", "triplets", 2, False),
        ("paper/triad/3", "own_knowledge", 1, True),
    ],
)
def test_recordings_of_the_profile_paper_have_what_their_paper_is_named_for(
    name: str, agent: str, attempts: int, is_ungrounded: bool
) -> None:
    run = kgwb.recording(name)
    assert run.settings.profile == "paper"
    assert sum(len(step.attempts) for step in run.steps if step.agent == agent) == attempts
    assert run.answer is not None and run.answer.ungrounded is is_ungrounded


def test_f1_of_a_recorded_answer_is_of_its_things_and_not_of_their_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = recorded.load_questions("films")[0]
    others = [dict(row) | {"answers": ["http://e/other"]}]
    monkeypatch.setattr(recorded, "list_recordings", lambda: {"films/dog/1": ROOT})
    monkeypatch.setattr(recorded, "load_questions", lambda graph: others)
    [answer] = recorded.answers_of_system.__wrapped__("dog")
    assert (answer.labels, answer.f1) == (answer.gold_labels, 0.0)


def test_recordings_are_small() -> None:
    files = list((ROOT / "recordings").rglob("*.gz"))
    assert sum(file.stat().st_size for file in files) <= 10_000_000


@pytest.mark.parametrize("number", REFERENCE_REPAIRS)
def test_each_reference_repair_is_right(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")  # as in the student's kernel
    for repair in REFERENCE_REPAIRS[number]:
        run = open_lost_run(number)
        repair(run)
        feedback = kgwb.lab(1, None).check(f"1.{6 + number}", run.go())
        assert feedback.state == "right", feedback.text
    assert list(find_first_wrong_agents(number)) == LOST_RUNS[number - 1]["first_wrong"]


def test_a_prompt_that_misleads_and_muted_triples_are_tried_with_a_model() -> None:
    reply = REPLIES[7].replace("composer", "director")
    prompt = Prompts().text("chatty_kg/qir") + "\nAsk for the director.\n"
    model = Scripted({"chatty_kg/qir": [reply]})
    [tried] = kgwb.lab(2, None).try_live("2.5", prompt, model)
    assert (tried.attempts, tried.is_right) == (1, False) and "Hitchcock" in tried.answer
    run = kgwb.recording("films/chatty_kg/4", kg=kgwb.open_kg("films"))
    answer = run.answer
    assert answer is not None
    triples = [value.support[0] for value in answer.values[1:]]
    for given in (triples, run.mute(*triples)):
        [tried] = kgwb.lab(3, None).try_live("3.5", given, "rules")
        assert tried.is_right and tried.answer == answer.values[0].label
    [tried_all] = kgwb.lab(3, None).try_live("3.5", [], "rules")
    assert tried_all.is_right and answer.values[1].label in tried_all.answer
    with pytest.raises(InputError) as caught:
        kgwb.lab(1, None).try_live("1.1", [2], "rules")
    assert "2.5" in caught.value.hint


def test_a_prompt_is_tried_with_a_model_and_each_question_says_what_came_of_it() -> None:
    reply = REPLIES[7].replace("composer", "release date").replace("Psycho", "Spirited Away")
    prompt = Prompts().text("chatty_kg/qir") + "\nBe brief.\n"
    model = Scripted({"chatty_kg/qir": ["no JSON", reply, *["no JSON"] * 9]})
    first, *others = kgwb.lab(2, None).try_live("2.1", prompt, model)
    assert (first.attempts, first.is_right) == (2, True)
    assert {(tried.attempts, tried.is_right) for tried in others} == {(0, False)}
    assert "Be brief." in model.requests[0].messages[-1].content
