"""A graph at a glance: its size, its classes, what is said of each, its labels, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rdflib import URIRef

from kgwb.flow import Term
from kgwb.kg.base import Graph
from kgwb.kg.queries import counted, labelling
from kgwb.kg.sparql import n3
from kgwb.show.html import Html, aside, bar, clean, count, div, fold, icon, join, short, span, tag
from kgwb.show.terms import term_text

MOST_TRIPLES = 2_000_000
"""A larger graph, or one far away, is not counted: a glance must not cost minutes."""
CLASSES, PREDICATES = 12, 14
"""Classes, and predicates of one, that are shown at once."""
LANGUAGES = {
    "": "no language",
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A predicate of a class: how many of its things have it, and one of its values."""

    predicate: URIRef
    things: int
    subject: Term | None = None
    value: Term | None = None


@dataclass(frozen=True, slots=True)
class Glance:
    """What was counted in a graph."""

    source: str
    triples: int = 0
    things: int = 0
    """Those that have a class."""
    labelled: int = 0
    predicates: int = 0
    classes: tuple[tuple[URIRef, int], ...] = ()
    languages: tuple[tuple[str, int], ...] = ()
    chosen: URIRef | None = None
    said: tuple[Said, ...] = ()
    """Of the chosen class."""
    names: Mapping[str, str] | None = None


def look_at(kg: Graph, triples: int, chosen: str = "") -> Glance:
    """Count what a graph holds; the largest class is chosen if none is. Raises a GraphError."""
    if kg.remote or triples > MOST_TRIPLES:
        return Glance(kg.source, triples)

    def rows(query: str) -> Sequence[Sequence[Term | None]]:
        return kg.select(query).rows

    kinds = "|".join(map(n3, kg.vocabulary.types))
    labels = labelling(kg).predicates
    classes = [
        (one, counted(number))
        for one, number in rows(
            f"SELECT ?c (COUNT(DISTINCT ?s) AS ?n) WHERE {{ ?s {kinds} ?c }} GROUP BY ?c ORDER BY DESC(?n) ?c"
        )
        if isinstance(one, URIRef)
    ]
    [[things]] = rows(f"SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE {{ ?s {kinds} ?c }}")
    [[predicates]] = rows("SELECT (COUNT(DISTINCT ?p) AS ?n) WHERE { ?s ?p ?o }")
    path = "|".join(map(n3, labels))
    named, languages = 0, ()
    if path:
        [[number]] = rows(f"SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE {{ ?s {kinds} ?c ; {path} ?l }}")
        named = counted(number)
        spoken = rows(
            f"SELECT ?g (COUNT(*) AS ?n) WHERE {{ ?s {path} ?l }} GROUP BY (LANG(?l) AS ?g) ORDER BY DESC(?n)"
        )
        languages = tuple((str(tag or ""), counted(number)) for tag, number in spoken)  # type: ignore[assignment]
    one = next((one for one, _ in classes if str(one) == chosen), classes[0][0] if classes else None)
    said = _said(kg, one) if one is not None else ()
    iris = {*(one for one, _ in classes), *(part.predicate for part in said)}
    iris |= {term for part in said for term in (part.subject, part.value) if isinstance(term, URIRef)}
    names = {str(iri): name for iri, name in kg.names(sorted(iris)).items()}
    return Glance(
        kg.source,
        triples,
        counted(things),
        named,
        counted(predicates),
        tuple(classes),
        languages,
        one,
        said,
        names,
    )


def _said(kg: Graph, one: URIRef) -> tuple[Said, ...]:
    """The predicates of a class, the commonest first, each with an example."""
    kinds = "|".join(map(n3, kg.vocabulary.types))
    found = kg.select(
        f"SELECT ?p (COUNT(DISTINCT ?s) AS ?n) (SAMPLE(?s) AS ?one) WHERE {{ ?s {kinds} {n3(one)} ; ?p ?o }}"
        " GROUP BY ?p ORDER BY DESC(?n) ?p"
    ).rows
    made = []
    for predicate, number, subject in found:
        hidden = {*kg.vocabulary.types, *kg.vocabulary.labels}
        if not isinstance(predicate, URIRef) or predicate in hidden or not isinstance(subject, URIRef):
            continue
        values = kg.select(f"SELECT ?o WHERE {{ {n3(subject)} {n3(predicate)} ?o }} LIMIT 1").rows
        made.append(Said(predicate, counted(number), subject, values[0][0] if values else None))
        if len(made) == PREDICATES:
            break
    return tuple(made)


