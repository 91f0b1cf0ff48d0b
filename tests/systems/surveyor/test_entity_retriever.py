"""The vertices found for a name: which longer names stay beside an exact one."""

from __future__ import annotations

import pytest
from surveying import (
    WARD,
    names_shown,
)


@pytest.mark.parametrize(("classes", "found"), [([], ["n", "d"]), (["Ship"], ["n", "d", "s"])])
def test_an_exact_name_does_not_hide_a_longer_one_of_the_same_kind(
    classes: list[str], found: list[str]
) -> None:
    [_, *lines] = names_shown("Anna Keller", data=WARD, classes=classes)
    assert [line.split()[0] for line in lines] == [f"org:{each}" for each in found]
