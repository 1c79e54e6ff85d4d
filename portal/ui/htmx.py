"""View responses: one rule for page or fragment, and the response to a finished action with and without HTMX."""

from collections.abc import Mapping
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event


class Htmx(Protocol):
    """The attributes used here of django-htmx's ``request.htmx``."""

    boosted: bool
    history_restore_request: bool
    target: str | None
    current_url_abs_path: str | None

    def __bool__(self) -> bool: ...


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    partial: str | tuple[str, ...] = (),
    status: int = 200,
) -> HttpResponse:
    """Render the page, or only the ``partial`` that an HTMX request targets.

    A partial is named after the id of its root element, which is the target of the request.
    """
    names = (partial,) if isinstance(partial, str) else partial
    name = requested_partial(request, names)
    response = render(request, f"{template}#{name}" if name else template, context, status=status)
    return _never_cached(response)


def current_address(request: HttpRequest) -> str:
    """The address of the page from which htmx sent this request; empty if that isn't known."""
    try:
        return _htmx(request).current_url_abs_path or ""
    except ValueError:  # The header holds no valid address.
        return ""


def current_page(request: HttpRequest) -> ResolverMatch | None:
    try:
        return resolve(urlsplit(current_address(request)).path)
    except (ValueError, Resolver404):  # It isn't an address of the portal.
        return None


def page_before(request: HttpRequest) -> str:
    """The address of the page that sent this request; the first page if it isn't one of ours."""
    back = request.headers.get("Referer", "")
    is_own = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return back if is_own else resolve_url("home:index")


def finish_action(request: HttpRequest, url: str, *, event: str | None = None) -> HttpResponse:
    """Redirect to ``url`` after an action, or with HTMX and an ``event`` stay on the page and trigger the event.

    An event is named after its area, in the past tense (``application:submitted``), and regions of the page listen
    for it. The response also carries this request's toasts and closes an open dialog.
    """
    if not _htmx(request):
        return _never_cached(HttpResponseRedirect(url, status=303))
    if event is None:
        return _never_cached(HttpResponseClientRedirect(url))
    response = trigger_client_event(HttpResponse(status=204), event)
    trigger_client_event(response, "dialog:close")
    trigger_client_event(response, "toasts", {"value": _toast_rows(request)})
    return _never_cached(response)


def toast(request: HttpRequest, text: str, *, url: str = "", link: str = "Open the audit entry") -> None:
    """Show a message once: on this page with HTMX, on the next page without."""
    messages.success(request, text, extra_tags=f"{url} {link}" if url else "")


def _htmx(request: HttpRequest) -> Htmx:
    return cast(Htmx, request.htmx)  # type: ignore[attr-defined]


def requested_partial(request: HttpRequest, partials: tuple[str, ...]) -> str | None:
    htmx = _htmx(request)
    is_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    return htmx.target if is_fragment and htmx.target in partials else None


def _never_cached(response: HttpResponse) -> HttpResponse:
    """Keep caches from storing the response or serving a fragment for a page."""
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    patch_cache_control(response, no_store=True)
    return response


def _toast_rows(request: HttpRequest) -> list[dict[str, str | bool]]:
    rows: list[dict[str, str | bool]] = []
    for message in messages.get_messages(request):
        url, _, link = (message.extra_tags or "").partition(" ")
        is_bad = message.level >= messages.WARNING
        rows.append({"text": str(message), "url": url, "link": link, "bad": is_bad})
    return rows
