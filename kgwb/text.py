"""Text for people: numbers with their nouns, lists that are cut, and text that is safe to print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MAX_LABEL_CHARS = 300
"""Characters shown of a label or a literal."""
CONTROL_CHARACTERS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that are not seen but act on what is: on a terminal, or on the text direction."""
PLURAL_ENDINGS = {"ex": "ices", "y": "ies", "ch": "ches", "ss": "sses"}


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: "1 query", "2 queries"."""
    if number == 1:
        return f"{number:,} {noun}"
    for ending, plural in PLURAL_ENDINGS.items():
        if noun.endswith(ending):
            return f"{number:,} {noun.removesuffix(ending)}{plural}"
    return f"{number:,} {noun}s"


def and_more(number: int) -> str:
    """Return "and 3 more"; an empty text if the number is 0 or less."""
    return f"and {number:,} more" if number > 0 else ""


def first_items(items: Sequence[Any], limit: int, to_text: Callable[[Any], str] = str) -> list[str]:
    """Return the first items as texts, and as the last text how many more there are."""
    texts = [to_text(item) for item in items[:limit]]
    if len(items) > limit:
        texts.append(and_more(len(items) - limit))
    return texts


def list_first(items: Iterable[Any], limit: int = 5) -> str:
    """Return the first items in one line: "a, b, c, and 4 more"."""
    return ", ".join(first_items(list(items), limit))


def shorten(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return the text, or its beginning with its length: "Once upon… (1,000,000 letters)"."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} letters)"


def display_name(name: str) -> str:
    """Return the name of an agent or a field as words: "vertex_selection" is "vertex selection"."""
    return name.replace("_", " ")


def format_seconds(seconds: float) -> str:
    """Return a duration with at most three figures: "0.4 ms", "38 ms", "1.2 s"."""
    if seconds < 0.00005:
        return "0 ms"
    if seconds >= 0.9995:
        return f"{seconds:,.1f} s"
    milliseconds = seconds * 1000
    if milliseconds >= 9.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds:.1f} ms"


def remove_controls(text: str) -> str:
    """Replace control characters, except tab and line end, and lone surrogates by "�" or "?".

    The text may come from a graph, a model or a server. Printed as it is, it could control a
    terminal.
    """
    unix_lines = re.sub("\r\n?", "\n", text)
    return CONTROL_CHARACTERS.sub("�", unix_lines).encode("utf-8", "replace").decode()


def single_line(value: object) -> str:
    """Return the text of a value on one line, without control characters."""
    return remove_controls(" ".join(str(value).split()))
