"""What a gold query means to Surveyor's agents: stages, the rungs of the oracle ladder, links.

The survey and its excerpts have no gold: no query says which classes a model would have to see.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from rdflib import URIRef

from kgwb.build import (
    Candidate,
    GoldDecisions,
    GoldQuery,
    GraphError,
    LinkedIris,
    Run,
    Rung,
    TriplePattern,
    analyze_query,
    collect_iris,
    execute_unrecorded,
    get_output,
    list_outputs,
)
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mention, Mentions, Review

ASKED_BY_KIND: dict[str, Asked] = {"list": "list", "count": "count", "boolean": "yes or no"}


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in the last query that was executed, and those that its drafter could choose from.

    Candidates are the vertices found for the names of the question, and the predicates of the
    survey.
    """
    executed = list_outputs(run, "executor")[-1:]
    patterns = list(chain.from_iterable(map(_read_patterns, executed)))
    ends = chain.from_iterable(pattern[::2] for pattern in patterns)
    surveyed = chain.from_iterable(survey.classes for survey in list_outputs(run, "surveyor"))
    properties = chain.from_iterable(each.properties for each in surveyed)
    return LinkedIris(
        frozenset(end[1:-1] for end in ends if end.startswith("<")),
        frozenset(predicate.strip("<>") for _, predicate, _ in patterns),
        _find_offered_vertices(run),
        frozenset(str(each.predicate) for each in properties),
    )


def _read_patterns(executed: Executed) -> tuple[TriplePattern, ...]:
    """Return the triple patterns of a query; none if it cannot be taken apart."""
    try:
        return tuple(analyze_query(executed.sparql).patterns)
    except GraphError:
        return ()


def _find_offered_vertices(run: Run) -> frozenset[str]:
    """Return the IRIs of the vertices that the names of the question may refer to."""
    return collect_iris(list_outputs(run, "value_finder"), lambda mention: mention.candidates)


# The rungs


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold vertices that no name of the question was found to mean, to put in as candidates.

    Where the question's names have the vertex's name, the search for it is blamed, else the agent
    that finds names. Returns None if all were found, or if no names were looked for yet.
    """
    mentions: Mentions | None = get_output(run, "mention_finder")
    missing = sorted(gold.vertices - _find_offered_vertices(run))
    if mentions is None or not missing:
        return None
    names = {name.casefold(): name for name in mentions.names}
    blamed = "entity_retriever"
    added = []
    values: dict[str, object] = {}
    for iri in missing:
        label = gold.names.get(f"<{iri}>", iri)
        name = names.get(label.casefold())
        if name is None:
            name = label
            blamed = "mention_finder"
            added.append(Mention(name))
        found: Mention = get_output(run, f"value_finder[{name}]") or Mention(name)
        candidates = (Candidate(URIRef(iri), label), *found.candidates)
        values[f"value_finder[{name}]"] = replace(found, candidates=candidates)
    if added:
        values = {"mention_finder": replace(mentions, found=(*mentions.found, *added)), **values}
    return Rung(blamed, values)


def make_draft_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query, to put in as the draft; None if the run's draft has the same result."""
    executed: Executed | None = get_output(run, "executor[draft]")
    if executed is not None and _has_gold_result(executed, gold, run):
        return None
    return Rung("drafter", {"drafter": Draft(gold.sparql, ASKED_BY_KIND[gold.kind])})


def _has_gold_result(executed: Executed, gold: GoldQuery, run: Run) -> bool:
    """Execute the gold query, and return whether an executed query has the same rows, in any order.

    Of an ASK the truth is compared. False if the gold query cannot be executed.
    """
    result = execute_unrecorded(gold.sparql, run)
    if result is None:
        return False
    if isinstance(result, bool):
        return executed.truth == result
    return not executed.error and set(executed.rows) == set(result.rows)


def make_review_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the verdict "fine", to put in at the first review; None if the reviewer gave it, or reviewed nothing."""
    review: Review | None = get_output(run, "reviewer[draft]")
    if review is None or review.verdict == "fine":
        return None
    return Rung("reviewer", {"reviewer[draft]": Review("fine", "gold")})


LADDER = {"vertices": make_vertex_rung, "draft": make_draft_rung, "review": make_review_rung}
GOLD = GoldDecisions(LADDER, collect_linked_iris)
