"""Files of OTLP JSON: the spans in them. Secrets in their texts are masked when they are read.

Such a file is one JSON object with ``resourceSpans``, a list of these, or one on each line, as
OpenTelemetry's collector writes it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgwb import disk
from kgwb.errors import InputError
from kgwb.masking import mask_data, mask_text
from kgwb.run.run_file import DAMAGED_FILE_ERRORS

HINT = "name a file of OTLP JSON, as kgwb export and OpenTelemetry's file exporters write it"
ERROR_CODES = (2, "STATUS_CODE_ERROR")
"""The status of a span that failed, as a number or by its name."""


@dataclass(frozen=True)
class Span:
    """One span of a trace. Texts and names are without secrets."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty for a span at the top."""
    name: str
    start_ns: int
    """Nanoseconds since 1970."""
    end_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """JSON data by name."""
    error: str = ""
    """Why it failed; empty if it did not."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 if the times contradict each other."""
        return max(0, self.end_ns - self.start_ns) / 1e9

    @property
    def started_at(self) -> str:
        """When it began: UTC, ISO 8601 with milliseconds."""
        time = datetime.fromtimestamp(self.start_ns / 1e9, UTC)
        return time.isoformat(timespec="milliseconds")


def read_spans(path: Path) -> list[Span]:
    """Return the spans of a file by their begin, those that end later first if it is the same.

    Of two spans with the same ids the last one counts. Raises InputError if the file cannot be
    read, is not OTLP JSON, or has no spans.
    """
    spans: dict[tuple[str, str], Span] = {}
    try:
        for data in _spans_data(_read_json(path)):
            span = _read_span(data)
            spans[span.trace_id, span.span_id] = span
    except DAMAGED_FILE_ERRORS as exc:
        raise InputError(f"{path} is not a trace that kgwb can read: {exc!r}", hint=HINT) from exc
    if not spans:
        raise InputError(f"the trace {path} contains no spans", hint=HINT)
    return sorted(spans.values(), key=lambda span: (span.start_ns, -span.end_ns))


def _read_json(path: Path) -> list[Any]:
    """Return the JSON values of a file: one for all, or one for each line (also gzipped).

    Raises InputError if the file cannot be read, or is not JSON.
    """
    with disk.os_errors_as_input_error(f"cannot read the trace {path}", "check the path"):
        try:
            return [json.loads(disk.read_text(path, "utf-8-sig"))]
        except (ValueError, RecursionError):
            pass  # it may have a value on each line, or be gzipped
        try:
            return [entry for _, entry in disk.read_json_lines(path)]
        except disk.NotJsonError as exc:
            raise InputError(f"the trace {path} is not JSON", hint=HINT) from exc


def _spans_data(entries: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the data of each span in the entries of a file, or in lists of entries.

    Raises ValueError for an entry that is not an object with "resourceSpans".
    """
    for entry in entries:
        if isinstance(entry, list):
            yield from _spans_data(entry)
        elif not isinstance(entry, dict) or "resourceSpans" not in entry:
            raise ValueError("an entry has no resourceSpans")
        else:
            for resource in entry["resourceSpans"]:
                for scope in resource.get("scopeSpans", ()):
                    yield from scope.get("spans", ())


def _read_span(data: Mapping[str, Any]) -> Span:
    """Return the span that JSON data of OTLP describes, with secrets in its texts masked.

    Its attributes include those of its events; the span's own win. Raises one of
    DAMAGED_FILE_ERRORS for data of another form.
    """
    attributes = {}
    error = _read_error(data)
    for event in data.get("events", ()):
        attributes.update(_event_attributes(event))
    attributes.update(_read_attributes(data.get("attributes", ())))
    span = Span(
        trace_id=str(data["traceId"]),
        span_id=str(data["spanId"]),
        parent_id=str(data.get("parentSpanId") or ""),
        name=mask_text(str(data["name"])),
        start_ns=int(data.get("startTimeUnixNano", 0)),
        end_ns=int(data.get("endTimeUnixNano", 0)),
        attributes=attributes,
        error=mask_text(error),
    )
    _ = span.started_at  # raises if it is no time
    return span


def _event_attributes(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event that tells about a model call; none for other events."""
    if str(event.get("name", "")).startswith("gen_ai."):
        return _read_attributes(event.get("attributes", ()))
    return {}


def _read_error(data: Mapping[str, Any]) -> str:
    """Return why a span failed; "" if its status is not an error.

    It is the message of the status, else that of the exception among its events, else "failed".
    """
    status = data.get("status") or {}
    if status.get("code") not in ERROR_CODES:
        return ""
    if status.get("message"):
        return str(status["message"])
    for event in data.get("events", ()):
        if event.get("name") == "exception":
            attributes = _read_attributes(event.get("attributes", ()))
            return str(attributes.get("exception.message", "failed"))
    return "failed"


def _read_attributes(pairs: Any) -> dict[str, Any]:
    """Return the attributes of a span by name, as JSON data without secrets."""
    masked: dict[str, Any] = mask_data(_read_pairs(pairs))
    return masked


def _read_value(value: Mapping[str, Any]) -> Any:
    """Return the JSON data of a value of OTLP ({"intValue": "3"}); None for unknown kinds."""
    for kind, content in value.items():
        if kind == "intValue":  # 64 bits are written as a text
            return int(content)
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return content
        if kind == "arrayValue":
            return [_read_value(item) for item in content.get("values", ())]
        if kind == "kvlistValue":
            return _read_pairs(content.get("values", ()))
    return None


def _read_pairs(pairs: Any) -> dict[str, Any]:
    """Return a list of {"key", "value"} of OTLP as a dict of JSON data."""
    data = {}
    for pair in pairs:
        key = str(pair["key"])
        data[key] = _read_value(pair.get("value") or {})
    return data
