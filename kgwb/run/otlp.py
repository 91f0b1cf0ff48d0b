"""The trace of a run in the OpenTelemetry protocol: written to a file as JSON, or sent.

https://opentelemetry.io/docs/specs/otlp
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from google.protobuf.json_format import MessageToDict
from openinference.semconv.resource import ResourceAttributes
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, StatusCode, set_span_in_context

from kgwb import disk
from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.records import JsonObject
from kgwb.run.engine import Engine
from kgwb.run.spans import ExportedSpan, span_id_of, spans_of_run, trace_id_of
from kgwb.text import mask_text, mask_url

TRACES_PATH = "/v1/traces"
"""Where a server of the protocol takes traces, if its address has no path."""
ID_FIELDS = ("traceId", "spanId", "parentSpanId")
"""Fields that OTLP's JSON writes in hexadecimal digits, while protobuf's JSON has base64."""
NO_LIMIT = SpanLimits.UNSET


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
    with _LogMessages() as messages:
        exporter = OTLPSpanExporter(endpoint=_endpoint(address))
        result = exporter.export(spans)
    if result is not SpanExportResult.SUCCESS:
        reason = "; ".join(messages.texts[-1:]) or "no reason given"
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


class _LogMessages(logging.Handler):
    """Keeps what the exporter logs meanwhile: it returns no reason of a failure."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.logger = logging.getLogger("opentelemetry.exporter")

    def __enter__(self) -> _LogMessages:
        self.logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


# Spans of the SDK


class _GivenIds(IdGenerator):
    """Gives spans the ids that were decided before, in the order in which they are started."""

    def __init__(self, trace_id: int, span_ids: Sequence[int]) -> None:
        self.trace_id = trace_id
        self.span_ids = iter(span_ids)

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return next(self.span_ids)


def _make_spans(run: Engine) -> Sequence[ReadableSpan]:
    """Return the spans of a run as objects of OpenTelemetry's SDK.

    The order is that of ``spans_of_run``. Ids are computed from the content. Raises InputError if
    the environment has switched the SDK off.
    """
    exported = spans_of_run(run)
    trace_id = trace_id_of(run, exported)
    span_ids = [span_id_of(trace_id, span.place) for span in exported]
    finished = InMemorySpanExporter()
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({SERVICE_NAME: "kgwb", ResourceAttributes.PROJECT_NAME: "kgwb"}),
        shutdown_on_exit=False,
        id_generator=_GivenIds(trace_id, span_ids),
        span_limits=SpanLimits(
            max_attributes=NO_LIMIT,
            max_span_attributes=NO_LIMIT,
            max_attribute_length=NO_LIMIT,
            max_span_attribute_length=NO_LIMIT,
        ),
    )
    provider.add_span_processor(SimpleSpanProcessor(finished))
    tracer = provider.get_tracer("kgwb", __version__)
    started: dict[str, Span] = {}
    for span in exported:
        context = Context()
        if span.parent:
            context = set_span_in_context(started[span.parent], context)
        started[span.place] = tracer.start_span(
            span.name,
            context,
            attributes=span.attributes,
            start_time=_nanoseconds(span.start),
        )
    for span in exported:
        _end_span(started[span.place], span)
    spans = finished.get_finished_spans()
    if not spans:
        raise InputError(
            "no trace was made: OpenTelemetry is switched off by the environment variable OTEL_SDK_DISABLED",
            hint="unset that variable, and export again",
        )
    return spans


def _end_span(span: Span, exported: ExportedSpan) -> None:
    """End a span at its time, with the status OK, or ERROR and the reason if it failed."""
    if exported.error:
        span.set_status(StatusCode.ERROR, exported.error)
    else:
        span.set_status(StatusCode.OK)
    span.end(_nanoseconds(exported.end))


def _nanoseconds(time: datetime) -> int:
    """Return a time as nanoseconds since 1970, exact to the microsecond."""
    seconds = int(time.timestamp())
    return (seconds * 1_000_000 + time.microsecond) * 1_000


def _trace_id(spans: Sequence[ReadableSpan]) -> str:
    """Return the id of the trace of some spans in hexadecimal digits."""
    context = spans[0].get_span_context()
    assert context is not None
    return format(context.trace_id, "032x")


def _write_ids_in_hexadecimal(span: JsonObject) -> None:
    """Replace the ids of a span, which protobuf writes in base64, by hexadecimal digits."""
    for field in ID_FIELDS:
        if field in span:
            span[field] = base64.b64decode(span[field]).hex()
