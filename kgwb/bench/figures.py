"""The tables of a benchmark, each laid out once: as text in a terminal, as HTML in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kgwb import systems
from kgwb.bench.cost import Prices, summarize_costs
from kgwb.bench.ladder import LADDER_FILE, LossRowSchema, compute_linking_recall, is_current
from kgwb.bench.metrics import QuestionGroup, group_questions
from kgwb.bench.results import BenchRow, RowFile, get_verdict, read_results
from kgwb.deprecated import renamed_names
from kgwb.errors import InputError
from kgwb.kg import Graph, open_kg
from kgwb.llm.base import ChatModel
from kgwb.run.models import open_model
from kgwb.show.html import Html, div, static_page
from kgwb.show.html import table as html_table
from kgwb.text import pluralize, single_line

INTERVAL_MEASURES = {"f1": "F1", "paper_f1": "paper F1"}
MEAN_MEASURES = {
    "precision": "precision",
    "recall": "recall",
    "lenient": "lenient F1",
    "hits1": "P@1",
    "mrr": "MRR",
}
MEAN_MEASURES |= {"hit5": "Hit@5", "exact": "exact", "paper_precision": "paper P"}
MEASURE_LABELS = INTERVAL_MEASURES | MEAN_MEASURES
"""What the measures are called, in the order of their columns."""


@dataclass(frozen=True)
class LoadedResults:
    """A results folder as it was read."""

    name: str
    label_suffix: str
    """What sets its figures apart from those of other folders: ", name", or nothing where it is alone."""
    folder: Path
    config: Mapping[str, Any]
    rows: Mapping[str, BenchRow]
    """By question id, in the order they finished."""
    losses_by_id: Mapping[str, BenchRow] = field(repr=False)
    """Where answers were lost, of those results that are still what they were then."""

    @classmethod
    def read(cls, folder: Path, name: str = "", tail: str = "") -> LoadedResults:
        """What ``kgwb bench --out`` left in a folder, by default under its name. Raises InputError."""
        config, results = read_results(folder)
        rows = {row["id"]: row for row in results}
        ladder = RowFile(folder / LADDER_FILE, LossRowSchema, writable=False).rows
        ladder = {key: line for key, line in ladder.items() if is_current(line, rows.get(key))}
        return cls(name or single_line(folder.resolve().name), tail, folder, config, rows, ladder)

    def open_graph(self, kg: Graph | str | None = None) -> Graph:
        """The graph that was measured, or ``kg``. Raises InputError where it is another one now."""
        source = kg or str(self.config.get("source"))
        graph = open_kg(source) if isinstance(source, str) else source
        if graph.identity != self.config.get("kg"):
            hint = "name that graph with kg=... (--kg), or measure anew with kgwb bench"
            raise InputError(
                f"{self.folder} was measured on another graph than {graph.source}", hint=hint
            )
        return graph

    @property
    def model_specs(self) -> dict[str, str]:
        """What each agent was measured with; "" is the default."""
        models = self.config.get("models")
        models = models if isinstance(models, dict) else {"": models}
        return {name: str(spec) for name, spec in models.items()}

    def model(self, agent: str) -> ChatModel:
        """A model that was measured. A folder from elsewhere may not say where the person's key is sent."""
        spec = self.model_specs[agent]
        if "@" in spec:
            why = f"{self.folder} was measured with a model at an address of its own: {spec}"
            raise InputError(why, hint="name it again: --model SPEC, or model=...")
        return open_model(spec)

    @cached_property
    def groups(self) -> dict[str, QuestionGroup]:
        """All questions, and parts of them, by name."""
        return {group.name: group for group in group_questions(list(self.rows.values()))}

    @cached_property
    def losses_by_agent(self) -> dict[tuple[str, str], Counter[str]]:
        """By agent in flow order (else by the reason) and stage: lost answers by hops, "" being all."""
        system = self.config.get("system")
        flow = (
            [spec.name for spec in systems.load_system(system).agents]
            if system in systems.list_systems()
            else []
        )
        order = {name: place for place, name in enumerate(flow)}
        losses: dict[tuple[str, str], Counter[str]] = {}
        for line in self.losses_by_id.values():
            blamed = (line["agent"] or line["why"].partition(";")[0], line["stage"] or "–")
            losses.setdefault(blamed, Counter()).update({"", str(line.get("hops", ""))})
        return dict(
            sorted(losses.items(), key=lambda loss: (order.get(loss[0][0], len(order)), loss[0]))
        )

    @property
    def headline(self) -> str:
        """How many answers are right, wrong, missing and errors, and F1 with its interval."""
        counts = Counter(map(get_verdict, self.rows.values()))
        missed = [f"{counts[word]} {word}" for word in ("wrong", "unanswered")]
        errors = pluralize(counts["error"], "error")
        total = sum(counts[word] for word in ("wrong", "unanswered", "error"))
        gold = f", {counts['without gold']} without gold" if counts["without gold"] else ""
        right = f"{counts['right']} right, {total} lost ({', '.join(missed)}, {errors}){gold}"
        return f"{pluralize(len(self.rows), 'question')}: {right}; F1 {self.groups['all'].estimate('f1') or '–'}"


