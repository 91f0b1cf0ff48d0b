"""Triad's decision-maker: it only ever chooses among options that it is offered (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import StrictInt

from kgwb.build import (
    Candidate,
    Check,
    Direction,
    Reply,
    RetrievedCandidates,
    Run,
    agent,
    schema_config,
)
from kgwb.build.linking import is_decided_unasked, number_candidates, tell_rows_apart
from kgwb.systems.triad.asking import ask_in_attempt
from kgwb.systems.triad.records import Choice, Filled, Queries, Relation, Triplet
from kgwb.systems.triad.settings import TriadSettings

Identified = TypeVar("Identified", Candidate, Relation)


class ChoiceReply(Reply):
    """The numbers of the chosen options, best first, after the reason."""

    model_config = schema_config(
        "ChoiceReply", "The numbers of what is chosen, best first, after why."
    )

    reason: str
    numbers: list[StrictInt]


class UrisReply(Reply):
    """The chosen URIs, best first, and nothing else (appendix C)."""

    model_config = schema_config("UrisReply", "The URIs that are chosen, the most likely first.")

    uris: list[str]


class ChosenQueryReply(Reply):
    """One of the queries of a list (appendix C)."""

    model_config = schema_config(
        "ChosenQueryReply", "The query that is chosen, as the list has it."
    )

    sparql: str


def find_choice_problems(choice: Choice, offered: Any, *_: object) -> Iterator[str]:
    """Yield a problem for each chosen thing, in a choice that a person put in, that was not an option.

    ``offered`` is the first input of the step: the options, or the record that has them.
    """
    options = getattr(offered, "candidates", getattr(offered, "kept", offered))
    for option in choice.chosen:
        if option not in options:
            yield f"{option} is not one of the options"


# Choices by number, and by URI


class ChoiceTask(NamedTuple):
    """What the model is to choose, and with which prompt."""

    prompt: str
    subject: str
    """What the choice is made for: the mention, the triplet, or "query"."""
    min_choices: int
    max_choices: int


def choose_by_number(
    task: ChoiceTask,
    options: Sequence[Candidate | Relation | Filled],
    variables: Mapping[str, Any],
    failed: Sequence[str],
    run: Run,
) -> Choice:
    """Ask the model to choose from options by their numbers, which begin at 1, and return its choice.

    The numbers must be different, existing ones, as many as the task says. ``variables`` are those
    of the prompt, among them the options as it sees them; "most" is added. The choice has the
    options in the model's order, with its reason. Raises InvalidReplyError if no reply is valid.
    """

    def find_problem(reply: ChoiceReply) -> str:
        """Return a problem if a number is no option's, occurs twice, or if they are too few or too many; else ""."""
        for number in reply.numbers:
            if not 1 <= number <= len(options):
                return f"there is no number {number}; they go from 1 to {len(options)}"
        return _find_count_problem(reply.numbers, task)

    variables = {**variables, "most": task.max_choices}
    check = Check("among those offered", find_problem)
    reply = ask_in_attempt(task.prompt, variables, failed, ChoiceReply, check, run)
    chosen = [options[number - 1] for number in reply.numbers]
    return Choice(task.subject, tuple(chosen), reply.reason)


def choose_by_uri(
    task: ChoiceTask,
    options: Sequence[Identified],
    variables: Mapping[str, Any],
    failed: Sequence[str],
    run: Run,
) -> Choice:
    """Ask the model to choose from options by their URIs, as published (appendix C), and return its choice.

    They must be different URIs of the options, as many as the task says. A URI stands for every
    option that has it: a relation may be one in both directions. ``variables`` are those of the
    prompt; "uris", one a line, and "most" are added. The choice has no reason. Raises
    InvalidReplyError if no reply is valid.
    """
    options_by_uri: dict[str, list[Identified]] = {}
    for option in options:
        options_by_uri.setdefault(str(option.iri), []).append(option)

    def find_problem(reply: UrisReply) -> str:
        """Return a problem if a URI is no option's, occurs twice, or if they are too few or too many; else ""."""
        for uri in _strip_uris(reply.uris):
            if uri not in options_by_uri:
                return f"{uri!r} is not in the list"
        return _find_count_problem(_strip_uris(reply.uris), task)

    variables = {**variables, "uris": "\n".join(options_by_uri), "most": task.max_choices}
    check = Check("among those offered", find_problem)
    reply = ask_in_attempt(task.prompt, variables, failed, UrisReply, check, run)
    chosen: list[Identified] = []
    for uri in _strip_uris(reply.uris):
        chosen += options_by_uri[uri]
    return Choice(task.subject, tuple(chosen))


