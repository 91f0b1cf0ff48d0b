"""Texts of terms and other things that differ wherever they stand side by side.

A name is shown, but two things may have one name. What a person or a model sees together, or
chooses from, gets a longer text only where a short one would look like another.
"""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from rdflib import XSD, Literal, URIRef

from kgwb.kg.term_text import MAX_VALUE_CHARS, bracket_iri, quote_text, to_curie
from kgwb.terms import Term

H = TypeVar("H", bound=Hashable)


def tell_apart(
    items: Iterable[H], forms: Sequence[Callable[[H], str]], *, fold_case: bool = False
) -> dict[H, str]:
    """Return a text for each item, so that no two of them look the same where they stand together.

    It is the first of the ``forms`` in which the item differs from all others. The last form must
    differ for all items. Texts that differ only in their normal form (NFC) look the same, and with
    ``fold_case`` those that differ in letter case: for texts that are compared without it. Items
    that look the same go on to the next form together, until none do. If two still look the same in
    the last form, both keep it.
    """
    form_numbers = dict.fromkeys(items, 0)
    last_number = len(forms) - 1
    while True:
        texts = {item: forms[number](item) for item, number in form_numbers.items()}
        items_by_look: dict[str, list[H]] = defaultdict(list)
        for item, text in texts.items():
            look = unicodedata.normalize("NFC", text)
            if fold_case:
                look = look.casefold()
            items_by_look[look].append(item)

        unclear: list[H] = []
        for alike in items_by_look.values():
            if len(alike) > 1:
                unclear += [item for item in alike if form_numbers[item] < last_number]
        if not unclear:
            return texts
        for item in unclear:
            form_numbers[item] += 1


def format_typed_literal(
    literal: Literal, prefixes: Mapping[str, str], max_chars: int = MAX_VALUE_CHARS
) -> str:
    """Return a literal in quotes with its language or datatype: "Dune"@en, "5"^^xsd:integer.

    The datatype is a CURIE by ``prefixes``, or in brackets. The text is cut at ``max_chars``. A
    literal without a datatype has xsd:string.
    """
    quoted = quote_text(literal, max_chars)
    if literal.language:
        return f"{quoted}@{literal.language}"
    datatype = literal.datatype or XSD.string
    return f"{quoted}^^{to_curie(datatype, prefixes)}"


def format_exactly(term: Term) -> str:
    """Return a term in full, like N-Triples.

    An IRI stands in brackets, a blank node after "_:", and a literal in quotes with its language,
    else with its datatype, which is xsd:string if it has none. The text of a literal is in ASCII,
    so that no two literals look the same.
    """
    if isinstance(term, URIRef):
        return bracket_iri(term)
    if not isinstance(term, Literal):
        return f"_:{term}"
    text = json.dumps(str(term))
    if term.language:
        return f"{text}@{term.language}"
    return f"{text}^^<{term.datatype or XSD.string}>"
