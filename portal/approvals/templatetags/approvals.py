"""What waits of one borrower, as notices on its page."""

from typing import Any

from django import template

from portal.approvals.steps import open_ones

register = template.Library()


@register.inclusion_tag("approvals/_section.html", takes_context=True)
def approvals_of(context: template.Context, **narrowed: Any) -> dict[str, Any]:
    """``{% approvals_of borrower_uuid=record.uuid %}``"""
    return {"approvals": open_ones(**narrowed), "user": context["request"].user}
