"""What became of each question after a change, and which agent decided differently first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean
from typing import Any, NamedTuple

from kgwb.bench.figures import (
    INTERVAL_MEASURES,
    LoadedResults,
    PassRate,
    distinct_keys,
)
from kgwb.bench.ladder import agent_or_reason
from kgwb.bench.metrics import BenchRows, QuestionGroup, ScoreComparison, compare_results
from kgwb.bench.report_parts import name_values, render_answers, render_gold, render_verdict
from kgwb.bench.results import (
    BenchRow,
    QuestionSample,
    describe_config_changes,
    find_run_file,
    is_lost,
)
from kgwb.bench.statistics import (
    MIN_DIFFERING_QUESTIONS,
    POWER,
    SIGNIFICANCE_LEVEL,
    SampleSize,
    format_p_value,
)
from kgwb.errors import InputError, KgwbError
from kgwb.run import systems
from kgwb.run.agents import agent_of_key
from kgwb.run.differences import Differences, StepDifference, output_lines
from kgwb.run.run_file import RunFile
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html, tag
from kgwb.text import display_name, list_first, pluralize, shorten, single_line

UNSTABLE = "varies by itself"
FAILED = "ended in an error"
OUTCOME_STATES = {
    "fixed": "ok",
    "broken": "bad",
    FAILED: "bad",
    UNSTABLE: "stale",
    "still lost": "none",
    "still right": "off",
}
"""What can become of a question, with the state badge that shows it.

A question that ended in an error, before or after the change, is neither fixed nor broken: an
error, such as that of a server, says nothing about the change.
"""
FAILED_REPEATS = "all repeats of it failed"
UNFOLDED_OUTCOMES = ("fixed", "broken")
MAX_OPEN_SETTINGS = 6
NOT_LOCATED = "–"
"""In place of a number of lost answers that is not known."""
UNKNOWN_AGENT = "not known: its run was not kept"


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question before and after a change."""

    before: BenchRow
    after: BenchRow
    outcome: str
    """One of OUTCOME_STATES."""
    first_difference: StepDifference | None
    """The first step that decided differently."""
    agent: str
    """The agent of that step; "" if all decisions are equal, UNKNOWN_AGENT if a run is missing."""
    earlier_turn: BenchRow | None = None
    """The earlier turn of its dialogue, after the change, because of which it was given other inputs.

    ``first_difference`` is then the first step that decided differently from the same inputs. If
    there is none, ``agent`` is that of the earlier turn.
    """


def find_changes(
    before: LoadedResults, after: LoadedResults, on_progress: Callable[[], object] = lambda: None
) -> list[QuestionChange]:
    """Compare two results folders question by question, and return a change for each question with gold in both.

    Changes are sorted by outcome, in the order of OUTCOME_STATES, and within an outcome as in the
    earlier results. Saved runs are replayed to compare their steps; ``on_progress`` is called after
    each such question. Of a question that varies without a change, the agent that varied is named.
    """
    changes = []
    changed_turns: dict[str, QuestionChange] = {}
    """The latest turn of each dialogue that is remembered otherwise."""
    for id_, row in before.rows.items():
        new_row = after.rows.get(id_)
        if new_row is None:
            continue
        has_gold = _have_gold(row, new_row)
        dialogue = row.get("dialogue", "")
        is_other_turn = row.get("remembered") != new_row.get("remembered")
        if not has_gold and not is_other_turn:
            continue
        change = _compare_question(before, after, id_, changed_turns.get(dialogue))
        if is_other_turn:
            changed_turns[dialogue] = change
        if has_gold:
            changes.append(change)
            on_progress()
    order = list(OUTCOME_STATES)
    return sorted(changes, key=lambda change: order.index(change.outcome))


def _compare_question(
    before: LoadedResults, after: LoadedResults, id_: str, changed_turn: QuestionChange | None
) -> QuestionChange:
    """Return the change of a question that both results have, with the agent that decided differently first.

    ``changed_turn`` is the latest earlier turn of its dialogue that is remembered otherwise, or
    None. If the runs differ first in a step that only got other inputs, this turn is the reason:
    then the first agent that decided otherwise from the same inputs counts, and without one the
    agent of that turn. Without both saved runs the agent is UNKNOWN_AGENT.
    """
    row = before.rows[id_]
    new_row = after.rows[id_]
    varying_agent = agent_of_key(new_row.get("varies", ""))
    change = QuestionChange(
        before=row,
        after=new_row,
        outcome=_outcome_of(row, new_row),
        first_difference=None,
        agent=varying_agent,
    )
    differences = _compare_runs(before, row, after, new_row)
    if differences is None:
        return replace(change, agent=varying_agent or UNKNOWN_AGENT)
    difference = differences.first_difference
    if difference is None:
        return change
    agent = agent_of_key(difference.key)
    earlier_turn = None
    if changed_turn is not None and not difference.has_same_inputs:
        earlier_turn = changed_turn.after
        agent = changed_turn.agent
        own_difference = differences.first_own_difference
        if own_difference:
            agent = agent_of_key(own_difference.key)
            difference = own_difference
    return replace(
        change,
        first_difference=difference,
        agent=varying_agent or agent,
        earlier_turn=earlier_turn,
    )


