"""Reading a question about one name by what the graph says of that name.

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
from kgwb.kg.text import normalize
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
    fetch_predicates,
    predicates_within_two_steps,
)
from kgwb.llm.rules.similarity import (
    MIN_RELATION_SIMILARITY,
    find_similar_predicates,
    max_similarity,
)
from kgwb.llm.rules.words import RELATION_PHRASES, Token, Words, relation_phrase, tokenize

MIN_PREDICATE_SIMILARITY = 0.45
"""Similarity from which words of the question ask for a predicate."""
MIN_CLASS_SIMILARITY = 0.5
"""Similarity from which a word of the question names a class."""
MAX_PARTIAL_MATCHES = 3
"""How many labels are looked at that may begin or end with a name."""
NON_CONTENT_WORDS = en.NON_NAME_WORDS | {""}
RELATION_WORDS = (
    en.TIME_WORDS | en.PLACE_WORDS | {"by", *" ".join(RELATION_PHRASES.values()).split()}
)
"""Words of relations that a question asks for, and that do not stand in it by the way."""
WHO_WORDS = frozenset(("who", "whom", "who's"))
WORDS_BEFORE_ASKED_NOUN = ("what", "which", "many")


def ground_question(question: str, kg: Graph | None, embeddings: Embeddings) -> ParsedQuestion:
    """Read a question with the grammar, and correct the reading by what the graph says of its name.

    The grammar's reading is returned as it is without a graph, for a yes-or-no question, and if not
    exactly one name is found in the graph. ``_PredicateReader.read`` says what the others become.

    Raises ModelError if the grammar cannot read the question.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_mentions(question, kg)
    reading = parse_tokens(tokens, mentions, kg)
    if kg is None or reading.kind == "boolean":
        return reading
    vertices = _find_vertices(mentions, kg)
    mention = _only_mention(vertices)
    if mention is None:
        return reading
    words = _words_without_name(tokens, mention)
    reader = _PredicateReader(reading, mention.text, vertices[mention], kg, embeddings)
    return reader.read(words, _last_question(tokens, words))


def _find_vertices(mentions: Sequence[Mention], kg: Graph) -> dict[Mention, Sequence[URIRef]]:
    """Return the vertices of each name that the graph has, as a label or a part of one."""
    if not mentions:
        return {}
    exact = kg.exact([mention.text for mention in mentions])
    vertices_of: dict[Mention, Sequence[URIRef]] = {}
    for mention in mentions:
        vertices = exact.get(mention.text) or _find_partial_matches(mention.text, kg)
        if vertices:
            vertices_of[mention] = vertices
    return vertices_of


def _find_partial_matches(name: str, kg: Graph) -> list[URIRef]:
    """Return the vertices whose labels begin or end with the words of a name.

    They are among the first MAX_PARTIAL_MATCHES hits of a label search.
    """
    words = f" {normalize(name)} "
    vertices = []
    for hit in kg.search(name, MAX_PARTIAL_MATCHES).hits:
        label = f" {normalize(hit.label)} "
        if label.startswith(words) or label.endswith(words):
            vertices.append(hit.iri)
    return vertices


def _only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """Return the only name with a capital letter; None if there are several.

    Without capitals it is the last name; None if there is no name at all.
    """
    all_mentions = list(mentions)
    written = [name for name in all_mentions if name.text != name.text.casefold()]
    found = written or all_mentions[-1:]
    return found[0] if len(found) == 1 else None


