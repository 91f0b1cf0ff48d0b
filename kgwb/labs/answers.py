"""Answers: the forms a student may write a value in, how an answer is checked, kept as data, and checked again."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, ItemsView, Iterable, KeysView, Sequence, ValuesView
from functools import partial
from typing import Any, NewType, Self

from pydantic import BaseModel, JsonValue, ValidationError, model_validator
from pydantic_core import PydanticSerializationError, to_jsonable_python

from kgwb.errors import KgwbError
from kgwb.labs.tasks import LIST_MARKS, MARKS, STRAY_MARK, Task, drop_words, shorten
from kgwb.labs.texts import Message
from kgwb.records import to_data, type_adapter
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.text import text_or_json

NumberedChoice = Sequence[int]
"""Numbers of the options that a student chose."""
NamedChoice = list[str]
"""Names of the options that a student chose."""
NamedNumber = tuple[str, float]
"""A name, and a number about it."""
NamedCount = tuple[str, int]
"""A name, and a whole number about it."""
AnswerTriples = Sequence[tuple[str, str, str]]
"""Triples as students write them: subject, relation and object, with unknowns as "?x"."""
ReplyText = NewType("ReplyText", str)
"""The reply of a model: JSON as text. A dictionary is read as the JSON object that it writes."""

SEPARATORS = re.compile(r"[,;\n]| [&/|+] ")
NUMBER_WORDS = """
    zero|null one|eins two|zwei three|drei four|vier five|fünf six|sechs seven|sieben eight|acht nine|neun ten|zehn
    """.split()
"""What students write for the numbers from 0 on."""
PLACE_WORDS = """
    0th first|1st|erste[nrs]? second|2nd|zweite[nrs]? third|3rd|dritte[nrs]? fourth|4th|vierte[nrs]?
    fifth|5th|fünfte[nrs]? sixth|6th|sechste[nrs]? seventh|7th|siebte[nrs]?
    eighth|8th|achte[nrs]? ninth|9th|neunte[nrs]? tenth|10th|zehnte[nrs]?
    """.split()
"""What students write for their places, which stand for numbers where several are chosen: "the second one"."""
WHOLE = re.compile(r"(?<![\w.])q?(-?\d{1,15}(?:\.0)?)(?!\w|\.\d)", re.IGNORECASE)
"""A whole number, also as "Q4". A comma separates two."""
DECIMAL = re.compile(r"(?<![\w.,])(-?(?:\d+(?:[.,]\d+)?|\.\d+))(?!\w|[.,]\d)")
"""A number with a point or a comma, or without."""
SHARE = re.compile(
    rf"{DECIMAL.pattern}(\s?(?:%|/\s?100\b|(?:per ?cent|prozent)\b))?", re.IGNORECASE
)
"""A decimal number, and what says that it is a hundredth of that."""
NEGATION = re.compile(
    r"\b(no(?!\.)|not|none|never|without|instead of|rather than|kein\w*|nicht|nie|ohne|statt|anstatt)\b|n['’]t\b",
    re.IGNORECASE,
)
TRIPLE_FIELDS = (
    ("subject", "head", "s"),
    ("predicate", "relation", "property", "p"),
    ("object", "tail", "o"),
)
"""The keys that the parts of a triple may have in a dictionary."""


def _simplify(data: Any) -> Any:
    """Return data in which each list of one item is this item, however deep."""
    if not isinstance(data, list):
        return data
    items = list(map(_simplify, data))
    return items[0] if len(items) == 1 else items


def _read_literal(text: str) -> Any:
    """Return the data that a text writes as a list or dictionary in Python or JSON; any other text unchanged."""
    if not text.lstrip().startswith(("[", "(", "{")):
        return text
    try:
        return _to_json_data(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _fit_nothing(data: Any) -> Any:
    return data


def _fit_reply(data: Any) -> Any:
    """Return a dictionary as JSON text; other data unchanged."""
    if isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return data


def _to_digits(text: str, words: Sequence[str], first: int = 0) -> str:
    """Return a text with digits for words of NUMBER_WORDS or PLACE_WORDS, from a first number on."""
    for number, word in enumerate(words[first:], first):
        text = re.sub(rf"\b({word})\b( ones?\b)?", str(number), text, flags=re.IGNORECASE)
    return text


def _find_numbers(text: str, form: re.Pattern[str], marks: str = MARKS) -> list[float]:
    """Return the numbers of a form in a text; none if anything but ``marks`` stands beside them."""
    text = _to_digits(text, NUMBER_WORDS)
    if form.sub("", text).strip(marks):
        return []
    numbers = []
    for match in form.finditer(text):
        number = float(match[1].replace(",", "."))
        if match.lastindex == 2:
            number /= 100
        numbers.append(number)
    return numbers


def read_number(data: Any, form: re.Pattern[str] = DECIMAL) -> Any:
    """Return the number that a text is, in one of the forms DECIMAL, WHOLE and SHARE: "94 %" is a SHARE of 0.94.

    MARKS may stand around it, and it may be there twice: "8 (eight)". A number without a fraction becomes
    an int. Any other text, and other data, are returned unchanged.
    """
    if isinstance(data, str):
        numbers = set(_find_numbers(data, form))
        if len(numbers) == 1:
            [data] = numbers
    if isinstance(data, float) and data.is_integer():
        return int(data)
    return data


def _fit_numbers(data: Any) -> Any:
    """Return the whole numbers of one, of a list or of a text, beside which only LIST_MARKS stand.

    In a text, PLACE_WORDS are numbers. Other data are returned unchanged.
    """
    items = data if isinstance(data, list) else [data]
    listed = ", ".join(map(str, items))
    text = _to_digits(listed, PLACE_WORDS)
    numbers = _find_numbers(text, WHOLE, LIST_MARKS)
    return list(map(int, numbers)) or data


def _fit_names(data: Any) -> Any:
    """Return a list of names from a list, or from a text that separates them by SEPARATORS.

    Spaces and quotes around names are removed, and empty names left out. Data that are neither text nor
    list are returned unchanged.
    """
    if isinstance(data, str):
        data = SEPARATORS.split(data)
    if not isinstance(data, list):
        return data
    names = []
    for item in data:
        name = item
        if isinstance(item, str):
            name = item.strip(" \"'`")
        if name != "":
            names.append(name)
    return names


def _fit_named_number(data: Any, form: re.Pattern[str] = SHARE) -> Any:
    """Return [name, number] from a list in either order, a dictionary, or a text with both.

    A dictionary has them as its only entry, or as the values of two. In a text the name is what is left
    without its only number; without digits, this is the word for one from two on, since "one" may be no number.
    Data of any other form are returned unchanged, or as a text.
    """
    if isinstance(data, dict):
        values = list(data.values())
        data = values if len(values) == 2 else [*data, *values]
    if isinstance(data, list) and len(data) == 2:
        name, number = data
        if not isinstance(name, str):
            name, number = number, name
        if not isinstance(number, str):
            return [name, read_number(number)]
        data = f"{name} {number}"
    if not isinstance(data, str):
        return data
    text = data
    if not re.search(r"\d", text):
        text = _to_digits(text, NUMBER_WORDS, first=2)
    numbers = list(form.finditer(text))
    name = form.sub("", text).strip(MARKS)
    if len(numbers) != 1 or STRAY_MARK.search(name):
        return data
    return [name, read_number(numbers[0][0], form)]


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
    return list(map(_fit_triple, data))


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


FORMS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("example.text", _fit_nothing),
    ReplyText: ("example.reply", _fit_reply),
    float: ("example.number", partial(read_number, form=SHARE)),
    int: ("example.whole-number", partial(read_number, form=WHOLE)),
    NumberedChoice: ("example.numbers", _fit_numbers),
    NamedChoice: ("example.names", _fit_names),
    NamedNumber: ("example.named-number", _fit_named_number),
    NamedCount: ("example.named-number", partial(_fit_named_number, form=WHOLE)),
    AnswerTriples: ("example.triples", _fit_triples),
}
"""For each type of answer, the key of the text that shows it, and how data are read."""
NUMBERS = (int, float, NumberedChoice)
"""The types of answers that are numbers only, beside which words may stand."""
CHOICES = (NumberedChoice, NamedChoice)
"""The types of answers of which a text may have several, with a word for "and"."""
TEXTS = (str, ReplyText)
"""The types of answers that are texts, whatever they say."""
OTHER_FORM = ("example.other", _fit_nothing)


MAX_CHECKED_CHARS = 20_000
"""An answer with more characters is not checked."""
MAX_DATA_CHARS = 40_000
"""Characters of an answer's data as JSON. An answer with more is not kept as data."""


