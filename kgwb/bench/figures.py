"""The results of a folder, and the tables of a benchmark: text in a terminal, HTML in a report.

Among them is how often a question that was asked several times came out right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar
from urllib.parse import unquote

from kgwb.bench.assertions import check_assertions, count_held
from kgwb.bench.cost import Prices, merge_versions, summarize_costs
from kgwb.bench.ladder import (
    LADDER_FILE,
    LossRowSchema,
    agent_or_reason,
    compute_linking_recall,
    is_current,
)
from kgwb.bench.metrics import (
    Estimate,
    QuestionGroup,
    estimate_mean,
    group_questions,
    score_best_reading,
    score_row,
)
from kgwb.bench.questions import BenchQuestion, find_in_slices
from kgwb.bench.results import (
    ALIKE,
    SEED_IGNORED,
    BenchRow,
    QuestionSample,
    RowFile,
    count_verdicts,
    has_gold_of,
    is_shown,
    question_of_row,
    read_results,
    rescore_row,
)
from kgwb.bench.statistics import wilson_interval
from kgwb.errors import InputError
from kgwb.kg import Graph, open_kg
from kgwb.llm.base import ChatModel
from kgwb.records import frozen
from kgwb.run import systems
from kgwb.run.models import open_model
from kgwb.show.run_state import ERROR, GAVE_UP, RIGHT, UNANSWERED, WRONG
from kgwb.show.tables import Table
from kgwb.text import and_more, pluralize, shorten, single_line, tell_apart

K = TypeVar("K")
INTERVAL_MEASURES = {"f1": "F1", "paper_f1": "paper F1"}
MEAN_MEASURES = {
    "precision": "precision",
    "recall": "recall",
    "lenient": "lenient F1",
    "hits1": "P@1",
    "mrr": "MRR",
    "hit5": "Hit@5",
    "exact": "exact",
    "paper_precision": "paper P",
    "hit_any": "any hit",
    "hit_substring": "name in reply",
}
MEASURE_LABELS = INTERVAL_MEASURES | MEAN_MEASURES
"""Labels of the measures, in the order of their columns."""
OCCASIONAL_COUNTS = {"cut results": "cut_results", "names of gold": "named_answers"}
"""The attributes of groups that count what most results do not have, by the title of their column."""
MAX_QUESTION_BESIDE_ID = 200
"""Characters of a question that has its id beside it."""
Cause = tuple[str, str]
"""Where an answer was lost: the agent to blame, or the reason that none is known; and the stage."""


@dataclass(frozen=True)
class LoadedResults:
    """A results folder, read into memory."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    rows: Mapping[str, BenchRow]
    """By question id, in the order in which they were written."""
    losses_by_id: Mapping[str, BenchRow] = field(repr=False)
    """Rows of the ladder by question id, as far as they are about the present result."""
    label_suffix: str = ""
    """Distinguishes its figures from those of other folders: ", name", or "" if there are no others."""

    @classmethod
    def read(cls, folder: Path, name: str = "") -> LoadedResults:
        """Read a results folder into memory. Nothing in the folder is changed.

        ``name`` is by default that of the folder. Rows of the ladder that are not about the present
        result are left out. Raises InputError if it holds no results, or damaged ones.
        """
        config, results = read_results(folder)
        rows = {row["id"]: row for row in results}
        loss_file = RowFile(folder / LADDER_FILE, LossRowSchema, writable=False)
        return cls(
            name=unquote(name) or show_folder_name(folder),
            folder=folder,
            config=config,
            rows=rows,
            losses_by_id=_select_current(loss_file.rows, rows),
        )

    @cached_property
    def question_titles(self) -> dict[str, str]:
        """The questions as they are shown, by their ids; those that look the same have the id behind them."""

        def question(id_: str) -> str:
            text = single_line(self.rows[id_]["question"])
            return shorten(text)

        def question_with_id(id_: str) -> str:
            return _add_id(question(id_), single_line(id_))

        def question_with_exact_id(id_: str) -> str:
            return _add_id(question(id_), ascii(id_))

        forms = (question, question_with_id, question_with_exact_id)
        return tell_apart(self.rows, forms)

    def with_rows(self, rows: Iterable[BenchRow]) -> LoadedResults:
        """Return a copy of the results with only these of its rows, and with the losses of their questions.

        Of several rows with one id the last counts.
        """
        rows_by_id = {row["id"]: row for row in rows}
        losses = {id_: loss for id_, loss in self.losses_by_id.items() if id_ in rows_by_id}
        return replace(self, rows=rows_by_id, losses_by_id=losses)

    def without_repeats(self) -> LoadedResults:
        """Return a copy of the results with the first ask of each question alone."""
        first_asks = [{**row, "asks": [], "asks_before": []} for row in self.rows.values()]
        return self.with_rows(first_asks)

    def in_slices(self, slices: Collection[str]) -> LoadedResults:
        """Return a copy with only the questions that are in all of the slices. Raises InputError without any."""
        ids = find_in_slices(self.rows.values(), slices)
        return self.with_rows(row for id_, row in self.rows.items() if id_ in ids)

    def with_gold(self, questions: Iterable[BenchQuestion]) -> LoadedResults:
        """Return a copy of the results, scored by the gold of these questions. Nothing is asked or written.

        Questions without gold, of another wording, or that were not measured, change nothing.
        Losses that are not about the new scores are left out.
        """
        rows = dict(self.rows)
        for question in questions:
            row = rows.get(question.id)
            if row is None or question.answers is None:
                continue
            is_same_question = row["question"] == question.question
            if is_same_question and not has_gold_of(row, question):
                own = question_of_row(row).assertions  # those of the questions may have CURIEs
                rescored = question.model_copy(update={"assertions": own})
                rows[question.id] = rescore_row(row, rescored)
        losses = _select_current(self.losses_by_id, rows)
        return replace(self, rows=rows, losses_by_id=losses)

    def questions(self) -> list[BenchQuestion]:
        """Return the questions that were measured, with the gold that they were scored by."""
        return list(map(question_of_row, self.rows.values()))

    def open_graph(self, kg: Graph | str | None = None) -> Graph:
        """Return ``kg``, or open the graph that was measured if it is None; a text is opened by ``open_kg``.

        Raises InputError if the graph is not the one that was measured, or has changed since.
        """
        graph = kg or str(self.config.get("source"))
        if isinstance(graph, str):
            graph = open_kg(graph)
        if graph.identity != self.config.get("kg"):
            raise InputError(
                f"the results in {self.folder} cannot be used with the graph {graph.source}: they were "
                "measured on another one",
                hint="name the measured graph with --kg (kg=...), or measure again with kgwb bench",
            )
        return graph

    @property
    def model_specs(self) -> dict[str, str]:
        """The specification of the model that each agent was measured with; "" is the default for all agents.

        A configuration that has one text in place of a mapping has this model under "".
        """
        models = self.config.get("models")
        if not isinstance(models, dict):
            models = {"": models}
        specs = {}
        for name, spec in models.items():
            specs[name] = str(spec)
        return specs

    def describe_models(self) -> str:
        """Return the models as text: the default for all agents, and that of each agent with one of its own."""
        specs = self.model_specs.items()
        return ", ".join(f"{agent}={spec}" if agent else spec for agent, spec in specs)

    def model(self, agent: str) -> ChatModel:
        """Open the model that an agent was measured with; "" is the default.

        Raises InputError for a model at an address of its own, and for one from a file of Python: a
        folder that comes from elsewhere must not decide where a person's key is sent, or what is
        executed.
        """
        spec = self.model_specs[agent]
        argument = f"--agent-model {agent}=" if agent else "--model "
        if "@" in spec:
            raise InputError(
                f"the results in {self.folder} name the model {spec}, and kgwb does not send a key "
                "to an address that stands only in a folder of results",
                hint=f"if you trust the address, name the model yourself: {argument}{spec}, or models=...",
            )
        if spec.partition(":")[0] == "scripted":
            raise InputError(
                f"the results in {self.folder} name the model {spec}, and kgwb executes no file "
                "because a folder of results names it",
                hint=f"name the model again, with the path of its file: {argument}scripted:FILE.py",
            )
        return open_model(spec)

    @cached_property
    def served_models(self) -> dict[str, list[str]]:
        """The versions of each model that answered, by its name, in the order in which the rows first have them."""
        versions: dict[str, list[str]] = {}
        for row in self.rows.values():
            served = row.get("served", {})
            versions = merge_versions(versions, served)
        return versions

    @property
    def model_remarks(self) -> list[str]:
        """A sentence for each model of which several versions answered, and what repeats show of its seed."""
        remarks = []
        for model, versions in self.served_models.items():
            if len(versions) > 1:
                names = ", ".join(versions)
                remarks.append(f"{self.name}: several versions of {model}: {names}")
        return [*remarks, *self.seed_remarks]

    @property
    def seed_remarks(self) -> list[str]:
        """What repeats show of the seed, as a sentence; without anything to say an empty list."""
        seeds = {row.get("seeds") for row in self.rows.values() if "asks" in row}
        remark = ""
        if SEED_IGNORED in seeds:
            remark = (
                "the same request with the same seed got another reply: the model's server ignores "
                "seeds, so that repeats cannot be made again"
            )
        elif seeds == {ALIKE}:
            remark = (
                "each ask of a question got the same replies: seed and temperature have no effect, so "
                "that repeats say nothing about luck"
            )
        return [f"{self.name}: {remark}"] if remark else []

    @cached_property
    def groups(self) -> dict[str, QuestionGroup]:
        """All questions and each kind of question, by name."""
        groups = group_questions(list(self.rows.values()))
        return {group.name: group for group in groups}

    @cached_property
    def losses_by_agent(self) -> dict[Cause, Counter[str]]:
        """The number of lost answers by cause, each counted by hops; the key "" counts all hops.

        A cause is an agent, or a reason why none is known, with its stage, "–" if that is not
        known. Agents come in flow order, reasons after them. Hops are "" where a question has none.
        """
        losses: defaultdict[Cause, Counter[str]] = defaultdict(Counter)
        for loss in self.losses_by_id.values():
            agent = agent_or_reason(loss)
            stage = loss["stage"] or "–"
            hops = str(loss.get("hops", ""))
            losses[agent, stage].update({"", hops})
        agent_names = self.agent_names

        def flow_order(cause: Cause) -> tuple[int, Cause]:
            agent, _ = cause
            place = len(agent_names)
            if agent in agent_names:
                place = agent_names.index(agent)
            return place, cause

        in_order = sorted(losses, key=flow_order)
        return {cause: losses[cause] for cause in in_order}

    @property
    def has_test_part(self) -> bool:
        """Whether questions of the test part of the set were chosen; earlier turns of a dialogue do not count."""
        samples = QuestionSample.list_of(self.config)
        for id_, row in self.rows.items():
            is_chosen = not samples or any(id_ in sample.ids for sample in samples)
            if is_chosen and not is_shown(row):
                return True
        return False

    def count_losses(self) -> Counter[str]:
        """Count the answers that each agent lost, over all its stages; reasons stand for unknown agents."""
        counts: Counter[str] = Counter()
        for (agent, _), by_hops in self.losses_by_agent.items():
            counts[agent] += by_hops[""]
        return counts

    @property
    def agent_names(self) -> list[str]:
        """The agents of the system that was measured, in flow order; none if it is unknown."""
        system = self.config.get("system")
        if system not in systems.list_systems():
            return []
        return list(systems.load_system(system).specs_by_name)

    @property
    def headline(self) -> str:
        """One line with the number of questions, how many were right and lost, and F1 with its interval.

        "60 questions: 50 right, 10 lost (6 wrong, 4 unanswered, 0 errors); F1 0.83 [...]".
        Before the wrong ones those that an agent gave up are counted, and before F1 questions
        without gold, answers from a result that a limit cut, and answers with the names of gold
        things in place of the things, if there are any.
        """
        counts = count_verdicts(self.rows.values())
        without_gold = len(self.rows) - counts.total()
        questions = pluralize(len(self.rows), "question")
        errors = pluralize(counts[ERROR], "error")
        kinds = f"{counts[WRONG]} wrong, {counts[UNANSWERED]} unanswered, {errors}"
        if counts[GAVE_UP]:
            kinds = f"{counts[GAVE_UP]} {GAVE_UP}, {kinds}"
        lost = counts.total() - counts[RIGHT]
        text = f"{questions}: {counts[RIGHT]} right, {lost} lost ({kinds})"
        if without_gold:
            text += f", {without_gold} without gold"
        group = self.groups["all"]
        if group.cut_results:
            text += f", {group.cut_results} from a result that a limit cut"
        if group.named_answers:
            text += (
                f", {group.named_answers} with names of the gold things "
                f"(F1 {group.f1_with_names:.3f} if these counted)"
            )
        held, asserted = count_held(self.rows.values())
        if asserted:
            text += f", assertions of {held} of {asserted} hold"
        return f"{text}; F1 {self.f1_text}"

    @property
    def f1_text(self) -> str:
        """F1 over all questions with its interval, or a dash if no question has gold."""
        return str(self.groups["all"].estimate("f1") or "–")


