"""Keeps pages from showing figures of an earlier business date."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.registry.recalculation import ensure_current_figures


class FiguresMiddleware:
    """Recalculates outdated figures before a request reads them; nearly always there are none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            ensure_current_figures()
        return self.get_response(request)