class CheckFailedError(Exception):
    """A check has failed in itself. The cause is for the lecturer; the text is for the student."""


class StoredRun(BaseModel, extra="forbid"):
    """A run as its edits: the values that were put in by hand, by the key of the step."""

    question: str
    overrides: dict[str, JsonValue] = {}


class StoredAnswer(BaseModel, extra="forbid"):
    """An answer as data, at most MAX_DATA_CHARS characters of JSON: a value, or the edits of a run."""

    value: JsonValue = None
    run: StoredRun | None = None

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if len(self.model_dump_json()) > MAX_DATA_CHARS:
            raise ValueError(f"an answer has more than {MAX_DATA_CHARS:,} characters")
        return self

    @property
    def text(self) -> str:
        """A value that is a text; any other value, and a run's question and edits, as JSON."""
        data = self.model_dump(mode="json")
        return text_or_json(data["run"] or data["value"])


def check_answer(task: Task, answer: object) -> str:
    """Check an answer of any type, and return what is wrong with it, as a text for the student; "" if it is right.

    A text of more than MAX_CHECKED_CHARS characters, and a value of another type than the task's,
    are wrong without a check: the feedback has the first part that cannot be read, and how to write it: the
    text of the key "TASK.example", else that for the type in FORMS. The task's own check gets the value that
    ``read_value`` reads, or the run itself. A KgwbError that it raises, as for an invalid query, is
    what is wrong. Raises CheckFailedError for any other error.
    """
    texts = task.texts
    if isinstance(answer, str) and len(answer) > MAX_CHECKED_CHARS:
        return texts.get("answer.too-long", number=len(answer), most=MAX_CHECKED_CHARS)
    if task.answer_type is Run and not isinstance(answer, Run):
        return texts.get("answer.no-run", type=type(answer).__name__)
    try:
        value = read_value(task, answer)
    except ValueError as exc:
        if isinstance(exc, ValidationError) and not isinstance(answer, str):
            answer = exc.errors()[0]["input"]
        example = f"{task.name}.example"
        if not texts.has(example):
            example, _ = FORMS.get(task.answer_type, OTHER_FORM)
        return texts.get("answer.unread", part=shorten(repr(answer)), example=texts.get(example))
    try:
        problem = task.check(value)
        if not isinstance(problem, str | Message):
            raise TypeError(f'a check returns "" or what is wrong with the answer, not {problem!r}')
        return texts.get(problem)
    except KgwbError as exc:
        return texts.get("answer.error", error=exc)
    except Exception as exc:
        error = type(exc).__name__
        raise CheckFailedError(
            texts.get("answer.check-failed", task=task.name, error=error)
        ) from exc


