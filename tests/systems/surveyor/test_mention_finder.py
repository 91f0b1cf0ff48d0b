"""The names and classes that a question is about."""

from __future__ import annotations

from small import films
from surveying import (
    draft,
    mention,
    script,
)

import kgwb
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn


def test_a_long_earlier_answer_is_not_taken_for_all_of_it() -> None:
    model = Scripted(script([draft()], names=[mention("Denis Villeneuve")]))
    bench = kgwb.Workbench(films(), model, system="surveyor")
    earlier = Turn("Which films are there?", tuple(f"film {number}" for number in range(8)))
    bench.setup.begin("Which of them are his?", Dialogue((earlier,))).go()
    [turn] = model.requests[0].variables["earlier"]
    assert len(turn["answers"]) + turn["more_answers"] == len(earlier.answers)
