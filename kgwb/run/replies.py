"""What a model replies, and how it is read from its text: JSON, with the mistakes that models make.

``Reply`` is the base of all replies. ``check_reply`` reads one. The tables of this file say which
texts that are not JSON, and which objects that are not the reply, are read all the same.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from kgwb.errors import InvalidReplyError
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.records import JsonObject, describe_validation_error
from kgwb.run.steps import CheckResult

R = TypeVar("R", bound=BaseModel)

JSON_CHECK_NAME = "well-formed JSON"
SCHEMA_CHECK_NAME = "the reply's form"
CUT_OFF = "cut off by the length limit (setting max_output_tokens)"
UNFINISHED_REPLIES = {
    "length": CUT_OFF,
    "max_tokens": CUT_OFF,  # Anthropic and Gemini, behind OpenAI's protocol
    "model_length": CUT_OFF,  # Mistral
    "refusal": "the model refused",
    "content_filter": "the server's content filter stopped the reply",
}
"""Why a reply is not complete, by its finish reason in small letters."""
EMPTY_REPLIES = {"tool_calls": "the model called a tool in place of a reply"}
"""Why there is no text, by the finish reason in small letters."""
THOUGHT_FIELDS = ("reasoning", "thought", "thoughts", "thinking", "explanation", "rationale")
"""Fields that models add to a reply to explain it. They are left out where its class has none."""
TOOL_ARGUMENTS = ("arguments", "parameters", "input")
"""The field beside "name" in which a call of a tool, written as JSON, has the reply."""

THOUGHT_NAMES = r"(?:\w+[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?)"
"""Names in the markers of thoughts; some models put their own name before, as in "seed:think"."""
THOUGHTS_BEGIN = (
    rf"<{THOUGHT_NAMES}>|<\|(?:start|begin)(?:_of)?_{THOUGHT_NAMES}\|>"
    r"|\[think\]|◁think▷|<\|channel\|?>\s*(?:analysis|commentary|thought)"
)
THOUGHTS_END = (
    rf"</{THOUGHT_NAMES}>|<\|end(?:_of)?_{THOUGHT_NAMES}\|>"
    r"|\[/think\]|◁/think▷|<\|channel\|>\s*final|<channel\|>"
)
THOUGHTS_OR_JSON = re.compile(
    rf"(?P<begin>{THOUGHTS_BEGIN})|(?P<end>{THOUGHTS_END})|[{{\[]", re.IGNORECASE
)
"""Where thoughts begin or end in a reply, or JSON may begin."""
NOTHING_MORE = re.compile(rf"[`\s]*(?:{THOUGHTS_END})?[`\s]*", re.IGNORECASE)
MAX_JSON_WORK = 2_000_000
"""How much is done in vain to find the JSON in a reply, in characters that are read.

