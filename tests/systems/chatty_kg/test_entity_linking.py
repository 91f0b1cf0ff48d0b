"""Entity linking: a name is linked to a vertex, else to a text of the graph."""

import pytest
from rdflib import Literal
from small import (
    films,
)

from kgwb.kg.queries import find_literal


@pytest.mark.parametrize(
    ("words", "value"),
    [("True", Literal(True)), ("yes", None), ("harbour master", Literal("Harbour Master"))],
)
def test_a_value_is_found_by_its_words(words: str, value: Literal | None) -> None:
    kg = films('@prefix : <http://example.org/> . :b :shorePower true ; :led "Harbour Master" .')
    assert find_literal(kg, words) == value
