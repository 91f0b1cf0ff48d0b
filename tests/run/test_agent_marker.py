"""One marker makes an agent of a function, with or without a name, a run and annotations."""

from __future__ import annotations

from typing import TypedDict

import pytest
import typing_extensions
from small import answer_of, films, run_agent

from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer


def test_what_is_written_into_a_value_that_was_put_in_is_not_put_in_again() -> None:
    @agent
    def words(text):
        return text.split()

    def answer_last(question, dialogue, run):
        return Answer("list", text=words(question.text).pop())

    run = Run(System("last", answer_last, (words,)), "abc", kg=films(), models=None).go()
    for _ in range(2):
        run.override("words", ["a", "b"]).go()
        run.go()
        assert run.output("words") == run.overrides["words"] == ["a", "b"]
        assert answer_of(run).text == "b"


def test_outside_of_a_run_it_is_the_plain_function() -> None:
    @agent
    def double(text):
        return text * 2

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
