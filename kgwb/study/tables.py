"""Tables for a paper: LaTeX, Markdown or CSV, with the best values in bold and a caption.

LaTeX needs the package booktabs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from kgwb.bench.changes import ResultsComparison
from kgwb.bench.figures import (
    MEASURE_LABELS,
    AllResults,
    LoadedResults,
    ReportTable,
    make_cost_table,
    make_loss_table,
)
from kgwb.bench.metrics import Estimate, compare_results
from kgwb.bench.results import RESULTS_FILE
from kgwb.bench.runner import fingerprint
from kgwb.bench.statistics import SIGNIFICANCE_LEVEL, holm_adjusted
from kgwb.errors import InputError
from kgwb.study.error_analysis import ErrorAnalysis
from kgwb.text import display_name, pluralize, single_line, source_name

DEFAULT_MEASURES = ("precision", "recall", "f1")
SIGNIFICANT = "†"
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "\N{NO-BREAK SPACE}": "~",
    "–": "--",
    "→": r"$\rightarrow$",
    "\N{MINUS SIGN}": "$-$",
    SIGNIFICANT: r"\textsuperscript{\dag}",
}
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, LATEX_ESCAPES)))
_MARKDOWN_SPECIAL = re.compile(r"([\\|*_`<>\[\]])")


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    is_best: bool = False
    """Whether it is the best of its column, which is shown in bold."""


@dataclass(frozen=True)
class PaperTable:
    """A table with its caption. The first column has names, the others values."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def to_latex(self) -> str:
        """Return the table as the source of a LaTeX table with caption and the rules of booktabs.

        The best value of a column is bold; all text is escaped.
        """
        columns = "l" + "r" * (len(self.headers) - 1)
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(self.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row(map(escape_latex, self.headers)),
            r"\midrule",
        ]
        for row in self.rows:
            lines.append(_latex_row(map(_latex_cell, row)))
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def to_markdown(self) -> str:
        """Return the table as a Markdown table, with its caption below; the best value of a column is bold."""
        rules = ["---"] + ["---:"] * (len(self.headers) - 1)
        lines = [_markdown_row(map(_escape_markdown, self.headers)), _markdown_row(rules)]
        for row in self.rows:
            lines.append(_markdown_row(map(_markdown_cell, row)))
        lines += ["", _escape_markdown(self.caption)]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the table as CSV text with a line of headers. The caption and what is best are left out."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.headers)
        for row in self.rows:
            writer.writerow(cell.text for cell in row)
        return file.getvalue()


FORMATS: Mapping[str, Callable[[PaperTable], str]] = {
    "latex": PaperTable.to_latex,
    "markdown": PaperTable.to_markdown,
    "csv": PaperTable.to_csv,
}


def format_table(table: PaperTable, format_name: str) -> str:
    """Return a table in one of FORMATS. Raises InputError for another format."""
    check_format(format_name)
    return FORMATS[format_name](table)


def check_format(format_name: str) -> None:
    """Raise InputError, which lists the formats, unless the name is one of FORMATS."""
    if format_name not in FORMATS:
        raise InputError(
            f"a table cannot be written as {format_name!r}",
            hint=f"name one of these formats: {', '.join(FORMATS)}",
        )


def escape_latex(text: str) -> str:
    """Return a text as LaTeX shows it: no character in it is a command."""
    return _LATEX_SPECIAL.sub(lambda match: LATEX_ESCAPES[match[0]], single_line(text))


def _latex_cell(cell: Cell) -> str:
    """Return a cell as LaTeX, the best of a column in bold."""
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.is_best else text


def _latex_row(cells: Iterable[str]) -> str:
    """Return the line of a row of LaTeX."""
    return " & ".join(cells) + r" \\"


