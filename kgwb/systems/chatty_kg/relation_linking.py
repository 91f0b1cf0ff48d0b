"""Relation linking (Chatty-KG, section 5.1.3; Algorithm 2, lines 12 to 15): ranked predicates of facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDF, RDFS

from kgwb.build import (
    OPPOSITE_DIRECTION,
    Direction,
    Link,
    Run,
    Term,
    TriplePattern,
    agent,
    compare_wordings,
    compute_similarities,
    is_of_container,
    n3,
    name_from_iri,
    patterns_to_sparql,
    split_into_batches,
    union_clause,
    values_clause,
    variables_of,
    write_membership,
)
from kgwb.systems.chatty_kg.records import (
    OCCUPATION_RELATIONS,
    QIR,
    Fact,
    LinkedRelation,
    RankedPredicate,
    is_unknown,
)
from kgwb.systems.chatty_kg.settings import ChattySettings

WRONG_DIRECTION_FACTOR = 0.98
"""Factor on the similarity of a predicate in the direction that its wording speaks against."""
MIN_LIKE_RELATION = 0.7
"""The least similarity of a predicate that is taken to be what a relation means."""
BEAM_WIDTH = 4
"""Paths to an unknown that are followed."""
BEAM_WIDTH_WITH_NODES = 5
"""Paths to an unknown that are followed where some may lead over a node (``joins_over_node``)."""
MAX_CHECKED_PATHS = 40
"""Paths to an unknown of which the graph is asked whether they lead to anything."""
PATHS_IN_A_QUERY = 10
"""Paths that one query asks about: most of the time the first of them are enough."""
MIN_STEP_SIMILARITY = 0.01
"""The least similarity by which a predicate multiplies the score of a path."""


class Path(NamedTuple):
    """A way from a linked vertex to an end of a fact."""

    where: str
    """Its triple patterns and filters; empty at the vertex itself."""
    score: float
    """The product of the similarities of its predicates."""


def link_relations(qir: QIR, links: Sequence[Link], run: Run) -> tuple[LinkedRelation, ...]:
    """Link each fact to ranked predicates of the graph, and return them in the order of the QIR's facts.

    Facts are linked from the linked vertices outwards. The predicates of a fact between two
    unknowns are looked for at what the best paths lead to, unless ``links_joins`` is off. A fact
    that no path leads to has no predicates. With ``classes`` "for_kinds", facts that state a type
    are linked first, so that other facts are linked at the instances of the class.
    """
    settings = ChattySettings.of_run(run)
    terms = assign_terms(qir, links)
    paths = _begin_paths(terms, links)
    linked_ends = set(paths)
    waiting = list(qir.facts)
    if settings.classes == "for_kinds":
        waiting.sort(key=lambda fact: not fact.states_type)
    linked: dict[Fact, LinkedRelation] = {}
    while waiting:
        fact = _choose_next_fact(waiting, paths)
        waiting.remove(fact)
        paths_to_ends: PathsByEnd = {}
        if settings.links_joins or not linked_ends.isdisjoint(fact.ends):
            paths_to_ends = _list_paths_to_ends(fact, paths, terms)
        linked[fact] = link_relation(fact, paths_to_ends, run)
        new_ends = set(fact.ends) - paths.keys()
        leads_on = not all(new_ends.isdisjoint(each.ends) for each in waiting)
        if len(new_ends) != 1 or not leads_on or not linked[fact].predicates:
            continue
        [new_end] = new_ends
        extended = _extend_paths(paths, linked[fact], new_end, terms)
        if not settings.joins_over_node:
            paths[new_end] = extended[:BEAM_WIDTH]
        elif sum(map(len, paths_to_ends.values())) == 1:
            # Every predicate was found at its only start, so that each path leads to something.
            paths[new_end] = extended[:BEAM_WIDTH_WITH_NODES]
        else:
            paths[new_end] = _keep_leading_paths(extended, run)
    return tuple(linked[fact] for fact in qir.facts)


def _choose_next_fact(waiting: Sequence[Fact], paths: Mapping[str, Sequence[Path]]) -> Fact:
    """Return the first waiting fact with an end that a path leads to; the first of all if there is none."""
    for fact in waiting:
        if not paths.keys().isdisjoint(fact.ends):
            return fact
    return waiting[0]


def _begin_paths(terms: TermByEnd, links: Sequence[Link]) -> dict[str, list[Path]]:
    """Return the paths of the ends that are linked: one for each, which has no step yet."""
    paths = {}
    for end, term in terms.items():
        if not is_unknown(term):
            paths[end] = [Path("", 1.0)]
    for link in links:
        if link.others and link.entity in terms:
            vertices = [vertex.iri for vertex in link.vertices]
            paths[link.entity] = [Path(values_clause(terms[link.entity], vertices), 1.0)]
    return paths


def _list_paths_to_ends(
    fact: Fact, paths: Mapping[str, Sequence[Path]], terms: TermByEnd
) -> PathsByEnd:
    """Return the paths that lead to the ends of a fact, each with the term of the end."""
    paths_to_ends = {}
    for end in fact.ends:
        if end in paths:
            paths_to_ends[end] = tuple((path.where, terms[end]) for path in paths[end])
    return paths_to_ends


def assign_terms(qir: QIR, links: Sequence[Link]) -> TermByEnd:
    """Return the SPARQL term of each entity and unknown of a QIR.

    It is the IRI of a linked vertex in angle brackets, or a literal. An unknown is a variable
    itself. An entity with several vertices gets the variable "?_any" with a number, which
    ``find_restrictions`` restricts, and an entity without any "?unlinked" with a number.
    """
    terms = {}
    for position, end in enumerate((*qir.entities, *qir.unknowns)):
        terms[end] = end if is_unknown(end) else f"?unlinked{position}"
    for link in links:
        entity = link.entity
        if entity not in terms:
            continue
        if link.others:
            # no unknown of a QIR begins with "_"
            position = list(terms).index(entity)
            terms[entity] = f"?_any{position}"
        elif link.vertex:
            terms[entity] = n3(link.vertex.iri)
        elif link.value is not None:
            terms[entity] = n3(link.value)
    return terms


def find_restrictions(links: Sequence[Link], terms: TermByEnd) -> dict[str, str]:
    """Return, by variable, the FILTER that restricts it to the vertices of its entity.

    Only entities that are linked to several vertices have such a variable.
    """
    restrictions = {}
    for link in links:
        if link.others and link.entity in terms:
            term = terms[link.entity]
            vertices = ", ".join(n3(vertex.iri) for vertex in link.vertices)
            restrictions[term] = f"FILTER({term} IN ({vertices})) "
    return restrictions


def restrict(patterns: Iterable[TriplePattern], restrictions: Mapping[str, str]) -> str:
    """Return the FILTERs of ``find_restrictions`` for the variables that occur in patterns."""
    if not restrictions:
        return ""
    occurring = variables_of(patterns)
    return "".join(text for variable, text in restrictions.items() if variable in occurring)


def _extend_paths(
    paths: Mapping[str, Sequence[Path]], relation: LinkedRelation, new_end: str, terms: TermByEnd
) -> list[Path]:
    """Return the paths that lead over a linked fact to its only end without paths, best score first.

    Each path to its other end is continued by each predicate of the fact; scores are multiplied by
    the similarity.
    """
    fact = relation.fact
    start = fact.object if new_end == fact.subject else fact.subject
    steps = []
    for predicate in relation.predicates:
        patterns, class_filter = make_patterns(fact, predicate, terms)
        step = f"{patterns_to_sparql(patterns)} {class_filter}"
        steps.append((step, max(predicate.similarity, MIN_STEP_SIMILARITY)))
    extended = []
    for path in paths.get(start, [Path("", 1.0)]):  # a fact such as ⟨?x, knows, ?x⟩ has no start
        for step, similarity in steps:
            where = f"{path.where} {step}".strip()
            extended.append(Path(where, path.score * similarity))
    extended.sort(key=lambda path: -path.score)
    return extended


def _keep_leading_paths(paths: Sequence[Path], run: Run) -> list[Path]:
    """Return the first BEAM_WIDTH_WITH_NODES paths that lead to anything in the graph.

    The graph is asked about PATHS_IN_A_QUERY in turn, about MAX_CHECKED_PATHS at most. If none of
    them leads to anything, the first path alone is returned.
    """
    leading: list[Path] = []
    checked = paths[:MAX_CHECKED_PATHS]
    for batch in split_into_batches(checked, PATHS_IN_A_QUERY):
        leading += _select_leading_paths(batch, run)
        if len(leading) >= BEAM_WIDTH_WITH_NODES:
            break
    return leading[:BEAM_WIDTH_WITH_NODES] or list(paths[:1])


def _select_leading_paths(paths: Sequence[Path], run: Run) -> list[Path]:
    """Return those of some paths that lead to anything in the graph, in their order; one query is sent."""
    branches = []
    for number, path in enumerate(paths):
        branches.append(f'{{ SELECT ("{number}" AS ?_i) WHERE {{ {path.where} }} LIMIT 1 }}')
    rows = run.kg.select(f"SELECT ?_i WHERE {{ {unite_patterns(branches)} }}").rows
    numbers = sorted(int(str(number)) for (number,) in rows)
    return [paths[number] for number in numbers]


def make_patterns(
    fact: Fact, predicate: RankedPredicate, terms: TermByEnd
) -> tuple[list[TriplePattern], str]:
    """Return the triple patterns of a fact with one of its predicates, and a FILTER for them or "".

    There is one pattern, or there are two if a node stands between the ends. If the predicate has
    one class, that class is the object. If it has several, the object is a variable that the FILTER
    restricts to them.
    """
    object_ = terms[fact.object]
    class_filter = ""
    if len(predicate.classes) == 1:
        object_ = n3(predicate.classes[0])
    elif predicate.classes:
        # no unknown of a QIR begins with "_"
        position = list(terms).index(fact.object)
        object_ = f"?_class{position}"
        classes = ", ".join(map(n3, predicate.classes))
        class_filter = f"FILTER({object_} IN ({classes})) "
    subject = terms[fact.subject]
    if predicate.onward is None:
        pattern = _make_pattern(subject, n3(predicate.iri), object_, predicate.direction)
        return [pattern], class_filter
    positions = list(terms)
    first, last = [positions.index(end) for end in fact.ends]
    node = f"?_node{first}_{last}"
    to_node = _make_pattern(subject, write_membership(predicate.iri), node, predicate.direction)
    onward = _make_pattern(
        node, write_membership(predicate.onward), object_, predicate.onward_direction
    )
    return [to_node, onward], class_filter


def _make_pattern(start: str, predicate: str, end: str, direction: Direction) -> TriplePattern:
    """Return the triple pattern that leads from one SPARQL term to another by a predicate.

    With the direction "in" the second term is the subject.
    """
    if direction == "in":
        start, end = end, start
    return start, predicate, end


def find_relation_problems(linked: LinkedRelation, fact: Fact, paths: PathsByEnd) -> Iterator[str]:
    """Yield what is wrong with a linked relation that a person put in for a fact.

    It must be of a fact between the same ends. ``paths`` is not used.
    """
    if linked.fact.ends != fact.ends:
        yield f"{linked.fact} is another fact than {fact}"


@agent("relation_linking", subject="fact", check=find_relation_problems, kind="sparql")
def link_relation(fact: Fact, paths: PathsByEnd, run: Run) -> LinkedRelation:
    """Find the predicates at the ends of a fact, and rank them by the similarity of their names.

    The similarity is that with the relation of the fact. The best ``predicates_per_relation`` are
    kept, each in the directions in which it was found; the step notes how many were dropped.
    Equals are ordered by IRI. Of a fact between two linked vertices, the predicates that connect
    them come first, or are the only ones (``linked_ends``). If no predicate connects the ends, pairs
    of predicates that do so over a node may come first (``joins_over_node``). If one end is an
    unknown, and no predicate is like the relation, pairs that lead to it over a node are added.
    With ``classes`` "for_kinds", type predicates are looked for (``_find_type_predicates``). If there
    are any, no others are looked for, unless the relation is an occupation.
    """
    settings = ChattySettings.of_run(run)
    type_predicates: list[RankedPredicate] = []
    if settings.classes == "for_kinds":
        type_predicates = _find_type_predicates(fact, paths, run)
    if type_predicates and fact.relation.casefold() not in OCCUPATION_RELATIONS:
        # All other triples at a class belong to the ontology: they are not facts about instances.
        return LinkedRelation(fact, tuple(type_predicates))

    connecting = _find_connecting_predicates(fact, paths, run)
    found = set(connecting or ())
    if connecting is None or settings.linked_ends == "connecting_first":
        found.update(_find_predicates_at_ends(fact, paths, run))
    memberships = {iri for iri, _ in found if is_of_container(iri) and not settings.whole_graph}
    left_out = set(memberships)
    for predicate in type_predicates:
        left_out.add(predicate.iri)
    found = {pair for pair in found if pair[0] not in left_out}
    pairs = _without_literal_subjects(found, fact, paths)
    ranked = _rank_predicates(pairs, fact.relation, run) + type_predicates
    if memberships:
        over_containers = _find_pairs_over_containers(fact, paths, memberships, run)
        ranked += _rank_pairs(list(over_containers), fact.relation, run)
    over_node: list[RankedPredicate] = []
    if settings.joins_over_node and not connecting:
        over_node = find_predicates_over_node(fact, paths, run)
    ranked.sort(key=make_ranking_key)
    if connecting and settings.linked_ends == "connecting_first":
        connecting_iris = {iri for iri, _ in connecting}
        ranked.sort(key=lambda each: each.iri not in connecting_iris)
    best = _keep_best(over_node + ranked, run)
    is_like = any(predicate.similarity >= MIN_LIKE_RELATION for predicate in best)
    if settings.joins_over_node and not is_like:
        best += find_predicates_to_open_end(fact, paths, run)
        best.sort(key=make_ranking_key)
    return LinkedRelation(fact, tuple(best))


def _rank_predicates(pairs: Iterable[Pair], relation: str, run: Run) -> list[RankedPredicate]:
    """Return predicates with their names and the similarity of these with a relation, in the given order.

    With ``wording_decides_direction``, the similarity is lowered in directions that the wording
    speaks against (``_turn_to_wording``).
    """
    settings = ChattySettings.of_run(run)
    names = name_predicates(run.kg.names([iri for iri, _ in pairs]), run)
    similarities = compute_similarities(relation, names.values(), run)
    ranked = []
    for iri, direction in pairs:
        name = names[iri]
        ranked.append(RankedPredicate(iri, name, direction, similarities[name]))
    if settings.wording_decides_direction:
        ranked = _turn_to_wording(ranked, relation)
    return ranked


def _without_literal_subjects(
    pairs: Collection[Pair], fact: Fact, paths: PathsByEnd
) -> Collection[Pair]:
    """Return the predicates, but for those in a direction in which a literal would be the subject."""
    left_out = set()
    for end, direction in ((fact.subject, "out"), (fact.object, "in")):
        terms = [term for _, term in paths.get(end, ())]
        if any(map(is_literal, terms)):
            left_out.add(direction)
    if not left_out:
        return pairs
    return [(iri, direction) for iri, direction in pairs if direction not in left_out]


def _keep_best(ranked: Sequence[RankedPredicate], run: Run) -> list[RankedPredicate]:
    """Return the best ``predicates_per_relation`` predicates, each in all its directions.

    ``ranked`` has the best first. A predicate in both directions counts once; a pair over a node
    counts as a predicate of its own. The step notes how many were dropped.
    """
    identities = [(predicate.iri, predicate.onward) for predicate in ranked]
    limit = ChattySettings.of_run(run).predicates_per_relation
    best_identities = list(dict.fromkeys(identities))[:limit]
    best = []
    for predicate, identity in zip(ranked, identities, strict=True):
        if identity in best_identities:
            best.append(predicate)
    if len(best) < len(ranked):
        run.note(f"{len(ranked)} predicates found, {len(best)} kept")
    return best


def _find_type_predicates(fact: Fact, paths: PathsByEnd, run: Run) -> list[RankedPredicate]:
    """Return the type predicates by which the object of a fact, a class, has instances, sorted by IRI.

    Each has the class and its subclasses that have instances by it, and the similarity 1. Empty if
    the fact does not state a type, or if its object is not linked or is no such class. Sends one
    query and one for names.
    """
    if not fact.states_type or fact.object not in paths:
        return []
    where, term = paths[fact.object][0]
    classes_clause = ""
    if where:
        classes_clause = f"{where} "
    rows = run.kg.select(
        f"SELECT DISTINCT ?_p ?_c WHERE {{ {classes_clause}?_c {n3(RDFS.subClassOf)}* {term}"
        f" {values_clause('?_p', run.kg.vocabulary.types)}"
        f" FILTER EXISTS {{ ?_v ?_p ?_c }} }}"
    ).rows
    classes: dict[URIRef, list[URIRef]] = {}
    for predicate, class_iri in rows:
        if isinstance(predicate, URIRef) and isinstance(class_iri, URIRef):
            classes.setdefault(predicate, []).append(class_iri)
    iris = sorted(classes)
    names = run.kg.names(iris)
    predicates = []
    for iri in iris:
        with_instances = tuple(sorted(classes[iri]))
        predicates.append(RankedPredicate(iri, names[iri], "out", 1.0, with_instances))
    return predicates


def _find_connecting_predicates(fact: Fact, paths: PathsByEnd, run: Run) -> set[Pair] | None:
    """Return the predicates that connect the two ends of a fact, with their directions.

    The set may be empty. None is returned instead if not both ends are linked vertices, or if the
    setting ``linked_ends`` is "any_end". With "connecting_reached" an end may also be an unknown
    that paths lead to: then a sample of ``join_sample`` of its vertices is looked at. One query is
    made. Source: Chatty-KG, section 5.1.3.
    """
    linked_ends = ChattySettings.of_run(run).linked_ends
    if linked_ends == "any_end":
        return None
    terms = []
    samples = ""
    for end in fact.ends:
        paths_to_end = paths.get(end, ())
        sample = make_sample_clause(paths_to_end, run)
        if not paths_to_end or (sample and linked_ends != "connecting_reached"):
            return None
        terms.append(paths_to_end[0][1])
        samples += sample
    subject, object_ = terms
    if is_literal(subject) or is_literal(object_):
        return None
    return select_predicates_between(subject, object_, samples, run)


def _find_predicates_at_ends(fact: Fact, paths: PathsByEnd, run: Run) -> set[Pair]:
    """Return the predicates found at the ends of a fact, with their directions, by one query.

    The direction is seen from the subject of the fact. Of the vertices that a path leads to, a
    sample of ``join_sample`` is looked at. A literal has no outgoing triples, so none are looked
    for.
    """
    patterns = []
    for end, paths_to_end in paths.items():
        outgoing = PREDICATE_VARIABLES["out"]
        incoming = PREDICATE_VARIABLES["in"]
        if end != fact.subject:
            outgoing, incoming = incoming, outgoing
        _, term = paths_to_end[0]
        at_end = [f"?_o {incoming} {term}"]
        if not is_literal(term):
            at_end.insert(0, f"{term} {outgoing} ?_o")
        samples = make_sample_clause(paths_to_end, run)
        if samples:
            # The sample is taken once, and not once for each direction.
            patterns.append(f"{samples}{union_clause(at_end)}")
        else:
            patterns += at_end
    return select_predicates(patterns, run)


def _find_pairs_over_containers(
    fact: Fact, paths: PathsByEnd, memberships: set[URIRef], run: Run
) -> Iterator[NodePair]:
    """Yield pairs of a membership and a predicate of the containers that an end is in, or of its members.

    So what is said of a list is said of each of its members. ``memberships`` are predicates that lead
    from a container to a member. Two queries are sent for each of them and each end.
    """
    for end, paths_to_end in paths.items():
        samples = make_sample_clause(paths_to_end, run)
        _, term = paths_to_end[0]
        for step in product(sorted(memberships - {RDF.rest}), OPPOSITE_DIRECTION):
            membership, direction = step
            hop = _make_pattern(term, write_membership(membership), "?_n", direction)
            start = f"{samples}{patterns_to_sparql([hop])}"
            patterns = [f"{start} ?_n ?_out ?_o", f"{start} ?_o ?_in ?_n"]
            for onward in select_predicates(patterns, run):
                pair = (step, onward)
                if end != fact.subject:
                    pair = _reverse_pair(pair)
                if not is_of_container(onward[0]):
                    yield pair


def _turn_to_wording(ranked: Iterable[RankedPredicate], relation: str) -> list[RankedPredicate]:
    """Return predicates in the direction of their wording, see ``compare_wordings``.

    Of a predicate that was found in both directions, the one that the wording speaks against gets a
    lower similarity. If only that one was found, and the wording is certain, it is turned: "parent"
    from Otilia to Sorin is "parent of" from Sorin to Otilia, which no triple may say.
    """
    found = {(predicate.iri, predicate.direction) for predicate in ranked}
    turned = []
    for predicate in ranked:
        wording = compare_wordings(relation, predicate.name)
        read = predicate
        if predicate.direction != wording.direction:
            if (predicate.iri, wording.direction) in found:
                similarity = round(predicate.similarity * WRONG_DIRECTION_FACTOR, 4)
                read = replace(predicate, similarity=similarity)
            elif wording.certainty == "certain":
                read = replace(predicate, direction=wording.direction)
        turned.append(read)
    return turned


TermByEnd = dict[str, str]
"""The SPARQL term of each end of the facts: an IRI in angle brackets, or a variable."""
PathsByEnd = dict[str, tuple[tuple[str, str], ...]]
"""By end of a fact, each path that leads to it, in SPARQL, with the SPARQL term of the end.

