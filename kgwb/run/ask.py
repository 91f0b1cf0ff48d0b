"""What agents ask: a model for a validated reply, and a graph for the result of a query.

What ``ask`` returns is always valid. Every attempt is recorded with the checks that it passed or
failed. The model's adapter repeats transient failures; only ``ask`` repeats a request because of
what a reply says. ``Reply`` is the base of all replies, and ``check_reply`` reads one from its text.
The tables of this file say which texts that are not JSON, and which objects that are not the reply,
are read all the same.

``act`` asks in turns which tool to use, until the model is done. ``execute_sparql`` executes a query,
and other functions name and support what it returns.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from itertools import chain
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from rdflib import BNode, URIRef

from kgwb.errors import GraphError, InvalidReplyError, PromptError, QueryError
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.queries import Row, find_support_by_row
from kgwb.kg.sparql import find_lone_surrogate, validate_query
from kgwb.llm.base import ChatRequest, Message
from kgwb.records import JsonObject, describe_validation_error, frozen
from kgwb.run import Run
from kgwb.run.agents import AgentKind, AgentSpec
from kgwb.run.answers import Value
from kgwb.run.engine import Engine
from kgwb.run.prompts import Prompt, parse_prompt
from kgwb.run.steps import Attempt, CheckResult
from kgwb.settings import Settings
from kgwb.terms import NAMELESS, Term, Triples

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
THOUGHT_FIELDS = (
    "reason",
    "reasoning",
    "thought",
    "thoughts",
    "thinking",
    "explanation",
    "rationale",
)
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
NOTHING_MORE = re.compile(rf"[`\s]*+(?:{THOUGHTS_END})?[`\s]*+", re.IGNORECASE)
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


@dataclass(frozen=True)  # without slots: Python 3.11 cannot make a Check[Reply] with them
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
        reply, _ = _validate(without_thoughts, reply_class)
        if "name" in data:
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
    if find_lone_surrogate(text):
        # A model wrote half of an emoji. That has no UTF-8 form, and no graph holds it.
        return None, "it holds half a character"
    return reply, ""


@frozen
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


def _object_with_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
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


@frozen
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
    failed_checks = [check.name for check in error.attempts[-1].problems]
    return JSON_CHECK_NAME not in failed_checks and SCHEMA_CHECK_NAME not in failed_checks


# Asking models


def ask(  # noqa: PLR0913  # a prompt is asked as a whole, its options by keywords
    prompt: str,
    variables: JsonObject,
    reply_class: type[R],
    run: Engine,
    *,
    checks: Sequence[Check[R]] = (),
    last_resort: Callable[[R], bool] | None = None,
    sample: int = 0,
    max_examples: int | None = None,
    temperature: float | None = None,
) -> R:
    """Ask the current agent's model, and return the first reply that is valid.

    A reply is valid if it has the form of ``reply_class`` and passes every check. There are at most
    ``Settings.theta`` attempts; ``Settings.repair`` says how one differs from the one before: it
    shows the model its error, is varied, or is the same. All attempts are added to the current
    step.

    ``last_resort`` may accept the last reply that had the right form, as the published code of
    Chatty-KG does; then the step gets a note. ``sample`` counts how often a system has asked the
    same before: it is added to the seed, and the temperature is then ``retry_temperature``, so that
    the reply can be another one. At most ``max_examples`` of the prompt's examples are sent; None
    is the number of the setting ``exemplars``. ``temperature`` is None for that of the settings.

    Raises InvalidReplyError, which has all attempts; PromptError; and what the model raises.
    """
    settings = run.settings
    if max_examples is None:
        max_examples = settings.exemplars
    request = _first_request(prompt, variables, reply_class, max_examples, run)
    if temperature is not None:
        request = replace(request, temperature=temperature)
    if sample:
        request = _vary_request(request, sample, settings)
    prompt_messages = request.messages
    attempts = []
    last_well_formed: R | None = None
    for _ in range(settings.theta):
        call, chat_reply = run.chat(request)
        reply, results = check_reply(chat_reply.text, chat_reply.finish_reason, reply_class, checks)
        attempt = Attempt(call.key, chat_reply.text, results)
        attempts.append(attempt)
        run.add_attempt(attempt)
        if reply is not None:
            if attempt.accepted:
                return reply
            last_well_formed = reply
        if settings.repair == "show_error":
            messages = (*prompt_messages, *repair_messages(attempt))
            request = replace(request, messages=messages)
        elif settings.repair == "ask_varied":
            request = _vary_request(request, sample + len(attempts), settings)

    if last_well_formed is not None and last_resort is not None and last_resort(last_well_formed):
        run.note(
            f"no reply passed every check in {settings.theta} attempts; "
            "the last one is used as it is"
        )
        return last_well_formed
    last_attempt = attempts[-1]
    problems = "; ".join(f"{check.name} ({check.problem})" for check in last_attempt.problems)
    hint = "look at the attempts, then edit the prompt, put a result in by hand, or take a stronger model"
    if CUT_OFF in problems:
        hint = f"allow more than {settings.max_output_tokens:,} tokens with the setting max_output_tokens"
    raise InvalidReplyError(
        f"{prompt}: no valid reply in {settings.theta} attempts; the last one failed {problems}",
        attempts,
        hint=hint,
    )


def try_to_ask(
    prompt: str,
    variables: JsonObject,
    reply_class: type[R],
    run: Engine,
    *,
    checks: Sequence[Check[R]] = (),
    last_resort: Callable[[R], bool] | None = None,
) -> R | None:
    """Ask as ``ask`` does; without a valid reply, return None if the settings say so.

    That is the setting ``exhausted_attempts``: with "abstain", None is returned and the step gets a
    note with the reason; with "error", InvalidReplyError is raised. Other errors of ``ask`` are
    always raised.
    """
    try:
        return ask(prompt, variables, reply_class, run, checks=checks, last_resort=last_resort)
    except InvalidReplyError as error:
        if run.settings.exhausted_attempts == "error":
            raise
        run.note(error.message)
        return None


def _first_request(
    prompt: str,
    variables: JsonObject,
    reply_class: type[BaseModel],
    max_examples: int,
    run: Engine,
) -> ChatRequest:
    """Return the request of the first attempt: the filled prompt, with the settings of the run.

    A system's own prompt must name the reply class in its header.

    Raises PromptError if the prompt is missing or wrong, or does not fit the variables.
    """
    settings = run.settings
    text = run.prompt_text(prompt)
    parsed_prompt = parse_prompt(prompt, text)
    if run.system.prompts.has_own(prompt):
        _check_reply_name(parsed_prompt, reply_class)
    return ChatRequest(
        task=prompt,
        messages=parsed_prompt.fill(variables, max_examples),
        schema=schema_of(reply_class),
        variables=variables,
        temperature=settings.temperature,
        seed=settings.seed,
        max_output_tokens=settings.max_output_tokens,
        timeout_s=settings.model_timeout_s,
        rule=run.system.rule(prompt),
    )


def _vary_request(request: ChatRequest, sample: int, settings: Settings) -> ChatRequest:
    """Return a request that asks the same, but as another sample, which is counted from 1."""
    seed = settings.seed + sample
    return replace(request, seed=seed, temperature=settings.retry_temperature)


def _check_reply_name(prompt: Prompt, reply_class: type[BaseModel]) -> None:
    """Raise PromptError if the header of a system's own prompt names another reply class.

    A header without the line "reply" passes.
    """
    named = prompt.header.get("reply", reply_class.__name__)
    if named != reply_class.__name__:
        raise PromptError(
            f"prompt {prompt.name} says `reply: {named}`, "
            f"but its agent asks for {reply_class.__name__}",
            hint=f"write `reply: {reply_class.__name__}` in its header",
        )


def repair_messages(attempt: Attempt) -> tuple[Message, ...]:
    """Return the messages that show a model its invalid reply and what is wrong with it.

    An empty reply is left out: some servers refuse an empty message.
    """
    problems = [f"- {check.name}: {check.problem}" for check in attempt.problems]
    lines = [
        "That reply cannot be used:",
        *problems,
        "Answer again, with nothing but the JSON object asked for.",
    ]
    complaint = Message("user", "\n".join(lines))
    if not attempt.reply.strip():
        return (complaint,)
    return (Message("assistant", attempt.reply), complaint)


ToolType = TypeVar("ToolType", bound="type[Tool]")
MAX_CACHED_REPLIES = 64
"""Reply classes that are kept: making one takes long."""


class Tool(BaseModel, extra="forbid"):
    """A tool that a model may choose. Its fields are the arguments; ``use`` does what it is for.

    A subclass has a field ``tool: Literal["name"]``, by which a model chooses it. The decorator
    ``tool`` makes it an agent. It stands among the agents of its System.
    """

    spec: ClassVar[AgentSpec]
    ends: ClassVar[bool]
    """Whether the turns end after its use."""

    def use(self, *arguments: Any, **named: Any) -> Any:
        """Use the tool, and return a record, or a tuple of them. ``text_for_model`` shows it.

        The last argument is the run. Those before it come from the system.
        """
        raise NotImplementedError


def tool(
    name: str, *, kind: AgentKind = "code", ends: bool = False
) -> Callable[[ToolType], ToolType]:
    """Return a decorator that makes each use of a Tool class a step of the run.

    ``name`` is the agent's name, and ``kind`` its kind. ``ends`` says that the turns of ``act`` end
    after its use. The subject of a step is the ``place`` that ``use_tool`` is given.
    """

    def decorate(tool_class: ToolType) -> ToolType:
        """Set ``spec`` and ``ends`` of the class, and return it."""
        tool_class.spec = AgentSpec(name, tool_class.use, "place", None, kind, is_tool=True)
        tool_class.ends = ends
        return tool_class

    return decorate


def tool_from_function(function: Callable[..., Any], *, kind: AgentKind = "code") -> type[Tool]:
    """Make a Tool of a function, under the function's name.

    A model gives the parameters before the ``*``, which need annotations. The system gives those
    after it, in their order, as the arguments of ``use_tool`` and the run. Defaults of the
    parameters are not used: the model must give every one. Raises KeyError for a parameter without
    annotation.
    """
    hints = get_type_hints(function, include_extras=True)
    fields: JsonObject = {}
    given_by_system = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            given_by_system.append(name)
        else:
            fields[name] = (hints[name], ...)

    @wraps(function)
    def use(self: Tool, *rest: Any) -> Any:
        """Call the function with the tool's fields and, by name, the arguments of the system.

        Raises ValueError for another number of arguments than it has after the ``*``.
        """
        of_model = {name: getattr(self, name) for name in fields}
        of_system = dict(zip(given_by_system, rest, strict=True))
        return function(**of_model, **of_system)

    tool_name = function.__name__
    tool_type: Any = Literal[tool_name]
    tool_class = create_model(tool_name, __base__=Tool, tool=(tool_type, ...), **fields)
    tool_class.use = use  # type: ignore[method-assign]
    decorate = tool(tool_name, kind=kind)
    return decorate(tool_class)


@frozen
class ToolUse:
    """One turn: why a tool was chosen, the tool with its arguments, and the result."""

    thought: str
    tool: Tool
    result: Any

    def __str__(self) -> str:
        """Return the turn as later prompts show it to the model.

        These are lines: the thought, the tool as JSON, and each result.
        """
        results = self.result
        if not isinstance(results, tuple):
            results = (results,)
        tool = self.tool.model_dump_json()
        shown = "\n".join(map(text_for_model, results))
        return f"{self.thought}\n{tool}\n{shown}"


def text_for_model(result: Any) -> str:
    """Return a tool's result as a model is shown it: its ``prompt_text``, else its ``str()``."""
    return str(getattr(result, "prompt_text", result))


