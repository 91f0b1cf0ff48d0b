"""The decisions of a hop: which relation it follows, and whether it answers the question (DoG)."""

from __future__ import annotations

import typing
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from rdflib import Literal, URIRef

from kgwb.build import (
    Answer,
    Check,
    Direction,
    Iri,
    Reply,
    Run,
    Term,
    Triples,
    Value,
    agent,
    ask_model,
    find_problems,
    schema_config,
)
from kgwb.build.graph import find_predicates
from kgwb.systems.dog.records import (
    BRACKETED_NAME,
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    Relations,
    TriedAnswer,
    collapse_spaces,
    collect_values,
    make_relation_name,
    normalize_name,
)
from kgwb.systems.dog.settings import DogSettings

# Relation filtering


@agent("relations", subject="head", kind="sparql")
def get_relations(head: Head, run: Run) -> Relations:
    """Return the relations of all vertices of a head (DoG, "Knowledge Graph Invoking").

    No model is asked. Predicates that have one name and one direction are one relation. Relations
    come by name, "out" before "in". Labels, descriptions and noise are left out, and with the
    setting ``relation_directions`` also the relations that lead to the head. A blank node has no
    relations here, since a query cannot name it. Two queries are sent at most, and one request for
    names.
    """
    terms = [value.term for value in head.values if isinstance(value.term, URIRef | Literal)]
    if not terms:
        return Relations(head.name, ())
    predicates = find_predicates(run.kg, *terms)
    names = run.kg.names([iri for iri, _ in predicates])
    directions: set[Direction] = {"out"}
    if DogSettings.of_run(run).follows_incoming_relations:
        directions.add("in")
    groups: dict[tuple[str, Direction], list[Iri]] = defaultdict(list)
    for iri, direction in predicates:
        if direction in directions:
            name = make_relation_name(names[iri], iri)
            groups[name, direction].append(iri)

    relations = []
    for (name, direction), iris in groups.items():
        relation = Relation(name, direction, tuple(iris))
        relations.append(relation)
    relations.sort(key=attrgetter("direction"), reverse=True)  # "out" before "in"
    relations.sort(key=attrgetter("name"))
    return Relations(head.name, tuple(relations))


class FilteringReply(Reply):
    """A model's choice of the relation that the first hop of a question follows."""

    model_config = schema_config(
        "FilteringReply",
        'The first-hop sub-question ("" if one hop is left), then its relation; "" if none fits.',
    )

    subquestion: str
    """The first hop as a question; "" if the question has only one hop."""
    relation: str
    """A relation of the list; "" if none fits."""
    reason: str


def find_relation_problems(
    filtered: FilteredRelation, relations: Relations, question: str
) -> Iterator[str]:
    """Yield what is wrong with a choice of a relation that a person put in.

    Its head must be the head of the step, and its relation one of those that the step chooses from.
    No relation is a valid choice. ``question`` is not used.
    """
    relation = filtered.relation
    if filtered.head != relations.head:
        yield f"the relation is for {filtered.head!r}, but the step is for {relations.head!r}"
    if relation is not None and relation not in relations.found:
        names = ", ".join(map(str, relations.found)) or "it is empty"
        yield f"{relation} is not in the list of relations: {names}"


@agent("relation_filtering", subject="relations", check=find_relation_problems, kind="model")
def filter_relation(relations: Relations, question: str, run: Run) -> FilteredRelation:
    """Choose the relation of a head that the first hop of the question follows.

    The model names the first hop as a question, and then one relation of the list or none: only
    "the best unique relation" is used (DoG, "Relation Filtering"). It is not asked if there is no
    relation. The setting ``only_relation`` says whether it is asked about a single one; it is if
    choosing none has a meaning, see ``_can_choose_none``. Raises InvalidReplyError if no reply
    names a relation of the list or none.
    """
    settings = DogSettings.of_run(run)
    if not relations.found:
        return FilteredRelation(relations.head, "", None, "the graph tells nothing about it")
    is_taken = settings.only_relation == "taken" and not _can_choose_none(question, run)
    if len(relations.found) == 1 and is_taken:
        return FilteredRelation(relations.head, "", relations.found[0], "the only relation")

    def find_unlisted(reply: FilteringReply) -> str:
        """Return "" if a reply names a relation of the list or none, else what is wrong."""
        if not reply.relation.strip() or relations.find_relation(reply.relation):
            return ""
        return f"{reply.relation!r} is not in the list"

    names = [str(relation) for relation in relations.found]
    variables = {"question": question, "entity": relations.head, "relations": names}
    check = Check("a relation from the list", find_unlisted)
    reply = ask_model(
        "dog/relation_filtering",
        variables,
        FilteringReply,
        run,
        checks=(check,),
        max_examples=settings.filtering_example_count,
    )
    relation = None
    if reply.relation.strip():
        relation = relations.find_relation(reply.relation)
    subquestion = collapse_spaces(reply.subquestion)
    return FilteredRelation(relations.head, subquestion, relation, reply.reason)


