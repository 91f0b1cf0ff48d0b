"""What the model ``rules`` did not understand of a question that it has read.

Every content word of the question must be accounted for: by a name, by a predicate that the query
asks for, by a class, or by the kind of value that is asked for. Otherwise the query asks for
something else than the question, and the question must not be answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from rdflib import URIRef

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.text import normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.chunks import SHARING_WORDS
from kgwb.llm.rules.grammar import (
    IS_A_RELATION,
    UNSUPPORTED_WORDS,
    ParsedQuestion,
    expected_value_type,
    remove_filler_phrases,
)
from kgwb.llm.rules.grounding import (
    CLASS_RELATION,
    MIN_CLASS_SIMILARITY,
    NON_CONTENT_WORDS,
    WORDS_BEFORE_ASKED_NOUN,
    Predicates,
    find_vertices,
    ground_question,
)
from kgwb.llm.rules.language import looks_english
from kgwb.llm.rules.mentions import Mention, bracketed_mentions, find_mentions
from kgwb.llm.rules.predicates import (
    Vertices,
    fetch_class_names,
    fetch_predicates,
    fetch_values,
    has_text_with,
    names_of_classes,
    predicates_within_two_steps,
)
from kgwb.llm.rules.similarity import (
    NAME_SEPARATOR,
    find_similar_predicates,
    max_similarity,
    without_time_and_place,
)
from kgwb.llm.rules.values import asked_kind, describe_wrong_kind
from kgwb.llm.rules.words import (
    PHRASES_BY_STEM,
    RELATION_PHRASES,
    Token,
    Words,
    are_rivals,
    relation_phrase,
    singularize,
    stem,
    tokenize,
)
from kgwb.text import shorten

MAX_TIED_LABELS = 5
"""How many labels that have the words of a name are compared."""
MAX_CHOICE_CHARS = 80
"""Letters of a label that a reason shows."""

SURE_SIMILARITY = 0.45
"""Similarity from which a word of the question is taken for a predicate or a class."""
LIKE_CLASS_SIMILARITY = 0.38
"""Similarity from which a word is taken for a class that no class of the graph is named by."""
MIN_SIMILARITY = 0.34
"""Similarity that further words must have with a predicate that another word asks for."""
UNREAD_WORDS = UNSUPPORTED_WORDS | {"why", "why's"}
COMPARING_WORDS = frozenset(
    "more most less least fewer fewest better best worse worst older younger".split()
)
SUPERLATIVE_ENDING = "est"
MIN_SUPERLATIVE_CHARS = 6
"""Shorter words with the ending are others: "west", "rest", "guest"."""
EMPTY_WORDS = NON_CONTENT_WORDS | en.VAGUE_WORDS | en.NEUTRAL_WORDS | en.POLITE_SUBJECTS
"""Words that need nothing in the query to stand for them."""
DIRECT = "direct"
"""As an adjective it asks for nothing more: every triple says something direct."""
UNSPECIFIC_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"place", "location", "type", "part"}
"""Words that two relations may have in common and still be different."""
LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def find_unread_form(question: str, kg: Graph | None) -> list[str]:
    """Return the reason why a question is of a language or form that is not read; [] if it is read.

    At most one reason is returned: it is not in English, has one of UNREAD_WORDS, is two questions
    at once, asks for a manner ("how does"), or has no name of the graph. Words of names do not
    count. Without a graph, only names with capitals or in brackets are found.
    """
    question = remove_filler_phrases(question)
    mentions = find_mentions(question, kg)
    words = _words_without(mentions, tokenize(question))
    if not looks_english(" ".join(words)):
        return ["the question is not in English"]
    for word, following in pairwise([*words, ""]):
        if word in UNREAD_WORDS:
            return [f"questions with “{word}” are not read"]
        if word == "and" and following in en.WH_WORDS and words[0] in en.WH_WORDS:
            return ["two questions at once are not read"]
        if word == "how" and _asks_for_manner(following):
            return ["questions for a manner are not read"]
    if kg is not None and not mentions:
        return ["no name of the graph is in the question"]
    return []


def find_not_understood(question: str, kg: Graph | None, embeddings: Embeddings) -> list[str]:
    """Return why a question is not understood, by its form or by what its reading leaves out.

    The list is empty if it is. Raises ModelError if the grammar cannot read the question.
    """
    unread = find_unread_form(question, kg)
    if unread or kg is None:
        return unread
    reading = ground_question(question, kg, embeddings)
    return find_unread_parts(question, reading, kg, embeddings)


def find_unread_parts(
    question: str, reading: ParsedQuestion, kg: Graph, embeddings: Embeddings
) -> list[str]:
    """Return reasons why a reading does not answer the whole question; [] if it does.

    A reason is a sentence for a person: a name that may mean several things, words that nothing in
    the reading stands for, or values of a kind that was not asked for. Of names that stand in the
    middle of labels, only the first is a reason.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    entities: set[str] = set()
    for subject, _, object_ in reading.facts:
        entities.update((subject, object_))
    mentions = [mention for mention in find_mentions(question, kg) if mention.text in entities]
    vertices = find_vertices(mentions, kg)
    if not bracketed_mentions(question):  # else a person has said what the name is
        unclear = _find_unclear_name(vertices, kg)
        if not vertices:
            unclear = _find_tied_name(mentions, kg)
        if unclear:
            return unclear
    if not vertices:
        return []
    words = _words_without(mentions, tokens)
    capitalized = [position for position, token in enumerate(tokens) if token.looks_like_name]
    coverage = _Coverage(words, capitalized, reading, vertices, kg, embeddings)
    return coverage.find_unread_parts()


