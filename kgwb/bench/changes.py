"""What became of each question after a change, and at which agent it first went otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kgwb import systems
from kgwb.bench.figures import INTERVAL_MEASURES, MEASURE_LABELS, LoadedResults
from kgwb.bench.metrics import QuestionGroup, compare_results
from kgwb.bench.results import (
    VERDICT_STATES,
    BenchRow,
    describe_config_changes,
    find_run_file,
    get_label,
    get_verdict,
    is_lost,
)
from kgwb.errors import InputError, KgwbError
from kgwb.run.agents import agent_of_key
from kgwb.run.differences import StepDifference, output_lines
from kgwb.run.run_file import RunFile
from kgwb.show import html as h
from kgwb.show.html import Html, tag
from kgwb.text import and_more, display_name, pluralize, shorten, single_line

UNSTABLE = "varies by itself"
OUTCOME_STATES = {
    "fixed": "ok",
    "broken": "bad",
    UNSTABLE: "stale",
    "still lost": "none",
    "still right": "off",
}
"""What can become of a question, with the sign it is shown by."""
UNFOLDED_OUTCOMES = ("fixed", "broken")
SIGNIFICANCE_LEVEL = 0.05
"""Below this, a difference is more than chance."""
UNKNOWN_AGENT = "not known: its run was not kept"
MAX_SHOWN_VALUES = 5
"""Values shown of an answer."""


def render_verdict(row: BenchRow) -> Html:
    """The verdict by icon, colour and word."""
    return h.state_badge(VERDICT_STATES[get_verdict(row)], get_verdict(row))


def render_answers(row: BenchRow) -> Html:
    """What was answered, under its verdict; an error with its message, a table with the score of columns."""
    what = (
        h.note(shorten(row["error"]), level="bad")
        if row["error"]
        else render_values(row, "answers")
    )
    columns = ", ".join(f"{name} {score:.2f}" for name, score in row.get("by_column", {}).items())
    return h.join(
        h.div("", render_verdict(row)),
        what,
        h.div("soft", "by column: ", columns) if columns and is_lost(row) else "",
    )


def render_values(row: BenchRow, name: str) -> Html:
    """The answers or the gold of a line, vertices by their labels."""
    values = row[name]
    if not values:
        return h.muted_text("not known" if values is None else "none")

    def shown(value: str | None) -> Html | str:
        value = value or ""
        return h.iri_link(value, get_label(row, value)) if "://" in value else shorten(value)

    cells = row.get("table" if name == "answers" else "gold_table") or [[value] for value in values]
    lines = [[shown(cell) for cell in one_line] for one_line in cells[:MAX_SHOWN_VALUES]]
    written = (
        h.table((), lines)
        if len(cells[0]) > 1
        else h.join(*(h.div("", *one_line) for one_line in lines))
    )
    return h.join(written, and_more(len(cells) - MAX_SHOWN_VALUES))


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question before and after."""

    before: BenchRow
    after: BenchRow
    outcome: str
    first_difference: StepDifference | None
    """The first decision that differs."""
    agent: str
    """The agent that took it; "" if none differs, UNKNOWN if a run was not kept."""


def find_changes(
    before: LoadedResults, after: LoadedResults, on_progress: Callable[[], object] = lambda: None
) -> list[QuestionChange]:
    """What became of the questions with gold that both have, in the order of OUTCOMES."""
    words = {(True, False): "fixed", (False, True): "broken", (True, True): "still lost"}
    known = []
    for key, row in before.rows.items():
        new = after.rows.get(key)
        if new is None or row["gold"] is None or new["gold"] is None:
            continue
        became = (
            UNSTABLE
            if new.get("varies")
            else words.get((is_lost(row), is_lost(new)), "still right")
        )
        parting, agent = None, UNKNOWN_AGENT
        files = find_run_file(before.folder, row), find_run_file(after.folder, new)
        with suppress(KgwbError):
            if files[0] and files[1]:
                parting = (
                    systems.load_run(files[0]).diff(systems.load_run(files[1])).first_difference
                )
                agent = agent_of_key(parting.key) if parting else ""
        on_progress()
        known.append(QuestionChange(row, new, became, parting, new.get("varies") or agent))
    return sorted(known, key=lambda change: [*OUTCOME_STATES].index(change.outcome))


