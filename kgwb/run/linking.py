"""Entity linking (Chatty-KG, section 5.1): candidates by label search, then a validated choice.

The end of the file says how the model ``rules`` answers the prompts of the linking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator
from rdflib import Literal, URIRef

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import SAME_WORDS_SCORE, normalize, score_label
from kgwb.kg.names import MAX_COMPARED_CHARS, compare_names
from kgwb.kg.queries import describe_vertices, find_class_names, find_exact_values
from kgwb.kg.sparql import union_clause, values_clause
from kgwb.llm.base import ReplyData, Rule
from kgwb.llm.rules.grammar import parse_question
from kgwb.llm.rules.predicates import max_similarity
from kgwb.llm.rules.words import FUNCTION_WORDS, singularize
from kgwb.run import Run, agent
from kgwb.run.answers import Candidate, Context, Link, RetrievedCandidates, content_words
from kgwb.run.ask import Check, Reply, try_to_ask
from kgwb.run.gold import GoldQuery, Rung, collect_iris, get_output, list_outputs
from kgwb.settings import Settings
from kgwb.terms import Term, local_part
from kgwb.text import tell_apart

LISTED_CHECK_NAME = "in the candidate list"
NO_VALID_CHOICE = "no valid choice within the attempts"
MAX_DOUBTFUL = 10
"""Candidates of an entity that may be a common noun."""
MAX_LONGER = 10
"""Candidates with a longer name that are kept beside exact ones."""
INCOMING = " (incoming)"
"""Behind the name of a predicate of which a vertex is the object."""
MAX_MORE_WORDS = 2
"""Words that a longer name has more, such as a title."""


def _refuse_boolean(number: object) -> object:
    """Raise ValueError for true and false, which pydantic would read as 1 and 0.

    Any other value is returned as it is: a text such as "1" is read as a number.
    """
    if isinstance(number, bool):
        raise ValueError("this is no number")
    return number


CandidateNumber = Annotated[int, BeforeValidator(_refuse_boolean)]
"""The number of a candidate in a reply."""


class VertexReply(Reply):
    """The number of the candidate meant, with its label as a cross-check; 0 and "" if none is meant."""

    reason: str
    number: CandidateNumber
    label: str

    @property
    def chosen(self) -> Sequence[int]:
        """The number of the candidate, if one is meant."""
        return [self.number] if self.number else []

    def find_problem(self, candidates: Sequence[Candidate]) -> str:
        """Return a problem unless number and label are those of one candidate, or 0 and blank."""
        if self.number == 0 and self.label.strip():
            return "number 0 means none, but a label is given"
        if self.number == 0:
            return ""
        return _find_number_problem(self.number, self.label, candidates)


class VerticesReply(Reply):
    """The numbers of the candidates meant, with their labels as a cross-check; empty if none is meant."""

    reason: str
    numbers: list[CandidateNumber]
    labels: list[str]

    @property
    def chosen(self) -> Sequence[int]:
        """The numbers of the candidates, each once."""
        return list(dict.fromkeys(self.numbers))

    def find_problem(self, candidates: Sequence[Candidate]) -> str:
        """Return the first problem of a number and its label, or that the lists differ in length; "" if valid."""
        if len(self.numbers) != len(self.labels):
            return f"{len(self.numbers)} numbers, but {len(self.labels)} labels"
        for number, label in zip(self.numbers, self.labels, strict=True):
            problem = _find_number_problem(number, label, candidates)
            if problem:
                return problem
        return ""


class LabelReply(Reply):
    """The label of the candidate meant, as published."""

    label: str


class NameReply(Reply):
    """The local name of the vertex meant, among those that share a label (reference code)."""

    name: str


ReplyType = TypeVar("ReplyType", LabelReply, NameReply)


@agent("entity_linking", subject="entity")
def link_entity(entity: str, question: str, context: Context, run: Run) -> Link:
    """Retrieve the candidates of one entity and choose one."""
    retrieved = retrieve_candidates(entity, run)
    return select_vertex(retrieved, question, context, run)


@agent("entity_retriever", subject="entity", kind="search")
def retrieve_candidates(entity: str, run: Run) -> RetrievedCandidates:
    """Search the labels of the graph for an entity; see ``search_candidates``.

    With ``whole_graph`` classes are candidates, too.
    """
    retrieved = search_candidates(entity, run)
    return add_classes_with_words(retrieved, run) if run.settings.whole_graph else retrieved


# Candidates


def search_candidates(
    entity: str, run: Run, *, doubts_lower_case: bool = False, keeps_longer: bool = False
) -> RetrievedCandidates:
    """Search the labels of the graph for an entity, and return the candidates, best first.

    At most ``v_limit`` vertices are found (Chatty-KG, Algorithm 2, line 3); the step notes if the
    limit was reached. With the setting ``candidate_texts`` "described", only the best are returned,
    with their descriptions (``_describe_best``); else all of them with their labels only. With
    ``doubts_lower_case``, an entity that may be a common noun keeps its inexact matches. With
    ``keeps_longer``, the best MAX_LONGER whose label is a longer form of the entity
    (``is_longer_form``) stay behind the exact ones. The result has no candidates if no label is
    like the entity.
    """
    settings = run.settings
    result = run.kg.search(entity, settings.v_limit)
    candidates = [Candidate(hit.iri, hit.label, hit.score) for hit in result.hits]
    if len(candidates) >= settings.v_limit:
        run.note(f"v_limit cut the search for {entity!r} at {settings.v_limit} vertices")
    if settings.candidate_texts == "described":
        candidates = _describe_best(
            entity, candidates, run, doubts_lower_case=doubts_lower_case, keeps_longer=keeps_longer
        )
    return RetrievedCandidates(
        entity, tuple(candidates), result.how, result.query, len(result.hits)
    )


def add_classes_with_words(retrieved: RetrievedCandidates, run: Run) -> RetrievedCandidates:
    """Return the result of a search, with the classes added whose names have all words of the entity.

    Candidates are then sorted by score and by IRI, and at most ``v_limit`` are kept. Letter case
    and accents do not count.
    """
    words = set(normalize(retrieved.entity).split())
    candidates = list(retrieved.candidates)
    found = {candidate.iri for candidate in candidates}
    for iri, name in find_class_names(run.kg).items():
        if iri not in found and words <= set(normalize(name).split()):
            score = score_label(retrieved.entity, name)
            candidates.append(Candidate(iri, name, score, ("class",)))
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.iri))
    kept = candidates[: run.settings.v_limit]
    return replace(retrieved, candidates=tuple(kept))


def find_named_term(name: str, run: Run) -> Term:
    """Return the vertex with exactly this label, else the name as a literal, also if several vertices have it."""
    vertices = run.kg.exact([name]).get(name, ())
    return vertices[0] if len(vertices) == 1 else Literal(name)


def may_be_common_noun(entity: str, candidates: Iterable[Candidate]) -> bool:
    """Return whether an entity is in lower case and no candidate's label is written exactly so.

    "pilotage" may mean the service that a tariff "T03 Pilotage" is for, and not the department
    "Pilotage".
    """
    if entity != entity.lower():
        return False
    return all(candidate.label != entity for candidate in candidates)


def is_longer_form(label: str, name: str) -> bool:
    """Return whether a label has all words of a name and few more: "Dr Anna Keller" of "Anna Keller".

    These are at most MAX_MORE_WORDS, and not more than the name has. None of them is a number, which
    makes a name that of one thing in a series: "Coal 10800" is no longer form of "coal".
    """
    words = normalize(name).split()
    label_words = normalize(label).split()
    number_of_more = len(label_words) - len(words)
    if not set(words).issubset(label_words):
        return False
    if any(word.isdigit() for word in label_words if word not in words):
        return False
    return 0 <= number_of_more <= min(MAX_MORE_WORDS, len(words))


def _describe_best(
    entity: str,
    candidates: list[Candidate],
    run: Run,
    *,
    doubts_lower_case: bool,
    keeps_longer: bool,
) -> list[Candidate]:
    """Return the best candidates, at most ``shown_candidates``, with their types and descriptions.

    If any is called as the entity (``compare_names``), only such candidates are returned, with the
    longer forms behind them; or the best MAX_DOUBTFUL of all if the entity may be a common noun. They
    then get the names of their predicates too. A single such candidate is returned without any of
    this, as there is nothing to distinguish it from. Asks the graph up to three kinds of queries.
    """
    exact = [candidate for candidate in candidates if _is_same_name(candidate, entity)]
    best = candidates
    if doubts_lower_case and may_be_common_noun(entity, candidates):
        best = candidates[:MAX_DOUBTFUL]
    elif exact and keeps_longer:
        longer = [found for found in candidates if is_longer_form(found.label, entity)]
        others = [found for found in longer[:MAX_LONGER] if found not in exact]
        best = exact + others
    elif exact:
        best = exact
    best = best[: run.settings.shown_candidates]
    if exact and len(best) == 1:
        return best
    iris = [candidate.iri for candidate in best]
    descriptions = describe_vertices(run.kg, iris)
    relations = find_relation_names(iris, run) if exact else {}
    described = []
    for candidate in best:
        types, description = descriptions[candidate.iri]
        with_description = replace(
            candidate,
            types=types,
            description=description,
            relations=relations.get(candidate.iri, ()),
        )
        described.append(with_description)
    return described


def _is_same_name(candidate: Candidate, entity: str) -> bool:
    """Return whether a candidate is called as the entity, but for what tells no names apart."""
    if is_exact_match(candidate):
        return True
    has_same_words = candidate.score >= SAME_WORDS_SCORE
    return has_same_words and compare_names(entity, candidate.label).nearness == "same"


def is_exact_match(candidate: Candidate) -> bool:
    """Return whether the label of a candidate is the entity, but for letter case."""
    return candidate.score >= 1


def find_candidate(iri: URIRef | None, candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the first candidate with an IRI; None if there is none, or if the IRI is None."""
    for candidate in candidates:
        if candidate.iri == iri:
            return candidate
    return None


