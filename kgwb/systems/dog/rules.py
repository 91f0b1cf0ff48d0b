"""What the model ``rules`` does in DoG's roles: it reads a question as chains of relations, and shortens it.

A reworded question is taken only if the grammar reads in it what is left of the chain, so that no wording has
to be known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import Rule
from kgwb.llm.rules import SPELLING_WEIGHT, TIME_AND_PLACE_WORDS, find_similar_predicates, grammar
from kgwb.llm.rules import words as en
from kgwb.llm.rules.grounding import ground_question

RelationChains = dict[str, tuple[grammar.RelationStep, ...]]
"""For each name in a question the relations from it to what is asked for, nearest first."""
INVERSE_PREFIX = "~"
UNSPECIFIC_WORDS = TIME_AND_PLACE_WORDS | en.PREPOSITIONS
"""Words that two relations may share and still be different."""
NON_DESCRIPTIVE_WORDS = en.FUNCTION_WORDS - en.DETERMINERS - en.FILLERS
"""Words that no description is made of."""


def answer_nothing() -> dict[str, Any]:
    """It knows nothing by itself."""
    return {"answers": []}


def find_topic_entities(question: str, kg: Graph | None) -> dict[str, Any]:
    """The names in a question."""
    return {
        "entities": [name.text for name in en.find_mentions(question, en.tokenize(question), kg)]
    }


def choose_relation(
    question: str, entity: str, relations: Sequence[str], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The relation named most like the first step of an entity's chain; the longest chain goes first."""
    read_at = read_chains(question, kg, embeddings)
    steps, subquestion, chosen = read_at.get(entity, ()), "", ""
    if not steps:
        reason = f"no relation is read at [{entity}]"
    elif longer := [name for name, others in read_at.items() if len(others) > len(steps)]:
        reason = f"[{longer[0]}] has further to go, and comes first"
    else:
        (says, back), subquestion = steps[0], _write_relation_question(entity, steps[0])
        best = _find_most_similar(says, relations, embeddings)
        against = (grammar.leads_to_agent(says) == grammar.leads_to_agent(best)) == back
        ways = (f"{INVERSE_PREFIX * against}{best}", best, f"{INVERSE_PREFIX}{best}")
        chosen = next((way for way in ways if way in relations), "")
        reason = f"the name most like {says!r}" if chosen else f"no relation is named like {says!r}"
    return {"subquestion": subquestion, "relation": chosen, "reason": reason}


def _write_relation_question(name: str, step: grammar.RelationStep) -> str:
    """A question for one relation of a name."""
    says, back = step
    noun = next(filter(grammar.leads_to_agent, says.split()), says.split()[0])
    who = "who" if grammar.leads_to_agent(noun) else "what"
    return f"what has [{name}] as its {noun}" if back else f"{who} is the {noun} of [{name}]"


def _find_most_similar(says: str, relations: Iterable[str], embeddings: Embeddings) -> str:
    """The name most like what is said, whichever way it is gone along; "" if none is like enough."""
    kept = find_similar_predicates(
        says, sorted({name.removeprefix(INVERSE_PREFIX) for name in relations}), embeddings
    )
    return max(
        zip(embeddings.similarity(says, kept, SPELLING_WEIGHT), kept, strict=True),
        default=(0.0, ""),
    )[1]


