"""What else: values of earlier answers are left out."""

import pytest
from small import alone, iri

from kgwb.run.answers import Context, Turn
from kgwb.systems.chatty_kg import chat

SAID = Context(
    (Turn("Who directed Dune?", ("Denis Villeneuve",), vertices=(iri("denis"), iri("dune"))),)
)


@pytest.mark.parametrize(
    ("question", "context", "others"),
    [
        ("Who besides him?", SAID, True),
        ("Which other films did he make?", SAID, True),
        ("What did he direct?", SAID, False),
        ("What else is there?", Context(), False),
    ],
)
def test_words_like_else_ask_for_other_values(
    question: str, context: Context, others: bool
) -> None:
    asked, _, _ = alone(lambda run: chat.asks_for_others(question, context, run))
    assert asked is others
