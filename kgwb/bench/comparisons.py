"""Two results of the same questions beside each other, and the answers of several systems to one question.

Of two results it is said what became of each question, and which agent decided differently first. Of
several answers their support and their cost are shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from math import ceil
from statistics import fmean
from string import ascii_uppercase
from typing import Any, NamedTuple

from kgwb.bench.assertions import count_held
from kgwb.bench.cost import sum_seconds_by_stage
from kgwb.bench.figures import INTERVAL_MEASURES, LoadedResults, PassRate, distinct_keys
from kgwb.bench.ladder import agent_or_reason, apply_rungs, load_gold_query
from kgwb.bench.metrics import QuestionGroup, ScoreComparison, compare_results
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import (
    BenchRow,
    QuestionSample,
    compute_answer_f1,
    describe_config_changes,
    find_run_file,
    is_lost,
    is_shown,
    known_right_answer,
)
from kgwb.bench.runner import RunCanceller, begin_question
from kgwb.bench.statistics import (
    MIN_DIFFERING_QUESTIONS,
    POWER,
    SIGNIFICANCE_LEVEL,
    format_p_value,
    holm_adjusted,
)
from kgwb.errors import InputError, KgwbError
from kgwb.kg.term_text import format_exactly
from kgwb.records import frozen
from kgwb.run import Run, Setup, systems
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import Dialogue
from kgwb.run.differences import Differences, StepDifference
from kgwb.run.record import RunFile
from kgwb.show import html as h
from kgwb.show.run_state import ANSWER_STATE_LABELS, ERROR, state_of_output
from kgwb.show.tables import Table
from kgwb.terms import Term, Triple, format_triple
from kgwb.text import (
    display_name,
    format_seconds,
    list_first,
    pluralize,
    shorten,
    single_line,
    tell_apart,
)

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
NOT_LOCATED = "–"
"""In place of a number of lost answers that is not known."""
UNKNOWN_AGENT = "not known: its run was not kept"
NO_DIFFERENCE = "no answer differs"
MAY_BE_CHANCE = "may be chance"
MORE_THAN_CHANCE = "more than chance"


@frozen
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

    @property
    def is_answered_otherwise(self) -> bool:
        """Whether the first step that differs made the same calls in both runs and got other replies."""
        if self.first_difference is None:
            return False
        parts = self.first_difference.changed_parts
        return "calls" not in parts and "replies" in parts


class ComparedMeasure(NamedTuple):
    """A measure of questions before and after a change, as texts."""

    questions: str
    """How many questions are compared; of a sample also of how many."""
    before: str
    after: str
    difference: str
    """The difference with its interval."""
    chance: str
    """Whether the difference may be chance."""


class ResultsComparison:
    """The results of one folder compared with those of another, for a page, a widget or a terminal."""

    def __init__(
        self,
        before: LoadedResults,
        after: LoadedResults,
        on_progress: Callable[[], object] = lambda: None,
        drawn_by: LoadedResults | None = None,
        side_by_side: Sequence[ResultsComparison] = (),
    ) -> None:
        """Compare two results folders. ``on_progress`` is called after each question whose runs are compared.

        ``drawn_by`` are the results by which the questions of a sample were chosen, if these are not
        the ones before. Repeats were made to compare with those, and do not count then.
        ``side_by_side`` are all comparisons that are made at the same time.
        """
        if drawn_by is not None:
            after = after.without_repeats()
        self.before = before
        self.after = after
        outcomes = {}
        for id_, row in before.rows.items():
            new_row = after.rows.get(id_)
            if new_row and row["gold"] is not None and new_row["gold"] is not None:
                outcomes[id_] = _outcome_of(row, new_row)
        order = list(OUTCOME_STATES)
        in_order = sorted(outcomes.items(), key=lambda item: order.index(item[1]))
        self.outcomes = dict(in_order)
        """The outcome of each question with gold in both, by its id, in the order of OUTCOME_STATES."""
        self.counts = Counter(self.outcomes.values())
        """The number of questions by outcome."""
        self.shown_outcomes = [
            outcome
            for outcome in OUTCOME_STATES
            if outcome in self.counts or outcome in UNFOLDED_OUTCOMES
        ]
        """The outcomes that occur, and always "fixed" and "broken"."""
        self.compare_scores = cache(self._compare_scores)
        """``_compare_scores``, which takes thousands of permutations, remembered by measure."""
        self.compare_measure = cache(self._compare_measure)
        """``_compare_measure``, which takes thousands of samples, remembered by measure."""
        self._on_progress = on_progress
        self._drawn_by = drawn_by
        self._side_by_side = side_by_side

    @cached_property
    def changes(self) -> list[QuestionChange]:
        """A change for each question with gold in both results; saved runs are replayed to compare their steps.

        Changes are sorted by outcome, in the order of OUTCOME_STATES, and within an outcome as in the
        earlier results. Of a question that varies without a change, the agent that varied is named.
        """
        changes = {}
        changed_turns: dict[str, QuestionChange] = {}
        """The latest turn of each dialogue that is remembered otherwise."""
        for id_, row in self.before.rows.items():
            new_row = self.after.rows.get(id_)
            if new_row is None:
                continue
            dialogue = row.get("dialogue", "")
            is_other_turn = row.get("remembered") != new_row.get("remembered")
            if id_ not in self.outcomes and not is_other_turn:
                continue
            change = self._compare_question(row, new_row, changed_turns.get(dialogue))
            if is_other_turn:
                changed_turns[dialogue] = change
            if id_ in self.outcomes:
                changes[id_] = change
                self._on_progress()
        return [changes[id_] for id_ in self.outcomes]

    def _compare_question(
        self, row: BenchRow, new_row: BenchRow, changed_turn: QuestionChange | None
    ) -> QuestionChange:
        """Return the change of a question that both results have, with the agent that decided differently first.

        ``changed_turn`` is the latest earlier turn of its dialogue that is remembered otherwise, or
        None. If the runs differ first in a step that only got other inputs, this turn is the reason:
        then the first agent that decided otherwise from the same inputs counts, and without one the
        agent of that turn. Without both saved runs the agent is UNKNOWN_AGENT.
        """
        varying_agent = agent_of_key(new_row.get("varies", ""))
        change = QuestionChange(row, new_row, _outcome_of(row, new_row), None, varying_agent)
        differences = self._compare_runs(row, new_row)
        if differences is None:
            return replace(change, agent=varying_agent or UNKNOWN_AGENT)
        difference = differences.first_difference
        if difference is None:
            return change
        agent = agent_of_key(difference.key)
        if changed_turn is not None and not difference.has_same_inputs:
            change = replace(change, earlier_turn=changed_turn.after)
            agent = changed_turn.agent
            own_difference = differences.first_own_difference
            if own_difference:
                agent = agent_of_key(own_difference.key)
                difference = own_difference
        return replace(change, first_difference=difference, agent=varying_agent or agent)

    def _compare_runs(self, row: BenchRow, new_row: BenchRow) -> Differences | None:
        """Replay the two saved runs of a question, and return their differences.

        None if one of them is missing or cannot be replayed.
        """
        file = find_run_file(self.before.folder, row)
        new_file = find_run_file(self.after.folder, new_row)
        if file is None or new_file is None:
            return None
        try:
            return systems.load_run(file).diff(systems.load_run(new_file))
        except KgwbError:
            return None

    @cached_property
    def by_agent(self) -> dict[str, Counter[str]]:
        """The number of questions by the agent that decided differently first, each by outcome.

        Agents are sorted by the number of questions that were fixed or broken, most first, then by
        name. "" stands for questions in which no decision differs.
        """
        agents: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for change in self.changes:
            agents[change.agent][change.outcome] += 1

        def effect_then_name(agent: str) -> tuple[int, str]:
            counts = agents[agent]
            return -counts["fixed"] - counts["broken"], agent

        in_order = sorted(agents, key=effect_then_name)
        return {agent: agents[agent] for agent in in_order}

    # --- in words

    def summary_lines(self) -> Iterator[str]:
        """Yield lines for a terminal: the outcomes, remarks, F1 before and after, and a line for each agent.

        If F1 cannot be compared, its line has the reason. If questions ended in an error, the most
        frequent error is named. As far as the ladder is known, a line says how many answers each
        agent lost before and after.
        """
        yield f"{self.after.name}: {self.format_counts()}"
        lines = [*self.remarks, self.describe_f1(), self.needed_questions]
        for agent, counts in self.by_agent.items():
            name = display_name(agent) or "no decision differs"
            lines.append(f"{name}: {_format_counts(counts, filter(counts.get, OUTCOME_STATES))}")
        lines.append(self.earlier_turn_remark)
        for lost_at, lost_before, lost_after in self.make_loss_table().rows:
            lines.append(f"lost at {lost_at}: {lost_before} → {lost_after}")
        for line in filter(None, lines):
            yield f"  {line}"

    def format_counts(self) -> str:
        """Return the number of questions by outcome: "2 fixed, 1 broken"."""
        return _format_counts(self.counts, self.shown_outcomes)

    def describe_f1(self) -> str:
        """Return F1 before and after with its difference, or the reason that it is not compared."""
        try:
            compared = self.compare_measure("f1")
        except InputError as exc:
            return f"F1 is not compared: {exc.message}"
        change = f"F1 {compared.before} → {compared.after}: {compared.difference}"
        noun = "question" if compared.questions == "1" else "questions"
        text = f"{change}, {compared.chance}, from {compared.questions} {noun}"
        if self.sample and self.sample.name not in ("", "all"):
            option = "" if self.sample.name.startswith("--slice ") else "--only "
            text += f" ({option}{self.sample.name})"
        return text

    @property
    def needed_questions(self) -> str:
        """How many questions would decide a difference of F1 that may be chance, as a sentence.

        See ``kgwb.bench.statistics.SampleSize``. "" if it is decided, or not compared.
        """
        with suppress(InputError):
            return _describe_needed_questions(self.compare_scores("f1"))
        return ""

    @property
    def remarks(self) -> list[str]:
        """Sentences on questions that failed, were repeated or vary, and on a model that seems to have changed."""
        remarks = [self.failed_remark, self._describe_repeated()]
        remarks += self.after.seed_remarks
        remarks += self._find_new_versions()
        remarks.append(self._describe_other_answers())
        remarks.append(self._describe_assertions())
        if self.counts[UNSTABLE]:
            count = pluralize(self.counts[UNSTABLE], "question")
            remarks.append(
                f"{count} came out otherwise by chance: without a change, they vary as much"
            )
        return list(filter(None, remarks))

    @property
    def failed_remark(self) -> str:
        """How many questions are left out because of an error, and the most frequent error, as text.

        "" if none ended in one, before or after the change.
        """
        errors: Counter[str] = Counter()
        answered = []
        for id_, outcome in self.outcomes.items():
            if outcome == FAILED:
                row = self.after.rows[id_]
                error = row["error"] or self.before.rows[id_]["error"]
                errors[error or FAILED_REPEATS] += 1
                if row["error"] is None:
                    answered.append(row)
        if not errors:
            return ""
        [(error, _)] = errors.most_common(1)
        count = pluralize(errors.total(), "question")
        text = f"{count} left out, since they ended in an error: {shorten(single_line(error))}"
        if answered:
            right = len(answered) - sum(map(is_lost, answered))
            text += f"; {len(answered)} of them without one now, {right} right"
        return text

    def _describe_repeated(self) -> str:
        """Return how often the questions that were repeated were right before and after; "" without any."""
        repeated = [self.after.rows[id_] for id_ in self.outcomes]
        repeated = [row for row in repeated if row.get("asks_before")]
        if not repeated:
            return ""
        before = _count_right_repeats(repeated, "asks_before")
        after = _count_right_repeats(repeated, "asks")
        count = pluralize(len(repeated), "question")
        return f"{count} came out otherwise; repeated, right {before} times before, {after} after"

    def _describe_assertions(self) -> str:
        """Return of how many questions all assertions hold before and after the change; "" without any."""
        rows = []
        new_rows = []
        for id_, row in self.before.rows.items():
            if id_ in self.after.rows:
                rows.append(row)
                new_rows.append(self.after.rows[id_])
        before, _ = count_held(rows)
        after, asserted = count_held(new_rows)
        if not asserted:
            return ""
        count = pluralize(asserted, "question")
        return f"assertions hold of {before} → {after} of {count}"

    def _find_new_versions(self) -> Iterator[str]:
        """Yield a remark for each model of which a version answered after the change that had not before.

        Models of which no version is known before are left out.
        """
        for model, versions in self.after.served_models.items():
            earlier = self.before.served_models.get(model, [])
            new = [version for version in versions if version not in earlier]
            if earlier and new:
                now, before = ", ".join(new), ", ".join(earlier)
                yield f"{model} is another version now: {now}; it was {before}"

    def _describe_other_answers(self) -> str:
        """Return how many questions differ first at a call that was answered otherwise, and at which agents.

        Only calls at temperature 0 in both results count; "" if there are none. The model behind a
        name then seems to have changed, as it answered the same request otherwise.
        """
        for results in (self.before, self.after):
            settings = results.config.get("settings", {})
            if settings.get("temperature") != 0:
                return ""
        agents = Counter(change.agent for change in self.changes if change.is_answered_otherwise)
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
        turns = [change.earlier_turn for change in self.changes if change.earlier_turn]
        if not turns:
            return ""
        count = pluralize(len(turns), "question")
        verb = "follows" if len(turns) == 1 else "follow"
        titles = dict.fromkeys(self.after.question_titles[turn["id"]] for turn in turns)
        return f"{count} {verb} a turn that was answered otherwise: {list_first(titles)}"

    # --- what differs in the set-up

    def changed_prompts(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield the name of each prompt that changed, with its text before and after.

        Prompts are compared by their fingerprints in the configurations, so that one which only one
        of the results has counts as changed. The texts come from saved runs; None if none used it.
        """
        prompts = self.before.config.get("prompts") or {}
        new_prompts = self.after.config.get("prompts") or {}
        names = []
        for name in prompts | new_prompts:
            if prompts.get(name) != new_prompts.get(name):
                names.append(name)
        texts = load_prompt_texts(self.before, names)
        new_texts = load_prompt_texts(self.after, names)
        for name in names:
            yield name, texts.get(name), new_texts.get(name)

    def changed_settings(self) -> list[str]:
        """Return a sentence for each difference of the configurations, such as a changed setting, but for prompts."""
        config = {**self.before.config, "prompts": {}}
        new_config = {**self.after.config, "prompts": {}}
        return list(map(single_line, describe_config_changes(config, new_config)))

    # --- figures

    def _list_compared_rows(self) -> tuple[list[BenchRow], list[BenchRow], float]:
        """Return the rows of the compared questions before and after, and the weight of a right one.

        Questions that were repeated have the means of their repeats. Raises InputError if questions
        were chosen so that they say nothing about the others.
        """
        sample = self.sample
        if sample is not None and not sample.ids:
            raise InputError(
                "F1 before and after cannot be estimated: only some questions were asked again, which were "
                "selected by hand or by their results, so they do not represent the others",
                hint="ask again without --only, or with --only all",
            )
        rows = []
        new_rows = []
        for id_, outcome in self.outcomes.items():
            row = self.before.rows[id_]
            new_row = self.after.rows[id_]
            if _is_compared(new_row, outcome, sample):
                rows.append(_with_repeated_scores(row, new_row, "asks_before"))
                new_rows.append(_with_repeated_scores(new_row, new_row, "asks"))
        return rows, new_rows, sample.right_weight if sample else 1.0

    @property
    def sample(self) -> QuestionSample | None:
        """The questions that are compared; None for all. Of two retries it is the smaller sample.

        It is empty if that is no part of the other one, which was chosen by results: the shared
        questions then say nothing about the others.
        """
        samples = []
        for results in (self.before, self.after):
            sample = QuestionSample.of_config(results.config)
            if sample is not None:
                samples.append(sample)
        samples.sort(key=lambda sample: len(sample.ids))
        if not samples:
            return None
        smallest, *others = samples
        for sample in others:
            if sample.right_weight != 1 and not smallest.ids <= sample.ids:
                return QuestionSample()
        return smallest

    def _compare_scores(self, measure: str) -> ScoreComparison:
        """Compare a measure of all questions before and after.

        Of a sample, the measures are estimates for all questions that were measured. Raises
        InputError if there is nothing to compare.
        """
        rows, new_rows, right_weight = self._list_compared_rows()
        drawn_by = None
        if self._drawn_by:
            drawn_by = list(self._drawn_by.rows.values())
        return compare_results(
            rows, new_rows, measure, right_weight=right_weight, drawn_by=drawn_by
        )

    def adjust_p_value(self, measure: str) -> tuple[float, int]:
        """Return the p-value of a measure, adjusted by Holm's method, and for how many comparisons.

        These are all that stand side by side and can be compared. Raises InputError if this one
        cannot.
        """
        p_values = {self: self.compare_scores(measure).p_value}
        for comparison in self._side_by_side:
            with suppress(InputError):
                p_values[comparison] = comparison.compare_scores(measure).p_value
        own, *_ = holm_adjusted(list(p_values.values()))
        return own, len(p_values)

    def _compare_measure(self, measure: str) -> ComparedMeasure:
        """Return a measure before and after as texts. Raises what ``compare_scores`` raises."""
        comparison = self.compare_scores(measure)
        low, high = comparison.confidence_interval
        _, new_rows, right_weight = self._list_compared_rows()
        questions = str(comparison.questions)
        before, after = f"{comparison.first:.3f}", f"{comparison.second:.3f}"
        if right_weight != 1:
            questions += f" of {len(self.before.rows)}"
        elif not any("repeated" in row for row in new_rows):
            # A bootstrap interval depends a little on the order: this is that of the folder's own figures.
            ids = {row["id"] for row in new_rows}
            sides = []
            for results in (self.before, self.after):
                rows = [row for id_, row in results.rows.items() if id_ in ids]
                group = QuestionGroup("", rows)
                sides.append(str(group.estimate(measure)))
            before, after = sides
        difference = f"{comparison.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
        return ComparedMeasure(
            questions=questions,
            before=before,
            after=after,
            difference=difference,
            chance=self._describe_chance(measure),
        )

    def judge(self, measure: str) -> str:
        """Return whether a difference is MORE_THAN_CHANCE, MAY_BE_CHANCE or NO_DIFFERENCE, by the adjusted p-value.

        Raises what ``compare_scores`` raises.
        """
        comparison = self.compare_scores(measure)
        if not comparison.improved_ids and not comparison.worsened_ids:
            return NO_DIFFERENCE
        p_value, _ = self.adjust_p_value(measure)
        return MAY_BE_CHANCE if p_value > SIGNIFICANCE_LEVEL else MORE_THAN_CHANCE

    @property
    def is_loss(self) -> bool:
        """Whether F1 fell; if it cannot be compared, whether more questions are broken than fixed."""
        with suppress(InputError):
            return self.compare_scores("f1").difference < 0
        return self.counts["broken"] > self.counts["fixed"]

    def _describe_chance(self, measure: str) -> str:
        """Return what ``judge`` returns, with the p-value and the adjusted one."""
        verdict = self.judge(measure)
        if verdict == NO_DIFFERENCE:
            return verdict
        p_value, count = self.adjust_p_value(measure)
        shown = format_p_value(self.compare_scores(measure).p_value)
        if count > 1:
            shown = f"{format_p_value(p_value)} as one of {count} by Holm's method, alone {shown}"
        return f"{verdict} ({shown})"

    def make_measure_table(self) -> Table:
        """Return a table of F1 and paper F1 before and after, with the difference and whether it may be chance.

        Raises InputError if the results cannot be compared.
        """
        name = self.after.name
        rows = []
        for measure, label in INTERVAL_MEASURES.items():
            compared = self.compare_measure(measure)
            rows.append((name, label, *compared))
        headers = ("", "measure", "questions", self.before.name, name, "difference", "")
        return Table(headers, rows)

    def make_agent_table(self) -> Table:
        """Return a table with a row for each agent that decided differently first, and a column for each outcome.

        The last row has all questions.
        """
        rows = []
        for agent, counts in (*self.by_agent.items(), ("all questions", self.counts)):
            name = display_name(agent) or "none"
            cells = [counts[outcome] for outcome in self.shown_outcomes]
            rows.append((name, *cells))
        headers = ("first decision that differs", *self.shown_outcomes)
        return Table(headers, rows)

    def make_loss_table(self) -> Table:
        """Return a table with a row for each agent: how many answers it lost before and after, by the ladder.

        Where no agent is known, the reason for that takes the place of its name. Where answers were
        lost but none was located, NOT_LOCATED stands in place of the numbers. Without any loss that
        was located it has no rows.
        """
        columns = []
        for results in (self.before, self.after):
            counts: Counter[str] = Counter()
            is_known = True
            for id_ in self.outcomes:
                if id_ in results.losses_by_id:
                    counts[agent_or_reason(results.losses_by_id[id_])] += 1
                elif not results.losses_by_id and is_lost(results.rows[id_]):
                    is_known = False
            columns.append((counts, is_known))
        rows = []
        for agent in distinct_keys(counts for counts, _ in columns):
            cells = [counts[agent] if is_known else NOT_LOCATED for counts, is_known in columns]
            rows.append((display_name(agent), *cells))
        return Table(("lost at", "before", "after"), rows)

    def group_changes(self) -> dict[str, dict[str, list[QuestionChange]]]:
        """Return the changes by their outcomes and agents, as far as they occur, in the order of OUTCOME_STATES."""
        groups: dict[str, dict[str, list[QuestionChange]]] = {}
        for change in self.changes:
            if is_shown(change.after):
                by_agent = groups.setdefault(change.outcome, {})
                by_agent.setdefault(change.agent, []).append(change)
        return groups


