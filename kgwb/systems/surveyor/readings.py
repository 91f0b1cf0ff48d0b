"""Other readings of a question that follow from its query, without a call of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from rdflib import RDF, RDFS, URIRef

from kgwb.build import (
    GraphError,
    NotRecordedError,
    Reading,
    Run,
    SurveyWriter,
    Vocabulary,
    add_missing_prefixes,
    analyze_query,
    bracket_iri,
    get_names_in_rows,
    pluralize,
    select_also,
    split_clauses,
    validate_query,
    variables_of,
)
from kgwb.systems.surveyor.records import Draft, Executed, format_row, has_nothing

MAX_READINGS = 3
"""Other readings of a question that are offered."""
MAX_ASSUMED = 2
"""Of these, readings by an assumption of the model, which have no query yet."""
MAX_REWRITTEN_ROWS = 1_000
"""A query with more rows is not executed in other forms, which may take long."""
MAX_READING_ROWS = 3
"""Rows of a reading that are shown."""
AGGREGATE_IN_HAVING = re.compile(
    r"\bHAVING\s*\(\s*((?:COUNT|SUM|AVG|MIN|MAX)\s*\([^()]*\)|\?\w+)", re.IGNORECASE
)
VARIABLE = re.compile(r"\?\w+")
FIRST_IN_FILTER = re.compile(r"\bFILTER\s*\(\s*(?:[\w:]+\s*\(\s*)?(\?\w+)", re.IGNORECASE)
"""The variable at the beginning of a FILTER, or the argument of a function there."""
ANY_SUBCLASS = re.compile(
    rf"(?:\ba|\brdf:type|<{RDF.type}>)\s*/\s*(?:rdfs:subClassOf|<{RDFS.subClassOf}>)\*"
)
TYPED = r"(?<![\w:?$<])(?:a|rdf:type)\s+(?={})"
"""The type of a thing, before a class as it is written in the query."""


def choose_readings(
    drafted: Draft, executed: Executed, rewritten: Iterable[Reading], run: Run
) -> tuple[Reading, ...]:
    """Return the readings to offer: at most MAX_ASSUMED that the model assumed, then rewritten ones.

    A rewritten one is executed, and offered with its first rows if it has others than the answer
    has. One whose query fails, or that a replay has no result of, is left out.
    """
    chosen = list(drafted.readings[:MAX_ASSUMED])
    for reading in rewritten:
        if len(chosen) == MAX_READINGS:
            break
        try:
            result = run.kg.select(reading.sparql)
            rows = list(dict.fromkeys(result.rows))
            names = get_names_in_rows(rows[:MAX_READING_ROWS], run.kg)
        except (GraphError, NotRecordedError):
            continue
        is_same = executed.truth is None and set(rows) == set(executed.rows)
        has_empty_column = any(set(column) == {None} for column in zip(*rows, strict=True))
        if is_same or has_empty_column or all(map(has_nothing, rows)):
            continue
        texts = []
        for row in rows[:MAX_READING_ROWS]:
            texts.append(format_row(row, names))
        if len(rows) > MAX_READING_ROWS:
            more = pluralize(len(rows) - MAX_READING_ROWS, "more row")
            if result.cut:
                more = f"at least {more}"
            texts.append(f"and {more}")
        chosen.append(replace(reading, rows=tuple(texts)))
    return tuple(chosen)


def rewrite_draft(
    drafted: Draft, executed: Executed, writer: SurveyWriter, vocabulary: Vocabulary
) -> Iterator[Reading]:
    """Yield other readings of a question with their queries, by rewriting the query of its draft.

    They are: which ones, for whether there are any; all that are level with the last one; with or
    without the number that decided; by the predicate that says the same, as a text or a thing; with
    subclasses or without; the names of the things. None for a draft that a person chose, a query
    that could not be executed, or a result with more than MAX_REWRITTEN_ROWS.
    """
    if drafted.chosen or executed.error or len(executed.rows) > MAX_REWRITTEN_ROWS:
        return
    try:
        if executed.truth is not None:
            yield from _list_instead_of_ask(executed)
            return
        yield from _with_ties(executed)
        yield from _with_measure(executed)
        yield from _by_text_or_link(executed.sparql, writer)
        yield from _by_subclasses(executed.sparql, writer)
        yield from _by_name(executed, vocabulary)
    except GraphError:  # a query that cannot be taken apart
        return


def _list_instead_of_ask(executed: Executed) -> Iterator[Reading]:
    """Yield which things there are, for an ASK that is true; none if it has no variable.

    They are the values of the first variable of its triple patterns that is no blank node.
    """
    clauses = split_clauses(executed.sparql)
    written = VARIABLE.findall(clauses.where)
    variables = variables_of(analyze_query(executed.sparql).patterns)
    named = [variable for variable in variables if variable in written]
    if named and executed.truth:
        query = f"SELECT DISTINCT {named[0]} {clauses.dataset} WHERE {{{clauses.where}}}"
        yield Reading("whether there are any", "which ones there are", f"{clauses.prologue}{query}")


def _with_ties(executed: Executed) -> Iterator[Reading]:
    """Yield the result with all rows that are level with the last one within the LIMIT."""
    more = sum(finding.more_rows for finding in executed.findings)
    if more:
        limit = len(executed.rows) + more
        query = select_also(executed.sparql, "", limit)
        yield Reading(
            "exactly as many as asked for", "all that are level with the last one as well", query
        )


def _with_measure(executed: Executed) -> Iterator[Reading]:
    """Yield the result with what decided as a column, or without it where it is one.

    That is the measure of a superlative, the number that HAVING looks at, or the value that the
    only FILTER begins with. It is left out if it orders the rows as well.
    """
    clauses = split_clauses(executed.sparql)
    columns = [f"?{column}" for column in executed.columns]
    expressions = {}
    for expression, name in clauses.aliases:
        expressions[f"?{name}"] = expression.strip()
    decided = AGGREGATE_IN_HAVING.findall(clauses.modifiers)
    if executed.measure:
        decided = [executed.measure]
    elif not clauses.group_by:
        decided = FIRST_IN_FILTER.findall(clauses.where)
    measure, *others = dict.fromkeys(decided) or [""]
    deciding = {measure} if others or not clauses.limit else set(clauses.order_by)
    if clauses.order_by or measure in expressions.values():
        kept = []
        for each in columns:
            if deciding.isdisjoint((each, expressions.get(each))):
                kept.append(each)
        if 0 < len(kept) < len(columns):
            query = _wrap(executed.sparql, kept)
            yield Reading("with what decided as a column", "without what decided", query)
            return
    if measure and not others and measure not in columns and not expressions:
        column = f"({measure} AS ?number)"
        if VARIABLE.fullmatch(measure):
            column = measure
        query = select_also(executed.sparql, column)
        yield Reading("without what decided", "with what decided as a column", query)


def _by_text_or_link(sparql: str, writer: SurveyWriter) -> Iterator[Reading]:
    """Yield the query with a link in the place of the text that stands for it, or the reverse."""
    pairs: dict[tuple[URIRef, ...], None] = {}
    for found in writer.survey.texts_of_links:
        # Several classes may have the same pair.
        pairs.update(dict.fromkeys(permutations((found.text, found.link))))
    for used, other in pairs:
        parts = re.split(_written(used, writer), sparql)
        if len(parts) > 1:
            query = bracket_iri(other).join(parts)
            yield Reading(f"by {writer.to_curie(used)}", f"by {writer.to_curie(other)}", query)


def _written(iri: URIRef, writer: SurveyWriter) -> str:
    """Return a pattern for an IRI as a query writes it: in brackets, or as the CURIE of a survey."""
    return rf"(?:{re.escape(bracket_iri(iri))}|(?<![\w:])(?:{re.escape(writer.to_curie(iri))})(?![\w-]))"


def _by_subclasses(sparql: str, writer: SurveyWriter) -> Iterator[Reading]:
    """Yield the query without subclasses if it takes them, else with those of its classes."""
    if ANY_SUBCLASS.search(sparql):
        query = ANY_SUBCLASS.sub("a", sparql)
        yield Reading("with subclasses", "only with the class itself as type", query)
        return
    query = sparql
    for surveyed in writer.survey.classes:
        if surveyed.iri and surveyed.total > surveyed.size:
            typed = TYPED.format(_written(surveyed.iri, writer))
            query = re.sub(typed, "rdf:type/rdfs:subClassOf* ", query)
    if query != sparql:
        prefixes = (("rdf", str(RDF)), ("rdfs", str(RDFS)))
        query = add_missing_prefixes(query, prefixes)
        yield Reading("only with the class itself as type", "with subclasses", query)


def _by_name(executed: Executed, vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the result with the name of each thing in its place, in the languages of the vocabulary.

    A column with empty cells stays as it is: a pattern that may leave them empty would fill them.
    """
    columns = []
    patterns = []
    labels = "|".join(map(bracket_iri, vocabulary.labels))
    languages = ", ".join(f'"{language}"' for language in vocabulary.languages)
    named = {iri for iri, _ in executed.names}
    for position, column in enumerate(executed.columns):
        cells = {row[position] for row in executed.rows}
        if None in cells or cells.isdisjoint(named):
            columns.append(f"?{column}")
            continue
        name = f"?{column}_name"
        columns.append(name)
        filtered = f"FILTER(LANG({name}) IN ({languages}))"
        patterns.append(f"OPTIONAL {{ ?{column} {labels} {name} {filtered} }}")
    if patterns:
        query = _wrap(executed.sparql, columns, " ".join(patterns))
        yield Reading("the things", "their names as texts", query)


def _wrap(sparql: str, columns: Iterable[str], patterns: str = "") -> str:
    """Return a query for some columns of a query, to whose rows patterns are joined."""
    prologue = split_clauses(sparql).prologue
    body = validate_query(sparql).text.removeprefix(prologue)
    return f"{prologue}SELECT DISTINCT {' '.join(columns)} WHERE {{ {{ {body} }} {patterns} }}"
