"""The grammar of the model ``rules``: from an English question to triples.

A question is read as a chain of relations from each name to what is asked for. Words before the
name are read from the name outwards, so that the first of them is the last relation. Words right
after the name belong to it. A verb that is left at the end belongs to the question word. "Share",
"same" and "together" make a relation lead there and back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import (
    RELATION_PHRASES,
    Mention,
    Mentions,
    Token,
    Words,
    find_labelled,
    find_mentions,
    is_verb,
    leads_to_agent,
    lowercase_words,
    relation_phrase,
    singularize,
    tokenize,
    words_without_names,
)

END_OF_QUESTION = "."
MENTIONED_NAME = "@"
CHUNK_SEPARATORS = en.FUNCTION_WORDS | en.LIGHT_VERBS | {"their"}
SHARING_WORDS = en.word_list("sharing")
WORDS_AFTER_TYPE_NOUNS = en.word_list("after_types")
"""``Chunk.after`` of nouns that are a type: "films that", "films directed"."""
SUBJECT_PRONOUNS = en.word_list("subject_pronouns")
WORDS_CONTINUING_QUESTION = en.DETERMINERS | en.FILLERS | {"of"}
"""Words that may stand between a question word and its noun: "which of the films"."""


@dataclass(slots=True)
class Chunk:
    """Content words that belong together, and the words before and after them."""

    words: list[str] = field(default_factory=list)
    is_verb: bool = False
    before: str = ""
    """The function word before the chunk, "noun" after another chunk, "" at the beginning."""
    after: str = ""
    """The function word after it, or END_OF_QUESTION, MENTIONED_NAME, "verb", "noun" or "co"."""
    is_with_question_word: bool = False
    """Whether it is the noun of a question word, as in "which films"."""
    is_shared: bool = False
    """Whether the relation leads there and back: "films that share an actor with X"."""
    is_after_subject: bool = False
    """Whether a pronoun that is the subject of a verb stands right before it: "do you sow"."""
    joining_word: str = ""
    """The first word before it that is not a determiner or filler; "" for the object of a verb."""
    is_before_name: bool = False

    @property
    def phrase(self) -> str:
        """The words as a relation: the phrase of all of them in RELATION_PHRASES, if there is one.

        Otherwise the last word is replaced by its phrase. No word stands twice.
        """
        phrase = RELATION_PHRASES.get("_".join(self.words))
        if phrase is None:
            *others, last = self.words
            phrase = " ".join([*others, relation_phrase(last)])
        unique_words = dict.fromkeys(phrase.split())
        return " ".join(unique_words)

    @property
    def begins_with_verb(self) -> bool:
        """Whether the first word is a verb form that no word before it marks as a noun."""
        if self.before in en.WORDS_BEFORE_NOUNS:
            return False
        return self.is_after_subject or is_verb(self.words[0])

    @property
    def is_made_by(self) -> bool:
        """Whether it is a noun that "by" or "with" joins to the name after it: "papers by X"."""
        if self.is_verb or self.is_shared:
            return False
        return self.is_before_name and self.after in ("by", "with")


Chunks = list[Chunk]


def split_into_chunks(words: Words, end: str) -> Chunks:
    """Return the content words of a part of a question, in chunks that function words separate.

    A verb form is a chunk of its own. Function words and numbers are left out: a year tells
    homonyms apart, and is not a relation. Each chunk knows what stood before and after it; after
    the last one that is ``end``, END_OF_QUESTION or MENTIONED_NAME.
    """
    splitter = _Splitter()
    for word in words:
        splitter.add(word)
    splitter.close_chunk(end)
    return splitter.chunks


class _Splitter:
    """The chunks of the words so far, and the chunk that is still open."""

    def __init__(self) -> None:
        self.chunks: Chunks = []
        self.open = Chunk()
        self.last_words = ("", "")
        """The two words before the next one."""

    def add(self, word: str) -> None:
        """Add the next word: to the open chunk, as the beginning of a new one, or as a separator.

        Function words and light verbs separate chunks. A verb form begins a chunk of its own. A
        word that begins with "co-", or follows one of SHARING_WORDS, is shared; "in common" and
        "together" make the chunk before them shared. Numbers are left out. The order of the
        criteria counts: a word that meets several is treated by the first.
        """
        has_chunk = self.open.words or self.chunks
        auxiliary, subject = self.last_words
        self.last_words = (subject, word)
        if word.startswith("co-"):
            self.close_chunk("co")
            self.open.words = [word[3:]]
            self.open.is_shared = True
        elif word in ("common", "together") and has_chunk:  # have an actor in common with X
            self.close_chunk(word)
            self.chunks[-1].is_shared = True
        elif word in SHARING_WORDS:
            self.close_chunk(word)
            self.open.is_shared = True
            self.open.before = word
        elif word in CHUNK_SEPARATORS:
            self.close_chunk(word)
            self._add_separator(word)
        elif self.open.words and (is_verb(word) or self.open.begins_with_verb):
            self.close_chunk("verb" if is_verb(word) else "noun")
            self.open.words.append(word)
        elif not word.isdigit():
            is_verb_of_subject = auxiliary in en.AUXILIARIES and subject in SUBJECT_PRONOUNS
            if is_verb_of_subject and word not in en.SMALL_TALK_WORDS:
                self.open.is_after_subject = True
            self.open.words.append(word)

    def close_chunk(self, after: str) -> None:
        """End the open chunk and begin a new one; nothing happens if the open one has no words.

        ``after`` is what follows the chunk. A chunk of one word that is a verb form becomes a verb.
        """
        chunk = self.open
        if chunk.words:
            chunk.after = after
            is_noun = chunk.is_with_question_word and after in en.BE_FORMS  # which plays are
            chunk.is_verb = len(chunk.words) == 1 and chunk.begins_with_verb and not is_noun
            self.chunks.append(chunk)
            self.open = Chunk(before="noun")

    def _add_separator(self, word: str) -> None:
        """Note a function word on the open chunk, as the word before the chunk's own words.

        ``before`` is the last such word, ``joining_word`` the first. Fillers are noted as neither,
        and determiners are not a joining word. The chunk stands with a question word if only
        WORDS_CONTINUING_QUESTION come between.
        """
        chunk = self.open
        if word in en.QUESTION_WORDS:
            chunk.is_with_question_word = True
        elif word not in WORDS_CONTINUING_QUESTION:
            chunk.is_with_question_word = False
        if word in en.FILLERS:
            return
        chunk.before = word
        if word not in en.DETERMINERS and not chunk.joining_word:
            chunk.joining_word = word


def relations_before_name(chunks: Chunks) -> Chunks:
    """Return the chunks before a name that are relations, in the order of the words.

    Nouns that are the type of something are left out. A noun right after a verb replaces the verb's
    words if it names a known relation ("won the award"). After "the same" a noun makes the verb a
    shared relation ("acted in the same film as X"). The chunks are changed by this.
    """
    relations: Chunks = []
    for position, chunk in enumerate(chunks):
        follows_verb = relations and relations[-1].is_verb
        is_object = follows_verb and not chunk.is_verb and not chunk.joining_word
        later = chunks[position + 1 :]
        if follows_verb and chunk.before == "same":
            relations[-1].is_shared = True
        elif is_object and chunk.words[-1] in RELATION_PHRASES:
            relations[-1].words = chunk.words
        elif chunk.joining_word == "for" and chunk.after == "of":  # films for the director of X
            chunk.is_shared = True
            relations.append(chunk)
        elif not _is_type_noun(chunk, later, has_relation=bool(relations)):
            relations.append(chunk)
    return relations


def relations_after_name(chunks: Chunks) -> Chunks:
    """Return the chunks after a name that are relations.

    If there are verbs, it is the first verb alone; it becomes shared if any chunk is. Otherwise
    these are the nouns without a question word, or all nouns if each has one. Empty without chunks.
    """
    verbs = [chunk for chunk in chunks if chunk.is_verb]
    if verbs:
        verb = verbs[0]
        verb.is_shared = any(chunk.is_shared for chunk in chunks)
        return [verb]
    return without_question_words(chunks) or chunks


def without_question_words(chunks: Chunks) -> Chunks:
    """Return the chunks that are not the noun of a question word."""
    return [chunk for chunk in chunks if not chunk.is_with_question_word]


def _is_defined_by(chunk: Chunk, later: Chunks) -> bool:
    """Return whether the next chunk is a noun with "of" that says what the thing is.

    Of several things it needs no article: "which classes are subclasses of". It does not say so
    after a preposition: "in which province is the city of" asks for a place.
    """
    if chunk.joining_word not in en.QUESTION_WORDS or chunk.after not in en.BE_FORMS or not later:
        return False
    following = later[0]
    is_noun = following.before in ("the", "a", "an", "are", "were") and not following.is_verb
    return is_noun and following.after == "of"


def _is_type_noun(chunk: Chunk, later: Chunks, *, has_relation: bool) -> bool:
    """Return whether a chunk before a name is the type of something, and not a relation.

    Verbs, shared relations, and nouns before "by" or "with" never are. For others the first of these
    criteria that applies decides. After "their" it is; after "whose" it is not. With a question word
    it is before "have" or a light verb, and if a later chunk has the same phrase or says what it is
    ("which company is the operator of"). The object of a verb is, unless "of" follows. Right before
    the name it is, unless it is the first relation and "of" stands before it. Otherwise it is before
    one of WORDS_AFTER_TYPE_NOUNS, before an auxiliary with a verb, and a place is if there is a
    relation before it.

    ``later`` are the chunks between it and the name. ``has_relation`` is whether there is a relation
    before it.
    """
    if chunk.is_verb or chunk.is_shared or chunk.after in ("by", "with"):
        return False
    if chunk.before in ("whose", "their"):
        return chunk.before == "their"
    if chunk.is_with_question_word:
        is_named_again = any(other.phrase == chunk.phrase for other in later)
        has_type_verb = chunk.after in en.HAVE_FORMS | en.LIGHT_VERBS  # which cars have X
        if is_named_again or has_type_verb or _is_defined_by(chunk, later):
            return True
    if has_relation and not chunk.joining_word:  # the object of a verb
        return chunk.after != "of"
    if chunk.after == MENTIONED_NAME:  # an apposition: the film X
        return has_relation or chunk.before != "of"

    is_type = chunk.after in WORDS_AFTER_TYPE_NOUNS
    if chunk.after in en.AUXILIARIES:
        is_before_verb = bool(later) and later[0].is_verb  # films that were directed
        is_type = is_before_verb or (has_relation and chunk.before == "of")
    is_place = has_relation and chunk.words[-1] in en.PLACE_WORDS  # born in the city of X
    return is_type or is_place


UNSUPPORTED_WORDS = en.word_list("unsupported")
FILLER_PHRASES = re.compile(
    r"(\[[^\[\]]*\])| - the \w+, not the \w+|\b(in the world|on earth|by any chance|in particular|got any"
    r"|at the moment|right now|at present|(meant|supposed|expected) to(?= be\b)"
    r"|makes? up|i'm after|get(?= (the|a|an|some)\b)|after(?=[.?!]|$)|(before|after)(?= (i|we)\b)"
    r"|(?<=its |his |her |eir )own|work(s|ed|ing)?(?= as (an?|the)\b)|the names? of(?= (the|all|a)\b))",
    re.I,
)
"""Phrases that change nothing in a question. Group 1 is a name in square brackets, which is kept."""
VERBS_OF_SEVERAL_WORDS: dict[str, re.Pattern[str]] = {}
"""For a verb, the phrases in whose place it is read."""
for _verb, _phrases in en.LEXICON["verbs"].items():
    VERBS_OF_SEVERAL_WORDS[_verb] = re.compile(rf"\b({_phrases})\b")
KIND_OF_TERM = re.compile(
    r"^(which|what) (class(es)?|concepts?|kinds?|predicates?|propert(y|ies)|relations?)"
    r"(?= (is|are)\b.* (sub|super)[- ]?(class|concept|propert))",
    re.I,
)
"""The beginning of a question about the classes or predicates of a vocabulary, which is read as "What"."""
OF_EVENT = re.compile(rf"\b(date|day|year|time|place|city|country) of ({'|'.join(en.EVENTS)})\b")
"""A time or place of an event, which graphs name in one word or two: "birth date", "birthplace"."""
ORIGIN_VERB = "originate"
"""The verb that is read for "come from", and for "from" at the end of a question."""
FINAL_FROM = re.compile(r"(?<!ed )(?<!made )\bfrom(?=\s*\??\s*$)")
"""A "from" at the end that belongs to no participle, as that of "made from" does."""
COUNT_PHRASES = {("how", "many"), ("how", "much"), ("the", "number")}
JOINING_WORDS = en.DETERMINERS | {"and"}
WORDS_FOR_HAVING = en.HAVE_FORMS | {"with"}
BEGIN_AND_END_VERBS = ("begin", "start", "end")
IS_A_RELATION = "occupation position held type"
"""The relation that "is a" stands for between two names."""
HAS_RELATION = "starring equipment type"
"""The relation of "with" or "have" between a noun and a name ("cars with X")."""
MADE_BY_RELATION = "author director made by"
"""The relation of "by" between a noun and a name ("papers by X")."""
UNKNOWN_RELATION = "related to"
"""The relation of a name when the question has no words for one."""
Fact = tuple[str, str, str]
"""Subject, relation and object; unknowns begin with a question mark."""
QuestionKind = Literal["boolean", "count", "list"]


class RelationStep(NamedTuple):
    """A relation on the way from a name to what is asked for."""

    relation: str
    is_backward: bool
    """Whether the next thing is the subject of the triple, and not the object."""


class Comparison(NamedTuple):
    """A condition on the values of an unknown: an operator and a number, year, date or text.

    The operators "max" and "min" need no value.
    """

    unknown: str
    operator: str
    value: str = ""


class ParsedQuestion(NamedTuple):
    """A question as triples, with what is asked for."""

    facts: tuple[Fact, ...]
    target: str
    """The unknown that is asked for; in a yes-or-no question, the subject that it is about."""
    kind: QuestionKind
    comparisons: tuple[Comparison, ...] = ()


class Unread(NamedTuple):
    """What of a question its reading leaves out or guesses, in sentences for a person."""

    reasons: Sequence[str] = ()
    """Why the question must not be answered."""
    doubts: Sequence[str] = ()
    """Words that were left out, which may or may not change the answer, or that were read as others."""
    is_guess: bool = False
    """Whether no word says the predicate, and it is only near to one in meaning."""
    has_left_out: bool = False
    """Whether a doubt is that a word was not read."""
    found_things: bool = False
    """Whether the reason is that things were found, and another kind of value is asked for."""

    @property
    def problems(self) -> list[str]:
        """The reasons, and the doubts that are no guesses: for an answer that cannot be in doubt."""
        problems = list(self.reasons)
        if not self.is_guess:
            problems += self.doubts
        return problems


Read = tuple[ParsedQuestion, Unread]
"""A reading of a question, with what it leaves out."""


def parse_question(question: str, kg: Graph | None) -> ParsedQuestion:
    """Read a question as triples, by the grammar alone; the graph is only used to find names.

    Filler phrases are removed first. Without a graph, names are words with capitals or in brackets.
    Raises ModelError if the question has one of UNSUPPORTED_WORDS, which the grammar cannot read.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_mentions(question, kg)
    return parse_tokens(tokens, mentions, kg)


