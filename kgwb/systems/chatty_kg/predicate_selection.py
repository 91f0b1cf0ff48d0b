"""Predicate selection and query validator: the candidate queries worth executing (sections 5.2.2, 5.2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import contains

from pydantic import BaseModel, ConfigDict

from kgwb.flow import CandidateQuery
from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.chatty_kg.records import Generated, Linked, LinkedRelation, Selection

NEAR, FAR = 0.7, 0.25
"""A predicate this like the relation, and the others less like it by this much, needs no model."""


class SelectionReply(BaseModel):
    """The relevant predicates of each triple after a word of reasoning (zero-shot chain of thought)."""

    model_config = ConfigDict(extra="forbid")
    reasoning: str
    predicates: list[list[str]]


class PooledReply(BaseModel):
    """The relevant predicates of one pool after a word of reasoning, as published."""

    model_config = ConfigDict(extra="forbid")
    reasoning: str
    predicates: list[str]


def problems(selection: Selection, generated: Generated, question: str, linked: Linked) -> Iterator[str]:
    """What the query validator has against a selection put in by hand: it may hold candidate queries only."""
    known = {query.sparql for query in generated.queries}
    yield from (
        f"not a candidate query: {query.sparql}" for query in selection.queries if query.sparql not in known
    )


@agent("predicate_selection", check=problems, kind="model")
def select_queries(generated: Generated, question: str, linked: Linked, run: Run) -> Selection:
    """The queries whose predicates the model judges relevant (Algorithm 3, lines 3 to 17).

    As published, one pool of names is shown and one relevant predicate is enough for a query. ``fast`` shows
    each triple with its own predicates, and a query must be right in every triple; no model is asked where
    for every relation one predicate has its very name, or is by far the nearest.
    """
    if not generated.queries:
        return Selection((), ())
    if run.settings.fast:
        return _by_triple(generated.queries, question, linked.relations, run)
    return _pooled(generated, question, run)


def _by_triple(
    queries: Sequence[CandidateQuery], question: str, relations: Sequence[LinkedRelation], run: Run
) -> Selection:
    offered = [list(dict.fromkeys(query.predicates[n] for query in queries)) for n in range(len(relations))]
    relevant = [_beyond_doubt(relation) for relation in relations]
    if all(relevant):
        run.note("for every relation one predicate is beyond doubt: no model was asked")
    else:
        shown = [
            {"triple": [*relation.fact.words], "predicates": names}
            for relation, names in zip(relations, offered, strict=True)
        ]
        variables = {"question": question, "relations": shown}
        checks = (validator_by_triple(offered),)
        reply = ask("chatty_kg/predicate_selection", variables, SelectionReply, run, checks=checks)
        relevant = reply.predicates
    kept = [query for query in queries if all(map(contains, relevant, query.predicates))]
    lists = zip(relevant, offered, strict=True)
    names = (name for chosen, known in lists for name in chosen if name in known)
    return Selection(tuple(kept), tuple(dict.fromkeys(names)))


def _beyond_doubt(relation: LinkedRelation) -> list[str]:
    """The one predicate with the relation's very name, or by far the most like it; empty if in doubt."""
    same = {p.name for p in relation.predicates if p.name.casefold() == relation.fact.relation.casefold()}
    if same:
        return [*same] if len(same) == 1 else []
    close: dict[str, float] = {}
    for predicate in relation.predicates:
        close.setdefault(predicate.name, predicate.similarity)
    (best, nearest), *rest = close.items()
    return [best] if nearest >= NEAR and all(nearest - similarity >= FAR for _, similarity in rest) else []


def validator_by_triple(offered: Sequence[Sequence[str]]) -> Check[SelectionReply]:
    """One list a triple, with names from that triple's list; names outside are dropped.

    A list that is empty from the start says that the graph does not have the relation. One that only holds
    names from outside is invalid (section 5.2.3).
    """

    def listed(reply: SelectionReply) -> str:
        if len(reply.predicates) != len(offered):
            return f"{len(reply.predicates)} lists for {len(offered)} triples"
        for number, (names, known) in enumerate(zip(reply.predicates, offered, strict=True), 1):
            if names and not any(name in known for name in names):
                return f"none of triple {number}'s predicates is in its list: " + ", ".join(
                    map(repr, names[:5])
                )
        return ""

    return Check("predicates from the list", listed)


def _pooled(generated: Generated, question: str, run: Run) -> Selection:
    index = inverted_index(generated.queries)
    names = list(index)
    variables = {"question": question, "predicates": names}
    checks = (query_validator(names),)
    # After theta attempts Algorithm 3 goes on with what it has: no predicate, so no query and no answer.
    name, last = "chatty_kg/predicate_selection_published", lambda _: True
    reply = ask(name, variables, PooledReply, run, checks=checks, last_resort=last)
    relevant = tuple(name for name in names if name in reply.predicates)
    sharing = sorted({number for name in relevant for number in index[name]})
    return Selection(tuple(generated.queries[number] for number in sharing), relevant)


def inverted_index(queries: Sequence[CandidateQuery]) -> dict[str, list[int]]:
    """PredToQuery: each predicate name with the numbers of the queries that use it."""
    index: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        for name in dict.fromkeys(query.predicates):
            index.setdefault(name, []).append(number)
    return index


def query_validator(names: Sequence[str]) -> Check[PooledReply]:
    """Names outside the list are dropped; if that leaves nothing the reply is invalid (section 5.2.3)."""

    def listed(reply: PooledReply) -> str:
        if any(name in names for name in reply.predicates):
            return ""
        return "none of the predicates is in the list: " + ", ".join(map(repr, reply.predicates[:5]))

    return Check("predicates from the list", listed)
