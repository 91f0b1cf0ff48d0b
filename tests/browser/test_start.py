"""The first notebook, as it opens, in all three places; `visit` fails on any problem."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.harness import Site
from browser.named import walk

MADE = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.begin("Who directed Arrival?")
debugger = workbench.debug()
"""


def test_a_notebook_that_a_person_ran_and_saved_shows_its_widgets_without_their_kernel(
    lab: Site,
) -> None:
    cells = (MADE, "debugger", "workbench.cell('qir')")
    with lab.visit(lab.server.write("saved.ipynb", *cells)) as page:
        page.run_all()
        page.cell(1).click("Continue", until="Denis Villeneuve")
        page.cell(2).wait("Arrival")
        page.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.reload()
        # Its kernel lives
        page.cell(1).wait("Denis Villeneuve").tab("Answer", until="Where the time went")
        page.page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
        page.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.reload()
        page.cell(1).wait("Denis Villeneuve").wait("Where the time went")
        page.cell(2).wait("Arrival")
        assert "model not found" not in page.text
        expect(page.cell(1).output.locator(".kg[data-static]")).to_have_count(1)
        expect(page.cell(1).button("Continue")).to_be_hidden()
        page.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.cell(1).wait("No answer yet").click("Continue", until="Denis Villeneuve")


def test_the_first_notebook_runs_from_top_to_bottom(site: Site) -> None:
    with site.visit("00_start.ipynb") as page:
        if site.server.kind != "voila":  # which has run every cell
            assert walk(page, "00_start.ipynb") == []
        page.cell('ask("Who directed Stalker?")').wait("Andrei Tarkovsky")
        page.cell("workbench.subgraph(").wait("✓")
        page.cell("workbench.debug(").click("Continue", until="Daniel Radcliffe")
