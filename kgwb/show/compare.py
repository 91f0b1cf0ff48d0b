"""Two executions side by side: the answers, the first decision that differs, then the rest, a line a step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from kgwb.run.record import Call, Differences, Step, StepDifference, difference
from kgwb.show.alignment import aligned
from kgwb.show.html import (
    MOST_ROWS,
    Html,
    aside,
    count,
    div,
    fold,
    join,
    kind_tile,
    safe,
    section,
    short,
    span,
    spoken,
    state_sign,
    tag,
    with_style,
)
from kgwb.show.run import Standing, agent_of, answer_banner, set_up, spent_text, subject_text
from kgwb.show.tell import compared, outcome, view
from kgwb.show.terms import Around, names_in
from kgwb.show.views import word_changes

LIKE = 0.35
"""Share of the shorter text's letters that two texts must have in common for single words to be marked."""
MOST_LETTERS = 2_000
"""Letters of a text that are compared and shown; its length is said where it has more."""
PLAIN = 2
"""Equal lines in a row that are shown; more are folded away."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two executions that are compared."""

    name: str
    standing: Standing

    @property
    def steps(self) -> Mapping[str, Step]:
        return self.standing.steps


def comparison(first: Side, second: Side, *, all_steps: bool = False) -> Html:
    """Two executions; steps that are the same stand together in a fold, or one by one with ``all_steps``."""
    heads = (
        div(
            "",
            div("row lead", letter(n), tag("b", side.name), span("soft small", set_up(side.standing.run))),
            answer_banner(side.standing),
        )
        for n, side in enumerate((first, second))
    )
    differences = difference(first.steps, second.steps)
    return join(div("ab heads", *heads), steps_beside(differences, first.standing, all_steps=all_steps))


def letter(number: int) -> Html:
    return span("letter", "AB"[number])


def steps_beside(differences: Differences, standing: Standing | None, *, all_steps: bool = False) -> Html:
    """The first decision that differs, in full, then every step with its outcome in both."""
    names: dict[str, str] = {}
    for one in differences:
        for step in (one.first, one.second):
            names |= names_in([step], step.known if not names else {}) if step else {}
    parting = differences.parting
    rows: list[Html] = []
    for same, group in groupby(differences.leaves, lambda one: one.status == "same"):
        steps = list(group)
        if same and not all_steps:
            said = ", ".join(
                f"{spoken(agent_of(one.key))}: {outcome(one.first)}" for one in steps if one.first
            )
            folded = fold(aside(f"{count(len(steps), 'step')} the same"), said, key=f"same-{len(rows)}")
            rows.append(div("cmp same", span("sign", "="), div("wide", folded)))
        else:
            rows += [_row(one, standing, names) for one in steps]
    head = div("cmp", span("sign"), span("caption", "step"), letter(0), letter(1))
    nothing = (
        div(
            "band",
            "No step differs."
            if not any(one.status != "same" for one in differences)
            else "No decision differs: only the way does.",
        )
        if parting is None
        else ""
    )
    return join(_parting(parting, standing, names) if parting else nothing, head if rows else "", *rows)


def _parting(one: StepDifference, standing: Standing | None, names: Mapping[str, str]) -> Html:
    """The first decision that differs: the step in both, in full."""
    step = one.first or one.second
    assert step is not None, "a difference is of a step"
    tile = kind_tile(standing.run.system.kind(step.agent)) if standing else ""
    sides = (
        div("", div("row", letter(n), _by(side)), _decided(side, names))
        for n, side in enumerate((one.first, one.second))
    )
    return div(
        "decide",
        div("row", tile, span("caption", "First decision that differs")),
        div("row", tag("h3", spoken(step.agent), class_="title"), span("soft", subject_text(step))),
        div("ab", *sides),
    )


def _by(step: Step | None) -> Html:
    return state_sign("hand", "by hand") if step is not None and step.origin == "by hand" else Html()


def _decided(step: Step | None, names: Mapping[str, str]) -> Html:
    if step is None:
        return aside("no such step")
    if not step.done:
        return div("note bad", outcome(step))
    return view(step.output, Around(names, inputs=(), steps=(step,)))


def _row(one: StepDifference, standing: Standing | None, names: Mapping[str, str]) -> Html:
    """A step of both: its outcomes with the words that differ marked, and all that differs to unfold."""
    agent = agent_of(one.key)
    tile = kind_tile(standing.run.system.kind(agent), small=True) if standing else span("sign", "≠")
    texts = [outcome(step) if step else "no such step" for step in (one.first, one.second)]
    same = texts[0] == texts[1]
    first, second = (safe(texts[0]), aside(texts[1])) if same else marked(*texts)
    ways = ", ".join(part for part in one.what if part != "output")
    what = aside(f" the same outcome; {ways or 'its parts'} differ") if same and one.status != "same" else ""
    step = one.first or one.second
    subject = aside(f" {subject_text(step)}") if step is not None and step.subject else ""
    folded = (
        fold(aside("in full"), *_sections(one, names), key=f"full-{one.key}") if one.status != "same" else ""
    )
    name = div("", tag("b", spoken(agent)), span("small", subject))
    return div(
        "cmp", tile, name, div("", first, what), div("", second), div("wide", folded) if folded else ""
    )


