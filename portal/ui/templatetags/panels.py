"""The HTML attributes of panels, which load after the page (available in every template)."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def panel(context: template.RequestContext, name: str) -> SafeString:
    """The id of a panel. In a response for several panels, also the attribute with which it replaces itself."""
    htmx = context.request.htmx  # type: ignore[attr-defined]
    comes_along = htmx and htmx.target != name
    return format_html('id="{}"{}', name, SafeString(' hx-swap-oob="true"' if comes_along else ""))


@register.simple_tag
def age_of(panel: str, is_alone: bool = False) -> SafeString:
    """The id of a panel's age. Without its panel, also the attribute with which it replaces itself."""
    return format_html('id="{}-age"{}', panel, SafeString(' hx-swap-oob="true"' if is_alone else ""))
