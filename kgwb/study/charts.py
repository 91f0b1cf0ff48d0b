"""Figures for a paper: bars with their intervals, as SVG or PDF, or as LaTeX that includes a PDF.

They are one column wide, and in greys with hatches, so that they can be told apart in print. They are
drawn by matplotlib (``kgwb[figures]``), which embeds its fonts in a PDF.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kgwb import disk
from kgwb.bench.figures import MEASURE_LABELS, AllResults, LoadedResults, distinct_keys
from kgwb.bench.statistics import wilson_interval
from kgwb.errors import InputError
from kgwb.study.error_analysis import ErrorAnalysis
from kgwb.study.tables import (
    DEFAULT_MEASURES,
    compare_two,
    escape_latex,
    make_changes_table,
    make_error_table,
    make_table,
)
from kgwb.text import display_name, shorten, single_line
from kgwb.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHARTS = ("quality", "losses", "changes", "errors")
"""The names of the figures that ``make_chart`` returns."""
EMPTY_HINTS = {
    "losses": "find where answers were lost first: kgwb bench --ladder with the same --out",
    "changes": "no question was fixed or broken: print the table instead (--table changes)",
    "errors": "first code the sample in a notebook: kgwb.ErrorCoding(FOLDER, NAME)",
}
"""What to do if a figure has nothing to show."""
CHART_FORMATS = ("svg", "pdf", "latex")
WIDTH_INCHES = 3.33
"""The width of a column of most two-column papers."""
FONT_POINTS = 8.0
"""The size of all text: still above 7 points in a column of 3.03 inches."""
BAR_INCHES = 0.13
GAP_INCHES = 0.08
"""The space between the bars of two categories."""
FRAME_INCHES = 0.5
"""The height of the axis below a panel, with its label."""
LEGEND_ROW_INCHES = 0.17
LABEL_CHARS = 26
"""Characters of a line of a category's label."""
LABEL_LINES = 2
FILLS = (
    ("0.35", ""),
    ("1.0", "/////"),
    ("0.75", ""),
    ("1.0", "....."),
    ("0.0", ""),
    ("1.0", ""),
    ("0.75", "xxxxx"),
    ("1.0", "-----"),
)
"""The grey and the hatch of each series: told apart also without the grey."""
_LATEX_FILE_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Bar(NamedTuple):
    """A value with the ends of its interval, which are the value itself where it has none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """Values that are drawn in one grey: one for each category, None where it is not known."""

    name: str
    bars: Sequence[Bar | None]


@dataclass(frozen=True)
class Panel:
    """Groups of bars over one axis."""

    axis: str
    """What the axis measures."""
    categories: Sequence[str]
    series: Sequence[Series]
    is_opposed: bool = False
    """Whether the second of two series goes to the left of 0, on the same line as the first."""


@dataclass(frozen=True)
class Chart:
    """A figure: panels one below the other, whose series have the same names."""

    title: str
    caption: str
    panels: Sequence[Panel]


# --- what the figures hold


def make_chart(
    name: str, all_results: AllResults, *, measures: Sequence[str] = DEFAULT_MEASURES
) -> Chart:
    """Return one of CHARTS: "quality", "losses", "changes" or "errors".

    ``measures`` is for "quality". The caption is that of the table of the same name. Raises
    InputError for an unknown name or measure, and what ``make_table`` raises.
    """
    makers = {
        "quality": lambda: _make_quality_chart(all_results, measures),
        "losses": lambda: _make_losses_chart(all_results),
        "changes": lambda: _make_changes_chart(all_results),
        "errors": lambda: _make_errors_chart(all_results[0]),
    }
    if name not in makers:
        raise InputError(
            f"kgwb cannot draw a figure {name!r} of results",
            hint=f"name one of {', '.join(CHARTS)} with --figure",
        )
    chart = makers[name]()
    if not any(panel.categories for panel in chart.panels):
        raise InputError(
            f"the figure {name!r} was not drawn: there is nothing to show in it",
            hint=EMPTY_HINTS.get(name, "name folders with results"),
        )
    return chart


def _make_quality_chart(all_results: AllResults, measures: Sequence[str]) -> Chart:
    """Return the figure with a group for each results folder, and a bar with its interval for each measure."""
    table = make_table("quality", all_results, measures=measures)
    series = []
    for measure in measures:
        bars = []
        for results in all_results:
            estimate = results.groups["all"].estimate(measure)
            bars.append(Bar(*estimate) if estimate else None)
        series.append(Series(MEASURE_LABELS[measure], bars))
    names = [results.name for results in all_results]
    return Chart("Quality", table.caption, [Panel("mean over questions", names, series)])


def _make_losses_chart(all_results: AllResults) -> Chart:
    """Return the figure of the ladder: how many answers each agent lost, in each results folder."""
    table = make_table("losses", all_results)
    counts_by_agent = []
    for results in all_results:
        counts: Counter[str] = Counter()
        for (agent, _), by_hops in results.losses_by_agent.items():
            counts[agent] += by_hops[""]
        counts_by_agent.append(counts)
    agents = distinct_keys(counts_by_agent)
    series = []
    for results, counts in zip(all_results, counts_by_agent, strict=True):
        bars = [_count_bar(counts[agent]) for agent in agents]
        series.append(Series(results.name, bars))
    names = list(map(display_name, agents))
    return Chart("Lost answers", table.caption, [Panel("lost answers", names, series)])


def _make_changes_chart(all_results: AllResults) -> Chart:
    """Return the figure of a change: the questions fixed to the right and those broken to the left, by agent.

    Agents without either are left out. Raises InputError unless there are two results.
    """
    comparison = compare_two(all_results)
    agents = []
    for agent, counts in comparison.by_agent.items():
        if counts["fixed"] or counts["broken"]:
            agents.append(agent)
    series = []
    for outcome in ("fixed", "broken"):
        bars = [_count_bar(comparison.by_agent[agent][outcome]) for agent in agents]
        series.append(Series(outcome, bars))
    names = [display_name(agent) or "no decision differs" for agent in agents]
    panel = Panel("questions: broken | fixed", names, series, is_opposed=True)
    return Chart("Fixed and broken", make_changes_table(comparison).caption, [panel])


def _make_errors_chart(results: LoadedResults) -> Chart:
    """Return the figure of an error analysis: the share of each category by coder, with Wilson's interval.

    Categories that nobody gave are left out. Raises InputError if no sample was drawn.
    """
    analysis = ErrorAnalysis.read(results)
    counts_by_coder = {}
    for coder, codings in analysis.codings.items():
        counts_by_coder[coder] = Counter(coding.category for coding in codings.values())
    given: set[str] = set().union(*counts_by_coder.values())
    categories = [category for category in analysis.sample.categories if category in given]
    series = []
    for coder, counts in counts_by_coder.items():
        bars = [_share_bar(counts[category], counts.total()) for category in categories]
        series.append(Series(coder, bars))
    panel = Panel("share of the sample", categories, series)
    return Chart("Categories of errors", make_error_table(results).caption, [panel])


def _count_bar(count: int) -> Bar:
    """Return the bar of a number that has no interval."""
    return Bar(count, count, count)


def _share_bar(count: int, total: int) -> Bar | None:
    """Return the bar of a share with Wilson's interval; None without questions."""
    if not total:
        return None
    return Bar(count / total, *wilson_interval(count, total))


