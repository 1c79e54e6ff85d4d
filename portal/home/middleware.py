"""Adds the service's health and the number of items that need attention to every page's frame."""

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject

from portal.audit.service_health import header_status
from portal.home import attention


class FrameMiddleware(MiddlewareMixin):
    """Sets ``request.health`` and ``request.waiting``, computed only if a frame is rendered."""

    def process_request(self, request: Any) -> None:
        if request.user.is_authenticated:
            request.health = SimpleLazyObject(header_status)
            request.waiting = SimpleLazyObject(lambda: attention.waiting_numbers(request.user))

    def process_response(self, request: Any, response: HttpResponse) -> HttpResponse:
        # People see the effect of their own action at once, and an error page must not depend on the cache.
        is_done = request.method == "POST" and response.status_code < HTTPStatus.BAD_REQUEST
        if is_done and request.user.is_authenticated:
            attention.forget_numbers(request.user)
        return response
