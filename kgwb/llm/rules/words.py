"""The words of a question for the model ``rules``: word lists, word forms, tokens, and the names among them.

The lists are in ``lexicon.toml``. ``looks_english`` tells whether a text is English at all. Names are
text in square brackets, labels of the graph, and capitalised words.

The name of a relation says which end of its triples is which. "Parent of" names the subject as the
parent, and "has parent" the object. "Feeds" has the feeder as its subject, and "fed by" as its object.
The relation of a question is such a name, too, and two names are compared by the words that both have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, wraps
from itertools import chain
from typing import Concatenate, Literal, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

from rdflib import URIRef

from kgwb import disk
from kgwb.kg.base import Direction, Graph
from kgwb.kg.label_search import normalize
from kgwb.kg.names import replace_marks
from kgwb.terms import CAMEL_CASE_BOUNDARY

LEXICON = disk.read_table("llm/rules/lexicon.toml")


def word_list(name: str) -> frozenset[str]:
    """Return the words of one list in the section "words" of the lexicon."""
    return frozenset(LEXICON["words"][name].split())


WH_WORDS = word_list("wh")
AUXILIARIES = word_list("auxiliaries")
BE_FORMS = word_list("being")
HAVE_FORMS = word_list("having")
ACTIVE_AUXILIARIES = word_list("active")
"""Forms of "do" and "have". The main verb of a question with one of them is active."""
LIGHT_VERBS = word_list("light_verbs")
"""Verbs that name no relation: "come", "include", "called"."""
VERB_FORMS = word_list("verb_forms")
"""Verb forms that do not end in "ed" or "ing"."""
DETERMINERS = word_list("determiners")
PREPOSITIONS = word_list("prepositions")
RELATIVES = word_list("relatives")
FILLERS = word_list("fillers")
"""Words that change nothing in a question: "actually", "please", "exactly"."""
PRONOUNS = word_list("pronouns")
NATIONALITIES = word_list("nations")
"""Adjectives of nationality without one of the usual endings: "German", "Dutch"."""
IMPERATIVES = word_list("imperatives")
NAME_CONNECTORS = word_list("joining")
"""Words that may stand in the middle of a name: "of", "and", "van"."""
WORDS_BEFORE_NOUNS = word_list("noun_next")
"""Words after which a word is a noun, even if it looks like a verb: "the", "whose"."""
QUESTION_WORDS = word_list("asking")
"""Words that ask for the noun after them: "which", "whose", "how many"."""
TIME_WORDS = word_list("times")
PLACE_WORDS = word_list("places")
WOMEN = word_list("women")
MEN = word_list("men")
"""Relatives who are men, beside WOMEN."""
PERSON_NOUNS = word_list("persons")
"""Words for somebody of whom no more is said: "the guy who". "Women" says more."""
FORMERLY = "formerly"
"""How "before" at the end of a question is read: "who coached X before"."""
PAST_WORDS = word_list("past")
"""Words in the name of a predicate for what was and is no longer: "former club"."""
EVENTS = word_list("events")
"""Nouns for events that have a time and a place: "birth", "publication"."""
PERSONAL_PRONOUNS = word_list("personal")
PROFESSIONS = word_list("professions")
GROUPS = word_list("groups")
"""Nouns for several persons who act as one: "company", "orchestra"."""
ORDINALS = word_list("ordinals")
"""Words that select one of several things: "second", "last"."""
DESCRIBING_VERBS = word_list("describing")
"""Verbs with which "how" asks for a kind or topics, and not for a manner."""
SUBJECTS = word_list("subjects")
"""Pronouns that are the subject of a verb."""
POLITE_SUBJECTS = word_list("polite")
"""Subjects of polite openings such as "Can you" and "Does anyone"."""
VAGUE_WORDS = word_list("vague")
"""Words that are too general to ask for a relation of their own: "matter", "kind"."""
NEUTRAL_WORDS = word_list("neutral")
"""Words that change little: a graph that has one language of a film means the main one."""
SMALL_TALK_WORDS = word_list("small_talk")
PLACED_EVENTS = word_list("located")
"""Events and states that have a place, which lies in a country: "born", "headquartered"."""
PRODUCTION_EVENTS = word_list("sited")
"""Those of them that have a site, which lies in a city: "built", "manufactured"."""
FUNCTION_WORDS = WH_WORDS | AUXILIARIES | DETERMINERS | PREPOSITIONS | RELATIVES | FILLERS
NON_NAME_WORDS = FUNCTION_WORDS | LIGHT_VERBS | PRONOUNS | SMALL_TALK_WORDS
"""Words that name nothing, even if they are capitalised because they begin a sentence."""


def keys_by_word(section: str) -> dict[str, str]:
    """Return for each word of the lists in a section of the lexicon the key of its list.

    A word of several lists has the last one.
    """
    keys: dict[str, str] = {}
    for key, words in LEXICON[section].items():
        keys |= dict.fromkeys(words.split(), key)
    return keys


RELATION_PHRASES = keys_by_word("senses")
"""For a word, the phrase by which graphs tend to name its relation: "speed" for "fast".

