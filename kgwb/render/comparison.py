"""Two executions side by side, step by step, with the words that differ marked.

What a step got, asked for, was told and yielded becomes lines; lines are aligned, and words within them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from kgwb import flow
from kgwb.record import Call, Step, StepDifference, Totals, difference
from kgwb.render.alignment import aligned
from kgwb.render.html import MOST_ROWS, Html, aside, fold, join, page, safe, short, table, tag
from kgwb.render.pictures import changes
from kgwb.render.records import MOST_SUPPORT
from kgwb.render.text import differing, outcome
from kgwb.render.words import Names, count, lines, made, names_in, some, totals_text, triple_text, with_names

LIKE = 0.35
"""Share of the shorter text's letters that two texts must have in common for single words to be marked."""
MOST_LETTERS = 2_000
"""Letters of a text that are compared and shown; its length is said where it has more."""
AT_ONCE = 8
"""Lines of a step that are shown at once; the others unfold."""
PLAIN = 2
"""Equal lines in a row that are shown; more are folded away."""

STYLE = """
.kgwb-record .kgwb-beside .kgwb-table { table-layout: fixed; width: 100% }
.kgwb-record .kgwb-beside td { white-space: pre-wrap; overflow-wrap: anywhere; max-width: none }
.kgwb-record .kgwb-compared :is(del, ins) { padding: 0 1px; color: inherit; font-weight: inherit }
.kgwb-record .kgwb-compared del {
  background: color-mix(in srgb, var(--jp-error-color1, #d64545) 22%, transparent) }
.kgwb-record .kgwb-compared ins {
  background: color-mix(in srgb, var(--jp-success-color1, #2e9e44) 22%, transparent) }
.kgwb-record .kgwb-compared .kgwb-alone { text-decoration: none }
"""
LEGEND = join(
    tag("del", "− in the first alone", class_="kgwb-alone"),
    ", ",
    tag("ins", "+ in the second alone", class_="kgwb-alone"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two executions that are compared."""

    name: str
    steps: Mapping[str, Step]
    totals: Totals
    answer: flow.Answer | None = None
    ended: str = ""
    """What is told in place of an answer: "failed: ..."."""


def comparison(first: Side, second: Side, *, all_steps: bool = False) -> Html:
    """Two executions side by side: answers, cost, and every step.

    Steps that are the same stand together in a fold, or one by one with ``all_steps``.
    """
    names: Names = {}
    for side in (first, second):
        steps = list(side.steps.values())
        names = {**names, **names_in(steps, steps[0].known if steps else {})}
    beside = _steps(difference(first.steps, second.steps), (first.name, second.name), names, all_steps)
    return _styled(_cost(first, second, names), beside)


def difference_html(differences: Sequence[StepDifference]) -> str:
    """The steps of two runs side by side, with what differs marked."""
    return page(_styled(_steps(differences, ("first", "second"), {}, False)))


def _styled(*contents: Html) -> Html:
    return tag("div", Html(f"<style>{STYLE}</style>"), *contents, class_="kgwb-compared")


def _cost(first: Side, second: Side, names: Names) -> Html:
    sides = (first, second)
    told = (side.ended if side.answer is None else lines(side.answer, names)[0] for side in sides)
    answers = zip(sides, marked(*told), strict=True)
    rows = [(tag("b", side.name), shown, totals_text(side.totals)) for side, shown in answers]
    return table(("", "answer", "cost"), rows)


# --- steps


def _steps(
    differences: Sequence[StepDifference], sides: tuple[str, str], names: Names, all_steps: bool
) -> Html:
    """The steps in their order, the first and the last that differ unfolded."""
    unequal = [one for one in differences if one.status != "same"]
    shown = [tag("div", tag("b", differing(differences))), tag("div", LEGEND) if unequal else Html()]
    supervising = {step.parent for one in unequal for step in (one.first, one.second) if step}
    leaves = [one.key for one in unequal if one.key not in supervising]
    ends = {*leaves[:1], *leaves[-1:]}  # where they part, and where that led
    for same, group in groupby(differences, lambda one: one.status == "same"):
        steps = list(group)
        if same and not all_steps:
            rows = [(one.key, outcome(one.first)) for one in steps if one.first]
            told = f"{count(len(steps), 'step')} the same: {', '.join(one.key for one in steps)}"
            shown.append(fold(aside(told), table(("step", "yielded"), rows)))
        else:
            shown.extend(_step(one, sides, names, one.key in ends) for one in steps)
    return join(*shown)


def _step(one: StepDifference, sides: tuple[str, str], names: Names, unfolded: bool) -> Html:
    """A step of both: what it yielded, and folded what else differs."""
    what = f" in {', '.join(one.what)}" if one.what else ""
    both = list(zip(sides, (one.first, one.second), strict=True))
    heads = [f"{name}: {_spent(step)}" for name, step in both]
    mine, theirs = (_sections(step, names) for _, step in both)
    differ = " differ" if one.first and one.second else ""
    folded = [
        fold(f"{name}{differ}", beside(mine[name], theirs[name], sides))
        for name in ("inputs", "calls", "replies")
        if mine[name] != theirs[name]
    ]
    yielded = beside(mine["yielded"], theirs["yielded"], heads)
    return fold(join(tag("b", one.key), f": {one.status}{what}"), yielded, *folded, unfolded=unfolded)


def _spent(step: Step | None) -> str:
    return ", ".join(made(step, step.known)) if step else "no such step"


def _sections(step: Step | None, names: Names) -> Mapping[str, Sequence[str]]:
    if step is None:
        return dict.fromkeys(("yielded", "inputs", "calls", "replies"), ())
    replies = []
    for attempt in step.attempts:
        replies += attempt.reply.splitlines()
        replies += [f"✗ failed: {one.name}: {one.problem}" for one in attempt.checks if one.problem]
    return {
        "yielded": [
            *(rows(step.output, names) if step.done else [outcome(step)]),
            *(f"note: {note}" for note in step.notes),
        ],
        "inputs": [f"{name}: {line}" for name, value in step.inputs.items() for line in rows(value, names)],
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


def rows(value: Any, names: Names) -> list[str]:
    """The lines of a record and of all its parts: what ``lines`` says, but nothing is left out."""
    parts: Sequence[Any] = ()
    told = lines(value, names)
    match value:
        case list() | tuple():
            told, parts = [], value
        case flow.QIR():
            told, parts = [f"asks for {value.target} ({value.kind})"], value.facts
        case flow.Candidate():
            about = (value.label, ", ".join(value.types), value.description, ", ".join(value.relations))
            told = [f"{value.score:.2f} {' · '.join(filter(None, about))} <{value.iri}>"]
        case flow.Retrieved():
            told, parts = told[:1], value.candidates
        case flow.Link():
            parts = value.candidates
        case flow.LinkedRelation():
            told, parts = [str(value.fact)], value.predicates
        case flow.Linked():
            told, parts = [], (*value.links, *value.relations)
        case flow.Generated() | flow.Selection():
            told, parts = told[:1], value.queries
        case flow.Value():
            triples = [triple_text(triple, names) for triple in value.support]
            told = ["\n  ".join((value.label, *some(triples, MOST_SUPPORT)))]
        case flow.Answer():
            names = with_names(names, value.names)
            told, parts = [value.text or value.reason], (*value.values, *value.queries)
    return [*filter(None, told), *(line for part in parts for line in rows(part, names))]


# --- lines and words beside each other


def beside(first: Sequence[str], second: Sequence[str], heads: Sequence[str]) -> Html:
    """Two lists of lines in two columns, aligned; of very many, the first MOST_ROWS and how many are left."""
    shown: list[tuple[Html, Html]] = []
    left = 0
    for same, group in groupby(_pairs(first, second), lambda pair: pair[0] == pair[1]):
        pairs = list(group)
        if same and len(pairs) > PLAIN and len(shown) < MOST_ROWS:
            told = aside(f"{len(pairs):,} lines the same")
            text = "\n".join(short(line, MOST_LETTERS) for line, _ in pairs[:MOST_ROWS])
            shown.append((fold(told, aside(text)), told))
            continue
        fitting = pairs[: max(MOST_ROWS - len(shown), 0)]
        left += len(pairs) - len(fitting)
        shown += [marked(*pair) for pair in fitting]
    if left:
        shown.append((aside(f"and {count(left, 'more line')}"), Html()))
    at_once, more = table(heads, shown[:AT_ONCE]), table(heads, shown[AT_ONCE:])
    folded = fold(f"{len(shown) - AT_ONCE} more", more) if more else more
    return tag("div", at_once, folded, class_="kgwb-beside") if shown else Html()


def _pairs(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Lines about the same beside each other, in the order of both; others as they come."""
    about, other = ([_about(line) for line in lines] for lines in (first, second))
    for part in aligned(about, other):
        yield from zip_longest(first[part.first], second[part.second], fillvalue="")


def _about(line: str) -> str:
    """A line without its scores: the same candidate, predicate or query, better or worse."""
    return re.sub(r"(?<!\d)\d+\.\d+", "", line[:MOST_LETTERS])


def marked(first: str, second: str) -> tuple[Html, Html]:
    """Two texts with the words marked that only one of them has; whole if they have little in common."""
    one, other = short(first, MOST_LETTERS), short(second, MOST_LETTERS)
    if first == second:
        return safe(one), safe(other)
    if one != other and _alike(first[:MOST_LETTERS], second[:MOST_LETTERS]):
        return changes(one, other)
    return _alone("del", "− ", one), _alone("ins", "+ ", other)


def _alone(name: str, mark: str, text: str) -> Html:
    return tag(name, mark, text, class_="kgwb-alone") if text else Html()


def _alike(first: str, second: str) -> bool:
    """Whether the words that two texts share are enough to mark the others."""
    words, others = re.findall(r"\w+", first), re.findall(r"\w+", second)
    same = [words[part.first] for part in aligned(words, others) if part.same]
    shared = sum(len(word) for part in same for word in part)
    return shared > 0 and shared >= LIKE * min(len("".join(words)), len("".join(others)))
