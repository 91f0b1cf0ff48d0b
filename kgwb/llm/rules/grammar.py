"""From a question to triples: a right-branching reading of English questions.

A question is read as a chain from each name to what is asked for. Every content word is either a relation (a
verb, or a noun with "of", a possessive or a copula) or says of what kind something is ("films" in "films
directed by"). Words before the name stand outermost first; words right after it belong to it; a verb left at
the end belongs to the question word. "Share", "same" and "together" make a relation lead there and back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import (
    RELATION_PHRASES,
    Mention,
    Token,
    find_mentions,
    is_verb,
    singularize,
    tokenize,
)

UNSUPPORTED_WORDS = frozenset(
    ("not", "never", "nor", "without", "except", "before", "after", "than")
)
FILLER_PHRASES = re.compile(
    r"(\[[^\[\]]*\])| - the \w+, not the \w+|\b(in the world|on earth|by any chance|in particular|got any"
    r"|makes? up|i'm after|get(?= (the|a|an|some)\b)|(before|after)(?=[.?!]|$| (i|we)\b)"
    r"|work(s|ed|ing)?(?= as (an?|the)\b)|the names? of(?= (the|all|a)\b))",
    re.I,
)
"""What says nothing; a name in square brackets is left alone."""
AGENTIVE_SUFFIXES = ("or", "ors", "er", "ers", "ist", "ists", "ian", "ians")
CHUNK_SEPARATORS = en.FUNCTION_WORDS | en.LIGHT_VERBS | {"their"}
IS_A_RELATION = "occupation position held type"
"""What "is a" says between two names."""
HAS_RELATION = "starring equipment type"
"""What "with" or "have" says between a noun and a name ("cars with X")."""
MADE_BY_RELATION = "author director made by"
"""What "by" says between a noun and a name ("papers by X")."""
Fact = tuple[str, str, str]
"""Subject, relation and object; unknowns begin with a question mark."""
RelationStep = tuple[str, bool]
"""A relation, and whether it leads from the next thing back to the one it was read at."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Content words that belong together, and the function words around them ("." the end, "@" the name).

    ``asked``: it stands with the question word; ``same``: it leads there and back; ``joint``: the joining
    word before it, "" for a verb's object; ``left``: it stands before the name.
    """

    words: tuple[str, ...]
    is_verb: bool
    before: str = ""
    after: str = ""
    is_with_question_word: bool = False
    is_shared: bool = False
    joining_word: str = ""
    is_before_name: bool = False

    @property
    def phrase(self) -> str:
        """The words of a relation; the last one, if of a known family, replaced by the noun for it."""
        last = self.words[-1]
        whole = RELATION_PHRASES.get("_".join(self.words)) or " ".join(
            (*self.words[:-1], RELATION_PHRASES.get(last, last))
        )
        return " ".join(dict.fromkeys(whole.split()))


class ParsedQuestion(NamedTuple):
    """A question as triples, with what is asked for."""

    facts: tuple[Fact, ...]
    target: str
    """The unknown that is asked for; of a yes-or-no question what is spoken of."""
    kind: Literal["boolean", "count", "list"]


def parse_question(question: str, kg: Graph | None) -> ParsedQuestion:
    """What the grammar reads. Raises ModelError for words that it would pass over ("not", "before")."""
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    return parse_tokens(tokens, find_mentions(question, tokens, kg), kg)


def parse_tokens(
    tokens: Sequence[Token], mentioned: Sequence[Mention], kg: Graph | None
) -> ParsedQuestion:
    """What the grammar reads in words of which it is known what they name; raises as ``read`` does."""
    words, names = [token.lowercase for token in tokens], [*mentioned]
    unread = [
        w
        for n, w in enumerate(words)
        if w in UNSUPPORTED_WORDS and not any(m.start <= n < m.end for m in names)
    ]
    if unread:
        hint = "reword the question, or choose another model"
        raise ModelError(
            f"rules does not read {unread[0]!r}, and would answer another question", hint=hint
        )
    last = len(words) - 1
    kind = singularize(words[-1]) if words else ""
    stated = words[-2:-1] in (["a"], ["an"]) or (
        [kind] != words[-1:] and en.BE_FORMS & {*words[-3:-1]}
    )
    if kg and names and names[-1].end <= last and stated and kg.exact([kind]):
        names.append(Mention(last, last + 1, kind))  # was X a chemist, were they also chemists
    groups = _group_mentions(words, names)
    goes_on = any(
        t.lowercase in en.WH_WORDS and n and (t.begins_sentence or "and" in words[n - 4 : n])
        for n, t in enumerate(tokens)
    )
    asks = (
        words[:1]
        and words[0] in en.AUXILIARIES
        and not ({*words[1:2]} & en.POLITE_SUBJECTS)
        and not goes_on
    )
    counts = {("how", "many"), ("how", "much"), ("the", "number")} & {*pairwise(words)}
    facts: list[Fact] = []
    target = "?answer"
    chain: list[RelationStep] = []  # a group without relations shares its neighbour's
    start = 0
    for group in groups:
        left, start = words[start : group[0].start], group[-1].end
        right = [word for word in words[start:] if len(group) == 1 or word != "together"]
        chain = (
            _relation_chain(left, right if group is groups[-1] else [], first=group is groups[0])
            or chain
        )
        subject = asks and group is groups[0] and len(groups) > 1  # what is spoken of
        if subject:
            target = "?subject" if chain else group[0].text
        for name in group if chain or not subject else ():
            steps = chain or [("related to", False)]
            ends = [name.text, *(f"?x{len(facts) + n}" for n in range(1, len(steps))), target]
            facts += [
                (b, says, a) if back else (a, says, b)
                for (a, b), (says, back) in zip(pairwise(ends), steps, strict=True)
            ]
    return ParsedQuestion(
        tuple(facts), target, "boolean" if asks else "count" if counts else "list"
    )


def remove_filler_phrases(question: str) -> str:
    """The question without what says nothing."""
    return FILLER_PHRASES.sub(lambda idiom: idiom[1] or "", question)


def _group_mentions(words: Sequence[str], names: Sequence[Mention]) -> list[list[Mention]]:
    """Names joined by "and" or a comma are one group: the same is said of each."""
    groups: list[list[Mention]] = []
    for name in names:
        between = words[groups[-1][-1].end : name.start] if groups else ["none"]
        if not between or ("and" in between and {*between} <= en.DETERMINERS | {"and"}):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _relation_chain(
    left: Sequence[str], right: Sequence[str], *, first: bool
) -> list[RelationStep]:
    """The relations of one name, nearest first, from the words before and after it."""
    asked_right = bool(en.WH_WORDS & {*right})
    asked_left = bool((en.WH_WORDS | en.IMPERATIVES) & {*left})
    hint, site = expected_value_type([*left, *right])
    subject = bool(en.AUXILIARIES & {*left[-3:]})  # an auxiliary stands before the name
    fronted = left[:1] == ["of"]  # of which country is X the capital
    opened = fronted or subject or bool(hint)
    outer = [replace(chunk, is_before_name=True) for chunk in _split_into_chunks(left, "@")]
    inner = _split_into_chunks(right, ".")
    at = len(
        inner
    )  # where the chunks begin that close the question's clause, and do not belong to the name
    if right[:1] == ["'s"]:
        at = next((n for n, chunk in enumerate(inner) if n and chunk.is_verb), at)
    elif not asked_left or (subject and any(chunk.is_verb for chunk in inner)):
        at = 0
    elif opened and inner and (inner[-1].is_verb or (at == 1 and (fronted or subject))):
        at -= 1
    inner, closing = inner[:at], inner[at:]
    lefts = _relations_before_name(outer)
    if closing and en.ACTIVE_AUXILIARIES & {*left}:
        closing[-1] = replace(closing[-1], is_verb=True)
    rights = _relations_after_name(closing)
    if rights:
        lefts = [chunk for chunk in lefts if not chunk.is_with_question_word]
        if lefts and rights[0].words[0] in (
            "begin",
            "start",
            "end",
        ):  # when did production of X start
            lefts[0], rights = replace(lefts[0], words=(*lefts[0].words, *rights[0].words)), []
    if not (asked_left or asked_right or any(chunk.is_verb for chunk in rights)):
        phrases = {chunk.phrase for chunk in lefts}  # was the music for X composed
        rights = [chunk for chunk in rights if chunk.phrase not in phrases]
    chain = [*_relations_after_name(inner), *reversed(lefts), *rights]
    being = en.BE_FORMS & {*left[-3:]} - {*left[:first]}
    if not chain and (being or left in (["a"], ["an"])):
        return [(IS_A_RELATION, True)]
    if not chain and {*left[-3:]} & (en.HAVE_FORMS | {"with"}):
        return [(HAS_RELATION, True)]
    return _to_relation_steps(chain, hint, site)


def expected_value_type(words: Sequence[str]) -> tuple[str, str]:
    """What kind of value is asked for ("date", "place" or nothing), and of what kind a place."""
    asked = [singularize(b) for a, b in pairwise(words) if a in ("what", "which")]
    site = next((word for word in asked if word in en.PLACE_WORDS), "")
    if {"when", "when's"} & {*words} or en.TIME_WORDS & {*asked}:
        return "date", site
    if site or ("where" in words and "which" not in words):
        return "place", site
    return "", ""


def _split_into_chunks(words: Sequence[str], end: str) -> list[Chunk]:
    """Content words grouped between function words; a verb form is a chunk of its own."""
    chunks: list[Chunk] = []
    current: list[str] = []
    before, joint, asked, same = "", "", False, False

    def close(after: str) -> None:
        nonlocal current, asked, same, before, joint
        if current:
            verb = len(current) == 1 and is_verb(current[0]) and before not in en.WORDS_BEFORE_NOUNS
            chunks.append(Chunk(tuple(current), verb, before, after, asked, same, joint))
            current, asked, same, before, joint = [], False, False, "noun", ""

    for word in words:
        if word.startswith("co-"):
            close("co")
            current, same = [word[3:]], True
        elif word in ("common", "together") and (
            current or chunks
        ):  # have an actor in common with X
            close(word)
            chunks[-1] = replace(chunks[-1], is_shared=True)
        elif word in ("same", "share", "shares", "shared", "common"):
            close(word)
            same, before = True, word
        elif word in CHUNK_SEPARATORS:
            close(word)
            asked = word in en.QUESTION_WORDS or (
                asked and word in en.DETERMINERS | en.FILLERS | {"of"}
            )
            if word not in en.FILLERS:
                before, joint = word, joint if word in en.DETERMINERS else joint or word
        elif current and (
            is_verb(word) or (is_verb(current[0]) and before not in en.WORDS_BEFORE_NOUNS)
        ):
            close("verb" if is_verb(word) else "noun")
            current, before = [word], "noun"
        elif not word.isdigit():  # a year tells homonyms apart, it is no relation
            current.append(word)
    close(end)
    return chunks


def _relations_before_name(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Those chunks before the name that are relations, outermost first."""
    kept: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        if (
            chunk.before == "same" and kept and kept[-1].is_verb
        ):  # acted in the same film, directed by the same
            kept[-1] = replace(kept[-1], is_shared=True)
            continue
        later = chunks[number + 1 :]
        is_object = (
            bool(kept) and kept[-1].is_verb and not chunk.joining_word
        )  # it is the object of the verb before it
        if is_object and not chunk.is_verb and chunk.words[-1] in RELATION_PHRASES:
            kept[-1] = replace(kept[-1], words=chunk.words)
        elif chunk.joining_word == "for" and chunk.after == "of":
            kept.append(replace(chunk, is_shared=True))  # films for the director of X
        elif (
            chunk.after in ("by", "with")
            or chunk.is_verb
            or chunk.is_shared
            or not _is_type_noun(chunk, later, kept)
        ):
            kept.append(chunk)
    return kept


