"""What gold means to Chatty-KG's agents: their stages, the rungs of the oracle ladder, what was linked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import permutations, product
from types import MappingProxyType
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.flow import Candidate as Vertex
from kgwb.flow import CandidateQuery, Direction, Link
from kgwb.kg.algebra import TriplePattern
from kgwb.run import Run
from kgwb.run.gold import GoldDecisions, GoldQuery, LinkedIris, Rung
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
)

AGENTS_BY_STAGE = {
    "understanding": "translator context understanding classifier rephraser qir",
    "linking": "matching entity_linking entity_retriever vertex_selection relation_linking",
    "execution and selection": "query_generator predicate_selection execution what_else answer_writer",
}
STAGE_BY_AGENT = MappingProxyType(
    {agent: stage for stage, agents in AGENTS_BY_STAGE.items() for agent in agents.split()}
)
"""The stages whose seconds the paper reports (section 7.4, Figure 4)."""
MAX_ALIGNED_FACTS = 4
"""Facts of a QIR that are laid beside a gold query in every order."""


def collect_linked_iris(run: Run) -> LinkedIris:
    """Vertices of the links, predicates of the selected queries, and what both were chosen from."""

    def outputs(agent: str) -> list[Any]:
        return [step.output for step in run.steps if step.agent == agent and step.done]

    queries = [query for output in outputs("predicate_selection") for query in output.queries]
    return LinkedIris(
        frozenset(
            str(output.vertex.iri) for output in outputs("vertex_selection") if output.vertex
        ),
        frozenset(predicate[1:-1] for query in queries for _, predicate, _ in query.patterns),
        frozenset(str(c.iri) for output in outputs("entity_retriever") for c in output.candidates),
        frozenset(str(p.iri) for output in outputs("relation_linking") for p in output.predicates),
    )


# --- the rungs


def make_question_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """What the question means outside its dialogue."""
    if not gold.standalone or gold.standalone == _get_output(run, "understanding"):
        return None
    return Rung("understanding", {"understanding": gold.standalone})


def make_qir_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """The facts of the gold query, in the words of the run where its own QIR has as many and so connected.

    How labels and relations are found under a question's words is for the linkers to know, so these stay.
    """
    own = _get_output(run, "qir")
    fit = _align_qir(own, gold)
    asked = _get_output(run, "understanding") or run.question
    question = asked.casefold()

    def name(words: str, term: str) -> str:
        label = gold.names.get(term, words)
        if words.startswith("?") or words.casefold() == label.casefold():
            return words
        return (
            words if _contains_word(words, question) and label.casefold() not in question else label
        )

    if fit:
        # With the graph's names for what it words in none of the question's words, and with the label of a
        # gold vertex that the question holds and the QIR cuts or stretches
        worded = []
        for fact, (pattern, _) in fit.facts.items():
            subject, object_ = (name(end, fit.ends[end]) for end in fact.ends)
            known = _contains_word(fact.relation, question)
            relation = fact.relation if known else gold.names.get(pattern[1], fact.relation)
            worded.append(Fact(subject, relation, object_))
        corrected = QIR(tuple(worded), own.target, own.kind)
    else:  # in the graph's own words; a QIR cannot hold literals
        simple = [pattern for pattern in gold.patterns if all(end[0] in "<?" for end in pattern)]
        facts = (Fact(*(gold.names.get(term, term) for term in pattern)) for pattern in simple)
        corrected = QIR(tuple(facts), gold.target, gold.kind)
    return None if corrected == own or not corrected.facts else Rung("qir", {"qir": corrected})


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """The gold vertex of each entity that is linked otherwise, or not at all."""
    fit = _align_qir(_get_output(run, "qir"), gold)
    values, blamed = {}, "vertex_selection"
    for entity, term in fit.ends.items() if fit else ():
        link = _get_output(run, f"entity_linking[{entity}]")
        if not term.startswith("<") or (
            link and link.vertex and link.vertex.iri == URIRef(term[1:-1])
        ):
            continue
        candidates = getattr(_get_output(run, f"entity_retriever[{entity}]"), "candidates", ())
        offered = next(
            (candidate for candidate in candidates if candidate.iri == URIRef(term[1:-1])), None
        )
        blamed = blamed if offered else "entity_retriever"
        vertex = offered or Vertex(URIRef(term[1:-1]), gold.names.get(term, term))
        values[f"entity_linking[{entity}]"] = Link(entity, vertex, candidates, "gold")
    return Rung(blamed, values) if values else None


def make_predicate_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """The gold predicate of each relation whose ranked predicates lack it."""
    fit = _align_qir(_get_output(run, "qir"), gold)
    values = {}
    for fact, (pattern, way) in fit.facts.items() if fit else ():
        step, iri = f"relation_linking[{fact}]", URIRef(pattern[1][1:-1])
        ranked = _get_output(run, step)
        if not ranked or (iri, way) not in [(p.iri, p.direction) for p in ranked.predicates]:
            name = gold.names.get(pattern[1], str(iri))
            values[step] = LinkedRelation(fact, (RankedPredicate(iri, name, way, 1.0),))
    return Rung("relation_linking", values) if values else None


def make_selection_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """The one generated query that has the patterns of the gold query, if there is one."""
    patterns = {*_rename_gold_unknowns(run, gold)}
    candidates = getattr(_get_output(run, "query_generator"), "queries", ())
    right = next((candidate for candidate in candidates if {*candidate.patterns} == patterns), None)
    chosen = QuerySelection((right,), right.predicates) if right else None
    if chosen is None or chosen.queries == getattr(
        _get_output(run, "predicate_selection"), "queries", ()
    ):
        return None
    return Rung("predicate_selection", {"predicate_selection": chosen})


def make_query_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """The gold query itself, and nothing that execution could miss."""
    patterns = _rename_gold_unknowns(run, gold)
    names = tuple(gold.names.get(predicate, predicate) for _, predicate, _ in patterns)
    candidate = CandidateQuery(gold.sparql, patterns, names, 1.0)
    values = {
        "matching": LinkingResult((), ()),
        "query_generator": GeneratedQueries((candidate,), 1),
        "predicate_selection": QuerySelection((candidate,), names),
    }
    return Rung("query_generator", values)


def _rename_gold_unknowns(run: Run, gold: GoldQuery) -> tuple[TriplePattern, ...]:
    """The gold query's patterns with the unknowns of the QIR; where it has others, with what it asks for."""
    own = _get_output(run, "qir")
    fit = _align_qir(own, gold)
    names = {term: end for end, term in fit.ends.items() if term.startswith("?")} if fit else {}
    if own and not fit:
        names = {gold.target: own.target}
    return tuple((names.get(s, s), p, names.get(o, o)) for s, p, o in gold.patterns)


