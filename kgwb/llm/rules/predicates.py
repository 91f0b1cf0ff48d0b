"""What a graph has at a name: its predicates, how like a relation they are, their values, and its kind.

Predicates of both directions are fetched, with the types of their other ends. Names are compared by
embeddings and spelling.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from rdflib import Literal, URIRef
from rdflib.namespace import OWL, RDFS

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.kg.nodes import is_of_container, write_membership
from kgwb.kg.queries import find_class_names
from kgwb.kg.sparql import n3, values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.grammar import IS_A_RELATION, expected_value_type
from kgwb.llm.rules.words import (
    GENDERS,
    Words,
    are_kin,
    find_labelled,
    has_word_of_stem,
    have_same_relation,
    kept_by_graph,
    leads_to_agent,
    singularize,
    stem,
    stems_of,
    without_other_ends,
    words_of,
)
from kgwb.terms import Term, find_reached, local_part

Vertices = tuple[Term, ...]
"""What a name means: vertices, or the values of the graph that are this text."""
Row = tuple[Term | None, ...]
MAX_SAMPLED_TRIPLES = 100_000
"""How many triples of the vertices are looked at, in each direction."""
MAX_PAIRS = 100_000
"""How many statements that a class is a subclass, or a predicate an inverse, are looked at."""
MAX_SAMPLED_VALUES = 100
"""How many values are looked at to know of what kind the values of a predicate are."""
TRUE_FORMS = ("true", "1")
"""The texts of a truth value that is true: Virtuoso writes a number."""
NUMBER_AND_TIME_DATATYPES = en.TIME_WORDS | en.word_list("number_types")
"""Words in the names of datatypes whose values are never a person."""


@dataclass(eq=False)
class VertexPredicate:
    """A predicate of a vertex in one direction."""

    iri: URIRef
    name: str
    is_incoming: bool
    """Whether the vertex is the object of the triples."""
    value_types: set[str] = field(default_factory=set)
    """Names of the classes and datatypes at the other end."""
    has_untyped_values: bool = False
    """Whether a value has neither a class nor a datatype."""
    inner_predicates: list[str] = field(default_factory=list)
    """Names of the predicates of blank nodes that it leads to, sorted."""
    inverse_name: str = ""
    """Name of the predicate that the graph declares to be its inverse (owl:inverseOf)."""

    @property
    def is_temporal(self) -> bool:
        """Whether its name, or that of a value type, has a word for a time."""
        said = " ".join([self.name, *self.value_types])
        return not en.TIME_WORDS.isdisjoint(said.lower().split())

    @property
    def has_only_numbers(self) -> bool:
        """Whether its value types are known, and all of them are numbers, times or booleans."""
        for value_type in self.value_types:
            words = value_type.lower().split()
            if NUMBER_AND_TIME_DATATYPES.isdisjoint(words):
                return False
        return bool(self.value_types)


Predicates = Sequence[VertexPredicate]


@kept_by_graph
def fetch_predicates(kg: Graph, vertices: Vertices) -> Predicates:
    """Return the predicates of vertices, sorted by IRI and direction, with the types at their ends.

    At most MAX_SAMPLED_TRIPLES triples in each direction are looked at. The vocabulary's excluded
    predicates are left out. The names of types are display names. Of an outgoing predicate that
    leads to blank nodes, ``inner_predicates`` are the sorted names of the predicates of these. What
    is said of a list is said of its members. They are kept for the vertices asked about last.
    """
    hidden = kg.vocabulary.excluded_predicates
    rows = _select_predicates(kg, vertices)
    memberships = {row[0] for row in rows if str(row[1]) == "in" and is_of_container(row[0])}
    for membership in sorted(memberships, key=str):
        in_container = f"?_list {write_membership(membership)} ?v . "
        rows = [*rows, *_select_predicates(kg, vertices, "?_list", in_container)]
    inner_rows: Sequence[Row] = ()
    if any(str(row[-1]) in TRUE_FORMS for row in rows):
        inner_rows = _select_inner_predicates(kg, vertices)
    names = _names_in(kg, [*rows, *inner_rows])
    inverse_names = _fetch_inverse_names(kg)

    found: dict[tuple[str, bool], VertexPredicate] = {}  # texts are sorted far faster than URIRefs
    for iri, direction, value_type, _ in rows:
        if not isinstance(iri, URIRef) or iri in hidden or is_of_container(iri):
            continue
        is_incoming = str(direction) == "in"
        end = (str(iri), is_incoming)
        if end not in found:
            inverse_name = inverse_names.get(iri, "")
            found[end] = VertexPredicate(iri, names[iri], is_incoming, inverse_name=inverse_name)
        if value_type is None:
            found[end].has_untyped_values = True
        elif isinstance(value_type, URIRef):
            found[end].value_types.add(names[value_type])
    for outer, inner in inner_rows:
        predicate = found.get((str(outer), False))
        is_hidden = inner in hidden or is_of_container(inner)
        if predicate and isinstance(inner, URIRef) and not is_hidden:
            predicate.inner_predicates.append(names[inner])
            predicate.inner_predicates.sort()
    return [found[end] for end in sorted(found)]


@kept_by_graph
def _fetch_inverse_names(kg: Graph) -> dict[URIRef, str]:
    """Return for each predicate that a graph declares to have an inverse the name of that, fetched once."""
    pairs = fetch_pairs(kg, OWL.inverseOf)
    names = _names_in(kg, pairs)
    inverse_names: dict[URIRef, str] = {}
    for first, second in pairs:
        inverse_names[first] = names[second]
        inverse_names[second] = names[first]
    return inverse_names


@kept_by_graph
def fetch_pairs(kg: Graph, predicate: URIRef) -> list[tuple[URIRef, URIRef]]:
    """Return the IRIs that a predicate joins, of at most MAX_PAIRS triples, fetched once."""
    query = f"SELECT ?s ?o WHERE {{ ?s {n3(predicate)} ?o }} LIMIT {MAX_PAIRS}"
    pairs = []
    for first, second in kg.select(query).rows:
        if isinstance(first, URIRef) and isinstance(second, URIRef):
            pairs.append((first, second))
    return pairs


def _select_predicates(
    kg: Graph, vertices: Vertices, start: str = "?v", reached: str = ""
) -> Sequence[Row]:
    """Return rows of a predicate, "in" or "out", and a class or datatype of the other end.

    They are those of ``start``, which is reached from a vertex ?v by a pattern.
    The last cell is whether the other end is a blank node. A class or datatype that is not known is
    None. Each row stands once, in no order.
    """
    outgoing = _sampled_triples(vertices, f"{reached}{start} ?p ?o", "out")
    incoming = _sampled_triples(vertices, f"{reached}?o ?p {start}", "in")
    types = types_path(kg)
    query = (
        f"SELECT DISTINCT ?p ?d ?kind ?blank WHERE {{ {outgoing} UNION {incoming}"
        f" OPTIONAL {{ ?o {types} ?c }}"
        f" BIND(IF(isLiteral(?o), DATATYPE(?o), ?c) AS ?kind) BIND(isBlank(?o) AS ?blank) }}"
    )
    return kg.select(query).rows


def types_path(kg: Graph) -> str:
    """Return the path from a thing to its classes."""
    return "|".join(map(n3, kg.vocabulary.types))


def _sampled_triples(vertices: Vertices, pattern: str, direction: str) -> str:
    """Return a subquery for ?p and ?o of up to MAX_SAMPLED_TRIPLES triples, and ?d, the direction.

    ``pattern`` is a triple of ?v, which is a vertex, ?p and ?o.
    """
    where = f"{values_clause('?v', vertices)} {pattern}"
    return (
        f'{{ SELECT ?p ?o ("{direction}" AS ?d) WHERE {{ {where} }} LIMIT {MAX_SAMPLED_TRIPLES} }}'
    )


def _select_inner_predicates(kg: Graph, vertices: Vertices) -> Sequence[Row]:
    """Return rows of a predicate that leads to a blank node, and a predicate of that node.

    This is a query of its own because Virtuoso loses rows of a query with two OPTIONALs.
    """
    values = values_clause("?v", vertices)
    inner = "?v ?p ?o . ?o ?q ?x FILTER(isBlank(?o))"
    result = kg.select(f"SELECT DISTINCT ?p ?q WHERE {{ {values} {inner} }}")
    return result.rows


def fetch_values(
    kg: Graph, vertices: Vertices, predicates: Iterable[URIRef], *, is_incoming: bool = False
) -> list[Term]:
    """Return values of predicates of vertices, at most MAX_SAMPLED_VALUES, in no fixed order.

    Of incoming predicates these are the subjects.

    In place of a blank node its literals and things are returned, without its types; one without any
    is returned itself.
    """
    subjects = values_clause("?v", vertices)
    listed = values_clause("?p", sorted(predicates))
    types = ", ".join(map(n3, kg.vocabulary.types))
    inner = f"OPTIONAL {{ ?o ?q ?x FILTER(isBlank(?o) && !isBlank(?x) && ?q NOT IN ({types})) }}"
    triple = "?o ?p ?v" if is_incoming else "?v ?p ?o"
    query = f"SELECT DISTINCT ?o ?x WHERE {{ {subjects} {listed} {triple} {inner} }} LIMIT {MAX_SAMPLED_VALUES}"
    values = []
    for outer_value, inner_value in kg.select(query).rows:
        value = inner_value or outer_value
        if value is not None:
            values.append(value)
    return values


def fetch_ends(kg: Graph, vertices: Vertices, predicate: VertexPredicate) -> list[Term]:
    """Return the values of a predicate of vertices in its direction, as ``fetch_values`` does."""
    return fetch_values(kg, vertices, [predicate.iri], is_incoming=predicate.is_incoming)


def things_at(kg: Graph, vertices: Vertices, predicates: Predicates) -> tuple[URIRef, ...]:
    """Return the things that predicates of vertices lead to."""
    things = []
    for predicate in predicates:
        for value in fetch_ends(kg, vertices, predicate):
            if isinstance(value, URIRef):
                things.append(value)
    return tuple(things)


def are_texts(vertices: Vertices) -> bool:
    """Return whether these are texts or numbers of the graph, and no things."""
    return bool(vertices) and all(isinstance(vertex, Literal) for vertex in vertices)


@kept_by_graph
def _fetch_literals(kg: Graph, vertices: Vertices) -> Mapping[Term | None, list[Literal]]:
    """Return literals of vertices by their predicates, at most MAX_SAMPLED_VALUES in all."""
    query = f"SELECT DISTINCT ?p ?o WHERE {{ {values_clause('?v', vertices)} ?v ?p ?o FILTER(isLiteral(?o)) }}"
    found: dict[Term | None, list[Literal]] = {}
    for predicate, value in kg.select(f"{query} LIMIT {MAX_SAMPLED_VALUES}").rows:
        if isinstance(value, Literal):
            found.setdefault(predicate, []).append(value)
    return found


@kept_by_graph
def fetch_class_names(kg: Graph, vertices: Vertices) -> list[str]:
    """Return the display names of the classes of vertices, by their IRIs.

    They are kept for the vertices asked about last.
    """
    values = values_clause("?v", vertices)
    types = types_path(kg)
    rows = kg.select(f"SELECT DISTINCT ?c WHERE {{ {values} ?v {types} ?c }}").rows
    return list(_names_in(kg, rows).values())


def has_text_with(kg: Graph, vertices: Vertices, word: str) -> bool:
    """Return whether a literal of one of some vertices has a word; letter case does not count."""
    values = values_clause("?v", vertices)
    text = Literal(word.casefold()).n3()
    has_word = f"FILTER(isLiteral(?o) && CONTAINS(LCASE(STR(?o)), {text}))"
    return kg.ask(f"ASK {{ {values} ?v ?p ?o {has_word} }}")


@kept_by_graph
def fetch_classes_of_graph(kg: Graph) -> Mapping[URIRef, str]:
    """Return what ``find_class_names`` returns, fetched once for each graph."""
    return find_class_names(kg)


@kept_by_graph
def names_of_classes(kg: Graph) -> frozenset[str]:
    """Return the names of a graph's classes in normal form, fetched once for each graph."""
    return frozenset(map(normalize, fetch_classes_of_graph(kg).values()))