def compare_with_each(
    before: LoadedResults,
    others: Iterable[LoadedResults],
    on_progress: Callable[[], object] = lambda: None,
    drawn_by: LoadedResults | None = None,
) -> list[ResultsComparison]:
    """Compare results with each of some others. The p-values are adjusted for the number of these.

    The other arguments are those of ``ResultsComparison``.
    """
    comparisons: list[ResultsComparison] = []
    for after in others:
        comparisons.append(ResultsComparison(before, after, on_progress, drawn_by, comparisons))
    return comparisons


# --- what becomes of a question


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
    chances = []
    for name in ("asks_before", "asks"):
        repeats = _list_repeats(new_row, name)
        if not repeats:
            return FAILED
        chances.append(PassRate.of_asks(repeats).chance_of_all(1))
    before, after = chances
    if before == after:
        return UNSTABLE
    return "fixed" if after > before else "broken"


def _list_repeats(row: BenchRow, name: str) -> list[Mapping[str, float]]:
    """Return the scores of a row's "asks" or "asks_before", without the first ask and without errors."""
    return [scores for scores in row.get(name, ())[1:] if scores is not None]


def _with_repeated_scores(row: BenchRow, new_row: BenchRow, name: str) -> BenchRow:
    """Return a row with the mean scores of its repeats under "repeated"; without any, as it is.

    They are under ``name`` in the row after the change, if the question was repeated on both sides.
    """
    repeats = _list_repeats(new_row, name)
    if not repeats or not new_row.get("asks_before"):
        return row
    means = {}
    for measure in repeats[0]:
        means[measure] = fmean(scores[measure] for scores in repeats)
    return {**row, "repeated": means}


