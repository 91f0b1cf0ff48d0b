"""What the model ``rules`` does in DoG's roles: it reads a question as chains of relations, and shortens it.

A reworded question is taken only if the grammar reads in it what is left of the chain, so that no wording has
to be known beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.rules import SPELLING, grammar, like, rule
from kgwb.llm.rules.grounding import read
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

Chains = dict[str, tuple[grammar.Step, ...]]
"""For each name in a question the relations from it to what is asked for, nearest first."""
INVERSE = "~"
VAGUE = frozenset(("by", "date", "in", "of", "place", "time"))
"""Words that two relations may share and still be different."""
MOST_DROPPED = 4
"""Words before what was found that the linguist tries to do without."""


@rule("dog/own_knowledge")
def nothing() -> dict[str, Any]:
    """It knows nothing by itself."""
    return {"answers": []}


@rule("dog/topic_entity")
def topics(question: str, kg: Graph | None) -> dict[str, Any]:
    """The names in a question."""
    return {"entities": [name.text for name in mentions(question, tokens_of(question), kg)]}


@rule("dog/relation_filtering")
def relation(
    question: str, entity: str, relations: Sequence[str], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The relation named most like the first step of an entity's chain; the longest chain goes first."""
    read_at = chains(question, kg, embeddings)
    steps = read_at.get(entity, ())
    subquestion, reason = "", f"no relation is read at [{entity}]"
    if longer := [name for name, chain in read_at.items() if steps and len(chain) > len(steps)]:
        reason = f"[{longer[0]}] has further to go, and comes first"
    elif steps:
        says, back = steps[0]
        noun = says.partition(" ")[0]
        if len(steps) > 1:  # else the question itself is one hop
            subquestion = (
                f"what has [{entity}] as its {noun}" if back else f"what is the {noun} of [{entity}]"
            )
        names = dict.fromkeys(name.removeprefix(INVERSE) for name in relations)
        if best := _best(says, list(names), embeddings):
            against = (grammar.passive(says) == grammar.passive(best)) == back
            ways = (f"{INVERSE * against}{best}", best, f"{INVERSE}{best}")
            chosen = next(way for way in ways if way in relations)
            reason = f"the name most like {says!r}"
            return {"subquestion": subquestion, "relation": chosen, "reason": reason}
        reason = f"no relation is named like {says!r}"
    return {"subquestion": subquestion, "relation": "", "reason": reason}


def _best(says: str, names: Sequence[str], embeddings: Embeddings) -> str:
    """The name most like a relation; "" if none is like enough."""
    kept = like(says, names, embeddings)
    close = dict(zip(kept, embeddings.similarity(says, kept, SPELLING), strict=True))
    return max(kept, key=lambda name: close[name], default="")


@rule("dog/answer_trying")
def trying(question: str, found: Sequence[Any], kg: Graph | None, embeddings: Embeddings) -> dict[str, Any]:
    """Yes with all tails if one step is left of every chain; several entities must agree on them."""
    filled = [each for each in found if each["triples"] or each["note"].startswith("no triple")]
    read_at, kind = chains(question, kg, embeddings), grammar.read(question, kg).kind
    tails = [triple[-1] for each in filled for triple in each["triples"]]
    numbers = all(tail.replace(".", "", 1).isdecimal() for tail in tails)
    if kind == "boolean" or (kind == "count" and not numbers):
        return _insufficient("a walk finds names; it neither counts nor says yes or no")
    left = max((len(steps) for steps in read_at.values()), default=0)
    if left > 1:
        return _insufficient(f"{left} relations are read in the question, and one is gone along")
    tails_of: list[list[str]] = []
    for each in filled:
        triples, (says, _) = each["triples"], next(iter(read_at.get(each["entity"], ())), ("", False))
        relations = _relations(name for triple in triples for name in triple[1:-1:2])
        if says and triples and not like(says, relations, embeddings):  # it was the only one there
            return _insufficient(f"no relation is named like {says!r}")
        # Behind a node without a name, the ends whose own relation says what is asked
        inner = _relations(triple[3] for triple in triples if len(triple) > 3)
        kept = _best(says, inner, embeddings) if inner else ""
        ends = [t for t in triples if len(t) <= 3 or t[3].removeprefix(INVERSE) == kept] or triples
        tails_of.append(list(dict.fromkeys(triple[-1] for triple in ends)))
    common = [tail for tail in tails_of[0] if all(tail in tails for tails in tails_of)] if tails_of else []
    if not common:
        return _insufficient("the entities have no tail in common")
    return {"sufficient": "yes", "reason": "the only relation left is gone along", "answers": common}


def _relations(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(name.removeprefix(INVERSE) for name in names))


def _insufficient(reason: str) -> dict[str, Any]:
    return {"sufficient": "no", "reason": reason, "answers": []}


# --- the debate


@rule("dog/simplifying_expert")
def expert(question: str, solved: Sequence[Any], kg: Graph | None) -> dict[str, Any]:
    """What was found in place of the shortest words that say the solved relation, if that reads well."""
    remarks = []
    for hop in solved:
        entity, answer = hop["entity"], hop["found"]
        shorter = _shortened(question, entity, answer, _left(question, [hop], kg), kg)
        remarks.append(f"From [{entity}] {hop['relation']!r} leads to [{answer}].")
        question = shorter or question.replace(f"[{entity}]", f"[{answer}]")
    return {"remark": " ".join(remarks), "question": question}


