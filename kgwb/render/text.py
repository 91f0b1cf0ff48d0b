"""Records as text: the way to an answer as a tree, and the difference of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgwb.record import Call, Step, StepDifference
from kgwb.render.words import Names, clean, count, lines, made, names_in

NO_CALLS: Mapping[str, Call] = {}
STYLES = {"key": "1", "aside": "2", "failure": "31", "note": "33"}


def summary(value: Any, names: Names | None = None) -> str:
    """The one line that says what a record is."""
    return clean(lines(value, names or {})[0])


def tree(
    steps: Sequence[Step],
    calls: Mapping[str, Call] = NO_CALLS,
    *,
    names: Names | None = None,
    color: bool = False,
) -> str:
    """The way to an answer: agents under the agents that supervise them, and what each of them yielded.

    ``calls`` are the run's (``Run.calls``): they tell calls, queries and, without ``names``, display names.
    """
    return "\n".join(_Tree(steps, calls, names or names_in(steps, calls), color).lines())


def paint(text: str, style: str, color: bool) -> str:
    """The text in one of ``STYLES``, if colours are wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color else text


class _Tree:
    def __init__(self, steps: Sequence[Step], calls: Mapping[str, Call], names: Names, color: bool) -> None:
        self.calls, self.names, self.color = calls, names, color
        known = {step.key for step in steps}
        self.below: dict[str, list[Step]] = {}
        for step in steps:
            self.below.setdefault(step.parent if step.parent in known else "", []).append(step)

    def lines(self, parent: str = "", lead: str = "") -> Iterator[str]:
        siblings = self.below.get(parent, [])
        for step in siblings:
            last = step is siblings[-1]
            deeper = lead + ("   " if last else "│  ")
            children = step.key in self.below
            first, *rest = _step(step, self.calls, self.names, children, self.color)
            yield lead + ("└─ " if last else "├─ ") + first
            yield from (deeper + ("│  " if children else "   ") + line for line in rest)
            yield from self.lines(step.key, deeper)


def _step(step: Step, calls: Mapping[str, Call], names: Names, brief: bool, color: bool) -> Iterator[str]:
    told = [clean(line) for line in lines(step.output, names)] if step.done else [outcome(step)]
    if step.error:
        told = [paint(told[0], "failure", color)]
    aside = paint(f"({', '.join(made(step, calls))})", "aside", color)
    yield f"{paint(clean(step.key), 'key', color)}: {told[0]}  {aside}"
    yield from [] if brief else told[1:]
    for number, attempt in enumerate(step.attempts, 1):
        failed = "; ".join(f"{check.name}: {check.problem}" for check in attempt.checks if check.problem)
        if failed:
            yield paint(clean(f"attempt {number} failed: {failed}"), "failure", color)
    for note in step.notes:
        yield paint(clean(f"note: {note}"), "note", color)


def difference_text(differences: Sequence[StepDifference], *, color: bool = False) -> str:
    """Two runs side by side: each step that differs, with what it yielded in the one and in the other."""
    told = (line for one in differences if one.status != "same" for line in _difference(one, color))
    return "\n".join([differing(differences), *told])


def differing(differences: Sequence[StepDifference]) -> str:
    """ "5 of 14 steps differ; first at qir": the first step that only supervises others does not count."""
    unequal = [one for one in differences if one.status != "same"]
    if not unequal:
        return "no step differs"
    supervising = {step.parent for one in unequal for step in (one.first, one.second) if step}
    first = next((one.key for one in unequal if one.key not in supervising), unequal[0].key)
    return f"{len(unequal)} of {count(len(differences), 'step')} differ; first at {clean(first)}"


def _difference(one: StepDifference, color: bool) -> Iterator[str]:
    what = f" in {', '.join(one.what)}" if one.what else ""
    yield f"{paint(clean(one.key), 'key', color)}: {one.status}{what}"
    for side, told in zip(("first:", "second:"), unequal_lines(one), strict=True):
        for line in told:
            yield f"  {side:<8}{line}"


def unequal_lines(one: StepDifference) -> tuple[list[str], list[str]]:
    """What each run's step yielded and the other's did not; its first line where that is nothing."""
    first, second = _told(one.first), _told(one.second)
    in_first, in_second = set(first), set(second)
    return (
        [line for line in first if line not in in_second] or first[:1],
        [line for line in second if line not in in_first] or second[:1],
    )


def _told(step: Step | None) -> list[str]:
    if step is None:
        return []
    return [clean(line) for line in lines(step.output, {})] if step.done else [outcome(step)]


def outcome(step: Step) -> str:
    """The summary of what a step yielded, or why it did not."""
    return summary(step.output) if step.done else clean(step.error and f"failed: {step.error}") or "not done"
