"""RAGonite as a table of contents: induce a database, gather with the tools, answer from what they gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rdflib import Literal

from kgwb.flow import NOT_IN_GRAPH, Answer, AnswerKind, Dialogue, Question, Value
from kgwb.kg.queries import with_display_names
from kgwb.run import Run, System, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.ragonite.records import CitedAnswer, CitedValue, Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tools import (
    Finish,
    Passages,
    Sparql,
    Sql,
    call_database,
    gather_sources,
    list_earlier_turns,
)
from kgwb.systems.ragonite.views import VIEWS
from kgwb.terms import Term, Triple


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look things up with the tools, then write one answer from all sources."""
    schema = induce_schema(run)
    sources = gather_sources(question.text, dialogue, schema, run)
    return build_answer(question.text, write_answer(question.text, dialogue, sources, run), run)


@agent("ragonite")
def induce_schema(run: Run) -> Schema:
    """The database induced from the graph; the same for every question, and kept with the graph."""
    schema: Schema = call_database("schema", {}, lambda known: known.schema, Schema, run)
    return schema


MAX_TRIPLES_PER_VALUE = 30
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
    kind: AnswerKind
    answer: str
    values: list[ValueReply]


def find_citation_problems(
    cited: CitedAnswer, question: str, dialogue: Dialogue, sources: tuple[Source, ...]
) -> Iterator[str]:
    """What is wrong with an answer put in by hand."""
    if wrong := [n for n in cited.cited_numbers if not 1 <= n <= len(cited.sources)]:
        yield f"there is no source {wrong[0]}"


@agent("answerer", check=find_citation_problems, kind="model")
def write_answer(
    question: str, dialogue: Dialogue, sources: tuple[Source, ...], run: Run
) -> CitedAnswer:
    """The answer that the sources give, with citations."""
    shown = "\n\n".join(
        f"[{number}] {source.text_with_query}" for number, source in enumerate(sources, 1)
    )
    variables = {"question": question, "earlier": list_earlier_turns(dialogue), "sources": shown}

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
    return CitedAnswer(reply.answer, reply.kind, values, sources, reply.reason)


@agent("answer", kind="sparql")
def build_answer(question: str, cited: CitedAnswer, run: Run) -> Answer:
    """The values as terms of the graph, each with the triples of its sources that it stands on."""
    queries = tuple(
        source.title for source in cited.sources if source.tool == "sparql" and not source.error
    )
    if not cited.values:
        why = f"{NOT_IN_GRAPH}: {cited.reason or cited.text}"
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
            term = _make_literal(value.value)
        else:
            known = chain(
                _find_terms(value.value, mine, triples), _find_terms(value.value, cited.sources, ())
            )
            term = next(known, _make_literal(value.value))  # by next, as a literal 0 is false
        names = {other: text for source in mine for text, other in source.terms}
        near = [triple for triple in triples if term in triple[::2]] or triples
        others = {
            triple: [names.get(end, str(end)) for end in triple[::2] if end != term]
            for triple in near
        }
        support = [
            t for t, ends in others.items() if all(end.casefold() in words for end in ends)
        ] or near
        values[
            Value(term, names.get(term, value.value), tuple(support[:MAX_TRIPLES_PER_VALUE]))
        ] = None
    return with_display_names(run.kg, Answer(cited.kind, tuple(values), queries, cited.text))


def _find_terms(text: str, sources: Sequence[Source], triples: Iterable[Triple]) -> Iterator[Term]:
    """What has a text as its id or name in sources, then the literals of that text in triples."""
    key = text.casefold()
    yield from (
        term for source in sources for known, term in source.terms if known.casefold() == key
    )
    yield from (o for _, _, o in triples if isinstance(o, Literal) and str(o).casefold() == key)


def _make_literal(text: str) -> Literal:
    return Literal(int(text)) if re.fullmatch(r"-?\d{1,18}", text) else Literal(text)


SYSTEM = System(
    "ragonite",
    answer_question,
    {
        "Induce": (induce_schema,),
        "Gather ↻": (gather_sources, Sql, Passages, Sparql, Finish),
        "Answer": (write_answer, build_answer),
    },
    settings=RagoniteSettings,
    views=VIEWS,
)
