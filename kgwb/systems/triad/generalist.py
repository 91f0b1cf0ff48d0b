"""Triad's generalist: triplets, SPARQL templates and types of answers, after a few examples (section 3.1)."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from pydantic import BaseModel

from kgwb.build import (
    Candidate,
    CandidateQuery,
    Check,
    Direction,
    GraphError,
    InvalidReplyError,
    JsonObject,
    Reply,
    Run,
    agent,
    analyze_query,
    ask_model,
    find_label,
)
from kgwb.systems.triad.records import AnswerType, Choice, Faults, Relation, Triplet, Triplets
from kgwb.systems.triad.settings import TriadSettings

MAX_TRIPLETS = 8
VARIABLE = re.compile(r"\?[A-Za-z_]\w*", re.ASCII)
RelationTerm = tuple[str, Direction | None]
"""What stands for the relation of a triplet, and the order of its ends; None: as in the template."""

IRI_OR_IRI_FUNCTION = re.compile(r"<[^<>\s]*>|\b(?:IRI|URI)\s*\(", re.IGNORECASE)
"""An IRI, or the beginning of a function call that makes an IRI of a string."""


# Asking


R = TypeVar("R", bound=BaseModel)


def prompt_of_guidelines(prompt: str, run: Run) -> str:
    """Return the name of a prompt, or with ``guidelines`` "published" that of the paper's appendix B, C or D."""
    if TriadSettings.of_run(run).guidelines == "published":
        return f"{prompt}_published"
    return prompt


TOLD_PROMPTS = (
    "triad/triplets",
    "triad/entity_choice",
    "triad/relation_choice",
    "triad/template",
    "triad/written_query",
)
"""The prompts that have a place for why earlier attempts found no query."""


def ask_in_attempt(
    prompt: str,
    variables: JsonObject,
    failed: Faults,
    reply_class: type[R],
    check: Check[R],
    run: Run,
) -> R:
    """Ask the model as a part of an attempt to find a query, and return its valid reply.

    ``failed`` says why each earlier attempt found no query. With the setting ``retry_feedback`` the
    model is told, if the prompt is one of TOLD_PROMPTS. A model that is not told gets the same
    request as another sample, numbered by the attempts so far. Raises what ``ask_model`` raises.
    """
    told: list[str] = []
    if prompt in TOLD_PROMPTS:
        if TriadSettings.of_run(run).retry_feedback:
            told = list(failed)
        variables = {**variables, "failed": told}
    sample = 0 if told else len(failed)
    return ask_model(prompt, variables, reply_class, run, checks=(check,), sample=sample)


def ask_until_valid(
    prompt: str, variables: JsonObject, reply_class: type[R], run: Run, *checks: Check[R]
) -> R | None:
    """Ask the model in up to ``tries`` samples, and return its first valid reply; None if there is none.

    For the phase of answering, which must not lose what the attempts found. Each failure is noted
    on the step. Raises InvalidReplyError at the first one if ``own_knowledge`` is off.
    """
    settings = TriadSettings.of_run(run)
    for sample in range(settings.tries):
        try:
            return ask_model(prompt, variables, reply_class, run, checks=checks, sample=sample)
        except InvalidReplyError as error:
            if not settings.own_knowledge:
                raise
            run.note(error.message)
    return None


# Templates: their slots are names in angle brackets


def list_mentions(triplets: Triplets) -> tuple[str, ...]:
    """Return the names at the ends of triplets, each once. Unknowns are left out.

    Names that differ in letter case are different mentions: "Orange" and "orange" need not be one
    thing.
    """
    ends: list[str] = []
    for triplet in triplets:
        ends += triplet.ends
    return tuple(end for end in dict.fromkeys(ends) if not end.startswith("?"))


def find_template_problems(template: str, triplets: Triplets, *_: object) -> Iterator[str]:
    """Yield a problem for each rule that a strict template breaks; nothing if it is valid.

    It must have every triplet, be a SELECT of one variable or one count, or an ASK, and meet what
    ``find_slot_problems`` asks of it. Missing triplets come first, in their order.
    """
    filled = _fill_with_slots(template, triplets)
    for slot, triplet in zip(_relation_slots(triplets), triplets, strict=True):
        if slot not in filled:
            yield f"the template lacks <{triplet.subject}> <{triplet.relation}> <{triplet.object}>"
    yield from find_slot_problems(template, triplets, one_column=True)


