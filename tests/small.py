"""A graph of two dozen triples, a made-up system, and what a scripted model says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rdflib
from pydantic import BaseModel, ConfigDict
from rdflib import URIRef

from kgwb import open_kg, profile
from kgwb.bench.ladder import locate_losses
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import BenchRow, Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.kg import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Dialogue, Question, Value
from kgwb.run.ask import Check, ask
from kgwb.run.prompts import Prompts
from kgwb.run.systems import load_system
from kgwb.settings import Settings
from kgwb.workbench import Workbench

CHATTY = load_system("chatty_kg")
DOG = load_system("dog")
EX = "http://example.org/"
FILMS = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival a :Film ; rdfs:label "Arrival" ; :director :denis ; :runtime 116 ; :starring :amy, :jeremy ;
    :basedOn :story .
:dune a :Film ; rdfs:label "Dune" ; :director :denis ; :starring :timothee .
:lynchs_dune a :Film ; rdfs:label "Dune" ; :director :lynch .
:sicario a :Film ; rdfs:label "Sicario" ; :director :denis .
:story a :Story ; rdfs:label "Story of Your Life" ; :author :ted .
:denis rdfs:label "Denis Villeneuve" ; :birthPlace :gentilly ; :numberOfChildren 3 .
:lynch rdfs:label "David Lynch" ; :birthPlace :missoula .
:amy rdfs:label "Amy Adams" . :jeremy rdfs:label "Jeremy Renner" . :timothee rdfs:label "Timothée Chalamet" .
:ted rdfs:label "Ted Chiang" . :gentilly rdfs:label "Gentilly" . :missoula rdfs:label "Missoula" .
"""


def iri(name: str) -> URIRef:
    return URIRef(EX + name)


def films(turtle: str = FILMS, **limits: Any) -> Graph:
    return open_kg(rdflib.Graph().parse(data=turtle, format="turtle"), **limits)


# --- what a model says to Chatty-KG's agents


def qir(
    *triples: str, target: str = "", kind: str = "list", beyond: Sequence[str] = ()
) -> dict[str, Any]:
    """The QIR agent's reply for triples written "Arrival | directed by | ?person"."""
    facts = [tuple(part.strip() for part in triple.split("|")) for triple in triples]
    ends = [end for subject, _, object_ in facts for end in (subject, object_)]
    unknowns = [end for end in dict.fromkeys(ends) if end.startswith("?")]
    return {
        "entities": [end for end in dict.fromkeys(ends) if not end.startswith("?")],
        "unknowns": unknowns,
        "triples": [{"subject": s, "predicate": p, "object": o} for s, p, o in facts],
        "target": target or (unknowns[0] if unknowns and kind != "boolean" else ""),
        "question_type": kind,
        "beyond": [*beyond],
    }


def published(reply: Mapping[str, Any]) -> dict[str, Any]:
    """What the QIR agent replies as published, where nothing is beyond its triples."""
    return {name: value for name, value in reply.items() if name != "beyond"}


def vertex(number: int, label: str, reason: str = "it fits") -> dict[str, Any]:
    return {"reason": reason, "number": number, "label": label}


def predicates(*by_triple: list[str]) -> dict[str, Any]:
    return {"reasoning": "the triples say so", "predicates": list(by_triple)}


DIRECTED = {
    "chatty_kg/qir": qir("Arrival | directed by | ?person"),
    "chatty_kg/predicate_selection": predicates(["director"]),
}
"""Who directed Arrival? Two model calls: the label is unique, and nothing was said before."""


HOMONYMS = {
    "chatty_kg/qir": qir("Dune | directed by | ?person"),
    "linking/vertex_selection": vertex(1, "Dune"),
    "chatty_kg/predicate_selection": DIRECTED["chatty_kg/predicate_selection"],
}
"""Who directed Dune? Two films have that label: three model calls."""


def workbench(model: Scripted, kg: Graph | None = None, **options: Any) -> Workbench:
    return Workbench(kg or films(), model, **options)


def run_of(
    system: System, question: str, model: Any, kg: Graph | None = None, **options: Any
) -> Run:
    """A run of any system, not executed yet."""
    return Run(system, question, kg=kg or films(), models=model, **options)


chatty = partial(run_of, CHATTY)
dog = partial(run_of, DOG)


def find_losses(
    folder: Path, asked: BenchQuestion, model: Any, **options: Any
) -> tuple[BenchRow, list[BenchRow]]:
    """The row of a question that a benchmark asks, and the rows of the ladder if it was lost."""
    setup = BenchSetup.from_workbench(workbench(Scripted(model), **options))
    results = Results(folder, setup.to_config())
    [row] = Benchmark(setup, results).run([asked])
    return row, locate_losses(setup, results, [asked])