def _is_compared(new_row: BenchRow, outcome: str, sample: QuestionSample | None) -> bool:
    """Return whether a question counts for the measures.

    One that ended in an error does not. In results of earlier versions, one that varied does not
    either. Of a sample, only its own questions do.
    """
    if sample is not None and new_row["id"] not in sample.ids:
        return False
    if outcome == UNSTABLE:
        return bool(new_row.get("asks_before"))
    return outcome != FAILED


def _count_right_repeats(rows: Iterable[BenchRow], name: str) -> str:
    """Return how many repeats were right of how many, "4 of 6". Errors count, and are not right."""
    asks = [scores for row in rows for scores in row[name][1:]]
    rate = PassRate.of_asks(asks)
    return f"{rate.right} of {rate.asked}"


def _format_counts(counts: Mapping[str, int], outcomes: Iterable[str]) -> str:
    """Return the numbers of some outcomes: "2 fixed, 1 broken"."""
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes)


# --- whether a difference may be chance


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
    further = "the difference is too close to 0 to say how many questions it takes"
    if size.needed is not None:
        if size.needed <= size.questions:
            return ""  # the estimate, which is an approximation, does not fit the verdict
        questions = pluralize(_round_up(size.needed - size.questions), "more question")
        further = (
            f"about {questions} like these would show a difference of this size in {round(10 * POWER)} "
            "of 10 trials (Connor 1987)"
        )
    return f"{further}; these {size.questions} show one of {size.smallest_difference:.3f} or more"


