"""The one door to a model: prompt file + variables + reply class + named checks + attempts.

What comes back is always validated. Every attempt is on the record with each check it passed or failed. The
adapters repeat transient failures; only this door asks again because of what a reply says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kgwb.errors import InvalidReplyError
from kgwb.kg.sparql import HALF
from kgwb.llm.base import ChatRequest, Message
from kgwb.run.engine import Engine
from kgwb.run.prompts import parse
from kgwb.run.record import Attempt, CheckResult

R = TypeVar("R", bound=BaseModel)


def schema_config(title: str, description: str = "") -> ConfigDict:
    """Return the configuration of a reply class whose JSON schema has this title and description.

    The schema is sent to the model, and it is part of the key by which a recorded reply is found.
    So it must not change when the class is renamed or its docstring is reworded.
    """
    extra: dict[str, Any] = {"description": description} if description else {}
    return ConfigDict(extra="forbid", title=title, json_schema_extra=extra)


class Reply(BaseModel):
    """What a model replies: an object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Check(Generic[R]):
    """A named check: ``test`` returns what is wrong with a reply, or an empty text."""

    name: str
    test: Callable[[R], str]


def faults(reply: R, checks: Iterable[Check[R]]) -> Iterator[str]:
    """What checks have against a reply: for a record put in by hand, in the form of one."""
    yield from (f"{check.name}: {problem}" for check in checks if (problem := check.test(reply)))


WELL_FORMED = "well-formed JSON"
RIGHT_FORM = "the reply's form"


def ask(
    prompt: str,
    variables: Mapping[str, Any],
    reply: type[R],
    run: Engine,
    *,
    checks: Sequence[Check[R]] = (),
    last_resort: Callable[[R], bool] | None = None,
) -> R:
    """The first reply that has the form of ``reply`` and passes every check, in theta attempts.

    After a failed attempt the model is shown its reply and what is wrong with it, or asked the same afresh
    (``Settings.repair``). ``last_resort`` may accept the last reply that had the right form, as the reference
    code of Chatty-KG does. Raises InvalidReplyError with all attempts, and whatever the model raises.
    """
    settings = run.settings
    messages = parse(prompt, run.prompt_text(prompt)).fill(variables, settings.exemplars)
    schema = schema_of(reply)
    attempts: list[Attempt] = []
    formed: R | None = None
    asked = messages
    for _ in range(settings.theta):
        request = ChatRequest(
            prompt, asked, schema, variables, settings.temperature, settings.seed, settings.max_output_tokens,
            settings.model_timeout_s,
        )  # fmt: skip
        call, answered = run.chat(request)
        parsed, results = judge(answered.text, answered.finish_reason, reply, checks)
        attempt = Attempt(call.key, answered.text, results)
        attempts.append(attempt)
        run.attempted(attempt)
        if parsed is not None and attempt.accepted:
            return parsed
        formed = parsed or formed
        if settings.repair == "show_error":
            # some servers refuse an empty message
            echo = (Message("assistant", answered.text),) if answered.text.strip() else ()
            problems = "\n".join(f"- {c.name}: {c.problem}" for c in attempt.checks if c.problem)
            again = "Answer again, with nothing but the JSON object asked for."
            complaint = Message("user", f"That reply cannot be used:\n{problems}\n{again}")
            asked = (*messages, *echo, complaint)
    if formed is not None and last_resort is not None and last_resort(formed):
        run.note(
            f"no reply passed every check in {settings.theta} attempts; the last one is used as it is"
        )
        return formed
    raise InvalidReplyError(
        f"{prompt}: no valid reply in {settings.theta} attempts; the last one failed "
        + "; ".join(
            f"{check.name} ({check.problem})" for check in attempts[-1].checks if check.problem
        ),
        attempts,
        hint="look at the attempts, then edit the prompt, put a result in by hand, or take a stronger model",
    )


@lru_cache(maxsize=64)
def schema_of(reply: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a reply class, made once."""
    return reply.model_json_schema()


def judge(
    text: str, finish_reason: str, reply: type[R], checks: Sequence[Check[R]]
) -> tuple[R | None, tuple[CheckResult, ...]]:
    """The reply a text holds (None if it has not the form) and the outcome of each check, in order."""
    problem = ""
    for data in _json_texts(text):
        try:
            # What a model that writes half an emoji leaves behind; it has no UTF-8, and no graph holds it
            half = HALF.search(json.dumps(data, ensure_ascii=False))
            parsed = reply.model_validate(data)
        except ValidationError as exc:
            if not problem:
                errors = exc.errors(include_url=False)[:5]
                wrong = ((".".join(map(str, error["loc"])), error["msg"]) for error in errors)
                problem = "; ".join(
                    f"{where}: {words}" if where else words for where, words in wrong
                )
        except RecursionError:  # what can just be read may be nested too deeply to be written
            pass
        else:
            if not half:
                checked = [CheckResult(check.name, check.test(parsed)) for check in checks]
                return parsed, (CheckResult(WELL_FORMED), CheckResult(RIGHT_FORM), *checked)
            problem = problem or "it holds half a character"
    unfinished = UNFINISHED.get(finish_reason, "")
    if unfinished or not problem:
        problem = "no JSON" if text.strip() else "the reply is empty"
        return None, (CheckResult(WELL_FORMED, unfinished or problem),)
    return None, (CheckResult(WELL_FORMED), CheckResult(RIGHT_FORM, problem))


UNFINISHED = {
    "length": "cut off by the length limit (setting max_output_tokens)",
    "refusal": "the model refused",
    "content_filter": "the server's content filter stopped the reply",
}
"""Why a reply is no whole one, by finish reason."""


def _json_texts(text: str) -> list[Any]:
    """The outermost JSON objects, and then lists, in a text, the last first.

    Models wrap JSON in fences, think aloud before it, or add a sentence after it; the last object is the
    conclusion.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    values: list[Any] = []
    start = tries = 0
    while tries < MOST_STARTS:
        places = [place for place in (text.find("{", start), text.find("[", start)) if place >= 0]
        if not places:
            break
        tries += 1
        try:
            value, start = decoder.raw_decode(text, min(places))
            values.append(value)
        except (ValueError, RecursionError) as exc:
            start = min(places) + 1
            tries += (getattr(exc, "pos", start) - start) // MOST_FAILED
    values.reverse()
    return sorted(values, key=lambda value: not isinstance(value, dict))


MOST_STARTS = 200
MOST_FAILED = 10_000
"""Places in a reply at which JSON is looked for, and characters read in vain that count for one of them:
garbage full of braces must not take quadratic time."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name given twice stands there as one more name, which no form has."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        fields |= {f"{name}, given twice": None for name, times in counts.items() if times > 1}
    return fields
