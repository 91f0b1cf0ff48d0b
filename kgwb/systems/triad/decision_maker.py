"""The decision-maker (D-agent): chooses vertices, relations and the query from what is offered (3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictInt

from kgwb.flow import Candidate
from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.linking import numbered, retrieve
from kgwb.systems.triad.records import EntityChoice, Queries, Relation, RelationChoice, Triplet
from kgwb.systems.triad.settings import settings_of


class Option(BaseModel):
    """One of what is offered, by its number, with its name as a cross-check."""

    model_config = ConfigDict(extra="forbid")
    number: StrictInt
    name: str


class ChoiceReply(BaseModel):
    """What is chosen, best first, after why."""

    model_config = ConfigDict(extra="forbid")
    reason: str
    chosen: list[Option]


def decide(
    task: str, variables: Mapping[str, Any], names: Sequence[str], least: int, most: int, run: Run
) -> tuple[list[int], str]:
    """Places of what a model chooses among these names, and why; it can choose nothing else."""

    def offered(reply: ChoiceReply) -> str:
        numbers = [each.number for each in reply.chosen]
        if not least <= len(set(numbers)) == len(numbers) <= most:
            return f"choose {least} to {most} of them, each once"
        for each in reply.chosen:
            if not 1 <= each.number <= len(names):
                return f"there is no number {each.number}; they go from 1 to {len(names)}"
            if names[each.number - 1].casefold().strip() != each.name.casefold().strip():
                return f"number {each.number} is {names[each.number - 1]!r}, not {each.name!r}"
        return ""

    check = Check[ChoiceReply]("among those offered", offered)
    reply = ask(f"triad/{task}", {**variables, "most": most}, ChoiceReply, run, checks=(check,))
    return [each.number - 1 for each in reply.chosen], reply.reason


@agent("entity_linking", subject="entity")
def link_entity(entity: str, question: str, failed: tuple[str, ...], run: Run) -> EntityChoice:
    """Search the labels for a mention, and choose."""
    return choose_entities(retrieve(entity, run).candidates, entity, question, failed, run)


def entity_problems(choice: EntityChoice, candidates: Sequence[Candidate], *_: object) -> list[str]:
    """What is wrong with vertices put in by hand."""
    return [f"{each} is not among the candidates" for each in choice.chosen if each not in candidates]


@agent("entity_choice", check=entity_problems, kind="model")
def choose_entities(
    candidates: tuple[Candidate, ...], entity: str, question: str, failed: tuple[str, ...], run: Run
) -> EntityChoice:
    """At most K of the candidates; ``fast`` asks no model where one has exactly this label."""
    most = settings_of(run).entities
    sure = not candidates or (run.settings.fast and len(candidates) == 1 and candidates[0].score >= 1)
    if sure or settings_of(run).ablation == "no_uri_choice":
        return EntityChoice(entity, candidates[:most], "the labels most like it")
    variables = {"question": question, "entity": entity, "failed": list(failed)}
    offered = {"candidates": numbered(candidates)}
    names = [candidate.label for candidate in candidates]
    places, reason = decide("entity_choice", variables | offered, names, 0, most, run)
    return EntityChoice(entity, tuple(candidates[place] for place in places), reason)


def relation_problems(choice: RelationChoice, relations: Sequence[Relation], *_: object) -> list[str]:
    """What is wrong with relations put in by hand."""
    return [f"{each} is not among the relations" for each in choice.chosen if each not in relations]


@agent("relation_choice", subject="triplet", check=relation_problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...], triplet: Triplet, question: str, failed: tuple[str, ...], run: Run
) -> RelationChoice:
    """At most K of the relations."""
    most = settings_of(run).relations
    if not relations or settings_of(run).ablation == "no_uri_choice":
        return RelationChoice(triplet, relations[:most], "the names most like it")
    shown = []
    for number, each in enumerate(relations, 1):
        first, last = triplet.ends if each.direction == "out" else triplet.ends[::-1]
        shown.append({"number": number, "name": each.name, "triple": [first, each.name, last]})
    said = [triplet.subject, triplet.relation, triplet.object]
    variables = {"question": question, "triplet": said, "relations": shown, "failed": list(failed)}
    names = [each.name for each in relations]
    places, reason = decide("relation_choice", variables, names, 0, most, run)
    return RelationChoice(triplet, tuple(relations[place] for place in places), reason)


def query_problems(choice: Queries, queries: Queries, *_: object) -> list[str]:
    """What is wrong with a query put in by hand."""
    return [f"not among the queries: {each}" for each in choice.kept if each not in queries.kept]


@agent("query_choice", check=query_problems, kind="model")
def choose_query(queries: Queries, question: str, run: Run) -> Queries:
    """The one query that answers; no model is asked where only one has results."""
    kept = queries.kept
    if len(kept) > 1 and settings_of(run).ablation != "no_query_choice":
        shown = [
            {
                "number": number,
                "name": each.name,
                "query": each.reads,
                "rows": each.rows,
                "first": each.results,
            }
            for number, each in enumerate(kept, 1)
        ]
        variables = {"question": question, "queries": shown}
        (place,), reason = decide("query_choice", variables, [each.name for each in kept], 1, 1, run)
        return Queries(queries.template, queries.heads, (kept[place],), reason=reason)
    return Queries(queries.template, queries.heads, kept[:1])
