"""Approvals that need attention."""

from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.lifecycle import open_approvals
from portal.approvals.models import Approval
from portal.ui.attention import Item, Items, Snoozed


def pending_approvals(snoozed: Snoozed, user: User) -> Items:
    """Changes that this person can decide, and their own that are pending or approved."""
    may_decide = can(user, "approvals.decide")
    items = [
        _item(one, user)
        for one in open_approvals()
        if one.is_open and _key(one) not in snoozed
        if one.maker_id == user.pk or (may_decide and one.state == Approval.State.WAITING)
    ]
    return Items(items, group="approvals", name="approvals", url=reverse("approvals:index"))


def _key(approval: Approval) -> str:
    return f"approval:{approval.pk}:{approval.state}"


def _item(approval: Approval, user: User) -> Item:
    is_approved = approval.state == Approval.State.APPROVED
    is_mine = approval.maker_id == user.pk
    return Item(
        key=_key(approval),
        state="ok" if is_approved else "waiting",
        icon="check" if is_approved else "users",
        fact="Approved, to be sent:" if is_approved else "Pending approval:",
        rest=f"{approval.label} ({', '.join(approval.acts).lower()})",
        meta=f"by {approval.checker_name}" if is_approved else f"requested by {approval.maker_name}",
        borrower_uuid=approval.borrower_uuid,
        when=approval.decided_at or approval.asked_at,
        url=approval.send_url if is_approved else approval.get_absolute_url(),
        verb="Review and send" if is_approved else "Open" if is_mine else "Review",
        owner_id=approval.maker_id,
    )