def act(
    prompt: str,
    variables: JsonObject,
    tools: Sequence[type[Tool]],
    run: Engine,
    *,
    limit: int,
    before: Sequence[ToolUse] = (),
    checks: Sequence[Check[Any]] = (),
) -> tuple[ToolUse, ...]:
    """Ask a model which tool to use, use it, and repeat; return the turns.

    The turns end after a tool that ``ends`` them, or after ``limit`` turns. Besides ``variables``
    the prompt gets ``so_far``, the text of the turns taken, those of ``before`` first, and ``left``,
    the number of turns that are left, counting this one.
    A check gets the reply, which has ``thought``, a text, and ``action``, the tool. Each use of a
    tool is a step, "TOOL[turn 2]".

    Raises what ``ask`` and the tools raise.
    """
    reply_class = _action_reply(tuple(tools))
    uses: list[ToolUse] = []
    for turn in range(1, limit + 1):
        texts = []
        for number, use in enumerate([*before, *uses], 1):
            texts.append(f"{number}. {use}")
        turn_variables = {
            **variables,
            "so_far": "\n\n".join(texts) or "nothing yet",
            "left": limit - turn + 1,
        }
        reply: Any = ask(prompt, turn_variables, reply_class, run, checks=checks)
        result = use_tool(reply.action, f"turn {turn}", run)
        uses.append(ToolUse(reply.thought, reply.action, result))
        if reply.action.ends:
            break
    return tuple(uses)


