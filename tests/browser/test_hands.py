"""What a person does and where the focus, the view and the room go."""

from __future__ import annotations

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
        debugger.click("Run under profile paper").wait("First decision that differs")
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
        debugger.click("Continue").wait("replayed in")
        assert bar.inner_text() == live
        debugger.row("qir").click()
        debugger.wait(f"{live} recorded")
