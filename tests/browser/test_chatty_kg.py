"""The notebook of Chatty-KG driven agent by agent, then its subgraph and its debugger."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, NotebookPage, Site

RESULTS = {
    "translator": "When was its first movie released?",
    "context": "Who is the author of Harry Potter?",
    "classifier": "dependent",
    "rephraser": "When was Harry Potter's first movie released?",
    "qir": "first movie",
    "entity_retriever": "main character",
    "vertex_selection": "book series",
    "relation_linking": "first movie",
    "query_generator": "SELECT DISTINCT ?answer WHERE {",
    "predicate_selection": "release date",
    "execution": "2001-11-16",
}
"""What each agent's cell shows once it was run, in flow order."""


@pytest.fixture(scope="module")
def page(lab: Site) -> Iterator[NotebookPage]:
    """The notebook; the tests below go through it in this order."""
    with lab.open("10_chatty_kg.ipynb") as page:
        page.cell("import kgwb").run()
        yield page


@pytest.fixture(autouse=True)
def nothing_goes_wrong(page: NotebookPage) -> Iterator[None]:
    yield
    page.assert_clean()


def agent(page: NotebookPage, name: str) -> Cell:
    return page.cell(f'workbench.cell("{name}")')


def test_every_agent_is_run_by_its_button_in_flow_order(page: NotebookPage) -> None:
    for name, result in RESULTS.items():
        cell = agent(page, name).run().wait("not run yet")
        cell.click("Run", until="done").wait(result)


def test_an_edited_prompt_is_tried_once(page: NotebookPage) -> None:
    cell = agent(page, "qir").click("Prompt").wait("as in the file")
    prompt = cell.output.locator("textarea")
    in_file = prompt.input_value()
    cell.fill(prompt, in_file + "\nThink twice.\n")
    cell.click("Try this once").wait("done")
    cell.click("Prompt").wait("+Think twice.").wait("edited")
    agent(page, "execution").wait("stale")
    agent(page, "execution").click("Run", until="done").wait("2001-11-16")
    cell.click("Prompt").click("Back to the file's text", until="as in the file")
    assert prompt.input_value() == in_file
    saved = page.server.folder / "prompts" / "chatty_kg" / "qir.md"
    assert saved.read_text() == in_file


def test_a_vertex_is_put_in_by_hand_and_taken_out_again(page: NotebookPage) -> None:
    cell, execution = agent(page, "vertex_selection"), agent(page, "execution")
    cell.click("Edit the result", until="or another vertex")
    candidates = cell.field("the vertex that 'Harry Potter' means")
    names = candidates.locator("option").all_inner_texts()
    candidates.select_option(next(name for name in names if "character" in name))
    cell.click("Use this result", until="by hand")
    execution.wait("stale").click("Run", until="done").wait("not in this graph")
    cell.click("Undo the edit by hand").wait("by hand", gone=True)
    execution.wait("stale").click("Run", until="2001-11-16")


def test_the_debugger_steps_back_and_forth_and_stops_where_told(page: NotebookPage) -> None:
    cell = page.cell("workbench.debug()").run()
    step, back, dimmed = cell.button("Step"), cell.button("Back"), re.compile("kgwb-dim")
    cell.click("To the start").wait("0 queries")
    expect(back).to_have_class(dimmed)
    cell.click(step)
    expect(back).not_to_have_class(dimmed)
    cell.click(back)
    expect(back).to_have_class(dimmed)
    cell.output.get_by_role("checkbox").nth(1).check()
    cell.click("Continue")
    expect(back).not_to_have_class(dimmed)
    cell.output.get_by_role("checkbox").nth(1).uncheck()
    cell.click("Continue", until="Answer: 2001-11-16")
    for view, shown in {
        "Answer": "stands on",
        "Time": "graph",
        "Compare": "before",
        "Subgraph": "Look at",
    }.items():
        cell.click(view).wait(shown)


def test_an_answer_lights_up_what_supports_it(page: NotebookPage) -> None:
    cell = page.cell("workbench.subgraph()").run()
    cell.frame().locator("canvas").wait_for()
    cell.field("Show what supports").select_option(index=1)
    cell.wait("2001-11-16 stands on")
    cell.field("Show what supports").select_option(index=0)
    cell.wait("stands on", gone=True)
    for view in ("Picture", "Table", "Graph"):
        cell.click(view).wait("Harry Potter and the Philosopher's Stone")