def find_outcomes(before: LoadedResults, after: LoadedResults) -> dict[str, str]:
    """Return, by id, the outcome of each question with gold that both results have. No run is replayed."""
    outcomes = {}
    for id_, row in before.rows.items():
        new_row = after.rows.get(id_)
        if new_row is not None and _have_gold(row, new_row):
            outcomes[id_] = _outcome_of(row, new_row)
    return outcomes


def _have_gold(row: BenchRow, new_row: BenchRow) -> bool:
    """Return whether a question has gold before and after the change."""
    return row["gold"] is not None and new_row["gold"] is not None


def _outcome_of(row: BenchRow, new_row: BenchRow) -> str:
    """Return which of OUTCOME_STATES a question has, by its rows before and after the change.

    It is FAILED if either row has an error, and UNSTABLE if it is marked as varying. A question
    that was repeated has the outcome of its repeats. Otherwise it is "fixed" or "still lost" for an
    answer that was lost before, and "broken" or "still right" for another one.
    """
    if row["error"] is not None or new_row["error"] is not None:
        return FAILED
    if new_row.get("varies"):
        return UNSTABLE
    if new_row.get("asks_before"):
        return _outcome_of_repeats(new_row)
    if is_lost(row):
        return "still lost" if is_lost(new_row) else "fixed"
    return "broken" if is_lost(new_row) else "still right"


def _outcome_of_repeats(new_row: BenchRow) -> str:
    """Return the outcome of a question that was repeated before and after the change.

    It is "fixed" if it was right more often after the change, "broken" if less often, and UNSTABLE
    if as often. The first ask on either side does not count, since the question was repeated
    because of it. It is FAILED if one side has no other ask without an error.
    """
    before = list_repeats(new_row, "asks_before")
    after = list_repeats(new_row, "asks")
    if not before or not after:
        return FAILED
    chance_before = PassRate.of_asks(before).chance_of_all(1)
    chance_after = PassRate.of_asks(after).chance_of_all(1)
    if chance_before == chance_after:
        return UNSTABLE
    return "fixed" if chance_after > chance_before else "broken"


def list_repeats(row: BenchRow, name: str) -> list[Mapping[str, float]]:
    """Return the scores of a row's "asks" or "asks_before", without the first ask and without errors."""
    repeats = row.get(name, ())[1:]
    valid_repeats = []
    for scores in repeats:
        if scores is not None:
            valid_repeats.append(scores)
    return valid_repeats


def _add_rate(answers: Html, row: BenchRow, name: str) -> Html:
    """Render answers, followed by how often the question was right in the row's asks under ``name``.

    Without several asks the answers are returned as they are.
    """
    rate = PassRate.of_row(row, name)
    if rate is None:
        return answers
    return h.join(answers, " ", h.muted_text(f"right {rate}"))


def _add_loss(answers: Html, results: LoadedResults, change: QuestionChange) -> Html:
    """Render answers, followed by the agent that lost them by the ladder; without a known one, as they are."""
    loss = results.losses_by_id.get(change.before["id"], {})
    agent = loss.get("agent")
    if not agent:
        return answers
    lost_at = h.div("soft", f"lost at {display_name(agent)}")
    return h.join(answers, lost_at)


def _with_repeated_scores(row: BenchRow, repeats: Sequence[Mapping[str, float]]) -> BenchRow:
    """Return a row with the mean scores of its repeats under "repeated"; without any, as it is."""
    if not repeats:
        return row
    means = {}
    for measure in repeats[0]:
        means[measure] = fmean(scores[measure] for scores in repeats)
    return {**row, "repeated": means}


