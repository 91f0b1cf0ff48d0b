"""The predicates of the things that a refused question is about, each to be seen by one click."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from rdflib import URIRef

from kgwb.errors import GraphError, InputError
from kgwb.kg.base import Direction, Graph
from kgwb.kg.queries import find_predicates, find_schema_terms
from kgwb.run.answers import Link
from kgwb.run.steps import Step
from kgwb.show.explain import (
    PredicateExamples,
    find_examples_at,
    is_unanswered,
    render_graph_result,
)
from kgwb.show.html import Html, div, join, muted_text, tag
from kgwb.show.terms import RenderContext
from kgwb.text import shorten

MAX_THINGS = 2
"""Things of a question whose predicates are named."""
MAX_PREDICATES = 16
"""Predicates that are named of a thing."""
MAX_NAME_WORDS = 6
"""Words of a question that are looked up as one name."""
MAX_WORDS = 60
"""Words of a question of which names are looked up."""
WORD = re.compile(r"[^\s?!,;:“”\"()]+")


class ThingPredicate(NamedTuple):
    """A predicate that a thing has."""

    iri: URIRef
    name: str
    direction: Direction


@dataclass(frozen=True, slots=True)
class Thing:
    """A vertex that a question is about, and what the graph says of it."""

    iri: URIRef
    label: str
    predicates: tuple[ThingPredicate, ...]
    """By name, "out" before "in"; at most MAX_PREDICATES."""


MAX_KEPT_REFUSALS = 200
"""Refused questions of a graph whose things are kept; then they are looked up anew."""
Refusal = tuple[str, tuple[URIRef, ...]]
"""A refused question, and the vertices that its steps linked."""
_THINGS: WeakKeyDictionary[Graph, dict[Refusal, tuple[Thing, ...]]] = WeakKeyDictionary()
"""The things of refusals, by graph: a widget is drawn again after each event."""


def things_of_refusal(
    output: Any, question: str, steps: Iterable[Step], kg: Graph | None
) -> tuple[Thing, ...]:
    """Return the things that an unanswered question is about, with their predicates.

    They are the vertices that the steps linked, else those that have words of the question as their
    label; at most MAX_THINGS, and only those with a predicate. Empty for any other output, without
    a graph, for a remote graph, and if the graph fails. The graph is asked once for the same
    question and links.
    """
    if kg is None or kg.remote or not is_unanswered(output):
        return ()
    kept = _THINGS.setdefault(kg, {})
    linked = _linked_vertices(steps)
    things = kept.get((question, linked))
    if things is None:
        try:
            things = _things(linked or _vertices_named_in(question, kg), kg)
        except GraphError:
            return ()
        if len(kept) >= MAX_KEPT_REFUSALS:
            kept.clear()
        kept[question, linked] = things
    return things


def _linked_vertices(steps: Iterable[Step]) -> tuple[URIRef, ...]:
    """Return the vertices that steps have linked names to, each once; the first MAX_THINGS.

    Only the first vertex of a link counts. Steps that are not done are left out.
    """
    iris: dict[URIRef, None] = {}
    for step in steps:
        link = step.output
        if step.done and isinstance(link, Link) and link.vertex:
            iris[link.vertex.iri] = None
    return tuple(iris)[:MAX_THINGS]


def _vertices_named_in(question: str, kg: Graph) -> tuple[URIRef, ...]:
    """Return the vertices that have the most words of a question in a row as their label.

    At most MAX_WORDS words are looked at, MAX_NAME_WORDS in a row, and MAX_THINGS vertices
    returned. Predicates and classes are left out, and so is a single word in small letters.
    """
    words = []
    for word in WORD.findall(question)[:MAX_WORDS]:
        without_s = word.removesuffix("'s").removesuffix("’s")
        words.append(without_s.rstrip("."))
    for length in range(MAX_NAME_WORDS, 0, -1):
        names = []
        for start in range(len(words) - length + 1):
            end = start + length
            name = " ".join(words[start:end])
            if length > 1 or not name.islower():
                names.append(name)
        found = kg.exact(names)
        iris: list[URIRef] = []
        for name in names:
            iris += found.get(name, ())
        schema_terms = find_schema_terms(kg, iris)
        distinct_iris = dict.fromkeys(iris)
        vertices = [iri for iri in distinct_iris if iri not in schema_terms]
        if vertices:
            return tuple(vertices[:MAX_THINGS])
    return ()


def _things(iris: Sequence[URIRef], kg: Graph) -> tuple[Thing, ...]:
    """Return vertices as things with their predicates; those without any are left out.

    At most MAX_PREDICATES predicates each, those that lead away first, then by name. Raises a
    GraphError.
    """
    things = []
    for iri in iris:
        found = find_predicates(kg, iri)
        names = kg.names([iri, *(predicate for predicate, _ in found)])
        predicates = [
            ThingPredicate(predicate, names[predicate], direction) for predicate, direction in found
        ]
        predicates.sort(key=lambda predicate: (predicate.direction == "in", predicate.name))
        if predicates:
            shown = tuple(predicates[:MAX_PREDICATES])
            things.append(Thing(iri, names[iri], shown))
    return tuple(things)


def question_about(thing: Thing, predicate: ThingPredicate) -> str:
    """Return a question for the values of a predicate of a thing."""
    if predicate.direction == "in":
        return f"What is {thing.label} the {predicate.name} of?"
    return f"What is the {predicate.name} of {thing.label}?"


def values_of(kg: Graph, thing: URIRef, predicate: ThingPredicate) -> PredicateExamples:
    """Return triples of a predicate at a thing. Raises a GraphError."""
    return find_examples_at(kg, thing, predicate.iri, predicate.direction)


def predicate_of_event(things: Sequence[Thing], argument: str) -> tuple[Thing, ThingPredicate]:
    """Return the thing and the predicate that a click has sent as positions, such as "0 3".

    Raises InputError if there are none at these positions: the page shows another answer by now.
    """
    positions = re.fullmatch(r"(\d+) (\d+)", argument)
    if positions:
        thing_number, number = map(int, positions.groups())
        if thing_number < len(things) and number < len(things[thing_number].predicates):
            thing = things[thing_number]
            return thing, thing.predicates[number]
    raise InputError(
        "nothing was done: this predicate is not shown any more", hint="click one that is shown"
    )


def result_name(thing: Thing, predicate: ThingPredicate) -> str:
    """Return the name under which the values of a predicate stand in ``graph_results``."""
    return f"values {thing.iri} {predicate.direction} {predicate.iri}"


def render_questions(things: Sequence[Thing]) -> Html:
    """Render things with their predicates as buttons that write a question into a chat."""
    parts = []
    for thing in things:
        chips = [
            _render_chip(predicate, "fill", question_about(thing, predicate))
            for predicate in thing.predicates
        ]
        parts.append(_render_thing(thing, chips))
    return join(*parts)


def render_predicates(things: Sequence[Thing], context: RenderContext) -> Html:
    """Render things with their predicates as buttons that ask the graph for values.

    The replies so far are shown below each thing.
    """
    parts = []
    for thing_number, thing in enumerate(things):
        chips = []
        replies = []
        for number, predicate in enumerate(thing.predicates):
            chips.append(_render_chip(predicate, "values", f"{thing_number} {number}"))
            reply = render_graph_result(result_name(thing, predicate), context)
            if reply:
                replies.append(reply)
        head = _render_thing(thing, chips)
        parts.append(div("stack tight", head, *replies))
    return join(*parts)


def _render_thing(thing: Thing, chips: Iterable[Html]) -> Html:
    """Render a thing's name above the buttons of its predicates."""
    label = tag("b", tag("bdi", shorten(thing.label)))
    lead = div("", muted_text("The graph has of "), label, muted_text(":"))
    return div("stack tight", lead, div("chips", *chips))


def _render_chip(predicate: ThingPredicate, event: str, argument: str) -> Html:
    """Render a predicate as a button; an arrow says that it leads to the thing."""
    name = shorten(predicate.name)
    if predicate.direction == "in":
        name = f"← {name}"
    return tag("button", name, class_="chip", type="button", data_do=event, data_arg=argument)
