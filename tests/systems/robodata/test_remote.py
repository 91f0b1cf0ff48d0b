"""The state that looks into the remote graph."""

from __future__ import annotations

import pytest
from machine import (
    answered,
    goes,
    search,
)

from kgwb.errors import InvalidReplyError


def test_too_many_tool_uses_are_not_accepted() -> None:
    with pytest.raises(InvalidReplyError, match="more than 2"):
        answered(remote=goes("REMOTE", *[search()] * 3), settings={"tool_uses": 2})
