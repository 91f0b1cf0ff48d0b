"""Two executions side by side, step by step, with the words that differ marked.

What a step got, asked for, was told and yielded becomes rows; rows are aligned, and words within them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import singledispatch
from itertools import groupby, zip_longest
from typing import Any

from kgwb.flow import (
    QIR,
    Answer,
    Candidate,
    CandidateQuery,
    Context,
    Fact,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    RankedPredicate,
    Retrieved,
    Selection,
    Value,
)
from kgwb.record import Call, Step, StepDifference, Totals, difference
from kgwb.render.html import MOST_ROWS, Html, aside, fold, join, page, safe, table, tag
from kgwb.render.pictures import changes
from kgwb.render.records import MOST_SUPPORT
from kgwb.render.text import differing, outcome, summary
from kgwb.render.words import Names, count, lines, made, names_in, some, triple_text

Row = tuple[str, str]
"""What a line of a record is about, by which two records are aligned, and the line."""

LIKE = 0.35
"""Share of the shorter line's letters that two lines must have in common for single words to be marked."""
MOST_WORDS = 2_000
"""Lines of more words than this are marked as a whole."""
AT_ONCE = 8
"""Rows of a step that are shown at once; the others unfold."""
PLAIN = 2
"""Equal rows in a row that are shown; more are folded away."""

STYLE = """
.kgwb-record .kgwb-compared .kgwb-beside { table-layout: fixed; width: 100% }
.kgwb-record .kgwb-compared .kgwb-beside td { white-space: pre-wrap; overflow-wrap: anywhere;
  max-width: none }
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
    "; within a line such words are ",
    tag("del", "struck out"),
    " and ",
    tag("ins", "underlined"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two executions that are compared."""

    name: str
    steps: Mapping[str, Step]
    totals: Totals
    answer: Answer | None = None
    ended: str = ""
    """What is told in place of an answer: "failed: ..."."""

    @property
    def names(self) -> dict[str, str]:
        """Display names by IRI, from the record."""
        steps = list(self.steps.values())
        return names_in(steps, steps[0].known if steps else {})


def comparison_html(first: Side, second: Side, *, all_steps: bool = False) -> str:
    """Two executions side by side: answers, cost, and every step, those that are the same folded away."""
    return page(comparison(first, second, all_steps=all_steps))


def difference_html(differences: Sequence[StepDifference]) -> str:
    """The steps of two runs side by side, with what differs marked."""
    return page(_compared(steps_beside(differences)))


def comparison(first: Side, second: Side, *, all_steps: bool = False) -> Html:
    """``comparison_html`` as a piece of a page."""
    steps = difference(first.steps, second.steps)
    names = {**first.names, **second.names}
    shown = steps_beside(steps, (first.name, second.name), names, all_steps=all_steps)
    return _compared(_cost(first, second, names), shown)


def _compared(*contents: Html) -> Html:
    """In the scope of the style of comparisons, with that style."""
    return tag("div", Html(f"<style>{STYLE}</style>"), *contents, class_="kgwb-compared")


def _cost(first: Side, second: Side, names: Names) -> Html:
    heads = ("", "answer", "model calls", "tokens", "queries", "label searches", "seconds")
    told = [
        summary(side.answer, names) if side.answer is not None else side.ended or "no answer"
        for side in (first, second)
    ]
    answers = marked(told[0], told[1])
    return table(
        heads,
        [
            (tag("b", side.name), answer, *_figures(side.totals))
            for side, answer in zip((first, second), answers, strict=True)
        ],
    )


def _figures(totals: Totals) -> tuple[str, ...]:
    live = f"{totals.model_calls:,} ({totals.live_model_calls:,} live)"
    tokens = totals.prompt_tokens + totals.completion_tokens
    return live, f"{tokens:,}", f"{totals.queries:,}", f"{totals.searches:,}", f"{totals.seconds:.2f}"


# --- steps


def steps_beside(
    differences: Sequence[StepDifference],
    sides: tuple[str, str] = ("first", "second"),
    names: Names | None = None,
    *,
    all_steps: bool = False,
) -> Html:
    """The steps in their order, the first and the last that differ unfolded.

    Equal ones stand together in a fold, or one by one with ``all_steps``.
    """
    unequal = [one for one in differences if one.status != "same"]
    shown = [tag("div", tag("b", differing(differences)))]
    if unequal:
        shown.append(tag("div", LEGEND))
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
            shown.extend(_step(one, sides, names or {}, one.key in ends) for one in steps)
    return join(*shown)


