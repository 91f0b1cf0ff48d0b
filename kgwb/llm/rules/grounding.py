"""Reading a question about one name by the predicates that the name has in the graph.

It is used where the relations that the grammar reads do not exist in the graph. The words of the
question are compared with the predicates of the name in both directions, and with those of its
values that have no name of their own. A question that asks for something else stays unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rdflib import URIRef

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.text import UNIT_WORDS, names_unit, normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.grammar import (
    Fact,
    ParsedQuestion,
    expected_value_type,
    parse_tokens,
    remove_filler_phrases,
)
from kgwb.llm.rules.mentions import Mention, find_mentions
from kgwb.llm.rules.predicates import (
    VertexPredicate,
    Vertices,
    fetch_predicates,
    has_neighbour_of_two_types,
    names_of_classes,
    predicates_within_two_steps,
)
from kgwb.llm.rules.similarity import (
    MIN_RELATION_SIMILARITY,
    NAME_SEPARATOR,
    find_similar_predicates,
    max_similarity,
    write_name_list,
)
from kgwb.llm.rules.words import (
    RELATION_PHRASES,
    Token,
    Words,
    have_same_relation,
    relation_phrase,
    singularize,
    stem,
    tokenize,
)

Predicates = Sequence[VertexPredicate]
MIN_PREDICATE_SIMILARITY = 0.45
"""Similarity from which words of the question ask for a predicate."""
MIN_CLASS_SIMILARITY = 0.5
"""Similarity from which a word of the question names a class."""
CLASS_RELATION = "type"
"""The relation of a fact that states the class of what is asked for."""
MAX_CLASS_WORDS = 3
"""How many words the name of an asked class may have."""
MAX_PARTIAL_MATCHES = 3
"""How many labels are looked at that may begin or end with a name."""
NON_CONTENT_WORDS = en.NON_NAME_WORDS | {""}
_WORDS_OF_PHRASES = " ".join(RELATION_PHRASES.values()).split()
RELATION_WORDS = en.TIME_WORDS.union(en.PLACE_WORDS, _WORDS_OF_PHRASES, ["by"])
"""Words of known relations. Relations of these words alone are not looked up in the graph."""
WHO_WORDS = frozenset(("who", "whom", "who's"))
WORDS_BEFORE_ASKED_NOUN = ("what", "which", "many")
SKIPPED_WORDS = en.BE_FORMS | en.DETERMINERS | en.ACTIVE_AUXILIARIES
"""Words that may stand between these and the noun: "what is the"."""


def ground_question(question: str, kg: Graph | None, embeddings: Embeddings) -> ParsedQuestion:
    """Read a question with the grammar, and correct the reading by the predicates of its name.

    If the graph has no predicates like the relations that are read, the reading becomes one triple:
    of the name, and its predicate most like the words of the question. ``_PredicateReader.read`` has
    the details. The grammar's reading is returned as it is without a graph, for a yes-or-no
    question, and if not exactly one name is found in the graph.

    Raises ModelError if the grammar cannot read the question.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_mentions(question, kg)
    reading = parse_tokens(tokens, mentions, kg)
    if kg is None or reading.kind == "boolean":
        return reading
    vertices = find_vertices(mentions, kg)
    mention = _only_mention(vertices)
    if mention is None:
        return reading
    words = _words_without_name(tokens, mention)
    last_question = _last_question(tokens, words)
    reader = _PredicateReader(reading, mention.text, vertices[mention], kg, embeddings)
    return reader.read(words, last_question)


def find_vertices(mentions: Sequence[Mention], kg: Graph) -> dict[Mention, Vertices]:
    """Return the vertices of each name that the graph has, by name.

    They are those with the name as their label, else those with a label that begins or ends with
    it. Names that are not found are left out.
    """
    if not mentions:
        return {}
    names = [mention.text for mention in mentions]
    exact = kg.exact(names)
    vertices_of: dict[Mention, Vertices] = {}
    for mention in mentions:
        name = mention.text
        vertices = exact.get(name) or _find_partial_matches(name, kg)
        if vertices:
            vertices_of[mention] = vertices
    return vertices_of


