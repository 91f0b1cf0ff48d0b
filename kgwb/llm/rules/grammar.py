"""From a question to triples: a right-branching reading of English questions.

A question is read as a chain from each name to what is asked for. Every content word is either a relation (a verb, or a
noun with "of", a possessive or a copula) or says of what kind something is ("films" in "films directed by"). Words
before the name stand outermost first; words right after it belong to it; a verb left at the end belongs to the question
word. "Share", "same", "also" and "together" make a relation lead there and back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgwb.kg.base import Graph
from kgwb.llm.rules.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    GENERAL_NOUNS,
    HAVING,
    LIGHT_VERBS,
    MEASURES,
    PREPOSITIONS,
    RELATIVES,
    SENSE_OF,
    WH,
    Mention,
    Token,
    is_verb,
    mentions,
    singular,
    stem,
    tokens_of,
)

TIMES = frozenset("year years date dates day time century decade month".split())
PLACES = frozenset("place places country countries city cities town location".split())
IDIOMS = re.compile(r"\b(in the world|on earth|by any chance|in particular|the names? of(?= (the|all|a)\b))", re.IGNORECASE)
AGENTIVE = ("or", "ors", "er", "ers", "ist", "ists", "ian", "ians")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Content words that belong together, with what stands around them."""

    words: tuple[str, ...]
    verb: bool
    before: str = ""
    """The function word before it."""
    after: str = ""
    """The function word after it; "." at the end, "@" for the name."""
    asked: bool = False
    """Whether it stands with the question word ("which films")."""
    same: bool = False
    """Whether "same", "share" or "co-" makes it a relation there and back."""
    joint: str = ""
    """The preposition or other joining word between the chunk before and this one; "" for a verb's object."""

    @property
    def text(self) -> str:
        return " ".join(self.words)


def triples(question: str, kg: Graph | None) -> dict[str, object]:
    """The reply of the QIR agent: entities, unknowns, triples, target and question type."""
    question = IDIOMS.sub("", question)
    tokens = tokens_of(question)
    names = mentions(question, tokens, kg)
    names = [name for name in names if not _only_tells_apart(name, tokens, names)]
    kind = _kind(tokens)
    chains = _chains(tokens, names)
    if kind == "boolean" and len(names) > 1:
        relation = next((chain[0] for chain in reversed(chains) if chain), "related to")
        facts = [[names[0].text, relation, name.text] for name in names[1:]]
        return _reply(names, [], facts, "", kind)
    facts, unknowns, target = _facts(names, chains, kind)
    return _reply(names, unknowns, facts, target, kind)


def _reply(
    names: Sequence[Mention], unknowns: list[str], facts: list[list[str]], target: str, kind: str
) -> dict[str, object]:
    made = [{"subject": s, "predicate": p, "object": o} for s, p, o in facts]
    return {
        "entities": [name.text for name in names],
        "unknowns": unknowns,
        "triples": made,
        "target": target,
        "question_type": kind,
    }


def _facts(
    names: Sequence[Mention], chains: Sequence[Sequence[str]], kind: str
) -> tuple[list[list[str]], list[str], str]:
    """One chain of facts a name, all ending in the same unknown."""
    target = "?answer"
    facts: list[list[str]] = []
    unknowns = [target]
    for name, chain in zip(names, chains, strict=True):
        here = name.text
        relations = list(chain) or ["related to"]
        for number, relation in enumerate(relations):
            last = number == len(relations) - 1
            there = target if last else f"?x{len(unknowns)}"
            if not last:
                unknowns.append(there)
            facts.append([here, relation, there])
            here = there
    return facts, unknowns, "" if kind == "boolean" else target


def _kind(tokens: Sequence[Token]) -> str:
    lower = [token.lower for token in tokens]
    if lower and lower[0] in AUXILIARIES and "name" not in lower[:4] and not {"can", "could"} & set(lower[:1]):
        return "boolean"
    if any(a == "how" and b in ("many", "much") for a, b in zip(lower, lower[1:], strict=False)):
        return "count"
    return "count" if "number" in lower and lower[lower.index("number") + 1 :][:1] == ["of"] else "list"


def _only_tells_apart(name: Mention, tokens: Sequence[Token], names: Sequence[Mention]) -> bool:
    """A year before another name ("the 1972 film X") says which one is meant and is no entity of its own."""
    following = next((other for other in names if other.first >= name.last), None)
    return name.text.isdigit() and following is not None and following.first - name.last <= 1


# --- chains -----------------------------------------------------------------------------------------------------------


def _chains(tokens: Sequence[Token], names: Sequence[Mention]) -> list[list[str]]:
    """For each name its relations, from the name outwards."""
    chains: list[list[str]] = []
    start = 0
    for number, name in enumerate(names):
        end = names[number + 1].first if number + 1 < len(names) else len(tokens)
        left = [token.lower for token in tokens[start : name.first]]
        right = [token.lower for token in tokens[name.last : end]] if number + 1 == len(names) else []
        chain = _chain(left, right)
        if number and not chain and chains:
            chain = list(chains[-1])
        chains.append(chain)
        start = name.last
    if len(chains) == 2 and not chains[0]:
        chains[0] = list(chains[1])
    return chains