def _add_id(question: str, shown_id: str) -> str:
    """Return a question with its id behind it."""
    shown = shorten(question, MAX_QUESTION_BESIDE_ID)
    return f"{shown} ({shown_id})"


def _select_current(
    losses: Mapping[str, BenchRow], rows: Mapping[str, BenchRow]
) -> dict[str, BenchRow]:
    """Return the rows of the ladder that are about the present results, by question id."""
    return {id_: loss for id_, loss in losses.items() if is_current(loss, rows.get(id_))}


def show_folder_name(folder: Path) -> str:
    """Return the name of a results folder for people: "model=openai:x" for "model=openai%3Ax"."""
    return single_line(unquote(folder.resolve().name))


AllResults = Sequence[LoadedResults]


def distinct_keys(mappings: Iterable[Iterable[K]]) -> list[K]:
    """Return the keys of all mappings, each once, in the order of their first occurrence."""
    return list(dict.fromkeys(chain.from_iterable(mappings)))


def distinct_groups(all_results: AllResults) -> list[str]:
    """Return the names of the groups of questions that any of the results have, in their order."""
    return distinct_keys(results.groups for results in all_results)


# --- tables of groups of questions


def _list_groups(all_results: AllResults) -> Iterator[tuple[str, LoadedResults, QuestionGroup]]:
    """Yield the name of each group of questions with each of the results that have it, and the group."""
    for name in distinct_groups(all_results):
        for results in all_results:
            if name in results.groups:
                yield name, results, results.groups[name]


