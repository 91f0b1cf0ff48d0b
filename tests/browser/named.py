"""What the texts of a notebook name on the screen, looked up as its cells are run.

In their texts, bold stands for what is written on the screen, and for nothing else. From "press", "click on", "unfold"
or "under" on, the names of a sentence are clicked in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import nbformat
from playwright.sync_api import Locator, expect

from browser.harness import Cell, NotebookPage

SENTENCE_END = re.compile(r"(?<=[.:;])\s+|\n\n|\n\|")
NAME = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
ASKS_TO_CLICK = re.compile(r"\b(press|unfold|under|click on)\b", re.IGNORECASE)
RUNNING = ".kg[aria-busy=true]:not(:has(.person-form))"
"""The widgets in which something runs; one that waits for a person's reply is ready."""


def leave(cell: Cell, source: str) -> None:
    """Do nothing with a cell that was run."""


def walk(page: NotebookPage, notebook: str, then: Callable[[Cell, str], None] = leave) -> list[str]:
    """Run every cell, and return the names of the texts that were not on the screen.

    A text is about the cell below it, or about what will be there once all was run. ``then`` is called with each cell
    and its source, after the names of the text above it were looked up.
    """
    wanted: list[tuple[str, bool]] = []
    place = 0
    for cell in nbformat.read(page.server.folder / "notebooks" / notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            wanted += named(cell.source)
            continue
        shown = page.cell(place).run()
        expect(shown.output.locator(RUNNING)).to_have_count(0)
        wanted = [one for one in wanted if not look_up(page, place, *one)]
        then(shown, cell.source)
        place += 1
    return [name for name, is_clicked in wanted if not look_up(page, place, name, is_clicked)]


def named(markdown: str) -> Iterator[tuple[str, bool]]:
    """Each name in bold, in order, and whether the text asks to click it."""
    for sentence in SENTENCE_END.split(markdown):
        for name in NAME.finditer(sentence):
            asked = ASKS_TO_CLICK.search(sentence[: name.start()]) is not None
            yield " ".join(name[1].split()), asked


def look_up(page: NotebookPage, place: int, name: str, is_clicked: bool) -> bool:
    """Whether a name is on the screen; it is clicked if the text asks to."""
    shown = find(page, place, name)
    if shown is None:
        return False
    if is_clicked:
        shown.click()
        expect(page.page.locator(RUNNING)).to_have_count(0)
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
    """The first that can be seen of a cell's tabs, buttons, folds, headings and other texts with that name."""
    output = cell.show().output
    label = re.compile(rf"^{re.escape(name)}( \d+)?$")
    fold = output.locator("summary").filter(has_text=re.compile(rf"^\s*{re.escape(name)}"))
    found = output.get_by_role("tab", name=label).or_(output.get_by_role("button", name=label))
    return found.or_(fold).or_(output.get_by_text(name, exact=True)).filter(visible=True).first
