"""Triad's roles, played by one model: generalist (3.1), decision-maker (3.2) and advisor (3.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import rdflib
from pydantic import StrictInt

from kgwb.flow import (
    Answer,
    AnswerKind,
    Candidate,
    CandidateQuery,
    Direction,
    RetrievedCandidates,
    Value,
)
from kgwb.kg.algebra import analyze_query
from kgwb.kg.queries import Row, with_display_names
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.linking import is_decided_unasked, number_candidates
from kgwb.systems.queries import find_row_support, is_number, label_terms
from kgwb.systems.triad.records import Choice, Filled, Queries, Relation, Triplet, Triplets
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.templates import find_template_problems, list_mentions
from kgwb.terms import Term, Triples

AnswerType = Literal["count", "select", "yes or no"]
KIND_BY_ANSWER_TYPE: dict[AnswerType, AnswerKind] = {
    "count": "count",
    "select": "list",
    "yes or no": "boolean",
}
MAX_TRIPLETS = 8
VARIABLE = re.compile(r"\?[A-Za-z_]\w*", re.ASCII)

# The generalist


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


class TypeReply(Reply):
    """The type of answer that a question asks for."""

    model_config = schema_config("TypeReply", "What kind of answer is asked for.")

    type: AnswerType


def find_triplet_problems(triplets: Triplets, *_: object) -> Iterator[str]:
    """Yield what is wrong with triplets.

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

    ``failed`` says why each earlier attempt found no query; the model sees it.
    """

    def find_problems(reply: TripletsReply) -> str:
        """Return what is wrong with the triplets of a reply, or ""."""
        return "; ".join(find_triplet_problems(_read_triplets(reply)))

    variables = {"question": question, "failed": list(failed)}
    check = Check("the triplets", find_problems)
    reply = ask("triad/triplets", variables, TripletsReply, run, checks=(check,))
    return _read_triplets(reply)


def _read_triplets(reply: TripletsReply) -> Triplets:
    """Return the distinct triplets of a reply, with single spaces.

    A triplet with less than three parts is filled up with empty ones. One with more parts is
    returned with three empty ones. ``find_triplet_problems`` refuses both.
    """
    triplets: dict[Triplet, None] = {}
    for texts in reply.triplets:
        padded = [*texts, "", "", ""]
        parts = [" ".join(text.split()) for text in padded]
        if any(parts[3:]):
            parts = ["", "", ""]
        triplets[Triplet(*parts[:3])] = None
    return tuple(triplets)


@agent("template", check=find_template_problems, kind="model")
def write_template(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> str:
    """Ask the model for a SPARQL template of the triplets (Equation 3).

    It has names in angle brackets in the places of IRIs. ``failed`` says why each earlier attempt
    found no query; the model sees it.
    """

    def find_problems(reply: TemplateReply) -> str:
        """Return what is wrong with the template of a reply, or ""."""
        return "; ".join(find_template_problems(reply.sparql, triplets))

    shown = [_list_parts(triplet) for triplet in triplets]
    variables = {"question": question, "triplets": shown, "failed": list(failed)}
    check = Check("the triplets as SPARQL", find_problems)
    reply = ask("triad/template", variables, TemplateReply, run, checks=(check,))
    return reply.sparql.strip()


def _list_parts(triplet: Triplet) -> list[str]:
    return [triplet.subject, triplet.relation, triplet.object]


@agent("answer_type", kind="model")
def classify_answer_type(question: str, run: Run) -> AnswerType:
    """Ask the model which type of answer the question asks for (Equation 4).

    It is a number ("count"), things ("select"), or a truth value ("yes or no").
    """
    return ask("triad/answer_type", {"question": question}, TypeReply, run).type


# The decision-maker


class ChoiceReply(Reply):
    """The numbers of the chosen options, best first, after the reason."""

    model_config = schema_config(
        "ChoiceReply", "The numbers of what is chosen, best first, after why."
    )

    reason: str
    numbers: list[StrictInt]


def find_choice_problems(choice: Choice, offered: Any, *_: object) -> Iterator[str]:
    """Yield what is wrong with a choice that a person put in: each thing that is not an option.

    ``offered`` is the first input of the step: the options, or the record that has them.
    """
    options = getattr(offered, "candidates", getattr(offered, "kept", offered))
    for option in choice.chosen:
        if option not in options:
            yield f"{option} is not one of the options"


def ask_for_choice(
    prompt: str,
    subject: str,
    options: Sequence[Candidate | Relation | Filled],
    min_choices: int,
    max_choices: int,
    variables: Mapping[str, Any],
    run: Run,
) -> Choice:
    """Ask the model to choose from options by their numbers, which begin at 1.

    It must choose ``min_choices`` to ``max_choices`` different numbers, so that it can choose
    nothing but options. ``variables`` are those of the prompt, among them the options as it sees
    them; "most" is added. ``subject`` is what the choice is made for.
    """

    def find_problem(reply: ChoiceReply) -> str:
        """Return the first thing wrong with the numbers of a reply, or ""."""
        for number in reply.numbers:
            if not 1 <= number <= len(options):
                return f"there is no number {number}; they go from 1 to {len(options)}"
        is_repeated = len(set(reply.numbers)) < len(reply.numbers)
        if is_repeated or not min_choices <= len(reply.numbers) <= max_choices:
            return f"choose {min_choices} to {max_choices}, each once"
        return ""

    variables = {**variables, "most": max_choices}
    check = Check("among those offered", find_problem)
    reply = ask(prompt, variables, ChoiceReply, run, checks=(check,))
    chosen = [options[number - 1] for number in reply.numbers]
    return Choice(subject, tuple(chosen), reply.reason)


@agent("entity_choice", subject="entity", check=find_choice_problems, kind="model")
def choose_entities(
    retrieved: RetrievedCandidates, entity: str, question: str, failed: tuple[str, ...], run: Run
) -> Choice:
    """Choose at most K vertices for a mention, best first (Equation 5).

    The model chooses them from the candidates, and may choose none. It is not asked if there are no
    candidates. The first K are taken without it if ``ablation`` is "no_uri_choice", and the only
    candidate where ``unasked_choice`` says so.
    """
    settings = TriadSettings.of_run(run)
    candidates = retrieved.candidates
    if not candidates:
        return Choice(entity, (), "no label holds these words")
    if settings.ablation == "no_uri_choice" or is_decided_unasked(candidates, settings):
        return Choice(entity, candidates[: settings.entities], "the labels most like it")
    variables = {
        "question": question,
        "entity": entity,
        "failed": list(failed),
        "candidates": number_candidates(candidates),
    }
    return ask_for_choice(
        "triad/entity_choice", entity, candidates, 0, settings.entities, variables, run
    )


@agent("relation_choice", subject="triplet", check=find_choice_problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...],
    triplet: Triplet,
    question: str,
    failed: tuple[str, ...],
    run: Run,
) -> Choice:
    """Choose at most K relations of the graph for a triplet, best first (Equation 6).

    The model chooses them, and may choose none. It is not asked if there are no relations. The
    first K are taken without it if ``ablation`` is "no_uri_choice".
    """
    settings = TriadSettings.of_run(run)
    if not relations:
        return Choice(str(triplet), (), "there is no relation around it")
    if settings.ablation == "no_uri_choice":
        return Choice(str(triplet), relations[: settings.relations], "the names most like it")
    shown = []
    for number, relation in enumerate(relations, 1):
        first, last = _order_ends(triplet, relation.direction)
        triple = [first, relation.name, last]
        shown.append({"number": number, "triple": triple})
    variables = {
        "question": question,
        "triplet": _list_parts(triplet),
        "relations": shown,
        "failed": list(failed),
    }
    return ask_for_choice(
        "triad/relation_choice", str(triplet), relations, 0, settings.relations, variables, run
    )


def _order_ends(triplet: Triplet, direction: Direction) -> tuple[str, str]:
    """Return the ends of a triplet as subject and object of the graph's triple."""
    if direction == "in":
        return triplet.object, triplet.subject
    return triplet.ends


