"""What a paper needs: tables and figures to print, and the experiments of published papers with ours beside them.

Tables are LaTeX (with the package booktabs), Markdown or CSV. Figures are SVG or PDF, one column wide,
and in greys with hatches, so that they can be told apart in print.

What an experiment consists of stands in ``experiments/*.toml``, one file for each paper. Figures there
are those that the paper prints; nothing in these files was measured by kgwb. What kgwb has measured
itself is in ``measured/*.jsonl.gz``, a file for each experiment. A line is one configuration on one
question set: its set-up, and the scores of each question. Answers and gold are not in it, since the
question sets are not kgwb's. The model is ``rules``, so that everybody can measure the same again
without a key.
"""

from __future__ import annotations

import json
import random
import re
import textwrap
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from kgwb import disk
from kgwb.bench.comparisons import ResultsComparison
from kgwb.bench.figures import (
    MEASURE_LABELS,
    AllResults,
    LoadedResults,
    distinct_keys,
    make_cost_table,
    make_loss_table,
)
from kgwb.bench.judgements import ErrorAnalysis
from kgwb.bench.metrics import MEASURES, Estimate, QuestionGroup, compare_results, estimate_mean
from kgwb.bench.questions import BenchQuestion, make_standalone_questions
from kgwb.bench.results import RESULTS_FILE, BenchRow
from kgwb.bench.runner import fingerprint
from kgwb.bench.statistics import SIGNIFICANCE_LEVEL, holm_adjusted, wilson_interval
from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.kg import SAMPLE_NAMES, sample_path
from kgwb.records import JsonObject, frozen
from kgwb.show.html import Html, render_template
from kgwb.show.static_form import load_style
from kgwb.show.tables import SIGNIFICANT, Best, Table, escape_latex, import_pandas
from kgwb.text import display_name, pluralize, shorten, single_line, source_name, tell_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_MEASURES = ("precision", "recall", "f1")
TABLES = ("quality", "cost", "losses", "changes", "errors")
"""The names of the tables that ``make_table`` returns."""
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
STYLE_FILE = Path(__file__).with_name("figure.mplstyle")
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


# --- what the tables hold


def make_table(
    name: str,
    all_results: AllResults,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    baseline: str | None = None,
) -> Table:
    """Return one of TABLES: "quality", "cost", "losses", "changes" or "errors".

    ``measures`` and ``baseline`` are for "quality". "changes" compares the first results with the
    second ones. "errors" is the error analysis of the first results. Raises InputError for an
    unknown table, measure or baseline, if the results do not have the same questions and gold, for
    "changes" unless there are two results, and for "errors" without an error analysis.
    """
    match name:
        case "quality":
            return _make_quality_table(all_results, measures, baseline)
        case "changes":
            return _make_changes_table(_compare_two(all_results))
        case "errors":
            return make_error_table(all_results[0])
        case "cost":
            table = make_cost_table(all_results)
            title = "What a question costs."
        case "losses":
            table = make_loss_table(all_results)
            title = "Where answers were lost."
        case _:
            raise InputError(
                f"kgwb cannot print a table {name!r} of results",
                hint=f"name one of {', '.join(TABLES)} with --table",
            )
    return table.with_caption(f"{title} {describe_setups(all_results)}")


def _compare_two(all_results: AllResults) -> ResultsComparison:
    """Compare the first results with the second ones. Raises InputError unless there are two."""
    if len(all_results) != 2:
        raise InputError(
            f"what changed is shown of two folders of results, and {len(all_results)} were given",
            hint="name the folder before the change, then the one after it: kgwb report BEFORE AFTER",
        )
    before, after = all_results
    return ResultsComparison(before, after)


def _make_changes_table(comparison: ResultsComparison) -> Table:
    """Return how many questions a change has fixed and broken, by the agent that decided differently first.

    The caption has F1 before and after, with its difference, whether that may be chance, and how
    many questions would tell.
    """
    before, after = comparison.before, comparison.after
    effect = "; ".join(filter(None, (comparison.describe_f1(), comparison.needed_questions)))
    return comparison.make_agent_table().with_caption(
        f"What became of each question, from {before.name} to {after.name}. "
        f"{effect}. {describe_setups([before, after])}"
    )


def make_error_table(results: LoadedResults) -> Table:
    """Return the shares of the categories of an error analysis, by coder, with kappa in the caption.

    Raises InputError if no sample was drawn, or if a file of the analysis is damaged.
    """
    analysis = ErrorAnalysis.read(results)
    caption = f"What went wrong, with Wilson's 95 % intervals: {analysis.describe()}."
    for coders, agreed, kappa in analysis.make_agreement_table().rows:
        caption += f" {coders}: the same category for {agreed}, Cohen's kappa {kappa}."
    return analysis.make_category_table().with_caption(f"{caption} {describe_setups([results])}")


