"""The only module that imports OpenTelemetry. Spans wait in memory, and a thread sends them every few seconds.

Hides that a silent collector costs little: only that thread waits for it, and the end of the process for at most twice
``TIMEOUT_SECONDS``. The log says once that the collector is down, and once that it is back.
"""

import functools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace import SpanKind, StatusCode, Tracer, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers

from portal.runtime.tracing import Kind, Span

# The collector must have accepted a batch within this time, retries included.
TIMEOUT_SECONDS = 2
# All waiting spans fit into one batch, so the process ends after the current batch and this one.
BATCH_SPANS = 2048

logger = logging.getLogger(__name__)
_lock = threading.Lock()


class Exporter(OTLPSpanExporter):
    """Logs when the collector goes down or comes back; the parent class would log each failed batch."""

    _is_reachable = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        result = super().export(spans)
        is_reachable = result is SpanExportResult.SUCCESS
        if is_reachable != self._is_reachable:
            words = "takes traces again" if is_reachable else "does not take traces: they are lost"
            logger.warning("The collector %s.", words)
        self._is_reachable = is_reachable
        return result


def tracer() -> Tracer:
    """Return the tracer of this process; the first call starts the thread that sends spans."""
    with _lock:
        return _tracer()


@functools.cache
def _tracer() -> Tracer:
    resource = Resource.create({SERVICE_NAME: settings.OTEL_SERVICE_NAME})
    provider = TracerProvider(sampler=_build_sampler(), resource=resource)
    exporter = _build_exporter(Exporter)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=BATCH_SPANS, max_export_batch_size=BATCH_SPANS)
    )
    return provider.get_tracer("portal")


def _build_sampler() -> Sampler:
    """Build the sampler as the SDK would, but from our settings, which were checked and may come from files."""
    samplers = {
        "always_on": ALWAYS_ON,
        "always_off": ALWAYS_OFF,
        "traceidratio": TraceIdRatioBased(float(settings.OTEL_TRACES_SAMPLER_ARG)),
    }
    name = settings.OTEL_TRACES_SAMPLER
    sampler = samplers[name.removeprefix("parentbased_")]
    return ParentBased(sampler) if name.startswith("parentbased_") else sampler


def _build_exporter(exporter: type[OTLPSpanExporter]) -> OTLPSpanExporter:
    headers = parse_env_headers(settings.OTEL_EXPORTER_OTLP_HEADERS, liberal=True)
    endpoint = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"
    return exporter(endpoint, headers=headers, timeout=TIMEOUT_SECONDS)


def is_collector_reachable() -> bool:
    """Whether the collector accepts an empty batch."""
    return _build_exporter(OTLPSpanExporter).export([]) is SpanExportResult.SUCCESS


@contextmanager
def start_span(span: Span, kind: Kind, parent: str) -> Iterator[None]:
    """Trace the block."""
    context = TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None
    sdk_span = tracer().start_span(span.name, context, SpanKind[kind.upper()])
    with use_span(sdk_span, record_exception=False, set_status_on_exception=False):
        try:
            yield
        finally:
            if span.name:
                _end(sdk_span, span)


def record_past_span(span: Span, milliseconds: int, kind: Kind) -> None:
    """Record a span that just ended."""
    start_time = time.time_ns() - milliseconds * 1_000_000
    _end(tracer().start_span(span.name, kind=SpanKind[kind.upper()], start_time=start_time), span)


def _end(sdk_span: SdkSpan, span: Span) -> None:
    sdk_span.update_name(span.name)
    sdk_span.set_attributes({name: value for name, value in span.attributes.items() if value is not None})
    if span.has_failed:
        sdk_span.set_status(StatusCode.ERROR)
    sdk_span.end()
