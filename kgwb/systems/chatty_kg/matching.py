"""Matching: entities to vertices and classes, relations to ranked predicates (section 5.1, Algorithm 2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from rdflib import BNode, URIRef
from rdflib.namespace import RDFS

from kgwb.flow import Candidate, Context, Direction, Link, RetrievedCandidates
from kgwb.kg.algebra import TriplePattern, patterns_to_sparql
from kgwb.kg.base import SCHEMA_NAMESPACES
from kgwb.kg.queries import describe_vertices
from kgwb.kg.sparql import n3, values_clause
from kgwb.kg.text import normalize
from kgwb.run import Run, agent
from kgwb.systems.chatty_kg.records import (
    OCCUPATION_RELATIONS,
    QIR,
    Fact,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
    is_unknown,
)
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.linking import compute_similarities, search_candidates, select_vertex
from kgwb.systems.queries import label_terms
from kgwb.terms import Term

MAX_SAMPLED_TYPES, MAX_CLASSES = 100_000, 1_000
"""Types of things looked at to find the classes of a graph, and classes found at most."""
MAX_TRIPLES_PER_SIDE, MAX_SHOWN_VALUES, MAX_VALUE_CHARS = 200, 3, 80
"""Triples read on each side of a homonym; values shown of a relation, and characters of each."""


@agent("entity_linking", subject="entity")
def link_entity(
    entity: str, question: str, context: Context, kinds: Collection[str], run: Run
) -> Link:
    """Retrieve the candidates of one entity and choose one."""
    return select_vertex(retrieve_candidates(entity, question, kinds, run), question, context, run)


@agent("entity_retriever", subject="entity", kind="search")
def retrieve_candidates(
    entity: str, question: str, kinds: Collection[str], run: Run
) -> RetrievedCandidates:
    """At most v_limit candidates, best first; ``fast`` keeps those worth showing and describes them.

    To an entity that is a kind of thing ``fast`` also offers the graph's classes, which no label search
    finds, and it shows what the relations of homonyms lead to.
    """
    retrieved = search_candidates(entity, run)
    if entity in kinds and run.settings.is_fast:
        return _add_classes(retrieved, run)
    same = [candidate.iri for candidate in retrieved.candidates if candidate.relations]
    if len(same) < 2 or not run.settings.is_fast:
        return retrieved
    parts = " UNION ".join(
        f'{{ SELECT ({n3(iri)} AS ?v) ?p ?o ("{way}" AS ?way) WHERE {{ {triple} }} LIMIT {MAX_TRIPLES_PER_SIDE} }}'
        for iri in same
        for way, triple in (("", f"{n3(iri)} ?p ?o"), (" (incoming)", f"?o ?p {n3(iri)}"))
    )
    rows = run.kg.select(f"SELECT ?v ?p ?o ?way WHERE {{ {parts} }}").rows
    rows = tuple(row for row in rows if row[2] != row[0])
    labels = label_terms((end for row in rows for end in row[1:3] if end is not None), run)
    values: dict[tuple[Term, str], set[str]] = {}
    for vertex, predicate, value, way in rows:
        if vertex and predicate and value is not None and not isinstance(value, BNode):
            values.setdefault((vertex, f"{labels[predicate]}{way}"), set()).add(labels[value])
    asked = {*normalize(question).split()} - {*normalize(retrieved.entity).split()}

    def shown(iri: URIRef, relation: str) -> str:
        shared = {
            label: len(asked & {*normalize(label).split()})
            for label in values.get((iri, relation), ())
        }
        best = sorted(shared, key=lambda label: (-shared[label], label))[:MAX_SHOWN_VALUES]
        named = [label for label in best if shared[label]] or best[:1]
        words = ", ".join(label[:MAX_VALUE_CHARS] for label in named)
        return f"{relation}: {words}" if words else relation

    with_values = []
    for each in retrieved.candidates:
        with_values.append(
            replace(each, relations=tuple(shown(each.iri, r) for r in each.relations))
        )
    return replace(retrieved, candidates=tuple(with_values))


def _add_classes(retrieved: RetrievedCandidates, run: Run) -> RetrievedCandidates:
    """The classes and vertices that are called so; if none is, the likest classes and the candidates."""
    types, above = values_clause("?t", run.kg.vocabulary.types), n3(RDFS.subClassOf)
    rows = run.kg.select(
        f"SELECT DISTINCT ?c WHERE {{"
        f" {{ SELECT ?c WHERE {{ {types} ?v ?t ?c }} LIMIT {MAX_SAMPLED_TYPES} }}"
        f" UNION {{ ?c {above} ?other }} UNION {{ ?other {above} ?c }} }} LIMIT {MAX_CLASSES}"
    ).rows
    iris = {
        c for (c,) in rows if isinstance(c, URIRef) and not str(c).startswith(SCHEMA_NAMESPACES)
    }
    names, most = run.kg.names(sorted(iris)), run.settings.shown_candidates
    scores = {iri: 1.0 for iri in names if normalize(names[iri]) == normalize(retrieved.entity)}
    others = [candidate for candidate in retrieved.candidates if candidate.score >= 1]
    whole = bool(scores or others)
    if not whole:
        close = compute_similarities(retrieved.entity, names.values(), run) if names else {}
        ranked = sorted(names, key=lambda iri: (-close[names[iri]], iri))
        best = ranked[: most - min(len(retrieved.candidates), most // 2)]
        scores = {
            iri: round(min(max(close[names[iri]], 0.0), 0.99), 4) for iri in best
        }  # 1 is the name
        others = [*retrieved.candidates]
    known = describe_vertices(run.kg, [*scores])
    classes = [
        Candidate(iri, names[iri], score, ("class",), known[iri].description)
        for iri, score in scores.items()
    ]
    offered = (*classes, *(candidate for candidate in others if candidate.iri not in scores))
    return replace(retrieved, candidates=offered if whole else offered[:most])


TermByEnd = dict[str, str]
PathsByEnd = dict[str, tuple[tuple[str, str], ...]]
"""By end what leads to it, in SPARQL, and its own term."""
DOER_WORD = re.compile(r"\w{3,}(or|er|ist|ian)s?|by")
NOT_DOER_WORD = re.compile(
    r"(\w*(mother|father|brother)|sister|daughter|number|member|character|partner|paper|power)s?"
)
WRONG_DIRECTION_FACTOR = 0.98
"""Factor on the similarity of the direction that a fact's wording speaks against, where both are found."""
BEAM_WIDTH = 4
"""Partial paths followed at a time to link the relations behind a join."""


