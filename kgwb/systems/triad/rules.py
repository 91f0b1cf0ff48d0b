"""How the model ``rules`` answers the prompts of Triad: by the grammar, and by similar names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.build import (
    NOT_UNDERSTOOD,
    SPELLING_WEIGHT,
    Direction,
    Embeddings,
    Graph,
    ReplyData,
    Rule,
    choose_vertex,
    compare_wordings,
    find_similar_predicates,
    find_unread,
    ground_question,
    name_from_iri,
    parse_question,
)
from kgwb.systems.triad.records import ANSWER_TYPE_BY_KIND

Triplet = Sequence[str]
SPELLING_ALONE = 1.0
"""The weight of spelling where meaning does not count, as between a name and its IRI."""


def extract_triplets(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return the triples that the grammar reads; raise ModelError if it cannot read the question."""
    reading = ground_question(question, kg, embeddings)
    triplets = [list(fact) for fact in reading.facts]
    return {"reason": "as the grammar reads it", "triplets": triplets}


def choose_entities(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the number of the vertex that ``choose_vertex`` chooses, as a list.

    The list is empty if it chooses none. Raises ModelError if the grammar cannot read the question.
    """
    chosen = choose_vertex(question, entity, candidates, kg, embeddings)
    numbers = []
    if chosen["number"]:
        numbers.append(chosen["number"])
    return {"reason": chosen["reason"], "numbers": numbers}


def choose_relations(
    triplet: Triplet, relations: Sequence[Any], most: int, embeddings: Embeddings
) -> ReplyData:
    """Return the numbers of the relations whose names are most like a triplet's, at most ``most``, best first.

    Each of ``relations`` has a "number" and a "triple". If a name occurs in both directions, it is
    the last one in the direction of its wording (``compare_wordings``). None is taken in a direction
    that its wording contradicts. The reply has "numbers", which may be empty, and "reason".
    """
    subject, relation, _ = triplet
    names = dict.fromkeys(candidate["triple"][1] for candidate in relations)
    similar = find_similar_predicates(relation, list(names), embeddings)
    chosen: dict[str, int] = {}
    for candidate in relations:
        candidate_subject, name, _ = candidate["triple"]
        wording = compare_wordings(relation, name)
        direction: Direction = "in"
        if candidate_subject == subject:
            direction = "out"
        if name not in similar or wording.contradicts(direction):
            continue
        if wording.direction == direction or name not in chosen:
            chosen[name] = candidate["number"]

    similarities = embeddings.similarity(relation, similar, SPELLING_WEIGHT)
    similarity_of = dict(zip(similar, similarities, strict=True))
    ranked = sorted(chosen, key=lambda name: -similarity_of[name])
    numbers = [chosen[name] for name in ranked[:most]]
    reason = "no name is like it"
    if numbers:
        reason = "the names most like it"
    return {"reason": reason, "numbers": numbers}


def write_template(question: str, triplets: Sequence[Triplet], kg: Graph | None) -> ReplyData:
    """Return a SPARQL template of all triplets, with names in angle brackets, in the key "sparql".

    It is an ASK for a yes-or-no question. Otherwise it selects the target of the question; if there
    are several triplets, the entities in them are excluded from the answers. Raises ModelError if
    the grammar cannot read the question.
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


def judge_queries(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return number 1, or no number if the question is not understood: no query asks for it then.

    Raises ModelError if the grammar cannot read the question.
    """
    unread = find_unread(question, kg, embeddings).problems
    if unread:
        return {"reason": f"{NOT_UNDERSTOOD}: {'; '.join(unread)}", "numbers": []}
    return choose_query()


# As published: by URIs


def choose_entity_uris(entity: str, uris: str, most: int, embeddings: Embeddings) -> ReplyData:
    """Return ``most`` of the URIs: those whose last parts are spelled most like the entity.

    ``uris`` has one a line. The most similar comes first; equals keep their order.
    """
    listed = uris.splitlines()
    names = list(map(name_from_iri, listed))
    similarities = embeddings.similarity(entity, names, SPELLING_ALONE)
    similarity_of = dict(zip(listed, similarities, strict=True))
    listed.sort(key=similarity_of.__getitem__, reverse=True)
    return {"uris": listed[:most]}


def choose_relation_uris(
    question: str, uris: str, most: int, kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return at most ``most`` of the URIs, one a line, whose names are like a relation's words.

    The words are those of the relations that the grammar reads in the question. Raises ModelError
    if it cannot read the question. The order of the URIs stays.
    """
    listed = uris.splitlines()
    names = list(map(name_from_iri, listed))
    similar: set[str] = set()
    for _, relation, _ in parse_question(question, kg).facts:
        similar.update(find_similar_predicates(relation, names, embeddings))
    chosen = []
    for uri, name in zip(listed, names, strict=True):
        if name in similar:
            chosen.append(uri)
    return {"uris": chosen[:most]}


def choose_first_query(queries: str) -> ReplyData:
    """Return the first of the queries, one a line: it is made of the first choices."""
    return {"sparql": queries.splitlines()[0]}


def write_query(
    question: str, triplets: Sequence[Triplet], uris: Mapping[str, Sequence[str]], kg: Graph | None
) -> ReplyData:
    """Return the template of ``write_template`` with each name replaced by its first URI, in the key "sparql".

    ``uris`` has the URIs of each mention and each triplet, by its text. Raises IndexError if one
    has none, and ModelError if the grammar cannot read the question.
    """
    template = str(write_template(question, triplets, kg)["sparql"])
    for subject, relation, object_ in triplets:
        triple = f"⟨{subject}, {relation}, {object_}⟩"
        first_uri = uris[triple][0]
        template = template.replace(f"<{relation}>", f"<{first_uri}>", 1)
    for name, listed in uris.items():
        first_uri = listed[0]
        template = template.replace(f"<{name}>", f"<{first_uri}>")
    return {
        "reason": "the first of each",
        "sparql": template,
    }


def classify_answer_type(question: str, kg: Graph | None) -> ReplyData:
    """Return the type of answer as the grammar reads it: "yes or no", "count" or "select"."""
    return {"type": ANSWER_TYPE_BY_KIND[parse_question(question, kg).kind]}


def classify_step_by_step(question: str, kg: Graph | None) -> ReplyData:
    """Return the type of answer in angle brackets, with the kind that the grammar reads as the reason."""
    answer_type = classify_answer_type(question, kg)["type"]
    return {"reason": f"it is a question for {answer_type}", "type": f"<{answer_type}>"}


RULES: Mapping[str, Rule] = {
    "triad/triplets": extract_triplets,
    "triad/entity_choice": choose_entities,
    "triad/relation_choice": choose_relations,
    "triad/template": write_template,
    "triad/query_choice": choose_query,
    "triad/query_choice_judgement": judge_queries,
    "triad/written_query": write_query,
    "triad/answer_type": classify_answer_type,
    "triad/triplets_published": extract_triplets,
    "triad/entity_choice_published": choose_entity_uris,
    "triad/relation_choice_published": choose_relation_uris,
    "triad/template_published": write_template,
    "triad/query_choice_published": choose_first_query,
    "triad/answer_type_published": classify_answer_type,
    "triad/answer_type_reasoned": classify_step_by_step,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
