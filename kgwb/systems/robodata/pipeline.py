"""RoboData as a table of contents: a state machine that builds a local graph, then answers from it."""

from __future__ import annotations

from dataclasses import replace

from rdflib import URIRef

from kgwb.flow import Answer, Dialogue, Question
from kgwb.run import Run, System, agent
from kgwb.run.tools import use_tool
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.records import TOOLS_BY_STATE, Position, Visit
from kgwb.systems.robodata.settings import RoboDataSettings
from kgwb.systems.robodata.states import (
    DECIDERS,
    advise_strategy,
    assess_strategy,
    build_answer,
    produce_answer,
)
from kgwb.systems.robodata.tools import Observed
from kgwb.systems.robodata.views import VIEWS


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Turn by turn until the machine produces, or its turns are used up; each question is read alone."""
    position, limit = Position(question.text), RoboDataSettings.of_run(run).turn_limit
    for number in range(1, limit):  # the last turn produces
        position = take_turn(f"turn {number}", position, run)
        if position.state == "PRODUCE":
            break
    return build_answer(position, produce_answer(position, run), run)


@agent("turn", subject="place")
def take_turn(place: str, position: Position, run: Run) -> Position:
    """One state: what it decides, the tools that it uses, and the local graph after them."""
    state = position.state
    if RoboDataSettings.of_run(run).metacognition and position.visits and state.startswith("EVAL"):
        advice = advise_strategy(place, position, assess_strategy(place, position, run), run)
        position = replace(position, advice=advice)
    decision = DECIDERS[state](place, position, run)
    uses = enumerate(decision.actions, 1)
    results = tuple(use_tool(action, f"use {n}", run, local=position.local) for n, action in uses)
    local = update(place, position.local, results, run) if results else position.local
    visits = (*position.visits, Visit(state, decision.thought, decision.next, results))
    return replace(position, state=decision.next, local=local, visits=visits)


@agent("local_graph", subject="place")
def update(place: str, local: LocalGraph, results: tuple[Observed, ...], run: Run) -> LocalGraph:
    """The local graph after the tools of a turn; what they only showed gets an id."""
    local = local.with_names(pair for each in results for pair in each.names)
    for each in results:
        nodes = [row[0] for row in each.rows if len(row) == 1 and row[0] is not None]
        rows = (row for row in each.rows if len(row) == 3)
        triples = [(s, URIRef(p), o) for s, p, o in rows if s and p and o is not None]
        if each.effect != "shown":
            local = (
                local.with_triples(nodes, triples)
                if each.effect == "added"
                else local.without(nodes, triples)
            )
    return local


SYSTEM = System(
    "robodata",
    answer_question,
    {
        "Think ↻": (take_turn, assess_strategy, advise_strategy),
        "Remote ↻": (DECIDERS["REMOTE"], *TOOLS_BY_STATE["REMOTE"], DECIDERS["EVAL_REMOTE"]),
        "Local ↻": (DECIDERS["UPDATE"], *TOOLS_BY_STATE["UPDATE"], update, DECIDERS["EVAL_LOCAL"]),
        "Look closer": (DECIDERS["LOCAL"], *TOOLS_BY_STATE["LOCAL"]),
        "Answer": (produce_answer, build_answer),
    },
    supervisors={"turn": ("assessment", "observation", *map(str.lower, DECIDERS), "local_graph")},
    settings=RoboDataSettings,
    views=VIEWS,
)