def link_relations(qir: QIR, links: Sequence[Link], run: Run) -> tuple[LinkedRelation, ...]:
    """The ranked predicates of every fact, in the QIR's order; facts that nothing linked touches get none.

    A path to an end is what leads to it from linked vertices, in SPARQL, with the product of similarities.
    """
    terms = assign_terms(qir, links)
    paths = {end: [("", 1.0)] for end, term in terms.items() if not term.startswith("?")}
    vertices = {*paths}
    linked: dict[Fact, LinkedRelation] = {}
    waiting = sorted(qir.facts, key=lambda fact: run.settings.is_fast and not fact.states_type)
    while waiting:
        fact = next(
            (fact for fact in waiting if not paths.keys().isdisjoint(fact.ends)), waiting[0]
        )
        waiting.remove(fact)
        reachable = run.settings.is_fast or not vertices.isdisjoint(fact.ends)
        ends = [end for end in dict.fromkeys(fact.ends) if reachable and end in paths]
        known = {end: tuple((where, terms[end]) for where, _ in paths[end]) for end in ends}
        linked[fact] = link_relation(fact, known, run)
        new = [end for end in dict.fromkeys(fact.ends) if end not in paths]
        if len(new) == 1:  # the fact's best predicates lead on to it
            (start,) = {*fact.ends} - {*new} or {new[0]}
            steps = [(make_pattern(fact, p, terms), p.similarity) for p in linked[fact].predicates]
            ways = [
                (
                    f"{where} {patterns_to_sparql([pattern])} {among}".strip(),
                    score * max(similarity, 0.01),
                )
                for where, score in paths.get(start, [("", 1.0)])
                for (pattern, among), similarity in steps
            ]
            if ways:
                paths[new[0]] = sorted(ways, key=lambda way: -way[1])[:BEAM_WIDTH]
    return tuple(linked[fact] for fact in qir.facts)


def assign_terms(qir: QIR, links: Sequence[Link]) -> TermByEnd:
    """Each end of the QIR's facts as a SPARQL term: a linked vertex's IRI, else a variable."""
    vertices = {link.entity: n3(link.vertex.iri) for link in links if link.vertex}
    ends = (*qir.entities, *qir.unknowns)
    return {
        end: vertices.get(end) or (end if is_unknown(end) else f"?unlinked{n}")
        for n, end in enumerate(ends)
    }


