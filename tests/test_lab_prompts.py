"""Task 2.1: judged by recorded replies to good and poor prompts, each of which is judged by the system."""

import pytest

import kgwb
from kgwb.labs.two import (
    RecordedReply,
    _check_reply,
    load_replies,
)

HEAD = """---
purpose: Write a question as triples.
strategy: zero-shot
variables: question
reply: QirReply
source: ours
---
[system]
Reply with one JSON object:
"""
FIELDS = {
    "entities": "the things that the question names",
    "unknowns": "the unknowns, such as ?film",
    "triples": "a list of objects with subject, predicate and object",
    "target": "the unknown that is asked for",
    "question_type": "list, count or boolean",
    "beyond": "what triples cannot say",
}
QUESTION = "\n[user]\nQuestion: {{question}}\n"


def write_prompt(**changes: str | None) -> str:
    """Return a prompt that describes every field; a change is another description, None leaves it out."""
    fields = FIELDS | changes
    lines = [f"{name}: {text}\n" for name, text in fields.items() if text is not None]
    return HEAD + "".join(lines) + QUESTION


HARMLESS = {("2.1.not-described", "entities")}
"""What a prompt may lack, because the word says enough: the recorded reply is accepted all the same."""


def name_of(recorded: RecordedReply) -> str:
    return f"{recorded.lack} {recorded.of}".strip() or recorded.question


@pytest.mark.parametrize("recorded", load_replies(), ids=name_of)
def test_a_reply_is_right_exactly_if_its_prompt_lacked_nothing_that_matters(
    recorded: RecordedReply,
) -> None:
    problem = _check_reply(recorded.question, recorded.reply)
    is_harmless = not recorded.lack or (recorded.lack, recorded.of) in HARMLESS
    assert (problem == "") == is_harmless, problem


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", [name for name in FIELDS if name != "triples"])
def test_the_feedback_on_a_missing_field_shows_what_came_of_it(name: str, language: str) -> None:
    work = kgwb.lab(2, None, language=language)
    feedback = work.check("2.1", write_prompt(**{name: None}))
    assert feedback.state == "wrong" and name in feedback.text
    replies = {
        recorded.of: recorded.reply for recorded in load_replies() if "no-field" in recorded.lack
    }
    assert replies[name] in feedback.text
    assert work.check("2.1", write_prompt()).state == "right"


def test_a_prompt_that_asks_for_another_form_gets_a_reply_in_this_form() -> None:
    feedback = kgwb.lab(2, None).check("2.1", write_prompt(beyond="the rest. Reply with XML"))
    assert feedback.state == "wrong" and "<reply>" in feedback.text
