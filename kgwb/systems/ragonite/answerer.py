"""The answer: a model writes it from numbered sources, and its values are traced to terms of the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    GoldQuery,
    Reply,
    Run,
    Rung,
    Term,
    Triple,
    Value,
    agent,
    ask_model,
    get_output,
    local_part,
    read_values,
)
from kgwb.systems.ragonite.database import is_name_of
from kgwb.systems.ragonite.records import (
    CitedAnswer,
    CitedValue,
    Meaning,
    Schema,
    Source,
    numbers_in_brackets,
)
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tool_selector import (
    find_gold_source,
    list_earlier_turns,
)

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


class ValueReply(Reply):
    """A value with the numbers of its sources."""

    value: str
    sources: list[CandidateNumber]


class AnswerReply(Reply):
    """The answer in a sentence or more, and its values; no value if the sources do not answer."""

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
    positions = []
    for column in columns:
        positions.append(_names_of_columns(source).index(column))
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
    values = []
    for value in reply.values:
        values.append(value.value.strip().lower())
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
    executed = []
    for source in cited.sources:
        if source.tool == "sparql" and not source.error:
            executed.append(source.title)
    queries = tuple(executed)
    if not cited.values:
        reason = f"{NOT_IN_GRAPH}: {cited.reason or cited.text}"
        return Answer("list", queries=queries, text=cited.text, reason=reason)
    if _is_none(cited):
        sources = _sources_of(cited.values[0], cited)
        evidence = tuple(_triples_of(sources)[:MAX_TRIPLES_PER_VALUE])
        answer = Answer("list", queries=queries, text=cited.text, evidence=evidence)
        return read_values(run.kg, answer)
    values: dict[Value, None] = {}
    for cited_value in cited.values:
        for term in _find_terms(cited_value, cited, run):
            values[_make_value(term, cited_value, cited, question)] = None
    answer = Answer(cited.kind, tuple(values), queries, cited.text)
    return read_values(run.kg, answer)


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
            meant = "it is taken as a text"
            if terms:
                meant = "all of them are values"
            run.note(f"{text!r} may be one of several things or values in its sources; {meant}")
    if terms:
        return terms
    if re.fullmatch(r"-?\d{1,18}", text):
        return (Literal(int(text)),)
    return (Literal(text),)


def _sources_of(cited_value: CitedValue, cited: CitedAnswer) -> list[Source]:
    """Return the sources that a value cites."""
    return [cited.sources[number - 1] for number in cited_value.sources]


def _triples_of(sources: Iterable[Source]) -> list[Triple]:
    """Return the triples of sources, each once."""
    triples = chain.from_iterable(source.triples for source in sources)
    return list(dict.fromkeys(triples))


def _make_value(term: Term, cited_value: CitedValue, cited: CitedAnswer, question: str) -> Value:
    """Return a term that a cited value stands for as a value of the answer, with its label and its support.

    The label is the term's name in the sources that the value cites, else the text of the value. Of
    the sources' triples, those chosen by ``_choose_support`` support it, at most
    MAX_TRIPLES_PER_VALUE.
    """
    sources = _sources_of(cited_value, cited)
    names: dict[Term, str] = {}
    for source in sources:
        for text, named_term in source.terms:  # ids come first, and are replaced by names
            names[named_term] = text
    question_and_answer = f"{question} {cited.text}".casefold()
    support = _choose_support(term, _triples_of(sources), names, question_and_answer)
    label = names.get(term, cited_value.value)
    texts = []
    for source in sources:
        if source.file:
            texts.append(CitedText(source.file, source.place, source.text))
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
        labels = []
        for end in triple[::2]:
            if end != term:
                labels.append(names.get(end, str(end)))
        if all(label.casefold() in text for label in labels):
            support.append(triple)
    return support or candidates


class Citation:
    """The terms that a text of an answer stands for in its sources."""

    def __init__(self, text: str, cited: Sequence[Source], others: Sequence[Source]) -> None:
        """Look the text up in the cited sources, and only if these do not have it in the others.

        White space becomes single spaces. Letter case counts only where the text is there in its
        own case.
        """
        self.text = " ".join(text.split())
        self.terms: tuple[Term, ...] = ()
        """What the text stands for; empty if no source has it, or if it may be something else."""
        self.is_ambiguous = False
        """Whether the text stands for several terms, or does not say for which of several."""
        for sources in (cited, others):
            for fold in (str, str.casefold):
                found = self._find(sources, fold)
                if found:
                    self._choose(found, sources)
                    return

    def _find(self, sources: Sequence[Source], fold: Callable[[str], str]) -> list[Meaning]:
        """Return the distinct meanings of the text in the sources; empty if no source has the text.

        Texts that a model is shown are tried first, and those of the support only if none of them
        matches. ``fold`` brings both texts into the form that is compared.
        """
        wanted = fold(self.text)
        for find_meanings in (shown_meanings, support_meanings):
            found: dict[Meaning, None] = {}
            for meaning in chain.from_iterable(map(find_meanings, sources)):
                if fold(meaning.text) == wanted:
                    found[meaning] = None
            if found:
                return list(found)
        return []

    def _choose(self, found: Sequence[Meaning], sources: Sequence[Source]) -> None:
        """Set ``terms`` and ``is_ambiguous`` by the best of the meanings.

        An id stands for its thing. Any other text stands for the value that it is, and for the
        things that have it as their name, but for those whose id is shown: a model cites these by
        the id. If there are only such things, it stands for them. Meanings that are not certain
        give no term. The text is ambiguous unless exactly one term is left.
        """
        ids = [meaning for meaning in found if meaning.kind == "id"]
        best = ids or self._without_shown_ids(found, sources) or found
        certain = [meaning for meaning in best if meaning.is_certain]
        self.terms = tuple(dict.fromkeys(meaning.term for meaning in certain))
        self.is_ambiguous = len(self.terms) != 1

    def _without_shown_ids(
        self, found: Iterable[Meaning], sources: Iterable[Source]
    ) -> list[Meaning]:
        """Return the meanings in their order, but for names of things whose ids the sources show."""
        shown = chain.from_iterable(map(shown_meanings, sources))
        with_id = {meaning.term for meaning in shown if meaning.kind == "id"}
        return [each for each in found if each.kind != "name" or each.term not in with_id]


def shown_meanings(source: Source) -> Iterator[Meaning]:
    """Yield what the texts stand for that a model is shown of a source.

    They are the cells of a query, or the id of a passage's subject, and the names and values in the
    passage. A run that was saved before does not say what its cells stand for: of a cell, it is the
    id, name or value with this text in the support.
    """
    if source.meanings:
        yield from source.meanings
    else:
        for meaning in support_meanings(source):
            if meaning.kind != "id" or _shows_id(source, meaning.text):
                yield meaning


def support_meanings(source: Source) -> Iterator[Meaning]:
    """Yield what texts stand for by the support of a source: ids and names of its terms, and its values.

    A value that is the name of its subject stands for the subject. A passage has the language of a
    value behind it, and the datatype where that is needed to tell it from another value.
    """
    ids: dict[Term, str] = {}
    names: dict[Term, str] = {}
    for text, term in source.terms:  # the id of a term comes before its name
        known = ids
        if term in ids:
            known = names
        known[term] = text
    for term, id_ in ids.items():
        name = names.get(term, id_)
        for text in (id_, f"{name} [{id_}]"):
            yield Meaning(" ".join(text.split()), term, "id")
        yield Meaning(" ".join(name.split()), term, "name")
    for subject, _, object_ in source.triples:
        if isinstance(object_, Literal) and not is_name_of(object_, names.get(subject, "")):
            for text in _texts_of_value(object_, source):
                yield Meaning(text, object_, "value")


def _texts_of_value(value: Literal, source: Source) -> list[str]:
    """Return the texts by which a model may cite a literal in the support of a source.

    It is its text, and for a literal with a language also the text with the language in brackets.
    If the source's text shows it with its datatype in brackets, it is only that.
    """
    text = " ".join(value.split())
    if value.language:
        return [text, f"{text} ({value.language})"]
    datatype = value.datatype or ""
    for shown_type in (datatype, local_part(datatype)):
        with_type = f"{text} ({shown_type})"
        if shown_type and with_type in source.text:
            return [with_type]
    return [text]


def _shows_id(source: Source, id_: str) -> bool:
    """Return whether an id stands in a cell of a source, or in brackets in a passage or its title.

    The title of a passage alone is the id if the name of its subject is the same. A cell may be a
    list with commas.
    """
    if source.tool == "passages":
        return id_ == source.title or f"[{id_}]" in f"{source.title} {source.text}"
    cells = chain.from_iterable(source.rows)
    return any(id_ == cell or id_ in cell.split(",") for cell in cells)


def make_answer_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return an answer that cites the result of the gold query, to put in at "answerer".

    Its values are the cells of the first column. Returns None if the query cannot be executed.
    """
    sources: tuple[Source, ...] = get_output(run, "tool_selector") or ()
    gold_source = find_gold_source(run, gold)
    if gold_source is None:
        return None
    number = len(sources) + 1
    values = []
    for cells in gold_source.rows:
        values.append(CitedValue(cells[0], (number,)))
    cited = CitedAnswer("gold", gold.kind, tuple(values), (*sources, gold_source))
    return Rung("answerer", {"answerer": cited})
