"""Facts that lead over one node which the question does not name (``joins_over_node``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.build import Direction, Run, Term
from kgwb.build.graph import union_clause, values_clause
from kgwb.build.linking import compute_similarities
from kgwb.systems.chatty_kg.predicates import (
    PREDICATE_VARIABLES,
    Pair,
    PathsByEnd,
    choose_predicate_names,
    is_literal,
    make_ranking_key,
    make_sample_clause,
    name_predicates,
    select_predicates_between,
    unite_patterns,
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
FIRST = PREDICATE_VARIABLES
"""The variable of the first predicate of a pair, by its direction."""
SECOND: Mapping[Direction, str] = {"out": "?_out2", "in": "?_in2"}
"""The variable of the second predicate of a pair, by its direction."""
PAIR_COLUMNS = " ".join((*FIRST.values(), *SECOND.values()))
"""The columns of a query for pairs in all directions: two cells of each row are bound."""
OVER_NODE = " → "
"""Between the names of two predicates that lead over a node."""
MIN_LIKE_OPEN_END = 0.5
"""The least similarity of a pair of predicates that leads over a node to an unknown."""
MAX_PAIRS = 3
"""Pairs of predicates to an unknown that are kept for a relation."""
MAX_NODES = 1_000
"""Nodes around the reached end of a fact that are looked at for what they lead to."""
MAX_THINGS = 2_000
"""Things, each with a pair of predicates, that are looked at in a direction from the reached end: a
single node such as a country may lead to millions."""


# Between two ends


def find_predicates_over_node(fact: Fact, paths: PathsByEnd, run: Run) -> list[RankedPredicate]:
    """Return the pairs of predicates that connect the two ends of a fact over one node between them.

    Both ends must be linked vertices, or be led to by a path, of which the first one counts. Pairs
    that meet in a node to which both ends point are left out: a country is no fact about two things
    that are in it. Empty if an end is a literal or not reached, or if a predicate connects the ends
    directly. Pairs are ordered by the better of the two similarities, then by IRI. Sends up to two
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
    if select_predicates_between(subject, object_, samples, run):
        return []
    pairs = _select_pairs(samples, subject, object_, run)
    return _rank_pairs(pairs, fact.relation, run)


def _select_pairs(samples: str, subject: str, object_: str, run: Run) -> list[NodePair]:
    """Return the distinct pairs of predicates that lead from one term to another over a node, with one query.

    ``samples`` has the subqueries that bind the terms. The pairs have OVER_NODE_DIRECTIONS and are
    in the order of these. Predicates that the vocabulary excludes are left out.
    """
    patterns = []
    for direction, onward_direction in OVER_NODE_DIRECTIONS:
        to_node = _write_pattern(subject, FIRST[direction], "?_n", direction)
        onward = _write_pattern("?_n", SECOND[onward_direction], object_, onward_direction)
        differs = f"FILTER(?_n != {subject} && ?_n != {object_})"
        patterns.append(f"{samples}{to_node} {onward} {differs}")
    where = unite_patterns(patterns)
    rows = run.kg.select(f"SELECT DISTINCT {PAIR_COLUMNS} WHERE {{ {where} }}").rows
    pairs = [_read_pair(row) for row in rows]
    return _sort_by_directions([pair for pair in pairs if pair and _is_allowed(pair, run)])


def _read_pair(cells: Sequence[Term | None]) -> NodePair | None:
    """Return the pair of predicates in the cells of PAIR_COLUMNS; None if one of them is no IRI."""
    first_out, first_in, second_out, second_in = cells
    first: Direction = "in" if first_out is None else "out"
    second: Direction = "in" if second_out is None else "out"
    first_iri = first_in if first_out is None else first_out
    second_iri = second_in if second_out is None else second_out
    if not isinstance(first_iri, URIRef) or not isinstance(second_iri, URIRef):
        return None
    return (first_iri, first), (second_iri, second)


def _is_allowed(pair: NodePair, run: Run) -> bool:
    """Return whether the vocabulary of the graph excludes neither predicate of a pair."""
    excluded = run.kg.vocabulary.excluded_predicates
    return all(iri not in excluded for iri, _ in pair)


def _sort_by_directions(pairs: Iterable[NodePair]) -> list[NodePair]:
    """Return pairs in the order of OVER_NODE_DIRECTIONS, those of the same directions as they are."""

    def place(pair: NodePair) -> int:
        """Return the position of the directions of a pair."""
        (_, direction), (_, onward_direction) = pair
        return OVER_NODE_DIRECTIONS.index((direction, onward_direction))

    return sorted(pairs, key=place)


def _rank_pairs(pairs: Iterable[NodePair], relation: str, run: Run) -> list[RankedPredicate]:
    """Return pairs of predicates as ranked ones, sorted by similarity, the highest first, then by IRIs.

    The similarity of a pair is the better of the two similarities of its predicates' names with the
    relation.
    """
    names = name_predicates(_list_iris(pairs), run)
    similarities = compute_similarities(relation, names.values(), run)
    ranked = []
    for pair in pairs:
        similarity = max(similarities[names[iri]] for iri, _ in pair)
        ranked.append(_make_predicate(pair, similarity, names))
    return sorted(ranked, key=make_ranking_key)