def make_quality_table(all_results: AllResults) -> Table:
    """Return a table of all measures: a row for all questions and for each kind of question, of each folder.

    F1 and paper F1 have their intervals; the others are means with three digits. A kind that a
    folder lacks has no row for it. Figures that are not known are "–". OCCASIONAL_COUNTS are the last
    columns, if there are any.
    """
    headers = ["", "questions", *MEASURE_LABELS.values(), "errors", "without gold"]
    counts = []
    for title, count in OCCASIONAL_COUNTS.items():
        if any(getattr(results.groups["all"], count) for results in all_results):
            headers.append(title)
            counts.append(count)
    rows = []
    for name, results, group in _list_groups(all_results):
        cells: list[object] = [name + results.label_suffix, len(group.rows)]
        for measure in INTERVAL_MEASURES:
            cells.append(group.estimate(measure) or "–")
        has_gold = group.without_gold < len(group.rows)
        for measure in MEAN_MEASURES:
            mean = getattr(group.mean_scores, measure)
            cells.append(f"{mean:.3f}" if has_gold else "–")
        cells.append(group.errors)
        cells.append(group.without_gold)
        for count in counts:
            cells.append(getattr(group, count))
        rows.append(cells)
    return Table(headers, rows, folds_equal_columns=True)


def make_readings_table(all_results: AllResults) -> Table:
    """Return a table of F1 with the best of the readings that were offered, beside strict and lenient F1.

    It has a row for all questions and for each kind of question, of each folder in which the
    readings were asked; none if there is no such folder. "offered" is the number of questions with
    other readings, and "readings" that of these. Only questions whose readings were asked count.
    """
    rows = []
    for name, results, group in _list_groups(all_results):
        scored = [row for row in group.rows if "readings" in row and row["gold"] is not None]
        if not scored:
            continue
        counts = [len(row["readings"]) for row in scored]
        means = []
        for measure in ("f1", "lenient"):
            means.append(fmean(getattr(score_row(row), measure) for row in scored))
        for measure in ("f1", "lenient"):
            means.append(fmean(score_best_reading(row, measure) or 0.0 for row in scored))
        numbers = (len(scored), sum(map(bool, counts)), sum(counts))
        rows.append((name + results.label_suffix, *numbers, *map("{:.3f}".format, means)))
    headers = (
        "",
        "questions",
        "offered",
        "readings",
        "strict F1",
        "lenient F1",
        "strict F1, best reading",
        "lenient F1, best reading",
    )
    return Table(headers, rows)


