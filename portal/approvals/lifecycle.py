"""The life of a change that needs a second person: requested, approved or rejected, then sent by the requester.

Hides that each step happens once however often a button is pressed, that nobody decides on their own change, that
requests expire, that an approval covers exactly this change on exactly this copy, and that a change being sent takes
the state of its write.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.models import Approval
from portal.audit.chain import append, same_subject
from portal.audit.models import Actor, WriteIntent
from portal.audit.writes import close_stale_writes
from portal.records import store
from portal.records.models import Answered

State = Approval.State


class StateChanged(Exception):
    """Somebody else changed the request first; ``approval`` is its current state."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(str(approval))
        self.approval = Approval.objects.get(pk=approval.pk)


def request_approval(actor: Actor, approval: Approval, changes: dict[str, Any]) -> None:
    """Save the request, replacing the requester's earlier one; ``changes`` is what the audit trail records."""
    approval.expires_at = _expiry()
    with transaction.atomic():
        own = Approval.objects.filter(maker_id=approval.maker_id, subject_uuid=approval.subject_uuid)
        for earlier in own.filter(state__in=Approval.OPEN).select_for_update():
            withdraw(actor, earlier)
        approval.save(force_insert=True)
        _record(actor, "approvals.ask", approval, changes=changes, reason=approval.reason)


def decide(actor: Actor, approval: Approval, *, approves: bool, comment: str) -> None:
    """Approve or reject a pending request."""
    state, action = (State.APPROVED, "approvals.approve") if approves else (State.REFUSED, "approvals.refuse")
    decision = {"checker_name": actor.name, "decided_at": timezone.now(), "comment": comment}
    decision |= {"expires_at": _expiry()} if approves else {"sealed": ""}
    with transaction.atomic():
        _move(approval, State.WAITING, state, **decision)
        _record(actor, action, approval, reason=comment)


def withdraw(actor: Actor, approval: Approval) -> None:
    """Withdraw an open request."""
    with transaction.atomic():
        _move(approval, approval.state, State.WITHDRAWN, sealed="")
        _record(actor, "approvals.withdraw", approval)


def expire_old() -> None:
    """Expire requests that were not decided or not sent in time, and delete the contents of sent ones."""
    is_late = _is_late() & (Q(state__in=Approval.OPEN) | ~Q(sealed=""))
    if Approval.objects.filter(is_late | Q(state__in=Approval.IN_FLIGHT)).exists():
        sync_with_writes()
        _expire()


def _expire() -> None:
    late = Approval.objects.filter(_is_late())
    sent = late.filter(state__in=[State.SENT, State.UNKNOWN]).exclude(sealed="")
    if sent.exists():
        sent.update(sealed="")
    for approval in late.filter(state__in=Approval.OPEN):
        # Another process may expire it at the same moment.
        with suppress(StateChanged), transaction.atomic():
            _move(approval, approval.state, State.EXPIRED, sealed="")
            _record(Actor.system("approvals"), "approvals.expire", approval)


def bind_to_write(approval: Approval | None) -> Callable[[WriteIntent], None] | None:
    """A function that ties an approval to its write, for the transaction that commits the write's intent."""
    if approval is None:
        return None

    def bind(intent: WriteIntent) -> None:
        if not approval.may_be_sent:
            raise StateChanged(approval)
        _move(approval, approval.state, State.SENDING, intent_id=intent.pk)

    return bind


def sync_with_writes() -> None:
    """Give each approval being sent the state of its write."""
    in_flight = Approval.objects.filter(state__in=Approval.IN_FLIGHT, intent_id__isnull=False)
    if not in_flight.exists():
        return
    close_stale_writes()
    _sync(in_flight)


def _sync(in_flight: QuerySet[Approval]) -> None:
    intents = WriteIntent.objects.in_bulk(list(in_flight.values_list("intent_id", flat=True)))
    for approval in in_flight:
        if intent := intents.get(approval.intent_id):
            with suppress(StateChanged):  # Another process may do it at the same moment.
                _sync_with_write(approval, intent)


def _sync_with_write(approval: Approval, intent: WriteIntent) -> None:
    if intent.state == WriteIntent.State.UNKNOWN and approval.state == State.SENDING:
        _move(approval, State.SENDING, State.UNKNOWN)
    elif intent.state in WriteIntent.WITHOUT_EFFECT:
        lost = _lost_write(approval)
        after = State.UNKNOWN if lost else State.APPROVED
        _move(approval, approval.state, after, intent_id=lost.pk if lost else None)
    elif intent.state == WriteIntent.State.CONFIRMED:
        requester = Actor(id=intent.actor_id, name=intent.actor_name, request_id=intent.request_id)
        with transaction.atomic():
            _move(approval, approval.state, State.SENT, sealed="")
            _record(requester, "approvals.send", approval, detail={"intent": str(intent.pk)})


def _lost_write(approval: Approval) -> WriteIntent | None:
    """An earlier write with an unknown outcome, which a later rejected one does not undo."""
    return WriteIntent.objects.filter(
        state=WriteIntent.State.UNKNOWN,
        actor_id=approval.maker_id,
        operation=approval.operation,
        subject_uuid=approval.subject_uuid,
        created_at__gte=approval.decided_at,
    ).first()


def find_approved(requester: User, record: Answered, meaning: str) -> Approval | None:
    """The approval of exactly this person's change to the current copy, also while it is being sent."""
    expire_old()
    approved = Approval.objects.filter(
        state__in=[State.APPROVED, State.SENDING, State.UNKNOWN],
        maker_id=requester.pk,
        subject_uuid=record.uuid,
        version=store.answer_version(record),
    )
    return next((one for one in approved if one.proposal.get("meaning") == meaning), None)


def open_approvals(**filters: Any) -> list[Approval]:
    """Requests that are pending, approved but not sent, or sent but not confirmed."""
    expire_old()
    return list(Approval.objects.filter(state__in=[*Approval.OPEN, *Approval.IN_FLIGHT], **filters))


def reason_against_deciding(user: User, approval: Approval) -> str:
    """Why this person may not decide; empty if they may."""
    if approval.state != State.WAITING:
        return f"This request is {approval.get_state_display().lower()}"
    if approval.maker_id == user.pk:
        return "You can’t approve your own request"
    return "" if can(user, "approvals.decide") else "Requires the supervisor role"


def is_outdated(approval: Approval) -> bool:
    """Whether the record changed after the request, so that the requester must review it again."""
    record = store.find(approval.subject_kind, approval.subject_uuid)
    return record is None or store.answer_version(record) != approval.version


def _expiry() -> datetime:
    return timezone.now() + timedelta(hours=settings.APPROVAL_HOURS)


def _is_late() -> Q:
    return Q(expires_at__lte=timezone.now())


def _move(approval: Approval, before: str, after: str, **fields: Any) -> None:
    """Change the state, or raise :class:`StateChanged` if somebody else did it first."""
    found = Approval.objects.filter(pk=approval.pk, state=before, intent_id=approval.intent_id)
    if not found.update(state=after, **fields):
        raise StateChanged(approval)
    approval.refresh_from_db()


def _record(actor: Actor, action: str, approval: Approval, **fields: Any) -> None:
    append(actor, action, **same_subject(approval, approval.label), **fields)
