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
    """Return the JSON data of an answer in the form of the task's type, if it can be read so.

    A conjunction may stand between names in place of a comma. A single value stands for a list of
    it, and a text for the numbers or names in it. A dictionary is a triple by its keys, or the JSON
    text of a reply. What cannot be read is returned as it is.
    """
    if answer_type == NamedChoice and isinstance(data, str):
        for conjunction in conjunctions:
            data = data.replace(f" {conjunction} ", ",")
    fit = FITTING.get(answer_type)
    return fit(data) if fit else data


def _fit_text(data: Any) -> Any:
    """Return the text of a list of one text, and the JSON of a dictionary."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return data


def _fit_number(data: Any) -> Any:
    """Return the number that a text or a list of one value writes, with a point or a comma."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, str) and NUMBER.fullmatch(data.strip()):
        return float(data.strip().replace(",", "."))
    return data


def _fit_whole_number(data: Any) -> Any:
    """Return a number as ``_fit_number`` does, as a whole one if it is one."""
    number = _fit_number(data)
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number


def _fit_numbers(data: Any) -> Any:
    """Return a list of whole numbers from one number, or from a text with numbers in it."""
    if isinstance(data, str):
        data = NUMBER.findall(data) or data
    if isinstance(data, int | float) and not isinstance(data, bool):
        data = [data]
    if not isinstance(data, list):
        return data
    return [_fit_whole_number(item) for item in data]


def _fit_names(data: Any) -> Any:
    """Return a list of names from a text with commas; spaces and quotes around names are removed."""
    if isinstance(data, str):
        data = SEPARATORS.split(data)
    if not isinstance(data, list):
        return data
    names = [item.strip(" \"'") if isinstance(item, str) else item for item in data]
    return [name for name in names if name != ""]


def _fit_named_number(data: Any) -> Any:
    """Return a name and its number from a list in any order, a dictionary, or a text with both."""
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
    """Return a list of triples from one triple, from dictionaries, or from a reply with "triples"."""
    if isinstance(data, dict):
        data = data.get("triples") or data.get("facts") or [data]
    if not isinstance(data, list):
        return data
    if len(data) == 3 and all(isinstance(part, str) for part in data):
        data = [data]
    return [_fit_triple(triple) for triple in data]


def _fit_triple(data: Any) -> Any:
    """Return a triple as a list of its parts; other data as they are."""
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
    """Return the IRI that a text names: whole, in angle brackets, or by its end with a prefix or not.

    The end is completed by the namespace.
    """
    text = text.strip().strip("<> \"'")
    if "://" in text:
        return text
    end = text.rpartition(":")[2]
    return namespace + end.replace(" ", "_")
