"""Sums and averages of SQL, computed with the decimal numbers of the graph.

SQLite adds numbers in binary, so that two averages which are level in the graph may come out as
0.962 and 0.9620000000000001. A comparison in a query then loses one of them.
"""

from __future__ import annotations

import re
import sqlite3
from decimal import Context, Decimal

CONTEXT = Context(prec=60, traps=[])
"""The sums of any numbers in a graph are exact with so many digits. No computation raises an error."""
INTEGER_LIMIT = 2**63
"""SQLite has no integers from here on."""
NUMBER_AT_START = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
INTEGER = re.compile(r"\s*[-+]?\d{1,18}\s*")
Cell = float | str | bytes | None
"""A value that SQLite passes to a function."""


class DecimalSum:
    """The sum of a group or of a window, as SQLite's sum(): NULL if there is no number."""

    def __init__(self) -> None:
        self._total = Decimal(0)
        self._count = 0
        self._fractions = 0
        """The values that are no integers. Without any, the result is an integer."""

    def step(self, cell: Cell) -> None:
        """Add a value, unless it is NULL."""
        self._change(cell, 1)

    def inverse(self, cell: Cell) -> None:
        """Take out a value that left the window."""
        self._change(cell, -1)

    def _change(self, cell: Cell, sign: int) -> None:
        if cell is None:
            return
        number = parse_number(cell)
        signed = CONTEXT.multiply(number_to_decimal(number), Decimal(sign))
        self._total = CONTEXT.add(self._total, signed)
        self._count += sign
        if isinstance(number, float):
            self._fractions += sign

    def value(self) -> float | None:
        """Return the present result."""
        if not self._count:
            return None
        if not self._fractions and abs(self._total) < INTEGER_LIMIT:
            return int(self._total)
        return float(self._total)

    def finalize(self) -> float | None:
        """Return the result of a whole group."""
        return self.value()


class DecimalAverage(DecimalSum):
    """The average as SQLite's avg(): NULL if there is no number."""

    def value(self) -> float | None:
        """Return the present result."""
        if not self._count:
            return None
        return float(CONTEXT.divide(self._total, Decimal(self._count)))


def parse_number(cell: float | str | bytes) -> float:
    """Return a value as the number for which SQLite's sum() takes it: "125 kW" is 125.0, other texts are 0.0."""
    if isinstance(cell, int | float):
        return cell
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
    if isinstance(cell, str) and INTEGER.fullmatch(text):
        return int(text)
    match = NUMBER_AT_START.match(text)
    return float(match[1]) if match else 0.0


def number_to_decimal(number: float) -> Decimal:
    """Return a number with the digits by which it is written: 0.1 and not 0.1000000000000000055."""
    return Decimal(repr(number))


def use_decimal_sums(connection: sqlite3.Connection) -> None:
    """Replace the functions sum and avg of a connection, also as window functions."""
    connection.create_window_function("sum", 1, DecimalSum)
    connection.create_window_function("avg", 1, DecimalAverage)
