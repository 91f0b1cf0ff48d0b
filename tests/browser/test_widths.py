"""Every widget at narrow widths: nothing is too small to read, cut off, or squeezed to a word a line."""

from __future__ import annotations

from playwright.sync_api import Locator

from browser.harness import NotebookPage, Site

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
wordy = kgwb.Workbench(kgwb.open_kg("films"), "rules")
wordy.ask("Who directed Arrival {ONE_WORD}?")
films = kgwb.Workbench(kgwb.open_kg("films"), "rules")
edited = films.ask("Who directed Arrival?").fork().go()
facts = [{{"subject": "Arrival", "relation": "{ONE_WORD}", "object": "?answer"}}]
edited.override("qir", {{"facts": facts, "target": "?answer"}})
"""
LONG_WORDS = (
    "wordy.debug()",
    "wordy.chat()",
    "kgwb.debug(edited.go(until='qir'))",
    "wordy.runs[-1]",
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
MOVING = """
root => [...root.querySelectorAll("*")].filter(node =>
  parseFloat(getComputedStyle(node).transitionDuration) > 0).length
"""
HEARD = (
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
"""The parts of a debugger in the order in which a screen reader meets them."""


def widget_of(page: NotebookPage, code: str) -> Locator:
    """What a cell shows, once nothing in it changes any more."""
    shown = page.cell(code).show().output.locator(".kg").first
    shown.wait_for()
    page.cell(code).settle()
    return shown


def test_widgets_can_be_read_at_every_width_and_heard(lab: Site) -> None:
    name = lab.server.write("widths.ipynb", BEGUN, *WIDGETS, HOSTILE, *LONG_WORDS)
    with lab.visit(name) as page:
        page.page.emulate_media(reduced_motion="reduce")
        page.run_all()
        debugger = widget_of(page, "workbench.debug()")
        assert debugger.evaluate(MOVING) == 0
        heard = debugger.aria_snapshot()
        places = [heard.find(part) for part in HEARD]
        assert -1 not in places, f"{HEARD[places.index(-1)]} is not in {heard}"
        assert places == sorted(places), heard
        for width in (850, 700, 600, 420):
            page.page.set_viewport_size({"width": width + BESIDE, "height": 900})
            for code in WIDGETS:
                shown = widget_of(page, code)
                assert shown.evaluate(FOUND) == [], (code, width)
                assert shown.evaluate(UNNAMED) == [], (code, width)
            for code in LONG_WORDS:
                assert widget_of(page, code).evaluate(BOXES) == [], (code, width)