@kept_by_graph
def names_of_predicates(kg: Graph) -> Sequence[str]:
    """Return the sorted names of a graph's predicates but for the excluded ones, fetched once.

    At most MAX_SAMPLED_TRIPLES triples are looked at.
    """
    sample = f"SELECT ?p WHERE {{ ?s ?p ?o }} LIMIT {MAX_SAMPLED_TRIPLES}"
    rows = kg.select(f"SELECT DISTINCT ?p WHERE {{ {{ {sample} }} }}").rows
    return sorted(set(_names_in(kg, rows, kg.vocabulary.excluded_predicates).values()))


def names_of_other_predicates(kg: Graph, predicates: Predicates) -> list[str]:
    """Return the names of a graph's predicates that none of some predicates has."""
    own = {predicate.name for predicate in predicates}
    return [name for name in names_of_predicates(kg) if name not in own]


@kept_by_graph
def _fetch_superclasses(kg: Graph) -> Mapping[str, set[str]]:
    """Return the names of the direct superclasses of each class by its name, fetched once."""
    pairs = fetch_pairs(kg, RDFS.subClassOf)
    names = _names_in(kg, pairs)
    superclasses: dict[str, set[str]] = {}
    for below, above in pairs:
        superclasses.setdefault(names[below], set()).add(names[above])
    return superclasses


