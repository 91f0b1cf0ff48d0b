"""Simplifying: who speaks in the debate, what each sees, and when it ends."""

from debate import (
    QUESTION,
    TWO_HOPS,
    filtering,
    trying,
    two_hops,
)
from small import asked, dog

from kgwb.systems.dog.question import RemarkReply, make_question_checks
from kgwb.systems.dog.records import SolvedHop


def test_a_name_that_is_not_solved_must_stay_in_the_question() -> None:
    hops = (SolvedHop("Denis Villeneuve", "~director", "Arrival | Dune"),)
    checks = make_question_checks("Which film by [Denis Villeneuve] is based on [Emma]?", hops)
    reply = RemarkReply(remark="", question="Which of [Arrival | Dune] is based on a story?")
    missing, remaining = (check.test(reply) for check in checks)
    assert missing.endswith("[Emma]")
    assert not remaining


def test_the_last_remark_by_hand_changes_the_next_hop() -> None:
    model = two_hops(
        relation_filtering=[*TWO_HOPS["dog/relation_filtering"], filtering("number of children")],
        answer_trying=[trying(), trying("Gentilly"), trying("3")],
    )
    run = dog(QUESTION, model).go()
    before = asked(model)
    question = "How many children has [Denis Villeneuve]?"
    run.override("linguist", {"role": "linguist", "words": "", "question": question}).go()
    assert asked(model) - before == {"relation_filtering": 1, "answer_trying": 1}
    assert str(run.answer) == "3"