AllResults = Sequence[LoadedResults]


class ReportTable(NamedTuple):
    """Cells of any kind, written as their text."""

    headers: Sequence[object]
    rows: Sequence[Sequence[object]]

    def __repr__(self) -> str:
        lines = [[single_line(cell) for cell in row] for row in (self.headers, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                [
                    first.ljust(widths[0]),
                    *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True)),
                ]
            )
            for first, *rest in lines
        )

    def _repr_html_(self) -> str:
        return static_page(div("across", self.render()))

    def render(self) -> Html:
        """The table, or nothing if it has no rows."""
        return html_table(self.headers, self.rows)


def make_quality_table(all_results: AllResults) -> ReportTable:
    """Every measure over all questions and over parts of them, two of them with their intervals."""
    rows = []
    for name in dict.fromkeys(name for measured in all_results for name in measured.groups):
        for measured in all_results:
            if group := measured.groups.get(name):
                figures = [group.estimate(measure) or "–" for measure in INTERVAL_MEASURES]
                figures += [
                    f"{getattr(group.mean_scores, measure):.3f}" for measure in MEAN_MEASURES
                ]
                about = name + measured.label_suffix, len(group.rows)
                rows.append((*about, *figures, group.errors, group.without_gold))
    return ReportTable(("", "questions", *MEASURE_LABELS.values(), "errors", "without gold"), rows)


def make_cost_table(sets: AllResults, prices: Prices | None = None) -> ReportTable:
    """What a question cost, of every kind of cost; money only where every model has a price."""
    priced = None if find_missing_prices(sets, prices) else prices
    by_set = [summarize_costs(measured.rows.values(), priced) for measured in sets]
    heads = [
        f"{what}{measured.label_suffix}"
        for measured in sets
        for what in ("total", "median", "95th percentile")
    ]
    rows: list[Sequence[object]] = []
    for name in dict.fromkeys(name for each in by_set for name in each):
        amounts = [
            amount for each in by_set for amount in each.get(name, (0, None, None, None))[1:]
        ]
        rows.append((name, *("" if amount is None else f"{amount:,.6g}" for amount in amounts)))
    return ReportTable(["a question", *heads], rows)


def find_missing_prices(sets: AllResults, prices: Prices | None) -> list[str]:
    """Why money is left out, if it is."""
    reasons = []
    for measured in sets:
        try:
            summarize_costs(measured.rows.values(), prices)
        except InputError as exc:
            reasons.append(f"{measured.name}: money is left out. {exc}")
    return reasons


def make_loss_table(sets: AllResults) -> ReportTable:
    """Lost answers by agent, by stage and in all, each by hops; no rows if none is known of."""
    hops = sorted(
        {hop for measured in sets for counts in measured.losses_by_agent.values() for hop in counts}
    )
    columns = [(measured, hop) for measured in sets for hop in hops]
    heads = [
        f"hops {hop}{measured.label_suffix}" if hop else f"answers{measured.label_suffix}"
        for measured, hop in columns
    ]
    blamed = list(dict.fromkeys(key for measured in sets for key in measured.losses_by_agent))
    lines = [(name, stage, [(name, stage)]) for name, stage in blamed]
    for stage in dict.fromkeys(stage for _, stage in blamed):
        lines.append(("all", stage, [key for key in blamed if key[1] == stage]))
    lines += [("all", "", blamed)] if blamed else []
    rows = []
    for name, stage, keys in lines:
        counts = (
            sum(each.losses_by_agent[key][hop] for key in keys if key in each.losses_by_agent)
            for each, hop in columns
        )
        rows.append((name, stage, *counts))
    return ReportTable(["lost at", "stage", *heads], rows)


def make_linking_table(sets: AllResults) -> ReportTable:
    """The share of gold vertices and predicates that were linked, and that were among the candidates."""
    rows = []
    for what in ("vertices", "predicates"):
        for of, words in (("linked", "linked"), ("candidates", "among the candidates")):
            shares = [
                compute_linking_recall([*measured.rows.values()], what, of) for measured in sets
            ]
            if any(share is not None for share in shares):
                rows.append(
                    (f"gold {what} {words}", *("–" if s is None else f"{s:.3f}" for s in shares))
                )
    return ReportTable(["recall of linking", *(measured.name for measured in sets)], rows)


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