def _words_without(mentions: Iterable[Mention], tokens: Sequence[Token]) -> list[str]:
    """Return the words of a question in lower case, with "" in the place of those of names."""
    words = [token.lowercase for token in tokens]
    for mention in mentions:
        words[mention.start : mention.end] = [""] * mention.size
    return words


def _find_unclear_name(vertices_of: Mapping[Mention, Vertices], kg: Graph) -> list[str]:
    """Return the reason that a name may mean several things; [] if each name is clear.

    A name is unclear if it is no whole label, and only a part of different labels of several things
    of one class. The first unclear name is reported, with these labels.
    """
    exact = kg.exact([mention.text for mention in vertices_of])
    for mention, vertices in vertices_of.items():
        if mention.text in exact or len(vertices) < 2:
            continue
        labels = set(kg.names(vertices).values())
        if len(labels) > 1 and _have_equal_classes(kg, vertices):
            return [f"“{mention.text}” may be {_list_choices(labels)}"]
    return []


def _find_tied_name(mentions: Iterable[Mention], kg: Graph) -> list[str]:
    """Return the reason that labels are equally like a name that none of them begins or ends with.

    [] if there is no such name. Any of these things would be an arbitrary choice.
    """
    for mention in mentions:
        hits = kg.search(mention.text, MAX_TIED_LABELS).hits
        tied = [hit for hit in hits if hit.score == hits[0].score]
        labels = {hit.label for hit in tied}
        if len(labels) > 1 and _have_equal_classes(kg, [hit.iri for hit in tied]):
            return [f"“{mention.text}” may be {_list_choices(labels)}"]
    return []


def _list_choices(labels: Collection[str]) -> str:
    """Return the beginnings of labels, sorted and each once, with "or" between."""
    choices = [shorten(label, MAX_CHOICE_CHARS) for label in sorted(labels)]
    return " or ".join(dict.fromkeys(choices))


def _have_equal_classes(kg: Graph, vertices: Vertices) -> bool:
    """Return whether all of some vertices are of the same classes."""
    first, *others = [fetch_class_names(kg, [vertex]) for vertex in vertices]
    return all(names == first for names in others)


def _asks_for_manner(word: str) -> bool:
    """Return whether "how" before a word asks for a manner: "how is it made", "how did he die"."""
    return word in en.AUXILIARIES