@agent("query_choice", check=find_choice_problems, kind="model")
def choose_query(queries: Queries, question: str, run: Run) -> Choice:
    """Choose one of the queries that have a result (Equation 7).

    The model is not asked if there is only one, or if ``ablation`` is "no_query_choice". Then the
    first is taken.
    """
    settings = TriadSettings.of_run(run)
    if len(queries.kept) < 2 or settings.ablation == "no_query_choice":
        return Choice("query", queries.kept[:1])
    shown = []
    for number, query in enumerate(queries.kept, 1):
        query_data = {
            "number": number,
            "query": query.reads,
            "rows": query.rows,
            "first": list(query.results),
        }
        shown.append(query_data)
    variables = {"question": question, "queries": shown}
    return ask_for_choice("triad/query_choice", "query", queries.kept, 1, 1, variables, run)


# The advisor


class KnowledgeReply(Reply):
    """What the model answers from its own knowledge."""

    model_config = schema_config(
        "KnowledgeReply", 'One fact from memory, or True or False; "" if it does not know.'
    )

    answer: str
    """One fact, or "True" or "False"; "" if it does not know."""


@agent("answer", kind="sparql")
def build_answer(query: CandidateQuery, asked: AnswerType, run: Run) -> Answer:
    """Run the chosen query, and return its values with the triples that support them (Equation 8).

    The answer is a truth value if the query is an ASK, or if yes or no is asked for: whether there
    are rows. It is the number of rows if a count is asked for, unless all values are numbers. A
    truth value or number has the support of all rows. Values are those of the first column.
    """
    sparql = query.sparql
    truth: bool | None = None
    columns: tuple[str, ...] = ()
    terms: dict[Row, Term] = {}
    if analyze_query(sparql).kind == "boolean":
        truth = run.kg.ask(sparql)
    else:
        result = run.kg.select(sparql)
        columns = result.variables
        terms = {row: row[0] for row in result.rows if row[0] is not None}
        if asked == "yes or no":
            truth = bool(result.rows)
    support: Mapping[Row, Triples] = {}
    if truth is not False:
        support = find_row_support(sparql, columns, list(terms), run)
    labels = label_terms(terms.values(), run)

    kind = KIND_BY_ANSWER_TYPE[asked]
    if truth is not None:
        kind = "boolean"
        values = [_make_total(truth, support)]
    elif kind == "count" and not all(map(is_number, terms.values())):
        values = [_make_total(len(terms), support)]
    else:
        values = []
        for row, term in terms.items():
            values.append(Value(term, labels[term], support.get(row, ())))
    answer = Answer(kind, tuple(values), (sparql,))
    return with_display_names(run.kg, answer)


