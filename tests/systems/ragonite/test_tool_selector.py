"""The tools that a model chooses in turns: how often, which are offered, and what it is shown."""

from __future__ import annotations

from ragonite import (
    ARRIVAL,
    FINISH,
    QUESTION,
    cited,
    passages,
    script,
    sql,
)
from small import films

import kgwb
from kgwb.llm import Scripted


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