def _escape_markdown(text: str) -> str:
    """Return a text as Markdown shows it: no character in it is markup."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", single_line(text))


def _markdown_cell(cell: Cell) -> str:
    """Return a cell as Markdown, the best of a column in bold."""
    text = _escape_markdown(cell.text)
    return f"**{text}**" if cell.is_best else text


def _markdown_row(cells: Iterable[str]) -> str:
    """Return the line of a row of Markdown."""
    return f"| {' | '.join(cells)} |"


# --- what the tables hold


def make_table(
    name: str,
    all_results: AllResults,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    baseline: str | None = None,
) -> PaperTable:
    """Return one of TABLES: "quality", "cost", "losses", "changes" or "errors".

    ``measures`` and ``baseline`` are for "quality". "changes" compares the first results with the
    second ones. "errors" is the error analysis of the first results. Raises InputError for an
    unknown table, measure or baseline, if the results do not have the same questions and gold, for
    "changes" unless there are two results, and for "errors" without an error analysis.
    """
    if name == "quality":
        return make_quality_table(all_results, measures, baseline)
    if name == "changes":
        return make_changes_table(compare_two(all_results))
    if name == "errors":
        return make_error_table(all_results[0])
    if name not in TABLES:
        raise InputError(
            f"kgwb cannot print a table {name!r} of results",
            hint=f"name one of {', '.join(TABLES)} with --table",
        )
    makers = {"cost": make_cost_table, "losses": make_loss_table}
    titles = {"cost": "What a question costs.", "losses": "Where answers were lost."}
    return from_report_table(
        makers[name](all_results), f"{titles[name]} {describe_setups(all_results)}"
    )


TABLES = ("quality", "cost", "losses", "changes", "errors")
"""The names of the tables that ``make_table`` returns."""


def from_report_table(table: ReportTable, caption: str) -> PaperTable:
    """Return a report's table with a caption as a table for a paper: all cells as text, none marked as best."""
    rows = []
    for row in table.rows:
        rows.append([Cell(str(cell)) for cell in row])
    return PaperTable(caption, list(map(str, table.headers)), rows)


def compare_two(all_results: AllResults) -> ResultsComparison:
    """Compare the first results with the second ones. Raises InputError unless there are two."""
    if len(all_results) != 2:
        raise InputError(
            f"what changed is shown of two folders of results, and {len(all_results)} were given",
            hint="name the folder before the change, then the one after it: kgwb report BEFORE AFTER",
        )
    before, after = all_results
    return ResultsComparison(before, after)


def make_changes_table(comparison: ResultsComparison) -> PaperTable:
    """Return how many questions a change has fixed and broken, by the agent that decided differently first.

    There is a column for each outcome, and a last row for all questions. The caption has F1 before
    and after, with its difference, whether that may be chance, and how many questions would tell.
    """
    before, after = comparison.before, comparison.after
    headers = ["first decision that differs", *comparison.shown_outcomes]
    rows = []
    for agent, counts in comparison.by_agent.items():
        name = display_name(agent) or "none"
        rows.append([name, *(counts[outcome] for outcome in comparison.shown_outcomes)])
    all_counts = (comparison.counts[outcome] for outcome in comparison.shown_outcomes)
    rows.append(["all questions", *all_counts])
    effect = comparison.describe_f1()
    if comparison.needed_questions:
        effect += f"; {comparison.needed_questions}"
    caption = (
        f"What became of each question, from {before.name} to {after.name}. "
        f"{effect}. {describe_setups([before, after])}"
    )
    return from_report_table(ReportTable(headers, rows), caption)


def make_error_table(results: LoadedResults) -> PaperTable:
    """Return the shares of the categories of an error analysis, by coder, with kappa in the caption.

    Raises InputError if no sample was drawn, or if a file of the analysis is damaged.
    """
    analysis = ErrorAnalysis.read(results)
    caption = f"What went wrong, with Wilson's 95 % intervals: {analysis.describe()}."
    for coders, agreed, kappa in analysis.make_agreement_table().rows:
        caption += f" {coders}: the same category for {agreed}, Cohen's kappa {kappa}."
    caption += f" {describe_setups([results])}"
    return from_report_table(analysis.make_category_table(), caption)


