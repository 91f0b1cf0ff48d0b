"""What widgets say of an answer, of a query, of a graph, and of what they wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.harness import Cell, NotebookPage, Site

MADE = """
import kgwb

workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")

def asked(question):
    workbench.new_dialogue()
    return workbench.ask(question)
"""
SLOW = """
import threading
from kgwb.kg.embeddings import Embeddings
loaded = threading.Event()
Embeddings.load = lambda self: loaded.wait()
kgwb.Workbench(workbench.kg, "rules").debug("Who directed Arrival?")
"""
CELLS = (
    MADE,
    'kgwb.debug(asked("What is the shoe size of Daniel Radcliffe?"))',
    'run = asked("When was Harry Potter\'s first movie released?"); workbench.cell("predicate_selection")',
    "kgwb.debug(run)",
    SLOW,
    "loaded.set()",
)


@pytest.fixture(scope="module")
def page(lab: Site) -> Iterator[NotebookPage]:
    """A notebook of the cells above; the tests go through it in this order."""
    with lab.open(lab.server.write("explained.ipynb", *CELLS)) as page:
        page.cell(0).run()
        yield page


def height_in(cell: Cell, what: Locator) -> float:
    """How far below the top of a cell's output something stands, in pixels."""
    place, output = what.bounding_box(), cell.output.bounding_box()
    assert place is not None, "it is not shown"
    assert output is not None, "there is no output"
    return place["y"] - output["y"]


def test_an_empty_answer_opens_at_the_step_that_says_why(page: NotebookPage) -> None:
    why = "Daniel Radcliffe has nothing like “shoe size”: nearest are birth date (0.00)"
    cell = page.cell("shoe size").run().wait("No answer in this graph").wait(why)
    expect(cell.row("execution")).to_have_attribute("aria-current", "step")
    cell.tab("Answer", until="Where the time went").wait(why)


def test_a_click_on_a_row_takes_a_query_and_one_without_rows_says_which_pattern(
    page: NotebookPage,
) -> None:
    why = "?x1 — release date → ?answer: without it the query has rows"
    cell, debugger = (
        page.cell('cell("predicate_selection")').run().wait("kept"),
        page.cell("debug(run)").run(),
    )
    cell.click(cell.output.locator("summary", has_text="candidate queries"), until="first book")
    row = cell.output.locator("tr", has_text="first book").filter(has_text="release date").first
    cell.click(row.get_by_text("take this one"), until="by hand")
    debugger.wait("Stale").click("Continue", until="No answer in this graph")
    debugger.wait(why).wait("wrote the predicate release date")
    debugger.tab("Answer", until="Where the time went").wait(why)
    cell.click("Undo the edit").settle().wait("by hand", gone=True)
    debugger.click("Continue", until="2001-11-16")


def test_a_query_has_the_graphs_own_prefixes_and_is_edited_where_it_is_shown(
    page: NotebookPage,
) -> None:
    cell = page.cell("debug(run)")
    cell.click(
        cell.output.locator("summary", has_text="The SPARQL it came from"), until="PREFIX fl:"
    )
    cell.wait("<https://kgwb.example/films/>")
    shown, typed = cell.output.locator("pre.src:visible"), cell.output.get_by_label("SPARQL")
    expect(shown).to_contain_text("fl:Harry_Potter")
    place = height_in(cell, shown)
    cell.click(cell.output.locator("summary", has_text="edit and run"), until="Run query")
    expect(shown).to_have_count(0)
    expect(typed).to_have_value(re.compile("^PREFIX fl: <https://kgwb.example/films/>\nSELECT"))
    assert abs(height_in(cell, typed) - place) < 10
    cell.click("Run query", until="1 row").wait("2001-11-16")


def test_embeddings_load_from_the_start_and_a_press_meanwhile_waits_its_turn(
    page: NotebookPage,
) -> None:
    cell = page.cell("loaded = ").run().wait("loading the embeddings, once")
    cell.click("Continue").wait("Loading the embeddings, once")
    rows = cell.output.locator(".tl .go").count()
    expect(cell.output.locator(".tl .offrow")).to_have_count(rows)
    page.cell("loaded.set()").run()
    cell.wait("Denis Villeneuve")
    expect(cell.row("rephraser")).to_contain_text("not needed")
