"""Text for people: numbers with their nouns, lists that are cut, names that differ where they stand
side by side, and text that is safe to print."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

H = TypeVar("H", bound=Hashable)

MAX_LABEL_CHARS = 300
"""Characters shown of a label or a literal."""
CONTROL_CHARACTERS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Invisible characters that control a terminal or the text direction; not tab and newline."""
PLURAL_ENDINGS = {"ex": "ices", "y": "ies", "ch": "ches", "ss": "sses"}
"""Plural endings by the endings of nouns; other nouns get an "s"."""


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, singular or plural: "1 query", "2 queries", "1,000 films".

    0 is plural. Thousands have commas.
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun}s"
    for ending, plural_ending in PLURAL_ENDINGS.items():
        if noun.endswith(ending):
            plural = noun.removesuffix(ending) + plural_ending
            break
    return f"{number:,} {plural}"


def and_more(number: int) -> str:
    """Return "and 3 more"; an empty text if the number is 0 or less."""
    if number <= 0:
        return ""
    return f"and {number:,} more"


def first_items(items: Sequence[Any], limit: int, to_text: Callable[[Any], str] = str) -> list[str]:
    """Return at most ``limit`` items as texts; if there are more, also the text "and 4 more"."""
    texts = []
    for item in items[:limit]:
        texts.append(to_text(item))
    omitted_count = len(items) - limit
    if omitted_count > 0:
        texts.append(and_more(omitted_count))
    return texts


def list_first(items: Iterable[Any], limit: int = 5) -> str:
    """Return at most ``limit`` items in one line, and how many more: "a, b, and 4 more"."""
    known_items = list(items)
    shown = first_items(known_items, limit)
    return ", ".join(shown)


def list_within(items: Sequence[str], max_chars: int) -> str:
    """Return the first items that fit into ``max_chars``, and how many there are in all.

    "a, b, … (59 in all)": the text is cut between items. All items are returned if they fit. An item
    that does not fit alone is shortened.
    """
    text = ", ".join(items)
    if len(text) <= max_chars:
        return text
    shown: list[str] = []
    size = 0
    for item in items:
        size += len(item) + len(", ")
        if size > max_chars:
            break
        shown.append(item)
    if not shown:
        shown = [shorten(items[0], max_chars)]
    if len(shown) < len(items):
        count = len(items)
        shown.append(f"… ({count:,} in all)")
    return ", ".join(shown)


def common_prefix_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return how many items, or characters, at the beginning of two sequences are equal.

    It is the shorter length at most.
    """
    length = 0
    for item, other in zip(first, second, strict=False):
        if item != other:
            break
        length += 1
    return length


def shorten(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return the text; if it has more than ``limit`` characters, its beginning and its length.

    For example "Once upon… (1,000,000 letters)".
    """
    length = len(text)
    if length <= limit:
        return text
    beginning = text[:limit]
    return f"{beginning}… ({length:,} letters)"


def shorten_at_word(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return the text; if it has more than ``limit`` characters, its first words and "…".

    A word that is longer than a fifth of the limit may be cut.
    """
    if len(text) <= limit:
        return text
    words = text[:limit]
    end = words.rfind(" ")
    if end > limit * 4 // 5:
        words = words[:end]
    words = words.rstrip(" ,;:")
    return f"{words} …"


def tell_apart(
    items: Iterable[H], forms: Sequence[Callable[[H], str]], *, fold_case: bool = False
) -> dict[H, str]:
    """Return a text for each item, such that texts that are shown together do not look the same.

    ``forms`` are functions from an item to a text, from short to long. An item has the first form
    in which it looks like no other item; items that look the same go on to the next form together.
    The last form should differ for all items: if two still look the same in it, both keep it. Texts
    look the same if they differ only in Unicode's normal form (NFC), white space and invisible
    characters, and with ``fold_case`` also in letter case.
    """
    form_numbers = dict.fromkeys(items, 0)
    last_number = len(forms) - 1
    while True:
        texts = {}
        items_by_look: dict[str, list[H]] = defaultdict(list)
        for item, number in form_numbers.items():
            text = forms[number](item)
            texts[item] = text
            look = look_of(text)
            if fold_case:
                look = look.casefold()
            items_by_look[look].append(item)

        unclear: list[H] = []
        for alike in items_by_look.values():
            if len(alike) == 1:
                continue
            for item in alike:
                if form_numbers[item] < last_number:
                    unclear.append(item)
        if not unclear:
            return texts
        for item in unclear:
            form_numbers[item] += 1


def look_of(text: str) -> str:
    """Return a text as it looks: NFC, no format characters, one space for any white space."""
    if not text.isascii():
        composed = unicodedata.normalize("NFC", text)
        visible = [char for char in composed if unicodedata.category(char) != "Cf"]
        text = "".join(visible)
    words = text.split()
    return " ".join(words)


def shortest_distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return for each path its last parts, as few as tell it apart from all other paths.

    "p" is enough for "a/p" beside "a/q"; beside "c/p" it is "a/p". A path that is there twice has
    the same name twice.
    """
    depth = 0
    for path in paths:
        part_count = len(path.parts)
        depth = max(depth, part_count)
    forms = []
    for count in range(1, depth + 1):
        form = partial(_last_parts, count=count)
        forms.append(form)
    names = tell_apart(paths, forms)
    return [names[path] for path in paths]


def _last_parts(path: Path, count: int) -> str:
    """Return the last parts of a path; the whole path if it has no more parts."""
    parts = path.parts
    if count >= len(parts):
        return str(path)
    last_parts = Path(*parts[-count:])
    return str(last_parts)


def display_name(name: str) -> str:
    """Return the name of an agent or a field as words: "vertex_selection" is "vertex selection"."""
    return name.replace("_", " ")


def format_seconds(seconds: float) -> str:
    """Return a duration rounded for people: "0.4 ms", "38 ms", "1.2 s", "1,234.5 s".

    It is in seconds from 1 s on, with one decimal. Milliseconds have a decimal below 10 ms. What
    would be shown as 0.0 ms is "0 ms".
    """
    if seconds < 0.00005:
        return "0 ms"
    if seconds >= 0.9995:
        return f"{seconds:,.1f} s"
    milliseconds = seconds * 1000
    if milliseconds >= 9.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds:.1f} ms"


def remove_controls(text: str) -> str:
    """Return the text with "�" for control characters and "?" for lone surrogates.

    Tabs and newlines stay; other line ends become newlines. The text may come from a graph, a model
    or a server. Printed as it is, it could control a terminal.
    """
    unix_lines = re.sub("\r\n?", "\n", text)
    printable = CONTROL_CHARACTERS.sub("�", unix_lines)
    encoded = printable.encode("utf-8", "replace")
    return encoded.decode()


def single_line(value: object) -> str:
    """Return the text of a value on one line, without control characters."""
    words = str(value).split()
    return remove_controls(" ".join(words))


def source_name(source: str) -> str:
    """Return the name of a graph for people: a whole URL, or the last part of a path."""
    text = single_line(source)
    if "://" in text:
        return text
    return PurePath(text).name or text
