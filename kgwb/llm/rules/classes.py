"""Questions about the members of a class: "which ferries are there", "the oldest ferry built after 1990".

Each content word must belong to the class or to a condition (``conditions.py``). Otherwise the
question asks for something else, and is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.sparql import n3, values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.conditions import (
    ANYTHING,
    DEGREES,
    LEAD,
    NON_CONTENT_WORDS,
    TARGET,
    Condition,
    Things,
    doubts_of,
    fetch_things,
    find_conditions,
    find_likely_conditions,
    find_measure,
    is_comparing,
    with_conditions,
)
from kgwb.llm.rules.grammar import ParsedQuestion, QuestionKind, Read, Unread, remove_filler_phrases
from kgwb.llm.rules.predicates import (
    PERSON_CLASSES,
    fetch_classes_of_graph,
    fetch_pairs,
    types_path,
)
from kgwb.llm.rules.words import (
    Words,
    are_kin,
    find_labelled,
    find_mentions,
    kept_by_graph,
    leads_to_agent,
    looks_english,
    lowercase_words,
    singular,
    tokenize,
    words_of,
)
from kgwb.terms import Term, find_reached, name_from_iri

CLASS_RELATION = "type"
"""The relation of a fact that states the class of what is asked for."""
MAX_CLASS_WORDS = 3
"""How many words the name of an asked class may have."""
MAX_NAMED_MEMBERS = 20
"""How many members of a class a question may name one by one."""
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
REFUSED_WORDS = en.PRONOUNS - {"there", "that"} | en.word_list("refused")
"""Words that ask for other things, or for some of those that are described."""
DEFINITION = re.compile(r"(what|who)('s| is| are) (?!the |all |our )", re.I)
"""The beginning of a question for what a class is."""
ASKING_FOR_VALUES = en.word_list("asking_for_values")
NOT_READ_LOOSELY = en.word_list("refused_loosely")
_PLACES = "place|books?|list|shelves|shelf|house|club|data|world|records?|collection"
PASSING_PLACE = re.compile(
    r" (?:(?:that )?(?:we|you|they)(?:'ve)? (?:have|own|got)|do(?:es)? the \w+ have"
    rf"|(?:in|on|at|of) (?:the|our|your|my|this|their) (?:{_PLACES}))(?=[?.! ]|$)",
    re.I,
)
"""A phrase for where the graph is from: "at the club"."""
MIN_CLASS_LIKENESS = 0.55
"""Similarity from which a noun is taken for a class."""
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = rf"(?P<month>(?:{'|'.join(MONTHS)})[a-z]*)"
DATES = (
    re.compile(rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?P<year>\d{{4}})\b", re.I),
    re.compile(rf"\b{_MONTH} (?P<day>\d\d?)(?:st|nd|rd|th)?,? (?P<year>\d{{4}})\b", re.I),
)


HOW_MANY = ["how", "many"]


class Classes(NamedTuple):
    """The classes of a graph."""

    names: Mapping[URIRef, str]
    by_form: Mapping[str, set[URIRef]]
    """Classes by their labels in all languages and the ends of their IRIs, in normal form."""
    subclasses: Mapping[URIRef, set[URIRef]]
    """Of each class: itself and the classes below it, at any depth."""

    def find(self, phrase: str) -> URIRef | None:
        """Return the class that a phrase names, else the one above all whose names end in it."""
        found = self.by_form.get(phrase, set())
        if not found:
            for form, iris in self.by_form.items():
                if form.endswith(f" {phrase}"):
                    found = found | iris
        return self.find_highest(found)

    def find_highest(self, iris: Iterable[URIRef]) -> URIRef | None:
        """Return the first of some classes that all others are subclasses of; None if there is none."""
        found = set(iris)
        for iri in sorted(found):
            if found <= self.subclasses[iri]:
                return iri
        return None

    def find_lowest(self, iris: Iterable[Term | None]) -> URIRef | None:
        """Return the smallest class that some classes are, or are below; None if there is none."""
        found = self.names.keys() & set(iris)
        smallest = None
        for iri, members in self.subclasses.items():
            is_above = found and found <= members
            if is_above and (smallest is None or members < self.subclasses[smallest]):
                smallest = iri
        return smallest


@kept_by_graph
def fetch_classes(kg: Graph) -> Classes:
    """Return the classes of a graph, fetched once.

    Subclasses at any depth are found here: not every engine finds them for several classes at once.
    """
    names = fetch_classes_of_graph(kg)
    iris = values_clause("?c", names)
    labels = "|".join(map(n3, kg.vocabulary.labels))
    forms = list(names.items())
    for iri, label in kg.select(f"SELECT ?c ?o WHERE {{ {iris} ?c {labels} ?o }}").rows:
        if isinstance(iri, URIRef):
            forms.append((iri, str(label)))
    for iri in names:
        forms.append((iri, name_from_iri(iri)))

    by_form: dict[str, set[URIRef]] = {}
    for iri, form in forms:
        by_form.setdefault(normal_noun(form), set()).add(iri)
    direct: dict[URIRef, set[URIRef]] = {}
    for below, above in fetch_pairs(kg, RDFS.subClassOf):
        direct.setdefault(above, set()).add(below)
    subclasses = {iri: find_reached([iri], direct) for iri in names}
    return Classes(names, by_form, subclasses)


def normal_noun(text: str) -> str:
    """Return a phrase in normal form, with its last word in the singular; "" without words."""
    words = list(words_of(text))
    last = words[-1]
    if last == "people":
        words[-1] = "person"
    elif not last.endswith("ing"):  # a building is more than to build
        words[-1] = singular(last)
    return " ".join(words)


def read_members(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading of a question about the members of a class, with its doubts; None for another question.

    Members of subclasses are members. Of several classes in the question, the first counts with which
    all words are read.
    """
    question = write_dates(remove_filler_phrases(question))
    asked = EXISTENCE.sub("", question)
    words = lowercase_words(tokenize(asked))
    is_count = words[:2] == HOW_MANY or not {"count", "number"}.isdisjoint(words[:3])
    others = words[1:] if is_count else words
    if not looks_english(" ".join(words)) or not ASKING_FOR_VALUES.isdisjoint(others):
        return None
    named = list(_find_classes(asked, kg))
    refused = REFUSED_WORDS.intersection(words)
    refused -= en.ORDINALS.intersection(words[-1:])  # who came first
    for _, span, _ in named:  # a single scull is a class
        refused -= set(words[span.start : span.stop])
    if refused:
        return None

    kind: QuestionKind = "list"
    if is_count:
        kind = "count"
    elif EXISTENCE.match(question):
        kind = "boolean"
    classes = fetch_classes(kg)
    for number, (class_iri, span, doubts) in enumerate(named):
        taken = set(span)
        for other, other_span, _ in named[:number]:
            if class_iri in classes.subclasses[other]:  # which of the bridges are swing bridges
                taken.update(other_span)
        conditions = _read_about(asked, class_iri, taken, kg, embeddings)
        if conditions is None:
            continue
        noun = words[span.stop - 1]
        is_plural = singular(noun) != noun
        is_all = question != asked or is_plural or "all" in words or "every" in words
        if not conditions and (not is_all or DEFINITION.match(asked)):
            return None
        return _read_of_class(classes.names[class_iri], kind, conditions, doubts)
    return None