Words that belong together are joined by underscores: "come_out".
"""
GENDERS = keys_by_word("genders")
"""For what a graph may say of the gender of a person, "she" or "he"."""
IRREGULAR_FORMS = keys_by_word("forms")
"""For a form such as "built", its word."""


ENDINGS = LEXICON["words"]["endings"].split()
"""Endings of words that one stem may have, longer ones before those that they end in."""
MIN_STEM_CHARS = 3
Words = Sequence[str]
"""Words of a question in lower case."""
PUNCTUATION = r"\s\"'“”‘’«»()\[\]{}¿¡,;:?!"
WORD = re.compile(rf"[^{PUNCTUATION}](?:\S*[^{PUNCTUATION}])?")
POSSESSIVE = re.compile(r"(.+)['’]s")
QUALIFIER = re.compile(r" \([^\W\d][^()\d]*\)")
"""What tells a name from others, behind it."""
DASHES = ("-", "–", "—")
SENTENCE_ENDS = (".", "?", "!", ":")


DIGIT_OR_OTHER_SCRIPT = re.compile(r"[^\W_:-\u024f\u1e00-\u1eff]")
"""A digit, or a letter that is not Latin. In an English question only names have such letters."""


class Token(NamedTuple):
    """A word of a text, without the punctuation around it."""

    text: str
    start: int
    """Position of its first character in the text."""
    end: int
    """Position after its last character."""
    begins_sentence: bool = False

    @property
    def lowercase(self) -> str:
        return self.text.casefold()

    @property
    def looks_like_name(self) -> bool:
        """Whether it has a capital letter, a digit, or a letter of another script: かいこく, علي.

        A capital does not count in "I", nor in words of NON_NAME_WORDS that begin a sentence.
        """
        if DIGIT_OR_OTHER_SCRIPT.search(self.text):
            return True
        excluded = NON_NAME_WORDS if self.begins_sentence else {"i"}
        has_capital = self.text != self.text.lower()
        return has_capital and self.lowercase not in excluded

    @property
    def is_common_word(self) -> bool:
        """Whether it is a function word, a verb form, or a word of a known relation."""
        word = self.lowercase
        return word in FUNCTION_WORDS or word in RELATION_PHRASES or is_verb(word)


@lru_cache(maxsize=256)  # each rule of a run reads the same question
def tokenize(text: str) -> tuple[Token, ...]:
    """Return the words of a text, in order, without the punctuation around them.

    A possessive "'s" is a token of its own; the "'s" of "who's" and the like is not. A word loses
    the dots at its end unless it has another one, as "U.S." has. A dash is no word.
    """
    text = replace_marks(text, " ")
    tokens: list[Token] = []
    for match in WORD.finditer(text):
        word = match.group()
        start = match.start()
        text_before = text[:start].rstrip()
        begins_sentence = not tokens or text_before.endswith(SENTENCE_ENDS)

        possessive = POSSESSIVE.fullmatch(word)
        if possessive and word.casefold() not in WH_WORDS:
            owner_end = possessive.end(1) + start
            owner = Token(possessive[1], start, owner_end, begins_sentence)
            ending = Token("'s", owner_end, match.end())
            tokens += [owner, ending]
            continue

        if word.endswith("..") or (word.endswith(".") and word.count(".") == 1):
            word = word.rstrip(".")
        if word and word not in DASHES:
            end = start + len(word)
            tokens.append(Token(word, start, end, begins_sentence))
    return tuple(tokens)


def lowercase_words(tokens: Iterable[Token]) -> list[str]:
    """Return words in lower case."""
    return [token.lowercase for token in tokens]


def singularize(word: str) -> str:
    """Return the singular of a regular plural, and any other word as it is.

    The plural is recognised by its end, in words of four letters or more: "cities" gives "city",
    "films" gives "film", "class" stays.
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if ends_in_one_s(word) and len(word) > 3:
        return word[:-1]
    return word


def ends_in_one_s(word: str) -> bool:
    """Return whether a word looks like a plural, or like the present form of a verb: "stands"."""
    return word.endswith("s") and not word.endswith("ss")


@lru_cache(
    maxsize=4_096
)  # the words of a graph's predicates are compared with each word of a question
def stem(word: str) -> str:
    """Return what a word has in common with its other forms: "conduct" for "conductor".

    One of ENDINGS is cut off, and a consonant that is doubled before it counts once. An irregular
    form has the stem of its word. A word of fewer than MIN_STEM_CHARS characters without the ending
    stays as it is.
    """
    for form in (word, singularize(word)):
        if form in IRREGULAR_FORMS:
            return stem(IRREGULAR_FORMS[form])
    for ending in ENDINGS:
        start = word.removesuffix(ending)
        is_part = ending == "y" and start.endswith(("a", "e", "o"))  # survey, surveys
        is_part |= ending == "s" and start.endswith("s")  # pass, passed
        if start == word or is_part or len(start) < MIN_STEM_CHARS:
            continue
        last = start[-1]
        if last == start[-2] and last not in "ls":
            return start[:-1]
        has_ending = ending in ("ation", "ed", "ing", "e") and start.endswith(("er", "or", "ion"))
        return stem(start) if has_ending else start  # ordered, as order
    return word