# --- writing


def check_chart_format(format_name: str) -> None:
    """Raise InputError, which lists the formats, unless the name is one of CHART_FORMATS."""
    if format_name not in CHART_FORMATS:
        raise InputError(
            f"a figure cannot be written as {format_name!r}",
            hint=f"name one of these formats: {', '.join(CHART_FORMATS)}",
        )


def write_chart(chart: Chart, path: Path, format_name: str) -> list[Path]:
    """Write a figure in one of CHART_FORMATS, and return the files; files that are there are replaced.

    An SVG and a PDF have title and caption in their metadata. "latex" writes a source with
    ``\\includegraphics`` and ``\\caption``, and the PDF of the same name beside it. Raises InputError
    for another format, if matplotlib is not installed, if a file cannot be written, for a PDF whose
    name LaTeX would misread, and what ``draw_chart`` raises.
    """
    check_chart_format(format_name)
    if format_name != "latex":
        _save(chart, path, format_name)
        return [path]
    image = path.with_suffix(".pdf")
    if image == path or not _LATEX_FILE_NAME.fullmatch(image.name):
        raise InputError(
            f"the figure was not written: LaTeX cannot include {image.name!r} from {path.name!r}",
            hint="name a file that ends in .tex, of letters, digits, '-' and '_' (no spaces)",
        )
    _save(chart, image, "pdf")
    lines = [
        r"\begin{figure}",
        r"\centering",
        rf"\includegraphics[width=\columnwidth]{{{image.name}}}",
        rf"\caption{{{escape_latex(chart.caption)}}}",
        r"\end{figure}",
    ]
    with disk.os_errors_as_input_error(f"cannot write {path}", "name another file"):
        disk.write_atomically(path, ["\n".join(lines), "\n"], "replace")
    return [path, image]


def _save(chart: Chart, path: Path, format_name: str) -> None:
    """Draw a figure and write it as "svg" or "pdf", the same bytes each time."""
    title = single_line(chart.title)
    caption = single_line(chart.caption)
    creator = f"kgwb {__version__}"
    metadata: dict[str, Any] = {"Title": title, "Creator": creator}
    if format_name == "svg":
        metadata |= {"Description": caption, "Date": None}
    else:
        metadata |= {"Subject": caption, "CreationDate": None}
    with _styled(), warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        try:
            figure = draw_chart(chart)
            with (
                disk.os_errors_as_input_error(f"cannot write {path}", "name another file"),
                disk.draft_of(path) as draft,
            ):
                figure.savefig(draft, format=format_name, metadata=metadata)
        except UserWarning as exc:
            raise InputError(
                f"the figure was not written: {single_line(exc)}",
                hint="use letters that DejaVu Sans has (Latin, Greek, Cyrillic, ...) in the names of folders "
                "and categories, or print the table",
            ) from exc


