"""Triplets: what the model is shown, and what its reply becomes."""

from __future__ import annotations

from triads import answered


def test_n_is_the_number_of_examples() -> None:
    for number in (1, 2, 3):
        _, model = answered(settings={"exemplars": number})
        assert model.requests[0].messages[0].content.count("Example\n") == number