def make_question_types_table(all_results: AllResults) -> Table:
    """Return a table of how many questions of each type were solved, and what the questions are like.

    A row has the solved questions of all with gold, the mean number of words, and the mean number
    of predicates of the gold queries, as in Table 8 of Chatty-KG. Solved means that the answer is
    exactly the gold. Means that are not known are "–". Without typed questions there are no rows.
    """
    rows = []
    has_types = False
    for name, results, group in _list_groups(all_results):
        is_type = name.startswith("type ")
        has_types |= is_type
        if not is_type and name != "all":
            continue
        label = "every type"
        if is_type:
            label = name.removeprefix("type ")
        with_gold = [row for row in group.rows if row["gold"] is not None]
        solved = sum(row.get("exact", 0) == 1 for row in with_gold)
        cells = [f"{solved}/{len(with_gold)}"]
        for field_name in ("words", "predicates"):
            known = [row[field_name] for row in group.rows if field_name in row]
            cells.append(f"{fmean(known):.2f}" if known else "–")
        rows.append((label + results.label_suffix, *cells))
    if not has_types:
        rows = []
    return Table(("type", "solved", "words", "predicates"), rows)


# --- assertions


def make_assertions_table(all_results: AllResults) -> Table:
    """Return a table of how many assertions hold, with Wilson's interval: a row for each kind, and one for questions.

    A question counts as held if all assertions on it hold. Without assertions there are no rows.
    """
    headers = ["assertion"]
    cells: dict[str, list[object]] = {}
    for place, results in enumerate(all_results):
        headers.append(f"holds, with its interval{results.label_suffix}")
        held: Counter[str] = Counter()
        asserted: Counter[str] = Counter()
        held["questions"], asserted["questions"] = count_held(results.rows.values())
        for question in results.rows.values():
            for check in check_assertions(question):
                asserted[check.name] += 1
                held[check.name] += not check.found
        for name in +asserted:
            row = cells.setdefault(name, ["–"] * len(all_results))
            row[place] = PassRate(held[name], asserted[name])
    rows = [(name, *row) for name, row in cells.items()]
    return Table(headers, rows)


