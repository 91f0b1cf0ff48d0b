"""Where the recorded runs of lab 1 lost their answers: derived from repairs that experts would make.

A reference repair makes everything right that was wrong in a run. The first step at which the run
and its repaired copy decide differently is the first wrong step. A run with several reference
repairs has several.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from kgwb.labs.tasks import open_sample
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.steps import Step
from kgwb.workbench import recording

SCHOLARS_RUN = 5
"""The only one of the runs over the graph scholars; the others are over films."""
YEAR_QUERY = """SELECT DISTINCT ?answer WHERE {
  ?answer <https://kgwb.example/scholars/turingAwardYear> ?year FILTER(STR(?year) = "2018")
}"""
Repair = Callable[[Run], object]


def open_lost_run(number: int) -> Run:
    """Replay one of the recorded runs that lost their answer, and return it ready to be edited.

    ``number`` is 1 to 5. After an edit, new calls go to the sample graph and to the model
    ``rules``.
    """
    graph = "scholars" if number == SCHOLARS_RUN else "films"
    return recording(f"lost/chatty_kg/{number}", kg=open_sample(graph), model="rules")


def _name_the_novel(run: Run) -> None:
    """Repair run 1 at the rephraser: override the question with one that says which Little Women is meant."""
    question = {"question": "Who wrote the novel Little Women?", "original": run.question}
    run.override("rephraser", question)


def _select_the_novel(run: Run) -> None:
    """Repair run 1 at the vertex selection: override the vertex with the candidate that is no film."""
    retrieved = to_data(run.output("entity_retriever"))
    selected = to_data(run.output("vertex_selection"))
    for vertex in retrieved["candidates"]:
        if "film" not in vertex["types"]:
            selected["vertex"] = vertex
    run.override("vertex_selection", selected)


def _ask_for_the_composer(run: Run) -> None:
    """Repair run 2 at the QIR: the unknown is the composer of Vertigo."""
    _set_triples(run, ("Vertigo", "composer", "?answer"))


def _translate(run: Run) -> None:
    """Repair run 3 at the translator."""
    translated = to_data(run.output("translator"))
    run.override("translator", translated | {"text": "Who directed The Godfather?"})


def _name_the_music(run: Run) -> None:
    """Repair run 4 at the QIR: to write music is to compose."""
    _set_triples(run, ("?answer", "composer", "Joe Hisaishi"))


def _keep_the_year(run: Run) -> None:
    """Repair run 5 at two agents: the QIR names the year, and the query filters by it.

    Triples cannot say the value of the year. The run is executed up to the query generator in
    between.
    """
    award = ("?answer", "award", "Turing Award")
    _set_triples(run, award, ("?answer", "Turing Award year", "?year"))
    run.go(until="query_generator")
    _query_the_year(run)


def _query_the_year(run: Run) -> None:
    """Repair run 5 at the query generator: override the SPARQL of its first query with YEAR_QUERY."""
    generated = to_data(run.output("query_generator"))
    generated["queries"][0]["sparql"] = YEAR_QUERY
    run.override("query_generator", generated)


REFERENCE_REPAIRS: dict[int, tuple[Repair, ...]] = {
    1: (_name_the_novel, _select_the_novel),
    2: (_ask_for_the_composer,),
    3: (_translate,),
    4: (_name_the_music,),
    5: (_keep_the_year, _query_the_year),
}
"""The repairs of each run, by its number in the folder recordings/lost/chatty_kg."""


def _set_triples(run: Run, *triples: tuple[str, str, str]) -> None:
    """Override the output of the QIR agent with these triples, and ?answer as the target."""
    facts = []
    for subject, relation, object_ in triples:
        fact = {"subject": subject, "relation": relation, "object": object_}
        facts.append(fact)
    run.override("qir", {"facts": facts, "target": "?answer"})


@cache
def find_first_wrong_agents(number: int) -> tuple[str, ...]:
    """Return the agents of the first wrong steps of a lost run, each once, in the order of its repairs.

    For each of its REFERENCE_REPAIRS, a copy of the run is repaired and executed; the first step at
    which it differs from the lost run is a first wrong step. The result is kept for later calls.
    """
    lost = open_lost_run(number)
    agents: dict[str, None] = {}
    for repair in REFERENCE_REPAIRS[number]:
        repaired = open_lost_run(number)
        repair(repaired)
        first = lost.diff(repaired.go()).first_difference
        if first:
            agents[agent_of_key(first.key)] = None
    return tuple(agents)


def find_first_edited_steps(run: Run, number: int) -> list[str]:
    """Return the agent that a repaired run changed first, followed by the agents that it supervises.

    A value that was put in but equals that of the recording does not count. First is the earliest
    step in the lost run; if none of its steps was changed, the first agent in the order of the
    system. Empty if nothing was changed. ``number`` is that of the lost run.
    """
    lost = open_lost_run(number)
    changed = set()
    for key, value in run.overrides.items():
        if _changes(lost, key, value):
            changed.add(key)
    for step in lost.steps:
        if step.key in changed or step.agent in changed:
            return [step.agent, *_part_of(step, lost)]
    changed_agents = set(map(agent_of_key, changed))
    for spec in run.system.agents:
        if spec.name in changed_agents:
            return [spec.name]
    return []


def _changes(lost: Run, key: str, value: Any) -> bool:
    """Return whether a value that was put in differs from what the recorded step returned."""
    step = lost.steps_by_key.get(key)
    return step is None or step.output != value


def _part_of(step: Step, run: Run) -> list[str]:
    """Return the agents of the steps that this step supervises."""
    return [other.agent for other in run.steps if other.parent == step.key]
