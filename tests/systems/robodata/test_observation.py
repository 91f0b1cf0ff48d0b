"""The advice of metacognition."""

from __future__ import annotations

from kgwb.systems.robodata.records import Observation


def test_the_text_of_an_observation_is_its_advice_else_its_judgement() -> None:
    texts = [str(Observation("s", "sound", advice)) for advice in ("fetch more", "")]
    assert texts == ["fetch more", "sound"]
