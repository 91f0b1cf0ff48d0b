"""Two executions side by side: the answers, the first decision that differs, then the rest, a line a step."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from kgwb.display import as_html
from kgwb.kg.survey import Survey
from kgwb.run import Run
from kgwb.run.record import Differences, Step, StepDifference, difference
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run import Standing, agent_of, answer_banner, set_up, subject_text
from kgwb.show.tell import compared, outcome, view
from kgwb.show.terms import Around, names_in, prefixes_of
from kgwb.show.text import cost_of
from kgwb.text import display_name, pluralize


class Side(NamedTuple):
    """One of two executions that are compared."""

    name: str
    standing: Standing


LETTERS = (h.span("letter", "A"), h.span("letter", "B"))


def comparison(first: Side, second: Side) -> Html:
    """Two executions: their answers, and their steps beside each other."""
    heads = []
    for letter, (name, standing) in zip(LETTERS, (first, second), strict=True):
        title = h.div(
            "row lead", letter, h.tag("b", name), h.span("soft small", set_up(standing.run))
        )
        heads.append(h.div("", title, answer_banner(standing)))
    whole, less, stands = first.standing, second.standing, Html()
    muted = [triple for triple in less.run.kg.muted if triple not in whole.run.kg.muted]
    if muted and whole.ended and less.ended and whole.answer and less.answer is not None:
        words = pluralize(len(muted), "muted triple") if muted[1:] else "this triple"
        if {value.terms for value in whole.answer.values} == {
            value.terms for value in less.answer.values
        }:
            sign = h.state_sign("ok", f"The answer stands without {words}.")
        else:
            sign = h.state_sign("none", f"The answer does not stand without {words}.")
        surveyed = any(isinstance(step.output, Survey) for step in less.steps.values())
        remark = h.aside(" The survey of the graph still counts it.") if surveyed else ""
        stands = h.div("band", sign, remark)
    beside = _steps_beside(difference(whole.steps, less.steps), whole.run, less.run)
    return h.join(h.div("ab heads", *heads), stands, beside)


@as_html.register
def difference_html(differences: Differences) -> str:
    """The steps of two runs side by side, with what differs marked."""
    return h.static(_steps_beside(differences))


def _steps_beside(differences: Differences, *runs: Run) -> Html:
    """The first decision that differs, in full, then every step with its outcome in both.

    Steps that are the same stand together in a fold. Without ``runs``, agents are shown without their kinds.
    """
    names: dict[str, str] = {}
    for side in ([pair.first for pair in differences], [pair.second for pair in differences]):
        steps = [step for step in side if step]
        names |= names_in(steps, steps[0].known) if steps else {}

    def tile(pair: StepDifference, *, small: bool = False) -> Html | None:
        """The kind of an agent, by the run that has the step: the other's system may have no such agent."""
        agent = agent_of(pair.key)
        return h.kind_tile(runs[not pair.first].system.kind(agent), small=small) if runs else None

    rows: list[Html] = []
    for same, group in groupby(differences.leaves, lambda pair: pair.status == "same"):
        if same:
            pairs = list(group)
            equal = (
                f"{display_name(agent_of(pair.key))}: {outcome(pair.first)}"
                for pair in pairs
                if pair.first
            )
            head = h.aside(f"{pluralize(len(pairs), 'step')} the same")
            folded = h.fold(head, ", ".join(equal), key=f"same-{len(rows)}")
            rows.append(h.div("cmp same", h.span("sign", "="), h.div("wide", folded)))
        else:
            rows += [
                _row(pair, tile(pair, small=True) or h.span("sign", "≠"), names) for pair in group
            ]
    heads = h.div("cmp", h.span("sign"), h.span("caption", "step"), *LETTERS) if rows else ""
    if (parting := differences.parting) is not None:
        prefixes = prefixes_of(runs[0]) if runs else {}
        return h.join(_parting(parting, tile(parting), Around(names, prefixes)), heads, *rows)
    unequal = any(pair.status != "same" for pair in differences)
    words = "No decision differs: only the way does." if unequal else "No step differs."
    return h.join(h.div("band", words), heads, *rows)


def _parting(pair: StepDifference, tile: Html | None, around: Around) -> Html:
    """The first decision that differs: the step in both, in full."""
    step = pair.first or pair.second
    assert step is not None, "a difference is of a step"
    sides = []
    for letter, side in zip(LETTERS, (pair.first, pair.second), strict=True):
        if side is None:
            decided = h.aside("no such step")
        elif side.done:
            decided = view(side.output, replace(around, steps=(side,)))
        else:
            decided = h.note(outcome(side), kind="bad")
        sign = (
            h.state_sign("hand", "by hand") if side is not None and side.origin == "by hand" else ""
        )
        sides.append(h.div("", h.div("row", letter, sign), decided))
    return h.div(
        "decide",
        h.div("row", tile, h.span("caption", "First decision that differs")),
        h.div(
            "row",
            h.tag("h3", display_name(step.agent), class_="title"),
            h.span("soft", subject_text(step)),
        ),
        h.div("ab", *sides),
    )


def _row(pair: StepDifference, tile: Html, names: h.Names) -> Html:
    """A step that differs: its outcomes with those words marked, and all that differs to unfold."""
    step = pair.first or pair.second
    texts = [outcome(side) if side else "no such step" for side in (pair.first, pair.second)]
    first, second, what = *h.word_changes(*texts), Html()
    if texts[0] == texts[1]:
        ways = ", ".join(part for part in pair.what if part != "output") or "its parts"
        first, second, what = (
            h.safe(texts[0]),
            h.aside(texts[1]),
            h.aside(f" the same outcome; {ways} differ"),
        )
    subject = h.aside(f" {subject_text(step)}") if step is not None and step.subject else ""
    name = h.div("", h.tag("b", display_name(agent_of(pair.key))), h.span("small", subject))
    before, after = _parts(pair.first, names), _parts(pair.second, names)
    sections = (
        h.div("", h.span("caption", part), h.changes(before.get(part, []), after.get(part, []))[1])
        for part in {**before, **after}
        if before.get(part, []) != after.get(part, [])
    )
    wide = h.div("wide", h.fold(h.aside("in full"), *sections, key=f"full-{pair.key}"))
    return h.div("cmp", tile, name, h.div("", first, what), h.div("", second), wide)


def _parts(step: Step | None, names: h.Names) -> dict[str, list[str]]:
    """What a step yielded, got, asked for and received in reply, as lines."""
    if step is None:
        return {}
    replies = []
    for attempt in step.attempts:
        replies += attempt.reply.splitlines()
        replies += [
            f"✗ failed: {check.name}: {check.problem}" for check in attempt.checks if check.problem
        ]
    output_lines = compared(step.output, names) if step.done else [outcome(step)]
    calls = []
    for call in (step.known[key] for key in step.calls if key in step.known):
        if call.kind == "model":
            prompt = "".join(
                f"\n{role}:\n{text}" for role, text in call.request["content"]["messages"]
            )
            calls += f"model {call.request['model']}{prompt}".splitlines()
        else:
            asked = [
                value for name, value in call.request.items() if name in ("query", "text", "phrase")
            ]
            calls += [f"{call.kind}: {text}" for text in asked]
    inputs = [
        (name, text) for name, value in step.inputs.items() for text in compared(value, names)
    ]
    return {
        "yielded": [*output_lines, *(f"note: {note}" for note in step.notes)],
        "came in": [f"{name}: {text}" for name, text in inputs],
        "calls": calls,
        "replies": replies,
        "cost": [" · ".join(cost_of(step, step.known))],
    }
