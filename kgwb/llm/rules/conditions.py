"""What a question says of the things that it asks for: a value, a comparison, or the most of all.

A condition is about one predicate that these things have in the graph. It tells which words of the
question say it, and what is doubtful about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, product
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS, XSD

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.queries import find_exact_values, parse_count
from kgwb.kg.sparql import values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.grammar import UNSUPPORTED_WORDS, Comparison, ParsedQuestion
from kgwb.llm.rules.predicates import max_similarity
from kgwb.llm.rules.words import (
    Mention,
    Mentions,
    Token,
    Words,
    are_kin,
    have_rivals,
    kept_by_graph,
    leads_elsewhere,
    lowercase_words,
    relation_phrase,
    stem,
    stems_of,
    tokenize,
    words_of,
    words_without_names,
)
from kgwb.terms import local_part

TRUE, FALSE = "true", "false"
"""The texts of truth values."""
TARGET = "?answer"
"""The unknown that is asked for."""
Bounds = Sequence[tuple[str, str]]
"""Operators of comparisons, each with a number, a year, a date or a text; "max" and "min" have ""."""
ANYTHING = "?s ?p ?o ."
"""The pattern of all things of a graph."""
MAX_TEXT_WORDS = 3
"""How many words may be a text of the graph that has no capital."""
MAX_THINGS = 2_000
"""How many of the things that are asked for are looked at."""
MIN_ATTRIBUTE_SIMILARITY = 0.5
"""Similarity from which words may say a predicate, in doubt."""
MAX_LIKE_WORDS = 2
"""How many words may say a predicate that is only like them: more of them say something else, too."""
LEAD = 0.05
"""How much more like them that predicate must be than the next one."""
MIN_VALUE_LIKENESS = 0.4
"""Similarity from which words may say a value, in doubt."""
MIN_NAME_LIKENESS = 0.55
"""The same of a value with a capital letter: a name is seldom described."""
MAX_OFFERS = 500
"""How many values of things words are compared with."""
NUMBER_DATATYPES = en.word_list("number_datatypes")
TIME_DATATYPES = en.word_list("time_datatypes")
NEGATION = "not"
EMPTY_WORDS = en.FUNCTION_WORDS | en.LIGHT_VERBS | en.NEUTRAL_WORDS | {"", "'s"}
"""Words that need nothing in the query to stand for them."""
UNTELLING_WORDS = (
    en.WH_WORDS | en.AUXILIARIES | en.DETERMINERS | {"", "i", "we", "you", "they", "to"}
)
NON_CONTENT_WORDS = en.NON_NAME_WORDS | {""}
UNIT_OF = en.keys_by_word("units")
"""For a word or sign of a unit, the unit."""
MEASURED_BY = en.keys_by_word("measured")
"""For a unit, what it measures."""
MEASURING_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"amount", "count", "unit", "value"}
"""Words of names that say no more of what is measured, beside units."""
CURRENCIES = en.word_list("currencies")
AGE, DATE, NUMBER = ("age",), ("date",), ("number",)
"""The nouns of "old", "late" and "many"."""
LASTING = en.word_list("lasting")
YEAR = re.compile(r"\d{4}")
TIME = re.compile(r"\d{4}(-\d\d){0,2}")
DIGIT = re.compile(r"\d")
BEGINNINGS = en.stem_list("beginnings")
"""Stems of words for times from which an age is counted."""
ANY_EVENT = en.stem_list("any_event")
"""Stems of names for the time of any event."""


class Degree(NamedTuple):
    """What an adjective measures."""

    nouns: tuple[str, ...]
    is_much: bool
    """Whether it stands for large values: "long", and not "short"."""


DEGREES: dict[str, Degree] = {}
"""The degree of an adjective, and of its forms."""
for _nouns, _adjectives in en.LEXICON["degrees"].items():
    _much, _, _little = _adjectives.partition("/")
    DEGREES |= dict.fromkeys(_much.split(), Degree(tuple(_nouns.split()), True))
    DEGREES |= dict.fromkeys(_little.split(), Degree(tuple(_nouns.split()), False))
PRICE = DEGREES["expensive"]
QUANTITIES = frozenset(("most", "least", "fewest"))
SUPERLATIVE_ENDINGS = ("est", "worst", *QUANTITIES)


COMPARING_WORDS = en.word_list("comparing")
SUPERLATIVE_ENDING = "est"
MIN_SUPERLATIVE_CHARS = 6
"""Shorter words with the ending are others: "west", "rest", "guest"."""


def is_comparing(word: str) -> bool:
    """Return whether a word compares: one of COMPARING_WORDS, or a superlative."""
    is_superlative = word.endswith(SUPERLATIVE_ENDING) and len(word) >= MIN_SUPERLATIVE_CHARS
    return is_superlative or word in COMPARING_WORDS


class Attribute(NamedTuple):
    """A predicate of some things, with what its values are."""

    iri: URIRef
    name: str
    datatypes: frozenset[str]
    """The local names of datatypes; "Resource" for things."""
    number_of_things: int

    @property
    def is_number(self) -> bool:
        return NUMBER_DATATYPES.issuperset(self.datatypes)

    @property
    def is_time(self) -> bool:
        """Whether it has times. A year may be a number."""
        if TIME_DATATYPES.issuperset(self.datatypes):
            return True
        words = words_of(self.name)
        may_be_year = self.is_number or self.datatypes == {"string"}
        return may_be_year and ("year" in words or words[-1] in ("in", "since"))

    @property
    def unit(self) -> str:
        """The unit that its name ends in; "" if it names none."""
        return UNIT_OF.get(words_of(self.name)[-1], "")

    @property
    def stems(self) -> set[str]:
        """The stems of the words that say what it is."""
        words = words_of(self.name)
        content = []
        for word in words:
            if word not in MEASURING_WORDS and word not in UNIT_OF:
                content.append(word)
        return set(map(stem, content or words))


class Things(NamedTuple):
    """The things that a question asks for, as a graph pattern of ?s, and what the graph says of them."""

    pattern: str
    number: int
    attributes: tuple[Attribute, ...]


@kept_by_graph
def fetch_things(kg: Graph, pattern: str) -> Things:
    """Return the attributes of the things that are ?s in a graph pattern, sorted by IRI.

    MAX_THINGS things are looked at. Excluded predicates of the vocabulary are left out.
    """
    things = f"{{ SELECT DISTINCT ?s WHERE {{ {pattern} }} LIMIT {MAX_THINGS} }}"
    kind = f"BIND(IF(isLiteral(?o), DATATYPE(?o), <{RDFS.Resource}>) AS ?kind)"
    grouped = f"SELECT ?p ?kind (COUNT(DISTINCT ?s) AS ?n) WHERE {{ {things} ?s ?p ?o {kind} }}"
    counts_of: dict[URIRef, dict[str, int]] = {}
    for predicate, datatype, count in kg.select(f"{grouped} GROUP BY ?p ?kind").rows:
        if isinstance(predicate, URIRef):
            counts = counts_of.setdefault(predicate, {})
            counts[local_part(str(datatype or XSD.string))] = parse_count(count)
    # Each thing has a class, or something else that is said of it.
    number = 0
    for counts in counts_of.values():
        number = max(number, *counts.values())
    shown = sorted(counts_of.keys() - kg.vocabulary.excluded_predicates)
    attributes = []
    for iri, name in kg.names(shown).items():
        counts = counts_of[iri]
        attribute = Attribute(iri, name, frozenset(counts), sum(counts.values()))
        attributes.append(attribute)
    return Things(pattern, number, tuple(attributes))


Way = tuple[str, str, bool]
"""The name of a predicate, a value or thing that it joins to others, and whether that is the subject."""


class Condition(NamedTuple):
    """What a question says of the things that it asks for, by one predicate."""

    predicate: str
    """Its name."""
    value: str
    """A text, a truth value or a name of the graph; "" for a value that is compared."""
    positions: set[int]
    """Where the words stand that say this."""
    doubts: Sequence[str] = ()
    """That words were read as others: "from" as "home town"."""
    bounds: Bounds = ()
    """How the value is compared."""
    is_incoming: bool = False
    """Whether the value is the subject of the predicate."""


def with_conditions(reading: ParsedQuestion, conditions: Sequence[Condition]) -> ParsedQuestion:
    """Return a reading with conditions on what it asks for, each compared value as an unknown of its own."""
    facts = list(reading.facts)
    comparisons = list(reading.comparisons)
    for number, condition in enumerate(conditions, 1):
        value = condition.value or f"?value{number}"
        fact = (TARGET, condition.predicate, value)
        if condition.is_incoming:
            fact = (value, condition.predicate, TARGET)
        facts.append(fact)
        for operator, bound in condition.bounds:
            comparison = Comparison(value, operator, bound)
            comparisons.append(comparison)
    return reading._replace(facts=tuple(facts), comparisons=tuple(comparisons))


def doubts_of(conditions: Sequence[Condition]) -> list[str]:
    """Return what is doubtful about conditions, in their order."""
    doubts: list[str] = []
    for condition in conditions:
        doubts += condition.doubts
    return doubts


def find_conditions(
    question: str, taken: set[int], known: str, things: Things, kg: Graph, embeddings: Embeddings
) -> list[Condition] | None:
    """Return the conditions on some things that a question says outside of positions that are taken.

    None if a content word is left. ``known`` are words that a predicate may repeat.
    """
    words = _words_outside(question, taken)
    measure = find_measure(words)
    if measure:
        taken = taken | measure.positions
    conditions: list[Condition] = []
    while True:
        mentions = [Mention(place, place + 1, "") for place in sorted(taken)]
        condition = find_condition(question, mentions, kg, things)
        if condition is None:
            break
        conditions.append(condition)
        taken = taken | condition.positions

    said = {}
    for place, word in enumerate(words):
        if place not in taken and (word == NEGATION or word not in EMPTY_WORDS):
            said[place] = word
    if any(word in UNSUPPORTED_WORDS or DIGIT.search(word) for word in said.values()):
        return None  # another comparison or negation
    if NEGATION in words and (len(conditions) > 1 or measure):
        return None  # it is not clear which of them is denied

    if measure:
        measured = read_measure(measure, said, known, things, embeddings)
        if measured is None:
            return None
        conditions.append(measured)
    elif said:
        return None
    return [_doubt_missing(condition, things) for condition in conditions]


def _words_outside(question: str, taken: set[int]) -> list[str]:
    """Return the words of a question in lower case, with "" at positions that are taken."""
    words = lowercase_words(tokenize(question))
    for place in taken:
        words[place] = ""
    return words


def find_likely_conditions(
    question: str, taken: set[int], known: str, things: Things, kg: Graph, embeddings: Embeddings
) -> list[Condition] | None:
    """Return the conditions that a question may say of some things, in doubt; None if nothing stands out.

    Words beside a measure may be left out. Otherwise they may say a value that they are like.
    """
    words = _words_outside(question, taken)
    measure = find_measure(words)
    if measure:
        before = words[: min(measure.positions)]
        if before[-2:-1] == ["of"]:
            return None  # the length of the longest
    conditions = find_conditions(question, taken, known, things, kg, embeddings)
    if conditions is not None:
        return conditions
    is_denied = NEGATION in words
    if measure and not is_denied:
        return _find_likely_measure(words, measure, known, things, kg, embeddings)

    said = {}
    for place, word in enumerate(words):
        if word not in UNTELLING_WORDS and word != NEGATION:
            said[place] = word
    likely = find_likely_value(said, things, kg, embeddings)
    if likely is None or (is_denied and (measure or likely.value != TRUE)):
        return None  # "awaiting payment" is not paid
    if is_denied:
        likely = likely._replace(value=FALSE)
    return [_doubt_missing(likely, things)]


def _find_likely_measure(
    words: Words,
    measure: Measure,
    known: str,
    things: Things,
    kg: Graph,
    embeddings: Embeddings,
) -> list[Condition] | None:
    """Return what a measure says with at most one word beside it, and the value that these are like; else None."""
    said = {}
    for place, word in enumerate(words):
        if place not in measure.positions and word not in EMPTY_WORDS:
            said[place] = word
    if _has_number(said):
        return None
    measured = read_measure(measure, {}, known, things, embeddings)
    for place, word in said.items():
        measured = measured or read_measure(measure, {place: word}, known, things, embeddings)
    if measured is None:
        return None
    selected = None
    if things.pattern != ANYTHING:
        selected = find_likely_value(said, things, kg, embeddings)
    if selected is None:
        return [_doubt_missing(measured, things)]
    return [selected, measured]


def _has_number(said: Mapping[int, str]) -> bool:
    """Return whether one of some words is a number or has a digit."""
    return any(word in NUMBERS or DIGIT.search(word) for word in said.values())


def find_likely_value(
    said: Mapping[int, str], things: Things, kg: Graph, embeddings: Embeddings
) -> Condition | None:
    """Return the value of some things that words are most like, in doubt; None if they are like none or several.

    Words with a number are like none.
    """
    phrase = " ".join(said.values())
    offers = _fetch_offers(kg, things)
    if not phrase or not offers or _has_number(said):
        return None
    similarities = embeddings.similarity(phrase, [text for text, _, _ in offers])
    ranked = sorted(zip(similarities, offers, strict=True), reverse=True)
    likeness, (text, name, value) = ranked[0]
    least = MIN_VALUE_LIKENESS
    if value[:1].isupper():
        least = MIN_NAME_LIKENESS
    for other, _ in ranked[1:2]:
        least = max(least, other + LEAD)
    if likeness < least:
        words = list(said.values())
        kin = [
            each for _, each in ranked if each[2].islower() and _positions_of_kin(each[2], words)
        ]
        if len(kin) != 1:
            return None
        [(text, name, value)] = kin  # "fixed" for "under repair"
    if have_rivals(said.values(), words_of(text)):
        return None
    for _, other_value, _ in _find_valued(list(said.values()), None, kg):
        if other_value not in text and text == value:
            return None  # limestone is not marble
    doubt = f"“{phrase}” was read as “{text}”"
    return Condition(name, value, set(said), [doubt])


@kept_by_graph
def _fetch_offers(kg: Graph, things: Things) -> list[tuple[str, str, str]]:
    """Return what may be said of some things: a text for it, the name of a predicate, and its value."""
    attribute_of = {each.iri: each for each in things.attributes}
    members = f"{{ SELECT DISTINCT ?s WHERE {{ {things.pattern} }} LIMIT {MAX_THINGS} }}"
    query = f"SELECT DISTINCT ?p ?o WHERE {{ {members} ?s ?p ?o }} LIMIT {MAX_OFFERS}"
    rows = kg.select(query).rows
    iris = {value for _, value in rows if isinstance(value, URIRef)}
    labels = kg.names(sorted(iris))
    offers = set()
    for predicate, value in rows:
        if not isinstance(predicate, URIRef) or predicate not in attribute_of:
            continue
        attribute = attribute_of[predicate]
        name = attribute.name
        if attribute.datatypes == {"boolean"}:
            offers.add((name, name, TRUE))
        elif isinstance(value, URIRef):
            label = labels[value]
            offers.add((label, name, label))
        elif not (attribute.is_number or attribute.is_time):
            text = str(value)
            offers.add((text, name, text))
    return sorted(offers)


def _doubt_missing(condition: Condition, things: Things) -> Condition:
    """Return a condition with a doubt if it is about all values, and some things have none."""
    if not any(operator in ("max", "min", "!=") for operator, _ in condition.bounds):
        return condition
    missing = things.number
    for attribute in things.attributes:
        if attribute.name == condition.predicate:
            missing = things.number - attribute.number_of_things
    if missing <= 0:
        return condition
    doubt = f"{missing} of {things.number} have no “{condition.predicate}”"
    return condition._replace(doubts=[*condition.doubts, doubt])


# Values


def texts_in(question: str, tokens: Sequence[Token], words: Words) -> list[Mention]:
    """Return the parts of a question outside of its names that may be texts of the graph, the longest first."""
    texts = []
    for size in range(MAX_TEXT_WORDS, 0, -1):
        for start in range(len(tokens) - size + 1):
            part = words[start : start + size]
            if "" not in part and not NON_CONTENT_WORDS.issuperset(part):
                end = start + size
                text = question[tokens[start].start : tokens[end - 1].end]
                texts.append(Mention(start, end, text))
    return texts


def find_condition(
    question: str, mentions: Mentions, kg: Graph, things: Things | None = None
) -> Condition | None:
    """Return the longest text of the graph that stands in a question outside of its names; else a truth value.

    Of ``things`` it is a value, or the name of another thing that a predicate joins to them. A text
    that several predicates have counts for the one whose name is said, and a truth value only then;
    it is false after "not". None if the words do not tell.
    """
    tokens = tokenize(question)
    words = words_without_names(mentions, tokens)
    texts: dict[str, Mention] = {}
    for mention in texts_in(question, tokens, words):
        texts[mention.text.capitalize()] = mention
        texts[mention.text] = mention
    negations = {place for place, word in enumerate(words) if word == NEGATION}
    truth = FALSE if negations else TRUE
    ways = _find_valued([*texts, truth], things, kg)
    if things is not None and not negations:
        asked = [text for text, mention in texts.items() if mention.text == text]
        ways += _find_joining(asked, things, kg)

    found: dict[tuple[int, int], list[Condition]] = {}
    for name, value, is_incoming in ways:
        text = texts.get(value, Mention(0, 0, value))
        all_words = things is None or not text.size
        said = _positions_saying(name, words, all_words=all_words)
        kin = set() if said else _positions_of_kin(name, words)
        if not (text.size or said or kin) or leads_elsewhere(name, words):
            continue
        said = said or kin
        positions = {place for place in said if words[place] not in NON_CONTENT_WORDS}
        if not text.size:
            positions = positions or said  # which lamps are on
        positions.update(range(text.start, text.end), negations)
        doubts = [f"“{words[place]}” was read as “{name}”" for place in sorted(kin)[:1]]
        if not said and words[text.start - 1] in en.PREPOSITIONS:
            doubts = [f"“{text.text}” was read as “{name}”"]
        condition = Condition(name, value, positions, doubts, is_incoming=is_incoming)
        if negations and text.size:
            condition = condition._replace(value="", bounds=[("!=", value)])
        conditions = found.setdefault((text.size, 1 if kin else 2 * bool(said)), [])
        conditions.append(condition)
    if not found:
        return None
    best, *others = found[max(found)]
    return None if others else best


def _find_valued(texts: Sequence[str], things: Things | None, kg: Graph) -> list[Way]:
    """Return the predicates that have texts as their values, of all things or of some, with these values."""
    matches = find_exact_values(kg, texts)
    names = kg.names([match.predicate for match in matches])
    ways = [(names[match.predicate], str(match.value), False) for match in matches]
    if things is None:
        return ways
    own = {attribute.name for attribute in things.attributes}
    return [way for way in ways if way[0] in own]


def _find_joining(texts: Sequence[str], things: Things, kg: Graph) -> list[Way]:
    """Return the predicates between some things and others that are called like one of some texts.

    Those of a thing that is one of ``things`` are not found: the words do not tell which end it is.
    """
    vertices_of = kg.exact(texts)
    if not vertices_of:
        return []
    listed = values_clause("?o", chain.from_iterable(vertices_of.values()))
    member = re.sub(r"\?s\b", "?o", things.pattern)
    ways = '{ ?s ?p ?o BIND("out" AS ?d) } UNION { ?o ?p ?s BIND("in" AS ?d) }'
    where = f"{things.pattern} {listed} {ways} FILTER NOT EXISTS {{ {member} }}"
    rows = kg.select(f"SELECT DISTINCT ?o ?p ?d WHERE {{ {where} }}").rows
    names = kg.names(sorted({iri for _, iri, _ in rows if isinstance(iri, URIRef)}))
    hidden = kg.vocabulary.excluded_predicates
    found = []
    for (vertex, iri, way), (text, vertices) in product(rows, vertices_of.items()):
        if isinstance(iri, URIRef) and iri not in hidden and vertex in vertices:
            found.append((names[iri], text, str(way) == "in"))
    return found


def _positions_saying(name: str, words: Words, *, all_words: bool) -> set[int]:
    """Return where words stand that say the name of a predicate, or none if ``all_words`` and one is not said.

    Auxiliaries need not be said.
    """
    name_words = set(words_of(name))
    unsaid = set(map(stem, name_words - en.AUXILIARIES))
    stems = frozenset(unsaid)
    positions = set()
    for place, word in enumerate(words):
        if stem(word) in stems:
            positions.add(place)
            unsaid.discard(stem(word))
    if all_words and unsaid:
        return set()
    return positions


def _positions_of_kin(name: str, words: Words) -> set[int]:
    """Return where words stand that may say the name of a predicate, or a value, by their kin."""
    found = set()
    for place, word in enumerate(words):
        if word not in NON_CONTENT_WORDS and are_kin(word, name):
            found.add(place)
    return found


def _find_like(
    said: Sequence[str], attributes: Sequence[Attribute], embeddings: Embeddings
) -> list[Attribute]:
    """Return the attributes that words may say by their kin, or else that are most like them.

    A rival of a word is not like it.
    """
    phrase = " ".join(map(relation_phrase, said))
    kin = []
    likeness: dict[Attribute, float] = {}
    for attribute in attributes:
        if have_rivals(said, words_of(attribute.name)):
            continue
        if any(are_kin(word, attribute.name) for word in said):
            kin.append(attribute)
        likeness[attribute] = max_similarity(phrase, [attribute.name], embeddings)
    if kin:
        return kin
    most = max(likeness.values(), default=0.0)
    least = max(MIN_ATTRIBUTE_SIMILARITY, most) - LEAD
    return [each for each, similarity in likeness.items() if similarity >= least]


# Comparisons and superlatives


class Measure(NamedTuple):
    """A comparison or a superlative in a question; which predicate it is about is not known yet."""

    positions: set[int]
    bounds: Bounds
    degree: Degree | None = None
    unit: str = ""
    is_time: bool = False
    """Whether only times can be meant."""


NUMBERS = {word: str(number) for number, word in enumerate(en.LEXICON["words"]["numbers"].split())}
CURRENCY = re.compile("[£$€]")
_BOUND = r"[£$€]?(\d[\d.,-]*)"
_DEGREE = "|".join(DEGREES)
_THAN = rf"(?P<quantity>{_DEGREE})(?: (?P<adjective>{_DEGREE}))? than"
REVERSED = {"max": "min", "min": "max", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
OF_NEXT_YEAR = {">": ">=", "<=": "<"}
"""For a comparison with a year, that with the year after."""


def find_measure(words: Words) -> Measure | None:
    """Return the first comparison or superlative of a question in lower case; None without one."""
    return _find_comparison(words) or _find_superlative(words)


def _find_comparison(words: Words) -> Measure | None:
    """Return the first comparison with a number: "more than 5 metres", "before 1990"."""
    text = " ".join(NUMBERS.get(word, word or "_") for word in words)
    for phrases, signs in {**en.LEXICON["comparisons"], _THAN: ">"}.items():
        second = "()"
        if phrases == "between":
            second = f" and {_BOUND}"
        found = re.search(rf"\b(?:{phrases}) {_BOUND}{second}", text)
        if found is None:
            continue
        *degree_words, bound, last = found.groups()
        is_time = signs.endswith(" time")
        if is_time and not TIME.fullmatch(bound):
            continue

        operators = signs.removesuffix(" time").split()
        degree = None
        if degree_words:
            degree = _find_degree(*degree_words)
            if not degree.is_much:
                operators = ["<"]
        values = [each.replace(",", "").rstrip(".-") for each in (bound, last or bound)]
        bounds = list(zip(operators, values, strict=False))
        start = text.count(" ", 0, found.start())
        end = text.count(" ", 0, found.end()) + 1
        positions = set(range(start, end))
        unit = UNIT_OF.get("".join(words[end : end + 1]), "")
        if unit:
            positions.add(end)
        else:
            currency = "".join(CURRENCY.findall(found[0]))
            unit = UNIT_OF.get(currency, "")
        if unit in CURRENCIES and (degree is None or degree.nouns == NUMBER):
            degree = PRICE
        return Measure(positions, bounds, degree, unit, is_time)
    return None


def _find_superlative(words: Words) -> Measure | None:
    """Return the first superlative: "the longest", "the most expensive"; or a comparative at the end."""
    for place, (word, following) in enumerate(pairwise([*words, ""])):
        is_last = place == len(words) - 1 or following == "one"
        # which of them is older, who came first
        is_comparative = is_last and word.endswith(("er", "first", "last"))
        is_superlative = word.endswith(SUPERLATIVE_ENDINGS)
        if word not in DEGREES or not (is_comparative or is_superlative):
            continue
        positions = {place}
        adjective = ""
        if word in QUANTITIES and following in DEGREES:
            adjective = following
            positions.add(place + 1)
        degree = _find_degree(word, adjective)
        if word in ("longest", "furthest", "farthest") and not LASTING.isdisjoint(words):
            degree = Degree(AGE, True)  # who has been here the longest
        operator = "max" if degree.is_much else "min"
        return Measure(positions, [(operator, "")], degree)
    return None


def _find_degree(quantity: str, adjective: str) -> Degree:
    """Return the degree of "more", "less expensive" or "longer", which may have no adjective of its own."""
    degree = DEGREES.get(adjective)
    if degree is None:
        return DEGREES[quantity]
    return degree._replace(is_much=degree.is_much == DEGREES[quantity].is_much)


def read_measure(
    measure: Measure, said: Mapping[int, str], known: str, things: Things, embeddings: Embeddings
) -> Condition | None:
    """Return the condition that a measure and the words beside it say of things; None if that is not clear.

    The predicate has all words that are said, or a noun of the adjective. Without either it is the
    only one of the unit or kind. It is in doubt if its name says more than the words and ``known``,
    or is only like them, if its unit is not known, and if things have no value to compare.
    """
    attribute, is_certain = _choose_attribute(measure, said, known, things, embeddings)
    if attribute is None or (attribute.unit and measure.unit not in ("", attribute.unit)):
        return None
    doubts = []
    if not is_certain:
        shown = f"“{' '.join(said.values())}”" if said else "the question"
        doubts.append(f"{shown} was read as “{attribute.name}”")
    if measure.unit and not attribute.unit:
        doubts.append(f"the graph does not say whether “{attribute.name}” is in {measure.unit}s")

    is_age = measure.degree and measure.degree.nouns == AGE and attribute.is_time
    bounds = []
    for measured, value in measure.bounds:
        is_year = YEAR.fullmatch(value) is not None
        operator = measured
        if is_age:  # the oldest began first
            operator = REVERSED[measured]
            if value and not is_year:
                return None
        if attribute.is_time and is_year and operator in OF_NEXT_YEAR:  # a year has many dates
            following = str(int(value) + 1)
            bounds.append((OF_NEXT_YEAR[operator], following))
        else:
            bounds.append((operator, value))
    positions = measure.positions.union(said)
    return Condition(attribute.name, "", positions, doubts, bounds)


def _choose_attribute(
    measure: Measure, said: Mapping[int, str], known: str, things: Things, embeddings: Embeddings
) -> tuple[Attribute | None, bool]:
    """Return the attribute that a measure is about, and whether that is certain; None if several may be."""
    nouns: tuple[str, ...] = ()
    if measure.degree is not None:
        nouns = measure.degree.nouns
    is_superlative = not measure.bounds[0][1]
    may_be_time = all(not value or YEAR.fullmatch(value) for _, value in measure.bounds)
    times = [each for each in things.attributes if each.is_time]
    if is_superlative or not may_be_time:  # dates and years do not compare
        times = [each for each in times if len(each.datatypes) == 1]
    candidates = [each for each in things.attributes if each.is_number]
    if measure.is_time or nouns == DATE:
        candidates = times
    elif said and may_be_time and not measure.unit and nouns in ((), AGE, NUMBER):
        candidates += [each for each in times if each not in candidates]

    if said:
        wanted = stems_of(" ".join(said.values()))
        fitting = [each for each in candidates if wanted <= stems_of(each.name)]
    else:
        wanted = stems_of(" ".join(nouns))
        fitting = [each for each in candidates if not each.stems.isdisjoint(wanted)]
    if nouns in (AGE, DATE) and not (said or fitting):
        candidates = times
        fitting = [each for each in times if not each.stems.isdisjoint(BEGINNINGS)]
        wanted = wanted | BEGINNINGS
    expected = wanted | stems_of(" ".join([known, *nouns]))
    certain = [each for each in fitting if each.stems <= expected]
    fitting = certain or fitting
    if not (fitting or said):
        fitting = [each for each in candidates if MEASURED_BY.get(each.unit) in nouns]
    if not fitting and len(said) <= MAX_LIKE_WORDS:
        fitting = _find_like(list(said.values() or nouns), candidates, embeddings)
    if not fitting and measure.is_time:
        fitting = [each for each in times if each.stems <= ANY_EVENT]
    if not fitting and _may_be_only(measure, nouns, said):
        fitting = [each for each in candidates if measure.unit in ("", each.unit)]
    if len(fitting) != 1:
        return None, False
    is_vague = not said and "size" in nouns
    return fitting[0], bool(certain) and not is_vague


def _may_be_only(measure: Measure, nouns: tuple[str, ...], said: Mapping[int, str]) -> bool:
    """Return whether a measure is about the only attribute of its unit or kind, though no word says it."""
    if measure.unit and len(said) < 2 and nouns in ((), NUMBER, PRICE.nouns):
        return True
    return not said and nouns in ((), DATE, AGE, NUMBER)
