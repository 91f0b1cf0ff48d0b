"""What a gold query means to Surveyor's agents: stages, the rungs of the oracle ladder, links.

The survey and its excerpts have no gold: no query says which classes a model would have to see.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

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
    assign_stages,
    execute_sparql,
    get_output,
    list_outputs,
)
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mention, Mentions, Review

AGENTS_BY_STAGE = {
    "look": "surveyor mention_finder entity_retriever value_finder",
    "draft": "drafter executor",
    "review": "reviewer",
    "answer": "answer",
}
ASKED_BY_KIND: dict[str, Asked] = {"list": "list", "count": "count", "boolean": "yes or no"}


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in the last query that was executed, and those that its drafter could choose from.

    Candidates are the vertices found for the names of the question, and the predicates of the
    survey.
    """
    linked: set[str] = set()
    predicates: set[str] = set()
    for executed in list_outputs(run, "executor")[-1:]:
        for subject, predicate, object_ in _read_patterns(executed):
            linked.update(term[1:-1] for term in (subject, object_) if term.startswith("<"))
            predicates.add(predicate.strip("<>"))
    offered_predicates: set[str] = set()
    for survey in list_outputs(run, "surveyor"):
        for surveyed_class in survey.classes:
            offered_predicates.update(str(each.predicate) for each in surveyed_class.properties)
    return LinkedIris(
        frozenset(linked),
        frozenset(predicates),
        _find_offered_vertices(run),
        frozenset(offered_predicates),
    )


def _read_patterns(executed: Executed) -> tuple[TriplePattern, ...]:
    """Return the triple patterns of a query; none if it cannot be taken apart."""
    try:
        return tuple(analyze_query(executed.sparql).patterns)
    except GraphError:
        return ()


def _find_offered_vertices(run: Run) -> frozenset[str]:
    """Return the IRIs of the vertices that the names of the question may refer to."""
    offered: set[str] = set()
    for mention in list_outputs(run, "value_finder"):
        offered.update(str(candidate.iri) for candidate in mention.candidates)
    return frozenset(offered)


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
    if run.unrecorded_graph is None:
        return False
    try:
        result = execute_sparql(run.unrecorded_graph, gold.sparql)
    except GraphError:
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


LADDER = MappingProxyType(
    {"vertices": make_vertex_rung, "draft": make_draft_rung, "review": make_review_rung}
)
GOLD = GoldDecisions(assign_stages(AGENTS_BY_STAGE), LADDER, collect_linked_iris)
