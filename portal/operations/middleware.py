"""What goes for every request: how much of it is read, what log, counts and traces tell of it, and how it travels."""

import logging
import secrets
import time
from collections.abc import Callable
from http import HTTPMethod, HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from portal import clocks, tracing
from portal.gateway import database_away, error_page
from portal.operations import logs, tallies
from portal.ui.uploads import is_too_long

logger = logging.getLogger("portal.requests")
# Platforms ask these every few seconds.
QUIET = {"operations:healthz", "operations:readyz", "operations:metrics"}


class RequestMiddleware:
    """The outermost of all: gives each request its reference, and what the browser gets a log line, a count, a span.

    None of these is about anybody. The reference is there from the start: also what fails before a view is reached
    is found by it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        request.request_id = f"r-{secrets.token_hex(6)}"
        token, began = logs.current.set(request), time.monotonic()
        clocks.drop_cache_after_set_back()
        try:
            with tracing.span(kind="server", parent=_parent(request)) as span:
                response = self.get_response(request)
                if getattr(request, "is_database_away", False):
                    response = database_away(request)
                response["X-Request-ID"] = request.request_id
                response["Permissions-Policy"] = settings.PERMISSIONS_POLICY
                view = request.resolver_match.view_name if request.resolver_match else "none"
                milliseconds = round((time.monotonic() - began) * 1000)
                if view not in QUIET:
                    tallies.count(tallies.REQUEST, view, str(response.status_code), milliseconds)
                    told = {"view": view, "method": request.method, "status": response.status_code}
                    logger.info("%s %s", request.method, view, extra=told | {"ms": milliseconds})
                    _describe(span, request, response)
            return response
        finally:
            logs.current.reset(token)


def _parent(request: HttpRequest) -> str:
    """The span of the proxy in front, where it is trusted to tell, or to keep to itself what a browser said."""
    return request.headers.get("traceparent", "") if settings.TRUSTED_PROXIES else ""


def _describe(span: tracing.Span, request: Any, response: HttpResponse) -> None:
    """By the pattern of the address, not by the address: that may hold identifiers and what was searched for."""
    method = request.method if request.method in HTTPMethod.__members__ else "_OTHER"
    route = f"/{request.resolver_match.route}" if request.resolver_match else None
    span.name = f"{method} {route or ''}".strip()
    span.told |= {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": response.status_code,
        "desk.request_id": request.request_id,
        # Nobody is looked up for this: what failed may be the database.
        "desk.role": getattr(getattr(request, "_cached_user", None), "role", None),
    }
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(getattr(request, "failed_with", str(response.status_code)))


class CompressionMiddleware(GZipMiddleware):
    """Pages and their regions travel compressed. Files, documents and streams go as they are: some are already.

    How long a page becomes must not tell what stands in it: Django blurs it at random, and masks the token of forms
    anew in each answer.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = not response.streaming and response.headers.get("Content-Type", "").startswith("text/html")
        return super().process_response(request, response) if is_page else response


class UploadMiddleware:
    """Stands before whatever reads a body, so that one which is too long is neither read nor written anywhere."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> HttpResponse | None:
        """Refuse it, by the length that the browser tells."""
        if is_too_long(request.META.get("CONTENT_LENGTH", ""), view):
            return error_page(request, "413.html", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return None
