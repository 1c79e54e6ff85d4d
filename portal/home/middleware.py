"""What the frame of every page tells beside its own content: how the service answers, and what waits for somebody."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from portal.audit import health
from portal.home import attention


class FrameMiddleware:
    """Sets ``request.health`` and ``request.waiting``, worked out only where a frame is drawn."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        if request.user.is_authenticated:
            request.health = SimpleLazyObject(health.header)
            request.waiting = SimpleLazyObject(lambda: attention.waiting(request.user))
        return self.get_response(request)