def stem_list(name: str) -> frozenset[str]:
    """Return the stems of the words of one list in the section "words" of the lexicon."""
    return frozenset(map(stem, word_list(name)))


def has_word_of_stem(name: str, word: str) -> bool:
    """Return whether a word of a name is a form of another word."""
    return stem(word) in stems_of(name)


@lru_cache(maxsize=4_096)  # the names of a graph are compared with each word of a question
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in normal form; "" alone if it has none."""
    return tuple(normalize(name).split()) or ("",)


@lru_cache(maxsize=4_096)
def stems_of(name: str) -> frozenset[str]:
    """Return the stems of the words of a name."""
    return frozenset(map(stem, words_of(name)))


def are_rivals(first: str, second: str) -> bool:
    """Return whether a group of RIVALS has two words with different meanings: "open" and "close".

    They are compared by their stems. False for forms of one word.
    """
    meanings = RIVALS.get(stem(first))
    if not meanings:
        return False
    others = RIVALS.get(stem(second), {})
    return any(meaning != others.get(group, meaning) for group, meaning in meanings.items())


def have_rivals(words: Iterable[str], others: Collection[str]) -> bool:
    """Return whether a word and one of others are rivals."""
    return any(are_rivals(word, other) for word in words for other in others)


def have_same_relation(word: str, name: str) -> bool:
    """Return whether a word and a name say one known relation: "belong" and "owner"."""
    phrase = RELATION_PHRASES.get(word)
    return phrase is not None and phrase == RELATION_PHRASES.get(name)


def are_kin(word: str, name: str) -> bool:
    """Return whether a word may say the relation that a name says: "wrote" and "composed by".

    A word of the name must be in one list of the lexicon's section "kin" with the word.
    """
    groups = KIN_GROUPS.get(stem(word))
    if not groups:  # as of most words, which are compared with each class of a graph
        return False
    others = map(stem, words_saying(name))
    return any(not groups.isdisjoint(KIN_GROUPS.get(other, ())) for other in others)


def words_saying(name: str) -> Words:
    """Return the words of a name in normal form, a verb before "to" as that of the other side.

    What is lent to somebody is what that person borrows. "Made of" says no more than a material.
    """
    words = words_of(name)
    known = RELATION_PHRASES.get("_".join(words))
    if known is not None and len(words) > 1:
        return known.split()
    if words[-1] != "to":
        return words
    return [RECIPIENT_VERBS.get(stem(word), word) for word in words]


def is_verb(word: str) -> bool:
    """Return whether a word looks like a verb form, in any case of letters.

    It does if it is one of VERB_FORMS, or has five letters or more and ends in "ed" or "ing".
    """
    word = word.casefold()
    if word in VERB_FORMS:
        return True
    return word.endswith(("ed", "ing")) and len(word) > 4


def relation_phrase(word: str) -> str:
    """Return the phrase by which graphs tend to name a word's relation, else the word itself."""
    return RELATION_PHRASES.get(word, word)


RECIPIENT_VERBS: dict[str, str] = {}
for _verb, _other in LEXICON["recipients"].items():
    RECIPIENT_VERBS[stem(_verb)] = _other
"""For the stem of a verb, what somebody does to whom it is done: who is lent something borrows it."""
RIVALS: defaultdict[str, dict[str, str]] = defaultdict(dict)
"""For a stem, its meaning in each group of words that never mean the same: "begin" and "end".

Words joined by slashes in the lexicon have one meaning there: "end/terminus".
"""
for _group, _meanings in LEXICON["rivals"].items():
    for _meaning in _meanings.split():
        for _word in _meaning.split("/"):
            RIVALS[stem(_word)][_group] = _meaning
KIN_GROUPS: defaultdict[str, set[str]] = defaultdict(set)
"""For a stem, the lists of words that may say one relation which it is in."""
for _group, _kin in LEXICON["kin"].items():
    for _word in _kin.split():
        KIN_GROUPS[stem(_word)].add(_group)
        KIN_GROUPS[stem(re.sub("ate$", "ation", _word))].add(_group)
MEANINGS: defaultdict[str, set[str]] = defaultdict(set)
"""For a stem, the words of the phrases by which graphs tend to name the relations of its words."""
for _word, _phrase in RELATION_PHRASES.items():
    MEANINGS[stem(_word)].update(_phrase.split())
ENGLISH_WORDS = word_list("english")
"""Common words by which an English question is recognized."""
FOREIGN_WORDS = word_list("foreign")
"""Common words of German, Spanish, French, Italian, Portuguese and Dutch."""


def looks_english(text: str) -> bool:
    """Return whether a text has at least as many of ENGLISH_WORDS as of FOREIGN_WORDS.

    A word counts once ("La La Land"). A text that has neither looks English if all its characters
    are ASCII.
    """
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    english = len(words.intersection(ENGLISH_WORDS))
    foreign = len(words.intersection(FOREIGN_WORDS))
    if english == foreign == 0:
        return text.isascii()
    return english >= foreign


# The names in a question


MAX_KEPT = 64
"""How many findings of one graph are kept: those of the questions that are asked at the same time."""
P = ParamSpec("P")
T = TypeVar("T")


