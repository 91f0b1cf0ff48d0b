"""Query execution (Chatty-KG, section 5.2.4; Algorithm 3, line 18): one answer of all selected queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeGuard

from rdflib import BNode, Literal, URIRef

from kgwb.build import NOT_IN_GRAPH, Answer, CandidateQuery, Run, Term, Triple, Value, agent
from kgwb.build.graph import (
    Row,
    find_ask_support,
    find_row_support,
    find_support_by_value,
    is_number,
    label_terms,
    parse_count,
    patterns_to_sparql,
    variables_of,
    where_clause,
    with_display_names,
)
from kgwb.systems.chatty_kg.queries import MIN_SETTLING_SCORE
from kgwb.systems.chatty_kg.records import (
    QIR,
    LinkingResult,
    QuerySelection,
    pattern_predicates,
)
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.chatty_kg.units import find_units

UNIT_SEPARATOR = " / "
"""Between several units of one number."""


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
        return Answer(qir.kind, reason=f"{NOT_IN_GRAPH}: {missing}")
    if qir.kind != "boolean" and not qir.columns:
        return _answer_values(selection.queries, qir, one_direction, run)
    if qir.kind == "boolean":
        answer = _answer_boolean(selection.queries, one_direction, run)
    else:
        answer = _answer_table(selection.queries, qir, one_direction, run)
    return with_display_names(run.kg, answer)


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

    The queries are asked in order until one holds. With ``one_direction``, a query is left out if
    it differs from an earlier one in directions only. The answer has the queries that were asked.
    """
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
            value = Value(Literal(True), "true", find_ask_support(run.kg, query))
            break
    return Answer("boolean", (value,), tuple(executed))


@dataclass
class _Results:
    """The results of several queries."""

    supports: dict[Term, tuple[Triple, ...]] = field(default_factory=dict)
    """The supporting triples of each value."""
    scores: dict[Term, float] = field(default_factory=dict)
    """The highest score of a query that has the value."""
    units: dict[Term, tuple[Term, ...]] = field(default_factory=dict)
    """The units of numbers, with ``shows_units``."""
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
    ``merges_names``, texts that name another value are left out. With
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
        reason = f"{NOT_IN_GRAPH}: no selected query has rows"
        return Answer(qir.kind, queries=results.sparql, reason=reason)
    has_other_values = not all(map(is_number, supports))
    if qir.kind == "count" and settings.counts_values and has_other_values:
        return with_display_names(run.kg, _count_values(results, qir.target, run))
    unit_terms = chain.from_iterable(results.units.values())
    unit_iris = {unit for unit in unit_terms if isinstance(unit, URIRef)}
    names = run.kg.names([*_list_iris(supports), *sorted(unit_iris.difference(supports))])
    values = []
    for term, triples in supports.items():
        label = _label_of(term, names)
        units = []
        for unit in results.units.get(term, ()):
            if unit not in supports:  # else it is a value of its own
                units.append(_label_of(unit, names))
        if units:
            label = f"{label} {UNIT_SEPARATOR.join(sorted(units))}"
        values.append(Value(term, label, triples))
    if settings.value_order == "by_query":
        values.sort(key=lambda value: (value.label, str(value.term)))
    # Sorting is stable: the values of one query keep their order.
    values.sort(key=lambda value: -results.scores[value.term])
    answer = Answer(qir.kind, tuple(values), results.sparql)
    return with_display_names(run.kg, answer, names)


def _label_of(term: Term, names: Mapping[URIRef, str]) -> str:
    """Return the name of a vertex, and the text of a literal."""
    return names[term] if isinstance(term, URIRef) else str(term)


def _list_iris(supports: Mapping[Term, Iterable[Triple]]) -> list[URIRef]:
    """Return the distinct IRIs among values and their supporting triples."""
    terms = set(supports)
    for triples in supports.values():
        terms.update(chain.from_iterable(triples))
    return [term for term in terms if isinstance(term, URIRef)]


