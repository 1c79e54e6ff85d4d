"""The HTML attributes of panels, which load after the page (available in every template)."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# What is inside of it inherits none of this.
LOADS = SafeString(
    'hx-target="this" hx-swap="morph:outerHTML" hx-sync="this:queue last"'
    ' hx-disinherit="hx-target hx-swap hx-sync hx-vals"'
)


@register.simple_tag(takes_context=True)
def panel(
    context: template.RequestContext, name: str, fresh: Any = None, url: str = "", out_of_view: bool = True
) -> SafeString:
    """The id of a panel and, while its copy is old, how it loads itself: static/js/portal.js says when.

    While another request reads the copy, or it just wasn't this panel's turn, it looks again every two seconds.
    ``url`` is the page's address unless given, with the panel's name: of one address, a browser's second tab would wait
    for the first one's panel. ``out_of_view`` says whether it also loads before it comes into view.
    """
    is_asking = context.request.htmx.target == name  # type: ignore[attr-defined]
    if fresh and fresh.is_awaited and (fresh.is_pending or is_asking):
        how = SafeString('hx-trigger="every 2s"')
    elif fresh and fresh.is_awaited:
        how = format_html('hx-trigger="due" data-due="{}"', "" if out_of_view else "in-view")
    else:
        return format_html('id="{}"', name)
    own = "" if url else format_html('hx-vals=\'{{"panel": "{}"}}\'', name)
    return format_html('id="{}" hx-get="{}" {} {} {}', name, url, how, own, LOADS)


@register.simple_tag(takes_context=True)
def follows(context: template.RequestContext, name: str, after_jobs_only: bool = False) -> SafeString:
    """The id of a part that loads again from saved copies when a panel of the page has read an account, or a job ended.

    It asks for what it shows, such as the second page of a table, which need not be in the page's address.
    """
    request = context.request
    query = request.GET.copy()
    query.pop("refresh", None)
    return format_html(
        # Links inside wait for it, and it for them, so that none takes the other's page back.
        'id="{}" hx-get="{}?{}" hx-trigger="{}" hx-target="this" hx-swap="morph:outerHTML" hx-sync="this:queue last"'
        ' hx-disinherit="hx-target hx-swap"',
        name,
        request.path,
        query.urlencode(),
        "job:ended from:body"
        if after_jobs_only
        else "account:read from:body delay:200ms, job:ended from:body",
    )
