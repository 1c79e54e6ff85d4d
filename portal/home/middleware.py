"""Adds the service's health and the number of items that need attention to every page's frame."""

from collections.abc import Callable
from http import HTTPStatus
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
            request.waiting = SimpleLazyObject(lambda: attention.count_waiting_items(request.user))
        response = self.get_response(request)
        # People see the effect of their own action at once, and an error page must not depend on the cache.
        is_done = request.method == "POST" and response.status_code < HTTPStatus.BAD_REQUEST
        if is_done and request.user.is_authenticated:
            attention.forget_items(request.user)
        return response
