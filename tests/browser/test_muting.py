"""A supporting triple is muted by its button, and the page tells whether the answer stands without it."""

from __future__ import annotations

from browser.harness import Site

CODE = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"))
workbench.debug("Who directed Arrival?")
"""


def test_the_answer_without_a_triple(lab: Site) -> None:
    with lab.visit(lab.server.write("muting.ipynb", CODE)) as page:
        page.run_all()
        cell = page.cell("workbench.debug")
        cell.click("Continue", until="Denis Villeneuve")
        cell.tab("Answer").wait("stands on")
        cell.click("Mute", until="The answer does not stand without this triple.")
        cell.wait("without Arrival — director → Denis Villeneuve")
