"""Open answers graded by hand in JupyterLab: points, a comment, a refused grade, and undo."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import kgwb
from browser.harness import Site
from kgwb.labs.hand_grades import HandGrades

DISCUSSIONS = ("It depends.", "One would have to ask a model.")


@pytest.mark.timeout(300)
def test_a_person_grades_two_answers_and_takes_one_back(lab: Site) -> None:
    folder = lab.server.folder / "notebooks"
    for name, text in zip(("Ada", "Bob"), DISCUSSIONS, strict=True):
        work = kgwb.lab(2, None)
        work.discuss("2.7", text)
        work.hand_in(name, folder / "graded" / name)
    code = 'from kgwb.labs.hand_grading import HandGrading\nHandGrading("graded", "ann")'
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=[new_code_cell(code)], metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / "grading.ipynb")
    with lab.visit("grading.ipynb") as page:
        page.run_all()
        cell = page.cell("HandGrading(")
        cell.wait("0 of 2 answers graded")
        points = cell.output.get_by_label("The discussion names")
        for typed in ("1", "0.5"):
            points.fill(typed)
            cell.output.get_by_label("comment for the student").fill(f"{typed} & well")
            cell.click("Save and next")
            cell.wait(f"{'1' if typed == '1' else '2'} of 2 answers graded")
        cell.click("Undo", until="1 of 2 answers graded")
    [grade] = HandGrades(folder / "grades").by_grader("ann").values()
    assert (grade.total, grade.comment, grade.discussion) == (1, "1 & well", DISCUSSIONS[0])