def parse_tokens(tokens: Sequence[Token], mentions: Mentions, kg: Graph | None) -> ParsedQuestion:
    """Read a question as triples, given its tokens and its names.

    Each group of names gives one chain of relations, read in the words between the group before and
    it; the last group has the words after it as well. A group without relations of its own has
    those of the group before it. In a yes-or-no question with several groups the first one is the
    subject: its chain leads to "?subject", which the chains of the others lead to as well; without
    relations, the name itself takes that place. Of "which members of X have a car" the thing in the
    middle of the chain is asked for. Without any name there are no facts.

    Raises ModelError if a word of UNSUPPORTED_WORDS stands outside of the names.
    """
    words = lowercase_words(tokens)
    unsupported = find_unsupported_word(words_without_names(mentions, tokens))
    if unsupported:
        raise ModelError(
            f"the model rules cannot read {unsupported!r}, and would answer a different question",
            hint="reword the question, or choose another model",
        )
    all_mentions = _add_stated_class(words, mentions, kg)
    groups = _group_mentions(words, all_mentions)
    kind = _question_kind(tokens, words)

    facts: list[Fact] = []
    target = "?answer"
    steps: list[RelationStep] = []
    start = 0
    for group in groups:
        is_first = group is groups[0]
        left = words[start : group[0].start]
        start = group[-1].end
        right: list[str] = []
        if group is groups[-1]:
            right = words[start:]
        if len(group) > 1:  # "together" refers to all names of the group
            right = [word for word in right if word != "together"]
        reader = _NameReader(left, right, is_first)
        steps = reader.relation_steps() or steps

        if kind == "boolean" and is_first and len(groups) > 1:
            if not steps:
                target = group[0].text
                continue
            target = "?subject"
        for mention in group:
            facts += _chain_facts(mention.text, steps, target, len(facts))
    if len(facts) == len(steps) == 2 and words[0] in en.QUESTION_WORDS:
        name = groups[0][0]
        is_main_verb = en.ACTIVE_AUXILIARIES.isdisjoint(words[: name.start])
        if is_main_verb and not en.HAVE_FORMS.isdisjoint(right[:1]):
            # which members of X have a car: not the cars are asked for
            facts = _chain_facts(name.text, steps[::-1], target, 0)
            target = next(end for end in facts[0] if end.startswith("?"))
    return ParsedQuestion(tuple(facts), target, kind)