def load_prompt_texts(measured: LoadedResults, names: Collection[str]) -> dict[str, str]:
    """The prompts of these names as they were sent, from the runs that were kept."""
    texts: dict[str, str] = {}
    for file in filter(
        None, (find_run_file(measured.folder, row) for row in measured.rows.values())
    ):
        with suppress(KgwbError):
            header = next(RunFile(file).entries())
            texts = {**header.get("prompts", {}), **texts}
        if set(names) <= set(texts):
            break
    return {name: str(texts[name]) for name in names if name in texts}


# --- the page

RenderLink = Callable[[LoadedResults, QuestionChange], object]
"""What leads from a question of a results folder to its run in the debugger."""


class ResultsComparison:
    """One results folder against another, laid out once for page and widget."""

    def __init__(
        self,
        first: LoadedResults,
        other: LoadedResults,
        finished: Callable[[], object] = lambda: None,
    ) -> None:
        """``finished`` is called after each question that was looked at."""
        self.before, self.after = first, other
        self.changes = find_changes(first, other, finished)
        self.counts = Counter(change.outcome for change in self.changes)
        self.shown_outcomes = [
            word for word in OUTCOME_STATES if self.counts[word] or word in UNFOLDED_OUTCOMES
        ]
        """The outcomes that there are, and always what was fixed and broken."""
        agents: dict[str, Counter[str]] = {}
        for change in self.changes:
            agents.setdefault(change.agent, Counter())[change.outcome] += 1
        most = sorted(
            agents.items(), key=lambda item: (-item[1]["fixed"] - item[1]["broken"], item[0])
        )
        self.by_agent = dict(most)
        """By the agent whose decision differs first, those that fixed and broke the most first."""

    def summary_lines(self) -> Iterator[str]:
        """How many became what, and at which agents, in words for a terminal."""
        yield f"{self.after.name}: {', '.join(f'{self.counts[word]} {word}' for word in self.shown_outcomes)}"
        with suppress(InputError):
            before, after, difference, chance = self._compare_measure("f1")[1:]
            yield f"  F1 {before} → {after}: {difference}, {chance}"
        for agent, counts in self.by_agent.items():
            became = (f"{counts[word]} {word}" for word in OUTCOME_STATES if counts[word])
            yield f"  {display_name(agent) or 'no decision differs'}: {', '.join(became)}"

    def _compare_measure(self, measure: str) -> tuple[str, ...]:
        """How many questions, the measure before and after, the difference, and whether it may be chance.

        What varies by itself is no effect of the change, and left out. Raises InputError.
        """
        stable = {change.before["id"] for change in self.changes if change.outcome != UNSTABLE}
        sides = [
            [row for key, row in each.rows.items() if key in stable]
            for each in (self.before, self.after)
        ]
        pair = compare_results(sides[0], sides[1], measure)
        low, high = pair.confidence_interval
        figures = (str(QuestionGroup("", side).estimate(measure)) for side in sides)
        chance = f"{'may be' if pair.p_value > SIGNIFICANCE_LEVEL else 'more than'} chance (p {pair.p_value:.3f})"
        chance = chance if pair.improved_ids or pair.worsened_ids else "no answer differs"
        return (
            str(pair.questions),
            *figures,
            f"{pair.difference:+.3f} [{low:+.3f}, {high:+.3f}]",
            chance,
        )

    def render_config_changes(self) -> Iterator[Html]:
        """The prompts' differences line by line, then what else differs."""
        yield tag("h2", f"{self.before.name} → {self.after.name}", class_="title")
        old, new = self.before.config, self.after.config
        prompts, later = (dict(config.get("prompts") or {}) for config in (old, new))
        names = [name for name in {**prompts, **later} if prompts.get(name) != later.get(name)]
        before, after = load_prompt_texts(self.before, names), load_prompt_texts(self.after, names)
        for name in names:
            text, now = before.get(name), after.get(name)
            if text is None or now is None:
                yield h.div("soft", f"prompts/{name}.md differs; no kept run used it")
            else:
                number, lines = h.render_line_diff(text.splitlines(), now.splitlines())
                head = h.join(
                    h.span("mono", f"prompts/{name}.md "), h.muted_text(pluralize(number, "line"))
                )
                yield h.collapsible(
                    head, lines, expanded=True, key=f"prompt-{self.after.name}-{name}"
                )
        rest = describe_config_changes({**old, "prompts": {}}, {**new, "prompts": {}})
        yield from (h.div("", single_line(entry)) for entry in rest)

    def render_summary(self) -> Iterator[Html]:
        """How many became what, F1 before and after, and at which agents."""
        signs = (
            (OUTCOME_STATES[word], f"{self.counts[word]} {word}") for word in self.shown_outcomes
        )
        yield h.div("row", *(h.state_badge(sign, text, pill=True) for sign, text in signs))
        rows = []
        try:
            rows = [
                (self.after.name, MEASURE_LABELS[name], *self._compare_measure(name))
                for name in INTERVAL_MEASURES
            ]
        except InputError as exc:
            yield h.note(f"{self.after.name} cannot be compared: {exc}", level="bad")
        yield h.table(
            ("", "measure", "questions", self.before.name, self.after.name, "difference", ""), rows
        )
        if varying := self.counts[UNSTABLE]:
            why = "asked again with the same words, a decision of theirs came out otherwise"
            yield h.note(f"{pluralize(varying, 'question')} left out: {why}.", level="calm")
        by_agent = [
            (
                display_name(agent) or h.muted_text("none"),
                *(counts[word] or "" for word in self.shown_outcomes),
            )
            for agent, counts in self.by_agent.items()
        ]
        yield h.table(("first decision that differs", *self.shown_outcomes), by_agent)

    def render_questions(self, link: RenderLink) -> Iterator[Html]:
        """A fold for each outcome; in it a table for each agent."""
        yield tag("h2", f"Every question: {self.before.name} → {self.after.name}", class_="title")
        heads = ("question", "before", "after", "gold", "decision before", "decision after")
        for word, sign in OUTCOME_STATES.items():
            group = [change for change in self.changes if change.outcome == word]
            parts = []
            for agent in dict.fromkeys(change.agent for change in group):
                mine = [change for change in group if change.agent == agent]
                title = (
                    f"first decision that differs: {display_name(agent)}"
                    if agent
                    else "no decision differs"
                )
                rows = [
                    (
                        link(self.after, change),
                        *map(render_answers, (change.before, change.after)),
                        render_values(change.before, "gold"),
                        *_render_decisions(change.first_difference),
                    )
                    for change in mine
                ]
                parts.append(h.div("caption", f"{title} ({len(mine)})"))
                parts.append(h.div("across cells", h.table(heads, rows)))
            if group:
                head = h.state_badge(sign, f"{len(group)} {word}")
                yield h.collapsible(
                    head,
                    *parts,
                    expanded=word in UNFOLDED_OUTCOMES,
                    key=f"{self.after.name}-{word}",
                )