def _sections(one: StepDifference, names: Mapping[str, str]) -> Iterator[Html]:
    """What a step yielded, got, asked for and was told in both, where that differs."""
    mine, theirs = (_parts(step, names) for step in (one.first, one.second))
    costs = [spent_text(step, step.known) if step else "no such step" for step in (one.first, one.second)]
    for name in mine:
        if mine[name] != theirs[name]:
            yield div(
                "",
                span("caption", name),
                beside(mine[name], theirs[name], costs if name == "yielded" else ()),
            )


def _parts(step: Step | None, names: Mapping[str, str]) -> dict[str, list[str]]:
    if step is None:
        return {"yielded": [], "came in": [], "calls": [], "replies": []}
    replies = []
    for attempt in step.attempts:
        replies += attempt.reply.splitlines()
        replies += [f"✗ failed: {one.name}: {one.problem}" for one in attempt.checks if one.problem]
    made = compared(step.output, names) if step.done else [outcome(step)]
    return {
        "yielded": [*made, *(f"note: {note}" for note in step.notes)],
        "came in": [
            f"{name}: {line}" for name, value in step.inputs.items() for line in compared(value, names)
        ],
        "calls": [line for key in step.calls if key in step.known for line in _called(step.known[key])],
        "replies": replies,
    }


def _called(call: Call) -> list[str]:
    """The prompt line by line, or the query."""
    if call.kind == "model":
        said = "".join(f"\n{role}:\n{text}" for role, text in call.request["content"]["messages"])
        return f"model {call.request['model']}{said}".splitlines()
    wanted = [value for name, value in call.request.items() if name in ("query", "text", "phrase")]
    return [f"{call.kind}: {text}" for text in wanted]


# --- lines and words beside each other


def beside(first: Sequence[str], second: Sequence[str], heads: Sequence[str] = ()) -> Html:
    """Two lists of lines in two columns, aligned; of very many, the first MOST_ROWS and how many are left."""
    rows: list[Html] = [tag("tr", *(tag("th", head) for head in heads))] if heads else []
    left = 0
    for same, group in groupby(_pairs(first, second), lambda pair: pair[0] == pair[1]):
        pairs = list(group)
        if same and len(pairs) > PLAIN and len(rows) < MOST_ROWS:
            text = "\n".join(short(line, MOST_LETTERS) for line, _ in pairs[:MOST_ROWS])
            folded = fold(aside(f"{len(pairs):,} lines the same"), aside(text))
            rows.append(tag("tr", tag("td", folded, colspan=2)))
            continue
        fitting = pairs[: max(MOST_ROWS - len(rows) + bool(heads), 0)]
        left += len(pairs) - len(fitting)
        rows += [tag("tr", *(tag("td", side) for side in marked(*pair))) for pair in fitting]
    more = aside(f"and {count(left, 'more line')}") if left else ""
    return join(tag("table", *rows, class_="beside"), more) if rows else Html()


def _pairs(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Lines about the same beside each other, in the order of both; scores do not count."""
    about, other = (
        [re.sub(r"(?<!\d)\d+\.\d+", "", line[:MOST_LETTERS]) for line in lines] for lines in (first, second)
    )
    for part in aligned(about, other):
        yield from zip_longest(first[part.first], second[part.second], fillvalue="")


def marked(first: str, second: str) -> tuple[Html, Html]:
    """Two texts with the words marked that only one of them has; whole if they have little in common."""
    one, other = short(first, MOST_LETTERS), short(second, MOST_LETTERS)
    if first == second:
        return safe(one), safe(other)
    if one != other and _alike(first[:MOST_LETTERS], second[:MOST_LETTERS]):
        return word_changes(one, other)
    return tag("del", "− ", one) if one else Html(), tag("ins", "+ ", other) if other else Html()


def _alike(first: str, second: str) -> bool:
    """Whether the words that two texts share are enough to mark the others."""
    words, others = re.findall(r"\w+", first), re.findall(r"\w+", second)
    same = [words[part.first] for part in aligned(words, others) if part.same]
    shared = sum(len(word) for part in same for word in part)
    return shared > 0 and shared >= LIKE * min(len("".join(words)), len("".join(others)))


def difference_html(differences: Differences) -> str:
    """The steps of two runs side by side, with what differs marked."""
    return with_style(section(steps_beside(differences, None), data_static=True))