def with_superclasses(kg: Graph, names: Iterable[str]) -> set[str]:
    """Return names of classes with those of all their superclasses."""
    return find_reached(names, _fetch_superclasses(kg))


def has_neighbour_of_two_types(kg: Graph, vertices: Vertices) -> bool:
    """Return whether a thing one triple away from vertices has two types, by an ASK.

    The triple may have the vertex as subject or object.
    """
    values = values_clause("?v", vertices)
    types = types_path(kg)
    neighbours = "{ ?v ?p ?o } UNION { ?o ?p ?v }"
    typed = f"?o {types} ?c . ?o {types} ?d FILTER(?c != ?d)"
    return kg.ask(f"ASK {{ {values} {neighbours} {typed} }}")


@kept_by_graph
def predicates_within_two_steps(kg: Graph, vertices: Vertices) -> Collection[str]:
    """Return the names of the predicates one or two triples away from vertices, in any direction.

    Excluded predicates of the vocabulary are left out. The names are in the order of the
    predicates' IRIs. One query is sent, without a limit on the triples.
    """
    excluded = kg.vocabulary.excluded_predicates
    values = values_clause("?v", vertices)
    hidden = ", ".join(n3(predicate) for predicate in sorted(excluded))
    first = "{ ?v ?p ?x } UNION { ?x ?p ?v }"
    second = "{ ?x ?q ?y } UNION { ?y ?q ?x }"
    where = f"{values} {first} {second} FILTER(?p NOT IN ({hidden}))"
    rows = kg.select(f"SELECT DISTINCT ?p ?q WHERE {{ {where} }}").rows
    return _names_in(kg, rows, excluded).values()


