"""An error analysis as two people make it: 20 lost questions of the films each, in the browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import kgwb
from browser.harness import Cell, Site
from kgwb.bench import Benchmark, BenchSetup, Results, load_questions
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import ErrorAnalysis

CATEGORIES = {"ann": ("qir", "gold is wrong"), "bob": ("qir", "other")}
"""What each says of every second question, beginning with the first."""


@pytest.fixture
def results(lab: Site) -> Path:
    """20 questions of the films with the gold of another question, so that all are lost."""
    asked = load_questions("sample_kgs/films.questions.jsonl")[:20]
    wrong = (f"{asked[0].answers[0]}-of-nobody",) if asked[0].answers else ()
    lost = [question.model_copy(update={"answers": wrong, "sparql": None}) for question in asked]
    folder = lab.server.folder / "notebooks" / "lost"
    shutil.rmtree(folder, ignore_errors=True)
    setup = BenchSetup.from_workbench(kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules")))
    Benchmark(setup, Results(folder, setup.to_config()), save_runs=True).run(lost)
    return folder


def code_all(cell: Cell, categories: tuple[str, str]) -> None:
    """Give all questions of the sample their categories."""
    for number in range(20):
        cell.wait(f"{number} of 20 coded")
        cell.output.get_by_label("what went wrong").select_option(categories[number % 2])
        cell.fill("a note", f"note {number}")
        cell.click("Save and next")
    cell.wait("20 of 20 coded")


def test_two_people_code_twenty_lost_questions(lab: Site, results: Path) -> None:
    cells = [new_code_cell("import kgwb")]
    cells += [new_code_cell(f'kgwb.ErrorCoding("lost", "{coder}")') for coder in CATEGORIES]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, lab.server.folder / "notebooks" / "coding.ipynb")
    with lab.visit("coding.ipynb") as page:
        page.run_all()
        for coder, categories in CATEGORIES.items():
            code_all(page.cell(f'"{coder}"'), categories)
    analysis = ErrorAnalysis.read(LoadedResults.read(results))
    for coder, (first, second) in CATEGORIES.items():
        given = [coding.category for coding in analysis.codings[coder].values()]
        assert given == [first, second] * 10
        assert analysis.codings[coder][analysis.sample.ids[3]].note == "note 3"
    [agreement] = analysis.make_agreement_table().rows
    # Observed 0.5; by chance 0.5 * 0.5 = 0.25: (0.5 - 0.25) / (1 - 0.25) = 0.33.
    assert str(agreement[2]).startswith("0.33 [")