def only(found: Sequence[T]) -> T | None:
    """Return the only one of what was found; None if there is none, or are several."""
    return found[0] if len(found) == 1 else None


def kept_by_graph(
    find: Callable[Concatenate[Graph, P], T],
) -> Callable[Concatenate[Graph, P], T]:
    """Make a function keep its last MAX_KEPT results of each graph, by its other arguments, if it has any.

    A question is read by several rules of one run, and each would ask the graph the same again.
    Threads may share what is kept. It is dropped with the graph; a graph with muted triples is
    another graph.
    """
    findings: WeakKeyDictionary[Graph, Callable[..., T]] = WeakKeyDictionary()

    @wraps(find)
    def find_once(kg: Graph, /, *args: P.args, **kwargs: P.kwargs) -> T:
        find_kept = findings.get(kg)
        if find_kept is None:
            graph_ref = ref(kg)

            @lru_cache(MAX_KEPT)
            def find_anew(*args: P.args, **kwargs: P.kwargs) -> T:
                graph = graph_ref()
                assert graph is not None, "the caller holds it"
                return find(graph, *args, **kwargs)

            find_kept = findings.setdefault(kg, find_anew)
        return find_kept(*args, **kwargs)

    return find_once


@kept_by_graph
def find_labelled(kg: Graph, name: str) -> tuple[URIRef, ...]:
    """Return the things that have a name as their label."""
    return tuple(kg.exact([name]).get(name, ()))


BRACKETED_NAME = re.compile(r"\[([^\[\]]+)\]")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
SIGNS = re.compile(r"[^\w\s]{0,3}")
"""The signs after a word that may belong to a name; no name ends in more of them."""
WEEKDAY = re.compile("(mon|tues|wednes|thurs|fri|satur|sun)days?")
ROMAN_NUMERAL = re.compile("[IVX]+")
MAX_NAME_TOKENS = 18
NATIONALITY_ENDINGS = ("ian", "ean", "ish", "ese")
KIND_INTRODUCTIONS = WH_WORDS | DETERMINERS | PRONOUNS
"""Words after which a single word is a type and not a name: "which city", "the film"."""


class Mention(NamedTuple):
    """Successive tokens of a question that name something."""

    start: int
    """Position of the first token."""
    end: int
    """Position after the last token."""
    text: str

    @property
    def size(self) -> int:
        """How many tokens it has."""
        return self.end - self.start

    def overlaps(self, others: list[Mention]) -> bool:
        """Return whether it shares a token with one of the others."""
        return any(other.start < self.end and self.start < other.end for other in others)


Mentions = Sequence[Mention]


def find_mentions(question: str, kg: Graph | None) -> Mentions:
    """Return the names in a question, from left to right; they do not overlap.

    If the question has names in square brackets, only these count. Otherwise names are labels of
    the graph that are likely to be meant as names, and runs of capitalised words; where several
    overlap, the longest is taken. If there is none, it is the longest label in lower case. Without
    a graph there are no labels. They are kept for the questions asked last.
    """
    bracketed = bracketed_mentions(question)
    if bracketed:
        return bracketed
    if kg is None:
        return _MentionFinder(question, kg).find_unmarked()
    return _find_unmarked_mentions(kg, question)


@kept_by_graph
def _find_unmarked_mentions(kg: Graph, question: str) -> Mentions:
    """Return the names in a question without square brackets."""
    return _MentionFinder(question, kg).find_unmarked()


def bracketed_mentions(question: str) -> list[Mention]:
    """Return the names in square brackets, without the brackets and quotes around them, from left to right.

    Each name spans the tokens inside of its brackets. Brackets without a token are passed over;
    without brackets the list is empty.
    """
    tokens = tokenize(question)
    mentions = []
    for match in BRACKETED_NAME.finditer(question):
        start, end = match.span()
        inside = [place for place, token in enumerate(tokens) if start <= token.start < end]
        if inside:
            name = match[1]
            unmarked = replace_marks(name, " ").strip()
            if unmarked in name:  # the marks stand around it, and not inside of it
                name = unmarked
            mentions.append(Mention(inside[0], inside[-1] + 1, name))
    return mentions


def words_without_names(mentions: Iterable[Mention], tokens: Sequence[Token]) -> list[str]:
    """Return the words of a question in lower case, with "" in the place of those of names."""
    words = lowercase_words(tokens)
    for mention in mentions:
        words[mention.start : mention.end] = [""] * mention.size
    return words


POSSESSIVE_ENDING = re.compile(r"['’]s ")


