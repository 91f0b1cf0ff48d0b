"""What systems share about queries: which terms are numbers."""

import pytest
from rdflib import XSD, Literal, URIRef

from kgwb.run.queries import is_number
from kgwb.terms import Term


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Literal(30), True),
        (Literal("2.5", datatype=XSD.decimal), True),
        (Literal("38000"), True),
        (Literal("1,234,567"), True),
        (Literal("-0.5"), True),
        (Literal("1,2"), False),
        (Literal("20 kg"), False),
        (Literal(""), False),
        (Literal(True), False),
        (Literal("2001-07-20", datatype=XSD.date), False),
        (URIRef("http://example.org/30"), False),
    ],
)
def test_a_number_has_a_number_as_value_or_is_written_like_one(term: Term, expected: bool) -> None:
    assert is_number(term) is expected
