"""What the notebooks of a first walk name on the screen is there, after Run All and the clicks that they ask for.

In their texts, bold stands for what is written on the screen, and for nothing else. From "press", "unfold" or "under"
on, the names of a sentence are clicked in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from browser.harness import Cell, NotebookPage, Site

WALK = (
    "00_start.ipynb",
    "10_chatty_kg.ipynb",
    "11_edit_and_rerun.ipynb",
    "13_your_own_graph.ipynb",
    "60_surveyor.ipynb",
)
SENTENCE_END = re.compile(r"(?<=[.:;])\s+|\n\n|\n\|")
NAME = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
ASKS_TO_CLICK = re.compile(r"\b(press|unfold|under)\b", re.IGNORECASE)


def named(markdown: str) -> Iterator[tuple[str, bool]]:
    """Each name in bold, in order, and whether the text asks to click it."""
    for sentence in SENTENCE_END.split(markdown):
        for name in NAME.finditer(sentence):
            asked = ASKS_TO_CLICK.search(sentence[: name.start()]) is not None
            yield " ".join(name[1].split()), asked


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
    """A text is about the cell below it, or about what will be there once all was run."""
    with lab.visit(notebook) as page:
        wanted: list[tuple[str, bool]] = []
        place = 0
        for cell in nbformat.read(lab.server.folder / "notebooks" / notebook, as_version=4).cells:
            if cell.cell_type == "code":
                page.cell(place).run().settle()
                wanted = [one for one in wanted if not look_up(page, place, *one)]
                place += 1
            else:
                wanted += named(cell.source)
        assert [one for one in wanted if not look_up(page, place, *one)] == []


def look_up(page: NotebookPage, place: int, name: str, is_clicked: bool) -> bool:
    """Whether a name is on the screen; it is clicked if the text asks to."""
    shown = find(page, place, name)
    if shown is None:
        return False
    if is_clicked:
        shown.click()
        expect(page.page.locator(".kg[aria-busy=true]")).to_have_count(0)
    return True


def find(page: NotebookPage, place: int, name: str) -> Locator | None:
    """What has a name, or begins with it: in the output below the text, else in any other."""
    count = page.page.locator(".jp-CodeCell").count()
    for number in sorted(range(count), key=lambda number: (number != place, number)):
        shown = written(page.cell(number), name)
        if shown.count():
            return shown
    return None


def written(cell: Cell, name: str) -> Locator:
    """The first that can be seen of a cell's tabs, buttons, headings and other texts with that name."""
    output = cell.show().output
    label = re.compile(rf"^{re.escape(name)}( \d+)?$")
    found = output.get_by_role("tab", name=label).or_(output.get_by_role("button", name=label))
    return found.or_(output.get_by_text(name, exact=True)).filter(visible=True).first