def _make_quality_table(
    all_results: AllResults, measures: Sequence[str], baseline: str | None
) -> Table:
    """Return a table with a row for each results folder and a column for each measure.

    Each value has its 95 % bootstrap interval over questions, and the highest of a column is the
    best. If the results do not have the same questions with gold, none is: the caption says so.

    With a ``baseline``, the name of a folder, values that differ from the baseline's are marked with
    SIGNIFICANT: by the paired permutation test of ``compare_results``, with p-values adjusted by
    Holm's method over all comparisons of the table. Raises InputError for an unknown measure or
    baseline, and if results are compared that do not have the same questions and gold.
    """
    for measure in measures:
        if measure not in MEASURE_LABELS:
            raise InputError(
                f"a table of results cannot show {measure!r}, which is not a measure",
                hint=f"choose one of {', '.join(MEASURE_LABELS)}",
            )
    marked = _find_significant(all_results, measures, baseline)
    are_comparable = _have_same_questions(all_results)
    has_best = are_comparable and len(all_results) > 1
    rows: list[list[str]] = [[results.name] for results in all_results]
    for measure in measures:
        estimates = [results.groups["all"].estimate(measure) for results in all_results]
        highest = max((each.value for each in estimates if each), default=None)
        for position, estimate in enumerate(estimates):
            text = str(estimate or "–")
            if (position, measure) in marked:
                text += SIGNIFICANT
            if has_best and estimate and estimate.value == highest:
                text = Best(text)
            rows[position].append(text)
    caption = (
        f"Quality, with 95 % bootstrap intervals over questions. {describe_setups(all_results)}"
    )
    if not are_comparable:
        caption += " They are of different questions, so that none is marked as the best."
    if baseline is not None:
        caption += (
            f" {SIGNIFICANT} differs from {baseline}: paired permutation test, p < "
            f"{SIGNIFICANCE_LEVEL} after Holm's correction."
        )
    labels = map(MEASURE_LABELS.__getitem__, measures)
    return Table(["system", *labels], rows, caption)


def _have_same_questions(all_results: AllResults) -> bool:
    """Return whether all results have the same questions with gold."""
    all_ids = set()
    for results in all_results:
        ids = {id_ for id_, row in results.rows.items() if row["gold"] is not None}
        all_ids.add(frozenset(ids))
    return len(all_ids) < 2


def _find_significant(
    all_results: AllResults, measures: Sequence[str], baseline: str | None
) -> set[tuple[int, str]]:
    """Return the position of results and the measure of each value that differs from the baseline's.

    It differs if its p-value, adjusted over all these comparisons by Holm's method, is below
    SIGNIFICANCE_LEVEL. The baseline is the first of several results with its name; empty without one.
    Raises InputError for an unknown one, and if the results do not have the same questions with
    gold: the values are means over all of them.
    """
    if baseline is None:
        return set()
    names = [results.name for results in all_results]
    if baseline not in names:
        raise InputError(
            f"the baseline {baseline!r} is none of the folders of results",
            hint=f"name one of {', '.join(names)} with --baseline",
        )
    if not _have_same_questions(all_results):
        raise InputError(
            f"no value can be marked as different from that of {baseline}: the results do not have the same "
            "questions with gold",
            hint="name results of one question set, or leave --baseline out",
        )
    base = all_results[names.index(baseline)]
    base_rows = list(base.rows.values())
    p_values = {}
    for position, results in enumerate(all_results):
        if results is base:
            continue
        rows = list(results.rows.values())
        for measure in measures:
            comparison = compare_results(base_rows, rows, measure)
            p_values[position, measure] = comparison.p_value
    adjusted = holm_adjusted(list(p_values.values()))
    significant = set()
    for key, p_value in zip(p_values, adjusted, strict=True):
        if p_value < SIGNIFICANCE_LEVEL:
            significant.add(key)
    return significant


def describe_setups(all_results: AllResults) -> str:
    """Return a sentence for each folder that says what was measured, joined: a part of a caption.

    It has questions, graph, system, profile, models, the day of the last result, and the version of
    kgwb with a fingerprint of the whole set-up.
    """
    sentences = []
    for results in all_results:
        config = results.config
        settings = config.get("settings") or {}
        profile = settings.get("profile", "unknown")
        graph = source_name(str(config.get("source")))
        questions = pluralize(len(results.rows), "question")
        models = ", ".join(dict.fromkeys(results.model_specs.values()))
        setup = f"kgwb {config.get('kgwb')}, set-up {fingerprint_setups([config])}"
        sentences.append(
            f"{results.name}: {questions} on {graph}, system {config.get('system')}, profile {profile}, "
            f"model {models}, {find_day(results.folder)}, {setup}."
        )
    return " ".join(sentences)


def find_day(folder: Path) -> str:
    """Return the day, in UTC, on which the results in a folder were last changed: "2026-01-31"."""
    modified = (folder / RESULTS_FILE).stat().st_mtime
    return datetime.fromtimestamp(modified, UTC).date().isoformat()


def fingerprint_setups(configs: Iterable[Mapping[str, Any]]) -> str:
    """Return 8 hexadecimal digits that stand for the configurations of results folders, in their order.

    Where the graph's file lies does not count: ``kg`` tells which graph it is.
    """
    texts = []
    for config in configs:
        entries = dict(config)
        entries.pop("source", None)
        texts.append(json.dumps(entries, sort_keys=True, default=str))
    return fingerprint("\n".join(texts))[:8]


# --- what the figures hold


