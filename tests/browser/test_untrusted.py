"""A notebook as it opens before anything is run: trusted if it is kgwb's own, else without styles."""

from __future__ import annotations

import nbformat
from playwright.sync_api import expect

from browser.harness import Site


def test_kgwbs_own_notebooks_are_trusted_and_have_their_styles(lab: Site) -> None:
    with lab.visit("00_start.ipynb", outputs=True) as page:
        banner = page.cell('workbench.ask("Who directed Stalker?")').show().output.locator(".big")
        expect(banner.first).to_have_css("font-size", "21px")
        assert "model not found" not in page.text.casefold()


def test_an_untrusted_notebook_reads_well_without_a_style_sheet(lab: Site) -> None:
    lab.server.renew(outputs=True)
    folder = lab.server.folder / "notebooks"
    content = nbformat.read(folder / "00_start.ipynb", as_version=4)
    content.cells[0].source += " Changed."
    nbformat.write(content, folder / "strange.ipynb")
    with lab.visit("strange.ipynb", outputs=True) as page:
        answer = page.cell('workbench.ask("Who directed Stalker?")')
        answer.wait("Stalker — director → Andrei Tarkovsky")
        assert answer.output.locator("style").count() == 0
        debugger = page.cell("workbench.debug(").wait("Not run yet")
        assert debugger.output.locator("button, input, textarea").count() == 0
        picture = page.cell("workbench.subgraph()").show().output.locator("img")
        assert "Arrival — director → Denis Villeneuve" in str(picture.get_attribute("alt"))
