"""The repairs that experts would make of the runs that lost their answer, by the numbers of the runs.

A repair makes everything right that was wrong in a run. ``find_first_wrong_agents`` derives from them
what ``kgwb.labs.recorded.LOST_RUNS`` says.
"""

from collections.abc import Callable

from kgwb.labs.recorded import open_lost_run, set_triples
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.agents import agent_of_key

Repair = Callable[[Run], object]
YEAR_QUERY = """SELECT DISTINCT ?answer WHERE {
  ?answer <https://kgwb.example/scholars/turingAwardYear> ?year FILTER(STR(?year) = "2018")
}"""


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
    set_triples(run, [("Vertigo", "composer", "?answer")])


def _translate(run: Run) -> None:
    """Repair run 3 at the translator."""
    translated = to_data(run.output("translator"))
    run.override("translator", translated | {"text": "Who directed The Godfather?"})


def _name_the_music(run: Run) -> None:
    """Repair run 4 at the QIR: to write music is to compose."""
    set_triples(run, [("?answer", "composer", "Joe Hisaishi")])


def _keep_the_year(run: Run) -> None:
    """Repair run 5 at two agents: the QIR names the year, and the query filters by it.

    Triples cannot say the value of the year. The run is executed up to the query generator in
    between.
    """
    award = ("?answer", "award", "Turing Award")
    set_triples(run, [award, ("?answer", "Turing Award year", "?year")])
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


def find_first_wrong_agents(number: int) -> tuple[str, ...]:
    """The agent of the first step at which a repaired copy differs from a lost run, for each repair."""
    lost = open_lost_run(number)
    agents = []
    for repair in REFERENCE_REPAIRS[number]:
        repaired = open_lost_run(number)
        repair(repaired)
        first = lost.diff(repaired.go()).first_difference
        assert first
        agents.append(agent_of_key(first.key))
    return tuple(agents)
