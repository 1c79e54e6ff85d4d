"""Keeps pages from showing figures of an earlier business date."""

from typing import Any

from django.utils.deprecation import MiddlewareMixin

from portal.records.recalculation import ensure_current_figures


class FiguresMiddleware(MiddlewareMixin):
    """Recalculates outdated figures before a request reads them."""

    def process_request(self, request: Any) -> None:
        if request.user.is_authenticated:
            ensure_current_figures()
