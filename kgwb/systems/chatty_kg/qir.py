"""QIR agent: a standalone question as triples over entities and unknowns (section 4.2.3, equation 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from kgwb.flow import AnswerKind
from kgwb.llm.rules.words import POLITE_SUBJECTS
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, find_problems, schema_config
from kgwb.systems.chatty_kg.records import QIR, Fact, is_unknown

BOOLEAN_OPENERS = frozenset(
    "is are was were am do does did has have had can could will would should isn't aren't wasn't weren't "
    "don't doesn't didn't hasn't".split()
)
"""A question that opens with one of these is answered by yes or no: decided here and nowhere else."""
COUNT_QUESTION = re.compile(
    r"^(in |on |for |at )?how (many|much)\b|^(what|give|tell).{0,12}\b(number|count) of\b",
    re.IGNORECASE,
)
FOLLOW_UP_QUESTION = re.compile(
    r"(\?\s+|, and (if so,? )?)(\w+ )?(how|what|when|where|which|who|whose)\b", re.IGNORECASE
)
"""What follows on a yes-or-no question that is no more than an opening: "..., and what are they?"."""

EMPTY_ENTRIES = frozenset(("", "none", "nothing"))
"""What small models write into a list that shall be empty."""


class TripleReply(Reply):
    """One relational fact."""

    model_config = schema_config("TripleReply", "One relational fact.")

    subject: str
    predicate: str
    object: str


class PublishedReply(Reply):
    """The chain of thought as fields: entities, unknowns, then the facts between them."""

    model_config = schema_config(
        "PublishedReply",
        "The chain of thought as fields: entities, unknowns, then the facts between them.",
    )

    entities: list[str]
    unknowns: list[str]
    triples: list[TripleReply]
    target: str
    question_type: Literal["list", "count", "boolean"]


class QirReply(PublishedReply):
    """The same, with what of the question the triples cannot say (``fast``)."""

    model_config = schema_config(
        "QirReply", "The same, with what of the question the triples cannot say (``fast``)."
    )

    beyond: list[str]


def find_qir_problems(qir: QIR, question: str) -> Iterator[str]:
    """What the triples validator has against a QIR put in by hand, which it judges in the form of a reply."""
    triples = [
        TripleReply(subject=f.subject, predicate=f.relation, object=f.object) for f in qir.facts
    ]
    reply = QirReply(
        entities=list(qir.entities),
        unknowns=list(qir.unknowns),
        triples=triples,
        target=qir.target,
        question_type=qir.kind,
        beyond=list(qir.beyond),
    )
    yield from find_problems(reply, make_triple_checks(determine_kind(question, qir.kind)))
    odd = (name for name in (*qir.unknowns, qir.target) if name and _make_variable(name) != name)
    yield from (
        f"{name!r} is no variable, write {_make_variable(name)}" for name in dict.fromkeys(odd)
    )
    if qir.kind != "boolean" and qir.unknowns and not qir.target:
        yield f"the target is empty: say which of {', '.join(qir.unknowns)} is asked for"


@agent("qir", check=find_qir_problems, kind="model")
def extract_qir(question: str, run: Run) -> QIR:
    """The question intermediate representation, after at most theta attempts.

    If none passes, a reply that at least has a whole triple is used as it is (as the reference code does).
    """
    stated = determine_kind(question, None)
    checks, fast = make_triple_checks(stated), run.settings.is_fast
    last = lambda reply: bool(reply.triples) and not checks[0].test(reply)  # noqa: E731
    name, form = (
        ("chatty_kg/qir", QirReply) if fast else ("chatty_kg/qir_published", PublishedReply)
    )
    reply = ask(name, {"question": question}, form, run, checks=checks, last_resort=last)
    return build_qir(reply, question, as_published=not fast)


def make_triple_checks(kind: AnswerKind | None) -> tuple[Check[PublishedReply], ...]:
    """The checks of section 4.2.3; (1), well-formed JSON, is the door's own.

    A question that the triples cannot say is refused whatever they are, so they need only be whole.
    """

    def whole(reply: PublishedReply) -> str:
        parts = [(t.subject.strip(), t.predicate.strip(), t.object.strip()) for t in reply.triples]
        broken = [number for number, triple in enumerate(parts, 1) if not all(triple)]
        return f"triple {', '.join(map(str, broken))} lacks a part" if broken else ""

    def entity(reply: PublishedReply) -> str:
        named = any(not is_unknown(end) and end.strip() for end in _list_ends(reply))
        return "" if named or _list_inexpressible(reply) else "no triple names an entity"

    def unknown(reply: PublishedReply) -> str:
        if (
            _list_inexpressible(reply)
            or kind == "boolean"
            or (kind is None and reply.question_type == "boolean")
        ):
            return ""
        return (
            ""
            if any(is_unknown(end) for end in _list_ends(reply))
            else "no triple has an unknown such as ?x"
        )

    def target(reply: PublishedReply) -> str:
        known = {_make_variable(end) for end in _list_ends(reply) if is_unknown(end)}
        if _list_inexpressible(reply) or not known or not is_unknown(reply.target):
            return ""
        return (
            ""
            if _make_variable(reply.target) in known
            else f"the target {reply.target} is in no triple"
        )

    return (
        Check("subject, predicate, object", whole),
        Check("at least one entity", entity),
        Check("at least one unknown unless boolean", unknown),
        Check("the target is one of the unknowns", target),
    )


def build_qir(reply: PublishedReply, question: str, *, as_published: bool = False) -> QIR:
    """The QIR of a valid reply: names tidied, near-duplicates dropped, target and kind settled.

    ``published`` takes the alphabetically first unknown as target, as the reference code does.
    """
    facts: dict[tuple[str, ...], Fact] = {}
    for triple in reply.triples:
        fact = Fact(
            _clean_name(triple.subject),
            " ".join(triple.predicate.split()),
            _clean_name(triple.object),
        )
        facts.setdefault(tuple(map(str.casefold, fact.as_tuple)), fact)
    kind = determine_kind(question, reply.question_type) or "list"
    unknowns = QIR(tuple(facts.values())).unknowns
    target = _make_variable(reply.target) if is_unknown(reply.target) else ""
    if kind == "boolean" or not unknowns:
        target = ""
    elif as_published:
        target = min(unknowns)
    elif target not in unknowns:
        target = unknowns[0]
    beyond = _list_inexpressible(reply)
    return QIR(tuple(facts.values()), target, kind if unknowns or beyond else "boolean", beyond)


def determine_kind(question: str, kind_from_model: AnswerKind | None) -> AnswerKind | None:
    """Whether a list, a count or yes or no is asked for: by the opening words, else as the model stated."""
    opening = [word.casefold().strip(",") for word in question.split()[:2]]
    # could you name ..., does anyone know ..., would love to know ...
    asks_on = {*opening[1:]} & POLITE_SUBJECTS or FOLLOW_UP_QUESTION.search(question)
    if opening and opening[0] in BOOLEAN_OPENERS and not asks_on:
        return "boolean"
    if COUNT_QUESTION.search(question):
        return "count"
    return "list" if kind_from_model == "boolean" else kind_from_model


def _list_inexpressible(reply: PublishedReply) -> tuple[str, ...]:
    """What the triples cannot say, as the reply words it."""
    beyond = reply.beyond if isinstance(reply, QirReply) else ()
    parts = dict.fromkeys(" ".join(part.split()) for part in beyond)
    return tuple(part for part in parts if part.casefold().strip(".") not in EMPTY_ENTRIES)


def _list_ends(reply: PublishedReply) -> Iterable[str]:
    return (end.strip() for triple in reply.triples for end in (triple.subject, triple.object))


def _clean_name(end: str) -> str:
    end = " ".join(end.split())
    return _make_variable(end) if is_unknown(end) else end


def _make_variable(name: str) -> str:
    """A SPARQL variable of an unknown's name; a bare "?" becomes ?unknown."""
    plain = "".join(c if c.isascii() else f"u{ord(c):x}" for c in name.strip().lstrip("?"))
    return "?" + (re.sub(r"\W+", "_", plain).strip("_") or "unknown")
