"""The attributes of a region that loads itself (loaded everywhere)."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def panel(context: template.Context, name: str, fresh: Any) -> SafeString:
    """The id of a panel, and while its copy is due or an answer is on its way the attributes that load it again.

    ``fresh`` has ``is_due`` and ``is_pending``; the address is the page's own, so a panel is an answer of its view.
    """
    identity = format_html('id="{}"', name)
    if not (fresh.is_due or fresh.is_pending):
        return identity
    request = context["request"]
    query = request.GET.copy()
    query.pop("refresh", None)
    query["panel"] = name
    has_waited = request.htmx and fresh.is_pending
    trigger = "load delay:1s" if has_waited else "load"
    attributes = '{} hx-get="{}?{}" hx-trigger="{}" hx-target="this" hx-swap="outerHTML" aria-busy="true"'
    return format_html(attributes, identity, request.path, query.urlencode(), trigger)
