"""Approvals that need attention."""

from typing import NamedTuple

from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.lifecycle import open_approvals
from portal.approvals.models import Approval
from portal.registry.attention import Item, Items, Snoozed


class OpenApproval(NamedTuple):
    """What decides whose item an approval is."""

    state: str
    maker_id: int

    def concerns(self, user: User) -> bool:
        """Whether this person can decide it, or it is their own."""
        is_pending = self.state == Approval.State.WAITING
        return self.maker_id == user.pk or (is_pending and can(user, "approvals.decide"))


def pending_approvals(snoozed: Snoozed, user: User) -> Items:
    """Changes that this person can decide, and their own that are pending or approved."""
    items = [_item(one, user) for one in _visible(snoozed) if _open(one).concerns(user)]
    return Items(items, group="approvals", name="approvals", url=reverse("approvals:index"))


def all_open_approvals(snoozed: Snoozed) -> list[OpenApproval]:
    """Those of all staff, to be counted for each person."""
    return [_open(one) for one in _visible(snoozed)]


def _visible(snoozed: Snoozed) -> list[Approval]:
    return [one for one in open_approvals() if one.is_open and _key(one) not in snoozed]


def _open(approval: Approval) -> OpenApproval:
    return OpenApproval(approval.state, approval.maker_id)


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
