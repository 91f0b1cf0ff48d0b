"""Simplifying: who speaks in the debate, what each sees, and when it ends."""

import pytest
from debate import (
    LEFT,
    QUESTION,
    ROLES,
    TWO_HOPS,
    filtering,
    remark,
    trying,
    two_hops,
)
from small import asked, dog

from kgwb.run.systems import profile
from kgwb.systems.dog.question import RemarkReply, make_question_checks
from kgwb.systems.dog.records import SolvedHop


def test_a_name_that_is_not_solved_must_stay_in_the_question() -> None:
    hops = (SolvedHop("Denis Villeneuve", "~director", "Arrival | Dune"),)
    checks = make_question_checks("Which film by [Denis Villeneuve] is based on [Emma]?", hops)
    reply = RemarkReply(remark="", question="Which of [Arrival | Dune] is based on a story?")
    missing, remaining = (check.test(reply) for check in checks)
    assert missing.endswith("[Emma]")
    assert not remaining


@pytest.mark.parametrize(
    ("first", "speakers"),
    [
        (LEFT, ["simplifying_expert"]),
        ("Where was he born?", ["simplifying_expert", "critic"]),
        ("Where was the director of [Arrival] born?", ["simplifying_expert", "critic"]),
    ],
)
def test_the_debate_ends_with_the_first_question_that_passes_the_checks(
    first: str, speakers: list[str]
) -> None:
    model = two_hops(simplifying_expert=remark(first))
    settings = profile("fast", debate_rounds=2, debate_end="first_valid")
    run = dog(QUESTION, model, settings=settings).go()
    assert str(run.answer) == "Gentilly"
    assert [step.agent for step in run.steps if "round" in step.key] == speakers
    attempts = (
        {"simplifying_expert": 1} if len(speakers) == 1 else {"simplifying_expert": 3, "critic": 1}
    )
    assert {role: count for role, count in asked(model).items() if role in ROLES} == attempts
    assert model.call_count() == 5 + sum(attempts.values())


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
