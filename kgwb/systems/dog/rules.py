"""How the model ``rules`` answers the prompts of DoG: it reads chains of relations, and shortens them.

A reworded question is accepted only if the grammar reads the rest of the chain in it. So no wording
has to be known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgwb.build import (
    CLASS_RELATION,
    DETERMINERS,
    FILLERS,
    FUNCTION_WORDS,
    NAME_SEPARATOR,
    NOT_UNDERSTOOD,
    PREPOSITIONS,
    RELATIVES,
    SPELLING_WEIGHT,
    TIME_AND_PLACE_WORDS,
    Direction,
    Embeddings,
    Graph,
    RelationStep,
    ReplyData,
    Rule,
    bracketed_mentions,
    compare_wordings,
    find_mentions,
    find_similar_predicates,
    find_unread,
    ground_question,
    have_same_words,
    leads_to_agent,
    parse_question,
    tokenize,
)
from kgwb.systems.dog.records import INVERSE_PREFIX

RelationChains = dict[str, list[RelationStep]]
"""For each name in a question, the relations from it to what is asked for, the nearest first."""
Hop = Mapping[str, str]
"""A solved step of the walk: "entity", "relation" and "found", what the relation leads to."""
Hops = Sequence[Hop]
Names = Sequence[str]
UNSPECIFIC_WORDS = TIME_AND_PLACE_WORDS | PREPOSITIONS
"""Words that two relations may have in common and still be different."""
NON_DESCRIPTIVE_WORDS = FUNCTION_WORDS - DETERMINERS - FILLERS
"""Words that are not part of a description such as "the films"."""


def answer_nothing() -> ReplyData:
    """Return no answers: the model has no knowledge of its own."""
    return {"answers": []}


def find_topic_entities(question: str, kg: Graph | None) -> ReplyData:
    """Return the names in a question."""
    names = [mention.text for mention in find_mentions(question, kg)]
    return {"entities": names}


def choose_relation(
    question: str, entity: str, relations: Names, kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the relation most like the first step of an entity's chain, and a question for it.

    ``relations`` are the names to choose from, with INVERSE_PREFIX for the inverse direction. No
    relation is chosen if none is alike, if the entity has no chain, if another entity has a longer
    chain (that one is solved first), or if a question of one relation is not understood. The reply
    has "subquestion", "relation" and "reason"; the first two are "" without a relation.
    """
    chains = read_chains(question, kg, embeddings)
    steps = chains.get(entity, [])
    longer = []
    for name, others in chains.items():
        if len(others) > len(steps):
            longer.append(name)
    reason = ""
    if not steps:
        reason = f"no relation is read at [{entity}]"
    elif longer:
        reason = f"[{longer[0]}] has further to go, and comes first"
    elif len(steps) == 1:
        reason = _find_problems(question, kg, embeddings, is_last=False)
    if reason:
        return {"subquestion": "", "relation": "", "reason": reason}
    step = steps[0]
    relation = _choose_direction(step, relations, embeddings)
    reason = f"no relation is named like {step.relation!r}"
    if relation:
        reason = f"the name most like {step.relation!r}"
    subquestion = _write_relation_question(entity, step)
    return {"subquestion": subquestion, "relation": relation, "reason": reason}


def _choose_direction(step: RelationStep, relations: Names, embeddings: Embeddings) -> str:
    """Return the relation most like a step, in the direction that the step has in the graph; "" if none is.

    If the graph names the relation from the other end than the question does ("director" for
    "directed"), the direction is turned. Where the names only let it be guessed, and the relation
    exists in one direction alone, it is that.
    """
    best = _find_most_similar(step.relation, relations, embeddings)
    wording = compare_wordings(step.relation, best)
    directions = [best, INVERSE_PREFIX + best]
    if (wording.direction == "out") == step.is_backward:
        directions.reverse()
    for name in directions:
        if name in relations and not _is_reverse(name, step):
            return name
    return ""


def _is_reverse(relation: str, step: RelationStep) -> bool:
    """Return whether a relation goes the other way than a step, as its wording tells."""
    name = relation.removeprefix(INVERSE_PREFIX)
    is_backward = name != relation
    direction: Direction = "in"
    if is_backward == step.is_backward:
        direction = "out"
    wording = compare_wordings(step.relation, name)
    is_told = wording.certainty != "likely" or have_same_words(step.relation, name)
    return is_told and wording.contradicts(direction)


