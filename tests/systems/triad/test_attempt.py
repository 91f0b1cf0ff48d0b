"""Attempts: a query is found, or the next attempt goes back to the phase at fault."""

import pytest
from small import answer_of
from triads import (
    answered,
)

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.systems.triad.records import Triplet


def test_replies_that_are_no_json_end_the_run_unless_there_is_own_knowledge() -> None:
    garbage = {"triplets": "I do not know.", "own_knowledge_fact": {"answer": "Moscow"}}
    with pytest.raises(InvalidReplyError, match="triplets"):
        answered(**garbage)
    run, _ = answered(**garbage, settings={"own_knowledge": True})
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Moscow",), True)


def test_triplets_that_a_person_puts_in_must_name_an_entity() -> None:
    run, _ = answered()
    with pytest.raises(OverrideError, match="names an entity"):
        run.override("triplets[try 1/parsing]", (Triplet("?a", "b", "?c"),))