# --- tables of cost


def make_cost_table(all_results: AllResults, prices: Prices | None = None) -> Table:
    """Return a table with a row for each kind of cost (``summarize_costs``), and three columns for each folder.

    The columns are the total, and the median and the 95th percentile of a question. They are empty
    for a kind that a folder lacks. Money is left out altogether without prices, or if a model has
    no price.
    """
    if find_missing_prices(all_results, prices):
        prices = None
    headers = ["a question"]
    all_costs = []
    for results in all_results:
        all_costs.append(summarize_costs(results.rows.values(), prices))
        for statistic in ("total", "median", "95th percentile"):
            headers.append(statistic + results.label_suffix)
    rows = []
    for name in distinct_keys(all_costs):
        row = [name]
        for costs in all_costs:
            if name not in costs:
                row += ["", "", ""]
                continue
            _, *amounts = costs[name]
            row += [f"{amount:,.6g}" for amount in amounts]
        rows.append(row)
    return Table(headers, rows)


def make_profile_table(all_results: AllResults) -> Table:
    """Return a table with a row for each results folder: F1, and model calls, queries and seconds of a question.

    The column "change" has the difference to the F1 of the first folder with gold; it is empty for
    that one, and where F1 is not known.
    """
    headers = ["settings", "F1", "change", "model calls", "queries", "seconds"]
    rows = []
    first: Estimate | None = None
    for results in all_results:
        estimate = results.groups["all"].estimate("f1")
        change = ""
        if first and estimate:
            change = f"{estimate.value - first.value:+.3f}"
        first = first or estimate
        row = [results.name, results.f1_text, change]
        costs = summarize_costs(results.rows.values())
        for name in headers[3:]:
            mean = costs[name].total / max(costs[name].questions, 1)
            row.append(f"{mean:,.3g}")
        rows.append(row)
    return Table(headers, rows)