def _round_up(number: int) -> int:
    """Return a positive number rounded up to two digits: 1,310 becomes 1,400."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return ceil(number / unit) * unit


# --- prompts that were sent


def load_prompt_texts(results: LoadedResults, names: Collection[str]) -> dict[str, str]:
    """Return the texts of prompts as they were sent, by name, read from the saved runs of a results folder.

    The first saved run that used a prompt counts. Prompts that none used, and runs that cannot be
    read, are left out.
    """
    texts: dict[str, str] = {}
    for row in results.rows.values():
        if len(texts) == len(names):
            break
        file = find_run_file(results.folder, row)
        if file is not None:
            with suppress(KgwbError):
                first_entry = next(RunFile(file).entries())
                prompts: Mapping[str, Any] = first_entry.get("prompts", {})
                for name in prompts.keys() & names:
                    texts.setdefault(name, str(prompts[name]))
    return {name: texts[name] for name in names if name in texts}


# --- several changes side by side


def make_grid_table(comparisons: Sequence[ResultsComparison]) -> Table:
    """Return a table of F1 with a row for each set of prompts and a column for each choice of models.

    A cell has the difference to the first results. In the first column it is the effect of the
    prompts alone, in the first row that of the models alone; any other cell also has how far the
    effect of both exceeds the sum of the two. The prompts are named by letters, which the caption
    explains. Without several of each there are no rows.
    """
    legend: dict[str, str] = {}
    grid: dict[tuple[str, str], ResultsComparison] = {}
    places = []
    all_results = [comparison.after for comparison in comparisons]
    for results in (comparisons[0].before, *all_results):
        prompts = str(results.config.get("prompts"))
        names = [part for part in results.name.split(", ") if part.startswith("prompts=")]
        names.append(results.name)
        legend.setdefault(prompts, names[0])
        places.append((prompts, results.describe_models()))
    (first_prompts, first_models), *others = places
    for place, comparison in zip(others, comparisons, strict=True):
        grid.setdefault(place, comparison)
    columns = list(dict.fromkeys(models for _, models in places))
    if min(len(legend), len(columns)) < 2:
        return Table(("F1",), ())
    rows = []
    descriptions = []
    for letter, prompts in zip(ascii_uppercase, legend, strict=False):
        descriptions.append(f"{letter}: {legend[prompts]}")
        row = [f"prompts {letter}"]
        for models in columns:
            both = grid.get((prompts, models))
            prompts_alone = grid.get((prompts, first_models))
            models_alone = grid.get((first_prompts, models))
            row.append(_describe_cell(both, [prompts_alone, models_alone]))
        rows.append(row)
    with suppress(InputError):
        first_f1 = comparisons[0].compare_scores("f1").first
        rows[0][1] = f"{first_f1:.3f}, measured first"
    return Table(("F1", *columns), rows, "; ".join(descriptions))


def _describe_cell(
    comparison: ResultsComparison | None, alone: Sequence[ResultsComparison | None]
) -> str:
    """Return F1 with its change, how far this exceeds the sum of the two ``alone``, and from how many questions.

    Where F1 is not compared, it is what became of the questions; NOT_LOCATED if none was asked.
    """
    if comparison is None:
        return NOT_LOCATED
    try:
        compared = comparison.compare_measure("f1")
        scores = comparison.compare_scores("f1")
        effects = [each.compare_scores("f1").difference for each in alone if each]
    except InputError:
        return f"{comparison.format_counts()}, of {pluralize(len(comparison.outcomes), 'question')}"
    text = f"{scores.second:.3f}, {scores.difference:+.3f}, {comparison.judge('f1')}, n {compared.questions}"
    if comparison.counts[FAILED]:
        text += f", {comparison.counts[FAILED]} {FAILED}"
    if len(effects) == 2:
        text += f"; {scores.difference - sum(effects):+.3f} beyond the sum of both alone"
    return text


# --- one question asked of several systems

MAX_TEXT_CHARS = 60
"""Characters of a cell in the text form, which must fit a terminal."""
MAX_HTML_CHARS = 300
AnswerTerms = tuple[frozenset[tuple[Term, ...]], str]
"""What an answer is, whatever its values are called: their terms, and its text."""


@frozen
class SystemAnswer:
    """The answer of one system."""

    system: str
    """Its name; of several systems with one name, the second has "#2" after it, and so on."""
    run: Run
    error: str = ""
    """Why there is no answer, if the run failed."""
    f1: float | None = None
    """None without gold."""
    lost_at: str = ""
    """The agent that lost a wrong answer, or why it is not known; empty for a right answer."""

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that the answer is derived from."""
        return self.run.answer.support if self.run.answer else ()

    @property
    def terms(self) -> AnswerTerms:
        """What identifies the answer. One that is missing has no terms, and ""."""
        answer = self.run.answer
        if answer is None:
            return frozenset(), ""
        terms = frozenset(value.terms for value in answer.values)
        return terms, answer.text or answer.reason


