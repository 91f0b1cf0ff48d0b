"""The differences of two runs: their steps, aligned by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from kgwb.records import NO_NAMES, JsonObject, comparable, decision_of, frozen, one_line
from kgwb.run.steps import Step
from kgwb.text import common_prefix_length, pluralize, shorten, single_line

StepsByKey: TypeAlias = Mapping[str, Step]
DifferenceStatus = Literal["same", "changed", "only in first", "only in second"]


@frozen
class StepDifference:
    """One step of two runs, or of one of them."""

    key: str
    status: DifferenceStatus
    changed_parts: tuple[str, ...] = ()
    """The parts that differ: "inputs", "output", "calls", "replies", "error"."""
    first: Step | None = None
    second: Step | None = None

    @property
    def has_same_inputs(self) -> bool:
        """Whether both runs have the step, and gave it the same inputs."""
        is_in_both = self.first is not None and self.second is not None
        return is_in_both and "inputs" not in self.changed_parts

    @property
    def changes_decision(self) -> bool:
        """Whether the two steps decided differently, or only one of them is there or done.

        Explanations and scores do not count as decisions.
        """
        if self.first is None or self.second is None:
            return True
        if self.first.done != self.second.done:
            return True
        first_decision = decision_of(self.first.output, self.first.varying)
        second_decision = decision_of(self.second.output, self.first.varying)
        return bool(first_decision != second_decision)


class Differences(tuple[StepDifference, ...]):
    """The steps of two runs side by side."""

    __slots__ = ()

    @property
    def leaves(self) -> tuple[StepDifference, ...]:
        """The steps of both runs, in order, that do not supervise other steps in either run."""
        supervisors = set()
        for pair in self:
            for step in (pair.first, pair.second):
                if step is not None:
                    supervisors.add(step.parent)
        return tuple(pair for pair in self if pair.key not in supervisors)

    @property
    def first_difference(self) -> StepDifference | None:
        """The first step that decided differently; None if no decision differs.

        Steps that both runs have come before steps of one run alone. Supervisors are left out.
        """
        first_of_one_run = None
        for pair in self.leaves:
            if pair.status == "same" or not pair.changes_decision:
                continue
            if pair.first and pair.second:
                return pair
            first_of_one_run = first_of_one_run or pair
        return first_of_one_run

    @property
    def first_own_difference(self) -> StepDifference | None:
        """The first step of both runs that decided differently from the same inputs; None if none did.

        What changed there is the agent itself, such as its prompt or its model, and not only what it
        was given.
        """
        for pair in self.leaves:
            if pair.has_same_inputs and pair.changes_decision:
                return pair
        return None

    def __str__(self) -> str:
        """Return "5 of 14 steps differ; the first decision that differs is qir"."""
        number = sum(pair.status != "same" for pair in self)
        if number == 0:
            return "no step differs"
        decision = "no decision differs"
        first = self.first_difference
        if first is not None:
            decision = f"the first decision that differs is {single_line(first.key)}"
        return f"{number} of {pluralize(len(self), 'step')} differ; {decision}"

    def summary(self) -> str:
        """Return a text: the line of ``str()``, then lines for each step that differs.

        A step has a line of how it differs and in which parts, then the lines of its output in only
        one of the runs, after "first:" and "second:". Steps that are the same are left out.
        """
        lines = [str(self)]
        for pair in self:
            if pair.status == "same":
                continue
            line = f"{single_line(pair.key)}: {pair.status}"
            if pair.changed_parts:
                changed_parts = ", ".join(pair.changed_parts)
                line += f" in {changed_parts}"
            lines.append(line)
            first_lines, second_lines = _lines_of_outputs(pair)
            lines.extend(_own_lines("first:", first_lines, second_lines))
            lines.extend(_own_lines("second:", second_lines, first_lines))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()


def _own_lines(label: str, lines: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the lines of one step's output that the other output does not have.

    If it has all of them, yield the first line. Each line begins with the label: "  first:  ...".
    """
    own = [line for line in lines if line not in others] or lines[:1]
    for line in own:
        yield f"  {label:<8}{line}"


def output_lines(step: Step | None, names: Mapping[str, str] | None = None) -> list[str]:
    """Return the whole output of a step as lines, or why it has none; no line without a step."""
    if step is None:
        return []
    return step.output_lines(names or NO_NAMES, limit=None)


def compare_steps(first: StepsByKey, second: StepsByKey) -> Differences:
    """Align the steps of two executions by key, and compare them.

    Keys that differ only in the names of unknowns ("?film") are equal. Where both runs have steps
    that the other lacks, those of the first run come first. Steps that both runs have stand in the
    order of the first.
    """
    second = _with_keys_of(first, second)
    pairs = []
    for key in _merge_keys(list(first), list(second)):
        pair = _compare_step(key, first.get(key), second.get(key))
        pairs.append(pair)
    return Differences(pairs)