def _find_partial_matches(name: str, kg: Graph) -> list[URIRef]:
    """Return the vertices whose labels begin or end with the words of a name.

    They are among the first MAX_PARTIAL_MATCHES hits of a label search. Letter case and punctuation
    do not count. The order is that of the hits.
    """
    words = f" {normalize(name)} "
    vertices = []
    found = kg.search(name, MAX_PARTIAL_MATCHES)
    for hit in found.hits:
        label = f" {normalize(hit.label)} "
        if label.startswith(words) or label.endswith(words):
            vertices.append(hit.iri)
    return vertices


def _only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """Return the only name with a capital letter; None if there are several.

    Without capitals it is the last name; None if there is no name at all.
    """
    all_mentions = list(mentions)
    capitalized = []
    for mention in all_mentions:
        if mention.text != mention.text.casefold():
            capitalized.append(mention)
    found = capitalized or all_mentions[-1:]
    if len(found) != 1:
        return None
    return found[0]


def _words_without_name(tokens: Sequence[Token], mention: Mention) -> list[str]:
    """Return all words of a question in lower case, with "" in the place of those of a name.

    A single word between a determiner and the name belongs to it: "the contract X".
    """
    words = [token.lowercase for token in tokens]
    start = mention.start
    if start > 1 and words[start - 2] in en.DETERMINERS:
        start -= 1
    for position in range(start, mention.end):
        words[position] = ""
    return words


def _last_question(tokens: Sequence[Token], words: list[str]) -> list[str]:
    """Return the words of the last sentence with a question word; [] if there is none.

    Of words that are part of the name, "" is returned. The first token must begin a sentence.
    """
    sentences: list[list[str]] = []
    for token, word in zip(tokens, words, strict=True):
        if token.begins_sentence:
            sentences.append([])
        sentences[-1].append(word)
    for sentence in reversed(sentences):
        if not en.WH_WORDS.isdisjoint(sentence):
            return sentence
    return []


