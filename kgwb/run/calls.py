"""Calls: what a run asked of models, graphs and embeddings, each with its result.

A call is found again by its content. That is what makes a run repeatable: executing a system again
takes every recorded result from the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rdflib import URIRef

from kgwb import old_names
from kgwb.kg.base import ResultSet, SearchResult
from kgwb.llm.base import ChatReply
from kgwb.records import from_data, to_data
from kgwb.terms import Iri, Triple

RESULT_TYPES: dict[str, Any] = {
    "model": ChatReply,
    "select": ResultSet,
    "ask": bool,
    "construct": tuple[Triple, ...],
    "search": SearchResult,
    "exact": dict[str, tuple[Iri, ...]],
    "names": dict[Iri, str],
    "similarity": tuple[float, ...],
    "nearest": tuple[tuple[int, float], ...],
}
"""The type of the result of each kind of call. ``Run.call`` adds the kinds of a system."""
BUILT_IN_KINDS = frozenset(RESULT_TYPES)
QUERY_KINDS = frozenset({"select", "ask", "construct"})
SEARCH_KINDS = frozenset({"search", "exact"})

encode_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
).encode


@dataclass(slots=True)
class Call:
    """One thing that cost, varied or could fail: a model call, a graph query, a similarity."""

    key: str
    """See ``call_key``."""
    kind: str
    step: str
    """Key of the step that first made it."""
    request: Mapping[str, Any]
    """JSON data. With ``kind`` and ``repeat`` it decides whether the result may be used again."""
    repeat: int
    """How often the same request had been made before, counted by the one who made it."""
    result: Any
    taken_at: str
    """UTC, ISO 8601."""
    seconds: float

    def to_data(self) -> dict[str, Any]:
        """Return the call as an entry of a run file."""
        return {
            "key": self.key,
            "kind": self.kind,
            "step": self.step,
            "request": self.request,
            "repeat": self.repeat,
            "reply": to_data(self.result, RESULT_TYPES.get(self.kind)),
            "taken_at": self.taken_at,
            "seconds": round(self.seconds, 6),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Call:
        """Return the call of an entry of a run file.

        Raises ValueError for a key that does not fit the content.
        """
        kind, repeat = data["kind"], data["repeat"]
        key = call_key(kind, data["request"], repeat)
        if key != data["key"]:
            raise ValueError(f"call {data['key']} does not have the content its key says")
        request = from_data(data["request"], dict[str, Any])
        if "task" in request:
            request["task"] = old_names.current_prompt(request["task"])
            key = call_key(kind, request, repeat)
        return cls(
            key=key,
            kind=kind,
            step=from_data(data["step"], str),
            request=request,
            repeat=repeat,
            result=from_data(data["reply"], RESULT_TYPES.get(kind, Any)),
            taken_at=from_data(data["taken_at"], str),
            seconds=from_data(data["seconds"], float),
        )


def call_key(kind: str, request: Mapping[str, Any], repeat: int) -> str:
    """Return the SHA-256 hash (hex) of the canonical JSON of a call's content."""
    text = encode_canonical([kind, request, repeat])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def utc_now() -> str:
    """Return the present time: UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def names_in_calls(calls: Iterable[Call]) -> dict[str, str]:
    """Return the display names that the graph gave, by IRI."""
    names: dict[str, str] = {}
    for call in calls:
        if call.kind == "names":
            given: Mapping[URIRef, str] = call.result
            names.update((str(iri), name) for iri, name in given.items())
    return names
