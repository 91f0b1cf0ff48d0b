"""RAGonite in cells and debugger: the schema as a diagram, uses of tools, the answer with its sources lit."""

from __future__ import annotations

import pytest
from page import Page, press, settle, text
from ragonite import DIRECTED, FINISH, answered, cited, passages, sql

from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.ui.cell import AgentCell
from kgwb.ui.debugger import VIEWS, Debugger
from kgwb.ui.session import Session, session_of


def finished() -> Session:
    found = cited(("arrival", 2), text="This [2].")
    return session_of(answered(sql("SELECT x FROM film"), sql(), passages(), answer=found)[0])


def shown(session: Session, key: str) -> str:
    step = session.steps[key]
    return Page(view(step.output, Around(inputs=tuple(step.inputs.values())))).text


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        (
            "ragonite",
            ["Subgraph: 3 nodes", "film (4) — director → thing (8)", "CREATE TABLE film", "director TEXT"],
        ),
        ("sql[turn 1]", ["SELECT x FROM film", "no such column: x"]),
        ("sql[turn 2]", [DIRECTED, "3 rows", "arrival", "Arrival"]),
        ("passages[turn 3]", ["Denis Villeneuve"]),
        ("answerer", ["This [2].", "arrival", "cited", "not cited"]),
        ("answer", ["Arrival", "director", "Denis Villeneuve"]),
    ],
)
def test_a_record_shows_what_it_holds(key: str, texts: list[str]) -> None:
    read = shown(finished(), key)
    for part in texts:
        assert part in read


def test_every_agent_has_a_cell_and_the_debugger_steps_through() -> None:
    session = session_of(answered(sql(), passages(), FINISH)[0])
    for agent in {step.agent for step in session.run.steps}:
        cell = AgentCell(session, agent)
        for section in cell.sections(cell.key, cell.step):
            cell.update({"do": "section", "arg": section})
            assert "Failed" not in text(cell)
    debugger = Debugger(session)
    for name in VIEWS:
        debugger.update({"do": "view", "arg": name})
        assert "please report this" not in text(debugger)
    press(debugger, "To the start")
    for _ in range(20):
        if session.run.status == "done":
            break
        press(debugger, "Step")
        settle(session)
    assert session.run.answer is not None
    assert session.run.answer.labels == ("Arrival", "Dune", "Sicario")