def _words_without_name(tokens: Sequence[Token], mention: Mention) -> list[str]:
    """Return the words in lower case, with "" in the place of those of a name.

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
    """Return the words of the last sentence with a question word; [] if there is none."""
    sentences: list[list[str]] = []
    for token, word in zip(tokens, words, strict=True):
        if token.begins_sentence:
            sentences.append([])
        sentences[-1].append(word)
    questions = [sentence for sentence in sentences if not en.WH_WORDS.isdisjoint(sentence)]
    return questions[-1] if questions else []


class _PredicateReader:
    """Reads a question about one name by the predicates that the name has in the graph."""

    def __init__(
        self,
        reading: ParsedQuestion,
        name: str,
        vertices: Sequence[URIRef],
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        self.reading = reading
        """What the grammar reads."""
        self.name = name
        self.vertices = vertices
        """Those that have the name."""
        self.kg = kg
        self.embeddings = embeddings

    def read(self, words: Words, last_question: Words) -> ParsedQuestion:
        """Return a reading that the graph can answer, if the predicates of the name allow one.

        The grammar's reading is kept if the graph has predicates like its relations. Otherwise the
        predicate that is most like the words of the question becomes its only relation; if there is
        none, the grammar's reading is kept as well. A "how many" or "who" question that the
        predicates cannot answer gets a relation that no predicate is like, and so no answer.

        ``words`` are those of the question with "" for the name. Those of its last question alone
        are tried first.
        """
        predicates = fetch_predicates(self.kg, self.vertices)
        numeric: list[VertexPredicate] = []
        if self._asks_for_agent(words):
            numeric = [predicate for predicate in predicates if predicate.has_only_numbers]
            predicates = [predicate for predicate in predicates if predicate not in numeric]

        relation = self._relation_at_name()
        similar = self._predicates_like(relation, predicates)
        similar_numeric = self._predicates_like(relation, numeric)
        noun = _counted_noun(words, relation)
        if self._counts_something_else(noun, similar) or (similar_numeric and not similar):
            return self._with_facts([(self.name, noun or "who", "?answer")])
        if similar and not similar_numeric and self._has_all_relations(similar):
            return self.reading

        for part in [last_question, words] if last_question else [words]:
            predicate = QuestionWords(part, self.embeddings).best_predicate(predicates)
            if predicate is not None:
                return self._reading_of_predicate(predicate)
        return self.reading

    def _asks_for_agent(self, words: Words) -> bool:
        """Return whether one relation is read, and asked with "who", not for a time or place."""
        value_type, _ = expected_value_type(words)
        asks_who = not WHO_WORDS.isdisjoint(words)
        return asks_who and not value_type and len(self.reading.facts) == 1

    def _relation_at_name(self) -> str:
        """Return the relation of the first fact about the name, "" if there is no fact about it."""
        for subject, relation, object_ in self.reading.facts:
            if self.name in (subject, object_):
                return relation
        return ""

    def _predicates_like(
        self, relation: str, predicates: Sequence[VertexPredicate]
    ) -> list[VertexPredicate]:
        """Return the predicates that are like a relation, without regard to a " by" at its end.

        Without a relation there are none.
        """
        if not relation:
            return []
        names = [predicate.name for predicate in predicates]
        similar = find_similar_predicates(relation.removesuffix(" by"), names, self.embeddings)
        return [predicate for predicate in predicates if predicate.name in similar]

    def _counts_something_else(self, noun: str, predicates: Sequence[VertexPredicate]) -> bool:
        """Return whether "how many" asks for things that these predicates do not lead to.

        ``noun`` is what is counted. It is so if one relation is read, some of the predicates have
        value types, and none of these is like the noun.
        """
        typed = [predicate for predicate in predicates if predicate.value_types]
        if noun in NON_CONTENT_WORDS or not typed or len(self.reading.facts) != 1:
            return False
        return not any(_is_type_of(predicate, noun, self.embeddings) for predicate in typed)

    def _has_all_relations(self, similar: Sequence[VertexPredicate]) -> bool:
        """Return whether the graph has predicates like all relations of the grammar's reading.

        Relations of RELATION_WORDS alone are taken for granted. ``similar`` are the predicates like
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
        similarities = [max_similarity(relation, names, self.embeddings) for relation in unusual]
        return all(similarity >= MIN_PREDICATE_SIMILARITY for similarity in similarities)

    def _with_facts(self, facts: Sequence[Fact]) -> ParsedQuestion:
        """Return the reading with other facts, which ask for "?answer"."""
        return self.reading._replace(facts=tuple(facts), target="?answer")

    def _reading_of_predicate(self, predicate: VertexPredicate) -> ParsedQuestion:
        """Return a reading that asks for the other end of a predicate of the name.

        If that is a blank node, a second fact asks for its values by all its predicates.
        """
        inner_predicates = ", ".join(predicate.inner_predicates)
        end = "?x1" if inner_predicates else "?answer"
        facts = [(self.name, predicate.name, end)]
        if predicate.is_incoming:
            facts = [(end, predicate.name, self.name)]
        if inner_predicates:
            facts.append((end, inner_predicates, "?answer"))
        return self._with_facts(facts)


