"""Surveyor in cells and debugger: each record shows what a person has to see of it."""

from __future__ import annotations

import pytest
from page import Page, press, settle, text
from surveying import AGENTS, DIRECTED, FINE, NOT_HERE, TABLE, answered, draft, revise

from kgwb.show.run import record_html, run_html
from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.show.text import tree
from kgwb.ui.cell import AgentCell
from kgwb.ui.debugger import VIEWS, Debugger
from kgwb.ui.session import Session, session_of

WRONG = "SELECT ?film WHERE { org:denis org:director ?film }"


def revised() -> Session:
    first = draft(WRONG, "list", "film", assumptions=["shorts are films"])
    return session_of(answered(first, [revise(TABLE, "film", "minutes"), FINE])[0])


def shown(session: Session, key: str) -> str:
    step = session.steps[key]
    return Page(view(step.output, Around(inputs=tuple(step.inputs.values())))).text


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_a_cell(agent: str) -> None:
    cell = AgentCell(revised(), agent)
    for section in cell.sections(cell.key, cell.step):
        cell.update({"do": "section", "arg": section})
        assert "Failed" not in text(cell)
    assert agent.replace("_", " ") in cell.static()


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("mention_finder", ["Which films did Denis Villeneuve direct?", "about Film"]),
        ("value_finder[Denis Villeneuve]", ["Denis Villeneuve"]),
        ("drafter", ["Which films did Denis", "list film", "director", "assumed shorts are films"]),
        ("executor[draft]", ["0 rows", "nothing in the graph matches", "the other way round it holds"]),
        ("reviewer[draft]", ["revised", "before", "after", "OPTIONAL"]),
        (
            "executor[revision 1]",
            ["3 rows", "?minutes", "Arrival", "116", "?minutes is empty in 2 of 3 rows"],
        ),
        ("reviewer[revision 1]", ["fine"]),
        ("answer", ["film", "minutes", "Arrival", "116"]),
    ],
)
def test_a_record_shows_what_it_holds(key: str, texts: list[str]) -> None:
    read = shown(revised(), key)
    for part in texts:
        assert part in read


def test_what_is_not_in_the_graph_is_shown() -> None:
    refused, _ = answered(draft("", missing="what a film cost"))
    assert "Not in this graph: what a film cost" in shown(session_of(refused), "drafter")
    reviewed, _ = answered(draft(), NOT_HERE)
    assert "not in this graph" in shown(session_of(reviewed), "reviewer[draft]")
    broken, _ = answered(draft("SELECT nonsense"))
    assert "does not parse" in shown(session_of(broken), "executor[draft]")


def test_the_debugger_steps_through_every_agent_and_view() -> None:
    session = revised()
    made = Debugger(session)
    for name in VIEWS:
        made.update({"do": "view", "arg": name})
        assert "please report this" not in text(made)
    press(made, "To the start")
    for _ in range(20):
        if session.run.status == "done":
            break
        press(made, "Step")
        settle(session)
    assert session.run.answer is not None
    assert sorted(session.run.answer.labels) == ["Arrival · 116", "Dune · ", "Sicario · "]
    assert "Arrival" in run_html(session.run) and "executor" in tree(session.run)
    assert DIRECTED not in record_html(session.run.answer)
