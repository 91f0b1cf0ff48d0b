"""What the notebooks name on the screen is there, after Run All and the clicks that they ask for.

``named`` says how a text names something. Notebooks that another test runs anyway are walked there.
"""

from __future__ import annotations

import pytest

from browser.harness import Site
from browser.named import named, walk

WALK = (
    "00_start.ipynb",
    "10_chatty_kg.ipynb",
    "11_edit_and_rerun.ipynb",
    "52_papers.ipynb",
)
LABS = {"labs/1_from_question_to_sparql.ipynb": "Continue", "labs/3_all_systems.ipynb": "Mute"}
"""What the texts of the labs name, in which bold stands for more than that; the cell ``kgwb.debug(run)`` shows it."""


def test_what_a_text_names_and_asks_to_click() -> None:
    text = "Press **qir** and then **Edit\nas a form**. **Compare** shows it.\n\n| **Result** | what comes |"
    assert list(named(text)) == [
        ("qir", True),
        ("Edit as a form", True),
        ("Compare", False),
        ("Result", False),
    ]


@pytest.mark.parametrize("notebook", WALK)
def test_what_a_notebook_names_is_on_the_screen(lab: Site, notebook: str) -> None:
    with lab.visit(notebook) as page:
        assert walk(page, notebook) == []


@pytest.mark.parametrize(("notebook", "name"), LABS.items())
def test_what_a_lab_names_is_on_the_screen(lab: Site, notebook: str, name: str) -> None:
    with lab.visit(notebook) as page:
        page.cell("import kgwb").run()
        page.cell("kgwb.debug(run)").run().settle().button(name).first.wait_for()
