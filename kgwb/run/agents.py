"""What a system and its agents are: plain functions, each execution of which is a step of the run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, get_type_hints

from kgwb.errors import SettingError
from kgwb.flow import Answer, Dialogue, Question, Turn

if TYPE_CHECKING:
    from kgwb.run.run import Run

P = ParamSpec("P")
T = TypeVar("T")
Kind = Literal["model", "search", "sparql", "code"]


class System(Protocol):
    """What a module ``kgwb.systems.<name>.pipeline`` offers as ``SYSTEM``."""

    name: str
    agents: tuple[AgentSpec, ...]
    """In flow order."""
    stages: Sequence[tuple[str, tuple[str, ...]]]
    """The parts of the system by title, with the names of the agents that work in them."""
    supervisors: Mapping[str, tuple[str, ...]]
    """The agents that only supervise others, with the names of those."""

    def answer(self, question: Question, dialogue: Dialogue, run: Run) -> Answer:
        """The answer to one turn; everything that costs, varies or fails goes through ``run``."""
        ...

    def turn(self, run: Run) -> Turn:
        """What a dialogue remembers of a finished run."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What is known of an agent without running it."""

    name: str
    form: Any
    """The type of its output."""
    subject: str | None
    """Name of the parameter that tells several steps of this agent apart."""
    check: Callable[..., Iterable[str]] | None
    """Problems of an output, given the output and the agent's arguments; judges values put in by hand."""
    purpose: str
    kind: Kind = "code"
    """What the agent does: asks a model, looks labels up, queries the graph, or computes."""


AGENTS: dict[Callable[..., Any], AgentSpec] = {}
"""Every agent defined so far, filled by the decorator."""


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

        @functools.wraps(function)
        def execute(*args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(*args, **kwargs).arguments
            run: Run = bound["run"]
            inputs = {name: bound[name] for name in names if name in bound}
            result: T = run.execute(spec_of(execute), inputs, lambda: function(*args, **kwargs))
            return result

        purpose = (function.__doc__ or "").strip().partition("\n")[0]
        AGENTS[execute] = AgentSpec(name, function, subject, check, purpose, kind)
        return execute

    return decorate


@functools.cache
def spec_of(function: Callable[..., Any]) -> AgentSpec:
    """The specification of an agent function."""
    spec = AGENTS[function]
    return replace(spec, form=get_type_hints(spec.form)["return"])


def spec_at(system: System, key: str) -> AgentSpec:
    """The specification of the agent that a step's key names. Raises SettingError if the system has none."""
    name = key.partition("[")[0].partition("#")[0]
    found = next((spec for spec in system.agents if spec.name == name), None)
    if found is None:
        known = ", ".join(spec.name for spec in system.agents)
        raise SettingError(f"{system.name} has no agent {name!r}", hint=f"its agents are {known}")
    return found


def kind_of(system: System, agent: str) -> str:
    """The kind of an agent of the system; "group" for one that only supervises others."""
    return "group" if agent in supervisors_of(system) else spec_at(system, agent).kind


def supervisors_of(system: System) -> Mapping[str, tuple[str, ...]]:
    """See System; none of a system that does not say."""
    return getattr(system, "supervisors", {})


def stages_of(system: System) -> Sequence[tuple[str, tuple[str, ...]]]:
    """See System; one stage of all agents that work, for a system that does not say."""
    at_work = tuple(spec.name for spec in system.agents if spec.name not in supervisors_of(system))
    return getattr(system, "stages", None) or (("", at_work),)


def subject_of(item: Any) -> str:
    """What tells an item's step apart from others: its ``step_subject`` if it has one, else its text."""
    return str(getattr(item, "step_subject", item))


def tells_apart(function: Callable[..., Any], items: Iterable[Any]) -> bool:
    """Whether the steps of an agent over these items have subjects of their own: order cannot matter."""
    spec = AGENTS.get(function)
    first = next(iter(inspect.signature(function).parameters), None)
    subjects = [subject_of(item) for item in items]
    return spec is not None and spec.subject == first and len(set(subjects)) == len(subjects)