def _compare_runs(
    before: LoadedResults, row: BenchRow, after: LoadedResults, new_row: BenchRow
) -> Differences | None:
    """Replay the two saved runs of a question, and return their differences.

    None if one of them is missing or cannot be replayed.
    """
    file = find_run_file(before.folder, row)
    new_file = find_run_file(after.folder, new_row)
    if file is None or new_file is None:
        return None
    try:
        return systems.load_run(file).diff(systems.load_run(new_file))
    except KgwbError:
        return None


def load_prompt_texts(results: LoadedResults, names: Collection[str]) -> dict[str, str]:
    """Return the texts of prompts as they were sent, by name, read from the saved runs of a results folder.

    The first saved run that used a prompt counts. Prompts that none used, and runs that cannot be
    read, are left out.
    """
    texts: dict[str, str] = {}
    wanted = set(names)
    for row in results.rows.values():
        file = find_run_file(results.folder, row)
        if file is None:
            continue
        with suppress(KgwbError):
            header = next(RunFile(file).entries())
            prompts: Mapping[str, Any] = header.get("prompts", {})
            for name in wanted.intersection(prompts):
                texts.setdefault(name, str(prompts[name]))
        if texts.keys() >= wanted:
            break
    return {name: texts[name] for name in names if name in texts}


RenderLink = Callable[[LoadedResults, QuestionChange], object]
"""Returns the link from a question of a results folder to its run, or its text without a link."""


class _ComparedMeasure(NamedTuple):
    """A measure of questions before and after a change, as texts."""

    questions: str
    """How many questions are compared; of a sample also of how many."""
    before: str
    after: str
    difference: str
    """The difference with its interval."""
    chance: str
    """Whether the difference may be chance."""
    needed: str
    """How many questions would decide it; "" if it is decided."""


def _is_compared(change: QuestionChange, sample: QuestionSample | None) -> bool:
    """Return whether a question counts for the measures.

    One that ended in an error does not. In results of earlier versions, one that varied does not
    either. Of a sample, only its own questions do.
    """
    if sample is not None and change.before["id"] not in sample.ids:
        return False
    if change.outcome == UNSTABLE:
        return bool(change.after.get("asks_before"))
    return change.outcome != FAILED


def _in_order_of(results: LoadedResults, rows: BenchRows) -> BenchRows:
    """Return rows of questions in the order that the questions have in some results."""
    positions = {id_: position for position, id_ in enumerate(results.rows)}
    return sorted(rows, key=lambda row: positions[row["id"]])


def _describe_chance(comparison: ScoreComparison) -> str:
    """Return whether a difference may be chance, with its p-value."""
    if not comparison.improved_ids and not comparison.worsened_ids:
        return "no answer differs"
    p_value = format_p_value(comparison.p_value)
    if comparison.p_value > SIGNIFICANCE_LEVEL:
        return f"may be chance ({p_value})"
    return f"more than chance ({p_value})"


def _describe_needed_questions(comparison: ScoreComparison) -> str:
    """Return how many questions would decide a difference that may be chance, as a sentence.

    "" if it is decided, if no answer differs, if the measure has no estimate, or if the estimate says
    that there are enough.
    """
    size = comparison.sample_size
    if size is None or comparison.p_value <= SIGNIFICANCE_LEVEL or not size.differing:
        return ""
    if size.smallest_difference is None:
        verb = "scores" if size.differing == 1 else "score"
        return (
            f"{size.differing} of {pluralize(size.questions, 'question')} {verb} otherwise: too few "
            f"to say how many it takes ({MIN_DIFFERING_QUESTIONS} at least)"
        )
    if size.needed is not None and size.needed <= size.questions:
        return ""  # the estimate, which is an approximation, does not fit the verdict
    further = "the difference is too close to 0 to say how many questions it takes"
    if size.needed is not None:
        further = _describe_further_questions(size, size.needed)
    return f"{further}; these {size.questions} show one of {size.smallest_difference:.3f} or more"


def _describe_further_questions(size: SampleSize, needed: int) -> str:
    """Return how many questions more show the observed difference, rounded up to two digits."""
    trials = round(10 * POWER)
    further = _round_up(needed - size.questions)
    questions = pluralize(further, "more question")
    return (
        f"about {questions} like these would show a difference of this size in {trials} of 10 "
        "trials (Connor 1987)"
    )


def _round_up(number: int) -> int:
    """Return a positive number rounded up to two digits: 1,310 becomes 1,400."""
    digits = len(str(number))
    unit = int(10 ** max(digits - 2, 0))
    return ceil(number / unit) * unit