def find_relation_names(iris: Sequence[URIRef], run: Run) -> dict[URIRef, tuple[str, ...]]:
    """Return the names of the predicates of each vertex, with one query for all vertices together.

    Predicates of which the vertex is the subject come first, each group in alphabetical order. The
    others have INCOMING behind their names. Predicates that the graph's vocabulary excludes are left
    out. Vertices without any have an empty tuple.
    """
    excluded = run.kg.vocabulary.excluded_predicates
    values = values_clause("?v", iris)
    outgoing = f'{values} ?v ?p ?o BIND("out" AS ?d)'
    incoming = f'{values} ?o ?p ?v BIND("in" AS ?d)'
    where = union_clause((outgoing, incoming))
    result = run.kg.select(f"SELECT DISTINCT ?v ?p ?d WHERE {{ {where} }}")
    names_by_vertex: dict[URIRef, dict[str, None]] = {iri: {} for iri in iris}
    found = []
    for vertex, predicate, direction in result.rows:
        if not isinstance(vertex, URIRef) or not isinstance(predicate, URIRef):
            continue
        if vertex in names_by_vertex and predicate not in excluded:
            ending = INCOMING if str(direction) == "in" else ""
            found.append((vertex, predicate, ending))
    names = run.kg.names([predicate for _, predicate, _ in found])
    in_order = []
    for vertex, predicate, ending in found:
        in_order.append((ending, names[predicate], vertex))
    for ending, name, vertex in sorted(in_order):
        names_by_vertex[vertex][f"{name}{ending}"] = None
    return {iri: tuple(names) for iri, names in names_by_vertex.items()}


