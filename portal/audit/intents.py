"""The life of a write: committed as an intent before the call, settled once after it.

A crash between the two leaves the intent *sending*, never a write without a row. Opening refuses a submit id that was
used before (double click, Back, two tabs), a creation equal to one whose outcome is still open, and an update equal to
somebody else's whose outcome is unknown: the maker may send it again, for it asks for the same values.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, Entry, WriteIntent

State = WriteIntent.State

# What settling an intent may change.
_SETTLED = ["state", "status", "message", "finished_at", "subject_kind", "subject_uuid", "borrower_uuid"]


@dataclass(frozen=True, kw_only=True)
class Write:
    """What staff know of the write they are about to send; the rest comes from the call itself."""

    submit_id: str
    label: str
    reason: str = ""
    subject_kind: str = ""
    subject_uuid: str = ""
    borrower_uuid: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    # What makes two creations equal, EIN and SSN left out; empty for updates, which may be repeated.
    identity: Mapping[str, Any] = field(default_factory=dict)

    def fingerprint(self, operation: str) -> str:
        """One text for equal creations, empty when equality does not matter."""
        if not self.identity:
            return ""
        equal = {name: " ".join(str(value).casefold().split()) for name, value in self.identity.items()}
        text = json.dumps([operation, self.borrower_uuid, equal], cls=DjangoJSONEncoder, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class AlreadySubmitted(Exception):
    """This submit id was used: ``intent`` holds what came of it. Nothing was sent now."""

    def __init__(self, intent: WriteIntent) -> None:
        super().__init__(f"Already submitted: {intent}")
        self.intent = intent


class Blocked(Exception):
    """An equal write is still open (``intent``). Nothing was sent now."""

    def __init__(self, intent: WriteIntent) -> None:
        super().__init__(f"An equal one is open: {intent}")
        self.intent = intent


def open_intent(
    write: Write, actor: Actor, *, operation: str, method: str, path: str, body: Any
) -> WriteIntent:
    """Commit the intent and its audit attempt, or raise :class:`AlreadySubmitted` or :class:`Blocked`."""
    settle_stale()
    fingerprint = write.fingerprint(operation)
    _refuse_repetition(write.submit_id, fingerprint)
    intent = WriteIntent(
        submit_id=write.submit_id,
        fingerprint=fingerprint,
        operation=operation,
        label=write.label[:300],
        reason=write.reason[:500],
        subject_kind=write.subject_kind,
        subject_uuid=write.subject_uuid,
        borrower_uuid=write.borrower_uuid,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=actor.request_id,
        method=method,
        path=path,
        request_body=body,
    )
    if others := [one for one in _same_updates(intent) if one.actor_id != intent.actor_id]:
        raise Blocked(others[0])
    try:
        with transaction.atomic(durable=True):  # a caller's transaction could take it back after the call
            intent.save(force_insert=True)
            _append(intent, actor, Entry.Phase.ATTEMPT, changes=dict(write.changes), detail={"request": body})
    except IntegrityError:
        _refuse_repetition(write.submit_id, fingerprint)  # another tab was faster
        raise
    return intent


def settle(
    intent: WriteIntent,
    actor: Actor,
    state: str,
    *,
    status: int | None = None,
    message: str = "",
    subject: tuple[str, str] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Give an open intent its outcome, unless it has one. ``subject`` is the kind and uuid of what a creation made."""
    if subject:
        intent.subject_kind, intent.subject_uuid = subject
        intent.borrower_uuid = intent.borrower_uuid or (subject[1] if subject[0] == "borrower" else "")
    intent.state, intent.status, intent.message = state, status, message
    intent.finished_at = timezone.now()
    with transaction.atomic():
        unsettled = WriteIntent.objects.filter(pk=intent.pk, state=State.SENDING)
        if unsettled.update(**{name: getattr(intent, name) for name in _SETTLED}):
            _append(intent, actor, Entry.Phase.OUTCOME, result=state, detail=dict(detail or {}))
            if state == State.CONFIRMED:
                for earlier in _same_updates(intent):
                    resolve(
                        earlier,
                        actor,
                        State.CONFIRMED,
                        note=f"sent again as {intent.request_id}, and confirmed",
                    )


def resolve(
    intent: WriteIntent,
    actor: Actor,
    state: str,
    *,
    note: str,
    reason: str = "",
    subject: tuple[str, str] | None = None,
) -> bool:
    """Give an unknown write the state it turned out to have; false if it is not unknown any more.

    Its one outcome in the trail stays *unknown*, as it was: what was found out later is an entry of its own.
    """
    if subject:
        intent.subject_kind, intent.subject_uuid = subject
        intent.borrower_uuid = intent.borrower_uuid or (subject[1] if subject[0] == "borrower" else "")
    intent.state = state
    with transaction.atomic():
        unknown = WriteIntent.objects.filter(pk=intent.pk, state=State.UNKNOWN)
        found = ("state", "subject_kind", "subject_uuid", "borrower_uuid")
        if not unknown.update(**{name: getattr(intent, name) for name in found}):
            return False
        append(
            actor,
            "audit.resolve",
            result=state,
            intent_id=intent.pk,
            subject_kind=intent.subject_kind,
            subject_uuid=intent.subject_uuid,
            subject_label=intent.label,
            borrower_uuid=intent.borrower_uuid,
            reason=reason,
            changes={"state": [State.UNKNOWN.label, State(state).label]},
            detail={"note": note},
        )
    return True


def settle_stale() -> int:
    """A write still *sending* long after any call could last was cut off by a crash: its outcome is unknown."""
    limit = timezone.now() - timedelta(seconds=settings.SERVICING_TIMEOUT * 2 + 30)
    settled = 0
    for intent in WriteIntent.objects.filter(state=State.SENDING, created_at__lt=limit):
        settle(
            intent, Actor.system("settle"), State.UNKNOWN, detail={"note": "no outcome was recorded in time"}
        )
        settled += 1
    return settled


def _refuse_repetition(submit_id: str, fingerprint: str) -> None:
    if used := WriteIntent.objects.filter(submit_id=submit_id).first():
        raise AlreadySubmitted(used)
    if not fingerprint:
        return
    if equal := WriteIntent.objects.filter(fingerprint=fingerprint, state__in=WriteIntent.OPEN).first():
        raise Blocked(equal)


def _same_updates(intent: WriteIntent) -> list[WriteIntent]:
    """Earlier updates that asked for the same values and were never answered; no creation is the same as another."""
    if intent.method == "POST":
        return []
    lost = WriteIntent.objects.filter(state=State.UNKNOWN, operation=intent.operation, path=intent.path)
    body = json.loads(json.dumps(intent.request_body, cls=DjangoJSONEncoder))
    return [one for one in lost.exclude(pk=intent.pk) if one.request_body == body]


def _append(intent: WriteIntent, actor: Actor, phase: str, **fields: Any) -> None:
    append(
        actor,
        intent.operation,
        phase=phase,
        intent_id=intent.pk,
        subject_kind=intent.subject_kind,
        subject_uuid=intent.subject_uuid,
        subject_label=intent.label,
        borrower_uuid=intent.borrower_uuid,
        reason=intent.reason,
        **fields,
    )
