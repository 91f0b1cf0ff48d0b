"""The tools that a model chooses in turns: how often, which are offered, and what it is shown."""

from __future__ import annotations

import json

from ragonite import (
    ARRIVAL,
    FINISH,
    QUESTION,
    RAGONITE,
    answered,
    cited,
    passages,
    script,
    sql,
)
from small import films

import kgwb
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn
from kgwb.systems.ragonite.tool_selector import list_earlier_turns


def test_a_passage_that_two_sentences_find_is_one_source() -> None:
    run, _ = answered(passages("Dune"), passages("Dune by Villeneuve"), sql())
    sources = run.output("tool_selector")
    found = [(source.title, source.text) for source in sources if source.tool == "passages"]
    assert len(found) == len(set(found)) > 5


def test_the_text_of_an_answer_without_values_is_remembered() -> None:
    nothing = {**cited(), "answer": "No budget is given [1].", "reason": "no column for it"}
    model = Scripted(script(*[sql(), passages(), FINISH] * 2, answer=[nothing, ARRIVAL]))
    bench = kgwb.Workbench(films(), model, system="ragonite")
    bench.ask("What did it cost?")
    bench.ask(QUESTION)
    [turn] = model.requests[-1].variables["earlier"]
    assert turn == {
        "question": "What did it cost?",
        "answers": [],
        "text": "No budget is given.",
    }


def test_the_newest_turns_have_room_and_what_is_left_out_is_said() -> None:
    turns = [Turn(f"question {number}", text="word " * 20) for number in range(9)]
    turns.append(Turn("Which?", tuple(f"answer {number}" for number in range(100)), text="Many."))
    settings = RAGONITE.settings(dialogue_tokens=400)
    first, *shown = list_earlier_turns(Dialogue(tuple(turns)), settings)
    assert 0 < len(json.dumps([first, *shown])) < 400 * 4 + 100
    assert first == {"left out": f"{10 - len(shown)} earlier turns"}
    assert [turn["question"] for turn in shown[:-1]] == ["question 8"] * (len(shown) - 1)
    assert shown[-1]["text"] == "Many."
    small = RAGONITE.settings(dialogue_tokens=50)
    [_, latest] = list_earlier_turns(Dialogue(tuple(turns)), small)
    assert latest["answers"] == [f"answer {number}" for number in range(len(latest["answers"]))]
    assert latest["left out"] == f"{100 - len(latest['answers'])} answers"
