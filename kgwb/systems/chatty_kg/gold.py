"""What a gold query means to Chatty-KG's agents: stages, the rungs of the oracle ladder, links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import permutations, product
from types import MappingProxyType
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.flow import Candidate, CandidateQuery, Direction, Link
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
    is_unknown,
    pattern_predicates,
)
from kgwb.systems.linking import find_candidate

AGENTS_BY_STAGE = {
    "understanding": "translator context understanding classifier rephraser qir",
    "linking": "matching entity_linking entity_retriever vertex_selection relation_linking",
    "execution and selection": "query_generator predicate_selection execution what_else answer_writer model_alone",
}
STAGE_BY_AGENT = MappingProxyType(
    {agent: stage for stage, agents in AGENTS_BY_STAGE.items() for agent in agents.split()}
)
"""The stages whose seconds the paper reports (section 7.4, Figure 4)."""
MAX_ALIGNED_FACTS = 4
"""Facts of a QIR that are compared with a gold query in every order."""
PatternByFact = Mapping[Fact, tuple[TriplePattern, Direction]]
"""For each fact of a QIR a pattern of a gold query, and the direction from the fact's subject."""


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return what a run linked, and what it chose from, as far as it was executed.

    These are the vertices of the links, the predicates of the selected queries, the candidates of
    all entities, and the ranked predicates of all relations.
    """
    vertices: set[str] = set()
    predicates: set[str] = set()
    vertex_candidates: set[str] = set()
    predicate_candidates: set[str] = set()
    for step in run.steps:
        output: Any = step.output
        if not step.done:
            continue
        if step.agent == "vertex_selection" and output.vertex:
            vertices.add(str(output.vertex.iri))
        elif step.agent == "predicate_selection":
            for query in output.queries:
                predicates.update(term[1:-1] for term in pattern_predicates(query))
        elif step.agent == "entity_retriever":
            vertex_candidates.update(str(candidate.iri) for candidate in output.candidates)
        elif step.agent == "relation_linking":
            predicate_candidates.update(str(predicate.iri) for predicate in output.predicates)
    return LinkedIris(
        frozenset(vertices),
        frozenset(predicates),
        frozenset(vertex_candidates),
        frozenset(predicate_candidates),
    )


def _get_output(run: Run, key: str) -> Any:
    """Return the output of a step; None if there is no such step or it is not done."""
    step = run.steps_by_key.get(key)
    return step.output if step and step.done else None


# The rungs


def make_question_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold standalone question; None if there is none or the run has the same."""
    if not gold.standalone or gold.standalone == _get_output(run, "understanding"):
        return None
    return Rung("understanding", {"understanding": gold.standalone})


def make_qir_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the QIR that the gold query stands for; None if it is that of the run.

    If the QIR of the run can be aligned with the gold query, its words are kept where the question
    has them (``_reword_facts``): it is the linkers' task to find labels and relations under these
    words. Otherwise the display names of the graph are used, and triples with literals are left
    out, as a QIR has no literals. None is returned if no triple is left.
    """
    qir = _get_output(run, "qir")
    alignment = _align_qir(qir, gold)
    if alignment:
        question = _get_output(run, "understanding") or run.question
        facts = _reword_facts(alignment, question.casefold(), gold.names)
        corrected = QIR(tuple(facts), qir.target, qir.kind)
    else:
        facts = []
        for pattern in gold.patterns:
            if not _has_literal(pattern):
                facts.append(Fact(*(gold.names.get(term, term) for term in pattern)))
        corrected = QIR(tuple(facts), gold.target, gold.kind)
    if corrected == qir or not facts:
        return None
    return Rung("qir", {"qir": corrected})


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold vertex of each entity that has another vertex or none; None if all have it.

    The entity retriever is to blame if a gold vertex is not among the candidates, else the vertex
    selection.
    """
    alignment = _align_qir(_get_output(run, "qir"), gold)
    ends = alignment.ends if alignment else {}
    links = {}
    blamed = "vertex_selection"
    for entity, term in ends.items():
        iri = URIRef(term[1:-1])
        link = _get_output(run, f"entity_linking[{entity}]")
        if is_unknown(term) or (link and link.vertex and link.vertex.iri == iri):
            continue
        retrieved = _get_output(run, f"entity_retriever[{entity}]")
        candidates = retrieved.candidates if retrieved else ()
        vertex = find_candidate(iri, candidates)
        if not vertex:
            blamed = "entity_retriever"
            vertex = Candidate(iri, gold.names.get(term, term))
        links[f"entity_linking[{entity}]"] = Link(entity, vertex, candidates, "gold")
    return Rung(blamed, links) if links else None