class _MentionFinder:
    """A question in which names without square brackets are looked for."""

    def __init__(self, question: str, kg: Graph | None) -> None:
        self.question = question
        self.tokens = tokenize(question)
        self.words = lowercase_words(self.tokens)
        self.kg = kg

    def find_unmarked(self) -> list[Mention]:
        """Return the names in the question that no brackets mark, in order, without overlaps.

        Candidates are likely labels and runs of capitalised words. The longest are taken first, and
        those that overlap one of these are dropped. Without any candidate it is the longest label
        in lower case, if there is a label.
        """
        labels = self._find_labels()
        likely = [label for label in labels if self._is_likely_name(label)]
        likely += [label for label in labels if _is_longer_than_any(label, likely)]
        candidates = likely.copy()
        for run in self._capitalized_runs():
            if self._is_name(run, likely):
                candidates.append(run)
        candidates.sort(key=_size_and_position, reverse=True)

        mentions: list[Mention] = []
        for candidate in candidates:
            if not candidate.overlaps(mentions):
                mentions.append(candidate)
        if not mentions:
            mentions = self._find_lowercase_name(labels)
        return sorted(mentions)

    def _find_labels(self) -> list[Mention]:
        """Return every part of the question that is a label of the graph; parts may overlap.

        A part has up to MAX_NAME_TOKENS tokens, and a letter or digit in the first and the last. The
        signs after it belong to it if it is a label with them, as "C++" and "Man's Favorite Sport?"
        are. A plural in lower case may stand for a label in the singular, and "Man's Sport" for "Mans
        Sport", as IRIs have it. Adjectives of nationality are left out. All parts are looked up with
        one request.
        """
        if self.kg is None:
            return []
        edges = [
            place for place, token in enumerate(self.tokens) if LETTER_OR_DIGIT.search(token.text)
        ]
        spellings_of: dict[Mention, list[str]] = {}
        for last in edges:
            endings = self._endings_of(last)
            for first in range(max(0, last - MAX_NAME_TOKENS + 1), last + 1):
                if first in edges:
                    beginning = self.question[self.tokens[first].start : self.tokens[last].start]
                    part = Mention(first, last + 1, beginning)
                    spellings = [beginning + ending for ending in endings]
                    if POSSESSIVE_ENDING.search(beginning):
                        spellings += [POSSESSIVE_ENDING.sub("s ", each) for each in spellings]
                    spellings_of[part] = spellings
        labels = self.kg.exact(list(dict.fromkeys(chain.from_iterable(spellings_of.values()))))
        found = []
        for part, spellings in spellings_of.items():
            names = [spelling for spelling in spellings if spelling in labels]
            sign = POSSESSIVE_ENDING.search(part.text)
            if sign and part.text[: sign.start()] in labels:  # Anna's dog may be a dog of Anna
                names = [name for name in names if POSSESSIVE_ENDING.search(name)]
            if names and not self._is_adjective(part):
                found.append(part._replace(text=names[0]))
        return found

    def _endings_of(self, position: int) -> list[str]:
        """Return how labels may spell a token at their end, the spelling nearest to the question first.

        It has the signs that follow it directly: all, fewer, none. A plural in lower case has a
        singular.
        """
        token = self.tokens[position]
        signs = SIGNS.match(self.question, token.end)
        assert signs is not None, "the pattern matches an empty text too"
        endings = []
        for end in range(signs.end(), token.end - 1, -1):
            endings.append(self.question[token.start : end])
        singular = singularize(token.text)
        if token.text.islower() and singular != token.text:
            endings.append(singular)
        return endings

    def _mention(self, start: int, end: int) -> Mention:
        """Return the mention from token ``start`` to before token ``end``, as the question has it."""
        first = self.tokens[start]
        last = self.tokens[end - 1]
        text = self.question[first.start : last.end]
        return Mention(start, end, text)

    def _is_likely_name(self, label: Mention) -> bool:
        """Return whether words that are a label are meant as a name.

        They are if one is written like a name, with a capital or a digit. In lower case they are if
        they are several, and none is a function word, a verb or a word for a relation.
        """
        tokens = self.tokens[label.start : label.end]
        if any(token.looks_like_name for token in tokens):
            return True
        return label.size > 1 and not any(token.is_common_word for token in tokens)

    def _capitalized_runs(self) -> list[Mention]:
        """Return runs of words that are written like names, from left to right.

        One word of NAME_CONNECTORS may stand between two of them. A run does not begin with a number
        alone, nor with the first word of the question unless that has a digit or is of another script.
        """
        runs: list[Mention] = []
        for position, token in enumerate(self.tokens):
            if not token.looks_like_name and not self._is_numeral_behind(runs, position):
                continue
            end = position + 1
            if runs and self._can_continue(runs[-1], position):
                runs[-1] = self._mention(runs[-1].start, end)
                continue
            can_begin = position > 0 or DIGIT_OR_OTHER_SCRIPT.search(token.text)
            if can_begin and not token.text.isdigit():
                runs.append(self._mention(position, end))
        return [self._with_qualifier(run) for run in runs]

    def _with_qualifier(self, run: Mention) -> Mention:
        """Return a run with the words in brackets behind it: "Mercury (planet)"."""
        last = self.tokens[run.end - 1]
        qualifier = QUALIFIER.match(self.question, last.end)
        if qualifier is None:
            return run
        size = len(tokenize(qualifier[0]))
        return Mention(run.start, run.end + size, run.text + qualifier[0])

    def _is_numeral_behind(self, runs: Sequence[Mention], position: int) -> bool:
        """Return whether a word is the "I" of the name before it: "when was Mary I born", but not "Mary I can"."""
        is_behind = bool(runs) and runs[-1].end == position
        following = self.words[position + 1 : position + 2]
        return is_behind and self.tokens[position].text == "I" and AUXILIARIES.isdisjoint(following)

    def _can_continue(self, run: Mention, position: int) -> bool:
        """Return whether a token continues a run: directly, or after one word of NAME_CONNECTORS.

        The run may get MAX_NAME_TOKENS long.
        """
        if position - run.start >= MAX_NAME_TOKENS:
            return False
        if run.end == position:
            return True
        return self.words[position - 1] in NAME_CONNECTORS and run.end == position - 1

    def _is_name(self, run: Mention, labels: list[Mention]) -> bool:
        """Return whether a run of capitalised words is a name.

        It is not if it is an adjective of nationality, a weekday or a single word for a relation. A run that
        overlaps one of the labels is a name only if the graph's label search finds all its words.
        """
        first_word = self.words[run.start]
        is_relation_word = first_word in RELATION_PHRASES or WEEKDAY.fullmatch(first_word)
        if (run.size == 1 and is_relation_word) or self._is_adjective(run):
            return False
        last_word = self.tokens[run.end - 1].text
        is_other = ROMAN_NUMERAL.fullmatch(last_word)  # Mary II is another one than Mary
        if self.kg is None or is_other or not run.overlaps(labels):
            return True
        found = self.kg.search(run.text, 3)
        return found.how == "all words"

    def _is_adjective(self, mention: Mention) -> bool:
        """Return whether a name is a single adjective of nationality before a noun."""
        return mention.size == 1 and self._is_nationality_adjective(mention.start)

    def _is_nationality_adjective(self, position: int) -> bool:
        """Return whether a token is an adjective of nationality before a noun: "German films".

        Such a word names nothing. It is capitalised, has a typical ending or is in NATIONALITIES,
        and a word in lower case follows that is neither a function word nor a verb.
        """
        words = [token.text for token in self.tokens[position : position + 2]]
        if len(words) < 2:
            return False
        word, noun = words
        is_nationality = word in NATIONALITIES or word.endswith(NATIONALITY_ENDINGS)
        if not word[0].isupper() or not is_nationality or not noun.islower():
            return False
        return noun not in FUNCTION_WORDS and not is_verb(noun)

    def _find_lowercase_name(self, labels: list[Mention]) -> list[Mention]:
        """Return the longest label of a question without capitals, the last of equals; else [].

        A label that begins with a function word does not count, nor a single word that is a type: one
        after KIND_INTRODUCTIONS or an adjective of nationality. If no other label is left, one after
        a determiner does ("the baguette"). A label that "and" joins to it is a name, too.
        """
        names = []
        after_determiners = []
        for label in labels:
            is_kind = label.size == 1 and self._introduces_kind(label.start - 1)
            if self.words[label.start] not in FUNCTION_WORDS and not is_kind:
                names.append(label)
            elif is_kind and self.words[label.start - 1] in DETERMINERS:
                after_determiners.append(label)
        names = names or after_determiners
        names.sort(key=_size_and_position)
        chosen = names[-1:]
        for name in names[:-1]:
            if self.words[name.end : chosen[0].start] == ["and"]:  # which of madder and weld
                return [name, *chosen]
        return chosen

    def _introduces_kind(self, position: int) -> bool:
        """Return whether the token at a position may introduce a kind of thing; -1 is before all."""
        if position < 0:
            return False
        is_introduction = self.words[position] in KIND_INTRODUCTIONS
        return is_introduction or self._is_nationality_adjective(position)


