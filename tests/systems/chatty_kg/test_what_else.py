"""What else: values of earlier answers are left out."""

import pytest
from small import PAPER, alone, iri

from kgwb.run.answers import Context, Turn
from kgwb.settings import Settings
from kgwb.systems.chatty_kg import chat

SAID = Context(
    (Turn("Who directed Dune?", ("Denis Villeneuve",), vertices=(iri("denis"), iri("dune"))),)
)


@pytest.mark.parametrize(
    ("question", "context", "settings", "others"),
    [
        ("What else did he direct?", SAID, Settings(), True),
        ("Who besides him?", SAID, Settings(), True),
        ("Which other films did he make?", SAID, Settings(), True),
        ("What did he direct?", SAID, Settings(), False),
        ("What else is there?", Context(), Settings(), False),
        ("What else did he direct?", SAID, PAPER, False),
    ],
)
def test_words_like_else_ask_for_other_values(
    question: str, context: Context, settings: Settings, others: bool
) -> None:
    assert (
        alone(lambda run: chat.asks_for_others(question, context, run), settings=settings)[0]
        is others
    )
