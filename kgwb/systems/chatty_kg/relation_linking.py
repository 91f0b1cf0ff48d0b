"""Relation linking: ranked predicates for each fact of the QIR, in both directions (section 5.1.3).

No model is asked. ``fast`` also links a relation between two unknowns, by following the join from what is
linked: the best predicates of the neighbouring fact lead to sample vertices, whose predicates are the
candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rdflib import URIRef

from kgwb.flow import Direction, Link
from kgwb.kg.algebra import conjunction
from kgwb.kg.sparql import n3
from kgwb.run import Run, agent
from kgwb.systems.chatty_kg.records import QIR, Fact, LinkedRelation, RankedPredicate, is_unknown
from kgwb.systems.chatty_kg.settings import settings_of

Pattern = tuple[str, str, str]
Ends = dict[str, str]
TO_AGENT = re.compile(r"\w{3,}(or|er|ist|ian)s?|by")
NO_AGENT = re.compile(
    r"(\w*(mother|father|brother)|sister|daughter|number|member|character|partner|paper|power)s?"
)
AGAINST = 0.98
"""Factor on the similarity of the direction that a fact's wording speaks against, where both are found."""
BEAM = 4
"""Partial paths followed at a time to link the relations behind a join."""


@dataclass(frozen=True, slots=True)
class Path:
    """Triple patterns that lead from linked vertices to an unknown, and the product of their similarities."""

    patterns: tuple[Pattern, ...] = ()
    score: float = 1.0


@dataclass(slots=True)
class Reached:
    """What is known of each end of a fact so far: its term in SPARQL, and how an unknown is reached."""

    terms: Ends
    paths: dict[str, tuple[Path, ...]] = field(default_factory=dict)

    def knows(self, end: str) -> bool:
        return not self.terms[end].startswith("?") or end in self.paths

    def paths_to(self, end: str) -> tuple[Path, ...]:
        return self.paths.get(end, (Path(),))


def link_relations(qir: QIR, links: Sequence[Link], run: Run) -> tuple[LinkedRelation, ...]:
    """The ranked predicates of every fact, in the QIR's order; facts that nothing linked touches get none."""
    reached = Reached(terms_of(qir, links))
    linked: dict[Fact, LinkedRelation] = {}
    waiting = list(qir.facts)
    while waiting:
        fact = next((fact for fact in waiting if any(reached.knows(end) for end in fact.ends)), waiting[0])
        waiting.remove(fact)
        reachable = run.settings.fast or any(not reached.terms[end].startswith("?") for end in fact.ends)
        ends = [end for end in dict.fromkeys(fact.ends) if reachable and reached.knows(end)]
        paths = {
            end: tuple((path.patterns, reached.terms[end]) for path in reached.paths_to(end)) for end in ends
        }
        linked[fact] = link_relation(fact, paths, run)
        _extend(reached, linked[fact])
    return tuple(linked[fact] for fact in qir.facts)


def terms_of(qir: QIR, links: Sequence[Link]) -> Ends:
    """Each end of the QIR's facts as a SPARQL term: a linked vertex's IRI, else a variable."""
    vertices = {link.entity: n3(link.vertex.iri) for link in links if link.vertex}
    ends = (*qir.entities, *qir.unknowns)
    return {
        end: vertices.get(end) or (end if is_unknown(end) else f"?unlinked{n}") for n, end in enumerate(ends)
    }