def _chain(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The relations of one name, nearest first, from the words before and after it."""
    asked_right = any(word in WH for word in right)
    asked_left = any(word in WH for word in left)
    opened = asked_left and not asked_right and _wants_verb(left)
    outer = _chunks(left, ends_at_name=True)
    after = _chunks(right, ends_at_name=False)
    inner, closing = _split(after, left, opened, asked_left and not asked_right, possessive=right[:1] == ["'s"])
    lefts = _relations_left(outer, bool(closing) or "their" in left, there="their" in left)
    rights = _relations_right(closing)
    if rights and opened:
        lefts = [chunk for chunk in lefts if not chunk.asked]
    if not asked_left and not asked_right and not any(chunk.verb for chunk in rights) or opened:
        said = {_phrase(chunk) for chunk in lefts}  # describe X in a few words; was the music for X composed
        rights = [chunk for chunk in rights if _phrase(chunk) not in said]
    return _phrases([*_relations_right(inner, every=True), *reversed(lefts), *rights], _hint([*left, *right]))


def _split(
    after: list[Chunk], left: Sequence[str], opened: bool, attributive: bool, *, possessive: bool
) -> tuple[list[Chunk], list[Chunk]]:
    """The chunks after the name that belong to it, and those that close the question's clause."""
    if possessive:
        verbs = [number for number, chunk in enumerate(after) if chunk.verb or chunk.before in AUXILIARIES]
        place = next((number for number in verbs if number), len(after))
        return after[:place], after[place:]
    if not attributive:
        return [], after
    if opened and _subject(left) and any(chunk.verb for chunk in after):
        return [], after
    if opened and after and (after[-1].verb or (len(after) == 1 and _subject(left))):
        return after[:-1], after[-1:]
    return after, []


def _wants_verb(left: Sequence[str]) -> bool:
    """Whether the part before the name opened a clause whose verb is still to come ("when was", "which films did")."""
    for number, word in enumerate(left):
        if word in WH:
            rest = left[number + 1 :]
            verbs = [w for w in rest if w in AUXILIARIES]
            timed = word in ("when", "where", "how") or (bool(rest) and singular(rest[0]) in TIMES | PLACES)
            return bool(verbs) and (timed or verbs[0] in ("do", "does", "did", "has", "have") or _subject(left))
    return False


def _subject(left: Sequence[str]) -> bool:
    """Whether the name is the subject of the question: an auxiliary stands before it, but for an article or a noun."""
    tail = [word for word in left[-4:] if word not in DETERMINERS]
    return any(word in AUXILIARIES for word in tail[-2:])


def _hint(words: Sequence[str]) -> str:
    """What kind of value the question word asks for: "date", "place", "who" or nothing."""
    pairs = set(zip(words, words[1:], strict=False))
    if "when" in words or "when's" in words or pairs & {(w, t) for w in ("what", "which") for t in TIMES}:
        return "date"
    if "where" in words or pairs & {(w, t) for w in ("what", "which") for t in PLACES}:
        return "place"
    return "who" if words[:1] == ["who"] or pairs & {("how", "many")} and "people" in words else ""


def _chunks(words: Sequence[str], *, ends_at_name: bool) -> list[Chunk]:
    """Content words grouped between function words; a verb form is a chunk of its own."""
    chunks: list[Chunk] = []
    current: list[str] = []
    before, joint, asked, same = "", "", False, False

    def close(after: str) -> None:
        nonlocal current, asked, same, before, joint
        if current:
            verb = len(current) == 1 and is_verb(current[0]) and before not in ("the", "a", "their", "whose", "same")
            chunks.append(Chunk(tuple(current), verb, before, after, asked, same, joint))
            current, asked, same, before, joint = [], False, False, "noun", ""

    for number, word in enumerate(words):
        if word.isdigit():  # a year tells homonyms apart, it is no relation
            continue
        noun = words[number + 1 : number + 2] == ["of"] and word.endswith("s")
        plain = word.replace("-", " ") if word.startswith("co-") else word
        if plain.startswith("co ") or (word.startswith("co") and word[2:3] == "-"):
            close("co")
            current, same = [word[3:]], True
        elif word in ("same", "share", "shares", "shared", "common"):
            close(word)
            same, before = True, word
        elif word in MEASURES and before == "how":
            current = [MEASURES[word]]
        elif word in AUXILIARIES | PREPOSITIONS | RELATIVES | WH | DETERMINERS | FILLERS | LIGHT_VERBS or word == "their":
            close(word)
            asked = word in ("which", "what", "whose", "how", "many") or (asked and word in ("many", "of"))
            if word == "together" and chunks:
                place = max((n for n, chunk in enumerate(chunks) if chunk.verb), default=len(chunks) - 1)
                chunks[place] = _mark(chunks[place])
            if word not in FILLERS or word in ("many",):
                before = word
                joint = joint if word in DETERMINERS else joint or word
        elif is_verb(word) and current and not noun:
            close("verb")
            current, before = [word], "noun"
        elif current and len(current) == 1 and is_verb(current[0]) and before not in ("the", "a", "same", "their"):
            close("noun")
            current, before = [word], "verb"
        else:
            current.append(word)
    close("@" if ends_at_name else ".")
    return chunks


def _mark(chunk: Chunk) -> Chunk:
    return replace(chunk, same=True)


def _relations_left(chunks: Sequence[Chunk], closing: bool, *, there: bool) -> list[Chunk]:
    """Those chunks before the name that are relations, outermost first."""
    kept: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        later = chunks[number + 1 :]
        if set(chunk.words) <= GENERAL_NOUNS:
            continue
        if chunk.same and kept and kept[-1].verb and chunk.before == "same":
            if kept[-1].after in ("in", "on", "for"):  # acted in the same film
                kept[-1] = _mark(kept[-1])
                continue
            kept.pop()  # directed by the same director
        if kept and kept[-1].verb and not chunk.joint and not chunk.verb and chunk.words[-1] in SENSE_OF:
            kept[-1] = _with_object(kept[-1], [chunk])
        elif chunk.joint == "for" and chunk.after == "of" and chunk.words[-1].endswith(AGENTIVE):
            kept.append(_mark(chunk))  # films for the director of X
        elif chunk.verb or chunk.same:
            kept.append(chunk)
        elif not _is_type(chunk, later, kept, closing, there):
            kept.append(chunk)
    return kept


def _is_type(chunk: Chunk, later: Sequence[Chunk], kept: Sequence[Chunk], closing: bool, there: bool) -> bool:
    """Whether a noun only says of what kind something is."""
    if chunk.before == "their":
        return True
    if kept and kept[-1].verb and not chunk.joint:  # the verb's object
        return chunk.after != "of" or bool(set(_phrase(chunk).split()) & set(_phrase(kept[-1]).split()))
    if chunk.before == "whose":
        return False
    if chunk.after == "@":  # "the film X": apposition
        role = chunk.words[-1].endswith(AGENTIVE) and bool(kept) and not kept[-1].verb
        role = role and kept[-1].words[-1].endswith(AGENTIVE)
        for_role = chunk.words[-1].endswith(AGENTIVE) and bool(kept) and chunk.joint == "for"
        return not (role or for_role) and not (not kept and not closing and chunk.before == "of")
    if chunk.after in ("share", "shares", "co", "verb", "that", "which", "who", "whose", "where"):
        return not there
    if chunk.after in AUXILIARIES:
        if chunk.before == "of" and kept:  # what genre of film is
            return True
        return bool(later) and chunk.after in HAVING or any(c.verb and c.before in AUXILIARIES for c in later[:1])
    return False


def _relations_right(chunks: Sequence[Chunk], *, every: bool = False) -> list[Chunk]:
    """The relation that chunks after the name say: the verb if there is one, else the noun; or ``every`` noun."""
    verbs = [number for number, chunk in enumerate(chunks) if chunk.verb]
    if verbs:
        first = chunks[verbs[0]]
        timed = [c for c in chunks if not c.verb and c.words[-1] in TIMES | PLACES]
        first = _with_object(first, chunks[verbs[0] + 1 :])
        words = (*first.words, *(singular(c.words[-1]) for c in timed[:1]))
        made = replace(first, words=words, same=first.same or any(c.same for c in chunks))
        return [*(c for c in chunks[: verbs[0]] if every), made]
    nouns = [chunk for chunk in chunks if not set(chunk.words) <= GENERAL_NOUNS]
    return [chunk for chunk in nouns if not chunk.asked] or nouns


def _with_object(verb: Chunk, later: Sequence[Chunk]) -> Chunk:
    """A verb whose object says which relation is meant: to write the music is to compose."""
    if later and not later[0].joint and not later[0].verb and later[0].words[-1] in SENSE_OF:
        return replace(verb, words=later[0].words)
    return verb


def _phrases(chunks: Sequence[Chunk], hint: str) -> list[str]:
    """The relations as phrases, those there and back twice."""
    phrases: list[str] = []
    for number, chunk in enumerate(chunks):
        text = _phrase(chunk)
        if number == len(chunks) - 1 and hint:
            text = _hinted(chunk, text, hint)
        phrases += [text, text] if chunk.same else [text]
    return phrases or [hint] * (hint in ("date", "place"))


def _hinted(chunk: Chunk, text: str, hint: str) -> str:
    """A relation with the kind of value that is asked for."""
    if chunk.words[0] in ("founded", "established", "founding"):
        return {"date": "founding date inception founded", "who": "founder founded by"}.get(hint, "founding place")
    if hint == "who":
        return f"{text} by" if chunk.verb and text == chunk.text else text
    return text if set(chunk.words) & (TIMES | PLACES) else f"{text} {hint}"


def _phrase(chunk: Chunk) -> str:
    """The words of a relation; the last one, if of a known family, replaced by the noun for it."""
    sense = SENSE_OF.get(chunk.words[-1], chunk.words[-1])
    return " ".join(dict.fromkeys(" ".join((*chunk.words[:-1], sense)).split()))


__all__ = ["stem", "triples"]
