"""Forms of answers: what a student may reasonably write for a value of the task's type."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

NumberedChoice = Sequence[int]
"""Numbers of the options that a student chose."""
NamedChoice = list[str]
"""Names of the options that a student chose."""
NamedNumber = tuple[str, float]
"""A name, and a number about it."""
AnswerTriples = Sequence[tuple[str, str, str]]
"""Triples as students write them: subject, relation and object, with unknowns as "?x"."""

EXAMPLES: dict[Any, str] = {
    NumberedChoice: "example.numbers",
    NamedChoice: "example.names",
    NamedNumber: "example.named-number",
    AnswerTriples: "example.triples",
    float: "example.number",
    int: "example.whole-number",
    str: "example.text",
}
"""The key of the text that shows how an answer of each type is written."""
SEPARATORS = re.compile(r"[,;\n]")
NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
TRIPLE_FIELDS = (("subject",), ("predicate", "relation", "property"), ("object",))
"""The keys that the parts of a triple may have in a dictionary."""


def fit_form(data: Any, answer_type: Any, conjunctions: Sequence[str] = ()) -> Any:
    """Convert the JSON data of an answer to the form of the task's type, and return them.

    A text may be given for the numbers or names in it, and a single value for a list of it. For
    names, each of ``conjunctions`` ("and") counts as a comma. A dictionary is read as a triple by
    its keys, or, where a text is expected, as the JSON of a reply. What cannot be read, and data of
    any other type, are returned unchanged.
    """
    if answer_type == NamedChoice and isinstance(data, str):
        for conjunction in conjunctions:
            data = data.replace(f" {conjunction} ", ",")
    fit = FITTING.get(answer_type)
    return fit(data) if fit else data


def _fit_text(data: Any) -> Any:
    """Return the text of a list that has one item, or a dictionary written as JSON; other data unchanged."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return data


def _fit_number(data: Any) -> Any:
    """Return the number that a text, or a list of one value, writes with a point or a comma.

    A number in text becomes a float. What is not a number is returned unchanged, but out of a list
    of one.
    """
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, str) and NUMBER.fullmatch(data.strip()):
        return float(data.strip().replace(",", "."))
    return data


def _fit_whole_number(data: Any) -> Any:
    """Convert data as ``_fit_number`` does, and return a float without a fraction as an int."""
    number = _fit_number(data)
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number


def _fit_numbers(data: Any) -> Any:
    """Return a list of whole numbers from one number, from a list, or from all numbers in a text.

    Other data, and items that are no numbers, are returned unchanged.
    """
    if isinstance(data, str):
        data = NUMBER.findall(data) or data
    if isinstance(data, int | float) and not isinstance(data, bool):
        data = [data]
    if not isinstance(data, list):
        return data
    return [_fit_whole_number(item) for item in data]


def _fit_names(data: Any) -> Any:
    """Return a list of names from a text that separates them by commas, semicolons or new lines.

    Spaces and quotes around names are removed, also from the items of a list, and empty names left
    out. Data that are neither text nor list are returned unchanged.
    """
    if isinstance(data, str):
        data = SEPARATORS.split(data)
    if not isinstance(data, list):
        return data
    names = [item.strip(" \"'") if isinstance(item, str) else item for item in data]
    return [name for name in names if name != ""]


def _fit_named_number(data: Any) -> Any:
    """Return [name, number] from a list in either order, a dictionary with one entry, or a text with both.

    In a text the name is what is left without its only number. A whole number becomes a float. Data
    of any other form are returned unchanged.
    """
    if isinstance(data, dict) and len(data) == 1:
        data = list(*data.items())
    if isinstance(data, str):
        numbers = NUMBER.findall(data)
        if len(numbers) != 1:
            return data
        data = [data.replace(numbers[0], "").strip(" ,:;=()\"'"), numbers[0]]
    if not isinstance(data, list) or len(data) != 2:
        return data
    first, second = data
    if not isinstance(first, str):
        first, second = second, first
    number = _fit_number(second)
    if isinstance(number, int) and not isinstance(number, bool):
        number = float(number)
    return [first, number]


def _fit_triples(data: Any) -> Any:
    """Return a list of triples from one triple, a dictionary, a list, or a reply with "triples" or "facts".

    Each triple becomes a list of its parts. Data that are neither dictionary nor list are returned
    unchanged.
    """
    if isinstance(data, dict):
        data = data.get("triples") or data.get("facts") or [data]
    if not isinstance(data, list):
        return data
    if len(data) == 3 and all(isinstance(part, str) for part in data):
        data = [data]
    return [_fit_triple(triple) for triple in data]


def _fit_triple(data: Any) -> Any:
    """Return a dictionary as the list of its subject, predicate and object; other data unchanged.

    The keys are those of TRIPLE_FIELDS. A part whose key is missing is left out of the list.
    """
    if not isinstance(data, dict):
        return data
    parts = []
    for keys in TRIPLE_FIELDS:
        parts += [data[key] for key in keys if key in data]
    return parts


FITTING = {
    str: _fit_text,
    float: _fit_number,
    int: _fit_whole_number,
    NumberedChoice: _fit_numbers,
    NamedChoice: _fit_names,
    NamedNumber: _fit_named_number,
    AnswerTriples: _fit_triples,
}
"""How the data of each type of answer are read."""


def to_name(text: str) -> str:
    """Return a name of a system or an agent as code writes it: "Chatty-KG" is "chatty_kg"."""
    return re.sub(r"[\W_]+", "_", text.strip().casefold()).strip("_")


def expand_iri(text: str, namespace: str) -> str:
    """Return the IRI that a text stands for; angle brackets, quotes and spaces around it are removed.

    A text with "://" is a whole IRI. Otherwise its prefix up to the last ":" is dropped, spaces
    become "_", and the namespace is put before it.
    """
    text = text.strip().strip("<> \"'")
    if "://" in text:
        return text
    end = text.rpartition(":")[2]
    return namespace + end.replace(" ", "_")