def _write_relation_question(name: str, step: RelationStep) -> str:
    """Return a question for one relation of a name: "who is the director of [X]".

    The noun is the first word of the relation that leads to an agent, else its first word. A step
    that leads backward is asked for as "what has [X] as its director".
    """
    words = step.relation.split()
    noun = words[0]
    pronoun = "what"
    agents = [word for word in words if leads_to_agent(word)]
    if agents:
        noun = agents[0]
        pronoun = "who"
    if step.is_backward:
        return f"what has [{name}] as its {noun}"
    return f"{pronoun} is the {noun} of [{name}]"


def _find_most_similar(relation: str, names: Names, embeddings: Embeddings) -> str:
    """Return the name most like a relation, without INVERSE_PREFIX; "" if none is like enough.

    Like enough is what ``find_similar_predicates`` returns. Of equally similar names the last in
    the alphabet is returned.
    """
    plain_names = set()
    for name in names:
        plain_names.add(name.removeprefix(INVERSE_PREFIX))
    similar = find_similar_predicates(relation, sorted(plain_names), embeddings)
    if not similar:
        return ""
    similarities = embeddings.similarity(relation, similar, SPELLING_WEIGHT)
    _, most_similar = max(zip(similarities, similar, strict=True))
    return most_similar


def try_answer(
    question: str, found: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return whether the triples that were found answer the question, with the answers and a reason.

    ``found`` has for each entity its "triples" and a "note". Answers are the ends of the triples of
    the first relation of the entity's chain, if they are ends for all entities. It is enough if
    there are answers and one relation at most is read in the question. It is not for a yes-or-no
    question, nor for a count unless all answers are numbers, nor for a question that is not
    understood. The reply has "sufficient", which is
    "yes" or "no", "reason" and "answers"; with "no" there are no answers.
    """
    chains = read_chains(question, kg, embeddings)
    tail_lists = []
    for hop in found:
        if hop["triples"] or hop["note"].startswith("no triple"):
            tails: list[str] = []
            for step in chains.get(hop["entity"], [])[:1]:
                triples = []
                for each in hop["triples"]:
                    if not _is_reverse(each[1], step):
                        triples.append(each)
                tails = _find_tails(triples, step.relation, embeddings)
            tail_lists.append(tails)
    answers = _common_items(tail_lists)

    relation_count = max(map(len, chains.values()), default=0)
    kind = parse_question(question, kg).kind
    are_numbers = all(answer.replace(".", "", 1).isdecimal() for answer in answers)
    if kind == "boolean" or (kind == "count" and not are_numbers):
        reason = "a walk finds names; it neither counts nor says yes or no"
    elif relation_count > 1:
        reason = f"{relation_count} relations are read in the question, and one is gone along"
    elif not answers:
        reason = "no tail fits all of the entities"
    else:
        reason = _find_problems(question, kg, embeddings)
    if reason:
        return {"sufficient": "no", "reason": reason, "answers": []}
    reason = "the only relation left is gone along"
    return {"sufficient": "yes", "reason": reason, "answers": answers}


def _find_problems(
    question: str, kg: Graph | None, embeddings: Embeddings, *, is_last: bool = True
) -> str:
    """Return why a question of one relation is not understood by a walk; "" if it is.

    A walk does not look at the class that a question states. One is stated where the relation leads
    to things of other classes, too. Unless a step ``is_last``, the walk may go on from things where
    another kind of value is asked for.
    """
    unread = find_unread(question, kg, embeddings)
    if unread.found_things and not is_last:
        unread = unread._replace(reasons=())
    problems = unread.problems
    for _, relation, class_name in ground_question(question, kg, embeddings).facts[1:]:
        if relation == CLASS_RELATION:
            problems.append(f"a walk does not tell what is a “{class_name}”")
    if problems:
        return f"{NOT_UNDERSTOOD}: {'; '.join(problems)}"
    return ""


def _common_items(lists: Sequence[Names]) -> list[str]:
    """Return the items that all lists have, each once, in the order of the first list."""
    if not lists:
        return []
    unique_items = dict.fromkeys(lists[0])
    return [item for item in unique_items if all(item in names for names in lists)]


def _find_tails(triples: Sequence[Names], relation: str, embeddings: Embeddings) -> list[str]:
    """Return the ends of the triples whose predicate is most like a relation; empty if none is like it.

    A triple through a node without a name has more than three parts: the predicate after that node
    counts, and if no triple fits, the predicate that leads to it. Ends may repeat.
    """
    predicates = [triple[-2] for triple in triples]
    best = _find_most_similar(relation, predicates, embeddings)
    tails = []
    for triple in triples:
        if triple[-2].removeprefix(INVERSE_PREFIX) == best:
            tails.append(triple[-1])
    if tails:
        return tails
    for triple in triples:
        if _find_most_similar(relation, [triple[1]], embeddings):
            tails.append(triple[-1])
    return tails


# The debate


def simplify_as_expert(question: str, solved: Hops, kg: Graph | None) -> ReplyData:
    """Shorten the question by each solved hop: the words for it are replaced by the name of what it found.

    The hops are taken one after another. The reply has "question" and "remark", a sentence for each
    hop. Raises ModelError if the grammar cannot read a question.
    """
    remarks = []
    for hop in solved:
        question = _shorten_question(question, hop, kg)
        entity = hop["entity"]
        found = hop["found"]
        remarks.append(f"From [{entity}] {hop['relation']!r} leads to [{found}].")
    return {"remark": " ".join(remarks), "question": question}


def simplify_as_critic(
    question: str, solved: Hops, debate: Sequence[Any], kg: Graph | None
) -> ReplyData:
    """Return the question proposed last if it asks for what is left, else the expert's, with a remark.

    ``question`` is the one before the hops were solved, and ``debate`` has the remarks so far. It
    asks for what is left if the grammar reads the same chains in it.
    """
    proposed = debate[-1]["question"]
    left = _remove_solved_hops(question, solved, kg)
    if _are_same_chains(read_chains(proposed, kg), left):
        remark = "It is one hop shorter and asks for the same: I agree."
        return {"remark": remark, "question": proposed}
    better = simplify_as_expert(question, solved, kg)
    better["remark"] = f"That does not say what is left. {better['remark']}"
    return better


def simplify_as_linguist(solved: Hops, debate: Sequence[Any], kg: Graph | None) -> ReplyData:
    """Return the question proposed last, without descriptions of what was found ("the films"), and a remark.

    ``debate`` has the remarks so far.
    """
    proposed = debate[-1]["question"]
    polished = proposed
    for hop in solved:
        polished = _drop_description(polished, hop["found"], kg)
    remark = "What is named needs no description."
    if polished == proposed:
        remark = "Nothing in it is redundant."
    return {"remark": remark, "question": polished}


def _drop_description(question: str, name: str, kg: Graph | None) -> str:
    """Return a question without the description before a name in square brackets ("the films [X]").

    As many words right before the name are dropped as possible: none of NON_DESCRIPTIVE_WORDS may
    be among them, and the grammar must read the same chains without them. Otherwise the question
    stays as it is.
    """
    before, marked, after = question.partition(f"[{name}]")
    words = before.split()
    chains = read_chains(question, kg)
    for position in range(len(words)):
        dropped = " ".join(words[position:]).casefold()
        if NON_DESCRIPTIVE_WORDS.isdisjoint(dropped.split()):
            kept = " ".join([*words[:position], marked])
            if read_chains(kept + after, kg) == chains:
                return kept + after
    return question


def simplify_as_fused_agent(question: str, solved: Hops, kg: Graph | None) -> ReplyData:
    """Return the expert's question as the linguist changes it, with the remarks of both; there is no critic."""
    expert = simplify_as_expert(question, solved, kg)
    linguist = simplify_as_linguist(solved, [expert], kg)
    linguist["remark"] = f"{expert['remark']} {linguist['remark']}"
    return linguist


def _remove_solved_hops(question: str, solved: Hops, kg: Graph | None) -> RelationChains:
    """Return the chains of relations that are left of a question after solved hops, by name.

    The chain of each solved entity loses its first step, and stands under what was found. An entity
    without a chain leaves an empty one. Raises ModelError if the grammar cannot read the question.
    """
    chains = read_chains(question, kg)
    for hop in solved:
        steps = chains.pop(hop["entity"], [])
        chains[hop["found"]] = steps[1:]
    return chains


def _shorten_question(question: str, hop: Hop, kg: Graph | None) -> str:
    """Return a question that asks for what is left after one hop.

    It is the question with the fewest words replaced by what was found, if the grammar reads in it
    the chains that are left. If there is none, a single relation that is left is asked for in plain
    words; otherwise the entity alone is replaced.
    """
    found = hop["found"]
    left = _remove_solved_hops(question, [hop], kg)
    steps = left[found]
    entity = hop["entity"]
    before, _, after = question.partition(f"[{entity}]")
    relation = steps[0].relation if steps else ""
    for text in _list_replacements(before, f"[{found}]", after, relation):
        if _are_same_chains(read_chains(text, kg), left):
            return text
    if len(left) == 1 and len(steps) == 1:
        return _write_relation_question(found, steps[0])
    return f"{before}[{found}]{after}"


def _list_replacements(before: str, name: str, after: str, relation: str) -> Iterator[str]:
    """Yield versions of a question in which a name replaces more and more words around an entity.

    ``before`` and ``after`` are the words around the entity. All versions come with nothing between
    the kept words and the name, then all with "of", then with the last two words of ``relation``
    ("directed by"), then with its first. A relative pronoun is not kept before the name.
    """
    starts = [before]
    for token in tokenize(before):
        starts.append(before[: token.start])
    ends = [after]
    for token in tokenize(after):
        ends.append(after[token.end :])
    kept = []
    for start in starts:
        last_word = start.split()[-1:]
        if RELATIVES.isdisjoint(last_word):
            kept += [(start, end) for end in ends]
    kept.sort(key=lambda parts: len("".join(parts)), reverse=True)

    words = relation.split()
    for link in ([], ["of"], words[-2:], words[:1]):
        linked_name = " ".join([*link, name])
        for start, end in kept:
            yield start + linked_name + end


def _are_same_chains(first: RelationChains, second: RelationChains) -> bool:
    """Return whether two readings have the same names, and the same steps from each of them.

    Steps are the same if they have one direction, and relations that are equal or have a word in
    common that is not in UNSPECIFIC_WORDS.
    """
    if first.keys() != second.keys():
        return False
    for name, steps in first.items():
        others = second[name]
        if len(steps) != len(others):
            return False
        for step, other in zip(steps, others, strict=True):
            words = set(step.relation.split())
            common = words.intersection(other.relation.split()) - UNSPECIFIC_WORDS
            is_same_relation = common or step.relation == other.relation
            if step.is_backward != other.is_backward or not is_same_relation:
                return False
    return True


def read_chains(
    question: str, kg: Graph | None, embeddings: Embeddings | None = None
) -> RelationChains:
    """Return, for each name in square brackets, the relations from it to what is asked for, nearest first.

    A chain ends at the target of the question, or at another of the names. With embeddings the
    question is read with the help of the graph (``ground_question``), without them by the grammar
    alone. A value without a name and its parts count as one step. Raises ModelError if the grammar
    cannot read the question.
    """
    if embeddings is None:
        reading = parse_question(question, kg)
    else:
        reading = ground_question(question, kg, embeddings)
    names = [mention.text for mention in bracketed_mentions(question)]
    ends = set(names)
    if reading.kind != "boolean":
        ends.add(reading.target)

    chains: RelationChains = {}
    for name in names:
        place = name
        chains[name] = []
        for subject, relation, object_ in reading.facts:
            is_at_end = place in ends and place != name
            if is_at_end or place not in (subject, object_):
                continue
            is_backward = object_ == place
            place = object_
            if is_backward:
                place = subject
            if NAME_SEPARATOR not in relation:  # else it leads to the parts of the value before it
                chains[name].append(RelationStep(relation, is_backward))
    return chains


RULES: Mapping[str, Rule] = {
    "dog/own_knowledge": answer_nothing,
    "dog/topic_entity": find_topic_entities,
    "dog/relation_filtering": choose_relation,
    "dog/answer_trying": try_answer,
    "dog/answer_trying_published": try_answer,
    "dog/simplifying_expert": simplify_as_expert,
    "dog/critic": simplify_as_critic,
    "dog/linguist": simplify_as_linguist,
    "dog/fused_agent": simplify_as_fused_agent,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
