"""OpenTelemetry traces: a span for each request, call to the lending service and background job.

Hides the SDK. The first span imports it, so it is loaded after any fork, and only if ``OTEL_EXPORTER_OTLP_ENDPOINT``
names a collector. A span holds only the attributes given here: no address, query, typed text or name, and only the
type of an exception.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from django.conf import settings

Attributes = dict[str, str | int | None]
Kind = Literal["server", "client", "consumer"]


@dataclass
class Span:
    """A timed operation. Attributes that are ``None`` are left out; a span that ends without a name is dropped."""

    name: str = ""
    attributes: Attributes = field(default_factory=dict)

    def fail(self, kind: str) -> None:
        """Mark it as failed with this kind of error."""
        self.attributes["error.type"] = kind

    @property
    def has_failed(self) -> bool:
        """Whether it was marked as failed."""
        return "error.type" in self.attributes


def is_enabled() -> bool:
    """Whether a collector is configured."""
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def load_sdk() -> Any:
    """Import the SDK if a collector is configured. Call this after a fork to save the first span the time."""
    if not is_enabled():
        return None
    from portal.runtime import opentelemetry_sdk

    return opentelemetry_sdk


@contextmanager
def span(
    name: str = "", attributes: Attributes | None = None, *, kind: Kind, parent: str = ""
) -> Iterator[Span]:
    """Trace the block and the spans inside it; ``parent`` is another service's ``traceparent``."""
    opened = Span(name, attributes or {})
    if not (sdk := load_sdk()):
        yield opened
        return
    with sdk.start_span(opened, kind, parent):
        try:
            yield opened
        except Exception as error:
            opened.fail(type(error).__qualname__)
            raise
        except BaseException as interruption:
            opened.attributes["desk.interrupted_by"] = type(interruption).__qualname__
            raise


def record_past_span(span: Span, milliseconds: int, *, kind: Kind) -> None:
    """Record a span that just ended and took this long."""
    if sdk := load_sdk():
        sdk.record_past_span(span, milliseconds, kind)
