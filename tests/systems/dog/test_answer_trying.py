"""Answer trying: what the model sees of the triples, and which replies are sent back."""

from typing import Any

import pytest
from debate import trying
from small import DOG, alone

from kgwb.errors import InvalidReplyError
from kgwb.systems.dog.hop import (
    try_answer,
)
from kgwb.systems.dog.records import (
    FilledTriples,
)

TRIPLES = (("Arrival", "starring", "Amy Adams"), ("Arrival", "starring", "…", "as", "Louise Banks"))


FILLED = FilledTriples("list", head="Arrival", triples=TRIPLES, note="all triples")


def tried(*replies: Any) -> Any:
    script = {"answer_trying": list(replies)}
    return alone(lambda run: try_answer("who?", (FILLED,), run), script, of=DOG)[0]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (trying("Jeremy Renner"), "'Jeremy Renner' is not in the triples"),
        ({**trying(), "sufficient": "yes"}, "the reply is yes, but gives no answer"),
        ({**trying("Amy Adams"), "sufficient": "no"}, "the reply is no, with answers"),
    ],
)
def test_a_reply_that_contradicts_itself_or_the_triples_is_sent_back(
    reply: Any, problem: str
) -> None:
    assert tried(reply, trying()).sufficient == "no"
    with pytest.raises(InvalidReplyError, match=problem):
        tried(reply, reply, reply)
