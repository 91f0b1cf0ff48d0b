"""DoG's roles as rules: a question is read as a chain of relations, and shortened by reading it again.

A reworded question is taken only if the grammar reads in it what is left of the chain, so that no wording has
to be known beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.llm.rules import grammar
from kgwb.llm.rules.words import (
    AUXILIARIES,
    DETERMINERS,
    PREPOSITIONS,
    RELATIVES,
    SENSE_OF,
    marked,
    mentions,
    tokens_of,
)

Like = Callable[[str, Sequence[str]], list[str]]
"""The names that say a relation, best first; none if no name does."""
Given = Mapping[str, Any]
Chains = dict[str, tuple[grammar.Step, ...]]
"""For each name in a question the relations from it to what is asked for, nearest first."""
INVERSE = "~"
VAGUE = frozenset(("by", "date", "in", "of", "place", "time"))
"""Words that two relations may share and still be different."""
MOST_DROPPED = 4
"""Words before what was found that the linguist tries to do without."""


def topics(given: Given, kg: Graph | None) -> dict[str, Any]:
    """The names in a question."""
    question = given["question"]
    return {"entities": [name.text for name in mentions(question, tokens_of(question), kg)]}


def relation(given: Given, kg: Graph | None, like: Like) -> dict[str, str]:
    """The relation named most like the first step of an entity's chain; the longest chain goes first."""
    question, entity = given["question"], given["entity"]
    read = chains(question, kg)
    steps = read.get(entity, ())
    if not steps:
        return _no_relation("", f"no relation is read at [{entity}]")
    if longer := [name for name, others in read.items() if len(others) > len(steps)]:
        return _no_relation("", f"[{longer[0]}] has further to go, and comes first")
    says, back = steps[0]
    names = dict.fromkeys(one.removeprefix(INVERSE) for one in given["relations"])
    best = next(iter(like(says, list(names))), "")
    noun = says.partition(" ")[0]
    asked = f"what has [{entity}] as its {noun}" if back else f"what is the {noun} of [{entity}]"
    asked = asked if len(steps) > 1 else ""  # the question itself is one hop
    if not best:
        return _no_relation(asked, f"no relation is named like {says!r}")
    against = (grammar.passive(says) == grammar.passive(best)) == back
    fitting = f"{INVERSE * against}{best}"
    chosen = next(one for one in (fitting, best, f"{INVERSE}{best}") if one in given["relations"])
    return {"subquestion": asked, "relation": chosen, "reason": f"the name most like {says!r}"}


def _no_relation(asked: str, reason: str) -> dict[str, str]:
    return {"subquestion": asked, "relation": "", "reason": reason}


def trying(given: Given, kg: Graph | None, like: Like) -> dict[str, Any]:
    """Yes with all tails if one step is left of every chain; several entities must agree on them."""
    question = given["question"]
    found = [one for one in given["found"] if one["triples"] or one["note"].startswith("no triple")]
    read, kind = chains(question, kg), grammar.triples(question, kg)["question_type"]
    numbers = all(_number(triple[-1]) for one in found for triple in one["triples"])
    if kind == "boolean" or (kind == "count" and not numbers):
        return _no("a walk finds names; it neither counts nor says yes or no")
    left = max((len(steps) for steps in read.values()), default=0)
    if left > 1:
        return _no(f"{left} relations are read in the question, and one is gone along")
    tails = []
    for one in found:
        triples, (says, _) = one["triples"], next(iter(read.get(one["entity"], ())), ("", False))
        if says and triples and not like(says, _relations(triples)):  # it was the only one there
            return _no(f"no relation is named like {says!r}")
        tails.append(list(dict.fromkeys(triple[-1] for triple in _behind(triples, says, like))))
    common = [tail for tail in tails[0] if all(tail in others for others in tails[1:])] if tails else []
    if not common:
        return _no("the entities have no tail in common")
    return {"sufficient": "yes", "reason": "the only relation left is gone along", "answers": common}


