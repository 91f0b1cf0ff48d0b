"""How the model ``rules`` answers the prompts of Triad: by the grammar, and by similar names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ReplyData, Rule
from kgwb.llm.rules.grammar import leads_to_agent, parse_question
from kgwb.llm.rules.grounding import ground_question
from kgwb.llm.rules.similarity import SPELLING_WEIGHT, find_similar_predicates
from kgwb.systems.rules import choose_vertex

Triplet = Sequence[str]
ANSWER_TYPES = {"boolean": "yes or no", "count": "count", "list": "select"}


def extract_triplets(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return the triples that the grammar reads; raise ModelError if it cannot read the question."""
    reading = ground_question(question, kg, embeddings)
    triplets = [list(fact) for fact in reading.facts]
    return {"reason": "as the grammar reads it", "triplets": triplets}


def choose_entities(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the number of the vertex that ``choose_vertex`` chooses, none if it chooses none."""
    chosen = choose_vertex(question, entity, candidates, kg, embeddings)
    numbers = []
    if chosen["number"]:
        numbers.append(chosen["number"])
    return {"reason": chosen["reason"], "numbers": numbers}


def choose_relations(
    triplet: Triplet, relations: Sequence[Any], most: int, embeddings: Embeddings
) -> ReplyData:
    """Return the numbers of the relations whose names are most like a triplet's, the best first.

    ``most`` is how many are returned at most. Each of ``relations`` has a "number" and a "triple".
    If a name occurs in both directions, it is the last one with the direction of the triplet; the
    direction is turned if one of the two names leads to an agent and the other does not.
    """
    subject, relation, _ = triplet
    names = dict.fromkeys(candidate["triple"][1] for candidate in relations)
    similar = find_similar_predicates(relation, list(names), embeddings)
    chosen: dict[str, int] = {}
    for candidate in relations:
        candidate_subject, name, _ = candidate["triple"]
        is_same_view = leads_to_agent(relation) == leads_to_agent(name)
        has_direction = (candidate_subject == subject) == is_same_view
        if name in similar and (has_direction or name not in chosen):
            chosen[name] = candidate["number"]

    similarities = embeddings.similarity(relation, similar, SPELLING_WEIGHT)
    similarity_of = dict(zip(similar, similarities, strict=True))
    ranked = sorted(chosen, key=lambda name: -similarity_of[name])
    numbers = [chosen[name] for name in ranked[:most]]
    reason = "the names most like it" if numbers else "no name is like it"
    return {"reason": reason, "numbers": numbers}


def write_template(question: str, triplets: Sequence[Triplet], kg: Graph | None) -> ReplyData:
    """Return a SPARQL template of all triplets, with names in angle brackets.

    It is an ASK query for a yes-or-no question. Otherwise it selects the target of the question; if
    there are several triplets, the entities in them are excluded from the answers.

    Raises ModelError if the grammar cannot read the question.
    """
    reading = parse_question(question, kg)
    head = "ASK"
    if reading.kind != "boolean":
        head = f"SELECT DISTINCT {reading.target} WHERE"
    entities: dict[str, str] = {}
    conditions = []
    for subject, relation, object_ in triplets:
        for end in (subject, object_):
            if not end.startswith("?"):
                entities[end] = f"<{end}>"
        first = entities.get(subject, subject)
        second = entities.get(object_, object_)
        conditions.append(f"{first} <{relation}> {second} .")
    if reading.kind != "boolean" and len(triplets) > 1:
        for entity in entities.values():
            conditions.append(f"FILTER({reading.target} != {entity})")
    body = " ".join(conditions)
    return {"reason": "the triplets in their order", "sparql": f"{head} {{ {body} }}"}


def choose_query() -> ReplyData:
    """Return number 1: the first query is made of the first choices."""
    return {"reason": "of first choices", "numbers": [1]}


def classify_answer_type(question: str, kg: Graph | None) -> ReplyData:
    """Return the type of answer as the grammar reads it: "yes or no", "count" or "select"."""
    return {"type": ANSWER_TYPES[parse_question(question, kg).kind]}


RULES: Mapping[str, Rule] = {
    "triad/triplets": extract_triplets,
    "triad/entity_choice": choose_entities,
    "triad/relation_choice": choose_relations,
    "triad/template": write_template,
    "triad/query_choice": choose_query,
    "triad/answer_type": classify_answer_type,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