def find_unsupported_word(words: Words) -> str:
    """Return the first of UNSUPPORTED_WORDS that is no part of a verb, or "no" in "have no"; else ""."""
    for before, word in pairwise(["", *words]):
        has_none = word == "no" and before in WORDS_FOR_HAVING
        if has_none or (word in UNSUPPORTED_WORDS and not is_part_of_verb(before, word)):
            return word
    return ""


def is_part_of_verb(before: str, word: str) -> bool:
    """Return whether a word is the "after" of "look after" or "named after"."""
    return word == "after" and before.startswith(("look", "named"))


@lru_cache(maxsize=256)  # each rule of a run reads the same question
def remove_filler_phrases(question: str) -> str:
    """Return the question without phrases that change nothing, such as "by any chance".

    A verb of several words in lower case becomes one word: "where does X come from". "Date of birth"
    becomes "birth date".
    """
    question = KIND_OF_TERM.sub("What", question)
    question = OF_EVENT.sub(r"\2 \1", question)
    question = FILLER_PHRASES.sub(lambda match: match[1] or "", question)
    for word, phrase in VERBS_OF_SEVERAL_WORDS.items():
        question = phrase.sub(word, question)
    return FINAL_FROM.sub(ORIGIN_VERB, question)


def expected_value_type(words: Sequence[str]) -> tuple[str, str]:
    """Return the type of value that a question asks for, and the kind of place.

    The first is "date" for "when" and for a word of time after "what" or "which" ("in what year");
    else "place" for a word of place after these ("which city"), and for "where" in a question
    without "which"; else "". The second is that word of place, in the singular, or "".
    """
    place = ""
    asks_when = "when" in words or "when's" in words
    for word, next_word in pairwise(words):
        if word not in ("what", "which"):
            continue
        noun = singularize(next_word)
        if noun in en.TIME_WORDS:
            asks_when = True
        if noun in en.PLACE_WORDS and not place:
            place = noun

    asks_where = "where" in words and "which" not in words
    if asks_when:
        return "date", place
    if place or asks_where:
        return "place", place
    return "", ""


