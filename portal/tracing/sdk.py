"""The only module that imports OpenTelemetry. Spans wait in memory, and a thread sends them every few seconds.

Hides how little a collector that does not answer may cost: nobody waits for it but that thread and, for twice
``TIMEOUT`` at most, the end of the process; the log tells once that it is away, and once that it is back.
"""

import functools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span as Measured
from opentelemetry.trace import SpanKind, StatusCode, Tracer, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers

from portal.tracing import Kind, Span

# Seconds in which the collector must have taken a batch, with all further tries.
TIMEOUT = 2
# All that waits is one batch, so that the process ends with the one that is being sent and this one.
BATCH = 2048

logger = logging.getLogger(__name__)
_lock = threading.Lock()


class Exporter(OTLPSpanExporter):
    """Tells of a change, where its parent would tell of every batch."""

    _is_heard = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        result = super().export(spans)
        is_heard = result is SpanExportResult.SUCCESS
        if is_heard != self._is_heard:
            words = "takes traces again" if is_heard else "does not take traces: they are lost"
            logger.warning("The collector %s.", words)
        self._is_heard = is_heard
        return result


def tracer() -> Tracer:
    """What makes the spans of this process; with it starts the thread that sends them."""
    with _lock:
        return _tracer()


@functools.cache
def _tracer() -> Tracer:
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: settings.OTEL_SERVICE_NAME}))
    batches = BatchSpanProcessor(_to_collector(Exporter), max_queue_size=BATCH, max_export_batch_size=BATCH)
    provider.add_span_processor(batches)
    return provider.get_tracer("portal")


def _to_collector(exporter: type[OTLPSpanExporter]) -> OTLPSpanExporter:
    headers = parse_env_headers(settings.OTEL_EXPORTER_OTLP_HEADERS, liberal=True)
    endpoint = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"
    return exporter(endpoint, headers=headers, timeout=TIMEOUT)


def is_heard() -> bool:
    """Whether the collector takes a batch in which there is nothing."""
    return _to_collector(OTLPSpanExporter).export([]) is SpanExportResult.SUCCESS


@contextmanager
def measured(one: Span, kind: Kind, parent: str) -> Iterator[None]:
    """What is in here, as a span that ends with it."""
    made = tracer().start_span(one.name, _context(parent), SpanKind[kind.upper()])
    with use_span(made, record_exception=False, set_status_on_exception=False):
        try:
            yield
        finally:
            if one.name:
                _end(made, one)


def past(one: Span, milliseconds: int, kind: Kind) -> None:
    """A span that ends now."""
    began = time.time_ns() - milliseconds * 1_000_000
    _end(tracer().start_span(one.name, kind=SpanKind[kind.upper()], start_time=began), one)


def _context(parent: str) -> Context | None:
    return TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None


def _end(made: Measured, one: Span) -> None:
    made.update_name(one.name)
    made.set_attributes({name: value for name, value in one.told.items() if value is not None})
    if one.has_failed:
        made.set_status(StatusCode.ERROR)
    made.end()
