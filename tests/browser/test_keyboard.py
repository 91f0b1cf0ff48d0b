"""Notebook 10 worked through by the keyboard alone, as somebody without a mouse does."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.harness import Cell, NotebookPage, Site
from browser.test_chatty_kg import RESULTS

FOCUS = """() => {
  const node = document.activeElement, cell = node.closest(".jp-CodeCell");
  return [[...document.querySelectorAll(".jp-CodeCell")].indexOf(cell),
          [node.getAttribute("aria-label"), node.id, node.innerText].map(text => (text || "").slice(0, 40))];
}"""
"""The number of the code cell that has the focus, and how what has it may be called."""
MOST_TABS = 80


class Keys:
    """What a person does with a keyboard."""

    def __init__(self, page: NotebookPage) -> None:
        self.page, self.keys = page, page.page.keyboard
        self.here = -1
        """The code cell that was run latest."""

    def run_next(self, *, has_widget: bool = True) -> Cell:
        """Run cells up to the next code cell; where that shows a widget, come back to it once it is there."""
        self.here += 1
        cell = self.page.cell(self.here)
        while not cell.active:
            self.keys.press("Shift+Enter")
        self.keys.press("Shift+Enter")
        cell.finish()
        if has_widget:
            cell.output.locator(".kg:not([data-static])").first.wait_for()
            self.keys.press("ArrowUp")
        return cell

    def reach(self, label: str, key: str = "Tab") -> None:
        """Press Tab, or Shift+Tab, until what has that label, or begins so, has the focus."""
        seen = []
        for _ in range(MOST_TABS):
            self.keys.press(key)
            place, names = self.page.page.evaluate(FOCUS)
            if place == self.here and any(name.startswith(label) for name in names):
                return
            seen.append(names)
        raise AssertionError(f"{label!r} is not among {seen}")

    def press(self, label: str, key: str = "Tab") -> None:
        self.reach(label, key)
        self.keys.press("Enter")

    def leave(self) -> None:
        """Back to the notebook, and on to the cell below."""
        self.keys.press("Escape")
        self.keys.press("ArrowDown")


def try_out(me: Keys, agent: str, cell: Cell) -> None:
    """What the notebook says to look at in an agent's cell."""
    match agent:
        case "qir":
            me.press("Attempts")
            cell.wait("accepted")
            me.press("Edit as a form")
            cell.wait("Use this result")
        case "entity_retriever":
            me.reach("among")
            me.keys.type("Hogwarts")
            me.keys.press("Enter")
            cell.wait("Hogwarts")
        case "vertex_selection":
            me.press("take-1")
            cell.settle().wait("by hand")
            me.press("Undo the edit", "Shift+Tab")
            cell.wait("by hand", gone=True)
        case "relation_linking":
            me.press("examples")
            cell.wait("Philosopher's Stone")
        case "query_generator":
            me.press("edit and run")
            me.press("Run query")
            cell.wait("row")


def test_the_whole_notebook_is_worked_through_by_keyboard(lab: Site) -> None:
    with lab.visit("10_chatty_kg.ipynb") as page:
        me = Keys(page)
        me.run_next(has_widget=False)
        for name, result in RESULTS.items():
            cell = me.run_next()
            me.press("Run")
            cell.settle().wait("done").wait(result)
            try_out(me, name, cell)
            me.leave()
        subgraph = me.run_next()
        me.press("node-0")
        subgraph.wait("Expand one hop")
        me.press("Table", "Shift+Tab")
        subgraph.wait("stands for")
        me.leave()
        debugger = me.run_next().wait("2001-11-16")
        me.press("To the start")
        debugger.wait("No answer yet")
        me.press("Step")
        debugger.wait("Stopped on the way").settle()
        stop = debugger.output.get_by_role("button", name="stop after context")
        me.keys.press("j")  # on to the next agent, stop there, continue
        expect(debugger.row("context")).to_have_attribute("aria-current", "step")
        me.keys.press("b")
        expect(stop).to_have_attribute("aria-pressed", "true")
        me.keys.press("c")
        debugger.settle().wait("Stopped on the way")
        me.keys.press("b")
        expect(stop).to_have_attribute("aria-pressed", "false")
        me.keys.press("c")
        debugger.settle().wait("Answered")
        me.leave()
        me.run_next(has_widget=False).wait("2001-11-16")
