"""The HTML attributes of panels, which load after the page (available in every template)."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# A request of something inside of the panel replaces what that names, not the panel.
LOADS = 'hx-target="this" hx-swap="morph:outerHTML" hx-disinherit="hx-target hx-swap"'


@register.simple_tag
def panel(name: str, fresh: Any = None, url: str = "", out_of_view: bool = True) -> SafeString:
    """The id of a panel and, while its copy is old, how it loads itself: static/js/portal.js says when.

    While another request reads the copy, it looks again every two seconds. ``url`` is the page's address unless given.
    ``out_of_view`` says whether it also loads before it comes into view.
    """
    if fresh and fresh.is_pending:
        how = SafeString('hx-trigger="every 2s"')
    elif fresh and fresh.is_awaited:
        how = format_html('hx-trigger="due" data-due="{}"', "" if out_of_view else "in-view")
    else:
        return format_html('id="{}"', name)
    return format_html('id="{}" aria-busy="true" hx-get="{}" {} {}', name, url, how, SafeString(LOADS))


@register.simple_tag(takes_context=True)
def follows(context: template.RequestContext, name: str) -> SafeString:
    """The id of a part that loads again from saved copies whenever a panel of the page has read an account.

    It asks for what it shows, such as the second page of a table, which need not be in the page's address.
    """
    request = context.request
    query = request.GET.copy()
    query.pop("refresh", None)
    return format_html(
        'id="{}" hx-get="{}?{}" hx-trigger="{}" hx-sync="this:queue last" {}',
        name,
        request.path,
        query.urlencode(),
        "account:read from:body delay:200ms, job:ended from:body",
        SafeString(LOADS),
    )
