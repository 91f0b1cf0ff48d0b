"""Candidate queries: generated, selected by their predicates, executed into an answer (section 5.2)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from operator import contains

from rdflib import Literal
from rdflib.namespace import XSD

from kgwb.flow import NOT_IN_GRAPH, Answer, CandidateQuery, Value
from kgwb.kg.algebra import variables_of
from kgwb.kg.queries import (
    find_ask_support,
    find_support_by_value,
    parse_count,
    where_clause,
    with_display_names,
)
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.chatty_kg.matching import TermByEnd, assign_terms, make_pattern
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
)
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.queries import is_number, label_terms
from kgwb.terms import Term, Triple

MAX_COMBINATIONS = 20_000
"""Combinations looked at before truncation; a QIR of many facts multiplies."""


@agent("query_generator")
def generate_queries(qir: QIR, linked: LinkingResult, run: Run) -> GeneratedQueries:
    """Every combination of one predicate a fact, joined on shared ends, truncated to query_num.

    ``fast`` orders by score first; as published, the order is that of the combinations, and a fact without
    any predicate is left out.
    """
    settings = ChattySettings.of_run(run)
    terms = assign_terms(qir, linked.links)
    relations = [
        linked_relation for linked_relation in linked.relations if linked_relation.predicates
    ]
    lost = len(relations) < len(linked.relations) or any(
        link.vertex is None for link in linked.links
    )
    if not relations or (
        settings.is_fast and lost
    ):  # a query for part of the question answers another one
        return GeneratedQueries((), 0)
    facts = [relation.fact for relation in relations]
    choices = [relation.predicates for relation in relations]
    total = math.prod(len(choice) for choice in choices)
    combinations: Iterable[tuple[RankedPredicate, ...]] = islice(
        product(*choices), MAX_COMBINATIONS
    )
    if settings.is_fast:
        combinations = heapq.nsmallest(settings.query_num, combinations, key=_sort_key)
    kept: dict[str, CandidateQuery] = {}
    for combination in combinations:
        query = _build_query(qir, facts, combination, terms, run)
        kept.setdefault(query.sparql, query)
        if len(kept) == settings.query_num:
            break
    if total > len(kept):
        run.note(f"{total} candidate queries, {len(kept)} kept (query_num {settings.query_num})")
    return GeneratedQueries(tuple(kept.values()), total)


def _sort_key(combination: Sequence[RankedPredicate]) -> tuple[float, list[str], list[bool]]:
    iris = [str(predicate.iri) for predicate in combination]
    return (
        -score_combination(combination),
        iris,
        [predicate.direction == "in" for predicate in combination],
    )


def score_combination(combination: Sequence[RankedPredicate]) -> float:
    """Geometric mean of the similarities, negative ones taken as nearly none."""
    return math.prod(max(predicate.similarity, 1e-3) for predicate in combination) ** (
        1 / len(combination)
    )


def _build_query(
    qir: QIR,
    facts: Sequence[Fact],
    combination: Sequence[RankedPredicate],
    terms: TermByEnd,
    run: Run,
) -> CandidateQuery:
    pairs = [make_pattern(*pair, terms) for pair in zip(facts, combination, strict=True)]
    patterns = tuple(dict.fromkeys(pattern for pattern, _ in pairs))
    filters = "".join(dict.fromkeys(among for _, among in pairs))
    names = tuple(predicate.name for predicate in combination)
    head = "ASK" if qir.kind == "boolean" else f"SELECT DISTINCT {qir.target} WHERE"
    if run.settings.is_fast and qir.kind == "boolean":
        # a stored false is no yes: "is it a hybrid" of a car whose ``hybrid`` is false
        false = f'str({{0}}) NOT IN ("false", "0") || datatype({{0}}) != <{XSD.boolean}>'
        filters += "".join(
            f"FILTER(!isLiteral({x}) || {false.format(x)}) " for x in variables_of(patterns)
        )
    elif run.settings.is_fast and len(qir.facts) > 1:
        # what was asked about is no answer of a chain that leads back to it: who shares a director with X
        named = dict.fromkeys(
            terms[entity] for entity in qir.entities if entity not in qir.type_mentions
        )
        filters += "".join(
            f"FILTER({qir.target} != {term}) " for term in named if term.startswith("<")
        )
    query = CandidateQuery("", patterns, names, round(score_combination(combination), 4), filters)
    return replace(query, sparql=f"{head} {{ {where_clause(query)} }}")


MIN_SIMILARITY, MIN_LEAD = 0.7, 0.25
"""A predicate this like the relation, and the others less like it by this much, needs no model."""


class SelectionReply(Reply):
    """The relevant predicates of each triple after a word of reasoning (zero-shot chain of thought)."""

    model_config = schema_config(
        "SelectionReply",
        "The relevant predicates of each triple after a word of reasoning (zero-shot chain of thought).",
    )

    reasoning: str
    predicates: list[list[str]]


class PooledReply(Reply):
    """The relevant predicates of one pool after a word of reasoning, as published."""

    model_config = schema_config(
        "PooledReply",
        "The relevant predicates of one pool after a word of reasoning, as published.",
    )

    reasoning: str
    predicates: list[str]


def find_selection_problems(
    selection: QuerySelection, generated: GeneratedQueries, question: str, linked: LinkingResult
) -> Iterator[str]:
    """What the query validator has against a selection put in by hand: it may hold candidate queries only."""
    known = {query.sparql for query in generated.queries}
    strange = (query.sparql for query in selection.queries if query.sparql not in known)
    yield from (f"not a candidate query: {sparql}" for sparql in strange)


@agent("predicate_selection", check=find_selection_problems, kind="model")
def select_queries(
    generated: GeneratedQueries, question: str, linked: LinkingResult, run: Run
) -> QuerySelection:
    """The queries whose predicates the model judges relevant (Algorithm 3, lines 3 to 17).

    As published, one pool of names is shown and one relevant predicate is enough for a query. ``fast`` shows
    each triple with its own predicates, and a query must be right in every triple; no model is asked where
    for every relation one predicate has its very name, or is by far the nearest.
    """
    if not generated.queries:
        return QuerySelection((), ())
    if not run.settings.is_fast:
        return _select_as_published(generated, question, run)
    queries, relations = generated.queries, linked.relations
    offered = [
        list(dict.fromkeys(query.predicates[n] for query in queries)) for n in range(len(relations))
    ]

    def listed(reply: SelectionReply) -> str:
        """One list a triple, of which names that were not offered are dropped.

        A list that is empty from the start says that the graph does not have the relation. One that only
        holds names from outside is invalid (section 5.2.3).
        """
        if len(reply.predicates) != len(offered):
            return f"{len(reply.predicates)} lists for {len(offered)} triples"
        for number, (names, known) in enumerate(zip(reply.predicates, offered, strict=True), 1):
            if names and not {*names} & {*known}:
                shown = ", ".join(map(repr, names[:5]))
                return f"none of triple {number}'s predicates is in its list: {shown}"
        return ""

    relevant = [_find_certain_predicate(relation) for relation in relations]
    if all(relevant):
        run.note("for every relation one predicate is beyond doubt: no model was asked")
    else:
        pairs = zip(relations, offered, strict=True)
        shown = [
            {"triple": [*relation.fact.as_tuple], "predicates": names} for relation, names in pairs
        ]
        variables = {"question": question, "relations": shown}
        checks = (Check("predicates from the list", listed),)
        reply = ask("chatty_kg/predicate_selection", variables, SelectionReply, run, checks=checks)
        relevant = reply.predicates
    kept = tuple(query for query in queries if all(map(contains, relevant, query.predicates)))
    lists = zip(relevant, offered, strict=True)
    names = dict.fromkeys(name for chosen, known in lists for name in chosen if name in known)
    return QuerySelection(kept, tuple(names))


def _find_certain_predicate(relation: LinkedRelation) -> list[str]:
    """The one predicate with the relation's very name, or by far the most like it; empty if in doubt."""
    same = {
        p.name
        for p in relation.predicates
        if p.name.casefold() == relation.fact.relation.casefold()
    }
    if same:
        return [*same] if len(same) == 1 else []
    close: dict[str, float] = {}
    for predicate in relation.predicates:
        close.setdefault(predicate.name, predicate.similarity)
    (best, nearest), *rest = close.items()
    return (
        [best]
        if nearest >= MIN_SIMILARITY
        and all(nearest - similarity >= MIN_LEAD for _, similarity in rest)
        else []
    )


