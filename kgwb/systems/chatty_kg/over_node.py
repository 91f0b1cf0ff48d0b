"""Facts that lead over one node which the question does not name (``joins_over_node``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.build import Direction, Run
from kgwb.build.graph import values_clause
from kgwb.build.linking import compute_similarities
from kgwb.systems.chatty_kg.predicates import (
    Pair,
    PathsByEnd,
    is_literal,
    make_ranking_key,
    make_sample_clause,
    name_predicates,
    select_predicates,
)
from kgwb.systems.chatty_kg.records import Fact, RankedPredicate, is_unknown
from kgwb.systems.chatty_kg.settings import ChattySettings

NodePair = tuple[Pair, Pair]
"""Two predicates that lead over a node: to the node, and from there onward."""
NodePairs = Mapping[NodePair, Collection[URIRef]]
"""Pairs of predicates, each with the classes of what it leads to."""
OVER_NODE_DIRECTIONS: tuple[tuple[Direction, Direction], ...] = (
    ("out", "out"),
    ("in", "in"),
    ("in", "out"),
)
"""Directions of the two predicates over a node: onward, back, or both away from the node."""
OVER_NODE = " → "
"""Between the names of two predicates that lead over a node."""
MIN_LIKE_OPEN_END = 0.5
"""The least similarity of a pair of predicates that leads over a node to an unknown."""
MAX_PAIRS = 3
"""Pairs of predicates to an unknown that are kept for a relation."""
MAX_NODES = 1_000
"""Nodes around the reached end of a fact that are looked at for what they lead to."""


# Between two ends


def find_predicates_over_node(fact: Fact, paths: PathsByEnd, run: Run) -> list[RankedPredicate]:
    """Return the pairs of predicates that connect the two ends of a fact over one node between them.

    Both ends must be linked vertices, or be led to by a path, of which the first one counts. Pairs
    that meet in a node to which both ends point are left out: a country is no fact about two things
    that are in it. Empty if an end is a literal or not reached, or if a predicate connects the ends
    directly. Pairs are ordered by the better of the two similarities, then by IRI. Sends up to five
    queries.
    """
    ends = []
    for end in fact.ends:
        if not paths.get(end) or any(is_literal(term) for _, term in paths[end]):
            return []
        ends.append(paths[end][0])
    limit = ChattySettings.of_run(run).join_sample
    (where, subject), (object_where, object_) = ends
    samples = make_sample_clause(where, subject, limit)
    samples += make_sample_clause(object_where, object_, limit)
    for direct in (f"{subject} ?_p {object_}", f"{object_} ?_p {subject}"):
        if select_predicates(f"{samples}{direct}", "out", run):
            return []
    found: dict[NodePair, None] = {}
    for directions in OVER_NODE_DIRECTIONS:
        found |= _select_pairs(samples, subject, object_, directions, run)
    return _rank_pairs(found, fact.relation, run)


def _select_pairs(
    samples: str, subject: str, object_: str, directions: tuple[Direction, Direction], run: Run
) -> dict[NodePair, None]:
    """Return the distinct pairs of predicates that lead from one term to another over a node, with one query.

    ``samples`` has the subqueries that bind the terms. ``directions`` are those of the two
    predicates. Predicates that the vocabulary excludes are left out.
    """
    direction, onward_direction = directions
    to_node = _write_triple(subject, "?_p", "?_n", direction)
    onward = _write_triple("?_n", "?_q", object_, onward_direction)
    differs = f"FILTER(?_n != {subject} && ?_n != {object_})"
    where = f"{samples}{to_node} . {onward} {differs}"
    excluded = run.kg.vocabulary.excluded_predicates
    result = run.kg.select(f"SELECT DISTINCT ?_p ?_q WHERE {{ {where} }}")
    found: dict[NodePair, None] = {}
    for first, second in result.rows:
        if not isinstance(first, URIRef) or not isinstance(second, URIRef):
            continue
        if first not in excluded and second not in excluded:
            pair = ((first, direction), (second, onward_direction))
            found[pair] = None
    return found


def _write_triple(start: str, predicate: str, end: str, direction: Direction) -> str:
    """Return a triple pattern that leads from a start to an end in a direction."""
    if direction == "out":
        return f"{start} {predicate} {end}"
    return f"{end} {predicate} {start}"


def _rank_pairs(pairs: Iterable[NodePair], relation: str, run: Run) -> list[RankedPredicate]:
    """Return pairs of predicates as ranked ones, sorted by similarity, the highest first, then by IRIs.

    The similarity of a pair is the better of the two similarities of its predicates' names with the
    relation.
    """
    names = _name_pairs(pairs, run)
    similarities = compute_similarities(relation, names.values(), run)
    ranked = []
    for pair in pairs:
        similarity = max(similarities[names[iri]] for iri, _ in pair)
        ranked.append(_make_predicate(pair, similarity, names))
    return sorted(ranked, key=make_ranking_key)


def _name_pairs(pairs: Iterable[NodePair], run: Run) -> Mapping[URIRef, str]:
    """Return the name of each predicate in some pairs by its IRI, see ``name_predicates``."""
    iris: list[URIRef] = []
    for pair in pairs:
        iris += [iri for iri, _ in pair]
    return name_predicates(iris, run)


def _make_predicate(
    pair: NodePair, similarity: float, names: Mapping[URIRef, str]
) -> RankedPredicate:
    """Return a pair of predicates as one, which is named "FIRST → SECOND".

    Its second predicate is ``onward``.
    """
    (first, direction), (second, onward_direction) = pair
    return RankedPredicate(
        iri=first,
        name=f"{names[first]}{OVER_NODE}{names[second]}",
        direction=direction,
        similarity=similarity,
        onward=second,
        onward_direction=onward_direction,
    )


# From one end to an unknown


class OpenFact(NamedTuple):
    """A fact of which one end is reached, and the other is an unknown that nothing leads to yet."""

    relation: str
    open_end: str
    """The unknown, with its question mark."""
    start: str
    """The SPARQL term of the reached end."""
    sample: str
    """The subquery that binds the reached end; empty for a linked vertex."""
    starts_at_subject: bool


def find_predicates_to_open_end(fact: Fact, paths: PathsByEnd, run: Run) -> list[RankedPredicate]:
    """Return the best MAX_PAIRS pairs of predicates that lead from the reached end of a fact over a node.

    The other end must be an unknown that nothing leads to yet: from a ship over its calls to the
    pilots. Only the first path to the reached end counts, and at most MAX_NODES nodes are looked
    at. The predicate at the unknown must be like the relation or like the unknown's name, or the
    name must be like a class of what is there, with a similarity of MIN_LIKE_OPEN_END. The
    similarity of a pair is the mean of this and of the relation's with the nearer of the two
    predicates. Empty for another fact.
    """
    open_fact = _make_open_fact(fact, paths, run)
    if open_fact is None:
        return []
    pairs: dict[NodePair, set[URIRef]] = {}
    for near_direction, far_direction in OVER_NODE_DIRECTIONS:
        for pair, class_iri in _walk_over_node(open_fact, near_direction, far_direction, run):
            pairs.setdefault(pair, set()).add(class_iri)
    return _rank_pairs_to_open_end(pairs, open_fact, run)


def _make_open_fact(fact: Fact, paths: PathsByEnd, run: Run) -> OpenFact | None:
    """Return a fact with exactly one reached end and an unknown at the other; None for any other fact.

    Also None if the reached end is a literal.
    """
    reached_ends = [end for end in fact.ends if paths.get(end)]
    open_ends = [end for end in fact.ends if end not in reached_ends and is_unknown(end)]
    if len(reached_ends) != 1 or len(open_ends) != 1:
        return None
    [reached_end] = reached_ends
    [open_end] = open_ends
    where, start = paths[reached_end][0]
    if is_literal(start):
        return None
    limit = ChattySettings.of_run(run).join_sample
    return OpenFact(
        fact.relation,
        open_end,
        start,
        make_sample_clause(where, start, limit),
        reached_end == fact.subject,
    )


def _walk_over_node(
    fact: OpenFact, near_direction: Direction, far_direction: Direction, run: Run
) -> Iterator[tuple[NodePair, URIRef]]:
    """Yield the pairs of predicates over a node, each with a class of what is at the open end; one query.

    The directions are those of the walk from the reached end; those of a pair are seen from the
    subject of the fact. Things without a class have RDFS.Resource. Predicates that the vocabulary
    excludes are left out, and so is the way back by the predicate that led to the node.
    """
    near = _write_pattern(fact.start, "?_p", "?_n", near_direction)
    far = _write_pattern("?_n", "?_q", fact.open_end, far_direction)
    types = values_clause("?_t", run.kg.vocabulary.types)
    rows = run.kg.select(
        f"SELECT DISTINCT ?_p ?_q ?_c WHERE {{"
        f" {{ SELECT DISTINCT ?_p ?_n WHERE {{ {fact.sample}{near}"
        f" FILTER(!isLiteral(?_n)) }} LIMIT {MAX_NODES} }} {far}"
        f" OPTIONAL {{ {types} {fact.open_end} ?_t ?_c }} }}"
    ).rows
    excluded = run.kg.vocabulary.excluded_predicates
    for near_iri, far_iri, class_iri in rows:
        if not isinstance(near_iri, URIRef) or not isinstance(far_iri, URIRef):
            continue
        is_way_back = near_iri == far_iri and near_direction != far_direction
        if near_iri in excluded or far_iri in excluded or is_way_back:
            continue
        pair = ((near_iri, near_direction), (far_iri, far_direction))
        if not fact.starts_at_subject:
            pair = _reverse_pair(pair)
        yield pair, class_iri if isinstance(class_iri, URIRef) else RDFS.Resource


def _write_pattern(start: str, predicate: str, end: str, direction: Direction) -> str:
    """Return the triple pattern, as SPARQL, that leads from one term to another by a predicate.

    With the direction "in" the second term is the subject.
    """
    if direction == "in":
        start, end = end, start
    return f"{start} {predicate} {end} ."


def _reverse_pair(pair: NodePair) -> NodePair:
    """Return a pair of predicates as it is seen from its other end: in reverse order, directions swapped."""
    opposite: Mapping[Direction, Direction] = {"in": "out", "out": "in"}
    (first, direction), (second, onward_direction) = pair
    return (second, opposite[onward_direction]), (first, opposite[direction])


def _rank_pairs_to_open_end(pairs: NodePairs, fact: OpenFact, run: Run) -> list[RankedPredicate]:
    """Return the best MAX_PAIRS of the pairs that are like a fact, with their similarities, best first.

    ``find_predicates_to_open_end`` says what the similarity is. ``pairs`` has the classes of what
    each leads to.
    """
    if not pairs:
        return []
    class_iris: set[URIRef] = set()
    for classes in pairs.values():
        class_iris.update(classes)
    names = _name_pairs(pairs, run)
    class_names = run.kg.names(sorted(class_iris))
    kind = fact.open_end.lstrip("?").replace("_", " ")
    like_relation = compute_similarities(fact.relation, names.values(), run)
    like_kind = compute_similarities(kind, (*names.values(), *class_names.values()), run)
    ranked = []
    for pair, classes in pairs.items():
        near, far = pair
        far_iri, _ = far if fact.starts_at_subject else near
        far_name = names[far_iri]
        similarities = [like_relation[far_name], like_kind[far_name]]
        for class_iri in classes:
            class_name = class_names[class_iri]
            similarities.append(like_kind[class_name])
        best = max(similarities)
        if best < MIN_LIKE_OPEN_END:
            continue
        nearer = max(like_relation[names[iri]] for iri, _ in pair)
        similarity = round((best + nearer) / 2, 4)
        ranked.append(_make_predicate(pair, similarity, names))
    ranked.sort(key=make_ranking_key)
    return ranked[:MAX_PAIRS]
