"""The other systems in cells and debugger: each record shows what a person has to see of it."""

from collections.abc import Callable
from typing import Any

import debate
import machine
import pytest
import ragonite
import surveying
import triads
from page import Page, page, press, settle, text
from small import dog, iri

from kgwb import profile
from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import UNGROUNDED_NOTE, Candidate, RetrievedCandidates
from kgwb.run.steps import format_tree
from kgwb.settings import Settings
from kgwb.show.prompt_form import find_left_out
from kgwb.show.records import render
from kgwb.show.run import render_run_page
from kgwb.show.subgraph import build_subgraph
from kgwb.show.terms import RenderContext
from kgwb.ui.cell import AgentCell
from kgwb.ui.debugger import VIEW_LABELS, Debugger
from kgwb.ui.session import session_of


def walked(settings: Settings | None = None, **changed: Any) -> Run:
    """Two hops of DoG."""
    script = {**debate.TWO_HOPS, **{f"dog/{name}": reply for name, reply in changed.items()}}
    return dog(debate.QUESTION, Scripted(script), settings=settings).go()


def retold() -> Run:
    """Three uses of RAGonite's tools, and an answer that cites one of them."""
    cited = ragonite.cited(("arrival", 2), text="This [2].")
    uses = ragonite.sql("SELECT x FROM film"), ragonite.sql(), ragonite.passages()
    return ragonite.answered(*uses, answer=cited)[0]


def alone() -> Run:
    """DoG, whose expert is not debated with."""
    expert = debate.remark(debate.LEFT, "alone")
    return walked(profile("fast", ablation="expert_only"), simplifying_expert=expert)


def refused() -> Run:
    """RoboData, where a tool refuses, and a sentence names what is not in the graph."""
    drop = {"tool": "sparql_query", "sparql": "DROP ALL"}
    turns = [machine.goes("REMOTE", machine.search()), machine.goes("EVAL_REMOTE", drop)]
    return machine.answered(remote=turns, produce=machine.produce(["orgx:amy"]))[0]


def revised() -> Run:
    """Surveyor, whose first query has no rows."""
    wrong = "SELECT ?film WHERE { org:denis org:director ?film }"
    first = surveying.draft(wrong, "list", "film", assumptions=["shorts are films"])
    reviews = [surveying.revise(surveying.TABLE, "film", "minutes"), surveying.FINE]
    return surveying.answered(first, reviews)[0]


def retried() -> Run:
    """Triad, whose first try finds nothing."""
    tries = [triads.triplets(f"{name} | directed by | ?x") for name in ("Qwxz", "Dune")]
    template = triads.template("SELECT ?x WHERE { <Dune> <directed by> ?x . }")
    return triads.answered(triplets=tries, template=template, query_choice=triads.choice(2))[0]


RUNS: dict[str, Callable[[], Run]] = {
    "dog": walked,
    "ragonite": retold,
    "ragonite finished": lambda: ragonite.answered(
        ragonite.sql(), ragonite.passages(), ragonite.FINISH
    )[0],
    "robodata": lambda: machine.answered(settings={"metacognition": True})[0],
    "surveyor": revised,
    "triad": retried,
}
UNANSWERABLE = surveying.draft("", missing="what a film cost")
MORE_RUNS: dict[str, Callable[[], Run]] = {
    "dog alone": alone,
    "robodata refused": refused,
    "surveyor without a query": lambda: surveying.answered(UNANSWERABLE)[0],
    "surveyor turned away": lambda: surveying.answered(surveying.draft(), surveying.NOT_HERE)[0],
    "surveyor with nonsense": lambda: surveying.answered(surveying.draft("SELECT nonsense"))[0],
}


def read(run: Run, key: str) -> str:
    """All that is read of what a step yielded, beside what came in."""
    step = run[key]
    return Page(
        render(step.output, RenderContext(inputs=tuple(step.inputs.values()), views=step.views))
    ).text


LONG_RUNS = {"dog", "ragonite finished", "robodata", "surveyor", "triad"}
"""Runs of many steps, each of which is drawn: these take seconds."""


def runs_to_step_through() -> list[Any]:
    """The names of RUNS as parameters, of which the LONG_RUNS are marked as long."""
    parameters = []
    for name in RUNS:
        marks = [pytest.mark.long] if name in LONG_RUNS else []
        parameters.append(pytest.param(name, marks=marks))
    return parameters


@pytest.mark.parametrize("name", runs_to_step_through())
def test_every_agent_has_a_cell_and_the_debugger_shows_every_view_and_steps_through(
    name: str,
) -> None:
    session = session_of(RUNS[name]())
    answer, worked = session.run.answer, {step.agent for step in session.run.steps}
    idle = [spec.name for spec in session.run.system.agents if spec.name not in worked]
    for key in (*idle, *session.steps):
        cell = AgentCell(session, key)
        for section, _, _ in cell.sections(cell.key, cell.step):
            cell.update({"do": "section", "arg": section})
            assert "Failed" not in text(cell), f"{key} {section}"
        assert ("not needed" in text(cell)) == (key in idle)
        assert agent_of_key(key).replace("_", " ") in cell.static_html()
    debugger = Debugger(session)
    for shown in VIEW_LABELS:
        debugger.update({"do": "view", "arg": shown})
        assert "Failed: " not in text(debugger)
    press(debugger, "To the start")
    while session.run.status != "done":  # where it does not get there, Step is waited for in vain
        press(debugger, "Step")
        settle(session)
    assert session.run.answer == answer is not None