def _names_in(
    kg: Graph, rows: Iterable[Row], hidden: Collection[URIRef] = ()
) -> Mapping[URIRef, str]:
    """Return the names of the IRIs of the rows of a result, but for some, sorted by IRI."""
    iris = set()
    for term in chain.from_iterable(rows):
        if isinstance(term, URIRef) and term not in hidden:
            iris.add(term)
    return kg.names(sorted(iris))


Names = Sequence[str]
SPELLING_WEIGHT = 0.3
"""Share of spelling in the similarity of names."""
MIN_RELATION_SIMILARITY = 0.34
"""Similarity that a predicate must have with a relation to be taken for it."""
SIMILARITY_TOLERANCE = 0.06
"""Predicates within this of the best one are kept beside it."""
DIGITS = re.compile(r"\d+")
TIME_AND_PLACE_WORDS = en.word_list("time_and_place")
NAME_SEPARATOR = ", "
"""Between the names of a relation that is a list of names."""
AGENT_ENDINGS = (" by", "er", "or")
"""Endings of predicates that lead to an agent, and so never to a time or a place."""


def find_similar_predicates(relation: str, names: Names, embeddings: Embeddings) -> list[str]:
    """Return the names of predicates that are like a relation, in their order; [] if none is.

    A name that is the relation, but for letter case, is returned alone. Names with other numbers
    than the relation are not like it: "p18" is another thing than "p1". Nor is one that only ends in
    " by", too, or leads to another end than that.

    A name must have MIN_RELATION_SIMILARITY and be within SIMILARITY_TOLERANCE of the best one; the
    latter is not needed for IS_A_RELATION. If the relation is the time or place of an event, the
    predicate must be like that event too: "burial place" is not like "birth place".

    Of a list of names, as ``write_name_list`` makes it, the names in that list are returned.
    """
    if NAME_SEPARATOR in relation:
        parts = relation.split(NAME_SEPARATOR)
        return [name for name in names if name in parts]

    searched = relation.casefold()
    same = [name for name in names if name.casefold() == searched]
    if same:
        return same
    names = without_other_ends(relation, names)
    relation = relation.removesuffix(" by")
    names = _without_other_numbers(relation, names)
    event = without_time_and_place(relation)
    if event not in ("", relation):
        names = [name for name in names if not _says_place_for_time(relation, name)]
        names = _predicates_of_event(event, names, embeddings)
    similarities = embeddings.similarity(relation, names, SPELLING_WEIGHT)
    threshold = MIN_RELATION_SIMILARITY
    if similarities and relation != IS_A_RELATION:
        threshold = max(threshold, max(similarities) - SIMILARITY_TOLERANCE)
    return _names_from(threshold, names, similarities)


