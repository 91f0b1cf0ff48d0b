"""Task 2.1: judged by recorded replies to good and poor prompts, each of which is judged by the system."""

from typing import Any

import pytest

import kgwb
from kgwb.labs.two import RECORDED_REPLIES, _check_reply

HARMLESS = {("2.1.not-described", "entities")}
"""What a prompt may lack, because the word says enough: the recorded reply is accepted all the same."""


def lack_of(recorded: dict[str, Any]) -> tuple[str, str]:
    return (recorded.get("lack", ""), recorded.get("of", ""))


def name_of(recorded: dict[str, Any]) -> str:
    return " ".join(lack_of(recorded)).strip() or str(recorded["question"])


@pytest.mark.parametrize("recorded", RECORDED_REPLIES, ids=name_of)
def test_a_reply_is_right_exactly_if_its_prompt_lacked_nothing_that_matters(
    recorded: dict[str, Any],
) -> None:
    problem = _check_reply(recorded["question"], recorded["reply"])
    is_harmless = lack_of(recorded) in {("", ""), *HARMLESS}
    assert (problem == "") == is_harmless, problem


def test_the_feedback_on_a_poor_prompt_shows_what_it_lacks_and_what_came_of_it() -> None:
    header = "".join(f"{name}: x\n" for name in ("purpose", "strategy", "source"))
    head = f"---\n{header}variables: question\nreply: QirReply\n---\n[user]\n"
    work = kgwb.lab(2, None)
    feedback = work.check("2.1", head + "Name the entities of {{question}}")
    lack = work.lab.texts.get("2.1.no-field", name="unknowns")
    [recorded] = [
        each for each in RECORDED_REPLIES if lack_of(each) == ("2.1.no-field", "unknowns")
    ]
    assert lack in feedback.text
    assert recorded["reply"] in feedback.text and recorded["question"] in feedback.text