def _is_type_noun(chunk: Chunk, later: Sequence[Chunk], kept: Sequence[Chunk]) -> bool:
    """Whether a noun only says of what kind something is."""
    if chunk.before in ("whose", "their"):
        return chunk.before == "their"
    asks = chunk.after in en.HAVE_FORMS | en.LIGHT_VERBS  # which cars have X
    if chunk.is_with_question_word and (asks or any(c.phrase == chunk.phrase for c in later)):
        return True
    if kept and not chunk.joining_word:  # the verb's object
        return chunk.after != "of"
    if chunk.after == "@":  # "the film X": apposition
        return bool(kept) or chunk.before != "of"
    if chunk.after in ("share", "shares", "co", "verb", "that", "which", "who", "whose", "where"):
        return True
    be = chunk.after in en.AUXILIARIES
    within = bool(kept) and (
        chunk.words[-1] in en.PLACE_WORDS or (be and chunk.before == "of")
    )  # the city of X
    return within or (be and any(c.is_verb for c in later[:1]))


def _relations_after_name(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The relation that chunks after the name say: the verb if there is one, else the nouns."""
    if verbs := [chunk for chunk in chunks if chunk.is_verb]:
        return [replace(verbs[0], is_shared=any(chunk.is_shared for chunk in chunks))]
    return [chunk for chunk in chunks if not chunk.is_with_question_word] or list(chunks)


def leads_to_agent(relation: str) -> bool:
    """Whether a relation leads from a thing to whoever did it: directed by, director."""
    return relation.endswith((" by", *AGENTIVE_SUFFIXES))


def _to_relation_steps(chunks: Sequence[Chunk], hint: str, site: str) -> list[RelationStep]:
    """The relations as phrases with their directions, those there and back twice."""
    steps: list[RelationStep] = []
    for chunk in chunks:
        says = chunk.phrase
        of_maker = (
            chunk.is_before_name
            and chunk.after in ("by", "with")
            and not chunk.is_verb
            and not chunk.is_shared
        )
        back = chunk.is_before_name and (chunk.is_verb or of_maker)
        if of_maker:
            says = MADE_BY_RELATION if chunk.after == "by" else HAS_RELATION
        elif chunk is chunks[-1] and hint:
            hinted = f"{chunk.words[-1] if leads_to_agent(says) else says} {hint}"
            says = RELATION_PHRASES.get(f"{chunk.words[0]}_{hint}", hinted)
        if chunk.is_verb and chunk.after == "by":
            says = says if chunk.words[-1] in RELATION_PHRASES else f"{says} by"
        elif chunk.is_verb and leads_to_agent(says):
            back = not back  # who directed X: X, directed by, who
        steps += [(says, back), (says, not back)] if chunk.is_shared else [(says, back)]
    if site and steps and en.EVENT_WORDS[site in ("city", "town")] & {*chunks[-1].words}:
        steps.append(
            (RELATION_PHRASES.get(site, f"{site} located in"), False)
        )  # where it was, and in which country
    return steps or [(site or hint, False)] * bool(hint)