class ResultsComparison:
    """The results of one folder compared with those of another, for a page, a widget or a terminal."""

    def __init__(
        self,
        before: LoadedResults,
        after: LoadedResults,
        on_progress: Callable[[], object] = lambda: None,
    ) -> None:
        """Compare all questions of two results folders, which replays their saved runs.

        ``on_progress`` is called after each question that is compared.
        """
        self.before = before
        self.after = after
        self.changes = find_changes(before, after, on_progress)
        self.counts = Counter(change.outcome for change in self.changes)
        """The number of questions by outcome."""
        self.shown_outcomes = [
            outcome
            for outcome in OUTCOME_STATES
            if outcome in self.counts or outcome in UNFOLDED_OUTCOMES
        ]
        """The outcomes that occur, and always "fixed" and "broken"."""
        self.by_agent = self._count_by_agent()
        """The number of questions by the agent that decided differently first, each by outcome.

        Agents that fixed and broke most come first.
        """
        self._compared_measures: dict[str, _ComparedMeasure] = {}
        """What was compared so far, by measure: a comparison takes thousands of permutations."""

    def _count_by_agent(self) -> dict[str, Counter[str]]:
        """Return the outcomes of questions, counted for each agent that decided differently first.

        Agents are sorted by the number of questions that were fixed or broken, most first, then by
        name. "" stands for questions in which no decision differs.
        """
        agents: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for change in self.changes:
            counts = agents[change.agent]
            counts[change.outcome] += 1

        def effect_then_name(agent: str) -> tuple[int, str]:
            counts = agents[agent]
            effect = counts["fixed"] + counts["broken"]
            return -effect, agent

        by_agent = {}
        for agent in sorted(agents, key=effect_then_name):
            by_agent[agent] = agents[agent]
        return by_agent

    def summary_lines(self) -> Iterator[str]:
        """Yield lines for a terminal: the outcomes, remarks, F1 before and after, and a line for each agent.

        If F1 cannot be compared, its line has the reason. If questions ended in an error, the most
        frequent error is named. As far as the ladder is known, a line says how many answers each
        agent lost before and after.
        """
        counts = _format_counts(self.counts, self.shown_outcomes)
        yield f"{self.after.name}: {counts}"
        for remark in (self.failed_questions, self.repeated_questions, self.model_remark):
            if remark:
                yield f"  {remark}"
        yield f"  {self.describe_f1()}"
        if self.needed_questions:
            yield f"  {self.needed_questions}"
        for agent, counts_of_agent in self.by_agent.items():
            name = display_name(agent) or "no decision differs"
            outcomes = [outcome for outcome in OUTCOME_STATES if counts_of_agent[outcome]]
            counts = _format_counts(counts_of_agent, outcomes)
            yield f"  {name}: {counts}"
        if self.earlier_turn_remark:
            yield f"  {self.earlier_turn_remark}"
        for name, lost_before, lost_after in self._list_losses():
            yield f"  lost at {name}: {lost_before} → {lost_after}"

    def describe_f1(self) -> str:
        """Return F1 before and after with its difference, or the reason that it is not compared."""
        try:
            compared = self._compare_measure("f1")
        except InputError as exc:
            return f"F1 is not compared: {exc.message}"
        change = f"F1 {compared.before} → {compared.after}: {compared.difference}"
        noun = "question" if compared.questions == "1" else "questions"
        return f"{change}, {compared.chance}, from {compared.questions} {noun}"

    @property
    def needed_questions(self) -> str:
        """How many questions would decide a difference of F1 that may be chance, as a sentence.

        See ``kgwb.bench.statistics.SampleSize``. "" if it is decided, or not compared.
        """
        try:
            return self._compare_measure("f1").needed
        except InputError:
            return ""

    @property
    def losses_by_agent(self) -> dict[str, tuple[int, int]]:
        """How many of the questions each agent lost, before and after, as far as the ladder of each folder knows it.

        Where no agent is known, the reason for that takes the place of its name.
        """
        before = self._count_losses(self.before)
        after = self._count_losses(self.after)
        counts = {}
        for agent in distinct_keys((before, after)):
            counts[agent] = (before[agent], after[agent])
        return counts

    def _count_losses(self, results: LoadedResults) -> Counter[str]:
        """Count the questions that each agent lost in one of the results."""
        counts: Counter[str] = Counter()
        for change in self.changes:
            loss = results.losses_by_id.get(change.before["id"])
            if loss is not None:
                counts[agent_or_reason(loss)] += 1
        return counts

    def render_losses(self) -> Html:
        """Render a table with a row for each agent: how many answers it lost before and after; empty without any."""
        return h.table(("lost at", "before", "after"), self._list_losses())

    def _list_losses(self) -> list[tuple[str, int | str, int | str]]:
        """Return the name of each agent, and how many answers it lost before and after.

        Where answers were lost but none was located, NOT_LOCATED stands in place of the numbers.
        """
        knows_before = self._losses_are_known(self.before, [each.before for each in self.changes])
        knows_after = self._losses_are_known(self.after, [each.after for each in self.changes])
        rows: list[tuple[str, int | str, int | str]] = []
        for agent, (lost_before, lost_after) in self.losses_by_agent.items():
            before = lost_before if knows_before else NOT_LOCATED
            after = lost_after if knows_after else NOT_LOCATED
            rows.append((display_name(agent), before, after))
        return rows

    def _losses_are_known(self, results: LoadedResults, rows: Iterable[BenchRow]) -> bool:
        """Return whether at least one of the lost answers was located, or none was lost."""
        return bool(results.losses_by_id) or not any(map(is_lost, rows))

    def _compare_measure(self, measure: str) -> _ComparedMeasure:
        """Return a measure of all questions before and after, which is compared once; see ``_compare_rows``."""
        compared = self._compared_measures.get(measure)
        if compared is None:
            compared = self._compare_rows(measure)
            self._compared_measures[measure] = compared
        return compared

    def _compare_rows(self, measure: str) -> _ComparedMeasure:
        """Compare a measure of all questions before and after.

        Of a sample, the measures are estimates for all questions that were measured. Questions that
        were repeated count with the means of their repeats. Raises InputError if there is nothing to
        compare, or if questions were chosen so that they say nothing about the others.
        """
        sample = QuestionSample.of_config(self.after.config)
        if sample is not None and not sample.ids:
            raise InputError(
                "F1 before and after cannot be estimated: only some questions were asked again, which were "
                "selected by hand or by their results, so they do not represent the others",
                hint="ask again without --only, or with --only all",
            )
        rows = []
        new_rows = []
        for change in self.changes:
            if not _is_compared(change, sample):
                continue
            repeats_before = list_repeats(change.after, "asks_before")
            repeats = list_repeats(change.after, "asks")
            if not change.after.get("asks_before"):
                repeats = []
            rows.append(_with_repeated_scores(change.before, repeats_before))
            new_rows.append(_with_repeated_scores(change.after, repeats))
        right_weight = sample.right_weight if sample else 1.0
        comparison = compare_results(rows, new_rows, measure, right_weight=right_weight)
        low, high = comparison.confidence_interval
        compared = _ComparedMeasure(
            questions=str(comparison.questions),
            before=f"{comparison.first:.3f}",
            after=f"{comparison.second:.3f}",
            difference=f"{comparison.difference:+.3f} [{low:+.3f}, {high:+.3f}]",
            chance=_describe_chance(comparison),
            needed=_describe_needed_questions(comparison),
        )
        if right_weight != 1:
            questions = f"{compared.questions} of {len(self.before.rows)}"
            return compared._replace(questions=questions)
        if any("repeated" in row for row in new_rows):
            return compared
        # A bootstrap interval depends a little on the order: this is that of the folder's own figures.
        rows_before = _in_order_of(self.before, rows)
        rows_after = _in_order_of(self.after, new_rows)
        estimate_before = QuestionGroup("", rows_before).estimate(measure)
        estimate_after = QuestionGroup("", rows_after).estimate(measure)
        return compared._replace(before=str(estimate_before), after=str(estimate_after))

    # --- parts of the page (templates/changes.html and templates/changed_questions.html)

    def render_prompt_changes(self) -> Iterator[Html]:
        """Yield, for each prompt that changed, a fold with its name, the number of changed lines, and these lines.

        Prompts are compared by their fingerprints in the configurations, so that one which only one
        of the results has counts as changed. The texts come from saved runs; if none used a prompt
        before or after, a line says so.
        """
        names = self._changed_prompts()
        texts = load_prompt_texts(self.before, names)
        new_texts = load_prompt_texts(self.after, names)
        for name in names:
            file_name = f"prompts/{name}.md"
            if name not in texts or name not in new_texts:
                yield h.div("soft", f"{file_name} differs; no saved run used it")
                continue
            old_lines = texts[name].splitlines()
            new_lines = new_texts[name].splitlines()
            count, lines = h.render_line_diff(old_lines, new_lines)
            title = h.span("mono", f"{file_name} ")
            number = h.muted_text(pluralize(count, "line"))
            yield h.collapsible(
                h.join(title, number),
                lines,
                expanded=True,
                key=f"prompt-{self.after.folder}-{name}",
            )

    def _changed_prompts(self) -> list[str]:
        """Return the names of the prompts whose fingerprints differ, or that only one side has."""
        prompts = self.before.config.get("prompts") or {}
        new_prompts = self.after.config.get("prompts") or {}
        changed = []
        for name in {**prompts, **new_prompts}:
            if prompts.get(name) != new_prompts.get(name):
                changed.append(name)
        return changed

    def setting_changes(self) -> Iterator[str]:
        """Yield a sentence for each difference of the configurations, such as a changed setting, but for prompts."""
        config = {**self.before.config, "prompts": {}}
        new_config = {**self.after.config, "prompts": {}}
        return map(single_line, describe_config_changes(config, new_config))

    def render_setting_changes(self) -> Html:
        """Render the sentences of ``setting_changes``; in a fold if there are more than MAX_OPEN_SETTINGS."""
        lines = [h.div("", change) for change in self.setting_changes()]
        if len(lines) <= MAX_OPEN_SETTINGS:
            return h.join(*lines)
        title = h.muted_text(f"{len(lines)} settings differ")
        return h.collapsible(title, *lines, key=f"settings-{self.after.folder}")

    def render_outcomes(self) -> Iterator[Html]:
        """Yield a badge for each outcome with the number of questions."""
        for outcome in self.shown_outcomes:
            text = f"{self.counts[outcome]} {outcome}"
            yield h.state_badge(OUTCOME_STATES[outcome], text, pill=True)

    def render_measures(self) -> Html:
        """Render a table of F1 and paper F1 before and after, with the difference and whether it may be chance.

        If the results cannot be compared, a note with the reason is rendered instead.
        """
        name = self.after.name
        headers = ("", "measure", "questions", self.before.name, name, "difference", "")
        rows = []
        for measure, label in INTERVAL_MEASURES.items():
            try:
                compared = self._compare_measure(measure)
            except InputError as exc:
                problem = f"{name} cannot be compared: {exc}"
                return h.note(problem, level="bad")
            cells = (
                compared.questions,
                compared.before,
                compared.after,
                compared.difference,
                compared.chance,
            )
            rows.append((name, label, *cells))
        table = h.table(headers, rows)
        return h.div("across", table)

    @property
    def unstable_questions(self) -> str:
        """The number of questions that vary without a change, with its noun; "" if there are none."""
        count = self.counts[UNSTABLE]
        return pluralize(count, "question") if count else ""

    @property
    def repeated_questions(self) -> str:
        """A sentence with how often the questions that were repeated were right before and after; "" without any."""
        repeated = [change.after for change in self.changes if change.after.get("asks_before")]
        if not repeated:
            return ""
        before = _count_right_repeats(repeated, "asks_before")
        after = _count_right_repeats(repeated, "asks")
        count = pluralize(len(repeated), "question")
        return f"{count} came out otherwise; repeated, right {before} times before, {after} after"

    @property
    def model_remark(self) -> str:
        """A remark if the model behind a name seems to have changed between the results; "" if not.

        It seems so if the server names another version, or if the first decision that differs
        followed from the same calls at temperature 0: the model then answered the same request
        otherwise.
        """
        remarks = [*self._find_new_versions(), self._describe_other_answers()]
        return "; ".join(filter(None, remarks))

    def _find_new_versions(self) -> Iterator[str]:
        """Yield a remark for each model of which a version answered after the change that had not before.

        Models of which no version is known before are left out.
        """
        versions_before = self.before.served_models
        for model, versions in self.after.served_models.items():
            earlier = versions_before.get(model, [])
            new = [version for version in versions if version not in earlier]
            if earlier and new:
                new_names = ", ".join(new)
                earlier_names = ", ".join(earlier)
                yield f"{model} is another version now: {new_names}; it was {earlier_names}"

    def _describe_other_answers(self) -> str:
        """Return how many questions differ first at a call that was answered otherwise, and at which agents.

        Only calls at temperature 0 in both results count; "" if there are none.
        """
        for results in (self.before, self.after):
            settings = results.config.get("settings", {})
            if settings.get("temperature") != 0:
                return ""
        agents: Counter[str] = Counter()
        for change in self.changes:
            difference = change.first_difference
            if difference is not None and _is_answered_otherwise(difference):
                agents[change.agent] += 1
        if not agents:
            return ""
        names = ", ".join(map(display_name, agents))
        return (
            f"{pluralize(agents.total(), 'question')}: the same call was answered otherwise at "
            f"temperature 0 ({names}); the model behind its name may have changed, or it varies by itself"
        )

    @property
    def earlier_turn_remark(self) -> str:
        """How many questions follow a turn that was answered otherwise, and which turns, as text; "" if none."""
        titles = []
        for change in self.changes:
            if change.earlier_turn is not None:
                id_ = change.earlier_turn["id"]
                titles.append(self.after.question_titles[id_])
        if not titles:
            return ""
        count = pluralize(len(titles), "question")
        verb = "follows" if len(titles) == 1 else "follow"
        turns = list_first(dict.fromkeys(titles))
        return f"{count} {verb} a turn that was answered otherwise: {turns}"

    @property
    def failed_questions(self) -> str:
        """A sentence with how many questions are left out because of an error, and the most frequent error.

        "" if none ended in one, before or after the change.
        """
        errors: Counter[str] = Counter()
        for change in self.changes:
            if change.outcome == FAILED:
                error = change.after["error"] or change.before["error"]
                errors[error or FAILED_REPEATS] += 1
        if not errors:
            return ""
        [(error, _)] = errors.most_common(1)
        count = pluralize(errors.total(), "question")
        reason = shorten(single_line(error))
        return f"{count} left out, since they ended in an error: {reason}"

    def render_agents(self) -> Html:
        """Render a table with a row for each agent that decided differently first, and a column for each outcome.

        A cell has the number of questions; 0 is an empty cell.
        """
        rows = []
        for agent, counts in self.by_agent.items():
            row: list[object] = [display_name(agent) or h.muted_text("none")]
            for outcome in self.shown_outcomes:
                row.append(counts[outcome] or "")
            rows.append(row)
        return h.table(("first decision that differs", *self.shown_outcomes), rows)

    def render_questions(self, link: RenderLink) -> Iterator[Html]:
        """Yield a fold for each outcome that occurs, with a table of its questions for each agent.

        The agent is the one that decided differently first. The folds of the questions that were
        fixed or broken are open. ``link`` renders the question of a row.
        """
        groups = self._group_by_outcome()
        for outcome, state in OUTCOME_STATES.items():
            parts: list[Html] = []
            for agent, changes in groups[outcome].items():
                parts += self._render_group(agent, changes, link)
            if not parts:
                continue
            text = f"{self.counts[outcome]} {outcome}"
            yield h.collapsible(
                h.state_badge(state, text),
                *parts,
                expanded=outcome in UNFOLDED_OUTCOMES,
                key=f"{self.after.folder}-{outcome}",
            )

    def _group_by_outcome(self) -> dict[str, dict[str, list[QuestionChange]]]:
        """Return the changes by their outcomes and agents, for each of OUTCOME_STATES."""
        groups: dict[str, dict[str, list[QuestionChange]]] = {}
        for outcome in OUTCOME_STATES:
            groups[outcome] = {}
        for change in self.changes:
            changes = groups[change.outcome].setdefault(change.agent, [])
            changes.append(change)
        return groups

    def _render_group(
        self, agent: str, changes: Sequence[QuestionChange], link: RenderLink
    ) -> tuple[Html, Html]:
        """Render the caption and the table of the questions of one outcome and one agent.

        The caption has the agent ("" if no decision differs) and the number of questions. A row has
        the question, rendered by ``link``, the answers before and after, the gold, and the first
        decision that differs, before and after.
        """
        headers = ("question", "before", "after", "gold", "decision before", "decision after")
        rows = []
        for change in changes:
            rows.append(self._render_change(change, link))
        title = "no decision differs"
        if agent:
            title = f"first decision that differs: {display_name(agent)}"
        caption = h.div("caption", f"{title} ({len(changes)})")
        table = h.table(headers, rows)
        return caption, h.div("across cells", table)

    def _render_change(self, change: QuestionChange, link: RenderLink) -> list[object]:
        """Return the cells of a question: itself, its answers, the gold, and the two decisions."""
        names = name_values((change.before, change.after))
        question = link(self.after, change)
        if change.earlier_turn is not None:
            id_ = change.earlier_turn["id"]
            turn = self.after.question_titles[id_]
            reason = h.div("soft", f"after another answer to: {turn}")
            question = h.join(question, reason)
        answers = render_answers(change.before, names)
        answers = _add_rate(answers, change.after, "asks_before")
        answers = _add_loss(answers, self.before, change)
        new_answers = render_answers(change.after, names)
        new_answers = _add_rate(new_answers, change.after, "asks")
        new_answers = _add_loss(new_answers, self.after, change)
        gold = render_gold(change.before, names)
        decision, new_decision = _render_decisions(change.first_difference)
        return [
            question,
            answers,
            new_answers,
            gold,
            decision,
            new_decision,
        ]


