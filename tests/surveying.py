"""Surveyor on the graph of two dozen triples: what a scripted model says, and runs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from small import run_of

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