LADDER = MappingProxyType(
    {
        "question": make_question_rung,
        "QIR": make_qir_rung,
        "vertices": make_vertex_rung,
        "predicates": make_predicate_rung,
        "selection": make_selection_rung,
        "query": make_query_rung,
    }
)


# --- a QIR beside a gold query


class _Alignment(NamedTuple):
    """How a QIR's facts are a gold query's patterns."""

    ends: dict[str, str]
    """The gold term of each end."""
    facts: dict[Fact, tuple[TriplePattern, Direction]]
    similarity: float


def _align_qir(own: QIR | None, gold: GoldQuery) -> _Alignment | None:
    """The likeliest way in which a QIR has the facts of a gold query; None if it has others."""
    literal = any(end[0] not in "<?" for pattern in gold.patterns for end in pattern)
    if own is None or own.kind != gold.kind or literal or len(gold.patterns) > MAX_ALIGNED_FACTS:
        return None
    if len(own.facts) != len(gold.patterns):
        return None
    ways: tuple[Direction, Direction] = ("out", "in")
    likeliest: _Alignment | None = None
    for patterns, directions in product(
        permutations(gold.patterns), product(ways, repeat=len(own.facts))
    ):
        facts = dict(zip(own.facts, zip(patterns, directions, strict=True), strict=True))
        if ends := _align_ends(facts, own, gold):
            pairs = [(fact.relation, pattern[1]) for fact, (pattern, _) in facts.items()]
            pairs += [(end, term) for end, term in ends.items() if term[0] == "<"]
            likeness = sum(
                SequenceMatcher(
                    None, words.casefold(), gold.names.get(term, term).casefold()
                ).ratio()
                for words, term in pairs
            )
            if likeliest is None or likeness > likeliest.similarity:
                likeliest = _Alignment(ends, facts, likeness)
    return likeliest


def _align_ends(
    facts: dict[Fact, tuple[TriplePattern, Direction]], own: QIR, gold: GoldQuery
) -> dict[str, str]:
    """The gold term of each end, entities vertices and unknowns unknowns, one to one; empty if none fits."""
    ends: dict[str, str] = {own.target: gold.target} if own.target else {}
    for fact, (pattern, way) in facts.items():
        terms = pattern[::2] if way == "out" else pattern[::-2]
        for end, term in zip(fact.ends, terms, strict=True):
            if ends.setdefault(end, term) != term or end.startswith("?") != term.startswith("?"):
                return {}
    return ends if len({*ends.values()}) == len(ends) else {}


def _contains_word(words: str, question: str) -> bool:
    """Whether a question has a word, or the beginning of one, of these."""
    return any(word[:4] in question for word in re.findall(r"\w{3,}", words.casefold()))


def _get_output(run: Run, key: str) -> Any:
    """What a step yielded; None if it did not."""
    step = run.steps_by_key.get(key)
    return step.output if step and step.done else None


GOLD = GoldDecisions(STAGE_BY_AGENT, LADDER, collect_linked_iris)
