"""A late script and a busy kernel: the page stays alive."""

from __future__ import annotations

from browser.harness import Site

# The kernel hands a click over while a cell awaits; one that blocks is waited for.
BUSY = """
import asyncio
while not done:
    await asyncio.sleep(0.05)
"""
RULES = """
import ipywidgets as widgets
import kgwb
done = []
end = widgets.Button(description="End it")
end.on_click(lambda _: done.append(True))
debugger = kgwb.Workbench(kgwb.open_kg("films"), "rules").debug("Who directed Arrival?")
widgets.VBox((end, debugger))
"""
# anywidget gives a script 2 s, which a slow machine may exceed; here it gives it no time at all.
NO_TIME = """() => {
  AbortSignal.timeout = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort());
    return controller.signal;
  };
}"""


def test_a_widget_whose_script_is_late_answers_while_a_cell_is_busy(lab: Site) -> None:
    with lab.visit(lab.server.write("busy.ipynb", RULES, BUSY)) as page:
        page.page.evaluate(NO_TIME)
        cell, busy = page.cell(0).run(), page.cell(1).start()
        cell.click("Continue", until="Denis Villeneuve")
        assert busy.busy
        cell.click("End it")
        busy.finish()
