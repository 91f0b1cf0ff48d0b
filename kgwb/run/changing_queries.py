"""What an answer does not say by itself: that its query may give another result at another time."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from kgwb.errors import GraphError
from kgwb.flow import Answer
from kgwb.kg.sparql import tokenize
from kgwb.text import list_first

CHANGING_FUNCTIONS = ("NOW", "RAND", "UUID", "STRUUID")
"""The functions whose value is another one each time a query is executed (SPARQL 1.1, section 17.4)."""
_CHANGING_WORD = re.compile(rf"\b(?:{'|'.join(CHANGING_FUNCTIONS)})\b", re.IGNORECASE)
"""Finds what may be a call of one; few queries have it, and only their tokens are read."""


def remark_on_changing_queries(answer: Answer) -> Answer:
    """Return an answer with a remark if one of its queries calls one of CHANGING_FUNCTIONS, else as it is."""
    called: dict[str, None] = {}
    for query in answer.queries:
        called.update(dict.fromkeys(_find_changing_functions(query)))
    if not called:
        return answer
    functions = list_first([f"{name}()" for name in called])
    remark = f"the query calls {functions}, so at another time its result may be another one"
    return replace(answer, remarks=(*answer.remarks, remark))


def _find_changing_functions(query: str) -> list[str]:
    """Return the CHANGING_FUNCTIONS that a query calls; none of a text that is not a query."""
    if not _CHANGING_WORD.search(query):
        return []
    try:
        tokens = tokenize(query).tokens
    except GraphError:
        return []
    called = []
    for function, bracket in pairwise(tokens):
        name = function[0].upper()
        if name in CHANGING_FUNCTIONS and bracket[0] == "(":
            called.append(name)
    return called
