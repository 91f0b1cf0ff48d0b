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
from kgwb.llm.rules.words import SENSE_OF, Mention, Token, is_verb, mentions, singular, tokens_of

UNREAD = frozenset(("not", "never", "nor", "without", "except", "before", "after", "than"))
IDIOMS = re.compile(
    r"(\[[^\[\]]*\])| - the \w+, not the \w+|\b(in the world|on earth|by any chance|in particular|got any"
    r"|makes? up|i'm after|get(?= (the|a|an|some)\b)|(before|after)(?=[.?!]|$| (i|we)\b)"
    r"|work(s|ed|ing)?(?= as (an?|the)\b)|the names? of(?= (the|all|a)\b))",
    re.I,
)
"""What says nothing; a name in square brackets is left alone."""
AGENTIVE = ("or", "ors", "er", "ers", "ist", "ists", "ian", "ians")
GRAMMATICAL = en.FUNCTION_WORDS | en.LIGHT_VERBS | {"their"}
KIND = "occupation position held type"
"""What "is a" says between two names."""
HAS = "starring equipment type"
"""What "with" or "have" says between a noun and a name ("cars with X")."""
MADE_BY = "author director made by"
"""What "by" says between a noun and a name ("papers by X")."""
Fact = tuple[str, str, str]
"""Subject, relation and object; unknowns begin with a question mark."""
Step = tuple[str, bool]
"""A relation, and whether it leads from the next thing back to the one it was read at."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Content words that belong together, and the function words around them ("." the end, "@" the name).

    ``asked``: it stands with the question word; ``same``: it leads there and back; ``joint``: the joining
    word before it, "" for a verb's object; ``left``: it stands before the name.
    """

    words: tuple[str, ...]
    verb: bool
    before: str = ""
    after: str = ""
    asked: bool = False
    same: bool = False
    joint: str = ""
    left: bool = False

    @property
    def phrase(self) -> str:
        """The words of a relation; the last one, if of a known family, replaced by the noun for it."""
        last = self.words[-1]
        whole = SENSE_OF.get("_".join(self.words)) or " ".join(
            (*self.words[:-1], SENSE_OF.get(last, last))
        )
        return " ".join(dict.fromkeys(whole.split()))


class Reading(NamedTuple):
    """A question as triples, with what is asked for."""

    facts: tuple[Fact, ...]
    target: str
    """The unknown that is asked for; of a yes-or-no question what is spoken of."""
    kind: Literal["boolean", "count", "list"]


def read(question: str, kg: Graph | None) -> Reading:
    """What the grammar reads. Raises ModelError for words that it would pass over ("not", "before")."""
    question = plain(question)
    tokens = tokens_of(question)
    return read_tokens(tokens, mentions(question, tokens, kg), kg)


