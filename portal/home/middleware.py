"""Gives every page's frame the health of the service and the number of items that need attention."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from portal.audit.service_health import header_status
from portal.home import attention


class FrameMiddleware:
    """Sets ``request.health`` and ``request.waiting``, computed only if a frame is rendered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        if request.user.is_authenticated:
            request.health = SimpleLazyObject(header_status)
            request.waiting = SimpleLazyObject(lambda: attention.waiting(request.user))
        response = self.get_response(request)
        if (
            request.method == "POST" and request.user.is_authenticated
        ):  # A person sees at once what they did themselves.
            attention.forget_items(request.user)
        return response
