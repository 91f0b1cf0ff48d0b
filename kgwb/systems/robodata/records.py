"""The records of RoboData: decisions, observations, the position of the machine, and its answer."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, Literal, get_args

from pydantic import GetCoreSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import CoreSchema, core_schema

from kgwb.build import Explanation, Record, Term, Tool, Triple, list_first, pluralize
from kgwb.systems.robodata.local_graph import LocalGraph, fit_lines
from kgwb.systems.robodata.tool_results import Observed
from kgwb.systems.robodata.tools import LOCAL_TOOLS, REMOTE_TOOLS, UPDATE_TOOLS

State = Literal["EVAL_LOCAL", "LOCAL", "REMOTE", "EVAL_REMOTE", "UPDATE", "PRODUCE"]
STATES: tuple[State, ...] = get_args(State)
TRANSITIONS: dict[State, tuple[State, ...]] = {
    "EVAL_LOCAL": ("PRODUCE", "REMOTE", "LOCAL"),
    "LOCAL": ("LOCAL", "EVAL_LOCAL"),
    "REMOTE": ("REMOTE", "EVAL_REMOTE"),
    "EVAL_REMOTE": ("UPDATE", "REMOTE", "EVAL_LOCAL"),
    "UPDATE": ("EVAL_LOCAL",),
}
"""The states that may follow each state (paper, "Stateful Orchestrator"). PRODUCE is the last."""
STATES_AFTER_REMOTE: dict[str, tuple[State, ...]] = {
    "remote_or_eval_remote": ("REMOTE", "EVAL_REMOTE"),
    "eval_remote": ("EVAL_REMOTE",),
    "remote_or_eval_local": ("REMOTE", "EVAL_LOCAL"),
}
"""The states that may follow REMOTE, for each value of the setting ``after_remote``."""
TOOLS_BY_STATE: dict[State, tuple[type[Tool], ...]] = {
    "LOCAL": LOCAL_TOOLS,
    "REMOTE": REMOTE_TOOLS,
    "UPDATE": UPDATE_TOOLS,
}
TOOLS_BY_NAME = {tool.spec.name: tool for tool in chain.from_iterable(TOOLS_BY_STATE.values())}
EMPTY_GRAPH = LocalGraph()
MAX_SHOWN_ELEMENT_CHARS = 120


def _parse_action(data: Any) -> Tool:
    """Return the tool use that a JSON object, or its text, describes; a tool use is returned as it is.

    Raises ValueError for an unknown tool, wrong arguments, or what is no such object.
    """
    if isinstance(data, Tool):
        return data
    fields = json.loads(data) if isinstance(data, str) else data
    if not isinstance(fields, dict) or fields.get("tool") not in TOOLS_BY_NAME:
        names = ", ".join(TOOLS_BY_NAME)
        raise ValueError(f"a use of a tool is an object with a tool among {names}")
    return TOOLS_BY_NAME[fields["tool"]].model_validate(fields)


Action = Annotated[
    Tool, PlainValidator(_parse_action), PlainSerializer(Tool.model_dump_json, return_type=str)
]
"""A use of a tool. In files and forms it is the JSON text that a model writes."""


@dataclass(frozen=True, slots=True)
class Decision(Record):
    """The tool uses that a state decides on, and the next state."""

    thought: Explanation
    next: State
    actions: tuple[Action, ...] = ()

    def __str__(self) -> str:
        """Return the names of the first tools and the next state: "fetch_node → EVAL_LOCAL"."""
        names = list_first((action.spec.name for action in self.actions), 3)
        return f"{names} → {self.next}".strip()


@dataclass(frozen=True, slots=True)
class Visit(Record):
    """One turn of the machine, as memory keeps it."""

    state: State
    thought: Explanation
    next: State
    results: tuple[Observed, ...] = ()

    def __str__(self) -> str:
        transition = f"{self.state} → {self.next}"
        return "; ".join([transition, *map(str, self.results)])


@dataclass(frozen=True, slots=True)
class Observation(Record):
    """A metacognitive observation: the strategy, how it is judged, and what to do differently."""

    strategy: str = ""
    judgement: Explanation = ""
    advice: str = ""
    """What to do differently; empty if the strategy is good."""

    def __str__(self) -> str:
        return self.advice or self.judgement

    def format_for_prompt(self, number: int) -> str:
        """Return the observation as a model is shown it: numbered, with its three parts."""
        advice = self.advice or "none"
        return f"{number}. strategy: {self.strategy}\n   judgement: {self.judgement}\n   advice: {advice}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that also reads the text of an advice, as runs had it before."""

        def read_text(data: Any) -> Any:
            return {"advice": data} if isinstance(data, str) else data

        return core_schema.no_info_before_validator_function(read_text, handler(source))


