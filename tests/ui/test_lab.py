"""The prompt lab: a prompt is edited, lost questions are asked again, a click opens one in the debugger."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from page import press, settle, text, wait_for
from small import films, predicates, qir

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Results
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest

DENIS = ("http://example.org/denis",)
QUESTIONS = [
    BenchQuestion(id=name, question=f"Who directed {name}?", answers=DENIS, hops=1)
    for name in ("Arrival", "Sicario")
]
KG = films()


def careless(request: ChatRequest) -> Mapping[str, Any]:
    """Asks for the length of Arrival, until the prompt says "With care."."""
    words = request.messages[-1].content
    film = "Arrival" if "Arrival" in words else "Sicario"
    if request.task == "chatty_kg/predicate_selection":
        return predicates(["director" if "directed by" in words else "runtime"])
    relation = "directed by" if "With care." in words or film == "Sicario" else "runtime"
    return qir(f"{film} | {relation} | ?x")


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    setup = BenchSetup.from_workbench(
        kgwb.Workbench(KG, Scripted(careless), settings=kgwb.profile("fast", temperature=0.5))
    )
    Benchmark(setup, Results(tmp_path / "first", setup.to_config()), save_runs=True).run(QUESTIONS)
    return tmp_path / "first"


def open_lab(measured: Path, *others: Path, **options: Any) -> kgwb.PromptLab:
    return kgwb.PromptLab(measured, *others, kg=KG, model=Scripted(careless), **options)


def careful(lab: kgwb.PromptLab) -> str:
    """The prompt that loses no question."""
    template = lab.prompt_texts["chatty_kg/qir"].partition("\n---\n")[2].strip("\n")
    return template + "\nWith care."


def ask_again(lab: kgwb.PromptLab, **typed: str) -> None:
    press(lab, "Ask again", **typed)
    settle(lab.worker)


def test_an_edited_prompt_is_asked_again_and_a_question_opens_in_the_debugger(
    measured: Path,
) -> None:
    model = Scripted(careless)
    lab = kgwb.PromptLab(measured, kg=KG, model=model)
    assert "1 lost" in text(lab)
    press(lab, "qir")
    better = careful(lab)
    press(lab, "Estimate the cost", template=better)
    wait_for(lambda: lab.estimate_text and lab.estimate_text in text(lab))
    assert model.requests == []
    ask_again(lab, template=better, repeats="2")
    wait_for(lambda: "1 fixed" in text(lab))
    assert "qir 1" in text(lab) and "With care." in text(lab)
    press(lab, "Who directed Arrival?")
    assert lab.debugger is not None and lab.debugger.key == "qir"
    wait_for(lambda: "the right answer is" in text(lab))
    assert lab.debugger.run.unrecorded_graph is KG
    assert (
        "1 fixed" in repr(lab)
        and "data-do" not in lab.static_html().partition('class="body stack"')[2]
    )
    [folder] = lab.result_folders
    assert "1 fixed" in text(open_lab(measured, folder))


def test_a_question_that_is_right_by_luck_is_listed_and_opens(measured: Path) -> None:
    file = measured / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[1]["asks"] = [{"f1": 1.0}, {"f1": 0.0}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lab = open_lab(measured)
    assert "Right by luck 1 question" in text(lab) and "1 of 2" in text(lab)
    press(lab, "Who directed Sicario?")
    assert lab.debugger is not None


def test_a_damaged_history_of_kept_prompts_is_only_met_by_a_person_who_keeps_some(
    measured: Path, here: Path
) -> None:
    (here / "my_prompts").mkdir()
    (here / "my_prompts" / "history.jsonl").write_text("damaged\n")
    assert "1 lost" in text(open_lab(measured))


def test_what_cannot_be_asked_is_said(measured: Path) -> None:
    lab = open_lab(measured, workers=1)
    press(lab, "qir")
    for typed, problem in (
        ({}, "nothing was changed"),
        ({"template": "[user]\n{{nonsense}}"}, "nonsense"),
        ({"template": careful(lab), "repeats": "0"}, "repeats cannot be '0'"),
        ({"repeats": "1", "only": "nobody"}, "'nobody'"),
        ({"only": "all", "slice": "hops=2"}, "hops=2"),
        ({"slice": "split=test", "only": "lost"}, "test part"),
        ({"only": "", "slice": "", "budget": "hope=1"}, "'hope'"),
    ):
        press(lab, "Ask again", **typed)
        assert problem in text(lab)
    assert lab.worker.thread is None  # what is wrong is found before anything is begun
    press(lab, "Ask again", budget="model_calls=1")
    wait_for(lambda: "stopped after 1 question" in text(lab))
    ask_again(lab, budget="")
    wait_for(lambda: "1 fixed" in text(lab))


def test_a_model_at_an_address_of_the_folder_is_not_asked(measured: Path) -> None:
    config = measured / "config.json"
    config.write_text(
        config.read_text().replace('"scripted"', '"openai:x@http://elsewhere.example/v1"')
    )
    with pytest.raises(InputError, match="address"):
        kgwb.PromptLab(measured, kg=KG)


def test_the_lab_opens_with_the_lost_questions_and_takes_back_what_the_debugger_edits(
    measured: Path,
) -> None:
    lab = open_lab(measured)
    shown = text(lab)
    assert "Lost questions" in shown and "Who directed Arrival?" in shown and "1 hop" in shown
    assert "Who directed Sicario?" not in shown
    press(lab, "Who directed Arrival?")
    assert lab.debugger is not None
    wait_for(lambda: "the right answer is" in text(lab))
    lab.update({"do": "choose", "arg": "qir", "scope": "debugger"})
    edited = careful(lab)
    lab.update({"do": "try", "scope": "debugger", "form": {"template": edited}})
    settle(lab.debugger.session)
    assert lab.selected_prompt == "chatty_kg/qir"
    assert lab.template_drafts == {"chatty_kg/qir": edited}
    ask_again(lab)
    wait_for(lambda: "1 fixed" in text(lab))


def test_a_winner_is_kept_and_undone_in_the_lab(measured: Path, here: Path) -> None:
    lab = open_lab(measured)
    press(lab, "qir")
    better = careful(lab)
    ask_again(lab, template=better, note="it guessed")
    press(lab, "Keep", kept_note="care helps")
    kept = here / "my_prompts" / "chatty_kg" / "qir.md"
    assert "With care." in kept.read_text()
    assert "care helps" in text(lab) and "fixed Arrival" in text(lab)
    press(lab, "Keep")
    assert "already" in text(lab)
    press(lab, "Undo the latest")
    assert not kept.exists()


def test_an_earlier_retry_is_listed_and_started_from(measured: Path) -> None:
    first = open_lab(measured)
    press(first, "qir")
    better = careful(first)
    ask_again(first, template=better, note="it guessed")
    lab = open_lab(measured)
    shown = text(lab)
    assert "it guessed" in shown and "1 fixed, 0 broken of 2 questions" in shown
    press(lab, "Start from it")
    settle(lab.worker)
    assert lab.template_drafts == {"chatty_kg/qir": better}
    assert lab.result_folders == first.result_folders
    wait_for(lambda: "qir 1" in text(lab))
