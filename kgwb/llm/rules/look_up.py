"""Questions about one name: their words, and which of its predicates in the graph is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from kgwb.kg.base import Direction, Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import UNIT_WORDS, names_unit, normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.classes import (
    CLASS_RELATION,
    MAX_CLASS_WORDS,
    normal_noun,
)
from kgwb.llm.rules.conditions import (
    ANY_EVENT,
    NON_CONTENT_WORDS,
    TRUE,
    is_comparing,
)
from kgwb.llm.rules.grammar import (
    END_OF_QUESTION,
    SHARING_WORDS,
    Fact,
    ParsedQuestion,
    Read,
    Unread,
    expected_value_type,
)
from kgwb.llm.rules.predicates import (
    AGENT_ENDINGS,
    MIN_RELATION_SIMILARITY,
    NAME_SEPARATOR,
    Predicates,
    VertexPredicate,
    Vertices,
    asked_kind,
    fetch_predicates,
    find_similar_predicates,
    has_neighbour_of_two_types,
    leads_to_kind,
    max_similarity,
    names_of_classes,
    names_of_other_predicates,
    predicates_within_two_steps,
    things_at,
    with_superclasses,
    write_name_list,
)
from kgwb.llm.rules.words import (
    KIN_GROUPS,
    RELATION_PHRASES,
    Words,
    are_kin,
    are_rivals,
    compare_wordings,
    has_word_of_stem,
    have_rivals,
    have_same_relation,
    leads_elsewhere,
    leads_to_agent,
    only,
    singularize,
    stem,
    stems_of,
    words_of,
    words_saying,
)

MIN_PREDICATE_SIMILARITY = 0.45
"""Similarity from which a word of the question asks for a predicate."""
MIN_CLASS_SIMILARITY = 0.5
"""Similarity from which a word of the question names a class."""
BUSINESSES = en.word_list("businesses")
COMPANIES = en.word_list("companies")
"""Words for whatever does business: a maker, a supplier."""
A_TRUTH_VALUE = "a truth value"
"""The kind of value that a yes-or-no question about one thing asks for."""
EMPTY_WORDS = NON_CONTENT_WORDS | en.VAGUE_WORDS | en.NEUTRAL_WORDS | en.POLITE_SUBJECTS
"""Words that need nothing in the query to stand for them."""
UNSPECIFIC_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"place", "location", "type", "part"}
"""Words that two relations may have in common and still be different."""
VALUE_KINDS = ("a time", "a place", "a number")
"""What is asked for of each of several things, and seldom in common."""
WORDS_BEFORE_ASKED_NOUN = en.word_list("before_asked_nouns")


def has_other_direction(fact: Fact, name: str, predicate: VertexPredicate) -> bool:
    """Return whether a fact leads another way than a predicate of its name, as wordings tell or leave open."""
    subject, relation, _ = fact
    direction: Direction = "in"
    if predicate.is_incoming != (subject == name):
        direction = "out"
    wording = compare_wordings(relation, predicate.name)
    return wording.contradicts(direction)


class QuestionWords:
    """The words of a question about names of a graph, and how like its predicates and classes they are."""

    def __init__(self, words: Words, kg: Graph, embeddings: Embeddings) -> None:
        """Keep the words in lower case, with "" in the place of names."""
        self.words = words
        self.kg = kg
        self.embeddings = embeddings
        self.value_type, _ = expected_value_type(words)
        self.kind = asked_kind(words)
        self.positions: list[int] = []
        """Where words stand that may ask for a relation.

        Words of NON_CONTENT_WORDS do not, unless two of them are a known relation.
        """
        self.content_words: list[str] = []
        """These words."""
        for position, (word, following) in enumerate(pairwise([*words, ""])):
            is_known = following in NON_CONTENT_WORDS and f"{word}_{following}" in RELATION_PHRASES
            if is_known or word not in NON_CONTENT_WORDS:
                self.positions.append(position)
                self.content_words.append(word)

    def _phrases_at(self, position: int) -> list[str]:
        """Return the phrases that the word at a position may ask for.

        These are the word, its relation phrase, and the relation phrases of the word with what is
        asked for or with a neighbour. If the word with "of" or "from" after it names a relation,
        only that is returned: "made of" does not ask for a maker.
        """
        word = self.words[position]
        word_and_next = f"{word}_{self.word_at(position + 1)}"
        if word_and_next.endswith(("_of", "_from")) and word_and_next in RELATION_PHRASES:
            return [RELATION_PHRASES[word_and_next]]
        before_and_word = f"{self.word_at(position - 1)}_{word}"
        keys = [word, word_and_next, f"{word}_{self.value_type}", f"who_{word}", before_and_word]
        phrases = [word]
        for key in keys:
            if key in RELATION_PHRASES:
                phrases.append(RELATION_PHRASES[key])
        return phrases

    def kin_positions(self) -> list[int]:
        """Return where words stand that may say a relation by their kin."""
        last = len(self.words) - 1
        positions = []
        for position, word in enumerate(self.words):
            is_vague = word in en.VAGUE_WORDS and position < last  # what does X play
            if stem(word) in KIN_GROUPS and word not in NON_CONTENT_WORDS and not is_vague:
                positions.append(position)
        return positions

    def asked_phrases(self) -> list[str]:
        """Return the phrases of up to MAX_CLASS_WORDS words after "which", "what" or "many", or "list the".

        They are in normal form with the last word in the singular, the longest first, then those
        after an adjective. The first such word of the question counts. Returns nothing without one.
        """
        for place, word in enumerate(self.words):
            is_listed = word in ("all", "the") and en.IMPERATIVES.issuperset(self.words[:place])
            if word not in WORDS_BEFORE_ASKED_NOUN and not (is_listed and place):
                continue
            following = self.words[place + 1 : place + 1 + MAX_CLASS_WORDS]
            phrases = []
            for start in (0, 1):
                for end in range(len(following), start, -1):
                    phrase = normal_noun(" ".join(following[start:end]))
                    phrases.append(phrase)
                if NO_ADJECTIVES.intersection(following[:1]):
                    break
            return [phrase for phrase in phrases if phrase]
        return []

    def asked_classes(self) -> list[str]:
        """Return the classes after "which" or "how many", or that their names end in, the longest first."""
        classes = names_of_classes(self.kg)
        return [phrase for phrase in self.asked_phrases() if is_class_called(phrase, classes)]

    def asked_class(self) -> str:
        """Return the longest of these; "" without one."""
        return "".join(self.asked_classes()[:1])

    def word_at(self, position: int) -> str:
        """Return the word at a position; END_OF_QUESTION before the first and after the last."""
        if 0 <= position < len(self.words):
            return self.words[position]
        return END_OF_QUESTION

    def is_asked_noun(self, position: int) -> bool:
        """Return whether a word stands right after "which", "what" or "many"."""
        return self.word_at(position - 1) in WORDS_BEFORE_ASKED_NOUN

    def _says(self, predicate: VertexPredicate, position: int) -> bool:
        """Return whether a predicate's name says the word at a position, as it is or by a known relation."""
        word = self.words[position]
        is_asked = self.is_asked_noun(position)
        if is_asked and self._is_any_class(word, predicate.value_types):
            return True
        said = stems_of(predicate.name)
        for phrase in self._phrases_at(position):
            content = set(phrase.split()) - UNSPECIFIC_WORDS
            if not said.isdisjoint(map(stem, content)):
                return True
        if is_asked:
            return False
        return word in en.VAGUE_WORDS or word in en.TIME_WORDS or says_maker(word, predicate)

    def _is_any_class(self, phrase: str, names: Iterable[str]) -> bool:
        """Return whether a phrase means one of these classes.

        It does if its last word has the stem of a word of the class or is its kin, or if its
        similarity with one of them is at least MIN_CLASS_SIMILARITY, as it is or in the singular.
        """
        listed = list(names)
        for word in words_of(phrase)[-1:]:
            for name in listed:
                if has_word_of_stem(name, word) or are_kin(word, name) or is_company(word, name):
                    return True
        for form in (phrase, singularize(phrase)):
            if max_similarity(form, listed, self.embeddings) >= MIN_CLASS_SIMILARITY:
                return True
        return False


