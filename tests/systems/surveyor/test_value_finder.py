"""Values, descriptions and candidates of a name, as the drafter is shown them."""

from __future__ import annotations

from surveying import (
    names_shown,
)


def test_an_exact_value_of_any_predicate_comes_first_and_likeness_of_codes_is_no_match() -> None:
    [heading, found] = names_shown("patient A-0003")
    assert heading == '"patient A-0003"'
    assert found.split()[0] == '"A-0003"' and "org:number" in found and found.endswith("org:p17")
