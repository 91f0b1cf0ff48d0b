"""Records as text for a terminal: the way to an answer as a tree, and the difference of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kgwb.display import as_text
from kgwb.run import Run
from kgwb.run.record import QUERIES, SEARCHES, Call, Differences, Step, Totals, by_supervisor
from kgwb.show.html import Names
from kgwb.show.tell import compared, lines, outcome
from kgwb.show.terms import names_in
from kgwb.text import format_seconds, pluralize, single_line

NO_CALLS: Mapping[str, Call] = {}
STYLES = {"key": "1", "aside": "2", "failure": "31", "note": "33"}
BASELINE = "rules is a baseline: it reads no prompts, and does not understand; choose another model for that"


def paint(text: str, style: str, color: bool) -> str:
    """The text in one of ``STYLES``, if colours are wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color else text


@as_text.register
def _(run: Run) -> str:
    came_to = single_line(run.answer) if run.answer is not None else run.status
    muted = f", without {pluralize(len(run.kg.muted), 'triple')}" if run.kg.muted else ""
    return f"Run({run.question!r}{muted}, {run.status}, {len(run.steps)} steps: {came_to})"


@as_text.register
def _(step: Step) -> str:
    return tree([step], step.known)


def tree(
    steps: Sequence[Step],
    calls: Mapping[str, Call] = NO_CALLS,
    *,
    names: Names | None = None,
    color: bool = False,
) -> str:
    """The way to an answer: agents under the agents that supervise them, and what each of them yielded.

    ``calls`` are the run's (``Run.calls``): they give calls, queries and, without ``names``, display names.
    """
    names = names or names_in(steps, calls)
    below = by_supervisor(steps)

    def branch(parent: str | None, lead: str) -> Iterator[str]:
        for step in below.get(parent, []):
            last, supervises = step is below[parent][-1], step.key in below
            deeper = lead + ("   " if last else "│  ")
            first, *rest = _step_lines(step, calls, names, supervises, color)
            yield lead + ("└─ " if last else "├─ ") + first
            yield from (deeper + ("│  " if supervises else "   ") + text for text in rest)
            yield from branch(step.key, deeper)

    return "\n".join(branch(None, ""))


def _step_lines(
    step: Step, calls: Mapping[str, Call], names: Names, brief: bool, color: bool
) -> Iterator[str]:
    first, *rest = lines(step.output, names) if step.done else [outcome(step)]
    first = paint(first, "failure", color) if step.error else first
    cost = paint(f"({', '.join(spent(step, calls))})", "aside", color)
    yield f"{paint(single_line(step.key), 'key', color)}: {first}  {cost}"
    yield from [] if brief else map(single_line, rest)
    for number, attempt in enumerate(step.attempts, 1):
        failed = "; ".join(
            f"{check.name}: {check.problem}" for check in attempt.checks if check.problem
        )
        if failed:
            yield paint(single_line(f"attempt {number} failed: {failed}"), "failure", color)
    for note in step.notes:
        yield paint(single_line(f"note: {note}"), "note", color)


def spent(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """Where a step's output came from, and what it cost: ["live", "1 model call", "2 queries", "31 ms"]."""
    origin = "from the record" if step.origin == "record" else step.origin
    return [*([origin] if step.calls or step.origin != "record" else []), *cost_of(step, calls)]


def cost_of(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """What a step cost: ["1 model call", "2 queries", "1 label search", "31 ms"]."""
    kinds = [calls[key].kind for key in step.calls if key in calls]
    numbers = {
        "model call": kinds.count("model") if calls else len(step.attempts),
        "query": sum(kind in QUERIES for kind in kinds),
        "label search": sum(kind in SEARCHES for kind in kinds),
    }
    return [
        *(pluralize(number, noun) for noun, number in numbers.items() if number),
        format_seconds(step.seconds),
    ]


def totals_text(totals: Totals) -> str:
    """What a run used, on one line."""
    return (
        f"{pluralize(totals.model_calls, 'model call')} ({totals.live_model_calls} live), "
        f"{totals.prompt_tokens + totals.completion_tokens:,} tokens, {pluralize(totals.queries, 'query')}, "
        f"{pluralize(totals.searches, 'label search')}, {format_seconds(totals.seconds)}"
    )


def differing(differences: Differences) -> str:
    """ "5 of 14 steps differ; the first decision that differs is qir"."""
    number = sum(pair.status != "same" for pair in differences)
    if not number:
        return "no step differs"
    parting = differences.parting
    first = (
        f"the first decision that differs is {single_line(parting.key)}"
        if parting
        else "no decision differs"
    )
    return f"{number} of {pluralize(len(differences), 'step')} differ; {first}"


@as_text.register
def difference_text(differences: Differences) -> str:
    """Two runs side by side: each step that differs, with what only one of them yielded."""
    shown = [differing(differences)]
    for pair in differences:
        if pair.status != "same":
            what = f" in {', '.join(pair.what)}" if pair.what else ""
            shown.append(f"{single_line(pair.key)}: {pair.status}{what}")
            first, second = (
                [] if step is None else compared(step.output) if step.done else [outcome(step)]
                for step in (pair.first, pair.second)
            )
            for side, texts, others in (
                ("first:", first, set(second)),
                ("second:", second, set(first)),
            ):
                unequal = [text for text in texts if text not in others] or texts[:1]
                shown += [f"  {side:<8}{text}" for text in unequal]
    return "\n".join(shown)
