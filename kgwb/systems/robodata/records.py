"""The records of RoboData: what a state decides, where the machine stands, what it produces."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import PlainSerializer, PlainValidator

from kgwb.records import Explanation, Record
from kgwb.run.tools import Tool
from kgwb.systems.robodata.local_graph import LocalGraph, fit_lines
from kgwb.systems.robodata.tools import LOCAL_TOOLS, REMOTE_TOOLS, UPDATE_TOOLS, Observed
from kgwb.terms import Term, Triple
from kgwb.text import list_first, pluralize

State = Literal["EVAL_LOCAL", "LOCAL", "REMOTE", "EVAL_REMOTE", "UPDATE", "PRODUCE"]
STATES: tuple[State, ...] = get_args(State)
TRANSITIONS: dict[State, tuple[State, ...]] = {
    "EVAL_LOCAL": ("PRODUCE", "REMOTE", "LOCAL"),
    "LOCAL": ("LOCAL", "EVAL_LOCAL"),
    "REMOTE": ("REMOTE", "EVAL_REMOTE"),
    "EVAL_REMOTE": ("UPDATE", "REMOTE", "EVAL_LOCAL"),
    "UPDATE": ("EVAL_LOCAL",),
}
"""Where each state may lead."""
TOOLS_BY_STATE: dict[State, tuple[type[Tool], ...]] = {
    "LOCAL": LOCAL_TOOLS,
    "REMOTE": REMOTE_TOOLS,
    "UPDATE": UPDATE_TOOLS,
}
TOOLS_BY_NAME = {form.spec.name: form for forms in TOOLS_BY_STATE.values() for form in forms}
EMPTY_GRAPH = LocalGraph()


def _parse_action(data: Any) -> Tool:
    if isinstance(data, Tool):
        return data
    fields = json.loads(data) if isinstance(data, str) else data
    if not isinstance(fields, dict) or fields.get("tool") not in TOOLS_BY_NAME:
        raise ValueError(
            f"a use of a tool is an object with a tool among {', '.join(TOOLS_BY_NAME)}"
        )
    return TOOLS_BY_NAME[fields["tool"]].model_validate(fields)


Action = Annotated[
    Tool, PlainValidator(_parse_action), PlainSerializer(Tool.model_dump_json, return_type=str)
]
"""A use of a tool; in a form, and in a file, the JSON that a model writes."""


@dataclass(frozen=True, slots=True)
class Decision(Record):
    """What a state does, and where it leads."""

    thought: Explanation
    next: State
    actions: tuple[Action, ...] = ()

    def __str__(self) -> str:
        return (
            f"{list_first((action.spec.name for action in self.actions), 3)} → {self.next}".strip()
        )


@dataclass(frozen=True, slots=True)
class Visit(Record):
    """One turn as memory keeps it."""

    state: State
    thought: Explanation
    next: State
    results: tuple[Observed, ...] = ()

    def __str__(self) -> str:
        return "; ".join([f"{self.state} → {self.next}", *map(str, self.results)])


@dataclass(frozen=True, slots=True)
class Position(Record):
    """Where the machine stands after a turn: all that the next turn is given."""

    question: str
    state: State = "EVAL_LOCAL"
    local: LocalGraph = EMPTY_GRAPH
    visits: tuple[Visit, ...] = ()
    advice: str = ""
    """The latest metacognitive observation."""

    def __str__(self) -> str:
        return f"→ {self.state}; {self.statistics}"

    @property
    def statistics(self) -> str:
        """As the paper prints them."""
        uses = sum(len(visit.results) for visit in self.visits)
        return (
            f"{pluralize(len(self.visits), 'turn')}, {pluralize(uses, 'tool call')}, {self.local}"
        )

    @property
    def usage_counts(self) -> str:
        """How often each way between states was gone and each tool used."""
        ways = Counter(f"{visit.state} → {visit.next}" for visit in self.visits)
        tools = Counter(
            each.use.partition("(")[0] for visit in self.visits for each in visit.results
        )
        return "; ".join(f"{name} {n}" for name, n in [*ways.items(), *tools.items()])

    def format_results(self, max_chars: int) -> str:
        """What tools gave since the local graph was last changed, that change with it; the newest first."""
        updates = [place for place, visit in enumerate(self.visits) if visit.state == "UPDATE"]
        latest = [
            each for visit in self.visits[max(updates, default=0) :] for each in visit.results
        ][::-1]
        return (
            fit_lines(
                [line for each in latest for line in each.format_lines(self.local)], max_chars
            )
            or "none"
        )

    def format_memory(self, most: int) -> str:
        """The latest turns with results and thoughts as far as there is room, earlier ones folded."""
        lines: list[str] = []
        for number, visit in reversed([*enumerate(self.visits, 1)]):
            whole = f"{number}. {visit}; thought: {visit.thought}"
            folded = f"{number}. {visit.state} → {visit.next}, {pluralize(len(visit.results), 'tool call')}"
            lines.append(whole if len(whole) <= most else folded)
            most -= len(lines[-1])
        return "\n".join(reversed(lines)) or "nothing yet"


@dataclass(frozen=True, slots=True)
class Sentence(Record):
    """A sentence of the answer with its support set, each element checked."""

    text: str
    support: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()
    failed: tuple[str, ...] = ()
    """Elements given that are not in the graph, in the model's words."""

    def __str__(self) -> str:
        return f"{self.text} [{self.problem}]" if self.problem else self.text

    @property
    def problem(self) -> str:
        """What is wrong with the support."""
        if self.failed:
            return f"not in the graph: {list_first((text[:120] for text in self.failed), 3)}"
        return "" if self.support or self.nodes else "without support"


@dataclass(frozen=True, slots=True)
class Produced(Record):
    """The answer in sentences, and as the things that it names."""

    sentences: tuple[Sentence, ...]
    kind: Literal["things", "count", "yes", "no", "nothing"]
    answers: tuple[Term, ...] = ()
    """Nodes of the local graph; of a count those that are counted."""
    missing: Explanation = ""

    def __str__(self) -> str:
        return " ".join(map(str, self.sentences)) or f"nothing: {self.missing}"
