"""Questions about the members of a class: "which ferries are there", "the oldest ferry built after 1990".

Each content word must belong to the class or to a condition (``conditions.py``). Otherwise the
question asks for something else, and is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.kg.sparql import n3, values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.conditions import (
    TARGET,
    Condition,
    fetch_things,
    find_conditions,
    with_conditions,
)
from kgwb.llm.rules.grammar import ParsedQuestion, QuestionKind, Unread, remove_filler_phrases
from kgwb.llm.rules.predicates import fetch_classes_of_graph
from kgwb.llm.rules.words import kept_by_graph, looks_english, singular, tokenize
from kgwb.terms import find_reached, name_from_iri

CLASS_RELATION = "type"
"""The relation of a fact that states the class of what is asked for."""
MAX_CLASS_WORDS = 3
"""How many words the name of an asked class may have."""
EXISTENCE = re.compile(
    r"\b(?:(?:are|is) there|(?:do|does|did|have|has) (?:we|you|they|i) (?:have|got)|on (?:record|file)"
    r"|in (?:the|this|your|our) (?:graph|data|database|dataset)|in (?:total|all)|altogether)\b",
    re.I,
)
"""Phrases that say no more than that things are in the graph."""
OPENING = re.compile(
    r"(?:please )?(?:(?:can|could) you )?(?:(?:list|name|show|give|find|tell|count|get|enumerate)(?: me| us)?)?"
    r"(?:(?:(?:what|which|who)(?:'s| (?:is|are|was|were))?)|how many(?: different)?)?"
    r"(?: ?(?:of|the|a|an|any|all|every|each|our|number|these|list|names|there|are|is))*"
)
"""What may stand before a class or a superlative."""
REFUSED_WORDS = en.PRONOUNS - {"there", "that"} | frozenset(
    "no never without except nor neither none or else only single one two three few and/or but "
    "first second third last per".split()
)
"""Words that ask for other things, or for some of those that are described."""
DEFINITION = re.compile(r"(what|who)('s| is| are) (?!the |all |our )", re.I)
"""The beginning of a question for what a class is."""
ASKING_FOR_VALUES = frozenset("when where why whose whom how".split())


class Classes(NamedTuple):
    """The classes of a graph."""

    names: Mapping[URIRef, str]
    by_form: Mapping[str, set[URIRef]]
    """Classes by their labels in all languages and the ends of their IRIs, in normal form."""
    subclasses: Mapping[URIRef, set[URIRef]]
    """Of each class with subclasses: itself and these, at any depth."""

    def find(self, phrase: str) -> URIRef | None:
        """Return the class that a phrase names, else the one above all whose names end in it."""
        found = self.by_form.get(phrase, set())
        if not found:
            for form, iris in self.by_form.items():
                if form.endswith(f" {phrase}"):
                    found = found | iris
        for iri in sorted(found):
            if found <= self.subclasses.get(iri, {iri}):
                return iri
        return None


@kept_by_graph
def fetch_classes(kg: Graph) -> Classes:
    """Return the classes of a graph, fetched once.

    Subclasses at any depth are found here: not every engine finds them for several classes at once.
    """
    names = fetch_classes_of_graph(kg)
    iris = values_clause("?c", names)
    labels = "|".join(map(n3, kg.vocabulary.labels))
    rows = kg.select(
        f"SELECT ?c ?o WHERE {{ {iris} {{ ?c {labels} ?o }} UNION {{ ?o {n3(RDFS.subClassOf)} ?c }} }}"
    ).rows
    by_form: dict[str, set[URIRef]] = {}
    below: dict[URIRef, set[URIRef]] = {}
    forms = [*names.items(), *((iri, name_from_iri(iri)) for iri in names)]
    for iri, other in rows:
        if isinstance(iri, URIRef) and isinstance(other, URIRef):
            below.setdefault(iri, set()).add(other)
        elif isinstance(iri, URIRef):
            forms.append((iri, str(other)))
    for iri, form in forms:
        by_form.setdefault(normal_noun(form), set()).add(iri)
    return Classes(names, by_form, {iri: find_reached([iri], below) for iri in below})


def normal_noun(text: str) -> str:
    """Return a phrase in normal form, with its last word in the singular; "" without words."""
    *others, last = normalize(text).split() or [""]
    return " ".join([*others, "person" if last == "people" else singular(last)])


def read_members(
    question: str, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading of a question about the members of a class, with its doubts; None for another question.

    Members of subclasses are members. Of several classes in the question, the first counts with which
    all words are read.
    """
    question = remove_filler_phrases(question)
    asked = EXISTENCE.sub("", question)
    words = [token.lowercase for token in tokenize(asked)]
    is_count = words[:2] == ["how", "many"] or not {"count", "number"}.isdisjoint(words[:3])
    others = words[1:] if is_count else words
    is_read = looks_english(" ".join(words)) and REFUSED_WORDS.isdisjoint(words)
    if not is_read or not ASKING_FOR_VALUES.isdisjoint(others):
        return None
    kind: QuestionKind = "count" if is_count else "list"
    if not is_count and EXISTENCE.match(question):
        kind = "boolean"
    classes = fetch_classes(kg)
    above: dict[URIRef, range] = {}
    for class_iri, span, doubts in _find_classes(asked, kg):
        taken = set(span)
        for other, other_span in above.items():
            if class_iri in classes.subclasses.get(
                other, ()
            ):  # which of the bridges are swing bridges
                taken.update(other_span)
        above[class_iri] = span
        read = _read_about(asked, class_iri, taken, kg, embeddings)
        if read is None:
            continue
        name, conditions = read
        noun = words[span.stop - 1]
        is_all = question != asked or "all" in words or "every" in words or singular(noun) != noun
        if not conditions and (not is_all or DEFINITION.match(asked)):
            return None
        reading = ParsedQuestion(((TARGET, CLASS_RELATION, name),), TARGET, kind)
        of_conditions = chain.from_iterable(condition.doubts for condition in conditions)
        return with_conditions(reading, conditions), Unread((), [*doubts, *of_conditions])
    return None


