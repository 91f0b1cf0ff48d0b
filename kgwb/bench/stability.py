"""How often a question that was asked several times came out right, and which are right by luck."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from kgwb.bench.figures import AllResults, LoadedResults, ReportTable
from kgwb.bench.metrics import Estimate, estimate_mean
from kgwb.bench.results import BenchRow
from kgwb.bench.statistics import wilson_interval
from kgwb.text import and_more

SHOWN_POWERS = (1, 2, 3, 5, 10, 20, 50, 100)
"""The k for which pass^k is shown, as far as each question was asked so often."""


@dataclass(frozen=True, slots=True)
class PassRate:
    """How many asks of a question came out right: their answers were exactly the gold."""

    right: int
    asked: int

    @classmethod
    def of_asks(cls, asks: Sequence[Mapping[str, float] | None]) -> PassRate:
        """Count asks, of which each is its scores, or None for an error. An error is not right."""
        right = 0
        for scores in asks:
            if scores is not None and scores["f1"] == 1:
                right += 1
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
        if not asks:
            return None
        return cls.of_asks(asks)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the chance that an ask comes out right."""
        return wilson_interval(self.right, self.asked)

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
        low, high = self.interval
        return f"{self.right} of {self.asked}\u00a0[{low:.2f},\u00a0{high:.2f}]"


def find_pass_rates(results: LoadedResults) -> dict[str, PassRate]:
    """Return the rate of each question that was asked several times, by its id."""
    rates = {}
    for id_, row in results.rows.items():
        rate = PassRate.of_row(row)
        if rate is not None:
            rates[id_] = rate
    return rates


def estimate_chances(rates: Iterable[PassRate]) -> dict[int, Estimate]:
    """Return the mean of pass^k over questions with its interval, by k.

    There is an entry for those SHOWN_POWERS that are not above the smallest number of asks of a
    question.
    """
    rates = list(rates)
    least_asks = min((rate.asked for rate in rates), default=0)
    chances = {}
    for k in SHOWN_POWERS:
        if k <= least_asks:
            chances[k] = estimate_mean([rate.chance_of_all(k) for rate in rates])
    return chances


def make_stability_table(all_results: AllResults) -> ReportTable:
    """Return a table of how steady answers are, with a row for each folder: counts of questions, and pass^k.

    Counted are the questions that are always, sometimes ("by luck") and never right. Questions that
    a retry repeated do not count: they were chosen for coming out otherwise. Folders without any
    other question that was asked several times have no row.
    """
    counts_by_row = []
    chances_by_row = []
    for results in all_results:
        rates = []
        for id_, rate in find_pass_rates(results).items():
            if not results.rows[id_].get("asks_before"):
                rates.append(rate)
        if rates:
            counts_by_row.append((results.name, *_count_rates(rates)))
            chances_by_row.append(estimate_chances(rates))
    shown_powers = {k for chances in chances_by_row for k in chances}
    headers = ["asked several times", "questions", "always right", "by luck", "never right"]
    for k in sorted(shown_powers):
        headers.append(f"pass^{k}")
    rows = []
    for counts, chances in zip(counts_by_row, chances_by_row, strict=True):
        row: list[object] = list(counts)
        for k in sorted(shown_powers):
            row.append(chances.get(k, "–"))
        rows.append(row)
    return ReportTable(headers, rows)


def _count_rates(rates: Sequence[PassRate]) -> tuple[int, int, int, int]:
    """Return how many questions there are, always right, right by luck, and never right."""
    always = 0
    by_luck = 0
    for rate in rates:
        always += rate.right == rate.asked
        by_luck += rate.is_luck
    never = len(rates) - always - by_luck
    return len(rates), always, by_luck, never


def make_luck_table(all_results: AllResults, limit: int | None = None) -> ReportTable:
    """Return a table of the questions that came out right in some asks and not in others, with their rates.

    Each folder has a column. Those that are right most often come first. At most ``limit`` are
    listed, and a last row says how many there are beyond. Without such questions there are no rows.
    """
    headers = ["right by luck"]
    rates_by_folder = []
    titles: dict[str, str] = {}
    chances: dict[str, float] = {}
    for results in all_results:
        title = "right, with its interval"
        headers.append(title + results.label_suffix)
        rates = find_pass_rates(results)
        rates_by_folder.append(rates)
        for id_, rate in rates.items():
            if rate.is_luck:
                titles.setdefault(id_, results.question_titles[id_])
                chances.setdefault(id_, rate.chance_of_all(1))
    ids = sorted(titles, key=chances.__getitem__, reverse=True)
    shown_ids = ids[:limit]
    rows = []
    for id_ in shown_ids:
        row: list[object] = [titles[id_]]
        for rates in rates_by_folder:
            row.append(rates.get(id_, "–"))
        rows.append(row)
    omitted = len(ids) - len(shown_ids)
    if omitted:
        empty_cells = [""] * len(rates_by_folder)
        rows.append([and_more(omitted), *empty_cells])
    return ReportTable(headers, rows)