def use_tool(action: Tool, place: str, run: Engine, **arguments: Any) -> Any:
    """Use a tool as a step of the run, and return its result.

    ``place`` distinguishes the steps of one tool, such as "turn 2". ``arguments`` go to the tool
    before the run. Raises what the tool raises.
    """
    inputs = {"place": place, "action": action, **arguments}
    work = partial(action.use, *arguments.values(), run)
    return run.execution.execute(action.spec, inputs, work)


@lru_cache(maxsize=MAX_CACHED_REPLIES)
def _action_reply(tools: tuple[type[Tool], ...]) -> type[BaseModel]:
    """Return the reply class of a turn, with the fields ``thought`` and ``action``.

    The action is one of the tools with its arguments. The class is made once for the same tools.
    """
    actions: Any = Union[tools]  # noqa: UP007  # a tuple of types
    return create_model(
        "ActionReply",
        __config__=ConfigDict(extra="forbid"),
        thought=(str, ...),
        action=(actions, ...),
    )


# Queries


def execute_sparql(kg: Graph, sparql: str) -> ResultSet | bool:
    """Check and execute a query; return the rows of a SELECT, or the truth of an ASK.

    Raises QueryError for any other form, QueryError or QueryRefusedError for a query that does not
    pass the gate, and the GraphErrors of its execution.
    """
    form = validate_query(sparql).form
    if form == "ask":
        return kg.ask(sparql)
    if form == "select":
        return kg.select(sparql)
    raise QueryError(f"it is a {form.upper()}; write a SELECT or an ASK")


