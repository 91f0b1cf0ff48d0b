"""The differences of two runs: their steps, aligned by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kgwb.records import decision_of, summarize
from kgwb.run.steps import Step
from kgwb.text import pluralize, single_line

DifferenceStatus = Literal["same", "changed", "only in first", "only in second"]


@dataclass(frozen=True, slots=True)
class StepDifference:
    """One step of two runs, or of one of them."""

    key: str
    status: DifferenceStatus
    changed_parts: tuple[str, ...] = ()
    """The parts that differ: "inputs", "output", "calls", "replies", "error"."""
    first: Step | None = None
    second: Step | None = None

    @property
    def changes_decision(self) -> bool:
        """Whether the two steps decided differently, or only one run has the step.

        Reasons and scores are no decision.
        """
        if self.first is None or self.second is None:
            return True
        if self.first.done != self.second.done:
            return True
        return bool(decision_of(self.first.output) != decision_of(self.second.output))


class Differences(tuple[StepDifference, ...]):
    """The steps of two runs side by side."""

    __slots__ = ()

    @property
    def leaves(self) -> tuple[StepDifference, ...]:
        """The steps without those that only supervise others."""
        supervisors: set[str] = set()
        for pair in self:
            supervisors.update(step.parent for step in (pair.first, pair.second) if step)
        return tuple(pair for pair in self if pair.key not in supervisors)

    @property
    def first_difference(self) -> StepDifference | None:
        """The first step that decided differently; None if no decision differs.

        Steps that both runs have come before steps of one run alone.
        """
        unequal = [pair for pair in self.leaves if pair.status != "same" and pair.changes_decision]
        for pair in unequal:
            if pair.first and pair.second:
                return pair
        return unequal[0] if unequal else None

    def __str__(self) -> str:
        """Return "5 of 14 steps differ; the first decision that differs is qir"."""
        number = sum(pair.status != "same" for pair in self)
        if not number:
            return "no step differs"
        first = self.first_difference
        if first is None:
            decision = "no decision differs"
        else:
            decision = f"the first decision that differs is {single_line(first.key)}"
        return f"{number} of {pluralize(len(self), 'step')} differ; {decision}"

    def summary(self) -> str:
        """Return a line for each step that differs, and below it what only one run has of it."""
        lines = [str(self)]
        for pair in self:
            if pair.status != "same":
                parts = f" in {', '.join(pair.changed_parts)}" if pair.changed_parts else ""
                lines.append(f"{single_line(pair.key)}: {pair.status}{parts}")
                lines += _unequal_lines(pair)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()


def _unequal_lines(pair: StepDifference) -> Iterator[str]:
    """Yield the lines of each step's output that the other step lacks; else the first line."""
    first, second = output_lines(pair.first), output_lines(pair.second)
    for label, lines, others in (("first:", first, second), ("second:", second, first)):
        unequal = [line for line in lines if line not in others] or lines[:1]
        for line in unequal:
            yield f"  {label:<8}{line}"


def output_lines(step: Step | None, names: Mapping[str, str] | None = None) -> list[str]:
    """Return the whole output of a step as lines, or why it has none; nothing without a step."""
    if step is None:
        return []
    if not step.done:
        return [step.outcome]
    return summarize(step.output, names or {}, limit=None).splitlines()


def compare_steps(first: Mapping[str, Step], second: Mapping[str, Step]) -> Differences:
    """Align the steps of two executions by key, and compare them.

    Keys that differ only in the names of unknowns ("?film") are equal. Where both runs have steps
    that the other lacks, those of the first run come first.
    """
    second = _with_keys_of(first, second)
    pairs = []
    for key in _merged_keys(list(first), list(second)):
        pairs.append(_compare_step(key, first.get(key), second.get(key)))
    return Differences(pairs)


def _with_keys_of(first: Mapping[str, Step], second: Mapping[str, Step]) -> dict[str, Step]:
    """Return the second steps under the keys of the first, where only unknowns are renamed."""
    first_keys = dict(zip(decision_of(list(first)), first, strict=True))
    renamed = {}
    for decided_key, key in zip(decision_of(list(second)), second, strict=True):
        renamed[first_keys.get(decided_key, key)] = second[key]
    return renamed


def _merged_keys(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Merge two sequences of keys: each key once, after the shared key that it follows."""
    positions: dict[str, tuple[int, bool, int]] = {}
    """By key: position of the latest shared key, whether it is the second's, its own position."""
    for keys, others in ((first, set(second)), (second, set(first))):
        shared = -1
        for position, key in enumerate(keys):
            if key in others:
                shared = positions[key][0] if key in positions else position
            positions.setdefault(key, (shared, keys is second, position))
    return sorted(positions, key=positions.__getitem__)


def _compare_step(key: str, first: Step | None, second: Step | None) -> StepDifference:
    """Compare one step of two runs, part by part. At least one of them is given."""
    if first is None:
        return StepDifference(key, "only in second", (), first, second)
    if second is None:
        return StepDifference(key, "only in first", (), first, second)
    parts: dict[str, tuple[Any, Any]] = {
        "inputs": (first.inputs, second.inputs),
        "output": (first.output, second.output),
        "calls": (first.calls, second.calls),
        "replies": (
            [attempt.reply for attempt in first.attempts],
            [attempt.reply for attempt in second.attempts],
        ),
        "error": (first.error, second.error),
    }
    unequal = tuple(name for name, (before, after) in parts.items() if before != after)
    return StepDifference(key, "changed" if unequal else "same", unequal, first, second)
