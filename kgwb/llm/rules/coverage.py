"""What of a question its reading leaves out.

Every content word must be accounted for: by a name, by a predicate that the query asks for, by a
class, or by the kind of value that is asked for. Otherwise the query asks for something else than
the question, and the question must not be answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise, product

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.conditions import (
    SUPERLATIVE_ENDING,
    is_comparing,
)
from kgwb.llm.rules.grammar import (
    END_OF_QUESTION,
    IS_A_RELATION,
    ORIGIN_VERB,
    SHARING_WORDS,
    ParsedQuestion,
    Unread,
    is_part_of_verb,
)
from kgwb.llm.rules.look_up import (
    EMPTY_WORDS,
    MIN_PREDICATE_SIMILARITY,
    UNSPECIFIC_WORDS,
    VALUE_KINDS,
    QuestionWords,
    is_lookup,
    predicates_like,
    says_maker,
    types_of,
)
from kgwb.llm.rules.predicates import (
    MIN_RELATION_SIMILARITY,
    PERSON_CLASSES,
    VertexPredicate,
    Vertices,
    are_texts,
    fetch_class_names,
    fetch_predicates,
    fetch_values,
    find_similar_predicates,
    has_text_with,
    kinds_of_value,
    leads_to_kind,
    max_similarity,
    names_of_classes,
    names_of_other_predicates,
    predicates_within_two_steps,
    with_superclasses,
    without_time_and_place,
)
from kgwb.llm.rules.words import (
    IRREGULAR_FORMS,
    LETTER_OR_DIGIT,
    MEANINGS,
    MIN_STEM_CHARS,
    RELATION_PHRASES,
    RIVALS,
    Mention,
    Words,
    are_kin,
    has_word_of_stem,
    have_rivals,
    leads_elsewhere,
    leads_to_agent,
    only,
    relation_phrase,
    singularize,
    stem,
    stems_of,
    words_of,
)

REQUIREMENT = re.compile(
    r"\b(i|you|we|one|anyone|someone|people) ((have|need) to |must |should |can )?be\b"
)
"""Asks what somebody must be: "how tall do you have to be to", "how old must one be"."""
LIMIT_WORDS = en.word_list("limits")
PEOPLE = frozenset(("people", "persons"))
SIGNS_OF_PAST = en.word_list("signs_of_past")
"""Words of a question for what was."""
LIKE_CLASS_SIMILARITY = 0.38
"""Similarity from which a word is taken for a class that no class of the graph is named by."""
PASSING_TIMES = en.word_list("passing_times")
TIME_PLACE_OR_SHARING = en.TIME_WORDS | en.PLACE_WORDS | SHARING_WORDS
DIRECT = "direct"
"""As an adjective it asks for nothing more: every triple says something direct."""


def _as_said(words: Sequence[str]) -> str:
    """Return words as a person says them: the grammar reads two of them as others."""
    said = {ORIGIN_VERB: "from", en.FORMERLY: "before"}
    return " ".join(said.get(word, word) for word in words)


class Coverage(QuestionWords):
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

        ``capitalized`` are the positions of words that are written like names. For a question about
        one predicate words may ask for the chosen predicates and those behind their blank nodes;
        for another question for all within two triples of the names.
        """
        super().__init__(words, kg, embeddings)
        self.capitalized = capitalized
        self.reading = reading
        self.vertices_of = vertices_of
        self.vertices = tuple(chain.from_iterable(vertices_of.values()))
        self.predicates = fetch_predicates(kg, self.vertices)
        self.is_lookup = is_lookup(reading) and len(vertices_of) == 1
        """Whether one predicate of one name is asked for."""
        _, self.relation, _ = reading.facts[0]
        self.chosen = predicates_like(self.relation, self.predicates, embeddings)
        """The predicates like the first relation of the reading."""
        self.chosen_names = sorted({predicate.name for predicate in self.chosen})
        asked = self.chosen if self.is_lookup else self.predicates
        names: list[str] = []
        for predicate in asked:
            names += [predicate.name, predicate.inverse_name, *predicate.inner_predicates]
        self.near_names = dict.fromkeys(filter(None, names))
        self.value_types = sorted(types_of(asked))

    def find_unread_parts(self, clause: range) -> Unread:
        """Return a reason for each word that nothing accounts for, else for wrong values.

        Of a question about one predicate, words that may be left out are doubts. ``clause`` are the
        positions of the clause that asks: if it has a word for the predicate, what is said outside
        of it is said in passing. Nothing is returned if no predicate was chosen for a question
        about one predicate: the graph has no value then.
        """
        if self.is_lookup and not self.chosen:
            return Unread(self._find_other_predicate())
        unread = self._unread_positions()
        if self.is_lookup and self._is_supported(clause):
            unread = [each for each in unread if each in clause or self._selects(each)]
        left_out = []
        reasons = []
        for position in unread:
            if self._may_be_left_out(position):
                left_out.append(position)
            else:
                reasons.append(
                    f"nothing in the query stands for “{_as_said([self.words[position]])}”"
                )
        if reasons:
            return Unread(reasons)
        if self.reading.kind == "boolean":
            doubted = [] if self._is_said() else self._kin_of_chosen()
            reasons = self._find_unknown_truth() or self._find_longer_predicate()
            return Unread(reasons, list(map(self._doubt_of, doubted)))
        if not self.is_lookup:
            return Unread(self._find_several_values())
        if not self._is_supported():
            kin = self._kin_of_chosen()
            if not kin and self.kind not in VALUE_KINDS:
                return Unread(["no word says which predicate is asked for"])
            left_out = sorted({*left_out, *kin})
        guessed = [] if left_out else self._guessed_words()
        doubts = [*map(self._doubt_of, left_out), *self._find_unsaid_kind()]
        if guessed and not doubts:
            doubts = self._taken_as_chosen(guessed)
        doubts = doubts or self._find_events() or self._find_unsaid_place()
        doubts = doubts or self._find_said_of_others() or self._find_requirement()
        doubts = doubts or self._find_unsaid_past()
        return self.find_wrong_values()._replace(
            doubts=doubts,
            is_guess=bool(guessed),
            has_left_out=not all(map(self._find_kin_name, left_out)),
        )

    def _leads_to_former(self) -> bool:
        """Return whether all chosen predicates lead to what was and is no longer: "former club"."""
        return all(map(en.leads_to_former, self.chosen_names))

    def _find_unsaid_past(self) -> list[str]:
        """Return the doubt that the chosen predicate is "former club", if the question does not ask for the past."""
        if not self._leads_to_former() or self.kind == "a time":
            return []
        said = chain.from_iterable(map(words_of, self.words))  # the ex-wife
        if not (en.PAST_WORDS | SIGNS_OF_PAST).isdisjoint(said):
            return []
        return self._taken_as_chosen(self.content_words)

    def _find_events(self) -> list[str]:
        """Return the doubt that an answer is an event, and not who or what takes part in it.

        What somebody ordered is no order: "ordered from" leads to one. Nor is an order who ordered.
        """
        said = list(self.content_words)
        if self.kind == "a person":
            said += chain.from_iterable(map(words_of, self.chosen_names))
            said = list(filter(en.is_verb, said))
        elif (
            self.kind
            or en.ACTIVE_AUXILIARIES.isdisjoint(self.words)
            or any(map(self.is_asked_noun, self.positions))
        ):
            return []
        if not any(each.is_incoming for each in self.chosen):
            return []
        for value_type, word in product(self.value_types, said):
            if has_word_of_stem(value_type, word) and not leads_to_agent(value_type):
                return [f"the question was read as one for a “{value_type}”"]
        return []

    def _find_unsaid_place(self) -> list[str]:
        """Return the doubt that the chosen predicate leads to a place, if neither its name nor a class says so.

        Where X is may be read as its only predicate, who made it.
        """
        if self.kind != "a place":
            return []
        if any(map(self._leads_to_kind, self.chosen)):
            return []
        return [f"the question for a place was read as “{self.chosen_names[0]}”"]

    def _find_said_of_others(self) -> list[str]:
        """Return the doubt that a word, or two words, are the name of a predicate that only other things have.

        Who services a machine may not be who operates it, if the graph says that of other machines.
        """
        if self._is_fully_named:
            return []
        others = set(map(stems_of, names_of_other_predicates(self.kg, self.predicates)))
        for word in self.content_words:
            if stems_of(word) in others:
                return self._taken_as_chosen([word])
        for pair in pairwise(self.words):
            if all(pair) and stems_of(" ".join(pair)) in others:
                return self._taken_as_chosen(pair)
        return []

    def _find_requirement(self) -> list[str]:
        """Return the doubt that what somebody must be is no limit by the name of the predicate that was chosen."""
        if not REQUIREMENT.search(" ".join(self.words)):
            return []
        said = set(chain.from_iterable(map(words_of, self.chosen_names)))
        if not said.isdisjoint(LIMIT_WORDS):
            return []
        return [f"what is required was read as “{self.chosen_names[0]}”"]

    def _guessed_words(self) -> list[str]:
        """Return the words that are only near to the chosen predicate in meaning, if no word says it.

        A kin that leads to the kind that is asked for says it.
        """
        if self._is_fully_named or any(map(self._is_said_at, self.positions)):
            return []
        guessed = []
        for position in self.positions:
            word = self.words[position]
            is_class = any(has_word_of_stem(each, word) for each in self.value_types)
            if self._is_content(position) and not is_class:
                guessed.append(word)
        return guessed

    def _is_said_at(self, position: int) -> bool:
        """Return whether the word at a position says the chosen predicate, as it is, by a known relation or as kin."""
        if self.kind and self._find_kin_name(position):
            return True
        word = self.words[position]
        phrase = RELATION_PHRASES.get(word, "")
        for predicate in self.chosen:
            names = words_of(f"{predicate.name} {predicate.inverse_name}")
            is_begun = len(word) > MIN_STEM_CHARS and any(each.startswith(word) for each in names)
            is_same = bool(phrase) and phrase in map(RELATION_PHRASES.get, names)
            if is_begun or is_same or self._says(predicate, position):
                return True
        return False

    def _taken_as_chosen(self, words: Sequence[str]) -> list[str]:
        """Return the doubt that words were read as the chosen predicate."""
        return [f"“{_as_said(words)}” was read as “{self.chosen_names[0]}”"]

    def _find_unsaid_kind(self) -> list[str]:
        """Return the doubt that a predicate is not just what is said, where others lead to the same class.

        "The doctor of X" may be the "referring doctor", or who treats X.
        """
        if self._is_fully_named:
            return []
        others = [predicate for predicate in self.predicates if predicate not in self.chosen]
        classes = set(map(normalize, types_of(self.chosen) & types_of(others)))
        for predicate, word in product(self.chosen, self.content_words):
            is_class = not classes.isdisjoint((word, singularize(word)))
            if is_class and has_word_of_stem(predicate.name, word):
                return [f"“{word}” was read as “{predicate.name}”"]
        return []

    def _is_said(self) -> bool:
        """Return whether a word of the question is like the name of a chosen predicate."""
        for position in self.positions:
            if self._is_like_predicate(position, MIN_PREDICATE_SIMILARITY, self.chosen_names):
                return True
        return False

    def _kin_of_chosen(self) -> list[int]:
        """Return where words stand that may say the only chosen predicate."""
        return [position for position in self.kin_positions() if self._find_kin_name(position)]

    def _find_several_values(self) -> list[str]:
        """Return the reason that a value of each of several things is asked for: "When were X and Y born?"; else [].

        A query gives what all of them have in common.
        """
        count = len(self.vertices_of)
        relations = {relation for _, relation, _ in self.reading.facts}
        is_each = len(self.reading.facts) == len(relations) * count
        if count < 2 or self.kind not in VALUE_KINDS or not is_each:
            return []
        return ["it asks for a value of each of several things"]

    def _doubt_of(self, position: int) -> str:
        """Return the sentence that says how a word that may be left out was taken."""
        word = _as_said([self.words[position]])
        kin = self._find_kin_name(position)
        return f"“{word}” was read as “{kin}”" if kin else f"“{word}” was not read"

    def _find_kin_name(self, position: int) -> str:
        """Return the name of the chosen predicates, if they have one and the word at a position may say it; else ""."""
        name = only(self.chosen_names)
        return name if name and are_kin(self.words[position], name) else ""

    def _selects(self, position: int) -> bool:
        """Return whether a word selects among things wherever it stands: "second", "oldest".

        A word for a time after it makes it a part of a time: "last night".
        """
        word = self.words[position]
        if word.endswith(SUPERLATIVE_ENDING) and is_comparing(word):
            return True
        return word in en.ORDINALS and self.word_at(position + 1) not in PASSING_TIMES

    def _may_be_left_out(self, position: int) -> bool:
        """Return whether a word that nothing accounts for leaves the question much as it is.

        A word may if a chosen predicate is its kin. For others, the question must say the whole
        name of a chosen predicate. The word must be no relation of its own, and not select. Then a
        verb, an adjective that is said of the name, or the noun of an apposition ("the picture X")
        may: "under which genre would you file X". A word that belongs to a noun may not: "the
        second warden", "the population density".
        """
        word = self.words[position]
        is_read = self.is_lookup or self.reading.kind == "boolean"
        if not is_read or is_comparing(word) or word == en.FORMERLY:
            return False
        if self._find_kin_name(position):
            return True
        if word == "first" and self.kind == "a time":
            following = self.word_at(position + 1)
            return following == "" or en.is_verb(following)
        is_kind = word in en.TIME_WORDS or word in en.PLACE_WORDS or self.is_asked_noun(position)
        if is_kind or not self.is_lookup or self.kind == "a place" or not self._is_fully_named:
            return False
        is_relation = word in RELATION_PHRASES or stem(word) in RIVALS
        if is_relation or self._selects(position):
            return False
        return self._is_verb_of_clause(position)

    def _is_verb_of_clause(self, position: int) -> bool:
        """Return whether a word is a verb or an adjective that is said of the subject, by its place.

        It stands after an auxiliary, a pronoun or the name. After an auxiliary, or without one
        before the name, it must look like a verb or be followed by no noun: "is responsible for".
        """
        word = self.words[position]
        before = list(self.words[:position])
        while before and before[-1] in en.ORDINALS | en.FILLERS:
            before.pop()
        last = before[-1] if before else None
        following = self.word_at(position + 1)
        looks_like_verb = en.is_verb(word) or word in IRREGULAR_FORMS
        if last == "":
            has_auxiliary = not en.ACTIVE_AUXILIARIES.isdisjoint(before)
            is_third_person = word.endswith("s") and en.BE_FORMS.isdisjoint(before)
            return has_auxiliary or looks_like_verb or is_third_person
        if last in en.AUXILIARIES | en.SUBJECTS | en.RELATIVES | {"to"}:
            is_alone = following in en.FUNCTION_WORDS or following in ("", END_OF_QUESTION)
            return is_alone or looks_like_verb
        return following == "" and last != "'s" and last not in en.DETERMINERS

    @cached_property
    def _is_fully_named(self) -> bool:
        """Whether the words of the question say every word of the name of a chosen predicate.

        Function words and words for a time or place need not be said, unless there are no others. A
        predicate that alone leads to the class that the question names is fully named, too.
        """
        if len(self.chosen) == 1:
            other_types = types_of([each for each in self.predicates if each not in self.chosen])
            for position, word in enumerate(self.words):
                is_class = self.is_asked_noun(position) and self._is_any_class(
                    word, self.value_types
                )
                if is_class and not self._is_any_class(word, other_types):
                    return True
        said = set(map(stem, self.words))
        for position in self.positions:
            for phrase in self._phrases_at(position):
                said |= stems_of(phrase)
        for predicate in self.chosen:
            name_words = set(words_of(predicate.name))
            content = name_words - UNSPECIFIC_WORDS - en.PLACE_WORDS or name_words
            if said.issuperset(map(stem, content)):
                return True
        return False

    def _find_other_predicate(self) -> list[str]:
        """Return that the graph has something else than a relation that no predicate is like.

        It is said only where a predicate looks like the relation, and a query might take it: who
        planted a tree is not when it was planted. Otherwise there is no value, which the answer
        will say.
        """
        # A time or place is of an event: "birth date" does not look like "release date".
        event = without_time_and_place(self.relation) or self.relation
        for predicate in self.predicates:
            other_event = without_time_and_place(predicate.name) or predicate.name
            if max_similarity(event, [other_event], self.embeddings) >= MIN_PREDICATE_SIMILARITY:
                return [f"it asks for “{self.relation}”, and the graph has “{predicate.name}”"]
        return []

    def _find_longer_predicate(self) -> list[str]:
        """Return the reason that a name is only a part of what another predicate is called; else [].

        "Is the hut open in winter?" does not ask for the status "open" where the graph has "open in winter".
        """
        in_names = set(chain.from_iterable(words_of(mention.text) for mention in self.vertices_of))
        names = [predicate.name for predicate in self.predicates]
        names += names_of_other_predicates(self.kg, self.predicates)
        for name in names:
            words = set(words_of(name))
            rest = words - in_names
            is_other = rest != words and name not in self.chosen_names
            if is_other and rest - en.FUNCTION_WORDS and rest.issubset(self.words):
                return [f"the graph has “{name}” for it"]
        return []

    def _find_unknown_truth(self) -> list[str]:
        """Return the reason that the graph does not say whether a fact holds; else [].

        The graph says so if the first name has a predicate like the relation that may lead to the
        other: a person without a birth place in the graph may be born anywhere. Nothing is checked
        for what a thing is ("is X a chemist"), nor for a reading with another number of facts or
        names.
        """
        if len(self.vertices_of) == 1:
            unknown = f"the graph does not say what is asked with “{self.relation}”"
            return [] if self._is_fully_named else [unknown]
        if len(self.reading.facts) != 1 or len(self.vertices_of) != 2:
            return []
        if self.relation == IS_A_RELATION:
            return []
        things = [name for name, ends in self.vertices_of.items() if not are_texts(ends)]
        first = min(things or self.vertices_of)
        for predicate in fetch_predicates(self.kg, self.vertices_of[first]):
            is_unfit = predicate.has_only_numbers or predicate.is_temporal
            if (is_unfit and len(things) == 2) or leads_elsewhere(predicate.name, self.words):
                continue
            if find_similar_predicates(self.relation, [predicate.name], self.embeddings):
                return []
        return [f"the graph does not say of {first.text} what is asked with “{self.relation}”"]

    def _unread_positions(self) -> list[int]:
        """Return where content words stand that nothing accounts for (``_is_accounted_for``)."""
        unread = []
        for position in range(len(self.words)):
            if self._is_content(position) and not self._is_accounted_for(position):
                unread.append(position)
        return unread

    def _is_content(self, position: int) -> bool:
        """Return whether a word carries a meaning of its own; comparing words and superlatives do."""
        word = self.words[position]
        if is_comparing(word):
            return True
        before = self.word_at(position - 1)
        if (word == DIRECT and before in en.DETERMINERS) or is_part_of_verb(before, word):
            return False
        if word in en.PERSON_NOUNS and any(not each.has_only_numbers for each in self.chosen):
            return False
        return word not in EMPTY_WORDS and bool(LETTER_OR_DIGIT.search(word))

    def _is_accounted_for(self, position: int) -> bool:
        """Return whether something in the reading or the graph stands for the word at a position.

        That is a predicate or a class that is like the word. For a question about more than one
        predicate it may also be a relation of the reading, and words for a time or place are not
        looked at. A comparing word or superlative must stand in the name of a predicate.
        """
        word = self.words[position]
        if word == en.FORMERLY:
            return self.is_lookup and self._leads_to_former()
        is_owner = self.word_at(position - 1) == "whose" and self._is_own_class(word)
        if is_comparing(word) or is_owner:  # whose boat is X
            return self._stands_in_predicate(word)
        threshold = MIN_PREDICATE_SIMILARITY
        if self.is_lookup:
            if not self.is_asked_noun(position):
                threshold = MIN_RELATION_SIMILARITY
        elif word in TIME_PLACE_OR_SHARING or self._is_read_relation(word):
            return True
        return (
            self._is_any_class(word, self.value_types)  # what takes no further query is tried first
            or self._is_like_predicate(position, threshold, self.near_names)
            or self._is_class(word)
            or self._is_like_predicate(position, threshold, self._find_far_names())
            or self._needs_no_predicate(position)
        )

    def _needs_no_predicate(self, position: int) -> bool:
        """Return whether a word says no more than the rest of the question, though no predicate is like it.

        It may be a time where one is asked for, a text of the thing, or any label where several
        relations are read. Where the predicate is named, it may say that somebody made something,
        or the kind of a text: "which company is the operator", but not "which engineers were born".
        """
        word = self.words[position]
        if word in en.TIME_WORDS or word in en.PLACE_WORDS:
            return self.kind == "a time" and singularize(word) in en.TIME_WORDS
        if self._describes_name(position):
            return True
        if not self.is_lookup:
            return self._is_label(word)
        if not self._is_fully_named:
            return False
        if any(says_maker(word, predicate) for predicate in self.chosen):
            return True
        is_defined = self.word_at(position + 2) == "the"
        return is_defined and self.is_asked_noun(position) and not self.value_types

    def _is_own_class(self, word: str) -> bool:
        """Return whether a word means a class of the names."""
        return self._is_any_class(word, fetch_class_names(self.kg, self.vertices))

    def _describes_name(self, position: int) -> bool:
        """Return whether a word stands in a text of the thing that is asked about.

        It must stand beside the name and have a capital letter, as the family name after a first
        name that the graph has as a label. A word that tells several things of one name apart may
        stand anywhere.
        """
        word = self.words[position]
        if any(word in mention.text.split() for mention in self.vertices_of):
            return True  # of which year it is
        if len(self.vertices) < 2:
            beside = (self.word_at(position - 1), self.word_at(position + 1))
            if position not in self.capitalized or "" not in beside:
                return False
        return has_text_with(self.kg, self.vertices, word)

    def _find_far_names(self) -> Iterable[str]:
        """Return the names of further predicates that words may ask for: those within two triples."""
        return () if self.is_lookup else predicates_within_two_steps(self.kg, self.vertices)

    def _stands_in_predicate(self, word: str) -> bool:
        """Return whether a word is one of the words of a predicate's name, in normal form."""
        names = chain(self.near_names, self._find_far_names())
        return word in chain.from_iterable(map(words_of, names))

    def _is_like_predicate(self, position: int, threshold: float, names: Iterable[str]) -> bool:
        """Return whether a word, alone or with a neighbour, is like one of some names of predicates.

        It is if they have a stem in common, or if their similarity reaches ``threshold`` and no two
        words of them are rivals.
        """
        for name, phrase in product(names, self._phrases_at(position)):
            if self._is_like(phrase, name, threshold):
                return True
        return False

    def _is_like(self, phrase: str, name: str, threshold: float) -> bool:
        """Return whether a phrase is a form of a word of a predicate's name, or like it in meaning.

        A stem in common is enough. Otherwise their similarity must reach ``threshold``, and no two
        words of them be rivals (see ``are_rivals``).
        """
        phrase_words = words_of(phrase)
        name_words = words_of(name)
        meanings = set(name_words)
        for word in name_words:
            meanings |= MEANINGS.get(stem(word), set())
        stems = {stem(word) for word in meanings - UNSPECIFIC_WORDS}
        if not stems.isdisjoint(map(stem, phrase_words)):
            return True
        if have_rivals(phrase_words, name_words):
            return False
        return max_similarity(phrase, [name], self.embeddings) >= threshold

    def _is_class(self, word: str) -> bool:
        """Return whether a word names a class of the names, or is most like one of theirs or of the values.

        It does if a class is like it, and no other class of the graph is more like it. A word
        between a determiner and a name without a class in the graph does as well ("the contract
        X").
        """
        if self._is_own_class(word):
            return True
        if word in RELATION_PHRASES or en.is_verb(word):
            return False
        # Of all classes of the graph, the one most like the word must be among them
        classes = sorted(names_of_classes(self.kg))
        likeness = max_similarity(word, classes, self.embeddings)
        required = min(max(likeness, MIN_RELATION_SIMILARITY), LIKE_CLASS_SIMILARITY)
        expected = [*self.value_types, *fetch_class_names(self.kg, self.vertices)]
        return max_similarity(word, expected, self.embeddings) >= required

    def _is_read_relation(self, word: str) -> bool:
        """Return whether a word names a relation of the reading."""
        relations = " ".join(relation for _, relation, _ in self.reading.facts)
        return word in relations or relation_phrase(word) in relations

    def _is_label(self, word: str) -> bool:
        """Return whether a word is a label of the graph, or like the name of a class.

        The word counts as it is and in the singular. The graph is asked for the label.
        """
        is_label = bool(self.kg.exact([word, singularize(word)]))
        return is_label or self._is_any_class(word, sorted(names_of_classes(self.kg)))

    def _is_supported(self, positions: Iterable[int] | None = None) -> bool:
        """Return whether a word at some positions, or any, is for the chosen predicate or its values.

        A content word, or a word of a known relation, must be like the predicate
        (MIN_PREDICATE_SIMILARITY), or like a class or datatype that it leads to. A class alone does
        not tell what a text of the graph is to its things: "which bands are from Turin".
        """
        types = [] if are_texts(self.vertices) else self.value_types
        for position in range(len(self.words)) if positions is None else positions:
            word = self.words[position]
            pair = f"{word}_{self.word_at(position + 1)}"
            names_relation = pair in RELATION_PHRASES or word in RELATION_PHRASES
            if not self._is_content(position) and not names_relation:
                continue
            is_like = self._is_like_predicate(position, MIN_PREDICATE_SIMILARITY, self.near_names)
            if is_like or self._is_any_class(word, types):
                return True
        return False

    def find_wrong_values(self) -> Unread:
        """Return the reason that the values of the chosen predicates are of a wrong kind, if they are.

        For predicates that lead to the name, the values are things, which are neither times nor
        numbers, and only some are persons. For others, values are fetched from the graph and compared
        with the kind that is asked for.
        """
        for find in (self._find_no_people, self._find_only_number, self._find_other_class):
            of_class = find()
            if of_class.reasons:
                break
        if of_class.reasons or not self.kind:
            return of_class
        incoming = [predicate for predicate in self.chosen if predicate.is_incoming]
        if incoming:
            if self.kind == "a place" or self._leads_to_kind(incoming[0]):
                return Unread()
            reason = f"it asks for {self.kind}, and things were found"
            return Unread([reason], found_things=True)
        if self.kind == "a time" and any(predicate.is_temporal for predicate in self.chosen):
            return Unread()
        iris = [predicate.iri for predicate in self.chosen]
        values = fetch_values(self.kg, self.vertices, iris)
        reasons = []
        if values and not any(self.kind in kinds_of_value(value) for value in values):
            names = "”, “".join(self.chosen_names)
            reasons = [f"it asks for {self.kind}, and the values of “{names}” are of another kind"]
        return Unread(reasons)

    def _find_only_number(self) -> Unread:
        """Return the reason that the question asks which workers there are, and their number was found, if so.

        "What sales did X have" asks for a number.
        """
        if "which" not in self.words:
            return Unread()
        for position in self.positions:
            noun = self.words[position]
            is_plural = singularize(noun) != noun and noun not in en.TIME_WORDS
            if not (is_plural and self.is_asked_noun(position)):
                continue
            if any(
                each.has_only_numbers and has_word_of_stem(each.name, noun) for each in self.chosen
            ):
                return Unread([f"it asks for “{noun}”, and their number was found"])
        return Unread()

    def _find_no_people(self) -> Unread:
        """Return the reason that the question asks how many people, and things were counted, if so."""
        if "many" not in self.words or PEOPLE.isdisjoint(self.words):
            return Unread()
        for predicate in self.chosen:
            if predicate.has_only_numbers or leads_to_kind(
                self.kg, self.vertices, predicate, "a person"
            ):
                return Unread()
        return Unread(["it asks for people, and things were found"], found_things=True)

    def _find_other_class(self) -> Unread:
        """Return the reason that things of a class are asked for, and others, texts or numbers found, if any."""
        called = self.asked_classes()
        types = set(map(normalize, with_superclasses(self.kg, types_of(self.chosen))))
        last_words = {name.split()[-1] for name in self.chosen_names}
        is_named = not last_words.isdisjoint(called)
        if not called or not types or is_named or "many" in self.words:
            return Unread()
        asked = called[0]
        if types.isdisjoint(names_of_classes(self.kg)):
            return Unread([f"it asks for a “{asked}”, and texts or numbers were found"])
        if asked in PERSON_CLASSES or self._is_any_class(asked, types):
            return Unread()
        return Unread([f"it asks for a “{asked}”, and things were found"], found_things=True)

    def _leads_to_kind(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate leads to the kind of value that is asked for."""
        return leads_to_kind(self.kg, self.vertices, predicate, self.kind)
