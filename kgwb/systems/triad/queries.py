"""Triad's queries: a template filled with the options, and the fault if none has a result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.flow import Candidate, CandidateQuery
from kgwb.kg.algebra import analyze_query, patterns_to_sparql
from kgwb.kg.sparql import n3
from kgwb.run import Run, agent
from kgwb.systems.queries import label_terms
from kgwb.systems.triad.records import Choice, Filled, Phase, Queries, Relation, Triplets
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.templates import fill_template, list_mentions

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
    are set apart. If no query has one and they are ASKs, the first is kept: its answer is "no".
    """
    limit = TriadSettings.of_run(run).query_limit
    combinations = combine_options(linked)
    if len(combinations) > limit:
        run.note(f"{len(combinations)} candidate queries; the first {limit} were run (query_limit)")
    queries = []
    for options in combinations[:limit]:
        queries.append(_run_filled_template(template, triplets, options, run))

    answered = [query for query in queries if query.rows]
    unanswered = [query for query in queries if not query.rows]
    if queries and not answered and queries[0].is_boolean:
        # A yes-or-no question without a match has an answer: "no".
        answered = queries[:1]
        unanswered = queries[1:]
    heads = (*list_mentions(triplets), *map(str, triplets))
    return Queries(template, heads, tuple(answered), tuple(unanswered))


def combine_options(choices: Sequence[Choice]) -> list[list[Option]]:
    """Return every combination of one option of each choice, by the sum of the options' ranks.

    Combinations of one sum are in lexicographic order of the ranks. Only the MAX_COMBINATIONS first
    in lexicographic order are made, since their number grows exponentially.
    """
    ranks_of_choices = [range(len(choice.chosen)) for choice in choices]
    rank_combinations = islice(product(*ranks_of_choices), MAX_COMBINATIONS)
    combinations = []
    for ranks in sorted(rank_combinations, key=sum):
        options = [choice.chosen[rank] for choice, rank in zip(choices, ranks, strict=True)]
        combinations.append(options)
    return combinations


def _run_filled_template(
    template: str, triplets: Triplets, options: Sequence[Option], run: Run
) -> Filled:
    """Fill a template with an option for each mention and triplet, and run the query.

    A model sees the query with names in place of IRIs. A vertex is written there with its types and
    the beginning of its description.
    """
    terms = []
    descriptions = []
    predicates = []
    names = []
    relations = []
    for option in options:
        if isinstance(option, Candidate):
            description = option.description[:MAX_DESCRIPTION_CHARS]
            details = (option.name, *option.types, description)
            descriptions.append(", ".join(filter(None, details)))
            terms.append(n3(option.iri))
        elif isinstance(option, Relation):
            relations.append(option)
            predicates.append((n3(option.iri), option.direction))
            names.append((f"<{option.name}>", option.direction))

    sparql = fill_template(template, triplets, terms, predicates)
    bracketed = [f"<{description}>" for description in descriptions]
    readable = fill_template(template, triplets, bracketed, names)
    parts = analyze_query(sparql)
    relation_names = tuple(relation.name for relation in relations)
    query = CandidateQuery(sparql, parts.patterns, relation_names, 1.0, parts.filters)
    values = fetch_values(sparql, run)
    slots = (*descriptions, *map(str, relations))
    return Filled(query, slots, readable, values[:MAX_SHOWN_VALUES], len(values))


def fetch_values(sparql: str, run: Run) -> tuple[str, ...]:
    """Run a query, and return the names of the distinct values in its first column.

    A true ASK has the value "true". Returns nothing for a false ASK, for a count of 0, and if the
    graph cannot run the query or takes too long, which is noted on the step.
    """
    kind = analyze_query(sparql).kind
    try:
        if kind == "boolean":
            return ("true",) if run.kg.ask(sparql) else ()
        rows = run.kg.select(sparql).rows
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    terms = dict.fromkeys(row[0] for row in rows if row[0] is not None)
    if kind == "count" and list(map(str, terms)) == ["0"]:
        return ()
    return tuple(label_terms(terms, run).values())


def diagnose_fault(queries: Queries, run: Run) -> tuple[Phase, str]:
    """Return the phase at fault if no query has a result, and why, in words that a model sees.

    Of the first MAX_DIAGNOSED_QUERIES queries, the triples are looked for without the rest of the
    query. If the graph has those of one of them, the template is at fault ("construction").
    Otherwise the chosen vertices and relations are ("linking").
    """
    examined = queries.empty[:MAX_DIAGNOSED_QUERIES]
    for filled in examined:
        triples = patterns_to_sparql(filled.query.patterns)
        if fetch_values(f"ASK {{ {triples} }}", run):
            return "construction", f"the triples of {filled.reads} hold, but it has no result"
    readable = "; ".join(filled.reads for filled in examined)
    return "linking", f"no result: {readable}"