def _strip_uris(uris: Sequence[str]) -> list[str]:
    """Return URIs without the white space and the angle brackets that a model may put around."""
    return [uri.strip().removeprefix("<").removesuffix(">") for uri in uris]


def _find_count_problem(chosen: Sequence[object], task: ChoiceTask) -> str:
    """Return a problem if there are too few or too many choices for the task, or one twice; "" if not."""
    is_repeated = len(set(chosen)) < len(chosen)
    if is_repeated or not task.min_choices <= len(chosen) <= task.max_choices:
        return f"choose {task.min_choices} to {task.max_choices}, each once"
    return ""


# Entities


@agent("entity_choice", subject="entity", check=find_choice_problems, kind="model")
def choose_entities(
    retrieved: RetrievedCandidates, entity: str, question: str, failed: tuple[str, ...], run: Run
) -> Choice:
    """Choose K vertices for a mention, best first (Equation 5).

    The model chooses them from the candidates: at most K (setting ``entities``) and perhaps none,
    or exactly K with the setting ``exact_k``. It is not asked if there are no candidates. The first
    K are taken without it if ``ablation`` is "no_uri_choice", and the only candidate where
    ``unasked_choice`` says so. Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    candidates = retrieved.candidates
    if not candidates:
        return Choice(entity, (), "no label holds these words")
    if settings.ablation == "no_uri_choice" or is_decided_unasked(candidates, settings):
        return Choice(entity, candidates[: settings.entities], "the labels most like it")

    variables: dict[str, Any] = {"question": question, "entity": entity}
    most = settings.entities
    fewest = 0
    if settings.exact_k:
        most = min(most, len({candidate.iri for candidate in candidates}))
        fewest = most
    if settings.entity_options == "uris":
        task = ChoiceTask("triad/entity_choice_published", entity, fewest, most)
        return choose_by_uri(task, candidates, variables, failed, run)
    task = ChoiceTask("triad/entity_choice", entity, fewest, most)
    variables["candidates"] = number_candidates(candidates)
    return choose_by_number(task, candidates, variables, failed, run)


# Relations


@agent("relation_choice", subject="triplet", check=find_choice_problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...],
    triplet: Triplet,
    question: str,
    failed: tuple[str, ...],
    run: Run,
) -> Choice:
    """Choose at most K relations of the graph for a triplet, best first (Equation 6).

    K is the setting ``relations``. The model chooses them, and may choose none. It is not asked if
    there are no relations. The first K are taken without it if ``ablation`` is "no_uri_choice".
    Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    most = settings.relations
    subject = str(triplet)
    if not relations:
        return Choice(subject, (), "there is no relation around it")
    if settings.ablation == "no_uri_choice":
        return Choice(subject, relations[:most], "the names most like it")
    if settings.relation_options == "uris":
        task = ChoiceTask("triad/relation_choice_published", subject, 0, most)
        entities = list(triplet.ends)
        return choose_by_uri(
            task, relations, {"question": question, "entities": entities}, failed, run
        )
    task = ChoiceTask("triad/relation_choice", subject, 0, most)
    variables = {
        "question": question,
        "triplet": triplet.parts,
        "relations": _number_relations(relations, triplet),
    }
    return choose_by_number(task, relations, variables, failed, run)


