"""RoboData in cells: every step in every view, and a decision edited as a form."""

from __future__ import annotations

from machine import answered, goes, produce, search
from page import Page, page, text

from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.ui.cell import AgentCell
from kgwb.ui.session import session_of


def test_every_step_has_a_cell_whose_views_can_be_shown() -> None:
    session = session_of(answered(settings={"metacognition": True})[0])
    for key, step in session.steps.items():
        cell = AgentCell(session, key)
        for section in cell.sections(cell.key, cell.step):
            cell.update({"do": "section", "arg": section})
            assert "Failed" not in text(cell), f"{key} {section}"
        assert step.agent.replace("_", " ") in cell.static()


def test_records_show_what_they_hold() -> None:
    refused = {"tool": "sparql_query", "sparql": "DROP ALL"}
    run, _ = answered(
        remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", refused)], produce=produce(["orgx:amy"])
    )

    def shown(key: str) -> str:
        step = run[key]
        return Page(view(step.output, Around(inputs=tuple(step.inputs.values())))).text

    for key, parts in {
        "turn[turn 5]": ["5 turns", "EVAL_REMOTE", "start", "now", "thought so", "Timothée Chalamet"],
        "remote[turn 3]": ["EVAL_REMOTE comes next", "sparql_query", "DROP ALL"],
        "search_entities": ["2 rows", "entity", "types"],
        "sparql_query": ["error", "change the graph"],
        "local_graph[turn 5]": ["3 nodes, 2 edges", "director", "its triples"],
        "produce": ["1. Denis Villeneuve directed Dune.", "not in the graph: orgx:amy"],
    }.items():
        read = shown(key)
        assert [part for part in parts if part not in read] == [], read


def test_a_decision_is_edited_as_a_form() -> None:
    run, _ = answered()
    cell = AgentCell(session_of(run), "remote[turn 2]")
    cell.update({"do": "section", "arg": "form"})
    shown = page(cell)
    assert "search_entities" in str(shown.values(shown.find("Use this result").form))
    run.replace(
        "remote[turn 2]",
        {"thought": "", "next": "REMOTE", "actions": ['{"tool": "get_entity_info", "entity": "a"}']},
    )
    run.go(until="remote[turn 2]")
    assert run.output("remote[turn 2]").actions[0].spec.name == "get_entity_info"
