"""Asking a model for a validated reply: a prompt, variables, a reply class, checks and attempts.

What ``ask`` returns is always valid. Every attempt is recorded with the checks that it passed or
failed. The model's adapter repeats transient failures; only ``ask`` repeats a request because of
what a reply says.
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
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.llm.base import ChatRequest, Message
from kgwb.run.engine import Engine
from kgwb.run.prompts import parse_prompt
from kgwb.run.steps import Attempt, CheckResult

R = TypeVar("R", bound=BaseModel)

JSON_CHECK_NAME = "well-formed JSON"
SCHEMA_CHECK_NAME = "the reply's form"
UNFINISHED_REPLIES = {
    "length": "cut off by the length limit (setting max_output_tokens)",
    "refusal": "the model refused",
    "content_filter": "the server's content filter stopped the reply",
}
"""Why a reply is not complete, by its finish reason."""
MAX_JSON_STARTS = 200
"""Positions in a reply at which JSON is looked for."""
CHARS_PER_EXTRA_START = 10_000
"""Characters that were read in vain count as a further start for each so many of them.

Garbage full of braces must not take quadratic time.
"""
MAX_SHOWN_ERRORS = 5


def schema_config(title: str, description: str = "") -> ConfigDict:
    """Return the configuration of a reply class whose JSON schema has this title and description.

    The schema is sent to the model, and it is part of the key by which a recorded reply is found.
    So it must not change when the class is renamed or its docstring is reworded.
    """
    extra: dict[str, Any] = {"description": description} if description else {}
    return ConfigDict(extra="forbid", title=title, json_schema_extra=extra)


class Reply(BaseModel):
    """Base of what models reply: an object with the fields of the class and no others."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Check(Generic[R]):
    """A named check of a reply."""

    name: str
    test: Callable[[R], str]
    """Returns what is wrong with a reply; "" if nothing is."""


def find_problems(reply: R, checks: Iterable[Check[R]]) -> Iterator[str]:
    """Yield what checks find wrong with a reply, as "name: problem"."""
    for check in checks:
        problem = check.test(reply)
        if problem:
            yield f"{check.name}: {problem}"


def ask(
    prompt: str,
    variables: Mapping[str, Any],
    reply_class: type[R],
    run: Engine,
    *,
    checks: Sequence[Check[R]] = (),
    last_resort: Callable[[R], bool] | None = None,
) -> R:
    """Ask the current agent's model, and return the first reply that is valid.

    A reply is valid if it has the form of the class ``reply`` and passes every check. There are
    ``Settings.theta`` attempts. After a failed one the model is shown its reply and the problems,
    or is asked the same again (``Settings.repair``). ``last_resort`` may accept the last reply that
    had the right form, as the published code of Chatty-KG does.

    Raises InvalidReplyError, which has all attempts; PromptError; and what the model raises.
    """
    settings = run.settings
    prompt_messages = parse_prompt(prompt, run.prompt_text(prompt)).fill(
        variables, settings.exemplars
    )
    messages = prompt_messages
    attempts: list[Attempt] = []
    last_well_formed: R | None = None
    for _ in range(settings.theta):
        request = ChatRequest(
            task=prompt,
            messages=messages,
            schema=schema_of(reply_class),
            variables=variables,
            temperature=settings.temperature,
            seed=settings.seed,
            max_output_tokens=settings.max_output_tokens,
            timeout_s=settings.model_timeout_s,
            rule=run.system.rule(prompt),
        )
        call, chat_reply = run.chat(request)
        parsed, results = check_reply(
            chat_reply.text, chat_reply.finish_reason, reply_class, checks
        )
        attempt = Attempt(call.key, chat_reply.text, results)
        attempts.append(attempt)
        run.add_attempt(attempt)
        if parsed is not None and attempt.accepted:
            return parsed
        if parsed is not None:
            last_well_formed = parsed
        if settings.repair == "show_error":
            messages = (*prompt_messages, *repair_messages(attempt))
    if last_well_formed is not None and last_resort is not None and last_resort(last_well_formed):
        run.note(
            f"no reply passed every check in {settings.theta} attempts; "
            "the last one is used as it is"
        )
        return last_well_formed
    problems = "; ".join(f"{check.name} ({check.problem})" for check in attempts[-1].problems)
    raise InvalidReplyError(
        f"{prompt}: no valid reply in {settings.theta} attempts; the last one failed {problems}",
        attempts,
        hint="look at the attempts, then edit the prompt, put a result in by hand, "
        "or take a stronger model",
    )


