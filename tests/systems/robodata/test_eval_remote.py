"""The state that judges results."""

from __future__ import annotations

import pytest
from machine import (
    answered,
    goes,
    judges,
    search,
    variables_of,
)

from kgwb.errors import InvalidReplyError


def test_the_next_state_is_a_field_and_not_a_word_of_the_thought() -> None:
    words = "cannot PRODUCE_ANSWER yet; irrelevant; UPDATE"
    run, _ = answered(eval_remote=judges("EVAL_LOCAL", words), settings={"turn_limit": 5})
    assert run.output("eval_remote").next == "EVAL_LOCAL"
    with pytest.raises(InvalidReplyError, match="next"):
        answered(eval_remote=judges("PRODUCE", "we may produce"))


def test_memory_and_local_graph_are_cut_in_prompts() -> None:
    remote = [goes("REMOTE", search(), thought=f"thought {n}") for n in range(6)]
    remote.append(goes("EVAL_REMOTE", search()))
    _, model = answered(remote=remote, settings={"memory_chars": 150, "shown_chars": 60})
    memory = variables_of(model, "eval_remote", "memory")[0].splitlines()
    assert memory[1].startswith("2. REMOTE → REMOTE,")
    assert "thought" not in memory[1]
    assert memory[-1].startswith("8. REMOTE → EVAL_REMOTE; search_entities")
    assert memory[-1].endswith("thought: so")
    assert all("more line" in text for text in variables_of(model, "eval_local", "graph"))
