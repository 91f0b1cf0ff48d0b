"""Triad's generalist: small tasks that a model learns from a few examples (section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgwb.build import (
    Candidate,
    CandidateQuery,
    Check,
    GraphError,
    Reply,
    Run,
    agent,
    ask_model,
    schema_config,
)
from kgwb.build.graph import analyze_query
from kgwb.systems.triad.asking import ask_in_attempt, prompt_of_guidelines
from kgwb.systems.triad.records import AnswerType, Choice, Relation, Triplet, Triplets
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.templates import (
    find_slot_problems,
    find_template_problems,
    list_mentions,
)

MAX_TRIPLETS = 8
VARIABLE = re.compile(r"\?[A-Za-z_]\w*", re.ASCII)


class TripletsReply(Reply):
    """The triplets of a question, after the reasoning that led to them."""

    model_config = schema_config(
        "TripletsReply",
        "The triplets, each of subject, relation and object, after what led to them.",
    )

    reason: str
    triplets: list[list[str]]
    """Each has a subject, a relation and an object."""


class TemplateReply(Reply):
    """A SPARQL template, after the reasoning that led to it."""

    model_config = schema_config("TemplateReply", "The template, after what led to it.")

    reason: str
    sparql: str


class WrittenQueryReply(Reply):
    """An executable SPARQL query, after the reasoning that led to it."""

    model_config = schema_config("WrittenQueryReply", "The query, after what led to it.")

    reason: str
    sparql: str


class TypeReply(Reply):
    """The type of answer that a question asks for."""

    model_config = schema_config("TypeReply", "What kind of answer is asked for.")

    type: AnswerType


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
def extract_triplets(question: str, failed: tuple[str, ...], run: Run) -> Triplets:
    """Ask the model for the question as triplets (Equation 2).

    ``failed`` says why each earlier attempt found no query; the model sees it with the setting
    ``retry_feedback``. Raises InvalidReplyError if the triplets of no reply pass
    ``find_triplet_problems``.
    """

    def find_problems(reply: TripletsReply) -> str:
        """Return what is wrong with the triplets of a reply, or ""."""
        return "; ".join(find_triplet_problems(_read_triplets(reply)))

    prompt = prompt_of_guidelines("triad/triplets", run)
    check = Check("the triplets", find_problems)
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
        parts = [" ".join(text.split()) for text in padded]
        if any(parts[3:]):
            parts = ["", "", ""]
        triplets[Triplet(*parts[:3])] = None
    return tuple(triplets)


# The query


@agent("template", check=find_template_problems, kind="model")
def write_template(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> str:
    """Ask the model for a SPARQL template of the triplets (Equation 3).

    It has names in angle brackets in the places of IRIs. ``failed`` says why each earlier attempt
    found no query; the model sees it with the setting ``retry_feedback``. The template must pass
    ``find_slot_problems``, and with the setting ``strict_templates`` also have every triplet and
    one column. Returned without spaces around it. Raises InvalidReplyError if no reply is valid.
    """
    find_problems = find_slot_problems
    if TriadSettings.of_run(run).strict_templates:
        find_problems = find_template_problems

    def find_reply_problems(reply: TemplateReply) -> str:
        """Return what is wrong with the template of a reply, or ""."""
        return "; ".join(find_problems(reply.sparql, triplets))

    prompt = prompt_of_guidelines("triad/template", run)
    variables = {"question": question, "triplets": [triplet.parts for triplet in triplets]}
    check = Check("the triplets as SPARQL", find_reply_problems)
    reply = ask_in_attempt(prompt, variables, failed, TemplateReply, check, run)
    return reply.sparql.strip()


def find_query_problems(query: CandidateQuery, *_: object) -> Iterator[str]:
    """Yield what is wrong with a query: it must be a SELECT or an ASK, and pass the gate."""
    yield from _find_sparql_problems(query.sparql)


def _find_sparql_problems(sparql: str) -> Iterator[str]:
    """Yield the reason if a query cannot be run; nothing if it can.

    It must be a SELECT of at least one variable, or an ASK, that passes the gate. It is not
    executed.
    """
    try:
        query = analyze_query(sparql)
    except GraphError as error:
        yield error.message
        return
    if query.kind != "boolean" and not query.projected_variables:
        yield "SELECT a variable, or write ASK"


@agent("written_query", check=find_query_problems, kind="model")
def write_query(
    triplets: Triplets,
    linked: tuple[Choice, ...],
    question: str,
    failed: tuple[str, ...],
    run: Run,
) -> CandidateQuery:
    """Ask the model for an executable query of the linked URIs (section 4.3, without D-query).

    It takes the place of the template and of the choice of a query. ``linked`` has a choice for
    each mention, then for each triplet. ``failed`` says why earlier attempts found no query (see
    ``ask_in_attempt``). The query must pass the gate, but need not use the linked URIs, and is not
    executed here. Raises InvalidReplyError if no reply has such a query.
    """

    def find_reply_problems(reply: WrittenQueryReply) -> str:
        """Return what is wrong with the query of a reply, or ""."""
        return "; ".join(_find_sparql_problems(reply.sparql))

    shown = {}
    for choice in linked:
        uris = [option.iri for option in choice.chosen if isinstance(option, Candidate | Relation)]
        shown[choice.of] = list(dict.fromkeys(map(str, uris)))
    variables = {
        "question": question,
        "triplets": [triplet.parts for triplet in triplets],
        "uris": shown,
    }
    prompt = "triad/written_query"
    check = Check("a query that can be run", find_reply_problems)
    reply = ask_in_attempt(prompt, variables, failed, WrittenQueryReply, check, run)
    sparql = reply.sparql.strip()
    parts = analyze_query(sparql)
    return CandidateQuery(sparql, parts.patterns, (), 1.0, parts.filters)


# The type of answer


@agent("answer_type", kind="model")
def classify_answer_type(question: str, run: Run) -> AnswerType:
    """Ask the model which type of answer the question asks for (Equation 4).

    It is a number ("count"), things ("select"), or a truth value ("yes or no").
    """
    prompt = prompt_of_guidelines("triad/answer_type", run)
    return ask_model(prompt, {"question": question}, TypeReply, run).type
