"""What each flow record says to a person: a summary, then details, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rdflib import URIRef

from kgwb import flow, walk
from kgwb.errors import harmless
from kgwb.kg.text import local_name
from kgwb.record import QUERIES, Call, Step, Totals
from kgwb.render.html import MOST_ROWS, short

if TYPE_CHECKING:
    from kgwb.run import Run

T = TypeVar("T")
Names = Mapping[str, str]
"""Display names by IRI; an IRI without one is shown by its local name."""

BEST, PREDICATES, VALUES, TRIPLES = 3, 5, 5, 3
"""Told of a step: candidates and queries, predicates, values, triples of a value. HTML shows more."""
MOST_SUPPORT = 20
"""Supporting triples that HTML shows of one value."""
MOST_SAID = 2_000
"""Letters told of a sentence."""
ARROWS = {"out": "→", "in": "←"}
BASELINE = "rules is a baseline: it reads no prompts, and does not understand; choose another model for that"


def clean(text: object) -> str:
    """A text on one line that can do nothing to a terminal: control and direction marks become "�"."""
    return harmless(" ".join(str(text).split()))


def count(number: int, noun: str) -> str:
    """ "1 query", "2 queries"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("ch") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def some(items: Sequence[T], most: int, tell: Callable[[T], str] = str) -> list[str]:
    """The first of them, and how many there are besides."""
    left = len(items) - most
    return [*map(tell, items[:most]), *([f"and {left:,} more"] if left > 0 else [])]


def term_text(term: flow.Term, names: Names) -> str:
    """A term by its name, or its lexical form; at most its first MOST_LETTERS."""
    text = str(term)
    return short((names.get(text) or local_name(text)) if isinstance(term, URIRef) else text)


def triple_text(triple: flow.Triple, names: Names) -> str:
    """ "Arrival — director → Denis Villeneuve"."""
    subject, predicate, object_ = (term_text(term, names) for term in triple)
    return f"{subject} — {predicate} → {object_}"


def with_names(names: Names, named: Iterable[tuple[URIRef, str]]) -> dict[str, str]:
    """Display names, and what a record itself calls the rest."""
    return {**{str(iri): name for iri, name in named}, **names}


def names_in(steps: Iterable[Step], calls: Mapping[str, Call]) -> dict[str, str]:
    """Every display name that a run's record holds; nothing is asked of the graph."""
    names: dict[str, str] = {}
    for call in list(calls.values()):  # a run that is executed adds to them meanwhile
        if call.kind == "names":
            names.update((str(iri), name) for iri, name in call.result.items())
    for step in steps:
        if isinstance(step.output, flow.Link) and step.output.vertex:
            names[str(step.output.vertex.iri)] = step.output.vertex.label
    return names


def names_of(run: Run) -> dict[str, str]:
    """The display names in a run's record, and from a local graph those of what its answer stands on."""
    names = names_in(run.steps, run.calls)
    if run.answer is not None and run.graph is not None and not run.graph.remote:
        asked = run.graph.names(sorted(supporting(run.answer)))
        names.update((str(iri), name) for iri, name in asked.items())
    return names


def supporting(answer: flow.Answer) -> set[URIRef]:
    """The IRIs of the triples that are shown of an answer."""
    shown = (triple for value in answer.values[:MOST_ROWS] for triple in value.support[:MOST_SUPPORT])
    return {term for triple in shown for term in triple if isinstance(term, URIRef)}


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


