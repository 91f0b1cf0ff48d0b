"""One question, stepped, edited and undone by somebody who does not see the page: what a screen reader reads of it."""

from __future__ import annotations

from pathlib import Path

from browser.harness import Cell, Site
from browser.test_focus import RUN, press, spoken


def read(cell: Cell) -> str:
    """The accessibility tree of a debugger as text."""
    return cell.settle().output.get_by_role("group", name="debugger: ").first.aria_snapshot()


def test_a_question_is_stepped_edited_and_undone_without_seeing_it(
    lab: Site, tmp_path: Path
) -> None:
    with lab.visit(lab.server.write("spoken.ipynb", RUN, "workbench.debug()")) as page:
        page.run_all()
        cell = page.cell(1).wait("Denis Villeneuve").settle()
        way = [spoken(cell), read(cell)]
        assert 'group "debugger: Who directed Arrival?"' in way[-1]
        assert 'group "answer": Denis Villeneuve Answered' in way[-1]
        for tabs in ("views", "roles", "parts of the step"):
            assert f'tablist "{tabs}"' in way[-1]
        press(cell, "To the start")
        press(cell, "Step")
        assert spoken(cell).startswith("translator: done")
        assert 'button "qir qir agent ahead 1 triple' in read(cell)
        press(cell, "Continue")
        assert spoken(cell) == "execution: done, Answered, Denis Villeneuve"

        cell.row("qir").focus()
        page.page.keyboard.press("Enter")
        cell.settle()
        before = spoken(cell)
        assert before.startswith("qir: done, ")
        cell.output.get_by_role("tab", name="Edit as a form").focus()
        page.page.keyboard.press("Enter")
        cell.wait("Use this result").fill("relation 1", "was written by")
        press(cell, "Use this result")
        cell.wait("by hand").settle()
        way += [spoken(cell), read(cell)]
        assert spoken(cell).startswith("qir: by hand, ")
        assert "Continue to see the answer" in spoken(cell)
        assert 'button "qir qir agent by hand' in way[-1]
        press(cell, "Continue")
        cell.wait("Not in this graph").settle()
        assert spoken(cell).startswith("execution: done, Not in this graph, ")

        cell.row("qir").focus()
        page.page.keyboard.press("Enter")
        press(cell.settle(), "Undo the edit")
        cell.wait("by hand", gone=True).settle()
        assert spoken(cell).startswith("qir: done, ")
        press(cell, "Continue")
        cell.wait("Denis Villeneuve").settle()
        way += [spoken(cell), read(cell)]
        assert spoken(cell) == "execution: done, Answered, Denis Villeneuve"
        (tmp_path / "way.txt").write_text("\n\n".join(way), encoding="utf-8")
