"""What each flow record says to a person: a summary, then details, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from rdflib import URIRef

from kgwb.flow import (
    QIR,
    Answer,
    Candidate,
    CandidateQuery,
    Classified,
    Context,
    Dialogue,
    Fact,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    Question,
    RankedPredicate,
    Rephrased,
    Retrieved,
    Selection,
    Term,
    Triple,
    Value,
)
from kgwb.kg.text import local_name
from kgwb.record import QUERIES, Call, Step, Totals

if TYPE_CHECKING:
    from kgwb.run import Run

Names = Mapping[str, str]
"""Display names by IRI; an IRI without one is shown by its local name."""

BEST = 3
"""Candidates and queries told of a step; HTML shows more."""
PREDICATES = 5
VALUES = 5
TRIPLES = 3
"""Supporting triples told of one value."""
CONTROLS = (("\0", "\x1f"), ("\x7f", "\x9f"), ("\u202a", "\u202e"), ("\u2066", "\u2069"))
ARROWS = {"out": "→", "in": "←"}
BASELINE = "rules is a baseline: it reads no prompts, and does not understand; choose another model for that"


def clean(text: object) -> str:
    """A text on one line that can do nothing to a terminal: control and direction marks become "�"."""
    line = " ".join(str(text).split()).encode("utf-8", "replace").decode()
    return "".join("�" if _is_control(char) else char for char in line)


def _is_control(char: str) -> bool:
    return any(first <= char <= last for first, last in CONTROLS)


def count(number: int, noun: str) -> str:
    """ "1 query", "2 queries"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("ch") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def term_text(term: Term, names: Names) -> str:
    """A term by its name, or its lexical form."""
    return names.get(str(term)) or local_name(str(term)) if isinstance(term, URIRef) else str(term)


def triple_text(triple: Triple, names: Names) -> str:
    """ "Arrival — director → Denis Villeneuve"."""
    subject, predicate, object_ = (term_text(term, names) for term in triple)
    return f"{subject} — {predicate} → {object_}"


def names_in(steps: Iterable[Step], calls: Mapping[str, Call]) -> dict[str, str]:
    """Every display name that a run's record holds; nothing is asked of the graph."""
    names: dict[str, str] = {}
    for call in list(calls.values()):  # a run that is executed adds to them meanwhile
        if call.kind == "names":
            names.update((str(iri), name) for iri, name in call.result.items())
    for step in steps:
        if isinstance(step.output, Link) and step.output.vertex:
            names[str(step.output.vertex.iri)] = step.output.vertex.label
    return names


def names_of(run: Run) -> dict[str, str]:
    """The display names in a run's record, and from a local graph those of what its answer stands on."""
    names = names_in(run.steps, run.calls)
    if run.answer is not None and run.graph is not None and not run.graph.remote:
        terms = {term for triple in run.answer.support for term in triple if isinstance(term, URIRef)}
        names.update((str(iri), name) for iri, name in run.graph.names(sorted(terms)).items())
    return names