def is_company(word: str, class_name: str) -> bool:
    """Return whether a word is one for what does business, and a class one of these, as manufacturers are."""
    return word in COMPANIES and words_of(class_name)[-1] in BUSINESSES


def predicates_like(
    relation: str, predicates: Predicates, embeddings: Embeddings
) -> list[VertexPredicate]:
    """Return the predicates that are like a relation; without a relation there are none."""
    if not relation:
        return []
    names = [predicate.name for predicate in predicates]
    similar = find_similar_predicates(relation, names, embeddings)
    return [predicate for predicate in predicates if predicate.name in similar]


def fact_of(name: str, predicate: VertexPredicate, other: str) -> Fact:
    """Return the fact that a predicate of a name leads to another end."""
    if predicate.is_incoming:
        return other, predicate.name, name
    return name, predicate.name, other


def is_class_called(phrase: str, classes: Iterable[str]) -> bool:
    """Return whether one of some classes has a name, or has it after an adjective or noun: "ferry", "car ferry"."""
    return any(each == phrase or each.endswith(f" {phrase}") for each in classes)


def _says_or_is_kin(word: str, name: str) -> bool:
    """Return whether a word is a form of a word of a name, or its kin."""
    return has_word_of_stem(name, word) or are_kin(word, name)


def says_maker(word: str, predicate: VertexPredicate) -> bool:
    """Return whether a word for making may stand beside the name of a predicate: "wrote" beside "lyrics by"."""
    return predicate.name.endswith(AGENT_ENDINGS) and are_kin(word, "make")


def types_of(predicates: Predicates) -> set[str]:
    """Return the names of the classes and datatypes that predicates lead to."""
    names: set[str] = set()
    for predicate in predicates:
        names |= predicate.value_types
    return names


def is_lookup(reading: ParsedQuestion) -> bool:
    """Return whether a reading asks for one predicate of one name, and is not a yes-or-no question.

    Further facts may state the class of the answers, or ask for the values behind blank nodes.
    """
    if reading.kind == "boolean" or not reading.facts:
        return False
    further = [relation for _, relation, _ in reading.facts[1:]]
    return all(relation == CLASS_RELATION or NAME_SEPARATOR in relation for relation in further)


MIN_MEANING = 0.33
"""Similarity of the whole question from which it may ask for a predicate that no word of it says."""
MIN_MEANING_OF_KIND = 0.25
"""The same where the predicate must lead to a time, a place, a person or a number."""
MEANING_LEAD = 0.05
"""How much more like it that predicate must be than the next one."""
KIN_LEAD = 0.35
"""How much more like it a predicate of other things may be than one that a word of the question may say."""
_WORDS_OF_PHRASES = " ".join(RELATION_PHRASES.values()).split()
RELATION_WORDS = en.TIME_WORDS.union(en.PLACE_WORDS, _WORDS_OF_PHRASES, ["by"])
"""Words of known relations. Relations of these words alone are not looked up in the graph."""
TIME_AND_PLACE_ENDINGS = ("at", "in", "on")
WHO_WORDS = en.word_list("asking_who")
NO_ADJECTIVES = en.FUNCTION_WORDS - en.DETERMINERS | {""}
SKIPPED_WORDS = en.BE_FORMS | en.DETERMINERS | en.ACTIVE_AUXILIARIES
"""Words that may stand between these and the noun: "what is the"."""