@agent("relation_linking", subject="fact", kind="sparql")
def link_relation(
    fact: Fact, paths: dict[str, tuple[tuple[tuple[Pattern, ...], str], ...]], run: Run
) -> LinkedRelation:
    """Rank the predicates found at the fact's ends by the similarity of their names with the relation."""
    pairs: dict[tuple[URIRef, Direction], None] = {}
    for end, ways in paths.items():
        for patterns, term in ways:
            pairs.update(dict.fromkeys(_predicates(patterns, term, end == fact.subject, run)))
    names = run.kg.names([iri for iri, _ in pairs])
    distinct = sorted(set(names.values()))
    close = dict(zip(distinct, run.similarity(fact.relation, distinct), strict=True))
    ranked = [RankedPredicate(iri, names[iri], way, close[names[iri]]) for iri, way in pairs]
    if run.settings.fast:
        ranked = [_oriented(predicate, fact, pairs) for predicate in ranked]
    ranked.sort(key=lambda p: (-p.similarity, p.iri, p.direction == "in"))
    iris = list(dict.fromkeys(predicate.iri for predicate in ranked))  # both directions of one count once
    kept = {*iris[: settings_of(run).predicates_per_relation]}
    best = [predicate for predicate in ranked if predicate.iri in kept]
    if len(best) < len(ranked):
        run.note(f"{len(ranked)} predicates found, {len(best)} kept")
    return LinkedRelation(fact, tuple(best))


def _oriented(
    predicate: RankedPredicate, fact: Fact, pairs: Collection[tuple[URIRef, Direction]]
) -> RankedPredicate:
    """A predicate, less like the relation if it is also found in the direction the wordings speak for.

    "X influenced Y" is the predicate "influenced by" from Y to X, and "X cites Y" is "cites" from X to Y.
    """
    fits: Direction = "out" if _to_agent(fact.relation) == _to_agent(predicate.name) else "in"
    if predicate.direction == fits or (predicate.iri, fits) not in pairs:
        return predicate
    return replace(predicate, similarity=round(predicate.similarity * AGAINST, 4))


def _to_agent(name: str) -> bool:
    """Whether a relation leads from a thing to whoever did it: "directed by", "director"."""
    last = name.casefold().rpartition(" ")[2]
    return bool(TO_AGENT.fullmatch(last)) and not NO_AGENT.fullmatch(last)


def _predicates(
    patterns: tuple[Pattern, ...], term: str, is_subject: bool, run: Run
) -> Iterable[tuple[URIRef, Direction]]:
    """Predicates at a vertex or a sample of those that patterns lead to, as the fact's subject sees them."""
    most = settings_of(run).join_sample
    sample = f"{{ SELECT DISTINCT {term} WHERE {{ {conjunction(patterns)} }} LIMIT {most} }} "
    at = sample if patterns else ""
    hidden = run.kg.vocabulary.hidden
    for outgoing in (True, False):
        triple = f"{term} ?_p ?_o" if outgoing else f"?_o ?_p {term}"  # no unknown of a QIR begins with "_"
        rows = run.kg.select(f"SELECT DISTINCT ?_p WHERE {{ {at}{triple} }}")
        way: Direction = "out" if outgoing == is_subject else "in"
        for (iri,) in rows.rows:
            if isinstance(iri, URIRef) and iri not in hidden:
                yield iri, way


def _extend(reached: Reached, linked: LinkedRelation) -> None:
    """Let the fact's best predicates lead on to the end that was not reached yet."""
    fact = linked.fact
    new = [end for end in dict.fromkeys(fact.ends) if not reached.knows(end)]
    if len(new) != 1:
        return
    (known,) = {*fact.ends} - {*new} or {new[0]}
    ways = [
        Path(
            (*path.patterns, pattern_of(fact, predicate, reached.terms)),
            path.score * max(predicate.similarity, 0.01),
        )
        for path in reached.paths_to(known)
        for predicate in linked.predicates
    ]
    if ways:
        reached.paths[new[0]] = tuple(sorted(ways, key=lambda way: -way.score)[:BEAM])


def pattern_of(fact: Fact, predicate: RankedPredicate, terms: Ends) -> Pattern:
    """The triple pattern of a fact under one predicate and direction."""
    subject, object_ = terms[fact.subject], terms[fact.object]
    ends = (subject, object_) if predicate.direction == "out" else (object_, subject)
    return ends[0], n3(predicate.iri), ends[1]
