"""``kgwb score``: what scorers of one's own say of recorded answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb.background import progress_bar
from kgwb.cli.arguments import option, positional
from kgwb.cli.terminal import print_tables
from kgwb.errors import InputError

if TYPE_CHECKING:
    from kgwb.bench.results import BenchRow


@dataclass(kw_only=True)
class ScoreCommand:
    """score recorded answers by a function of yours, a judging model, or your own labels"""

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
    folder: Path = positional("DIR", "folder of kgwb bench --out")

    def run(self) -> None:
        """Store the labels, apply the scorers, and print the table of all scores of the results folder.

        The scores are stored in the folder; the questions are not asked again. A judging model is
        asked once for each answer. With new labels, the scorer of the question set's labels is
        applied too. A scorer that is named twice is applied once. Raises InputError for labels
        without ``questions`` or of a question that the folder does not have, if there are no scores
        to print, and what ``score_results`` raises.
        """
        from kgwb.bench.figures import LoadedResults
        from kgwb.bench.judgements import (
            LABELS_PREFIX,
            make_scores_table,
            open_scorer,
            score_results,
        )

        results = LoadedResults.read(self.folder)
        specs = list(self.scorer)
        if self.right or self.wrong:
            self._add_labels(results.rows)
            specs.append(f"{LABELS_PREFIX}{self.questions}")
        scorers = [open_scorer(spec) for spec in dict.fromkeys(specs)]
        total = len(scorers) * len(results.rows)
        with progress_bar(total=total, unit="score") as bar:
            score_results(self.folder, scorers, bar.update)
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
        from kgwb.bench.judgements import add_label

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
