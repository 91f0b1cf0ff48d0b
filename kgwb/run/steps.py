"""Steps: each execution of an agent, with its inputs, output, calls and attempts, and as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from kgwb.flow import Link
from kgwb.kg.survey_records import Survey
from kgwb.records import one_line, summarize, to_data
from kgwb.run.calls import QUERY_KINDS, SEARCH_KINDS, Call, names_in_calls
from kgwb.terms import DisplayNames
from kgwb.text import format_seconds, pluralize, shorten, single_line

Origin = Literal["live", "record", "by hand"]
"""Where the output of a step came from: new calls, recorded calls only, or a person."""
MAX_OUTCOME_CHARS = 80
NO_CALLS: Mapping[str, Call] = {}
TERMINAL_STYLES = {"key": "1", "aside": "2", "failure": "31", "note": "33"}
"""ANSI codes: bold, dim, red and yellow."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one named check of one reply."""

    name: str
    problem: str = ""
    """Empty if the check passed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reply of a model, and the checks that were made of it.

    Checks after one that failed may not have been made.
    """

    call: str
    """Key of the model call."""
    reply: str
    checks: tuple[CheckResult, ...]

    @property
    def accepted(self) -> bool:
        return not any(check.problem for check in self.checks)

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.problem)


@dataclass(slots=True, repr=False)
class Step:
    """One execution of an agent."""

    key: str
    """Agent, subject and occurrence: "vertex_selection[Harry Potter]#2"."""
    agent: str
    subject: str
    """What distinguishes the steps of one agent, such as the mention it links; may be empty."""
    parent: str
    """Key of the supervising step; empty at the top."""
    inputs: Mapping[str, Any]
    output_type: Any
    output: Any = None
    done: bool = False
    origin: Origin = "record"
    calls: list[str] = field(default_factory=list)
    """Keys of its calls in the order of use, without those of the steps it supervises."""
    live_calls: int = 0
    """How many model calls were made, and not taken from the record."""
    attempts: list[Attempt] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    """Names of the prompts it used."""
    notes: list[str] = field(default_factory=list)
    """Remarks of the agent for the person: a result was cut, a fallback was taken."""
    seconds: float = 0.0
    error: str = ""
    known_calls: Mapping[str, Call] = field(default_factory=dict, compare=False)
    """The calls of the run by key. A step on its own needs them to show prompts, cost and names."""
    views: Mapping[type, Any] = field(default_factory=dict, compare=False)
    """The views of the system, by record class. A step on its own needs them to show its output."""

    @property
    def outcome(self) -> str:
        """The output in one short line, or why there is none."""
        if self.done:
            return shorten(one_line(self.output), MAX_OUTCOME_CHARS)
        return single_line(f"failed: {self.error}") if self.error else "not done"

    def to_data(self) -> dict[str, Any]:
        """Return the step as an entry of a run file."""
        names = [field.name for field in fields(self)]
        data = {name: getattr(self, name) for name in names if name not in UNSAVED_FIELDS}
        data["inputs"] = {name: to_data(value) for name, value in self.inputs.items()}
        data["output"] = to_data(self.output, self.output_type) if self.done else None
        data["attempts"] = [to_data(attempt) for attempt in self.attempts]
        data["seconds"] = round(self.seconds, 6)
        return data

    def __str__(self) -> str:
        return single_line(f"{self.key}: {self.outcome}")

    def summary(self) -> str:
        """Return the output with its parts, the cost, failed attempts and notes as lines."""
        return format_tree([self], self.known_calls)

    def __repr__(self) -> str:
        return self.summary()


UNSAVED_FIELDS = ("output_type", "known_calls", "views")


