"""Agents, a subgraph and a debugger worked through by the keyboard alone, as somebody without a mouse does."""

from __future__ import annotations

from browser.harness import Cell, NotebookPage, Site

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


SETUP = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.ask("Who is the author of Harry Potter?")
run = workbench.begin("When was its first movie released?")
"""
AGENTS = ("qir", "vertex_selection", "query_generator")
CELLS = (
    *(f'workbench.cell("{name}")' for name in AGENTS),
    "workbench.subgraph()",
    "workbench.debug()",
)


def test_a_notebook_is_worked_through_by_keyboard(lab: Site) -> None:
    with lab.visit(lab.server.write("keyboard.ipynb", SETUP, *CELLS, "run.go()")) as page:
        me = Keys(page)
        me.run_next(has_widget=False)
        qir = me.run_next()
        me.press("Run")
        qir.settle().wait("done")
        me.press("Attempts")
        qir.wait("accepted")
        me.press("Edit as a form")
        qir.wait("Use this result")
        me.leave()
        selection = me.run_next()
        me.press("Run")
        selection.settle().wait("book series")
        me.press("take-1")
        selection.settle().wait("by hand")
        me.press("Undo the edit", "Shift+Tab")
        selection.wait("by hand", gone=True)
        me.leave()
        generator = me.run_next()
        me.press("Run")
        generator.settle().wait("PREFIX fl:")
        me.press("edit and run")
        me.press("Run query")
        generator.wait("row")
        me.leave()
        subgraph = me.run_next()
        me.press("node-0")
        subgraph.wait("Expand one hop")
        me.press("Table", "Shift+Tab")
        subgraph.output.locator("table").first.wait_for()
        me.leave()
        debugger = me.run_next()
        me.press("Continue")
        debugger.settle().wait("Answered")
        me.leave()
        me.run_next(has_widget=False).wait("2001-11-16")
