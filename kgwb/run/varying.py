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
    """Return the call that an earlier execution made where a step is about to make a new one.

    ``earlier`` is the same step of that execution, and the place is the number of calls so far.
    Returns None if the earlier step was not done, had other inputs, made no call there, or one of
    another kind. ``calls`` are those of the run by key.
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
    """Return the first recorded call of this step and kind that it has not used yet, or None."""
    for call in calls:
        if call.step == step.key and call.kind == kind and call.key not in step.calls:
            return call
    return None


def describe_change(step: Step, kind: str, request: JsonObject, before: Call) -> str:
    """Return a text of what a step asks now and what it asked before; "" if that is the same."""
    now_text = _request_text(kind, request)
    before_text = _request_text(kind, before.request)
    if now_text == before_text:
        return ""
    return (
        f"{step.key} asked something else the second time. Now: {now_text}. Before: {before_text}"
    )


def _request_text(kind: str, request: JsonObject) -> str:
    """Return what a request asks: its query, the last message to a model, or else its JSON.

    The text is cut at MAX_REQUEST_CHARS. "" for a request to a model without messages.
    """
    text = request.get("query")
    if kind == "model":
        messages = request["content"]["messages"]
        text = messages[-1][1] if messages else ""
    if not isinstance(text, str):
        text = encode_canonical(request)
    return shorten(text, MAX_REQUEST_CHARS)
