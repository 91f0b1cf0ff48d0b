"""The trace of a run in the OpenTelemetry protocol: written to a file as JSON, or sent.

https://opentelemetry.io/docs/specs/otlp
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Sequence
from datetime import datetime
from logging.handlers import BufferingHandler
from pathlib import Path
from urllib.parse import urlsplit

from google.protobuf.json_format import MessageToDict
from openinference.semconv.resource import ResourceAttributes
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, format_trace_id

from kgwb import disk
from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.records import JsonObject
from kgwb.run.engine import Engine
from kgwb.run.spans import span_id_of, spans_of_run, trace_id_of
from kgwb.text import mask_text, mask_url

TRACES_PATH = "/v1/traces"
"""Where a server of the protocol takes traces, if its address has no path."""
ID_FIELDS = ("traceId", "spanId", "parentSpanId")
"""Fields that OTLP's JSON writes in hexadecimal digits, while protobuf's JSON has base64."""
MAX_KEPT_MESSAGES = 1_000
"""More log messages than one export writes."""


def write_trace(run: Engine, path: Path) -> str:
    """Write the trace of a run to a file as OTLP JSON. Returns the id of the trace.

    Raises InputError if the file cannot be written.
    """
    spans = _make_spans(run)
    data = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                _write_ids_in_hexadecimal(span)
    text = json.dumps(data, ensure_ascii=False)
    with disk.os_errors_as_input_error(f"cannot write the trace to {path}", "name another file"):
        disk.write_atomically(path, [text, "\n"], disk.JSON_ENCODING_ERRORS)
    return _trace_id(spans)


def send_trace(run: Engine, address: str) -> str:
    """Send the trace of a run to an HTTP address of OTLP. Returns the id of the trace.

    An address without a path gets TRACES_PATH. Headers, such as that of a key, and certificates are
    those of OpenTelemetry's environment variables (OTEL_EXPORTER_OTLP_HEADERS). Raises InputError
    if the server does not take the trace.
    """
    spans = _make_spans(run)
    exporter = OTLPSpanExporter(endpoint=_endpoint(address))
    messages = BufferingHandler(MAX_KEPT_MESSAGES)  # the exporter logs why it failed
    messages.setLevel(logging.WARNING)
    logger = logging.getLogger("opentelemetry.exporter")
    logger.addHandler(messages)
    try:
        result = exporter.export(spans)
    finally:
        logger.removeHandler(messages)
    if result is not SpanExportResult.SUCCESS:
        reason = "no reason given"
        if messages.buffer:
            reason = messages.buffer[-1].getMessage()
        raise InputError(
            f"{mask_url(address)} did not accept the trace: {mask_text(reason)}",
            hint="check the address; if the server needs a key, set the environment variable "
            "OTEL_EXPORTER_OTLP_HEADERS",
        )
    return _trace_id(spans)


def _endpoint(address: str) -> str:
    """Return an address with the path for traces, if it has none."""
    parts = urlsplit(address)
    if parts.path in ("", "/"):
        parts = parts._replace(path=TRACES_PATH)
    return parts.geturl()


# Spans of the SDK


def _make_spans(run: Engine) -> Sequence[ReadableSpan]:
    """Return the spans of a run as objects of OpenTelemetry's SDK, in the order of ``spans_of_run``.

    Ids are computed from the content.
    """
    exported = spans_of_run(run)
    trace_id = trace_id_of(run, exported)
    resource = Resource({SERVICE_NAME: "kgwb", ResourceAttributes.PROJECT_NAME: "kgwb"})
    contexts: dict[str, SpanContext] = {}
    spans = []
    for span in exported:
        span_id = span_id_of(trace_id, span.place)
        contexts[span.place] = SpanContext(trace_id, span_id, is_remote=False)
        status = Status(StatusCode.OK)
        if span.error:
            status = Status(StatusCode.ERROR, span.error)
        spans.append(
            ReadableSpan(
                span.name,
                contexts[span.place],
                contexts.get(span.parent),
                resource,
                span.attributes,
                status=status,
                start_time=_nanoseconds(span.start),
                end_time=_nanoseconds(span.end),
                instrumentation_scope=InstrumentationScope("kgwb", __version__),
            )
        )
    return spans


def _nanoseconds(time: datetime) -> int:
    """Return a time as nanoseconds since 1970, exact to the microsecond."""
    seconds = int(time.timestamp())
    return (seconds * 1_000_000 + time.microsecond) * 1_000


def _trace_id(spans: Sequence[ReadableSpan]) -> str:
    """Return the id of the trace of some spans in hexadecimal digits."""
    return format_trace_id(spans[0].context.trace_id)


def _write_ids_in_hexadecimal(span: JsonObject) -> None:
    """Replace the ids of a span, which protobuf writes in base64, by hexadecimal digits."""
    for field in ID_FIELDS:
        if field in span:
            span[field] = base64.b64decode(span[field]).hex()
