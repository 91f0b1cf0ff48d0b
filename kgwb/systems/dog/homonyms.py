"""Homonyms: what several vertices of one name are called, so that an answer can mean one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rdflib import URIRef

from kgwb.flow import Term
from kgwb.kg.queries import describe
from kgwb.run import Run
from kgwb.systems.dog.records import Filled, Head, plain


def tell_apart(filled: Sequence[Filled], heads: Sequence[Head], run: Run) -> tuple[Filled, ...]:
    """A hop's results, where tails that share a name have what they are behind it: "Dune (film)".

    Heads keep the names that they have in the question.
    """
    named = {value.term: value.label for result in filled for value in result.values}
    known = {value.term: value.label for head in heads for value in head.values}
    groups: dict[str, list[URIRef]] = {}
    for term, label in (named | known).items():
        if isinstance(term, URIRef):
            groups.setdefault(plain(label), []).append(term)
    homonyms = [same for same in groups.values() if len(same) > 1]
    if not homonyms:
        return tuple(filled)
    names: dict[Term, str] = dict(known)
    for same, kinds in zip(homonyms, _kinds(homonyms, run), strict=True):
        apart = zip(same, kinds, strict=True)
        names |= {term: f"{named[term]} ({kind})" for term, kind in apart if term not in known}
    return tuple(_renamed(result, names) for result in filled)


def _kinds(homonyms: Sequence[Sequence[URIRef]], run: Run) -> Iterator[list[str]]:
    """What each vertex of a group is, by what distinguishes all: types, else descriptions, else IRIs."""
    described = describe(run.kg, sorted(term for same in homonyms for term in same))
    for same in homonyms:
        kinds = [", ".join(described[term].types) for term in same]
        texts = _beginnings([described[term].description.split() for term in same])
        local = [term.rpartition("#")[2].rpartition("/")[2] for term in same]
        apart = (names for names in (kinds, texts, local) if all(names) and len({*names}) == len(same))
        yield next(apart, [str(term) for term in same])


def _beginnings(texts: Sequence[Sequence[str]]) -> list[str]:
    """The first words of each text, as many as it takes until all differ."""
    lengths = range(1, max(map(len, texts), default=0) + 1)
    cut = ([" ".join(words[:length]) for words in texts] for length in lengths)
    return next((starts for starts in cut if len({*starts}) == len(starts)), [""] * len(texts))


def _renamed(result: Filled, names: dict[Term, str]) -> Filled:
    if len(result.ends) < len(result.triples):  # put in by hand
        return result
    values = tuple(replace(value, label=names.get(value.term, value.label)) for value in result.values)
    triples = tuple(
        (*words[:-1], names.get(tail, words[-1]))
        for words, (_, tail) in zip(result.triples, result.ends, strict=True)
    )
    return replace(result, values=values, triples=triples)
