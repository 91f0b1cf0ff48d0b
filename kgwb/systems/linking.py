"""Entities linked to vertices: candidates by label search, then a validated choice (Chatty-KG, 5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import field_validator
from rdflib import URIRef

from kgwb.deprecated import renamed_names
from kgwb.flow import Candidate, Context, Link, RetrievedCandidates
from kgwb.kg.queries import describe_vertices
from kgwb.kg.sparql import values_clause
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems import rules as _rules  # noqa: F401  # the model rules selects by them
from kgwb.terms import local_part

LISTED_CHECK_NAME = "in the candidate list"


class VertexReply(Reply):
    """The number of the candidate meant, with its label as a cross-check; 0 and "" if none is meant."""

    model_config = schema_config(
        "VertexReply",
        'The number of the candidate meant, with its label as a cross-check; 0 and "" if none is meant.',
    )

    reason: str
    number: int
    label: str

    @field_validator("number", mode="before")
    @classmethod
    def _no_flag(cls, number: object) -> object:
        """Python takes true for 1; a text such as "1" is read."""
        if isinstance(number, bool):
            raise ValueError("this is no number")
        return number


class LabelReply(Reply):
    """The label of the candidate meant, as published."""

    model_config = schema_config("LabelReply", "The label of the candidate meant, as published.")

    label: str


class NameReply(Reply):
    """The local name of the vertex meant, among those that share a label (reference code)."""

    model_config = schema_config(
        "NameReply",
        "The local name of the vertex meant, among those that share a label (reference code).",
    )

    name: str


@agent("entity_linking", subject="entity")
def link_entity(entity: str, question: str, context: Context, run: Run) -> Link:
    """Retrieve the candidates of one entity and choose one."""
    return select_vertex(retrieve_candidates(entity, run), question, context, run)


@agent("entity_retriever", subject="entity", kind="search")
def retrieve_candidates(entity: str, run: Run) -> RetrievedCandidates:
    """At most v_limit candidates, best first; ``fast`` keeps those worth showing and describes them."""
    return search_candidates(entity, run)


def search_candidates(entity: str, run: Run) -> RetrievedCandidates:
    """What ``retrieve`` gives, for a system whose retriever does more.

    ``fast`` keeps all exact matches where there are any, else the best ``shown_candidates``.
    """
    settings = run.settings
    result = run.kg.search(entity, settings.v_limit)
    exact = tuple(hit for hit in result.hits if hit.score >= 1)
    shown = (exact or result.hits)[: settings.shown_candidates] if settings.is_fast else result.hits
    if settings.is_fast and len(result.hits) >= settings.v_limit:
        run.note(f"v_limit cut the search for {entity!r} at {settings.v_limit} vertices")
    candidates = tuple(Candidate(hit.iri, hit.label, hit.score) for hit in shown)
    if settings.is_fast and not (exact and len(shown) == 1):  # else there is nothing to distinguish
        iris = [hit.iri for hit in shown]
        known = describe_vertices(run.kg, iris)
        relations = find_relation_names(iris, run) if exact else {}
        candidates = tuple(
            Candidate(hit.iri, hit.label, hit.score, *known[hit.iri], relations.get(hit.iri, ()))
            for hit in shown
        )
    return RetrievedCandidates(entity, candidates, result.how, result.query, len(result.hits))


def find_relation_names(iris: Sequence[URIRef], run: Run) -> dict[URIRef, tuple[str, ...]]:
    """Names of the predicates at each vertex; those of others to it are marked."""
    by_vertex: dict[URIRef, dict[str, None]] = {iri: {} for iri in iris}
    for triple, shown in (("?v ?p ?o", "{}"), ("?o ?p ?v", "{} (incoming)")):
        rows = run.kg.select(
            f"SELECT DISTINCT ?v ?p WHERE {{ {values_clause('?v', iris)} {triple} }}"
        )
        hidden = run.kg.vocabulary.excluded_predicates
        iris_only = [
            (v, p) for v, p in rows.rows if isinstance(v, URIRef) and isinstance(p, URIRef)
        ]
        pairs = [(v, p) for v, p in iris_only if v in by_vertex and p not in hidden]
        names = run.kg.names([p for _, p in pairs])
        for vertex, name in sorted((v, names[p]) for v, p in pairs):
            by_vertex[vertex][shown.format(name)] = None
    return {iri: tuple(names) for iri, names in by_vertex.items()}


def compute_similarities(text: str, names: Iterable[str], run: Run) -> dict[str, float]:
    """How like a text each of the names is."""
    distinct = sorted({*names})
    return dict(zip(distinct, run.similarity(text, distinct), strict=True))


def find_link_problems(
    link: Link, retrieved: RetrievedCandidates, question: str, context: Context
) -> Iterator[str]:
    """What the vertex validator has against a link put in by hand: it must stay with the entity it links."""
    if link.entity != retrieved.entity:
        yield f"the link is for {link.entity!r}, the step for {retrieved.entity!r}"


@agent("vertex_selection", check=find_link_problems, kind="model")
def select_vertex(
    retrieved: RetrievedCandidates, question: str, context: Context, run: Run
) -> Link:
    """The vertex meant.

    ``fast`` asks no model for an exact label match that is the only one, or that this dialogue has linked
    before. As published, candidates are labels only, and several vertices under one label cost a second call.
    """
    candidates = retrieved.candidates
    if not candidates:
        return Link(retrieved.entity, None, (), "no label in the graph holds these words")
    if not run.settings.is_fast:
        return _select_as_published(retrieved, run)
    if len(candidates) == 1 and candidates[0].score >= 1:
        return Link(
            retrieved.entity, candidates[0], candidates, "the only vertex with exactly this label"
        )
    if before := find_earlier_link(retrieved, question, context):
        return Link(retrieved.entity, before, candidates, "linked so before in this dialogue")

    def among(reply: VertexReply) -> str:
        """The choice must be one of the candidates, by number and label alike (section 5.1.2)."""
        if reply.number == 0:
            return "" if not reply.label.strip() else "number 0 means none, but a label is given"
        if not 1 <= reply.number <= len(candidates):
            return f"there is no candidate {reply.number}; they go from 1 to {len(candidates)}"
        label = candidates[reply.number - 1].label
        same = label.casefold().strip() == reply.label.casefold().strip()
        return "" if same else f"candidate {reply.number} is {label!r}, not {reply.label!r}"

    variables = {
        "question": question,
        "entity": retrieved.entity,
        "candidates": number_candidates(candidates),
    }
    check = Check[VertexReply](LISTED_CHECK_NAME, among)
    reply = ask("linking/vertex_selection", variables, VertexReply, run, checks=(check,))
    if reply.number == 0:
        return Link(
            retrieved.entity, None, candidates, reply.reason or "none of the candidates is meant"
        )
    return Link(retrieved.entity, candidates[reply.number - 1], candidates, reply.reason)


def number_candidates(candidates: Sequence[Candidate]) -> list[dict[str, object]]:
    """Candidates as a model sees them."""
    return [
        {
            "number": number,
            "label": c.label,
            "type": ", ".join(c.types),
            "description": c.description,
        }
        | ({"relations": list(c.relations)} if c.relations else {})
        for number, c in enumerate(candidates, 1)
    ]


def find_earlier_link(
    retrieved: RetrievedCandidates, question: str, context: Context
) -> Candidate | None:
    """The candidate that the latest turn which named the entity was about.

    None if there is none, or if the question says of another candidate what it does not say of that one:
    after the novel somebody may ask about "the 1972 film" of that name.
    """
    name = retrieved.entity.casefold()
    turns = (reversed([*zip(turn.entities, turn.linked, strict=False)]) for turn in context.turns)
    known = {entity.casefold(): iri for turn in turns for entity, iri in turn}.get(name)
    before = next((candidate for candidate in retrieved.candidates if candidate.iri == known), None)
    asked = _find_content_words(question) - _find_content_words(name)
    if before is None or any(
        asked & _find_candidate_words(c) - _find_candidate_words(before)
        for c in retrieved.candidates
    ):
        return None
    return before


def _find_candidate_words(candidate: Candidate) -> set[str]:
    near = (relation.partition(": ")[2] for relation in candidate.relations)
    return _find_content_words(" ".join((*candidate.types, candidate.description, *near)))


def _find_content_words(text: str) -> set[str]:
    """The words of a text that can distinguish things: those of four letters and more."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3}


