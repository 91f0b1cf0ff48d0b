"""What a system and its agents are: plain functions, each execution of which is a step of the run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar, get_type_hints

from kgwb.errors import SettingError
from kgwb.flow import Answer, Link, Turn
from kgwb.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
Kind = Literal["model", "search", "sparql", "code"]
Agent = Callable[..., Any]


@dataclass(frozen=True)
class AgentSpec:
    """What is known of an agent without running it."""

    name: str
    function: Agent
    subject: str | None
    """Name of the parameter by which several steps of this agent are distinguished."""
    check: Callable[..., Iterable[str]] | None
    """Problems of an output, given the output and the agent's arguments; judges values put in by hand."""
    kind: Kind
    """What the agent does: asks a model, looks labels up, queries the graph, or computes."""

    @functools.cached_property
    def form(self) -> Any:
        """The type of its output."""
        return get_type_hints(self.function)["return"]

    @property
    def purpose(self) -> str:
        return (self.function.__doc__ or "").strip().partition("\n")[0]


def agent(
    name: str,
    *,
    subject: str | None = None,
    check: Callable[..., Iterable[str]] | None = None,
    kind: Kind = "code",
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function ``(..., run) -> record`` an agent: each of its executions is a step of the run."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        names = tuple(signature.parameters)[:-1]
        spec = AgentSpec(name, function, subject, check, kind)

        @functools.wraps(function)
        def execute(*args: P.args, **kwargs: P.kwargs) -> T:
            arguments = signature.bind(*args, **kwargs).arguments
            inputs = {name: arguments[name] for name in names if name in arguments}
            result: T = arguments["run"].execute(spec, inputs, lambda: function(*args, **kwargs))
            return result

        execute.spec = spec  # type: ignore[attr-defined]
        return execute

    return decorate


def remembered(run: Any, links: Iterable[Link] | None = None, standalone: str = "") -> Turn:
    """What a dialogue remembers of a finished run: the question, its answers, and the vertices linked."""
    answer = run.answer or Answer("list")
    if links is None:
        links = [step.output for step in run.steps if step.done and isinstance(step.output, Link)]
    linked = {link.entity: link.vertex.iri for link in links if link.vertex}
    return Turn(
        run.question,
        answer.labels,
        standalone,
        tuple(linked),
        tuple(linked.values()),
        answer.vertices,
    )


class System:
    """A system of agents: ``answer(question, dialogue, run)`` gives the Answer of one turn.

    Everything that costs, varies or fails goes through the run. ``agents`` are in flow order, by the title of
    their stage where the system has some; ``supervisors`` those that only supervise others, with the names of
    these. ``remember(run)`` gives what a dialogue remembers.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[..., Answer],
        agents: Iterable[Agent] | Mapping[str, Iterable[Any]],
        *,
        supervisors: Mapping[str, Sequence[str]] | None = None,
        remember: Callable[[Any], Turn] = remembered,
        settings: type[Settings] = Settings,
    ) -> None:
        self.name, self.answer, self.remember, self.settings = name, answer, remember, settings
        self.supervisors = supervisors or {}
        by_stage = agents if isinstance(agents, Mapping) else {"": agents}
        stages: dict[str, list[AgentSpec]] = {}
        for title, functions in by_stage.items():
            stages[title] = [function.spec for function in functions if hasattr(function, "spec")]
        self.agents = tuple(spec for specs in stages.values() for spec in specs)
        self.stages = tuple(
            (title, tuple(spec.name for spec in specs if spec.name not in self.supervisors))
            for title, specs in stages.items()
        )

    def spec(self, key: str) -> AgentSpec:
        """The agent that a step's key names. Raises SettingError if the system has none."""
        name = key.partition("[")[0].partition("#")[0]
        for spec in self.agents:
            if spec.name == name:
                return spec
        known = ", ".join(spec.name for spec in self.agents)
        raise SettingError(f"{self.name} has no agent {name!r}", hint=f"its agents are {known}")

    def kind(self, key: str) -> str:
        """The kind of the agent that a step's key names; "group" for one that only supervises others."""
        spec = self.spec(key)
        return "group" if spec.name in self.supervisors else spec.kind


def subject_of(item: Any) -> str:
    """What distinguishes an item's step: its ``step_subject`` if it has one, else its text."""
    return str(getattr(item, "step_subject", item))