def _make_total(total: int, support: Mapping[Row, Triples]) -> Value:
    """Return a truth value or a number as a value with the support of all rows."""
    triples = dict.fromkeys(chain.from_iterable(support.values()))
    return Value(rdflib.Literal(total), str(total).lower(), tuple(triples))


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, asked: AnswerType, reason: str, run: Run) -> Answer:
    """Ask the model to answer without the graph, and mark its answer as not grounded (3.3).

    It is asked for a truth value or for one fact. It is not asked for a count, and for a fact only
    if ``ablation`` is not "boolean_fallback". ``reason`` says why the graph gave no answer, and is
    kept in the answer, which has no value if the model gave none.
    """
    is_boolean = asked == "yes or no"
    ablation = TriadSettings.of_run(run).ablation
    kind = KIND_BY_ANSWER_TYPE[asked]
    if asked == "count" or (ablation == "boolean_fallback" and not is_boolean):
        return Answer(kind, reason=reason)

    def find_problem(reply: KnowledgeReply) -> str:
        """Return what is wrong with a truth value in a reply, or ""."""
        if is_boolean and reply.answer not in ("True", "False"):
            return "say True or False"
        return ""

    prompt = "triad/own_truth" if is_boolean else "triad/own_fact"
    check = Check("True or False", find_problem)
    reply = ask(prompt, {"question": question}, KnowledgeReply, run, checks=(check,))
    text = reply.answer.strip()
    if not text:
        return Answer(kind, reason=reason)
    value = Value(rdflib.Literal(text), text)
    if is_boolean:
        value = Value(rdflib.Literal(text == "True"), text.lower())
    return Answer(kind, (value,), reason=reason, ungrounded=True)
