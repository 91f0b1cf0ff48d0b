"""Typed tools in a loop: beside ``ask``, for agents that choose what to do next until they are done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any, ClassVar, Literal, TypeVar, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from kgwb.run.agents import AgentSpec, Kind
from kgwb.run.ask import Check, ask
from kgwb.run.engine import Engine

ToolType = TypeVar("ToolType", bound="type[Tool]")


class Tool(BaseModel):
    """One thing that a model may choose to do: its fields are the arguments, ``use`` does it.

    A subclass names itself in a field ``tool: Literal["name"]``, by which a model chooses it, and is made an
    agent by ``tool``, which goes among the agents of its System.
    """

    model_config = ConfigDict(extra="forbid")
    spec: ClassVar[AgentSpec]
    ends: ClassVar[bool]

    def use(self, *arguments: Any, **named: Any) -> Any:
        """The record of what came of it, whose text the model sees then; the run comes last."""
        raise NotImplementedError


def tool(name: str, *, kind: Kind = "code", ends: bool = False) -> Callable[[ToolType], ToolType]:
    """Make a Tool an agent; the loop is over after one that ``ends`` it."""

    def decorate(form: ToolType) -> ToolType:
        form.spec = AgentSpec(name, form.use, "place", None, kind)
        form.ends = ends
        return form

    return decorate


def tool_of(function: Callable[..., Any], *, kind: Kind = "code") -> type[Tool]:
    """A Tool made of a function: a model gives its parameters up to the ``*``, the system those after it."""
    parameters = inspect.signature(function).parameters
    by_system = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ...) for name in parameters if name not in by_system
    }

    @wraps(function)
    def use(self: Tool, *rest: Any) -> Any:
        arguments = {name: getattr(self, name) for name in fields}
        return function(**arguments, **dict(zip(by_system, rest, strict=True)))

    named: Any = Literal[function.__name__]
    form = create_model(function.__name__, __base__=Tool, tool=(named, ...), **fields)
    form.use = use  # type: ignore[method-assign]
    return tool(function.__name__, kind=kind)(form)


@dataclass(frozen=True, slots=True)
class Use:
    """One turn of the loop."""

    thought: str
    tool: Tool
    result: Any

    def __str__(self) -> str:
        result = "\n".join(map(str, self.result)) if isinstance(self.result, tuple) else self.result
        return f"{self.thought}\n{self.tool.model_dump_json()}\n{result}"


def act(
    prompt: str,
    variables: Mapping[str, Any],
    tools: Sequence[type[Tool]],
    run: Engine,
    *,
    limit: int,
    checks: Sequence[Check[Any]] = (),
) -> tuple[Use, ...]:
    """The turns up to the first tool that ends the loop, at most ``limit``; each use is a step of the run.

    The prompt gets ``so_far``, the turns taken, and ``left``, how many are left, beside the variables.
    A check is given the reply, which has ``thought`` and ``action``. Raises what ``ask`` and the tools raise.
    """
    uses: list[Use] = []
    for number in range(1, limit + 1):
        so_far = (
            "\n\n".join(f"{place}. {use}" for place, use in enumerate(uses, 1)) or "nothing yet"
        )
        now = {**variables, "so_far": so_far, "left": limit - number + 1}
        reply: Any = ask(prompt, now, _reply(tuple(tools)), run, checks=checks)
        action: Tool = reply.action
        result = perform(action, f"turn {number}", run)
        uses.append(Use(reply.thought, action, result))
        if action.ends:
            break
    return tuple(uses)


def perform(action: Tool, place: str, run: Engine, **arguments: Any) -> Any:
    """What comes of one use of a tool, which is a step of the run; ``arguments`` go to it before the run."""
    inputs = {"place": place, "action": action, **arguments}
    return run.execute(action.spec, inputs, partial(action.use, *arguments.values(), run))


@lru_cache(maxsize=64)
def _reply(tools: tuple[type[Tool], ...]) -> type[BaseModel]:
    """What a model replies in each turn: a thought, and one of the tools with its arguments."""
    actions: Any = Union[tools]  # noqa: UP007  # of a tuple
    return create_model(
        "ActionReply",
        __config__=ConfigDict(extra="forbid"),
        thought=(str, ...),
        action=(actions, ...),
    )
