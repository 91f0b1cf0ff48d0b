"""Which end is which: what the name of a relation says about the two ends of its triples.

"Parent of" names the subject as the parent, and "has parent" the object. "Feeds" has the feeder as
its subject, and "fed by" as its object. The relation of a question is such a name, too, and two names
are compared by the words that both have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from kgwb.kg.base import Direction
from kgwb.kg.label_search import normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import (
    IRREGULAR_FORMS,
    LEXICON,
    RELATION_PHRASES,
    ends_in_one_s,
    is_verb,
    singularize,
    stem,
)
from kgwb.terms import CAMEL_CASE_BOUNDARY

PREFIX = re.compile(r"\b(sub|super) (?=\w)")
SIBILANT_PLURAL = re.compile(r"(?<=ss|ch|sh)es$")
AGENT_NOUN = re.compile(r"\w{3,}(or|er|ist|ian)")
COMPARATIVES = LEXICON["directions"]["comparatives"].split()
NOT_AGENT_NOUN = re.compile(
    r"\w*(mother|father|brother)|sister|daughter|number|member|character|partner|paper|power|"
    + "|".join(COMPARATIVES)
)
"""Words that end like the name of an agent but are none."""
MARKS = en.BE_FORMS | en.HAVE_FORMS
"""Words that a name may begin with: "is part of", "has part"."""
ARTICLES = ("a", "an", "the")
AGENTS = frozenset(LEXICON["directions"]["agents"].split())
SYMMETRIC = frozenset(map(stem, LEXICON["directions"]["symmetric"].split()))
HOLDERS = frozenset(LEXICON["directions"]["holders"].split())
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
NamedEnds = dict[tuple[str, str], bool]
"""For a "noun", or the "agent" of a verb by its stem, whether it is the subject of the triples."""
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
    if _split_name(relation) == words:
        views = {True}
    if len(views) == 1:
        [is_same_view] = views
        certainty = "certain" if _is_marked(predicate) else "likely"
    elif views:
        certainty = "open"
    return Wording("out" if is_same_view else "in", certainty)


def leads_to_agent(name: str) -> bool:
    """Return whether a relation leads from a thing to its maker or agent: "directed by", "author"."""
    last_word = normalize(name).rpartition(" ")[2]
    return last_word == "by" or _is_agent_noun(singularize(last_word))


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
    is_subject = bool(others) and last in en.PREPOSITIONS
    phrase = others if is_subject else words
    if "of" in phrase[1:]:
        phrase = phrase[: phrase.index("of", 1)]
        is_subject = _singular(phrase[-1]) in HOLDERS
    ends: NamedEnds = {}
    nouns = [word for word in phrase if not _is_past(word)]
    comparatives = [word for word in phrase if word in COMPARATIVES]
    if comparatives:  # a narrower concept is the narrower one
        nouns = phrase = comparatives
    begins_with_verb = ends_in_one_s(phrase[0]) and last != "of"
    is_verb_alone = begins_with_verb and len(phrase) == 1
    if is_subject and (is_verb_alone or nouns[-1:] != phrase[-1:]):  # stands on, country located in
        nouns = []
    for noun in map(_singular, nouns[-1:]):
        ends["noun", noun] = is_subject
        if noun.endswith("ee") and len(noun) > 5:
            ends["agent", stem(f"{noun[:-2]}er")] = not is_subject
        elif _is_agent_noun(noun) and (noun == nouns[-1] or noun not in AGENTS or last == "of"):
            ends["agent", stem(noun.replace("ier", "y"))] = is_subject
    is_only_word = _separate(name) == [last]
    is_past_active = not is_subject and not _is_agent_noun(_singular(last))
    for verb in phrase:
        is_present = begins_with_verb and verb == phrase[0]
        if is_present or (is_past_active and _is_past(verb)) or is_only_word:
            ends.setdefault(("agent", stem(verb)), True)
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
    return words[0] in MARKS or last in (*en.PREPOSITIONS, *COMPARATIVES) or last.endswith("s")


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


def _singular(word: str) -> str:
    """Return the singular of a noun: "subclass" of "subclasses", "child" of "children"."""
    word = IRREGULAR_FORMS.get(word, word)
    return singularize(SIBILANT_PLURAL.sub("", word))


# How a question names a relation

NAME = "@"
"""Stands for a name of the graph in a question."""
_BE = "(?:is|are|was|were)"
_DO = "(?:does|do|did)"
_HAVE = f"(?:{'|'.join(en.HAVE_FORMS)}|with)"
_WORD = rf"(?!(?:{'|'.join(en.FUNCTION_WORDS)})\b)[\w-]+"
_WORDS = rf"(?P<words>{_WORD}(?: {_WORD}){{0,2}})"
_IN = rf" (?P<preposition>{'|'.join(en.PREPOSITIONS)})"
_PATTERNS = (
    # who is the parent of X, which units are fed by X; is X the parent of Y
    (rf"(?:.* )?{_BE} (?:{NAME} )?{_WORDS}{_IN} {NAME}", "{words} {preposition}", False),
    # who is X the parent of, what is X fed by
    (rf".* {_BE} {NAME} {_WORDS}{_IN}", "{words} {preposition}", True),
    # who is X's parent; is X Y's parent
    (rf"(?:(?:.* )?{_BE} )?(?:{NAME} )?{NAME} 's {_WORDS}", "{words} of", False),
    # name the parents of X
    (rf"(?:name|list|show|give me|tell me) {_WORDS}{_IN} {NAME}", "{words} {preposition}", False),
    # whose parent is X
    (rf"whose {_WORDS} {_BE} {NAME}", "{words} of", True),
    # which units have X as parent; what does X have as parent
    (rf".* {_HAVE} {NAME} (?:as|for) (?:its |their )?{_WORDS}", "{words} of", True),
    (rf".* {_DO} {NAME} have (?:as|for) (?:its |their )?{_WORDS}", "{words} of", False),
    # X is the parent of whom
    (rf"{NAME} {_BE} {_WORDS}{_IN} (?:who|what|which).*", "{words} {preposition}", True),
    # of which child is X the parent, by whom is X managed
    (rf"{_IN[1:]} (?:who|what|which).* {_BE} {NAME} {_WORDS}", "{words} {preposition}", True),
    # how many parents does X have
    (rf"(?:how many|which|what) {_WORDS} {_DO} {NAME} have", "{words} of", False),
    # what does X feed; does X feed Y
    (rf"(?:.* )?{_DO} {NAME} {_WORDS}(?:{_IN})?(?: {NAME})?", "{words}s {preposition}", True),
    # who feeds X, which unit feeds X
    (
        rf"(?:who|what|which {_WORD}(?: {_WORD})?) (?P<words>{_WORD})(?:{_IN})? {NAME}",
        "{words} {preposition}",
        False,
    ),
)
"""How a question names a relation, the name of the relation, and whether the first name is its subject."""


def find_wording(words: Sequence[str]) -> tuple[str, bool] | None:
    """Return the relation that a question names, and whether its first name is the subject; else None.

    ``words`` are in lower case, with NAME in the place of each name. With two names, the second is
    the other end; with one, that is what is asked for. Only questions with one relation are read.
    """
    text = " ".join(word for word in words if word not in ARTICLES)
    for pattern, form, is_subject in _PATTERNS:
        found = re.fullmatch(pattern, text)  # compiled at first use: that takes long
        if found:
            parts = found.groupdict("")
            relation = form.format(**{"preposition": "", **parts}).strip()
            if relation.endswith(" by") and relation.count(" ") > 1:  # films directed by X
                return None
            return relation, is_subject or text.count(NAME) > 1
    return None