@contextmanager
def _styled() -> Iterator[None]:
    """Draw with the same styles for everybody: matplotlib's defaults and what a figure for print needs.

    Text stays text in an SVG, fonts are embedded in a PDF, and no name is read as a formula. Raises
    InputError, with the command, if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as exc:
        raise InputError(
            "no figure was drawn: the package matplotlib is not installed",
            hint="install it: pip install 'kgwb[figures]'",
        ) from exc
    style: Any = {  # a type checker asks for the literal names of all parameters
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": FONT_POINTS,
        "axes.labelsize": FONT_POINTS,
        "axes.linewidth": 0.6,
        "xtick.labelsize": FONT_POINTS,
        "ytick.labelsize": FONT_POINTS,
        "legend.fontsize": FONT_POINTS,
        "hatch.linewidth": 0.5,
        "text.parse_math": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "kgwb",
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        yield


def draw_chart(chart: Chart) -> Figure:
    """Draw a figure with the present style of matplotlib, and return it.

    Raises InputError if it has more series than there are FILLS.
    """
    from matplotlib.figure import Figure

    series_count = max(len(panel.series) for panel in chart.panels)
    if series_count > len(FILLS):
        raise InputError(
            f"the figure was not drawn: it would have {series_count} kinds of bars, and at most "
            f"{len(FILLS)} can be told apart",
            hint="name fewer folders or measures, or print the table",
        )
    heights = list(map(_panel_height, chart.panels))
    legend_rows = -(-series_count // 2)
    height = sum(heights) + legend_rows * LEGEND_ROW_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    panels = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(panels, chart.panels, strict=True):
        _draw_panel(axes, panel)
    _draw_legend(figure, chart.panels[0].series)
    return figure


def _panel_height(panel: Panel) -> float:
    """Return the height of a panel in inches, by the number of its bars and of the lines of its labels."""
    lines = 1 if panel.is_opposed else len(panel.series)
    height = FRAME_INCHES
    for category in panel.categories:
        label_lines = _wrap(category).count("\n") + 1
        height += max(lines, label_lines) * BAR_INCHES + GAP_INCHES
    return height


def _draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw the bars of a panel, the first category at the top."""
    groups = range(len(panel.categories))
    lines = 1 if panel.is_opposed else len(panel.series)
    thickness = BAR_INCHES * lines / (BAR_INCHES * lines + GAP_INCHES) / lines
    for number, series in enumerate(panel.series):
        opposed = panel.is_opposed and number == 1
        line = 0 if panel.is_opposed else number
        offset = (line - (lines - 1) / 2) * thickness
        for group, bar in zip(groups, series.bars, strict=True):
            if bar is not None:
                _draw_bar(axes, group + offset, thickness, _mirror(bar) if opposed else bar, number)
    axes.set_yticks(groups, list(map(_wrap, panel.categories)))
    axes.set_ylim(len(panel.categories) - 0.5, -0.5)
    axes.set_xlabel(single_line(panel.axis))
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.is_opposed:
        axes.axvline(0, color="black", linewidth=0.6)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.locator_params(axis="x", nbins=5)


def _mirror(bar: Bar) -> Bar:
    """Return a bar that goes to the left of 0."""
    return Bar(-bar.value, -bar.high, -bar.low)


def _draw_bar(axes: Axes, place: float, thickness: float, bar: Bar, number: int) -> None:
    """Draw a bar of the series of a number, and its interval as a thin line with caps."""
    grey, hatch = FILLS[number]
    axes.barh(
        place, bar.value, thickness, color=grey, hatch=hatch, edgecolor="black", linewidth=0.5
    )
    if bar.low < bar.high:
        # A line that is grey around a black core is seen on dark bars, too.
        ends = [bar.low, bar.high]
        axes.plot(ends, [place, place], color="white", linewidth=1.8, solid_capstyle="butt")
        axes.plot(ends, [place, place], color="black", linewidth=0.8, marker="|", markersize=3)


def _draw_legend(figure: Figure, series: Sequence[Series]) -> None:
    """Draw the legend above the panels; none for a single series without a name."""
    from matplotlib.patches import Patch

    if not any(each.name for each in series):
        return
    patches = []
    for each, (grey, hatch) in zip(series, FILLS, strict=False):
        patch = Patch(facecolor=grey, hatch=hatch, edgecolor="black", linewidth=0.5)
        name = shorten(single_line(each.name), LABEL_CHARS)
        if name.startswith("_"):
            name = f"\N{WORD JOINER}{name}"  # matplotlib leaves out a name that begins with "_"
        patch.set_label(name)
        patches.append(patch)
    figure.legend(handles=patches, loc="outside upper center", ncols=2, frameon=False)


def _wrap(label: str) -> str:
    """Return a category's label in at most LABEL_LINES lines; what is longer is cut, with an ellipsis."""
    lines = textwrap.wrap(single_line(label), LABEL_CHARS, max_lines=LABEL_LINES, placeholder=" …")
    return "\n".join(lines)
