"""What is done with every answer: a line in the log and a count, neither about anybody; and fewer bytes for a page."""

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from portal.operations import logs, tallies

logger = logging.getLogger("portal.requests")
# Platforms ask these every few seconds.
QUIET = {"operations:healthz", "operations:readyz", "operations:metrics"}


class RequestMiddleware:
    """The outermost of all: what it sees is what the browser gets."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token, began = logs.current.set(request), time.monotonic()
        try:
            response = self.get_response(request)
            view = request.resolver_match.view_name if request.resolver_match else "none"
            milliseconds = round((time.monotonic() - began) * 1000)
            if view not in QUIET:
                tallies.count(tallies.REQUEST, view, str(response.status_code), milliseconds)
                told = {"view": view, "method": request.method, "status": response.status_code}
                logger.info("%s %s", request.method, view, extra=told | {"ms": milliseconds})
            return response
        finally:
            logs.current.reset(token)


class CompressionMiddleware(GZipMiddleware):
    """Pages and their regions travel compressed. Files, documents and streams go as they are: some are already.

    How long a page becomes must not tell what stands in it: Django blurs it at random, and masks the token of forms
    anew in each answer.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = not response.streaming and response.headers.get("Content-Type", "").startswith("text/html")
        return super().process_response(request, response) if is_page else response