def glance(found: Glance, questions: Sequence[str] | None = ()) -> Html:
    """Four numbers, questions that were answered (None: still tried), classes, what is said of one."""
    head = div(
        "head", tag("h2", "Your graph at a glance", class_="title grow"), span("id", clean(found.source))
    )
    if not found.classes and not found.things:
        words = (
            "An endpoint that answers."
            if not found.triples
            else f"{found.triples:,} triples; too many to count, or none has a class."
        )
        return join(head, div("body", words))
    figures = (
        (f"{found.triples:,}", "triples"),
        (f"{found.things:,}", "things with a class"),
        (f"{len(found.classes):,}", "classes"),
        (f"{found.predicates:,}", "predicates"),
    )
    tiles = div("tiles", *(div("", div("big", number), div("soft", noun)) for number, noun in figures))
    return join(
        head, tiles, _questions(questions), div("two", _classes(found), _class(found)), _labels(found)
    )


def _questions(questions: Sequence[str] | None) -> Html:
    if questions is None:
        return div("band soft", "Trying questions on it …")
    if not questions:
        return Html()
    chips = (span("chip", icon("ok"), " ", short(question)) for question in questions)
    return div(
        "band",
        span("caption", "Questions that were asked of it just now, and answered"),
        div("chips", *chips),
    )


def _classes(found: Glance) -> Html:
    most = found.classes[0][1]
    rows = [
        tag(
            "button",
            span("cut", _name(one, found)),
            bar(number / most),
            span("num", f"{number:,}"),
            class_=f"hbar{' search b' if one == found.chosen else ''}",
            type="button",
            data_do="class",
            data_arg=one,
            title=short(one),
        )
        for one, number in found.classes[:CLASSES]
    ]
    rest = ", ".join(
        f"{_name(one, found)} {number:,}" for one, number in found.classes[CLASSES : CLASSES + 40]
    )
    more = (
        fold(aside(count(len(found.classes) - CLASSES, "smaller class")), rest, key="classes") if rest else ""
    )
    return div("", span("caption", "Classes"), *rows, more)


def _class(found: Glance) -> Html:
    whole = dict(found.classes).get(found.chosen or URIRef(""), 0) or 1
    rows = [
        div(
            "hbar wide sparql",
            span("cut", _name(one.predicate, found), title=short(one.predicate)),
            bar(one.things / whole),
            span("num", f"{one.things / whole:.0%}"),
            span("soft cut", short(term_text(one.value, found.names or {})) if one.value is not None else ""),
        )
        for one in found.said
    ]
    head = div(
        "row",
        span("caption", f"What is said of a {_name(found.chosen, found)}"),
        aside("share of them that have it, and an example"),
    )
    return div("", head, *rows)


def _labels(found: Glance) -> Html:
    without = found.things - found.labelled
    words = f"{found.labelled / (found.things or 1):.0%} of the things have one"
    lost = f"{without:,} have none, and are found by no name" if without else ""
    chips = (span("chip", f"{LANGUAGES.get(tag, tag)} {number:,}") for tag, number in found.languages[:10])
    return div(
        "band", div("row", span("caption", "Labels"), span("", words), aside(lost) if lost else "", *chips)
    )


def _name(iri: URIRef | None, found: Glance) -> str:
    return term_text(iri, found.names or {}) if iri is not None else ""


def questions_on(found: Glance) -> list[str]:
    """Questions that the counted predicates suggest: "What is the director of Arrival?"."""
    names = found.names or {}
    return [
        f"What is the {term_text(one.predicate, names)} of {term_text(one.subject, names)}?"
        for one in found.said
        if one.subject is not None and str(one.subject) in names
    ]
