"""Full texts of terms, for those places where a short one would look like another.

``kgwb.text.tell_apart`` chooses between them and shorter texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rdflib import XSD, Literal, URIRef

from kgwb.kg.term_text import MAX_VALUE_CHARS, bracket_iri, quote_text, to_curie
from kgwb.terms import Term


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
    datatype = to_curie(literal.datatype or XSD.string, prefixes)
    return f"{quoted}^^{datatype}"


def format_exactly(term: Term) -> str:
    """Return a term in full, like N-Triples: <IRI>, "text"@en, "text"^^<datatype>, _:id.

    The text is in ASCII, with JSON's escapes, so that no two terms look the same. A literal without
    a datatype has that of xsd:string.
    """
    if isinstance(term, URIRef):
        quoted_iri = json.dumps(bracket_iri(term))
        return quoted_iri[1:-1]
    if not isinstance(term, Literal):
        return f"_:{term}"
    text = json.dumps(str(term))
    if term.language:
        return f"{text}@{term.language}"
    datatype = term.datatype or XSD.string
    return f"{text}^^<{datatype}>"