@dataclass(frozen=True, slots=True)
class Position(Record):
    """The position of the machine after a turn: all that the next turn needs."""

    question: str
    state: State = "EVAL_LOCAL"
    """The state of the next turn."""
    local: LocalGraph = EMPTY_GRAPH
    visits: tuple[Visit, ...] = ()
    """The turns so far, in order."""
    advice: str = ""
    """The advice of metacognition that is in force."""
    observations: tuple[Observation, ...] = ()
    """The metacognitive observations so far, in order."""

    def __str__(self) -> str:
        return f"→ {self.state}; {self.statistics}"

    @property
    def statistics(self) -> str:
        """Return the size as the paper's tables have it: "3 turns, 5 tool calls, 4 nodes, 3 edges"."""
        use_count = 0
        for visit in self.visits:
            use_count += len(visit.results)
        turns = pluralize(len(self.visits), "turn")
        uses = pluralize(use_count, "tool call")
        return f"{turns}, {uses}, {self.local}"

    @property
    def usage_counts(self) -> str:
        """How often each transition was made and each tool used, as text: "LOCAL → LOCAL 1; get_node 2".

        They are in the order of their first use, transitions before tools. "" before the first
        turn.
        """
        transitions: Counter[str] = Counter()
        tools: Counter[str] = Counter()
        for visit in self.visits:
            transitions[f"{visit.state} → {visit.next}"] += 1
            for result in visit.results:
                tool = result.use.partition("(")[0]
                tools[tool] += 1
        counts = chain(transitions.items(), tools.items())
        return "; ".join(f"{name} {count}" for name, count in counts)

    def with_observation(self, observation: Observation, *, keeps_advice: bool) -> Position:
        """Return a copy of the position with one more observation, whose advice replaces the earlier advice.

        If it has no advice, the earlier one stays in force with ``keeps_advice``, else there is
        none.
        """
        advice = observation.advice
        if not advice and keeps_advice:
            advice = self.advice
        observations = (*self.observations, observation)
        return replace(self, advice=advice, observations=observations)

    @property
    def was_looked_into(self) -> bool:
        """Whether a visit of LOCAL came after the last visit that changed the local graph."""
        for visit in reversed(self.visits):
            if visit.state == "LOCAL":
                return True
            if any(result.changes_graph for result in visit.results):
                return False
        return False

    @property
    def outcome(self) -> str:
        """A text for a model: size and parts of the local graph, visits by state, and failed or empty tool calls."""
        states = Counter(visit.state for visit in self.visits)
        results = list(chain.from_iterable(visit.results for visit in self.visits))
        errors = sum(bool(result.error) for result in results)
        without_rows = sum(not result.rows and not result.error for result in results)
        lines = [
            f"the local graph has {self.local}",
            self.local.describe_parts(),
            f"{states['LOCAL']} visits of LOCAL, {states['REMOTE']} of REMOTE, "
            f"{states['UPDATE']} of UPDATE",
            f"of {pluralize(len(results), 'tool call')}, {errors} failed and {without_rows} found nothing",
        ]
        return "; ".join(filter(None, lines))

    def format_results(self, max_chars: int) -> str:
        """Return the tool results as text for a prompt, the latest first; "none" if there are none.

        They are the results of the latest UPDATE and of the turns after it, or of all turns if
        there was no UPDATE. Their IDs tell all terms in them and in the local graph apart. The text
        is cut between lines before ``max_chars`` characters.
        """
        results: list[Observed] = []
        for visit in self.visits:
            if visit.state == "UPDATE":
                results.clear()
            results += visit.results
        rows = chain.from_iterable(result.rows for result in results)
        cells = chain.from_iterable(rows)
        ids = self.local.id_mapping.with_terms(cell for cell in cells if cell is not None)
        lines: list[str] = []
        for result in reversed(results):
            lines += result.format_lines(ids)
        return fit_lines(lines, max_chars) or "none"

    def format_memory(self, max_chars: int, *, with_thoughts: bool = True) -> str:
        """Return the turns as text for a prompt, a line each, oldest first; "nothing yet" if there are none.

        The latest turns have their tool results and thoughts, as long as ``max_chars`` allow. The
        others have only their states and the number of tool uses, and may exceed ``max_chars``. No
        turn has its thought unless ``with_thoughts``.
        """
        lines = []
        for number, visit in reversed([*enumerate(self.visits, 1)]):
            line = f"{number}. {visit}"
            if with_thoughts:
                line += f"; thought: {visit.thought}"
            if len(line) > max_chars:
                uses = pluralize(len(visit.results), "tool call")
                line = f"{number}. {visit.state} → {visit.next}, {uses}"
            max_chars -= len(line)
            lines.append(line)
        return "\n".join(reversed(lines)) or "nothing yet"


@dataclass(frozen=True, slots=True)
class Sentence(Record):
    """A sentence of the answer with its support set, each element of which has been looked up."""

    text: str
    support: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()
    """Elements of the support set that are single nodes."""
    failed: tuple[str, ...] = ()
    """Elements that are not in the graph, as the model wrote them."""

    def __str__(self) -> str:
        if not self.problem:
            return self.text
        return f"{self.text} [{self.problem}]"

    @property
    def problem(self) -> str:
        """What is wrong with the support set; "" if nothing is.

        Wrong are elements that are not in the graph, of which the first 3 are named, or a set
        without any element.
        """
        if self.failed:
            elements = [element[:MAX_SHOWN_ELEMENT_CHARS] for element in self.failed]
            return f"not in the graph: {list_first(elements, 3)}"
        return "" if self.support or self.nodes else "without support"


@dataclass(frozen=True, slots=True)
class Produced(Record):
    """The answer in sentences, and as nodes of the local graph."""

    sentences: tuple[Sentence, ...]
    kind: Literal["things", "count", "yes", "no", "nothing"]
    answers: tuple[Term, ...] = ()
    """The nodes that answer the question, or that are counted."""
    missing: Explanation = ""
    """What the local graph lacks for an answer, or for a complete one."""

    def __str__(self) -> str:
        text = " ".join(map(str, self.sentences))
        return text or f"nothing: {self.missing}"