def lines(value: Any, names: Names) -> list[str]:  # noqa: PLR0911, PLR0912  # a table: a case each form
    """The summary of a record, then its details; an unknown dataclass by its fields, the rest as it is."""
    if told := _walked(value, names):
        return told
    match value:
        case flow.Question():
            return [value.text, *([f"translated from: {value.original}"] if value.original else [])]
        case flow.Dialogue():
            return [count(len(value.turns), "earlier turn")]
        case flow.Context():
            cut = f", {count(value.cut, 'answer')} left out" if value.cut else ""
            told = [
                f"{one.standalone or one.question} {', '.join(map(short, one.answers))}"
                for one in value.turns
            ]
            return [count(len(told), "earlier turn") + cut, *told] if told else ["no earlier turn"]
        case flow.Classified():
            return [f"{value.label}: {value.reason}" if value.reason else value.label]
        case flow.Rephrased():
            return [value.question]
        case flow.Fact():
            return [str(value)]
        case flow.QIR():
            wanted = {
                "list": value.target,
                "count": f"how many {value.target}",
                "boolean": "whether it is so",
            }
            return [f"{' '.join(map(str, value.facts))} asks for {wanted[value.kind]}"]
        case flow.Candidate():
            types = f" ({short(', '.join(value.types))})" if value.types else ""
            return [f"{short(value.label)}{types} <{short(value.iri)}>"]
        case flow.Retrieved():
            of = f" of {value.found:,} found" if value.found > len(value.candidates) else ""
            how = f" ({value.how})" if value.how else ""
            best = some(value.candidates, BEST, lambda one: f"{one.score:.2f} {_said(one)}")
            return [f"{count(len(value.candidates), 'candidate')}{of}{how}", *best]
        case flow.Link():
            chosen = _said(value.vertex) if value.vertex else "no vertex"
            return [f"{value.entity} → {chosen}", *([f"because: {value.reason}"] if value.reason else [])]
        case flow.RankedPredicate():
            named = f"{short(value.name)} <{short(value.iri)}>"
            return [f"{value.similarity:.2f} {ARROWS[value.direction]} {named}"]
        case flow.LinkedRelation(fact, ranked):
            first = f", best: {short(ranked[0].name)}" if ranked else f" for {fact}"
            return [count(len(ranked), "predicate") + first, *some(ranked, PREDICATES, _said)]
        case flow.Linked(links, relations):
            vertices = sum(link.vertex is not None for link in links)
            found = sum(bool(relation.predicates) for relation in relations)
            entities, facts = count(len(links), "entity"), count(len(relations), "relation")
            return [f"{vertices} of {entities} and {found} of {facts} linked"]
        case flow.CandidateQuery():
            return [f"{value.score:.2f} {short(value.sparql, MOST_SAID)}"]
        case flow.Generated(queries, before):
            cut = f" of {before:,}" if before > len(queries) else ""
            return [f"{count(len(queries), 'candidate query')}{cut}", *some(queries, BEST, _said)]
        case flow.Selection(queries, predicates):
            relevant = f", relevant: {short(', '.join(predicates))}" if predicates else ""
            return [f"{count(len(queries), 'query')} kept{relevant}", *some(queries, BEST, _said)]
        case flow.Answer():
            return _answered(value, with_names(names, value.names))
        case list() | tuple():
            return [count(len(value), "item"), *map(_said, value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(f"{one.name}: {getattr(value, one.name)}" for one in fields(value))]
    return [str(value)]


def _walked(value: Any, names: Names) -> list[str]:  # noqa: PLR0911  # a table: a case each form
    """The lines of what a walk over the graph and its debate hand on; none of other records."""
    match value:
        case walk.Topics() | walk.Focus():
            return [value.question]
        case walk.Head():
            return [f"[{value.name}]: {count(len(value.values), 'place')}"]
        case walk.Relation():
            return [str(value)]
        case walk.Relations():
            return [f"[{value.head}]: {count(len(value.found), 'relation')}", *map(str, value.found)]
        case walk.Filtered():
            chosen = f"[{value.head}] → {value.relation or 'no relation'}"
            told = [f"to answer: {value.subquestion}", f"because: {value.reason}"]
            return [chosen, *(line for line in told if not line.endswith(": "))]
        case walk.Filled():
            tails = ", ".join(some(value.values, BEST, lambda one: short(one.label))) or value.reason
            return [f"[{value.head}] {value.relation or ''} → {tails}", *_answered(value, names)[1:]]
        case walk.Tried():
            return [
                ": ".join(filter(None, (value.sufficient, short(", ".join(value.answers)), value.reason)))
            ]
        case walk.Solved():
            return [f"[{value.entity}] {value.relation} → [{value.found}]"]
        case walk.Remark():
            return [value.question, f"{value.role}: {value.words}"]
        case walk.Simplified():
            return [value.question, *(f"{one.role}: {one.words} → {one.question}" for one in value.debate)]
        case walk.Hop():
            went = value.tried if value.tried and value.tried.sufficient == "yes" else value.left
            return [_said(went) if went else "nothing further", *map(_said, value.filled)]
    return []


def _said(value: Any) -> str:
    """The line that says what a record is."""
    return lines(value, {})[0]


def _answered(answer: flow.Answer, names: Names) -> list[str]:
    def stands_on(value: flow.Value) -> str:
        triples = some(value.support, TRIPLES, lambda triple: triple_text(triple, names))
        return f"{short(value.label)}: {'; '.join(triples) or 'no triple'}"

    if not answer.values:
        return [answer.reason or "no answer"]
    labels = some(answer.values, VALUES, lambda value: short(value.label))
    said = short(answer.text, MOST_SAID) or ", ".join(labels)
    said += f" ({flow.UNGROUNDED})" if answer.ungrounded else ""
    return [said, *some(answer.values, VALUES, stands_on)]
