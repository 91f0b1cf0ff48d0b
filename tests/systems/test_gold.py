"""Gold decisions of Surveyor, RoboData and RAGonite: the ladder names the agent that lost an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import machine
import pytest
import ragonite
import surveying
from machine import fetch, goes, produce
from small import EX, films, find_losses, run_of
from tables import read_table

from kgwb import load_run
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InvalidReplyError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.gold import align_facts, parse_gold_query, reword_fact
from kgwb.run.systems import load_system
from kgwb.systems.chatty_kg.records import Fact

BY_DENIS = "SELECT DISTINCT ?film { ?film :director :denis }"
DIRECTOR = "SELECT DISTINCT ?d { :dune :director ?d ; :starring :timothee }"
BY_OTHER = "SELECT DISTINCT ?film WHERE { ?film org:director org:ridley }"
FILMS = ("arrival", "dune", "sicario")
IDS = (*FILMS, "denis")
SURVEYED = (surveying.QUESTION, BY_DENIS, FILMS)
WALKED = (machine.QUESTION, DIRECTOR, ("denis",))
CITED = (ragonite.QUESTION, BY_DENIS, FILMS)


OPEN = surveying.draft(asked="one")
"""A right draft that is reviewed, because it has several rows where it asks for one value."""


NO = surveying.draft("ASK { org:dune org:director org:amy }", "yes or no")
"""A right draft that is reviewed, because its answer is no."""


class Told:
    """Says what a script has for each task: a reply, replies in order, or a function of the request."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.script = script
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Any) -> Any:
        reply = self.script[request.task]
        if isinstance(reply, list):
            reply = reply[self.asked[request.task]]
        self.asked[request.task] += 1
        return reply(request) if callable(reply) else reply


def not_found(request: Any) -> Any:
    """Drafts the right query only if it is shown the person."""
    is_shown = "Denis Villeneuve" in str(request.variables["names"])
    return surveying.draft() if is_shown else surveying.draft(BY_OTHER)


def produced(request: Any) -> Any:
    """Answers what the local graph has."""
    is_known = "orgx:denis" in str(request.variables["graph"])
    return produce(*machine.PROVEN) if is_known else produce(kind="nothing", answers=[])


def cited(request: Any) -> Any:
    """Cites the films that the first source has."""
    films_shown = [name for name in FILMS if name in str(request.variables["sources"])]
    return ragonite.cited(*((EX + name, 1) for name in films_shown))