@dataclass(frozen=True, repr=False)
class SystemComparison:
    """The answers of several systems to one question, in the order in which they were asked."""

    question: str
    answers: tuple[SystemAnswer, ...]
    names: dict[str, str] = field(default_factory=dict)
    """Display names by IRI."""

    @property
    def shared_support(self) -> frozenset[Triple]:
        """The triples that all answers with any support have in common."""
        supports = [frozenset(answer.support) for answer in self.answers if answer.support]
        return frozenset.intersection(*supports) if supports else frozenset()

    def __getitem__(self, system: str) -> Run:
        """Return the run of a system by its shown name. Raises KeyError if there is none."""
        return {answer.system: answer.run for answer in self.answers}[system]

    def __repr__(self) -> str:
        """Return the question, the table of answers, and the table of support if there is any, as text."""
        tables = (self._make_answer_table(MAX_TEXT_CHARS), self._make_support_table())
        return "\n\n".join([self.question, *(str(table) for table in tables if table.rows)])

    def _repr_html_(self) -> str:
        """Return the question and both tables as HTML with their style, for a notebook."""
        question = shorten(self.question, 1000)
        title = h.tag("h2", question, class_="question grow")
        answers = self._make_answer_table(MAX_HTML_CHARS).render()
        support = self._make_support_table().render()
        head = h.div("head", title)
        body = h.div("body stack", answers, support)
        return h.static_section(head, body)

    def _make_answer_table(self, max_chars: int) -> Table:
        """Return a table with a column for each system: its answer, state, support, and cost.

        F1 and the agent that lost the answer are shown if there is gold. Longer cells are cut at
        ``max_chars`` characters.
        """
        shared_count = len(self.shared_support)
        texts = self._write_answers()
        columns = []
        for answer in self.answers:
            column = self._describe_answer(answer, texts[answer.terms], shared_count)
            columns.append(column)
        rows: list[list[str]] = []
        for name in distinct_keys(columns):
            row = [name]
            for column in columns:
                text = single_line(column[name])
                row.append(shorten(text, max_chars))
            rows.append(row)
        systems_asked = [answer.system for answer in self.answers]
        return Table(("", *systems_asked), rows)

    def _write_answers(self) -> dict[AnswerTerms, str]:
        """Return the text of each different answer, by its terms.

        Answers of the same names whose values are different things have the terms in full.
        """
        text_by_terms = {answer.terms: str(answer.run.answer) for answer in self.answers}
        return tell_apart(text_by_terms, (text_by_terms.__getitem__, _format_terms))

    def _describe_answer(
        self, answer: SystemAnswer, text: str, shared_count: int
    ) -> dict[str, object]:
        """Return the cells of an answer's column, by the names of the rows, in their order.

        They are the answer as ``text`` or the error, its state, the support, the number of triples
        that all systems share (``shared_count``), model calls, tokens, and times. F1 and the agent
        that lost the answer are added if any answer was scored.
        """
        run = answer.run
        totals = run.totals
        has_gold = any(other.f1 is not None for other in self.answers)
        cells: dict[str, object] = {"answer": text, "state": ""}
        if answer.error:
            cells = {"answer": f"failed: {answer.error}", "state": ANSWER_STATE_LABELS[ERROR]}
        elif run.answer is not None:
            cells["state"] = state_of_output(run, run.answer)
        if has_gold:
            cells["F1"] = "–"
            if answer.f1 is not None:
                cells["F1"] = f"{answer.f1:.2f}"
        cells["support"] = self._describe_support(answer)
        cells["shared by all"] = shared_count if answer.support else ""
        cells["model calls"] = totals.model_calls
        tokens = totals.prompt_tokens + totals.completion_tokens
        cells["tokens"] = f"{tokens:,}"
        cells["time"] = format_seconds(totals.seconds)
        times = sum_seconds_by_stage(run.system, run.steps, totals.seconds)
        waiting_s = sum(time.model_seconds for time in times.values())
        cells["of it waiting for models"] = format_seconds(waiting_s)
        if has_gold:
            cells["lost at"] = answer.lost_at
        return cells

    def _describe_support(self, answer: SystemAnswer) -> str:
        """Return the number of supporting triples, and of those that support no other answer, as text.

        It reads "3 triples, 1 of its own"; "" without an answer.
        """
        if not answer.run.answer:
            return ""
        others = {
            triple for other in self.answers if other is not answer for triple in other.support
        }
        own = [triple for triple in answer.support if triple not in others]
        return f"{pluralize(len(answer.support), 'triple')}, {len(own)} of its own"

    def _make_support_table(self) -> Table:
        """Return a table of all supporting triples, with "yes" for each system whose answer has one.

        The triples that most systems share come first; those that equally many share come in the
        order of the systems. Triples that read the same are written in full.
        """
        counts: Counter[Triple] = Counter()
        for answer in self.answers:
            triples = dict.fromkeys(answer.support)
            counts.update(list(triples))
        format_by_name = partial(format_triple, names=self.names)
        texts = tell_apart(counts, (format_by_name, _format_in_full))
        rows = []
        for triple, _ in counts.most_common():
            row = [single_line(texts[triple])]
            for answer in self.answers:
                is_support = triple in answer.support
                row.append("yes" if is_support else "")
            rows.append(row)
        systems_asked = (answer.system for answer in self.answers)
        return Table(("triples that support an answer", *systems_asked), rows)


