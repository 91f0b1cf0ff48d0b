"""The advisor (A-agent): an answer from the graph, else from what the model knows (3.3)."""

from __future__ import annotations

from numbers import Number

from pydantic import BaseModel, ConfigDict
from rdflib import Literal, URIRef

from kgwb.flow import Answer, CandidateQuery, Kind, Value
from kgwb.kg.algebra import parts_of
from kgwb.kg.base import Rows
from kgwb.kg.queries import named
from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.supports import supports
from kgwb.systems.triad.generalist import AnswerType
from kgwb.systems.triad.settings import settings_of

KINDS: dict[AnswerType, Kind] = {"count": "count", "select": "list", "yes or no": "boolean"}


class KnowledgeReply(BaseModel):
    """One fact from memory, or True or False; "" if it does not know."""

    model_config = ConfigDict(extra="forbid")
    answer: str


@agent("answer", kind="sparql")
def conclude(query: CandidateQuery, asked: AnswerType, run: Run) -> Answer:
    """What the query gives, each value with triples that it stands on."""
    result: Rows | None = None
    if parts_of(query.sparql).kind == "boolean":
        truth: bool | None = run.kg.ask(query.sparql)
    else:
        result = run.kg.select(query.sparql)
        truth = bool(result.rows) if asked == "yes or no" else None
    rows = {row: row[0] for row in result.rows if row[0] is not None} if result else {}
    columns = result.variables if result else ()
    standing = supports(query.sparql, columns, [*rows], run) if truth is not False else {}
    names = run.kg.names(sorted(term for term in rows.values() if isinstance(term, URIRef)))
    values = [Value(t, names.get(URIRef(t), str(t)), standing.get(row, ())) for row, t in rows.items()]
    numbers = all(isinstance(v.term, Literal) and isinstance(v.term.value, Number) for v in values)
    if truth is not None or (asked == "count" and not numbers):
        one = len(rows) if truth is None else truth
        triples = dict.fromkeys(triple for support in standing.values() for triple in support)
        values = [Value(Literal(one), str(one).lower(), tuple(triples))]
    kind: Kind = "boolean" if truth is not None else KINDS[asked]
    return named(run.kg, Answer(kind, tuple(values), (query.sparql,)))


@agent("own_knowledge", kind="model")
def remember(question: str, asked: AnswerType, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such, if yes or no or one fact is asked for."""
    truth = asked == "yes or no"
    if asked == "count" or (settings_of(run).ablation == "boolean_fallback" and not truth):
        return Answer(KINDS[asked], reason=reason)
    right = {"True", "False"} if truth else ()
    check = Check[KnowledgeReply](
        "True or False", lambda reply: "say True or False" if right and reply.answer not in right else ""
    )
    task = "triad/own_truth" if truth else "triad/own_fact"
    text = ask(task, {"question": question}, KnowledgeReply, run, checks=(check,)).answer.strip()
    value = Value(Literal(text == "True"), text.lower()) if truth else Value(Literal(text), text)
    return Answer(KINDS[asked], (value,) if text else (), reason=reason, ungrounded=bool(text))
