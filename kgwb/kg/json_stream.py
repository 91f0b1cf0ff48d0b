"""Reading a JSON text value by value, so that not all of it is in memory as Python objects.

The result of a query with many short cells takes 30 times as much memory when it is parsed whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")
_REST_OF_NUMBER = re.compile("[-+.eE0-9]*")
"""What may belong to a number, so that "1." is not read as 1 before the next digit is here."""


class JsonStream:
    """A JSON text that comes in parts, and is read from its beginning to its end.

    Its methods raise ValueError, with the place, if the text is not JSON there. As in ``json`` with
    ``strict=False``, strings may contain control characters.
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = iter(parts)
        self._text = ""
        """The parts that were taken so far, without what was read before the last one was."""
        self._position = 0
        """How much of this text is read."""
        self._dropped = 0
        """The number of characters before this text."""
        self._decoder = json.JSONDecoder(strict=False)

    def next_character(self) -> str:
        """Return the first character of what comes next, without reading it; "" at the end.

        Blanks before it are skipped. More of the text is taken if needed.
        """
        while True:
            blanks = _BLANKS.match(self._text, self._position)
            assert blanks is not None
            self._position = blanks.end()
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._take_parts():
                return ""

    def read_value(self) -> Any:
        """Read a value with all that is inside of it, and return it as Python data.

        Raises ValueError, with the position, if there is no JSON value, and RecursionError if it is
        too deep.
        """
        self.next_character()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._take_parts():  # the value may only not be here yet
                    continue
                raise self._error(error.msg, error.pos) from error
            may_go_on = _REST_OF_NUMBER.fullmatch(self._text, end)
            if may_go_on and self._take_parts():
                continue
            self._position = end
            return value

    def read_members(self) -> Iterator[str]:
        """Read a JSON object: yield the name of each member; the caller must then read its value.

        Raises ValueError, with the position, if what comes next is not an object.
        """
        for _ in self._read_parts_between("{", "}"):
            name = self.read_value()
            if not isinstance(name, str):
                raise self._error("expected a name", self._position)
            self._read_sign(":")
            yield name

    def read_items(self) -> Iterator[None]:
        """Read an array: yield before each item, which must then be read."""
        return self._read_parts_between("[", "]")

    def _read_parts_between(self, opening: str, closing: str) -> Iterator[None]:
        """Read an object or an array: yield before each part; the caller must then read that part.

        The brackets and the commas are read here. Nothing is yielded for empty brackets. Raises
        ValueError, with the position, if another character stands where one of these must.
        """
        self._read_sign(opening)
        if self.next_character() == closing:
            self._position += 1
            return
        while True:
            yield
            if self._read_sign(",", closing) == closing:
                return

    def read_end(self) -> None:
        """Raise ValueError unless the whole text was read."""
        if self.next_character():
            raise self._error("expected the end", self._position)

    def _read_sign(self, *allowed: str) -> str:
        """Read one of these signs, and return it. Raises ValueError for any other character.

        Blanks before it are skipped.
        """
        sign = self.next_character()
        if sign not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise self._error(f"expected {expected}", self._position)
        self._position += 1
        return sign

    def _take_parts(self) -> bool:
        """Take as many parts as double what is not read yet, at least one; drop what is read.

        Doubling keeps the time in proportion to the length, since a value that is longer than a part
        is read anew each time. Returns False if there is no part left.
        """
        unread = self._text[self._position :]
        taken = [unread]
        size = 0
        for part in self._parts:
            taken.append(part)
            size += len(part)
            if part and size >= len(unread):
                break
        if size == 0:
            return False
        self._dropped += self._position
        self._text = "".join(taken)
        self._position = 0
        return True

    def _error(self, problem: str, position: int) -> ValueError:
        """Return an error with the problem and its place in the whole text, counted from 1."""
        place = self._dropped + position + 1
        return ValueError(f"{problem} at character {place:,}")