def _list_iris(pairs: Iterable[NodePair]) -> list[URIRef]:
    """Return the IRIs of the predicates in some pairs, each once."""
    iris: dict[URIRef, None] = {}
    for (first, _), (second, _) in pairs:
        iris[first] = None
        iris[second] = None
    return list(iris)


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
    pilots. Only the first path to the reached end counts, and at most MAX_NODES nodes and
    MAX_THINGS things behind them are looked at. The predicate at the unknown must be like the
    relation or like the unknown's name, or the name must be like a class of what is there, with a
    similarity of MIN_LIKE_OPEN_END. The similarity of a pair is the mean of this and of the
    relation's with the nearer of the two predicates. Empty for another fact.
    """
    open_fact = _make_open_fact(fact, paths, run)
    if open_fact is None:
        return []
    pairs: dict[NodePair, set[URIRef]] = {}
    for pair, class_iri in _walk_over_node(open_fact, run):
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


def _walk_over_node(fact: OpenFact, run: Run) -> Iterator[tuple[NodePair, URIRef]]:
    """Yield the pairs of predicates over a node, each with a class of what is at the open end; one query.

    The walk from the reached end has OVER_NODE_DIRECTIONS; the directions of a pair are seen from
    the subject of the fact. Things without a class have RDFS.Resource. Predicates that the
    vocabulary excludes are left out, and so is the way back by the predicate that led to the node.
    """
    far_by_near: dict[Direction, list[Direction]] = {}
    for near_direction, far_direction in OVER_NODE_DIRECTIONS:
        far_by_near.setdefault(near_direction, []).append(far_direction)
    walks = []
    for near_direction, far_directions in far_by_near.items():
        walks.append(_write_walk(fact, near_direction, far_directions))
    types = values_clause("?_t", run.kg.vocabulary.types)
    where = f"{{ {union_clause(walks)} }} OPTIONAL {{ {types} {fact.open_end} ?_t ?_c }}"
    rows = run.kg.select(f"SELECT DISTINCT {PAIR_COLUMNS} ?_c WHERE {{ {where} }}").rows
    for *cells, class_iri in rows:
        pair = _read_pair(cells)
        if pair is None or not _is_allowed(pair, run) or _is_way_back(pair):
            continue
        if not fact.starts_at_subject:
            pair = _reverse_pair(pair)
        yield pair, class_iri if isinstance(class_iri, URIRef) else RDFS.Resource


def _write_walk(
    fact: OpenFact, near_direction: Direction, far_directions: Sequence[Direction]
) -> str:
    """Return a SELECT of what is behind the nodes in one direction, each with the pairs that lead to it.

    A thing is there once for each pair, so that its classes are looked up once, and not for each
    node that leads to it.
    """
    near_predicate = FIRST[near_direction]
    near = _write_pattern(fact.start, near_predicate, "?_n", near_direction)
    nodes = (
        f"SELECT DISTINCT {near_predicate} ?_n WHERE {{ {fact.sample}{near}"
        f" FILTER(!isLiteral(?_n)) }} LIMIT {MAX_NODES}"
    )
    columns = [near_predicate]
    patterns = []
    for direction in far_directions:
        columns.append(SECOND[direction])
        patterns.append(_write_pattern("?_n", SECOND[direction], fact.open_end, direction))
    return (
        f"SELECT DISTINCT {' '.join(columns)} {fact.open_end}"
        f" WHERE {{ {{ {nodes} }} {unite_patterns(patterns)} }} LIMIT {MAX_THINGS}"
    )


def _is_way_back(pair: NodePair) -> bool:
    """Return whether the second predicate of a pair leads back by the first one."""
    (first, direction), (second, onward_direction) = pair
    return first == second and direction != onward_direction


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
    predicates = _list_iris(pairs)
    labels = run.kg.names([*predicates, *class_iris])
    names = choose_predicate_names(predicates, labels, run)
    class_names = [labels[iri] for iri in class_iris]
    kind = fact.open_end.lstrip("?").replace("_", " ")
    like_relation = compute_similarities(fact.relation, names.values(), run)
    like_kind = compute_similarities(kind, (*names.values(), *class_names), run)
    ranked = []
    for pair, classes in pairs.items():
        near, far = pair
        far_iri, _ = far if fact.starts_at_subject else near
        far_name = names[far_iri]
        similarities = [like_relation[far_name], like_kind[far_name]]
        for class_iri in classes:
            class_name = labels[class_iri]
            similarities.append(like_kind[class_name])
        best = max(similarities)
        if best < MIN_LIKE_OPEN_END:
            continue
        nearer = max(like_relation[names[iri]] for iri, _ in pair)
        similarity = round((best + nearer) / 2, 4)
        ranked.append(_make_predicate(pair, similarity, names))
    ranked.sort(key=make_ranking_key)
    return ranked[:MAX_PAIRS]