RECORDS: dict[str, dict[str, list[str]]] = {
    "dog": {
        "relation_filtering[hop 1/Arrival]": ["Who directed [Arrival]?", "taken", "runtime"],
        "critic[hop 1/round 1]": ["he directed it", "it is about him"],
    },
    "dog alone": {"simplifying[hop 1]": ["alone"]},
    "ragonite": {
        "ragonite": [
            "Subgraph: 3 nodes",
            "film (4) — director, starring → thing (8)",
            "CREATE TABLE film",
        ],
        "sql[turn 1]": ["SELECT x FROM film", "no such column: x"],
        "sql[turn 2]": [ragonite.DIRECTED, "3 rows", "arrival", "Arrival"],
        "passages[turn 3]": ["Denis Villeneuve"],
        "answerer": ["This [2].", "arrival", "cited", "not cited"],
        "answer": ["Arrival", "director", "Denis Villeneuve"],
    },
    "robodata refused": {
        "turn[turn 5]": [
            "5 turns",
            "EVAL_REMOTE",
            "start",
            "now",
            "thought so",
            "Timothée Chalamet",
        ],
        "remote[turn 3]": ["EVAL_REMOTE comes next", "sparql_query", "DROP ALL"],
        "search_entities": ["2 rows", "entity", "types"],
        "sparql_query": ["error", "change the graph"],
        "local_graph[turn 5]": ["3 nodes, 2 edges", "director", "its triples"],
        "produce": ["1. Denis Villeneuve directed Dune.", "not in the graph: orgx:amy"],
    },
    "surveyor": {
        "mention_finder": ["Which films did Denis Villeneuve direct?", "about Film"],
        "value_finder[Denis Villeneuve]": ["Denis Villeneuve"],
        "drafter": ["Which films did Denis", "list film", "director", "assumed shorts are films"],
        "executor[draft]": [
            "0 rows",
            "nothing in the graph matches",
            "the other way round it holds",
        ],
        "reviewer[draft]": ["revised", "before", "after", "OPTIONAL"],
        "executor[revision 1]": ["3 rows", "116", "?minutes is empty in 2 of 3 rows"],
        "reviewer[revision 1]": ["fine"],
        "answer": ["film", "minutes", "Arrival", "116"],
    },
    "surveyor without a query": {"drafter": ["Not in this graph: what a film cost"]},
    "surveyor turned away": {"reviewer[draft]": ["not in this graph"]},
    "surveyor with nonsense": {"executor[draft]": ["does not parse"]},
    "triad": {
        "queries[try 2/parsing]": ["SELECT ?x WHERE", "Dune, Film", "→ director", "David Lynch"],
        "attempt[try 2/parsing]": ["⟨Dune, directed by, ?x⟩"],
    },
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_shows_what_it_holds(name: str) -> None:
    run = (RUNS | MORE_RUNS)[name]()
    for key, parts in RECORDS[name].items():
        shown = read(run, key)
        assert [part for part in parts if part not in shown] == [], shown


def test_the_debate_reads_as_a_conversation_up_to_who_speaks_and_the_question_shrinks() -> None:
    run = walked()
    first, second, last = (read(run, key) for key in debate.KEYS[11:14])
    assert ("he directed it" in first, "it is about him" in first) == (True, False)
    assert second.index("he directed it") < second.index("it is about him")
    assert last.index("it is about him") < last.index("who he is needs no words")
    whole = read(run, "simplifying[hop 1]")
    places = [whole.index(role) for role in ("simplifying expert", "critic", "linguist")]
    assert places == sorted(places)
    hop, parts = read(run, "iteration[hop 2]"), (debate.MARKED, debate.LEFT)
    longer, shorter = (" ".join(part.replace("[", " ").replace("]", " ").split()) for part in parts)
    hop = " ".join(hop.split())
    assert hop.index(longer) < hop.index(shorter) < hop.index("yes")


DEBATED = [
    f"linguist {debate.LEFT}",
    "relation filtering [Arrival] → director",
    "answer trying not enough",
]


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (walked, [*DEBATED, "Find the start", "×2", "Gentilly"]),
        (retried, ["try 1 · parsing: back to parsing", "try 2 · parsing: a query; changed: ⟨Dune"]),
    ],
)
def test_the_timeline_tells_each_role_and_each_try(
    make: Callable[[], Run], parts: list[str]
) -> None:
    shown = text(Debugger(session_of(make())))
    assert [part for part in parts if part not in shown] == []


