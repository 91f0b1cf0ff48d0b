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
ONE_WORD = "x" * 900
HOSTILE = f"""
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.ask("Who directed Arrival {ONE_WORD}?")
films = kgwb.Workbench(kgwb.open_kg("films"), "rules")
edited = films.ask("Who directed Arrival?").fork().go()
facts = [{{"subject": "Arrival", "relation": "{ONE_WORD}", "object": "?answer"}}]
edited.override("qir", {{"facts": facts, "target": "?answer"}})
"""
LONG_WORDS = (
    "workbench.debug()",
    "workbench.chat()",
    "kgwb.debug(edited.go(until='qir'))",
    "workbench.runs[-1]",
)
BOXES = """
root => {
  const whole = root.getBoundingClientRect();
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const boxes = [];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const words = texts.currentNode.data.trim();
    if (!words || !node.checkVisibility() || node.closest("textarea, .vh, .edit, .unstyled")) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const clip = {left: -1e6, right: 1e6, top: -1e6, bottom: 1e6};
    for (let place = node; place !== root; place = place.parentElement) {
      const style = getComputedStyle(place);
      if (style.display === "inline" || !/auto|scroll|hidden/.test(style.overflowX + style.overflowY)) continue;
      const box = place.getBoundingClientRect();
      clip.left = Math.max(clip.left, box.left);
      clip.right = Math.min(clip.right, box.right);
      clip.top = Math.max(clip.top, box.top);
      clip.bottom = Math.min(clip.bottom, box.bottom);
    }
    for (const box of range.getClientRects()) {
      const seen = {
        words: words.slice(0, 40), node,
        left: Math.max(box.left, clip.left), right: Math.min(box.right, clip.right),
        top: Math.max(box.top, clip.top), bottom: Math.min(box.bottom, clip.bottom),
      };
      if (seen.right - seen.left > 2 && seen.bottom - seen.top > 2) boxes.push(seen);
    }
  }
  const found = boxes.filter(box => box.right > whole.right + 2).map(box => `out of the widget: ${box.words}`);
  boxes.forEach((first, place) => boxes.slice(place + 1).forEach(second => {
    const width = Math.min(first.right, second.right) - Math.max(first.left, second.left);
    const height = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
    if (first.node !== second.node && width > 3 && height > 6) found.push(`${first.words} on ${second.words}`);
  }));
  return [...new Set(found)];
}
"""
"""The texts that are drawn over others or out of the widget, a line each."""
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


@pytest.mark.parametrize("width", [850, 600])
def test_no_text_is_drawn_over_another_or_out_of_the_widget(lab: Site, width: int) -> None:
    name = lab.server.write("words.ipynb", HOSTILE, *LONG_WORDS)
    with lab.visit(name, width=width + BESIDE) as page:
        page.run_all()
        for place, code in enumerate(LONG_WORDS, start=1):
            cell = widget_of(page.cell(place)).show()
            shown = cell.output.locator(".kg").first
            assert shown.evaluate(BOXES) == [], code


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
