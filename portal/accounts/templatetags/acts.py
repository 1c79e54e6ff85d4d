"""Why the viewer may not do an act (available in every template). Such a button isn’t shown."""

from django import template
from django.template import RequestContext

from portal.accounts import password_links
from portal.accounts.roles import can, reason_for, reason_not_to_cancel

register = template.Library()
register.simple_tag(password_links.are_enabled, name="has_password_links")


@register.simple_tag(takes_context=True)
def why_not(context: RequestContext, act: str) -> str:
    """Why the viewer may not do an act; empty if they may: ``{% why_not "lookup.add" as why %}``."""
    return "" if can(context.request.user, act) else reason_for(act)


@register.simple_tag(takes_context=True)
def why_not_cancel(context: RequestContext, started_by: int | None) -> str:
    """Why the viewer may not cancel a job: ``{% why_not_cancel job.actor_id as why %}``."""
    return reason_not_to_cancel(context.request.user, started_by)