def _add_stated_class(words: Words, mentions: Mentions, kg: Graph | None) -> Mentions:
    """Return the names, and the last word too if it states a class that the graph has as a label.

    It does after "a" or "an" ("was X a chemist"), or as a plural soon after a form of "be" ("were
    they also chemists").
    """
    last = len(words) - 1
    if kg is None or not mentions or mentions[-1].end > last:
        return mentions
    word_before, word = words[-2:]
    class_name = singularize(word)
    is_plural_after_be = class_name != word and not en.BE_FORMS.isdisjoint(words[-3:-1])
    is_stated = word_before in ("a", "an") or is_plural_after_be
    if not is_stated or not find_labelled(kg, class_name):
        return mentions
    return [*mentions, Mention(last, last + 1, class_name)]


def _group_mentions(words: Words, mentions: Mentions) -> list[list[Mention]]:
    """Return the names in groups; the names of a group have the same relations.

    A name joins the one before it if nothing stands between them, or only "and" and determiners.
    The groups are in the order of the names. Without names the list is empty.
    """
    groups: list[list[Mention]] = []
    for mention in mentions:
        if groups:
            group = groups[-1]
            between = set(words[group[-1].end : mention.start])
            is_list = "and" in between and between <= JOINING_WORDS
            if is_list or not between:
                group.append(mention)
                continue
        groups.append([mention])
    return groups