@frozen
class Panel:
    """Groups of bars over one axis."""

    axis: str
    """What the axis measures."""
    categories: Sequence[str]
    series: Mapping[str, Sequence[Estimate | None]]
    """By its name, a value for each category; None where it is not known.

    The ends of its interval are the value itself where it has none.
    """
    is_opposed: bool = False
    """Whether the second of two series goes to the left of 0, on the same line as the first."""


@frozen
class Chart:
    """A figure: panels one below the other, whose series have the same names."""

    title: str
    caption: str
    panels: Sequence[Panel]


def make_chart(
    name: str, all_results: AllResults, *, measures: Sequence[str] = DEFAULT_MEASURES
) -> Chart:
    """Return one of CHARTS: "quality", "losses", "changes" or "errors".

    ``measures`` is for "quality". The caption is that of the table of the same name. Raises
    InputError for an unknown name or measure, if there is nothing to show, and what ``make_table``
    raises.
    """
    if name not in CHARTS:
        raise InputError(
            f"kgwb cannot draw a figure {name!r} of results",
            hint=f"name one of {', '.join(CHARTS)} with --figure",
        )
    if name == "changes":
        comparison = _compare_two(all_results)
        caption = _make_changes_table(comparison).caption
    else:
        caption = make_table(name, all_results, measures=measures).caption
    match name:
        case "quality":
            title = "Quality"
            panel = _make_quality_panel(all_results, measures)
        case "losses":
            title = "Lost answers"
            panel = _make_losses_panel(all_results)
        case "changes":
            title = "Fixed and broken"
            panel = _make_changes_panel(comparison)
        case _:
            title = "Categories of errors"
            panel = _make_errors_panel(ErrorAnalysis.read(all_results[0]))
    if not panel.categories:
        raise InputError(
            f"the figure {name!r} was not drawn: there is nothing to show in it",
            hint=EMPTY_HINTS.get(name, "name folders with results"),
        )
    return Chart(title, caption, [panel])


def _make_quality_panel(all_results: AllResults, measures: Sequence[str]) -> Panel:
    """Return a group for each results folder, and a bar with its interval for each measure."""
    names = [results.name for results in all_results]
    series = {}
    for measure in measures:
        label = MEASURE_LABELS[measure]
        series[label] = [results.groups["all"].estimate(measure) for results in all_results]
    return Panel("mean over questions", names, series)


def _make_losses_panel(all_results: AllResults) -> Panel:
    """Return how many answers each agent lost by the ladder, in each results folder.

    Results of one name are numbered by their places.
    """
    all_counts = [results.count_losses() for results in all_results]
    agents = distinct_keys(all_counts)
    names = tell_apart(
        range(len(all_results)),
        (
            lambda place: all_results[place].name,
            lambda place: f"{all_results[place].name} ({place + 1})",
        ),
    )
    series = {}
    for place, counts in enumerate(all_counts):
        series[names[place]] = [_count_bar(counts[agent]) for agent in agents]
    return Panel("lost answers", list(map(display_name, agents)), series)


def _make_changes_panel(comparison: ResultsComparison) -> Panel:
    """Return the questions fixed to the right and those broken to the left, by agent.

    Agents without either are left out.
    """
    names = []
    series: dict[str, list[Estimate | None]] = {"fixed": [], "broken": []}
    for agent, counts in comparison.by_agent.items():
        if counts["fixed"] or counts["broken"]:
            names.append(display_name(agent) or "no decision differs")
            for outcome, bars in series.items():
                bars.append(_count_bar(counts[outcome]))
    return Panel("questions: broken | fixed", names, series, is_opposed=True)


def _make_errors_panel(analysis: ErrorAnalysis) -> Panel:
    """Return the share of each category of an error analysis by coder, with Wilson's interval.

    Categories that nobody gave are left out.
    """
    counts_by_coder = {}
    for coder, codings in analysis.codings.items():
        counts_by_coder[coder] = Counter(coding.category for coding in codings.values())
    given = distinct_keys(counts_by_coder.values())
    categories = [category for category in analysis.sample.categories if category in given]
    series: dict[str, list[Estimate | None]] = {}
    for coder, counts in counts_by_coder.items():
        total = counts.total()
        shares: list[Estimate | None] = []
        for category in categories:
            if not total:
                shares.append(None)
                continue
            count = counts[category]
            low, high = wilson_interval(count, total)
            shares.append(Estimate(count / total, low, high))
        series[coder] = shares
    return Panel("share of the sample", categories, series)


def _count_bar(count: float) -> Estimate:
    """Return the bar of a number that has no interval."""
    return Estimate(count, count, count)


# --- writing figures


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
    for another format, if pandas or matplotlib is not installed, if a file cannot be written, for a
    PDF whose name LaTeX would misread, for letters that the font lacks, and for more series than
    there are FILLS.
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
    source = rf"""\begin{{figure}}
\centering
\includegraphics[width=\columnwidth]{{{image.name}}}
\caption{{{escape_latex(chart.caption)}}}
\end{{figure}}
"""
    with disk.os_errors_as_input_error(f"cannot write {path}", "name another file"):
        disk.write_atomically(path, [source], "replace")
    return [path, image]