def _can_choose_none(question: str, run: Run) -> bool:
    """Return whether choosing no relation for a head has a meaning, so that a model is asked.

    If the question has several names in brackets, it means that another head comes first. With the
    ablation "no_focusing" it ends the walk, which otherwise goes on to the iteration limit.
    """
    if DogSettings.of_run(run).ablation == "no_focusing":
        return True
    return len(set(BRACKETED_NAME.findall(question))) > 1


# Answer trying


class TryingReply(Reply):
    """A model's decision whether the triples of a hop answer the question."""

    model_config = schema_config(
        "TryingReply",
        "Yes or no first and alone, then why, then the answers, copied from the triples.",
    )

    sufficient: typing.Literal["yes", "no"]
    reason: str
    answers: list[str]
    """Names of heads or tails, as the triples have them."""


def find_answer_problems(
    tried: TriedAnswer, question: str, filled: Sequence[FilledTriples]
) -> Iterator[str]:
    """Yield what is wrong with a decision that a person put in: each check that it fails.

    The checks are those of a model's reply; see ``make_answer_checks``. ``question`` is not used.
    """
    reply = TryingReply(
        sufficient=tried.sufficient, reason=tried.reason, answers=list(tried.answers)
    )
    yield from find_problems(reply, make_answer_checks(filled))


@agent("answer_trying", check=find_answer_problems, kind="model")
def try_answer(question: str, filled: tuple[FilledTriples, ...], run: Run) -> TriedAnswer:
    """Ask the model whether the triples answer the question, and with which names.

    The model sees the triples of each head in words, and whether these are all (DoG, "Answer
    Trying"). Every answer is a name in the triples, and is returned once, in the model's order.
    Raises InvalidReplyError without a valid reply.
    """
    found = []
    for result in filled:
        notes = filter(None, (result.note, result.reason))
        result_data = {
            "entity": result.head,
            "triples": list(map(list, result.triples)),
            "note": "; ".join(notes),
        }
        found.append(result_data)
    variables = {"question": question, "found": found}
    reply = ask_model(
        "dog/answer_trying",
        variables,
        TryingReply,
        run,
        checks=make_answer_checks(filled),
        max_examples=DogSettings.of_run(run).trying_example_count,
    )
    answers = tuple(dict.fromkeys(reply.answers))
    return TriedAnswer(reply.sufficient, reply.reason, answers)


def make_answer_checks(filled: Sequence[FilledTriples]) -> tuple[Check[TryingReply], ...]:
    """Return the two checks that a reply of the model about the triples of a hop must pass.

    The first is that "yes" has at least one answer and "no" has none. The second is that each
    answer is the name of a head or a tail in the triples; letter case and white space are ignored.
    """
    known: set[str] = set()
    for result in filled:
        for triple in result.triples:
            known.update(map(normalize_name, triple[::2]))  # without the relations between

    def find_contradiction(reply: TryingReply) -> str:
        """Return what is wrong with "yes" without answers, or "no" with some; else ""."""
        if reply.sufficient == "yes" and not reply.answers:
            return "the reply is yes, but gives no answer"
        if reply.sufficient == "no" and reply.answers:
            return "the reply is no, with answers"
        return ""

    def find_unknown_names(reply: TryingReply) -> str:
        """Return a problem that names the first five answers that are not in the triples; "" if all are.

        Letter case and white space do not count.
        """
        unknown = [repr(name) for name in reply.answers if normalize_name(name) not in known]
        if unknown:
            return f"{', '.join(unknown[:5])} is not in the triples"
        return ""

    return (
        Check("answers if and only if yes", find_contradiction),
        Check("answers among the triples", find_unknown_names),
    )


