"""Gold queries taken apart, and what a system's agents should have decided according to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.kg.algebra import TriplePattern, analyze_query
from kgwb.kg.base import AnswerKind, Vocabulary
from kgwb.run.answers import Answer
from kgwb.text import list_first, tell_apart


@dataclass(frozen=True, slots=True)
class GoldQuery:
    """A gold query, taken apart."""

    sparql: str
    kind: AnswerKind
    target: str
    """The unknown that is asked for ("?x"); empty for a boolean question."""
    patterns: tuple[TriplePattern, ...]
    """Its triple patterns (terms in N-Triples form, unknowns as "?x").

    Patterns that only say a type or a name are left out.
    """
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names of its IRIs."""
    standalone: str = ""
    """What the question means outside its dialogue; empty if it is in none."""

    @property
    def vertices(self) -> frozenset[str]:
        """The IRIs that are subject or object of a pattern."""
        ends = _ends_of(self.patterns)
        return frozenset(end[1:-1] for end in ends if end.startswith("<"))

    @property
    def predicates(self) -> frozenset[str]:
        """The IRIs of its predicates."""
        return frozenset(predicate[1:-1] for _, predicate, _ in self.patterns)


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """What is known to be the right answer to the question of a run."""

    is_right: Callable[[Answer], bool]
    """Returns whether an answer is exactly the right one."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The label of each right value, by the value as question files write it."""

    @property
    def text(self) -> str:
        """The first right values in one line."""
        return self.text_beside(None)

    def text_beside(self, answer: Answer | None) -> str:
        """Return the first right values in one line, to be shown beside an answer.

        A label that another right value or a value of the answer has too is followed by the value
        itself in brackets: "Dune (http://e/dune2)".
        """
        labels = dict(self.labels)
        if answer is not None:
            for value in answer.values:
                labels.setdefault(str(value.term), value.label)

        def label_with_value(value: str) -> str:
            """Return "LABEL (VALUE)"; the value alone if the label is the same."""
            return value if labels[value] == value else f"{labels[value]} ({value})"

        names = tell_apart(labels, (labels.__getitem__, label_with_value))
        return list_first(names[value] for value in self.labels)


class LinkedIris(NamedTuple):
    """What a run linked, and what it could have linked, as IRIs."""

    vertices: frozenset[str]
    predicates: frozenset[str]
    vertex_candidates: frozenset[str]
    predicate_candidates: frozenset[str]


class Rung(NamedTuple):
    """Gold values for some steps of a run."""

    agent: str
    """The agent to blame if these values are what makes the answer right."""
    values: Mapping[str, Any]
    """By step key."""
    stage: str = ""
    """The stage to blame; empty if it is the one that ``GoldDecisions.stages`` has."""


@dataclass(frozen=True)
class GoldDecisions:
    """What a gold query means to the agents of a system."""

    stages: Mapping[str, str]
    """The stage of each agent. A supervisor of several stages has none."""
    ladder: Mapping[str, Callable[[Any, GoldQuery], Rung | None]]
    """The rungs of the oracle ladder by name, in flow order.

    Each function gets a Run that has the gold values of all earlier rungs. It returns None if the
    run decided as gold does.
    """
    linked: Callable[[Any], LinkedIris]
    """Returns what a Run linked, as far as it was executed."""


def assign_stages(agents_by_stage: Mapping[str, str]) -> Mapping[str, str]:
    """Return the stage of each agent, as a mapping that cannot be changed.

    ``agents_by_stage`` has for each stage the names of its agents, with spaces between. An agent
    that several stages name has the last of them.
    """
    stages: dict[str, str] = {}
    for stage, agents in agents_by_stage.items():
        stages |= dict.fromkeys(agents.split(), stage)
    return MappingProxyType(stages)


def get_output(run: Any, key: str) -> Any:
    """Return the output of a step of a Run; None if there is no such step or it is not done."""
    step = run.steps_by_key.get(key)
    if step is None or not step.done:
        return None
    return step.output


def list_outputs(run: Any, agent: str) -> list[Any]:
    """Return the outputs of the steps of an agent that are done, in the order of a Run."""
    outputs = []
    for step in run.steps:
        if step.agent == agent and step.done:
            outputs.append(step.output)
    return outputs


def parse_gold_query(sparql: str, vocabulary: Vocabulary) -> GoldQuery | None:
    """Take a gold query apart into triple patterns and the unknown that is asked for.

    Patterns whose predicate is a variable, or is a label, a description or noise in the vocabulary,
    are left out. The target is the first selected variable that is subject or object of one of the
    other patterns, else the first unknown in them; a boolean query has none.

    Returns None for a query that cannot be taken apart, or that has no pattern or no target.
    """
    try:
        parts = analyze_query(sparql)
    except GraphError:
        return None
    patterns = []
    for pattern in parts.patterns:
        if _is_about_question(pattern, vocabulary):
            patterns.append(pattern)
    if not patterns:
        return None

    target = ""
    if parts.kind != "boolean":
        unknowns = [end for end in _ends_of(patterns) if end.startswith("?")]
        candidates = [name for name in parts.projected_variables if name in unknowns]
        candidates += unknowns
        if not candidates:
            return None
        target = candidates[0]
    return GoldQuery(sparql, parts.kind, target, tuple(patterns))


def _is_about_question(pattern: TriplePattern, vocabulary: Vocabulary) -> bool:
    """Return whether the predicate of a pattern is an IRI that the vocabulary does not exclude."""
    _, predicate, _ = pattern
    if not predicate.startswith("<"):
        return False
    return URIRef(predicate[1:-1]) not in vocabulary.excluded_predicates


def _ends_of(patterns: Iterable[TriplePattern]) -> list[str]:
    """Return subject and object of each pattern, in order; ends that occur again are repeated."""
    ends = []
    for subject, _, object_ in patterns:
        ends.append(subject)
        ends.append(object_)
    return ends
