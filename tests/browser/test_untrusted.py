"""A notebook as it opens before anything is run: trusted if it is kgwb's own, else without styles."""

from __future__ import annotations

import nbformat
from playwright.sync_api import expect

from browser.harness import Site

STRANGE = "strange.ipynb"


def change_a_word(site: Site, notebook: str) -> str:
    """Write a copy of a notebook that is not as it came; its name. JupyterLab does not trust it."""
    folder = site.server.folder / "notebooks"
    content = nbformat.read(folder / notebook, as_version=4)
    content.cells[0].source += " Changed."
    nbformat.write(content, folder / STRANGE)
    return STRANGE


def test_kgwbs_own_notebooks_are_trusted_and_have_their_styles(lab: Site) -> None:
    with lab.visit("00_start.ipynb", outputs=True) as page:
        banner = page.cell('workbench.ask("Who directed Stalker?")').show().output.locator(".big")
        expect(banner.first).to_have_css("font-size", "21px")


def test_an_untrusted_notebook_reads_well_without_a_style_sheet(lab: Site) -> None:
    lab.server.renew(outputs=True)
    name = change_a_word(lab, "00_start.ipynb")
    with lab.visit(name, outputs=True) as page:
        answer = page.cell('workbench.ask("Who directed Stalker?")')
        answer.wait("Stalker — director → Andrei Tarkovsky")
        assert answer.output.locator("style").count() == 0
        debugger = page.cell("workbench.debug(").wait("Not run yet")
        assert debugger.output.locator("button, input, textarea").count() == 0
        picture = page.cell("workbench.subgraph()").show().output.locator("img")
        assert "Arrival — director → Denis Villeneuve" in str(picture.get_attribute("alt"))
