"""One marker makes an agent of a function, with or without a name, a run and annotations."""

from __future__ import annotations

from typing import TypedDict

import pytest
import typing_extensions
from rdflib import Literal
from small import films, run_agent

from kgwb.llm import Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Value


@agent
def double(text):
    """The text twice."""
    return text * 2


@agent("shout", subject="text")
def make_loud(text: str, run: Run) -> str:
    """The text in capitals."""
    return double(text).upper()


def answer(question, dialogue, run):
    return Answer("list", (Value(Literal("x"), make_loud(question.text, run)),))


SYSTEM = System("loud", answer, (make_loud, double))


def test_a_function_without_a_run_is_a_step_of_the_run_that_is_executed() -> None:
    run = Run(SYSTEM, "abc", kg=films(), models=Scripted({})).go()
    assert [step.key for step in run.steps] == ["shout[abc]", "double[abc]"]
    assert run.steps[1].parent == "shout[abc]"
    assert run.steps[1].inputs == {"text": "abc"}
    assert run.answer and run.answer.labels == ("ABCABC",)


def test_what_is_written_into_a_value_that_was_put_in_is_not_put_in_again() -> None:
    @agent
    def words(text):
        return text.split()

    def answer_first(question, dialogue, run):
        found = words(question.text)
        return Answer("list", (Value(Literal("x"), found.pop()),))

    system = System("first", answer_first, (words,))
    run = Run(system, "abc", kg=films(), models=Scripted({})).go()
    for _ in range(2):
        run.override("words", ["a", "b"]).go()
        run.go()
        assert run.output("words") == run.overrides["words"] == ["a", "b"]
        assert run.answer and run.answer.labels == ("b",)


def test_outside_of_a_run_it_is_the_plain_function() -> None:
    assert double("abc") == "abcabc"


class Found(TypedDict):
    name: str


class FoundToo(typing_extensions.TypedDict):
    name: str


@pytest.mark.parametrize("found", [Found, FoundToo])
def test_an_output_may_be_a_typed_dict(found) -> None:
    def find(text, run):
        return {"name": text}

    find.__annotations__["return"] = found
    assert run_agent(agent(find)).output("find") == {"name": "x"}


def test_an_output_without_an_annotation_is_edited_saved_and_loaded(tmp_path) -> None:
    run = Run(SYSTEM, "abc", kg=films(), models=Scripted({})).go()
    run.override("double[abc]", "xyz").go()
    assert run.answer and run.answer.labels == ("XYZ",)
    path = run.save(tmp_path / "run.jsonl")
    loaded = Run.load(path, SYSTEM).go()
    assert loaded.answer == run.answer