def _count_right_repeats(rows: Iterable[BenchRow], name: str) -> str:
    """Return how many repeats were right of how many, "4 of 6". Errors count, and are not right."""
    right = 0
    asked = 0
    for row in rows:
        rate = PassRate.of_asks(row[name][1:])
        right += rate.right
        asked += rate.asked
    return f"{right} of {asked}"


def _is_answered_otherwise(difference: StepDifference) -> bool:
    """Return whether a step made the same calls in both runs and got other replies."""
    return "calls" not in difference.changed_parts and "replies" in difference.changed_parts


def _format_counts(counts: Mapping[str, int], outcomes: Sequence[str]) -> str:
    """Return the numbers of some outcomes: "2 fixed, 1 broken"."""
    parts = [f"{counts[outcome]} {outcome}" for outcome in outcomes]
    return ", ".join(parts)


def _render_decisions(difference: StepDifference | None) -> tuple[Html, Html]:
    """Render the outcome of the first step that differs, before and after, with changed words marked.

    If the outcomes of the two steps have the same text, their outputs are rendered instead. Both
    are "–" without a difference, and a step that one run lacks is named as such.
    """
    if difference is None:
        return h.muted_text("–"), h.muted_text("–")
    before = _decision_of(difference.first)
    after = _decision_of(difference.second)
    if before == after:
        before = _output_of(difference.first)
        after = _output_of(difference.second)
    return h.mark_changed_words(shorten(before), shorten(after))


