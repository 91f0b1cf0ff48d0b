"""A lab of one's own, made from the example, done by a student in two languages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from browser.harness import Site
from kgwb.cli import main
from kgwb.labs.tasks import load_lab

MAX_LAB_LINES = 60
OPEN_LAB = 'import kgwb\nlab = kgwb.lab("my_lab.py", None, language="{}")\nlab'
ANSWERS = (
    ("my_lab.1", "0", "len(films.select(query).rows)"),
    ("my_lab.2", "['Drama']", "'thriller'"),
    ("my_lab.3", "lab.lab.tasks['my_lab.3'].open_run()", "answer.go()"),
)
"""Each task with an answer that is wrong, and one that is right."""
SETUP = (
    'films = kgwb.open_kg("films")\n'
    'query = "SELECT ?film { ?film a <https://kgwb.example/films/Film> }"'
)
ENGLISH = {"right": "right", "wrong": "not yet", "solved": "solved"}
GERMAN = {"right": "richtig", "wrong": "noch nicht", "solved": "gelöst"}


@pytest.mark.parametrize(("language", "words"), [("en", ENGLISH), ("de", GERMAN)])
def test_an_own_lab_is_done_in_each_of_its_languages(
    lab: Site, language: str, words: Mapping[str, str], tmp_path: Path
) -> None:
    assert main(["labs", "new", str(tmp_path)]) == 0
    source = (tmp_path / "my_lab.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_LAB_LINES
    for path in tmp_path.glob("my_lab.*"):
        shutil.copy(path, lab.server.folder / "notebooks")
    cells = [OPEN_LAB.format(language), SETUP]
    for name, wrong, right in ANSWERS:
        cells.append(f'answer = {wrong}\nlab.check("{name}", answer)')
        cells.append(f'answer = {right}\nlab.check("{name}", answer)')
    tasks = load_lab(str(tmp_path / "my_lab.py"), language).tasks
    notebook = lab.server.write("own_lab.ipynb", *cells, "lab")
    with lab.visit(notebook) as page:
        page.run_all()
        for number, task in enumerate(tasks.values()):
            place = 2 + 2 * number
            page.cell(place).wait(task.title).wait(words["wrong"])
            page.cell(place + 1).wait(task.title).wait(words["right"])
        overview = page.cell(len(cells)).wait(words["solved"]).text
        assert overview.count(words["solved"]) == len(tasks)
