"""The vocabulary of the model ``rules``: word lists, word forms, and the tokens of a question.

The lists are in ``lexicon.toml``. ``looks_english`` tells whether a text is English at all.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kgwb.kg.names import replace_marks

_LEXICON_FILE = Path(__file__).with_name("lexicon.toml")
LEXICON = tomllib.loads(_LEXICON_FILE.read_text(encoding="utf-8"))


def _word_list(name: str) -> frozenset[str]:
    """Return the words of one list in the section "words" of the lexicon."""
    return frozenset(LEXICON["words"][name].split())


WH_WORDS = _word_list("wh")
AUXILIARIES = _word_list("auxiliaries")
BE_FORMS = _word_list("being")
HAVE_FORMS = _word_list("having")
ACTIVE_AUXILIARIES = _word_list("active")
"""Forms of "do" and "have". The main verb of a question with one of them is active."""
LIGHT_VERBS = _word_list("light_verbs")
"""Verbs that name no relation: "come", "include", "called"."""
VERB_FORMS = _word_list("verb_forms")
"""Verb forms that do not end in "ed" or "ing"."""
DETERMINERS = _word_list("determiners")
PREPOSITIONS = _word_list("prepositions")
RELATIVES = _word_list("relatives")
FILLERS = _word_list("fillers")
"""Words that change nothing in a question: "actually", "please", "exactly"."""
PRONOUNS = _word_list("pronouns")
NATIONALITIES = _word_list("nations")
"""Adjectives of nationality without one of the usual endings: "German", "Dutch"."""
IMPERATIVES = _word_list("imperatives")
NAME_CONNECTORS = _word_list("joining")
"""Words that may stand in the middle of a name: "of", "and", "van"."""
WORDS_BEFORE_NOUNS = _word_list("noun_next")
"""Words after which a word is a noun, even if it looks like a verb: "the", "whose"."""
QUESTION_WORDS = _word_list("asking")
"""Words that ask for the noun after them: "which", "whose", "how many"."""
TIME_WORDS = _word_list("times")
PLACE_WORDS = _word_list("places")
PERSON_NOUNS = _word_list("persons")
"""Words for somebody of whom no more is said: "the guy who". "Women" says more."""
EVENTS = _word_list("events")
"""Nouns for events that have a time and a place: "birth", "publication"."""
PERSONAL_PRONOUNS = frozenset("he she him his her hers himself herself".split())
PROFESSIONS = _word_list("professions")
ORDINALS = _word_list("ordinals")
"""Words that select one of several things: "second", "last"."""
DESCRIBING_VERBS = _word_list("describing")
"""Verbs with which "how" asks for a kind or topics, and not for a manner."""
SUBJECTS = _word_list("subjects")
"""Pronouns that are the subject of a verb."""
POLITE_SUBJECTS = _word_list("polite")
"""Subjects of polite openings such as "Can you" and "Does anyone"."""
VAGUE_WORDS = _word_list("vague")
"""Words that are too general to ask for a relation of their own: "matter", "kind"."""
NEUTRAL_WORDS = _word_list("neutral")
"""Words that change little: a graph that has one language of a film means the main one."""
SMALL_TALK_WORDS = _word_list("small_talk")
PLACED_EVENTS = _word_list("located")
"""Events and states that have a place, which lies in a country: "born", "headquartered"."""
PRODUCTION_EVENTS = _word_list("sited")
"""Those of them that have a site, which lies in a city: "built", "manufactured"."""
FUNCTION_WORDS = WH_WORDS | AUXILIARIES | DETERMINERS | PREPOSITIONS | RELATIVES | FILLERS
NON_NAME_WORDS = FUNCTION_WORDS | LIGHT_VERBS | PRONOUNS | SMALL_TALK_WORDS
"""Words that name nothing, even if they are capitalised because they begin a sentence."""


def _keys_by_word(section: str) -> dict[str, str]:
    """Return for each word of the lists in a section of the lexicon the key of its list.

    A word of several lists has the last one.
    """
    keys: dict[str, str] = {}
    for key, words in LEXICON[section].items():
        keys |= dict.fromkeys(words.split(), key)
    return keys


RELATION_PHRASES = _keys_by_word("senses")
"""For a word, the phrase by which graphs tend to name its relation: "speed" for "fast".

Words that belong together are joined by underscores: "come_out".
"""
IRREGULAR_FORMS = _keys_by_word("forms")
"""For a form such as "built", its word."""


ENDINGS = (
    *("ations", "ation", "ings", "ing", "ments", "ment", "ists", "ist", "ions", "ion"),
    *("ers", "er", "ors", "or", "ies", "ied", "ed", "es", "s", "e", "y"),
)
"""Endings of words that one stem may have, longer ones before those that they end in."""
MIN_STEM_CHARS = 3
Words = Sequence[str]
"""Words of a question in lower case."""
PUNCTUATION = r"\s\"'“”‘’«»()\[\]{}¿¡,;:?!"
WORD = re.compile(rf"[^{PUNCTUATION}](?:\S*[^{PUNCTUATION}])?")
POSSESSIVE = re.compile(r"(.+)['’]s")
DASHES = ("-", "–", "—")
SENTENCE_ENDS = (".", "?", "!", ":")


OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter that is not Latin. In an English question only names have such letters."""


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
        if self.text.isascii() and self.text.isalpha() and self.text.islower():
            return False  # as most words; the rest would say the same
        if OTHER_SCRIPT.search(self.text):
            return True
        excluded = NON_NAME_WORDS if self.begins_sentence else {"i"}
        if self.lowercase in excluded:
            return False
        return any(character.isupper() or character.isdigit() for character in self.text)

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
        if start == word or len(start) < MIN_STEM_CHARS:
            continue
        last = start[-1]
        if last == start[-2] and last not in "ls":
            return start[:-1]
        return start
    return word


def are_rivals(first: str, second: str) -> bool:
    """Return whether a group of RIVALS has two words with different meanings: "open" and "close".

    They are compared by their stems. False for forms of one word.
    """
    meanings = RIVALS.get(stem(first))
    if not meanings:
        return False
    others = RIVALS.get(stem(second), {})
    return any(meaning != others.get(group, meaning) for group, meaning in meanings.items())


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
    return any(not groups.isdisjoint(KIN_GROUPS.get(stem(other), ())) for other in name.split())


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
MEANINGS: defaultdict[str, set[str]] = defaultdict(set)
"""For a stem, the words of the phrases by which graphs tend to name the relations of its words."""
for _word, _phrase in RELATION_PHRASES.items():
    MEANINGS[stem(_word)].update(_phrase.split())
ENGLISH_WORDS = _word_list("english")
"""Common words by which an English question is recognized."""
FOREIGN_WORDS = _word_list("foreign")
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
