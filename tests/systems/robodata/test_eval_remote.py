"""The state that judges results."""

from __future__ import annotations

import pytest
from machine import (
    answered,
    judges,
)

from kgwb.errors import InvalidReplyError


def test_the_next_state_is_a_field_and_not_a_word_of_the_thought() -> None:
    words = "cannot PRODUCE_ANSWER yet; irrelevant; UPDATE"
    run, _ = answered(eval_remote=judges("EVAL_LOCAL", words), settings={"turn_limit": 5})
    assert run.output("eval_remote").next == "EVAL_LOCAL"
    with pytest.raises(InvalidReplyError, match="next"):
        answered(eval_remote=judges("PRODUCE", "we may produce"))