def _question_kind(tokens: Sequence[Token], words: Words) -> QuestionKind:
    """Return "boolean" for a yes-or-no question, "count" for a number, else "list".

    A yes-or-no question begins with an auxiliary. It is not one if its subject is polite ("Can you
    tell me"), or if a question word begins a later sentence or stands up to four words after "and".
    A question for a number has one of COUNT_PHRASES, such as "how many".
    """
    is_boolean = bool(words) and words[0] in en.AUXILIARIES
    if len(words) > 1 and words[1] in en.POLITE_SUBJECTS:
        is_boolean = False
    for position in range(1, len(words)):
        # The slice is empty for the first words: "and" does not count there
        follows_and = "and" in words[position - 4 : position]
        begins_question = follows_and or tokens[position].begins_sentence
        if begins_question and words[position] in en.WH_WORDS:
            is_boolean = False
    if is_boolean:
        return "boolean"
    if COUNT_PHRASES.isdisjoint(pairwise(words)):
        return "list"
    return "count"


def _chain_facts(
    name: str, steps: Sequence[RelationStep], target: str, fact_count: int
) -> list[Fact]:
    """Return the facts that lead step by step from a name to the target.

    The unknowns in between are "?xN", numbered after ``fact_count``, the number of facts before. A
    step that is backward has its places exchanged. Without steps there is one fact of
    UNKNOWN_RELATION.
    """
    facts: list[Fact] = []
    place = name
    for step in steps or [RelationStep(UNKNOWN_RELATION, False)]:
        next_place = target
        if len(facts) < len(steps) - 1:
            next_place = f"?x{fact_count + len(facts) + 1}"
        if step.is_backward:
            facts.append((next_place, step.relation, place))
        else:
            facts.append((place, step.relation, next_place))
        place = next_place
    return facts


