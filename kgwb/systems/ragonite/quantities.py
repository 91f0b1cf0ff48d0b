"""Numbers, ranges and units in the literals of a graph."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from rdflib import XSD, Literal

from kgwb.build import Term

NUMERIC_DATATYPES = {
    XSD[name]
    for name in "integer int long short byte decimal double float gYear nonNegativeInteger".split()
}
NUMBER = r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?"
"""A number without leading zeros: "007" is a text."""
QUANTITY = re.compile(rf"({NUMBER})(?:\s?[-–]\s?({NUMBER}))?\s?([^\W\d_]{{1,6}}|[%°€$£])?")
"""A number or a range of two numbers, with or without a unit."""
NUMBER_LIMIT = 2**63
"""SQLite has no integers from here on."""


class Quantity(NamedTuple):
    """A range of numbers with a unit. Both ends of a single number are the same."""

    low: float
    high: float
    unit: str
    """Empty if there is none."""


def parse_quantity(value: Term) -> Quantity | None:
    """Return the number or range in a literal, with its unit: "95-130", "4 m", or 2001 as an integer.

    Plain texts and literals of the NUMERIC_DATATYPES are read. None for other terms, for a text
    that is not a quantity, for NaN, for a range whose end is below its start, and for numbers that
    SQLite cannot store as integers. Both ends of a single number are the same. The unit is "" if
    there is none.
    """
    if not isinstance(value, Literal) or value.language:
        return None
    is_numeric = value.datatype in NUMERIC_DATATYPES
    if not is_numeric and value.datatype not in (None, XSD.string):
        return None
    match = QUANTITY.fullmatch(value)
    if match:
        low = _parse_number(match[1])
        high = _parse_number(match[2] or match[1])
        is_storable = -NUMBER_LIMIT < low <= high < NUMBER_LIMIT
        return Quantity(low, high, match[3] or "") if is_storable else None
    if is_numeric:
        with suppress(ValueError):
            number = float(value)  # in a form that QUANTITY does not have, such as 1e5
            if abs(number) < NUMBER_LIMIT:
                return Quantity(number, number, "")
    return None


def _parse_number(text: str) -> float:
    """Return an int, or a float if the text has a decimal point."""
    return float(text) if "." in text else int(text)
