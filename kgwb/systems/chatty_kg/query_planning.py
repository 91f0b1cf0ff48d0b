"""Query planning agent (Chatty-KG, section 5.2): candidate queries are generated, and the selected ones executed."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from typing import NamedTuple

from rdflib import Literal, URIRef
from rdflib.namespace import XSD

from kgwb.build import (
    NOT_IN_GRAPH,
    Answer,
    CandidateQuery,
    ResultSet,
    Row,
    Run,
    Term,
    Triple,
    TriplePattern,
    Value,
    agent,
    compare_wordings,
    count_in_graph,
    count_values,
    doubt_counted_text,
    find_ask_support,
    find_support_by_value,
    format_triple,
    is_amount,
    label_terms,
    make_row_values,
    n3,
    patterns_to_sparql,
    read_values,
    union_clause,
    variables_of,
    where_clause,
)
from kgwb.systems.chatty_kg.predicate_selection import MIN_SETTLING_SCORE
from kgwb.systems.chatty_kg.records import (
    QIR,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
    is_unknown,
    pattern_predicates,
)
from kgwb.systems.chatty_kg.relation_linking import (
    TermByEnd,
    assign_terms,
    find_restrictions,
    is_literal,
    make_patterns,
    restrict,
)
from kgwb.systems.chatty_kg.settings import ChattySettings


class _Choice(NamedTuple):
    """A predicate that a fact may have, with what a query of it needs. It is in many combinations."""

    predicate: RankedPredicate
    factor: float
    """Its similarity, but at least MIN_FACTOR."""
    iri: str
    is_incoming: bool
    patterns: Sequence[TriplePattern]
    class_filter: str


Combination = tuple[_Choice, ...]
"""One predicate for each fact, in the order of the facts."""
MAX_COMBINATIONS = 20_000
"""Combinations that are considered before truncation: each fact of a QIR multiplies them."""
MIN_FACTOR = 1e-3
"""The least similarity in the score of a combination; a similarity may be negative."""
EXTREMES = ("max", "min")
"""Operators of comparisons with all other values."""
YEAR = re.compile(r"\d{4}")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
NO_ROWS = f"{NOT_IN_GRAPH}: no selected query has rows"
"""The reason of an answer without values."""


def find_generated_problems(
    generated: GeneratedQueries, qir: QIR, linked: LinkingResult
) -> Iterator[str]:
    """Yield what is wrong with queries that a person put in: each names a predicate for each linked fact.

    The predicates are what a model chooses among. Without linked facts there is nothing to choose,
    and any query can be put in. ``qir`` is not used.
    """
    expected = len(linked.linked_relations)
    for query in generated.queries:
        if expected and len(query.predicates) != expected:
            yield (
                f"{query.sparql} names {len(query.predicates)} predicates and not {expected}, "
                "one for each linked fact in their order"
            )


@agent("query_generator", check=find_generated_problems)
def generate_queries(qir: QIR, linked: LinkingResult, run: Run) -> GeneratedQueries:
    """Build a query for each combination of one predicate a fact, and keep ``query_num`` of them.

    ``query_order`` says which are kept: those with the best score, or the first. No query is built
    if an entity has no vertex, as a query for a part of the question would answer another question;
    nor if a fact has no predicate, unless ``unlinked_facts`` is "left_out". Equal queries are kept
    once, and the step notes how many combinations were dropped. With ``wording_decides_direction``,
    no query says two facts in one triple pattern by reading one of them backwards. At most
    MAX_COMBINATIONS combinations are looked at. Nothing is executed. Source: section 5.2.1;
    Algorithm 3, lines 1 and 2.
    """
    settings = ChattySettings.of_run(run)
    relations = linked.linked_relations
    is_incomplete = bool(linked.unlinked_entities)
    if settings.unlinked_facts == "no_query":
        is_incomplete = is_incomplete or bool(linked.unlinked_facts)
    if not relations or is_incomplete:
        return GeneratedQueries((), 0)

    terms = assign_terms(qir, linked.links)
    choices = [_choices_of(relation, terms) for relation in relations]
    total = math.prod(map(len, choices))
    combinations: Iterable[Combination] = islice(product(*choices), MAX_COMBINATIONS)
    if settings.query_order == "by_score":
        combinations = heapq.nsmallest(settings.query_num, combinations, key=_sort_key)
    restrictions = find_restrictions(linked.links, terms)
    named_filters = _exclude_named(qir, terms, settings)
    kept: dict[str, CandidateQuery] = {}
    for combination in combinations:
        query = _build_query(qir, combination, restrictions, named_filters, settings)
        if settings.wording_decides_direction and _joins_opposite_facts(query, combination):
            continue
        kept.setdefault(query.sparql, query)
        if len(kept) == settings.query_num:
            break
    if total > len(kept):
        run.note(f"{total} candidate queries, {len(kept)} kept (query_num {settings.query_num})")
    return GeneratedQueries(tuple(kept.values()), total)


def _choices_of(relation: LinkedRelation, terms: TermByEnd) -> list[_Choice]:
    """Return the predicates of a relation, in their order, with their patterns (``make_patterns``)."""
    choices = []
    for predicate in relation.predicates:
        patterns, class_filter = make_patterns(relation.fact, predicate, terms)
        factor = max(predicate.similarity, MIN_FACTOR)
        is_incoming = predicate.direction == "in"
        iri = str(predicate.iri)
        choices.append(_Choice(predicate, factor, iri, is_incoming, patterns, class_filter))
    return choices


def _joins_opposite_facts(query: CandidateQuery, combination: Combination) -> bool:
    """Return whether two facts became one triple pattern, because one of them is read backwards.

    Of "a stands in for b" and "b stands in for a", only one would be left then.
    """
    expected = sum(len(choice.patterns) for choice in combination)
    if len(query.patterns) == expected:
        return False
    iris = {choice.iri for choice in combination}
    directions = {(choice.iri, choice.is_incoming) for choice in combination}
    return len(iris) < len(directions)


def _sort_key(combination: Combination) -> tuple[float, tuple[str, ...], tuple[bool, ...]]:
    """Return a key that sorts combinations by score, the highest first, then by IRIs, then "out" first."""
    _, factors, iris, incoming, *_ = zip(*combination, strict=True)
    return -compute_score(factors), iris, incoming


def compute_score(factors: Sequence[float]) -> float:
    """Return the score of a combination: the geometric mean of its factors."""
    return math.prod(factors) ** (1 / len(factors))


def _build_query(
    qir: QIR,
    combination: Combination,
    restrictions: Mapping[str, str],
    named_filters: str,
    settings: ChattySettings,
) -> CandidateQuery:
    """Return the query of a combination of predicates: an ASK for a boolean question, else a SELECT.

    It selects the distinct values of the target or of the columns. A pattern or filter that several
    facts have is written once. ``restrictions`` are those of ``find_restrictions``, and
    ``named_filters`` those of ``_exclude_named``. Its score is that of the combination, rounded to
    four digits.
    """
    patterns: dict[TriplePattern, None] = {}
    filters: dict[str, None] = {}
    factors = []
    for choice in combination:
        factors.append(choice.factor)
        patterns.update(dict.fromkeys(choice.patterns))
        filters[choice.class_filter] = None
    where = patterns_to_sparql(patterns)
    filter_text = "".join(filters) + restrict(patterns, restrictions)
    if qir.kind == "boolean" and settings.refuses_stored_false:
        filter_text += _refuse_stored_false(tuple(patterns))
    filter_text += named_filters
    filter_text += _write_comparisons(qir, f"{where} {filter_text}")
    head = f"SELECT DISTINCT {' '.join(qir.selected)} WHERE"
    if qir.kind == "boolean":
        head = "ASK"
    body = f"{where} {filter_text}".strip()
    return CandidateQuery(
        sparql=f"{head} {{ {body} }}",
        patterns=tuple(patterns),
        predicates=tuple(choice.predicate.name for choice in combination),
        score=round(compute_score(factors), 4),
        filters=filter_text,
    )


def _write_comparisons(qir: QIR, where: str) -> str:
    """Return FILTERs for the comparisons of a QIR, by the patterns and other filters of a query.

    A year is compared as a number or with the beginning of a date. The greatest or least value is
    that of a subquery for all that fulfils the other comparisons.
    """
    filters = ""
    if not qir.comparisons:  # as most
        return filters
    extremes = [each for each in qir.comparisons if each.operator in EXTREMES]
    for comparison in qir.comparisons:
        unknown, operator, value = comparison.unknown, comparison.operator, comparison.value
        if comparison in extremes:
            continue
        as_text = f"STR({unknown}) {operator} {n3(Literal(value))}"
        as_number = f"{unknown} {operator} {value}"
        if YEAR.fullmatch(value):
            filters += f"FILTER(IF(isNumeric({unknown}), {as_number}, {as_text})) "
        else:
            filters += f"FILTER({as_number if NUMBER.fullmatch(value) else as_text}) "
    for number, comparison in enumerate(extremes):
        unknown, best = comparison.unknown, f"?_best{number}"
        head = f"SELECT ({comparison.operator.upper()}({unknown}) AS {best}) WHERE"
        filters += f"{{ {head} {{ {where} {filters}}} }} FILTER({unknown} = {best}) "
    return filters


def _refuse_stored_false(patterns: Sequence[TriplePattern]) -> str:
    """Return FILTERs by which no variable may be a stored false.

    They are for boolean questions: "is it a hybrid" of a car whose ``hybrid`` is false.
    """
    filters = ""
    for variable in variables_of(patterns):
        filters += (
            f'FILTER(!isLiteral({variable}) || str({variable}) NOT IN ("false", "0")'
            f" || datatype({variable}) != <{XSD.boolean}>) "
        )
    return filters


def _exclude_named(qir: QIR, terms: TermByEnd, settings: ChattySettings) -> str:
    """Return FILTERs by which the target may not be a vertex that the question names.

    Who shares a director with X is not X. They are for questions of several facts that are not
    boolean, with ``excludes_named``; "" for others.
    """
    if qir.kind == "boolean" or not settings.excludes_named or len(qir.facts) < 2:
        return ""
    type_mentions = qir.type_mentions
    named = [terms[entity] for entity in qir.entities if entity not in type_mentions]
    filters = ""
    for term in dict.fromkeys(named):
        if term.startswith("<"):
            filters += f"FILTER({qir.target} != {term}) "
    return filters


# Execution


@agent("execution", kind="sparql")
def execute_queries(selection: QuerySelection, qir: QIR, linked: LinkingResult, run: Run) -> Answer:
    """Execute the selected queries and unite their results, each value with supporting triples.

    A boolean question is true if any query holds. With ``counts_values``, the values are counted if
    a count is asked for and they are not all numbers that the graph stores. With
    ``wording_decides_direction``, of queries that differ in directions only, the first with rows is
    taken, or for a boolean question the first; but not if both directions were chosen. An answer
    without values has the reason. Display names are added. Raises the GraphErrors of the queries.
    """
    settings = ChattySettings.of_run(run)
    one_direction = settings.wording_decides_direction and not selection.unites_directions
    missing = _find_missing(selection, linked, run)
    if missing:
        if not linked.unlinked_entities and qir.kind != "boolean":
            missing = f"{NOT_IN_GRAPH}: {missing}"
        return Answer(qir.kind, reason=missing)
    if qir.kind == "boolean":
        answer = _answer_boolean(selection.queries, one_direction, run)
    elif qir.columns:
        answer = _answer_table(selection.queries, qir, one_direction, run)
    else:
        answer = _answer_values(selection.queries, qir, one_direction, run)
        if qir.kind == "count" and not answer and settings.wording_decides_direction:
            answer = _count_reversed(answer, selection.queries, run)
        return _doubt_directions(answer, selection, qir, linked)
    answer = read_values(run.kg, answer, reads_numbers=settings.looks_into_nodes)
    return _doubt_directions(answer, selection, qir, linked)


def _count_reversed(answer: Answer, queries: Sequence[CandidateQuery], run: Run) -> Answer:
    """Return the number 0 in place of no answer, if the graph has the reverse of what is counted.

    Who is the parent of somebody has no parent in this graph. A graph without the predicate at the
    thing does not say so, and the answer stays.
    """
    for query in queries:
        [pattern, *others] = query.patterns
        if others or is_literal(pattern[-1]):
            continue
        if run.kg.ask(f"ASK {{ {patterns_to_sparql([pattern[::-1]])} }}"):
            value = Value(Literal(0), "0")
            return Answer("count", (value,), answer.queries)
    return answer


def _doubt_directions(
    answer: Answer, selection: QuerySelection, qir: QIR, linked: LinkingResult
) -> Answer:
    """Return an answer with a doubt for each fact that it supports by a triple of the other direction.

    That is a triple whose direction the names of relation and predicate speak against, or do not
    tell (``compare_wordings``). Facts between two unknowns are not looked at.
    """
    terms = assign_terms(qir, linked.links)
    executed: set[TriplePattern] = set()
    for query in selection.queries:
        if query.sparql in answer.queries:
            executed.update(query.patterns)
    names = dict[str, str](answer.names)
    doubts = []
    for relation in linked.relations:
        is_join = all(map(is_unknown, relation.fact.ends))
        for predicate in relation.predicates:
            wording = compare_wordings(relation.fact.relation, predicate.name)
            if is_join or not wording.contradicts(predicate.direction):
                continue
            pattern, *others = make_patterns(relation.fact, predicate, terms)[0]
            if others or pattern not in executed or pattern[::-1] in executed:
                continue
            for triple in answer.support:
                if _matches(pattern, triple):
                    text = format_triple(triple, names)
                    doubts.append(f"{text} may say the reverse of {relation.fact}")
                    break
    return answer.with_doubts(doubts)


def _matches(pattern: TriplePattern, triple: Triple) -> bool:
    """Return whether a triple has the IRIs of a triple pattern."""
    pairs = zip(pattern, triple, strict=True)
    return all(cell == f"<{term}>" for cell, term in pairs if cell.startswith("<"))


def _find_missing(selection: QuerySelection, linked: LinkingResult, run: Run) -> str:
    """Return a text that says what is missing for an answer; "" if nothing is.

    Missing are entities without a vertex or literal; or else facts without a predicate, if these
    may not be left out (``unlinked_facts``); or else a selected query. The first of these is named.
    """
    if linked.unlinked_entities:
        return f"no vertex for {', '.join(linked.unlinked_entities)}"
    if linked.unlinked_facts and ChattySettings.of_run(run).unlinked_facts == "no_query":
        return f"no predicate for {', '.join(map(str, linked.unlinked_facts))}"
    return "" if selection.queries else "no predicate fits the question"


def _answer_boolean(queries: Sequence[CandidateQuery], one_direction: bool, run: Run) -> Answer:
    """Return an answer that is true, with its support, if any query holds, else false.

    The queries are asked in order; with ``first_true_decides`` until one holds. With
    ``one_direction``, a query is left out if it differs from an earlier one in directions only. The
    answer has the queries that were asked, and the triples of all that hold.
    """
    stops = ChattySettings.of_run(run).first_true_decides
    value = Value(Literal(False), "false")
    executed = []
    asked = set()
    for query in queries:
        predicates = pattern_predicates(query)
        if one_direction and predicates in asked:
            continue
        asked.add(predicates)
        executed.append(query.sparql)
        if run.kg.ask(query.sparql):
            support = (*value.support, *find_ask_support(run.kg, query))
            value = Value(Literal(True), "true", tuple(dict.fromkeys(support)))
            if stops:
                break
    return Answer("boolean", (value,), tuple(executed))


def _execute(
    queries: Iterable[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> Iterator[tuple[CandidateQuery, ResultSet]]:
    """Execute queries in their order, and yield each with its result; queries without a column are left out.

    With ``one_direction``, so is a query if an earlier one, with a score of at least
    MIN_SETTLING_SCORE and with rows, differs from it in directions only.
    """
    settled = set()
    for query in queries:
        predicates = pattern_predicates(query)
        if predicates in settled or not set(qir.selected).issubset(variables_of(query.patterns)):
            continue
        result = run.kg.select(query.sparql)
        is_settling = one_direction and query.score >= MIN_SETTLING_SCORE
        if is_settling and any(cell is not None for cell in chain.from_iterable(result.rows)):
            settled.add(predicates)
        yield query, result


def _answer_table(
    queries: Sequence[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> Answer:
    """Execute the queries, and return an answer with a value for each distinct row and its supporting triples.

    Rows of earlier queries come first, those of one query by their labels. If no query has rows,
    the answer has no values and says so as its reason.
    """
    values: dict[Row, Value] = {}
    sparql = []
    names = [column.lstrip("?") for column in qir.selected]
    for query, result in _execute(queries, qir, one_direction, run):
        sparql.append(query.sparql)
        found = make_row_values(query.sparql, names, result.rows, run)
        for value in sorted(found, key=_label_and_term):
            values.setdefault(value.row, value)
    if not values:
        return Answer(qir.kind, queries=tuple(sparql), reason=NO_ROWS)
    if _asks_for_each(qir):
        cells = _split_rows(values.values(), run)
        return Answer(qir.kind, cells, tuple(sparql))
    titles = []
    for column in qir.columns:
        titles.append(column.lstrip("?").replace("_", " "))
    rows = tuple(values.values())
    return Answer(qir.kind, rows, tuple(sparql), columns=tuple(titles))


def _asks_for_each(qir: QIR) -> bool:
    """Return whether each column is asked of another entity, as in "when were X and Y born"."""
    return len(qir.facts) == len(qir.columns) == len(qir.entities)


def _split_rows(rows: Collection[Value], run: Run) -> tuple[Value, ...]:
    """Return a value for each cell of the values of rows, with the triples of its row that have it."""
    cells = chain.from_iterable(row.terms for row in rows)
    labels = label_terms(cells, run)
    values: dict[Term, Value] = {}
    for row in rows:
        for cell in row.terms:
            support = tuple(triple for triple in row.support if cell in triple)
            values.setdefault(cell, Value(cell, labels[cell], support))
    return tuple(values.values())


def _label_and_term(value: Value) -> tuple[str, str]:
    """Return what values are sorted by."""
    return value.label, str(value.term)


@dataclass
class _Results:
    """The values that several queries found."""

    supports: dict[Term, tuple[Triple, ...]] = field(default_factory=dict)
    """The supporting triples of each value."""
    scores: dict[Term, float] = field(default_factory=dict)
    """The highest score of a query that has the value."""
    queries: list[CandidateQuery] = field(default_factory=list)
    """The queries that were executed."""
    is_cut: bool = False
    """Whether a result set had more rows than the graph's limit."""

    @property
    def sparql(self) -> tuple[str, ...]:
        """The queries that were executed, as text."""
        return tuple(query.sparql for query in self.queries)


