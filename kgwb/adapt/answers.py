"""The values that a pipeline returns as an Answer, with the triples that they stand on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.errors import KgwbError
from kgwb.kg.base import AnswerKind, ResultSet
from kgwb.kg.queries import find_support_by_row
from kgwb.kg.responses import parse_cell
from kgwb.kg.sparql import is_query, is_valid_iri
from kgwb.kg.term_text import short_name
from kgwb.run import Run
from kgwb.run.answers import CANNOT_EXPRESS, NOT_IN_GRAPH, Answer, Value
from kgwb.run.calls import Call
from kgwb.run.steps import current_run, used_calls
from kgwb.terms import Term, Triples

IRI_SCHEMES = ("http://", "https://", "urn:")
MAX_FOUND_QUERIES = 3
"""Queries of a run that are taken for those of its answer, if a pipeline does not name them."""
MAX_NAMED_ROWS = 100
"""A sentence does not name the rows of a longer result."""


def make_answer(
    values: Any,
    queries: Sequence[str] | None = None,
    *,
    kind: AnswerKind | None = None,
    text: str = "",
    reason: str = "",
) -> Answer:
    """Return the values that a pipeline found as an Answer, with the triples that support them.

    ``values`` are one value or several: terms of rdflib, texts (an IRI is a vertex), numbers, truth
    values, or terms in the JSON form of SPARQL results. Of a row, the first cell counts.
    ``queries`` are the queries that they came from; None means those of the run whose results have
    a value, the last MAX_FOUND_QUERIES of them; without values, those that have no rows. ``kind`` is
    by default that of the values. Without values, ``reason`` says why.

    A sentence is the text of the answer if its query is known: the values are then the first cells of
    the query's rows. It is known if it is given, or if ``values`` are a mapping that has both. Of the
    queries that no one names, the last counts whose rows are named in the sentence; the values are
    those that are.

    The support of a value is found from the recorded queries: the triples that they match where the
    value is in a row. The step gets a note if no value has support.
    """
    run = current_run()
    if isinstance(values, Mapping) and "value" not in values:
        values, queries = _split_mapping(run, values, queries)
    items = _items_of(values)
    if len(items) == 1 and isinstance(items[0], str) and " " in items[0]:
        if queries is None:
            found = _values_named_in(run, items[0])
        else:
            found = _values_of_queries(run, queries, items[0])
        if found:
            text = text or items[0]
            items = found
    kind = kind or _kind_of(items)
    terms = [_term_of(item) for item in items]
    given_terms = {_term_of(item) for item in items if _is_term(item)}
    results = _results_of_queries(run, queries, terms)
    texts = tuple(dict.fromkeys(results if queries is None else queries))
    if not terms:
        if queries is None:
            texts = _queries_without_rows(run)
        return Answer(kind, queries=texts, text=text, reason=reason or _why_no_value(run, texts))
    labels = _labels_of(run, terms)
    answer_values = []
    for term in dict.fromkeys(terms):
        support = _support_of(run, term, results, is_text=term not in given_terms)
        answer_values.append(Value(term, labels[term], support))
    if run is not None and not any(value.support for value in answer_values):
        run.note(_why_unsupported(results))
    return Answer(kind, tuple(answer_values), texts, text, reason)


def _split_mapping(
    run: Run | None, found: Mapping[str, Any], queries: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None]:
    """Return the values and the queries in a mapping that a pipeline returned.

    Queries are its texts that are queries and that the run has recorded, and the values are the
    first of the rest that is not the question. A mapping without such a text is the value itself.
    """
    named = []
    rest = []
    for part in found.values():
        if isinstance(part, str) and is_query(part) and _calls_with(run, part):
            named.append(part)
        elif run is None or part != run.question:
            rest.append(part)
    if not named:
        return found, queries
    return rest[0] if rest else None, queries or named


def _values_of_queries(run: Run | None, queries: Sequence[str], sentence: str) -> list[Any]:
    """Return the first cells of the rows of the last of these queries that has rows.

    Empty if a result has the sentence itself as a cell, so that it is a value.
    """
    results = _results_of_queries(run, queries, ())
    values: list[Any] = []
    for result in results.values():
        if _holds_any(result, [Literal(sentence)]):
            return []
        if isinstance(result, ResultSet) and result.rows:
            values = [row[0] for row in result.rows if row[0] is not None]
    return values


def _values_named_in(run: Run | None, sentence: str) -> list[Any]:
    """Return the first cells whose names stand in a sentence, of the last query that has such rows.

    A query whose result has the sentence itself as a cell ends the search: the sentence is a value.
    Looked at are the last MAX_FOUND_QUERIES results with 1 to MAX_NAMED_ROWS rows.
    """
    results = []
    for call in _recorded_queries(run):
        if isinstance(call.result, ResultSet) and 0 < len(call.result.rows) <= MAX_NAMED_ROWS:
            results.append(call.result)
    for result in reversed(results[-MAX_FOUND_QUERIES:]):
        if _holds_any(result, [Literal(sentence)]):
            return []
        cells = [row[0] for row in result.rows if row[0] is not None]
        labels = _labels_of(run, cells)
        named = []
        for cell in cells:
            label = labels[cell]
            if label and re.search(rf"(?<!\w){re.escape(label)}(?!\w)", sentence):
                named.append(cell)
        if named:
            return named
    return []


def _queries_without_rows(run: Run | None) -> tuple[str, ...]:
    """Return the latest MAX_FOUND_QUERIES queries of the run that have no rows, the last first.

    A row without any term is none: rdflib keeps one for GROUP BY over nothing, and never shows it.
    """
    texts: dict[str, None] = {}
    for call in reversed(_recorded_queries(run)):
        if not isinstance(call.result, ResultSet):
            continue
        terms = chain.from_iterable(call.result.rows)
        if all(term is None for term in terms):
            texts[call.request["query"]] = None
    return tuple(texts)[:MAX_FOUND_QUERIES]


def _why_no_value(run: Run | None, queries: Sequence[str]) -> str:
    """Return the reason of an answer without values; ``queries`` are those that gave none."""
    if queries:
        return f"{NOT_IN_GRAPH}: the queries gave no value"
    if _recorded_queries(run):
        return f"{CANNOT_EXPRESS}: the pipeline gave no value, although its queries have results"
    return f"{CANNOT_EXPRESS}: the pipeline gave no value, and no query"


def _items_of(values: Any) -> list[Any]:
    """Return the values of a pipeline as a list: [] for None, one item for a text or mapping."""
    if values is None:
        return []
    is_single = isinstance(values, str | Mapping) or not isinstance(values, Iterable)
    return [values] if is_single else list(values)


def _kind_of(items: Sequence[Any]) -> AnswerKind:
    """Return "boolean" for one truth value, "count" for one whole number, else "list".

    A literal counts by its Python value.
    """
    if len(items) != 1:
        return "list"
    [item] = items
    if isinstance(item, Literal):
        item = item.toPython()
    if isinstance(item, bool):
        return "boolean"
    if isinstance(item, int):
        return "count"
    return "list"


def _term_of(item: Any) -> Term:
    """Return the RDF term of a value that a pipeline gave.

    A term is returned as it is, a mapping is read as a cell of SPARQL results, and of a row the
    first cell counts. A text is an IRI if it begins like one and is valid; any other value becomes
    a literal.
    """
    if isinstance(item, URIRef | Literal | BNode):
        return item
    if isinstance(item, Mapping) and "value" in item:
        return parse_cell(item)
    if isinstance(item, tuple | list) and item:
        return _term_of(item[0])
    if isinstance(item, str) and item.startswith(IRI_SCHEMES) and is_valid_iri(item):
        return URIRef(item)
    return Literal(item)


def _is_term(item: Any) -> bool:
    """Return whether ``_term_of`` reads a value as exactly one term, and not as the text of some."""
    if isinstance(item, tuple | list) and item:
        return _is_term(item[0])
    return isinstance(item, URIRef | Literal | BNode | Mapping)


def _labels_of(run: Run | None, terms: Sequence[Term]) -> dict[Term, str]:
    """Return a label for each term: the display name of an IRI, the text of anything else.

    Display names are asked of the run's graph; without a run or if that fails, which is noted on
    the step, they are local parts.
    """
    labels: dict[Any, str] = {}
    iris = []
    for term in terms:
        labels[term] = str(term)
        if isinstance(term, URIRef):
            labels[term] = short_name(term)
            iris.append(term)
    if run is None:
        return labels
    try:
        labels.update(run.kg.names(iris))
    except KgwbError as error:
        run.note(f"the values have no display names: {error.message}")
    return labels


# Support


def _recorded_queries(run: Run | None) -> list[Call]:
    """Return the SELECT and ASK queries that the present execution used, in order, each once.

    Empty outside of a run.
    """
    if run is None:
        return []
    calls = used_calls(run.steps, run.calls)
    return [call for call in calls if call.kind in ("select", "ask")]


def _results_of_queries(
    run: Run | None, queries: Sequence[str] | None, terms: Sequence[Term]
) -> dict[str, ResultSet | bool]:
    """Return the recorded results of an answer's queries, by the recorded query text.

    With ``queries`` these are the calls whose text contains one of them. None stands for the latest
    MAX_FOUND_QUERIES queries whose result has one of the terms, the last first. Empty outside of a
    run.
    """
    results = {}
    if queries is None:
        recorded = reversed(_recorded_queries(run))
        holding = [call for call in recorded if _holds_any(call.result, terms)]
        for call in holding[:MAX_FOUND_QUERIES]:
            results[call.request["query"]] = call.result
        return results
    for query in queries:
        for call in _calls_with(run, query):
            results[call.request["query"]] = call.result
    return results


def _calls_with(run: Run | None, query: str) -> list[Call]:
    """Return the recorded queries whose text contains a query.

    White space does not count: a pipeline may format a query anew after it was sent.
    """
    wanted = "".join(query.split())
    calls = []
    for call in _recorded_queries(run):
        if wanted in "".join(call.request["query"].split()):
            calls.append(call)
    return calls


def _holds_any(result: Any, terms: Sequence[Term]) -> bool:
    """Return whether a recorded result has one of the terms.

    Of a SELECT a cell must have the term's text; of an ASK the truth value must be a term.
    """
    if not isinstance(result, ResultSet):
        truths = [term.toPython() for term in terms if isinstance(term, Literal)]
        return any(truth is result for truth in truths)
    wanted = set(map(str, terms))
    for row in result.rows:
        known_cells = [str(cell) for cell in row if cell is not None]
        if not wanted.isdisjoint(known_cells):
            return True
    return False


def _why_unsupported(results: Mapping[str, ResultSet | bool]) -> str:
    """Return the note for an answer without supporting triples.

    If a recorded query had its values (``results``), paths and aggregates are named as the reason,
    otherwise that no recorded query has a value.
    """
    if results:
        return "no supporting triple: property paths and aggregates in a query may give none"
    return (
        "no supporting triple: no recorded query has a value in its results; "
        "methods of rdflib, such as graph.objects, are not recorded"
    )


def _support_of(
    run: Run | None, term: Term, results: Mapping[str, ResultSet | bool], *, is_text: bool
) -> Triples:
    """Return the triples that support a value, by the rows that have it; each once.

    These are the rows with its text, as another language or datatype may have got lost on the way.
    If the pipeline gave the term and not only its text (``is_text``), only rows with the term count
    if there are any.

    Queries are sent to the run's graph for this. The step gets a note for a query that fails.
    """
    triples: list[Any] = []
    for query, result in results.items():
        columns: tuple[str, ...] = ()
        rows: list[Any] = []
        if isinstance(result, ResultSet):
            columns = result.variables
            rows = [row for row in result.rows if str(term) in map(str, row)]
            if not is_text:
                rows = [row for row in rows if term in row] or rows
            if not rows:
                continue
        elif result is False:
            continue
        try:
            by_row = find_support_by_row(run.kg, query, columns, rows)  # type: ignore[union-attr]
        except KgwbError as error:
            run.note(f"no support from a query: {error.message}")  # type: ignore[union-attr]
            continue
        for found in by_row.values():
            triples += found
    return tuple(dict.fromkeys(triples))