def _save(chart: Chart, path: Path, format_name: str) -> None:
    """Draw a figure and write it as "svg" or "pdf", the same bytes each time."""
    caption = single_line(chart.caption)
    metadata: dict[str, Any] = {"Title": single_line(chart.title), "Creator": f"kgwb {__version__}"}
    if format_name == "svg":
        metadata |= {"Description": caption, "Date": None}
    else:
        metadata |= {"Subject": caption, "CreationDate": None}
    with _styled(), warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        try:
            figure = _draw_chart(chart)
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
    """Draw with the same styles for everybody: matplotlib's defaults, and those of STYLE_FILE.

    Raises InputError, with the command, if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as exc:
        raise InputError(
            "no figure was drawn: the package matplotlib is not installed",
            hint="install it: pip install 'kgwb[figures]'",
        ) from exc
    with matplotlib.rc_context():
        matplotlib.rc_file(STYLE_FILE)
        yield


def _draw_chart(chart: Chart) -> Figure:
    """Draw a figure with the present style of matplotlib, and return it.

    Raises InputError if it has more series than there are FILLS.
    """
    from matplotlib.figure import Figure

    names = list(chart.panels[0].series)
    if len(names) > len(FILLS):
        raise InputError(
            f"the figure was not drawn: it would have {len(names)} kinds of bars, and at most "
            f"{len(FILLS)} can be told apart",
            hint="name fewer folders or measures, or print the table",
        )
    heights = list(map(_panel_height, chart.panels))
    legend_rows = -(-len(names) // 2)
    height = sum(heights) + legend_rows * LEGEND_ROW_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    panels = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(panels, chart.panels, strict=True):
        _draw_panel(axes, panel)
    labels = []
    for name in names:
        label = shorten(single_line(name), LABEL_CHARS)
        if label.startswith("_"):  # matplotlib leaves out such a name
            label = f"\N{WORD JOINER}{label}"
        labels.append(label)
    figure.legend(panels[0].containers, labels, loc="outside upper center", ncols=2, frameon=False)
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
    """Draw the bars of a panel with their intervals, the first category at the top."""
    values = []
    for number, bars in enumerate(panel.series.values()):
        sign = 1
        if panel.is_opposed and number == 1:
            sign = -1
        values.append([sign * bar.value if bar else None for bar in bars])
    pandas = import_pandas()
    columns = list(map(_wrap, panel.categories))
    frame = pandas.DataFrame(values, columns=columns, dtype=float)
    lines = len(panel.series)
    if panel.is_opposed:
        lines = 1
    frame.T.plot.barh(
        ax=axes,
        width=BAR_INCHES * lines / (BAR_INCHES * lines + GAP_INCHES),
        stacked=panel.is_opposed,
        color=[grey for grey, _ in FILLS],
        edgecolor="black",
        linewidth=0.5,
        legend=False,
    )
    for bars, container, (_, hatch) in zip(
        panel.series.values(), axes.containers, FILLS, strict=False
    ):
        for bar, patch in zip(bars, container, strict=True):
            patch.set_hatch(hatch)
            if bar and bar.low < bar.high:
                # A line that is white around a black core is seen on dark bars, too.
                ends = [bar.low, bar.high]
                middle = patch.get_y() + patch.get_height() / 2
                places = [middle, middle]
                axes.plot(ends, places, color="white", linewidth=1.8, solid_capstyle="butt")
                axes.plot(ends, places, color="black", linewidth=0.8, marker="|", markersize=3)
    axes.invert_yaxis()
    axes.set_xlabel(single_line(panel.axis))
    axes.tick_params(axis="y", length=0)
    if panel.is_opposed:
        axes.axvline(0, color="black", linewidth=0.6)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.locator_params(axis="x", nbins=5)


def _wrap(label: str) -> str:
    """Return a category's label in at most LABEL_LINES lines; what is longer is cut, with an ellipsis."""
    return textwrap.fill(single_line(label), LABEL_CHARS, max_lines=LABEL_LINES, placeholder=" …")


# --- experiments

EXPERIMENTS_FOLDER = Path(__file__).with_name("experiments")
MEASURED_FOLDER = Path(__file__).with_name("measured")
COST_LABELS = {
    "seconds": "seconds",
    "model_calls": "model calls",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "executed_queries": "executed queries",
}
"""The costs of a question that papers print: the fields of a row, with their labels."""
LABELS = MEASURE_LABELS | COST_LABELS
"""The label of each measure that an experiment may have."""
SAMPLE_SEED = 0
"""The seed by which questions are drawn where a paper measured an unpublished sample."""
Published = Mapping[str, tuple[float, ...]]
"""The printed figures of a row of a table: by question set, one for each measure."""


class _Part(BaseModel, frozen=True, extra="forbid"):
    """A part of a file of experiments: an unknown key is an error."""


class GraphOrigin(_Part):
    """A graph that a paper measured on, and where to get it."""

    title: str
    origin: str


class StandIn(_Part):
    """Questions that can be asked in place of those that a paper asked. They are not comparable."""

    file: str
    reason: str
    """What these questions are, as an apposition: "questions of the dev split"."""
    hops: int | None = None
    """The questions of the file that are asked: those of so many hops. None: all."""
    ids: tuple[str, ...] = ()
    """The questions of the file that are asked: those with these ids. Empty: all."""
    graph: str | None = None
    """The name of the graph that they are asked of, a key of ``Paper.graphs``. None: that of the set."""


