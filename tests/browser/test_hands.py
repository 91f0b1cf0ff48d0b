"""What a person does and where the focus, the view and the room go."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, Site

CHAT = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
for question in ("Who directed Arrival?", "Who directed Dune?", "Who directed Stalker?"):
    workbench.ask(question)
"""


def focused_label(cell: Cell) -> str:
    """The label of what has the focus, and the turn that it is in."""
    return str(
        cell.page.page.evaluate(
            "(node => `${node.getAttribute('aria-label') || node.textContent.trim()} in "
            "${node.closest('[id^=turn-]')?.id}`)(document.activeElement)"
        )
    )


def test_after_rewording_the_focus_stays_in_the_turn(lab: Site) -> None:
    with lab.visit(lab.server.write("hands.ipynb", CHAT, "workbench.chat()")) as page:
        page.run_all()
        chat = page.cell(1).wait("Denis Villeneuve")
        second = chat.output.locator("#turn-1")
        second.get_by_role("button", name="Reword").click()
        words = chat.output.locator("#words-1")
        expect(words).to_be_focused()
        words.fill("Who directed Interstellar?")
        words.press("Enter")
        chat.wait("Christopher Nolan")
        expect(words).to_have_count(0)
        assert focused_label(chat) == "Reword in turn-1"
        page.page.keyboard.press("Enter")
        chat.wait("Christopher Nolan")
        expect(chat.output.locator(".turns > li")).to_have_count(3)


def test_the_debugger_that_a_turn_opens_comes_into_view_with_the_focus(lab: Site) -> None:
    with lab.visit(lab.server.write("hands.ipynb", CHAT, "workbench.chat()"), height=600) as page:
        page.run_all()
        chat = page.cell(1).wait("Denis Villeneuve")
        chat.click(chat.button("Open").first).wait("Supporting triples")
        chat.click("Open in the debugger").wait("entity retriever")
        debugger = chat.output.locator("[data-scope=debugger]")
        expect(debugger).to_be_focused()
        expect(debugger.locator(".answer").first).to_be_in_viewport()


def test_two_runs_are_compared_over_the_whole_width(lab: Site) -> None:
    cells = (CHAT, "workbench.debug()")
    with lab.visit(lab.server.write("hands.ipynb", *cells)) as page:
        page.run_all()
        debugger = page.cell(1).wait("Andrei Tarkovsky").tab("Compare")
        debugger.click("Run under profile paper").wait("First decision that differs").settle()
        whole = debugger.output.locator(".kg").first.bounding_box()
        compared = debugger.output.locator(".ab.heads").bounding_box()
        assert whole is not None
        assert compared is not None
        assert compared["width"] > 0.95 * whole["width"]
        debugger.tab("Step").wait("Result")


def test_going_back_and_on_leaves_the_live_times_as_they_were(lab: Site) -> None:
    with lab.visit(lab.server.write("hands.ipynb", CHAT, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Andrei Tarkovsky")
        bar = debugger.row("qir").locator(".ms")
        live = bar.inner_text()
        debugger.click("To the start").wait("No answer yet")
        debugger.click("Continue").settle().wait("Answered")
        assert bar.inner_text() == live
        debugger.row("qir").click()
        debugger.wait(f"{live} recorded")


EDITOR = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.begin("Who directed Arrival?")
"""


def test_the_reply_to_a_tried_prompt_comes_below_the_button_and_the_view_stays(lab: Site) -> None:
    cells = (EDITOR, "workbench.cell('qir')", "'a'", "'b'", "workbench.debug()")
    with lab.visit(lab.server.write("hands.ipynb", *cells)) as page:
        page.run_all()
        cell = page.cell(1).tab("Prompt").wait("as in the file")
        editor = cell.output.locator("textarea")
        cell.fill(editor, editor.input_value() + "\nThink twice.").wait("What you changed")
        try_once = cell.button("Try once")
        try_once.scroll_into_view_if_needed()
        before = try_once.bounding_box()
        try_once.click()
        cell.settle().wait("What came of it")
        tried = cell.output.locator("#tried")
        expect(tried).to_contain_text("director directed by")
        expect(try_once).to_be_in_viewport()
        button, reply = try_once.bounding_box(), tried.bounding_box()
        assert before is not None
        assert button is not None
        assert reply is not None
        assert abs(button["y"] - before["y"]) < 500, "the view has stayed"
        assert 0 < reply["y"] - button["y"] < 120, "the reply is directly below the button"
        expect(tried).to_be_in_viewport()


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


@pytest.mark.parametrize("width", [1400, 700])
def test_the_mark_of_a_placeholder_is_on_its_line_in_the_editor(lab: Site, width: int) -> None:
    text = "\n".join("word " * n + "{{question}}, up-to-date/{{question}}" for n in range(40))
    name = lab.server.write("hands.ipynb", EDITOR, "workbench.cell('qir')")
    with lab.visit(name, width=width) as page:
        page.run_all()
        cell = page.cell(1).tab("Prompt").wait("as in the file")
        editor = cell.output.locator("textarea")
        cell.fill(editor, text)
        marks = cell.output.locator(".edit pre mark")
        expect(marks).to_have_count(80)
        both = [cell.output.locator(".edit > pre").element_handle(), editor.element_handle()]
        away = page.page.evaluate(MARKED_LINES, both)
        assert max(away) < 8, f"some marks are on another line: {away}"


REFUSED = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.ask("Who is the warden of Arrival?")
"""


def test_a_refusal_offers_the_predicates_of_its_thing_in_chat_debugger_and_cell(lab: Site) -> None:
    cells = (REFUSED, "workbench.debug()", "workbench.cell('execution')", "workbench.chat()")
    with lab.visit(lab.server.write("hands.ipynb", *cells)) as page:
        page.run_all()
        page.cell(1).tab("Answer").wait("The graph has of Arrival")
        page.cell(1).click("director").wait("Denis Villeneuve").settle()
        page.cell(2).wait("The graph has of Arrival").click("composer").wait("Jóhann Jóhannsson")
        chat = page.cell(3).wait("The graph has of Arrival").click("director")
        expect(chat.output.locator("#question")).to_have_value("What is the director of Arrival?")
        chat.click("Ask").wait("Denis Villeneuve")
