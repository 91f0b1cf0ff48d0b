"""What is known of an agent without executing it, and what is wrong with how it is written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from kgwb.records import JsonObject, type_adapter

AgentKind = Literal["model", "search", "sparql", "sql", "code"]
"""What an agent does: asks a model, searches labels, queries the graph, or computes."""
Agent = Callable[..., Any]
InputCheck = Callable[..., Iterable[str]]
"""Returns the problems of an output, given the output and the inputs of the step."""
SAVED_TYPES = (str, int, float, bool, type(None))
"""Types that are JSON data as they are."""


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
        """The type of the output, from the annotation of the function; Any if it has none.

        For a TypedDict it is JsonObject: a plain dictionary can be neither checked against it nor,
        before Python 3.12, saved as it. Raises NameError for an annotation whose name the module
        lacks.
        """
        promised = get_type_hints(self.function).get("return", Any)
        if isinstance(promised, type) and hasattr(promised, "__total__"):
            return JsonObject
        return promised

    @property
    def purpose(self) -> str:
        """The first line of the function's docstring."""
        docstring = self.function.__doc__ or ""
        first_line, _, _ = docstring.strip().partition("\n")
        return first_line


def system_problems(
    functions: Iterable[Any],
    supervisors: Mapping[str, Sequence[str]],
    roles: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return what is wrong with the agents, supervisors and roles of a system; [] if nothing.

    ``functions`` are what was given as agents. The checks are: each function is decorated with
    ``@agent``, no two agents have one name, each signature and output type can be used, and
    ``supervisors`` and ``roles`` name only agents (a role's own name may be any). Each text says
    what to write.
    """
    problems = []
    specs = []
    for function in functions:
        spec = getattr(function, "spec", None)
        if isinstance(spec, AgentSpec):
            specs.append(spec)
        else:
            name = getattr(function, "__name__", repr(function))
            problems.append(f"{name} is not an agent: write @agent above it")
    names = [spec.name for spec in specs]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.append(f"two agents are named {name}: give one another name")
    for spec in specs:
        problems += _agent_problems(spec)
    problems += _unknown_names("supervisors", supervisors, names)
    for supervised in supervisors.values():
        problems += _unknown_names("supervisors", supervised, names)
    for played in roles.values():
        problems += _unknown_names("roles", played, names)
    return problems


def _unknown_names(where: str, given: Iterable[str], names: Sequence[str]) -> Iterator[str]:
    """Yield a problem for each of the given names that is not one of ``names``, the agents' names.

    ``where`` is the argument that has them: "supervisors" or "roles".
    """
    known = ", ".join(names)
    for name in given:
        if name not in names:
            yield f"{where} name {name!r}, which is not an agent: the agents are {known}"


def _agent_problems(spec: AgentSpec) -> Iterator[str]:
    """Yield what is wrong with the signature of an agent's function.

    A parameter ``run`` must be the last one, a parameter annotated as a run must be named ``run``,
    and the output must be one that can be saved (``_output_problems``).
    """
    parameters = inspect.signature(spec.function).parameters
    names = list(parameters)
    if "run" in names and names[-1] != "run":
        yield f"agent {spec.name}: write the parameter run last"
    for name, parameter in parameters.items():
        if name != "run" and _is_run_annotation(parameter.annotation):
            yield f"agent {spec.name}: its parameter {name} is a Run: name it run"
    yield from _output_problems(spec)


def _is_run_annotation(annotation: Any) -> bool:
    """Return whether a parameter is annotated as a run.

    That is a class named Run or Engine, or one of these names as a text; nothing else is resolved.
    """
    name = annotation
    if isinstance(annotation, type):
        name = annotation.__name__
    return name in ("Run", "Engine")


def _output_problems(spec: AgentSpec) -> Iterator[str]:
    """Yield why the outputs of an agent cannot be saved; nothing if they can be.

    There is a problem if an annotation names something that its module lacks, such as a type
    imported for type checkers only, if the annotations cannot be read, or if pydantic knows no form
    for the type. Any, SAVED_TYPES and dataclasses pass; the fields of a dataclass are not looked
    at.
    """
    try:
        output_type = spec.output_type
    except NameError as exc:
        yield f"agent {spec.name}: its annotations name {exc.name}, which its module does not have"
        return
    except TypeError as exc:
        yield f"agent {spec.name}: its annotations cannot be read: {exc}"
        return
    if output_type in SAVED_TYPES or output_type is Any:
        return
    if hasattr(output_type, "__dataclass_fields__"):
        return  # reading the types of all its fields takes long
    try:
        type_adapter(output_type)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError):
        shown = getattr(output_type, "__name__", str(output_type))
        yield (
            f"agent {spec.name}: {shown} cannot be saved: "
            "return a frozen dataclass, or JSON data, or a tuple of these"
        )
