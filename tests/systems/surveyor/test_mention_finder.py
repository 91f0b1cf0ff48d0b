"""The names and classes that a question is about."""

from __future__ import annotations

from small import films
from surveying import QUESTION, REVIEWING, draft, mention, script, variables_of

import kgwb
from kgwb.llm import Scripted


def test_a_follow_up_question_is_completed_and_remembered() -> None:
    full_question = "Where was Denis Villeneuve born?"
    names = [mention("Denis Villeneuve"), mention("Denis Villeneuve", question=full_question)]
    model = Scripted(script([draft()] * 2, names=names))
    bench = kgwb.Workbench(films(), model, system="surveyor", settings=REVIEWING)
    bench.ask(QUESTION)
    run = bench.ask("And where was he born?")
    [earlier] = variables_of(model, "mention_finder", "earlier")[1]
    assert (earlier["question"], len(earlier["answers"])) == (QUESTION, 3)
    assert variables_of(model, "reviewer", "question")[1] == run.turn.standalone == full_question