def _render_decisions(parting: StepDifference | None) -> tuple[object, object]:
    """What the first decision that differs was, before and after, with the words marked that differ."""
    if parting is None:
        return h.muted_text("–"), h.muted_text("–")
    sides = (parting.first, parting.second)
    texts = ["no such step" if side is None else side.outcome for side in sides]
    if texts[0] == texts[1]:
        texts = ["; ".join(output_lines(side)) if side and side.done else "" for side in sides]
    return h.mark_changed_words(*(shorten(text) for text in texts))


def render_best_results(effects: Sequence[ResultsComparison]) -> Iterator[Html]:
    """All folders beside each other, the best named by agent and by question; nothing of a single one."""
    if len(effects) < 2:
        return
    yield tag("h2", "Which is best, by agent and by question", class_="title")
    rows: list[tuple[object, ...]] = []
    for agent in dict.fromkeys(agent for effect in effects for agent in effect.by_agent if agent):
        counts = [effect.by_agent.get(agent, Counter()) for effect in effects]
        texts = [f"{each['fixed']} fixed, {each['broken']} broken" for each in counts]
        rows.append(
            (
                display_name(agent),
                *_mark_best([each["fixed"] - each["broken"] for each in counts], texts),
            )
        )
    yield h.table(("by agent", *(effect.after.name for effect in effects)), rows)
    sets, rows = [effects[0].before, *(effect.after for effect in effects)], []
    for key, row in sets[0].rows.items():
        asked = [each for each in (measured.rows.get(key) for measured in sets) if each]
        if len(asked) == len(sets) and len({each.get("f1") for each in asked}) > 1:
            rows.append(
                (
                    shorten(row["question"]),
                    *_mark_best([r["f1"] for r in asked], [*map(render_verdict, asked)]),
                )
            )
    yield h.div("across", h.table(("by question", *(measured.name for measured in sets)), rows))


def _mark_best(values: Sequence[float], cells: Sequence[object]) -> list[object]:
    """The cells, those of the largest value named the best where the values differ."""
    most, apart = max(values), len({*values}) > 1
    pairs = zip(values, cells, strict=True)
    return [
        h.join(tag("b", c), " ", tag("b", "best")) if apart and v == most else c for v, c in pairs
    ]
