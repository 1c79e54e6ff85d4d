"""Addresses of a list whose views need only its declaration."""

from django.http import HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.gateway import StaffRequest
from portal.lists.pages import ListPage
from portal.lists.refresh import refresh_selected


def list_addresses(list_page: ListPage, address: str, *, file: str = "export.csv") -> list[URLPattern]:
    """The list, its file, and the refresh of selected rows, for everyone who may open the list."""
    may_open = requires(f"{list_page.area}.index")

    def refresh(request: StaffRequest) -> HttpResponseBase:
        return refresh_selected(request, list_page)

    methods = ["GET", "HEAD", "POST"] if list_page.optional_columns else ["GET", "HEAD"]
    patterns = [
        path(address, require_http_methods(methods)(may_open(list_page.index)), name="index"),
        path(f"{address}{file}", require_safe(may_open(list_page.export)), name="export"),
    ]
    if list_page.can_refresh:
        view = require_http_methods(["GET", "POST"])(may_open(refresh))
        patterns.append(path(f"{address}refresh/", view, name="refresh"))
    return patterns
