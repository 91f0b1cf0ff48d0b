"""Agents that choose tools: a model is asked in turns what to do next, until it is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any, ClassVar, Literal, TypeVar, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from kgwb.records import JsonObject
from kgwb.run.agent_spec import AgentKind, AgentSpec
from kgwb.run.ask import Check, ask
from kgwb.run.engine import Engine

ToolType = TypeVar("ToolType", bound="type[Tool]")
MAX_CACHED_REPLIES = 64
"""Reply classes that are kept: making one takes long."""


class Tool(BaseModel):
    """A tool that a model may choose. Its fields are the arguments; ``use`` does what it is for.

    A subclass has a field ``tool: Literal["name"]``, by which a model chooses it. The decorator
    ``tool`` makes it an agent. It stands among the agents of its System.
    """

    model_config = ConfigDict(extra="forbid")
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
        tool_class.spec = AgentSpec(name, tool_class.use, "place", None, kind)
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
    checks: Sequence[Check[Any]] = (),
) -> tuple[ToolUse, ...]:
    """Ask a model which tool to use, use it, and repeat; return the turns.

    The turns end after a tool that ``ends`` them, or after ``limit`` turns. Besides ``variables``
    the prompt gets ``so_far``, the text of the turns taken, and ``left``, the number of turns that
    are left, counting this one.
    A check gets the reply, which has ``thought``, a text, and ``action``, the tool. Each use of a
    tool is a step, "TOOL[turn 2]".

    Raises what ``ask`` and the tools raise.
    """
    reply_class = _action_reply(tuple(tools))
    uses: list[ToolUse] = []
    for turn in range(1, limit + 1):
        texts = []
        for number, use in enumerate(uses, 1):
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
    return run.execute(action.spec, inputs, work)


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
