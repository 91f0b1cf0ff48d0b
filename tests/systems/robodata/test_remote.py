"""The state that looks into the remote graph."""

from __future__ import annotations

import pytest
from machine import (
    answered,
    goes,
    search,
    variables_of,
)

from kgwb.errors import InvalidReplyError


def test_the_last_thought_is_shown_in_the_next_prompt() -> None:
    run, model = answered()
    first_thought = run.output("turn[turn 1]").visits[0].thought
    assert variables_of(model, "remote", "thought") == [first_thought, "so"]


def test_prompts_say_how_many_turns_are_left() -> None:
    remote = goes("REMOTE", search("nobody"))
    _, model = answered(remote=remote, settings={"turn_limit": 12})
    turns = variables_of(model, "remote", "turns")
    assert [int(text.split()[0]) for text in turns] == [*range(11, 1, -1)]
    assert ["low" in text for text in turns] == [True] + 9 * [False]
    assert ["high" in text for text in turns] == 5 * [False] + 5 * [True]
    assert ["only connect" in text for text in turns] == 8 * [False] + 2 * [True]


def test_too_many_tool_uses_are_not_accepted() -> None:
    with pytest.raises(InvalidReplyError, match="more than 2"):
        answered(remote=goes("REMOTE", *[search()] * 3), settings={"tool_uses": 2})