The path to a linked vertex is empty.
"""
Pair = tuple[URIRef, Direction]
"""A predicate with the direction in which it was found, seen from the subject of the fact."""
PREDICATE_VARIABLES: Mapping[Direction, str] = {"out": "?_out", "in": "?_in"}
"""The variable that a pattern of ``select_predicates`` has for its predicate, by direction.

No unknown of a QIR begins with "_".
"""
READABLE = re.compile(r"[^\W\d_]{2}")
"""Two letters: what a person can read, unlike "P57"."""


def is_literal(term: str) -> bool:
    """Return whether a SPARQL term is a literal, which cannot be a subject."""
    return not term.startswith(("<", "?"))


def name_predicates(labels: Mapping[URIRef, str], run: Run) -> Mapping[URIRef, str]:
    """Return the names of predicates by IRI: their labels, or with ``predicate_names`` the last parts of IRIs.

    A last part without two letters in a row, such as P57 in Wikidata, is no name: the label is
    taken.
    """
    names = dict(labels)
    if ChattySettings.of_run(run).predicate_names == "local_parts":
        for iri in names:
            segment = name_from_iri(iri)
            if READABLE.search(segment):
                names[iri] = segment
    return names


def unite_patterns(patterns: Sequence[str]) -> str:
    """Return the graph pattern, as SPARQL, that matches whatever one of some patterns matches."""
    if len(patterns) == 1:
        return patterns[0]
    return union_clause(patterns)


def make_sample_clause(paths_to_end: Iterable[tuple[str, str]], run: Run) -> str:
    """Return a subquery for what paths to an end lead to, at most ``join_sample`` by each; "" for a linked vertex.

    A value that several paths lead to is bound once.
    """
    limit = ChattySettings.of_run(run).join_sample
    samples = []
    for where, term in paths_to_end:
        if where:
            samples.append(f"{{ SELECT DISTINCT {term} WHERE {{ {where} }} LIMIT {limit} }} ")
    if len(samples) < 2:
        return "".join(samples)
    return f"{{ SELECT DISTINCT {term} WHERE {{ {' UNION '.join(samples)}}} }} "


def select_predicates(patterns: Sequence[str], run: Run) -> set[Pair]:
    """Return the predicates that graph patterns bind to ?_out or ?_in, each with its direction.

    Predicates that the vocabulary of the graph excludes are left out, unless ``whole_graph`` is on;
    type predicates are kept with the setting ``keeps_type_predicates``. One query is sent for all
    patterns, none without any.
    """
    if not patterns:
        return set()
    where = unite_patterns(patterns)
    # Some engines refuse a variable that no pattern has.
    directions = [each for each, variable in PREDICATE_VARIABLES.items() if variable in where]
    columns = " ".join(PREDICATE_VARIABLES[direction] for direction in directions)
    vocabulary = run.kg.vocabulary
    excluded = vocabulary.excluded_predicates
    settings = ChattySettings.of_run(run)
    kept: Collection[URIRef] = ()
    if settings.keeps_type_predicates:
        kept = vocabulary.types
    found: set[Pair] = set()
    for row in run.kg.select(f"SELECT DISTINCT {columns} WHERE {{ {where} }}").rows:
        for iri, direction in zip(row, directions, strict=True):
            is_kept = settings.whole_graph or iri in kept or iri not in excluded
            if isinstance(iri, URIRef) and is_kept:
                found.add((iri, direction))
    return found


def select_predicates_between(subject: str, object_: str, samples: str, run: Run) -> set[Pair]:
    """Return the predicates that connect two SPARQL terms, with their directions; one query is sent.

    ``samples`` has the subqueries that bind the terms; it is empty for linked vertices.
    """
    patterns = [f"{samples}{subject} ?_out {object_}", f"{samples}{object_} ?_in {subject}"]
    return select_predicates(patterns, run)


def make_ranking_key(predicate: RankedPredicate) -> tuple[float, str, str, bool, bool]:
    """Return a key that sorts predicates by similarity, the highest first, then by IRIs, then by directions.

    "out" comes first, but of two pairs over a node that differ in what leads onward only, "in":
    they are in the order of OVER_NODE_DIRECTIONS.
    """
    return (
        -predicate.similarity,
        str(predicate.iri),
        str(predicate.onward or ""),
        predicate.direction == "in",
        predicate.onward_direction == "out",
    )


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
    terms = []
    samples = ""
    for end in fact.ends:
        paths_to_end = paths.get(end, ())[:1]
        if not paths_to_end or is_literal(paths_to_end[0][1]):
            return []
        terms.append(paths_to_end[0][1])
        samples += make_sample_clause(paths_to_end, run)
    subject, object_ = terms
    if select_predicates_between(subject, object_, samples, run):
        return []
    pairs = _select_pairs(samples, subject, object_, run)
    return _rank_pairs(pairs, fact.relation, run)


def _select_pairs(samples: str, subject: str, object_: str, run: Run) -> list[NodePair]:
    """Return the distinct pairs of predicates that lead from one term to another over a node, with one query.

    ``samples`` has the subqueries that bind the terms. The pairs have OVER_NODE_DIRECTIONS.
    Predicates that the vocabulary excludes are left out.
    """
    patterns = []
    for direction, onward_direction in OVER_NODE_DIRECTIONS:
        to_node = _make_pattern(subject, FIRST[direction], "?_n", direction)
        onward = _make_pattern("?_n", SECOND[onward_direction], object_, onward_direction)
        differs = f"FILTER(?_n != {subject} && ?_n != {object_})"
        patterns.append(f"{samples}{patterns_to_sparql([to_node, onward])} {differs}")
    where = unite_patterns(patterns)
    rows = run.kg.select(f"SELECT DISTINCT {PAIR_COLUMNS} WHERE {{ {where} }}").rows
    pairs = []
    for row in rows:
        pair = _read_pair(row)
        if pair is not None and _is_allowed(pair, run):
            pairs.append(pair)
    return pairs


def _read_pair(cells: Sequence[Term | None]) -> NodePair | None:
    """Return the pair of predicates in the cells of PAIR_COLUMNS; None if one of them is no IRI."""
    pair: list[Pair] = []
    for iri, direction in zip(cells, (*FIRST, *SECOND), strict=True):
        if isinstance(iri, URIRef):
            pair.append((iri, direction))
    if len(pair) == 2:
        return (pair[0], pair[1])
    return None


def _is_allowed(pair: NodePair, run: Run) -> bool:
    """Return whether neither predicate of a pair is excluded by the vocabulary, or makes a container."""
    excluded = run.kg.vocabulary.excluded_predicates
    return not any(iri in excluded or is_of_container(iri) for iri, _ in pair)


def _rank_pairs(pairs: Iterable[NodePair], relation: str, run: Run) -> list[RankedPredicate]:
    """Return pairs of predicates as ranked ones, sorted by similarity, the highest first, then by IRIs.

    The similarity of a pair is the better of the two similarities of its predicates' names with the
    relation.
    """
    names = name_predicates(run.kg.names(_list_iris(pairs)), run)
    similarities = compute_similarities(relation, names.values(), run)
    ranked = []
    for pair in pairs:
        similarity = max(similarities[names[iri]] for iri, _ in pair)
        ranked.append(_make_predicate(pair, similarity, names))
    return sorted(ranked, key=make_ranking_key)


def _list_iris(pairs: Iterable[NodePair]) -> list[URIRef]:
    """Return the IRIs of the predicates in some pairs, each once."""
    return list({iri for iri, _ in chain.from_iterable(pairs)})


def _make_predicate(
    pair: NodePair, similarity: float, names: Mapping[URIRef, str]
) -> RankedPredicate:
    """Return a pair of predicates as one, which is named "FIRST → SECOND".

    Its second predicate is ``onward``. One that leads to the members of a container has no part in
    the name.
    """
    (first, direction), (second, onward_direction) = pair
    shown = [names[iri] for iri in (first, second) if not is_of_container(iri)]
    return RankedPredicate(
        iri=first,
        name=OVER_NODE.join(shown),
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
    open_ends = []
    for end in fact.ends:
        if not paths.get(end):
            open_ends.append(end)
    if len(open_ends) != 1 or not is_unknown(open_ends[0]):
        return []
    [open_end] = open_ends
    starts_at_subject = open_end == fact.object
    reached_end = fact.object
    if starts_at_subject:
        reached_end = fact.subject
    path = paths[reached_end][0]
    _, start = path
    if is_literal(start):
        return []
    sample = make_sample_clause([path], run)
    open_fact = OpenFact(fact.relation, open_end, start, sample, starts_at_subject)
    pairs: dict[NodePair, set[URIRef]] = {}
    for pair, class_iri in _walk_over_node(open_fact, run):
        pairs.setdefault(pair, set()).add(class_iri)
    return _rank_pairs_to_open_end(pairs, open_fact, run)


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
    for *cells, kind in rows:
        pair = _read_pair(cells)
        if pair is None or not _is_allowed(pair, run) or _is_way_back(pair):
            continue
        if not fact.starts_at_subject:
            pair = _reverse_pair(pair)
        class_iri: URIRef = RDFS.Resource
        if isinstance(kind, URIRef):
            class_iri = kind
        yield pair, class_iri


def _write_walk(
    fact: OpenFact, near_direction: Direction, far_directions: Sequence[Direction]
) -> str:
    """Return a SELECT of what is behind the nodes in one direction, each with the pairs that lead to it.

    A thing is there once for each pair, so that its classes are looked up once, and not for each
    node that leads to it.
    """
    near_predicate = FIRST[near_direction]
    near = _make_pattern(fact.start, near_predicate, "?_n", near_direction)
    nodes = (
        f"SELECT DISTINCT {near_predicate} ?_n WHERE {{ {fact.sample}{patterns_to_sparql([near])}"
        f" FILTER(!isLiteral(?_n)) }} LIMIT {MAX_NODES}"
    )
    columns = [near_predicate]
    patterns = []
    for direction in far_directions:
        columns.append(SECOND[direction])
        onward = _make_pattern("?_n", SECOND[direction], fact.open_end, direction)
        patterns.append(patterns_to_sparql([onward]))
    return (
        f"SELECT DISTINCT {' '.join(columns)} {fact.open_end}"
        f" WHERE {{ {{ {nodes} }} {unite_patterns(patterns)} }} LIMIT {MAX_THINGS}"
    )


def _is_way_back(pair: NodePair) -> bool:
    """Return whether the second predicate of a pair leads back by the first one."""
    (first, direction), (second, onward_direction) = pair
    return first == second and direction != onward_direction


def _reverse_pair(pair: NodePair) -> NodePair:
    """Return a pair of predicates as it is seen from its other end: in reverse order, directions swapped."""
    (first, direction), (second, onward_direction) = pair
    return (second, OPPOSITE_DIRECTION[onward_direction]), (first, OPPOSITE_DIRECTION[direction])


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
    names = name_predicates({iri: labels[iri] for iri in predicates}, run)
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