def write_name_list(names: Names) -> str:
    """Return a relation that stands for names of predicates, and for no others that are like them.

    A list of one name has it twice: alone it would be a relation that other names may be like.
    """
    listed = list(names)
    if len(listed) == 1:
        listed *= 2
    return NAME_SEPARATOR.join(listed)


def max_similarity(phrase: str, names: Names, embeddings: Embeddings) -> float:
    """Return the similarity of a phrase with the name most like it; 0.0 without names.

    Names with other numbers than the phrase do not count.
    """
    names = _without_other_numbers(phrase, names)
    similarities = embeddings.similarity(phrase, names, SPELLING_WEIGHT)
    return max(similarities, default=0.0)


def _without_other_numbers(phrase: str, names: Names) -> list[str]:
    """Return the names that have no numbers, or the same numbers in the same order as the phrase.

    All names are returned if the phrase has no numbers.
    """
    numbers = DIGITS.findall(phrase)
    if not numbers:
        return list(names)
    kept = []
    for name in names:
        name_numbers = DIGITS.findall(name)
        if name_numbers in ([], numbers):
            kept.append(name)
    return kept


def _predicates_of_event(event: str, names: Names, embeddings: Embeddings) -> list[str]:
    """Return the names of predicates that may be the time or place of an event, in their order.

    A name is compared without its words for time and place: what is left must be like the event
    (MIN_RELATION_SIMILARITY), and a name of which nothing is left is kept. Names with AGENT_ENDINGS
    are left out.
    """
    candidates = []
    events = []
    for name in names:
        if name.endswith(AGENT_ENDINGS):
            continue
        candidates.append(name)
        events.append(without_time_and_place(name) or event)
    similarities = embeddings.similarity(event, events, SPELLING_WEIGHT)
    return _names_from(MIN_RELATION_SIMILARITY, candidates, similarities)


def _names_from(threshold: float, names: Names, similarities: Sequence[float]) -> list[str]:
    """Return the names whose similarity is not below a threshold, in their order."""
    similar = []
    for name, similarity in zip(names, similarities, strict=True):
        if similarity >= threshold:
            similar.append(name)
    return similar


def _says_place_for_time(relation: str, name: str) -> bool:
    """Return whether a name says the place of an event where the relation is its time, or the reverse."""
    relation_words = set(relation.split())
    words = set(name.casefold().split())
    for asked, other in ((en.TIME_WORDS, en.PLACE_WORDS), (en.PLACE_WORDS, en.TIME_WORDS)):
        if relation_words & asked and words & other and not words & asked:
            return True
    return False


def without_time_and_place(relation: str) -> str:
    """Return a relation without TIME_AND_PLACE_WORDS."""
    words = [word for word in relation.split() if word not in TIME_AND_PLACE_WORDS]
    return " ".join(words)


