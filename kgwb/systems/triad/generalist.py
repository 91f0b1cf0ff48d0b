"""The generalist (G-agent): triplets, SPARQL template and type of answer, from a few examples (3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from kgwb.errors import GraphError
from kgwb.flow import Direction
from kgwb.kg.algebra import parts_of
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask
from kgwb.systems.triad.records import Triplet

AnswerType = Literal["count", "select", "yes or no"]
Triplets = tuple[Triplet, ...]
MOST_TRIPLETS = 8
VARIABLE = re.compile(r"\?[A-Za-z_]\w*", re.ASCII)
MADE_UP = re.compile(r"<[^<>\s]*>|\b(?:IRI|URI)\s*\(", re.IGNORECASE)
"""An IRI, or what makes one of a text."""


class TripletsReply(Reply):
    """The triplets, each of subject, relation and object, after what led to them."""

    reason: str
    triplets: list[list[str]]


class TemplateReply(Reply):
    """The template, after what led to it."""

    reason: str
    sparql: str


class TypeReply(Reply):
    """What kind of answer is asked for."""

    type: AnswerType


def mentions(triplets: Triplets) -> tuple[str, ...]:
    """The names at the ends of triplets."""
    ends = (end for triplet in triplets for end in triplet.ends if not end.startswith("?"))
    return tuple(dict.fromkeys(ends))


def triplet_problems(triplets: Triplets, *_: object) -> Iterator[str]:
    """What is wrong with triplets."""
    if not mentions(triplets) or len(triplets) > MOST_TRIPLETS:
        yield f"give 1 to {MOST_TRIPLETS} triplets, of which one at least names an entity"
    yield from (f"{each} lacks a part" for each in triplets if not all((*each.ends, each.relation)))
    unknowns = (end for triplet in triplets for end in triplet.ends if end.startswith("?"))
    yield from (f"{end!r} is no variable: write ?name" for end in unknowns if not VARIABLE.fullmatch(end))


@agent("triplets", check=triplet_problems, kind="model")
def parse(question: str, failed: tuple[str, ...], run: Run) -> Triplets:
    """The question as triplets; ``failed`` says why nothing came of earlier tries."""
    check = Check[TripletsReply]("the triplets", lambda reply: "; ".join(triplet_problems(_read(reply))))
    variables = {"question": question, "failed": list(failed)}
    return _read(ask("triad/triplets", variables, TripletsReply, run, checks=(check,)))


def _read(reply: TripletsReply) -> Triplets:
    """The triplets of a reply; what is too short lacks a part."""
    tidy = ([" ".join(part.split()) for part in [*parts, "", "", ""]] for parts in reply.triplets)
    whole = (Triplet(*parts[:3]) if not any(parts[3:]) else Triplet("", "", "") for parts in tidy)
    return tuple(dict.fromkeys(whole))


def template_problems(template: str, triplets: Triplets, *_: object) -> Iterator[str]:
    """What is wrong with a template; its every IRI must be a slot, so that none can be made up."""
    ends = [f"<urn:slot:{place}>" for place, _ in enumerate(mentions(triplets))]
    relations = [f"<urn:slot:r{place}>" for place, _ in enumerate(triplets)]
    slots = {*ends, *relations}
    text = fill(template, triplets, ends, [(slot, "out") for slot in relations])
    for slot, triplet in zip(relations, triplets, strict=True):
        if slot not in text:
            yield f"the template lacks <{triplet.subject}> <{triplet.relation}> <{triplet.object}>"
    if strange := [iri for iri in MADE_UP.findall(text) if iri not in slots or iri in template]:
        yield f"{strange[0]} is no entity of the triplets, or no relation between these ends"
    try:
        parts = parts_of(text)
    except GraphError as error:
        yield error.message
        return
    terms = {term for pattern in parts.patterns for term in pattern if not term.startswith("?")}
    if terms - slots or any(predicate.startswith("?") for _, predicate, _ in parts.patterns):
        yield "a triple is none of the triplets; compare a value in a FILTER"
    if parts.kind != "boolean" and len(parts.asked) != 1:
        yield "SELECT exactly one variable, or one count"


@agent("template", check=template_problems, kind="model")
def write_template(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> str:
    """A query that names the entities and relations of the triplets in angle brackets."""
    shown = [[each.subject, each.relation, each.object] for each in triplets]
    variables = {"question": question, "triplets": shown, "failed": list(failed)}
    wrong = lambda reply: "; ".join(template_problems(reply.sparql, triplets))  # noqa: E731
    check = Check[TemplateReply]("the triplets as SPARQL", wrong)
    return ask("triad/template", variables, TemplateReply, run, checks=(check,)).sparql.strip()


def fill(
    template: str, triplets: Triplets, ends: Sequence[str], relations: Sequence[tuple[str, Direction]]
) -> str:
    """The template with a term for each mention and for each triplet's relation, in their order.

    A triple stands as its triplet does, "in" the other way round.
    """
    names = mentions(triplets)
    terms = dict(zip(map(_plain, names), ends, strict=True))
    end, relation = _slot(names), _slot(triplet.relation for triplet in triplets)

    def triple(match: re.Match[str]) -> str:
        subject, written, object_ = map(_unbracketed, match.groups())
        for triplet, (predicate, direction) in zip(triplets, relations, strict=True):
            own = [*map(_plain, triplet.ends)]
            if written == _plain(triplet.relation) and {subject, object_} == {*own}:
                first, last = own if direction == "out" else own[::-1]
                return f"{terms.get(first, first)} {predicate} {terms.get(last, last)}"
        return match[0]

    text = re.sub(rf"(\?\w+|{end})\s*({relation})\s*(\?\w+|{end})", triple, template, flags=re.IGNORECASE)
    return re.sub(end, lambda match: terms[_unbracketed(match[0])], text, flags=re.IGNORECASE)


def _slot(names: Iterable[str]) -> str:
    """What matches any of the names in angle brackets."""
    return rf"<\s*(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\s*>"


def _unbracketed(written: str) -> str:
    return written if written.startswith("?") else _plain(written[1:-1])


def _plain(name: str) -> str:
    return name if name.startswith("?") else " ".join(name.split()).casefold()


@agent("answer_type", kind="model")
def classify(question: str, run: Run) -> AnswerType:
    """Whether a number, things, or yes or no is asked for."""
    return ask("triad/answer_type", {"question": question}, TypeReply, run).type
