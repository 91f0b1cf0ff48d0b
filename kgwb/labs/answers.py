"""Answers: the forms a student may write a value in, how an answer is checked, kept as data, and checked again."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import ItemsView, Iterable, KeysView, Sequence, ValuesView
from typing import Any, NewType, Self

from pydantic import BaseModel, JsonValue, ValidationError, model_validator
from pydantic_core import PydanticSerializationError, to_jsonable_python

from kgwb.errors import KgwbError
from kgwb.labs.tasks import Task, shorten
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
AnswerTriples = Sequence[tuple[str, str, str]]
"""Triples as students write them: subject, relation and object, with unknowns as "?x"."""
ReplyText = NewType("ReplyText", str)
"""The reply of a model: JSON as text. A dictionary is read as the JSON object that it writes."""

SEPARATORS = re.compile(r"[,;\n]| [&/|+] ")
NUMBER = re.compile(
    r"(?<!\w)(-?(?:\d+(?:[.,]\d+)?|\.\d+))(?!\w)(\s*(?:%|(?:percent|prozent)\b))?", re.IGNORECASE
)
"""A number, and what says that it is a hundredth of that."""
NUMBER_WORDS = """
    zero|null one|eins|first|erste two|zwei|second|zweite three|drei|third|dritte four|vier|fourth|vierte
    five|fünf|fifth|fünfte six|sechs|sixth|sechste seven|sieben|seventh|siebte eight|acht|eighth|achte
    nine|neun|ninth|neunte ten|zehn|tenth|zehnte
    """.split()
"""What students write for the numbers from 0 on, and for their places."""
WHOLE_NUMBER = re.compile(r"-?\d+(?:\s*[-–]\s*\d+)?")
"""A number in a list such as "2,4,5", where a comma is no decimal comma. A range such as "1-9" is one, and not read."""
NEGATION = re.compile(
    r"\b(no(?!\.)|not|none|never|without|instead of|rather than|kein\w*|nicht|nie|ohne|statt|anstatt)\b|n['’]t\b",
    re.IGNORECASE,
)
DENIAL = re.compile(rf"{NEGATION.pattern}|\b(but|except|excluding|außer)\b", re.IGNORECASE)
"""What says that the one thing which is named is not meant: "any but this"."""
OTHER_THAN_SAID = re.compile(
    rf"({DENIAL.pattern}|\b(least|most|max|min|than|up to|almost|nearly|over|under|above|below|mindestens"
    r"|höchstens|als|bis zu|fast|über|unter)\b|[<>≤≥])\W*(\b\w+\W+)?\d|\d\s*\+$"
    r"|\d\W+(\w+ )?(at (least|most)|(or|oder) (more|less|fewer|none|so|mehr|weniger|keine?)|mindestens|höchstens)\b",
    re.IGNORECASE,
)
"""What says that the numbers in a text are not those that are meant: "at least 8", "all but 2", "8 or so"."""
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


def _to_digits(data: Any) -> str:
    """Return a text, if it has no digits with digits for its NUMBER_WORDS.

    Empty for one that says that other numbers are meant, and for other data.
    """
    if not isinstance(data, str):
        return ""
    if not re.search(r"\d", data):
        for number, words in enumerate(NUMBER_WORDS):
            data = re.sub(rf"(?i)\b({words})\b", str(number), data)
    return "" if OTHER_THAN_SAID.search(data) else data


def read_number(data: Any) -> Any:
    """Return the only number in a text, with a point or a comma: "8 triples" is 8, and "94 %" is 0.94.

    A number without a fraction becomes an int. A text with no number or several, and other data, are
    returned unchanged.
    """
    numbers = NUMBER.findall(_to_digits(data))
    if len(numbers) == 1:
        [(number, percent)] = numbers
        data = float(number.replace(",", "."))
        if percent:
            data /= 100
    if isinstance(data, float) and data.is_integer():
        return int(data)
    return data


def _fit_numbers(data: Any) -> Any:
    """Return a list of numbers from one number, from a list, or from all whole numbers in a text.

    Other data, and items that are no numbers, are returned unchanged.
    """
    data = WHOLE_NUMBER.findall(_to_digits(data)) or data
    if isinstance(data, int | float):
        data = [data]
    if not isinstance(data, list):
        return data
    return list(map(read_number, data))


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


def _fit_named_number(data: Any) -> Any:
    """Return [name, number] from a list in either order, a dictionary, or a text with both.

    A dictionary has them as its only entry, or as the values of two. In a text the name is what is left
    without its only number. Data of any other form are returned unchanged, or as a text.
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
    text = _to_digits(data)
    if not text:
        return data
    name = NUMBER.sub("", text).strip(" ,:;=()\"'")
    return [name, read_number(text)]


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


FORMS = {
    str: ("example.text", _fit_nothing),
    ReplyText: ("example.reply", _fit_reply),
    float: ("example.number", read_number),
    int: ("example.whole-number", read_number),
    NumberedChoice: ("example.numbers", _fit_numbers),
    NamedChoice: ("example.names", _fit_names),
    NamedNumber: ("example.named-number", _fit_named_number),
    AnswerTriples: ("example.triples", _fit_triples),
}
"""For each type of answer, the key of the text that shows it, and how data are read."""
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
        if isinstance(exc, ValidationError):
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
    the numbers or names in it, or for the list that it writes, and a single value for a list of it. For
    names, the word for "and" in the language counts as a comma. A dictionary is read as a triple by its
    keys, or, where the reply of a model is expected, as its JSON. A run is returned as it is. Raises
    ValueError for an answer that has no JSON form, or is of another type.
    """
    if task.answer_type is Run:
        return answer
    data = _to_json_data(answer)
    if isinstance(data, str) and task.answer_type not in TEXTS:
        data = _read_literal(data)
    data = _simplify(data)
    if task.answer_type == NamedChoice and isinstance(data, str):
        for conjunction in task.texts.get("form.conjunctions").split():
            data = data.replace(f" {conjunction} ", ",")
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