def made(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """What a step cost and where it came from: ["live", "1 model call", "2 queries", "0.31 s"]."""
    kinds = [calls[key].kind for key in step.calls if key in calls]
    asked = kinds.count("model") if calls else len(step.attempts)
    queries = sum(kind in QUERIES for kind in kinds)
    recorded = "from the record" if step.calls else ""
    origin = recorded if step.origin == "record" else step.origin
    parts = [origin, count(asked, "model call") if asked else "", count(queries, "query") if queries else ""]
    return [*filter(None, parts), f"{step.seconds:.2f} s"]


def totals_text(totals: Totals) -> str:
    """What a run used, on one line."""
    return ", ".join(
        (
            f"{count(totals.model_calls, 'model call')} ({totals.live_model_calls} live)",
            f"{totals.prompt_tokens + totals.completion_tokens:,} tokens",
            count(totals.queries, "query"),
            count(totals.searches, "label search"),
            f"{totals.seconds:.2f} s",
        )
    )


@singledispatch
def lines(value: Any, names: Names) -> list[str]:
    """The summary of a record, then its details; an unknown dataclass by its fields, the rest as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        told = [f"{field.name}: {getattr(value, field.name)}" for field in fields(value)]
        return [type(value).__name__, *told]
    if isinstance(value, list | tuple):
        return [count(len(value), "item"), *(lines(item, names)[0] for item in value)]
    return [str(value)]


@lines.register
def _(value: Question, names: Names) -> list[str]:
    return [value.text, f"translated from: {value.original}"] if value.original else [value.text]


@lines.register
def _(value: Dialogue, names: Names) -> list[str]:
    return [count(len(value.turns), "earlier turn")]


@lines.register
def _(value: Context, names: Names) -> list[str]:
    cut = f", {count(value.cut, 'answer')} left out" if value.cut else ""
    told = (f"{turn.standalone or turn.question} {', '.join(turn.answers)}" for turn in value.turns)
    return [count(len(value.turns), "earlier turn") + cut, *told] if value.turns else ["no earlier turn"]


@lines.register
def _(value: Classified, names: Names) -> list[str]:
    return [f"{value.label}: {value.reason}" if value.reason else value.label]


@lines.register
def _(value: Rephrased, names: Names) -> list[str]:
    return [value.question]


@lines.register
def _(value: Fact, names: Names) -> list[str]:
    return [str(value)]


@lines.register
def _(value: QIR, names: Names) -> list[str]:
    wanted = {"list": value.target, "count": f"how many {value.target}", "boolean": "whether it is so"}
    return [f"{' '.join(map(str, value.facts))} asks for {wanted[value.kind]}"]


@lines.register
def _(value: Candidate, names: Names) -> list[str]:
    types = f" ({', '.join(value.types)})" if value.types else ""
    return [f"{value.label}{types} <{value.iri}>"]


@lines.register
def _(value: Retrieved, names: Names) -> list[str]:
    of = f" of {value.found:,} found" if value.found > len(value.candidates) else ""
    how = f" ({value.how})" if value.how else ""
    scored = [f"{candidate.score:.2f} {lines(candidate, names)[0]}" for candidate in value.candidates]
    return [f"{count(len(value.candidates), 'candidate')}{of}{how}", *some(scored, BEST)]


@lines.register
def _(value: Link, names: Names) -> list[str]:
    chosen = lines(value.vertex, names)[0] if value.vertex else "no vertex"
    return [f"{value.entity} → {chosen}", *([f"because: {value.reason}"] if value.reason else [])]


@lines.register
def _(value: RankedPredicate, names: Names) -> list[str]:
    return [f"{value.similarity:.2f} {ARROWS[value.direction]} {value.name} <{value.iri}>"]


@lines.register
def _(value: LinkedRelation, names: Names) -> list[str]:
    ranked = [lines(predicate, names)[0] for predicate in value.predicates]
    best = f", best: {value.predicates[0].name}" if ranked else f" for {value.fact}"
    return [count(len(ranked), "predicate") + best, *some(ranked, PREDICATES)]


@lines.register
def _(value: Linked, names: Names) -> list[str]:
    vertices = sum(link.vertex is not None for link in value.links)
    entities = count(len(value.links), "entity")
    found = sum(bool(relation.predicates) for relation in value.relations)
    relations = count(len(value.relations), "relation")
    return [f"{vertices} of {entities} and {found} of {relations} linked"]


@lines.register
def _(value: CandidateQuery, names: Names) -> list[str]:
    return [f"{value.score:.2f} {value.sparql}"]


@lines.register
def _(value: Generated, names: Names) -> list[str]:
    cut = f" of {value.before_truncation:,}" if value.before_truncation > len(value.queries) else ""
    queries = [lines(query, names)[0] for query in value.queries]
    return [f"{count(len(queries), 'candidate query')}{cut}", *some(queries, BEST)]


@lines.register
def _(value: Selection, names: Names) -> list[str]:
    relevant = f", relevant: {', '.join(value.predicates)}" if value.predicates else ""
    queries = [lines(query, names)[0] for query in value.queries]
    return [f"{count(len(queries), 'query')} kept{relevant}", *some(queries, BEST)]


@lines.register
def _(value: Value, names: Names) -> list[str]:
    triples = [triple_text(triple, names) for triple in value.support]
    return [f"{value.label}: {'; '.join(some(triples, TRIPLES)) or 'no triple'}"]


@lines.register
def _(value: Answer, names: Names) -> list[str]:
    if not value.values:
        return [value.reason or "no answer"]
    names = {**{str(iri): name for iri, name in value.names}, **names}
    told = [lines(one, names)[0] for one in value.values]
    return [value.text or ", ".join(some(value.labels, VALUES)), *some(told, VALUES)]


def some(items: Sequence[str], most: int) -> list[str]:
    """The first of them, and how many there are besides."""
    left = len(items) - most
    return [*items[:most], f"and {left:,} more"] if left > 0 else list(items)
