"""Matching agent (Chatty-KG, section 5.1, Algorithm 2): links entities to vertices and classes.

Relations are linked in ``relations``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rdflib import Literal, URIRef

from kgwb.build import (
    SAME_WORDS_SCORE,
    Candidate,
    Context,
    Link,
    RetrievedCandidates,
    Run,
    add_classes_with_words,
    agent,
    compute_similarities,
    describe_vertices,
    find_class_names,
    find_literal,
    find_relation_names,
    get_names_in_rows,
    is_exact_match,
    n3,
    normalize,
    score_label,
    search_candidates,
    select_vertex,
)
from kgwb.systems.chatty_kg.records import QIR, LinkingResult
from kgwb.systems.chatty_kg.relation_linking import link_relations
from kgwb.systems.chatty_kg.settings import ChattySettings

MAX_INEXACT_SCORE = 0.99
"""The highest score of a class whose name is not the entity; 1 means that it is."""
MAX_TRIPLES_PER_SIDE = 200
"""Triples of a homonym that are read, as many where it is the subject as where it is the object."""
MAX_ALIKE = 10
"""Candidates that are looked at for whether anything tells them apart."""
MAX_SHOWN_VALUES = 3
"""Values that a model sees of one relation of a homonym."""
MAX_VALUE_CHARS = 80
"""Characters that a model sees of one such value."""


def find_linking_problems(
    linked: LinkingResult, qir: QIR, question: str, context: Context
) -> Iterator[str]:
    """Yield what is wrong with links that a person put in: each fact must stand between ends of the QIR.

    ``question`` and ``context`` are not used.
    """
    ends = {*qir.entities, *qir.unknowns}
    for relation in linked.relations:
        if not ends.issuperset(relation.fact.ends):
            yield f"{relation.fact} is no fact of this question"


@agent("matching", check=find_linking_problems)
def match_qir(qir: QIR, question: str, context: Context, run: Run) -> LinkingResult:
    """Link each entity of the QIR to a vertex, then each relation to predicates (Algorithm 2).

    Entities are linked side by side, relations one after another along their joins.
    """
    links = run.map(link_entity, qir.entities, question, context, qir.type_mentions)
    return LinkingResult(links, link_relations(qir, links, run))


@agent("entity_linking", subject="entity")
def link_entity(
    entity: str, question: str, context: Context, kinds: Collection[str], run: Run
) -> Link:
    """Retrieve the candidates of one entity and choose one.

    ``kinds`` are the entities of the QIR that name a kind of thing. With ``links_literals``, an
    entity for which no vertex is chosen is linked to a literal of the graph that is exactly it; if
    several literals are, to the one that the graph has most often. Otherwise the link has neither
    vertex nor literal, but a reason.
    """
    retrieved = retrieve_candidates(entity, question, kinds, run)
    link = select_vertex(retrieved, question, context, run)
    if link.vertex is not None or not ChattySettings.of_run(run).links_literals:
        return link
    literal = find_literal(run.kg, entity)
    if literal is None:
        return link
    return replace(link, value=literal, reason="no vertex is meant, but a text of the graph is it")


@agent("entity_retriever", subject="entity", kind="search")
def retrieve_candidates(
    entity: str, question: str, kinds: Collection[str], run: Run
) -> RetrievedCandidates:
    """Search the labels of the graph for an entity (Chatty-KG, Algorithm 2, line 3).

    What the search does not find is added. Classes of the graph become candidates as the setting
    ``classes`` says: of an entity that is one of ``kinds``, or of every entity. The relations of
    homonyms, if they are shown, get the values that they lead to. With ``tells_apart`` so do those
    of candidates that nothing else tells apart. With ``links_several`` it is marked where several
    candidates may be meant together (``_may_be_several``).
    """
    retrieved = _retrieve_and_describe(entity, question, kinds, run)
    if ChattySettings.of_run(run).links_several and _may_be_several(retrieved):
        return replace(retrieved, may_be_several=True)
    return retrieved


def _retrieve_and_describe(
    entity: str, question: str, kinds: Collection[str], run: Run
) -> RetrievedCandidates:
    """Search the candidates of an entity, and return them with all that a model sees of them.

    With ``classes`` "searched", classes whose names have its words are added. Otherwise an entity
    that is one of ``kinds`` gets classes, and for others the relations of homonyms get the values
    that they lead to; with ``tells_apart`` candidates that nothing else distinguishes get relations
    too.
    """
    settings = ChattySettings.of_run(run)
    is_kind = entity in kinds
    doubts_lower_case = settings.tells_apart and not is_kind
    retrieved = search_candidates(entity, run, doubts_lower_case=doubts_lower_case)
    if settings.classes == "searched":
        return add_classes_with_words(retrieved, run)
    if is_kind:
        return _add_classes(retrieved, run)
    if settings.tells_apart:
        retrieved = _add_relations_of_alike(retrieved, run)
    homonyms = [candidate.iri for candidate in retrieved.candidates if candidate.relations]
    if len(homonyms) < 2:
        return retrieved
    return _add_values(retrieved, _find_values(homonyms, run), question)


def _may_be_several(retrieved: RetrievedCandidates) -> bool:
    """Return whether an entity may mean several candidates together: "coal" of "Steam coal", "Coking coal".

    It may if it is in lower case, as a common noun is, no label matches it exactly, and at least
    two candidates with the same types have all its words in their labels.
    """
    entity = retrieved.entity
    if entity != entity.lower() or any(map(is_exact_match, retrieved.candidates)):
        return False
    entity_words = _words(entity)
    types = []
    for candidate in retrieved.candidates:
        if candidate.types and entity_words <= _words(candidate.label):
            types.append(candidate.types)
    return len(set(types)) < len(types)


# Homonyms


def _add_relations_of_alike(retrieved: RetrievedCandidates, run: Run) -> RetrievedCandidates:
    """Return the candidates, with the names of their relations for those that only the label distinguishes.

    These have the types of another candidate, and neither a description nor relations. Only the
    first MAX_ALIKE candidates are looked at. The graph is asked only if there are any.
    """
    best = retrieved.candidates[:MAX_ALIKE]
    bare = [each for each in best if not each.description and not each.relations]
    counts = Counter(candidate.types for candidate in bare)
    alike = [candidate.iri for candidate in bare if counts[candidate.types] > 1]
    if not alike:
        return retrieved
    names = find_relation_names(alike, run)
    candidates = []
    for candidate in retrieved.candidates:
        relations = names.get(candidate.iri, candidate.relations)
        candidates.append(replace(candidate, relations=relations))
    return replace(retrieved, candidates=tuple(candidates))


def _find_values(iris: Iterable[URIRef], run: Run) -> Mapping[tuple[URIRef, str], Collection[str]]:
    """Return the labels of the terms that the relations of vertices lead to, with one query.

    The key is a vertex with the name of a relation, written as by ``find_relation_names``. At most
    MAX_TRIPLES_PER_SIDE triples of each vertex and direction are read. Blank nodes and the vertex
    itself are left out.
    """
    branches = []
    for iri in iris:
        term = n3(iri)
        for ending, triple in (("", f"{term} ?p ?o"), (" (incoming)", f"?o ?p {term}")):
            branches.append(
                f'{{ SELECT ({term} AS ?v) ?p ?o ("{ending}" AS ?way)'
                f" WHERE {{ {triple} }} LIMIT {MAX_TRIPLES_PER_SIDE} }}"
            )
    union = " UNION ".join(branches)
    result = run.kg.select(f"SELECT ?v ?p ?o ?way WHERE {{ {union} }}")
    rows = [row for row in result.rows if row[0] != row[2]]
    names = get_names_in_rows([row[1:3] for row in rows], run.kg)
    values = defaultdict(set)
    for vertex, predicate, value, suffix in rows:
        if not isinstance(vertex, URIRef) or not isinstance(predicate, URIRef):
            continue
        key = (vertex, f"{names[predicate]}{suffix}")
        if isinstance(value, URIRef):
            values[key].add(names[value])
        elif isinstance(value, Literal):
            values[key].add(str(value))
    return values


def _add_values(
    retrieved: RetrievedCandidates,
    values: Mapping[tuple[URIRef, str], Collection[str]],
    question: str,
) -> RetrievedCandidates:
    """Return the candidates with what each of their relations leads to: "member of: Marketing".

    ``values`` has the labels by vertex and name of the relation. ``_choose_labels`` chooses among
    them by the words of the question that are not in the entity. A relation without values stays as
    it is. A value is cut at MAX_VALUE_CHARS characters.
    """
    question_words = _words(question) - _words(retrieved.entity)
    candidates = []
    for candidate in retrieved.candidates:
        relations = []
        for relation in candidate.relations:
            labels = values.get((candidate.iri, relation), ())
            chosen = _choose_labels(labels, question_words)
            text = ", ".join(label[:MAX_VALUE_CHARS] for label in chosen)
            shown = relation
            if text:
                shown += f": {text}"
            relations.append(shown)
        candidates.append(replace(candidate, relations=tuple(relations)))
    return replace(retrieved, candidates=tuple(candidates))


def _choose_labels(labels: Collection[str], question_words: set[str]) -> Sequence[str]:
    """Return the labels that share words with the question, those with most words first.

    At most MAX_SHOWN_VALUES are returned, equals in alphabetical order. If no label shares a word,
    the first one of the alphabet is returned, or nothing if there are no labels.
    """
    shared_words = {}
    for label in labels:
        shared_words[label] = len(question_words & _words(label))
    ranked = sorted(labels, key=lambda label: (-shared_words[label], label))
    best = ranked[:MAX_SHOWN_VALUES]
    return [label for label in best if shared_words[label]] or ranked[:1]


def _words(text: str) -> set[str]:
    return set(normalize(text).split())


# Classes


def _add_classes(retrieved: RetrievedCandidates, run: Run) -> RetrievedCandidates:
    """Return the result of a search for an entity that names a kind of thing: with classes first, then vertices.

    These are the classes whose name is the entity (``_find_classes_called``), and the vertices that
    match it exactly. If there are neither, they are the classes with the most similar names and all
    vertices found, at most ``shown_candidates`` together, of which at least half are for classes.
    Descriptions of the classes are asked of the graph.
    """
    entity = retrieved.entity
    names = find_class_names(run.kg)
    scores = _find_classes_called(entity, names)
    vertices = [candidate for candidate in retrieved.candidates if is_exact_match(candidate)]
    limit = None
    if not scores and not vertices:
        limit = run.settings.shown_candidates
        vertices = list(retrieved.candidates)
        class_limit = limit - min(len(vertices), limit // 2)
        scores = _score_similar_classes(entity, names, class_limit, run)
    descriptions = describe_vertices(run.kg, list(scores))
    candidates = []
    for iri, score in scores.items():
        description = descriptions[iri].description
        candidates.append(Candidate(iri, names[iri], score, ("class",), description))
    candidates += [candidate for candidate in vertices if candidate.iri not in scores]
    return replace(retrieved, candidates=tuple(candidates[:limit]))


def _find_classes_called(entity: str, names: Mapping[URIRef, str]) -> dict[URIRef, float]:
    """Return the classes whose name is an entity, but for letter case, each with the score 1.

    If no class has that name, these are the classes whose name has the same words, with a lower
    score: "Cafe" means the class "Café". Empty if there is none.
    """
    scores = {}
    for iri, name in names.items():
        score = score_label(entity, name)
        if score >= SAME_WORDS_SCORE:
            scores[iri] = score
    exact = {iri: score for iri, score in scores.items() if score == 1}
    return exact or scores


def _score_similar_classes(
    entity: str, names: Mapping[URIRef, str], limit: int, run: Run
) -> dict[URIRef, float]:
    """Return the ``limit`` classes with the names most similar to an entity, each with its score, best first.

    Equals are ordered by IRI. A score is the similarity, but at least 0 and at most
    MAX_INEXACT_SCORE.
    """
    if not names:
        return {}
    similarities = compute_similarities(entity, names.values(), run)
    ranked = sorted(names, key=lambda iri: (-similarities[names[iri]], iri))
    scores = {}
    for iri in ranked[:limit]:
        score = min(max(similarities[names[iri]], 0.0), MAX_INEXACT_SCORE)
        scores[iri] = round(score, 4)
    return scores