@rule("dog/critic")
def critic(question: str, solved: Sequence[Any], debate: Sequence[Any], kg: Graph | None) -> dict[str, Any]:
    """Reads the proposed question again, and rewords it if it does not say what is left."""
    proposed = _proposed(question, debate)
    if _alike(chains(proposed, kg), _left(question, solved, kg)):
        return {"remark": "It is one hop shorter and asks for the same: I agree.", "question": proposed}
    better = expert(question, solved, kg)
    return {"remark": f"That does not say what is left. {better['remark']}", "question": better["question"]}


@rule("dog/linguist")
def linguist(question: str, solved: Sequence[Any], debate: Sequence[Any], kg: Graph | None) -> dict[str, Any]:
    """Drops the words before what was found that its name makes needless."""
    polished = proposed = _proposed(question, debate)
    for hop in solved:
        polished = _without_description(polished, hop["found"], kg)
    same = polished == proposed
    remark = "Nothing in it is redundant." if same else "What is named needs no description."
    return {"remark": remark, "question": polished}


@rule("dog/fused_agent")
def fused(question: str, solved: Sequence[Any], kg: Graph | None) -> dict[str, Any]:
    """One who proposes and polishes, and does not hear a critic."""
    first = expert(question, solved, kg)
    last = linguist(question, solved, [first], kg)
    return {"remark": f"{first['remark']} {last['remark']}", "question": last["question"]}


def _proposed(question: str, debate: Sequence[Any]) -> str:
    return str(debate[-1]["question"]) if debate else question


def _left(question: str, solved: Sequence[Any], kg: Graph | None) -> Chains:
    """The chains that are left once the solved hops are gone along."""
    left = chains(question, kg)
    for hop in solved:
        left[hop["found"]] = left.pop(hop["entity"], ())[1:]
    return left


def _shortened(question: str, entity: str, answer: str, wanted: Chains, kg: Graph | None) -> str:
    """The question with the fewest words replaced in which the grammar reads the wanted chains."""
    name, left = f"[{answer}]", wanted[answer]
    links = ("of", "by", "with", *_participles(left[0][0])) if left else ()
    for puts in ([name], [f"{word} {name}" for word in links]):
        for start, end in _spans(question, entity):
            before = question[:start].split()
            being = "are" if before and before[-1] in RELATIVES else ""  # movies that are directed by
            for put in puts:
                candidate = _joined(*before, being if put != name else "", put, question[end:])
                if _alike(chains(candidate, kg), wanted):
                    return candidate
    anew = _anew(*left[0], name) if len(left) == len(wanted) == 1 else ()
    return next((text for text in anew if _alike(chains(text, kg), wanted, directed=False)), "")


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
    name = next((mention for mention in marked(question, tokens) if mention.text == entity), None)
    if name is None:
        return
    mark = question.index(f"[{entity}]")
    starts = [mark, *(token.start for token in reversed(tokens[: name.first]))]
    ends = [mark + len(entity) + 2, *(token.end for token in tokens[name.last :])]
    lengths = ((a, b) for a in range(len(starts)) for b in range(len(ends)))
    for a, b in sorted(lengths, key=lambda pair: (sum(pair), pair[1])):
        yield starts[a], ends[b]


def _participles(says: str) -> list[str]:
    """What says a relation before "by": "directed by"."""
    return [f"{word} by" for word in _family(says) if word.endswith(("ed", "en"))]


def _family(says: str) -> list[str]:
    """The words that say a relation."""
    own = {*says.split()} - {"by", "in"}
    known = [word for word in SENSE_OF if own & {*SENSE_OF[word].split()} and "_" not in word]
    known.sort(key=lambda word: SENSE_OF[word] != says)
    return list(dict.fromkeys([*known, *sorted(own)]))


def _without_description(question: str, answer: str, kg: Graph | None) -> str:
    """The question without those words before a name that say only what it is."""
    before, tokens = chains(question, kg), tokens_of(question)
    name = next((mention for mention in marked(question, tokens) if mention.text == answer), None)
    if name is None:
        return question
    mark = question.index(f"[{answer}]")
    for dropped in range(min(MOST_DROPPED, name.first), 0, -1):
        words = tokens[name.first - dropped : name.first]
        lower = [word.lower for word in words]
        being = AUXILIARIES | RELATIVES
        noun = lower[0] not in being and {*lower[1:]} <= being  # films that are
        if (lower[0] in DETERMINERS or noun) and PREPOSITIONS.isdisjoint(lower):
            shorter = _joined(question[: words[0].start], question[mark:])
            if chains(shorter, kg) == before and len(shorter.split()) > len(answer.split()):
                return shorter
    return question


def _alike(first: Chains, second: Chains, *, directed: bool = True) -> bool:
    """Whether two readings are the same chains, where words of one family say the same."""

    def same(step: grammar.Step, counterpart: grammar.Step) -> bool:
        (says, back), (says_too, back_too) = step, counterpart
        shared = {*says.split()} & {*says_too.split()} - VAGUE
        return (back == back_too or not directed) and bool(says == says_too or shared)

    return first.keys() == second.keys() and all(
        len(first[name]) == len(second[name]) and all(map(same, first[name], second[name])) for name in first
    )


def chains(question: str, kg: Graph | None, embeddings: Embeddings | None = None) -> Chains:
    """The relations from each marked name to what is asked for; without embeddings as the grammar reads."""
    facts, target, kind = read(question, kg, embeddings) if embeddings else grammar.read(question, kg)
    target = "" if kind == "boolean" else target
    names = [name.text for name in marked(question, tokens_of(question))]
    steps = {name: _steps(name, facts, names, target) for name in names}
    # a value without a name, and what it is made of, are one hop
    return {name: tuple(step for step in steps[name] if ", " not in step[0]) for name in names}


def _steps(
    name: str, facts: Sequence[grammar.Fact], names: Sequence[str], target: str
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