class QuestionSet(_Part):
    """A set of questions that a paper asked."""

    title: str
    questions: int
    """How many questions the paper asked."""
    file: str
    """The path of the file below the person's data folder, as its authors named it."""
    origin: str
    graph: str
    """The name of the graph, a key of ``Paper.graphs``."""
    language: str | None = None
    sample: int | None = None
    """How many questions are drawn if the file has more: the paper drew as many."""
    settings: Mapping[str, Any] = {}
    """Settings that this set is measured with, in every configuration."""
    gold_is_names: bool = False
    """Whether gold answers that the file only names stay names.

    Otherwise each name is looked up in the graph, and a question has no gold where a name has no
    vertex or several. A paper that compares names itself loses no question so.
    """
    stand_in: StandIn | None = None


class PublishedRow(_Part):
    """A row of a paper's table that kgwb does not measure: another system, or another model."""

    name: str
    published: Published = {}


class Configuration(PublishedRow):
    """A row of a paper's table that kgwb measures, with the settings that it stands for."""

    settings: Mapping[str, Any]
    language: str | None = None
    """The language in which the questions are asked; None: that of the set."""
    standalone: bool = False
    """Whether the questions of dialogues are asked alone, in their standalone wording."""


class Cost(_Part):
    """What a question costs about, and how that is known."""

    calls: float
    tokens: float
    """Tokens of prompts and completions together."""
    source: str


class AskedQuestion(_Part):
    """A question that a paper prints, with the verdict that its authors gave the answer by hand."""

    id: str
    question: str
    verdict: str


class Experiment(_Part):
    """An experiment of a paper: a table or a figure."""

    id: str
    title: str
    where: str
    """Table, figure or section of the paper."""
    measures: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kinds of question (``BenchQuestion.type``) whose figures are also shown apart."""
    sets: tuple[str, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    others: tuple[PublishedRow, ...] = ()
    differs: tuple[str, ...] = ()
    """What is not as in the paper, beside the model: a sentence each."""
    cannot: str = ""
    """Why the experiment cannot be repeated; empty if it can."""
    asked: tuple[AskedQuestion, ...] = ()
    """The questions of an experiment whose answers were judged by hand, as far as the paper prints them."""


class Paper(_Part):
    """A paper with its experiments: a file of ``experiments/``."""

    paper: str
    """How the paper is cited."""
    model: str
    """The model of its configurations."""
    system: str
    profile: str
    scale: float = 100
    """What a score of 1 is in the paper's tables: 100 if it prints per cent."""
    cost: Cost | None = None
    graphs: Mapping[str, GraphOrigin] = {}
    sets: Mapping[str, QuestionSet] = {}
    experiments: tuple[Experiment, ...]


