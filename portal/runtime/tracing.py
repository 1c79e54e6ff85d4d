"""Traces as OpenTelemetry defines them: a span for each request, call of the lending service and background job.

Hides the SDK. The first span imports it, so it is loaded after any fork, and never where
``OTEL_EXPORTER_OTLP_ENDPOINT`` names no collector. A span holds the attributes given here and nothing else: no address,
no query, nothing that somebody typed or is called, and of an exception only its type.
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
    """A timed operation. Attributes that are ``None`` are left out; a span without a name at its end is dropped."""

    name: str = ""
    attributes: Attributes = field(default_factory=dict)

    def fail(self, kind: str) -> None:
        """Mark it as ended in an error of this kind."""
        self.attributes["error.type"] = kind

    @property
    def has_failed(self) -> bool:
        """Whether it ended in an error."""
        return "error.type" in self.attributes


def is_enabled() -> bool:
    """Whether a collector is configured."""
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def load_sdk() -> Any:
    """Import the SDK if a collector is configured. Call it after a fork, to save the first span the time."""
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
    """Record something that just ended and took so long."""
    if sdk := load_sdk():
        sdk.record_past_span(span, milliseconds, kind)