def compute_similarities(text: str, names: Iterable[str], run: Run) -> dict[str, float]:
    """Return the similarity of a text with each name, by name; see ``Run.similarity``."""
    distinct_names = sorted(set(names))
    similarities = run.similarity(text, distinct_names)
    return dict(zip(distinct_names, similarities, strict=True))


# The choice


def find_link_problems(
    link: Link, retrieved: RetrievedCandidates, question: str, context: Context
) -> Iterator[str]:
    """Yield a problem if a link that a person put in is for another entity than the step's.

    Its vertex may be any, also one that the search did not find. ``question`` and ``context`` are
    not used.
    """
    if link.entity != retrieved.entity:
        yield f"the link is for {link.entity!r}, the step for {retrieved.entity!r}"


@agent("vertex_selection", check=find_link_problems, kind="model")
def select_vertex(
    retrieved: RetrievedCandidates, question: str, context: Context, run: Run
) -> Link:
    """Choose the vertex that an entity means among its candidates.

    The link has no vertex if there are no candidates or a model chooses none of them. No model is
    asked where the settings ``unasked_choice`` and ``keeps_links`` decide. The setting
    ``vertex_choice`` says whether it answers with a number or with a label. Where several candidates
    may be meant together, it may choose several. Source: Chatty-KG, Algorithm 2, lines 4 to 10.
    """
    entity = retrieved.entity
    candidates = retrieved.candidates
    if not candidates:
        return Link(entity, None, (), "no label in the graph holds these words")
    unasked = _choose_without_model(retrieved, question, context, run.settings)
    if unasked is not None:
        return unasked
    if run.settings.vertex_choice == "label":
        return _select_by_label(retrieved, run)
    return _select_by_number(retrieved, question, run)


