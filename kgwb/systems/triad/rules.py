"""What the model ``rules`` does in Triad's roles: the grammar's triples, and names most like each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import Rule
from kgwb.llm.rules import SPELLING_WEIGHT, find_similar_predicates, grammar
from kgwb.llm.rules.grounding import ground_question
from kgwb.systems.rules import choose_vertex


def extract_triplets(question: str, kg: Graph | None, embeddings: Embeddings) -> dict[str, Any]:
    """The triples that the grammar reads."""
    facts = ground_question(question, kg, embeddings).facts
    return {"reason": "as the grammar reads it", "triplets": [list(fact) for fact in facts]}


def choose_entities(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The one vertex that the shared rule chooses."""
    best = choose_vertex(question, entity, candidates, kg, embeddings)
    return {"reason": best["reason"], "numbers": [best["number"]] if best["number"] else []}


def choose_relations(
    triplet: Sequence[str], relations: Sequence[Any], most: int, embeddings: Embeddings
) -> dict[str, Any]:
    """Those named most like the triplet's; in both directions, as the wordings speak for it."""
    subject, says, _ = triplet
    names = find_similar_predicates(
        says, list(dict.fromkeys(each["triple"][1] for each in relations)), embeddings
    )
    near = dict(zip(names, embeddings.similarity(says, names, SPELLING_WEIGHT), strict=True))
    chosen: dict[str, int] = {}
    for each in relations:
        first, name, _ = each["triple"]
        fits = (first == subject) == (grammar.leads_to_agent(says) == grammar.leads_to_agent(name))
        if name in near and (fits or name not in chosen):
            chosen[name] = each["number"]
    best = sorted(chosen, key=lambda name: -near[name])[:most]
    reason = "the names most like it" if best else "no name is like it"
    return {"reason": reason, "numbers": [chosen[name] for name in best]}


def write_template(
    question: str, triplets: Sequence[Sequence[str]], kg: Graph | None
) -> dict[str, Any]:
    """The triplets one by one; what a chain was asked about is none of its answers."""
    _, target, kind = grammar.parse_question(question, kg)
    ends = {
        end: end if end.startswith("?") else f"<{end}>" for s, _, o in triplets for end in (s, o)
    }
    body = " ".join(f"{ends[s]} <{p}> {ends[o]} ." for s, p, o in triplets)
    named = [end for end in ends.values() if end.startswith("<")] if len(triplets) > 1 else []
    body += "".join(f" FILTER({target} != {end})" for end in named if kind != "boolean")
    head = "ASK" if kind == "boolean" else f"SELECT DISTINCT {target} WHERE"
    return {"reason": "the triplets in their order", "sparql": f"{head} {{ {body} }}"}


def choose_query() -> dict[str, Any]:
    """The first, which is of first choices."""
    return {"reason": "of first choices", "numbers": [1]}


def classify_answer_type(question: str, kg: Graph | None) -> dict[str, Any]:
    """As the grammar reads the question."""
    kinds = {"boolean": "yes or no", "count": "count", "list": "select"}
    return {"type": kinds[grammar.parse_question(question, kg).kind]}


RULES: Mapping[str, Rule] = {
    "triad/triplets": extract_triplets,
    "triad/entity_choice": choose_entities,
    "triad/relation_choice": choose_relations,
    "triad/template": write_template,
    "triad/query_choice": choose_query,
    "triad/answer_type": classify_answer_type,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
