"""A graph whose every answer goes through a run's record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rdflib import URIRef

from kgwb.flow import Triple
from kgwb.kg.base import Found, Graph, Rows, Vocabulary

Recorder = Callable[[str, Mapping[str, Any], Callable[[], Any] | None], Any]


class RecordedGraph:
    """The Graph that systems see. Without ``inner`` it can only repeat what is recorded.

    A recorded result is used iff graph identity and query text (or search text and limit) are equal.
    """

    def __init__(
        self,
        inner: Graph | None,
        record: Recorder,
        *,
        identity: str = "",
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.inner = inner
        self._record = record
        self.identity = inner.identity if inner else identity
        self.source = inner.source if inner else "recording"
        self.vocabulary = inner.vocabulary if inner else vocabulary or Vocabulary()
        self.remote = inner.remote if inner else False

    def _call(self, kind: str, asked: Mapping[str, Any], make: Callable[[Graph], Any]) -> Any:
        inner = self.inner
        return self._record(kind, {"graph": self.identity, **asked}, (lambda: make(inner)) if inner else None)

    def select(self, query: str) -> Rows:
        rows: Rows = self._call("select", {"query": query}, lambda kg: kg.select(query))
        return rows

    def ask(self, query: str) -> bool:
        return bool(self._call("ask", {"query": query}, lambda kg: kg.ask(query)))

    def construct(self, query: str) -> tuple[Triple, ...]:
        triples: tuple[Triple, ...] = self._call(
            "construct", {"query": query}, lambda kg: kg.construct(query)
        )
        return triples

    def search(self, text: str, limit: int) -> Found:
        hits: Found = self._call("search", {"text": text, "limit": limit}, lambda kg: kg.search(text, limit))
        return hits

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        wanted = sorted(set(labels))
        result: Mapping[str, tuple[URIRef, ...]] = self._call(
            "exact", {"labels": wanted}, lambda kg: kg.exact(wanted)
        )
        return result

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        by_text = {str(iri): iri for iri in iris}
        if not by_text:
            return {}
        texts = sorted(by_text)  # comparing texts is far faster than comparing URIRefs
        wanted = [by_text[text] for text in texts]
        asked = {"names": texts}
        result: Mapping[URIRef, str] = self._call("names", asked, lambda kg: kg.names(wanted))
        return result
