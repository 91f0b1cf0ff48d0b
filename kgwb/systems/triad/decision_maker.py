"""The decision-maker (D-agent): chooses vertices, relations and the query from what is offered (3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import StrictInt

from kgwb.flow import Retrieved
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask
from kgwb.systems.linking import numbered
from kgwb.systems.triad.records import Choice, Queries, Relation, Triplet
from kgwb.systems.triad.settings import settings_of


class ChoiceReply(Reply):
    """The numbers of what is chosen, best first, after why."""

    reason: str
    numbers: list[StrictInt]


def problems(choice: Choice, offered: Any, *_: object) -> Iterable[str]:
    """What is wrong with a choice put in by hand."""
    options = getattr(offered, "candidates", getattr(offered, "kept", offered))
    return [f"{each} is not among what is offered" for each in choice.chosen if each not in options]


def decide(
    task: str, of: str, options: Sequence[Any], least: int, most: int, variables: Mapping[str, Any], run: Run
) -> Choice:
    """``least`` to ``most`` of the options, by their numbers: a model can choose nothing else."""

    def offered(reply: ChoiceReply) -> str:
        if wrong := [number for number in reply.numbers if not 1 <= number <= len(options)]:
            return f"there is no number {wrong[0]}; they go from 1 to {len(options)}"
        right = least <= len({*reply.numbers}) == len(reply.numbers) <= most
        return "" if right else f"choose {least} to {most}, each once"

    check = Check[ChoiceReply]("among those offered", offered)
    reply = ask(task, {**variables, "most": most}, ChoiceReply, run, checks=(check,))
    return Choice(of, tuple(options[number - 1] for number in reply.numbers), reply.reason)


@agent("entity_choice", subject="entity", check=problems, kind="model")
def choose_entities(
    retrieved: Retrieved, entity: str, question: str, failed: tuple[str, ...], run: Run
) -> Choice:
    """At most K of the candidates; ``fast`` asks no model where one alone has exactly this label."""
    candidates, most = retrieved.candidates, settings_of(run).entities
    alone = run.settings.fast and len(candidates) == 1 and candidates[0].score >= 1
    if not candidates or alone or settings_of(run).ablation == "no_uri_choice":
        reason = "the labels most like it" if candidates else "no label holds these words"
        return Choice(entity, candidates[:most], reason)
    variables = {"question": question, "entity": entity, "failed": list(failed)}
    shown = {"candidates": numbered(candidates)}
    return decide("triad/entity_choice", entity, candidates, 0, most, variables | shown, run)


@agent("relation_choice", subject="triplet", check=problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...], triplet: Triplet, question: str, failed: tuple[str, ...], run: Run
) -> Choice:
    """At most K of the relations."""
    most = settings_of(run).relations
    if not relations or settings_of(run).ablation == "no_uri_choice":
        reason = "the names most like it" if relations else "there is no relation around it"
        return Choice(str(triplet), relations[:most], reason)
    shown = []
    for number, each in enumerate(relations, 1):
        first, last = triplet.ends if each.direction == "out" else triplet.ends[::-1]
        shown.append({"number": number, "triple": [first, each.name, last]})
    words = [triplet.subject, triplet.relation, triplet.object]
    variables = {"question": question, "triplet": words, "relations": shown, "failed": list(failed)}
    return decide("triad/relation_choice", str(triplet), relations, 0, most, variables, run)


@agent("query_choice", check=problems, kind="model")
def choose_query(queries: Queries, question: str, run: Run) -> Choice:
    """The query that answers; no model is asked where only one has results."""
    if len(queries.kept) < 2 or settings_of(run).ablation == "no_query_choice":
        return Choice("query", queries.kept[:1])
    shown = [
        {"number": number, "query": each.reads, "rows": each.rows, "first": list(each.results)}
        for number, each in enumerate(queries.kept, 1)
    ]
    variables = {"question": question, "queries": shown}
    return decide("triad/query_choice", "query", queries.kept, 1, 1, variables, run)
