"""DoG in cells and debugger: every agent has its cell, and the debate reads as a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from debate import KEYS, LEFT, MARKED, QUESTION, TWO_HOPS, filtering, remark
from page import Page, text
from small import DOG, dog

from kgwb import profile
from kgwb.errors import OverrideError
from kgwb.flow import UNGROUNDED
from kgwb.llm import Scripted
from kgwb.settings import Settings
from kgwb.show.run import run_html
from kgwb.show.subgraph import subgraph
from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.show.text import tree
from kgwb.ui.cell import AgentCell
from kgwb.ui.debugger import VIEWS, Debugger
from kgwb.ui.session import Session, session_of

AGENTS = [spec.name for spec in DOG.agents]
SILENT = {"fused_agent", "own_knowledge"}
"""Those that have nothing to do in these two hops."""


def two_hops(settings: Settings | None = None, **changed: Any) -> Session:
    script = {**TWO_HOPS, **{f"dog/{name}": reply for name, reply in changed.items()}}
    return session_of(dog(QUESTION, Scripted(script), settings=settings).go())


def shown(session: Session, key: str) -> str:
    step = session.steps[key]
    return Page(view(step.output, Around(inputs=tuple(step.inputs.values())))).text


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_a_cell(agent: str) -> None:
    cell = AgentCell(two_hops(), agent)
    assert ("not needed" in text(cell)) == (agent in SILENT)
    for section in cell.sections(cell.key, cell.step):
        cell.update({"do": "section", "arg": section})
        assert "Failed" not in text(cell)
    assert agent.replace("_", " ") in cell.static()


def test_a_roles_words_are_put_in_by_hand() -> None:
    session = two_hops()
    said = session.steps["critic[hop 1/round 1]"].output
    words = {"role": said.role, "words": "mine", "question": "In which place was [Denis Villeneuve] born?"}
    session.run.replace("critic[hop 1/round 1]", words).go()
    assert session.run["critic"].origin == "by hand"
    with pytest.raises(OverrideError, match="empty"):
        session.run.replace("critic[hop 1/round 1]", {**words, "question": ""})


def test_the_debate_reads_as_a_conversation_up_to_who_speaks() -> None:
    session = two_hops()
    first, second, last = (shown(session, key) for key in KEYS[11:14])
    assert ("he directed it" in first, "it is about him" in first) == (True, False)
    assert second.index("he directed it") < second.index("it is about him")
    assert last.index("it is about him") < last.index("who he is needs no words")
    whole = shown(session, "simplifying[hop 1]")
    places = [whole.index(role) for role in ("simplifying expert", "critic", "linguist")]
    assert places == sorted(places)


def test_the_question_shrinks_hop_by_hop() -> None:
    told = shown(two_hops(), "iteration[hop 2]")
    longer, shorter = MARKED.replace("[", " ").replace("]", " "), LEFT.replace("[", " ").replace("]", " ")
    told, longer, shorter = (" ".join(text.split()) for text in (told, longer, shorter))
    assert told.index(longer) < told.index(shorter) < told.index("yes")


def test_what_a_choice_was_made_from_is_shown_with_it() -> None:
    told = shown(two_hops(), "relation_filtering[hop 1/Arrival]")
    for part in ("Who directed [Arrival]?", "taken", "runtime"):
        assert part in told


def test_the_timeline_tells_each_role_and_the_debugger_shows_the_whole() -> None:
    debugger = Debugger(two_hops())
    parts = (f"linguist {LEFT}", "relation filtering director", "answer trying enough: no")
    assert [part for part in (*parts, "Find the start", "×2", "Gentilly") if part not in text(debugger)] == []
    for name in VIEWS:
        debugger.update({"do": "view", "arg": name})
        assert "Failed" not in text(debugger)


def test_the_path_so_far_is_in_the_subgraph_while_the_walk_goes_on() -> None:
    run = dog(QUESTION, Scripted(TWO_HOPS)).go(until="triple_filling")
    roles = {node.label: [str(role) for role in node.roles] for node in subgraph(run).nodes}
    assert roles == {
        "Arrival": ["linked to “Arrival”", "support"],
        "Denis Villeneuve": ["reached by “director”", "support"],
    }
    [value] = subgraph(run).answers
    assert [edge.triple for edge in subgraph(run).edges] == list(value.support)
    found = subgraph(run.go())
    assert [node.label for node in found.nodes if node.shape == "answer"] == ["Gentilly"]
    assert [node.label for node in found.nodes if node.shape == "unknown"] == ["Denis Villeneuve"]
    assert len(found.edges) == 2


def test_an_ungrounded_answer_says_so_wherever_it_is_shown() -> None:
    session = two_hops(
        Settings(own_knowledge=True), relation_filtering=filtering(""), own_knowledge={"answers": ["Quebec"]}
    )
    run = session.run
    places = {
        "text": str(run.answer),
        "repr": repr(run),
        "tree": tree(run.steps, run.calls),
        "page": Page(run_html(run)).text,
        "step": shown(session, "own_knowledge"),
        "debugger": text(Debugger(session)),
    }
    assert [name for name, told in places.items() if "Quebec" in told and UNGROUNDED not in told] == []
    assert all("Quebec" in told for told in places.values())
    assert "Quebec" not in [node.label for node in subgraph(run).nodes]


def test_without_a_debate_nothing_is_lost() -> None:
    session = two_hops(profile("fast", ablation="expert_only"), simplifying_expert=remark(LEFT, "alone"))
    assert "alone" in shown(session, "simplifying[hop 1]")