Garbage full of braces must not take quadratic time.
"""
WORK_OF_START = 200
"""What it takes to begin at a brace or bracket."""
WORK_OF_ALMOST_CHAR = 20
"""What it takes to read a character of what is not JSON, but may be almost JSON."""
WORK_OF_DEEP_JSON = 20_000
"""What it takes to read JSON that is nested too deeply."""


class Reply(BaseModel, extra="forbid"):
    """Base of what models reply: an object with the fields of the class and no others.

    The JSON schema of a class has its name and its docstring. It is sent to the model, and it is
    part of the key by which a recorded reply is found, so neither may change.
    """


@lru_cache(maxsize=64)
def schema_of(reply_class: type[BaseModel]) -> JsonObject:
    """Return the JSON schema of a reply class. It is kept, since making it takes long."""
    return reply_class.model_json_schema()


@dataclass(frozen=True)
class Check(Generic[R]):
    """A named check of a reply."""

    name: str
    test: Callable[[R], str]
    """Returns what is wrong with a reply; "" if nothing is."""


def find_problems(reply: R, checks: Iterable[Check[R]]) -> Iterator[str]:
    """Yield what each failed check finds wrong with a reply, as "name: problem".

    A check that passes yields nothing; every check is made.
    """
    for check in checks:
        problem = check.test(reply)
        if problem:
            yield f"{check.name}: {problem}"


def check_reply(
    text: str, finish_reason: str, reply_class: type[R], checks: Sequence[Check[R]]
) -> tuple[R | None, tuple[CheckResult, ...]]:
    """Read a reply from a model's text, and check it.

    The JSON objects in the text are tried, the last first, and after them the lists; the first that
    has the form of the reply class is the reply. Returns it, even if it fails checks, or None if
    there is none. With it come the results of the checks that were made, in order: of
    JSON_CHECK_NAME, of SCHEMA_CHECK_NAME if there is JSON, and of all ``checks`` if there is a
    reply. Without a reply the problem is that of the first JSON tried, or where the text stops being
    JSON. If the model did not finish (``finish_reason``), that is the problem, in place of wrong
    JSON.
    """
    finish_reason = finish_reason.lower()
    unfinished = UNFINISHED_REPLIES.get(finish_reason, "")
    found = find_json(text, is_finished=not unfinished)
    first_problem = ""
    for data in found.values:
        reply, problem = _read_reply(data, reply_class)
        if reply is not None:
            results = [CheckResult(JSON_CHECK_NAME), CheckResult(SCHEMA_CHECK_NAME)]
            for check in checks:
                results.append(CheckResult(check.name, check.test(reply)))
            return reply, tuple(results)
        first_problem = first_problem or problem

    if first_problem and not (unfinished or found.problem):
        wrong_form = CheckResult(SCHEMA_CHECK_NAME, first_problem)
        return None, (CheckResult(JSON_CHECK_NAME), wrong_form)
    no_json = found.problem or "no JSON"
    if not found.problem and re.search(THOUGHTS_BEGIN, text, re.IGNORECASE):
        no_json = "it holds reasoning alone, and no JSON after it"
    if not text.strip():
        no_json = EMPTY_REPLIES.get(finish_reason, "the reply is empty")
    return None, (CheckResult(JSON_CHECK_NAME, unfinished or no_json),)


def _read_reply(data: Any, reply_class: type[R]) -> tuple[R | None, str]:
    """Return the reply that JSON data describes, and ""; else None and what is wrong with the data.

    Tried are the data, then the data without THOUGHT_FIELDS, then the arguments of a tool call. The
    problem is that of the data as it is.
    """
    reply, problem = _validate(data, reply_class)
    if reply is None and isinstance(data, dict):
        without_thoughts = dict(data)
        for name in THOUGHT_FIELDS:
            if name not in reply_class.model_fields:
                without_thoughts.pop(name, None)
        if len(without_thoughts) < len(data):
            reply, _ = _validate(without_thoughts, reply_class)
        if reply is None and "name" in data:
            for name in TOOL_ARGUMENTS:
                reply = reply or _validate(data.get(name), reply_class)[0]
    return reply, problem


def _validate(data: Any, reply_class: type[R]) -> tuple[R | None, str]:
    """Return the reply that is exactly this data, and ""; else None and what is wrong with it.

    Half of a surrogate pair in a text is wrong, because it cannot be encoded as UTF-8. For data
    that is nested too deeply to be read, the problem is "".
    """
    try:
        text = json.dumps(data, ensure_ascii=False)
        reply = reply_class.model_validate(data)
    except ValidationError as error:
        return None, describe_validation_error(error)
    except RecursionError:
        return None, ""
    if LONE_SURROGATE.search(text):
        # A model wrote half of an emoji. That has no UTF-8 form, and no graph holds it.
        return None, "it holds half a character"
    return reply, ""


@dataclass(frozen=True, slots=True)
class FoundJson:
    """The JSON in a text."""

    values: list[Any]
    """The objects, the last first, and after them the lists."""
    problem: str
    """Where the last object stops being JSON; "" if there is an object outside of it."""


def find_json(text: str, *, is_finished: bool = True) -> FoundJson:
    """Return the outermost JSON objects and lists in a text, also such that are almost JSON.

    Models put JSON into code fences, think aloud before it, or add a sentence after it; the last
    object is their conclusion. An object with a name given twice gets a field that no reply class
    has. MAX_JSON_WORK limits the search.

    JSON in thoughts is a draft, and left out. Thoughts end at the last marker of an end, also
    without a marker of their beginning, which may stand in the prompt; or nowhere. If a model has
    finished (``is_finished``) and said nothing after its thoughts, the JSON that ends them is its
    reply.
    """
    found: list[Any] = []
    drafts: list[Any] = []
    problem = ""
    broken_end = 0  # of the last object that cannot be read; what is inside of it is a part of it
    is_thinking = False
    position = 0
    end_of_last = 0
    work = 0
    while work < MAX_JSON_WORK:
        mark = THOUGHTS_OR_JSON.search(text, position)
        if mark is None:
            break
        start = mark.start()
        position = mark.end()
        if mark["begin"]:
            is_thinking = True
            continue
        if mark["end"]:
            if not is_thinking:
                drafts += found
                found = []
                problem = ""
            is_thinking = False
            continue
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            almost = _find_almost_json(text, start)
            work += _work_in_vain(error, start) + WORK_OF_ALMOST_CHAR * (almost.end - start)
            if almost.value is None:
                if start >= broken_end and not is_thinking and _OBJECT_OPENING.match(text, start):
                    problem = _describe_place(text, getattr(error, "pos", start), error)
                    broken_end = almost.end
                continue
            value, end = almost.value, almost.end
        position = end_of_last = end
        values = drafts if is_thinking else found
        values.append(value)
        if isinstance(value, dict) and not is_thinking and start >= broken_end:
            problem = ""

    is_end = NOTHING_MORE.fullmatch(text, end_of_last) is not None
    if drafts and not found and is_finished and is_end:
        found = drafts[-1:]
    objects = [value for value in found if isinstance(value, dict)]
    lists = [value for value in found if isinstance(value, list)]
    return FoundJson([*reversed(objects), *reversed(lists)], problem)


def _work_in_vain(error: Exception, start: int) -> int:
    """Return what an attempt to read JSON took that failed, in characters that are read.

    For its message the decoder goes through all text before the error, some 50 times as fast as it
    reads.
    """
    position: int = getattr(error, "pos", start + WORK_OF_DEEP_JSON)
    return WORK_OF_START + position - start + position // 50


def _describe_place(text: str, position: int, error: Exception) -> str:
    """Return where a text stops being JSON, and what was expected there."""
    expected = getattr(error, "msg", error)
    near = text[position : position + 20]
    return f"{expected} at character {position + 1:,}, before {near!r}"


def _object_with_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the names and values of a JSON object as a dictionary, the last value of each name.

    For each name that is given twice it also has "NAME, given twice" with the value None. No reply
    class has such a field, so the reply is invalid.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        for name, count in counts.items():
            if count > 1:
                fields[f"{name}, given twice"] = None
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_object_with_duplicates)
_ALMOST_DECODER = json.JSONDecoder(object_pairs_hook=_object_with_duplicates, strict=False)
"""Reads line breaks in strings as well."""

_OBJECT_OPENING = re.compile(r"""\{\s*["']""")
"""How an object begins, but hardly a pattern of SPARQL or a set in braces."""
_ALMOST_JSON = re.compile(
    r"""
    (?P<string> "(?:[^"\\]|\\.)*+" )
  | (?P<quoted> '(?:[^'\\]|\\.)*+' )
  | (?P<comment> //[^\n]*+ )
  | (?P<name> [A-Za-z_]\w*+(?=\s*+:) )
  | (?P<word> [A-Za-z_]\w*+ )
  | (?P<opening> [{\[] )
  | (?P<closing> [}\]] )
  | (?P<other> , | \\. | [^"'/,\\\w{}\[\]]++ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens of JSON, and of the literals and comments of Python and JavaScript."""
_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}
_QUOTED_ESCAPES = {r"\'": "'", '"': r"\""}
"""What is written in another way between single quotes than between double ones."""
_MAX_ALMOST_CHARS = 30_000
_MAX_ALMOST_DEPTH = 50


@dataclass(frozen=True, slots=True)
class _AlmostJson:
    """A text that is almost JSON."""

    end: int
    """Where it ends, or how far it was read."""
    value: Any = None
    """Its data; None if it is something else."""


def _find_almost_json(text: str, start: int) -> _AlmostJson:
    """Read an object or a list that has mistakes of models: see ``_as_json``.

    At most _MAX_ALMOST_CHARS are read, and _MAX_ALMOST_DEPTH brackets inside each other.
    """
    parts: list[str] = []
    depth = 0
    end = start
    for token in _ALMOST_JSON.finditer(text, start, start + _MAX_ALMOST_CHARS):
        end = token.end()
        if token.lastgroup == "closing":
            _remove_last_comma(parts)
        parts.append(_as_json(token))
        depth += (token.lastgroup == "opening") - (token.lastgroup == "closing")
        if depth > _MAX_ALMOST_DEPTH:
            break
        if depth == 0:
            try:
                return _AlmostJson(end, _ALMOST_DECODER.decode("".join(parts)))
            except ValueError:
                break
    return _AlmostJson(end)


def _remove_last_comma(parts: list[str]) -> None:
    """Remove the last part if it is a comma, with the blanks and comments behind it."""
    while parts and not parts[-1].strip():
        parts.pop()
    if parts and parts[-1] == ",":
        parts.pop()


def _as_json(token: re.Match[str]) -> str:
    """Return a token as JSON has it.

    A comment is left out. Single quotes, names without quotes, and Python's None, True and False are
    written in JSON's way.
    """
    written = token[0]
    match token.lastgroup:
        case "comment":
            return ""
        case "word":
            return _PYTHON_WORDS.get(written, written)
        case "name":
            return f'"{written}"'
        case "quoted":
            inner = re.sub(r"""\\.|\"""", _as_double_quoted, written[1:-1], flags=re.DOTALL)
            return f'"{inner}"'
    return written


def _as_double_quoted(match: re.Match[str]) -> str:
    """Return an escape, or a double quote, of a string in single quotes as it is in double quotes."""
    return _QUOTED_ESCAPES.get(match[0], match[0])


def has_form(error: InvalidReplyError) -> bool:
    """Return whether the last of the invalid replies had the form of a reply, but failed a check."""
    failed_checks = {check.name for check in error.attempts[-1].problems}
    return failed_checks.isdisjoint({JSON_CHECK_NAME, SCHEMA_CHECK_NAME})
