"""A graph whose every answer goes through a run's record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rdflib import URIRef

from kgwb.flow import Triple, Triples, to_data
from kgwb.kg.base import Found, Graph, Rows, Vocabulary
from kgwb.kg.muting import hide, mute

T = TypeVar("T")
Recorder = Callable[[str, Mapping[str, Any], Callable[[], Any] | None], Any]


class RecordedGraph:
    """The Graph that systems see. Without ``inner`` it can only repeat what is recorded.

    A recorded result is used iff graph identity and query text (or search text and limit) are equal. A graph
    with muted triples records each query as it was sent, and its searches with these triples.
    """

    def __init__(
        self,
        inner: Graph | None,
        record: Recorder,
        *,
        identity: str = "",
        vocabulary: Vocabulary | None = None,
        muted: Triples = (),
    ) -> None:
        self.inner = inner
        self._record = record
        self.identity = inner.identity if inner else identity
        self.source = inner.source if inner else "recording"
        self.vocabulary = inner.vocabulary if inner else vocabulary or Vocabulary()
        self.remote = inner.remote if inner else False
        self.muted = inner.muted if inner else muted
        self._without = {"muted": to_data(self.muted, Triples)} if self.muted else {}

    @property
    def whole_graph(self) -> Graph:
        """See Graph."""
        return self.inner.whole_graph if self.inner else self

    def without(self, *triples: Triple) -> RecordedGraph:
        """See Graph."""
        inner = self.inner.without(*triples) if self.inner else None
        muted, record = mute(self.muted, triples), self._record
        return RecordedGraph(inner, record, identity=self.identity, vocabulary=self.vocabulary, muted=muted)

    def _call(self, kind: str, asked: Mapping[str, Any], make: Callable[[Graph], T]) -> T:
        inner = self.inner
        read = (lambda: make(inner)) if inner else None
        result: T = self._record(kind, {"graph": self.identity, **asked}, read)
        return result

    def select(self, query: str) -> Rows:
        return self._call("select", {"query": hide(query, self.muted)}, lambda kg: kg.select(query))

    def ask(self, query: str) -> bool:
        return self._call("ask", {"query": hide(query, self.muted)}, lambda kg: kg.ask(query))

    def construct(self, query: str) -> tuple[Triple, ...]:
        return self._call("construct", {"query": hide(query, self.muted)}, lambda kg: kg.construct(query))

    def search(self, text: str, limit: int) -> Found:
        asked = {"text": text, "limit": limit, **self._without}
        return self._call("search", asked, lambda kg: kg.search(text, limit))

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        wanted = sorted(set(labels))
        return self._call("exact", {"labels": wanted, **self._without}, lambda kg: kg.exact(wanted))

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        by_text = {str(iri): iri for iri in iris}
        if not by_text:
            return {}
        texts = sorted(by_text)  # comparing texts is far faster than comparing URIRefs
        wanted = [by_text[text] for text in texts]
        asked = {"names": texts, **self._without}
        return self._call("names", asked, lambda kg: kg.names(wanted))
