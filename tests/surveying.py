"""Surveyor on the graph of two dozen triples: what a scripted model says, and runs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rdflib
from small import EX, films, run_of

from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import load_system

SURVEYOR = load_system("surveyor")
REVIEWING = SURVEYOR.settings(always_reviews=True)
QUESTION = "Which films did Denis Villeneuve direct?"
DIRECTED = "SELECT DISTINCT ?film WHERE { ?film org:director org:denis }"
TABLE = "SELECT ?film ?minutes WHERE { ?film org:director org:denis OPTIONAL { ?film org:runtime ?minutes } }"
FINE = {"reason": "it is", "verdict": "fine", "sparql": "", "columns": [], "missing": ""}


def mention(
    *names: str, classes: Sequence[str] = ("Film",), question: str = QUESTION
) -> dict[str, Any]:
    return {"reason": "so", "question": question, "names": list(names), "classes": list(classes)}


def draft(
    sparql: str = DIRECTED, asked: str = "list", *columns: str, **changed: Any
) -> dict[str, Any]:
    reply = {"reason": "so", "sparql": sparql, "asked": asked, "columns": list(columns)}
    return {**reply, "assumptions": [], "missing": "", "more": [], **changed}


def revise(sparql: str, *columns: str) -> dict[str, Any]:
    return {**FINE, "verdict": "revise", "sparql": sparql, "columns": list(columns)}


NOT_HERE = {**FINE, "verdict": "not in this graph", "missing": "what a film cost"}


def script(drafts: Any = None, reviews: Any = FINE, names: Any = None) -> dict[str, Any]:
    return {
        "surveyor/mention_finder": names or mention("Denis Villeneuve"),
        "surveyor/drafter": drafts or draft(),
        "surveyor/reviewer": reviews,
    }


def surveyor(model: Any, question: str = QUESTION, **options: Any) -> Run:
    """A run of Surveyor, not executed yet. Each query is reviewed, unless the settings are given."""
    options.setdefault("settings", REVIEWING)
    return run_of(SURVEYOR, question, model, **options)


def answered(
    drafts: Any = None, reviews: Any = FINE, names: Any = None, **options: Any
) -> tuple[Run, Scripted]:
    """A run that went to its end, and the model it asked."""
    model = Scripted(script(drafts, reviews, names))
    return surveyor(model, **options).go(), model


UNREVIEWED = SURVEYOR.settings()


def variables_of(model: Scripted, task: str, name: str) -> list[Any]:
    """The values of a variable in the prompts of a task."""
    requests = [request for request in model.requests if request.task == f"surveyor/{task}"]
    return [request.variables[name] for request in requests]


PATIENTS = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:patient-0003 a :Patient ; rdfs:label "patient B-0003" ; :number "B-0003" ; :ward :w1 .
:p17 a :Patient ; rdfs:label "Ann" ; :number "A-0003" ; :ward :w1 ; :state "X7" .
:w1 a :Ward ; rdfs:label "West" . :ward rdfs:label "lies in" .
:state rdfs:comment "X7 is at home, X8 is in hospital" .
"""
WARD = (
    PATIENTS
    + """
:Nurse rdfs:subClassOf :Person . :Doctor rdfs:subClassOf :Person .
:n a :Nurse ; rdfs:label "Anna Keller" ; :phone "1" . :d a :Doctor ; rdfs:label "Dr Anna Keller" .
:s a :Ship ; rdfs:label "Anna Keller II" . :t a :Nurse ; rdfs:label "Anna Keller 17" .
:q a :Doctor ; rdfs:label "Prof Dr med Anna Keller" .
:h1 a :Post ; rdfs:label "Head of Procurement" . :h2 a :Post ; rdfs:label "Master of the port" .
:h3 a :Firm ; rdfs:label "IBM" . :h4 a :Ship ; rdfs:label "IBM II" .
"""
)


def names_shown(*names: str, data: str = PATIENTS, classes: Sequence[str] = ()) -> list[str]:
    """Return what the drafter sees under Names, for these names, over a graph in Turtle."""
    one = draft("SELECT ?p { ?p a org:Patient }")
    _, model = answered(one, names=mention(*names, classes=classes), kg=films(data))
    [request] = [r for r in model.requests if r.task == "surveyor/drafter"]
    lines: list[str] = request.variables["names"].splitlines()
    return lines


YARD = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Tug rdfs:subClassOf :Ship .
:a a :Tug ; rdfs:label "Aurora" ; :built 1990 ; :port :oslo ; :portName "Oslo" .
:b a :Ship ; rdfs:label "Bella" ; :built 1990 ; :port :bergen ; :portName "Bergen" .
:c a :Ship ; rdfs:label "Cora" ; :built 2001 ; :port :oslo ; :portName "Oslo" .
:d a :Ship ; rdfs:label "Dora" ; :built 2010 ; :portName "Bodø" .
:oslo a :Port ; rdfs:label "Oslo" . :bergen a :Port ; rdfs:label "Bergen" .
"""
"""Ships with numbers, subclasses, and a link beside a text of the same."""