class LookUp(QuestionWords):
    """A question about one name, read by the predicates that the name has in the graph."""

    def __init__(
        self,
        words: Words,
        reading: ParsedQuestion,
        name: str,
        vertices: Vertices,
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        """Keep the words, the grammar's reading, the name, and the vertices that have the name."""
        super().__init__(words, kg, embeddings)
        if reading.kind == "boolean":
            self.kind = A_TRUTH_VALUE
        self.reading = reading
        self.name = name
        self.vertices = vertices
        predicates = fetch_predicates(kg, vertices)
        if en.FORMERLY in words:  # who owned X before: the "former owner"
            former = [each for each in predicates if en.leads_to_former(each.name)]
            predicates = former or predicates
        self.predicates: Predicates = [
            each for each in predicates if not leads_elsewhere(each.name, words)
        ]

    def read(self, last_question: Words) -> ParsedQuestion:
        """Return a reading of the question that the graph can answer, else the grammar's reading.

        The grammar's reading is kept if the graph has predicates like its relations. Otherwise the
        predicate of the name that is most like the words becomes its only relation; if no predicate
        is like them, the grammar's reading is kept as well. A "who" question that the predicates
        cannot answer gets a relation that no predicate is like, and so has no answer.
        Predicates that have only numbers are no answer to "who" or for a place; nor are "made at"
        to "who", and "made by" for a place.
        ``last_question`` are the words of its last sentence with a question word, which are tried
        first. A fact with the class that is asked for is added where ``_with_asked_class`` says so.
        """
        self.reading = self._without_class_relation()
        reading = self._with_place(self._read_by_predicates(last_question))
        return self._with_asked_class(self._with_asked_parts(reading))

    def with_stated_number(self, reading: ParsedQuestion) -> ParsedQuestion:
        """Return a reading that counts, with the only predicate that says how many, if there is one."""
        if reading.kind != "count" or len(reading.facts) != 1:
            return reading
        stated = self._find_stated_number()
        return self._reading_of_predicate(stated) if stated else reading

    def _find_stated_number(self) -> VertexPredicate | None:
        """Return the only predicate that says the number of what is asked for: "number of members"; else None.

        It may be called by that alone, if it has only numbers: "goals", which are not counted by who scored them.
        """
        asked = set(map(stem, self.content_words))
        nouns = [
            self.words[position] for position in self.positions if self.is_asked_noun(position)
        ]
        stating = []
        for predicate in self.predicates:
            words = set(words_of(predicate.name)) - {"of"}
            counted = words - {"number", "count"}
            is_number = counted < words or (predicate.has_only_numbers and words <= set(nouns))
            if counted and is_number and asked.issuperset(map(stem, counted)):
                stating.append(predicate)
        return only(stating)

    def _read_by_predicates(self, last_question: Words) -> ParsedQuestion:
        """Return the reading of ``read``, without parts and the class that is asked for."""
        facts = self.reading.facts
        has_one_fact = len(facts) == 1
        whole = self._find_compound() if len(facts) > 1 else self._find_inverse()
        whole = self._find_number_of_people() or whole or self._find_joined_verb()
        if whole is not None:
            return self._reading_of_predicate(whole)

        unfit: list[VertexPredicate] = []
        asks_who = not WHO_WORDS.isdisjoint(self.words) and not self.value_type
        if has_one_fact and (asks_who or self.value_type == "place"):
            unfit = [each for each in self.predicates if self._is_unfit(each, asks_who)]
        predicates = [each for each in self.predicates if each not in unfit]
        relation = self._first_relation_of_name()
        similar = predicates_like(relation, predicates, self.embeddings)
        similar_unfit = predicates_like(relation, unfit, self.embeddings)
        if asks_who and similar_unfit and not similar:
            kin = self._find_kin(predicates)
            if kin is None:
                return self._with_facts((self.name, "who", "?answer"))
            return self._reading_of_predicate(kin)

        chosen = None
        if has_one_fact and len(similar) > 1:
            chosen = self._choose_similar(similar)
        is_read = similar and not similar_unfit and self._has_all_relations(similar)
        if chosen is None and is_read:
            chosen, *others = similar
            is_ambiguous = others or not has_one_fact
            if is_ambiguous or not self._asks_for_others(relation, chosen):
                return self.reading
        chosen = chosen or self._find_asked(last_question, predicates)
        return self._reading_of_predicate(chosen) if chosen else self.reading

    def _with_place(self, reading: ParsedQuestion) -> ParsedQuestion:
        """Return a reading of two facts of which the last leads to a place, if one is asked for.

        Where somebody was born is "born in", and not the "year of birth" that is like it, too.
        """
        if self.kind != "a place" or len(reading.facts) != 2 or self.name not in reading.facts[0]:
            return reading
        first, (subject, relation, object_) = reading.facts
        ways = predicates_like(first[1], self.predicates, self.embeddings)
        things = things_at(self.kg, self.vertices, ways)
        similar = predicates_like(relation, fetch_predicates(self.kg, things), self.embeddings)
        places = [each for each in similar if leads_to_kind(self.kg, things, each, self.kind)]
        if len(places) != 1 or len(similar) == 1:
            return reading
        if have_rivals(words_of(relation), words_of(places[0].name)):
            return reading  # where somebody died is not the "birth place"
        return reading._replace(facts=(first, (subject, places[0].name, object_)))

    def _find_asked(self, last_question: Words, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that the words ask for, or else may say by their kin; None if none is."""
        asked = None
        if last_question:
            asked = AskedPredicate(last_question, self.kg, self.embeddings).find(predicates)
        if asked is None:
            asked = AskedPredicate(self.words, self.kg, self.embeddings).find(predicates)
        is_said = asked and any(self._says(asked, position) for position in self.positions)
        if is_said or len(self.reading.facts) != 1:
            return asked
        return self._find_kin(predicates) or asked

    def _first_relation_of_name(self) -> str:
        """Return the relation of the first fact with the name; "" if none has it."""
        for subject, relation, object_ in self.reading.facts:
            if self.name in (subject, object_):
                return relation
        return ""

    def _find_number_of_people(self) -> VertexPredicate | None:
        """Return the only number that may say how many people: they live in it, a population; else None."""
        if "people" not in self.words or "many" not in self.words:
            return None
        return self._find_kin([each for each in self.predicates if each.has_only_numbers])

    def _find_joined_verb(self) -> VertexPredicate | None:
        """Return the only predicate that stands right before the name, or at the end: nurses "work on" X; else None.

        Else the head nurse of X would be a nurse, too, and the former club of X one that X does "play for".
        """
        place = self.words.index("")
        before, after = self.words[:place], self.words[place + 1 :]
        found = []
        for predicate in self.predicates:
            words = list(map(stem, words_of(predicate.name)))
            is_joined = len(words) > 1 and words[-1] in en.PREPOSITIONS - {"of"}
            said = before if predicate.is_incoming else after
            said = [stem(word) for word in said if word not in en.DETERMINERS]
            if is_joined and said[-len(words) :] == words:
                found.append(predicate)
        is_single = len(self.reading.facts) == 1
        return only(found) if is_single and self.asked_class() else None

    def _find_inverse(self) -> VertexPredicate | None:
        """Return the only predicate whose declared inverse is what a reading of one fact asks for, else None.

        It is not looked for where the name has a predicate like the relation.
        """
        predicate_of: dict[VertexPredicate, VertexPredicate] = {}
        for predicate in self.predicates:
            name = predicate.inverse_name
            if name:
                inverse = replace(predicate, name=name, is_incoming=not predicate.is_incoming)
                predicate_of[inverse] = predicate
        if not predicate_of or len(self.reading.facts) != 1:
            return None
        [fact] = self.reading.facts
        _, relation, _ = fact
        if predicates_like(relation, self.predicates, self.embeddings):
            return None
        found = []
        for inverse in predicates_like(relation, list(predicate_of), self.embeddings):
            if not has_other_direction(fact, self.name, inverse):
                found.append(predicate_of[inverse])
        return only(found)

    def _is_unfit(self, predicate: VertexPredicate, asks_who: bool) -> bool:
        """Return whether a predicate is no answer to "who", or else for a place, by its name and values.

        Who "runs" a line is not what "runs on" it.
        """
        last_word = words_of(predicate.name)[-1]
        if predicate.has_only_numbers:
            return True
        if not asks_who:
            return last_word == "by"
        if not predicate.is_incoming:
            return last_word == "at" or self._has_verb_of_another(predicate)
        is_joined = last_word not in ("by", "of") and last_word in en.PREPOSITIONS
        return is_joined and en.PREPOSITIONS.isdisjoint(self.words)

    def _has_verb_of_another(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate has the verb after "who", and leads to somebody else.

        Who "recorded" X is not its "record label", and who "prescribed" X not whom it is "prescribed
        to". Who "was prescribed" X is not whom it is "prescribed by".
        """
        name = predicate.name
        last_word = words_of(name)[-1]
        words = [word for word in self.words if word not in en.BE_FORMS]
        is_passive = len(words) < len(self.words)
        for word, verb in pairwise(words):
            if word not in WHO_WORDS or verb in en.AUXILIARIES or not has_word_of_stem(name, verb):
                continue
            if is_passive:
                return en.is_verb(verb) and leads_to_agent(name)
            is_whole = last_word in TIME_AND_PLACE_ENDINGS or stem(last_word) == stem(verb)
            return not (is_whole or leads_to_agent(name))
        return False

    def _choose_similar(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate of several like ones that the question means; None if nothing tells.

        It is the only one of the asked kind of whose name the question says each word ("gold medal"),
        or a word, or else the only kin of a word, or the only one for a time or not.
        """
        stems = set(map(stem, set(self.content_words) - UNSPECIFIC_WORDS))
        found = []
        for predicate in predicates:
            is_said = not stems.isdisjoint(stems_of(predicate.name))
            if is_said and self._leads_to_asked_kind(predicate):
                found.append(predicate)
        named = [each for each in found if stems_of(each.name) <= stems]
        for said in (named, found):
            if len(said) == 1:
                return said[0]
        return self._find_kin(predicates) or self._find_only_timely(predicates)

    def _find_only_timely(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the only predicate for a time, or the only other one, as is asked for; None if there are more.

        "What did X die of" asks for no date.
        """
        if not en.TIME_WORDS.isdisjoint(self.words):
            return None
        asks_when = self.kind == "a time"
        return only([each for each in predicates if each.is_temporal == asks_when])

    def _asks_for_others(self, relation: str, predicate: VertexPredicate) -> bool:
        """Return whether a relation is like others, too, by its " by" alone: "written by", "translated by"."""
        if not relation.endswith(" by"):
            return False
        names = [each.name for each in self.predicates]
        similar = find_similar_predicates(relation, names, self.embeddings)
        return any(name != predicate.name for name in similar)

    def _find_kin(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the only predicate that a word of the question may say, by its kin; None if none is.

        It must lead to the kind of value that is asked for. The answer will be in doubt.
        """
        words = [self.words[position] for position in self.kin_positions()]
        found = []
        for predicate in predicates:
            leads_elsewhere = self.kind == "a place" and predicate.name.endswith(AGENT_ENDINGS)
            if predicate.is_temporal != (self.kind == "a time") or leads_elsewhere:
                continue
            is_said = any(are_kin(word, predicate.name) for word in words)
            if is_said and (self.kind != "a time" or self._leads_to_asked_kind(predicate)):
                found.append(predicate)
        numbers = [predicate for predicate in found if predicate.has_only_numbers]
        if numbers and "many" in self.words:  # how many people live in X
            found = numbers
        return only(found)

    def read_by_meaning(self) -> Read | None:
        """Return a reading by the predicate that is nearest to the question in meaning, with a doubt.

        The question without the name is compared with the predicates that lead to what is asked for:
        with their names, and with these beside the class that they lead to. If some are kin of a word,
        only these count. The nearest one must have MEANING_LEAD over the next name. If it is no kin, it
        must have MIN_MEANING, too, and no predicate of other things be nearer: what the graph says of
        others, it would say of this thing, too. The only one that leads to the class that is asked for
        needs none of this.

        None if there is no such predicate, if a word selects or compares, or if the question has
        another clause ("what was ... when ...") or seems to have several relations.
        """
        if self._asks_for_more():
            return None
        of_class = self._predicates_of_asked_class()
        fitting = self._fitting_predicates(of_class)
        kin = [predicate for predicate in fitting if self._is_kin(predicate)]
        all_stems = stems_of(" ".join(self.words).replace(" 's", "'s"))
        whole = only([each for each in kin if stems_of(each.name).issubset(all_stems)])
        if whole is not None:  # the men's winner, and not any winner
            kin = [whole]
        kin_names = [predicate.name for predicate in kin]
        if any(are_rivals(name, other) for name, other in combinations(kin_names, 2)):
            return None  # relatives are not only fathers
        predicate = self._nearest(kin or fitting)
        if predicate is None or self._is_about_else(predicate):
            return None
        is_only_of_class = of_class is not None and len({each.name for each in fitting}) == 1
        if not is_only_of_class and not self._stands_out(predicate.name, fitting, kin):
            return None

        if self.kind == A_TRUTH_VALUE:
            fact = (self.name, predicate.name, TRUE)
            reading = self.reading._replace(facts=(fact,), target=self.name)
        else:
            reading = self._with_asked_parts(self._reading_of_predicate(predicate))
            reading = self._with_asked_class(reading)
        said = self._telling_words()
        stems = stems_of(predicate.name)
        if stems.issuperset(map(stem, said)) and stems.issubset(map(stem, self.words)):
            return reading, Unread()
        taken = f"“{' '.join(said)}”" if said else "the question"
        doubt = f"{taken} was read as “{predicate.name}”"
        return reading, Unread((), [doubt])

    def _telling_words(self) -> list[str]:
        """Return the words for which something in the query must stand."""
        return [word for word in self.words if word not in EMPTY_WORDS]

    def _asks_for_more(self) -> bool:
        """Return whether a word selects or compares, or the question has several clauses or relations."""
        for word in self.words:
            if is_comparing(word) or word in en.ORDINALS:
                return True
        if sum(word in en.WH_WORDS for word in self.words) > 1:
            return True
        is_single = is_lookup(self.reading) or self.kind == A_TRUTH_VALUE
        return not is_single and len(self._telling_words()) > 1 and self._is_of_name()

    def _nearest(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the first predicate with the name that is nearest to the question; None without predicates."""
        if not predicates:
            return None
        _, name = max(self._by_meaning(predicates))
        return next(each for each in predicates if each.name == name)

    def _by_meaning(self, predicates: Predicates) -> list[tuple[float, str]]:
        """Return how near predicates are to the question, with their names."""
        text = self._text_without_name()
        return [(self._meaning(each, text), each.name) for each in predicates]

    def _stands_out(self, name: str, fitting: Predicates, kin: Predicates) -> bool:
        """Return whether the nearest name is nearer to the question than others, of this thing and of all."""
        by_meaning = self._by_meaning(kin or fitting)
        likeness, _ = max(by_meaning)
        if any(near > likeness - MEANING_LEAD and other != name for near, other in by_meaning):
            return False
        names = {each.name for each in fitting}
        if self.kind == "a time" and len(names) == 1 and stems_of(name) <= ANY_EVENT:
            return True
        others = self._likeness_of_others(self._text_without_name())
        if kin and others <= likeness + KIN_LEAD:
            return True
        says_other = any(stem(word) in KIN_GROUPS for word in self._telling_words())
        least = MIN_MEANING_OF_KIND
        if says_other or not self.kind:
            least = MIN_MEANING
        return likeness >= least and others <= likeness + MEANING_LEAD

    def _is_of_name(self) -> bool:
        """Return whether the question is about something of the name: "the cook of X", "X's cook"."""
        place = self.words.index("")
        before = [word for word in self.words[:place] if word not in en.DETERMINERS]
        return before[-1:] == ["of"] or "'s" in self.words[place:]

    def _fitting_predicates(self, of_class: Predicates | None) -> Predicates:
        """Return the predicates that lead to what is asked for: to things of a class, or a kind of value."""
        predicates = self.predicates
        counts = "many" in self.words and not self.kind
        if of_class is not None:
            predicates = of_class
            counts = False
        fitting = []
        for predicate in predicates:
            is_counted = predicate.has_only_numbers or not counts
            if is_counted and self._leads_to_asked_kind(predicate):
                fitting.append(predicate)
        return fitting

    def _is_kin(self, predicate: VertexPredicate) -> bool:
        """Return whether a word of the question may say a predicate, by its stem or by its kin."""
        stems = stems_of(predicate.name)
        name = predicate.name
        for position in {*self.positions, *self.kin_positions()}:
            word = self.words[position]
            is_telling = en.is_verb(word) or self.is_asked_noun(position)
            if are_kin(word, name) or (is_telling and stem(word) in stems):
                return True
        return False

    def _text_without_name(self) -> str:
        """Return the words of the question, those for a known relation by its phrase."""
        phrases = []
        for position, word in enumerate(self.words):
            if word:
                phrases.append(self._phrases_at(position)[0])
        return " ".join(phrases)

    def _meaning(self, predicate: VertexPredicate, text: str) -> float:
        """Return how near a predicate is to a text in meaning, by its name alone or with a class beside it."""
        name = predicate.name
        names = [name]
        if predicate.value_types and not predicate.has_only_numbers:
            first_class = min(predicate.value_types)
            if predicate.is_incoming:
                names.append(f"{first_class} {name}")
            else:
                names.append(f"{name} {first_class}")
        return max(self.embeddings.similarity(text, names))

    def _likeness_of_others(self, text: str) -> float:
        """Return how near the predicates that only other things have are to a text; 1.0 if the question says one."""
        others = names_of_other_predicates(self.kg, self.predicates)
        said = set(map(stem, self._telling_words()))
        if any(said.issuperset(stems_of(name)) for name in others):
            return 1.0
        return max(self.embeddings.similarity(text, others), default=0.0)

    def _is_about_else(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate is not what is asked for, though it is near in meaning.

        It is the rival of a word, or has another direction than the question. Or one word says it,
        and another makes that something else: a population density is no population, and women who
        were influenced are not all who were. A noun after the name may belong to the name.
        """
        name_words = words_saying(predicate.name)
        stems = stems_of(predicate.name)
        is_said = not stems.isdisjoint(map(stem, self.content_words))
        for position, (word, following) in enumerate(pairwise([*self.words, ""])):
            if have_rivals([word], name_words):
                return True
            if following not in EMPTY_WORDS and not en.is_verb(following):
                is_said_word = stem(word) in stems and stem(following) not in stems
                if is_said_word:
                    return True
            is_other = self._asks_for_other_class(position, predicate)
            are_things = "many" not in self.words and word not in en.TIME_WORDS
            if is_other and are_things and predicate.has_only_numbers:
                return True
            if is_said and is_other:
                may_be_person = leads_to_kind(self.kg, self.vertices, predicate, "a person")
                return may_be_person or normal_noun(word) in names_of_classes(self.kg)
        facts = self.reading.facts
        return bool(facts) and has_other_direction(facts[0], self.name, predicate)

    def _asks_for_other_class(self, position: int, predicate: VertexPredicate) -> bool:
        """Return whether the word at a position asks for a class that a predicate does not lead to."""
        if not self.is_asked_noun(position) or position not in self.positions:
            return False
        expected = [predicate.name, *predicate.value_types]
        return not self._is_any_class(self.words[position], expected)

    def _is_of_class(self, predicate: VertexPredicate, asked: str) -> bool:
        """Return whether a predicate leads to a class, or one below it."""
        types = with_superclasses(self.kg, predicate.value_types)
        return is_class_called(asked, map(normalize, types))

    def _predicates_of_asked_class(self) -> Predicates | None:
        """Return the predicates that lead to the class after "which" or "how many"; None without one."""
        asked = self.asked_class()
        if not asked:
            return None
        number = self._find_number_of_people() or self._find_stated_number()
        if number is not None:
            return [number]
        leading = [each for each in self.predicates if self._is_of_class(each, asked)]
        before_name = self.words[: self.words.index("")]
        incoming = [predicate for predicate in leading if predicate.is_incoming]
        if len(incoming) == 1 and not en.PREPOSITIONS.isdisjoint(before_name[-1:]):
            return incoming  # which mountains are in X, and not its highest mountain
        return leading

    def read_by_two(self) -> Read | None:
        """Return a reading, in doubt, by the only two predicates, one after the other, that lead to what is asked for.

        The glacier of an ice core is where it was drilled: one predicate must not lead to the class, and
        other words say no other relation, but may ask for a place. Else one word says the class of an
        event, and the others what is said of it: who inspected X is the inspector of an inspection of X.
        None if there are no such predicates, or several.
        """
        asked = self.asked_class()
        is_far = self._predicates_of_asked_class() == []
        said = []
        for word in self._telling_words():
            is_other = stem(word) in KIN_GROUPS and not are_kin(
                word, f"location origin home route {asked}"
            )
            if word not in en.PERSON_NOUNS and (is_other or not is_far):
                said.append(word)
        is_vague = not said and (not is_far or asked in en.PERSON_NOUNS | en.PROFESSIONS)
        if self._asks_for_more() or is_vague:
            return None  # who is in a town
        ways = []
        told = []
        for first, things, second in self._find_ways():
            names = " ".join(
                [first.name, second.name, *first.value_types, *second.value_types, asked]
            )
            is_said = all(_says_or_is_kin(word, names) for word in said)
            is_way = is_far or self._tells_of_event(said, first, second)
            if is_said and is_way and self._leads_on(things, second):
                ways.append((first, second))
                if any(_says_or_is_kin(word, second.name) for word in said):
                    told.append((first, second))
        way = only(told or ways)
        if way is None:
            return None
        first, second = way
        facts = (fact_of(self.name, first, "?x1"), fact_of("?x1", second, "?answer"))
        doubt = f"it was read as “{second.name}” of what “{first.name}” leads to"
        return self._with_facts(*facts), Unread((), [doubt])

    def _find_ways(self) -> Iterator[tuple[VertexPredicate, Vertices, VertexPredicate]]:
        """Yield each predicate that leads to things, with these, and each of their predicates."""
        for first in self.predicates:
            things = () if first.has_only_numbers else things_at(self.kg, self.vertices, [first])
            for second in fetch_predicates(self.kg, things) if things else ():
                yield first, things, second

    def _tells_of_event(self, said: Words, first: VertexPredicate, second: VertexPredicate) -> bool:
        """Return whether words say the class of what a predicate of an event leads from, or a number of it."""
        if not first.is_incoming or second.is_incoming or second.name == first.name:
            return False
        if "many" in self.words and len(words_of(second.name)) > 1:
            return stems_of(second.name).issubset(map(stem, said))
        classes = " ".join(first.value_types)
        is_told = any(_says_or_is_kin(word, classes) for word in said)
        return is_told and not leads_to_kind(self.kg, self.vertices, first, "a person")

    def _leads_on(self, things: Vertices, predicate: VertexPredicate) -> bool:
        """Return whether a predicate of things leads to the class or kind that is asked for, or to a number of many."""
        asked = self.asked_class()
        if asked:
            return self._is_of_class(predicate, asked)
        if not self.kind:
            return "many" in self.words and predicate.has_only_numbers
        is_unfit = self.kind == "a person" and self._is_unfit(predicate, asks_who=True)
        return not is_unfit and leads_to_kind(self.kg, things, predicate, self.kind)

    def _leads_to_asked_kind(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate leads to the kind of value that the question words ask for, if any."""
        if self.kind == A_TRUTH_VALUE:
            return "boolean" in predicate.value_types
        return not self.kind or leads_to_kind(self.kg, self.vertices, predicate, self.kind)

    def _find_compound(self) -> VertexPredicate | None:
        """Return the only predicate whose name says all content words of a question, at least two.

        "Since when has X been a member" asks for "member since", and not for the date of a member.
        "Who is the author of the script of X" asks for "written by": both words say it. The noun
        after "which" may also be a class that the predicate leads to. Forms of one word are a
        chain: "directed by the director of X".
        """
        words = self.content_words
        stems = set(map(stem, words))
        if len(stems) < len(words) or len(words) < 2 or not SHARING_WORDS.isdisjoint(words):
            return None
        found = []
        for predicate in self.predicates:
            is_said = all(self._says(predicate, position) for position in self.positions)
            if is_said and self._leads_to_asked_kind(predicate):
                found.append(predicate)
        return only(found)

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
        similarities = [max_similarity(each, names, self.embeddings) for each in unusual]
        return min(similarities, default=1.0) >= MIN_PREDICATE_SIMILARITY

    def _with_facts(self, *facts: Fact) -> ParsedQuestion:
        """Return the reading with other facts, which ask for "?answer"."""
        return self.reading._replace(facts=facts, target="?answer")

    def _reading_of_predicate(self, predicate: VertexPredicate) -> ParsedQuestion:
        """Return a reading that asks for the other end of a predicate of the name.

        If that is a blank node, a second fact asks for its values by all its predicates.
        """
        if predicate.inner_predicates:  # of outgoing ones alone
            return self._reading_of_parts(predicate, predicate.inner_predicates)
        return self._with_facts(fact_of(self.name, predicate, "?answer"))

    def _reading_of_parts(self, predicate: VertexPredicate, parts: Sequence[str]) -> ParsedQuestion:
        """Return a reading that asks for values of the blank nodes that a predicate leads to."""
        first = (self.name, predicate.name, "?x1")
        return self._with_facts(first, ("?x1", write_name_list(parts), "?answer"))

    def _with_asked_parts(self, reading: ParsedQuestion) -> ParsedQuestion:
        """Return a reading that asks for those parts of a value without a name that are asked for.

        A reading that asks for another value stays as it is, and so does one for the whole value.
        """
        if not is_lookup(reading):
            return reading
        _, relation, _ = reading.facts[0]
        similar = predicates_like(relation, self.predicates, self.embeddings)
        if len(similar) == 1 and not similar[0].is_incoming:
            parts = self._find_asked_parts(similar[0].inner_predicates, similar[0].name)
            if parts:
                return self._reading_of_parts(similar[0], parts)
        return reading

    def _find_asked_parts(self, inner: Sequence[str], outer: str) -> list[str]:
        """Return the predicates of a blank node that the question asks for; [] if it asks for all.

        ``outer`` is the name of the predicate that leads to the node. It names no part.
        They are those that a word of the question names, or another word for a place. If none is
        named, they are all but the units: a length is asked for without its unit.
        """
        named: set[str] = set()
        for word in self.words:
            named_by_word = []
            if word != outer and word not in NON_CONTENT_WORDS:
                named_by_word = [name for name in inner if has_word_of_stem(name, word)]
            if word in en.PLACE_WORDS and not named_by_word:
                named_by_word = find_similar_predicates(word, inner, self.embeddings)[:1]
            named.update(named_by_word)
        parts = [name for name in inner if name in named]
        without_units = [name for name in inner if not names_unit(name)]
        if not parts and len(without_units) < len(inner):
            return without_units
        return [] if UNIT_WORDS.issuperset(parts) else parts

    def _without_class_relation(self) -> ParsedQuestion:
        """Return the grammar's reading, without its second relation if that is the name of a class.

        In "which maps are kept in X", "maps" is not a relation of what is kept in X if the graph
        has a class of that name, and no predicate of that name within two triples of X. The
        relation must be the second of two, stand after the question word, and lead to what is asked
        for. Otherwise the reading stays.
        """
        reading = self.reading
        if len(reading.facts) != 2:
            return reading
        first, (subject, relation, target) = reading.facts
        if not subject.startswith("?") or target != reading.target:
            return reading
        noun = normal_noun(relation)
        if noun not in self.asked_phrases() or noun not in names_of_classes(self.kg):
            return reading
        for name in predicates_within_two_steps(self.kg, self.vertices):
            if noun in map(singularize, words_of(name)):
                return reading
        return reading._replace(facts=(first,), target=subject)

    def _with_asked_class(self, reading: ParsedQuestion) -> ParsedQuestion:
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
        predicates = predicates_like(relation, self.predicates, self.embeddings)
        names = [normalize(predicate.name) for predicate in predicates]
        types = set(map(normalize, types_of(predicates)))
        has_untyped = any(predicate.has_untyped_values for predicate in predicates)
        if not types or all(predicate.has_only_numbers for predicate in predicates):
            return reading
        for phrase in self.asked_phrases():
            is_only_type = types == {phrase} and not has_untyped
            is_only_type |= phrase == "person" and phrase not in types  # vets are people, too
            is_only_type |= phrase not in types and all(is_company(phrase, each) for each in types)
            if phrase in names or is_only_type:
                return reading
            is_class_name = phrase in types or phrase in names_of_classes(self.kg)
            if is_class_name and not has_neighbour_of_two_types(self.kg, self.vertices):
                fact = (reading.target, CLASS_RELATION, phrase)
                return reading._replace(facts=(*reading.facts, fact))
        return reading


class AskedPredicate(QuestionWords):
    """The words of a question, by which the predicate that it asks for is found."""

    def find(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that the question asks for; None if none fits.

        Of the predicates with MIN_PREDICATE_SIMILARITY to a word, it is the one with the largest
        sum over all words; None if a word that it does not explain asks for something else. If no
        word is that like a predicate, it is the only one whose value type is named, or else the
        only predicate; None if it leaves any word unexplained. For a question for a date, only
        predicates of time are looked at.
        """
        if self.value_type == "date":
            predicates = [predicate for predicate in predicates if predicate.is_temporal]
        likeness_of = {predicate: self._likeness(predicate) for predicate in predicates}
        similar = []
        for predicate, likeness in likeness_of.items():
            if max(likeness.values(), default=0.0) >= MIN_PREDICATE_SIMILARITY:
                similar.append(predicate)
        if similar:
            best = max(similar, key=lambda predicate: sum(likeness_of[predicate].values()))
            unexplained = self._unexplained(best, likeness_of[best])
            return None if any(map(self._asks_for_something_else, unexplained)) else best
        fitting = [predicate for predicate in predicates if self._names_type(predicate)]
        chosen = only(fitting or predicates)
        if chosen is None or self._unexplained(chosen, likeness_of[chosen]):
            return None
        return chosen

    def _names_type(self, predicate: VertexPredicate) -> bool:
        """Return whether a content word names a class or datatype that a predicate leads to."""
        types = predicate.value_types
        return any(self._is_any_class(word, types) for word in self.content_words)

    def _likeness(self, predicate: VertexPredicate) -> dict[int, float]:
        """Return the similarity of each content word with a predicate of the name, by position.

        A word is compared with its phrases, and with each neighbour; the best counts. It is equal to
        the predicate's own name if that has the word, or says the same known relation.
        """
        names = [predicate.name, *predicate.inner_predicates]
        own_name = normalize(predicate.name)
        likeness = {}
        for position in self.positions:
            word = self.words[position]
            if have_same_relation(word, own_name) or has_word_of_stem(own_name, word):
                likeness[position] = 1.0
                continue
            with_previous = self.words[max(position - 1, 0) : position + 1]
            with_next = self.words[position : position + 2]
            phrases = [*self._phrases_at(position), " ".join(with_previous), " ".join(with_next)]
            similarities = [max_similarity(phrase, names, self.embeddings) for phrase in phrases]
            likeness[position] = max(similarities)
        return likeness

    def _unexplained(self, predicate: VertexPredicate, likeness: Mapping[int, float]) -> list[int]:
        """Return the positions of the content words that a predicate does not explain.

        It explains words with MIN_RELATION_SIMILARITY, words for a time, and those that name the
        class or datatype that it leads to.
        """
        unexplained = []
        for position in self.positions:
            word = self.words[position]
            is_explained = likeness[position] >= MIN_RELATION_SIMILARITY or word in en.TIME_WORDS
            if not is_explained and not self._is_any_class(word, predicate.value_types):
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
        before = [other for other in self.words[:position] if other not in SKIPPED_WORDS]
        is_asked = before and before[-1] in WORDS_BEFORE_ASKED_NOUN
        if is_asked or word in RELATION_PHRASES:
            return True
        following = self.words[position + 1 : position + 3]
        return "of" in following[:1] and en.WH_WORDS.isdisjoint(following)
