"""Whether the person who looks may do an act (loaded everywhere): what they lack stays on the page, with the reason."""

from django import template

from portal.accounts.roles import can, reason_for

register = template.Library()


@register.simple_tag(takes_context=True)
def why_not(context: template.Context, act: str) -> str:
    """Why not, in words for beside a button; empty for those who may: ``{% why_not "lookup.add" as why %}``."""
    return "" if can(context["request"].user, act) else reason_for(act)
