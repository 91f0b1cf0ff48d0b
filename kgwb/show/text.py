"""Records as text for a terminal: the way to an answer as a tree, and the difference of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kgwb.run.record import QUERIES, Call, Differences, Step, StepDifference, Totals
from kgwb.show.html import clean, count, seconds
from kgwb.show.tell import compared, lines, outcome
from kgwb.show.terms import names_in

NO_CALLS: Mapping[str, Call] = {}
STYLES = {"key": "1", "aside": "2", "failure": "31", "note": "33"}
BASELINE = "rules is a baseline: it reads no prompts, and does not understand; choose another model for that"


def paint(text: str, style: str, color: bool) -> str:
    """The text in one of ``STYLES``, if colours are wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color else text


def tree(
    steps: Sequence[Step],
    calls: Mapping[str, Call] = NO_CALLS,
    *,
    names: Mapping[str, str] | None = None,
    color: bool = False,
) -> str:
    """The way to an answer: agents under the agents that supervise them, and what each of them yielded.

    ``calls`` are the run's (``Run.calls``): they give calls, queries and, without ``names``, display names.
    """
    names = names or names_in(steps, calls)
    known, below = {step.key for step in steps}, dict[str, list[Step]]()
    for step in steps:
        below.setdefault(step.parent if step.parent in known else "", []).append(step)

    def branch(parent: str, lead: str) -> Iterator[str]:
        for step in below.get(parent, []):
            last = step is below[parent][-1]
            deeper = lead + ("   " if last else "│  ")
            children = step.key in below
            first, *rest = _step(step, calls, names, children, color)
            yield lead + ("└─ " if last else "├─ ") + first
            yield from (deeper + ("│  " if children else "   ") + text for text in rest)
            yield from branch(step.key, deeper)

    return "\n".join(branch("", ""))


def _step(
    step: Step, calls: Mapping[str, Call], names: Mapping[str, str], brief: bool, color: bool
) -> Iterator[str]:
    shown = lines(step.output, names) if step.done else [outcome(step)]
    first = paint(shown[0], "failure", color) if step.error else shown[0]
    aside = paint(f"({', '.join(spent(step, calls))})", "aside", color)
    yield f"{paint(clean(step.key), 'key', color)}: {first}  {aside}"
    yield from [] if brief else map(clean, shown[1:])
    for number, attempt in enumerate(step.attempts, 1):
        failed = "; ".join(f"{check.name}: {check.problem}" for check in attempt.checks if check.problem)
        if failed:
            yield paint(clean(f"attempt {number} failed: {failed}"), "failure", color)
    for note in step.notes:
        yield paint(clean(f"note: {note}"), "note", color)


def spent(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """What a step cost and where it came from: ["live", "1 model call", "2 queries", "31 ms"]."""
    kinds = [calls[key].kind for key in step.calls if key in calls]
    asked = kinds.count("model") if calls else len(step.attempts)
    queries = sum(kind in QUERIES for kind in kinds)
    recorded = "from the record" if step.calls else ""
    origin = recorded if step.origin == "record" else step.origin
    parts = [origin, count(asked, "model call") if asked else "", count(queries, "query") if queries else ""]
    return [*filter(None, parts), seconds(step.seconds)]


def totals_text(totals: Totals) -> str:
    """What a run used, on one line."""
    return ", ".join(
        (
            f"{count(totals.model_calls, 'model call')} ({totals.live_model_calls} live)",
            f"{totals.prompt_tokens + totals.completion_tokens:,} tokens",
            count(totals.queries, "query"),
            count(totals.searches, "label search"),
            seconds(totals.seconds),
        )
    )


def differing(differences: Differences) -> str:
    """ "5 of 14 steps differ; first in its decision: qir"."""
    unequal = [one for one in differences if one.status != "same"]
    if not unequal:
        return "no step differs"
    parting = differences.parting
    first = f"the first decision that differs is {clean(parting.key)}" if parting else "no decision differs"
    return f"{len(unequal)} of {count(len(differences), 'step')} differ; {first}"


def difference_text(differences: Differences, *, color: bool = False) -> str:
    """Two runs side by side: each step that differs, with what it yielded in the one and in the other."""
    shown = [differing(differences)]
    for one in differences:
        if one.status == "same":
            continue
        what = f" in {', '.join(one.what)}" if one.what else ""
        shown.append(f"{paint(clean(one.key), 'key', color)}: {one.status}{what}")
        for side, texts in zip(("first:", "second:"), unequal_lines(one), strict=True):
            shown += [f"  {side:<8}{text}" for text in texts]
    return "\n".join(shown)


def unequal_lines(one: StepDifference) -> tuple[list[str], list[str]]:
    """What each run's step yielded and the other's did not; its first line where that is nothing."""
    first, second = (
        [] if step is None else compared(step.output) if step.done else [outcome(step)]
        for step in (one.first, one.second)
    )
    in_first, in_second = set(first), set(second)
    return (
        [text for text in first if text not in in_second] or first[:1],
        [text for text in second if text not in in_first] or second[:1],
    )