def _answer_values(
    queries: Sequence[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> Answer:
    """Execute the queries, and return an answer with their distinct values and the supporting triples.

    Values are ordered by the best score of their queries; with ``value_order`` "by_query" equals by
    label. With ``shows_units``, the label of a number at a blank node has its unit. With
    ``merges_names``, texts that name another value are left out, and forms of one text are one value. With
    ``counts_values``, the number of values is returned instead if a count is asked for and they are
    not all numbers. If no query has rows, the answer has no values and says so as its reason. The
    display names of values and support are asked for together.
    """
    settings = ChattySettings.of_run(run)
    results = _collect_values(queries, qir, one_direction, run)
    if settings.merges_names:
        _merge_names(results, run)
    supports = results.supports
    if not supports:
        return Answer(qir.kind, queries=results.sparql, reason=NO_ROWS)
    terms = set(supports)
    for triples in supports.values():
        terms.update(chain.from_iterable(triples))
    labels = label_terms(terms, run)
    values = [Value(term, labels[term], triples) for term, triples in supports.items()]
    if settings.value_order == "by_query":
        values.sort(key=_label_and_term)
    # Sorting is stable: the values of one query keep their order.
    values.sort(key=lambda value: -results.scores[value.term])
    answer = Answer(qir.kind, tuple(values), results.sparql)
    reads_numbers = settings.looks_into_nodes and qir.kind == "list"
    answer = read_values(
        run.kg,
        answer,
        labels,
        reads_numbers=reads_numbers,
        shows_units=settings.shows_units,
        merges_forms=settings.merges_names,
    )
    if qir.kind != "count" or not settings.counts_values:
        return answer
    if all(is_amount(term, run.question) for term in supports):
        return answer.with_doubts(answer.remarks)
    return doubt_counted_text(_count_values(answer, results, qir.target, run), supports)


def _collect_values(
    queries: Sequence[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> _Results:
    """Execute queries and return the values of the target, each with the triples of all queries that have it.

    A value has the score of the best query that found it.
    """
    results = _Results()
    for query, result in _execute(queries, qir, one_direction, run):
        results.queries.append(query)
        results.is_cut |= result.cut
        found = [row[0] for row in result.rows if row[0] is not None]
        supports = find_support_by_value(run.kg, query, qir.target, found)
        for value, triples in supports.items():
            earlier = results.supports.get(value, ())
            results.supports[value] = tuple(dict.fromkeys(earlier + triples))
            results.scores[value] = max(query.score, results.scores.get(value, query.score))
    return results


def _merge_names(results: _Results, run: Run) -> None:
    """Remove each text that is the name of a vertex among the values, and give its triples to the vertex.

    ``results`` is changed in place. The vertex keeps the better score of the two; of several of one
    name the first is taken. Letter case does not count. Numbers, dates and truth values are no
    names. The graph is asked for names only if there are both texts and vertices.
    """
    iris = []
    texts: list[Term] = []
    for term in results.supports:
        if isinstance(term, URIRef):
            iris.append(term)
        elif isinstance(term, Literal) and isinstance(term.value, str):
            texts.append(term)
    if not texts or not iris:
        return
    things: dict[str, Term] = {}
    labels = label_terms(results.supports, run)
    for iri in iris:
        things.setdefault(labels[iri].casefold(), iri)
    for term in texts:
        name = labels[term].casefold()
        thing = things.get(name)
        if thing is not None:
            score = results.scores.pop(term)
            triples = results.supports[thing] + results.supports.pop(term)
            results.supports[thing] = tuple(dict.fromkeys(triples))
            results.scores[thing] = max(results.scores[thing], score)


def _count_values(answer: Answer, results: _Results, target: str, run: Run) -> Answer:
    """Return an answer with the number of the values, supported by the triples of all of them.

    If a result set was cut, the graph counts the values of all executed queries together, with one
    more query. Raises QueryError if that count is not a number.
    """
    counted = count_values(answer)
    [value] = counted.values
    # In the order of the results, and not of the labels: recorded counts have it.
    found = dict.fromkeys(chain.from_iterable(results.supports.values()))
    value = replace(value, support=tuple(found | dict.fromkeys(value.support)))
    counted = replace(counted, values=(value,))
    if not results.is_cut:
        return counted
    union = union_clause(map(where_clause, results.queries))
    counting = f"SELECT (COUNT(DISTINCT {target}) AS ?_n) WHERE {{ {union} }}"
    return count_in_graph(counted, counting, run.kg)