@agent("relation_linking", subject="fact", kind="sparql")
def link_relation(fact: Fact, paths: PathsByEnd, run: Run) -> LinkedRelation:
    """Rank the predicates found at the fact's ends by the similarity of their names with the relation."""
    types: tuple[RankedPredicate, ...] = ()
    vertex = paths[fact.object][0][1] if fact.states_type and fact.object in paths else ""
    if run.settings.is_fast and vertex.startswith(
        "<"
    ):  # a class, maybe: by which predicates has it instances?
        rows = run.kg.select(
            f"SELECT DISTINCT ?_p ?_c WHERE {{ ?_c {n3(RDFS.subClassOf)}* {vertex}"
            f" {values_clause('?_p', run.kg.vocabulary.types)}"
            f" FILTER EXISTS {{ ?_v ?_p ?_c }} }}"
        ).rows
        classes: dict[URIRef, list[URIRef]] = {}
        for by, kind in rows:
            if isinstance(by, URIRef) and isinstance(kind, URIRef):
                classes.setdefault(by, []).append(kind)
        called, by_predicate = run.kg.names(sorted(classes)), sorted(classes.items())
        types = tuple(
            RankedPredicate(p, called[p], "out", 1.0, tuple(sorted(c))) for p, c in by_predicate
        )
    if (
        types and fact.relation.casefold() not in OCCUPATION_RELATIONS
    ):  # all else that leads to a class is the ontology's
        return LinkedRelation(fact, types)
    own = {predicate.iri for predicate in types}
    pairs: dict[tuple[URIRef, Direction], None] = {}
    for end, ways in paths.items():
        for where, term in ways:
            at_end = _find_predicates(where, term, end == fact.subject, run)
            pairs.update(((iri, way), None) for iri, way in at_end if iri not in own)
    names = run.kg.names([iri for iri, _ in pairs])
    close = compute_similarities(fact.relation, names.values(), run)
    ranked = [RankedPredicate(iri, names[iri], way, close[names[iri]]) for iri, way in pairs]
    if run.settings.is_fast:
        # "X influenced Y" is the predicate "influenced by" from Y to X, and "X cites Y" is "cites" from X to
        # Y: less like the relation is what is also found in the direction that the wordings speak for
        for place, predicate in enumerate(ranked):
            fits: Direction = (
                "out" if _leads_to_doer(fact.relation) == _leads_to_doer(predicate.name) else "in"
            )
            if predicate.direction != fits and (predicate.iri, fits) in pairs:
                ranked[place] = replace(
                    predicate, similarity=round(predicate.similarity * WRONG_DIRECTION_FACTOR, 4)
                )
        ranked += types
    ranked.sort(key=lambda p: (-p.similarity, p.iri, p.direction == "in"))
    iris = list(
        dict.fromkeys(predicate.iri for predicate in ranked)
    )  # both directions of one count once
    kept = {*iris[: ChattySettings.of_run(run).predicates_per_relation]}
    best = [predicate for predicate in ranked if predicate.iri in kept]
    if len(best) < len(ranked):
        run.note(f"{len(ranked)} predicates found, {len(best)} kept")
    return LinkedRelation(fact, tuple(best))


def _leads_to_doer(name: str) -> bool:
    """Whether a relation leads from a thing to whoever did it: "directed by", "director"."""
    last = name.casefold().rpartition(" ")[2]
    return bool(DOER_WORD.fullmatch(last)) and not NOT_DOER_WORD.fullmatch(last)


def _find_predicates(
    where: str, term: str, is_subject: bool, run: Run
) -> Iterable[tuple[URIRef, Direction]]:
    """Predicates at a vertex or a sample of those that a path leads to, as the fact's subject sees them."""
    most = ChattySettings.of_run(run).join_sample
    at = f"{{ SELECT DISTINCT {term} WHERE {{ {where} }} LIMIT {most} }} " if where else ""
    hidden = run.kg.vocabulary.excluded_predicates
    for outgoing in (True, False):
        triple = (
            f"{term} ?_p ?_o" if outgoing else f"?_o ?_p {term}"
        )  # no unknown of a QIR begins with "_"
        rows = run.kg.select(f"SELECT DISTINCT ?_p WHERE {{ {at}{triple} }}")
        way: Direction = "out" if outgoing == is_subject else "in"
        for (iri,) in rows.rows:
            if isinstance(iri, URIRef) and iri not in hidden:
                yield iri, way


def make_pattern(
    fact: Fact, predicate: RankedPredicate, terms: TermByEnd
) -> tuple[TriplePattern, str]:
    """The triple pattern of a fact under one predicate and direction, with the FILTER that it needs.

    A type is the one class that has instances, else one of several; no unknown of a QIR begins with "_".
    """
    subject, object_, among = terms[fact.subject], terms[fact.object], ""
    if len(predicate.classes) > 1:
        object_ = f"?_class{[*terms].index(fact.object)}"
        among = f"FILTER({object_} IN ({', '.join(map(n3, predicate.classes))})) "
    elif predicate.classes:
        object_ = n3(predicate.classes[0])
    ends = (subject, object_) if predicate.direction == "out" else (object_, subject)
    return (ends[0], n3(predicate.iri), ends[1]), among


@agent("matching")
def match_qir(qir: QIR, question: str, context: Context, run: Run) -> LinkingResult:
    """EntToVertex and RelToPred of the QIR: each entity side by side, then each relation along the joins."""
    links = run.map(link_entity, qir.entities, question, context, qir.type_mentions)
    return LinkingResult(links, link_relations(qir, links, run))