def test_steps_have_their_role_as_a_caption_and_the_timeline_shows_those_of_one() -> None:
    run = triads.answered()[0]
    debugger = Debugger(session_of(run))
    assert {"generalist", "decision-maker", "advisor"} <= set(text(debugger).split())
    assert "generalist" in Page(render_run_page(run)).text
    tree = [line for line in run.summary().splitlines() if "template[" in line]
    assert "generalist" in tree[0]

    def agents_shown() -> set[str]:
        keys = [step.key for step in run.steps]
        html = str(debugger.view())
        return {run[key].agent for key in keys if f'id="t-{key}"' in html}

    assert agents_shown() == {step.agent for step in run.steps}
    debugger.update({"do": "role", "arg": "generalist"})
    assert agents_shown() == {"attempt", "triplets", "template"}
    debugger.update({"do": "role", "arg": "all roles"})
    assert agents_shown() == {step.agent for step in run.steps}
    assert "all roles" not in text(Debugger(session_of(walked())))


def test_results_are_put_in_by_hand_and_by_a_form() -> None:
    run = walked()
    role = run["critic[hop 1/round 1]"].output.role
    words = {
        "role": role,
        "words": "mine",
        "question": "In which place was [Denis Villeneuve] born?",
    }
    run.override("critic[hop 1/round 1]", words).go()
    assert run["critic"].origin == "by hand"
    with pytest.raises(OverrideError, match="empty"):
        run.override("critic[hop 1/round 1]", {**words, "question": ""})
    run, turn = machine.answered()[0], "remote[turn 2]"
    cell = AgentCell(session_of(run), turn)
    cell.update({"do": "section", "arg": "form"})
    assert "search_entities" in str(page(cell).values(page(cell).find("Use this result").form))
    actions = ['{"tool": "get_entity_info", "entity": "a"}']
    run.override(turn, {"thought": "", "next": "REMOTE", "actions": actions}).go(until=turn)
    assert run.output(turn).actions[0].spec.name == "get_entity_info"


def test_the_path_so_far_is_in_the_subgraph_while_the_walk_goes_on() -> None:
    run = dog(debate.QUESTION, Scripted(debate.TWO_HOPS)).go(until="triple_filling")
    roles = {node.label: [str(role) for role in node.roles] for node in build_subgraph(run).nodes}
    assert roles == {
        "Arrival": ["linked to “Arrival”", "support"],
        "Denis Villeneuve": ["reached by “director”", "support"],
    }
    [value] = build_subgraph(run).answers
    assert [edge.triple for edge in build_subgraph(run).edges] == list(value.support)
    found = build_subgraph(run.go())
    assert [node.label for node in found.nodes if node.shape == "answer"] == ["Gentilly"]
    assert [node.label for node in found.nodes if node.shape == "unknown"] == ["Denis Villeneuve"]
    assert len(found.edges) == 2


def test_an_ungrounded_answer_says_so_wherever_it_is_shown() -> None:
    nothing, quebec = debate.filtering(""), {"answers": ["Quebec"]}
    run = walked(Settings(own_knowledge=True), relation_filtering=nothing, own_knowledge=quebec)
    places = {
        "text": str(run.answer),
        "repr": repr(run),
        "tree": format_tree(run.steps, run.calls),
        "page": Page(render_run_page(run)).text,
        "step": read(run, "own_knowledge"),
        "debugger": text(Debugger(session_of(run))),
    }
    assert [
        name for name, shown in places.items() if "Quebec" in shown and UNGROUNDED_NOTE not in shown
    ] == []
    assert all("Quebec" in shown for shown in places.values())
    assert "Quebec" not in [node.label for node in build_subgraph(run).nodes]
    own = {"own_knowledge_fact": {"answer": "Rome"}, "settings": {"own_knowledge": True}}
    run = triads.answered(triplets=triads.triplets("Qwxz | born in | ?x"), **own)[0]
    assert "not grounded" in Page(render_run_page(run)).text


def test_the_prompt_says_what_was_left_out_of_it_for_room() -> None:
    """The excerpt has room for the first class alone."""
    left_out = "2 classes of the survey (Story, without a class)"
    nothing_named = surveying.mention("Denis Villeneuve", classes=())
    settings = surveying.SURVEYOR.settings(survey_tokens=1)
    run, _ = surveying.answered(names=nothing_named, settings=settings)
    assert find_left_out(run["drafter"]) == [left_out]
    made = Debugger(session_of(run), step_key="drafter")
    press(made, "Prompt")
    assert f"left out for room: {left_out}" in text(made)


def test_candidates_that_are_not_shown_are_counted() -> None:
    retrieved = RetrievedCandidates("Paris", (Candidate(iri("paris"), "Paris"),), found=600)
    assert retrieved.left_out == "599 of 600 candidates for 'Paris'"
    assert RetrievedCandidates("Paris", retrieved.candidates, found=1).left_out == ""