def find_slot_problems(
    template: str, triplets: Triplets, *, allows_more: bool = False, one_column: bool = False
) -> Iterator[str]:
    """Yield what in a template cannot be filled with vertices and relations, or cannot be run.

    Every IRI in it must be a slot for an end of the triplets, or for a relation between its ends,
    and it must not make IRIs of texts: so a model cannot invent one; the first other IRI is named.
    It must have no triple that is not a triplet, and pass the gate. If it ``allows_more``, it may
    have other triples, and relations wherever a query may have a predicate. With ``one_column`` a
    SELECT must have a single one. It is not executed.
    """
    filled = _fill_with_slots(template, triplets, fills_all=allows_more)
    slots = {*_mention_slots(triplets), *_relation_slots(triplets)}
    for iri in IRI_OR_IRI_FUNCTION.findall(filled):
        if iri not in slots or iri in template:
            yield f"{iri} is no entity of the triplets, or no relation between these ends"
            break
    try:
        query = analyze_query(filled)
    except GraphError as error:
        yield error.message
        return
    terms = set()
    for term in chain.from_iterable(query.patterns):
        if not term.startswith("?"):
            terms.add(term)
    has_unknown_predicate = any(predicate.startswith("?") for _, predicate, _ in query.patterns)
    if not allows_more and (has_unknown_predicate or terms - slots):
        yield "a triple is none of the triplets; compare a value in a FILTER"
    if one_column and query.kind != "boolean" and len(query.projected_variables) != 1:
        yield "SELECT exactly one variable, or one count"


def _mention_slots(triplets: Triplets) -> list[str]:
    """Return an IRI of its own for each mention, in the order of ``list_mentions``."""
    return [f"<urn:slot:{number}>" for number, _ in enumerate(list_mentions(triplets))]


def _relation_slots(triplets: Triplets) -> list[str]:
    """Return an IRI of its own for the relation of each triplet."""
    return [f"<urn:slot:r{number}>" for number, _ in enumerate(triplets)]


def _fill_with_slots(template: str, triplets: Triplets, *, fills_all: bool = False) -> str:
    """Return a template with an IRI of its own in each of its slots; ``fills_all`` as in ``fill_template``."""
    relations: list[RelationTerm] = [(slot, "out") for slot in _relation_slots(triplets)]
    mentions = _mention_slots(triplets)
    return fill_template(template, triplets, mentions, relations, fills_all=fills_all)


def fill_template(
    template: str,
    triplets: Triplets,
    entity_terms: Sequence[str],
    relation_terms: Sequence[RelationTerm],
    *,
    fills_all: bool = False,
) -> str:
    """Return a template with its slots filled with SPARQL terms, or with names for a reader.

    ``entity_terms`` has a term for each mention, in the order of ``list_mentions``.
    ``relation_terms`` has a term and a direction for each triplet. A triple of the template that
    has the relation and both ends of a triplet gets subject and object in the order of the triplet,
    in the other order with the direction "in", or with None in the order of the template. The
    relation of any other triple stays as it is, but with ``fills_all`` it is replaced too, in the
    order of the template: in a list with ";", in a path, or between other ends. A name that is also
    that of a mention is not, and of several triplets with one relation the first counts.

    Of two triplets with the same relation and ends, "Plato admires Aristotle" and the reverse, a
    triple is the one that has its order. A slot means the name that is written like it, else the
    only one that differs from it in letter case alone.
    """
    mentions = list_mentions(triplets)
    term_of = dict(zip(mentions, entity_terms, strict=True))
    relation_of = dict(zip(triplets, relation_terms, strict=True))
    end_slot = _make_slot_pattern(mentions)
    relation_slot = _make_slot_pattern([triplet.relation for triplet in triplets])

    predicates: dict[str, str] = {}
    if fills_all:
        for triplet, (predicate, _) in zip(triplets, relation_terms, strict=True):
            predicates.setdefault(triplet.relation, predicate)

    def fill_slot(match: re.Match[str]) -> str:
        """Return the term that a matched slot means, of mentions first; the slot unchanged if it means none."""
        slot = match[0]
        mention = _read_end(slot, mentions)
        if mention in term_of:
            return term_of[mention]
        return predicates.get(_read_end(slot, predicates), slot)

    def fill_part(match: re.Match[str]) -> str:
        """Return a matched triple with its terms in the wanted order, and what is no triplet with filled slots."""
        triplet = None
        if match[2]:
            subject = _read_end(match[1], mentions)
            object_ = _read_end(match[3], mentions)
            triplet = _find_triplet(subject, match[2][1:-1], object_, triplets)
        if triplet is None:
            return re.sub(slot_pattern, fill_slot, match[0], flags=re.IGNORECASE)
        predicate, direction = relation_of[triplet]
        ends = [subject, object_]
        if direction == "out":
            ends = [triplet.subject, triplet.object]
        elif direction == "in":
            ends = [triplet.object, triplet.subject]
        first, last = (term_of.get(end, end) for end in ends)
        return f"{first} {predicate} {last}"

    slot_pattern = rf"{end_slot}|{relation_slot}"
    end = rf"(\?\w+|{end_slot})"
    triple = rf"{end}\s*({relation_slot})\s*{end}"
    # In one pass, so that a name that was put in is not taken for a slot.
    return re.sub(rf"{triple}|{slot_pattern}", fill_part, template, flags=re.IGNORECASE)


