"""``kgwb errors``: a sample of the lost questions, and what people say went wrong in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgwb.cli.arguments import PositiveInt, option, positional
from kgwb.cli.terminal import print_tables
from kgwb.errors import InputError


@dataclass(kw_only=True)
class ErrorsCommand:
    """draw a sample of the lost questions for an error analysis, and print what people say of it"""

    sample: PositiveInt | None = option("N", "draw a sample of N lost questions")
    seed: int = option("N", "draws another sample (default: 0)", 0)
    by: str = option("NAME", "divide the sample by agent (default) or by kind of question", "agent")
    category: list[str] = option(
        "TEXT", "a category of yours (default: the agents, and what else can be to blame)", []
    )
    folder: Path = positional("DIR", "folder of kgwb bench --out")

    def run(self) -> None:
        """Draw the sample that --sample asks for, or print the tables of the analysis.

        The tables are the shares of the categories, the agreement of the coders, their disagreements,
        and the figures without questions whose gold is wrong. Raises InputError for categories
        without --sample, and what ``draw_sample`` and ``ErrorAnalysis.read`` raise.
        """
        from kgwb.bench.figures import LoadedResults
        from kgwb.bench.judgements import ErrorAnalysis, draw_sample

        results = LoadedResults.read(self.folder)
        if self.sample is not None:
            draw_sample(
                results,
                self.sample,
                seed=self.seed,
                stratified_by=self.by,
                categories=self.category,
            )
        elif self.category:
            raise InputError(
                "--category has no effect without --sample: categories are chosen when a sample is drawn",
                hint="give --sample N, too, or leave --category out",
            )
        analysis = ErrorAnalysis.read(results)
        print(analysis.describe())
        if not analysis.codings:
            print(
                f'nobody has coded it yet; in a notebook: kgwb.ErrorCoding("{self.folder}", "NAME")'
            )
        print_tables(*analysis.list_tables())
