"""Predicate selection and query validator: which candidate queries are worth executing (sections 5.2.2 and 5.2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from kgwb.flow import QIR, CandidateQuery, Generated, Selection
from kgwb.run import Run, agent
from kgwb.structured import Check, ask


class SelectionReply(BaseModel):
    """The relevant predicates after a word of reasoning (zero-shot chain of thought)."""

    model_config = ConfigDict(extra="forbid")
    reasoning: str
    predicates: list[str]


def problems(selection: Selection, generated: Generated, question: str, qir: QIR) -> Iterator[str]:
    """What the query validator has against a selection put in by hand: only candidate queries may be selected."""
    known = {query.sparql for query in generated.queries}
    yield from (f"not a candidate query: {query.sparql}" for query in selection.queries if query.sparql not in known)


@agent("predicate_selection", check=problems)
def select_queries(generated: Generated, question: str, qir: QIR, run: Run) -> Selection:
    """The queries whose predicates the model judges relevant (Algorithm 3, lines 3 to 17).

    As published, one relevant predicate is enough for a query; ``fast`` wants all of them where that leaves any.
    """
    if not generated.queries:
        return Selection((), ())
    index = inverted_index(generated.queries)
    names = list(index)
    reply = ask(
        "chatty_kg/predicate_selection" if run.settings.fast else "chatty_kg/predicate_selection_published",
        {"question": question, "predicates": names} | ({"triples": _shown(qir)} if run.settings.fast else {}),
        SelectionReply,
        run,
        checks=(query_validator(names, may_be_empty=run.settings.fast),),
    )
    relevant = tuple(name for name in names if name in reply.predicates)
    sharing = sorted({number for name in relevant for number in index[name]})
    queries = [generated.queries[number] for number in sharing]
    if run.settings.fast:
        queries = [query for query in queries if set(query.predicates) <= set(relevant)] or queries
    return Selection(tuple(queries), relevant)


def inverted_index(queries: Sequence[CandidateQuery]) -> dict[str, list[int]]:
    """PredToQuery: each predicate name with the numbers of the queries that use it."""
    index: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        for name in query.predicates:
            index.setdefault(name, []).append(number)
    return index


def query_validator(names: Sequence[str], *, may_be_empty: bool) -> Check[SelectionReply]:
    """Names outside the list are dropped; if that leaves nothing the reply is invalid (section 5.2.3).

    ``may_be_empty`` accepts a reply that says in so many words that no predicate is relevant.
    """

    def listed(reply: SelectionReply) -> str:
        if any(name in names for name in reply.predicates) or (may_be_empty and not reply.predicates):
            return ""
        return "none of the predicates is in the list: " + ", ".join(map(repr, reply.predicates[:5]))

    return Check("predicates from the list", listed)


def _shown(qir: QIR) -> list[list[str]]:
    return [[fact.subject, fact.relation, fact.object] for fact in qir.facts]