def _format_terms(terms: AnswerTerms) -> str:
    """Return the terms of an answer in full, in their order as text; its text without any."""
    rows, text = terms
    values = [" · ".join(map(format_exactly, row)) for row in rows]
    return ", ".join(sorted(values)) or text


def _format_in_full(triple: Triple) -> str:
    """Return a triple with its terms in full."""
    subject, predicate, object_ = map(format_exactly, triple)
    return f"{subject} — {predicate} → {object_}"


def ask_all(
    setups: Sequence[Setup], question: str | BenchQuestion, dialogue: Dialogue
) -> SystemComparison:
    """Ask the system of each setup the question, one after another, and return the answers side by side.

    A system that fails has its error in its column, and the others are still asked. A
    ``BenchQuestion`` has gold, so that answers are scored; the oracle ladder then finds the agent
    that lost an answer (kgwb.bench.ladder), which may make further model calls. A system that is
    given again is named "NAME#2".
    """
    gold = question if isinstance(question, BenchQuestion) else None
    text = gold.question if gold else str(question)
    return _compare_answers(text, [_ask_system(setup, text, gold, dialogue) for setup in setups])


def compare_runs(question: str | BenchQuestion, runs: Sequence[Run]) -> SystemComparison:
    """Return the answers of finished runs side by side, such as of recorded ones; nothing is asked.

    They are scored if the question is a ``BenchQuestion`` with gold. Which agent lost an answer is
    not looked for.
    """
    gold = None
    text = question
    if isinstance(question, BenchQuestion):
        gold = question.answers
        text = question.question
    answers = []
    for run in runs:
        f1 = None if gold is None else compute_answer_f1(run.answer, gold)
        answers.append(SystemAnswer(run.system.name, run, f1=f1))
    return _compare_answers(str(text), answers)