def _is_type_of(predicate: VertexPredicate, word: str, embeddings: Embeddings) -> bool:
    """Return whether a word is like the name of a class or datatype that a predicate leads to."""
    value_types = list(predicate.value_types)
    similarity = max_similarity(relation_phrase(word), value_types, embeddings)
    return similarity >= MIN_CLASS_SIMILARITY


def _counted_noun(words: Words, relation: str) -> str:
    """Return the word after "many" if its relation phrase is not the relation itself, else ""."""
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

        A word is none if it is in NON_CONTENT_WORDS, unless it begins a known relation of two words.
        """
        self.words = words
        self.embeddings = embeddings
        self.content_positions: list[int] = []
        for position, (word, next_word) in enumerate(pairwise([*words, ""])):
            if word not in NON_CONTENT_WORDS or f"{word}_{next_word}" in RELATION_PHRASES:
                self.content_positions.append(position)

    def best_predicate(self, predicates: Sequence[VertexPredicate]) -> VertexPredicate | None:
        """Return the predicate that the question asks for.

        Of the predicates that have MIN_PREDICATE_SIMILARITY with a word it is the one with the
        largest sum over all words. If there are none, it is the only predicate whose value type is
        named, or else the only predicate. A question for a date looks at predicates of time alone.

        Returns None if no predicate fits. It does not fit if a word that is neither like it nor
        like its value type asks for something else, or, for a predicate that no word is like, if
        there is any such word.
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
        of_named_type = [match for match in matches if self._is_type_named(match.predicate)]
        fitting = of_named_type or matches
        if len(fitting) != 1 or self._unexplained(fitting[0]):
            return None
        return fitting[0].predicate

    def _is_type_named(self, predicate: VertexPredicate) -> bool:
        """Return whether any content word names a value type of a predicate."""
        words = [self.words[position] for position in self.content_positions]
        return any(_is_type_of(predicate, word, self.embeddings) for word in words)

    def _unexplained(self, match: _Match) -> list[int]:
        """Return the positions of content words that are neither a time, nor like the predicate.

        Words that name a value type of the predicate are left out too.
        """
        unexplained = []
        for position in self.content_positions:
            word = self.words[position]
            if match.similarities[position] >= MIN_RELATION_SIMILARITY or word in en.TIME_WORDS:
                continue
            if not _is_type_of(match.predicate, word, self.embeddings):
                unexplained.append(position)
        return unexplained

    def _asks_for_something_else(self, position: int) -> bool:
        """Return whether a word that a predicate does not explain asks for another relation.

        It does if it stands after "what", "which" or "many", or before "of", or is in
        RELATION_PHRASES. Words of VAGUE_WORDS never do.
        """
        word = self.words[position]
        if word in en.VAGUE_WORDS:
            return False
        if word in RELATION_PHRASES:
            return True
        skipped = en.BE_FORMS | en.DETERMINERS | en.ACTIVE_AUXILIARIES
        before = [other for other in self.words[:position] if other not in skipped]
        if before and before[-1] in WORDS_BEFORE_ASKED_NOUN:
            return True
        following = list(self.words[position + 1 : position + 3])
        return following[:1] == ["of"] and en.WH_WORDS.isdisjoint(following)

    def _match(self, predicate: VertexPredicate) -> _Match:
        """Compare each content word with a predicate, and with those behind its blank nodes."""
        names = [predicate.name, *predicate.inner_predicates]
        similarities = {}
        for position in self.content_positions:
            phrases = self._phrases_at(position)
            similarities[position] = max(
                max_similarity(phrase, names, self.embeddings) for phrase in phrases
            )
        return _Match(predicate, similarities)

    def _phrases_at(self, position: int) -> list[str]:
        """Return a word, its relation phrase, and both for it with each neighbour."""
        word = self.words[position]
        phrases = [word, relation_phrase(word)]
        for start in (max(position - 1, 0), position):
            pair = self.words[start : start + 2]
            known = RELATION_PHRASES.get("_".join(pair))
            phrases.append(known or " ".join(pair))
        return phrases