def _relations(triples: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name.removeprefix(INVERSE) for one in triples for name in one[1:-1:2]))


def _number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _no(reason: str) -> dict[str, Any]:
    return {"sufficient": "no", "reason": reason, "answers": []}


def _behind(triples: Sequence[Sequence[str]], says: str, like: Like) -> Sequence[Sequence[str]]:
    """Behind a node without a name, the ends whose own relation says what is asked."""
    names = list(dict.fromkeys(one[3].removeprefix(INVERSE) for one in triples if len(one) > 3))
    kept = like(says, names)[:1] if names else []
    return [one for one in triples if len(one) <= 3 or one[3].removeprefix(INVERSE) in kept] or triples


# --- the debate


def critic(given: Given, kg: Graph | None) -> dict[str, str]:
    """Reads the proposed question again, and rewords it if it does not say what is left."""
    proposed = given["debate"][-1]["question"] if given["debate"] else given["question"]
    if _alike(chains(proposed, kg), _wanted(given, kg)):
        return {"remark": "It is one hop shorter and asks for the same: I agree.", "question": proposed}
    better = expert(given, kg)
    return {"remark": f"That does not say what is left. {better['remark']}", "question": better["question"]}


def linguist(given: Given, kg: Graph | None) -> dict[str, str]:
    """Drops the words before what was found that its name makes needless."""
    proposed = given["debate"][-1]["question"] if given["debate"] else given["question"]
    question = proposed
    for one in given["solved"]:
        question = _without_description(question, one["found"], kg)
    told = "Nothing in it is redundant." if question == proposed else "What is named needs no description."
    return {"remark": told, "question": question}


def fused(given: Given, kg: Graph | None) -> dict[str, str]:
    """One who proposes and polishes, and does not hear a critic."""
    first = expert(given, kg)
    last = linguist({**given, "debate": [{"question": first["question"]}]}, kg)
    return {"remark": f"{first['remark']} {last['remark']}", "question": last["question"]}


def _wanted(given: Given, kg: Graph | None) -> Chains:
    """The chains that are left once the solved hops are gone along."""
    read = chains(given["question"], kg)
    for one in given["solved"]:
        read[one["found"]] = read.pop(one["entity"], ())[1:]
    return read


def expert(given: Given, kg: Graph | None) -> dict[str, str]:
    """What was found in place of the shortest words that say the solved relation, if that reads well."""
    question, told = given["question"], []
    for one in given["solved"]:
        wanted = _wanted({"question": question, "solved": [one]}, kg)
        shorter = _shortened(question, one, wanted, kg)
        told.append(f"From [{one['entity']}] {one['relation']!r} leads to [{one['found']}].")
        question = shorter or question.replace(f"[{one['entity']}]", f"[{one['found']}]")
    return {"remark": " ".join(told), "question": question}


def _shortened(question: str, solved: Given, wanted: Chains, kg: Graph | None) -> str:
    """The question with the fewest words replaced in which the grammar reads the wanted chains."""
    name = f"[{solved['found']}]"
    left = wanted[solved["found"]]
    links = ("of", "by", "with", *_participles(left[0][0])) if left else ()
    for puts in ([name], [f"{word} {name}" for word in links]):
        for start, end in _spans(question, solved["entity"]):
            before = question[:start].split()
            being = "are" if before and before[-1] in RELATIVES else ""  # movies that are directed by
            for put in puts:
                candidate = _joined(*before, being if put != name else "", put, question[end:])
                if _alike(chains(candidate, kg), wanted):
                    return candidate
    anew = _anew(*left[0], name) if len(left) == len(wanted) == 1 else ()
    return next((one for one in anew if _alike(chains(one, kg), wanted, directed=False)), "")


def _joined(*parts: str) -> str:
    return re.sub(r" (?=[?!.,])", "", " ".join(" ".join(parts).split()))


