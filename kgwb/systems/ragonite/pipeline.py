"""RAGonite: induce a database from the graph, gather sources with tools, and answer from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from rdflib import Literal

from kgwb.build import (
    NOT_IN_GRAPH,
    Answer,
    AnswerKind,
    CandidateNumber,
    Check,
    CitedText,
    Dialogue,
    Question,
    Reply,
    Run,
    System,
    Term,
    Triple,
    Value,
    agent,
    ask_model,
    schema_config,
    with_display_names,
)
from kgwb.systems.ragonite.citations import Citation
from kgwb.systems.ragonite.earlier_turns import list_earlier_turns, remember_with_text
from kgwb.systems.ragonite.extensions import record_extension
from kgwb.systems.ragonite.gold import GOLD
from kgwb.systems.ragonite.records import (
    CitedAnswer,
    CitedValue,
    Schema,
    Source,
    numbers_in_brackets,
)
from kgwb.systems.ragonite.schema_form import COMMANDS
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tools import (
    Finish,
    Passages,
    Sparql,
    Sql,
    call_database,
    find_extensions,
    gather_sources,
)
from kgwb.systems.ragonite.views import VIEWS

MAX_TRIPLES_PER_VALUE = 30
"""Triples that the support of a value has."""
NOTHING_FITS = "none"
"""The value by which a model says that its sources show that nothing fits."""
ALL_ROWS = re.compile(r"all rows:(.+)", re.IGNORECASE | re.DOTALL)
"""A value that stands for the cells of some columns of a source: "all rows: name, email"."""
ANSWER_PROMPTS_BY_ABLATION = {
    "none": "ragonite/answerer",
    "sql_only": "ragonite/answerer_queries",
    "passages_only": "ragonite/answerer_passages",
    "sparql_only": "ragonite/answerer_queries",
}
"""The prompt by the setting ``ablation``. It describes the sources that there can be, and no other."""
TABLES_HEADING = (
    "The tables that the queries read. Behind -- are comments: the number of rows, and what a column"
    " holds, with the unit of its numbers. They are no source."
)
"""Stands before the definitions of the tables in a prompt."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Induce the schema, gather sources with the tools, and write one answer from all sources.

    The earlier turns of the dialogue are shown to the models. Raises InvalidReplyError if a model
    gives no valid reply.
    """
    schema = induce_schema(run)
    sources = gather_sources(question.text, dialogue, schema, run)
    cited_answer = write_answer(question.text, dialogue, sources, run)
    return build_answer(question.text, cited_answer, run)


@agent("ragonite")
def induce_schema(run: Run) -> Schema:
    """Return the schema of the database that is induced from the graph.

    The database is made for the first question, and kept with the graph. Raises GraphError for a
    graph without triples or with too many, and SettingError if a folder or file of the settings
    cannot be read.
    """
    for extension in find_extensions(run):
        record_extension(extension, run)
    schema: Schema = call_database("schema", {}, lambda database: database.schema, Schema, run)
    return schema


class ValueReply(Reply):
    """A value with the numbers of its sources."""

    model_config = schema_config("ValueReply", "A value with the numbers of its sources.")

    value: str
    sources: list[CandidateNumber]


class AnswerReply(Reply):
    """The answer in one or more sentences, and its values. Without an answer there is no value."""

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
    """Yield a problem for each number that an answer of a person cites and that is no source of it.

    ``question``, ``dialogue`` and ``sources`` are not used.
    """
    for number in sorted(cited.cited_numbers):
        if not 1 <= number <= len(cited.sources):
            yield f"there is no source {number}"


@agent("answerer", check=find_citation_problems, kind="model")
def write_answer(
    question: str, dialogue: Dialogue, sources: tuple[Source, ...], run: Run
) -> CitedAnswer:
    """Ask a model for the answer that the sources give, with citations (section 2.4).

    The model is shown the question, earlier turns of the dialogue, the definitions of the tables
    that the SQL read, with the comments of their columns, and the numbered sources. Every
    value must cite a source, and a truth value must be yes or no. A value may stand for the cells of
    all rows of a source. The result has the reply's answer,
    kind, values, sources and reason. Raises InvalidReplyError if no reply passes these checks.
    """
    settings = RagoniteSettings.of_run(run)
    parts = [f"[{n}] {source.text_with_query}" for n, source in enumerate(sources, 1)]
    definitions = _define_tables(sources, settings)
    if definitions:
        parts.insert(0, f"{TABLES_HEADING}\n{definitions}")
    variables = {
        "question": question,
        "earlier": list_earlier_turns(dialogue, settings),
        "sources": "\n\n".join(parts),
    }
    checks = (
        Check("cites sources that are there", partial(_citation_problem, len(sources))),
        Check("a truth value", _truth_value_problem),
        Check("names columns that are there", partial(_rows_problem, sources)),
    )
    prompt = ANSWER_PROMPTS_BY_ABLATION[settings.ablation]
    reply = ask_model(prompt, variables, AnswerReply, run, checks=checks)
    values: list[CitedValue] = []
    for value in reply.values:
        values += _cited_values(value, sources)
        if _columns_named(value) and sources[value.sources[0] - 1].cut:
            run.note(f"source {value.sources[0]} has more rows than the answer (setting rows)")
    return CitedAnswer(reply.answer, reply.kind, tuple(values), sources, reply.reason)


def _cited_values(value: ValueReply, sources: Sequence[Source]) -> list[CitedValue]:
    """Return the values that an entry of a reply stands for: itself, or the cells that it names.

    "all rows: name, email" stands for the cells of two columns of its source, row by row, each text
    once and without empty ones.
    """
    columns = _columns_named(value)
    if not columns:
        return [CitedValue(value.value.strip(), tuple(value.sources))]
    [number] = value.sources
    source = sources[number - 1]
    positions = [_names_of_columns(source).index(column) for column in columns]
    cells = [row[position] for row in source.rows for position in positions]
    texts = dict.fromkeys(filter(None, cells))
    return [CitedValue(text, (number,)) for text in texts]


def _columns_named(value: ValueReply) -> list[str]:
    """Return the columns of "all rows: name, email", in lower case; empty for any other value."""
    match = ALL_ROWS.fullmatch(value.value.strip())
    if not match:
        return []
    return [column.strip().casefold() for column in match[1].split(",")]


def _names_of_columns(source: Source) -> list[str]:
    return [column.casefold() for column in source.columns]


def _rows_problem(sources: Sequence[Source], reply: AnswerReply) -> str:
    """Return what is wrong with a value that stands for all rows of a source; "" if nothing is.

    It must cite one source that is there, and that has rows and the columns.
    """
    for value in reply.values:
        columns = _columns_named(value)
        if not columns:
            continue
        if len(value.sources) != 1:
            return f"{value.value!r} must cite one source"
        [number] = value.sources
        if not 1 <= number <= len(sources):
            return f"there is no source {number}"
        known = _names_of_columns(sources[number - 1])
        for column in columns:
            if column not in known:
                return (
                    f"source {number} has no column {column!r}; it has {', '.join(known) or 'none'}"
                )
    return ""


def _define_tables(sources: Iterable[Source], settings: RagoniteSettings) -> str:
    """Return the definitions of the tables that the sources were read from, each once.

    They have room for ``settings.schema_tokens``; other tables are only named. Empty without SQL.
    """
    tables = dict.fromkeys(chain.from_iterable(source.tables for source in sources))
    if not tables:
        return ""
    return Schema(tuple(tables), 0, 0).format_tables(settings.schema_tokens)


def _citation_problem(source_count: int, reply: AnswerReply) -> str:
    """Return what is wrong with the citations of a reply; "" if nothing is.

    Numbers in brackets in the text, and those of the values, must be sources, which are numbered
    from 1. Each value must have a source. Of wrong numbers, the smallest is named.
    """
    numbers = numbers_in_brackets(reply.answer)
    for value in reply.values:
        numbers += value.sources
    wrong = [number for number in numbers if not 1 <= number <= source_count]
    if wrong:
        return f"there is no source {min(wrong)}"
    for value in reply.values:
        if not value.sources:
            return f"{value.value!r} has no source"
    return ""


def _truth_value_problem(reply: AnswerReply) -> str:
    """Return a problem if an answer of kind "boolean" has other values than one "true" or "false".

    Letter case does not count. It may have no value. Returns "" if nothing is wrong, and for other
    kinds.
    """
    values = [value.value.strip().lower() for value in reply.values]
    if reply.kind == "boolean" and values not in ([], ["true"], ["false"]):
        return "the value of a boolean is true or false"
    return ""


@agent("answer", kind="sparql")
def build_answer(question: str, cited: CitedAnswer, run: Run) -> Answer:
    """Turn the values into terms of the graph, each supported by triples of its sources.

    An answer without values has the model's reason. But where the sources show that nothing fits,
    it has the triples of these sources as its evidence, and no reason. The queries of the answer are those SPARQL
    queries that could be run. The graph is asked for display names only.
    """
    queries = []
    for source in cited.sources:
        if source.tool == "sparql" and not source.error:
            queries.append(source.title)
    if not cited.values:
        reason = f"{NOT_IN_GRAPH}: {cited.reason or cited.text}"
        return Answer("list", queries=tuple(queries), text=cited.text, reason=reason)
    if _is_none(cited):
        triples = chain.from_iterable(
            source.triples for source in _sources_of(cited.values[0], cited)
        )
        evidence = tuple(dict.fromkeys(triples))[:MAX_TRIPLES_PER_VALUE]
        answer = Answer("list", queries=tuple(queries), text=cited.text, evidence=evidence)
        return with_display_names(run.kg, answer)
    values: dict[Value, None] = {}
    for cited_value in cited.values:
        for term in _find_terms(cited_value, cited, run):
            values[_make_value(term, cited_value, cited, question)] = None
    answer = Answer(cited.kind, tuple(values), tuple(queries), cited.text)
    return with_display_names(run.kg, answer)


def _is_none(cited: CitedAnswer) -> bool:
    """Return whether an answer says that its sources show that nothing fits.

    Its only value is then NOTHING_FITS, which is no text in its sources.
    """
    if cited.kind != "list" or len(cited.values) != 1:
        return False
    [value] = cited.values
    if value.value.casefold() != NOTHING_FITS:
        return False
    citation = Citation(value.value, _sources_of(value, cited), cited.sources)
    return not citation.terms and not citation.is_ambiguous


def _find_terms(cited_value: CitedValue, cited: CitedAnswer, run: Run) -> tuple[Term, ...]:
    """Return the terms that a model means by a value: one, as a rule.

    A truth value or a count is a literal. Otherwise it is what the text stands for in the sources
    of the value, or else in any source; see ``Citation``. If it stands for several terms, all of
    them are returned, and the step has a note. If it stands for none, or does not say for which of
    several, it is a literal of the text.
    """
    text = cited_value.value
    if cited.kind == "boolean":
        return (Literal(text.lower() == "true"),)
    terms: tuple[Term, ...] = ()
    if cited.kind != "count":
        citation = Citation(text, _sources_of(cited_value, cited), cited.sources)
        terms = citation.terms
        if citation.is_ambiguous:
            meant = "all of them are values" if terms else "it is taken as a text"
            run.note(f"{text!r} may be one of several things or values in its sources; {meant}")
    if terms:
        return terms
    is_integer = re.fullmatch(r"-?\d{1,18}", text)
    return (Literal(int(text)) if is_integer else Literal(text),)


def _sources_of(cited_value: CitedValue, cited: CitedAnswer) -> list[Source]:
    """Return the sources that a value cites."""
    return [cited.sources[number - 1] for number in cited_value.sources]


def _make_value(term: Term, cited_value: CitedValue, cited: CitedAnswer, question: str) -> Value:
    """Return a term that a cited value stands for as a value of the answer, with its label and its support.

    The label is the term's name in the sources that the value cites, else the text of the value. Of
    the sources' triples, those chosen by ``_choose_support`` support it, at most
    MAX_TRIPLES_PER_VALUE.
    """
    sources = _sources_of(cited_value, cited)
    all_triples = chain.from_iterable(source.triples for source in sources)
    triples = list(dict.fromkeys(all_triples))
    names: dict[Term, str] = {}
    for source in sources:
        for text, named_term in source.terms:  # ids come first, and are replaced by names
            names[named_term] = text
    question_and_answer = f"{question} {cited.text}".casefold()
    support = _choose_support(term, triples, names, question_and_answer)
    label = names.get(term, cited_value.value)
    texts = [CitedText(source.file, source.place, source.text) for source in sources if source.file]
    return Value(term, label, tuple(support[:MAX_TRIPLES_PER_VALUE]), texts=tuple(texts))


def _choose_support(
    term: Term, triples: Sequence[Triple], names: Mapping[Term, str], text: str
) -> Sequence[Triple]:
    """Return the triples of a value's sources that support it.

    These are the triples at the term whose other end is named in the text, which is the question
    and the answer in lower case. If there are none, all triples at the term are returned; if it has
    none, all triples.
    """
    triples_at_term = [triple for triple in triples if term in triple[::2]]
    candidates = triples_at_term or triples
    support = []
    for triple in candidates:
        subject, _, object_ = triple
        other_ends = [end for end in (subject, object_) if end != term]
        labels = [names.get(end, str(end)) for end in other_ends]
        if all(label.casefold() in text for label in labels):
            support.append(triple)
    return support or candidates


SYSTEM = System(
    "ragonite",
    answer_question,
    {
        "Induce": (induce_schema,),
        "Gather ↻": (gather_sources, Sql, Passages, Sparql, Finish),
        "Answer": (write_answer, build_answer),
    },
    settings=RagoniteSettings,
    remember=remember_with_text,
    views=VIEWS,
    gold=GOLD,
    commands=COMMANDS,
)