@cache
def load_papers() -> dict[str, Paper]:
    """Read all files of EXPERIMENTS_FOLDER, and return the papers by the name of their file, in alphabetical order.

    They are read once in a process.
    """
    papers = {}
    for file in sorted(EXPERIMENTS_FOLDER.glob("*.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        papers[file.stem] = Paper.model_validate(data)
    return papers


def count_questions(
    paper: Paper,
    experiment: Experiment,
    limit: int | None,
    set_names: Sequence[str] | None,
) -> int:
    """Return how many questions an experiment asks.

    ``set_names`` has a question set once for each configuration that it is measured with; None
    stands for all sets and configurations. ``limit`` bounds the questions of each set.
    """
    if set_names is None:
        set_names = experiment.sets * len(experiment.configurations)
    count = 0
    for name in set_names:
        size = paper.sets[name].questions
        count += min(size, limit or size)
    return count


def find_experiment(name: str) -> tuple[Paper, Experiment]:
    """Return the paper and the experiment that a name such as "dog.table1_metaqa" stands for.

    Raises InputError for an unknown name; it lists the experiments of that paper, or the papers.
    """
    paper_name, _, experiment_id = name.partition(".")
    paper = load_papers().get(paper_name)
    if paper is None:
        raise InputError(
            f"kgwb has no experiments of a paper {paper_name!r}",
            hint=f"name one of {', '.join(load_papers())}, as in dog.table1_metaqa",
        )
    by_id = {experiment.id: experiment for experiment in paper.experiments}
    if experiment_id in by_id:
        return paper, by_id[experiment_id]
    known = ", ".join(f"{paper_name}.{id_}" for id_ in by_id)
    raise InputError(f"kgwb has no experiment {name!r}", hint=f"name one of {known}")


# --- the questions


@frozen
class QuestionFile:
    """The file of a question set that a person has."""

    path: Path
    stand_in: StandIn | None
    """What stands in for the paper's questions; None if the file has these."""
    graph: str
    """The name of the graph that they are asked of, a key of ``Paper.graphs``."""


def find_question_file(question_set: QuestionSet, folder: Path) -> QuestionFile | None:
    """Return the file of a question set in a data folder, else that of its stand-in, else None.

    Both may also lie in a direct subfolder of the data folder. A stand-in that is not there may be
    a question set of a sample graph, which kgwb brings.
    """
    path = find_file_below(folder, [question_set.file])
    if path:
        return QuestionFile(path, None, question_set.graph)
    stand_in = question_set.stand_in
    if stand_in is None:
        return None
    graph = stand_in.graph or question_set.graph
    path = find_file_below(folder, [stand_in.file])
    if path is None and graph in SAMPLE_NAMES:
        path = sample_path(graph).with_name(stand_in.file)
    if path is None or not path.is_file():
        return None
    return QuestionFile(path, stand_in, graph)


def find_file_below(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the first file with one of these names in a folder or its direct subfolders; None without one.

    The folder itself comes first, then the subfolders by name; in each, the names are tried in
    their order.
    """
    places = (folder, *sorted(filter(Path.is_dir, folder.glob("*"))))
    for place, name in product(places, names):
        if (place / name).is_file():
            return place / name
    return None


def select_questions(
    questions: Sequence[BenchQuestion],
    question_set: QuestionSet,
    stand_in: StandIn | None,
    configuration: Configuration,
    limit: int | None = None,
) -> list[BenchQuestion]:
    """Return the questions of a file that are asked in a configuration, in the order of the file.

    A stand-in may keep only those of some hops, or those with some ids. If the set is a sample and there are more
    questions, as many are drawn, with the seed SAMPLE_SEED. ``standalone`` takes the questions out
    of their dialogues. At last ``limit`` keeps the first ones. Raises InputError if none is left.
    """
    selected = list(questions)
    if stand_in and stand_in.hops is not None:
        selected = [question for question in selected if question.hops == stand_in.hops]
    if stand_in and stand_in.ids:
        selected = [question for question in selected if question.id in stand_in.ids]
    if question_set.sample and len(selected) > question_set.sample:
        positions = random.Random(SAMPLE_SEED).sample(range(len(selected)), question_set.sample)
        selected = [selected[position] for position in sorted(positions)]
    if question_set.gold_is_names:
        selected = list(map(_keep_gold_names, selected))
    if configuration.standalone:
        selected = make_standalone_questions(selected)
    selected = selected[:limit]
    if not selected:
        raise InputError(
            f"the file of {question_set.title} has no question that this experiment asks",
            hint=f"replace it by the set from {question_set.origin}",
        )
    return selected


def _keep_gold_names(question: BenchQuestion) -> BenchQuestion:
    """Return a question whose gold answers are the names that its file has, if it has nothing else."""
    if question.answers is not None or question.sparql or not question.answer_labels:
        return question
    return question.model_copy(update={"answers": question.answer_labels})


# --- the figures


@frozen
class Measurement:
    """What was measured of one configuration on one question set."""

    set_name: str
    configuration: str
    model: str
    rows: Sequence[BenchRow] = field(repr=False)
    stand_in: StandIn | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The configuration of its results folder; empty if it is not known."""
    day: str = ""
    """The day of its last result, in UTC: "2026-01-31"; "" if it is not known."""

    @property
    def has_scores_alone(self) -> bool:
        """Whether the rows have no answers and gold, as in what kgwb brings (``measured/``)."""
        return not any("gold" in row for row in self.rows)

    def estimate(self, measure: str) -> Estimate | None:
        """Return the mean of a measure over questions, with its 95 % bootstrap interval; None if no row has it.

        Scores are from 0 to 1. Costs are the mean of a question, in the unit of the row's field.
        """
        if measure in MEASURES and not self.has_scores_alone:
            return QuestionGroup("all", self.rows).estimate(measure)
        values = cast("Sequence[Mapping[str, Any]]", self.rows)
        amounts = [float(row[measure]) for row in values if measure in row]
        if not amounts:
            return None
        return estimate_mean(amounts)


def make_experiment_table(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Table:
    """Return the paper's table with our measurements in a column beside its own.

    There is a row for each question set, measure and configuration, with the published figure and
    ours, which has its interval. A figure that is not known is "–".
    """
    measured = _by_set_and_configuration(measurements)
    headers = ["questions", "measure", "configuration", f"published, {paper.model}", "here"]
    rows = []
    parts = product(experiment.sets, enumerate(experiment.measures), experiment.configurations)
    for set_name, (position, measure), configuration in parts:
        ours = measured.get((set_name, configuration.name))
        row = [
            paper.sets[set_name].title,
            LABELS[measure],
            configuration.name,
            _format_published(experiment, configuration, set_name, position),
            _format_measured(ours, measure, paper.scale),
        ]
        rows.append(row)
    return Table(headers, rows)


def _by_set_and_configuration(
    measurements: Iterable[Measurement],
) -> dict[tuple[str, str], Measurement]:
    """Return measurements by the name of the question set and that of the configuration."""
    return {(each.set_name, each.configuration): each for each in measurements}


def make_experiment_chart(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Chart:
    """Return the figure of an experiment: the published figures, and ours with their intervals.

    There is a panel for each measure, and a pair of bars for each question set and configuration.
    Where the paper prints no number, ours stand alone. The caption is that of the table.
    """
    measured = _by_set_and_configuration(measurements)
    measured_sets = {set_name for set_name, _ in measured}
    set_names = [name for name in experiment.sets if name in measured_sets]
    pairs = list(product(set_names, experiment.configurations))
    categories = []
    for set_name, configuration in pairs:
        title = paper.sets[set_name].title
        category = f"{title}: {configuration.name}"
        if len(experiment.configurations) == 1:
            category = title
        elif len(set_names) == 1:
            category = configuration.name
        categories.append(category)
    panels = []
    for position, measure in enumerate(experiment.measures):
        published: list[Estimate | None] = []
        ours: list[Estimate | None] = []
        for set_name, configuration in pairs:
            figures = configuration.published.get(set_name)
            published.append(_count_bar(figures[position]) if figures else None)
            own = measured.get((set_name, configuration.name))
            ours.append(_scaled_estimate(own, measure, paper.scale))
        series = {"here": ours}
        if any(row.published for row in experiment.configurations):
            series = {f"published, {paper.model}": published, "here": ours}
        panels.append(Panel(LABELS[measure], categories, series))
    chart_title = f"{paper.paper}, {experiment.where}"
    caption = make_caption(paper, experiment, measurements)
    return Chart(chart_title, caption, panels)


def _scaled_estimate(
    measurement: Measurement | None, measure: str, scale: float
) -> Estimate | None:
    """Return the mean of a measure with its interval; a score is multiplied by ``scale``. None without one."""
    estimate = None
    if measurement:
        estimate = measurement.estimate(measure)
    if estimate is None or measure not in MEASURES:
        return estimate
    return Estimate(*(scale * number for number in estimate))


def describe_availability(paper: Paper, experiment: Experiment, folder: Path) -> str:
    """Return how many of an experiment's question sets are in a folder: "2 of 3 question sets at hand".

    Of an experiment that cannot be repeated, return just that.
    """
    if experiment.cannot:
        return "cannot be repeated"
    there = 0
    for name in experiment.sets:
        if find_question_file(paper.sets[name], folder):
            there += 1
    return f"{there} of {pluralize(len(experiment.sets), 'question set')} at hand"


def make_kinds_table(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Table:
    """Return a table of our figures by kind of question, which has no row if the experiment has no kinds.

    There is a row for each measurement and measure, and a column for each kind.
    """
    headers = ["questions", "measure", "configuration", *experiment.kinds]
    rows: list[list[str]] = []
    if not experiment.kinds:
        return Table(headers, rows)
    for measurement, measure in product(measurements, experiment.measures):
        title = paper.sets[measurement.set_name].title
        row = [title, LABELS[measure], measurement.configuration]
        for kind in experiment.kinds:
            of_kind = [each for each in measurement.rows if each.get("type") == kind]
            part = replace(measurement, rows=of_kind) if of_kind else None
            row.append(_format_measured(part, measure, paper.scale))
        rows.append(row)
    return Table(headers, rows)


def make_others_table(paper: Paper, experiment: Experiment) -> Table:
    """Return a table of the paper's other rows, which kgwb does not measure: other systems and models.

    There is a column for each question set and measure; a figure that the paper lacks is "–".
    """
    columns = list(product(experiment.sets, enumerate(experiment.measures)))
    headers = ["system"]
    for set_name, (_, measure) in columns:
        headers.append(f"{paper.sets[set_name].title}, {LABELS[measure]}")
    rows = []
    for other in experiment.others:
        row = [other.name]
        for set_name, (position, _) in columns:
            row.append(_format_published(experiment, other, set_name, position))
        rows.append(row)
    return Table(headers, rows)


def make_asked_table(experiment: Experiment) -> Table:
    """Return a table of the questions that a paper prints, with the authors' verdicts; without any it has no rows."""
    rows = [(asked.id, asked.question, asked.verdict) for asked in experiment.asked]
    return Table(("id", "question", "published"), rows)


def _format_published(
    experiment: Experiment, row: PublishedRow, set_name: str, position: int
) -> str:
    """Return the figure at a position of a row that the paper prints for a set, as text; "–" if it has none.

    All figures of a measure have as many decimals as the paper prints for it.
    """
    figures = row.published.get(set_name)
    if not figures:
        return "–"
    decimals = 0
    for each in (*experiment.configurations, *experiment.others):
        for others in each.published.values():
            text = f"{others[position]:.6f}".rstrip("0")
            decimals = max(decimals, len(text.partition(".")[2]))
    return f"{figures[position]:.{decimals}f}"


def _format_measured(measurement: Measurement | None, measure: str, scale: float) -> str:
    """Return the mean of a measure with its interval, as text: "85.1 [80.2, 89.0]"; "–" without one.

    A score is multiplied by ``scale``, that of the paper's table.
    """
    estimate = _scaled_estimate(measurement, measure, scale)
    if estimate is None:
        return "–"
    digits = 1 if measure in MEASURES and scale != 1 else 3
    value, low, high = (f"{number:.{digits}f}" for number in estimate)
    return f"{value} [{low}, {high}]"


def list_differences(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Iterator[str]:
    """Yield a sentence for everything that differs from the paper's set-up: the model, the questions, and more.

    First come the sentences of ``list_measured_differences``, then what the experiment itself
    lists.
    """
    yield from list_measured_differences(paper, measurements)
    yield from experiment.differs


def list_measured_differences(paper: Paper, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a sentence for each model, and for each set with other questions than the paper's.

    A set with questions that do not count, since they have no gold, has a sentence of its own.
    """
    models = dict.fromkeys(measurement.model for measurement in measurements)
    for model in models:
        yield f"The model here is {model}; the paper's is {paper.model}."
    titles: dict[tuple[str, str], dict[str, None]] = {}  # configurations of a set have one reason
    for measurement in measurements:
        question_set = paper.sets[measurement.set_name]
        reason = _why_incomparable(question_set, measurement)
        if reason:
            count = pluralize(len(measurement.rows), "question")
            alike = titles.setdefault((count, reason), {})
            alike[question_set.title] = None
    for (count, reason), titles_of_reason in titles.items():
        each = " each" if len(titles_of_reason) > 1 else ""
        yield f"{'; '.join(titles_of_reason)}: {count}{each}{reason}"
    yield from dict.fromkeys(_describe_missing_gold(paper, measurements))


def _describe_missing_gold(paper: Paper, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a sentence for each measurement with questions that have no gold."""
    for measurement in measurements:
        count = sum(row.get("gold", ()) is None for row in measurement.rows)
        if count:
            title = paper.sets[measurement.set_name].title
            verb = "has" if count == 1 else "have"
            yield f"{title}: {pluralize(count, 'question')} {verb} no gold answer here, and no score."


def _why_incomparable(question_set: QuestionSet, measurement: Measurement) -> str:
    """Return how the questions that were asked differ from the paper's; "" if they do not.

    It goes on with a sentence that begins with their number.
    """
    if measurement.stand_in:
        return (
            f", {measurement.stand_in.reason}. "
            "They are not those of the paper, so the figures are not comparable."
        )
    if len(measurement.rows) != question_set.questions:
        return f" of the paper's {question_set.questions:,}, so the figures are not comparable."
    return ""


def describe_measurements(paper: Paper, measurements: Sequence[Measurement]) -> str:
    """Return a sentence with what our figures were measured with, and when: a part of a caption.

    It has system, profile, models, the days, and the version of kgwb with a fingerprint of all
    set-ups. Without a known configuration it has the first three.
    """
    models = ", ".join(dict.fromkeys(measurement.model for measurement in measurements))
    text = f"Measured with system {paper.system}, profile {paper.profile}, model {models}"
    configs = [measurement.config for measurement in measurements if measurement.config]
    days = sorted({measurement.day for measurement in measurements if measurement.day})
    if days:
        period = days[0]
        if len(days) > 1:
            period += f" to {days[-1]}"
        text += f", {period}"
    if configs:
        versions = ", ".join(dict.fromkeys(str(config.get("kgwb")) for config in configs))
        text += f", kgwb {versions}, set-up {fingerprint_setups(configs)}"
    return f"{text}."


def make_caption(paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]) -> str:
    """Return the caption of an experiment's table or figure: what it is, the set-up, and what differs."""
    title = f"{paper.paper}, {experiment.where}: {experiment.title}."
    if not measurements:
        return title
    differences = list_differences(paper, experiment, measurements)
    return " ".join([title, describe_measurements(paper, measurements), *differences])


def render_experiment(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> str:
    """Render the page of an experiment as a complete HTML document.

    It has the paper's table with our column, our figures by kind of question, the paper's other
    rows, and all that differs.
    """
    return render_template(
        "bench/templates/experiment.html",
        title=f"{paper.paper}, {experiment.where}",
        style=Html(load_style()),
        experiment=experiment,
        table=make_experiment_table(paper, experiment, measurements).render(),
        kinds=make_kinds_table(paper, experiment, measurements).render(),
        others=make_others_table(paper, experiment).render(),
        setup=describe_measurements(paper, measurements),
        differences=list(list_differences(paper, experiment, measurements)),
        unit="in per cent" if paper.scale == 100 else "from 0 to 1",
    )


class MeasuredLine(BaseModel, frozen=True, extra="forbid"):
    """A line of a file: one configuration on one question set."""

    set: str
    configuration: str
    model: str
    day: str
    is_stand_in: bool
    """Whether the questions are not those of the paper."""
    config: JsonObject
    """The configuration of the results folder, without the place of the graph."""
    ids: tuple[str, ...]
    errors: tuple[str, ...]
    """The ids of the questions that ended in an error."""
    scores: dict[str, tuple[float, ...]]
    """For each measure of the experiment, a value for each id."""


def load_measured(name: str, folder: Path = MEASURED_FOLDER) -> list[Measurement]:
    """Return what kgwb has measured of an experiment; empty if it has not measured it.

    The rows have the id, the error and the measures of the experiment alone. Raises InputError for
    an unknown experiment.
    """
    paper, _ = find_experiment(name)
    path = folder / f"{name}.jsonl.gz"
    if not path.is_file():
        return []
    measurements = []
    for _, entry in disk.read_json_lines(path):
        line = MeasuredLine.model_validate(entry)
        stand_in = None
        if line.is_stand_in:
            stand_in = paper.sets[line.set].stand_in
        rows: list[BenchRow] = []
        for position, id_ in enumerate(line.ids):
            scores = {measure: values[position] for measure, values in line.scores.items()}
            error = "an error" if id_ in line.errors else None
            rows.append({"id": id_, "error": error, **scores})
        measurement = Measurement(
            set_name=line.set,
            configuration=line.configuration,
            model=line.model,
            rows=rows,
            stand_in=stand_in,
            config=line.config,
            day=line.day,
        )
        measurements.append(measurement)
    return measurements
