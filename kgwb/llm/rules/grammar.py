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

from kgwb.kg.base import Graph
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import SENSE_OF, Mention, Token, is_verb, mentions, singular, tokens_of

IDIOMS = re.compile(
    r"\b(in the world|on earth|by any chance|in particular|the names? of(?= (the|all|a)\b))", re.I
)
AGENTIVE = ("or", "ors", "er", "ers", "ist", "ists", "ian", "ians")
GRAMMATICAL = (
    en.AUXILIARIES
    | en.PREPOSITIONS
    | en.RELATIVES
    | en.WH
    | en.DETERMINERS
    | en.FILLERS
    | en.LIGHT_VERBS
    | {"their"}
)
KIND = "occupation position held type"
"""What "is a" says between two names."""
HAS = "starring equipment type"
"""What "with" or "have" says between a noun and a name ("cars with X")."""
MADE_BY = "author director made by"
"""What "by" says between a noun and a name ("papers by X")."""
Step = tuple[str, bool]
"""A relation, and whether it leads from the next thing back to the one it was read at."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Content words that belong together, and the function words around them ("." the end, "@" the name)."""

    words: tuple[str, ...]
    verb: bool
    before: str = ""
    after: str = ""
    asked: bool = False
    """Whether it stands with the question word ("which films")."""
    same: bool = False
    """Whether "same", "share" or "co-" makes it a relation there and back."""
    joint: str = ""
    """The joining word between the chunk before and this one; "" for a verb's object."""
    left: bool = False
    """Whether it stands before the name as what the name is the object of."""

    @property
    def agent(self) -> bool:
        return self.words[-1].endswith(AGENTIVE)


def triples(question: str, kg: Graph | None) -> dict[str, object]:
    """The reply of the QIR agent: entities, unknowns, triples, target and question type."""
    question = IDIOMS.sub("", question)
    tokens = tokens_of(question)
    names = mentions(question, tokens, kg)
    names += _kinds(tokens, names, kg)
    names = [name for name in names if not _only_tells_apart(name, names, tokens)]
    kind = _kind([token.lower for token in tokens])
    groups = _groups(tokens, names)
    chains = _chains(tokens, groups)
    facts: list[tuple[str, str, str]] = []
    target = "?answer"
    if (
        kind == "boolean" and len(groups) > 1
    ):  # the first name, or what its chain leads to, is what is spoken of
        target = "?subject" if chains[0] else groups[0][0].text
        facts += [
            fact for name in groups[0] if chains[0] for fact in _facts(name.text, chains[0], target, facts)
        ]
        groups, chains = groups[1:], chains[1:]
    for group, chain in zip(groups, chains, strict=True):
        for name in group:
            facts += _facts(name.text, chain or [("related to", False)], target, facts)
    ends = dict.fromkeys(end for subject, _, object_ in facts for end in (subject, object_))
    return {
        "entities": [end for end in ends if not end.startswith("?")],
        "unknowns": [end for end in ends if end.startswith("?")],
        "triples": [{"subject": s, "predicate": p, "object": o} for s, p, o in facts],
        "target": "" if kind == "boolean" else target,
        "question_type": kind,
    }