def _anew(says: str, back: bool, name: str) -> Iterator[str]:
    """Questions for one relation, where nothing of the old wording can be built on."""
    if back:
        yield from (f"what is {word} {name}" for word in _participles(says))
    yield from (f"who {word} in {name}" for word in _family(says) if word.endswith("ed"))
    yield from (f"what is the {word} of {name}" for word in _family(says))


def _spans(question: str, entity: str) -> Iterator[tuple[int, int]]:
    """Stretches of whole words around a marked name, the shortest first."""
    tokens = tokens_of(question)
    name = next((one for one in marked(question, tokens) if one.text == entity), None)
    if name is None:
        return
    before, after = tokens[: name.first], tokens[name.last :]
    mark = question.index(f"[{entity}]")
    starts = [mark, *(token.start for token in reversed(before))]
    ends = [mark + len(entity) + 2, *(token.end for token in after)]
    lengths = ((a, b) for a in range(len(starts)) for b in range(len(ends)))
    for a, b in sorted(lengths, key=lambda pair: (sum(pair), pair[1])):
        yield starts[a], ends[b]


def _participles(says: str) -> list[str]:
    """What says a relation before "by": "directed by"."""
    return [f"{word} by" for word in _family(says) if word.endswith(("ed", "en"))]


def _family(says: str) -> list[str]:
    """The words that say a relation."""
    said = {*says.split()} - {"by", "in"}
    known = [word for word in SENSE_OF if said & {*SENSE_OF[word].split()} and "_" not in word]
    known.sort(key=lambda word: SENSE_OF[word] != says)
    return list(dict.fromkeys([*known, *sorted(said)]))


def _without_description(question: str, found: str, kg: Graph | None) -> str:
    """The question without those words before a name that say only what it is."""
    read = chains(question, kg)
    tokens = tokens_of(question)
    name = next((one for one in marked(question, tokens) if one.text == found), None)
    if name is None:
        return question
    mark = question.index(f"[{found}]")
    for dropped in range(min(MOST_DROPPED, name.first), 0, -1):
        words = tokens[name.first - dropped : name.first]
        lower = [word.lower for word in words]
        being = AUXILIARIES | RELATIVES
        noun = lower[0] not in being and {*lower[1:]} <= being  # films that are
        if (lower[0] in DETERMINERS or noun) and PREPOSITIONS.isdisjoint(lower):
            shorter = _joined(question[: words[0].start], question[mark:])
            if chains(shorter, kg) == read and len(shorter.split()) > len(found.split()):
                return shorter
    return question


def _alike(one: Chains, other: Chains, *, directed: bool = True) -> bool:
    """Whether two readings are the same chains, where words of one family say the same."""
    return one.keys() == other.keys() and all(
        len(one[name]) == len(other[name])
        and all(
            (back == gone or not directed) and (says == said or {*says.split()} & {*said.split()} - VAGUE)
            for (says, back), (said, gone) in zip(one[name], other[name], strict=True)
        )
        for name in one
    )


def chains(question: str, kg: Graph | None) -> Chains:
    """The relations from each marked name to what is asked for, as the grammar reads them."""
    read: Any = grammar.triples(question, kg)
    facts = [(fact["subject"], fact["predicate"], fact["object"]) for fact in read["triples"]]
    names = [name.text for name in marked(question, tokens_of(question))]
    return {name: tuple(_from(name, facts, names, read["target"])) for name in names}


def _from(
    name: str, facts: Sequence[tuple[str, str, str]], names: Sequence[str], target: str
) -> Iterator[grammar.Step]:
    place, left = name, list(facts)
    while place != target:
        fact = next((fact for fact in left if place in (fact[0], fact[2])), None)
        if fact is None:
            return
        left.remove(fact)
        back = fact[2] == place
        yield fact[1], back
        place = fact[0] if back else fact[2]
        if place in names:
            return
