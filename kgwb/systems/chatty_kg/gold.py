"""What a gold query means to Chatty-KG's agents: stages, the rungs of the oracle ladder, links."""

from __future__ import annotations

from itertools import chain

from rdflib import URIRef

from kgwb.build import (
    Alignment,
    CandidateQuery,
    GoldDecisions,
    GoldQuery,
    LinkedIris,
    Run,
    Rung,
    TriplePattern,
    align_facts,
    collect_iris,
    collect_vertices,
    get_output,
    has_literal,
    list_outputs,
    make_link_rung,
    reword_fact,
)
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

STAGES = {
    "understanding": "translator context understanding classifier rephraser qir",
    "linking": "matching entity_linking entity_retriever vertex_selection relation_linking",
    "execution and selection": "query_generator predicate_selection execution what_else answer_writer model_alone",
}
"""The stages whose seconds the paper reports (section 7.4, Figure 4)."""


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs that a run linked, and those that it chose from, as far as it was executed.

    Linked are the vertices of the links and the predicates of the selected queries. Candidates are
    those of all entities, and the ranked predicates of all relations.
    """
    vertices, vertex_candidates = collect_vertices(run)
    selections = list_outputs(run, "predicate_selection")
    queries = chain.from_iterable(selection.queries for selection in selections)
    predicates = frozenset(
        term[1:-1] for term in chain.from_iterable(map(pattern_predicates, queries))
    )
    ranked = collect_iris(list_outputs(run, "relation_linking"), lambda linked: linked.predicates)
    return LinkedIris(vertices, predicates, vertex_candidates, ranked)


# The rungs


def make_question_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold standalone question, to put in at "understanding".

    Returns None if gold has none, or if the run has the same.
    """
    if not gold.standalone or gold.standalone == get_output(run, "understanding"):
        return None
    return Rung("understanding", {"understanding": gold.standalone})


def make_qir_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the QIR that the gold query stands for, to put in at "qir"; None if it is that of the run.

    If the QIR of the run can be aligned with the gold query, its words are kept where the question
    has them (``reword_fact``): it is the linkers' task to find labels and relations under these
    words. Otherwise the display names of the graph are used, and triples with literals are left
    out, as a QIR has no literals. None is also returned if no triple is left.
    """
    qir = get_output(run, "qir")
    alignment = _align_qir(qir, gold)
    if alignment:
        question = get_output(run, "understanding") or run.question
        facts = []
        for fact in alignment.facts:
            facts.append(Fact(*reword_fact(fact, alignment, question, gold.names)))
        corrected = QIR(tuple(facts), qir.target, qir.kind)
    else:
        facts = []
        for pattern in gold.patterns:
            if not has_literal(pattern):
                facts.append(Fact(*(gold.names.get(term, term) for term in pattern)))
        corrected = QIR(tuple(facts), gold.target, gold.kind)
    if corrected == qir or not facts:
        return None
    return Rung("qir", {"qir": corrected})


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold vertex of each entity that has another or none, to put in as its link.

    ``make_link_rung`` says which agent is blamed. Returns None if all entities have it, and for a
    QIR that cannot be aligned with gold.
    """
    alignment = _align_qir(get_output(run, "qir"), gold)
    ends = alignment.ends if alignment else {}
    vertices = {}
    for entity, term in ends.items():
        iri = URIRef(term[1:-1])
        link = get_output(run, f"entity_linking[{entity}]")
        is_linked = link and [vertex.iri for vertex in link.vertices] == [iri]
        if not is_unknown(term) and not is_linked:
            vertices[entity] = iri
    return make_link_rung(vertices, run, gold)


def make_predicate_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold predicate for each relation whose ranked predicates lack it, to put in as the only one.

    Returns None if no relation lacks it, and for a QIR that cannot be aligned with gold.
    """
    alignment = _align_qir(get_output(run, "qir"), gold)
    facts = alignment.facts if alignment else {}
    relations = {}
    for fact, (pattern, direction) in facts.items():
        key = f"relation_linking[{fact}]"
        iri = URIRef(pattern[1][1:-1])
        linked = get_output(run, key)
        ranked = set()
        if linked:
            for found in linked.predicates:
                ranked.add((found.iri, found.direction))
        if (iri, direction) not in ranked:
            name = gold.names.get(pattern[1], str(iri))
            predicate = RankedPredicate(iri, name, direction)
            relations[key] = LinkedRelation(fact, (predicate,))
    if not relations:
        return None
    return Rung("relation_linking", relations)


def make_selection_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the generated query with exactly the patterns of the gold query, to put in as the only selected one.

    The order of the patterns does not count. Returns None if there is no such query, or if the run
    selected just that.
    """
    patterns = set(_rename_unknowns(run, gold))
    generated = get_output(run, "query_generator")
    selection = get_output(run, "predicate_selection")
    if generated is None:
        return None
    for query in generated.queries:
        if set(query.patterns) == patterns:
            if selection and selection.queries == (query,):
                return None
            chosen = QuerySelection((query,), query.predicates)
            return Rung("predicate_selection", {"predicate_selection": chosen})
    return None


def make_query_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query, to put in as the only candidate query and the only selected one.

    The matching step gets no links, so that execution finds none missing. The query generator is
    blamed. It is returned for every run.
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
    """Return the patterns of the gold query with its unknowns renamed to those of the run's QIR.

    If the QIR cannot be aligned with the gold query, only the target is renamed; without a QIR
    nothing is.
    """
    qir = get_output(run, "qir")
    alignment = _align_qir(qir, gold)
    new_names: dict[str, str] = {}
    if alignment:
        for end, term in alignment.ends.items():
            if is_unknown(term):
                new_names[term] = end
    elif qir:
        new_names = {gold.target: qir.target}
    patterns = []
    for subject, predicate, object_ in gold.patterns:
        new_subject = new_names.get(subject, subject)
        new_object = new_names.get(object_, object_)
        patterns.append((new_subject, predicate, new_object))
    return tuple(patterns)


LADDER = {
    "question": make_question_rung,
    "QIR": make_qir_rung,
    "vertices": make_vertex_rung,
    "predicates": make_predicate_rung,
    "selection": make_selection_rung,
    "query": make_query_rung,
}


def _align_qir(qir: QIR | None, gold: GoldQuery) -> Alignment[Fact] | None:
    """Return the alignment of a QIR with a gold query, see ``align_facts``.

    Also None without a QIR, and if the QIR asks for another kind of answer than gold.
    """
    if qir is None or qir.kind != gold.kind:
        return None
    return align_facts(qir.facts, qir.target, gold)


GOLD = GoldDecisions(LADDER, collect_linked_iris, STAGES)