LINKING_AGENTS = (link_entity, retrieve_candidates, select_vertex)
"""The agents that a system lists if it calls ``link_entity``."""


def _choose_without_model(
    retrieved: RetrievedCandidates, question: str, context: Context, settings: Settings
) -> Link | None:
    """Return the link that needs no model, with the reason; None if a model must choose.

    It is the only candidate, where ``unasked_choice`` allows to take that; else, with
    ``keeps_links``, the vertex that an earlier turn linked the entity to or answered with. Neither
    graph nor model is asked.
    """
    entity = retrieved.entity
    candidates = retrieved.candidates
    if is_decided_unasked(candidates, settings):
        reason = "the only vertex found"
        if is_exact_match(candidates[0]):
            reason = "the only vertex with exactly this label"
        return Link(entity, candidates[0], candidates, reason)
    if settings.keeps_links:
        linked_earlier = find_earlier_link(retrieved, question, context)
        if linked_earlier:
            return Link(entity, linked_earlier, candidates, "linked earlier in this dialogue")
    return None


def is_decided_unasked(candidates: Sequence[Candidate], settings: Settings) -> bool:
    """Return whether there is exactly one candidate, and ``unasked_choice`` allows to take it unasked.

    With "only_candidate" any is taken, with "never" none, and else only one whose label is the
    entity.
    """
    if len(candidates) != 1 or settings.unasked_choice == "never":
        return False
    return settings.unasked_choice == "only_candidate" or is_exact_match(candidates[0])


def _select_by_number(retrieved: RetrievedCandidates, question: str, run: Run) -> Link:
    """Ask a model for the number and label of the vertex that is meant, and return the link with its reason.

    Where several may be meant together, it is asked for the numbers and labels of all: the first is
    the link's vertex, and the further ones are its ``others``. Each label must be that of its
    candidate (Chatty-KG, section 5.1.2). No number, or 0, makes a link without a vertex, as does a
    model without a valid reply if the settings say to abstain; otherwise InvalidReplyError is
    raised.
    """
    entity = retrieved.entity
    candidates = retrieved.candidates
    prompt = "linking/vertex_selection"
    reply_class: Any = VertexReply
    if retrieved.may_be_several:
        prompt = "linking/vertex_selection_several"
        reply_class = VerticesReply
    variables = {
        "question": question,
        "entity": entity,
        "candidates": number_candidates(candidates),
    }
    checks = [Check(LISTED_CHECK_NAME, partial(reply_class.find_problem, candidates=candidates))]
    reply: VertexReply | VerticesReply | None = try_to_ask(
        prompt, variables, reply_class, run, checks=checks
    )
    if reply is None:
        return Link(entity, None, candidates, NO_VALID_CHOICE)
    if not reply.chosen:
        return Link(entity, None, candidates, reply.reason or "none of the candidates is meant")
    first, *others = [candidates[number - 1] for number in reply.chosen]
    return Link(entity, first, candidates, reply.reason, others=tuple(others))


