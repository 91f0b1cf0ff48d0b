"""What is made of results. ``kgwb report``: one HTML file, or a table or figure for a paper; ``pack``: an
archive; ``score``, ``rate`` and ``errors``: what functions, models and people say of recorded answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgwb.background import progress_bar
from kgwb.bench import Report, load_prices, load_questions
from kgwb.bench.exports import pack_results, unpack_results
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    LABELS_PREFIX,
    ErrorAnalysis,
    add_label,
    draw_sample,
    make_agreement_table,
    make_ratings_table,
    make_scores_table,
    open_scorer,
    rate_by_model,
    read_ratings,
    score_results,
    write_rating_form,
)
from kgwb.bench.papers import Chart, check_chart_format, make_chart, make_table, write_chart
from kgwb.bench.results import BenchRow
from kgwb.cli.arguments import (
    PRICES_HELP,
    SLICE_HELP,
    PositiveInt,
    option,
    positional,
    print_tables,
    write_and_print,
)
from kgwb.errors import InputError
from kgwb.run.models import open_model
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
    ``ResultsComparison``. Raises InputError if a folder has no results, or the page cannot be
    written.
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


@dataclass(kw_only=True)
class ResultsArguments:
    """The arguments that say whose answers are judged."""

    folder: Path = positional("DIR", "folder of kgwb bench --out")
    slice: list[str] = option("tag=NAME", SLICE_HELP, [])

    def read_slice(self) -> LoadedResults:
        """Read the questions in all slices. Raises InputError without any, or if the folder holds no results."""
        return LoadedResults.read(self.folder).in_slices(self.slice)


@dataclass(kw_only=True)
class ScoreCommand(ResultsArguments):
    """The arguments of ``kgwb score``, and its work."""

    scorer: list[str] = option(
        "WHAT",
        "a function (./my.py:score or module:score), judge:SPEC for a model that judges by the gold, "
        "or labels:QUESTIONS for your own labels",
        [],
    )
    right: list[str] = option("ID", "label the answer to this question as right all the same", [])
    wrong: list[str] = option("ID", "label it as wrong all the same", [])
    note: str = option("TEXT", "what is remembered with the labels", "")
    questions: Path | None = option("FILE", "the question set that labels are kept beside")

    def run(self) -> None:
        """Store the labels, apply the scorers, and print the table of all scores of the results folder.

        The scores are stored in the folder; the questions are not asked again. A judging model is
        asked once for each answer. With new labels, the scorer of the question set's labels is
        applied too. A scorer that is named twice is applied once. Raises InputError for labels
        without ``questions`` or of a question that the folder does not have, if there are no scores
        to print, and what ``score_results`` raises.
        """
        results = self.read_slice()
        specs = list(self.scorer)
        if self.right or self.wrong:
            self._add_labels(results.rows)
            specs.append(f"{LABELS_PREFIX}{self.questions}")
        scorers = [open_scorer(spec) for spec in dict.fromkeys(specs)]
        total = len(scorers) * len(results.rows)
        with progress_bar(total=total, unit="score") as bar:
            score_results(self.folder, scorers, bar.update, self.slice)
        table = make_scores_table([results])
        if not table.rows:
            raise InputError(
                f"no scorer was named, and {self.folder} has no scores yet",
                hint="add --scorer, such as --scorer ./my.py:score",
            )
        print_tables(table)

    def _add_labels(self, rows: Mapping[str, BenchRow]) -> None:
        """Store ``right`` and ``wrong`` as labels, with the note, beside the question set.

        All ids are checked before the first label is stored. Raises InputError without a question
        set, or for an id that the results do not have.
        """
        if self.questions is None:
            raise InputError(
                "no label was stored: labels are kept beside a question set, and none was named",
                hint="name it with --questions FILE",
            )
        unknown = [id_ for id_ in (*self.right, *self.wrong) if id_ not in rows]
        if unknown:
            raise InputError(
                f"no label was stored: the results in {self.folder} have no question {', '.join(unknown)}",
                hint="give ids of its questions, as its report shows them",
            )
        for id_ in self.right:
            add_label(self.questions, rows[id_], right=True, note=self.note)
        for id_ in self.wrong:
            add_label(self.questions, rows[id_], right=False, note=self.note)


@dataclass(kw_only=True)
class RateCommand(ResultsArguments):
    """The arguments of ``kgwb rate``, and its work."""

    who: list[str] = option("NAME", "write the file that this person fills in", [])
    judge: list[str] = option("SPEC", "let this model rate every answer", [])

    def run(self) -> None:
        """Write the forms of new raters, let models rate, then print the tables of means and of agreement.

        The grades of every rater, a person or a model, are in a file of its own in the results
        folder. A form has null for each grade, which the person replaces by 1 to 5. Raises
        InputError for a rater that has a file already, and if the folder has no grades and no form
        was asked for.
        """
        results = self.read_slice()
        for name in self.who:
            path = write_rating_form(results, name)
            print(f"{path}: give the grades in place of null, from 1 to 5")
        for spec in self.judge:
            with progress_bar(total=len(results.rows), unit="answer") as bar:
                rate_by_model(results, open_model(spec), bar.update)
        ratings = read_ratings(results)
        table = make_ratings_table(ratings)
        if not table.rows and not self.who:
            raise InputError(
                f"the results in {self.folder} have no grades yet",
                hint="give --who NAME, which writes a file to fill in",
            )
        print_tables(table, make_agreement_table(ratings))


@dataclass(kw_only=True)
class ErrorsCommand(ResultsArguments):
    """The arguments of ``kgwb errors``, and its work."""

    sample: PositiveInt | None = option("N", "draw a sample of N lost questions")
    seed: int = option("N", "draws another sample (default: 0)", 0)
    by: str = option("NAME", "divide the sample by agent (default) or by kind of question", "agent")
    category: list[str] = option(
        "TEXT", "a category of yours (default: the agents, and what else can be to blame)", []
    )
    coders: PositiveInt = option(
        "N", "share the questions out: each is given to N people (default: all)", 0
    )

    def run(self) -> None:
        """Draw the sample that --sample asks for, or print the tables of the analysis.

        The tables are the shares of the categories, the agreement of the coders, their disagreements,
        and the figures without questions whose gold is wrong. Raises InputError for categories or
        slices without --sample, and what ``draw_sample`` and ``ErrorAnalysis.read`` raise.
        """
        results = LoadedResults.read(self.folder)
        if self.sample is not None:
            draw_sample(
                results,
                self.sample,
                seed=self.seed,
                stratified_by=self.by,
                categories=self.category,
                slices=self.slice,
                coders=self.coders,
            )
        elif self.category or self.slice or self.coders:
            raise InputError(
                "--category, --slice and --coders have no effect without --sample: they are of a sample",
                hint="give --sample N, too, or leave them out",
            )
        analysis = ErrorAnalysis.read(results)
        print(analysis.describe())
        if not analysis.codings:
            print(
                f'nobody has coded it yet; in a notebook: kgwb.ErrorCoding("{self.folder}", "NAME")'
            )
        print_tables(*analysis.list_tables())
