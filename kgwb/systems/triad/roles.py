"""Triad's roles: the generalist (3.1), the decision-maker (3.2) and the advisor (3.3), asked of one model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import rdflib
from pydantic import StrictInt

from kgwb.errors import GraphError
from kgwb.flow import Answer, AnswerKind, CandidateQuery, Direction, RetrievedCandidates, Value
from kgwb.kg.algebra import analyze_query
from kgwb.kg.base import ResultSet
from kgwb.kg.queries import with_display_names
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.linking import number_candidates
from kgwb.systems.queries import find_row_support, is_number, label_terms
from kgwb.systems.triad.records import Choice, Queries, Relation, Triplet
from kgwb.systems.triad.settings import TriadSettings

AnswerType = Literal["count", "select", "yes or no"]
Triplets = tuple[Triplet, ...]
MAX_TRIPLETS = 8
VARIABLE = re.compile(r"\?[A-Za-z_]\w*", re.ASCII)
IRI_OR_IRI_FUNCTION = re.compile(r"<[^<>\s]*>|\b(?:IRI|URI)\s*\(", re.IGNORECASE)
"""An IRI, or what makes one of a text."""


class TripletsReply(Reply):
    """The triplets, each of subject, relation and object, after what led to them."""

    model_config = schema_config(
        "TripletsReply",
        "The triplets, each of subject, relation and object, after what led to them.",
    )

    reason: str
    triplets: list[list[str]]


class TemplateReply(Reply):
    """The template, after what led to it."""

    model_config = schema_config("TemplateReply", "The template, after what led to it.")

    reason: str
    sparql: str


class TypeReply(Reply):
    """What kind of answer is asked for."""

    model_config = schema_config("TypeReply", "What kind of answer is asked for.")

    type: AnswerType


def list_mentions(triplets: Triplets) -> tuple[str, ...]:
    """The names at the ends of triplets."""
    ends = (end for triplet in triplets for end in triplet.ends if not end.startswith("?"))
    return tuple(dict.fromkeys(ends))


def find_triplet_problems(triplets: Triplets, *_: object) -> Iterator[str]:
    """What is wrong with triplets."""
    if not list_mentions(triplets) or len(triplets) > MAX_TRIPLETS:
        yield f"give 1 to {MAX_TRIPLETS} triplets, of which one at least names an entity"
    yield from (f"{each} lacks a part" for each in triplets if not all((*each.ends, each.relation)))
    unknowns = (end for triplet in triplets for end in triplet.ends if end.startswith("?"))
    yield from (
        f"{end!r} is no variable: write ?name" for end in unknowns if not VARIABLE.fullmatch(end)
    )


@agent("triplets", check=find_triplet_problems, kind="model")
def extract_triplets(question: str, failed: tuple[str, ...], run: Run) -> Triplets:
    """The question as triplets; ``failed`` says why nothing came of earlier tries."""
    check = Check[TripletsReply](
        "the triplets", lambda reply: "; ".join(find_triplet_problems(_read_triplets(reply)))
    )
    variables = {"question": question, "failed": list(failed)}
    return _read_triplets(ask("triad/triplets", variables, TripletsReply, run, checks=(check,)))


def _read_triplets(reply: TripletsReply) -> Triplets:
    """The triplets of a reply; what is too short lacks a part."""
    tidy = ([" ".join(part.split()) for part in [*parts, "", "", ""]] for parts in reply.triplets)
    whole = (Triplet(*parts[:3]) if not any(parts[3:]) else Triplet("", "", "") for parts in tidy)
    return tuple(dict.fromkeys(whole))


def find_template_problems(template: str, triplets: Triplets, *_: object) -> Iterator[str]:
    """What is wrong with a template; its every IRI must be a slot, so that none can be made up."""
    ends = [f"<urn:slot:{place}>" for place, _ in enumerate(list_mentions(triplets))]
    relations = [f"<urn:slot:r{place}>" for place, _ in enumerate(triplets)]
    slots = {*ends, *relations}
    text = fill_template(template, triplets, ends, [(slot, "out") for slot in relations])
    for slot, triplet in zip(relations, triplets, strict=True):
        if slot not in text:
            yield f"the template lacks <{triplet.subject}> <{triplet.relation}> <{triplet.object}>"
    if strange := [
        iri for iri in IRI_OR_IRI_FUNCTION.findall(text) if iri not in slots or iri in template
    ]:
        yield f"{strange[0]} is no entity of the triplets, or no relation between these ends"
    try:
        parts = analyze_query(text)
    except GraphError as error:
        yield error.message
        return
    terms = {term for pattern in parts.patterns for term in pattern if not term.startswith("?")}
    if terms - slots or any(predicate.startswith("?") for _, predicate, _ in parts.patterns):
        yield "a triple is none of the triplets; compare a value in a FILTER"
    if parts.kind != "boolean" and len(parts.projected_variables) != 1:
        yield "SELECT exactly one variable, or one count"


@agent("template", check=find_template_problems, kind="model")
def write_template(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> str:
    """A query that names the entities and relations of the triplets in angle brackets."""
    shown = [[each.subject, each.relation, each.object] for each in triplets]
    variables = {"question": question, "triplets": shown, "failed": list(failed)}
    wrong = lambda reply: "; ".join(find_template_problems(reply.sparql, triplets))  # noqa: E731
    check = Check[TemplateReply]("the triplets as SPARQL", wrong)
    return ask("triad/template", variables, TemplateReply, run, checks=(check,)).sparql.strip()


def fill_template(
    template: str,
    triplets: Triplets,
    entity_terms: Sequence[str],
    relation_terms: Sequence[tuple[str, Direction]],
) -> str:
    """The template with a term for each mention and for each triplet's relation, in their order.

    A triple stands as its triplet does, "in" the other way round.
    """
    names = list_mentions(triplets)
    terms = dict(zip(map(_normalize_name, names), entity_terms, strict=True))
    end, relation = (
        _make_slot_pattern(names),
        _make_slot_pattern(triplet.relation for triplet in triplets),
    )

    def triple(match: re.Match[str]) -> str:
        subject, written, object_ = map(_strip_brackets, match.groups())
        for triplet, (predicate, direction) in zip(triplets, relation_terms, strict=True):
            own = [*map(_normalize_name, triplet.ends)]
            if written == _normalize_name(triplet.relation) and {subject, object_} == {*own}:
                first, last = own if direction == "out" else own[::-1]
                return f"{terms.get(first, first)} {predicate} {terms.get(last, last)}"
        return match[0]

    text = re.sub(
        rf"(\?\w+|{end})\s*({relation})\s*(\?\w+|{end})", triple, template, flags=re.IGNORECASE
    )
    return re.sub(end, lambda match: terms[_strip_brackets(match[0])], text, flags=re.IGNORECASE)


def _make_slot_pattern(names: Iterable[str]) -> str:
    """What matches any of the names in angle brackets."""
    return rf"<\s*(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\s*>"


def _strip_brackets(written: str) -> str:
    return written if written.startswith("?") else _normalize_name(written[1:-1])


def _normalize_name(name: str) -> str:
    return name if name.startswith("?") else " ".join(name.split()).casefold()


@agent("answer_type", kind="model")
def classify_answer_type(question: str, run: Run) -> AnswerType:
    """Whether a number, things, or yes or no is asked for."""
    return ask("triad/answer_type", {"question": question}, TypeReply, run).type


class ChoiceReply(Reply):
    """The numbers of what is chosen, best first, after why."""

    model_config = schema_config(
        "ChoiceReply", "The numbers of what is chosen, best first, after why."
    )

    reason: str
    numbers: list[StrictInt]


def find_choice_problems(choice: Choice, offered: Any, *_: object) -> Iterable[str]:
    """What is wrong with a choice put in by hand."""
    options = getattr(offered, "candidates", getattr(offered, "kept", offered))
    return [f"{each} is not among what is offered" for each in choice.chosen if each not in options]


def ask_for_choice(
    prompt: str,
    subject: str,
    options: Sequence[Any],
    min_choices: int,
    max_choices: int,
    variables: Mapping[str, Any],
    run: Run,
) -> Choice:
    """``least`` to ``most`` of the options, by their numbers: a model can choose nothing else."""

    def offered(reply: ChoiceReply) -> str:
        if wrong := [number for number in reply.numbers if not 1 <= number <= len(options)]:
            return f"there is no number {wrong[0]}; they go from 1 to {len(options)}"
        right = min_choices <= len({*reply.numbers}) == len(reply.numbers) <= max_choices
        return "" if right else f"choose {min_choices} to {max_choices}, each once"

    check = Check[ChoiceReply]("among those offered", offered)
    reply = ask(prompt, {**variables, "most": max_choices}, ChoiceReply, run, checks=(check,))
    return Choice(subject, tuple(options[number - 1] for number in reply.numbers), reply.reason)


@agent("entity_choice", subject="entity", check=find_choice_problems, kind="model")
def choose_entities(
    retrieved: RetrievedCandidates, entity: str, question: str, failed: tuple[str, ...], run: Run
) -> Choice:
    """At most K of the candidates; ``fast`` asks no model where one alone has exactly this label."""
    candidates, most = retrieved.candidates, TriadSettings.of_run(run).entities
    alone = run.settings.is_fast and len(candidates) == 1 and candidates[0].score >= 1
    if not candidates or alone or TriadSettings.of_run(run).ablation == "no_uri_choice":
        reason = "the labels most like it" if candidates else "no label holds these words"
        return Choice(entity, candidates[:most], reason)
    variables = {"question": question, "entity": entity, "failed": list(failed)}
    shown = {"candidates": number_candidates(candidates)}
    return ask_for_choice(
        "triad/entity_choice", entity, candidates, 0, most, variables | shown, run
    )


@agent("relation_choice", subject="triplet", check=find_choice_problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...],
    triplet: Triplet,
    question: str,
    failed: tuple[str, ...],
    run: Run,
) -> Choice:
    """At most K of the relations."""
    most = TriadSettings.of_run(run).relations
    if not relations or TriadSettings.of_run(run).ablation == "no_uri_choice":
        reason = "the names most like it" if relations else "there is no relation around it"
        return Choice(str(triplet), relations[:most], reason)
    shown = []
    for number, each in enumerate(relations, 1):
        first, last = triplet.ends if each.direction == "out" else triplet.ends[::-1]
        shown.append({"number": number, "triple": [first, each.name, last]})
    words = [triplet.subject, triplet.relation, triplet.object]
    variables = {"question": question, "triplet": words, "relations": shown, "failed": list(failed)}
    return ask_for_choice("triad/relation_choice", str(triplet), relations, 0, most, variables, run)


@agent("query_choice", check=find_choice_problems, kind="model")
def choose_query(queries: Queries, question: str, run: Run) -> Choice:
    """The query that answers; no model is asked where only one has results."""
    if len(queries.kept) < 2 or TriadSettings.of_run(run).ablation == "no_query_choice":
        return Choice("query", queries.kept[:1])
    shown = [
        {"number": number, "query": each.reads, "rows": each.rows, "first": list(each.results)}
        for number, each in enumerate(queries.kept, 1)
    ]
    variables = {"question": question, "queries": shown}
    return ask_for_choice("triad/query_choice", "query", queries.kept, 1, 1, variables, run)


KIND_BY_ANSWER_TYPE: dict[AnswerType, AnswerKind] = {
    "count": "count",
    "select": "list",
    "yes or no": "boolean",
}


class KnowledgeReply(Reply):
    """One fact from memory, or True or False; "" if it does not know."""

    model_config = schema_config(
        "KnowledgeReply", 'One fact from memory, or True or False; "" if it does not know.'
    )

    answer: str


@agent("answer", kind="sparql")
def build_answer(query: CandidateQuery, asked: AnswerType, run: Run) -> Answer:
    """What the query gives, each value with triples that it stands on."""
    result: ResultSet | None = None
    if analyze_query(query.sparql).kind == "boolean":
        truth: bool | None = run.kg.ask(query.sparql)
    else:
        result = run.kg.select(query.sparql)
        truth = bool(result.rows) if asked == "yes or no" else None
    rows = {row: row[0] for row in result.rows if row[0] is not None} if result else {}
    columns = result.variables if result else ()
    standing = find_row_support(query.sparql, columns, [*rows], run) if truth is not False else {}
    labels = label_terms(rows.values(), run)
    values = [Value(term, labels[term], standing.get(row, ())) for row, term in rows.items()]
    if truth is not None or (asked == "count" and not all(map(is_number, rows.values()))):
        count = len(rows) if truth is None else truth
        triples = dict.fromkeys(triple for support in standing.values() for triple in support)
        values = [Value(rdflib.Literal(count), str(count).lower(), tuple(triples))]
    kind: AnswerKind = "boolean" if truth is not None else KIND_BY_ANSWER_TYPE[asked]
    return with_display_names(run.kg, Answer(kind, tuple(values), (query.sparql,)))


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, asked: AnswerType, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such, if yes or no or one fact is asked for."""
    truth = asked == "yes or no"
    if asked == "count" or (TriadSettings.of_run(run).ablation == "boolean_fallback" and not truth):
        return Answer(KIND_BY_ANSWER_TYPE[asked], reason=reason)
    right = {"True", "False"} if truth else ()
    check = Check[KnowledgeReply](
        "True or False",
        lambda reply: "say True or False" if right and reply.answer not in right else "",
    )
    task = "triad/own_truth" if truth else "triad/own_fact"
    text = ask(task, {"question": question}, KnowledgeReply, run, checks=(check,)).answer.strip()
    known: bool | str = text == "True" if truth else text
    value = Value(rdflib.Literal(known), text.lower() if truth else text)
    return Answer(
        KIND_BY_ANSWER_TYPE[asked], (value,) if text else (), reason=reason, ungrounded=bool(text)
    )
