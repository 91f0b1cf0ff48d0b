"""Steps that ask something else when they are executed again: because of chance, or of a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgwb.records import JsonObject
from kgwb.run.calls import Call, encode_canonical
from kgwb.run.steps import Step
from kgwb.text import common_prefix_length, pluralize, shorten

MAX_REQUEST_CHARS = 400
MAX_PART_CHARS = 80
"""So much is shown of a part of a request."""
MAX_CONTEXT_CHARS = 20
"""So much is shown of a message before the first difference."""
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
    """Return a text of what a step asks now and what it asked before; "" if that is the same.

    Of requests to a model whose last messages begin alike it says in what else they differ.
    """
    now_text = _request_text(kind, request)
    before_text = _request_text(kind, before.request)
    if now_text == before_text:
        difference = ""
        if kind == "model":
            difference = describe_difference(_parts_of(request), _parts_of(before.request))
        if difference:
            return f"{step.key} asked something else the second time: {difference}"
        return ""
    return (
        f"{step.key} asked something else the second time. Now: {now_text}. Before: {before_text}"
    )


def _parts_of(request: JsonObject) -> JsonObject:
    """Return the parts of a recorded request to a model: the model and all of its content."""
    return {"model": request["model"], **request["content"]}


def describe_difference(now: JsonObject, before: JsonObject) -> str:
    """Return in which parts two requests to a model differ, such as "temperature 0.5 and not 0.0".

    A message is given by its place and its role, with the texts from where they differ. A part that
    only one has is "none" in the other. "" if there is no difference.
    """
    differences = []
    for name in dict.fromkeys((*now, *before)):
        now_part = now.get(name)
        before_part = before.get(name)
        if now_part == before_part:
            continue
        if name == "messages":
            differences.append(_describe_messages(now["messages"], before["messages"]))
        else:
            differences.append(f"{name} {_part_text(now_part)} and not {_part_text(before_part)}")
    return "; ".join(differences)


def _part_text(part: Any) -> str:
    """Return a part of a request as a short text; "none" for one that is missing."""
    if part is None:
        return "none"
    return shorten(encode_canonical(part), MAX_PART_CHARS)


def _describe_messages(now: Sequence[Sequence[str]], before: Sequence[Sequence[str]]) -> str:
    """Return the first difference of two lists of messages, each a role and a text."""
    places = range(min(len(now), len(before)))
    place = next((each for each in places if now[each] != before[each]), None)
    if place is None:
        return f"{pluralize(len(now), 'message')} and not {len(before)}"
    role, text = now[place]
    before_role, before_text = before[place]
    if role != before_role:
        return f"message {place + 1} of the role {role} and not {before_role}"
    start = common_prefix_length(text, before_text)
    begin = max(0, start - MAX_CONTEXT_CHARS)
    now_end = shorten(text[begin:], MAX_PART_CHARS)
    before_end = shorten(before_text[begin:], MAX_PART_CHARS)
    return (
        f"message {place + 1} ({role}) from character {start + 1} on: "
        f"{now_end!r} and not {before_end!r}"
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