@pytest.mark.parametrize(
    ("system", "script", "asked", "agent", "mended_by"),
    [
        ("surveyor", surveying.script(surveying.draft(BY_OTHER)), SURVEYED, "drafter", "draft"),
        ("surveyor", surveying.script(not_found, names=surveying.mention("Bob")), SURVEYED,
         "mention_finder", "vertices"),
        ("surveyor", surveying.script(OPEN, surveying.revise(BY_OTHER)), SURVEYED, "reviewer", "review"),
        ("surveyor", surveying.script(OPEN, surveying.NOT_HERE), SURVEYED, "reviewer", "review"),
        ("surveyor", surveying.script(NO, surveying.revise("ASK { org:dune org:director org:denis }")),
         ("Is Dune by Amy Adams?", "ASK { :dune :director :amy }", ("false",)), "reviewer", "review"),
        ("robodata", machine.script(update=goes("EVAL_LOCAL", fetch("orgx:starring", "orgx:dune"))),
         WALKED, "update", "local graph"),
        ("robodata", machine.script(produce=produce(*machine.PROVEN, answers=["orgx:timothee"])), WALKED,
         "produce", "answer"),
        ("robodata", machine.script(produce=produce(kind="no", answers=[])),
         (machine.QUESTION, "ASK { :dune :director :denis }", ("true",)), "produce", "answer"),
        ("robodata", machine.script(produce=produce(kind="yes", answers=[])),
         (machine.QUESTION, "ASK { :dune :director :amy }", ("false",)), "produce", "answer"),
        ("robodata", machine.script(produce=produce(*machine.PROVEN, kind="count", answers=[])),
         (machine.QUESTION, "SELECT (COUNT(DISTINCT ?d) AS ?n) { :dune :director ?d }", ("1",)), "produce", "answer"),
        ("robodata", machine.script(remote=[goes("EVAL_REMOTE", machine.search())], produce=produced,
                                    update=goes("EVAL_LOCAL")), WALKED, "remote", "local graph"),
        ("ragonite", ragonite.script(ragonite.sql("SELECT id FROM film WHERE id = 'dune'"), ragonite.FINISH,
                                     answer=cited),
         CITED, "tool_selector", "sources"),
        ("ragonite", ragonite.script(ragonite.sql(), ragonite.FINISH, answer=ragonite.cited(("dune", 1))),
         CITED, "answerer", "answer"),
    ],
)  # fmt: skip
def test_the_agent_that_lost_the_answer_is_named(
    tmp_path: Path, system: str, script: Any, asked: Any, agent: str, mended_by: str
) -> None:
    text, query, answers = asked
    question = BenchQuestion(
        id="1",
        question=text,
        sparql=f"PREFIX : <{EX}> {query}",
        answers=[EX + each if each in IDS else each for each in answers],
    )
    settings = None
    if system == "ragonite":  # of so small a graph the passages have everything
        settings = ragonite.RAGONITE.settings(ablation="sql_only")
    row, losses = find_losses(tmp_path, question, Told(script), system=system, settings=settings)
    assert row["error"] is None
    assert [(loss["agent"], loss["mended_by"]) for loss in losses] == [(agent, mended_by)]


@pytest.mark.parametrize(
    ("system", "rungs", "rungs_of_replay"),
    [
        ("chatty_kg", ["QIR", "query"], ["QIR", "query"]),
        ("dog", [], []),
        ("ragonite", ["answer"], []),
        ("robodata", [], []),
        ("surveyor", ["draft"], ["draft"]),
        ("triad", ["triplets", "query"], ["triplets", "query"]),
    ],
)
def test_rungs_of_a_run_that_has_not_begun_and_of_a_replay_that_failed(
    system: str, rungs: list[str], rungs_of_replay: list[str], tmp_path: Path
) -> None:
    run = run_of(load_system(system), machine.QUESTION, Scripted(lambda request: {}))
    assert made_rungs(run) == rungs
    with pytest.raises(InvalidReplyError):
        run.go()
    replay = load_run(run.save(tmp_path / "run.jsonl"))
    assert made_rungs(replay) == rungs_of_replay


def made_rungs(run: Run) -> list[str]:
    """The names of the rungs that the system of a run makes for it."""
    gold = parse_gold_query(f"PREFIX : <{EX}> {DIRECTOR}", films().vocabulary)
    assert gold is not None and run.system.gold is not None
    ladder = run.system.gold.ladder
    return [name for name, make_rung in ladder.items() if make_rung(run, gold)]


NAMES = {"dune": "Dune", "denis": "Denis Villeneuve", "director": "film director"}


@pytest.mark.parametrize(
    ("query", "facts", "target", "question", "expected"),
    read_table(Path(__file__).with_name("gold_readings.jsonl")),
)
def test_facts_are_told_in_gold_names_where_the_question_lacks_their_words(
    query: str, facts: Any, target: str, question: str, expected: Any
) -> None:
    prefixes = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    gold = parse_gold_query(prefixes + query, films().vocabulary)
    reworded = None
    if gold is not None:
        gold = replace(gold, names={f"<{EX}{key}>": name for key, name in NAMES.items()})
        read = [Fact(*fact) for fact in facts]
        alignment = align_facts(read, target, gold)
        reworded = alignment and [
            [*reword_fact(fact, alignment, question, gold.names)] for fact in read
        ]
    assert [gold and gold.target, reworded] == expected
