"""Texts that are SPARQL queries, told by how they begin: in traces, and in data of unknown form."""

from __future__ import annotations

import re

QUERY_PATTERN = re.compile(
    r"\s*(?:(?:#[^\n]*\n|PREFIX\s+[^\s<]*\s*<[^>]*>|BASE\s*<[^>]*>)\s*)*"
    r"(?:SELECT|ASK|CONSTRUCT|DESCRIBE)\b[^{]{0,2000}\{",
    re.IGNORECASE,
)
"""How a query begins."""
FENCE_PATTERN = re.compile(r"\s*```(?:sparql)?[^\S\n]*\n(.*?)```\s*", re.DOTALL | re.IGNORECASE)


def is_query(text: str) -> bool:
    """Return whether a text is one query, by how it begins; it may stand in a code fence."""
    return QUERY_PATTERN.match(without_fence(text)) is not None


def without_fence(text: str) -> str:
    """Return a text without the code fence around it, if there is one."""
    match = FENCE_PATTERN.fullmatch(text)
    if match is None:
        return text
    return match[1]
