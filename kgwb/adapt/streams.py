"""Streamed replies of openai: inside a run the whole reply is recorded, and comes in a few chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kgwb.records import JsonObject


def chunks_of(completion: Any, has_usage: bool) -> Iterator[Any]:
    """Yield a completion as chunks of a stream.

    Each choice has a chunk with its whole message, and one with its finish reason. With
    ``has_usage`` the last chunk has the tokens, and no choice.
    """
    from openai.types.chat import ChatCompletionChunk

    data = completion.model_dump(mode="json", exclude_none=True)
    usage = data.pop("usage", None)
    choices = data.pop("choices", [])
    data["object"] = "chat.completion.chunk"
    for choice in choices:
        said: JsonObject = dict(choice)
        said["delta"] = _delta_of(said.pop("message"))
        said["finish_reason"] = None
        ended = {
            "index": choice["index"],
            "delta": {},
            "finish_reason": choice["finish_reason"],
        }
        for part in (said, ended):
            yield ChatCompletionChunk.construct(**data, choices=[part])
    if has_usage:
        yield ChatCompletionChunk.construct(**data, choices=[], usage=usage)


def _delta_of(message: JsonObject) -> JsonObject:
    """Return a message as the delta of a chunk: the same, but each call of a tool has its index."""
    delta = dict(message)
    if "tool_calls" in delta:
        calls = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
        delta["tool_calls"] = calls
    return delta


def events_of(response: Any) -> Iterator[Any]:
    """Yield a response of the Responses API as the events of a stream, numbered from 0.

    Each text and each call of a function comes whole, in one event. The first and the last event
    have the response, without and with its output.
    """
    from openai._models import construct_type
    from openai.types.responses import ResponseStreamEvent

    for number, event in enumerate(_event_data(response)):
        data = {**event, "sequence_number": number}
        yield construct_type(type_=ResponseStreamEvent, value=data)


def _event_data(response: Any) -> Iterator[JsonObject]:
    """Yield the events of a response in order, as data without their numbers.

    The response is created, each item of its output is added, filled in one piece and done, and the
    response ends with its status.
    """
    data = response.model_dump(mode="json", exclude_none=True)
    begun = {**data, "output": [], "status": "in_progress"}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(data["output"]):
        event = {"output_index": index}
        yield {"type": "response.output_item.added", **event, "item": _begun(item)}
        place = {**event, "item_id": item.get("id", "")}
        if item["type"] == "message":
            for part_index, part in enumerate(item["content"]):
                place_of_part = {**place, "content_index": part_index}
                yield from _text_events(place_of_part, part)
        if item["type"] == "function_call":
            yield from _argument_events(place, item)
        yield {"type": "response.output_item.done", **event, "item": item}
    yield {"type": f"response.{data['status']}", "response": data}


def _argument_events(place: JsonObject, item: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of the arguments of a function call: they come whole."""
    name = "response.function_call_arguments"
    said = item["arguments"]
    yield {"type": f"{name}.delta", **place, "delta": said}
    yield {"type": f"{name}.done", **place, "arguments": said, "name": item["name"]}


def _begun(item: JsonObject) -> JsonObject:
    """Return an item of an output as it is before its text or its arguments have come."""
    if item["type"] == "message":
        return {**item, "content": [], "status": "in_progress"}
    if item["type"] == "function_call":
        return {**item, "arguments": ""}
    return item


def _text_events(place: JsonObject, part: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of one part of a message: added, its text in one piece, done."""
    begun = part
    if part["type"] == "output_text":
        begun = {**part, "text": ""}
    yield {"type": "response.content_part.added", **place, "part": begun}
    if part["type"] == "output_text":
        text = part["text"]
        about_text = {**place, "logprobs": part.get("logprobs", [])}
        yield {"type": "response.output_text.delta", **about_text, "delta": text}
        yield {"type": "response.output_text.done", **about_text, "text": text}
    yield {"type": "response.content_part.done", **place, "part": part}


class RecordedStream:
    """Chunks in the form of ``openai.Stream``: to be iterated, and a context manager."""

    def __init__(self, chunks: list[Any]) -> None:
        self._chunks = iter(chunks)
        self.response = self  # openai closes the response of the server, and there is none

    def __iter__(self) -> RecordedStream:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __enter__(self) -> RecordedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: there is no connection."""


class RecordedAsyncStream:
    """Chunks in the form of ``openai.AsyncStream``."""

    def __init__(self, chunks: list[Any]) -> None:
        self._chunks = iter(chunks)
        self.response = self  # openai closes the response of the server, and there is none

    def __aiter__(self) -> RecordedAsyncStream:
        return self

    async def __anext__(self) -> Any:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration

    async def __aenter__(self) -> RecordedAsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    aclose = close
