"""Where the focus is after each act of a person without a mouse, and what is read out to one who sees no page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, NotebookPage, Site

RUN = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
_ = workbench.ask("Who directed Arrival?")
"""
MADE = """
import kgwb
def asked(question="Who directed Arrival?"):
    workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
    workbench.ask(question)
    return workbench
"""
SOLARIS = 'asked("Who directed Solaris?").debug()'
DEBUGGERS = {name: f"{name} = asked().debug(); {name}" for name in ("edit", "rows", "mute", "hear")}
SUBGRAPHS = {name: f"{name} = asked().subgraph(); {name}" for name in ("picture", "frame")}
HAS_FOCUS = """() => {
  const node = document.activeElement;
  return [node.id, node.dataset.do, node.dataset.arg, node.getAttribute("aria-current")].filter(Boolean).join(" ");
}"""
IS_HIT = """link => {
  const box = link.getBoundingClientRect();
  const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return link.contains(hit) && !link.closest("button");
}"""


@pytest.fixture(scope="module")
def page(lab: Site) -> Iterator[NotebookPage]:
    """A notebook with a widget for each test."""
    cells = (MADE, SOLARIS, *DEBUGGERS.values(), *SUBGRAPHS.values())
    with lab.open(lab.server.write("focus.ipynb", *cells)) as page:
        page.cell(0).run()
        yield page


def focus(page: NotebookPage) -> str:
    """The id, event, argument and aria-current of what has the focus."""
    return str(page.page.evaluate(HAS_FOCUS))


def spoken(cell: Cell) -> str:
    """What was read out last."""
    return str(cell.output.locator("[role=status]").last.text_content())


def heard(cell: Cell) -> str:
    """The accessibility tree of a debugger as text."""
    return cell.settle().output.get_by_role("group", name="debugger: ").first.aria_snapshot()


def press(cell: Cell, label: str) -> None:
    """Press a button by the keyboard, and wait for what comes of it."""
    cell.button(label).focus()
    cell.page.page.keyboard.press("Enter")
    cell.settle()


def open_debugger(page: NotebookPage, name: str) -> Cell:
    return page.cell(DEBUGGERS[name]).run().wait("Denis Villeneuve").settle()


def edit_row(debugger: Cell, agent: str) -> Cell:
    debugger.row(agent).click()
    return debugger.settle().tab("Edit as a form").wait("Use this result")


def test_a_widget_of_a_restarted_kernel_says_so_and_can_not_be_pressed(lab: Site) -> None:
    # It comes first: a page that is loaded again opens what other pages of the server have open.
    with lab.open(lab.server.write("restarted.ipynb", RUN, "workbench.debug()")) as shown:
        shown.run_all()
        debugger = shown.cell(1).wait("Denis Villeneuve").settle()
        shown.page.evaluate("void jupyterapp.commands.execute('notebook:restart-kernel')")
        shown.page.get_by_role("button", name="Confirm Kernel Restart").click()
        debugger.wait("The kernel was restarted: run this cell again.")
        assert spoken(debugger) == "The kernel was restarted: run this cell again."
        assert debugger.output.locator("[aria-busy=true]").count() == 0
        assert debugger.output.locator("[inert] .kg").count() == 1
        shown.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        shown.reload()
        debugger.wait("Denis Villeneuve")
        debugger.wait("The kernel was restarted: run this cell again.")
        assert "model not found" not in shown.text
        expect(debugger.output.locator(".kg[data-static]")).to_have_count(1)
        shown.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        expect(debugger.button("To the start")).to_be_visible()
        debugger.settle().click("To the start").wait("No answer yet")
        # The debugger that a restarted kernel begins with writes remarks.
        assert [line for line in shown.problems() if "kernel, stderr" not in line] == []


def test_an_edit_and_its_undoing_leave_the_focus_at_the_step(page: NotebookPage) -> None:
    debugger = edit_row(open_debugger(page, "edit"), "qir").fill("relation 1", "was written by")
    press(debugger, "Use this result")
    debugger.wait("by hand")
    assert focus(page) == "section-result section result"
    press(debugger, "Undo the edit")
    debugger.wait("by hand", gone=True)
    assert focus(page) == "section-result section result"


