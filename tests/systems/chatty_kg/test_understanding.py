"""Understanding: a self-contained question is classified, and not rephrased."""

from small import DIRECTED, chatty

from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn


def test_a_self_contained_question_is_not_rephrased() -> None:
    script = {**DIRECTED, "chatty_kg/classifier": {"reason": "", "label": "self-contained"}}
    said = Dialogue((Turn("Which film is it?", ("Dune",), entities=("Dune",)),))
    run = chatty("Who directed the film?", Scripted(script), dialogue=said).go()
    assert run["classifier"].attempts
    assert run.output("understanding") == run.question
    assert str(run.answer) == "Denis Villeneuve"
