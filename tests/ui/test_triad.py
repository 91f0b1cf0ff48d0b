"""Triad in cells and debugger: each record shows what a person has to see of it."""

from __future__ import annotations

import pytest
from page import Page, text
from triads import TRIAD, answered, choice, template, triplets

from kgwb.show.run import run_html
from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.ui.cell import AgentCell
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import Session, session_of


def two_tries() -> Session:
    found = triplets("Dune | directed by | ?x")
    wrong = triplets("Qwxz | directed by | ?x")
    run, _ = answered(
        triplets=[wrong, found],
        template=template("SELECT ?x WHERE { <Dune> <directed by> ?x . }"),
        query_choice=choice(2),
    )
    return session_of(run)


def test_the_slots_of_a_template_are_filled_with_each_candidate() -> None:
    session = two_tries()
    step = session.steps["queries[try 2/parsing]"]
    page = Page(view(step.output, Around(inputs=tuple(step.inputs.values()))))
    for part in ("SELECT ?x WHERE", "Dune, Film", "→ director", "Denis Villeneuve", "David Lynch"):
        assert part in page.text


@pytest.mark.parametrize("agent", [spec.name for spec in TRIAD.agents if spec.name != "own_knowledge"])
def test_every_agent_has_a_cell(agent: str) -> None:
    cell = AgentCell(two_tries(), agent)
    for section in cell.sections(cell.key, cell.step):
        cell.update({"do": "section", "arg": section})
        assert "Failed" not in text(cell)


def test_the_timeline_names_the_phase_of_each_try_and_what_it_changed() -> None:
    debugger = Debugger(two_tries())
    shown = text(debugger)
    for part in ("try 1 · parsing: back to parsing", "try 2 · parsing: a query; changed: ⟨Dune"):
        assert part in shown
    attempt = debugger.session.steps["attempt[try 2/parsing]"]
    assert "⟨Dune, directed by, ?x⟩" in Page(view(attempt.output, Around())).text
    assert "try 2/parsing" in Page(run_html(debugger.session.run)).text


def test_own_knowledge_is_shown_as_such() -> None:
    nothing = triplets("Qwxz | born in | ?x")
    run, _ = answered(triplets=nothing, own_fact={"answer": "Rome"}, settings={"own_knowledge": True})
    assert "not grounded" in Page(run_html(run)).text
