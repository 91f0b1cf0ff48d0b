"""Steps that ask something else when they are executed again: because of chance, or of a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgwb.records import JsonObject
from kgwb.run.calls import Call, encode_canonical
from kgwb.run.steps import Step
from kgwb.text import shorten

MAX_REQUEST_CHARS = 400
VARYING_HINT = "get what varies through run.call, so that it is recorded"


def call_in_its_place(
    step: Step, kind: str, earlier: Step | None, calls: Mapping[str, Call]
) -> Call | None:
    """Return the call that an earlier execution of a step made where this one makes a new one.

    Returns None if the earlier execution was not done, had other inputs, made no call there, or one
    of another kind. ``calls`` are those of the run.
    """
    if earlier is None or not earlier.done or earlier.inputs != step.inputs:
        return None
    position = len(step.calls)
    if position >= len(earlier.calls):
        return None
    call = calls.get(earlier.calls[position])
    if call is None or call.kind != kind:
        return None
    return call


def recorded_call_of(step: Step, kind: str, calls: Iterable[Call]) -> Call | None:
    """Return a recorded call of a kind that a step made, and did not use yet; None without one.

    The first such call in the order of ``calls`` is returned.
    """
    for call in calls:
        if call.step == step.key and call.kind == kind and call.key not in step.calls:
            return call
    return None


def describe_change(step: Step, kind: str, request: JsonObject, before: Call) -> str:
    """Return what a step asks now and what it asked before; empty if that is the same."""
    now_text = _request_text(kind, request)
    before_text = _request_text(kind, before.request)
    if now_text == before_text:
        return ""
    return (
        f"{step.key} asked something else the second time. Now: {now_text}. Before: {before_text}"
    )


def _request_text(kind: str, request: JsonObject) -> str:
    """Return what is asked: the last message to a model, a query, or else the request as JSON.

    It is cut at MAX_REQUEST_CHARS characters. Empty for a request to a model without messages.
    """
    text = request.get("query")
    if kind == "model":
        messages = request["content"]["messages"]
        text = messages[-1][1] if messages else ""
    if not isinstance(text, str):
        text = encode_canonical(request)
    return shorten(text, MAX_REQUEST_CHARS)