def find_answer_values(
    tried: TriedAnswer, filled: Sequence[FilledTriples], heads: Sequence[Head]
) -> tuple[Value, ...]:
    """Return the terms that the answers name, each with the triples that support it.

    ``filled`` are the results of the last hop, and ``heads`` the heads of all hops. An answer names
    a tail of the results or a value of the heads; letter case and white space are ignored. Of
    several terms of one name, those are returned that are a tail of the most results: the terms
    that the most topic entities lead to. The support is the triples that lead to the term, and for
    a value of a head also the triples of the last hop that have it as subject or object. Values
    come in the order of the answers, and terms of one name by label. Returns nothing if the model
    found no answer.
    """
    tails = collect_values(filled)
    last_triples = _merge_support(tails)
    candidates = list(tails)
    for value in collect_values(heads):
        triples = [triple for triple in last_triples if value.term in triple[::2]]
        support = (*value.support, *triples)
        candidates.append(replace(value, support=support))

    groups: dict[tuple[str, Term], list[Value]] = defaultdict(list)
    for value in candidates:
        groups[normalize_name(value.label), value.term].append(value)
    tail_counts = Counter(value.term for value in tails)
    highest_counts: dict[str, int] = defaultdict(int)
    for name, term in groups:
        highest_counts[name] = max(highest_counts[name], tail_counts[term])

    values_by_name: dict[str, list[Value]] = defaultdict(list)
    for (name, term), same in groups.items():
        if tail_counts[term] == highest_counts[name]:
            support = _merge_support(same)
            values_by_name[name].append(Value(term, same[0].label, support))
    values = []
    for name in dict.fromkeys(map(normalize_name, tried.answers)):
        values += sorted(values_by_name[name], key=_label_and_term)
    return tuple(values)


def find_last_tails(filled: Sequence[FilledTriples]) -> tuple[Value, ...]:
    """Return the distinct tails of all results of a hop, what their relations lead to, as answers.

    They are sorted by label and then by term. The support of each is the triples of all results
    that lead to it. DoG measures MetaQA so (figure 4, caption).
    """
    groups: dict[Term, list[Value]] = defaultdict(list)
    for value in collect_values(filled):
        groups[value.term].append(value)
    values = []
    for term, same in groups.items():
        values.append(Value(term, same[0].label, _merge_support(same)))
    return tuple(sorted(values, key=_label_and_term))


def _label_and_term(value: Value) -> tuple[str, str]:
    """Return what values are sorted by."""
    return value.label, str(value.term)


def _merge_support(values: Sequence[Value]) -> Triples:
    """Return the triples that support any of the values, each once, in the order of the values."""
    return Answer("list", tuple(values)).support


# Answers without the graph


class KnowledgeReply(Reply):
    """What a model answers from its own knowledge."""

    model_config = schema_config(
        "KnowledgeReply",
        "The answers from memory, none if it does not know.",
    )

    answers: list[str]
    """Empty if it does not know."""


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, reason: str, run: Run) -> Answer:
    """Ask the model to answer without the graph, and mark its answers as not grounded.

    ``reason`` says why the graph gave no answer. It is kept in the answer, which has no values if
    the model does not know any. Each name that it gives, once and without spaces around it, is a
    value. The model is asked when a walk has ended without an answer (DoG, "Answer Trying"). The
    reference code asks it when the answer of the graph differs from the gold answer. Raises
    InvalidReplyError without a valid reply.
    """
    reply = ask_model("dog/own_knowledge", {"question": question}, KnowledgeReply, run)
    names = dict.fromkeys(map(str.strip, reply.answers))
    values = []
    for name in filter(None, names):
        value = Value(Literal(name), name)
        values.append(value)
    return Answer(
        "list",
        tuple(values),
        reason=reason,
        ungrounded=bool(values),
    )
