"""The repayment in a message, as a tag: ``{% load repayments %}{% payment_card row %}``."""

from typing import Any

from django import template

from portal.messaging.links import LinkedMessage
from portal.messaging.payment_events import messages_of_repayment
from portal.registry.models import Kind
from portal.repayments.history import payment_history
from portal.repayments.table import RepaymentRow
from servicing import Repayment

register = template.Library()


@register.inclusion_tag("repayments/payment_card.html")
def payment_card(linked: LinkedMessage, repayment: Repayment) -> dict[str, Any]:
    """Facts and history of the repayment that a message carries."""
    message, subject = linked.message, linked.subject
    record = subject if subject and subject.kind == Kind.REPAYMENT else None
    return {
        "row": RepaymentRow(repayment, linked.account, linked.borrower, message.why_null),
        "history": payment_history(record, messages_of_repayment(message.subject_uuid)),
    }
