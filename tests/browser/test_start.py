"""The first notebook, as it opens, in all three places; `visit` fails on any problem."""

from __future__ import annotations

import pytest

from browser.harness import Site


def test_a_notebook_that_was_not_run_shows_what_it_carries(lab: Site) -> None:
    with lab.visit("10_chatty_kg.ipynb", outputs=True) as page:
        page.cell('workbench.cell("vertex_selection")').wait("linked so before in this dialogue")
        assert "model not found" not in page.text.casefold()


@pytest.mark.parametrize("place", ["lab", "notebook7", "voila"])
def test_the_first_notebook_runs_from_top_to_bottom(place: str, request: pytest.FixtureRequest) -> None:
    site: Site = request.getfixturevalue(place)
    with site.visit("00_start.ipynb") as page:
        page.run_all()
        for answer in ("Andrei Tarkovsky", "1986", "1967", "not in this graph"):
            assert answer in page.text
        subgraph, debugger = page.cell("workbench.subgraph("), page.cell("workbench.debug(")
        subgraph.wait("✓")
        debugger.click("Continue", until="Daniel Radcliffe")