def _facts(
    name: str, chain: Sequence[Step], target: str, before: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    """The facts that lead from a name along its chain to the target."""
    unknowns = [f"?x{len(before) + number}" for number in range(1, len(chain))]
    ends = pairwise([name, *unknowns, target])
    return [(b, says, a) if back else (a, says, b) for (a, b), (says, back) in zip(ends, chain, strict=True)]


def _kind(words: Sequence[str]) -> str:
    if words and words[0] in en.AUXILIARIES - {"can", "could"} and "name" not in words[:4]:
        return "boolean"
    counts = any(pair in (("how", "many"), ("how", "much"), ("number", "of")) for pair in pairwise(words))
    return "count" if counts else "list"


def _kinds(tokens: Sequence[Token], names: Sequence[Mention], kg: Graph | None) -> list[Mention]:
    """The kind that a closing "were also mathematicians" or "was a chemist" says, if it is a label."""
    last = len(tokens) - 1
    said = [token.lower for token in tokens[-4:-1]]
    if kg is None or not names or names[-1].last > last or last < 3 or not tokens[last].text.islower():
        return []
    kind = singular(tokens[last].lower)
    stated = bool({"a", "an"} & {*said[-1:]}) or bool(en.BEING & {*said[-2:]} and kind != tokens[last].lower)
    return [Mention(last, last + 1, kind, True)] if stated and kind in kg.exact([kind]) else []


def _only_tells_apart(name: Mention, names: Sequence[Mention], tokens: Sequence[Token]) -> bool:
    """A year or a name before another ("the 1972 film X", "the Nature article X") is no entity of its own."""
    between = next((tokens[name.last : other.first] for other in names if other.first >= name.last), None)
    if between is None or len(between) > 1 or {token.lower for token in between} & GRAMMATICAL:
        return False
    the = name.first > 0 and tokens[name.first - 1].lower == "the"
    return name.text.isdigit() or (the and len(between) == 1 and not is_verb(between[0].lower))


# --- chains ------------------------------------------------------------------------------------------------


def _groups(tokens: Sequence[Token], names: Sequence[Mention]) -> list[list[Mention]]:
    """Names joined by "and" or a comma are one group: the same is said of each."""
    groups: list[list[Mention]] = []
    for name in names:
        between = {token.lower for token in tokens[groups[-1][-1].last : name.first]} if groups else {"none"}
        if between <= en.DETERMINERS | {"and"} and (not between or "and" in between):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _chains(tokens: Sequence[Token], groups: Sequence[Sequence[Mention]]) -> list[list[Step]]:
    """For each group its relations, from the name outwards; one without any shares its neighbour's."""
    chains: list[list[Step]] = []
    start = 0
    words = [token.lower for token in tokens]
    said = {number for number in range(len(words)) if not en.of_nation((number, number + 1), tokens)}
    for number, group in enumerate(groups):
        left = [words[n] for n in range(start, group[0].first) if n in said]
        end = len(words) if number + 1 == len(groups) else 0
        right = [words[n] for n in range(group[-1].last, end) if n in said]
        right = [word for word in right if word != "together"] if len(group) > 1 else right
        chain = _chain(left, right, first=number == 0)
        chains.append(chain or (list(chains[-1]) if chains else []))
        start = group[-1].last
    return chains


def _chain(left: Sequence[str], right: Sequence[str], *, first: bool) -> list[Step]:
    """The relations of one name, nearest first, from the words before and after it."""
    asked_right = any(word in en.WH for word in right)
    asked_left = any(word in en.WH | en.IMPERATIVES for word in left) and not asked_right
    fronted = left[:1] == ["of"] and left[1:2] != [] and left[1] in en.WH  # of which country is X the capital
    opened = asked_left and (fronted or _wants_verb(left))
    outer = [replace(chunk, left=True) for chunk in _chunks(left, "@")]
    inner, closing = _split(_chunks(right, "."), left, opened, asked_left, right[:1] == ["'s"])
    lefts = _relations_left(outer, bool(closing) or "their" in left, there="their" in left)
    active = bool(en.ACTIVE & {*left})
    if closing and opened and {"do", "does", "did"} & {*left} and not any(chunk.verb for chunk in closing):
        closing[-1] = replace(closing[-1], verb=True)
    rights = _relations_right(closing)
    if rights and opened:
        counted = [c for c in lefts if c.asked and _phrase(c) == _phrase(rights[0])]
        if counted and "many" in left:  # how many prizes did X win: the number may be stored
            rights = [replace(counted[0], words=("number", "of", *counted[0].words), left=False)]
        lefts = [chunk for chunk in lefts if not chunk.asked]
        if lefts and rights[0].words[0] in en.PHASES:  # when did production of X start
            lefts[0], rights = replace(lefts[0], words=(*lefts[0].words, *rights[0].words)), []
        elif rights[0].words[-1] in en.MAKING and outer[-1].agent:
            rights = [replace(rights[0], words=outer[-1].words)]  # the films the director X made
        elif rights[0].words[0] in en.BELONG and outer[0].asked and outer[0].words[-1] in SENSE_OF:
            lefts, rights = outer[:1], []  # which genre does X belong to
    doubled = inner and lefts and inner[-1].verb and not active and not lefts[-1].verb
    if doubled and _phrase(lefts[-1]) == _phrase(inner[-1]):
        inner = inner[:-1]  # by whom was the music for X composed
    if (opened and not active) or (
        not asked_left and not asked_right and not any(chunk.verb for chunk in rights)
    ):
        said = {_phrase(chunk) for chunk in lefts}  # describe X in a few words; was the music for X composed
        rights = [chunk for chunk in rights if _phrase(chunk) not in said]
    words = [*left, *right]
    clause = max((n for n, word in enumerate(left) if n and word in en.RELATIVES), default=len(left))
    inside = len(_chunks(left[clause:], "@")) if inner and inner[-1].verb else 0
    lefts.reverse()
    owned = _relations_right(inner, every=True)
    chain = [*lefts[:inside], *owned, *lefts[inside:], *rights]  # books that films by X are based on
    tail = [word for word in left if word not in en.FILLERS | {"both", "the"}]
    stated = bool({*left[-3:]} & en.BEING) and not asked_right and not (first and left[0] in en.BEING)
    if not chain and (stated or left in (["a"], ["an"])):
        return [(KIND, True)]
    if not chain and {*tail[-2:]} & (en.HAVING | {"have", "with"}):
        return [(HAS, True)]
    return _steps(chain, _hint(words), _site(words))


def _split(
    after: list[Chunk], left: Sequence[str], opened: bool, attributive: bool, possessive: bool
) -> tuple[list[Chunk], list[Chunk]]:
    """The chunks after the name that belong to it, and those that close the question's clause."""
    if possessive:
        verbs = [number for number, chunk in enumerate(after) if chunk.verb or chunk.before in en.AUXILIARIES]
        place = next((number for number in verbs if number), len(after))
        return after[:place], after[place:]
    if not attributive:
        return [], after
    if left[-1] in en.RELATIVES:  # the university where X works
        return after[:1], after[1:]
    if opened and _subject(left) and any(chunk.verb for chunk in after):
        return [], after
    if opened and after and (after[-1].verb or (len(after) == 1 and (left[0] == "of" or _subject(left)))):
        return after[:-1], after[-1:]
    return after, []


def _wants_verb(left: Sequence[str]) -> bool:
    """Whether the part before the name opened a clause whose verb is still to come ("which films did")."""
    place = next((number for number, word in enumerate(left) if word in en.WH), len(left) - 1)
    rest = left[place + 1 :]
    verbs = [word for word in rest if word in en.AUXILIARIES]
    timed = left[place] in ("when", "where", "how") or (
        bool(rest) and singular(rest[0]) in en.TIMES | en.PLACES
    )
    return bool(verbs) and (timed or verbs[0] in ("do", "does", "did", "has", "have") or _subject(left))


def _subject(left: Sequence[str]) -> bool:
    """Whether the name is the subject: an auxiliary stands before it, but for an article or a noun."""
    return any(
        word in en.AUXILIARIES for word in [word for word in left[-4:] if word not in en.DETERMINERS][-2:]
    )


def _hint(words: Sequence[str]) -> str:
    """What kind of value the question word asks for: "date", "place", "who" or nothing."""
    pairs = set(pairwise(words))
    if {"when", "when's"} & set(words) or pairs & {(w, t) for w in ("what", "which") for t in en.TIMES}:
        return "date"
    if ("where" in words and "which" not in words) or pairs & {
        (w, t) for w in ("what", "which") for t in en.PLACES
    }:
        return "place"
    return "who" if words[:1] == ["who"] else ""


def _site(words: Sequence[str]) -> str:
    """The kind of place that is asked for: which country, which city."""
    asked = (b for a, b in pairwise(word for word in words if word != "federal") if a in ("which", "what"))
    return next((singular(word) for word in asked if word in en.PLACES), "")


def _chunks(words: Sequence[str], end: str) -> list[Chunk]:
    """Content words grouped between function words; a verb form is a chunk of its own."""
    chunks: list[Chunk] = []
    current: list[str] = []
    before, joint, asked, same = "", "", False, False

    def close(after: str) -> None:
        nonlocal current, asked, same, before, joint
        if current:
            verb = (
                len(current) == 1
                and is_verb(current[0])
                and before not in ("the", "a", "their", "whose", "same")
            )
            chunks.append(Chunk(tuple(current), verb, before, after, asked, same, joint))
            current, asked, same, before, joint = [], False, False, "noun", ""

    for number, word in enumerate(words):
        if word.isdigit():  # a year tells homonyms apart, it is no relation
            continue
        noun = words[number + 1 : number + 2] == ["of"] and word.endswith("s")
        if word.startswith("co-"):
            close("co")
            current, same = [word[3:]], True
        elif word == "common" and chunks:  # have an actor in common with X
            chunks[-1] = replace(chunks[-1], same=True)
        elif word in ("same", "share", "shares", "shared", "common"):
            close(word)
            same, before = True, word
        elif word in en.MEASURES and before == "how":
            current = [en.MEASURES[word]]
        elif word in GRAMMATICAL:
            close(word)
            asked = word in ("which", "what", "whose", "how", "many") or (
                asked and word in en.DETERMINERS | en.FILLERS | {"of"}
            )
            if word == "together" and chunks:
                place = max((n for n, chunk in enumerate(chunks) if chunk.verb), default=len(chunks) - 1)
                chunks[place] = replace(chunks[place], same=True)
            if word not in en.FILLERS or word == "many":
                before, joint = word, joint if word in en.DETERMINERS else joint or word
        elif is_verb(word) and current and not noun:
            close("verb")
            current, before = [word], "noun"
        elif len(current) == 1 and is_verb(current[0]) and before not in ("the", "a", "same", "their"):
            close("noun")
            current, before = [word], "verb"
        else:
            current.append(word)
    close(end)
    return chunks


def _relations_left(chunks: Sequence[Chunk], closing: bool, *, there: bool) -> list[Chunk]:
    """Those chunks before the name that are relations, outermost first."""
    kept: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        if set(chunk.words) <= en.GENERAL_NOUNS:
            continue
        if chunk.same and kept and kept[-1].verb and chunk.before == "same":
            if kept[-1].after in ("in", "on", "for"):  # acted in the same film
                place = ("place",) if chunk.words[-1] in en.PLACES else ()
                kept[-1] = replace(kept[-1], same=True, words=(*place, *kept[-1].words))
                continue
            kept.pop()  # directed by the same director
        later = chunks[number + 1 :]
        if kept and kept[-1].verb and not chunk.joint and not chunk.verb and chunk.words[-1] in SENSE_OF:
            if chunk.agent and _phrase(kept[-1]) == _phrase(chunk) and chunk.after in ("of", "from", "in"):
                kept.append(chunk)  # starring actors of X
            else:
                kept[-1] = _with_object(kept[-1], [chunk])
        elif (
            chunk.after in ("by", "with")
            and (not chunk.verb or chunk.words[-1] in en.MAKING)
            and not chunk.same
        ):
            object_ = bool(kept) and kept[-1].verb and not chunk.joint  # co-wrote films with X
            if not object_ and (
                chunk.after == "by" or not later or later[0].after == "@"
            ):  # films by X, films by the writer of X
                maker = later[0].words if later and later[0].agent else chunk.words
                kept.append(replace(chunk, words=maker, verb=maker is not chunk.words or chunk.verb))
        elif chunk.joint == "for" and chunk.after == "of" and chunk.agent:
            kept.append(replace(chunk, same=True))  # films for the director of X
        elif chunk.verb or chunk.same or not _is_type(chunk, later, kept, closing, there):
            kept.append(chunk)
    return kept


def _is_type(chunk: Chunk, later: Sequence[Chunk], kept: Sequence[Chunk], closing: bool, there: bool) -> bool:
    """Whether a noun only says of what kind something is."""
    if chunk.before in ("whose", "their"):
        return chunk.before == "their"
    asks = chunk.after in en.HAVING | en.LIGHT_VERBS and not later  # which cars have X
    city = chunk.after == "of" and kept and not later and chunk.words[-1] in en.PLACES  # the city of X
    if chunk.asked and (asks or any(_phrase(c) == _phrase(chunk) for c in later)):
        return True
    if kept and kept[-1].verb and not chunk.joint:  # the verb's object
        return chunk.after != "of" or bool(set(_phrase(chunk).split()) & set(_phrase(kept[-1]).split()))
    if chunk.after == "@":  # "the film X": apposition
        role = bool(kept) and (chunk.joint == "for" or (not kept[-1].verb and kept[-1].agent))
        role = role and chunk.agent and chunk.words[-1] in SENSE_OF
        return not role and not (not kept and not closing and chunk.before == "of")
    if chunk.after in ("share", "shares", "co", "verb", "that", "which", "who", "whose", "where"):
        return not there
    be = chunk.after in en.AUXILIARIES  # what genre of film is
    mood = (bool(later) and chunk.after in en.HAVING) or (chunk.before == "of" and bool(kept))
    return bool(city) or (be and (mood or any(c.verb and c.before in en.AUXILIARIES for c in later[:1])))


def _relations_right(chunks: Sequence[Chunk], *, every: bool = False) -> list[Chunk]:
    """The relation that chunks after the name say: the verb if there is one, else the nouns."""
    verbs = [number for number, chunk in enumerate(chunks) if chunk.verb]
    if verbs:
        first = chunks[verbs[0]]
        timed = [c for c in chunks if not c.verb and c.words[-1] in en.TIMES | en.PLACES]
        first = _with_object(first, chunks[verbs[0] + 1 :])
        words = (*first.words, *(singular(c.words[-1]) for c in timed[:1]))
        made = replace(first, words=words, same=first.same or any(c.same for c in chunks))
        return [*(c for c in chunks[: verbs[0]] if every), made]
    nouns = [chunk for chunk in chunks if not set(chunk.words) <= en.GENERAL_NOUNS]
    return [chunk for chunk in nouns if not chunk.asked] or nouns


def _with_object(verb: Chunk, later: Sequence[Chunk]) -> Chunk:
    """A verb whose object says which relation is meant: to write the music is to compose."""
    if later and not later[0].joint and not later[0].verb and later[0].words[-1] in SENSE_OF:
        return replace(verb, words=later[0].words)
    return verb


# --- phrases -----------------------------------------------------------------------------------------------


def passive(relation: str) -> bool:
    """Whether a relation leads from a thing to whoever did it: directed by, director."""
    return relation.endswith((" by", *AGENTIVE)) and relation not in ("number", "gender", "order")


def _steps(chunks: Sequence[Chunk], hint: str, site: str) -> list[Step]:
    """The relations as phrases with their directions, those there and back twice."""
    steps: list[Step] = []
    for number, chunk in enumerate(chunks):
        says = _phrase(chunk)
        of_maker = chunk.left and chunk.after in ("by", "with") and not chunk.verb and not chunk.same
        back = chunk.left and (chunk.verb or chunk.before == "whose" or of_maker)
        if of_maker:
            says = MADE_BY if chunk.after == "by" else HAS
        elif number == len(chunks) - 1 and hint:
            says = _hinted(chunk, says, hint)
        if chunk.verb and (chunk.after == "by" or (chunk.after == "with" and chunk.agent)):
            says = says if passive(says) or chunk.words[-1] in SENSE_OF else f"{says} by"
        elif chunk.verb and passive(says) and chunk.words[-1] in SENSE_OF:
            back = not back  # who directed X: X, directed by, who
        steps += [(says, back), (says, not back)] if chunk.same else [(says, back)]
    if site and steps and steps[-1][0] != site and en.tied_to_place(site) & {*chunks[-1].words}:
        steps.append(
            (SENSE_OF.get(site, f"{site} located in"), False)
        )  # in which country: where it was, and what country that lies in
    return steps or [(site or hint, False)] * (hint in ("date", "place"))


def _hinted(chunk: Chunk, says: str, hint: str) -> str:
    """A relation with the kind of value that is asked for."""
    if chunk.words[0] in ("founded", "established", "founding"):
        return {"date": "founding date inception founded", "place": "founding place"}.get(hint, says)
    if hint == "who":
        return says
    if hint == "date" and says.startswith("published"):
        return "published date year"
    if set(chunk.words) & (en.TIMES | en.PLACES):
        return says
    return f"{chunk.words[-1] if passive(says) else says} {hint}"


def _phrase(chunk: Chunk) -> str:
    """The words of a relation; the last one, if of a known family, replaced by the noun for it."""
    last = chunk.words[-1]
    if "_".join(chunk.words) in SENSE_OF:
        return SENSE_OF["_".join(chunk.words)]
    sense = last if last in en.VERBS_ONLY and not chunk.verb else SENSE_OF.get(last, last)
    return " ".join(dict.fromkeys(" ".join((*chunk.words[:-1], sense)).split()))