class _NameReader:
    """Reads the relations of one name in the words around it."""

    def __init__(self, left: list[str], right: list[str], is_first: bool) -> None:
        """Keep the words, and find how the name is asked about.

        ``left`` are the words before the name, ``right`` those after it. ``is_first`` is whether the
        question begins with ``left``.
        """
        self.left = left
        self.right = right
        self.is_first = is_first
        self.value_type, self.place = expected_value_type([*left, *right])
        self.is_asked_before = not (en.WH_WORDS | en.IMPERATIVES).isdisjoint(left)
        """Whether a question word or an imperative stands before the name."""
        self.is_asked_after = not en.WH_WORDS.isdisjoint(right)
        self.is_subject = not en.AUXILIARIES.isdisjoint(left[-3:])
        """Whether an auxiliary stands right before the name: "did X direct"."""
        self.is_inverted = self.is_subject or left[:1] == ["of"]
        """Whether it is a subject, or the question begins with "of": "of which country is X"."""

    def relation_steps(self) -> list[RelationStep]:
        """Return the relations from the name to what is asked for, the nearest first; [] if none.

        These are the relations of the chunks that belong to the name, then those before it, then
        those at the end of the question. Without such chunks, "is a", "with" or "have" before the
        name is the relation, else the time or place that is asked for.
        """
        chunks = split_into_chunks(self.right, END_OF_QUESTION)
        inner_count = self._inner_chunk_count(chunks)
        inner = relations_after_name(chunks[:inner_count])
        closing = chunks[inner_count:]
        is_active = not en.ACTIVE_AUXILIARIES.isdisjoint(self.left)
        if closing and is_active and closing[-1].before not in en.DETERMINERS:
            closing[-1].is_verb = True
        if closing and self.left[:1] == ["of"] and not closing[-1].is_verb:
            closing[-1].words.append("of")  # of which country is X the capital
        before, after = self._combine(relations_after_name(closing))

        chain = [*inner, *reversed(before), *after]
        if chain:
            return self._steps_of_chunks(chain)
        if self._is_after_be():
            return [RelationStep(IS_A_RELATION, True)]
        if not WORDS_FOR_HAVING.isdisjoint(self.left[-3:]):
            return [RelationStep(HAS_RELATION, True)]
        if self.value_type:
            return [RelationStep(self.place or self.value_type, False)]
        return []

    def _inner_chunk_count(self, chunks: Chunks) -> int:
        """Return how many of the chunks after the name belong to it.

        After a possessive these are the chunks up to the first verb, but at least one. None does if
        the question word is not before the name, or if the name is the subject of a verb after it.
        Otherwise all do, except for a last chunk that belongs to the beginning of the question: a
        verb after a name that is inverted or in a question for a time or place ("when was X
        released"), or the only chunk after an inverted name ("of which country is X the capital").
        """
        count = len(chunks)
        if self.right[:1] == ["'s"]:
            for position in range(1, count):
                if chunks[position].is_verb:
                    return position
            return count

        has_verb = any(chunk.is_verb for chunk in chunks)
        is_subject_of_verb = self.is_subject and has_verb
        if not chunks or not self.is_asked_before or is_subject_of_verb:
            return 0
        is_opened = self.is_inverted or self.value_type
        is_only_chunk = self.is_inverted and count == 1
        if is_opened and (is_only_chunk or chunks[-1].is_verb):
            return count - 1
        return count

    def _combine(self, after: Chunks) -> tuple[Chunks, Chunks]:
        """Return the relations before the name, and those that are left of ``after``.

        ``after`` are the relations at the end of the question. If there are any, those before the
        name with a question word are left out. A verb such as "start" at the end is joined to the
        relation before the name. If nothing is asked before or after the name and the end has no
        verb, a relation that is named at both places is kept once. The chunks before the name are
        marked as such.
        """
        chunks = split_into_chunks(self.left, MENTIONED_NAME)
        before = relations_before_name(chunks)
        for chunk in before:
            chunk.is_before_name = True
        if after:
            before = without_question_words(before)
            verb = after[0].words
            if before and verb[0] in BEGIN_AND_END_VERBS:  # when did production of X start
                before[0].words += verb
                after = []

        is_asked = self.is_asked_before or self.is_asked_after
        if not is_asked and not any(chunk.is_verb for chunk in after):
            # was the music for X composed: the relation is named twice
            phrases = {chunk.phrase for chunk in before}
            after = [chunk for chunk in after if chunk.phrase not in phrases]
        return before, after

    def _is_after_be(self) -> bool:
        """Return whether a form of "be" stands right before the name, or only "a" or "an".

        A form of "be" that begins the question does not count: it only makes it a yes-or-no
        question. The three words before the name are looked at.
        """
        if self.left in (["a"], ["an"]):
            return True
        words = set(self.left[-3:])
        if self.is_first:
            words.difference_update(self.left[:1])
        return not en.BE_FORMS.isdisjoint(words)

    def _steps_of_chunks(self, chunks: Chunks) -> list[RelationStep]:
        """Return the steps for chunks, one for each relation; a shared one has two, there and back.

        The last relation leads to the date or place that is asked for. If the last chunk is an
        event and a kind of place is asked for ("in which country"), one more step leads to that.
        """
        steps: list[RelationStep] = []
        for chunk in chunks:
            value_type = ""
            if chunk is chunks[-1]:
                value_type = self.value_type
            step = _step_of_chunk(chunk, value_type)
            steps.append(step)
            if chunk.is_shared:
                steps.append(RelationStep(step.relation, not step.is_backward))

        events = en.PLACED_EVENTS
        if self.place in ("city", "town"):
            events = en.PRODUCTION_EVENTS
        last_words = chunks[-1].words
        if self.place and not events.isdisjoint(last_words):
            relation = RELATION_PHRASES.get(self.place, f"{self.place} located in")
            steps.append(RelationStep(relation, False))
        return steps


