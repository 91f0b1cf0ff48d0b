"""The state that judges the local graph."""

from __future__ import annotations

import pytest
from machine import answered
from small import asked


@pytest.mark.parametrize(("room", "is_looked_into"), [(0, True), (1, False)])
def test_a_graph_fits_if_it_has_fewer_characters_than_are_shown(
    room: int, is_looked_into: bool
) -> None:
    whole = answered()[0].output("local_graph[turn 5]")
    chars = sum(map(len, whole.format_lines()))
    _, model = answered(settings={"shown_chars": chars + room})
    assert ("local" in asked(model)) == is_looked_into
