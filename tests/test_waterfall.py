"""Where the time of a run went."""

from __future__ import annotations

import pytest
from small import DIRECTED, chatty

from kgwb.llm import Scripted
from kgwb.render.waterfall import seconds, spent, waterfall


def test_the_time_of_a_step_is_told_without_that_of_the_steps_it_supervises() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED, delay_s=0.02)).go()
    rows = {row.key: row for row in spent(run.steps, run.calls)}
    assert 0.02 <= rows["qir"].model < run["qir"].seconds
    assert rows["query_planning"].total < run["query_planning"].seconds / 2
    assert (rows["query_planning"].depth, rows["matching"].depth) == (0, 1)
    assert sum(row.total for row in rows.values()) == pytest.approx(run.totals.seconds, rel=0.2)


def test_calls_from_the_record_count_as_they_did_when_they_were_made() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED, delay_s=0.02)).go().go()
    [row] = [row for row in spent(run.steps, run.calls) if row.key == "qir"]
    assert row.recorded
    assert row.model >= 0.02


def test_bars_carry_their_kind_as_text_too() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    drawn = waterfall(run.steps, run.calls)
    assert "model (M)" in drawn
    assert 'class="kgwb-span kgwb-graph"' in drawn
    assert waterfall([], {}) == ""


@pytest.mark.parametrize(("value", "said"), [(0.0004, "0.4 ms"), (0.038, "38 ms"), (1.2, "1.20 s")])
def test_times_are_readable(value: float, said: str) -> None:
    assert seconds(value) == said
