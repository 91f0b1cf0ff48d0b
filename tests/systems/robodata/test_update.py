"""The state that fetches into the local graph."""

from __future__ import annotations

import pytest
from machine import answered, fetch, goes


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({}, 3),
        ({"fetched_per_node": 1}, 1),
        ({"fetched_per_node": 3}, 3),
        ({"fetched_per_use": 2}, 2),
    ],
)
def test_a_use_fetches_as_many_triples_as_the_settings_allow(
    settings: dict[str, int], rows: int
) -> None:
    update = goes("EVAL_LOCAL", fetch("orgx:director", "orgx:denis", to=True))
    run, _ = answered(update=update, settings=settings)
    fetched = run.output("fetch_relationship_to_node[turn 5/use 1]")
    assert (len(fetched.rows), fetched.found, fetched.whole) == (rows, 3, True)
    assert len(run.output("local_graph[turn 5]").support) == rows