class _Coverage:
    """A question about names of the graph, and what accounts for its words."""

    def __init__(
        self,
        words: Words,
        capitalized: Collection[int],
        reading: ParsedQuestion,
        vertices_of: Mapping[Mention, Vertices],
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        """Keep the words, "" in the place of names, and find the predicates that the query may use.

        ``capitalized`` are the positions of words that are written like names.
        """
        self.words = words
        self.capitalized = capitalized
        self.reading = reading
        self.kg = kg
        self.embeddings = embeddings
        self.vertices_of = vertices_of
        self.vertices: list[URIRef] = []
        for vertices in vertices_of.values():
            self.vertices.extend(vertices)
        self.predicates = fetch_predicates(kg, self.vertices)
        self.is_lookup = _is_lookup(reading) and len(vertices_of) == 1
        """Whether one predicate of one name is asked for."""
        self.chosen = self._chosen_predicates()
        self.predicate_names = self._names_of_predicates()
        self.value_types = self._names_of_types()

    def find_unread_parts(self) -> list[str]:
        """Return a reason for each word that nothing accounts for, else for wrong values.

        [] if no predicate was chosen for a question about one predicate: the graph has no value
        then.
        """
        if self.is_lookup and not self.chosen:
            return self._find_other_predicate()
        unread = [f"nothing in the query stands for “{word}”" for word in self._unread_words()]
        if not unread and self.reading.kind == "boolean":
            return self._find_unknown_truth()
        if unread or not self.is_lookup:
            return unread
        if not self._is_supported():
            return ["no word says which predicate is asked for"]
        return self._find_wrong_values()

    def _find_other_predicate(self) -> list[str]:
        """Return that the graph has something else than a relation that no predicate is like.

        It is said only where a predicate looks like the relation, and a query might take it: who
        planted a tree is not when it was planted. Otherwise there is no value, which the answer
        will say.
        """
        _, relation, _ = self.reading.facts[0]
        # A time or place is of an event: "birth date" does not look like "release date".
        event = without_time_and_place(relation) or relation
        for predicate in self.predicates:
            other_event = without_time_and_place(predicate.name) or predicate.name
            if max_similarity(event, [other_event], self.embeddings) >= SURE_SIMILARITY:
                return [f"it asks for “{relation}”, and the graph has “{predicate.name}”"]
        return []

    def _find_unknown_truth(self) -> list[str]:
        """Return the reason that the graph does not say whether a fact holds; else [].

        The graph says so if the first name has a predicate like the relation that may lead to the
        other: a person without a birth place in the graph may be born anywhere. Nothing is checked
        for what a thing is ("is X a chemist"), nor for a reading with another number of facts or
        names.
        """
        if len(self.reading.facts) != 1 or len(self.vertices_of) != 2:
            return []
        [(_, relation, _)] = self.reading.facts
        if relation == IS_A_RELATION:
            return []
        first = min(self.vertices_of)
        for predicate in fetch_predicates(self.kg, self.vertices_of[first]):
            if predicate.has_only_numbers or predicate.is_temporal:
                continue
            if find_similar_predicates(relation, [predicate.name], self.embeddings):
                return []
        return [f"the graph does not say of {first.text} what is asked with “{relation}”"]

    def _chosen_predicates(self) -> Predicates:
        """Return the predicates that are like the first relation of the reading.

        A " by" at its end does not count, unless no predicate is like the relation without it: a
        query would take those that are like the whole relation.
        """
        if not self.reading.facts:
            return []
        _, relation, _ = self.reading.facts[0]
        names = [predicate.name for predicate in self.predicates]
        similar = find_similar_predicates(relation.removesuffix(" by"), names, self.embeddings)
        if not similar:
            similar = find_similar_predicates(relation, names, self.embeddings)
        return [predicate for predicate in self.predicates if predicate.name in similar]

    def _names_of_predicates(self) -> list[str]:
        """Return the names of the predicates that words may ask for, each once.

        For a question about one predicate these are the chosen ones and those behind their blank
        nodes. For another question they are all within two triples of the names.
        """
        names: list[str] = []
        predicates = self.chosen if self.is_lookup else self.predicates
        for predicate in predicates:
            names += [predicate.name, *predicate.inner_predicates]
        if not self.is_lookup:
            names += predicates_within_two_steps(self.kg, self.vertices)
        return list(dict.fromkeys(names))

    def _names_of_types(self) -> list[str]:
        """Return the names of the classes and datatypes that predicates lead to, sorted, each once.

        The predicates are the chosen ones in a question about one predicate, else all of the names.
        """
        names: set[str] = set()
        predicates = self.chosen if self.is_lookup else self.predicates
        for predicate in predicates:
            names.update(predicate.value_types)
        return sorted(names)

    # Words

    def _unread_words(self) -> list[str]:
        """Return the content words that nothing accounts for (``_is_accounted_for``), in order."""
        unread = []
        for position, word in enumerate(self.words):
            if self._is_content(position) and not self._is_accounted_for(position):
                unread.append(word)
        return unread

    def _is_content(self, position: int) -> bool:
        """Return whether a word carries a meaning of its own; comparing words and superlatives do."""
        word = self.words[position]
        if _is_comparing(word):
            return True
        is_adjective = position > 0 and self.words[position - 1] in en.DETERMINERS
        if word == DIRECT and is_adjective:
            return False
        return word not in EMPTY_WORDS and bool(LETTER_OR_DIGIT.search(word))

    def _is_accounted_for(self, position: int) -> bool:
        """Return whether something in the reading or the graph stands for the word at a position.

        That is a predicate or a class that is like the word, a kind of value for a word for a time
        or place, or a text of the thing that is asked about. For a question about more than one
        predicate it may also be a relation of the reading or any label of the graph. A comparing
        word or superlative must stand in the name of a predicate.
        """
        word = self.words[position]
        if _is_comparing(word):
            return self._stands_in_predicate(word)
        threshold = MIN_SIMILARITY
        if not self.is_lookup or self._is_asked_noun(position):
            threshold = SURE_SIMILARITY
        if self._is_like_predicate(position, threshold) or self._is_class(position):
            return True
        if word in en.TIME_WORDS or word in en.PLACE_WORDS:
            return self._is_kind_word(word)
        if self._describes_name(position):
            return True
        if self.is_lookup:
            return self._is_class_of_untyped(position)
        return word in SHARING_WORDS or self._is_read_relation(word) or self._is_label(word)

    def _is_asked_noun(self, position: int) -> bool:
        """Return whether a word stands right after "which", "what" or "many"."""
        return position > 0 and self.words[position - 1] in WORDS_BEFORE_ASKED_NOUN

    def _is_class_of_untyped(self, position: int) -> bool:
        """Return whether a word says of what class the values are that the question names itself.

        In "which company is the operator of X", "operator" says what is asked for. The graph must
        have a predicate of this name whose values have no class, or else it knows better.
        """
        following = self.words[position + 1 : position + 3]
        if not self._is_asked_noun(position) or len(following) < 2:
            return False
        be, determiner = following
        if be not in en.BE_FORMS or determiner != "the":
            return False
        later_words = self.words[position + 3 :]
        is_named = any(self._stands_in_predicate(word) for word in later_words if word)
        return is_named and not self.value_types

    def _describes_name(self, position: int) -> bool:
        """Return whether a word stands in a text of the thing that is asked about.

        It must stand beside the name and have a capital letter, as the family name after a first
        name that the graph has as a label. A word that tells several things of one name apart may
        stand anywhere.
        """
        word = self.words[position]
        if len(self.vertices) > 1:
            return has_text_with(self.kg, self.vertices, word)
        if position not in self.capitalized:
            return False
        neighbours = self.words[max(position - 1, 0) : position + 2]
        is_beside_name = "" in neighbours
        return is_beside_name and has_text_with(self.kg, self.vertices, word)

    def _stands_in_predicate(self, word: str) -> bool:
        """Return whether a word is one of the words of a predicate's name, in normal form."""
        return any(word in normalize(name).split() for name in self.predicate_names)

    def _is_like_predicate(self, position: int, threshold: float) -> bool:
        """Return whether a word, alone or with a neighbour, is like a predicate's name.

        It is if they have a stem in common, or if their similarity reaches ``threshold`` and no two
        words of them are rivals.
        """
        for phrase in self._phrases_at(position):
            for name in self.predicate_names:
                if self._is_like(phrase, name, threshold):
                    return True
        return False

    def _is_like(self, phrase: str, name: str, threshold: float) -> bool:
        """Return whether a phrase is a form of a word of a predicate's name, or like it in meaning.

        A stem in common is enough. Otherwise their similarity must reach ``threshold``, and no two
        words of them be rivals (see ``are_rivals``).
        """
        phrase_words = normalize(phrase).split()
        name_words = normalize(name).split()
        meanings: list[str] = []
        for word in name_words:
            meaning = PHRASES_BY_STEM.get(stem(word), "")
            meanings += meaning.split()
        stems = {stem(word) for word in name_words + meanings if word not in UNSPECIFIC_WORDS}
        if not stems.isdisjoint(map(stem, phrase_words)):
            return True
        for word in phrase_words:
            if any(are_rivals(word, other) for other in name_words):
                return False
        return max_similarity(phrase, [name], self.embeddings) >= threshold

    def _phrases_at(self, position: int) -> list[str]:
        """Return the phrases that the word at a position may ask for.

        These are the word, its relation phrase, and the relation phrases of the word with what is
        asked for or with a neighbour. If the word with "of" or "from" after it names a relation,
        only that is returned: "made of" does not ask for a maker.
        """
        word = self.words[position]
        following = self.words[position + 1 : position + 2]
        word_and_next = "_".join([word, *following])
        if following in (["of"], ["from"]) and word_and_next in RELATION_PHRASES:
            return [RELATION_PHRASES[word_and_next]]
        phrases = [word, relation_phrase(word)]
        value_type, _ = expected_value_type(self.words)
        pairs = [f"{word}_{value_type}", f"who_{word}", word_and_next]
        if position > 0:
            word_before = self.words[position - 1]
            pairs.append(f"{word_before}_{word}")
        for pair in pairs:
            if pair in RELATION_PHRASES:
                phrases.append(RELATION_PHRASES[pair])
        return phrases

    def _is_class(self, position: int) -> bool:
        """Return whether the word at a position names a class of the names or of the values.

        It does if a class is like it, and no other class of the graph is more like it. A word
        between a determiner and a name without a class in the graph does as well ("the contract
        X").
        """
        word = self.words[position]
        if self._is_any_class(word, self.value_types):
            return True
        own_classes = fetch_class_names(self.kg, self.vertices)
        if self._is_any_class(word, own_classes):
            return True
        expected = [*self.value_types, *own_classes]
        if not own_classes and self._is_apposition(position):
            return True
        if word in RELATION_PHRASES or en.is_verb(word):
            return False
        # Of all classes of the graph, the one most like the word must be among them
        classes = sorted(names_of_classes(self.kg))
        likeness = max_similarity(word, classes, self.embeddings)
        required = min(max(likeness, MIN_SIMILARITY), LIKE_CLASS_SIMILARITY)
        best = max_similarity(word, expected, self.embeddings)
        return best >= required

    def _is_apposition(self, position: int) -> bool:
        """Return whether a word stands between a determiner and a name: "the contract X"."""
        before = self.words[max(position - 1, 0)]
        after = self.words[position + 1 : position + 2]
        return before in en.DETERMINERS and after == [""]

    def _is_any_class(self, phrase: str, names: Sequence[str]) -> bool:
        """Return whether a phrase means one of these classes.

        It does if its last word has the stem of a word of the class, or if its similarity with one
        of them is at least MIN_CLASS_SIMILARITY, as it is or in the singular.
        """
        words = normalize(phrase).split()
        if words:
            last_stem = stem(words[-1])
            for name in names:
                name_words = normalize(name).split()
                if last_stem in map(stem, name_words):
                    return True
        for form in (phrase, singularize(phrase)):
            if max_similarity(form, list(names), self.embeddings) >= MIN_CLASS_SIMILARITY:
                return True
        return False

    def _is_kind_word(self, word: str) -> bool:
        """Return whether a word for a time or place says what kind of value is asked for.

        In a question about one predicate, only a word for a time does, and only if a time is asked
        for. In any other question it always does: the word is not looked at.
        """
        kind = asked_kind(self.words)
        if not self.is_lookup:
            return True
        return kind == "a time" and singularize(word) in en.TIME_WORDS

    def _is_read_relation(self, word: str) -> bool:
        """Return whether a word names a relation of the reading."""
        phrase = relation_phrase(word)
        return any(phrase in relation or word in relation for _, relation, _ in self.reading.facts)

    def _is_label(self, word: str) -> bool:
        """Return whether a word is a label of the graph, or like the name of a class.

        The word counts as it is and in the singular. The graph is asked for the label.
        """
        forms = [word, singularize(word)]
        if self.kg.exact(forms):
            return True
        class_names = sorted(names_of_classes(self.kg))
        return self._is_any_class(word, class_names)

    # Support and values

    def _is_supported(self) -> bool:
        """Return whether the question has a word for the chosen predicate, or for its values.

        A content word must be like the predicate (SURE_SIMILARITY), or like a class or datatype
        that it leads to. A question for a time, a place or a number needs no such word.
        """
        for position, word in enumerate(self.words):
            if not self._is_content(position) and not self._names_relation(position):
                continue
            if self._is_like_predicate(position, SURE_SIMILARITY):
                return True
            if self._is_any_class(word, self.value_types):
                return True
        return asked_kind(self.words) in ("a time", "a place", "a number")

    def _names_relation(self, position: int) -> bool:
        """Return whether a word without much meaning names a known relation, alone or with the next."""
        word = self.words[position]
        pair = "_".join(self.words[position : position + 2])
        return pair in RELATION_PHRASES or word in RELATION_PHRASES

    def _find_wrong_values(self) -> list[str]:
        """Return the reason that the values of the chosen predicates are of a wrong kind; else [].

        For predicates that lead to the name, the values are things, which are neither times nor
        numbers. For others, values are fetched from the graph and compared with the kind that is
        asked for.
        """
        outgoing = [predicate.iri for predicate in self.chosen if not predicate.is_incoming]
        if len(outgoing) < len(self.chosen):
            kind = asked_kind(self.words)
            if kind in ("a time", "a number"):
                return [f"it asks for {kind}, and things were found"]
            return []

        if not asked_kind(self.words):
            return []
        values = fetch_values(self.kg, self.vertices, outgoing)
        kind = describe_wrong_kind(self.words, values)
        if not kind:
            return []
        is_temporal = any(predicate.is_temporal for predicate in self.chosen)
        if kind == "a time" and is_temporal:
            return []
        names = ", ".join(f"“{predicate.name}”" for predicate in self.chosen)
        return [f"it asks for {kind}, and the values of {names} are of another kind"]


def _is_lookup(reading: ParsedQuestion) -> bool:
    """Return whether a reading asks for one predicate of one name, and is not a yes-or-no question.

    Further facts may state the class of the answers, or ask for the values behind blank nodes.
    """
    if reading.kind == "boolean" or not reading.facts:
        return False
    for _, relation, _ in reading.facts[1:]:
        if relation != CLASS_RELATION and NAME_SEPARATOR not in relation:
            return False
    return True


def _is_comparing(word: str) -> bool:
    """Return whether a word compares: one of COMPARING_WORDS, or a superlative."""
    if word in COMPARING_WORDS:
        return True
    return word.endswith(SUPERLATIVE_ENDING) and len(word) >= MIN_SUPERLATIVE_CHARS
