"""Relation filtering: the first hop of the question, then the one relation that says it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.dog.records import MARKED, Filtered, Relations
from kgwb.systems.dog.settings import settings_of


class FilteringReply(BaseModel):
    """The first-hop sub-question ("" if one hop is left), then its relation; "" if none fits."""

    model_config = ConfigDict(extra="forbid")
    subquestion: str
    relation: str
    reason: str


def problems(filtered: Filtered, relations: Relations, question: str) -> Iterator[str]:
    """What is wrong with a choice put in by hand: head and relation must be those that were offered."""
    if filtered.head != relations.head:
        yield f"the relation is for {filtered.head!r}, the step for {relations.head!r}"
    if filtered.relation is not None and filtered.relation not in relations.found:
        yield f"{filtered.relation} is none of {', '.join(map(str, relations.found)) or 'the relations'}"


@agent("relation_filtering", subject="relations", check=problems, kind="model")
def filter_relation(relations: Relations, question: str, run: Run) -> Filtered:
    """The relation of the question's first hop from a head ("only the best unique relation").

    No model is asked where there is one relation, unless "none" is a choice that says something: that another
    head comes first, or, without focusing, that the walk ends.
    """
    if not relations.found:
        return Filtered(relations.head, "", None, "the graph tells nothing about it")
    alone = len({*MARKED.findall(question)}) <= 1 and settings_of(run).ablation != "no_focusing"
    if len(relations.found) == 1 and alone:
        return Filtered(relations.head, "", relations.found[0], "the only relation")
    variables = {
        "question": question,
        "entity": relations.head,
        "relations": [str(relation) for relation in relations.found],
    }
    checks = (in_the_list(relations),)
    reply = ask("dog/relation_filtering", variables, FilteringReply, run, checks=checks)
    chosen = relations.named(reply.relation) if reply.relation.strip() else None
    return Filtered(relations.head, " ".join(reply.subquestion.split()), chosen, reply.reason)


def in_the_list(relations: Relations) -> Check[FilteringReply]:
    """The relation must be one of those offered, its direction included, or none."""

    def listed(reply: FilteringReply) -> str:
        if not reply.relation.strip() or relations.named(reply.relation):
            return ""
        return f"{reply.relation!r} is not in the list"

    return Check("a relation from the list", listed)