def make_predicate_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold predicate of each relation whose ranked predicates lack it.

    Returns None if no relation lacks it.
    """
    alignment = _align_qir(_get_output(run, "qir"), gold)
    facts = alignment.facts if alignment else {}
    relations = {}
    for fact, (pattern, direction) in facts.items():
        key = f"relation_linking[{fact}]"
        iri = URIRef(pattern[1][1:-1])
        linked = _get_output(run, key)
        ranked = linked.predicates if linked else ()
        if (iri, direction) not in [(found.iri, found.direction) for found in ranked]:
            name = gold.names.get(pattern[1], str(iri))
            predicate = RankedPredicate(iri, name, direction)
            relations[key] = LinkedRelation(fact, (predicate,))
    return Rung("relation_linking", relations) if relations else None


def make_selection_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the generated query that has the patterns of the gold query, as the only selected one.

    Returns None if there is no such query, or if the run selected just that.
    """
    patterns = set(_rename_unknowns(run, gold))
    generated = _get_output(run, "query_generator")
    selection = _get_output(run, "predicate_selection")
    for query in generated.queries if generated else ():
        if set(query.patterns) == patterns:
            if selection and selection.queries == (query,):
                return None
            chosen = QuerySelection((query,), query.predicates)
            return Rung("predicate_selection", {"predicate_selection": chosen})
    return None