def _number_relations(relations: Sequence[Relation], triplet: Triplet) -> list[dict[str, object]]:
    """Return relations as a model sees them: number from 1, triple, and an example of what it leads to.

    The triple has subject, name and object in the direction of the relation. The key "leads to" is
    left out without an example. Relations of which all this is the same have their IRI, too.
    """
    numbered = []
    for number, relation in enumerate(relations, 1):
        first, last = _order_ends(triplet, relation.direction)
        shown: dict[str, object] = {"number": number, "triple": [first, relation.name, last]}
        if relation.example:
            shown["leads to"] = relation.example
        numbered.append(shown)
    tell_rows_apart(numbered, "iri", [str(relation.iri) for relation in relations])
    return numbered


def _order_ends(triplet: Triplet, direction: Direction) -> tuple[str, str]:
    """Return the ends of a triplet as subject and object of the graph's triple."""
    if direction == "in":
        return triplet.object, triplet.subject
    return triplet.ends


# The query


@agent("query_choice", check=find_choice_problems, kind="model")
def choose_query(queries: Queries, question: str, failed: tuple[str, ...], run: Run) -> Choice:
    """Choose one of the queries that have a result (Equation 7).

    With the setting ``may_refuse_queries`` the model may choose none, and judges a single query
    too. Otherwise a single query is chosen without asking it. ``failed`` has a reason for each
    earlier attempt; only their number counts here, as the number of the sample. The choice is empty
    if no query has a result. Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    kept = queries.kept
    shows_results = settings.query_options == "results"
    may_refuse = settings.may_refuse_queries and shows_results
    if not kept or (len(kept) == 1 and not may_refuse):
        return Choice("query", kept)
    if not shows_results:
        return _choose_query_by_text(kept, question, failed, run)
    task = ChoiceTask("triad/query_choice", "query", 1, 1)
    if may_refuse:
        task = ChoiceTask("triad/query_judgement", "query", 0, 1)
    variables = {"question": question, "queries": _number_queries(kept)}
    return choose_by_number(task, kept, variables, failed, run)


def _number_queries(queries: Sequence[Filled]) -> list[dict[str, object]]:
    """Return queries as a model sees them: number from 1, text with names, number of results, first results.

    An ASK has "answer", "yes" or "no", in place of the results. Queries of which all this is the
    same have their SPARQL, too.
    """
    numbered = []
    for number, query in enumerate(queries, 1):
        shown: dict[str, object] = {"number": number, "query": query.reads}
        if query.is_boolean:
            shown["answer"] = "yes" if query.rows else "no"
        else:
            shown["rows"] = query.rows
            shown["first"] = list(query.results)
        numbered.append(shown)
    tell_rows_apart(numbered, "sparql", [query.query.sparql for query in queries])
    return numbered


def _choose_query_by_text(
    queries: Sequence[Filled], question: str, failed: Sequence[str], run: Run
) -> Choice:
    """Ask the model for the SPARQL of the query that answers the question, as published (appendix C).

    Its reply must be one of ``queries`` but for white space; this one is returned as the choice,
    without a reason. Raises InvalidReplyError if no reply is.
    """
    query_by_text: dict[str, Filled] = {}
    for filled in queries:
        query_by_text.setdefault(_normalize_space(filled.query.sparql), filled)

    def find_problem(reply: ChosenQueryReply) -> str:
        """Return a problem unless the reply is one of the queries."""
        if _normalize_space(reply.sparql) in query_by_text:
            return ""
        return "this is none of the queries in the list"

    listed = "\n".join(query_by_text)
    check = Check("among those offered", find_problem)
    prompt = "triad/query_choice_published"
    variables = {"question": question, "queries": listed}
    reply = ask_in_attempt(prompt, variables, failed, ChosenQueryReply, check, run)
    return Choice("query", (query_by_text[_normalize_space(reply.sparql)],))


def _normalize_space(text: str) -> str:
    return " ".join(text.split())
