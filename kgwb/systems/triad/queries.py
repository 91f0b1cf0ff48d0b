"""Triad's queries: a template filled with the options, and the fault if none has a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from rdflib import Literal

from kgwb.build import Candidate, CandidateQuery, GraphTimeoutError, QueryError, Run, Term, agent
from kgwb.build.graph import analyze_query, label_terms, n3, patterns_to_sparql
from kgwb.systems.triad.records import Choice, Filled, Phase, Queries, Relation, Triplets
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.templates import RelationTerm, fill_template, list_mentions

MAX_COMBINATIONS = 20_000
"""Combinations that are made before they are sorted by rank."""
MAX_SHOWN_VALUES = 3
"""Values of a query that a model and a person see."""
MAX_DIAGNOSED_QUERIES = 3
"""Queries without a result that are examined, and named in the reason."""
MAX_DESCRIPTION_CHARS = 80
"""Characters of a vertex's description that a model sees in a query."""
Option = Candidate | Relation | Filled


@agent("queries", kind="sparql")
def build_queries(
    template: str, triplets: Triplets, linked: tuple[Choice, ...], run: Run
) -> Queries:
    """Fill the template with each combination of options, and run the queries (Equation 7).

    ``linked`` has a choice for each mention, then for each triplet. Combinations come best first,
    by the sum of their options' ranks; at most ``query_limit`` are run. Queries without a result
    are set apart. If no query has one and they are ASKs, the first is kept: its answer is "no". Of
    several queries of the same text the first is kept, and with the setting ``merge_results`` also
    of several with the same results.
    """
    settings = TriadSettings.of_run(run)
    limit = settings.query_limit
    combinations = combine_options(linked)
    if len(combinations) > limit:
        run.note(f"{len(combinations)} candidate queries; the first {limit} were run (query_limit)")
    by_text: dict[str, Filled] = {}
    terms_by_text: dict[str, tuple[Term, ...]] = {}
    for options in combinations[:limit]:
        query = _fill_query(template, triplets, options, settings)
        sparql = query.query.sparql
        if sparql not in by_text:
            terms = fetch_terms(sparql, run)
            names = tuple(label_terms(terms, run).values())
            by_text[sparql] = replace(query, results=names[:MAX_SHOWN_VALUES], rows=len(terms))
            terms_by_text[sparql] = terms
    queries = list(by_text.values())

    answered = [query for query in queries if query.rows]
    if settings.merge_results:
        answered = _merge_by_result(answered, terms_by_text)
    unanswered = [query for query in queries if not query.rows]
    if queries and not answered and queries[0].is_boolean:
        # A yes-or-no question without a match has an answer: "no".
        answered = queries[:1]
        unanswered = queries[1:]
    heads = (*list_mentions(triplets), *map(str, triplets))
    return Queries(template, heads, tuple(answered), tuple(unanswered))


def combine_options(choices: Sequence[Choice]) -> list[list[Option]]:
    """Return every combination of one option of each choice, sorted by the sum of the options' ranks.

    Combinations of one sum are in lexicographic order of the ranks. Only the first MAX_COMBINATIONS
    in lexicographic order are made, since their number grows exponentially. A choice without
    options leaves no combination.
    """
    ranks_of_choices = [range(len(choice.chosen)) for choice in choices]
    rank_combinations = islice(product(*ranks_of_choices), MAX_COMBINATIONS)
    combinations = []
    for ranks in sorted(rank_combinations, key=sum):
        options = [choice.chosen[rank] for choice, rank in zip(choices, ranks, strict=True)]
        combinations.append(options)
    return combinations


def _merge_by_result(
    queries: Sequence[Filled], terms_by_text: Mapping[str, Sequence[Term]]
) -> list[Filled]:
    """Return, of each group of queries with the same set of result terms, the first query.

    ``terms_by_text`` has the terms by SPARQL text. Which of them is chosen makes no difference to
    the answer.
    """
    first_by_terms: dict[frozenset[Term], Filled] = {}
    for query in queries:
        terms = frozenset(terms_by_text[query.query.sparql])
        first_by_terms.setdefault(terms, query)
    return list(first_by_terms.values())


def _fill_query(
    template: str, triplets: Triplets, options: Sequence[Option], settings: TriadSettings
) -> Filled:
    """Return a template filled with an option for each mention and triplet; the query is not run.

    A triple has the direction of its relation in the graph, or with the setting ``as_written`` that
    of the template. The result also has the query as a model sees it: with names in place of IRIs,
    and vertices with their types and the beginning of their description (MAX_DESCRIPTION_CHARS).
    """
    terms = []
    descriptions = []
    predicates: list[RelationTerm] = []
    names: list[RelationTerm] = []
    relations = []
    for option in options:
        if isinstance(option, Candidate):
            description = option.description[:MAX_DESCRIPTION_CHARS]
            details = (option.name, *option.types, description)
            descriptions.append(", ".join(filter(None, details)))
            terms.append(n3(option.iri))
        elif isinstance(option, Relation):
            direction = None if settings.as_written else option.direction
            relations.append(option)
            predicates.append((n3(option.iri), direction))
            names.append((f"<{option.name}>", direction))

    sparql = fill_template(template, triplets, terms, predicates)
    bracketed = [f"<{description}>" for description in descriptions]
    readable = fill_template(template, triplets, bracketed, names)
    parts = analyze_query(sparql)
    relation_names = tuple(relation.name for relation in relations)
    query = CandidateQuery(sparql, parts.patterns, relation_names, 1.0, parts.filters)
    slots = (*descriptions, *map(str, relations))
    return Filled(query, slots, readable, (), 0)


def fetch_terms(sparql: str, run: Run) -> tuple[Term, ...]:
    """Run a query, and return the distinct terms in its first column, in the order of the rows.

    A true ASK has the term true. Returns nothing for a false ASK, for a count of 0, and if the
    graph cannot run the query or takes too long, which is noted on the step. Other GraphErrors are
    raised.
    """
    kind = analyze_query(sparql).kind
    try:
        if kind == "boolean":
            return (Literal(True),) if run.kg.ask(sparql) else ()
        rows = run.kg.select(sparql).rows
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    terms = dict.fromkeys(row[0] for row in rows if row[0] is not None)
    if kind == "count" and list(map(str, terms)) == ["0"]:
        return ()
    return tuple(terms)


def diagnose_fault(queries: Queries, choice: Choice | None, run: Run) -> tuple[Phase, str]:
    """Return the phase at fault if no query was chosen, and why, in words that a model sees.

    If the decision-maker refused those with a result (``choice``), it is "parsing". Otherwise the
    graph is asked for the bare triples of the first MAX_DIAGNOSED_QUERIES queries without a result:
    if it has those of one of them, the fault is in the rest of the template ("construction"), else
    in the chosen vertices and relations ("linking").
    """
    if choice is not None:
        shown = "; ".join(filled.name for filled in queries.kept[:MAX_DIAGNOSED_QUERIES])
        return "parsing", f"no query answers the question ({choice.reason}): {shown}"
    examined = queries.empty[:MAX_DIAGNOSED_QUERIES]
    for filled in examined:
        triples = patterns_to_sparql(filled.query.patterns)
        if fetch_terms(f"ASK {{ {triples} }}", run):
            return "construction", f"the triples of {filled.reads} hold, but it has no result"
    readable = "; ".join(filled.reads for filled in examined)
    return "linking", f"no result: {readable}"
