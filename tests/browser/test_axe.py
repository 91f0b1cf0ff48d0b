"""axe-core, which knows many rules of the WCAG, finds nothing wrong in any state of a notebook's outputs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import leave_out
from playwright.sync_api import Locator, expect

from browser.harness import Cell, NotebookPage, Site
from browser.test_focus import RUN

AUDIT = """async output => {
  const { violations, passes } = await axe.run(output, { resultTypes: ["violations"], preload: false });
  return [passes.length, violations.flatMap(
    ({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`))];
}"""
"""How many rules an element keeps, and a text for each part of it that breaks one."""


BROKEN = (
    "from IPython.display import HTML\nHTML('<div class=kg><button></button><p>text</p></div>')"
)


@pytest.mark.parametrize(
    ("notebook", "theme", "walked"),
    [
        ("00_start.ipynb", "light", "workbench.debug("),
        ("60_surveyor.ipynb", "dark", "workbench.debug()"),
        ("labs/1_from_question_to_sparql.ipynb", "light", ""),
    ],
)
def test_axe_finds_nothing_wrong(
    lab: Site, axe: str, notebook: str, theme: str, walked: str
) -> None:
    with lab.visit(notebook, theme=theme) as page:
        page.run_all()
        page.page.evaluate(axe)
        other = {"light": "dark", "dark": "light"}[theme]
        found = list(audit_outputs(page))
        if walked:
            found += audit_debugger(page.cell(walked))
        page.choose_theme(other)
        found += audit_outputs(page)
        assert not found, "\n".join(found)


def test_axe_finds_nothing_wrong_with_a_form_in_error(lab: Site, axe: str) -> None:
    with lab.visit(lab.server.write("axe.ipynb", RUN, "workbench.debug()", BROKEN)) as page:
        page.run_all()
        page.page.evaluate(axe)
        debugger = page.cell(1)
        debugger.wait("Denis Villeneuve").row("entity retriever").click()
        debugger.settle().tab("Edit as a form").wait("Use this result")
        field = debugger.fill("score 1", "high").field("score 1")
        debugger.button("Use this result").click()
        debugger.wait("'high' is not a number").settle()
        expect(field).to_have_attribute("aria-invalid", "true")
        assert audit(debugger.output) == []
        debugger.fill(field, "0.5").click("Use this result", until="by hand")
        [found] = audit(page.cell(2).output)
        assert found.startswith("button-name")


def audit_outputs(page: NotebookPage) -> Iterator[str]:
    """Audit each output of a notebook that is kgwb's, as it stands."""
    for place in range(page.page.locator(".jp-CodeCell").count()):
        cell = page.cell(place)
        if cell.output.locator(".kg").count():
            yield from audit(cell.show().settle().output)


def audit_debugger(cell: Cell) -> Iterator[str]:
    """Audit each view of a debugger whose run has ended, and each tab of the first step of each agent."""
    go_on = cell.show().settle().button("Continue")
    if go_on.get_attribute("aria-disabled") != "true":
        press(cell, go_on)
        cell.wait("Answered").settle()
    for view in tabs(cell, "view")[::-1]:  # the steps are the first view, and are audited below
        press(cell, view)
        yield from audit(cell.output)
    rows = cell.output.locator(".tl .go")
    agents = rows.locator(".nm").all_inner_texts()
    for agent in dict.fromkeys(agents):
        press(cell, rows.nth(agents.index(agent)))
        for section in tabs(cell, "section"):
            press(cell, section)
            panel = section.get_attribute("aria-controls")
            yield from audit(cell.output.locator(f"[id='{panel}']"))


def tabs(cell: Cell, event: str) -> list[Locator]:
    """The tabs that send an event."""
    return cell.output.locator(f"[role=tab][data-do={event}]").all()


def press(cell: Cell, what: Locator) -> None:
    """Click, and wait for what comes of it."""
    what.click()
    cell.settle()


def audit(what: Locator) -> list[str]:
    """What axe-core says of an element."""
    kept, broken = what.evaluate(AUDIT)
    assert kept, "axe-core has not looked"
    return list(broken)


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        leave_out("axe-core is not here: pip install axe-playwright-python")
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
