"""Texts to rank by meaning, named by their content."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from functools import cached_property

from kgwb.kg.embeddings import Embeddings


class Index:
    """Texts that phrases are ranked against; vectors are kept by the embeddings."""

    def __init__(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        self.texts, self.embeddings = tuple(texts), embeddings

    @cached_property
    def identity(self) -> str:
        """SHA-256 (hex) of the texts, with the name of the embeddings: equal ones rank equally."""
        content = "\0".join((self.embeddings.name, *self.texts))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def nearest(self, phrase: str, k: int) -> tuple[tuple[int, float], ...]:
        """Place and cosine (-1 to 1) of the ``k`` nearest texts, best first. Raises EmbeddingError."""
        cosines = self.embeddings.similarity(phrase, self.texts)
        return tuple(heapq.nsmallest(k, enumerate(cosines), key=lambda item: (-item[1], item[0])))