def _find_number_problem(number: int, label: str, candidates: Sequence[Candidate]) -> str:
    """Return what is wrong with a number and a label that should be those of one candidate; "" if nothing.

    Numbers begin with 1. Letter case and spaces around the label do not count, unless the label is
    exactly that of another candidate.
    """
    count = len(candidates)
    if not 1 <= number <= count:
        return f"there is no candidate {number}; they go from 1 to {count}"
    labels = [candidate.label for candidate in candidates]
    right_label = labels[number - 1]
    is_of_another = label != right_label and label in labels
    is_alike = right_label.casefold().strip() == label.casefold().strip()
    if is_alike and not is_of_another:
        return ""
    return f"candidate {number} is {right_label!r}, not {label!r}"


def number_candidates(candidates: Sequence[Candidate]) -> list[dict[str, object]]:
    """Return candidates as a model sees them: number from 1, label, type, description, relations.

    Types are one text with commas. The key "relations" is left out for a candidate without names of
    predicates. Candidates of which all this is the same have their IRI, too.
    """
    numbered = []
    for number, candidate in enumerate(candidates, 1):
        shown: dict[str, object] = {
            "number": number,
            "label": candidate.label,
            "type": ", ".join(candidate.types),
            "description": candidate.description,
        }
        if candidate.relations:
            shown["relations"] = list(candidate.relations)
        numbered.append(shown)
    iris = [str(candidate.iri) for candidate in candidates]
    tell_rows_apart(numbered, "iri", iris)
    return numbered


def tell_rows_apart(rows: Sequence[dict[str, object]], name: str, texts: Sequence[str]) -> None:
    """Add ``texts`` under the key ``name`` to those rows that are equal but for their "number".

    ``texts`` has one for each row. Rows are changed in place; a row that differs from all others is
    left as it is.
    """
    looks = [str({**row, "number": 0}) for row in rows]
    counts = Counter(looks)
    for row, look, text in zip(rows, looks, texts, strict=True):
        if counts[look] > 1:
            row[name] = text


def find_earlier_link(
    retrieved: RetrievedCandidates, question: str, context: Context
) -> Candidate | None:
    """Return the candidate that the latest turn with the entity linked it to, or answered with, else None.

    None is returned if no turn has the entity, or if its vertex is not among the candidates. It is
    also returned if a content word of the question is in the types, description or neighbours of
    another candidate, and not in those of the earlier one: after the novel, a person may ask about
    "the 1972 film" of the same name.
    """
    earlier = _find_latest_candidate(retrieved, context)
    if earlier is None:
        return None
    question_words = content_words(question) - content_words(retrieved.entity)
    earlier_words = earlier.describing_words
    for candidate in retrieved.candidates:
        if question_words & (candidate.describing_words - earlier_words):
            return None
    return earlier


def _find_latest_candidate(retrieved: RetrievedCandidates, context: Context) -> Candidate | None:
    """Return the candidate that the latest turn with this entity linked it to, or gave as its answer.

    An answer carries its vertex (``Turn.vertices``): after an answer "Ann Lee", that name means the
    vertex that was the answer, and no other one of this name. Letter case does not count. Returns
    None if no turn has the entity, if the latest one answered with several vertices of this name,
    or if its vertex is not among the candidates.
    """
    entity = retrieved.entity.casefold()
    for turn in reversed(context.turns):
        answers = [answer.casefold() for answer in turn.answers]
        if entity in answers:
            named = []
            for candidate in retrieved.candidates:
                if candidate.iri in turn.vertices and candidate.label.casefold() == entity:
                    named.append(candidate)
            return named[0] if len(named) == 1 else None
        for mention, iri in zip(turn.entities, turn.linked, strict=False):
            if mention.casefold() == entity:
                return find_candidate(iri, retrieved.candidates)
    return None


# The choice by labels


def _select_by_label(retrieved: RetrievedCandidates, run: Run) -> Link:
    """Ask a model for the label that is meant, and return a link to the vertex with this label.

    If several candidates have it, the model is asked a second time, for the local part of the IRI.
    Without a valid reply the link has no vertex if the settings say to abstain; otherwise
    InvalidReplyError is raised. Source: Chatty-KG, section 5.1.1, and the reference code.
    """
    entity = retrieved.entity
    candidates = retrieved.candidates
    by_label: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_label.setdefault(candidate.label, []).append(candidate)
    chosen = _ask_for_one("labels", LabelReply, entity, list(by_label), run)
    if chosen is None:
        return Link(entity, None, candidates, NO_VALID_CHOICE)
    homonyms = by_label[chosen.label]
    if len(homonyms) == 1:
        return Link(entity, homonyms[0], candidates, f"chosen by its label, {chosen.label!r}")
    names = tell_apart([candidate.iri for candidate in homonyms], (local_part, str))
    by_name = {names[candidate.iri]: candidate for candidate in homonyms}
    named = _ask_for_one("names", NameReply, entity, list(by_name), run)
    if named is None:
        return Link(entity, None, candidates, NO_VALID_CHOICE)
    return Link(entity, by_name[named.name], candidates, "chosen by the local part of its IRI")