def _step(one: StepDifference, sides: tuple[str, str], names: Names, unfolded: bool) -> Html:
    """A step of both: what it yielded, and folded what else differs."""
    what = f" in {', '.join(one.what)}" if one.what else ""
    head = join(tag("b", one.key), f": {one.status}{what}")
    mine, theirs = _sections(one.first, names), _sections(one.second, names)
    yielded = beside(mine["yielded"], theirs["yielded"], _heads(one, sides))
    differ = " differ" if one.first and one.second else ""
    others = [
        fold(f"{name}{differ}", beside(mine[name], theirs[name], sides))
        for name in ("inputs", "calls", "replies")
        if mine[name] != theirs[name]
    ]
    return fold(head, yielded, *others, unfolded=unfolded)


def _heads(one: StepDifference, sides: tuple[str, str]) -> tuple[str, str]:
    """The name of either side, and what the step cost there."""

    def told(name: str, step: Step | None) -> str:
        return f"{name}: {', '.join(made(step, step.known))}" if step else f"{name}: no such step"

    return told(sides[0], one.first), told(sides[1], one.second)


def _sections(step: Step | None, names: Names) -> dict[str, list[Row]]:
    if step is None:
        return {"yielded": [], "inputs": [], "calls": [], "replies": []}
    yielded = rows(step.output, names) if step.done else [("outcome", outcome(step))]
    inputs = [
        (f"{name} {key}", f"{name}: {text}")
        for name, value in step.inputs.items()
        for key, text in rows(value, names)
    ]
    problems = [
        [(check.name, check.problem) for check in one.checks if check.problem] for one in step.attempts
    ]
    replies = [
        row
        for attempt, failed in zip(step.attempts, problems, strict=True)
        for row in (*_text(attempt.reply), *((name, f"✗ failed: {name}: {text}") for name, text in failed))
    ]
    return {
        "yielded": [*yielded, *((note, f"note: {note}") for note in step.notes)],
        "inputs": inputs,
        "calls": [row for key in step.calls if key in step.known for row in _called(step.known[key])],
        "replies": replies,
    }


def _called(call: Call) -> list[Row]:
    """The prompt line by line, or the query."""
    if call.kind == "model":
        said = [
            row
            for role, text in call.request["content"]["messages"]
            for row in ((role, f"{role}:"), *_text(text))
        ]
        return [("model", f"model {call.request['model']}"), *said]
    wanted = [str(value) for name, value in call.request.items() if name in ("query", "text", "phrase")]
    return [(text, f"{call.kind}: {text}") for text in wanted]


def _text(text: str) -> list[Row]:
    return [(line, line) for line in text.splitlines()]


# --- records as rows


@singledispatch
def rows(value: Any, names: Names) -> list[Row]:
    """The rows of a record, a line each; one without a form of its own as its lines."""
    if isinstance(value, list | tuple):
        return [row for part in value for row in rows(part, names)]
    return [(line, line) for line in lines(value, names)]


@rows.register
def _(value: QIR, names: Names) -> list[Row]:
    asked = f"asks for {value.target} ({value.kind})" if value.target else f"asks for {value.kind}"
    return [("asks", asked), *rows(value.facts, names)]


@rows.register
def _(value: Fact, names: Names) -> list[Row]:
    return [(str(value), str(value))]


@rows.register
def _(value: Context, names: Names) -> list[Row]:
    turns = [
        (turn.question, " ".join((turn.standalone or turn.question, "→", ", ".join(turn.answers))))
        for turn in value.turns
    ]
    return [("turns", lines(value, names)[0]), *turns]


@rows.register
def _(value: Candidate, names: Names) -> list[Row]:
    about = [", ".join(value.types), value.description, ", ".join(value.relations)]
    told = " · ".join(filter(None, (value.label, *about)))
    return [(str(value.iri), f"{value.score:.2f} {told} <{value.iri}>")]


@rows.register
def _(value: Retrieved, names: Names) -> list[Row]:
    return [("found", lines(value, names)[0]), *rows(value.candidates, names)]


@rows.register
def _(value: Link, names: Names) -> list[Row]:
    reason = [("because", f"because: {value.reason}")] if value.reason else []
    return [("choice", lines(value, names)[0]), *reason, *rows(value.candidates, names)]


@rows.register
def _(value: RankedPredicate, names: Names) -> list[Row]:
    return [(f"{value.direction} {value.iri}", lines(value, names)[0])]


