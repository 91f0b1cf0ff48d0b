"""Systems and their agents. An agent is a function; each execution of it is a step of the run."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar, get_type_hints

from kgwb.errors import SettingError
from kgwb.flow import Answer, Link, Turn
from kgwb.llm.base import Rule
from kgwb.run.gold import GoldDecisions
from kgwb.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
AgentKind = Literal["model", "search", "sparql", "code"]
"""What an agent does: asks a model, searches labels, queries the graph, or computes."""
Agent = Callable[..., Any]
View = Callable[[Any, Any], str]
"""Renders a record as HTML, given the record and a ``kgwb.show.terms.RenderContext``."""
InputCheck = Callable[..., Iterable[str]]
"""Returns the problems of an output, given the output and the inputs of the step."""


@dataclass(frozen=True)
class AgentSpec:
    """What is known of an agent without executing it."""

    name: str
    function: Agent
    subject: str | None
    """The parameter whose value distinguishes several steps of this agent; None if there is none."""
    check: InputCheck | None
    """Judges a value that a person puts in for the agent's output."""
    kind: AgentKind

    @functools.cached_property
    def output_type(self) -> Any:
        """The type of the output, from the annotation of the function."""
        return get_type_hints(self.function)["return"]

    @property
    def purpose(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


def agent(
    name: str,
    *,
    subject: str | None = None,
    check: InputCheck | None = None,
    kind: AgentKind = "code",
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make an agent of a function whose last parameter is ``run`` and whose result is a record.

    Each call of the decorated function is a step of the run: recorded, and shown to the person, who
    can replace its output. ``subject`` names the parameter that tells the steps of this agent
    apart. ``check`` judges a replacement.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        input_names = tuple(signature.parameters)[:-1]
        spec = AgentSpec(name, function, subject, check, kind)

        @functools.wraps(function)
        def execute(*args: P.args, **kwargs: P.kwargs) -> T:
            arguments = signature.bind(*args, **kwargs).arguments
            inputs = {name: arguments[name] for name in input_names if name in arguments}
            work = functools.partial(current_version(function), *args, **kwargs)
            result: T = arguments["run"].execute(spec, inputs, work)
            return result

        execute.spec = spec  # type: ignore[attr-defined]
        return execute

    return decorate


def current_version(function: F) -> F:
    """Return the function that its module has under the same name now.

    A module that is edited and loaded again in a notebook has new functions, while systems and
    other modules still hold the old ones. Functions of a notebook's cells, methods, and functions
    inside of functions are returned as they are.
    """
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ == "__main__":
        return function
    current: Any = getattr(module, function.__qualname__, function)
    spec = getattr(current, "spec", None)
    if isinstance(spec, AgentSpec):  # the module has the decorated function under the name
        current = spec.function
    if not inspect.isfunction(current):
        return function
    found: Any = current
    return found  # type: ignore[no-any-return]


def remember_turn(run: Any, links: Iterable[Link] | None = None, standalone: str = "") -> Turn:
    """Return what a dialogue remembers of a finished run.

    These are the question, its answers, and the vertices that were linked: those of ``links``, else
    of all steps whose output is a Link.
    """
    answer = run.answer or Answer("list")
    if links is None:
        links = [step.output for step in run.steps if step.done and isinstance(step.output, Link)]
    linked = {link.entity: link.vertex.iri for link in links if link.vertex}
    return Turn(
        question=run.question,
        answers=answer.labels,
        standalone=standalone,
        entities=tuple(linked),
        linked=tuple(linked.values()),
        vertices=answer.vertices,
    )


class System:
    """A question answering system: a value that says all the system has.

    ``answer(question, dialogue, run)`` returns the Answer of one turn. Everything in it that costs,
    varies or fails goes through the run.

    ``agents`` are the system's agents in flow order, or lists of them by the title of their stage.
    ``supervisors`` are agents that only supervise others, with the names of these.
    ``remember(run)`` returns what a dialogue remembers of a finished run.
    ``settings`` is the class of the system's settings.
    ``views`` has a function for each record class that is shown in a way of its own.
    ``rules`` has a function for each prompt that the model ``rules`` can answer.
    ``gold`` says what a gold query means to the agents, for the oracle ladder.
    """

    def __init__(  # noqa: PLR0913  # a system is passed as a whole, by keywords
        self,
        name: str,
        answer: Callable[..., Answer],
        agents: Iterable[Agent] | Mapping[str, Iterable[Any]],
        *,
        supervisors: Mapping[str, Sequence[str]] | None = None,
        remember: Callable[[Any], Turn] = remember_turn,
        settings: type[Settings] = Settings,
        views: Mapping[type, View] | None = None,
        rules: Mapping[str, Rule] | None = None,
        gold: GoldDecisions | None = None,
    ) -> None:
        self.name = name
        self.answer = answer
        self.remember = remember
        self.settings = settings
        self.supervisors = supervisors or {}
        self.views = views or {}
        self.rules = rules or {}
        self.gold = gold
        by_stage = agents if isinstance(agents, Mapping) else {"": agents}
        stages = {title: agent_specs(functions) for title, functions in by_stage.items()}
        self.agents = tuple(spec for specs in stages.values() for spec in specs)
        self.stages = tuple(
            (title, tuple(spec.name for spec in specs if spec.name not in self.supervisors))
            for title, specs in stages.items()
        )

    def agent_spec(self, key: str) -> AgentSpec:
        """Return the agent that a step's key names. Raises SettingError if there is none."""
        name = agent_of_key(key)
        for spec in self.agents:
            if spec.name == name:
                return spec
        known = ", ".join(spec.name for spec in self.agents)
        raise SettingError(f"{self.name} has no agent {name!r}", hint=f"its agents are {known}")

    def agent_kind(self, key: str) -> str:
        """Return the kind of the agent that a step's key names; "group" for a supervisor."""
        spec = self.agent_spec(key)
        return "group" if spec.name in self.supervisors else spec.kind

    def rule(self, prompt: str) -> Rule | None:
        """Return the function by which the model ``rules`` answers a prompt, if there is one."""
        rule = self.rules.get(prompt)
        return None if rule is None else current_version(rule)


def agent_specs(functions: Iterable[Any]) -> list[AgentSpec]:
    """Return the specifications of those functions that are agents, in their order."""
    return [function.spec for function in functions if hasattr(function, "spec")]


def agent_of_key(key: str) -> str:
    """Return the agent in the key of a step: "qir" of "qir[Who ...]#2"."""
    return key.partition("[")[0].partition("#")[0]


def subject_of(item: Any) -> str:
    """Return what distinguishes the step of an item: its ``step_subject``, else its text."""
    return str(getattr(item, "step_subject", item))