def find_label(label: str, labels: Collection[str]) -> str | None:
    """Return the label of a collection that a model means: the equal one, else the only one equal but for case.

    Returns None if there is no such label, or if several differ from it in letter case only.
    """
    if label in labels:
        return label
    similar = [listed for listed in labels if listed.casefold() == label.casefold()]
    return similar[0] if len(similar) == 1 else None


def _ask_for_one(
    what: str, reply_class: type[ReplyType], entity: str, listed: list[str], run: Run
) -> ReplyType | None:
    """Ask a model which of the listed "labels" or "names" an entity means, and return its reply.

    The reply must be one of them, in the same letter case. Without a valid reply, return None if
    the settings say to abstain, else raise InvalidReplyError.
    """

    def find_problem(reply: ReplyType) -> str:
        [chosen] = reply.model_dump().values()
        return "" if chosen in listed else f"{chosen!r} is not in the list"

    return try_to_ask(
        f"linking/vertex_selection_{what}",
        {"entity": entity, what: listed},
        reply_class,
        run,
        checks=[Check(LISTED_CHECK_NAME, find_problem)],
    )


# What gold means to these agents


def collect_vertices(run: Run) -> tuple[frozenset[str], frozenset[str]]:
    """Return the IRIs of the vertices that a run linked, and of all candidates that its searches found.

    They are taken from the outputs of vertex_selection and entity_retriever so far. An entity that
    was not linked adds none to the first set.
    """
    chosen = collect_iris(list_outputs(run, "vertex_selection"), lambda link: link.vertices)
    found = list_outputs(run, "entity_retriever")
    return chosen, collect_iris(found, lambda retrieved: retrieved.candidates)


def make_link_rung(vertices: Mapping[str, URIRef], run: Run, gold: GoldQuery) -> Rung | None:
    """Return links of entities to their gold vertices, to put in at the agent "entity_linking"; None without any.

    ``vertices`` has the gold vertex of each entity. The agent blamed is the entity retriever if a
    gold vertex is not among the candidates that it found, else the vertex selection. A vertex that
    is not among them gets its display name.
    """
    links = {}
    blamed = "vertex_selection"
    for entity, iri in vertices.items():
        retrieved = get_output(run, f"entity_retriever[{entity}]")
        candidates = retrieved.candidates if retrieved else ()
        vertex = find_candidate(iri, candidates)
        if vertex is None:
            blamed = "entity_retriever"
            name = gold.names.get(f"<{iri}>", str(iri))
            vertex = Candidate(iri, name)
        links[f"entity_linking[{entity}]"] = Link(entity, vertex, candidates, "gold")
    return Rung(blamed, links) if links else None


# How the model rules chooses vertices


YEAR_WEIGHT = 2.0
"""What a number that question and candidate have in common counts, beside the similarity."""
WORD_WEIGHT = 0.25
"""What each word counts that they have in common."""