def try_answer(
    question: str, found: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """Yes with all tails if one step is left of every chain; several entities must agree on them."""
    filled = [each for each in found if each["triples"] or each["note"].startswith("no triple")]
    read_at, kind = read_chains(question, kg, embeddings), grammar.parse_question(question, kg).kind
    tails_of: list[list[str]] = []
    for each in filled:
        triples, says = (
            each["triples"],
            next((says for says, _ in read_at.get(each["entity"], ())), ""),
        )
        # Behind a node without a name its own relation counts; the one that leads there may say it too
        best = _find_most_similar(says, (triple[-2] for triple in triples), embeddings)
        ends = [triple for triple in triples if triple[-2].removeprefix(INVERSE_PREFIX) == best]
        ends = ends or [
            triple for triple in triples if _find_most_similar(says, [triple[1]], embeddings)
        ]
        tails_of.append([triple[-1] for triple in ends])
    answers = dict.fromkeys(
        tail for tail in chain(*tails_of[:1]) if all(tail in tails for tails in tails_of)
    )
    numbers = all(tail.replace(".", "", 1).isdecimal() for tail in answers)
    left = max((len(steps) for steps in read_at.values()), default=0)
    reason = (
        "the only relation left is gone along" if answers else "no tail fits all of the entities"
    )
    if kind == "boolean" or (kind == "count" and not numbers):
        answers, reason = {}, "a walk finds names; it neither counts nor says yes or no"
    elif left > 1:
        answers, reason = {}, f"{left} relations are read in the question, and one is gone along"
    return {"sufficient": "yes" if answers else "no", "reason": reason, "answers": [*answers]}


# --- the debate


def simplify_as_expert(question: str, solved: Sequence[Any], kg: Graph | None) -> dict[str, Any]:
    """What was found, in place of the fewest words that say the solved relation."""
    for hop in solved:
        question = _shorten_question(question, hop, kg)
    led = (
        f"From [{hop['entity']}] {hop['relation']!r} leads to [{hop['found']}]." for hop in solved
    )
    return {"remark": " ".join(led), "question": question}


def simplify_as_critic(
    question: str, solved: Sequence[Any], debate: Sequence[Any], kg: Graph | None
) -> dict[str, Any]:
    """Reads the proposed question again, and rewords it if it does not say what is left."""
    proposed = debate[-1]["question"]
    if _are_same_chains(read_chains(proposed, kg), _remove_solved_hops(question, solved, kg)):
        return {
            "remark": "It is one hop shorter and asks for the same: I agree.",
            "question": proposed,
        }
    better = simplify_as_expert(question, solved, kg)
    return better | {"remark": f"That does not say what is left. {better['remark']}"}


def simplify_as_linguist(
    solved: Sequence[Any], debate: Sequence[Any], kg: Graph | None
) -> dict[str, Any]:
    """Drops the words before what was found that say only what it is: "the films"."""
    polished = proposed = debate[-1]["question"]
    for hop in solved:
        before, name, after = polished.partition(f"[{hop['found']}]")
        words, kept = before.split(), read_chains(polished, kg)
        runs = (
            n
            for n in range(len(words))
            if NON_DESCRIPTIVE_WORDS.isdisjoint(map(str.casefold, words[n:]))
        )
        shorter = (" ".join([*words[:n], name]) + after for n in runs)
        polished = next((text for text in shorter if read_chains(text, kg) == kept), polished)
    remark = (
        "Nothing in it is redundant"
        if polished == proposed
        else "What is named needs no description"
    )
    return {"remark": f"{remark}.", "question": polished}


def simplify_as_fused_agent(
    question: str, solved: Sequence[Any], kg: Graph | None
) -> dict[str, Any]:
    """One who proposes and polishes, and does not hear a critic."""
    first = simplify_as_expert(question, solved, kg)
    last = simplify_as_linguist(solved, [first], kg)
    return {"remark": f"{first['remark']} {last['remark']}", "question": last["question"]}


def _remove_solved_hops(question: str, solved: Sequence[Any], kg: Graph | None) -> RelationChains:
    """The chains that are left once the solved hops are gone along."""
    left = read_chains(question, kg)
    for hop in solved:
        left[hop["found"]] = left.pop(hop["entity"], ())[1:]
    return left


def _shorten_question(question: str, hop: Any, kg: Graph | None) -> str:
    """The question with the fewest words replaced by what was found in which the grammar reads what is left.

    Words that say the next relation may link it ("directed by"). Else that relation is asked for plainly.
    """
    name, left = f"[{hop['found']}]", _remove_solved_hops(question, [hop], kg)
    before, _, after = question.partition(f"[{hop['entity']}]")
    starts = [before[:at] for at in (len(before), *(token.start for token in en.tokenize(before)))]
    starts = [start for start in starts if en.RELATIVES.isdisjoint(start.split()[-1:])]
    ends = [after[at:] for at in (0, *(token.end for token in en.tokenize(after)))]
    kept = sorted(product(starts, ends), key=lambda pair: -len("".join(pair)))
    says = " ".join(says for says, _ in left[hop["found"]][:1]).split()
    links = ("", "of ", " ".join([*says[-2:], ""]), " ".join([*says[:1], ""]))
    texts = (f"{start}{link}{name}{end}" for link in links for start, end in kept)
    single = len(left) == len(left[hop["found"]]) == 1
    plain = (
        _write_relation_question(hop["found"], *left[hop["found"]])
        if single
        else f"{before}{name}{after}"
    )
    return next((text for text in texts if _are_same_chains(read_chains(text, kg), left)), plain)


def _are_same_chains(first: RelationChains, second: RelationChains) -> bool:
    """Whether two readings are the same chains, where words of one family say the same."""
    pairs = [
        pair for name in first for pair in zip(first[name], second.get(name, ()), strict=False)
    ]
    return {name: len(first[name]) for name in first} == {
        name: len(second[name]) for name in second
    } and all(
        back == back_too
        and (says == says_too or {*says.split()} & {*says_too.split()} - UNSPECIFIC_WORDS)
        for (says, back), (says_too, back_too) in pairs
    )


def read_chains(
    question: str, kg: Graph | None, embeddings: Embeddings | None = None
) -> RelationChains:
    """The relations from each marked name to what is asked for; without embeddings as the grammar reads."""
    facts, target, kind = (
        ground_question(question, kg, embeddings)
        if embeddings
        else grammar.parse_question(question, kg)
    )
    names = [name.text for name in en.bracketed_mentions(question, en.tokenize(question))]
    ends = {*names, "" if kind == "boolean" else target}
    chains: RelationChains = {}
    for name in names:
        place, chains[name] = name, ()
        for subject, says, object_ in facts:
            if place in (subject, object_) and (place == name or place not in ends):
                back = object_ == place
                place = subject if back else object_
                # a value without a name, and what it is made of, are one hop
                chains[name] += ((says, back),) * (", " not in says)
    return chains


RULES: Mapping[str, Rule] = {
    "dog/own_knowledge": answer_nothing,
    "dog/topic_entity": find_topic_entities,
    "dog/relation_filtering": choose_relation,
    "dog/answer_trying": try_answer,
    "dog/simplifying_expert": simplify_as_expert,
    "dog/critic": simplify_as_critic,
    "dog/linguist": simplify_as_linguist,
    "dog/fused_agent": simplify_as_fused_agent,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