def _collect_values(
    queries: Sequence[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> _Results:
    """Execute queries and return the values of the target, each with the triples of all queries that have it.

    Queries without the target are left out. With ``one_direction``, so is a query if an earlier
    one, with a score of at least MIN_SETTLING_SCORE and with rows, differs from it in directions
    only. For a list, blank nodes are replaced by their literals (``_look_into_nodes``). A value has
    the score of the best query that found it.
    """
    results = _Results()
    settled = set()
    for query in queries:
        predicates = pattern_predicates(query)
        if predicates in settled or qir.target not in variables_of(query.patterns):
            continue
        result = run.kg.select(query.sparql)
        found, columns, rows = query, qir.selected, result.rows
        if qir.kind == "list" and _are_looked_into(rows, run):
            found, columns, rows = _look_into_nodes(query, qir, rows, run)
        results.queries.append(found)
        results.is_cut |= result.cut
        values = [row[0] for row in rows if row[0] is not None]
        if values and one_direction and query.score >= MIN_SETTLING_SCORE:
            settled.add(predicates)
        supports = find_support_by_value(run.kg, found, columns[0], values)
        for value, triples in supports.items():
            earlier = results.supports.get(value, ())
            results.supports[value] = tuple(dict.fromkeys(earlier + triples))
            results.scores[value] = max(query.score, results.scores.get(value, query.score))
        if ChattySettings.of_run(run).shows_units:
            for value, units in find_units(found, columns[0], supports, run).items():
                earlier_units = results.units.get(value, ())
                results.units[value] = tuple(dict.fromkeys(earlier_units + units))
    return results


def _has_nameless_nodes(rows: Iterable[Row]) -> bool:
    """Return whether a cell of some rows is a blank node."""
    return any(isinstance(cell, BNode) for row in rows for cell in row)


def _are_looked_into(rows: Iterable[Row], run: Run) -> bool:
    """Return whether rows have blank nodes, and ``looks_into_nodes`` is on."""
    return ChattySettings.of_run(run).looks_into_nodes and _has_nameless_nodes(rows)


def _look_into_nodes(
    query: CandidateQuery, qir: QIR, rows: tuple[Row, ...], run: Run
) -> tuple[CandidateQuery, tuple[str, ...], tuple[Row, ...]]:
    """Execute a query for the literals at blank nodes, and return it, its variables, and its rows.

    A blank node tells a person nothing: a length may be a node that has the number. Columns with
    blank nodes are replaced by any literals that these nodes have. The given query and rows are
    returned if the nodes have no literals.
    """
    patterns = list(query.patterns)
    filters = query.filters
    columns = []
    for position, column in enumerate(qir.selected):
        if not _has_nameless_nodes(row[position : position + 1] for row in rows):
            columns.append(column)
            continue
        # no unknown of a QIR begins with "_"
        literal = f"?_literal{position}"
        patterns.append((column, f"?_predicate{position}", literal))
        filters += f"FILTER(isLiteral({literal})) "
        columns.append(literal)
    body = f"{patterns_to_sparql(patterns)} {filters}".strip()
    sparql = f"SELECT DISTINCT {' '.join(columns)} WHERE {{ {body} }}"
    literal_rows = run.kg.select(sparql).rows
    if not literal_rows:
        return query, qir.selected, rows
    with_literals = replace(query, sparql=sparql, patterns=tuple(patterns), filters=filters)
    return with_literals, tuple(columns), literal_rows


def _answer_table(
    queries: Sequence[CandidateQuery], qir: QIR, one_direction: bool, run: Run
) -> Answer:
    """Execute the queries, and return an answer with a value for each distinct row and its supporting triples.

    Rows of earlier queries come first, those of one query by their labels. Queries that lack a
    column are left out, and those that ``_collect_values`` would leave out for direction. If no
    query has rows, the answer has no values and says so as its reason.
    """
    values: dict[Row, Value] = {}
    executed = []
    settled = set()
    for query in queries:
        predicates = pattern_predicates(query)
        has_columns = set(qir.columns) <= set(variables_of(query.patterns))
        if predicates in settled or not has_columns:
            continue
        found, columns = query, qir.columns
        rows = run.kg.select(query.sparql).rows
        if _are_looked_into(rows, run):
            found, columns, rows = _look_into_nodes(query, qir, rows, run)
        executed.append(found.sparql)
        if rows and one_direction and query.score >= MIN_SETTLING_SCORE:
            settled.add(predicates)
        for value in _make_row_values(found, columns, rows, run):
            values.setdefault(value.row, value)
    if not values:
        reason = f"{NOT_IN_GRAPH}: no selected query has rows"
        return Answer(qir.kind, queries=tuple(executed), reason=reason)
    titles = tuple(column.lstrip("?").replace("_", " ") for column in qir.columns)
    return Answer(qir.kind, tuple(values.values()), tuple(executed), columns=titles)


def _make_row_values(
    query: CandidateQuery, columns: Sequence[str], rows: Sequence[Row], run: Run
) -> list[Value]:
    """Return a value for each row of a query, sorted by label, with the triples that support it.

    Its term is the first bound cell, and its label has the names of all bound cells, with " · "
    between them. A row has at least one.
    """
    names = [column.lstrip("?") for column in columns]
    supports = find_row_support(query.sparql, names, rows, run)
    labels = label_terms(filter(_is_bound, chain.from_iterable(rows)), run)
    values = []
    for row in rows:
        cells = list(filter(_is_bound, row))
        label = " · ".join(labels[cell] for cell in cells)
        support = supports.get(row, ())
        values.append(Value(cells[0], label, support, row))
    values.sort(key=lambda value: (value.label, str(value.term)))
    return values


def _is_bound(cell: Term | None) -> TypeGuard[Term]:
    """Return whether a cell of a row has a term."""
    return cell is not None


def _merge_names(results: _Results, run: Run) -> None:
    """Remove each text that is the name of a vertex among the values, and give its triples to the vertex.

    ``results`` is changed in place. The vertex keeps the better score of the two; of several of one
    name the first is taken. Letter case does not count. Numbers, dates and truth values are no
    names. The graph is asked for names only if there are both texts and vertices.
    """
    texts = []
    has_things = False
    for term in results.supports:
        if is_text(term):
            texts.append(term)
        has_things |= isinstance(term, URIRef)
    if not texts or not has_things:
        return
    things: dict[str, Term] = {}
    labels = label_terms(results.supports, run)
    for term, label in labels.items():
        if isinstance(term, URIRef):
            things.setdefault(label.casefold(), term)
    for term in texts:
        name = labels[term].casefold()
        thing = things.get(name)
        if thing is None:
            continue
        score = results.scores.pop(term)
        triples = results.supports[thing] + results.supports.pop(term)
        results.supports[thing] = tuple(dict.fromkeys(triples))
        results.scores[thing] = max(results.scores[thing], score)


def is_text(term: Term) -> bool:
    """Return whether a term is a literal that is neither a number nor a date nor a truth value."""
    return isinstance(term, Literal) and isinstance(term.value, str)


def _count_values(results: _Results, target: str, run: Run) -> Answer:
    """Return an answer with the number of distinct values, supported by the triples of all of them.

    If a result set was cut, the graph counts the values of all executed queries together, with one
    more query. Raises QueryError if that count is not a number.
    """
    sparql = results.sparql
    number = len(results.supports)
    if results.is_cut:
        branches = []
        for clause in map(where_clause, results.queries):
            branches.append(f"{{ {clause} }}")
        union = " UNION ".join(branches)
        counting = f"SELECT (COUNT(DISTINCT {target}) AS ?_n) WHERE {{ {union} }}"
        rows = run.kg.select(counting).rows
        number = parse_count(rows[0][0] if rows else None)
        sparql += (counting,)
    triples: dict[Triple, None] = {}
    for support in results.supports.values():
        triples.update(dict.fromkeys(support))
    value = Value(Literal(number), str(number), tuple(triples))
    return Answer("count", (value,), sparql)
