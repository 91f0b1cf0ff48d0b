"""The notebook of Chatty-KG driven agent by agent, then its subgraph and its debugger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, NotebookPage, Site
from browser.named import walk

RESULTS = {
    "translator": "When was its first movie released?",
    "context": "Who is the author of Harry Potter?",
    "classifier": "dependent",
    "rephraser": "When was Harry Potter's first movie released?",
    "qir": "first movie",
    "entity_retriever": "young wizard",
    "vertex_selection": "book series",
    "relation_linking": "first movie",
    "query_generator": "PREFIX fl:",
    "predicate_selection": "release date",
    "execution": "2001-11-16",
}
"""What each agent's cell shows once it was run, in flow order."""
ASKING = {"translator", "classifier", "rephraser", "qir", "vertex_selection", "predicate_selection"}
"""The agents that ask a model."""


@pytest.fixture(scope="module")
def page(lab: Site) -> Iterator[NotebookPage]:
    """The notebook; the tests below go through it in this order."""
    with lab.open("10_chatty_kg.ipynb") as page:
        page.cell("import kgwb").run()
        yield page


def agent(page: NotebookPage, name: str) -> Cell:
    return page.cell(f'workbench.cell("{name}")')


def test_every_agent_is_run_by_its_button_in_flow_order(page: NotebookPage) -> None:
    for name, result in RESULTS.items():
        cell = agent(page, name).run().wait("not run")
        cell.click("Run", until="done").wait(result)
        expect(cell.output.get_by_role("tab", name="Result", selected=True)).to_be_visible()
        expect(cell.output.get_by_role("tab", name="Prompt")).to_have_count(int(name in ASKING))


def test_the_debugger_steps_back_and_forth_and_stops_where_told(page: NotebookPage) -> None:
    cell = page.cell("workbench.debug()").run().wait("2001-11-16")
    cell.click("To the start").wait("No answer yet")
    expect(cell.button("Back")).to_have_attribute("aria-disabled", "true")
    cell.output.get_by_role("button", name="stop after qir").click()
    cell.click("Continue").wait("Stopped on the way")
    expect(cell.row("qir")).to_have_attribute("aria-current", "step")
    expect(cell.output.get_by_role("tab", name="Result", selected=True)).to_be_visible()
    cell.output.get_by_role("button", name="stop after qir").click()
    cell.click("Continue", until="Answered").click("Back", until="Stopped on the way")
    expect(cell.row("predicate selection")).to_have_attribute("aria-current", "step")
    cell.click("Continue", until="Answered")


def test_a_step_leaves_the_other_lines_of_the_timeline_alone(page: NotebookPage) -> None:
    """A line that is made anew loses its focus, and drawing all of them takes most of a click's time."""
    cell = page.cell("workbench.debug()")
    cell.tab("Step")
    cell.click("To the start").wait("No answer yet")
    cell.click("Step")
    expect(cell.settle().row("translator")).to_have_attribute("aria-current", "step")
    lines = cell.output.locator("ol.tl > li:not(.cursor)")
    lines.evaluate_all("lines => lines.forEach(line => { line.wasThere = true })")
    cell.click("Step")
    expect(cell.settle().row("context")).to_have_attribute("aria-current", "step")
    assert lines.evaluate_all("lines => lines.filter(line => !line.wasThere).length") == 0
    cell.click("Continue", until="Answered")


def test_the_keys_do_what_buttons_do(page: NotebookPage) -> None:
    """j and k move, b stops here, s and c step and continue; Notebook's own keys keep still."""
    cell = page.cell("workbench.debug()")
    cells = page.page.locator(".jp-Cell").count()
    cell.tab("Step")
    cell.click("To the start").wait("No answer yet")
    keys = page.page.keyboard
    # A key of a button that cannot be pressed yet does nothing.
    for name in ("translator", "context"):
        keys.press("s")
        expect(cell.settle().row(name)).to_have_attribute("aria-current", "step")
    keys.press("k")
    expect(cell.row("translator")).to_have_attribute("aria-current", "step")
    keys.press("b")
    expect(cell.output.get_by_role("button", name="stop after translator")).to_have_attribute(
        "aria-pressed", "true"
    )
    keys.press("b")
    keys.press("c")
    cell.wait("Answered")
    assert page.page.locator(".jp-Cell").count() == cells


def test_what_is_typed_outlives_a_state_from_elsewhere(page: NotebookPage) -> None:
    cell = agent(page, "qir").tab("Edit as a form", until="Use this result")
    field = cell.output.locator("input[name='facts.0.1']")
    cell.fill(field, "mine")
    debugger = page.cell("workbench.debug()")
    debugger.click("To the start", until="No answer yet")
    cell.wait("ahead").wait("Use this result")
    expect(field).to_have_value("mine")
    debugger.click("Continue", until="Answered")
    cell.wait("ahead", gone=True)
    expect(field).to_have_value("mine")


def test_a_page_reload_finds_the_widgets_of_the_living_kernel(page: NotebookPage) -> None:
    page.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.reload()
    cell = page.cell("workbench.debug()").show().wait("2001-11-16")
    cell.tab("Answer").wait("Where the time went")


def test_what_the_texts_name_is_on_the_screen_after_run_all(page: NotebookPage) -> None:
    assert walk(page, "10_chatty_kg.ipynb") == []