def _select_as_published(generated: GeneratedQueries, question: str, run: Run) -> QuerySelection:
    """As published: names outside the list are dropped; if that leaves nothing it is invalid (5.2.3)."""
    names = list(dict.fromkeys(name for query in generated.queries for name in query.predicates))

    def listed(reply: PooledReply) -> str:
        if {*names} & {*reply.predicates}:
            return ""
        return "none of the predicates is in the list: " + ", ".join(
            map(repr, reply.predicates[:5])
        )

    variables = {"question": question, "predicates": names}
    checks = (Check("predicates from the list", listed),)
    # After theta attempts Algorithm 3 goes on with what it has: no predicate, so no query and no answer.
    prompt, last = "chatty_kg/predicate_selection_published", lambda _: True
    reply = ask(prompt, variables, PooledReply, run, checks=checks, last_resort=last)
    relevant = tuple(name for name in names if name in reply.predicates)
    sharing = (query for query in generated.queries if {*query.predicates} & {*relevant})
    return QuerySelection(tuple(sharing), relevant)


MIN_SETTLING_SCORE = 0.6
"""Score from which a query's wording decides the direction; "relatives" is both father and child."""
SupportByTerm = dict[Term, tuple[Triple, ...]]


@agent("execution", kind="sparql")
def execute_queries(selection: QuerySelection, qir: QIR, linked: LinkingResult, run: Run) -> Answer:
    """The answer with the triples each value stands on; empty and with its reason if the graph has none.

    The union of all selected queries. ``fast`` counts where a count is asked and no stored number answers,
    and of queries that differ only in direction takes the first with rows, or the first at all if yes or no
    is asked.
    """
    missing = "" if selection.queries else "no predicate fits the question"
    if run.settings.is_fast:
        lost = [link.entity for link in linked.links if link.vertex is None]
        bare = [str(relation.fact) for relation in linked.relations if not relation.predicates]
        missing = f"no predicate for {', '.join(bare)}" if bare else missing
        missing = f"no vertex for {', '.join(lost)}" if lost else missing
    if missing:
        return Answer(qir.kind, reason=f"{NOT_IN_GRAPH}: {missing}")
    if (
        qir.kind == "boolean"
    ):  # true if any selected query holds, with the triples that make it true
        value, asked = Value(Literal(False), "false"), dict[object, str]()
        for query in selection.queries:
            undirected = tuple(predicate for _, predicate, _ in query.patterns)
            if run.settings.is_fast and undirected in asked:
                continue
            asked[undirected if run.settings.is_fast else len(asked)] = query.sparql
            if run.kg.ask(query.sparql):
                value = Value(Literal(True), "true", find_ask_support(run.kg, query))
                break
        return with_display_names(run.kg, Answer("boolean", (value,), tuple(asked.values())))
    supports, queries, cut = _collect_values(selection.queries, qir.target, run)
    texts = tuple(query.sparql for query in queries)
    if not supports:
        return Answer(qir.kind, queries=texts, reason=f"{NOT_IN_GRAPH}: no selected query has rows")
    if qir.kind == "count" and run.settings.is_fast and not all(map(is_number, supports)):
        number, triples = (
            len(supports),
            dict.fromkeys(t for some in supports.values() for t in some),
        )
        if cut:  # the graph itself counts
            patterns = " UNION ".join(f"{{ {where_clause(query)} }}" for query in queries)
            counting = f"SELECT (COUNT(DISTINCT {qir.target}) AS ?_n) WHERE {{ {patterns} }}"
            number = parse_count(next((row[0] for row in run.kg.select(counting).rows), None))
            texts = (*texts, counting)
        return with_display_names(
            run.kg, Answer("count", (Value(Literal(number), str(number), tuple(triples)),), texts)
        )
    values = [
        Value(term, label, supports[term]) for term, label in label_terms(supports, run).items()
    ]
    values.sort(key=lambda value: (value.label, str(value.term)))
    return with_display_names(run.kg, Answer(qir.kind, tuple(values), texts))


def _collect_values(
    queries: Sequence[CandidateQuery], target: str, run: Run
) -> tuple[SupportByTerm, list[CandidateQuery], bool]:
    """Values with support, the queries that were executed, and whether a result was cut."""
    supports: SupportByTerm = {}
    cut = False
    executed: list[CandidateQuery] = []
    settled: set[tuple[str, ...]] = set()
    for query in queries:
        undirected = tuple(predicate for _, predicate, _ in query.patterns)
        if undirected in settled or not any(target in pattern for pattern in query.patterns):
            continue
        rows = run.kg.select(query.sparql)
        executed.append(query)
        values = [row[0] for row in rows.rows if row[0] is not None]
        if values and run.settings.is_fast and query.score >= MIN_SETTLING_SCORE:
            settled.add(undirected)
        cut = cut or rows.cut
        for value, triples in find_support_by_value(run.kg, query, target, values).items():
            supports[value] = tuple(dict.fromkeys((*supports.get(value, ()), *triples)))
    return supports, executed, cut
