"""The chat agent keeps the first answers of each earlier turn."""

from small import alone

from kgwb import profile
from kgwb.run.answers import Dialogue, Turn
from kgwb.systems.chatty_kg import chat

TURN = Turn("Which films did Denis Villeneuve direct?", ("Arrival", "Dune", "Sicario"))


def test_the_context_notes_what_it_leaves_out() -> None:
    context, run, _ = alone(
        lambda run: chat.build_context(Dialogue((TURN, TURN)), run),
        settings=profile("fast", answers_in_context=2),
    )
    assert context.cut == 2
    assert run["context"].notes