def repair_messages(attempt: Attempt) -> tuple[Message, ...]:
    """Return the messages that show a model its invalid reply and what is wrong with it."""
    problems = "\n".join(f"- {check.name}: {check.problem}" for check in attempt.problems)
    again = "Answer again, with nothing but the JSON object asked for."
    complaint = Message("user", f"That reply cannot be used:\n{problems}\n{again}")
    if not attempt.reply.strip():  # some servers refuse an empty message
        return (complaint,)
    return (Message("assistant", attempt.reply), complaint)


@lru_cache(maxsize=64)
def schema_of(reply_class: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON schema of a reply class. It is made once."""
    return reply_class.model_json_schema()


def check_reply(
    text: str, finish_reason: str, reply_class: type[R], checks: Sequence[Check[R]]
) -> tuple[R | None, tuple[CheckResult, ...]]:
    """Read a reply from a model's text, and check it.

    Returns the reply, or None if no JSON in the text has its form, and the results of the checks
    that were made, in order.
    """
    problem = ""
    for data in find_json(text):
        try:
            has_lone_surrogate = LONE_SURROGATE.search(json.dumps(data, ensure_ascii=False))
            parsed = reply_class.model_validate(data)
        except ValidationError as exc:
            problem = problem or validation_problem(exc)
        except RecursionError:  # it could just be read, but is nested too deeply to be written
            continue
        else:
            if not has_lone_surrogate:
                checked = [CheckResult(check.name, check.test(parsed)) for check in checks]
                return parsed, (
                    CheckResult(JSON_CHECK_NAME),
                    CheckResult(SCHEMA_CHECK_NAME),
                    *checked,
                )
            # A model wrote half of an emoji. That has no UTF-8 form, and no graph holds it.
            problem = problem or "it holds half a character"
    unfinished = UNFINISHED_REPLIES.get(finish_reason, "")
    if problem and not unfinished:
        return None, (CheckResult(JSON_CHECK_NAME), CheckResult(SCHEMA_CHECK_NAME, problem))
    no_json = "no JSON" if text.strip() else "the reply is empty"
    return None, (CheckResult(JSON_CHECK_NAME, unfinished or no_json),)


def validation_problem(error: ValidationError) -> str:
    """Return the first errors of a validation in one line: "triples.0.subject: Field required"."""
    problems = []
    for details in error.errors(include_url=False)[:MAX_SHOWN_ERRORS]:
        place = ".".join(str(part) for part in details["loc"])
        problems.append(f"{place}: {details['msg']}" if place else details["msg"])
    return "; ".join(problems)


def find_json(text: str) -> list[Any]:
    """Return the outermost JSON objects in a text, the last first, and then the lists.

    Models put JSON into code fences, think aloud before it, or add a sentence after it. The last
    object is their conclusion.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object_with_duplicates)
    values: list[Any] = []
    position = starts = 0
    while starts < MAX_JSON_STARTS:
        openings = [text.find("{", position), text.find("[", position)]
        found = [opening for opening in openings if opening >= 0]
        if not found:
            break
        starts += 1
        opening = min(found)
        try:
            value, position = decoder.raw_decode(text, opening)
            values.append(value)
        except (ValueError, RecursionError) as exc:
            position = opening + 1
            read_in_vain = getattr(exc, "pos", position) - position
            starts += read_in_vain // CHARS_PER_EXTRA_START
    values.reverse()
    return sorted(values, key=lambda value: not isinstance(value, dict))


def _object_with_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. A name given twice adds a field that no reply class has."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        for name, count in counts.items():
            if count > 1:
                fields[f"{name}, given twice"] = None
    return fields
