"""The grammar of the model ``rules``: from an English question to triples.

A question is read as a chain of relations from each name to what is asked for. Words before the
name are read from the name outwards, so that the first of them is the last relation. Words right
after the name belong to it. A verb that is left at the end belongs to the question word. "Share",
"same" and "together" make a relation lead there and back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.llm.rules import words as en
from kgwb.llm.rules.chunks import (
    END_OF_QUESTION,
    MENTIONED_NAME,
    Chunk,
    Chunks,
    relations_after_name,
    relations_before_name,
    split_into_chunks,
    without_question_words,
)
from kgwb.llm.rules.mentions import Mention, find_mentions
from kgwb.llm.rules.words import RELATION_PHRASES, Token, Words, singularize, tokenize

UNSUPPORTED_WORDS = frozenset(
    ("not", "never", "nor", "without", "except", "before", "after", "than")
)
FILLER_PHRASES = re.compile(
    r"(\[[^\[\]]*\])| - the \w+, not the \w+|\b(in the world|on earth|by any chance|in particular|got any"
    r"|makes? up|i'm after|get(?= (the|a|an|some)\b)|(before|after)(?=[.?!]|$| (i|we)\b)"
    r"|work(s|ed|ing)?(?= as (an?|the)\b)|the names? of(?= (the|all|a)\b))",
    re.I,
)
"""Phrases that change nothing in a question. Group 1 is a name in square brackets, which is kept."""
COUNT_PHRASES = {("how", "many"), ("how", "much"), ("the", "number")}
JOINING_WORDS = en.DETERMINERS | {"and"}
WORDS_FOR_HAVING = en.HAVE_FORMS | {"with"}
BEGIN_AND_END_VERBS = ("begin", "start", "end")
AGENTIVE_SUFFIXES = ("or", "ors", "er", "ers", "ist", "ists", "ian", "ians")
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
Mentions = Sequence[Mention]


class RelationStep(NamedTuple):
    """A relation on the way from a name to what is asked for."""

    relation: str
    is_backward: bool
    """Whether the next thing is the subject of the triple, and not the object."""


class ParsedQuestion(NamedTuple):
    """A question as triples, with what is asked for."""

    facts: tuple[Fact, ...]
    target: str
    """The unknown that is asked for; in a yes-or-no question, the subject that it is about."""
    kind: QuestionKind


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
    relations, the name itself takes that place. Without any name there are no facts.

    Raises ModelError if a word of UNSUPPORTED_WORDS stands outside of the names.
    """
    words = [token.lowercase for token in tokens]
    _refuse_unsupported_words(words, mentions)
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
    return ParsedQuestion(tuple(facts), target, kind)


def remove_filler_phrases(question: str) -> str:
    """Return the question without phrases that change nothing, such as "by any chance"."""
    return FILLER_PHRASES.sub(lambda match: match[1] or "", question)


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


def leads_to_agent(relation: str) -> bool:
    """Return whether a relation leads from a thing to its maker or agent: "directed by", "author".

    It does if it ends in " by" or in one of AGENTIVE_SUFFIXES.
    """
    return relation.endswith((" by", *AGENTIVE_SUFFIXES))


def _refuse_unsupported_words(words: Words, mentions: Mentions) -> None:
    """Raise ModelError for the first word of UNSUPPORTED_WORDS that stands outside of the names.

    ``words`` are in lower case.
    """
    for position, word in enumerate(words):
        is_in_name = any(mention.start <= position < mention.end for mention in mentions)
        if word in UNSUPPORTED_WORDS and not is_in_name:
            raise ModelError(
                f"the model rules cannot read {word!r}, and would answer a different question",
                hint="reword the question, or choose another model",
            )


def _add_stated_class(words: Words, mentions: Mentions, kg: Graph | None) -> Mentions:
    """Return the names, and the last word too if it states a class that the graph has as a label.

    It does after "a" or "an" ("was X a chemist"), or as a plural soon after a form of "be" ("were
    they also chemists").
    """
    last = len(words) - 1
    if kg is None or not mentions or mentions[-1].end > last:
        return mentions
    *_, word_before, word = words
    class_name = singularize(word)
    is_stated = word_before in ("a", "an")
    if class_name != word:
        is_stated = is_stated or not en.BE_FORMS.isdisjoint(words[-3:-1])
    if not is_stated or not kg.exact([class_name]):
        return mentions
    stated_class = Mention(last, last + 1, class_name)
    return [*mentions, stated_class]


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
        if closing and not en.ACTIVE_AUXILIARIES.isdisjoint(self.left):
            closing[-1].is_verb = True
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
