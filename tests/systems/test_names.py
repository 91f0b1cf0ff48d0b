"""What is answered where the graph lacks the name that was asked for, and has another one: in doubt, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import machine
import pytest
import ragonite
import surveying
from rdflib import RDF, RDFS, Graph, Literal, URIRef
from small import answer_of

import kgwb
from kgwb.kg.names import compare_names
from kgwb.llm import Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Value
from kgwb.run.systems import load_system
from kgwb.show.run_state import RunState, answer_view

EX = "http://example.org/"
PEOPLE = ("Sorin Pavel", "Otilia Marin", "Ada Lund")
TABLE = """
Hepatitis A | Hepatitis B
Apollo 11 | Apollo 1
Henry VIII | Henry VII
North Korea | South Korea
Vitamin C | Vitamin D
Korea | North Korea
Rh+ | Rh-
A* | A
Na+ | Na
Version 1.5 | Version 15
-40 | 40
007 | 7
Score ≥5 | Score ≤5
10² | 102
XJ-900 | XJ-9000
Anna Keller Jr | Anna Keller
H2O | H20
Apple 5% | Apple 5
CO | Co
Mercury (planet) | Mercury (element)
Celebrex | Cerebyx
がいこく | かいこく
Dune | Dune (book)
Iran | Iraq
Sample 1,5 | Sample 1.5
NaCl | NACL
Müller | Mueller
Apollo 11 | Apollo
Аnna | Anna
New York | NewYork
Dune (film) | Dune
Bakers | Baker's
Stage Ⅳ | Stage IV
Route 66 | Route 66A
H₂O | H2O
St. John | St John
Yahoo! | Yahoo
"""
PAIRS = [tuple(part.strip() for part in line.split(" | ")) for line in TABLE.strip().splitlines()]
ASKING_SYSTEMS = (
    ("chatty_kg", "fast"),
    ("chatty_kg", "paper"),
    ("triad", "fast"),
    ("dog", "fast"),
)


def companies(labels: Sequence[str]) -> kgwb.kg.Graph:
    """A graph with one company of each label. Each has another founder of PEOPLE."""
    graph = Graph()
    for number, (label, person) in enumerate(zip(labels, PEOPLE, strict=False)):
        company, founder = URIRef(f"{EX}c{number}"), URIRef(f"{EX}p{number}")
        graph.add((company, RDF.type, URIRef(f"{EX}Company")))
        graph.add((company, RDFS.label, Literal(label)))
        graph.add((company, URIRef(f"{EX}founder"), founder))
        graph.add((founder, RDF.type, URIRef(f"{EX}Person")))
        graph.add((founder, RDFS.label, Literal(person)))
    return kgwb.open_kg(graph)


def question_about(name: str) -> str:
    return f"Who is the founder of {name}?"


def state_of(run: Run) -> str:
    """The icon of the answer: "given" in plain, "doubt", or "none" without an answer."""
    return answer_view(RunState.of(run)).icon


@pytest.mark.parametrize(("system", "profile"), ASKING_SYSTEMS)
@pytest.mark.parametrize(("asked", "label"), PAIRS)
def test_rules_answers_another_name_in_doubt_or_not(
    asked: str, label: str, system: str, profile: str
) -> None:
    workbench = kgwb.Workbench(
        companies([label]), "rules", system=load_system(system), settings=profile
    )
    try:
        run = workbench.ask(question_about(asked))
    except kgwb.errors.InvalidReplyError:  # DoG finds no name without a capital
        return
    likeness = compare_names(asked, label)
    if likeness.nearness == "same":
        assert state_of(run) == "given"
    elif likeness.nearness == "different" and profile == "fast":
        assert not answer_of(run).values
    else:
        assert state_of(run) in ("doubt", "none")
        read = f"“{asked}” was read as “{label}”, which differs in {likeness.difference}"
        assert not run.answer.doubt or read in run.answer.doubt


MARKS = """
[{}] <{}> {{{}}} "{}" '{}' “{}” „{}“ ‘{}’ ‚{}‘ «{}» »{}« ‹{}›
「{}」 『{}』 《{}》 〈{}〉 【{}】 `{}` **{}** *{}* __{}__ ["{}"]
"""


@pytest.mark.parametrize("question", ["Who is the founder of {}?", "Who is {}'s Founder?"])
@pytest.mark.parametrize("marks", MARKS.split())
def test_marks_around_a_name_are_no_part_of_it(marks: str, question: str) -> None:
    kg = companies(["Bryn Mawr Mills", "Zubrowka Works"])
    run = kgwb.Workbench(kg, "rules").ask(question.format(marks.format("Bryn Mawr Mills")))
    assert run.answer.labels == PEOPLE[:1]
    assert state_of(run) == "given"


@pytest.mark.parametrize(("asked", "label"), PAIRS)
def test_of_two_names_rules_takes_the_one_that_was_asked_for(asked: str, label: str) -> None:
    run = kgwb.Workbench(companies([label, asked]), "rules").ask(question_about(asked))
    assert answer_of(run).labels == ("Otilia Marin",)
    is_one_name = compare_names(asked, label).nearness == "same"
    assert state_of(run) == ("doubt" if is_one_name else "given")
    if is_one_name:
        [reading] = run.answer.read_names
        assert [other.iri for other in reading.others] == [URIRef(f"{EX}c0")]


@pytest.mark.parametrize("system", ["chatty_kg", "triad"])
def test_no_of_one_of_two_things_is_in_doubt(system: str) -> None:
    workbench = kgwb.Workbench(companies(["Orchid", "Orchid"]), "rules", system=system)
    run = workbench.ask("Is Otilia Marin the founder of Orchid?")
    assert answer_of(run).labels == ("false",)
    assert state_of(run) == "doubt"


def test_nothing_found_of_one_of_two_things_says_which_one_it_was() -> None:
    workbench = kgwb.Workbench(companies(["Orchid", "Orchid", "Elm"]), "rules")
    answer = answer_of(workbench.ask("Who is the founder of both Orchid and Elm?"))
    assert answer.queries
    assert not answer.values
    assert "2 things are named Orchid" in answer.doubt


@pytest.mark.parametrize(("found", "state"), [("Company", "given"), ("Person", "doubt")])
def test_a_thing_that_no_name_and_no_query_led_to_is_in_doubt(found: str, state: str) -> None:
    @agent
    def walk(run: Run) -> Answer:
        run.kg.select(f"SELECT ?thing {{ ?thing a <{EX}{found}> }}")
        query = f"SELECT ?person {{ <{EX}c0> <{EX}founder> ?person }}"
        [[person]] = run.kg.select(query).rows
        return Answer("list", (Value(person, PEOPLE[0]),), (query,))

    system = System("walking", lambda question, dialogue, run: walk(run), [walk])
    run = Run(system, "Who is the founder?", kg=companies(["Orchid"]), models=None).go()
    assert state_of(run) == state


def ask_ragonite(name: str, label: str) -> dict[str, Any]:
    """Replies that ask SQL for the label, and cite what it gives."""
    text = label.replace("'", "''")
    query = (
        f"SELECT p.name FROM company c JOIN person p ON p.id = c.founder WHERE c.name = '{text}'"
    )
    uses = (ragonite.sql(query), ragonite.passages("xyz"), ragonite.FINISH)
    return ragonite.script(*uses, answer=ragonite.cited(("Sorin Pavel", 1)))


def ask_robodata(name: str, label: str) -> dict[str, Any]:
    """Replies that find the company by its label, fetch its founder, and produce it."""
    return machine.script(
        remote=machine.goes("EVAL_REMOTE", machine.search(label)),
        update=machine.goes("EVAL_LOCAL", machine.fetch("orgx:founder", "orgx:c0")),
        produce=machine.produce(["orgx:c0", "orgx:founder", "orgx:p0"], answers=["orgx:p0"]),
    )


def ask_surveyor(name: str, label: str) -> dict[str, Any]:
    """Replies that draft a query which names the company by its IRI."""
    drafted = surveying.draft(f"SELECT ?p WHERE {{ <{EX}c0> <{EX}founder> ?p }}")
    named = surveying.mention(name, classes=(), question=question_about(name))
    return surveying.script(drafted, names=named)


@pytest.mark.parametrize(
    ("system", "script"),
    [("ragonite", ask_ragonite), ("robodata", ask_robodata), ("surveyor", ask_surveyor)],
)
@pytest.mark.parametrize(("asked", "label"), PAIRS[::3])
def test_a_model_that_asks_for_another_name_is_answered_in_doubt(
    asked: str, label: str, system: str, script: Any, tmp_path: Any
) -> None:
    model = Scripted(script(asked, label))
    run = Run(load_system(system), question_about(asked), kg=companies([label]), models=model).go()
    assert answer_of(run).labels == ("Sorin Pavel",)
    is_one_name = compare_names(asked, label).nearness == "same"
    assert state_of(run) == ("given" if is_one_name else "doubt")
    assert bool(run.answer.read_names) != is_one_name
    if not is_one_name:
        assert kgwb.load_run(run.save(tmp_path / "run.jsonl")).answer == run.answer
