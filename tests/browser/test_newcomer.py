"""A newcomer with a graph of his own: from the first notebook to the first right answer."""

from __future__ import annotations

from browser.harness import Cell, Site

HUTS = """
@prefix : <https://example.org/huts/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:monte_rosa rdfs:label "Monte Rosa Hut" ; :warden :anna ; :altitude 2883 .
:anna rdfs:label "Anna Imhof" .
"""
MOST_ACTIONS = 5


class Newcomer:
    """Acts on a page and counts the actions."""

    def __init__(self) -> None:
        self.actions = ["make lab"]

    def replace(self, cell: Cell, old: str, new: str) -> None:
        """Select a text in a cell, and type another in its place."""
        line = cell.root.locator(".cm-line", has_text=old)
        line.get_by_text(old, exact=True).dblclick()
        cell.page.page.keyboard.press("Home")
        cell.page.page.keyboard.press("Shift+End")
        whole = line.inner_text()
        cell.page.page.keyboard.insert_text(whole.replace(old, new))
        self.actions.append(f"type {new}")

    def run(self, cell: Cell) -> None:
        cell.run()
        self.actions.append("Shift+Enter")


def test_the_first_right_answer_about_an_own_graph_takes_five_actions(lab: Site) -> None:
    with lab.visit("00_start.ipynb") as page:
        path = lab.server.folder / "notebooks" / "huts.ttl"
        path.write_text(HUTS)
        newcomer = Newcomer()
        setup, ask = page.cell("kgwb.open_kg"), page.cell('workbench.ask("Who directed Stalker?")')
        newcomer.replace(setup, '"films"', '"huts.ttl"')
        newcomer.run(setup)
        newcomer.replace(
            ask, '"Who directed Stalker?"', '"Who is the warden of the Monte Rosa Hut?"'
        )
        newcomer.run(ask)
        assert ask.output.locator(".answer .big").first.inner_text() == "Anna Imhof"
        assert len(newcomer.actions) <= MOST_ACTIONS, newcomer.actions
