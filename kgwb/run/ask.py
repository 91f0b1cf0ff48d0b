"""Asking a model for a validated reply: a prompt, variables, a reply class, checks and attempts.

What ``ask`` returns is always valid. Every attempt is recorded with the checks that it passed or
failed. The model's adapter repeats transient failures; only ``ask`` repeats a request because of
what a reply says.

``act`` asks in turns which tool to use, until the model is done.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from typing import Any, ClassVar, Literal, TypeVar, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from kgwb.errors import InvalidReplyError, PromptError
from kgwb.llm.base import ChatRequest, Message
from kgwb.records import JsonObject
from kgwb.run.agents import AgentKind, AgentSpec
from kgwb.run.engine import Engine
from kgwb.run.prompts import Prompt, parse_prompt
from kgwb.run.replies import Check, check_reply, schema_of
from kgwb.run.steps import Attempt
from kgwb.settings import Settings

R = TypeVar("R", bound=BaseModel)


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
    raise InvalidReplyError(
        f"{prompt}: no valid reply in {settings.theta} attempts; the last one failed {problems}",
        attempts,
        hint="look at the attempts, then edit the prompt, put a result in by hand, "
        "or take a stronger model",
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
    lines = ["That reply cannot be used:"]
    for check in attempt.problems:
        lines.append(f"- {check.name}: {check.problem}")
    lines.append("Answer again, with nothing but the JSON object asked for.")
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
    fields: dict[str, Any] = {}
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
        arguments = {}
        for name in fields:
            arguments[name] = getattr(self, name)
        for name, value in zip(given_by_system, rest, strict=True):
            arguments[name] = value
        return function(**arguments)

    tool_name = function.__name__
    tool_type: Any = Literal[tool_name]
    tool_class = create_model(tool_name, __base__=Tool, tool=(tool_type, ...), **fields)
    tool_class.use = use  # type: ignore[method-assign]
    decorate = tool(tool_name, kind=kind)
    return decorate(tool_class)


@dataclass(frozen=True, slots=True)
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
        action = reply.action
        result = use_tool(action, f"turn {turn}", run)
        uses.append(ToolUse(reply.thought, action, result))
        if action.ends:
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
