"""The figures of a benchmark as one table, and as data for other programs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

UNITS = {"s": "{:.2f} s", "ms": "{:.3f} ms", "MB": "{:.0f} MB", "questions/s": "{:.1f} questions/s"}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, and how it stands to another one of the same run."""

    what: str
    value: float
    unit: str
    """One of UNITS, or empty for a bare number."""
    ratio: float | None = None
    to: str = ""
    """What the ratio is to."""
    most: float | None = None
    """The ratio wanted at most; None if none is wanted."""
    least: float | None = None
    """The ratio wanted at least."""
    value_most: float | None = None
    """The value wanted at most."""
    p95: float | None = None
    """The 95th percentile, where the value is a median."""

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} times {self.to}"
        wanted = [f"{word} {limit:g}" for word, limit in (("at most", self.most), ("at least", self.least))
                  if limit is not None]  # fmt: skip
        if self.value_most is not None:
            wanted.append("at most " + self._with_unit(self.value_most))
        return (
            self.what,
            self._with_unit(self.value),
            "" if self.p95 is None else f"{self.p95:.3f}",
            ratio,
            ", ".join(wanted),
            {True: "met", False: "MISSED", None: ""}[self.met],
        )

    def _with_unit(self, value: float) -> str:
        return UNITS.get(self.unit, "{:,.0f}").format(value)

    @property
    def met(self) -> bool | None:
        """Whether it is as wanted; None if nothing is."""
        tests = [
            *(
                [self.ratio <= self.most]
                if self.ratio is not None and self.most is not None
                else []
            ),
            *(
                [self.ratio >= self.least]
                if self.ratio is not None and self.least is not None
                else []
            ),
            *([self.value <= self.value_most] if self.value_most is not None else []),
        ]
        return all(tests) if tests else None


def seconds_rows(what: str, figures: dict[str, float]) -> list[Row]:
    """Rows of medians in seconds by name; a name "A / B" holds the ratio of the two."""
    ratios = {name.partition(" / ")[0]: name for name in figures if " / " in name}
    return [
        Row(f"{what}: {name}", 1000 * value, "ms", *_ratio(figures, ratios.get(name)))
        for name, value in figures.items()
        if " / " not in name
    ]


def _ratio(figures: dict[str, float], name: str | None) -> tuple[float | None, str]:
    return (figures[name], name.partition(" / ")[2]) if name else (None, "")


def show(rows: Iterable[Row]) -> None:
    """Print rows as a table."""
    table = [("", "", "p95", "ratio", "wanted", ""), *(row.cells for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(6)]
    for what, *figures in table:
        figures[:2] = [
            text.rjust(width) for text, width in zip(figures[:2], widths[1:3], strict=True)
        ]
        cells = [what, *figures]
        cells = [text.ljust(width) for text, width in zip(cells, widths, strict=True)]
        print("  ".join(cells).rstrip())


def save(rows: Sequence[Row], path: Path) -> None:
    """Write rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = [{**asdict(row), "met": row.met} for row in rows]
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_between(text: str, page: Path, begin: str, end: str) -> None:
    """Replace what stands between two lines of a page by a text."""
    head, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, tail = rest.partition(end)
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]