def read_value(task: Task, answer: object) -> Any:
    """Convert an answer to the task's type, by way of its JSON form, and return it.

    So a list, a tuple and a set are the same, and an IRI of a graph is a text. A text may be given for
    the numbers or names in it, or for the list that it writes, and a single value for a list of it. Beside
    numbers, only words of BESIDE and of the task may stand. Where several are chosen, the word for "and" in the
    language counts as a comma. A dictionary is read as a triple by its keys, or, where the reply of a model is
    expected, as its JSON. A run is returned as it is. Raises
    ValueError for an answer that has no JSON form, or is of another type.
    """
    if task.answer_type is Run:
        return answer
    data = _to_json_data(answer)
    if isinstance(data, str) and task.answer_type not in TEXTS:
        data = _read_literal(data)
    data = _simplify(data)
    if isinstance(data, str) and task.answer_type in CHOICES:
        for conjunction in task.texts.get("form.conjunctions").split():
            data = data.replace(f" {conjunction} ", " , ")
    if isinstance(data, str) and task.answer_type in NUMBERS:
        data = drop_words(data, task.beside)
    _, fit = FORMS.get(task.answer_type, OTHER_FORM)
    fitted = json.dumps(fit(data))
    adapter = type_adapter(task.answer_type)
    return adapter.validate_json(fitted, strict=True)


def _to_json_data(answer: object) -> Any:
    """Return the JSON data of a value. Raises ValueError for one that has no JSON form."""
    try:
        return to_jsonable_python(answer, fallback=_to_list)
    except (PydanticSerializationError, RecursionError, AttributeError, TypeError) as exc:
        raise ValueError("the value has no JSON form") from exc


def _to_list(value: Any) -> Any:
    """Return the items of a dictionary's keys or values; else what tolist returns, which numpy and pandas have."""
    if isinstance(value, KeysView | ValuesView | ItemsView):
        return list(value)
    return value.tolist()


def store_answer(answer: object) -> StoredAnswer | None:
    """Return an answer as data that can be checked again later; None if it has no such form.

    A run is stored as its question and overrides, any other value as JSON. None is returned for a
    value without a JSON form, for more than MAX_DATA_CHARS characters, and for a run whose edits
    were not executed: what it shows is not what they lead to.
    """
    try:
        if not isinstance(answer, Run):
            return StoredAnswer(value=_to_json_data(answer))
        if answer.has_pending_edits:
            return None
        overrides = {}
        for key, value in answer.overrides.items():
            output_type = answer.system.agent_spec(key).output_type
            overrides[key] = _to_json_data(to_data(value, output_type))
        return StoredAnswer(run=StoredRun(question=answer.question, overrides=overrides))
    except ValueError:
        return None


def check_stored_answer(task: Task, stored: StoredAnswer) -> str:
    """Check an answer that was kept as data, and return what is wrong with it; "" if it is right.

    A value is checked like a new answer. For a run, the task's run is opened anew, gets the stored
    overrides, and is executed; a KgwbError on the way is what is wrong. Raises CheckFailedError if
    the check fails in itself.
    """
    if stored.run is None:
        return check_answer(task, stored.value)
    if task.open_run is None:
        return task.texts.get("stored.run")
    run = task.open_run()
    if stored.run.question != run.question:
        return task.texts.get("stored.other-question")
    try:
        for step, value in stored.run.overrides.items():
            run.override(step, value)
        run.go()
    except KgwbError as exc:
        return task.texts.get("stored.error", error=exc)
    return check_answer(task, run)


def find_first_agent(run: Run, steps: Iterable[str]) -> str:
    """Return the agent that comes first in the order of a run's system, of those of some steps; "" without any."""
    agents = set(map(agent_of_key, steps))
    for name in run.system.specs_by_name:
        if name in agents:
            return name
    return ""
