"""A slow model and a busy kernel: the page stays alive."""

from __future__ import annotations

from browser.harness import Site

SLOW = """
import kgwb
from kgwb.llm import Scripted
slow = Scripted(lambda request: "never", remote=True, delay_s=3000)  # longer than any test may take
kgwb.Workbench(kgwb.open_kg("films"), slow).debug("Who directed Arrival?")
"""
# The kernel hands a click over while a cell awaits; one that blocks is waited for.
BUSY = """
import asyncio
while not done:
    await asyncio.sleep(0.05)
"""
RULES = """
import ipywidgets as widgets
done = []
end = widgets.Button(description="End it")
end.on_click(lambda _: done.append(True))
debugger = kgwb.Workbench(kgwb.open_kg("films"), "rules").debug("Who directed Arrival?")
widgets.VBox((end, debugger))
"""


def test_a_slow_model_is_cancelled_in_the_middle(lab: Site) -> None:
    with lab.visit(lab.server.write("slow.ipynb", SLOW)) as page:
        cell = page.cell(0).run()
        cell.click("Continue").wait("Running to the end")
        cell.click(cell.button("Cancel").first).wait("Cancelled")


def test_a_question_is_answered_while_a_cell_is_busy(lab: Site) -> None:
    with lab.visit(lab.server.write("busy.ipynb", "import kgwb", RULES, BUSY)) as page:
        page.cell(0).run()
        cell, busy = page.cell(1).run(), page.cell(2).start()
        cell.click("Continue", until="Denis Villeneuve")
        assert busy.busy
        cell.click("End it")
        busy.finish()


NO_TIME = """() => {
  AbortSignal.timeout = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort());
    return controller.signal;
  };
}"""


def test_a_widget_whose_script_is_late_is_alive(lab: Site) -> None:
    """anywidget gives a script 2 s, which a slow machine may exceed; here it gives it no time at all."""
    with lab.visit(lab.server.write("late.ipynb", "import kgwb", RULES)) as page:
        page.page.evaluate(NO_TIME)
        page.cell(0).run()
        page.cell(1).run().click("Continue", until="Denis Villeneuve")