def read_tokens(tokens: Sequence[Token], mentioned: Sequence[Mention], kg: Graph | None) -> Reading:
    """What the grammar reads in words of which it is known what they name; raises as ``read`` does."""
    words, names = [token.lower for token in tokens], [*mentioned]
    unread = [
        w
        for n, w in enumerate(words)
        if w in UNREAD and not any(m.first <= n < m.last for m in names)
    ]
    if unread:
        hint = "reword the question, or choose another model"
        raise ModelError(
            f"rules does not read {unread[0]!r}, and would answer another question", hint=hint
        )
    last = len(words) - 1
    kind = singular(words[-1]) if words else ""
    stated = words[-2:-1] in (["a"], ["an"]) or (
        [kind] != words[-1:] and en.BEING & {*words[-3:-1]}
    )
    if kg and names and names[-1].last <= last and stated and kg.exact([kind]):
        names.append(Mention(last, last + 1, kind))  # was X a chemist, were they also chemists
    groups = _groups(words, names)
    goes_on = any(
        t.lower in en.WH and n and (t.opens or "and" in words[n - 4 : n])
        for n, t in enumerate(tokens)
    )
    asks = (
        words[:1] and words[0] in en.AUXILIARIES and not ({*words[1:2]} & en.POLITE) and not goes_on
    )
    counts = {("how", "many"), ("how", "much"), ("the", "number")} & {*pairwise(words)}
    facts: list[Fact] = []
    target = "?answer"
    chain: list[Step] = []  # a group without relations shares its neighbour's
    start = 0
    for group in groups:
        left, start = words[start : group[0].first], group[-1].last
        right = [word for word in words[start:] if len(group) == 1 or word != "together"]
        chain = (
            _chain(left, right if group is groups[-1] else [], first=group is groups[0]) or chain
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
    return Reading(tuple(facts), target, "boolean" if asks else "count" if counts else "list")


def plain(question: str) -> str:
    """The question without what says nothing."""
    return IDIOMS.sub(lambda idiom: idiom[1] or "", question)


def _groups(words: Sequence[str], names: Sequence[Mention]) -> list[list[Mention]]:
    """Names joined by "and" or a comma are one group: the same is said of each."""
    groups: list[list[Mention]] = []
    for name in names:
        between = words[groups[-1][-1].last : name.first] if groups else ["none"]
        if not between or ("and" in between and {*between} <= en.DETERMINERS | {"and"}):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _chain(left: Sequence[str], right: Sequence[str], *, first: bool) -> list[Step]:
    """The relations of one name, nearest first, from the words before and after it."""
    asked_right = bool(en.WH & {*right})
    asked_left = bool((en.WH | en.IMPERATIVES) & {*left})
    hint, site = wanted([*left, *right])
    subject = bool(en.AUXILIARIES & {*left[-3:]})  # an auxiliary stands before the name
    fronted = left[:1] == ["of"]  # of which country is X the capital
    opened = fronted or subject or bool(hint)
    outer = [replace(chunk, left=True) for chunk in _chunks(left, "@")]
    inner = _chunks(right, ".")
    at = len(
        inner
    )  # where the chunks begin that close the question's clause, and do not belong to the name
    if right[:1] == ["'s"]:
        at = next((n for n, chunk in enumerate(inner) if n and chunk.verb), at)
    elif not asked_left or (subject and any(chunk.verb for chunk in inner)):
        at = 0
    elif opened and inner and (inner[-1].verb or (at == 1 and (fronted or subject))):
        at -= 1
    inner, closing = inner[:at], inner[at:]
    lefts = _relations_left(outer)
    if closing and en.ACTIVE & {*left}:
        closing[-1] = replace(closing[-1], verb=True)
    rights = _relations_right(closing)
    if rights:
        lefts = [chunk for chunk in lefts if not chunk.asked]
        if lefts and rights[0].words[0] in (
            "begin",
            "start",
            "end",
        ):  # when did production of X start
            lefts[0], rights = replace(lefts[0], words=(*lefts[0].words, *rights[0].words)), []
    if not (asked_left or asked_right or any(chunk.verb for chunk in rights)):
        phrases = {chunk.phrase for chunk in lefts}  # was the music for X composed
        rights = [chunk for chunk in rights if chunk.phrase not in phrases]
    chain = [*_relations_right(inner), *reversed(lefts), *rights]
    being = en.BEING & {*left[-3:]} - {*left[:first]}
    if not chain and (being or left in (["a"], ["an"])):
        return [(KIND, True)]
    if not chain and {*left[-3:]} & (en.HAVING | {"with"}):
        return [(HAS, True)]
    return _steps(chain, hint, site)


def wanted(words: Sequence[str]) -> tuple[str, str]:
    """What kind of value is asked for ("date", "place" or nothing), and of what kind a place."""
    asked = [singular(b) for a, b in pairwise(words) if a in ("what", "which")]
    site = next((word for word in asked if word in en.PLACES), "")
    if {"when", "when's"} & {*words} or en.TIMES & {*asked}:
        return "date", site
    if site or ("where" in words and "which" not in words):
        return "place", site
    return "", ""


def _chunks(words: Sequence[str], end: str) -> list[Chunk]:
    """Content words grouped between function words; a verb form is a chunk of its own."""
    chunks: list[Chunk] = []
    current: list[str] = []
    before, joint, asked, same = "", "", False, False

    def close(after: str) -> None:
        nonlocal current, asked, same, before, joint
        if current:
            verb = len(current) == 1 and is_verb(current[0]) and before not in en.NOUN_NEXT
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
            chunks[-1] = replace(chunks[-1], same=True)
        elif word in ("same", "share", "shares", "shared", "common"):
            close(word)
            same, before = True, word
        elif word in GRAMMATICAL:
            close(word)
            asked = word in en.ASKING or (asked and word in en.DETERMINERS | en.FILLERS | {"of"})
            if word not in en.FILLERS:
                before, joint = word, joint if word in en.DETERMINERS else joint or word
        elif current and (is_verb(word) or (is_verb(current[0]) and before not in en.NOUN_NEXT)):
            close("verb" if is_verb(word) else "noun")
            current, before = [word], "noun"
        elif not word.isdigit():  # a year tells homonyms apart, it is no relation
            current.append(word)
    close(end)
    return chunks


def _relations_left(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Those chunks before the name that are relations, outermost first."""
    kept: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        if (
            chunk.before == "same" and kept and kept[-1].verb
        ):  # acted in the same film, directed by the same
            kept[-1] = replace(kept[-1], same=True)
            continue
        later = chunks[number + 1 :]
        is_object = (
            bool(kept) and kept[-1].verb and not chunk.joint
        )  # it is the object of the verb before it
        if is_object and not chunk.verb and chunk.words[-1] in SENSE_OF:
            kept[-1] = replace(kept[-1], words=chunk.words)
        elif chunk.joint == "for" and chunk.after == "of":
            kept.append(replace(chunk, same=True))  # films for the director of X
        elif (
            chunk.after in ("by", "with")
            or chunk.verb
            or chunk.same
            or not _is_type(chunk, later, kept)
        ):
            kept.append(chunk)
    return kept


def _is_type(chunk: Chunk, later: Sequence[Chunk], kept: Sequence[Chunk]) -> bool:
    """Whether a noun only says of what kind something is."""
    if chunk.before in ("whose", "their"):
        return chunk.before == "their"
    asks = chunk.after in en.HAVING | en.LIGHT_VERBS  # which cars have X
    if chunk.asked and (asks or any(c.phrase == chunk.phrase for c in later)):
        return True
    if kept and not chunk.joint:  # the verb's object
        return chunk.after != "of"
    if chunk.after == "@":  # "the film X": apposition
        return bool(kept) or chunk.before != "of"
    if chunk.after in ("share", "shares", "co", "verb", "that", "which", "who", "whose", "where"):
        return True
    be = chunk.after in en.AUXILIARIES
    within = bool(kept) and (
        chunk.words[-1] in en.PLACES or (be and chunk.before == "of")
    )  # the city of X
    return within or (be and any(c.verb for c in later[:1]))


def _relations_right(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The relation that chunks after the name say: the verb if there is one, else the nouns."""
    if verbs := [chunk for chunk in chunks if chunk.verb]:
        return [replace(verbs[0], same=any(chunk.same for chunk in chunks))]
    return [chunk for chunk in chunks if not chunk.asked] or list(chunks)


def passive(relation: str) -> bool:
    """Whether a relation leads from a thing to whoever did it: directed by, director."""
    return relation.endswith((" by", *AGENTIVE))


def _steps(chunks: Sequence[Chunk], hint: str, site: str) -> list[Step]:
    """The relations as phrases with their directions, those there and back twice."""
    steps: list[Step] = []
    for chunk in chunks:
        says = chunk.phrase
        of_maker = (
            chunk.left and chunk.after in ("by", "with") and not chunk.verb and not chunk.same
        )
        back = chunk.left and (chunk.verb or of_maker)
        if of_maker:
            says = MADE_BY if chunk.after == "by" else HAS
        elif chunk is chunks[-1] and hint:
            hinted = f"{chunk.words[-1] if passive(says) else says} {hint}"
            says = SENSE_OF.get(f"{chunk.words[0]}_{hint}", hinted)
        if chunk.verb and chunk.after == "by":
            says = says if chunk.words[-1] in SENSE_OF else f"{says} by"
        elif chunk.verb and passive(says):
            back = not back  # who directed X: X, directed by, who
        steps += [(says, back), (says, not back)] if chunk.same else [(says, back)]
    if site and steps and en.EVENTS[site in ("city", "town")] & {*chunks[-1].words}:
        steps.append(
            (SENSE_OF.get(site, f"{site} located in"), False)
        )  # where it was, and in which country
    return steps or [(site or hint, False)] * bool(hint)
