"""Whether the person who looks may do an act (loaded everywhere): what they lack stays on the page, with the reason."""

from django import template
from django.template import RequestContext

from portal.accounts import password_links
from portal.accounts.roles import can, reason_for, why_not_to

register = template.Library()
register.simple_tag(password_links.are_enabled, name="has_password_links")


@register.simple_tag(takes_context=True)
def why_not(context: RequestContext, act: str) -> str:
    """Why not, in words for beside a button; empty for those who may: ``{% why_not "lookup.add" as why %}``."""
    return "" if can(context.request.user, act) else reason_for(act)


@register.simple_tag(takes_context=True)
def why_not_this(context: RequestContext, act: str, began_by: int | None) -> str:
    """The same for an act on what somebody began: ``{% why_not_this "operations.cancel" job.actor_id as why %}``."""
    return why_not_to(context.request.user, act, began_by)
