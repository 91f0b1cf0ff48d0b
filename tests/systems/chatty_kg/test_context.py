"""The chat agent keeps the first answers of each earlier turn."""

import pytest
from small import alone

from kgwb import profile
from kgwb.run.answers import Dialogue, Turn
from kgwb.systems.chatty_kg import chat

TURN = Turn("Which films did Denis Villeneuve direct?", ("Arrival", "Dune", "Sicario"))


@pytest.mark.parametrize(
    ("most", "kept", "cut"),
    [(3, ("Arrival", "Dune", "Sicario"), 0), (2, ("Arrival", "Dune"), 2)],
)
def test_the_context_holds_every_turn_with_at_most_l_answers(
    most: int, kept: tuple[str, ...], cut: int
) -> None:
    settings = profile("fast", answers_in_context=most)
    context, run, _ = alone(
        lambda run: chat.build_context(Dialogue((TURN, TURN)), run), settings=settings
    )
    assert [turn.answers for turn in context.turns] == [kept, kept]
    assert context.cut == cut
    assert bool(run["context"].notes) == bool(cut)