def find_missing_prices(all_results: AllResults, prices: Prices | None) -> list[str]:
    """Return a sentence for each folder in which a model has no price; an empty list if all have.

    Without ``prices`` it is empty as well.
    """
    reasons = []
    for results in all_results:
        try:
            summarize_costs(results.rows.values(), prices)
        except InputError as exc:
            reasons.append(f"{results.name}: money is left out. {exc}")
    return reasons


# --- tables of lost answers


def make_loss_table(all_results: AllResults) -> Table:
    """Return a table of lost answers: a row for each cause, then for each stage, then for all together.

    A cause is an agent, or a reason why none is known, with its stage. Each folder has a column for
    all answers and one for each number of hops. Without a known cause there are no rows.
    """
    all_hops: set[str] = set()
    for results in all_results:
        all_hops.update(*results.losses_by_agent.values())
    headers = ["lost at", "stage"]
    columns = []
    for results in all_results:
        for hops in sorted(all_hops):  # "" is first, which counts all
            title = f"hops {hops}" if hops else "answers"
            headers.append(title + results.label_suffix)
            columns.append((results.losses_by_agent, hops))
    causes = distinct_keys(results.losses_by_agent for results in all_results)
    stages = dict.fromkeys(stage for _, stage in causes)
    groups = [(agent, stage, [(agent, stage)]) for agent, stage in causes]
    for stage in stages:
        of_stage = [cause for cause in causes if cause[1] == stage]
        groups.append(("all", stage, of_stage))
    if causes:
        groups.append(("all", "", causes))
    rows = []
    for agent, stage, group in groups:
        row: list[object] = [agent, stage]
        for losses, hops in columns:
            row.append(sum(losses[cause][hops] for cause in group if cause in losses))
        rows.append(row)
    return Table(headers, rows)


def make_linking_table(all_results: AllResults) -> Table:
    """Return a table of the mean recall of linking: which gold vertices and predicates were linked or candidates.

    There is a column for each folder. A row is left out if no folder has the figure.
    """
    counts = {"linked": "linked", "candidates": "among the candidates"}
    rows = []
    for element, (count, words) in product(("vertices", "predicates"), counts.items()):
        recalls = []
        for results in all_results:
            question_rows = list(results.rows.values())
            recall = compute_linking_recall(question_rows, element, count)
            recalls.append("–" if recall is None else f"{recall:.3f}")
        if set(recalls) != {"–"}:
            rows.append((f"gold {element} {words}", *recalls))
    names = [results.name for results in all_results]
    return Table(["recall of linking", *names], rows)


# --- questions that were asked several times

SHOWN_POWERS = (1, 2, 3, 5, 10, 20, 50, 100)
"""The k for which pass^k is shown, as far as each question was asked so often."""


@frozen
class PassRate:
    """How many asks of a question came out right: their answers were exactly the gold."""

    right: int
    asked: int

    @classmethod
    def of_asks(cls, asks: Sequence[Mapping[str, float] | None]) -> PassRate:
        """Count asks, of which each is its scores, or None for an error. An error is not right."""
        right = sum(scores is not None and scores["f1"] == 1 for scores in asks)
        return cls(right, len(asks))

    @classmethod
    def of_row(cls, row: BenchRow, name: str = "asks") -> PassRate | None:
        """Return the rate of a row's "asks", or of another field of asks such as "asks_before"; None without any.

        If a question was repeated because it came out otherwise after a change, its first ask does
        not count.
        """
        asks = row.get(name, ())
        if row.get("asks_before"):
            asks = asks[1:]
        return cls.of_asks(asks) if asks else None

    @property
    def is_luck(self) -> bool:
        """Whether some asks came out right, and others did not."""
        return 0 < self.right < self.asked

    def chance_of_all(self, k: int) -> float:
        """Return pass^k, 0 to 1: the chance that k asks all come out right. Needs at least k asks.

        This is the unbiased estimate: of all choices of k of the asks, the share in which all are
        right (Yao et al. 2024, tau-bench, arXiv:2406.12045).
        """
        return comb(self.right, k) / comb(self.asked, k)

    def __str__(self) -> str:
        """Return the counts with Wilson's 95 % interval of the chance that an ask comes out right."""
        low, high = wilson_interval(self.right, self.asked)
        return f"{self.right} of {self.asked}\u00a0[{low:.2f},\u00a0{high:.2f}]"


