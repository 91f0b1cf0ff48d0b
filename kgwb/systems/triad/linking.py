"""Triad's linking: mentions to vertices, and triplets to relations one hop around these (3.2)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from operator import attrgetter

from rdflib import BNode, URIRef

from kgwb.build import Candidate, Direction, Run, Term, agent, retrieve_candidates
from kgwb.build.graph import find_predicates, n3, union_clause, values_clause
from kgwb.build.linking import compute_similarities
from kgwb.systems.triad.decision_maker import choose_entities, choose_relations
from kgwb.systems.triad.examples import add_examples
from kgwb.systems.triad.records import Choice, Relation, Triplet, Triplets
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.templates import list_mentions

TermsByEnd = Mapping[str, Sequence[Term]]
"""The vertices or values that each end of triplets may stand for, by the text of the end."""
OPPOSITE_DIRECTION: Mapping[Direction, Direction] = {"out": "in", "in": "out"}


def link_triplets(
    triplets: Triplets, question: str, failed: tuple[str, ...], run: Run
) -> tuple[Choice, ...]:
    """Choose vertices for each mention, and then relations of the graph for each triplet, and return all choices.

    The choices for the mentions come first, then those for the triplets, in their order; if a
    mention has no vertex, there are none for the triplets. Triplets are linked outward from the
    mentions: those with a mention first, then those with an end that the relations of others lead
    to. If nothing leads to a triplet's ends, its relations are not looked for, and its choice is
    empty. ``failed`` says why each earlier attempt found no query. Asks the graph and the model.
    """
    mentions = list_mentions(triplets)
    terms: dict[str, Sequence[Term]] = {}
    entity_choices = []
    candidates_by_mention = run.map(retrieve_candidates, mentions)
    for mention, candidates in zip(mentions, candidates_by_mention, strict=True):
        choice = choose_entities(candidates, mention, question, failed, run)
        entity_choices.append(choice)
        vertices = [option.iri for option in choice.chosen if isinstance(option, Candidate)]
        terms[mention] = tuple(vertices)
    if not all(terms.values()):
        return tuple(entity_choices)

    relation_choices: dict[Triplet, Choice] = {}
    waiting = list(triplets)
    while waiting:
        triplet = _find_nearest_triplet(waiting, mentions, terms)
        waiting.remove(triplet)
        known_ends = _select_ends(triplet, mentions) or _select_ends(triplet, terms)
        known_terms = {end: terms[end] for end in known_ends}
        if not any(known_terms.values()):
            reason = "nothing leads to its ends"
            relation_choices[triplet] = Choice(str(triplet), (), reason, was_looked_for=False)
            continue
        relations = find_relations(triplet, known_terms, run)
        choice = choose_relations(relations, triplet, question, failed, run)
        relation_choices[triplet] = choice
        terms |= sample_reached_terms(triplet, choice, terms, run)
    return (*entity_choices, *[relation_choices[triplet] for triplet in triplets])


def _find_nearest_triplet(
    triplets: Sequence[Triplet], mentions: Container[str], terms: TermsByEnd
) -> Triplet:
    """Return the triplet whose relations are chosen next.

    It is the first one with a mention, else the first with an end in ``terms``, else the first.
    """
    for known_ends in (mentions, terms):
        for triplet in triplets:
            if _select_ends(triplet, known_ends):
                return triplet
    return triplets[0]


def _select_ends(triplet: Triplet, ends: Container[str]) -> list[str]:
    """Return the ends of a triplet that are among ``ends``."""
    return [end for end in triplet.ends if end in ends]


@agent("relations", subject="triplet", kind="sparql")
def find_relations(triplet: Triplet, ends: TermsByEnd, run: Run) -> tuple[Relation, ...]:
    """Return the relations one hop around the known ends of a triplet (F_rs in Equation 6).

    ``ends`` has the terms of these ends. Blank nodes are left out, since a query cannot name them.
    A relation has the direction that the graph has, or always "out" with the setting
    ``as_written``. At most ``shown_relations`` are returned, the names most similar to the
    triplet's relation first, equals by IRI, with examples if ``relation_examples`` says so. No
    model is asked.
    """
    settings = TriadSettings.of_run(run)
    found: dict[tuple[URIRef, Direction], None] = {}
    for end, terms in ends.items():
        named_terms = [term for term in terms if not isinstance(term, BNode)]
        for iri, direction in find_predicates(run.kg, *named_terms):
            if settings.as_written:
                found[iri, "out"] = None
            elif end == triplet.subject:
                found[iri, direction] = None
            else:
                found[iri, OPPOSITE_DIRECTION[direction]] = None
    if not found:
        return ()

    names = run.kg.names([iri for iri, _ in found])
    similarities = compute_similarities(triplet.relation, names.values(), run)
    relations = []
    for iri, direction in found:
        name = names[iri]
        relations.append(Relation(iri, name, direction, similarities[name]))
    relations.sort(key=lambda relation: (relation.iri, relation.direction == "in"))
    relations.sort(key=attrgetter("similarity"), reverse=True)
    best = relations[: settings.shown_relations]
    if settings.relation_examples and settings.relation_options == "triples":
        best = add_examples(best, triplet, ends, run)
    return tuple(best)


def sample_reached_terms(
    triplet: Triplet, choice: Choice, ends: TermsByEnd, run: Run
) -> TermsByEnd:
    """Return up to ``join_sample`` terms that the chosen relations lead to, by the triplet's unknown end.

    Unless exactly one end of the triplet is in ``ends`` and a relation was chosen, the mapping is
    empty. With the setting ``as_written`` relations are followed in both directions, since that of
    the template is not known yet. One query is sent.
    """
    settings = TriadSettings.of_run(run)
    known_ends = _select_ends(triplet, ends)
    if len(known_ends) != 1 or not choice.chosen:
        return {}
    [known] = known_ends
    [unknown] = [end for end in triplet.ends if end != known]
    forward_direction = "out" if known == triplet.subject else "in"
    patterns = []
    for relation in choice.chosen:
        if not isinstance(relation, Relation):
            continue
        predicate = n3(relation.iri)
        is_forward = relation.direction == forward_direction
        if settings.as_written or is_forward:
            patterns.append(f"?_v {predicate} ?_x")
        if settings.as_written or not is_forward:
            patterns.append(f"?_x {predicate} ?_v")
    named_terms = [term for term in ends[known] if not isinstance(term, BNode)]
    where = f"{values_clause('?_v', named_terms)} {union_clause(patterns)}"
    limit = settings.join_sample
    result = run.kg.select(f"SELECT DISTINCT ?_x WHERE {{ {where} }} LIMIT {limit}")
    reached = [term for (term,) in result.rows if term is not None]
    return {unknown: tuple(reached)}
