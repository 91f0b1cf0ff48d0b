"""How a model is shown a local graph that a prompt cannot hold whole."""

from __future__ import annotations

import re
from itertools import chain

from rdflib import Literal

from kgwb.build import Term, Triple, pluralize
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.records import Position

NON_WORD = re.compile(r"[\W_]+")


def format_graph(position: Position, max_chars: int) -> str:
    """Return the local graph as text for a prompt, of fewer than about ``max_chars`` characters.

    A graph that fits is shown whole. Otherwise its triples come first, the most relevant before the
    others (``rank_triples``), and the entities and relations that these triples name after them.
    """
    local = position.local
    if fits_in_prompt(local, max_chars):
        return local.format_for_prompt(max_chars)
    return _format_best_triples(position, max_chars)


def fits_in_prompt(local: LocalGraph, max_chars: int) -> bool:
    """Return whether the whole text of a local graph has fewer than ``max_chars`` characters."""
    return sum(map(len, local.format_lines())) < max_chars


def _format_best_triples(position: Position, max_chars: int) -> str:
    """Return the most relevant triples, and the names of their terms, as far as ``max_chars`` allow.

    A triple is shown only together with the names of its terms, but a name that the ID says already
    is left out. Entities without a triple come last. How many triples are not shown is written
    below the others. Line ends are not counted.
    """
    local = position.local
    ids = local.id_mapping
    names: dict[Term, str] = dict(local.names)
    triples = []
    entities: dict[Term, str] = {}
    relations: dict[Term, str] = {}
    chars = 0
    for triple in rank_triples(position):
        line = " | ".join(map(ids.format_id, triple))
        subject, predicate, object_ = triple
        new_entities = _format_names(local, names, [subject, object_], entities)
        new_relations = _format_names(local, names, [predicate], relations)
        name_lines = chain(new_entities.values(), new_relations.values())
        new_chars = len(line) + sum(map(len, name_lines))
        if chars + new_chars < max_chars:
            chars += new_chars
            triples.append(line)
            entities.update(new_entities)
            relations.update(new_relations)
    omitted = len(local.support) - len(triples)
    for node in _nodes_without_triples(local):
        line = ids.format_named_id(node)
        if chars + len(line) < max_chars:
            chars += len(line)
            entities[node] = line
    lines = ["Triples", *triples]
    if omitted:
        lines.append(f"({pluralize(omitted, 'more line')}, not shown)")
    return "\n".join([*lines, "Entities", *entities.values(), "Relations", *relations.values()])


def _format_names(
    local: LocalGraph, names: dict[Term, str], terms: list[Term], known: dict[Term, str]
) -> dict[Term, str]:
    """Return the line with ID and name of each term that needs one, by term.

    Left out are literals, terms in ``known``, terms without a name, and those whose ID has the
    words of the name.
    """
    lines: dict[Term, str] = {}
    for term in terms:
        name = names.get(term, "")
        if isinstance(term, Literal) or term in known or not name:
            continue
        _, _, local_part = local.id_mapping.format_id(term).partition(":")
        if _words(local_part) != _words(name):
            lines[term] = local.id_mapping.format_named_id(term)
    return lines


def _nodes_without_triples(local: LocalGraph) -> list[Term]:
    """Return the nodes that are in no triple, the newest first."""
    connected = set(chain.from_iterable((triple[0], triple[2]) for triple in local.support))
    alone = [node for node in local.nodes if node not in connected]
    return alone[::-1]


def rank_triples(position: Position) -> list[Triple]:
    """Return the triples of the local graph, the most relevant first.

    Those that LOCAL found come first, the latest before the others. Then come those with more terms
    that are asked about: that LOCAL has found, or that the question or the last thought names. Then
    those that were added last come first.
    """
    local = position.local
    triples = local.support
    known = set(triples)
    found: dict[Triple, int] = {}
    added: dict[Triple, int] = {}
    asked = _named_terms(position)
    for number, visit in enumerate(position.visits, 1):
        for row in chain.from_iterable(result.rows for result in visit.results):
            if visit.state == "LOCAL" and row in known:
                found[row] = number
            elif visit.state == "LOCAL":
                asked.update(cell for cell in row if cell is not None)
            elif row in known:
                added.setdefault(row, number)

    def sort_key(numbered: tuple[int, Triple]) -> tuple[int, int, int, int]:
        """Return the key by which triples are sorted: found by LOCAL, number of asked terms, time, position."""
        position_in_graph, triple = numbered
        named = sum(term in asked for term in triple)
        return (-found.get(triple, 0), -named, -added.get(triple, 0), -position_in_graph)

    return [triple for _, triple in sorted(enumerate(triples), key=sort_key)]


def _named_terms(position: Position) -> set[Term]:
    """Return the terms in the triples of the local graph that the question or the last thought names.

    A text names a term by its ID, or by its name as whole words regardless of letter case; a
    literal by its text alone.
    """
    thought = ""
    if position.visits:
        thought = position.visits[-1].thought
    text = f"{position.question} {thought}"
    all_words = f" {_words(text)} "
    local = position.local
    ids = local.id_mapping
    names: dict[Term, str] = dict(local.names)
    named = set()
    for term in dict.fromkeys(chain.from_iterable(local.support)):
        name = names.get(term, "")
        has_id = False
        if isinstance(term, Literal):
            name = str(term)
        else:
            has_id = _has_id(text, ids.format_id(term))
        words = _words(name)
        has_name = bool(words) and f" {words} " in all_words
        if has_name or has_id:
            named.add(term)
    return named


def _has_id(text: str, term_id: str) -> bool:
    """Return whether a text has an ID that no letter or digit follows: wd:Q4 is not in wd:Q42."""
    if term_id not in text:  # which is faster
        return False
    return re.search(rf"{re.escape(term_id)}(?!\w)", text) is not None


def _words(text: str) -> str:
    """Return the words of a text in lower case, with single spaces between them."""
    return NON_WORD.sub(" ", text).strip().casefold()