def make_quality_table(
    all_results: AllResults,
    measures: Sequence[str] = DEFAULT_MEASURES,
    baseline: str | None = None,
) -> PaperTable:
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
    rows = []
    for position, results in enumerate(all_results):
        row = [Cell(results.name)]
        for measure in measures:
            estimate = results.groups["all"].estimate(measure)
            text = str(estimate or "–")
            if (position, measure) in marked:
                text += SIGNIFICANT
            is_best = are_comparable and _is_best(estimate, measure, all_results)
            row.append(Cell(text, is_best))
        rows.append(row)
    headers = ["system"]
    headers += [MEASURE_LABELS[measure] for measure in measures]
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
    return PaperTable(caption, headers, rows)


def _have_same_questions(all_results: AllResults) -> bool:
    """Return whether all results have the same questions with gold."""
    return len({frozenset(_ids_with_gold(results)) for results in all_results}) < 2


def _ids_with_gold(results: LoadedResults) -> set[str]:
    """Return the ids of the questions that have gold."""
    return {id_ for id_, row in results.rows.items() if row["gold"] is not None}


def _is_best(estimate: Estimate | None, measure: str, all_results: AllResults) -> bool:
    """Return whether a value is the highest of several results, also one of equals.

    False for None, and if there is one result only.
    """
    if estimate is None or len(all_results) < 2:
        return False
    for results in all_results:
        other = results.groups["all"].estimate(measure)
        if other and other.value > estimate.value:
            return False
    return True


def _find_significant(
    all_results: AllResults, measures: Sequence[str], baseline: str | None
) -> set[tuple[int, str]]:
    """Return the position of results and the measure of each value that differs from the baseline's.

    It differs if its p-value, adjusted over all these comparisons by Holm's method, is below
    SIGNIFICANCE_LEVEL. Empty without a baseline. Raises InputError for an unknown one, and if the
    results do not have the same questions with gold: the values are means over all of them.
    """
    if baseline is None:
        return set()
    base = _find_results(all_results, baseline)
    if not _have_same_questions(all_results):
        raise InputError(
            f"no value can be marked as different from that of {baseline}: the results do not have the same "
            "questions with gold",
            hint="name results of one question set, or leave --baseline out",
        )
    p_values = {}
    for position, results in enumerate(all_results):
        if results is base:
            continue
        for measure in measures:
            comparison = compare_results(
                list(base.rows.values()), list(results.rows.values()), measure
            )
            p_values[position, measure] = comparison.p_value
    adjusted = holm_adjusted(list(p_values.values()))
    significant = set()
    for key, p_value in zip(p_values, adjusted, strict=True):
        if p_value < SIGNIFICANCE_LEVEL:
            significant.add(key)
    return significant


def _find_results(all_results: AllResults, name: str) -> LoadedResults:
    """Return the results with this name. Raises InputError, which lists the names, if there are none."""
    for results in all_results:
        if results.name == name:
            return results
    names = ", ".join(results.name for results in all_results)
    raise InputError(
        f"the baseline {name!r} is none of the folders of results",
        hint=f"name one of {names} with --baseline",
    )


def describe_setups(all_results: AllResults) -> str:
    """Return a sentence for each folder that says what was measured, joined: a part of a caption.

    It has questions, graph, system, profile, models, the day of the last result, and the version of
    kgwb with a fingerprint of the whole set-up.
    """
    return " ".join(map(_describe_setup, all_results))


def _describe_setup(results: LoadedResults) -> str:
    """Return the sentence of ``describe_setups`` for one folder."""
    config = results.config
    settings = config.get("settings") or {}
    profile = settings.get("profile", "unknown")
    graph = source_name(str(config.get("source")))
    questions = pluralize(len(results.rows), "question")
    models = ", ".join(dict.fromkeys(results.model_specs.values()))
    what = f"{questions} on {graph}, system {config.get('system')}, profile {profile}"
    day = find_day(results.folder)
    how = f"model {models}, {day}, kgwb {config.get('kgwb')}, set-up {fingerprint_setups([config])}"
    return f"{results.name}: {what}, {how}."


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
        entries = {name: value for name, value in config.items() if name != "source"}
        texts.append(json.dumps(entries, sort_keys=True, default=str))
    return fingerprint("\n".join(texts))[:8]
