"""Traces as OpenTelemetry has them: a span for each request, call of the lending service and background job.

Hides the SDK. It is imported by the first span, so in the process that makes it and after any fork, and never where
``OTEL_EXPORTER_OTLP_ENDPOINT`` names no collector. A span holds what is told here and nothing else: no address, no
query, nothing that somebody typed or is called, and of an exception its type alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from django.conf import settings

Told = dict[str, str | int | None]
Kind = Literal["server", "client", "consumer"]


@dataclass
class Span:
    """What is told of something that takes its time: nothing of it where it is ``None``, or has no name at its end."""

    name: str = ""
    told: Told = field(default_factory=dict)

    def fail(self, kind: str) -> None:
        """It ended in an error of this kind."""
        self.told["error.type"] = kind

    @property
    def has_failed(self) -> bool:
        """Whether it ended in an error."""
        return "error.type" in self.told


def is_on() -> bool:
    """Whether anybody wants traces."""
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def start() -> None:
    """Load the SDK now, so that the first span of this process need not; to be called after a fork."""
    if is_on():
        from portal.tracing import sdk

        sdk.tracer()


@contextmanager
def span(name: str = "", told: Told | None = None, *, kind: Kind, parent: str = "") -> Iterator[Span]:
    """Whatever is in here, and what it begins is part of it; ``parent`` is another service's ``traceparent``."""
    one = Span(name, told or {})
    with _measured(one, kind, parent) if is_on() else nullcontext():
        yield one


@contextmanager
def _measured(one: Span, kind: Kind, parent: str) -> Iterator[None]:
    from portal.tracing import sdk

    with sdk.measured(one, kind, parent):
        try:
            yield
        except Exception as error:
            one.fail(type(error).__qualname__)
            raise
        except BaseException as interruption:
            one.told["desk.interrupted_by"] = type(interruption).__qualname__
            raise


def past(one: Span, milliseconds: int, *, kind: Kind) -> None:
    """What took so long and ended just now."""
    if is_on():
        from portal.tracing import sdk

        sdk.past(one, milliseconds, kind)


def is_heard() -> bool:
    """Whether the collector takes what is sent to it; it is asked."""
    from portal.tracing import sdk

    return sdk.is_heard()
