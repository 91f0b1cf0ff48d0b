"""QIR agent (Chatty-KG, section 4.2.3): a standalone question as triples over entities and unknowns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic.json_schema import SkipJsonSchema

from kgwb.build import (
    POLITE_SUBJECTS,
    AnswerKind,
    Check,
    Reply,
    Run,
    agent,
    find_problems,
    try_to_ask,
)
from kgwb.systems.chatty_kg.records import LEFT_OUT, QIR, Comparison, Fact, is_unknown
from kgwb.systems.chatty_kg.settings import ChattySettings

BOOLEAN_OPENERS = frozenset(
    "is are was were am do does did has have had can could will would should isn't aren't wasn't weren't "
    "don't doesn't didn't hasn't".split()
)
"""A question that begins with one of these words is answered by yes or no, see ``determine_kind``."""
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
COUNT_QUESTION = re.compile(
    r"^(in |on |for |at )?how (many|much)\b|^(what|give|tell).{0,12}\b(number|count) of\b",
    re.IGNORECASE,
)
FOLLOW_UP_QUESTION = re.compile(
    r"(\?\s+|, and (if so,? )?)(\w+ )?(how|what|when|where|which|who|whose)\b", re.IGNORECASE
)
"""The second part of a question that only begins like a yes-or-no question: ", and what are they"."""

ANYONE = frozenset(("anyone", "anybody"))
"""After one of BOOLEAN_OPENERS, with another verb than "know", they ask for yes or no."""
EMPTY_ENTRIES = frozenset(("", "none", "nothing"))
"""Entries that small models write into a list that should be empty."""


class TripleReply(Reply):
    """One relational fact."""

    subject: str
    predicate: str
    object: str


class PublishedReply(Reply):
    """The chain of thought as fields: entities, unknowns, then the facts between them."""

    entities: list[str]
    unknowns: list[str]
    triples: list[TripleReply]
    target: str
    question_type: Literal["list", "count", "boolean"]


class QirReply(PublishedReply):
    """The same, with what of the question the triples cannot say (``fast``)."""

    beyond: list[str]
    comparisons: SkipJsonSchema[tuple[Comparison, ...]] = ()
    """The model ``rules`` alone gives them: the schema that is sent to a model does not have them."""


def find_qir_problems(qir: QIR, question: str) -> Iterator[str]:
    """Yield what is wrong with a QIR that a person put in; nothing if it is valid.

    It must pass the checks of a model's reply, each unknown must be a SPARQL variable, what is
    compared must be an unknown, and a QIR with unknowns needs a target unless it is boolean.
    """
    triples = []
    for fact in qir.facts:
        triple = TripleReply(subject=fact.subject, predicate=fact.relation, object=fact.object)
        triples.append(triple)
    reply = QirReply(
        entities=list(qir.entities),
        unknowns=list(qir.unknowns),
        triples=triples,
        target=", ".join(qir.selected),
        question_type=qir.kind,
        beyond=[*qir.beyond, *(LEFT_OUT + doubt for doubt in qir.doubts)],
    )
    kind = determine_kind(question, qir.kind)
    yield from find_problems(reply, make_triple_checks(kind))
    for name in dict.fromkeys((*qir.unknowns, *qir.selected)):
        if name and _make_variable(name) != name:
            yield f"{name!r} is not a variable; write {_make_variable(name)}"
    for comparison in qir.comparisons:
        if comparison.unknown not in qir.unknowns:
            yield f"{comparison} compares what is in no triple"
    if qir.kind != "boolean" and qir.unknowns and not qir.target:
        yield f"the target is empty: say which of {', '.join(qir.unknowns)} is asked for"


@agent("qir", check=find_qir_problems, kind="model")
def extract_qir(question: str, run: Run) -> QIR:
    """Extract the QIR of a standalone question (Chatty-KG, Algorithm 1, lines 7 to 14).

    The reply must pass ``make_triple_checks`` within theta attempts. If none does, the last
    well-formed reply is used if it has triples and all their parts, as in line 13 of the algorithm.
    If that fails too, InvalidReplyError is raised or a QIR without facts is returned
    (``exhausted_attempts``).
    """
    settings = ChattySettings.of_run(run)
    prompt = "chatty_kg/qir_published"
    reply_class: type[PublishedReply] = PublishedReply
    if settings.refuses_inexpressible:
        prompt = "chatty_kg/qir"
        reply_class = QirReply
    kind = None
    if settings.kind_from == "words":
        kind = determine_kind(question, None)
    checks = make_triple_checks(kind, checks_target=settings.checks_target)
    reply = try_to_ask(
        prompt,
        {"question": question},
        reply_class,
        run,
        checks=checks,
        last_resort=_has_complete_triples,
    )
    if reply is None:
        return QIR((), kind=kind or "list")
    qir = build_qir(reply, question, target=settings.target, kind_from=settings.kind_from)
    return qir if settings.several_targets else replace(qir, columns=())


# The triples validator


def make_triple_checks(
    kind: AnswerKind | None, *, checks_target: bool = True
) -> tuple[Check[PublishedReply], ...]:
    """Return the checks that the triples of a reply must pass: (2) to (4) of Chatty-KG, section 4.2.3.

    They are: no triple lacks a part, an entity, and an unknown unless the question is boolean.
    ``checks_target`` adds one of ours: the target is one of the unknowns. Check (1), well-formed
    JSON, is made by ``ask``. ``kind`` is what the words of the question ask for; None leaves that
    to the reply. If the triples cannot express the question, it will not be answered, so only check
    (2) counts.
    """
    checks = (
        Check("subject, predicate, object", _find_incomplete_triples),
        Check("at least one entity", _find_missing_entity),
        Check("at least one unknown unless boolean", partial(_find_missing_unknown, kind=kind)),
    )
    if not checks_target:
        return checks
    return (*checks, Check("the target is one of the unknowns", _find_wrong_target))


def _find_incomplete_triples(reply: PublishedReply) -> str:
    """Return a problem with the numbers, from 1, of the triples in which a part is blank; "" if none is."""
    incomplete = []
    for number, triple in enumerate(reply.triples, 1):
        parts = (triple.subject, triple.predicate, triple.object)
        if not all(map(str.strip, parts)):
            incomplete.append(str(number))
    return f"triple {', '.join(incomplete)} lacks a part" if incomplete else ""


def _has_complete_triples(reply: PublishedReply) -> bool:
    """Return whether a reply has triples, and each has its three parts."""
    return bool(reply.triples) and not _find_incomplete_triples(reply)


def _find_missing_entity(reply: PublishedReply) -> str:
    """Return a problem if all ends of the triples are unknowns or blank; "" if one is an entity.

    Also "" if triples cannot express the question.
    """
    if _list_inexpressible(reply):
        return ""
    for end in _list_ends(reply):
        if end and not is_unknown(end):
            return ""
    return "no triple names an entity"


def _find_missing_unknown(reply: PublishedReply, kind: AnswerKind | None) -> str:
    """Return a problem if no end of the triples is an unknown; "" if one is.

    Also "" if the question is boolean, by ``kind`` or else by the reply, or if triples cannot
    express it.
    """
    is_boolean = (kind or reply.question_type) == "boolean"
    if is_boolean or _list_inexpressible(reply) or _list_unknowns(reply):
        return ""
    return "no triple has an unknown such as ?x"


def _find_wrong_target(reply: PublishedReply) -> str:
    """Return a problem if the target is an unknown, but not one of those in the triples; "" otherwise.

    There is no problem if the triples have no unknown, if the target is no unknown (``build_qir``
    then chooses one), or if triples cannot express the question.
    """
    unknowns = _list_unknowns(reply)
    if not unknowns or not is_unknown(reply.target) or _list_inexpressible(reply):
        return ""
    missing = [target for target in _list_targets(reply) if target not in unknowns]
    if missing:
        return f"the target {', '.join(missing)} is in no triple"
    return ""


def _list_targets(reply: PublishedReply) -> list[str]:
    """Return the targets of a reply as variables: "?id, ?name" names two, each once."""
    targets = []
    for part in reply.target.split(","):
        if is_unknown(part.strip()):
            targets.append(_make_variable(part))
    return list(dict.fromkeys(targets))


def _list_inexpressible(reply: PublishedReply) -> tuple[str, ...]:
    """Return the parts of the question that triples cannot express, in the words of the reply.

    They are those of "beyond" that do not begin with LEFT_OUT.
    """
    return tuple(part for part in _list_beyond(reply) if not part.startswith(LEFT_OUT))


def _list_doubts(reply: PublishedReply) -> tuple[str, ...]:
    """Return the parts of the question that a reply leaves out with a doubt."""
    parts = []
    for part in _list_beyond(reply):
        if part.startswith(LEFT_OUT):
            parts.append(part)
    return tuple(part.removeprefix(LEFT_OUT) for part in parts)


def _list_beyond(reply: PublishedReply) -> Iterable[str]:
    """Return the parts of "beyond" with single spaces, each once, without EMPTY_ENTRIES.

    A PublishedReply has no such parts.
    """
    parts: dict[str, None] = {}
    for entry in getattr(reply, "beyond", ()):
        part = " ".join(entry.split())
        if part.casefold().strip(".") not in EMPTY_ENTRIES:
            parts[part] = None
    return parts


def _list_ends(reply: PublishedReply) -> list[str]:
    """Return the subject and object of each triple, without blanks around them.

    An end of blanks is "". Repetitions are kept.
    """
    ends = []
    for triple in reply.triples:
        ends += [triple.subject.strip(), triple.object.strip()]
    return ends


def _list_unknowns(reply: PublishedReply) -> list[str]:
    """Return the unknowns at the ends of the triples, as variables."""
    return [_make_variable(end) for end in _list_ends(reply) if is_unknown(end)]


# From a reply to a QIR


def build_qir(
    reply: PublishedReply,
    question: str,
    *,
    target: Literal["asked_for", "first_by_name"] = "asked_for",
    kind_from: Literal["words", "model"] = "words",
) -> QIR:
    """Return the QIR of a valid reply.

    Of facts that differ in letter case and spaces only, the first is kept. A question without
    unknowns is boolean, unless triples cannot express it, and a boolean one has no target. With
    ``kind_from`` "model" it has no facts instead, unless the reply says that it is boolean. Any
    other target is that of the reply if it is one of the unknowns, else the first unknown. If the
    reply has several, the first is the target, and all are the columns of a list. With ``target``
    "first_by_name" it is the first unknown in alphabetical order (reference code). With
    ``kind_from`` "model" the words of the question do not overrule the reply's type of question.
    """
    facts: dict[tuple[str, ...], Fact] = {}
    for triple in reply.triples:
        subject = _clean_end(triple.subject)
        relation = " ".join(triple.predicate.split())
        fact = Fact(subject, relation, _clean_end(triple.object))
        folded = tuple(map(str.casefold, fact.as_tuple))
        facts.setdefault(folded, fact)
    qir = QIR(
        tuple(facts.values()),
        beyond=_list_inexpressible(reply),
        doubts=_list_doubts(reply),
        comparisons=getattr(reply, "comparisons", ()),
    )
    kind = reply.question_type
    if kind_from == "words":
        kind = determine_kind(question, kind) or "list"
    unknowns = qir.unknowns
    if not unknowns and not qir.beyond:
        if kind_from == "model" and kind != "boolean":
            # The facts do not say what is asked for, so no query could select it.
            return replace(qir, facts=(), kind=kind)
        kind = "boolean"
    if kind == "boolean" or not unknowns:
        return replace(qir, kind=kind)
    if target == "first_by_name":
        return replace(qir, target=min(unknowns), kind=kind)
    targets = [each for each in _list_targets(reply) if each in unknowns] or [unknowns[0]]
    if kind == "count" and reply.question_type == "list" and len(targets) > 1:
        kind = "list"  # how many each of them has
    columns = tuple(targets) if kind == "list" and len(targets) > 1 else ()
    return replace(qir, target=targets[0], kind=kind, columns=columns)


def determine_kind(question: str, kind_from_model: AnswerKind | None) -> AnswerKind | None:
    """Return whether a question asks for a list, a count, or yes or no, by its opening words.

    If they do not decide, ``kind_from_model`` is taken: "count" as it is, "boolean" as "list", and
    None as None. Of "Does anyone speak ..." its "boolean" stays.
    """
    if _opens_as_boolean(question):
        return "boolean"
    if COUNT_QUESTION.search(question):
        return "count"
    if _asks_about_anyone(question):
        return kind_from_model
    return "list" if kind_from_model == "boolean" else kind_from_model


def _opens_as_boolean(question: str) -> bool:
    """Return whether a question begins with one of BOOLEAN_OPENERS and asks for yes or no.

    Not so "Could you name ..." and "Does anyone ...", where one of POLITE_SUBJECTS follows, and a
    question that goes on with another one, see FOLLOW_UP_QUESTION.
    """
    opening = _opening_words(question)
    if not opening or opening[0] not in BOOLEAN_OPENERS:
        return False
    is_polite = not POLITE_SUBJECTS.isdisjoint(opening[1:])
    return not is_polite and not FOLLOW_UP_QUESTION.search(question)


def _asks_about_anyone(question: str) -> bool:
    """Return whether a question begins like "Does anyone", but not like "Does anyone know"."""
    opening = _opening_words(question)
    if not opening or opening[0] not in BOOLEAN_OPENERS or ANYONE.isdisjoint(opening[1:]):
        return False
    return question.casefold().split()[2:3] != ["know"]


def _opening_words(question: str) -> list[str]:
    """Return the first two words in lower case, without commas."""
    return [word.casefold().strip(",") for word in question.split()[:2]]


def _clean_end(end: str) -> str:
    """Return an end of a triple with single spaces; an unknown as a variable."""
    words = " ".join(end.split())
    if is_unknown(words):
        return _make_variable(words)
    return words


def _make_variable(name: str) -> str:
    """Return the SPARQL variable of an unknown's name: "?the_person" for "?the person".

    Characters other than letters, digits and "_" become "_", and none is left at the ends. A
    character that is not ASCII becomes "u" and its code: "?gruf6udfe" for "?größe". A name that is
    empty then becomes "?unknown".
    """
    ascii_name = NOT_ASCII.sub(lambda found: f"u{ord(found[0]):x}", name.strip().lstrip("?"))
    word = re.sub(r"\W+", "_", ascii_name).strip("_")
    return f"?{word or 'unknown'}"