def find_pass_rates(results: LoadedResults) -> dict[str, PassRate]:
    """Return the rate of each question that was asked several times, by its id."""
    rates = {}
    for id_, row in results.rows.items():
        rate = PassRate.of_row(row)
        if rate is not None:
            rates[id_] = rate
    return rates


def estimate_chances(rates: Sequence[PassRate]) -> dict[int, Estimate]:
    """Return the mean of pass^k over questions with its interval, by k.

    There is an entry for those SHOWN_POWERS that are not above the smallest number of asks of a
    question.
    """
    least_asks = min((rate.asked for rate in rates), default=0)
    chances = {}
    for k in SHOWN_POWERS:
        if k <= least_asks:
            values = [rate.chance_of_all(k) for rate in rates]
            chances[k] = estimate_mean(values)
    return chances


def make_stability_table(all_results: AllResults) -> Table:
    """Return a table of how steady answers are, with a row for each folder: counts of questions, and pass^k.

    Counted are the questions that are always, sometimes ("by luck") and never right. Questions that
    a retry repeated do not count: they were chosen for coming out otherwise. Folders without any
    other question that was asked several times have no row.
    """
    rows: list[list[object]] = []
    all_chances = []
    for results in all_results:
        rates = []
        for id_, rate in find_pass_rates(results).items():
            if not results.rows[id_].get("asks_before"):
                rates.append(rate)
        if rates:
            always = sum(rate.right == rate.asked for rate in rates)
            by_luck = sum(rate.is_luck for rate in rates)
            never = len(rates) - always - by_luck
            rows.append([results.name, len(rates), always, by_luck, never])
            all_chances.append(estimate_chances(rates))
    headers = ["asked several times", "questions", "always right", "by luck", "never right"]
    for k in sorted(distinct_keys(all_chances)):
        headers.append(f"pass^{k}")
        for row, chances in zip(rows, all_chances, strict=True):
            row.append(chances.get(k, "–"))
    return Table(headers, rows)


def make_luck_table(
    all_results: AllResults,
    limit: int | None = None,
    show_question: Callable[[str], object] | None = None,
) -> Table:
    """Return a table of the questions that came out right in some asks and not in others, with their rates.

    Each folder has a column. Those that are right most often come first. At most ``limit`` are
    listed, and a last row says how many there are beyond. ``show_question`` shows the question of
    an id; by default it is the text. Without such questions there are no rows.
    """
    headers = ["right by luck"]
    all_rates = []
    shown: dict[str, object] = {}
    chances: dict[str, float] = {}
    for results in all_results:
        headers.append(f"right, with its interval{results.label_suffix}")
        rates = find_pass_rates(results)
        all_rates.append(rates)
        show = show_question or results.question_titles.__getitem__
        for id_, rate in rates.items():
            if rate.is_luck and is_shown(results.rows[id_]):
                shown.setdefault(id_, show(id_))
                chances.setdefault(id_, rate.chance_of_all(1))
    ids = sorted(shown, key=chances.__getitem__, reverse=True)
    rows = []
    for id_ in ids[:limit]:
        cells = [rates.get(id_, "–") for rates in all_rates]
        rows.append([shown[id_], *cells])
    more = and_more(len(ids) - len(rows))
    if more:
        blanks = [""] * len(all_rates)
        rows.append([more, *blanks])
    return Table(headers, rows)
