"""The life of a change that waits for a second person: asked, then approved or refused, and once sent by its maker.

Hides that each step happens once however often a button is pressed, that nobody decides on their own change, that time
ends it, and that an approval holds for the very change on the very copy that was looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.models import Actor, WriteIntent
from portal.registry import memory
from portal.registry.models import Record

State = Approval.State


class Gone(Exception):
    """Meanwhile somebody else took this step, or another; ``approval`` is as it is now."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(str(approval))
        self.approval = Approval.objects.get(pk=approval.pk)


def ask(actor: Actor, approval: Approval, changes: dict[str, Any]) -> Approval:
    """Let a change wait; ``changes`` is what the audit trail has of it."""
    approval.expires_at = _until()
    with transaction.atomic():
        mine = Approval.objects.filter(maker_id=approval.maker_id, subject_uuid=approval.subject_uuid)
        for former in mine.filter(state__in=Approval.OPEN).select_for_update():
            withdraw(actor, former)
        approval.save(force_insert=True)
        _record(actor, "approvals.ask", approval, changes=changes, reason=approval.reason)
    return approval


def decide(actor: Actor, approval: Approval, *, approves: bool, comment: str) -> None:
    """A second person's word."""
    state, action = (State.APPROVED, "approvals.approve") if approves else (State.REFUSED, "approvals.refuse")
    told = {"checker_name": actor.name, "decided_at": timezone.now(), "comment": comment}
    fields = told | ({"expires_at": _until()} if approves else {"sealed": ""})
    with transaction.atomic():
        _move(approval, State.WAITING, state, **fields)
        _record(actor, action, approval, reason=comment)


def withdraw(actor: Actor, approval: Approval) -> None:
    """Its maker does not want it any more."""
    with transaction.atomic():
        _move(approval, approval.state, State.WITHDRAWN, sealed="")
        _record(actor, "approvals.withdraw", approval)


def expire_old() -> None:
    """End what nobody decided on, or its maker did not send, in time."""
    # A process that ended between the sending and the note of it leaves what was proposed.
    late = Approval.objects.filter(state=State.SENT, expires_at__lt=timezone.now()).exclude(sealed="")
    if late.exists():
        late.update(sealed="")
    for approval in Approval.objects.filter(state__in=Approval.OPEN, expires_at__lt=timezone.now()):
        try:
            with transaction.atomic():
                _move(approval, approval.state, State.EXPIRED, sealed="")
                _record(Actor.system("approvals"), "approvals.expire", approval)
        except Gone:
            continue  # Another process looked at the same moment.


@contextmanager
def using(approval: Approval | None, actor: Actor, submit_id: str) -> Iterator[None]:
    """Send under an approval: it is used up if this succeeds, and holds again if it does not."""
    if approval is None:
        yield
        return
    _move(approval, State.APPROVED, State.SENT)
    try:
        yield
    except BaseException:
        _move(approval, State.SENT, State.APPROVED)
        raise
    intent = WriteIntent.objects.get(submit_id=submit_id)
    with transaction.atomic():
        _move(approval, State.SENT, State.SENT, intent_id=intent.pk, sealed="")
        _record(actor, "approvals.send", approval, detail={"intent": str(intent.pk)})


def approved(maker: User, record: Record, meaning: str) -> Approval | None:
    """The approval of this very change by this maker, on the copy as it is now."""
    expire_old()
    given = Approval.objects.filter(
        state=State.APPROVED, maker_id=maker.pk, subject_uuid=record.uuid, version=memory.version(record)
    )
    return next((one for one in given if one.proposal.get("meaning") == meaning), None)


def open_ones(**narrowed: Any) -> list[Approval]:
    """What waits, or is approved and not sent."""
    expire_old()
    return list(Approval.objects.filter(state__in=Approval.OPEN, **narrowed))


def why_not(user: User, approval: Approval) -> str:
    """Why this person may not decide; empty if they may."""
    if approval.state != State.WAITING:
        return f"It is {approval.get_state_display().lower()}"
    if approval.maker_id == user.pk:
        return "You made this change: another supervisor looks at it"
    return "" if can(user, "approvals.decide") else "Needs role supervisor"


def has_moved(approval: Approval) -> bool:
    """Whether the copy changed since it was asked for, so that its maker must look again."""
    record = Record.objects.filter(kind=approval.subject_kind, uuid=approval.subject_uuid).first()
    return record is None or memory.version(record) != approval.version


def _until() -> Any:
    return timezone.now() + timedelta(hours=settings.APPROVAL_HOURS)


def _move(approval: Approval, before: str, after: str, **fields: Any) -> None:
    """From one state to another, unless somebody was faster."""
    found = Approval.objects.filter(pk=approval.pk, state=before)
    if not found.update(state=after, **fields):
        raise Gone(approval)
    approval.refresh_from_db()


def _record(actor: Actor, action: str, approval: Approval, **fields: Any) -> None:
    append(
        actor,
        action,
        subject_kind=approval.subject_kind,
        subject_uuid=approval.subject_uuid,
        subject_label=approval.label,
        borrower_uuid=approval.borrower_uuid,
        **fields,
    )
