"""Where the focus is after each act of a person without a mouse, and what is read out to one who sees no page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, NotebookPage, Site

RUN = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
_ = workbench.ask("Who directed Arrival?")
"""
LINKED = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
_ = workbench.ask("Who directed Solaris?")
"""
HAS_FOCUS = """() => {
  const node = document.activeElement;
  return [node.id, node.dataset.do, node.dataset.arg, node.getAttribute("aria-current")].filter(Boolean).join(" ");
}"""


def focus(page: NotebookPage) -> str:
    """The id, event, argument and aria-current of what has the focus."""
    return str(page.page.evaluate(HAS_FOCUS))


def spoken(cell: Cell) -> str:
    """What was read out last."""
    return str(cell.output.locator("[role=status]").last.text_content())


def press(cell: Cell, label: str) -> None:
    """Press a button by the keyboard, and wait for what comes of it."""
    cell.button(label).focus()
    cell.page.page.keyboard.press("Enter")
    cell.settle()


def test_an_edit_and_its_undoing_leave_the_focus_at_the_step(lab: Site) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Denis Villeneuve")
        debugger.row("qir").click()
        debugger.settle().tab("Edit as a form").wait("Use this result")
        debugger.fill("relation 1", "was written by")
        press(debugger, "Use this result")
        debugger.wait("by hand")
        assert focus(page) == "section-result section result"
        press(debugger, "Undo the edit")
        debugger.wait("by hand", gone=True)
        assert focus(page) == "section-result section result"


@pytest.mark.parametrize(
    ("added", "removed", "focused"),
    [(2, 2, "less facts.2"), (1, 2, "more-facts"), (0, 1, "more-facts")],
)
def test_after_a_row_is_removed_the_focus_is_where_it_was(
    lab: Site, added: int, removed: int, focused: str
) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Denis Villeneuve")
        debugger.row("qir").click()
        debugger.settle().tab("Edit as a form").wait("Use this result")
        rows = debugger.output.get_by_role("button", name="Remove this row")
        facts = rows.and_(debugger.output.locator("[data-arg^=facts]"))
        for number in range(added):
            debugger.output.locator("#more-facts").click()
            expect(facts).to_have_count(2 + number)
            debugger.settle()
        facts.nth(removed - 1).focus()
        page.page.keyboard.press("Enter")
        expect(facts).to_have_count(added)
        debugger.settle()
        assert focused in focus(page)


def test_muting_leads_to_the_comparison(lab: Site) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Denis Villeneuve").tab("Answer").settle()
        mute = debugger.output.locator("[data-do=mute]").first
        mute.focus()
        page.page.keyboard.press("Enter")
        debugger.wait("First decision that differs").settle()
        assert focus(page) == "view-compare view compare"
        assert spoken(debugger).startswith("one triple muted")


def test_the_link_of_a_candidate_is_a_link_and_the_row_around_it_takes_the_candidate(
    lab: Site,
) -> None:
    with lab.visit(lab.server.write("focus.ipynb", LINKED, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).settle()
        debugger.row("vertex selection").first.click()
        debugger.settle().wait("take this one")
        row = debugger.output.locator(".cand").filter(has_text="take this one").first
        link = row.locator("a").first
        link.scroll_into_view_if_needed()
        is_hit = "link => { const b = link.getBoundingClientRect();" + (
            "return link.contains(document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2)) }"
        )
        assert link.evaluate(is_hit)
        assert link.evaluate("link => !link.closest('button')")
        box = row.locator(".mark").bounding_box()
        assert box is not None
        page.page.mouse.click(box["x"] + 5, box["y"] + 5)
        debugger.settle().wait("by hand")


def test_nodes_of_the_picture_are_walked_by_arrows_chosen_by_space_and_said(lab: Site) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.subgraph()")) as page:
        page.run_all()
        subgraph = page.cell(1).wait("Denis Villeneuve")
        node = subgraph.output.locator("#node-0")
        node.focus()
        seen = {focus(page)}
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
            page.page.keyboard.press(key)
            seen.add(focus(page))
        assert len(seen) > 2, seen
        node.focus()
        page.page.keyboard.press("Space")
        subgraph.wait("Expand one hop").settle()
        expect(node).to_have_attribute("aria-pressed", "true")
        expect(node).to_be_focused()
        before = spoken(subgraph)
        assert before.startswith("Arrival")
        press(subgraph, "Expand one hop")
        expect(subgraph.button("Expand one hop")).to_be_in_viewport()
        assert spoken(subgraph) != before


def test_nodes_of_the_interactive_picture_are_chosen_by_arrows_and_escape_leads_out(
    lab: Site,
) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.subgraph()")) as page:
        page.run_all()
        subgraph = page.cell(1).tab("Interactive").settle()
        canvas = subgraph.frame().locator("canvas")
        canvas.wait_for()
        subgraph.output.locator("iframe").focus()
        said = set()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            before = spoken(subgraph)
            page.page.keyboard.press(key)
            expect(subgraph.output.locator("[role=status]").last).not_to_have_text(before)
            subgraph.settle()
            said.add(spoken(subgraph))
        assert len(said) == 3, said
        page.page.keyboard.press("Escape")
        expect(subgraph.output.locator("#drawn-graph")).to_be_focused()


def test_tabs_are_walked_by_arrows(lab: Site) -> None:
    with lab.visit(lab.server.write("focus.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Denis Villeneuve").settle()
        tab = debugger.output.locator("#view-step")
        tab.focus()
        page.page.keyboard.press("ArrowRight")
        assert focus(page).startswith("view-answer")
        page.page.keyboard.press("ArrowLeft")
        assert focus(page).startswith("view-step")
        panel = tab.get_attribute("aria-controls")
        expect(debugger.output.locator(f"[id='{panel}']")).to_have_attribute("role", "tabpanel")


@pytest.mark.parametrize("site", ["lab", "notebook7"], indirect=True)
def test_a_widget_of_a_restarted_kernel_says_so_and_can_not_be_pressed(site: Site) -> None:
    with site.open(site.server.write("focus.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        debugger = page.cell(1).wait("Denis Villeneuve").settle()
        page.page.evaluate("void jupyterapp.commands.execute('notebook:restart-kernel')")
        page.page.get_by_role("button", name="Confirm Kernel Restart").click()
        debugger.wait("The kernel was restarted: run this cell again.")
        assert spoken(debugger) == "The kernel was restarted: run this cell again."
        assert debugger.output.locator("[aria-busy=true]").count() == 0
        assert debugger.output.locator(".kg").first.evaluate(
            "node => Boolean(node.closest('[inert]'))"
        )
        page.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.reload()
        debugger.wait("Denis Villeneuve")
        debugger.wait("The kernel was restarted: run this cell again.")
        assert "model not found" not in page.text
        expect(debugger.output.locator(".kg[data-static]")).to_have_count(1)
        page.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        expect(debugger.button("To the start")).to_be_visible()
        debugger.settle().click("To the start").wait("No answer yet")
        # The debugger that a restarted kernel begins with writes remarks.
        assert [line for line in page.problems() if "kernel, stderr" not in line] == []
