"""What a question says of the things that it asks for: a value, a comparison, or the most of all.

A condition is about one predicate that these things have in the graph. It tells which words of the
question say it, and what is doubtful about it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS, XSD

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.kg.queries import find_exact_values, parse_count
from kgwb.kg.sparql import values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.grammar import Comparison, ParsedQuestion
from kgwb.llm.rules.predicates import max_similarity
from kgwb.llm.rules.words import (
    Mention,
    Mentions,
    Token,
    Words,
    are_kin,
    are_rivals,
    kept_by_graph,
    relation_phrase,
    stem,
    tokenize,
    words_without_names,
)
from kgwb.terms import local_part

TRUE, FALSE = "true", "false"
"""The texts of truth values."""
TARGET = "?answer"
"""The unknown that is asked for."""
Bounds = Sequence[tuple[str, str]]
"""Operators of comparisons, each with a number, a year, a date or a text; "max" and "min" have ""."""
MAX_TEXT_WORDS = 3
"""How many words may be a text of the graph that has no capital."""
MAX_THINGS = 10_000
"""How many of the things that are asked for are looked at."""
MIN_ATTRIBUTE_SIMILARITY = 0.5
"""Similarity from which words may say a predicate, in doubt."""
LEAD = 0.05
"""How much more like them that predicate must be than the next one."""
NUMBER_DATATYPES = frozenset(
    "integer decimal double float int long short byte nonNegativeInteger positiveInteger unsignedInt".split()
)
TIME_DATATYPES = frozenset(("date", "dateTime", "gYear", "gYearMonth"))
NEGATION = "not"
EMPTY_WORDS = en.FUNCTION_WORDS | en.LIGHT_VERBS | en.NEUTRAL_WORDS | {"", "'s"}
"""Words that need nothing in the query to stand for them."""
NON_CONTENT_WORDS = en.NON_NAME_WORDS | {""}
UNIT_OF = {word: unit for unit, words in en.LEXICON["units"].items() for word in words.split()}
"""For a word or sign of a unit, the unit."""
MEASURING_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"amount", "count", "unit", "value"}
"""Words of names that say no more of what is measured, beside units."""
AGE, DATE = ("age",), ("date",)
"""The nouns of "old" and of "late", which may be said of a time."""
YEAR = re.compile(r"\d{4}")
BEGINNINGS = frozenset(
    map(stem, "birth build complete construct create establish found inception launch open".split())
)
"""Stems of words for times from which an age is counted."""


class Degree(NamedTuple):
    """What an adjective measures."""

    nouns: tuple[str, ...]
    is_much: bool
    """Whether it stands for large values: "long", and not "short"."""


DEGREES: dict[str, Degree] = {}
"""The degree of an adjective, and of its forms."""
for _nouns, _adjectives in en.LEXICON["degrees"].items():
    for _side, _is_much in zip(_adjectives.split("/"), (True, False), strict=False):
        for _adjective in _side.split():
            _base = re.sub(r"y$", "i", _adjective.removesuffix("e"))
            _forms = [_adjective, *en.LEXICON["comparatives"].get(_adjective, "").split()]
            for _start in (_base, _base + _base[-1]):
                _forms += [f"{_start}er", f"{_start}est"]
            DEGREES |= dict.fromkeys(_forms, Degree(tuple(_nouns.split()), _is_much))
QUANTITIES = frozenset(("most", "least", "fewest"))


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
        """Whether it has times that can be compared. A year may be a number."""
        words = normalize(self.name).split()
        is_year = self.is_number and "year" in words
        return is_year or (len(self.datatypes) == 1 and TIME_DATATYPES.issuperset(self.datatypes))

    @property
    def unit(self) -> str:
        """The unit that its name ends in; "" if it names none."""
        return UNIT_OF.get(normalize(self.name).split()[-1], "")

    @property
    def stems(self) -> set[str]:
        """The stems of the words that say what it is."""
        words = normalize(self.name).split()
        content = [word for word in words if word not in MEASURING_WORDS and word not in UNIT_OF]
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
    kinds: dict[URIRef, dict[str, int]] = {}
    for predicate, datatype, count in kg.select(f"{grouped} GROUP BY ?p ?kind").rows:
        if isinstance(predicate, URIRef) and predicate not in kg.vocabulary.excluded_predicates:
            name = local_part(str(datatype or XSD.string))
            kinds.setdefault(predicate, {})[name] = parse_count(count)
    names = kg.names(sorted(kinds))
    attributes = []
    for iri, name in names.items():
        attributes.append(Attribute(iri, name, frozenset(kinds[iri]), sum(kinds[iri].values())))
    [[number]] = kg.select(f"SELECT (COUNT(?s) AS ?n) WHERE {{ {things} }}").rows
    return Things(pattern, parse_count(number), tuple(attributes))


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
        facts.append(fact[::-1] if condition.is_incoming else fact)
        for operator, bound in condition.bounds:
            comparisons.append(Comparison(value, operator, bound))
    return reading._replace(facts=tuple(facts), comparisons=tuple(comparisons))


def find_conditions(
    question: str, taken: set[int], known: str, things: Things, kg: Graph, embeddings: Embeddings
) -> list[Condition] | None:
    """Return the conditions on some things that a question says outside of positions that are taken.

    None if a content word is left. ``known`` are words that a predicate may repeat.
    """
    tokens = tokenize(question)
    words = [token.lowercase for token in tokens]
    for place in taken:
        words[place] = ""
    measure = find_measure(words)
    if measure:
        taken = taken | measure.positions
    conditions: list[Condition] = []
    iris = [each.iri for each in things.attributes]
    while True:
        mentions = [Mention(place, place + 1, "") for place in sorted(taken)]
        condition = find_condition(question, mentions, iris, kg)
        condition = condition or find_thing(question, mentions, things, kg)
        if condition is None:
            break
        conditions.append(condition)
        taken = taken | condition.positions
    said = {}
    for place, word in enumerate(words):
        if place not in taken and (word == NEGATION or word not in EMPTY_WORDS):
            said[place] = word
    if measure:
        condition = read_measure(measure, said, known, things, embeddings)
    elif said:
        condition = find_likely_truth(said, things, embeddings)
    else:
        return conditions
    return None if condition is None else [*conditions, condition]


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
    question: str, mentions: Mentions, predicates: Collection[URIRef], kg: Graph
) -> Condition | None:
    """Return the longest text of the graph that stands in a question outside of its names; else a truth value.

    The value is of one of ``predicates``, or of any if there are none. A text that several have
    counts for the one whose name is said, and a truth value only then; it is false after "not".
    None if the words do not tell.
    """
    tokens = tokenize(question)
    words = words_without_names(mentions, tokens)
    texts: dict[str, Mention] = {}
    for mention in texts_in(question, tokens, words):
        texts |= {mention.text: mention, mention.text.capitalize(): mention}
    matches = find_exact_values(kg, [*texts, TRUE, FALSE])
    names = kg.names([match.predicate for match in matches])
    negations = {place for place, word in enumerate(words) if word == NEGATION}
    found: dict[tuple[int, bool], list[Condition]] = {}
    for match in matches:
        name = names[match.predicate]
        said = _positions_saying(name, words)
        value = str(match.value)
        text = texts.get(value, Mention(0, 0, value))
        is_of_other = predicates and match.predicate not in predicates
        is_denied = value == (TRUE if negations else FALSE)
        if is_of_other or not (text.size or said) or (is_denied and not text.size):
            continue
        positions = {place for place in said if words[place] not in NON_CONTENT_WORDS}
        positions.update(range(text.start, text.end), negations)
        doubts = []
        if not said and words[text.start - 1] in en.PREPOSITIONS:
            doubts = [f"“{text.text}” was read as “{name}”"]
        condition = Condition(name, value, positions, doubts)
        if negations and text.size:
            condition = condition._replace(value="", bounds=[("!=", value)])
        found.setdefault((text.size, bool(said)), []).append(condition)
    best, *others = found[max(found)] if found else [None]
    return None if others else best


def _positions_saying(name: str, words: Words) -> set[int]:
    """Return where the words stand that say the name of a predicate; none if one of its words is not said.

    Auxiliaries need not be said.
    """
    stems = set(map(stem, set(normalize(name).split()) - en.AUXILIARIES))
    positions = {place for place, word in enumerate(words) if stem(word) in stems}
    return positions if stems.issubset(stem(words[place]) for place in positions) else set()


def find_thing(question: str, mentions: Mentions, things: Things, kg: Graph) -> Condition | None:
    """Return that some things lead to another one by the only predicate that does, the longest name first."""
    tokens = tokenize(question)
    words = words_without_names(mentions, tokens)
    named = texts_in(question, tokens, words)
    vertices_of = kg.exact([mention.text for mention in named])
    for start, end, text in named:
        found = _find_joining(vertices_of.get(text, ()), things, kg)
        if len(found) != 1 or NEGATION in words:
            continue
        [(name, is_incoming)] = found
        stems = _stems(name)
        said = {
            place
            for place, word in enumerate(words)
            if stem(word) in stems and word not in NON_CONTENT_WORDS
        }
        doubts = []
        if not said and words[start - 1] in en.PREPOSITIONS:
            doubts = [f"“{text}” was read as “{name}”"]
        positions = said.union(range(start, end))
        return Condition(name, text, positions, doubts, is_incoming=is_incoming)
    return None


def _find_joining(vertices: Collection[URIRef], things: Things, kg: Graph) -> set[tuple[str, bool]]:
    """Return the names of the predicates between some things and others, and whether these are their subjects.

    Those of a thing that is one of them are not found: the words do not tell which end it is.
    """
    listed = values_clause("?o", vertices)
    member = re.sub(r"\?s\b", "?o", things.pattern)
    if not vertices or kg.ask(f"ASK {{ {listed} {member} }}"):
        return set()
    ways = '{ ?s ?p ?o BIND("out" AS ?d) } UNION { ?o ?p ?s BIND("in" AS ?d) }'
    query = f"SELECT DISTINCT ?p ?d WHERE {{ {things.pattern} {listed} {ways} }}"
    rows = kg.select(query).rows
    hidden = kg.vocabulary.excluded_predicates
    names = kg.names([iri for iri, _ in rows if isinstance(iri, URIRef) and iri not in hidden])
    return {(names[iri], str(way) == "in") for iri, way in rows if iri in names}


def find_likely_truth(
    said: Mapping[int, str], things: Things, embeddings: Embeddings
) -> Condition | None:
    """Return the truth value that words are most like, in doubt; None if they are like none or several.

    The words have their positions.
    """
    truths = [each for each in things.attributes if each.datatypes == {"boolean"}]
    attribute = _find_most_like(list(said.values()), truths, embeddings)
    if attribute is None or NEGATION in said.values():
        return None
    doubt = f"“{' '.join(said.values())}” was read as “{attribute.name}”"
    return Condition(attribute.name, TRUE, set(said), [doubt])


def _find_most_like(
    said: Collection[str], attributes: Sequence[Attribute], embeddings: Embeddings
) -> Attribute | None:
    """Return the attribute that words may say by their kin, or else that is most like them; None if none leads.

    A rival of a word is not like it.
    """
    likeness: list[tuple[float, int]] = []
    kin = []
    text = " ".join(map(relation_phrase, said))
    for place, attribute in enumerate(attributes):
        name = normalize(attribute.name)
        if any(are_rivals(*pair) for pair in product(said, name.split())):
            continue
        if any(are_kin(word, name) for word in said):
            kin.append(attribute)
        likeness.append((max_similarity(text, [attribute.name], embeddings), place))
    if len(kin) == 1:
        return kin[0]
    (best, place), (second, _), *_ = [*sorted(likeness, reverse=True), (0.0, 0), (0.0, 0)]
    is_leading = best >= max(MIN_ATTRIBUTE_SIMILARITY, second + LEAD)
    return attributes[place] if is_leading else None


# Comparisons and superlatives


class Measure(NamedTuple):
    """A comparison or a superlative in a question; which predicate it is about is not known yet."""

    positions: set[int]
    bounds: Bounds
    degree: Degree | None = None
    unit: str = ""
    is_time: bool = False
    """Whether only times can be meant."""


_DEGREE = "|".join(DEGREES)
_BOUND = r"[£$€]?(?P<bound>\d[\d.,-]*)"
_COMPARISONS = (
    (rf"\b(?:no|not) (?:more|later) than {_BOUND}", ("<=",)),
    (rf"\b(?:no|not) (?:less|fewer|earlier) than {_BOUND}", (">=",)),
    (rf"\b(?P<more>{_DEGREE})(?: (?P<adjective>{_DEGREE}))? than {_BOUND}", (">",)),
    (rf"\b(?:at least|a minimum of) {_BOUND}", (">=",)),
    (rf"\b(?:at most|up to|a maximum of) {_BOUND}", ("<=",)),
    (rf"\b(?:over|above|exceeding) {_BOUND}", (">",)),
    (rf"\b(?:under|below) {_BOUND}", ("<",)),
    (rf"\bbetween {_BOUND} and [£$€]?(?P<second>\d[\d.,-]*)", (">=", "<=")),
    (rf"\b(?P<time>after) {_BOUND}", (">",)),
    (rf"\b(?P<time>before|prior to) {_BOUND}", ("<",)),
    (rf"\b(?P<time>since) {_BOUND}", (">=",)),
    (rf"\b(?P<time>until) {_BOUND}", ("<=",)),
    (r"\b(?P<time>in|during) (?P<bound>\d{4})(?![\w-])", (">=", "<=")),
)
"""How questions compare, with the operators for the bounds; some are of times alone."""
REVERSED = {"max": "min", "min": "max", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
SUPERLATIVE_ENDINGS = ("est", "worst", "most", "least")


def find_measure(words: Words) -> Measure | None:
    """Return the first comparison or superlative of a question in lower case; None without one."""
    text = " ".join(word or "_" for word in words)
    for pattern, operators in _COMPARISONS:
        found = re.search(pattern, text)
        if found is None:
            continue
        parts = found.groupdict()
        degree = None
        is_less = False
        if parts.get("more"):
            degree = _find_degree(parts["more"], parts["adjective"])
            is_less = not degree.is_much
        start = text.count(" ", 0, found.start())
        end = text.count(" ", 0, found.end()) + 1
        following = [*words[end : end + 1], found[0][found.start("bound") - found.start() - 1]]
        units = [UNIT_OF[word] for word in following if word in UNIT_OF]
        end += following[0] in UNIT_OF
        bounds = [parts["bound"], parts.get("second") or parts["bound"]]
        values = [bound.replace(",", "").rstrip(".-") for bound in bounds]
        is_time = bool(parts.get("time")) or (degree is not None and degree.nouns == ("date",))
        pairs = list(zip("<" if is_less else operators, values, strict=False))
        return Measure(set(range(start, end)), pairs, degree, "".join(units[:1]), is_time)
    for place, (word, following) in enumerate(pairwise([*words, ""])):
        degree = _find_degree(word, following) if word in QUANTITIES else DEGREES.get(word)
        if degree is not None and word.endswith(SUPERLATIVE_ENDINGS):
            end = place + 2 if word in QUANTITIES and following in DEGREES else place + 1
            operator = "max" if degree.is_much else "min"
            return Measure(set(range(place, end)), [(operator, "")], degree)
    return None


def _find_degree(quantity: str, adjective: str | None) -> Degree:
    """Return the degree of "more", "less expensive" or "longer", of which the adjective may be None."""
    degree = DEGREES.get(adjective or "")
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
    shown = " ".join(said.values()) or "the question"
    doubts = [] if is_certain else [f"“{shown}” was read as “{attribute.name}”"]
    if measure.unit and not attribute.unit:
        doubts.append(f"the graph does not say whether “{attribute.name}” is in {measure.unit}s")
    is_age = measure.degree and measure.degree.nouns == AGE and attribute.is_time
    bounds = []
    for measured, value in measure.bounds:
        operator = REVERSED[measured] if is_age else measured  # the oldest began first
        missing = things.number - attribute.number_of_things
        if not value and missing > 0:
            doubts.append(f"{missing} of {things.number} have no “{attribute.name}”")
        is_year = YEAR.fullmatch(value) is not None
        if is_age and value and not is_year:
            return None
        if attribute.is_time and is_year and operator in (">", "<="):  # a year has many dates
            bounds.append((">=" if operator == ">" else "<", str(int(value) + 1)))
        else:
            bounds.append((operator, value))
    positions = measure.positions.union(said)
    return Condition(attribute.name, "", positions, doubts, bounds)


def _choose_attribute(
    measure: Measure, said: Mapping[int, str], known: str, things: Things, embeddings: Embeddings
) -> tuple[Attribute | None, bool]:
    """Return the attribute that a measure is about, and whether that is certain; None if several may be."""
    nouns = measure.degree.nouns if measure.degree else ()
    times = [each for each in things.attributes if each.is_time]
    candidates = [each for each in things.attributes if each.is_number]
    is_of_any = said and all(not value or YEAR.fullmatch(value) for _, value in measure.bounds)
    if measure.is_time or nouns == DATE:
        candidates = times
    elif is_of_any and not measure.unit:
        candidates = list(dict.fromkeys([*candidates, *times]))
    wanted = set(map(stem, said.values())) or set(map(stem, nouns))
    if said:
        fitting = [each for each in candidates if wanted <= _stems(each.name)]
    else:
        fitting = [each for each in candidates if not each.stems.isdisjoint(wanted)]
    if nouns == AGE and not said and not fitting:
        candidates = times
        fitting = [each for each in times if not each.stems.isdisjoint(BEGINNINGS)]
        wanted = set(BEGINNINGS)
    wanted |= _stems(" ".join([known, *nouns]))
    certain = [each for each in fitting if each.stems <= wanted]
    fitting = certain or fitting
    if not fitting:
        most_like = _find_most_like(list(said.values()) or nouns, candidates, embeddings)
        fitting = [most_like] if most_like else []
    is_open = not said and nouns in ((), AGE, DATE)
    if not fitting and (measure.unit or is_open):
        fitting = [each for each in candidates if measure.unit in ("", each.unit)]
    if len(fitting) != 1:
        return None, False
    is_vague = not said and "size" in nouns
    return fitting[0], bool(certain) and not is_vague


def _stems(name: str) -> set[str]:
    """Return the stems of the words of a name."""
    return set(map(stem, normalize(name).split()))
