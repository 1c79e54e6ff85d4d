"""Addresses of a list whose views need only its declaration."""

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.gateway.client import StaffRequest
from portal.tables.pages import ListPage
from portal.tables.refresh import refresh_selected

View = Callable[..., HttpResponseBase]


def list_addresses(
    list_page: ListPage, address: str, *, file: str = "export.csv", index: View | None = None
) -> list[URLPattern]:
    """The list, its file, and the refresh of selected rows, for everyone who may open the list.

    ``index`` is the list's own view, if its page shows more than the list.
    """
    may_open = requires(f"{list_page.area}.index")

    def refresh(request: StaffRequest) -> HttpResponseBase:
        return refresh_selected(request, list_page)

    methods = ["GET", "HEAD", "POST"] if list_page.optional_columns else ["GET", "HEAD"]
    patterns = [
        path(address, index or require_http_methods(methods)(may_open(list_page.index)), name="index"),
        path(f"{address}{file}", require_safe(may_open(list_page.export)), name="export"),
    ]
    if list_page.can_refresh:
        view = require_http_methods(["GET", "POST"])(may_open(refresh))
        patterns.append(path(f"{address}refresh/", view, name="refresh"))
    return patterns
