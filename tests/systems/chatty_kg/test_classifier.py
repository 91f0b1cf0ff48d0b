"""The classifier: when it is asked, and what it sees."""

import pytest
from small import alone

from kgwb.run.answers import Context, Turn
from kgwb.systems.chatty_kg.chat import classify_question

REPLY = {"classifier": {"reason": "elliptical", "label": "dependent"}}


TALKED = Context((Turn("Who directed Dune?", ("Denis Villeneuve",)),))


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("Where was he born?", 0),
        ("When did it come out?", 0),
        ("Was he in Paris?", 0),  # the name stands behind the pronoun
        ("Who is Denis Villeneuve, and where was he born?", 1),
        ("Who wrote 1984, and was it filmed?", 1),
        ("When was the first movie released?", 1),
    ],
)
def test_a_pronoun_before_any_name_leaves_no_doubt(question: str, calls: int) -> None:
    classified, _, model = alone(lambda run: classify_question(question, TALKED, run), REPLY)
    assert (classified.label, model.call_count()) == ("dependent", calls)
