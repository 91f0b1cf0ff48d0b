"""Answering: are the triples of this hop enough, and what does the model know by itself? (DoG)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import rdflib

from kgwb.flow import Answer, Term, Value
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, faults
from kgwb.systems.dog.records import Filled, Head, Tried, plain


class TryingReply(Reply):
    """Yes or no first and alone, then why, then the answers, copied from the triples."""

    sufficient: Literal["yes", "no"]
    reason: str
    answers: list[str]


def problems(tried: Tried, question: str, filled: Sequence[Filled]) -> Iterator[str]:
    """What is wrong with a decision put in by hand: what is wrong with a model's."""
    reply = TryingReply(sufficient=tried.sufficient, reason=tried.reason, answers=list(tried.answers))
    yield from faults(reply, checks_of(filled))


@agent("answer_trying", check=problems, kind="model")
def try_answer(question: str, filled: tuple[Filled, ...], run: Run) -> Tried:
    """Whether the triples answer the question, and with which names; every answer is among the triples."""
    shown = []
    for result in filled:
        note = "; ".join(filter(None, (result.note, result.reason)))
        shown.append({"entity": result.head, "triples": list(map(list, result.triples)), "note": note})
    variables = {"question": question, "found": shown}
    reply = ask("dog/answer_trying", variables, TryingReply, run, checks=checks_of(filled))
    return Tried(reply.sufficient, reply.reason, tuple(dict.fromkeys(reply.answers)))


def checks_of(filled: Sequence[Filled]) -> tuple[Check[TryingReply], ...]:
    """A yes has answers and a no has none, and each answer is a name in the triples."""
    known = {plain(end) for result in filled for triple in result.triples for end in triple[::2]}

    def whole(reply: TryingReply) -> str:
        if (reply.sufficient == "yes") == bool(reply.answers):
            return ""
        return "the reply is no, with answers" if reply.answers else "the reply is yes, but gives no answer"

    def among(reply: TryingReply) -> str:
        strange = [name for name in reply.answers if plain(name) not in known]
        return f"{', '.join(map(repr, strange[:5]))} is not in the triples" if strange else ""

    return Check("answers if and only if yes", whole), Check("answers among the triples", among)


def values_of(tried: Tried, filled: Sequence[Filled], heads: Sequence[Head]) -> tuple[Value, ...]:
    """The answers as values with their triples: tails, or vertices that were gone on from.

    Of several vertices with one label those count that most of the topic entities lead to.
    """
    by_name: dict[str, dict[Term, list[Value]]] = {plain(name): {} for name in tried.answers}
    tails = [value for result in filled for value in result.values]
    triples = [triple for value in tails for triple in value.support]
    passed = [value for head in heads for value in head.values]
    extended = (
        replace(value, support=(*value.support, *(triple for triple in triples if value.term in triple[::2])))
        for value in passed
    )
    for value in (*tails, *extended):
        if plain(value.label) in by_name:
            by_name[plain(value.label)].setdefault(value.term, []).append(value)
    reached = Counter(value.term for value in tails)
    values = []
    for same in by_name.values():
        most = max((reached[term] for term in same), default=0)
        for term, ways in same.items():
            if reached[term] == most:
                support = dict.fromkeys(triple for value in ways for triple in value.support)
                values.append(Value(term, ways[0].label, tuple(support)))
    return tuple(sorted(values, key=lambda value: (value.label, str(value.term))))


class KnowledgeReply(Reply):
    """The answers from memory, none if it does not know."""

    answers: list[str]


@agent("own_knowledge", kind="model")
def remember(question: str, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such; ``reason`` is why the graph gave none.

    Asked only by a setting, and whenever the walk ended without an answer: nobody looks at a gold answer.
    """
    reply = ask("dog/own_knowledge", {"question": question}, KnowledgeReply, run)
    names = dict.fromkeys(name.strip() for name in reply.answers if name.strip())
    values = tuple(Value(rdflib.Literal(name), name) for name in names)
    return Answer("list", values, reason=reason, ungrounded=bool(values))
