"""Triplets as SPARQL: templates with names in angle brackets as slots, and how slots are filled (Triad, 3.1)."""

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

    It must contain each triplet. Every IRI in it must be a slot, so that a model cannot make one up. Its triples
    must be the triplets. A SELECT must have one variable or one count. It must pass the gate.
    """
    mention_slots = [f"<urn:slot:{number}>" for number in range(len(list_mentions(triplets)))]
    relation_slots = [f"<urn:slot:r{number}>" for number in range(len(triplets))]
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
    """Yield what is wrong with a template as a query, after its slots are filled with ``slots``."""
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
    """Fill the slots of a template with terms, given as SPARQL or as names to read.

    ``entity_terms`` has a term for each mention, in the order of ``list_mentions``. ``relation_terms``
    has a term and a direction for each triplet. Subject and object of a triple are those of its triplet, however the
    template has them, and with the direction "in" they change places. Letter case and white space
    in slots are ignored.
    """
    mentions = list_mentions(triplets)
    terms = dict(zip(map(_normalize_name, mentions), entity_terms, strict=True))
    end_slot = _make_slot_pattern(mentions)
    relation_slot = _make_slot_pattern([triplet.relation for triplet in triplets])

    def fill_triple(match: re.Match[str]) -> str:
        subject, relation, object_ = map(_read_slot, match.groups())
        for triplet, (predicate, direction) in zip(triplets, relation_terms, strict=True):
            ends = [_normalize_name(end) for end in triplet.ends]
            if relation == _normalize_name(triplet.relation) and {subject, object_} == set(ends):
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
    """Return a regular expression for any of the names in angle brackets, the longest first."""
    longest_first = sorted(names, key=len, reverse=True)
    return rf"<\s*(?:{'|'.join(map(re.escape, longest_first))})\s*>"


def _read_slot(text: str) -> str:
    """Return the name in a slot as it is compared. A variable is returned as it is."""
    return text if text.startswith("?") else _normalize_name(text[1:-1])


def _normalize_name(name: str) -> str:
    """Return a name in lower case with single spaces. A variable is returned as it is."""
    return name if name.startswith("?") else " ".join(name.split()).casefold()
