"""Triplets: what the model is shown, and what its reply becomes."""

from typing import Any

import pytest
from triads import answered, requests_of, triplets

MOST = [f"Dune | {number} | ?x" for number in range(8)]


@pytest.mark.parametrize(
    ("parts", "read"),
    [
        (["Dune |  directed   by | ?x", "Dune | directed by | ?x"], ["⟨Dune, directed by, ?x⟩"]),
        (["Dune | by | ?x", "dune | by | ?x"], ["⟨Dune, by, ?x⟩", "⟨dune, by, ?x⟩"]),
        (MOST, [f"⟨Dune, {number}, ?x⟩" for number in range(8)]),
        ([*MOST, "Dune | 8 | ?x"], None),
        (["?y | directed by | ?x"], None),
        (["Dune | | ?x"], None),
        (["Dune | directed by | ?x | then"], None),
    ],
)
def test_a_reply_becomes_distinct_triplets_or_is_sent_back(
    parts: list[str], read: list[str] | None
) -> None:
    good: Any = triplets("Arrival | directed by | ?x")
    run, model = answered(triplets=[triplets(*parts), good], settings={"tries": 1})
    found = list(map(str, run.output("triplets[try 1/parsing]")))
    assert found == (read or ["⟨Arrival, directed by, ?x⟩"])
    assert len(requests_of(model, "triplets")) == (1 if read else 2)
