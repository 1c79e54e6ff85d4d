"""The life of a change that waits for a second person: asked, then approved or refused, and once sent by its maker.

Hides that each step happens once however often a button is pressed, that nobody decides on their own change, that time
ends it, that an approval holds for the very change on the very copy that was looked at, and that once it is being sent
its state is that of its write.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.intents import settle_stale
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
    """End what nobody decided on, or its maker did not send, in time; what was sent is as its write is."""
    follow_writes()
    late = Approval.objects.filter(state__in=[State.SENT, State.UNKNOWN], expires_at__lt=timezone.now())
    late = late.exclude(sealed="")
    if late.exists():
        late.update(sealed="")
    for approval in Approval.objects.filter(state__in=Approval.OPEN, expires_at__lt=timezone.now()):
        try:
            with transaction.atomic():
                _move(approval, approval.state, State.EXPIRED, sealed="")
                _record(Actor.system("approvals"), "approvals.expire", approval)
        except Gone:
            continue  # Another process looked at the same moment.


def tie(approval: Approval | None) -> Callable[[WriteIntent], None] | None:
    """What ties an approval to its write, in the transaction that lets the write leave."""
    if approval is None:
        return None

    def bind(intent: WriteIntent) -> None:
        if not approval.may_be_sent:
            raise Gone(approval)
        _move(approval, approval.state, State.SENDING, intent_id=intent.pk)

    return bind


def follow_writes() -> None:
    """Give each approval that is in flight the state of its write."""
    waiting = Approval.objects.filter(state__in=Approval.IN_FLIGHT, intent_id__isnull=False)
    if not waiting.exists():
        return
    settle_stale()
    intents = WriteIntent.objects.in_bulk(list(waiting.values_list("intent_id", flat=True)))
    for approval in waiting:
        if approval.intent_id in intents:
            try:
                _follow(approval, intents[approval.intent_id])
            except Gone:
                continue  # Another process looked at the same moment.


def _follow(approval: Approval, intent: WriteIntent) -> None:
    if intent.state == WriteIntent.State.UNKNOWN and approval.state == State.SENDING:
        _move(approval, State.SENDING, State.UNKNOWN)
    elif intent.state in WriteIntent.CAME_TO_NOTHING:
        lost = _lost_write(approval)
        after = State.UNKNOWN if lost else State.APPROVED
        _move(approval, approval.state, after, intent_id=lost.pk if lost else None)
    elif intent.state == WriteIntent.State.CONFIRMED:
        maker = Actor(id=intent.actor_id, name=intent.actor_name, request_id=intent.request_id)
        with transaction.atomic():
            _move(approval, approval.state, State.SENT, sealed="")
            _record(maker, "approvals.send", approval, detail={"intent": str(intent.pk)})


def _lost_write(approval: Approval) -> WriteIntent | None:
    """An earlier sending whose outcome is unknown: a later one that was rejected does not undo it."""
    sent = WriteIntent.objects.filter(state=WriteIntent.State.UNKNOWN, actor_id=approval.maker_id)
    same = sent.filter(operation=approval.operation, subject_uuid=approval.subject_uuid)
    return same.filter(created_at__gte=approval.decided_at).first()


def approved(maker: User, record: Record, meaning: str) -> Approval | None:
    """The approval of this very change by this maker, on the copy as it is now."""
    expire_old()
    given = Approval.objects.filter(
        state__in=[State.APPROVED, State.UNKNOWN],
        maker_id=maker.pk,
        subject_uuid=record.uuid,
        version=memory.version(record),
    )
    return next((one for one in given if one.proposal.get("meaning") == meaning), None)


def open_ones(**narrowed: Any) -> list[Approval]:
    """What waits, is approved and not sent, or was sent and is not known to have been carried out."""
    expire_old()
    return list(Approval.objects.filter(state__in=[*Approval.OPEN, *Approval.IN_FLIGHT], **narrowed))


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
    found = Approval.objects.filter(pk=approval.pk, state=before, intent_id=approval.intent_id)
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
