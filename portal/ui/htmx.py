"""How a view answers: the one rule for page or fragment, and the end of an act with and without HTMX."""

import json
from collections.abc import Mapping
from typing import Any, Protocol, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers


class Htmx(Protocol):
    """What we use of the object that django-htmx puts on every request."""

    boosted: bool
    history_restore_request: bool
    target: str | None

    def __bool__(self) -> bool: ...


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    partial: str | tuple[str, ...] = (),
    status: int = 200,
) -> HttpResponse:
    """Answer with the page, or with the one of its ``partial``s that an HTMX request aims at.

    The name of a partial is the id of its root element, and so the target of the request.
    """
    names = (partial,) if isinstance(partial, str) else partial
    name = _wanted(request, names)
    response = render(request, f"{template}#{name}" if name else template, context, status=status)
    return _private(response)


def done(request: HttpRequest, url: str, *, event: str | None = None) -> HttpResponse:
    """Answer an act that succeeded: go on to ``url``, or with HTMX and an ``event`` stay and tell the page.

    An event is named in the past tense after its area (``application:submitted``); regions that show the
    thing listen for it. It comes with the toasts of this request and closes an open dialog.
    """
    if not _htmx(request):
        return _private(HttpResponseRedirect(url, status=303))
    if event is None:
        return _private(HttpResponse(status=204, headers={"HX-Redirect": url}))
    triggers = {event: {}, "dialog:close": {}, "toasts": _toasts(request)}
    return _private(HttpResponse(status=204, headers={"HX-Trigger": json.dumps(triggers)}))


def toast(request: HttpRequest, text: str, *, url: str = "", link: str = "Open the audit entry") -> None:
    """Say that something finished, once: on this page with HTMX, on the next page without."""
    messages.success(request, text, extra_tags=f"{url} {link}" if url else "")


def _htmx(request: HttpRequest) -> Htmx:
    return cast(Htmx, request.htmx)  # type: ignore[attr-defined]


def _wanted(request: HttpRequest, partials: tuple[str, ...]) -> str | None:
    htmx = _htmx(request)
    is_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    return htmx.target if is_fragment and htmx.target in partials else None


def _private(response: HttpResponse) -> HttpResponse:
    """Never kept by a cache, and never the fragment where the page is meant."""
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    patch_cache_control(response, no_store=True)
    return response


def _toasts(request: HttpRequest) -> list[dict[str, str]]:
    rows = []
    for message in messages.get_messages(request):
        url, _, link = (message.extra_tags or "").partition(" ")
        rows.append({"text": str(message), "url": url, "link": link})
    return rows
