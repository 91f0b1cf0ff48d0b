"""Triad's SPARQL templates: their slots are names in angle brackets, to be filled (3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kgwb.errors import GraphError
from kgwb.flow import Direction
from kgwb.kg.algebra import analyze_query
from kgwb.systems.triad.records import Triplets

IRI_OR_IRI_FUNCTION = re.compile(r"<[^<>\s]*>|\b(?:IRI|URI)\s*\(", re.IGNORECASE)
"""An IRI, or the beginning of a function call that makes an IRI of a string."""


def list_mentions(triplets: Triplets) -> tuple[str, ...]:
    """Return the names at the ends of triplets, each once. Unknowns are left out."""
    ends: list[str] = []
    for triplet in triplets:
        ends += triplet.ends
    return tuple(end for end in dict.fromkeys(ends) if not end.startswith("?"))


def find_template_problems(template: str, triplets: Triplets, *_: object) -> Iterator[str]:
    """Yield what is wrong with a template.

    It must have every triplet, and no triple that is not a triplet. Every IRI in it must be a slot
    for an end of the triplets, or for a relation between its ends, and it must not make IRIs of
    texts: so a model cannot invent one. It must be a SELECT of one variable or one count, or an
    ASK, and pass the gate.
    """
    mentions = list_mentions(triplets)
    mention_slots = [f"<urn:slot:{number}>" for number, _ in enumerate(mentions)]
    relation_slots = [f"<urn:slot:r{number}>" for number, _ in enumerate(triplets)]
    filled = fill_template(
        template, triplets, mention_slots, [(slot, "out") for slot in relation_slots]
    )
    for slot, triplet in zip(relation_slots, triplets, strict=True):
        if slot not in filled:
            yield f"the template lacks <{triplet.subject}> <{triplet.relation}> <{triplet.object}>"
    slots = {*mention_slots, *relation_slots}
    for iri in IRI_OR_IRI_FUNCTION.findall(filled):
        if iri not in slots or iri in template:
            yield f"{iri} is no entity of the triplets, or no relation between these ends"
            break
    yield from _find_query_problems(filled, slots)


def _find_query_problems(sparql: str, slots: set[str]) -> Iterator[str]:
    """Yield what is wrong with a template as a query.

    ``sparql`` is the template with its slots filled with the IRIs ``slots``. It must pass the gate.
    Its triple patterns have no other IRIs or literals, and no variable as predicate. A SELECT has
    one column.
    """
    try:
        query = analyze_query(sparql)
    except GraphError as error:
        yield error.message
        return
    terms = {term for term in chain.from_iterable(query.patterns) if not term.startswith("?")}
    has_unknown_predicate = any(predicate.startswith("?") for _, predicate, _ in query.patterns)
    if has_unknown_predicate or terms - slots:
        yield "a triple is none of the triplets; compare a value in a FILTER"
    if query.kind != "boolean" and len(query.projected_variables) != 1:
        yield "SELECT exactly one variable, or one count"


def fill_template(
    template: str,
    triplets: Triplets,
    entity_terms: Sequence[str],
    relation_terms: Sequence[tuple[str, Direction]],
) -> str:
    """Return a template with its slots filled with SPARQL terms, or with names for a reader.

    ``entity_terms`` has a term for each mention, in the order of ``list_mentions``.
    ``relation_terms`` has a term and a direction for each triplet. A triple of the template that
    has the relation and both ends of a triplet gets subject and object in the order of the triplet,
    or in the other order with the direction "in". The relation of any other triple stays as it is.
    Letter case and white space in slots are ignored.
    """
    mentions = list_mentions(triplets)
    terms = dict(zip(map(_normalize_name, mentions), entity_terms, strict=True))
    end_slot = _make_slot_pattern(mentions)
    relation_slot = _make_slot_pattern([triplet.relation for triplet in triplets])

    def fill_triple(match: re.Match[str]) -> str:
        """Return a triple of the template with its terms; unchanged if it is no triplet."""
        subject, relation, object_ = map(_read_slot, match.groups())
        for triplet, (predicate, direction) in zip(triplets, relation_terms, strict=True):
            ends = [_normalize_name(end) for end in triplet.ends]
            has_same_ends = {subject, object_} == set(ends)
            if has_same_ends and relation == _normalize_name(triplet.relation):
                if direction == "in":
                    ends.reverse()
                first, last = (terms.get(end, end) for end in ends)
                return f"{first} {predicate} {last}"
        return match[0]

    def fill_mention(match: re.Match[str]) -> str:
        return terms[_read_slot(match[0])]

    end = rf"(\?\w+|{end_slot})"
    triple = rf"{end}\s*({relation_slot})\s*{end}"
    with_triples = re.sub(triple, fill_triple, template, flags=re.IGNORECASE)
    return re.sub(end_slot, fill_mention, with_triples, flags=re.IGNORECASE)


def _make_slot_pattern(names: Iterable[str]) -> str:
    """Return a regular expression for any of the names in angle brackets, longest first."""
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first))
    return rf"<\s*(?:{alternatives})\s*>"


def _read_slot(text: str) -> str:
    """Return the name in a slot as it is compared; a variable as it is."""
    if text.startswith("?"):
        return text
    return _normalize_name(text[1:-1])


def _normalize_name(name: str) -> str:
    """Return a name in lower case with single spaces; a variable as it is."""
    if name.startswith("?"):
        return name
    return " ".join(name.split()).casefold()