def _select_as_published(retrieved: RetrievedCandidates, run: Run) -> Link:
    """Labels only; a single hit skips the model; homonyms cost a second call over local names."""
    candidates = retrieved.candidates
    if len(candidates) == 1:
        return Link(retrieved.entity, candidates[0], candidates, "the only vertex found")
    by_label: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_label.setdefault(candidate.label.casefold(), []).append(candidate)
    variables = {
        "entity": retrieved.entity,
        "labels": [same[0].label for same in by_label.values()],
    }
    label_known = Check[LabelReply](
        LISTED_CHECK_NAME, lambda r: _check_listed(r.label, r.label.casefold() in by_label)
    )
    chosen = ask(
        "linking/vertex_selection_labels", variables, LabelReply, run, checks=(label_known,)
    ).label
    same = by_label[chosen.casefold()]
    if len(same) == 1:
        return Link(retrieved.entity, same[0], candidates, f"chosen by its label, {chosen!r}")
    names = {local_part(candidate.iri): candidate for candidate in same}
    variables = {"entity": retrieved.entity, "names": list(names)}
    name_known = Check[NameReply](
        LISTED_CHECK_NAME, lambda r: _check_listed(r.name, r.name in names)
    )
    name = ask(
        "linking/vertex_selection_names", variables, NameReply, run, checks=(name_known,)
    ).name
    return Link(retrieved.entity, names[name], candidates, "chosen by its local name")


def _check_listed(text: str, is_listed: bool) -> str:
    return "" if is_listed else f"{text!r} is not in the list"


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