def _is_longer_than_any(label: Mention, others: Sequence[Mention]) -> bool:
    """Return whether a label of several words has one of some others in it: "cable car" in "cable car landing"."""
    return any(label.start <= each.start and each.end < label.end for each in others)


def _size_and_position(mention: Mention) -> tuple[int, int]:
    """Return a sort key: by number of tokens, then by position."""
    return mention.size, mention.start


# Which end of a relation is which


PREFIX = re.compile(r"\b(sub|super) (?=\w)")
SIBILANT_PLURAL = re.compile(r"((?<=ss|ch|sh)|(?<=x))es$")
AGENT_NOUN = re.compile(r"\w{3,}(or|er|ist|ian)")
COMPARATIVES = word_list("comparatives")
NOT_AGENT_NOUN = re.compile(
    r"\w*(mother|father|brother)|sister|daughter|number|member|character|partner|paper|power|tower"
    r"|river|water|letter|order|sensor|motor|tractor|computer|container|floor|door|chamber|chapter"
    r"|enter|offer|deliver|cover|discover|answer|gather|register|transfer|shelter|filter|"
    + "|".join(sorted(COMPARATIVES))
)
"""Words that end like the name of an agent but are none."""
MARKS = BE_FORMS | HAVE_FORMS
"""Words that a name may begin with: "is part of", "has part"."""
ARTICLES = ("a", "an", "the")
AGENTS = word_list("agents")
SYMMETRIC = stem_list("symmetric")
HOLDERS = word_list("holders")
CONVERSES: dict[tuple[str, str], tuple[str, bool]] = {}
"""For a noun or the agent of a verb, a relation, and whether it is the first of its two ends."""
for _first, _second in LEXICON["converses"].items():
    for _word in (*_first.split(), *_second.split()):
        _key = ("noun", _word)
        if ends_in_one_s(_word):
            _key = ("agent", stem(_word))
        CONVERSES[_key] = (_first, _word in _first.split())