class _PredicateReader:
    """Reads a question about one name by the predicates that the name has in the graph."""

    def __init__(
        self,
        reading: ParsedQuestion,
        name: str,
        vertices: Vertices,
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        """Keep the grammar's reading, the name, and the vertices that have the name."""
        self.reading = reading
        self.name = name
        self.vertices = vertices
        self.kg = kg
        self.embeddings = embeddings

    def read(self, words: Words, last_question: Words) -> ParsedQuestion:
        """Return a reading of the question that the graph can answer, else the grammar's reading.

        The grammar's reading is kept if the graph has predicates like its relations. Otherwise the
        predicate of the name that is most like the words becomes its only relation; if no predicate
        is like them, the grammar's reading is kept as well. A "how many" or "who" question that the
        predicates cannot answer gets a relation that no predicate is like, and so has no answer.
        Predicates that have only numbers are no answer to "who".

        ``words`` are those of the question with "" for the name, ``last_question`` those of its
        last sentence with a question word, which are tried first. A fact with the class that is
        asked for is added where ``_with_asked_class`` says so.
        """
        predicates = fetch_predicates(self.kg, self.vertices)
        self.reading = self._without_class_relation(words)
        reading = self._read_by(predicates, words, last_question)
        reading = self._with_asked_parts(reading, words, predicates)
        return self._with_asked_class(reading, words, predicates)

    def _read_by(
        self, predicates: Predicates, words: Words, last_question: Words
    ) -> ParsedQuestion:
        """Return the reading of ``read``, without the class that is asked for."""
        if len(self.reading.facts) > 1:
            compound = _find_compound(words, predicates, self.embeddings)
            if compound is not None:
                return self._reading_of_predicate(compound)

        numeric: list[VertexPredicate] = []
        if self._asks_for_agent(words):
            numeric = [predicate for predicate in predicates if predicate.has_only_numbers]
            predicates = [predicate for predicate in predicates if predicate not in numeric]

        relation = self._relation_at_name()
        similar = self._predicates_like(relation, predicates)
        similar_numeric = self._predicates_like(relation, numeric)
        noun = _counted_noun(words, relation)
        is_only_numeric = similar_numeric and not similar
        if is_only_numeric or self._counts_something_else(noun, similar):
            return self._with_facts([(self.name, noun or "who", "?answer")])
        if similar and not similar_numeric and self._has_all_relations(similar):
            return self.reading

        predicate = None
        if last_question:
            predicate = self._best_predicate(last_question, predicates)
        if predicate is None:
            predicate = self._best_predicate(words, predicates)
        if predicate is None and "where" in words:
            predicate = self._place_predicate(words, predicates)
        if predicate is None:
            return self.reading
        return self._reading_of_predicate(predicate)

    def _best_predicate(self, words: Words, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that these words of the question ask for; None if none fits."""
        return QuestionWords(words, self.embeddings).best_predicate(predicates)

    def _place_predicate(self, words: Words, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that says where a thing is, for a question with "where" alone.

        Its name has a form of "located", else it is the only one that consists of words for places
        ("canton"). Returns None if the question has other content words, or if there is none.
        """
        if QuestionWords(words, self.embeddings).content_positions:
            return None
        of_places = []
        for predicate in predicates:
            if predicate.is_incoming:
                continue
            name_words = normalize(predicate.name).split()
            if stem("located") in map(stem, name_words):
                return predicate
            if en.PLACE_WORDS.union(en.PREPOSITIONS).issuperset(name_words):
                of_places.append(predicate)
        if len(of_places) == 1:
            return of_places[0]
        return None

    def _asks_for_agent(self, words: Words) -> bool:
        """Return whether one relation is read, and asked with "who", not for a time or place."""
        if WHO_WORDS.isdisjoint(words) or len(self.reading.facts) != 1:
            return False
        value_type, _ = expected_value_type(words)
        return not value_type

    def _relation_at_name(self) -> str:
        """Return the relation of the first fact about the name, "" if there is no fact about it."""
        for subject, relation, object_ in self.reading.facts:
            if self.name in (subject, object_):
                return relation
        return ""

    def _predicates_like(self, relation: str, predicates: Predicates) -> list[VertexPredicate]:
        """Return the predicates that are like a relation, without regard to a " by" at its end.

        Without a relation there are none.
        """
        if not relation:
            return []
        relation = relation.removesuffix(" by")
        names = [predicate.name for predicate in predicates]
        similar = find_similar_predicates(relation, names, self.embeddings)
        return [predicate for predicate in predicates if predicate.name in similar]

    def _counts_something_else(self, noun: str, predicates: Predicates) -> bool:
        """Return whether "how many" asks for things that these predicates do not lead to.

        ``noun`` is what is counted. It is so if one relation is read, some of the predicates have
        value types, and no value type is like the noun. False for a noun of NON_CONTENT_WORDS,
        which includes "".
        """
        if noun in NON_CONTENT_WORDS or len(self.reading.facts) != 1:
            return False
        typed = [predicate for predicate in predicates if predicate.value_types]
        for predicate in typed:
            if _is_type_of(predicate, noun, self.embeddings):
                return False
        return bool(typed)

    def _with_asked_class(
        self, reading: ParsedQuestion, words: Words, predicates: Predicates
    ) -> ParsedQuestion:
        """Add the class of the answers that the question names to a reading of one fact.

        In "which stations did X design", the class stands after the question word. A fact that
        states it is added if the predicate also leads to things of other classes or without a
        class. The reading is returned as it is if it has several facts, if the predicate is named
        like the class, or if things near the name have two types: a city may be typed as a big city
        alone.
        """
        if len(reading.facts) != 1:
            return reading
        [(_, relation, _)] = reading.facts
        types: set[str] = set()
        names = []
        has_untyped = False
        for predicate in self._predicates_like(relation, predicates):
            types.update(map(normalize, predicate.value_types))
            names.append(normalize(predicate.name))
            has_untyped |= predicate.has_untyped_values
        if not types:
            return reading
        for phrase in phrases_after_question_word(words):
            has_other_values = has_untyped or types != {phrase}
            if phrase in names or (phrase in types and not has_other_values):
                return reading
            is_class_name = phrase in types or phrase in names_of_classes(self.kg)
            if is_class_name and not has_neighbour_of_two_types(self.kg, self.vertices):
                fact = (reading.target, CLASS_RELATION, phrase)
                return reading._replace(facts=(*reading.facts, fact))
        return reading

    def _without_class_relation(self, words: Words) -> ParsedQuestion:
        """Return the grammar's reading, without its second relation if that is the name of a class.

        In "which maps are kept in X", "maps" is not a relation of what is kept in X if the graph
        has a class of that name, and no predicate of that name within two triples of X. The
        relation must be the second of two, stand after the question word, and lead to what is asked
        for. Otherwise the reading stays.
        """
        reading = self.reading
        if len(reading.facts) != 2:
            return reading
        *others, (subject, relation, target) = reading.facts
        if not subject.startswith("?") or target != reading.target:
            return reading
        noun = _normal_noun(relation)
        if noun not in phrases_after_question_word(words) or noun not in names_of_classes(self.kg):
            return reading
        for name in predicates_within_two_steps(self.kg, self.vertices):
            name_words = normalize(name).split()
            if noun in map(singularize, name_words):
                return reading
        return reading._replace(facts=tuple(others), target=subject)

    def _has_all_relations(self, similar: Predicates) -> bool:
        """Return whether the graph has predicates like all relations of the grammar's reading.

        Relations of RELATION_WORDS alone are not looked up. ``similar`` are the predicates like
        the relation at the name. If several relations are read, all predicates within two triples
        of the name count too.
        """
        unusual = []
        for _, relation, _ in self.reading.facts:
            if not RELATION_WORDS.issuperset(relation.split()):
                unusual.append(relation)
        names = [predicate.name for predicate in similar]
        if unusual and len(self.reading.facts) > 1:
            names.extend(predicates_within_two_steps(self.kg, self.vertices))
        for relation in unusual:
            similarity = max_similarity(relation, names, self.embeddings)
            if similarity < MIN_PREDICATE_SIMILARITY:
                return False
        return True

    def _with_facts(self, facts: Sequence[Fact]) -> ParsedQuestion:
        """Return the reading with other facts, which ask for "?answer"."""
        return self.reading._replace(facts=tuple(facts), target="?answer")

    def _reading_of_predicate(self, predicate: VertexPredicate) -> ParsedQuestion:
        """Return a reading that asks for the other end of a predicate of the name.

        If that is a blank node, a second fact asks for its values by all its predicates.
        """
        if predicate.is_incoming:
            return self._with_facts([("?answer", predicate.name, self.name)])
        if not predicate.inner_predicates:
            return self._with_facts([(self.name, predicate.name, "?answer")])
        return self._reading_of_parts(predicate, predicate.inner_predicates)

    def _reading_of_parts(
        self, predicate: VertexPredicate, inner_predicates: Sequence[str]
    ) -> ParsedQuestion:
        """Return a reading that asks for values of the blank nodes that a predicate leads to."""
        first = (self.name, predicate.name, "?x1")
        second = ("?x1", write_name_list(inner_predicates), "?answer")
        return self._with_facts([first, second])

    def _with_asked_parts(
        self, reading: ParsedQuestion, words: Words, predicates: Predicates
    ) -> ParsedQuestion:
        """Return a reading that asks for those parts of a value without a name that are asked for.

        A reading that asks for another value stays as it is, and so does one for the whole value.
        """
        if not reading.facts:
            return reading
        (_, relation, _), *further = reading.facts
        if any(NAME_SEPARATOR not in other for _, other, _ in further):
            return reading
        similar = self._predicates_like(relation, predicates)
        if len(similar) != 1 or similar[0].is_incoming:
            return reading
        parts = _find_asked_parts(similar[0], words, self.embeddings)
        if not parts:
            return reading
        return self._reading_of_parts(similar[0], parts)


def _find_compound(
    words: Words, predicates: Predicates, embeddings: Embeddings
) -> VertexPredicate | None:
    """Return the only predicate whose name has all content words of a question, at least two.

    "Since when has X been a member" asks for "member since", and not for the date of a member.
    """
    question = QuestionWords(words, embeddings)
    asked = {stem(words[position]) for position in question.content_positions}
    if len(asked) < 2:
        return None
    found = []
    for predicate in predicates:
        name_words = normalize(predicate.name).split()
        if asked <= set(map(stem, name_words)):
            found.append(predicate)
    if len(found) != 1:
        return None
    return found[0]


def _find_asked_parts(
    predicate: VertexPredicate, words: Words, embeddings: Embeddings
) -> list[str]:
    """Return the predicates of a blank node that a question asks for; [] if it asks for all.

    They are those that a word of the question names, or another word for a place. If none is named,
    they are all but the units: a length is asked for without its unit.
    """
    inner = predicate.inner_predicates
    named: set[str] = set()
    for word in words:
        named_by_word = [name for name in inner if _names_part(word, name)]
        if word in en.PLACE_WORDS and not named_by_word:
            named_by_word = _find_most_similar(word, inner, embeddings)
        named.update(named_by_word)
    parts = [name for name in inner if name in named]
    without_units = [name for name in inner if not names_unit(name)]
    if not parts and len(without_units) < len(inner):
        return without_units
    if UNIT_WORDS.issuperset(parts):
        return []
    return parts


def _find_most_similar(word: str, names: Sequence[str], embeddings: Embeddings) -> list[str]:
    """Return the first of the names most like a word; [] below MIN_PREDICATE_SIMILARITY."""
    best_similarity = max_similarity(word, names, embeddings)
    for name in names:
        similarity = max_similarity(word, [name], embeddings)
        if similarity == best_similarity >= MIN_PREDICATE_SIMILARITY:
            return [name]
    return []


def _names_part(word: str, name: str) -> bool:
    """Return whether a word of a question is a form of a word in a predicate's name."""
    if word in NON_CONTENT_WORDS:
        return False
    return stem(word) in map(stem, normalize(name).split())


def _is_type_of(predicate: VertexPredicate, word: str, embeddings: Embeddings) -> bool:
    """Return whether a word is like the name of a class or datatype that a predicate leads to."""
    value_types = list(predicate.value_types)
    similarity = max_similarity(relation_phrase(word), value_types, embeddings)
    return similarity >= MIN_CLASS_SIMILARITY


def phrases_after_question_word(words: Words) -> list[str]:
    """Return the phrases of up to MAX_CLASS_WORDS words after "which", "what" or "many".

    They are in normal form with the last word in the singular, the longest first. The first such
    word of the question counts. Returns nothing without one.
    """
    for position, word in enumerate(words, start=1):
        if word in WORDS_BEFORE_ASKED_NOUN:
            following = words[position : position + MAX_CLASS_WORDS]
            phrases = []
            for length in range(len(following), 0, -1):
                phrase = _normal_noun(" ".join(following[:length]))
                if phrase:
                    phrases.append(phrase)
            return phrases
    return []


def _normal_noun(text: str) -> str:
    """Return a phrase in normal form, with its last word in the singular; "" without words."""
    words = normalize(text).split()
    if not words:
        return ""
    words[-1] = singularize(words[-1])
    return " ".join(words)


def _counted_noun(words: Words, relation: str) -> str:
    """Return the word after the first "many" whose relation phrase is not the relation, else "".

    A word without a relation phrase counts, too.
    """
    for word, next_word in pairwise(words):
        if word == "many" and RELATION_PHRASES.get(next_word) != relation:
            return next_word
    return ""


class _Match(NamedTuple):
    """A predicate, and how like it each content word of the question is."""

    predicate: VertexPredicate
    similarities: Mapping[int, float]
    """By position of the word."""

    @property
    def best(self) -> float:
        return max(self.similarities.values(), default=0.0)

    @property
    def total(self) -> float:
        return sum(self.similarities.values())


class QuestionWords:
    """The words of a question that carry its meaning, and how like they are to predicates."""

    def __init__(self, words: Words, embeddings: Embeddings) -> None:
        """Keep the words, and find the positions of the content words.

        Words of NON_CONTENT_WORDS do not count, unless they begin a known relation of two words.
        """
        self.words = words
        self.embeddings = embeddings
        self.content_positions: list[int] = []
        for position, (word, next_word) in enumerate(pairwise([*words, ""])):
            is_relation = f"{word}_{next_word}" in RELATION_PHRASES
            if is_relation or word not in NON_CONTENT_WORDS:
                self.content_positions.append(position)

    def best_predicate(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that the question asks for; None if none fits.

        Of the predicates with MIN_PREDICATE_SIMILARITY to a word, it is the one with the largest
        sum over all words; None if a word that it does not explain asks for something else. If no
        word is that like a predicate, it is the only one whose value type is named, or else the
        only predicate; None if it leaves any word unexplained. For a question for a date, only
        predicates of time are looked at.
        """
        value_type, _ = expected_value_type(self.words)
        if value_type == "date":
            predicates = [predicate for predicate in predicates if predicate.is_temporal]

        matches = [self._match(predicate) for predicate in predicates]
        similar = [match for match in matches if match.best >= MIN_PREDICATE_SIMILARITY]
        if similar:
            best = max(similar, key=lambda match: match.total)
            unexplained = self._unexplained(best)
            if any(self._asks_for_something_else(position) for position in unexplained):
                return None
            return best.predicate
        of_named_type = []
        for match in matches:
            if self._is_type_named(match.predicate):
                of_named_type.append(match)
        fitting = of_named_type or matches
        if len(fitting) != 1 or self._unexplained(fitting[0]):
            return None
        return fitting[0].predicate

    def _is_type_named(self, predicate: VertexPredicate) -> bool:
        """Return whether any content word names a class or datatype that a predicate leads to."""
        for position in self.content_positions:
            word = self.words[position]
            if _is_type_of(predicate, word, self.embeddings):
                return True
        return False

    def _unexplained(self, match: _Match) -> list[int]:
        """Return the positions of the content words that a predicate does not explain.

        It explains words with MIN_RELATION_SIMILARITY, words for a time, and those that name the
        class or datatype that it leads to.
        """
        unexplained = []
        for position in self.content_positions:
            word = self.words[position]
            is_similar = match.similarities[position] >= MIN_RELATION_SIMILARITY
            if is_similar or word in en.TIME_WORDS:
                continue
            if not _is_type_of(match.predicate, word, self.embeddings):
                unexplained.append(position)
        return unexplained

    def _asks_for_something_else(self, position: int) -> bool:
        """Return whether a word that a predicate does not explain asks for another relation.

        It does if it is in RELATION_PHRASES, stands after "what", "which" or "many" (with
        SKIPPED_WORDS between), or before "of" without a question word after that. Words of
        VAGUE_WORDS never do.
        """
        word = self.words[position]
        if word in en.VAGUE_WORDS:
            return False
        if word in RELATION_PHRASES:
            return True
        before = [other for other in self.words[:position] if other not in SKIPPED_WORDS]
        if before and before[-1] in WORDS_BEFORE_ASKED_NOUN:
            return True
        following = self.words[position + 1 : position + 3]
        return "of" in following[:1] and en.WH_WORDS.isdisjoint(following)

    def _match(self, predicate: VertexPredicate) -> _Match:
        """Return the similarity of each content word with a predicate of the name.

        A word is compared alone, as a relation phrase, and with each neighbour; the best counts.
        It is equal to a name that says the same known relation.
        """
        names = [predicate.name, *predicate.inner_predicates]
        best_similarities = {}
        for position in self.content_positions:
            word = self.words[position]
            if any(have_same_relation(word, normalize(name)) for name in names):
                best_similarities[position] = 1.0
                continue
            similarities = []
            for phrase in self._phrases_at(position):
                similarities.append(max_similarity(phrase, names, self.embeddings))
            best_similarities[position] = max(similarities)
        return _Match(predicate, best_similarities)

    def _phrases_at(self, position: int) -> list[str]:
        """Return the phrases that a word may be part of: alone, and with each neighbour.

        Those that name a known relation are replaced by its phrase; the word stays as well.
        """
        word = self.words[position]
        phrases = [word, relation_phrase(word)]
        for start in (max(position - 1, 0), position):
            pair = self.words[start : start + 2]
            known = RELATION_PHRASES.get("_".join(pair))
            phrases.append(known or " ".join(pair))
        return phrases
