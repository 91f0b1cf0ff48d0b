"""A hop: names in the walk, heads that stay, and the ablations."""

import pytest
from small import iri

from kgwb.run.answers import Value
from kgwb.systems.dog.records import (
    combine_names,
)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["Dune"], "Dune"),
        (["A", "B"], "A | B"),
        (["A", "B", "C"], "A | 2 others"),
        (["[REC|2]"], "(REC/2)"),
    ],
)
def test_several_vertices_have_one_name_in_a_question(names: list[str], shown: str) -> None:
    assert combine_names([Value(iri("x"), name) for name in names]) == shown
