"""The state of an answer: right, wrong, in doubt, given, ... One mechanism for everything that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rdflib import Literal

from kgwb.flow import Answer, Value, was_graph_asked
from kgwb.run.gold import RightAnswer
from kgwb.text import first_items, shorten

RIGHT = "right"
WRONG = "wrong"
UNANSWERED = "unanswered"
ERROR = "error"
IN_DOUBT = "in doubt"
OWN_KNOWLEDGE = "own knowledge"
GIVEN = "given"
ANSWER_STATE_ICONS = {
    RIGHT: "ok",
    WRONG: "bad",
    UNANSWERED: "none",
    ERROR: "bad",
    IN_DOUBT: "doubt",
    OWN_KNOWLEDGE: "doubt",
    GIVEN: "given",
}
"""The states of an answer, each with the icon that shows it. The icon decides the colour.

Only what gold says is right is green. What is merely answered is neutral.
"""
ANSWER_STATE_LABELS = {
    RIGHT: "Right",
    WRONG: "Wrong",
    UNANSWERED: "Not in this graph",
    ERROR: "Failed",
    IN_DOUBT: "In doubt",
    OWN_KNOWLEDGE: "Not grounded",
    GIVEN: "Answered",
}
"""The words for each state of an answer."""


class AnswerState(NamedTuple):
    """The state of an answer, as it is shown everywhere."""

    name: str
    """One of ANSWER_STATE_ICONS."""
    label: str
    doubt: str = ""
    """Which values do not fit the question, or are not proved; empty if all is well."""

    @property
    def icon(self) -> str:
        """The icon, whose CSS class is the colour of the state."""
        return ANSWER_STATE_ICONS[self.name]

    def __str__(self) -> str:
        """Return the label, and what is in doubt: "In doubt: Chester is a thing where ..."."""
        if self.doubt:
            return f"{self.label}: {self.doubt}"
        return self.label


def choose_answer_state(
    *, is_right: bool | None, has_values: bool, doubt: str = "", is_ungrounded: bool = False
) -> str:
    """Return the name of an answer's state, one of ANSWER_STATE_ICONS.

    The first of these that applies: RIGHT if ``is_right``; UNANSWERED without values; WRONG if
    ``is_right`` is False; OWN_KNOWLEDGE if it is ungrounded; IN_DOUBT if there is a doubt; GIVEN.
    ``is_right`` is what gold says; None if it is not known.
    """
    if is_right:
        return RIGHT
    if not has_values:
        return UNANSWERED
    if is_right is not None:
        return WRONG
    if is_ungrounded:
        return OWN_KNOWLEDGE
    if doubt:
        return IN_DOUBT
    return GIVEN


def judge_answer(
    question: str, answer: Answer, right_answer: RightAnswer | None = None
) -> AnswerState:
    """Return the state of an answer to a question, with its label and its doubts.

    ``right_answer`` is what is known to be right. A value that is not of the type that the question
    word asks for is a doubt; doubts are kept in the state IN_DOUBT only. A question that a system
    cannot express, or whose query failed, is labelled "Not answered", since the graph said nothing.
    """
    is_right = None
    if right_answer is not None:
        is_right = right_answer.is_right(answer)
    mismatch = describe_type_mismatch(question, answer)
    doubt = "; ".join(filter(None, [mismatch, answer.doubt]))
    name = choose_answer_state(
        is_right=is_right,
        has_values=bool(answer) or is_text_alone(answer),
        doubt=doubt,
        is_ungrounded=answer.ungrounded,
    )
    label = ANSWER_STATE_LABELS[name]
    if name == UNANSWERED and not was_graph_asked(answer.reason):
        label = "Not answered"
    if name != IN_DOUBT:
        doubt = ""
    return AnswerState(name, label, doubt)


def is_text_alone(answer: Answer) -> bool:
    """Return whether an answer is only a text, as another program gives it: no values, no reason."""
    if answer or answer.reason or answer.ungrounded:
        return False
    return bool(answer.text)


# Whether an answer is what the question asks for

EXPECTED_VALUES = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a time of day", "a duration", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number", "a duration"}),
}
"""What each question word asks for, and the types of values that can be it."""
QUESTION_WORD_PATTERN = re.compile(r"\b(how many|how|where|when|whom|whose|who|what|which|why)\b")
CLAUSE_START = re.compile(r"[,;:.!?()\u2013\u2014]")
"""Signs that separate the clauses of a question."""
LEAD_IN_WORDS = frozenset(
    "about after and at before but by can could do during exactly for from i in know me now of ok on or "
    "please say since so tell than then through till to until us we with wonder would you".split()
)
"""Words that may stand before a question word that asks. After any other word, it is relative."""
MAX_VALUE_CHARS = 60
MAX_MISMATCHES = 3


def describe_type_mismatch(question: str, answer: Answer) -> str:
    """Return which values of an answer are not of the type that was asked for; "" if none.

    The text is that of ``describe_unfitting_values``. "" also for tables, counts and yes or no.
    """
    if answer.kind != "list" or answer.columns:
        return ""
    typed_labels = []
    for value in answer.values:
        typed_labels.append((value.label, _value_type(value)))
    return describe_unfitting_values(question, typed_labels)


def describe_unfitting_values(question: str, typed_labels: Iterable[tuple[str, str]]) -> str:
    """Return a text such as "1967-10-03 is a date where a place was asked"; "" if all values fit.

    ``typed_labels`` has the label and the type of each value. What is asked for is told by the
    question word that asks (``_find_expected_values``); without one the text is "". Labels
    are cut at MAX_VALUE_CHARS. The first MAX_MISMATCHES values are named, and how many more there are.
    """
    expected, fitting_types = _find_expected_values(question)
    if not expected:
        return ""
    unfitting = []
    for full_label, value_type in typed_labels:
        if value_type not in fitting_types:
            label = shorten(full_label, MAX_VALUE_CHARS)
            unfitting.append(f"{label} is {value_type}")
    if not unfitting:
        return ""
    text = "; ".join(first_items(unfitting, MAX_MISMATCHES))
    return f"{text} where {expected} was asked"


def _find_expected_values(question: str) -> tuple[str, set[str]]:
    """Return what a question asks for, such as "a place", and the types of values that can be it.

    A question word asks at the beginning of a clause, also after LEAD_IN_WORDS: "in Arrival, who
    ...", "tell me where ...". Elsewhere it is relative: "the city where ...". Of several that ask,
    each may be meant: "When he was king, who ...". Both are empty if none asks, or if one
    that asks is not among EXPECTED_VALUES, such as "which".
    """
    expected = []
    fitting_types: set[str] = set()
    for clause in CLAUSE_START.split(question.casefold()):
        question_word = QUESTION_WORD_PATTERN.search(clause)
        if question_word is None:
            continue
        words_before = clause[: question_word.start()].split()
        if not LEAD_IN_WORDS.issuperset(words_before):
            continue
        if question_word[1] not in EXPECTED_VALUES:
            return "", set()
        name, types = EXPECTED_VALUES[question_word[1]]
        expected.append(name)
        fitting_types |= types
    distinct_names = dict.fromkeys(expected)
    return " or ".join(distinct_names), fitting_types


def _value_type(value: Value) -> str:
    """Return "a thing", "a date", "a number", "a text" and so on for a value.

    A thing is an IRI or blank node. The datatype of a literal decides, and else its text
    (``literal_type``).
    """
    if not isinstance(value.term, Literal):
        return "a thing"
    datatype_iri = str(value.term.datatype or "").casefold()
    _, _, datatype = datatype_iri.rpartition("#")
    if datatype == "time":
        return "a time of day"
    if datatype == "boolean":
        return "a truth value"
    if datatype.endswith("duration"):
        return "a duration"
    is_date_type = "date" in datatype or datatype.startswith("g")  # xsd:gYear, xsd:gMonthDay, ...
    if is_date_type:
        return "a date"
    return literal_type(str(value.term))


def literal_type(text: str) -> str:
    """Return "a date", "a number" or "a text" for the text of a literal.

    It is a date if it is like "1967-10" or "1967-10-03". A number has digits, single points, commas
    or spaces between them, and perhaps a sign and an exponent. "1967" is a number: it may be a year
    or a count.
    """
    if re.fullmatch(r"-?\d{4}(-\d\d){1,2}", text):
        return "a date"
    if re.fullmatch(r"[-+]?[.,]?\d+([.,\s]\d+)*[.,]?([eE][-+]?\d+)?", text):
        return "a number"
    return "a text"
