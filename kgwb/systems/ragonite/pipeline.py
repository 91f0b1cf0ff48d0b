"""RAGonite as a table of contents: induce a database, gather with the tools, answer from what they gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rdflib import Literal

from kgwb.flow import NOT_HERE, Answer, Dialogue, Kind, Question, Value
from kgwb.kg.queries import named
from kgwb.run import Run, System, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.ragonite.records import Cited, CitedValue, Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tools import Finish, Passages, Sparql, Sql, earlier, gather, recorded
from kgwb.systems.ragonite.views import VIEWS
from kgwb.terms import Term, Triple


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look things up with the tools, then write one answer from all sources."""
    schema = induce(run)
    sources = gather(question.text, dialogue, schema, run)
    return conclude(question.text, write(question.text, dialogue, sources, run), run)


@agent("ragonite")
def induce(run: Run) -> Schema:
    """The database induced from the graph; the same for every question, and kept with the graph."""
    schema: Schema = recorded("schema", {}, lambda known: known.schema, Schema, run)
    return schema


MOST_TRIPLES = 30
"""Triples that are shown of a value."""


class ValueReply(Reply):
    """A value with the numbers of its sources."""

    model_config = schema_config("ValueReply", "A value with the numbers of its sources.")

    value: str
    sources: list[int]


class AnswerReply(Reply):
    """The answer in a sentence or more, and its values; no value if the sources do not answer."""

    model_config = schema_config(
        "AnswerReply",
        "The answer in a sentence or more, and its values; no value if the sources do not answer.",
    )

    reason: str
    kind: Kind
    answer: str
    values: list[ValueReply]


def problems(
    cited: Cited, question: str, dialogue: Dialogue, sources: tuple[Source, ...]
) -> Iterator[str]:
    """What is wrong with an answer put in by hand."""
    if wrong := [n for n in cited.lit if not 1 <= n <= len(cited.sources)]:
        yield f"there is no source {wrong[0]}"


@agent("answerer", check=problems, kind="model")
def write(question: str, dialogue: Dialogue, sources: tuple[Source, ...], run: Run) -> Cited:
    """The answer that the sources give, with citations."""
    shown = "\n\n".join(f"[{number}] {source.headed}" for number, source in enumerate(sources, 1))
    variables = {"question": question, "earlier": earlier(dialogue), "sources": shown}

    def cited(reply: AnswerReply) -> str:
        numbers = [n for value in reply.values for n in value.sources]
        numbers += [int(n) for n in re.findall(r"\[(\d{1,6})\]", reply.answer)]
        wrong = sorted({n for n in numbers if not 1 <= n <= len(sources)})
        bare = [value.value for value in reply.values if not value.sources]
        return (
            f"there is no source {wrong[0]}"
            if wrong
            else f"{bare[0]!r} has no source"
            if bare
            else ""
        )

    def truth(reply: AnswerReply) -> str:
        values = [value.value.strip().lower() for value in reply.values]
        fits = reply.kind != "boolean" or not values or values in (["true"], ["false"])
        return "" if fits else "the value of a boolean is true or false"

    checks = (Check("cites sources that are there", cited), Check("a truth value", truth))
    reply = ask("ragonite/answerer", variables, AnswerReply, run, checks=checks)
    values = tuple(CitedValue(each.value.strip(), tuple(each.sources)) for each in reply.values)
    return Cited(reply.answer, reply.kind, values, sources, reply.reason)


@agent("answer", kind="sparql")
def conclude(question: str, cited: Cited, run: Run) -> Answer:
    """The values as terms of the graph, each with the triples of its sources that it stands on."""
    queries = tuple(
        source.title for source in cited.sources if source.tool == "sparql" and not source.error
    )
    if not cited.values:
        why = f"{NOT_HERE}: {cited.reason or cited.text}"
        return Answer("list", queries=queries, text=cited.text, reason=why)
    words = f"{question} {cited.text}".casefold()
    values: dict[Value, None] = {}
    for (
        value
    ) in cited.values:  # as the term that its sources, else the others, have under its id or name
        mine = [cited.sources[number - 1] for number in value.sources]
        triples = list(dict.fromkeys(triple for source in mine for triple in source.triples))
        if cited.kind == "boolean":
            term: Term = Literal(value.value.lower() == "true")
        elif cited.kind == "count":
            term = _number(value.value)
        else:
            known = chain(
                _terms(value.value, mine, triples), _terms(value.value, cited.sources, ())
            )
            term = next(known, _number(value.value))  # by next, as a literal 0 is false
        names = {other: text for source in mine for text, other in source.terms}
        near = [triple for triple in triples if term in triple[::2]] or triples
        others = {
            triple: [names.get(end, str(end)) for end in triple[::2] if end != term]
            for triple in near
        }
        support = [
            t for t, ends in others.items() if all(end.casefold() in words for end in ends)
        ] or near
        values[Value(term, names.get(term, value.value), tuple(support[:MOST_TRIPLES]))] = None
    return named(run.kg, Answer(cited.kind, tuple(values), queries, cited.text))


def _terms(text: str, sources: Sequence[Source], triples: Iterable[Triple]) -> Iterator[Term]:
    """What has a text as its id or name in sources, then the literals of that text in triples."""
    key = text.casefold()
    yield from (
        term for source in sources for known, term in source.terms if known.casefold() == key
    )
    yield from (o for _, _, o in triples if isinstance(o, Literal) and str(o).casefold() == key)


def _number(text: str) -> Literal:
    return Literal(int(text)) if re.fullmatch(r"-?\d{1,18}", text) else Literal(text)


SYSTEM = System(
    "ragonite",
    answer,
    {
        "Induce": (induce,),
        "Gather ↻": (gather, Sql, Passages, Sparql, Finish),
        "Answer": (write, conclude),
    },
    settings=RagoniteSettings,
    views=VIEWS,
)