def _compare_answers(question: str, answers: Sequence[SystemAnswer]) -> SystemComparison:
    """Return the comparison of answers, in which a system that occurs again is named "NAME#2" and so on.

    Where systems name an IRI differently, the name of the first system counts.
    """
    counts: Counter[str] = Counter()
    named = []
    names: dict[str, str] = {}
    for answer in answers:
        counts[answer.system] += 1
        count = counts[answer.system]
        name = answer.system
        if count > 1:
            name += f"#{count}"
        named.append(replace(answer, system=name))
        names = answer.run.display_names() | names
    return SystemComparison(question, tuple(named), names)


def _ask_system(
    setup: Setup, text: str, gold: BenchQuestion | None, dialogue: Dialogue
) -> SystemAnswer:
    """Ask one system, score its answer if the gold answers are known, and return both.

    A run that fails has its error, and F1 0 if there is gold. For an answer whose F1 is below 1 the
    agent that lost it is looked for.
    """
    name = setup.system.name
    if gold is None:
        run = setup.begin(text, dialogue)
    else:
        run = begin_question(setup, gold, dialogue)
        run.right_answer = known_right_answer(gold.gold, gold.answer_labels)
    error = ""
    try:
        run.go_explained()
    except KgwbError as exc:
        error = exc.without_hint
    if gold is None or gold.answers is None:
        return SystemAnswer(name, run, error)
    if error:
        return SystemAnswer(name, run, error, f1=0.0)
    f1 = compute_answer_f1(run.answer, gold.answers)
    lost_at = _find_blamed_agent(setup, run, gold) if f1 < 1 else ""
    return SystemAnswer(name, run, f1=f1, lost_at=lost_at)


def _find_blamed_agent(setup: Setup, run: Run, question: BenchQuestion) -> str:
    """Apply the oracle ladder to a fork of a run, and return the agent that lost its answer.

    If it is not known, the reason is returned; "not known" without a gold query or gold decisions.
    Models may be asked.
    """
    gold_query = None
    if setup.system.gold:
        gold_query = load_gold_query(question, setup.kg)
    if gold_query is None:
        return "not known"
    forked = run.fork()
    loss = apply_rungs(forked, gold_query, question, setup, RunCanceller())
    return str(loss.get("agent") or loss["why"])
