"""The claims fit the settings, and docs/profiles.md has them."""

from __future__ import annotations

import pytest

from conformance.table import (
    PROFILES_PAGE,
    claims_of_system,
    mutations_of_system,
    page_with_tables,
    systems_with_claims,
)
from kgwb.run.systems import load_system

ROOT = PROFILES_PAGE.parents[1]


def test_the_page_on_profiles_has_the_claims_of_the_tests() -> None:
    text = PROFILES_PAGE.read_text(encoding="utf-8")
    assert page_with_tables(text) == text, "run: python tests/conformance/table.py --write"
    assert all(f"<!-- claims: {name} -->" in text for name in systems_with_claims())


@pytest.mark.parametrize("name", systems_with_claims())
def test_each_setting_that_a_profile_changes_has_a_claim_and_switches_what_it_says(
    name: str,
) -> None:
    settings_class = load_system(name).settings
    claims = [claim for claim, _ in claims_of_system(name)]
    named = {claim.setting for claim in claims if claim.setting}
    assert named <= set(settings_class.setting_names())
    for changes in settings_class.profile_changes().values():
        assert set(changes) <= named
    for claim in claims:
        differs_from_fast = claim.setting in settings_class.PAPER
        assert not (claim.fast and claim.setting) or differs_from_fast, claim
    assert len({claim.source + claim.paper for claim in claims}) == len(claims)


@pytest.mark.parametrize("name", systems_with_claims())
def test_what_would_violate_a_claim_stands_once_in_its_file(name: str) -> None:
    for mutation in mutations_of_system(name):
        text = (ROOT / mutation.path).read_text(encoding="utf-8")
        assert text.count(mutation.old) == 1, mutation
        assert mutation.new != mutation.old, mutation