def _step_of_chunk(chunk: Chunk, value_type: str) -> RelationStep:
    """Return the relation that a chunk stands for, and its direction.

    The relation is the phrase of the chunk. A noun joined to the name by "by" or "with" is
    MADE_BY_RELATION or HAS_RELATION. A passive verb without a known phrase gets "by". ``value_type``
    is "date" or "place" if the relation must lead to one: "birth date" for "born".

    Relations lead forward, away from the name. Verbs before the name, and nouns joined to it, lead
    backward ("who influenced X"), but for those of "you" or "they" ("what do you grow on X"). An
    active verb whose phrase leads to the agent by itself ("directed by") is turned once more.
    """
    relation = chunk.phrase
    first_word = chunk.words[0]
    last_word = chunk.words[-1]
    if chunk.is_made_by and chunk.after == "by":
        relation = MADE_BY_RELATION
    elif chunk.is_made_by:
        relation = HAS_RELATION
    elif value_type:
        if leads_to_agent(relation):
            relation = last_word
        known = RELATION_PHRASES.get(f"{first_word}_{value_type}")
        relation = known or f"{relation} {value_type}"

    is_verb_about_name = chunk.is_before_name and chunk.is_verb and not chunk.is_after_subject
    is_backward = chunk.is_made_by or is_verb_about_name
    if chunk.is_verb and chunk.after == "by":
        if last_word not in RELATION_PHRASES:
            relation = f"{relation} by"
    elif chunk.is_verb and leads_to_agent(relation):
        is_backward = not is_backward
    return RelationStep(relation, is_backward)