def _find_triplet(subject: str, relation: str, object_: str, triplets: Triplets) -> Triplet | None:
    """Return the triplet that a triple of a template stands for, or None if it is none of them.

    Its ends must be those of the triplet, and its relation must match as in ``_match_name``. A
    triplet with the ends in the same order goes before one with the ends swapped.
    """
    for ends in ((subject, object_), (object_, subject)):
        between = {}
        for triplet in triplets:
            if triplet.ends == ends:
                between[triplet.relation] = triplet
        name = _match_name(relation, between)
        if name is not None:
            return between[name]
    return None


def _make_slot_pattern(names: Iterable[str]) -> str:
    """Return a regular expression for any of the names in angle brackets, longest first."""
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first))
    return rf"<\s*(?:{alternatives})\s*>"


def _read_end(text: str, mentions: Iterable[str]) -> str:
    """Return the mention that a slot means, "" if it means none; a variable as it is."""
    if text.startswith("?"):
        return text
    return _match_name(text[1:-1], mentions) or ""


def _match_name(text: str, names: Iterable[str]) -> str | None:
    """Return the name that the text of a slot means: the equal one, else the only one equal but for letter case.

    None if there is no such name. White space does not count.
    """
    return find_label(" ".join(text.split()), set(names))


class TripletsReply(Reply):
    """The triplets, each of subject, relation and object, after what led to them."""

    reason: str
    triplets: list[list[str]]
    """Each has a subject, a relation and an object."""


class TemplateReply(Reply):
    """The template, after what led to it."""

    reason: str
    sparql: str


class WrittenQueryReply(Reply):
    """The query, after what led to it."""

    reason: str
    sparql: str


class TypeReply(Reply):
    """What kind of answer is asked for."""

    type: AnswerType


class PublishedTypeReply(Reply):
    """The same in angle brackets, after what led to it (appendix B)."""

    reason: str
    type: typing.Literal["<count>", "<select>", "<yes or no>"]


# Triplets


def find_triplet_problems(triplets: Triplets, *_: object) -> Iterator[str]:
    """Yield a problem for each rule that triplets break; nothing if they are valid.

    There must be 1 to MAX_TRIPLETS, and at least one mention. No part may be empty. An unknown must
    be written as a variable of SPARQL.
    """
    if not list_mentions(triplets) or len(triplets) > MAX_TRIPLETS:
        yield f"give 1 to {MAX_TRIPLETS} triplets, of which one at least names an entity"
    for triplet in triplets:
        if not all((*triplet.ends, triplet.relation)):
            yield f"{triplet} lacks a part"
    for triplet in triplets:
        for end in triplet.ends:
            if end.startswith("?") and not VARIABLE.fullmatch(end):
                yield f"{end!r} is no variable: write ?name"


@agent("triplets", check=find_triplet_problems, kind="model")
def extract_triplets(question: str, failed: Faults, run: Run) -> Triplets:
    """Ask the model for the question as triplets (Equation 2).

    ``failed`` says why each earlier attempt found no query; the model sees it with the setting
    ``retry_feedback``. Raises InvalidReplyError if the triplets of no reply pass
    ``find_triplet_problems``.
    """
    prompt = prompt_of_guidelines("triad/triplets", run)
    check: Check[TripletsReply] = Check(
        "the triplets", lambda reply: "; ".join(find_triplet_problems(_read_triplets(reply)))
    )
    reply = ask_in_attempt(prompt, {"question": question}, failed, TripletsReply, check, run)
    return _read_triplets(reply)


