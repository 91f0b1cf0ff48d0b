"""Classifier: asked about the question alone, and only where there is something to refer to."""

from __future__ import annotations

import pytest
from small import PAPER, alone

from kgwb.flow import Context, Turn
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.chat import classify
from kgwb.systems.chatty_kg.records import Classified

REPLY = {"classifier": {"reason": "elliptical", "label": "dependent"}}
TALKED = Context((Turn("Who directed Dune?", ("Denis Villeneuve",)),))


@pytest.mark.parametrize(
    ("context", "settings", "calls"),
    [(Context(), Settings(), 0), (TALKED, Settings(), 1), (Context(), PAPER, 1), (TALKED, PAPER, 1)],
)
def test_without_history_fast_does_not_ask(context: Context, settings: Settings, calls: int) -> None:
    classified, _, model = alone(
        lambda run: classify("And the year?", context, run), REPLY, settings=settings
    )
    assert model.calls() == calls
    alone_by_rule = Classified("self-contained", "nothing was said before")
    assert classified == (Classified("dependent", "elliptical") if calls else alone_by_rule)


def test_the_model_does_not_see_the_dialogue() -> None:
    _, _, model = alone(lambda run: classify("And the year?", TALKED, run), REPLY)
    assert model.requests[0].variables == {"question": "And the year?"}
    assert "Villeneuve" not in str(model.requests[0].messages)


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("Where was he born?", 0),
        ("When did it come out?", 0),
        ("Who is Denis Villeneuve, and where was he born?", 1),
        ("Who wrote 1984, and was it filmed?", 1),
        ("When was the first movie released?", 1),
    ],
)
def test_a_pronoun_before_any_name_leaves_no_doubt(question: str, calls: int) -> None:
    classified, _, model = alone(lambda run: classify(question, TALKED, run), REPLY)
    assert (classified.label, model.calls()) == ("dependent", calls)
    assert alone(lambda run: classify(question, TALKED, run), REPLY, settings=PAPER)[2].calls() == 1
