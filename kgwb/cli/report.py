"""``kgwb report``: results as one HTML file, or a table or figure for a paper; ``pack``: as an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgwb.background import progress_bar
from kgwb.bench import Report, load_prices, load_questions
from kgwb.bench.exports import pack_results, unpack_results
from kgwb.bench.figures import LoadedResults
from kgwb.bench.papers import Chart, check_chart_format, make_chart, make_table, write_chart
from kgwb.cli.arguments import PRICES_HELP, PositiveInt, option, positional
from kgwb.cli.terminal import write_and_print
from kgwb.errors import InputError
from kgwb.text import pluralize, single_line


@dataclass(kw_only=True)
class ReportCommand:
    """The arguments of ``kgwb report``, and its work."""

    folders: list[Path] = positional(
        "DIR", "folder of kgwb bench --out, or an archive of kgwb pack"
    )
    out: Path | None = option("FILE", "HTML file to write (default: report.html in the first DIR)")
    published: str | None = option(
        "SET", "also show the figures that papers print for this question set"
    )
    questions: Path | None = option(
        "FILE", "score the answers by the gold of this file (default: by that of the first DIR)"
    )
    prices: Path | None = option("FILE", PRICES_HELP)
    to: str | None = option(
        "FORMAT",
        "print a table for a paper instead: latex, markdown or csv (with --out: write it); "
        "with --figure: svg, pdf or latex",
    )
    table: str = option(
        "NAME", "the table for --to: quality (default), cost, losses, changes or errors", "quality"
    )
    figure: str | None = option(
        "NAME",
        "with --to and --out: draw a figure in place of a table: quality, losses, changes or errors",
    )
    measures: str = option(
        "NAME,NAME,...", "the measures of the table or figure quality", "precision,recall,f1"
    )
    baseline: str | None = option(
        "NAME", "with --to: mark what differs from this folder more than by chance"
    )

    def run(self) -> None:
        """Write the HTML report of the folders, or, with ``to``, a table or figure for a paper.

        The report is at ``out``, or report.html in the first folder. Raises InputError for folders
        without results, an unknown format, table, figure, measure or baseline, for ``figure``
        without ``to`` and ``out``, and for a file that cannot be written.
        """
        self.folders = self._unpack_archives()
        if self.figure is not None:
            self._write_figure(self.figure)
            return
        if self.to is not None:
            self._write_table(self.to)
            return
        page = self.out or self.folders[0] / "report.html"
        write_report(self.folders, page, self.prices, self.published, self.questions)

    def _unpack_archives(self) -> list[Path]:
        """Return the folders to report on; an archive of ``kgwb pack`` stands for the folders in it.

        "artifact.zip" is unpacked into the folder "artifact" beside it. Raises what
        ``unpack_results`` raises.
        """
        folders = []
        for path in self.folders:
            if path.is_file():
                folders += unpack_results(path, path.with_suffix(""))
            else:
                folders.append(path)
        return folders

    def _write_figure(self, name: str) -> None:
        """Write the figure of this name to ``out`` in the format of ``to``, and print its caption and files.

        Raises InputError without ``to`` or ``out``, for an unknown figure, format or measure, and
        what ``write_chart`` raises.
        """
        check_chart_format(self.to or "")
        if self.out is None:
            raise InputError(
                "the figure was not drawn: it needs a file", hint="name one with --out FILE"
            )
        chart = make_chart(name, self._read_results(), measures=self.measures.split(","))
        print_chart(chart, self.out, str(self.to))

    def _read_results(self) -> Sequence[LoadedResults]:
        """Read the folders, scored by the gold of ``questions`` if it is given."""
        questions = load_questions(self.questions) if self.questions else []
        return Report(*self.folders, questions=questions).results

    def _write_table(self, format_name: str) -> None:
        """Print the table that ``table`` names in a format for papers, or write it to ``out`` and print the path.

        Raises InputError for an unknown format, table, measure or baseline, and if the file cannot
        be written; it is replaced if it is there.
        """
        table = make_table(
            self.table,
            self._read_results(),
            measures=self.measures.split(","),
            baseline=self.baseline,
        )
        text = table.to_format(format_name)
        if self.out is None:
            print(text, end="")
            return
        write_and_print(self.out, text)


def print_chart(chart: Chart, path: Path, format_name: str) -> None:
    """Write a figure, and print its caption and its files. Raises what ``write_chart`` raises."""
    files = write_chart(chart, path, format_name)
    print(single_line(chart.caption), *files, sep="\n")


def write_report(
    folders: Sequence[Path | LoadedResults],
    page: Path,
    prices: Path | None = None,
    published: str | None = None,
    questions: Path | None = None,
    drawn_by: LoadedResults | None = None,
) -> Report:
    """Write the report of results folders to ``page``, print its main figures and its path, and return it.

    The first folder is compared with each of the others. ``prices`` is a table of prices (default:
    kgwb's), and ``published`` the question set whose figures in papers are shown. Answers are
    scored by the gold of the file ``questions`` if it is given. ``drawn_by`` is that of
    ``ResultsComparison``. Raises InputError if a folder has
    no results, or the page cannot be written.
    """
    with_gold = load_questions(questions) if questions else []
    with progress_bar(unit="run") as bar:
        report = Report(
            *folders,
            published=published,
            prices=load_prices(prices),
            finished=bar.update,
            questions=with_gold,
            drawn_by=drawn_by,
        )
        headline = list(report.headline())
        path = report.save(page)
    print(*headline, path, sep="\n")
    return report


@dataclass(kw_only=True)
class PackCommand:
    """The arguments of ``kgwb pack``, and its work."""

    folders: list[Path] = positional("DIR", "folder of kgwb bench --out")
    to: Path = option("FILE", "the archive to write (default: artifact.zip)", Path("artifact.zip"))
    license: str = option(
        "IRI", "licence of the results, such as https://spdx.org/licenses/CC-BY-4.0", ""
    )
    max_graph_mb: PositiveInt = option("MB", "leave out a larger graph (default: 50)", 50)

    def run(self) -> None:
        """Write the archive, and print its path and what is not in it.

        Raises what ``pack_results`` raises.
        """
        packed = pack_results(
            self.folders, self.to, license_iri=self.license, max_graph_mb=self.max_graph_mb
        )
        print(f"{packed.path}: {pluralize(packed.file_count, 'file')}")
        for sentence in packed.left_out:
            print(f"  left out: {sentence}")