@rows.register
def _(value: LinkedRelation, names: Names) -> list[Row]:
    return [("fact", str(value.fact)), *rows(value.predicates, names)]


@rows.register
def _(value: Linked, names: Names) -> list[Row]:
    return [*rows(value.links, names), *rows(value.relations, names)]


@rows.register
def _(value: CandidateQuery, names: Names) -> list[Row]:
    return [(value.sparql, f"{value.score:.3f} {', '.join(value.predicates)}\n{value.sparql}")]


@rows.register
def _(value: Generated, names: Names) -> list[Row]:
    return [("queries", lines(value, names)[0]), *rows(value.queries, names)]


@rows.register
def _(value: Selection, names: Names) -> list[Row]:
    return [("queries", lines(value, names)[0]), *rows(value.queries, names)]


@rows.register
def _(value: Value, names: Names) -> list[Row]:
    triples = some([triple_text(triple, names) for triple in value.support], MOST_SUPPORT)
    return [(value.term.n3(), "\n  ".join((value.label, *triples)))]


@rows.register
def _(value: Answer, names: Names) -> list[Row]:
    names = {**{str(iri): name for iri, name in value.names}, **names}
    said = value.text or value.reason
    head = [("said", said)] if said else []
    return [*head, *rows(value.values, names), *((query, query) for query in value.queries)]


# --- rows and words beside each other


def beside(first: Sequence[Row], second: Sequence[Row], heads: tuple[str, str]) -> Html:
    """Two lists of rows in two columns, aligned; at most MOST_ROWS that differ, and how many are left out."""
    shown: list[Html] = []
    left = 0
    for same, group in groupby(_pairs(first, second), lambda pair: pair[0] == pair[1]):
        pairs = list(group)
        if same:
            shown.extend(_equal([row[1] for row, _ in pairs if row]))
            continue
        fitting = pairs[: max(MOST_ROWS - len(shown), 0)]
        left += len(pairs) - len(fitting)
        shown.extend(_unequal(*pair) for pair in fitting)
    if not shown:
        return Html()
    more = [_whole(aside(f"and {count(left, 'more row')} that differ"))] if left else []
    return join(_two_columns(heads, shown[:AT_ONCE]), _more(heads, [*shown[AT_ONCE:], *more]))


def _two_columns(heads: tuple[str, str], shown: Sequence[Html]) -> Html:
    head = tag("tr", *(tag("th", text) for text in heads))
    return tag("table", head, *shown, class_="kgwb-table kgwb-beside")


def _more(heads: tuple[str, str], shown: Sequence[Html]) -> Html:
    return fold(f"{len(shown)} more", _two_columns(heads, shown)) if shown else Html()


def _equal(texts: list[str]) -> list[Html]:
    if len(texts) <= PLAIN:
        return [tag("tr", tag("td", aside(text)), tag("td", aside(text))) for text in texts]
    return [_whole(fold(aside(f"{len(texts):,} rows the same"), aside("\n".join(texts[:MOST_ROWS]))))]


def _whole(content: Html) -> Html:
    return tag("tr", tag("td", content, colspan="2"))


def _unequal(first: Row | None, second: Row | None) -> Html:
    one, other = marked(first[1] if first else "", second[1] if second else "")
    return tag("tr", tag("td", one), tag("td", other))


def _pairs(first: Sequence[Row], second: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows about the same beside each other, in the order of both; others as they come."""
    matcher = SequenceMatcher(None, [key for key, _ in first], [key for key, _ in second], autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        yield from zip_longest(first[a:b], second[c:d])


def marked(first: str, second: str) -> tuple[Html, Html]:
    """Two texts with the words marked that only one of them has; whole if they have little in common."""
    if first == second:
        return safe(first), safe(second)
    if _alike(first, second):
        return changes(first, second)
    sides = (("del", "− ", first), ("ins", "+ ", second))
    one, other = (
        tag(name, mark, text, class_="kgwb-alone") if text else Html() for name, mark, text in sides
    )
    return one, other


def _alike(first: str, second: str) -> bool:
    """Whether the words that two texts share are enough to mark the others; never in very long ones."""
    words, others = re.findall(r"\w+", first), re.findall(r"\w+", second)
    if not 0 < min(len(words), len(others)) <= max(len(words), len(others)) <= MOST_WORDS:
        return False
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    shared = sum(len(word) for block in blocks for word in words[block.a : block.a + block.size])
    return shared >= LIKE * min(len("".join(words)), len("".join(others)))
