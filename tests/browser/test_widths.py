"""Every widget at narrow widths: nothing is too small to read, cut off, or squeezed to a word a line."""

from __future__ import annotations

import pytest

from browser.harness import Cell, Site

BEGUN = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.ask("Who is the warden of Arrival?")
workbench.ask("Who is the author of Harry Potter?")
run = workbench.ask("When was its first movie released?")
"""
WIDGETS = (
    "workbench.chat()",
    "workbench.debug()",
    "workbench.cell('qir')",
    "workbench.subgraph()",
    "from kgwb.ui.choosers import GraphChooser; GraphChooser()",
    "kgwb.compare(run, run.fork(settings=kgwb.profile('paper')).go())",
)
FOUND = """
root => {
  const found = [];
  const whole = root.getBoundingClientRect();
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const words = texts.currentNode.data.trim();
    if (!words || node.closest("title, desc, option, [aria-hidden=true], .unstyled")) continue;
    if (node.closest("details:not([open])") && !node.closest("summary")) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    const scale = node.closest("svg") ? node.getScreenCTM().a : 1;
    const size = parseFloat(getComputedStyle(node).fontSize) * scale;
    if (size < 8.9) found.push(`${size.toFixed(1)} px: ${words}`);
    let place = node;
    while (place !== root && !/auto|scroll|hidden/.test(getComputedStyle(place).overflowX)) place = place.parentElement;
    if (place === root && box.right > whole.right + 2) found.push(`out of the widget: ${words}`);
    const lines = box.height / (1.6 * size);
    if (lines > 4 && lines > words.split(/\\s+/).length * 0.7) found.push(`a word a line: ${words}`);
  }
  return found;
}
"""
"""What is wrong with the texts of a widget, a line each."""
UNNAMED = """
root => [...root.querySelectorAll("button, [role=button], input, textarea, select, summary")].filter(node =>
  !(node.getAttribute("aria-label") || node.textContent.trim() || node.title || node.labels?.length)
).map(node => node.outerHTML.slice(0, 100))
"""
"""What can be pressed or filled in and has no name for a screen reader."""
BESIDE = 432
"""Pixels of what JupyterLab shows beside a widget."""


def widget_of(cell: Cell) -> Cell:
    cell.output.locator(".kg").first.wait_for()
    return cell.settle()


@pytest.mark.parametrize("width", [700, 420], ids=["700 pixels", "zoomed to 150 %"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_at_a_narrow_width(lab: Site, width: int, theme: str) -> None:
    name = lab.server.write("widths.ipynb", BEGUN, *WIDGETS)
    with lab.visit(name, theme=theme, width=width + BESIDE) as page:
        page.page.emulate_media(reduced_motion="reduce")
        page.run_all()
        for place, code in enumerate(WIDGETS, start=1):
            cell = widget_of(page.cell(place)).show()
            shown = cell.output.locator(".kg").first
            assert shown.evaluate(FOUND) == [], code
            assert shown.evaluate(UNNAMED) == [], code


def test_what_moves_stands_still_for_who_wants_that(lab: Site) -> None:
    name = lab.server.write("widths.ipynb", BEGUN, "workbench.debug()")
    with lab.visit(name) as page:
        page.page.emulate_media(reduced_motion="reduce")
        page.run_all()
        shown = widget_of(page.cell(1)).output.locator(".kg").first
        moving = """root => [...root.querySelectorAll("*")].filter(node =>
          parseFloat(getComputedStyle(node).transitionDuration) > 0).length"""
        assert shown.evaluate(moving) == 0


def test_a_screen_reader_meets_the_parts_of_the_debugger_in_the_order_of_the_page(
    lab: Site,
) -> None:
    name = lab.server.write("widths.ipynb", BEGUN, "workbench.debug()")
    with lab.visit(name) as page:
        page.run_all()
        shown = widget_of(page.cell(1)).output.locator(".kg").first
        heard = shown.aria_snapshot()
        parts = (
            'heading "When was its first movie released?"',
            "2001-11-16",
            'button "To the start"',
            'button "Back"',
            'button "Step"',
            'button "Continue"',
            'tab "Step" [selected]',
            'tab "Compare"',
            'button "Run',
            'tab "Result" [selected]',
        )
        places = [heard.find(part) for part in parts]
        assert -1 not in places, f"{parts[places.index(-1)]} is not in {heard}"
        assert places == sorted(places), heard
