"""What the tests of all papers' claims share."""

import pytest


@pytest.fixture(params=("paper", "reference", "fast"))
def name(request: pytest.FixtureRequest) -> str:
    """The name of a profile: a test that asks for it is made in each of them."""
    return str(request.param)
