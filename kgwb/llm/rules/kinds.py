"""What kind of thing a name of the graph is: a person, a place, or another thing.

A pronoun of a follow-up question stands for what its kind allows.
"""

from __future__ import annotations

from rdflib import URIRef

from kgwb.kg.base import Graph
from kgwb.kg.label_search import normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.mentions import kept_by_graph
from kgwb.llm.rules.predicates import fetch_class_names, fetch_predicates
from kgwb.llm.rules.words import singularize, stem

PERSON_CLASSES = en.PERSON_NOUNS | en.PROFESSIONS
LIVING_CLASSES = frozenset(
    "animal bird boat cat cow dog ferry hen hive horse organism pet queen sheep ship species vessel".split()
)
"""Classes of things that people call he, she or it."""
PLACE_CLASSES = en.PLACE_WORDS | {"area", "harbour", "island", "port", "settlement", "site"}
STEMS_OF_PERSONS = frozenset(
    map(stem, "born birthday employ job marry spouse occupation profession nationality".split())
)
"""Stems of words in the predicates that persons have."""
STEMS_OF_PLACES = frozenset(map(stem, ("population", "inhabitants", "capital", "latitude")))


@kept_by_graph
def find_kind(kg: Graph, name: str) -> str:
    """Return "person", "place" or "thing", as the classes and predicates of a name say.

    "" if the graph does not tell or does not have the name as a label, or for what people call he,
    she or it.
    """
    vertices: tuple[URIRef, ...] = tuple(kg.exact([name]).get(name, ()))
    if not vertices:
        return ""
    class_words: set[str] = set()
    for class_name in fetch_class_names(kg, vertices):
        class_words.update(map(singularize, normalize(class_name).split()))
    stems: set[str] = set()
    for predicate in fetch_predicates(kg, vertices):
        if not predicate.is_incoming:
            stems.update(map(stem, normalize(predicate.name).split()))
    if not class_words.isdisjoint(LIVING_CLASSES):
        return ""
    if not (class_words.isdisjoint(PERSON_CLASSES) and stems.isdisjoint(STEMS_OF_PERSONS)):
        return "person"
    if not (class_words.isdisjoint(PLACE_CLASSES) and stems.isdisjoint(STEMS_OF_PLACES)):
        return "place"
    return "thing" if class_words else ""