def _read_about(
    question: str, class_iri: URIRef, taken: set[int], kg: Graph, embeddings: Embeddings
) -> tuple[str, list[Condition]] | None:
    """Return the name of a class in a question and the conditions on its members; None if a word is left.

    ``taken`` are the positions of its words, and of those of a class above it.
    """
    words = [token.lowercase for token in tokenize(question)]
    name = fetch_classes(kg).names[class_iri]
    types = "|".join(map(n3, kg.vocabulary.types))
    things = fetch_things(kg, f"?s ({types})/<{RDFS.subClassOf}>* {n3(class_iri)} .")
    conditions = find_conditions(question, taken, name, things, kg, embeddings)
    if conditions is None:
        return None
    said = taken.union(*(condition.positions for condition in conditions))
    begin, start = min(said), max(taken)
    opening = [word for place, word in enumerate(words) if place < start and place not in said]
    is_asked = OPENING.fullmatch(" ".join(opening)) and "of" not in words[begin:start]
    return (name, conditions) if is_asked else None


def _find_classes(question: str, kg: Graph) -> Iterator[tuple[URIRef, range, list[str]]]:
    """Yield the classes that words of a question name, with the positions of the words, and doubts."""
    tokens = tokenize(question)
    classes = fetch_classes(kg)
    for start in range(len(tokens)):
        for size in range(MAX_CLASS_WORDS, 0, -1):
            span = range(start, min(start + size, len(tokens)))
            text = " ".join(token.text for token in tokens[span.start : span.stop])
            iri = classes.find(normal_noun(text))
            if iri is None or tokens[start].lowercase in en.FUNCTION_WORDS:
                continue
            named = set(kg.exact([text]).get(text, ())) - {iri}
            doubts = [f"“{text}” is a name, too"] if named else []
            yield iri, span, doubts
