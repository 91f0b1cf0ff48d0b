"""What a real engine is asked, and how its answers are set against those of the file with the same graph."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyoxigraph import NamedNode
from rdflib import URIRef

from kgwb.kg import Found, Hit, Limits, queries
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph
from kgwb.kg.text import normal, words

PLAIN = re.compile(r"[A-Za-z]+(?:[ :,-]+[A-Za-z]+)*")
"""A label whose words are the same to every engine: no accents, nothing like "D.C." or "2.0"."""


def opened(path: Path) -> LocalGraph:
    """The graph of a file, without a limit that would hide a difference."""
    return LocalGraph.open(path, limits=Limits(row_limit=1_000_000))


def texts(file: LocalGraph, most: int) -> Iterator[tuple[str, str, str]]:
    """Texts to search for, always the same: the kind, the text, and the label that it was made of."""
    every = vertices(file)
    only_schema = queries.schema(file, every)
    labels = sorted(set(file.names([iri for iri in every if iri not in only_schema]).values()))
    odd = [label for label in labels if not PLAIN.fullmatch(label)]
    chosen = random.Random(4).sample(labels, min(most, len(labels)))
    for label in dict.fromkeys((*chosen, *odd[:most])):
        asked = words(label)
        yield "whole", label, label
        yield "other case", label.upper(), label
        yield "no accents", normal(label), label
        if len(asked) > 1:
            yield "two words", f"{asked[-1]} {asked[0]}", label
            yield "too many words", f"{label} of the xyzzy", label
        if asked and len(asked[0]) > 5:
            yield "prefix", asked[0][:-1], label


def vertices(file: LocalGraph) -> list[URIRef]:
    """Some 2,000 of the IRIs that something is said of, or all."""
    iris = sorted({quad.subject.value for quad in file.store if isinstance(quad.subject, NamedNode)})
    return [URIRef(iri) for iri in iris[:: len(iris) // 2000 + 1]]


def plain(found: Found, label: str) -> bool:
    """Whether the label that was asked for and those that were found are plain."""
    return all(map(PLAIN.fullmatch, (label, *(hit.label for hit in found.hits))))


def told(hits: Sequence[Hit]) -> set[tuple[URIRef, float]]:
    """What counts of a search; the label may be that of another language or spelling, of the same score."""
    return {(hit.iri, hit.score) for hit in hits}


def best(found: Found) -> Found:
    """The first hit alone, and those of the same score."""
    return replace(found, hits=tuple(hit for hit in found.hits if hit.score == found.hits[0].score))


def differences(kg: Endpoint, file: LocalGraph, most: int = 60) -> Iterator[str]:
    """What the engine answers otherwise than the file, to everything but a search of labels."""
    iris = random.Random(5).sample(every := vertices(file), min(most, len(every)))
    predicates = [p for (p,) in file.select("SELECT DISTINCT ?p WHERE { ?s ?p ?o }").rows]
    labels = _of_one_spelling(file)
    asked = [f"<{iri}> ?p ?o" for iri in iris[:10]]
    for what, ask in {
        "names": lambda graph: graph.names([*every, *predicates]),
        "exact": lambda graph: graph.exact([*labels[::7], *map(str.lower, labels[:50]), "nobody"]),
        "schema": lambda graph: queries.schema(graph, iris),
        "describe": lambda graph: queries.describe(graph, iris),
        "degrees": lambda graph: queries.degrees(graph, iris, 5),
        "predicates": lambda graph: [queries.predicates(graph, iri) for iri in iris],
        "ask": lambda graph: [graph.ask(f"ASK {{ {one} }}") for one in (*asked, "<urn:x> ?p ?o")],
        "construct": lambda graph: [set(graph.construct(f"CONSTRUCT WHERE {{ {one} }}")) for one in asked],
        "select": partial(_told_of, every[:200]),
    }.items():
        there, here = ask(kg), ask(file)
        if isinstance(there, Mapping):
            there, here = set(there.items()), set(here.items())
        if isinstance(there, set):
            there, here = there - here, here - there
        if there != here:
            yield f"{what}: {there!r} instead of {here!r}"


def _of_one_spelling(file: LocalGraph) -> list[str]:
    """At most 1,000 labels in title case: a file finds "quebec" for "Québec" too, an endpoint does not."""
    predicates = " ".join(f"<{predicate}>" for predicate in file.vocabulary.labels)
    rows = file.select(
        f"SELECT DISTINCT ?l WHERE {{ VALUES ?p {{ {predicates} }} ?v ?p ?l }} ORDER BY ?l"
    ).rows
    labels = [str(label) for (label,) in rows]
    spellings = Counter(normal(label) for label in dict.fromkeys(map(str.lower, labels)))
    return [label for label in labels if label.istitle() and spellings[normal(label)] == 1][:1000]


def _told_of(iris: Sequence[URIRef], graph: Endpoint | LocalGraph) -> set[tuple[str, ...]]:
    """All triples with these subjects; the literals in their own spelling, so that 1.0 is not 1."""
    subjects = " ".join(f"<{iri}>" for iri in iris)
    rows = graph.select(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {subjects} }} ?s ?p ?o }}").rows
    return {tuple(map(repr, row)) for row in rows}
