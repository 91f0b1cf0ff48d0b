"""``kgwb score``, ``rate`` and ``errors``: what functions, models and people say of recorded answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgwb.background import progress_bar
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
from kgwb.bench.results import BenchRow
from kgwb.cli.arguments import SLICE_HELP, PositiveInt, option, positional
from kgwb.cli.terminal import print_tables
from kgwb.errors import InputError
from kgwb.run.models import open_model


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