YEAR_OR_DATE = re.compile(r"-?\d{4}(-\d\d){0,2}([T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
TIME_NAME = re.compile(
    r"\b\d{4}\b|\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|^(january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b\d\d?[:.]\d\d\b|^\d\d?\s*(am|pm)?\s*[-–]\s*\d\d?\s*(am|pm)?$|^(spring|summer|autumn|winter)$",
    re.I,
)
"""A text that says when something is: a year, a day of the week, a month, a time of day, a season."""
NUMBER = re.compile(r"[-+]?\d[\d.,]*")
WHO_WORDS = en.word_list("who")
MEASURED_WORDS = en.word_list("asking_for_numbers")
"""Words that ask for a number after "how"."""


def asked_kind(words: Words) -> str:
    """Return "a time", "a place", "a person" or "a number", as the question words ask; else "".

    "How many" gives "": it may count things.
    """
    value_type, place = expected_value_type(words)
    if value_type == "date":
        return "a time"
    for word, following in pairwise(words):
        if word == "how" and following in MEASURED_WORDS:
            return "a number"
    if value_type == "place" and not place:
        return "a place"
    if not WHO_WORDS.isdisjoint(words[:2]):
        return "a person"
    return ""


def kinds_of_value(value: Term) -> set[str]:
    """Return the kinds that a value can be of, as ``asked_kind`` names them.

    An IRI can be a place or a person. A literal is a time if it looks like one, and a number if it
    has a digit. Any but times, numbers and truth values can be a place, and a person if it has a
    capital letter.
    """
    if not isinstance(value, Literal):
        return {"a place", "a person"}
    text = str(value).strip()
    kinds = set()
    if DIGITS.search(text):
        kinds.add("a number")
    if _is_time(value):
        kinds.add("a time")
    elif not NUMBER.fullmatch(text) and text.casefold() not in ("true", "false"):
        kinds.add("a place")
        if text != text.casefold():
            kinds.add("a person")
    return kinds


def _is_time(value: Literal) -> bool:
    """Return whether a literal is a time, by its datatype or its text.

    Texts are dates, and what TIME_NAME finds.
    """
    datatype = local_part(str(value.datatype or "")).casefold()
    text = str(value).strip()
    if datatype.startswith(("date", "time", "g")) or YEAR_OR_DATE.fullmatch(text):
        return True
    may_be_time = datatype in ("", "string", "langstring")
    return may_be_time and TIME_NAME.search(text) is not None


NUMBER_WITH_UNIT = re.compile(rf"({NUMBER.pattern})\s*[^\W\d]{{0,10}}")
PERSON_NAME = re.compile(r"([A-Z]\S*|de|van|von)( ([A-Z]\S*|de|van|von))+")
PERSON_CLASSES = en.PERSON_NOUNS | en.PROFESSIONS
LIVING_CLASSES = en.word_list("living")
CLASSES_OF_SHIPS = en.word_list("ships")
"""Classes of things that are called she, but are no answer to "who"."""
PLACE_CLASSES = en.PLACE_WORDS | en.word_list("place_classes")
WORDS_FOR_PLACES = PLACE_CLASSES | en.word_list("place_names")
"""Words of which the name of a predicate that leads to a place has one, or it ends in a preposition."""
JOINING_PLACES = en.word_list("joining_places")
STEMS_OF_PERSONS = en.stem_list("of_persons")
"""Stems of words in the predicates that persons have."""
STEMS_OF_PLACES = en.stem_list("of_places")


def leads_to_kind(kg: Graph, vertices: Vertices, predicate: VertexPredicate, kind: str) -> bool:
    """Return whether a predicate of vertices leads to values of a kind of ``asked_kind``, as far as the graph tells.

    Things are told by their classes and superclasses, and texts by how they look. A predicate to a place may
    also be told by its name. A thing without a class may be a person.
    """
    words = words_of(predicate.name)
    literals: list[Literal] = []
    if not predicate.is_incoming:
        literals = _fetch_literals(kg, vertices).get(predicate.iri, [])
    has_times = any(map(_is_time, literals))
    if kind == "a time":
        is_event = predicate.is_temporal or words[-1] == "on" or any(map(en.is_verb, words))
        return has_times and is_event
    if kind == "a number":
        is_dated = has_times and predicate.is_temporal
        return not is_dated and any(map(NUMBER_WITH_UNIT.fullmatch, literals))

    is_of_agent = predicate.name.endswith(AGENT_ENDINGS)
    is_place = words[-1] in JOINING_PLACES or not WORDS_FOR_PLACES.isdisjoint(words)
    if literals:
        fits = is_place
        if kind == "a person":
            is_number = words[-1] == "number"
            fits = (is_of_agent and not is_number) or any(map(PERSON_NAME.fullmatch, literals))
        return fits and not (has_times or predicate.has_only_numbers)
    nouns = _nouns_of_classes(kg, predicate.value_types)
    is_person = not nouns.isdisjoint(PERSON_CLASSES | LIVING_CLASSES)
    if kind == "a place":
        is_place = is_place or not nouns.isdisjoint(PLACE_CLASSES)
        return is_place and not (is_person or is_of_agent)
    is_agent = is_person or any(map(leads_to_agent, nouns)) or not nouns.isdisjoint(en.GROUPS)
    if is_agent or not nouns:
        return True
    names = kg.names(things_at(kg, vertices, [predicate])[:1]).values()
    return any(find_kind(kg, name) == "person" for name in names)  # a stonemason is born


def _nouns_of_classes(kg: Graph, names: Iterable[str]) -> set[str]:
    """Return the nouns that classes and their superclasses are called by: "pupil" for "Former pupils"."""
    nouns = set()
    for name in with_superclasses(kg, names):
        nouns.add(singularize(words_of(name)[-1]))
    return nouns


@kept_by_graph
def find_kind(kg: Graph, name: str) -> str:
    """Return "person", "place" or "thing", as the classes and predicates of a name say.

    "" if the graph does not tell or does not have the name as a label, or for what people call he,
    she or it.
    """
    vertices = find_labelled(kg, name)
    if not vertices:
        return ""
    nouns = _nouns_of_classes(kg, fetch_class_names(kg, vertices))
    stems: set[str] = set()
    for predicate in fetch_predicates(kg, vertices):
        if not predicate.is_incoming:
            stems.update(stems_of(predicate.name))
    if not nouns.isdisjoint(LIVING_CLASSES | CLASSES_OF_SHIPS):
        return ""
    if not (nouns.isdisjoint(PERSON_CLASSES) and stems.isdisjoint(STEMS_OF_PERSONS)):
        return "person"
    if not (nouns.isdisjoint(PLACE_CLASSES) and stems.isdisjoint(STEMS_OF_PLACES)):
        return "place"
    is_unclear = not nouns or any(map(leads_to_agent, nouns))  # an examiner, a river
    return "" if is_unclear else "thing"


@kept_by_graph
def is_called(kg: Graph, name: str, noun: str) -> bool:
    """Return whether a noun says a class of a thing, or a superclass: "that company" of an organization.

    It may also be a word of its name.
    """
    vertices = find_labelled(kg, name)
    classes = with_superclasses(kg, fetch_class_names(kg, vertices)) | {name}
    return any(has_word_of_stem(each, noun) or are_kin(noun, each) for each in classes)


def has_said(kg: Graph, name: str, words: Iterable[str]) -> bool:
    """Return whether a form of one of some words is in the name of a predicate of a thing."""
    vertices = find_labelled(kg, name)
    names = " ".join(each.name for each in fetch_predicates(kg, vertices))
    return not stems_of(names).isdisjoint(map(stem, words))


def name_ends(kg: Graph, name: str, noun: str) -> list[str]:
    """Return the names of the things that the predicates of a thing lead to whose names say a noun: "sister"."""
    vertices = find_labelled(kg, name)
    said = []
    for predicate in fetch_predicates(kg, vertices):
        if has_word_of_stem(predicate.name, noun) or have_same_relation(noun, predicate.name):
            said.append(predicate)
    return list(kg.names(things_at(kg, vertices, said)).values())


GENDER_NAMES = ("gender", "sex")
"""Names of the predicates of a person's gender."""


@kept_by_graph
def find_gender(kg: Graph, name: str) -> str:
    """Return "she" or "he", as the graph says of the gender of a person; "" if it does not.

    Somebody's "sister" is a woman, too.
    """
    vertices = find_labelled(kg, name)
    for predicate in fetch_predicates(kg, vertices):
        if predicate.is_incoming and predicate.name in en.WOMEN | en.MEN:
            return "she" if predicate.name in en.WOMEN else "he"
        if predicate.name in GENDER_NAMES:
            for gender in fetch_ends(kg, vertices, predicate)[:1]:
                names = _names_in(kg, [(gender,)])
                text = normalize(" ".join(names.values()) or str(gender))
                return GENDERS.get(text, "")
    return ""