def _with_keys_of(first: StepsByKey, second: StepsByKey) -> StepsByKey:
    """Return the steps of the second execution, under the keys that the first one has for them.

    Keys are equal if only the names of unknowns differ; for that the unknowns in all keys of an
    execution are numbered in their order. A step that the first execution lacks keeps its own key.
    """
    first_numbered = decision_of(list(first))
    second_numbered = decision_of(list(second))
    first_keys = dict(zip(first_numbered, first, strict=True))
    renamed = {}
    for numbered_key, key in zip(second_numbered, second, strict=True):
        first_key = first_keys.get(numbered_key, key)
        renamed[first_key] = second[key]
    return renamed


def _merge_keys(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Merge two sequences of keys into one that has each key once.

    The shared keys have the order of the first sequence. A key of one sequence alone comes after
    the shared key that it follows there, keys of the first before keys of the second.
    """
    first_keys = set(first)
    second_keys = set(second)
    following: dict[str, list[str]] = defaultdict(list)
    """The keys of the second sequence alone, by the shared key before them; "" at the beginning."""
    shared = ""
    for key in second:
        if key in first_keys:
            shared = key
        else:
            following[shared].append(key)

    merged = []
    shared = ""
    for key in first:
        if key in second_keys:
            merged += following[shared]
            shared = key
        merged.append(key)
    merged += following[shared]
    return merged


def _compare_step(key: str, first: Step | None, second: Step | None) -> StepDifference:
    """Return how a step of two runs differs. ``first`` or ``second`` is None if a run lacks it.

    Its status is "only in first", "only in second", "changed" with the parts that differ
    (``_changed_parts``), or "same".
    """
    if first is None:
        return StepDifference(key, "only in second", second=second)
    if second is None:
        return StepDifference(key, "only in first", first=first)
    changed_parts = tuple(_changed_parts(first, second))
    status: DifferenceStatus = "changed" if changed_parts else "same"
    return StepDifference(key, status, changed_parts, first, second)


def _changed_parts(first: Step, second: Step) -> Iterator[str]:
    """Yield the names of the parts that differ, of "inputs", "output", "calls", "replies", "error".

    They come in this order. Replies are the texts of the attempts.
    """
    if _differ(first.inputs, second.inputs, first.varying):
        yield "inputs"
    if _differ(first.output, second.output, first.varying):
        yield "output"
    if first.calls != second.calls:
        yield "calls"
    if first.replies != second.replies:
        yield "replies"
    if first.error != second.error:
        yield "error"


def _differ(first: object, second: object, varying: Collection[str]) -> bool:
    """Return whether two values differ in more than what is drawn by chance."""
    if first == second:
        return False
    return bool(comparable(first, varying) != comparable(second, varying))


MAX_DIFFERENCE_CHARS = 200
"""So much is shown of each of two values from where they differ."""
MAX_CONTEXT_CHARS = 20
"""So much is shown of a text before the first difference."""


def _lines_of_outputs(pair: StepDifference) -> tuple[list[str], list[str]]:
    """Return the outputs of a step in both runs as lines; of data only the part that differs."""
    if pair.first is not None and pair.second is not None:
        place, first_text, second_text = find_difference(
            pair.first.output,
            pair.second.output,
            pair.first.varying,
        )
        if place and pair.first.done and pair.second.done:
            return [f"{place}: {first_text}"], [f"{place}: {second_text}"]
    return output_lines(pair.first), output_lines(pair.second)


def find_difference(
    first: object, second: object, varying: Collection[str] = ()
) -> tuple[str, str, str]:
    """Return where two values first differ, and what each has there, as text.

    The place is that of a part of data, such as "messages[3].content"; "" if the values as a whole
    differ. Long texts begin shortly before the difference.
    """
    place, one, other = _parts_that_differ(first, second, varying)
    texts = [shorten(one_line(part), MAX_DIFFERENCE_CHARS) for part in (one, other)]
    return place, texts[0], texts[1]


def describe_difference(now: JsonObject, before: JsonObject) -> str:
    """Return where two requests first differ: "content.temperature 0.5 and not 0.0"; "" for nowhere."""
    place, *parts = _parts_that_differ(now, before)
    if not place:
        return ""
    texts = [shorten(repr(part), MAX_DIFFERENCE_CHARS) for part in parts]
    return f"{place} {' and not '.join(texts)}"


def _parts_that_differ(
    first: object, second: object, varying: Collection[str] = ()
) -> tuple[str, Any, Any]:
    """Return the place where data first differ, and what each has there; of texts what follows from there."""
    first = comparable(first, varying)
    second = comparable(second, varying)
    place, one, other = _first_difference(first, second)
    if isinstance(one, str) and isinstance(other, str):
        start = max(0, common_prefix_length(one, other) - MAX_CONTEXT_CHARS)
        one, other = one[start:], other[start:]
    return place, one, other


def _first_difference(first: Any, second: Any, place: str = "") -> tuple[str, Any, Any]:
    """Return the place of the first part in which data differ, and what each has there."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in {**first, **second}:
            one, other = first.get(name), second.get(name)
            if one != other:
                inner = f"{place}.{name}".removeprefix(".")
                return _first_difference(one, other, inner)
    if isinstance(first, list) and isinstance(second, list):
        for number, (one, other) in enumerate(zip_longest(first, second)):
            if one != other:
                return _first_difference(one, other, f"{place}[{number}]")
    return place, first, second