def choose_vertex(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the number and label of the candidate that an entity of a question means, as a reply.

    It is a candidate whose label is the name as it is written, else one whose label is the same
    name (``compare_names``). Of several, it is the one that fits the question best. Otherwise it is
    the one spelled most alike among those whose names are near. If there is none, or the name is a
    text of the graph, the number is 0 and the label empty. Candidates have "number", "label", "type",
    "description", and perhaps "relations". The reply has a "reason" as well. Raises ModelError if
    there are several and the grammar cannot read the question.
    """
    by_distance: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for candidate in candidates:
        likeness = compare_names(entity, candidate["label"])
        by_distance[likeness.distance].append(candidate)
    same, near, _ = by_distance.values()
    exact = [candidate for candidate in same if candidate["label"] == entity]
    is_text = not same and kg is not None and find_exact_values(kg, [entity])
    if is_text or not (same or near):
        reason = f"no label is like {entity!r}"
        return {"reason": reason, "number": 0, "label": ""}
    named = exact or same
    if len(named) > 1:
        best = _choose_homonym(question, entity, named, kg, embeddings)
    else:
        best = max(named or near, key=lambda each: _rank_label(entity, each["label"]))
    reason = "the label is the name" if same else "the label most like the name"
    return {"reason": reason, "number": best["number"], "label": best["label"]}


def _rank_label(name: str, label: str) -> tuple[bool, float]:
    """Return a key that ranks a label for a name: first whether it begins with the name, then the spelling."""
    begins_with_name = normalize(label).startswith(normalize(name))
    return begins_with_name, _compare_spelling(name, label)


def _choose_homonym(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> Any:
    """Return the candidate that fits a question best, the first of equals.

    The score is YEAR_WEIGHT if the question shares a number with the candidate's type, its description
    and what its relations lead to, WORD_WEIGHT for each shared word, and the highest similarity of
    the candidate's relations to those that the question asks for. Words after " not ", the entity and
    these relations' words do not count, nor what relations lead to where the question is whether
    they do. Raises ModelError if the grammar cannot read the question.
    """
    reading = parse_question(question, kg)
    relations = []
    for subject, relation, object_ in reading.facts:
        if entity in (subject, object_):
            relations.append(relation)
    stated, _, _ = question.partition(" not ")
    read_words = " ".join([entity, *relations])
    asked_words = _content_words(stated) - _content_words(read_words)

    scores = []
    for candidate in candidates:
        own_relations = []
        described = [candidate["type"], candidate["description"]]
        for text in candidate.get("relations", []):
            name, _, value = text.partition(": ")
            own_relations.append(name)
            if reading.kind != "boolean":
                described.append(value)
        shared = asked_words & _content_words(" ".join(described))
        has_number = any(word.isdigit() for word in shared)
        similarities = [max_similarity(name, own_relations, embeddings) for name in relations]
        score = WORD_WEIGHT * len(shared)
        if has_number:
            score += YEAR_WEIGHT
        score += max(similarities, default=0.0)
        scores.append(score)
    best = scores.index(max(scores))
    return candidates[best]


def choose_vertices(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return a reply with the number and label of the one candidate of ``choose_vertex``, or with empty lists."""
    choice: Any = choose_vertex(question, entity, candidates, kg, embeddings)
    is_chosen = choice["number"] > 0
    return {
        "reason": choice["reason"],
        "numbers": [choice["number"]] if is_chosen else [],
        "labels": [choice["label"]] if is_chosen else [],
    }


def choose_label(entity: str, labels: Sequence[str]) -> ReplyData:
    """Return the label spelled most like an entity; of equals, the one whose name is nearest, then the first."""

    def rank(label: str) -> tuple[float, int]:
        """Return a key that is greatest for the best label."""
        return _compare_spelling(entity, label), -compare_names(entity, label).distance

    return {"label": max(labels, key=rank)}


def choose_local_name(entity: str, names: Sequence[str]) -> ReplyData:
    """Return the local name spelled most like an entity, the first of equals."""
    best = max(names, key=lambda name: _compare_spelling(entity, name))
    return {"name": best}


def _compare_spelling(name: str, text: str) -> float:
    """Return the ratio of matching characters of two names, 0 to 1, regardless of case, accents and signs.

    Only the first MAX_COMPARED_CHARS of each are compared.
    """
    first = normalize(name)[:MAX_COMPARED_CHARS]
    second = normalize(text)[:MAX_COMPARED_CHARS]
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.ratio()


def _content_words(text: str) -> set[str]:
    """Return the words of a text in the singular, without function words."""
    words = normalize(text).split()
    return {singularize(word) for word in words} - FUNCTION_WORDS


LINKING_RULES: Mapping[str, Rule] = {
    "linking/vertex_selection": choose_vertex,
    "linking/vertex_selection_several": choose_vertices,
    "linking/vertex_selection_labels": choose_label,
    "linking/vertex_selection_names": choose_local_name,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
