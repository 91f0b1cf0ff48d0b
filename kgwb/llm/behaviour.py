"""How a model server behaved: what it refused, how long it was waited for, and its rate limits."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LIMIT_HEADER_WORD = "ratelimit"
"""Occurs in the name of each header in which a server tells its rate limits."""
MAX_LIMIT_HEADERS = 20
MAX_LIMIT_CHARS = 100
MODE_NAMES = {
    "schema": "JSON schema",
    "json with schema": "JSON mode with the schema",
    "json": "JSON mode",
    "prompt": "the prompt alone",
}
"""What enforces the form of a reply, by the mode of a RequestFormat."""
SUBSTITUTES = {
    "max_tokens": "max_completion_tokens is sent",
    "max_completion_tokens": "no length is sent",
    "stream": "the whole reply is asked for at once",
    "stream_options": "the tokens of a stream are not asked for",
}
"""What is done in place of sending a field that a server refuses; other fields are left out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part of a request that a server refused."""

    part: str
    """A field of the request ("temperature"), or what was to enforce the form ("JSON schema")."""
    done: str
    """What is sent from now on."""
    said: str
    """The server's own words, masked."""

    def __str__(self) -> str:
        return f"{self.part}: {self.done}"


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait before a request was repeated."""

    reason: str
    """The HTTP status ("429"), or the kind of failure ("connection")."""
    seconds: float
    is_asked_for: bool
    """Whether the server said how long to wait."""

    def __str__(self) -> str:
        asked = "as the server asked" if self.is_asked_for else "as the server did not say how long"
        return f"{self.reason}: waited {self.seconds:.2g} s, {asked}"


class ServerBehaviour:
    """What one model has seen of its server. Several threads may add to it."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._lock = threading.Lock()
        self._refusals: dict[str, Refusal] = {}
        self._waits: list[Wait] = []
        self._limits: dict[str, str] = {}
        self._reasoning_tokens = 0

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What the server refused, each part once, in the order in which it did."""
        with self._lock:
            return tuple(self._refusals.values())

    @property
    def waits(self) -> tuple[Wait, ...]:
        """The waits before requests were repeated, in their order."""
        with self._lock:
            return tuple(self._waits)

    @property
    def limits(self) -> dict[str, str]:
        """The latest value of each header that tells a rate limit, by the header's name in lower case."""
        with self._lock:
            return dict(self._limits)

    @property
    def reasoning_tokens(self) -> int:
        """The tokens that the server counts as reasoning; they are part of the completion tokens."""
        with self._lock:
            return self._reasoning_tokens

    def add_refused_field(self, field: str, said: str) -> None:
        """Note that a field of the request was refused."""
        self._add_refusal(Refusal(field, SUBSTITUTES.get(field, "left out"), said))

    def add_refused_mode(self, mode: str, next_mode: str, said: str) -> None:
        """Note that a way to enforce the form of a reply was refused, and which comes in its place."""
        self._add_refusal(Refusal(MODE_NAMES[mode], MODE_NAMES[next_mode], said))

    def _add_refusal(self, refusal: Refusal) -> None:
        with self._lock:
            self._refusals.setdefault(refusal.part, refusal)

    def add_wait(self, wait: Wait) -> None:
        """Note a wait."""
        with self._lock:
            self._waits.append(wait)

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Note the rate limits in the headers of a response, MAX_LIMIT_HEADERS at most."""
        limits = {}
        for name, value in headers.items():
            if LIMIT_HEADER_WORD in name.lower():
                limits[name.lower()[:MAX_LIMIT_CHARS]] = value[:MAX_LIMIT_CHARS]
        with self._lock:
            for name, value in limits.items():
                if name in self._limits or len(self._limits) < MAX_LIMIT_HEADERS:
                    self._limits[name] = value

    def add_reasoning(self, counts: Iterable[int]) -> None:
        """Note the reasoning tokens of one reply, whose parts have these counts: the highest counts."""
        with self._lock:
            self._reasoning_tokens += max(counts, default=0)