def make_query_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query as the only candidate query and the only selected one.

    The matching step gets no links, so that execution finds none missing.
    """
    patterns = _rename_unknowns(run, gold)
    names = tuple(gold.names.get(predicate, predicate) for _, predicate, _ in patterns)
    query = CandidateQuery(gold.sparql, patterns, names, 1.0)
    values = {
        "matching": LinkingResult((), ()),
        "query_generator": GeneratedQueries((query,), 1),
        "predicate_selection": QuerySelection((query,), names),
    }
    return Rung("query_generator", values)


def _rename_unknowns(run: Run, gold: GoldQuery) -> tuple[TriplePattern, ...]:
    """Return the patterns of the gold query with the names that the run's QIR has for its unknowns.

    If the QIR cannot be aligned with the gold query, only the target gets the name of its target.
    """
    qir = _get_output(run, "qir")
    alignment = _align_qir(qir, gold)
    new_names = {}
    if alignment:
        new_names = {term: end for end, term in alignment.ends.items() if is_unknown(term)}
    elif qir:
        new_names = {gold.target: qir.target}
    patterns = []
    for subject, predicate, object_ in gold.patterns:
        new_subject = new_names.get(subject, subject)
        new_object = new_names.get(object_, object_)
        patterns.append((new_subject, predicate, new_object))
    return tuple(patterns)


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


# Aligning a QIR with a gold query


class _Alignment(NamedTuple):
    """A way in which the facts of a QIR are the patterns of a gold query."""

    ends: Mapping[str, str]
    """The gold term of each end of the facts."""
    facts: PatternByFact


def _align_qir(qir: QIR | None, gold: GoldQuery) -> _Alignment | None:
    """Return the alignment of a QIR with a gold query that has the most similar names.

    Every order of the patterns and every direction is tried. None is returned if none fits, and
    for a gold query of another kind, of another number of patterns, of more than MAX_ALIGNED_FACTS
    patterns, or with a literal.
    """
    if qir is None or qir.kind != gold.kind:
        return None
    number = len(gold.patterns)
    if number != len(qir.facts) or number > MAX_ALIGNED_FACTS:
        return None
    if any(map(_has_literal, gold.patterns)):
        return None
    alignments = _find_alignments(qir, gold)
    similarity = partial(_name_similarity, names=gold.names)
    return max(alignments, key=similarity, default=None)


def _find_alignments(qir: QIR, gold: GoldQuery) -> Iterator[_Alignment]:
    """Yield each way in which the facts of a QIR can be the patterns of a gold query.

    Each order of the patterns is tried with each direction of every fact, see ``_align_ends``.
    """
    both: tuple[Direction, Direction] = ("out", "in")
    for patterns in permutations(gold.patterns):
        for directions in product(both, repeat=len(patterns)):
            pairs = zip(patterns, directions, strict=True)
            facts = dict(zip(qir.facts, pairs, strict=True))
            ends = _align_ends(facts, qir, gold)
            if ends:
                yield _Alignment(ends, facts)


def _align_ends(facts: PatternByFact, qir: QIR, gold: GoldQuery) -> Mapping[str, str]:
    """Return the gold term of each end of the facts; nothing if the patterns do not fit them.

    They fit if entities are vertices, unknowns are unknowns, the target is the target, and no two
    ends have the same term.
    """
    ends = {}
    if qir.target:
        ends[qir.target] = gold.target
    for fact, (pattern, direction) in facts.items():
        subject, _, object_ = pattern
        terms = (subject, object_) if direction == "out" else (object_, subject)
        for end, term in zip(fact.ends, terms, strict=True):
            if is_unknown(end) != is_unknown(term) or ends.setdefault(end, term) != term:
                return {}
    is_one_to_one = len(set(ends.values())) == len(ends)
    return ends if is_one_to_one else {}


def _name_similarity(alignment: _Alignment, names: Mapping[str, str]) -> float:
    """Return how similar relations and entities are to the names of their gold terms, as a sum.

    Each similarity is the ratio of matching characters, 0 to 1.
    """
    pairs = []
    for fact, (pattern, _) in alignment.facts.items():
        pairs.append((fact.relation, pattern[1]))
    for end, term in alignment.ends.items():
        if not is_unknown(end):
            pairs.append((end, term))
    similarity = 0.0
    for words, term in pairs:
        name = names.get(term, term)
        similarity += SequenceMatcher(None, words.casefold(), name.casefold()).ratio()
    return similarity


def _has_literal(pattern: TriplePattern) -> bool:
    """Return whether a term of a pattern is neither an IRI nor an unknown."""
    return any(term[0] not in "<?" for term in pattern)


def _reword_facts(alignment: _Alignment, question: str, names: Mapping[str, str]) -> Sequence[Fact]:
    """Return the facts of an alignment in words of the question, which is in lower case.

    A relation keeps its words if the question has any of them, else it is the name of the gold
    predicate. For an end see ``_choose_words``.
    """
    facts = []
    for fact, (pattern, _) in alignment.facts.items():
        ends = []
        for end in fact.ends:
            label = names.get(alignment.ends[end], end)
            ends.append(_choose_words(end, label, question))
        relation = fact.relation
        if not _contains_word(relation, question):
            relation = names.get(pattern[1], relation)
        facts.append(Fact(ends[0], relation, ends[1]))
    return facts


def _choose_words(words: str, label: str, question: str) -> str:
    """Return the words of an end, or the label of its gold vertex.

    The label is returned if the question has none of the words, or has the whole label: the QIR
    then has too much or too little of it. An unknown is returned as it is.
    """
    if is_unknown(words) or words.casefold() == label.casefold():
        return words
    if label.casefold() in question or not _contains_word(words, question):
        return label
    return words


def _contains_word(words: str, question: str) -> bool:
    """Return whether a question has one of the words, or a word that begins like it.

    Words of less than three letters do not count, and four letters of a longer one are enough: the
    question may have another ending of the word.
    """
    long_words = re.findall(r"\w{3,}", words.casefold())
    return any(word[:4] in question for word in long_words)


GOLD = GoldDecisions(STAGE_BY_AGENT, LADDER, collect_linked_iris)