def _read_of_class(
    name: str, kind: QuestionKind, conditions: Sequence[Condition], doubts: Sequence[str]
) -> Read:
    """Return a reading that asks for the members of a class that fulfil conditions, with all doubts."""
    reading = ParsedQuestion(((TARGET, CLASS_RELATION, name),), TARGET, kind)
    return with_conditions(reading, conditions), Unread((), [*doubts, *doubts_of(conditions)])


def read_members_loosely(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading, in doubt, of a question about members of a class that says something else, too; else None.

    The class may be named by another word, or not at all where something is measured: "the dearest
    thing on our shelves". A condition may be a value that the words are like: "banned" for "suspended".
    """
    question = write_dates(remove_filler_phrases(question))
    asked = PASSING_PLACE.sub("", EXISTENCE.sub("", question))
    words = lowercase_words(tokenize(asked))
    if not words or not looks_english(" ".join(words)) or find_mentions(asked, kg):
        return None
    has_unknown_degree = any(is_comparing(word) and word not in DEGREES for word in words)
    if has_unknown_degree or not NOT_READ_LOOSELY.isdisjoint(words) or words[0] in en.AUXILIARIES:
        return None
    kind: QuestionKind = "list"
    if words[:2] == HOW_MANY:
        kind = "count"
    elif words[0] in ASKING_FOR_VALUES:
        return None

    classes = fetch_classes(kg)
    for named, span, doubts in _find_likely_classes(asked, words, kg, embeddings):
        pattern = ANYTHING
        known = ""
        if named is not None:
            pattern = members_of(named, kg)
            known = classes.names[named]
        things = fetch_things(kg, pattern)
        conditions = find_likely_conditions(asked, set(span), known, things, kg, embeddings)
        if conditions is None or not (conditions or asked != question):
            continue
        class_iri = named
        if named is None:
            class_iri = _class_with(conditions[0].predicate, things, kg)
        if class_iri is None:
            continue
        reading, unread = _read_of_class(classes.names[class_iri], kind, conditions, doubts)
        return reading, unread if unread.doubts else Unread((), ["some words were left out"])
    return None


def _find_likely_classes(
    question: str, words: Words, kg: Graph, embeddings: Embeddings
) -> Iterator[tuple[URIRef | None, range, list[str]]]:
    """Yield the class that a question names; else that of persons after "who", and those that its noun is like.

    None is last, where something is measured, for anything.
    """
    classes = fetch_classes(kg)
    places = [place for place, word in enumerate(words) if _may_be_noun(word)]
    found = list(_find_classes(question, kg))[:1]
    if words[0] in ("who", "who's"):
        found = [each for each in found if leads_to_agent(classes.names[each[0]])]
    for _, span, _ in found:
        if span.start in places[:1]:
            yield from found
            return
    if words[0] in ("who", "who's") and not found:
        persons = []
        for iri, name in classes.names.items():
            if words_of(name)[-1] in PERSON_CLASSES:
                persons.append(iri)
        person = classes.find_highest(persons)
        if person is not None:
            yield person, range(0), []
        return

    for start in places[:1]:
        span, names = _find_like_class(words, start, kg, embeddings)
        said = " ".join(words[span.start : span.stop])
        like = [iri for iri, name in classes.names.items() if name in names]
        highest = classes.find_highest(like)
        if highest is not None:
            doubt = f"“{said}” was read as “{classes.names[highest]}”"
            yield highest, span, [doubt]
    yield from found
    if find_measure(words):
        yield None, range(0), []


def _may_be_noun(word: str) -> bool:
    """Return whether a word may name a class."""
    is_vague = word in en.VAGUE_WORDS and word != "part"
    return not (is_vague or word in NON_CONTENT_WORDS or word in DEGREES)


def _find_like_class(
    words: Words, start: int, kg: Graph, embeddings: Embeddings
) -> tuple[range, list[str]]:
    """Return which words from a place on are like or kin of classes, with the names of these."""
    names = list(fetch_classes(kg).names.values())
    best = MIN_CLASS_LIKENESS
    span = range(0)
    found: list[str] = []
    for end in range(start + 1, min(start + MAX_CLASS_WORDS, len(words)) + 1):
        if words[end - 1] in en.AUXILIARIES | en.SUBJECTS:
            break
        noun = normal_noun(" ".join(words[start:end]))
        similarities = embeddings.similarity(noun, names)
        likeness = dict(zip(names, similarities, strict=True))
        most = max(similarities, default=0.0)
        if most > best:
            best = most
            span = range(start, end)
            found = [name for name in names if likeness[name] > most - LEAD]
        elif not found:
            span = range(start, end)
            found = [name for name in names if are_kin(noun, name)]
    return span, found


def _class_with(predicate: str, things: Things, kg: Graph) -> URIRef | None:
    """Return the smallest class of all things that have a predicate of a name, if there is one."""
    named = [each.iri for each in things.attributes if each.name == predicate]
    where = f"{values_clause('?p', named)} ?s ?p ?o ; {types_path(kg)} ?c"
    rows = kg.select(f"SELECT DISTINCT ?c WHERE {{ {where} }}").rows
    return fetch_classes(kg).find_lowest(chain.from_iterable(rows))


def write_dates(question: str) -> str:
    """Return a question with its dates as "2023-01-31"."""
    for pattern in DATES:
        question = pattern.sub(_write_date, question)
    return question


def _write_date(found: re.Match[str]) -> str:
    month = MONTHS.index(found["month"].casefold()[:3]) + 1
    return f"{found['year']}-{month:02}-{int(found['day']):02}"


def members_of(class_iri: URIRef, kg: Graph) -> str:
    """Return a pattern of the members of a class as ?s."""
    types = types_path(kg)
    return f"?s ({types})/<{RDFS.subClassOf}>* {n3(class_iri)} ."


def name_members(kg: Graph, noun: str) -> list[str]:
    """Return the names of the members of the class that a noun names, sorted by IRI; [] if they are too many.

    More than MAX_NAMED_MEMBERS are too many to be named in a question.
    """
    class_iri = fetch_classes(kg).find(normal_noun(noun))
    if class_iri is None:
        return []
    limit = MAX_NAMED_MEMBERS + 1
    pattern = members_of(class_iri, kg)
    members = kg.select(f"SELECT DISTINCT ?s WHERE {{ {pattern} }} LIMIT {limit}")
    iris = [member for [member] in members.rows if isinstance(member, URIRef)]
    if len(iris) > MAX_NAMED_MEMBERS:
        return []
    return list(kg.names(sorted(iris)).values())


def _read_about(
    question: str, class_iri: URIRef, taken: set[int], kg: Graph, embeddings: Embeddings
) -> list[Condition] | None:
    """Return the conditions on the members of a class in a question; None if a word is left.

    ``taken`` are the positions of its words, and of those of a class above it.
    """
    words = lowercase_words(tokenize(question))
    name = fetch_classes(kg).names[class_iri]
    things = fetch_things(kg, members_of(class_iri, kg))
    conditions = find_conditions(question, taken, name, things, kg, embeddings)
    if conditions is None:
        return None
    said = taken.union(*(condition.positions for condition in conditions))
    start = max(taken)
    if "of" in words[min(said) : start]:
        return None
    opening = [word for place, word in enumerate(words[:start]) if place not in said]
    return conditions if OPENING.fullmatch(" ".join(opening)) else None


def _find_classes(question: str, kg: Graph) -> Iterator[tuple[URIRef, range, list[str]]]:
    """Yield the classes that words of a question name, with the positions of the words, and doubts."""
    tokens = tokenize(question)
    classes = fetch_classes(kg)
    for start, first in enumerate(tokens):
        for size in range(MAX_CLASS_WORDS, 0, -1):
            if size == 1 and first.lowercase in en.FUNCTION_WORDS:
                continue
            end = min(start + size, len(tokens))
            text = " ".join(token.text for token in tokens[start:end])
            iri = classes.find(normal_noun(text))
            if iri is None:
                continue
            doubts = []
            if any(other != iri for other in find_labelled(kg, text)):
                doubts = [f"“{text}” is a name, too"]
            yield iri, range(start, end), doubts