def test_after_a_row_is_removed_the_focus_is_where_it_was(page: NotebookPage) -> None:
    debugger = edit_row(open_debugger(page, "rows"), "qir")
    rows = debugger.output.get_by_role("button", name="Remove this row")
    facts = rows.and_(debugger.output.locator("[data-arg^=facts]"))
    for count in (2, 3):
        debugger.output.locator("#more-facts").click()
        expect(facts).to_have_count(count)
        debugger.settle()
    for removed, focused in ((2, "less facts.2"), (2, "more-facts"), (1, "more-facts")):
        left = facts.count() - 1
        facts.nth(removed - 1).focus()
        page.page.keyboard.press("Enter")
        expect(facts).to_have_count(left)
        debugger.settle()
        assert focused in focus(page)


def test_tabs_are_walked_by_arrows_and_muting_leads_to_the_comparison(page: NotebookPage) -> None:
    debugger = open_debugger(page, "mute")
    tab = debugger.output.locator("#view-step")
    tab.focus()
    page.page.keyboard.press("ArrowRight")
    assert focus(page).startswith("view-answer")
    page.page.keyboard.press("ArrowLeft")
    assert focus(page).startswith("view-step")
    panel = tab.get_attribute("aria-controls")
    expect(debugger.output.locator(f"[id='{panel}']")).to_have_attribute("role", "tabpanel")

    debugger.tab("Answer").settle().output.locator("[data-do=mute]").first.focus()
    page.page.keyboard.press("Enter")
    debugger.wait("First decision that differs").settle()
    assert focus(page) == "view-compare view compare"
    assert spoken(debugger).startswith("one triple muted")


def test_the_link_of_a_candidate_is_a_link_and_the_row_around_it_takes_the_candidate(
    page: NotebookPage,
) -> None:
    debugger = page.cell(SOLARIS).run().settle()
    debugger.row("vertex selection").first.click()
    debugger.settle().wait("take this one")
    row = debugger.output.locator(".cand").filter(has_text="take this one").first
    link = row.locator("a").first
    link.scroll_into_view_if_needed()
    assert link.evaluate(IS_HIT)
    mark = row.locator(".mark").bounding_box()
    assert mark is not None
    page.page.mouse.click(mark["x"] + 5, mark["y"] + 5)
    debugger.settle().wait("by hand")


def test_nodes_of_the_picture_are_walked_by_arrows_chosen_by_space_and_said(
    page: NotebookPage,
) -> None:
    subgraph = page.cell(SUBGRAPHS["picture"]).run().wait("Denis Villeneuve")
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
    page: NotebookPage,
) -> None:
    subgraph = page.cell(SUBGRAPHS["frame"]).run().tab("Interactive").settle()
    subgraph.frame().locator("canvas").wait_for()
    subgraph.output.locator("iframe").focus()
    said = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        before = spoken(subgraph)
        page.page.keyboard.press(key)
        expect(subgraph.output.locator("[role=status]").last).not_to_have_text(before)
        said.add(spoken(subgraph.settle()))
    assert len(said) == 3, said
    page.page.keyboard.press("Escape")
    expect(subgraph.output.locator("#drawn-graph")).to_be_focused()


def test_a_question_is_stepped_edited_and_undone_without_seeing_it(page: NotebookPage) -> None:
    cell = open_debugger(page, "hear")
    for part in (
        'group "debugger: Who directed Arrival?"',
        'group "answer": Denis Villeneuve Answered',
        *(f'tablist "{tabs}"' for tabs in ("views", "roles", "parts of the step")),
    ):
        assert part in heard(cell)
    press(cell, "To the start")
    press(cell, "Step")
    assert spoken(cell).startswith("translator: done")
    assert 'button "qir qir agent ahead 1 triple' in heard(cell)
    press(cell, "Continue")
    assert spoken(cell) == "execution: done, Answered, Denis Villeneuve"

    cell.row("qir").focus()
    page.page.keyboard.press("Enter")
    assert spoken(cell.settle()).startswith("qir: done, ")
    edit_row(cell, "qir").fill("relation 1", "was written by")
    press(cell, "Use this result")
    assert spoken(cell.wait("by hand").settle()).startswith("qir: by hand, ")
    assert "Continue to see the answer" in spoken(cell)
    assert 'button "qir qir agent by hand' in heard(cell)
    press(cell, "Continue")
    cell.wait("Not in this graph").settle()
    assert spoken(cell).startswith("execution: done, Not in this graph, ")
