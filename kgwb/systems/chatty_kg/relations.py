"""Relation linking (Chatty-KG, section 5.1.3; Algorithm 2, lines 12 to 15): ranked predicates of facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.build import Direction, Link, Run, agent
from kgwb.build.graph import (
    TriplePattern,
    n3,
    patterns_to_sparql,
    union_clause,
    values_clause,
    variables_of,
)
from kgwb.build.linking import compute_similarities
from kgwb.systems.chatty_kg.over_node import (
    find_predicates_over_node,
    find_predicates_to_open_end,
)
from kgwb.systems.chatty_kg.predicates import (
    PREDICATE_VARIABLES,
    Pair,
    PathsByEnd,
    TermByEnd,
    is_literal,
    make_ranking_key,
    make_samples_clause,
    name_predicates,
    select_predicates,
    select_predicates_between,
    unite_patterns,
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

DOER_WORD = re.compile(r"\w{3,}(or|er|ist|ian)s?|by")
"""The last word of a relation that leads to a doer: "director", "directed by"."""
NOT_DOER_WORD = re.compile(
    r"(\w*(mother|father|brother)|sister|daughter|number|member|character|partner|paper|power)s?"
)
"""Words that end like the name of a doer but are none."""
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
        if not _leads_on(fact, waiting, paths):
            continue
        new_paths = _extend_paths(paths, linked[fact], terms)
        for end, extended in new_paths.items():
            if not settings.joins_over_node:
                paths[end] = extended[:BEAM_WIDTH]
            elif _has_one_start(fact, paths_to_ends):
                # Every predicate was found at it, so that each path leads to something.
                paths[end] = extended[:BEAM_WIDTH_WITH_NODES]
            else:
                paths[end] = _keep_leading_paths(extended, run)
    return tuple(linked[fact] for fact in qir.facts)


def _begin_paths(terms: TermByEnd, links: Sequence[Link]) -> dict[str, list[Path]]:
    """Return the paths of the ends that are linked: one for each, which has no step yet."""
    paths = {}
    for end, term in terms.items():
        if not is_unknown(term):
            paths[end] = [Path("", 1.0)]
    for link in links:
        if link.others and link.entity in terms:
            vertices = _list_vertices(link, terms[link.entity])
            paths[link.entity] = [Path(vertices, 1.0)]
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


def _list_vertices(link: Link, term: str) -> str:
    """Return the VALUES clause that binds a term to all vertices of a link."""
    return values_clause(term, [vertex.iri for vertex in link.vertices])


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


def _choose_next_fact(waiting: Sequence[Fact], paths: Iterable[str]) -> Fact:
    """Return the first waiting fact with an end that a path leads to; the first of all if there is none.

    ``paths`` are the ends that paths lead to.
    """
    reached_ends = set(paths)
    for fact in waiting:
        if not reached_ends.isdisjoint(fact.ends):
            return fact
    return waiting[0]


def _leads_on(fact: Fact, waiting: Iterable[Fact], paths: Collection[str]) -> bool:
    """Return whether a waiting fact has an end of this fact that no path leads to yet.

    ``paths`` are the ends that paths lead to.
    """
    new_ends = {end for end in fact.ends if end not in paths}
    return not all(new_ends.isdisjoint(each.ends) for each in waiting)


def _extend_paths(
    paths: Mapping[str, Sequence[Path]], relation: LinkedRelation, terms: TermByEnd
) -> dict[str, list[Path]]:
    """Return the paths that lead over a linked fact to its one end without paths, best score first.

    Each path to its other end is continued by each predicate of the fact; scores are multiplied by
    the similarity. Empty if none or both of its ends are without paths, or if it has no predicate.
    """
    fact = relation.fact
    new_ends = {end for end in fact.ends if end not in paths}
    if len(new_ends) != 1:
        return {}
    (new_end,) = new_ends
    start = fact.object if new_end == fact.subject else fact.subject
    extended = []
    for path in paths.get(start, [Path("", 1.0)]):  # a fact such as ⟨?x, knows, ?x⟩ has no start
        for predicate in relation.predicates:
            patterns, class_filter = make_patterns(fact, predicate, terms)
            where = f"{path.where} {patterns_to_sparql(patterns)} {class_filter}".strip()
            score = path.score * max(predicate.similarity, MIN_STEP_SIMILARITY)
            extended.append(Path(where, score))
    extended.sort(key=lambda path: -path.score)
    return {new_end: extended} if extended else {}


def _has_one_start(fact: Fact, paths: PathsByEnd) -> bool:
    """Return whether one path leads to one end of a fact, and none to the other."""
    numbers = sorted(len(paths.get(end, ())) for end in fact.ends)
    return numbers == [0, 1]


def _keep_leading_paths(paths: Sequence[Path], run: Run) -> list[Path]:
    """Return the first BEAM_WIDTH_WITH_NODES paths that lead to anything in the graph.

    The graph is asked about PATHS_IN_A_QUERY in turn, about MAX_CHECKED_PATHS at most. If none of
    them leads to anything, the first path alone is returned.
    """
    leading: list[Path] = []
    checked = paths[:MAX_CHECKED_PATHS]
    for start in range(0, len(checked), PATHS_IN_A_QUERY):
        leading += _select_leading_paths(checked[start : start + PATHS_IN_A_QUERY], run)
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
        pattern = _make_pattern(subject, predicate.iri, object_, predicate.direction)
        return [pattern], class_filter
    positions = list(terms)
    first, last = [positions.index(end) for end in fact.ends]
    node = f"?_node{first}_{last}"
    to_node = _make_pattern(subject, predicate.iri, node, predicate.direction)
    onward = _make_pattern(node, predicate.onward, object_, predicate.onward_direction)
    return [to_node, onward], class_filter


def _make_pattern(start: str, predicate: URIRef, end: str, direction: Direction) -> TriplePattern:
    """Return the triple pattern that leads from one SPARQL term to another by a predicate.

    With the direction "in" the second term is the subject.
    """
    if direction == "in":
        start, end = end, start
    return start, n3(predicate), end


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
    if connecting is None or settings.linked_ends != "connecting":
        found.update(_find_predicates_at_ends(fact, paths, run))
    for predicate in type_predicates:
        found.discard((predicate.iri, "out"))
        found.discard((predicate.iri, "in"))
    pairs = _without_literal_subjects(found, fact, paths)
    ranked = _rank_predicates(pairs, fact.relation, run) + type_predicates
    over_node: list[RankedPredicate] = []
    if settings.joins_over_node and not connecting:
        over_node = find_predicates_over_node(fact, paths, run)
    ranked.sort(key=make_ranking_key)
    if connecting and settings.linked_ends == "connecting_first":
        ranked.sort(key=lambda each: (each.iri, each.direction) not in connecting)
    best = _keep_best(over_node + ranked, run)
    if settings.joins_over_node and not _has_predicate_like_relation(best):
        best += find_predicates_to_open_end(fact, paths, run)
        best.sort(key=make_ranking_key)
    return LinkedRelation(fact, tuple(best))


def _rank_predicates(pairs: Iterable[Pair], relation: str, run: Run) -> list[RankedPredicate]:
    """Return predicates with their names and the similarity of these with a relation, in the given order.

    With ``wording_decides_direction``, the similarity is lowered in directions that the wording
    speaks against (``_prefer_worded_direction``).
    """
    settings = ChattySettings.of_run(run)
    names = name_predicates([iri for iri, _ in pairs], run)
    similarities = compute_similarities(relation, names.values(), run)
    ranked = []
    for iri, direction in pairs:
        name = names[iri]
        ranked.append(RankedPredicate(iri, name, direction, similarities[name]))
    if settings.wording_decides_direction:
        ranked = _prefer_worded_direction(ranked, relation)
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


def _has_predicate_like_relation(ranked: Iterable[RankedPredicate]) -> bool:
    """Return whether any predicate is like its relation."""
    return any(predicate.similarity >= MIN_LIKE_RELATION for predicate in ranked)


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
    classes_clause = f"{where} " if where else ""
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
    """Return the predicates that connect the two linked ends of a fact, with their directions.

    The set may be empty. None is returned instead if not both ends are linked vertices, or if
    the setting ``linked_ends`` is "any_end". One query is made. Source: Chatty-KG, section
    5.1.3.
    """
    if ChattySettings.of_run(run).linked_ends == "any_end":
        return None
    linked = []
    for end in fact.ends:
        linked += [term for where, term in paths.get(end, ()) if not where]
    if len(linked) != len(fact.ends):
        return None
    subject, object_ = linked
    if is_literal(subject) or is_literal(object_):
        return None
    return select_predicates_between(subject, object_, "", run)


def _find_predicates_at_ends(fact: Fact, paths: PathsByEnd, run: Run) -> set[Pair]:
    """Return the predicates found at the ends of a fact, with their directions, by one query.

    The direction is seen from the subject of the fact. Of the vertices that a path leads to, a
    sample of ``join_sample`` is looked at. A literal has no outgoing triples, so none are looked
    for.
    """
    limit = ChattySettings.of_run(run).join_sample
    patterns = []
    for end, paths_to_end in paths.items():
        outgoing, incoming = PREDICATE_VARIABLES["out"], PREDICATE_VARIABLES["in"]
        if end != fact.subject:
            outgoing, incoming = incoming, outgoing
        wheres = [where for where, _ in paths_to_end]
        [term] = {term for _, term in paths_to_end}
        at_end = [f"?_o {incoming} {term}"]
        if not is_literal(term):
            at_end.insert(0, f"{term} {outgoing} ?_o")
        samples = make_samples_clause(wheres, term, limit)
        if samples:
            # The sample is taken once, and not once for each direction.
            patterns.append(f"{samples}{union_clause(at_end)}")
        else:
            patterns += at_end
    return select_predicates(patterns, run)


def _prefer_worded_direction(
    ranked: Iterable[RankedPredicate], relation: str
) -> list[RankedPredicate]:
    """Return predicates with a lower similarity in the direction that their wording speaks against.

    It is multiplied by WRONG_DIRECTION_FACTOR, only for a predicate that was found in both
    directions. "X influenced Y" means "influenced by" from Y to X, as only one of the two wordings
    leads to a doer. "X cites Y" means "cites" from X to Y.
    """
    found = {(predicate.iri, predicate.direction) for predicate in ranked}
    adjusted = []
    for predicate in ranked:
        worded: Direction = "in"
        if _leads_to_doer(relation) == _leads_to_doer(predicate.name):
            worded = "out"
        if predicate.direction != worded and (predicate.iri, worded) in found:
            similarity = round(predicate.similarity * WRONG_DIRECTION_FACTOR, 4)
            adjusted.append(replace(predicate, similarity=similarity))
        else:
            adjusted.append(predicate)
    return adjusted


@lru_cache(maxsize=4096)  # questions have the same few relations and predicates
def _leads_to_doer(name: str) -> bool:
    """Return whether a relation leads from a thing to its doer: "directed by", "director".

    The last word decides, see DOER_WORD and NOT_DOER_WORD.
    """
    last_word = name.casefold().rpartition(" ")[2]
    return bool(DOER_WORD.fullmatch(last_word)) and not NOT_DOER_WORD.fullmatch(last_word)