LISTED_PHRASES = frozenset(phrase for phrase in RELATION_PHRASES.values() if " " in phrase)
"""Relations of the grammar that list names of several predicates: they name no ends."""
AGENT_SIGNS = word_list("agent_signs")
"""Words beside a verb and its agent."""
NamedEnds = dict[tuple[str, str], bool]
"""For a "noun", or the "agent" of a verb by its stem, whether it is the subject of the triples.

Of a word with a preposition behind it, the subject is the subject: "report to", "trained under".
"""
Certainty = Literal["certain", "likely", "guessed", "open", "either"]


class Wording(NamedTuple):
    """What the names of a relation and a predicate say about the direction of the triples."""

    direction: Direction
    """"out" if the subject of the relation is the subject of the triples."""
    certainty: Certainty
    """How far the names tell it: "open" if they contradict themselves, "either" if both are right."""

    def contradicts(self, direction: Direction) -> bool:
        """Return whether the names tell that a direction is wrong, or leave it open."""
        if self.certainty == "open":
            return True
        return self.certainty in ("certain", "likely") and self.direction != direction


@lru_cache(maxsize=4096)  # questions have the same few relations and predicates
def compare_wordings(relation: str, predicate: str) -> Wording:
    """Return in which direction a predicate says what a relation says, as their names tell.

    It is certain if the name of the predicate marks its ends, by "of", "by", "has" or a verb, and
    likely if it is a noun. If no word names an end in both, it is guessed: "out" if both names lead
    to an agent, or neither does.
    """
    words = _split_name(predicate)
    is_same_view = leads_to_agent(relation) == leads_to_agent(predicate)
    if not SYMMETRIC.isdisjoint(map(stem, words)):
        return Wording("out" if is_same_view else "in", "either")
    certainty: Certainty = "guessed"
    is_listed = any(phrase in relation for phrase in LISTED_PHRASES)
    ends = {} if is_listed else find_named_ends(relation)
    others = find_named_ends(predicate)
    if ends.keys().isdisjoint(others):
        ends, others = _name_converses(ends), _name_converses(others)
    views = {ends[word] == others[word] for word in ends.keys() & others.keys()}
    if have_same_words(relation, predicate):
        views = {True}
    if len(views) == 1:
        [is_same_view] = views
        certainty = "certain" if _is_marked(predicate) else "likely"
    elif views:
        certainty = "open"
    return Wording("out" if is_same_view else "in", certainty)


def have_same_words(relation: str, predicate: str) -> bool:
    """Return whether two names are one: "parent organization", parentOrganization."""
    return _split_name(relation) == _split_name(predicate)


def leads_to_agent(name: str) -> bool:
    """Return whether a relation leads from a thing to its maker or agent: "directed by", "author"."""
    last_word = words_of(name)[-1]
    return last_word == "by" or _is_agent_noun(singularize(last_word))


def leads_to_former(name: str) -> bool:
    """Return whether a relation leads to what was and is no longer: "former club"."""
    return not PAST_WORDS.isdisjoint(words_of(name))


def leads_elsewhere(name: str, words: Words) -> bool:
    """Return whether a name leads to another end of a verb than words say: "sold to", and "sold by"."""
    verb, *end = words_of(name)
    is_elsewhere = False
    if end == ["to"]:
        is_elsewhere = not AGENT_SIGNS.isdisjoint(words) and "to" not in words
    elif end == ["from"]:
        is_elsewhere = "by" in words  # whom X did learn from, X "learned from"
    elif end == ["by"] and not BE_FORMS.isdisjoint(words):
        is_elsewhere = not {"to", "from"}.isdisjoint(words) and "by" not in words
    if not is_elsewhere or not (verb.endswith("ed") or verb in IRREGULAR_FORMS):
        return False
    said = {word for word in words if stem(word) == stem(verb)}
    return any(is_verb(word) or word in IRREGULAR_FORMS for word in said)  # an award is no verb


def without_other_ends(relation: str, names: Iterable[str]) -> list[str]:
    """Return the names that do not lead to another end of a verb than a relation of its agent: "sold by", "sell"."""
    said = relation.split()
    if len(said) == 1 and not _is_past(relation):  # did X sell
        said.append("did")
    return [name for name in names if not leads_elsewhere(name, said)]


