"""What a person does and where the focus, the view and the room go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from browser.harness import NotebookPage, Site

MADE = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
for question in ("Who directed Arrival?", "Who directed Dune?", "Who directed Stalker?"):
    workbench.ask(question)
edited = kgwb.Workbench(kgwb.open_kg("films"), "rules")
edited.begin("Who directed Arrival?")
"""
CHAT, OPENED, DEBUGGER = "workbench.chat()", "other = workbench.chat(); other", "workbench.debug()"
EDITOR, NARROW = 'edited.cell("qir")', 'narrow = edited.cell("qir"); narrow'
PROMPT = "\n".join("word " * n + "{{question}}, up-to-date/{{question}}" for n in range(40))
FOCUSED = """(node => `${node.getAttribute('aria-label') || node.textContent.trim()} in
${node.closest('[id^=turn-]')?.id}`)(document.activeElement)"""
"""The label of what has the focus, and the turn that it is in."""
MARKED_LINES = """
([pre, area]) => [...pre.querySelectorAll("mark")].map((mark, number) => {
  const probe = area.cloneNode();
  let end = -1;
  for (let found = 0; found <= number; found++) end = area.value.indexOf("}}", end + 1) + 1;
  const word = area.value.slice(end + 1).match(/^\\S*/)[0];
  probe.value = area.value.slice(0, end + 1) + word;
  probe.style.position = "absolute";
  probe.style.width = area.getBoundingClientRect().width + "px";
  area.after(probe);
  const lowest = probe.getBoundingClientRect().height - 8;
  probe.remove();
  return Math.abs(mark.getBoundingClientRect().bottom - pre.getBoundingClientRect().top - lowest);
})
"""
"""How far the bottom of each mark is from that of the line that the text area has it on, in pixels."""


@pytest.fixture(scope="module")
def page(lab: Site) -> Iterator[NotebookPage]:
    """A notebook with a widget for each test."""
    cells = (MADE, CHAT, OPENED, DEBUGGER, EDITOR, NARROW)
    with lab.open(lab.server.write("hands.ipynb", *cells)) as page:
        page.run_all()
        yield page


def box_of(shown: Locator) -> FloatRect:
    box = shown.bounding_box()
    assert box is not None
    return box


def test_after_rewording_the_focus_stays_in_the_turn(page: NotebookPage) -> None:
    chat = page.cell(CHAT).wait("Denis Villeneuve")
    chat.output.locator("#turn-1").get_by_role("button", name="Reword").click()
    words = chat.output.locator("#words-1")
    expect(words).to_be_focused()
    words.fill("Who directed Interstellar?")
    words.press("Enter")
    chat.wait("Christopher Nolan")
    expect(words).to_have_count(0)
    assert page.page.evaluate(FOCUSED).split() == ["Reword", "in", "turn-1"]
    expect(chat.output.locator(".turns > li")).to_have_count(3)


def test_the_debugger_that_a_turn_opens_comes_into_view_with_the_focus(page: NotebookPage) -> None:
    chat = page.cell(OPENED).wait("Denis Villeneuve")
    chat.click(chat.button("Open").first).wait("Supporting triples")
    chat.click("Open in the debugger").wait("entity retriever")
    debugger = chat.output.locator("[data-scope=debugger]")
    expect(debugger).to_be_focused()
    expect(debugger.locator(".answer").first).to_be_in_viewport()


def test_going_back_and_on_leaves_the_live_times_and_a_comparison_has_the_whole_width(
    page: NotebookPage,
) -> None:
    debugger = page.cell(DEBUGGER).wait("Andrei Tarkovsky")
    bar = debugger.row("qir").locator(".ms")
    live = bar.inner_text()
    debugger.click("To the start").wait("No answer yet")
    debugger.click("Continue").settle().wait("Answered")
    assert bar.inner_text() == live
    debugger.row("qir").click()
    debugger.wait(f"{live} recorded").tab("Compare")
    debugger.click("Run under profile paper").wait("First decision that differs").settle()
    whole = box_of(debugger.output.locator(".kg").first)
    assert box_of(debugger.output.locator(".ab.heads"))["width"] > 0.95 * whole["width"]


def test_the_reply_to_a_tried_prompt_comes_below_the_button_and_the_view_stays(
    page: NotebookPage,
) -> None:
    cell = page.cell(EDITOR).tab("Prompt").wait("as in the file")
    editor = cell.output.locator("textarea")
    cell.fill(editor, editor.input_value() + "\nThink twice.").wait("What you changed")
    try_once = cell.button("Try once")
    try_once.scroll_into_view_if_needed()
    before = box_of(try_once)
    try_once.click()
    cell.settle().wait("What came of it")
    tried = cell.output.locator("#tried")
    expect(tried).to_contain_text("director directed by")
    expect(try_once).to_be_in_viewport()
    button = box_of(try_once)
    assert abs(button["y"] - before["y"]) < 500, "the view has stayed"
    assert 0 < box_of(tried)["y"] - button["y"] < 120, "the reply is directly below the button"
    expect(tried).to_be_in_viewport()


@pytest.mark.parametrize("width", [1400, 700])
def test_the_mark_of_a_placeholder_is_on_its_line_in_the_editor(
    page: NotebookPage, width: int
) -> None:
    page.page.set_viewport_size({"width": width, "height": 900})
    cell = page.cell(NARROW).tab("Prompt").wait("Try once")
    editor = cell.output.locator("textarea")
    cell.fill(editor, PROMPT)
    expect(cell.output.locator(".edit pre mark")).to_have_count(80)
    both = [cell.output.locator(".edit > pre").element_handle(), editor.element_handle()]
    away = page.page.evaluate(MARKED_LINES, both)
    assert max(away) < 8, f"some marks are on another line: {away}"
