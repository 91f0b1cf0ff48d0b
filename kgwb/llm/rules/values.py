"""The kind of value that a question asks for, and the kind of value that a predicate has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rdflib import Literal

from kgwb.llm.rules.grammar import expected_value_type
from kgwb.llm.rules.words import Words
from kgwb.terms import Term

YEAR_OR_DATE = re.compile(r"-?\d{4}(-\d\d){0,2}([T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
YEAR_WORD = re.compile(r"\b\d{4}\b")
TIME_NAME = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|^(january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b\d\d?[:.]\d\d\b|^(spring|summer|autumn|winter)$",
    re.I,
)
"""A text that says when something is: a day of the week, a month, a time of day, a season."""
NUMBER = re.compile(r"[-+]?\d[\d.,]*")
WHO_WORDS = frozenset(("who", "whom", "who's", "whose"))
MEASURED_WORDS = frozenset(
    "big cold deep far fast heavy high hot large long many much old small steep tall thick warm wide".split()
)
"""Words that ask for a number after "how"."""


def describe_wrong_kind(words: Words, values: Sequence[Term]) -> str:
    """Return the kind of value that the question asks for if no value can be of it, else "".

    The kinds are those of ``asked_kind``. A time is a literal that is one, a number a literal with
    a digit. An IRI can be a place or a person. Of literals, a place can be any but times, numbers
    and truth values, and a person those of them with a capital letter. "" also without values.
    """
    if not values:
        return ""
    kind = asked_kind(words)
    literals = [value for value in values if isinstance(value, Literal)]
    has_only_literals = len(literals) == len(values)
    if kind == "a time" and not any(map(is_time, literals)):
        return kind
    if kind == "a number" and not any(map(has_number, literals)):
        return kind
    if kind == "a place" and has_only_literals and all(map(_is_measure, literals)):
        return kind
    if kind == "a person" and has_only_literals and not any(map(_is_written_like_name, literals)):
        return kind
    return ""


def asked_kind(words: Words) -> str:
    """Return "a time", "a place", "a person" or "a number", as the question words ask; else "".

    "How many" gives "": it may count things.
    """
    value_type, place = expected_value_type(words)
    if value_type == "date":
        return "a time"
    for position, word in enumerate(words[:-1]):
        following = words[position + 1]
        if word == "how" and following in MEASURED_WORDS and following != "many":
            return "a number"
    if value_type == "place" and not place:
        return "a place"
    if words and not WHO_WORDS.isdisjoint(words[:2]):
        return "a person"
    return ""


def is_time(value: Literal) -> bool:
    """Return whether a literal is a time, by its datatype or its text.

    Texts are dates, years, and what TIME_NAME finds.
    """
    datatype_iri = str(value.datatype or "").casefold()
    _, _, datatype = datatype_iri.rpartition("#")
    if datatype.startswith(("date", "time", "g")):
        return True
    text = str(value).strip()
    if YEAR_OR_DATE.fullmatch(text):
        return True
    is_text = datatype in ("", "string", "langstring")
    if not is_text:
        return False
    return YEAR_WORD.search(text) is not None or TIME_NAME.search(text) is not None


def has_number(value: Literal) -> bool:
    """Return whether the text of a literal has a digit."""
    return any(character.isdigit() for character in str(value))


def _is_measure(value: Literal) -> bool:
    """Return whether a literal is a time, a number or a truth value."""
    if is_time(value):
        return True
    text = str(value).strip()
    is_truth = text.casefold() in ("true", "false")
    return is_truth or NUMBER.fullmatch(text) is not None


def _is_written_like_name(value: Literal) -> bool:
    """Return whether a literal is a text that has a capital letter, as the names of people have."""
    if _is_measure(value):
        return False
    text = str(value)
    return text != text.casefold()