def requests_to(model: Scripted, *prompts: str) -> list[ChatRequest]:
    """What a model was sent with one of these prompts, in any of its texts, in order."""
    return [request for request in model.requests if prompt_name(request) in prompts]


def prompt_name(request: ChatRequest) -> str:
    """The name of a prompt, the same for all of its texts."""
    name = request.task.rpartition("/")[2]
    return re.sub("(_published|_listed|_unreflected)+$", "", name)


def without_settings(path: Path, names: Iterable[str]) -> Path:
    """A saved run as a version wrote it that did not have these settings."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    data = json.loads(header)
    for name in names:
        del data["settings"][name]
    path.write_text("\n".join([json.dumps(data), *lines]) + "\n", encoding="utf-8")
    return path


BOATS = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Boat a owl:Class ; rdfs:label "Boat" ; rdfs:comment "Anything that floats." .
:Tug a owl:Class ; rdfs:label "Tug" ; rdfs:subClassOf :Boat ; :drawnBy :ada .
:RiverTug a owl:Class ; rdfs:label "River tug" ; rdfs:subClassOf :Tug .
:Ferry a owl:Class ; rdfs:label "Ferry" ; rdfs:subClassOf :Boat .
:Pilot a owl:Class ; rdfs:label "Pilot" . :home rdfs:label "home port" ; rdfs:domain :Boat .
:brisk a :RiverTug ; rdfs:label "Brisk" ; :home :oslo ; :owner :nord .
:gale a :Tug ; rdfs:label "Gale" ; :home :oslo .
:mary a :Ferry ; rdfs:label "Mary" ; :home :oslo ; :passengers 90 .
:oslo rdfs:label "Oslo" . :nord rdfs:label "Nord" .
:ada a :Pilot ; rdfs:label "Ada" ; :steers :mary ; :occupation :painter . :painter rdfs:label "painter" .
:sam1 a :Pilot ; rdfs:label "Sam" ; :memberOf :sales ; :phone "1" . :sales rdfs:label "Sales" .
:sam2 a :Pilot ; rdfs:label "Sam" ; :memberOf :marketing ; :phone "2" . :marketing rdfs:label "Marketing" .
"""
TUGS = qir("?tug | home port | Oslo", "?tug | type | tug", target="?tug")


def boats_asked(
    question: str, reply: Any, turtle: str = BOATS, **replies: Any
) -> tuple[Run, Scripted]:
    script = {"chatty_kg/qir": reply} | {
        name.replace("__", "/"): one for name, one in replies.items()
    }
    model = Scripted(script)
    return chatty(question, model, films(turtle)).go(), model


SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }"
"""A query that takes some five seconds on the graph of films.

It must end: a query inside Oxigraph cannot be stopped, and occupies a core until then.
"""


class Alone(System):
    """A system with one agent at work, so that it can be looked at alone."""

    def __init__(self, work: Callable[[Run], Any], of: System = CHATTY) -> None:
        super().__init__("alone", self._work, ())
        self.work, self.result, self.settings = work, None, of.settings
        self.agents, self.specs_by_name = of.agents, of.specs_by_name

    def _work(self, question: Question, dialogue: Dialogue, run: Run) -> Answer:
        self.result = self.work(run)
        return Answer("list")


PAPER = profile("paper")
REFERENCE = profile("reference")


def alone(
    work: Callable[[Run], Any],
    replies: Mapping[str, Any] | None = None,
    *,
    kg: Graph | None = None,
    settings: Settings | None = None,
    of: System = CHATTY,
) -> tuple[Any, Run, Scripted]:
    """What an agent returns, its run, and the model it asked; ``replies`` are by the prompt's name."""
    folder = lambda name: "linking" if name.startswith("vertex_selection") else of.name  # noqa: E731
    model = Scripted({f"{folder(name)}/{name}": reply for name, reply in (replies or {}).items()})
    system = Alone(work, of)
    run = Run(system, "Alone?", kg=kg or films(), models=model, settings=settings).go()
    return system.result, run, model


# --- a made-up system: guess, look each word up, guess again until satisfied


class WordsReply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    words: list[str]


class GuessReply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    guess: str
    sure: bool


def prompt(variables: str, body: str) -> str:
    header = f"purpose: test\nstrategy: none\nvariables: {variables}\nreply: R\nsource: none"
    return f"---\n{header}\n---\n[user]\n{body}\n"


TEXTS = {
    "made_up/split": prompt("question", "Split: {{question}}"),
    "made_up/look_up": prompt("word", "Look up: {{word}}"),
    "made_up/guess": prompt("question, known", "Guess: {{question}} knowing {{known}}"),
}


def some_words(words: tuple[str, ...], question: str) -> list[str]:
    return [] if words else [f"no word of {question!r}"]


