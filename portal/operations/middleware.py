"""Middleware for every request: reference, log line, compression, upload limit."""

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
from django.utils.deprecation import MiddlewareMixin

from portal.gateway.failures import database_unavailable, error_page
from portal.operations import logs
from portal.ui.uploads import is_body_too_long

logger = logging.getLogger("portal.requests")
# Platforms call these every few seconds.
CHECK_PATHS = {"/healthz", "/readyz", "/metrics"}
STATIC_TEXTS = {"text/css", "text/javascript", "image/svg+xml"}
# Pages have their own policy, and a page loads two dozen of these, so the header's length counts.
PARTS_OF_PAGES = ("text/css", "text/javascript", "font/")


class RequestMiddleware:
    """Outermost middleware: gives each request its reference and a log line, without personal data.

    The reference is set first, so that a failure before the view can be found by its reference.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        request.request_id = f"r-{secrets.token_hex(6)}"
        token, began, worked = logs.current.set(request), time.monotonic(), time.thread_time()
        is_check = request.path_info in CHECK_PATHS
        if is_check:
            request.META.pop("HTTP_COOKIE", None)  # A session would need the database.
        try:
            response = self.get_response(request)
            if getattr(request, "is_database_away", False):
                response = database_unavailable(request)
            response["X-Request-ID"] = request.request_id
            if request.method == "HEAD" and not response.streaming:
                response.content = b""  # The server warns about a body that it drops.
            if not _is_part_of_page(request, response):
                response["Permissions-Policy"] = settings.PERMISSIONS_POLICY
            if not is_check:
                view = request.resolver_match.view_name if request.resolver_match else "none"
                milliseconds = round((time.monotonic() - began) * 1000)
                # A client can send any word as its method.
                method = request.method if request.method in HTTPMethod.__members__ else "_OTHER"
                fields = {"view": view, "method": method, "status": response.status_code}
                took = {"ms": milliseconds, "cpu_ms": round((time.thread_time() - worked) * 1000)}
                logger.info("%s %s", method, view, extra=fields | took)
            return response
        finally:
            logs.current.reset(token)


def _is_part_of_page(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether a page loads this response, so that the page's permissions policy applies."""
    return "HX-Request" in request.headers or response.get("Content-Type", "").startswith(PARTS_OF_PAGES)


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages and their fragments; files and streams are sent as they are.

    With ``DEBUG`` it compresses static files too; deployments have compressed files on disk.

    Against attacks on compressed secrets, Django pads the length at random and masks the CSRF token in each response.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        is_page = not response.streaming and kind == "text/html"
        is_static = settings.DEBUG and response.status_code == HTTPStatus.OK and kind in STATIC_TEXTS
        return super().process_response(request, response) if is_page or is_static else response


class UploadMiddleware(MiddlewareMixin):
    """Rejects oversized uploads before the body is read."""

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> HttpResponse | None:
        """Reject the request if the announced length is too large."""
        if is_body_too_long(request.META.get("CONTENT_LENGTH", ""), view):
            return error_page(request, "413.html", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return None