def _read_triplets(reply: TripletsReply) -> Triplets:
    """Return the distinct triplets of a reply, in its order, with single spaces between words.

    A list with less than three parts is filled up with empty ones. One with more parts becomes a
    triplet of three empty ones. ``find_triplet_problems`` refuses both.
    """
    triplets: dict[Triplet, None] = {}
    for texts in reply.triplets:
        padded = [*texts, "", "", ""]
        parts = []
        for text in padded:
            parts.append(" ".join(text.split()))
        if any(parts[3:]):
            parts = ["", "", ""]
        triplets[Triplet(*parts[:3])] = None
    return tuple(triplets)


# The query


@agent("template", check=find_template_problems, kind="model")
def write_template(triplets: Triplets, question: str, failed: Faults, run: Run) -> str:
    """Ask the model for a SPARQL template of the triplets (Equation 3).

    It has names in angle brackets in the places of IRIs. ``failed`` says why each earlier attempt
    found no query; the model sees it with the setting ``retry_feedback``. The template must pass
    ``find_slot_problems``, with the setting ``free_templates`` also with triples that are no
    triplets; with ``strict_templates`` it must have every triplet and no other triple, and one
    column. Returned without spaces around it. Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    find_problems: Callable[[str, Triplets], Iterator[str]] = find_template_problems
    if not settings.strict_templates:
        find_problems = partial(find_slot_problems, allows_more=settings.free_templates)
    prompt = prompt_of_guidelines("triad/template", run)
    variables = {"question": question, "triplets": [triplet.as_tuple for triplet in triplets]}
    check: Check[TemplateReply] = Check(
        "the triplets as SPARQL", lambda reply: "; ".join(find_problems(reply.sparql, triplets))
    )
    reply = ask_in_attempt(prompt, variables, failed, TemplateReply, check, run)
    return reply.sparql.strip()


def find_query_problems(query: CandidateQuery | WrittenQueryReply, *_: object) -> Iterator[str]:
    """Yield the reason if a query cannot be run; nothing if it can.

    It must be a SELECT of at least one variable, or an ASK, that passes the gate. It is not
    executed.
    """
    try:
        parts = analyze_query(query.sparql)
    except GraphError as error:
        yield error.message
        return
    if parts.kind != "boolean" and not parts.projected_variables:
        yield "SELECT a variable, or write ASK"


@agent("written_query", check=find_query_problems, kind="model")
def write_query(
    triplets: Triplets,
    linked: tuple[Choice, ...],
    question: str,
    failed: Faults,
    run: Run,
) -> CandidateQuery:
    """Ask the model for an executable query of the linked URIs (section 4.3, without D-query).

    It takes the place of the template and of the choice of a query. ``linked`` has a choice for
    each mention, then for each triplet. ``failed`` says why earlier attempts found no query (see
    ``ask_in_attempt``). The query must pass the gate, but need not use the linked URIs, and is not
    executed here. Raises InvalidReplyError if no reply has such a query.
    """
    shown = {}
    for choice in linked:
        uris = []
        for option in choice.chosen:
            if isinstance(option, Candidate | Relation):
                uris.append(option.iri)
        shown[choice.of] = list(dict.fromkeys(map(str, uris)))
    variables = {
        "question": question,
        "triplets": [triplet.as_tuple for triplet in triplets],
        "uris": shown,
    }
    prompt = "triad/written_query"
    check: Check[WrittenQueryReply] = Check(
        "a query that can be run", lambda reply: "; ".join(find_query_problems(reply))
    )
    reply = ask_in_attempt(prompt, variables, failed, WrittenQueryReply, check, run)
    sparql = reply.sparql.strip()
    parts = analyze_query(sparql)
    return CandidateQuery(sparql, parts.patterns, (), 1.0, parts.filters)


# The type of answer


@agent("answer_type", kind="model")
def classify_answer_type(question: str, run: Run) -> AnswerType:
    """Ask the model which type of answer the question asks for (Equation 4).

    It is a number ("count"), things ("select"), or a truth value ("yes or no"). It is "select" if
    no reply is valid, see ``ask_until_valid``.
    """
    prompt = prompt_of_guidelines("triad/answer_type", run)
    reply_class: type[TypeReply | PublishedTypeReply] = TypeReply
    if TriadSettings.of_run(run).answer_type_from == "chain_of_thought":
        prompt = "triad/answer_type_reasoned"
        reply_class = PublishedTypeReply
    reply = ask_until_valid(prompt, {"question": question}, reply_class, run)
    if reply:
        return typing.cast(AnswerType, reply.type.strip("<>"))
    return "select"