@dataclass(frozen=True, slots=True)
class Totals:
    """What one execution of a run used, from the record or live."""

    model_calls: int = 0
    live_model_calls: int = 0
    """The model calls among them that were not taken from the record."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    queries: int = 0
    searches: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    graph_seconds: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[Call], live_model_calls: int, seconds: float) -> Totals:
        """Return the totals of the calls of one execution."""
        calls = list(calls)
        model_calls = [call for call in calls if call.kind == "model"]
        queries = [call for call in calls if call.kind in QUERY_KINDS]
        searches = [call for call in calls if call.kind in SEARCH_KINDS]
        names = [call for call in calls if call.kind == "names"]
        graph_calls = [*queries, *searches, *names]
        return cls(
            model_calls=len(model_calls),
            live_model_calls=live_model_calls,
            prompt_tokens=sum(call.result.prompt_tokens for call in model_calls),
            completion_tokens=sum(call.result.completion_tokens for call in model_calls),
            queries=len(queries),
            searches=len(searches),
            seconds=seconds,
            model_seconds=sum(call.seconds for call in model_calls),
            graph_seconds=sum(call.seconds for call in graph_calls),
        )

    def __str__(self) -> str:
        model_calls = pluralize(self.model_calls, "model call")
        parts = [
            f"{model_calls} ({self.live_model_calls} live)",
            f"{self.prompt_tokens + self.completion_tokens:,} tokens",
            pluralize(self.queries, "query"),
            pluralize(self.searches, "label search"),
            format_seconds(self.seconds),
        ]
        return ", ".join(parts)


def group_by_supervisor(steps: Collection[Step]) -> dict[str | None, list[Step]]:
    """Return the steps below each supervising step, by its key.

    Under None stand the steps that none of the given steps supervises.
    """
    keys = {step.key for step in steps if step.key}  # the root of an execution has no key
    groups: dict[str | None, list[Step]] = {}
    for step in steps:
        supervisor = step.parent if step.parent in keys else None
        groups.setdefault(supervisor, []).append(step)
    return groups


def names_in_steps(steps: Iterable[Step], calls: Mapping[str, Call]) -> dict[str, str]:
    """Return every display name that a run's record holds, by IRI.

    Names come from the calls, from linked vertices and from a survey of the graph.
    """
    names = names_in_calls(list(calls.values()))  # a run that is executing adds calls meanwhile
    for step in steps:
        if isinstance(step.output, Link) and step.output.vertex:
            names[str(step.output.vertex.iri)] = step.output.vertex.label
        elif isinstance(step.output, Survey):
            surveyed = {str(iri): name for iri, name in step.output.names}
            names = surveyed | names
    return names


# Text for a terminal


def format_tree(
    steps: Sequence[Step],
    calls: Mapping[str, Call] = NO_CALLS,
    *,
    names: DisplayNames | None = None,
    color: bool = False,
) -> str:
    """Return steps as a tree: each below its supervisor, with its output, cost and notes.

    ``calls`` are those of the run (``Run.calls``). They give the cost, and display names unless
    ``names`` has them. ``color`` adds ANSI codes.
    """
    known_names = names_in_steps(steps, calls) if names is None else names
    groups = group_by_supervisor(steps)

    def branch(parent: str | None, indent: str) -> Iterator[str]:
        siblings = groups.get(parent, [])
        for step in siblings:
            is_last = step is siblings[-1]
            supervises = step.key in groups
            child_indent = indent + ("   " if is_last else "│  ")
            head, *details = _step_lines(step, calls, known_names, supervises, color)
            yield indent + ("└─ " if is_last else "├─ ") + head
            for line in details:
                yield child_indent + ("│  " if supervises else "   ") + line
            yield from branch(step.key, child_indent)

    return "\n".join(branch(None, ""))


def _step_lines(
    step: Step, calls: Mapping[str, Call], names: DisplayNames, supervises: bool, color: bool
) -> Iterator[str]:
    """Yield the lines of one step; a supervising step's output is left to the steps below it."""
    output = summarize(step.output, names).splitlines() if step.done else [step.outcome]
    head = add_color(output[0], "failure", color) if step.error else output[0]
    cost = add_color(
        f"({', '.join([*_origin_text(step), *step_costs(step, calls)])})", "aside", color
    )
    yield f"{add_color(single_line(step.key), 'key', color)}: {head}  {cost}"
    if not supervises:
        for line in output[1:]:
            yield single_line(line)
    for number, attempt in enumerate(step.attempts, 1):
        problems = "; ".join(f"{check.name}: {check.problem}" for check in attempt.problems)
        if problems:
            yield add_color(single_line(f"attempt {number} failed: {problems}"), "failure", color)
    for note in step.notes:
        yield add_color(single_line(f"note: {note}"), "note", color)


def _origin_text(step: Step) -> list[str]:
    """Return where the output came from, where the step made calls or was edited."""
    if step.origin == "record":
        return ["from the record"] if step.calls else []
    return [step.origin]


def step_costs(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """Return what a step cost: ["1 model call", "2 queries", "1 label search", "31 ms"]."""
    kinds = [calls[key].kind for key in step.calls if key in calls]
    model_calls = kinds.count("model") if calls else len(step.attempts)
    counts = {
        "model call": model_calls,
        "query": sum(kind in QUERY_KINDS for kind in kinds),
        "label search": sum(kind in SEARCH_KINDS for kind in kinds),
    }
    costs = [pluralize(count, noun) for noun, count in counts.items() if count]
    return [*costs, format_seconds(step.seconds)]


def add_color(text: str, style: str, color: bool) -> str:
    """Return the text in one of TERMINAL_STYLES, or as it is without ``color``."""
    return f"\x1b[{TERMINAL_STYLES[style]}m{text}\x1b[0m" if color else text
