"""Label search as each engine wants it. To add an engine: one class like these, and its name in DIALECTS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from kgwb.kg.base import Vocabulary
from kgwb.kg.sparql import n3, quoted

Stage = Literal["all words", "prefix", "any word"]
STAGES: tuple[Stage, ...] = ("all words", "prefix", "any word")


class Dialect(Protocol):
    """How an engine finds labels."""

    probe: str
    """A cheap ASK that is true on this engine and false, or an error, on others; empty if it fits any."""

    def search_query(
        self, words: Sequence[str], limit: int, stage: Stage, vocabulary: Vocabulary
    ) -> str | None:
        """A SELECT of ?v and ?label, or None where the engine has no such stage. Words are lower-case."""
        ...


class Generic:
    """Any SPARQL 1.1 engine: reads every label, so it is for graphs of up to some 100,000 labels."""

    probe = ""

    def search_query(
        self, words: Sequence[str], limit: int, stage: Stage, vocabulary: Vocabulary
    ) -> str | None:
        """See Dialect; parts of words match too, so there is no stage for prefixes."""
        if stage == "prefix":
            return None
        join = " || " if stage == "any word" else " && "
        test = join.join(f"CONTAINS(LCASE(STR(?label)), {quoted(word)})" for word in words)
        return _select(f"?v ?p ?label FILTER({test})", vocabulary, limit)


class Virtuoso:
    """Virtuoso's full-text index, which covers only what the site has told it to index."""

    probe = 'PREFIX bif: <bif:> ASK { ?s ?p ?o FILTER(bif:upper("kgwb") = "KGWB") }'

    def search_query(
        self, words: Sequence[str], limit: int, stage: Stage, vocabulary: Vocabulary
    ) -> str | None:
        """See Dialect."""
        if stage == "prefix":
            if not any(len(word) >= 4 for word in words):
                return None
            words = [f"{word}*" if len(word) >= 4 else word for word in words]  # fewer is error FT370
        text = (" OR " if stage == "any word" else " AND ").join(f'"{word}"' for word in words)
        pattern = f"?v ?p ?label . ?label bif:contains {quoted(text)}"
        return f"PREFIX bif: <bif:>\n{_select(pattern, vocabulary, limit)}"


DIALECTS: dict[str, type[Dialect]] = {"virtuoso": Virtuoso, "generic": Generic}
"""By name, in the order of probing."""


def _select(pattern: str, vocabulary: Vocabulary, limit: int) -> str:
    labels = ", ".join(map(n3, vocabulary.labels))
    return (
        f"SELECT DISTINCT ?v ?label WHERE {{ {pattern} FILTER(isIRI(?v) && ?p IN ({labels})) }}\n"
        f"ORDER BY STRLEN(STR(?label)) ?v LIMIT {limit}"
    )
