"""``kgwb rate``: ratings of answers by people and by models, and how far they agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgwb.background import progress_bar
from kgwb.cli.arguments import option, positional
from kgwb.cli.terminal import print_tables
from kgwb.errors import InputError


@dataclass(kw_only=True)
class RateCommand:
    """let people and models rate recorded answers from 1 to 5, and print the means and the agreement"""

    who: list[str] = option("NAME", "write the file that this person fills in", [])
    judge: list[str] = option("SPEC", "let this model rate every answer", [])
    folder: Path = positional("DIR", "folder of kgwb bench --out")

    def run(self) -> None:
        """Write the forms of new raters, let models rate, then print the tables of means and of agreement.

        The grades of every rater, a person or a model, are in a file of its own in the results
        folder. A form has null for each grade, which the person replaces by 1 to 5. Raises
        InputError for a rater that has a file already, and if the folder has no grades and no form
        was asked for.
        """
        from kgwb.bench.figures import LoadedResults
        from kgwb.bench.judgements import (
            make_agreement_table,
            make_ratings_table,
            rate_by_model,
            read_ratings,
            write_rating_form,
        )
        from kgwb.run.models import open_model

        results = LoadedResults.read(self.folder)
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
        tables = (table, make_agreement_table(ratings))
        print_tables(*(each for each in tables if each.rows))