def execute_unrecorded(sparql: str, run: Run) -> ResultSet | bool | None:
    """Execute a query outside of the record of a run, such as a gold query; see ``execute_sparql``.

    None if the graph rejects it, or without a graph that can be asked, as in a replay.
    """
    kg = run.unrecorded_graph
    if kg is None:
        return None
    try:
        return execute_sparql(kg, sparql)
    except GraphError:
        return None


def label_terms(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """Return the label of each distinct term, in their order: the display name of an IRI, or a literal's text.

    A blank node is NAMELESS. Names are asked of the graph with one request for all IRIs.
    """
    labels: dict[Term, str] = {}
    for term in terms:
        labels[term] = NAMELESS if isinstance(term, BNode) else str(term)
    iris = [term for term in labels if isinstance(term, URIRef)]
    for iri, name in run.kg.names(iris).items():
        labels[iri] = name
    return labels


def get_names_in_rows(rows: Iterable[Row], kg: Graph) -> Mapping[URIRef, str]:
    """Return the display names of the IRIs in some rows, by IRI, with one request to the graph for all."""
    iris = {cell for cell in chain.from_iterable(rows) if isinstance(cell, URIRef)}
    return kg.names(sorted(iris))


def find_row_support(
    sparql: str, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> Mapping[Row, Triples]:
    """Return, by row, the triples of the graph that support it, see ``find_support_by_row``.

    ``columns`` are the variables of the rows' cells. If the graph fails to answer, an empty mapping
    is returned and the step gets a note with the reason, so that the answer is not lost.
    """
    try:
        return find_support_by_row(run.kg, sparql, columns, rows)
    except GraphError as error:
        run.note(f"the support of the answer was not found: {error.message}")
        return {}


def make_row_values(
    sparql: str, columns: Sequence[str], rows: Iterable[Row], run: Run
) -> list[Value]:
    """Return a value for each different row that has a term, with the triples that support it.

    Its term is the first bound cell, and its label has the names of all bound cells, with " · "
    between them. It has the row itself if there are several ``columns``, which are the variables of
    the rows' cells.
    """
    cells_of = {}
    for row in rows:
        cells = [cell for cell in row if cell is not None]
        if cells:
            cells_of[row] = cells
    supports = find_row_support(sparql, columns, list(cells_of), run)
    labels = label_terms(chain.from_iterable(cells_of.values()), run)
    values = []
    for row, cells in cells_of.items():
        label = " · ".join(labels[cell] for cell in cells)
        kept_row = row if len(columns) > 1 else ()
        support = supports.get(row, ())
        values.append(Value(cells[0], label, support, kept_row))
    return values