def _decision_of(step: Step | None) -> str:
    """Return the outcome of a step as text."""
    return "no such step" if step is None else step.outcome


def _output_of(step: Step | None) -> str:
    """Return the whole output of a step in one line; "" if it has none."""
    if step is None or not step.done:
        return ""
    return "; ".join(output_lines(step))


# --- several changes side by side


def render_best_by_agent(comparisons: Sequence[ResultsComparison]) -> Html:
    """Render a table of what each agent fixed and broke, with a column for each comparison.

    The comparison with the largest balance of an agent is marked as the best. The balance is what
    was fixed without what was broken. Nothing is marked if all are equal.
    """
    rows = []
    agents = distinct_keys(comparison.by_agent for comparison in comparisons)
    for agent in filter(None, agents):
        balances = []
        texts = []
        for comparison in comparisons:
            counts = comparison.by_agent.get(agent, Counter())
            fixed = counts["fixed"]
            broken = counts["broken"]
            balances.append(fixed - broken)
            texts.append(f"{fixed} fixed, {broken} broken")
        rows.append((display_name(agent), *_mark_best(balances, texts)))
    names = [comparison.after.name for comparison in comparisons]
    return h.table(("by agent", *names), rows)


def render_best_by_question(comparisons: Sequence[ResultsComparison]) -> Html:
    """Render a table of the questions whose F1 differs, with a column for each results folder.

    The first column has the results that all others are compared with. Questions that a folder does
    not have, or has without gold, are left out. The highest F1 is marked as the best.
    """
    all_results = [comparisons[0].before]
    for comparison in comparisons:
        all_results.append(comparison.after)
    table_rows = []
    for id_, title in all_results[0].question_titles.items():
        rows = []
        for results in all_results:
            row = results.rows.get(id_)
            if row is not None and row["gold"] is not None:
                rows.append(row)
        if len(rows) < len(all_results):
            continue
        scores = [row["f1"] for row in rows]
        badges = list(map(render_verdict, rows))
        if len(set(scores)) > 1:
            table_rows.append((title, *_mark_best(scores, badges)))
    names = [results.name for results in all_results]
    return h.table(("by question", *names), table_rows)


def _mark_best(values: Sequence[float], cells: Sequence[object]) -> list[object]:
    """Return the cells, with those of the highest value in bold and followed by "best".

    There is one value for each cell. Several with the highest value are all marked; if all values
    are equal, the cells are returned as they are.
    """
    highest = max(values)
    if min(values) == highest:
        return list(cells)
    marked: list[object] = []
    for value, cell in zip(values, cells, strict=True):
        if value < highest:
            marked.append(cell)
        else:
            marked.append(h.join(tag("b", cell), " ", tag("b", "best")))
    return marked
