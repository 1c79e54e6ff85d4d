"""Keeps pages from showing figures of an earlier business date."""

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from portal.registry.recalculation import ensure_current_figures


class FiguresMiddleware(MiddlewareMixin):
    """Recalculates outdated figures before a request reads them; nearly always there are none."""

    def process_request(self, request: HttpRequest) -> None:
        if request.user.is_authenticated:
            ensure_current_figures()