@agent("split", check=some_words)
def split(question: str, run: Run) -> tuple[str, ...]:
    """The words to look up."""
    return tuple(ask("made_up/split", {"question": question}, WordsReply, run).words)


@agent("look_up", subject="word")
def look_up(word: str, run: Run) -> str:
    """What the model says of a word, and how often the graph labels something so."""
    said = ask("made_up/look_up", {"word": word}, GuessReply, run).guess
    return f"{said} {len(run.kg.search(word, 5).hits)}"


@agent("guess")
def guess(question: str, known: tuple[str, ...], run: Run) -> GuessReply:
    """One guess, sure or not."""
    not_empty = Check[GuessReply](
        "not empty", lambda reply: "" if reply.guess else "the guess is empty"
    )
    variables = {"question": question, "known": list(known)}
    return ask("made_up/guess", variables, GuessReply, run, checks=(not_empty,))


@agent("deciding")
def decide(question: str, known: tuple[str, ...], run: Run) -> str:
    """Guess until sure, five times at most."""
    for _ in range(5):
        said = guess(question, known, run)
        if said.sure:
            break
    return said.guess


def guess_for_each(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    words = split(question.text, run)
    known = run.map(look_up, words)
    said = decide(question.text, known, run)
    return Answer("list", (Value(rdflib.Literal(said), said),))


MADE_UP = System("made_up", guess_for_each, (split, look_up, decide, guess))


def sure(guess: str) -> dict[str, Any]:
    return {"guess": guess, "sure": True}


def unsure(guess: str) -> dict[str, Any]:
    return {"guess": guess, "sure": False}


SCRIPT: dict[str, Any] = {
    "made_up/split": {"words": ["Arrival", "Dune"]},
    "made_up/look_up": sure("a film"),
    "made_up/guess": [unsure("one"), unsure("two"), sure("three")],
}
KEYS = ["split", "look_up[Arrival]", "look_up[Dune]", "deciding", "guess", "guess#2", "guess#3"]
"""The steps of that script."""
CALLS = 6
"""Its model calls."""


def made_up(
    model: Scripted | dict[str, Any] | None, kg: Graph | None = None, **options: Any
) -> Run:
    """A run of the made-up system."""
    options = {"prompts": Prompts(texts=TEXTS), "embeddings": Embeddings("lexical")} | options
    return Run(MADE_UP, "What is it?", kg=kg or films(), models=model, **options)


def system_of(agent: Any, name: str = "one") -> System:
    """A system that asks one agent, whose output is the text of the answer."""

    def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
        return Answer("list", text=str(agent(question.text, run)))

    return System(name, answer, [agent])


def run_agent(agent: Any, model: Any = None, **options: Any) -> Run:
    """A run of one agent, executed."""
    return Run(system_of(agent), "x", kg=films(), models=model, **options).go()


# --- what tests look at


def answer_of(run: Run) -> Answer:
    assert run.answer is not None
    return run.answer


def keys(run: Run) -> list[str]:
    """The keys of a run's steps."""
    return [step.key for step in run.steps]


def asked(model: Scripted) -> Counter[str]:
    """How often each agent's prompt was sent."""
    return Counter(request.task.rpartition("/")[2] for request in model.requests)


def queries_with_strings() -> list[str]:
    """Return queries with a text in each place where Virtuoso compares terms."""
    typed = '"D1"^^<http://www.w3.org/2001/XMLSchema#string>'
    code = "<http://e/code>"
    return [
        f'SELECT ?s {{ ?s {code} "D1" }}',
        f"SELECT ?s {{ ?s {code} {typed} }}",
        f"SELECT ?s {{ ?s {code} 'D2'^^<http://www.w3.org/2001/XMLSchema#string> }}",
        f'SELECT ?s {{ ?s {code} "D3" }}',
        f'SELECT ?s {{ VALUES ?o {{ "D1" "D2" "D3"@en "D4" }} ?s {code} ?o }}',
        f'SELECT ?s ?o {{ ?s {code} ?o FILTER(?o = "D1" || ?o IN ("D2", "D4")) }}',
        f'SELECT ?s {{ ?s {code} ?o FILTER(?o != "D1" && ?s != <http://e/c>) }}',
        f'SELECT ?s {{ ?s {code} ?o OPTIONAL {{ ?s {code} "D1" . ?s ?p "Alpha unit" }} }}',
        f'SELECT ?s {{ ?s {code} ?o FILTER NOT EXISTS {{ ?s {code} "D1" }} }}',
        f'SELECT (COUNT(DISTINCT ?s) AS ?n) {{ {{ ?s {code} "D1" }} UNION {{ ?s {code} "D2" }} }}',
        f'SELECT ?s {{ ?s ?p ?o ; {code} "D1" , "D1" }}',
    ]