def find_named_ends(name: str) -> NamedEnds:
    """Return which end of its triples a noun or verb in the name of a relation names.

    The last noun names the object, but the subject before "of" or another preposition at the end.
    In the middle, "of" makes it the subject after HOLDERS alone. The agent of a verb is the subject,
    but the object before "by"; with a participle before another agent, as in "starred actors", it is
    not told. An "employer" is the agent, and an "employee" the other end.
    """
    words = _split_name(name)
    *others, last = words
    if last == "by" and others:
        return {("agent", stem(others[-1])): False}
    is_subject = bool(others) and last in PREPOSITIONS
    phrase = others if is_subject else words
    if "of" in phrase[1:]:
        phrase = phrase[: phrase.index("of", 1)]
        is_subject = is_subject or singular(phrase[-1]) in HOLDERS
    ends: NamedEnds = {}
    nouns = [word for word in phrase if not _is_past(word)]
    comparatives = [word for word in phrase if word in COMPARATIVES]
    if comparatives:  # a narrower concept is the narrower one
        nouns = phrase = comparatives
    begins_with_verb = ends_in_one_s(phrase[0]) and last != "of"
    is_verb_alone = begins_with_verb and len(phrase) == 1
    if is_subject and (is_verb_alone or nouns[-1:] != phrase[-1:]):  # stands on, country located in
        nouns = []
    for noun in map(singular, nouns[-1:]):
        ends["noun", noun] = is_subject
        if noun.endswith("ee") and len(noun) > 5:
            ends["agent", stem(f"{noun[:-2]}er")] = not is_subject
        elif _is_agent_noun(noun) and (noun == nouns[-1] or noun not in AGENTS or last == "of"):
            ends["agent", stem(noun.replace("ier", "y"))] = is_subject
    is_only_word = _separate(name) == [last]
    is_past_active = not is_subject and not _is_agent_noun(singular(last))
    for verb in phrase:
        is_present = begins_with_verb and verb == phrase[0]
        if is_present or (is_past_active and _is_past(verb)) or is_only_word:
            ends.setdefault(("agent", stem(verb)), True)
    if is_subject and len(phrase) == 1:
        ends[last, stem(phrase[0])] = True
    return ends


def _is_past(word: str) -> bool:
    """Return whether a word looks like the past form of a verb: "founded", "wrote"."""
    return is_verb(word) and (word.endswith("ed") or word in IRREGULAR_FORMS)


def _is_agent_noun(noun: str) -> bool:
    """Return whether a noun in the singular names who does something: "director", "host"."""
    is_agent = AGENT_NOUN.fullmatch(noun) and not NOT_AGENT_NOUN.fullmatch(noun)
    return bool(is_agent) or noun in AGENTS


def _is_marked(name: str) -> bool:
    """Return whether a name tells its ends by more than a noun: by "is", "has", "of", "broader" or a verb."""
    words = _separate(name)
    last = words[-1]
    return words[0] in MARKS or last in PREPOSITIONS | COMPARATIVES or last.endswith("s")


def _name_converses(ends: NamedEnds) -> NamedEnds:
    """Return the ends that words of CONVERSES name, by the relation that these words are about."""
    named: NamedEnds = {}
    for word, is_subject in ends.items():
        if word in CONVERSES:
            relation, is_first = CONVERSES[word]
            named["relation", relation] = is_subject == is_first
    return named


def _separate(name: str) -> list[str]:
    """Return the words of a name in normal form; "sub" and "super" are joined to the word after."""
    normal = normalize(CAMEL_CASE_BOUNDARY.sub(" ", name))
    return PREFIX.sub(r"\1", normal).split()


def _split_name(name: str) -> list[str]:
    """Return the words of a name, without the MARKS at its beginning and without ARTICLES."""
    words = [word for word in _separate(name) if word not in ARTICLES]
    is_marked = len(words) > 1 and words[0] in MARKS
    return words[is_marked:] or [""]


def singular(word: str) -> str:
    """Return the singular of a noun: "subclass" of "subclasses", "child" of "children"."""
    word = IRREGULAR_FORMS.get(word, word)
    return singularize(SIBILANT_PLURAL.sub("", word))


# How a question names a relation

NAME = "@"
"""Stands for a name of the graph in a question."""
_WORD = rf"(?!(?:{'|'.join(FUNCTION_WORDS)})\b)[\w-]+"
_PARTS = {
    "name": NAME,
    "have": f"(?:{'|'.join(HAVE_FORMS)}|with)",
    "word": _WORD,
    "words": rf"(?P<words>{_WORD}(?: {_WORD}){{0,2}}(?: of {_WORD})?)",
    "preposition": rf"(?P<preposition>{'|'.join(PREPOSITIONS)})",
}
"""What stands for the parts of a wording in braces, as regular expressions."""
DOUBLE_E = re.compile("e(?=ed$)")


def find_wording(words: Sequence[str]) -> tuple[str, bool] | None:
    """Return the relation that a question names, and whether its first name is the subject; else None.

    ``words`` are in lower case, with NAME in the place of each name. With two names, the second is
    the other end; with one, that is what is asked for. Only questions with one relation are read.
    """
    text = " ".join(word for word in words if word not in ARTICLES)
    for wording in LEXICON["wordings"]:
        pattern = wording["question"].format(**_PARTS)
        found = re.fullmatch(pattern, text)  # compiled at first use: that takes long
        if found:
            parts = found.groupdict("")
            relation = wording["relation"].format(**{"preposition": "", **parts}).strip()
            relation = DOUBLE_E.sub("", relation)
            if relation.endswith(" by") and relation.count(" ") > 1:  # films directed by X
                return None
            return relation, wording["is_subject"] or text.count(NAME) > 1
    return None
