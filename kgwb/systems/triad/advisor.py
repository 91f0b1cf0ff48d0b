"""The advisor (A-agent): an answer from the graph, else from what the model knows (3.3)."""

from __future__ import annotations

from numbers import Number
from typing import Literal as OneOf

from pydantic import BaseModel, ConfigDict
from rdflib import Literal, URIRef

from kgwb.flow import Answer, CandidateQuery, Kind, Value
from kgwb.kg.support import named, support_of
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.triad.generalist import AnswerType
from kgwb.systems.triad.settings import settings_of

KINDS: dict[AnswerType, Kind] = {"count": "count", "select": "list", "yes or no": "boolean"}


class TruthReply(BaseModel):
    """Yes or no, from memory."""

    model_config = ConfigDict(extra="forbid")
    answer: OneOf["True", "False"]


class FactReply(BaseModel):
    """One name, from memory; "" if it does not know."""

    model_config = ConfigDict(extra="forbid")
    answer: str


@agent("answer", kind="sparql")
def conclude(query: CandidateQuery, type: AnswerType, run: Run) -> Answer:
    """What the query gives, each value with triples that it stands on."""
    if query.sparql.lstrip()[:3].upper() == "ASK":
        truth, rows, columns = run.kg.ask(query.sparql), [], ()
    else:
        result = run.kg.select(query.sparql)
        rows = [row for row in dict.fromkeys(result.rows) if row[0] is not None]
        truth, columns = None if type != "yes or no" else bool(rows), result.variables
    supports = support_of(run.kg, query.sparql, columns, rows) if rows or truth else {}
    triples = tuple(dict.fromkeys(triple for support in supports.values() for triple in support))
    names = run.kg.names(sorted(row[0] for row in rows if isinstance(row[0], URIRef)))
    values = [Value(row[0], names.get(row[0], str(row[0])), supports.get(row, ())) for row in rows]
    numbers = all(isinstance(v.term, Literal) and isinstance(v.term.value, Number) for v in values)
    if truth is not None:
        values = [Value(Literal(truth), str(truth).lower(), triples)]
    elif type == "count" and not numbers:
        values = [Value(Literal(len(rows)), str(len(rows)), triples)]
    kind = "boolean" if truth is not None else KINDS[type]
    return named(run.kg, Answer(kind, tuple(values), (query.sparql,)))


@agent("own_knowledge", kind="model")
def remember(question: str, type: AnswerType, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such, if yes or no or one fact is asked for."""
    facts = settings_of(run).ablation != "boolean_fallback"
    text = ""
    if type == "yes or no":
        text = ask("triad/own_truth", {"question": question}, TruthReply, run).answer
    elif type == "select" and facts:
        text = ask("triad/own_fact", {"question": question}, FactReply, run).answer.strip()
    term = Literal(text == "True") if type == "yes or no" else Literal(text)
    values = (Value(term, text.lower() if type == "yes or no" else text),) if text else ()
    return Answer(KINDS[type], values, reason=reason, ungrounded=bool(values))
