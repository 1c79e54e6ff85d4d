"""The life of a write: committed as an intent before the call, given its outcome once after it.

A crash between the two leaves the intent *sending*, never a write without a row. Opening refuses a submit id that was
used before (double click, Back, two tabs), a creation equal to one whose outcome is still open, an update of a record
to which another one is being sent, and an update equal to somebody else's whose outcome is unknown: the maker may send
it again, for it asks for the same values.

Outcomes are recorded by ``outcomes``.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, Entry, WriteIntent
from portal.clocks import match_recent

State = WriteIntent.State

# Beyond the time limit of a call, for a slow last read and for saving its answer.
STALE_SECONDS = 60


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
    # Runs in the transaction that commits the intent: what it saves is there exactly if the write may leave.
    bind: Callable[[WriteIntent], None] | None = None

    @property
    def record_key(self) -> str:
        """The remote record that it changes; empty for a creation."""
        return f"{self.subject_kind}:{self.subject_uuid}" if self.subject_uuid else ""

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


class RecordBusy(Blocked):
    """Another write to the same record is being sent (``intent``). Nothing was sent now."""


def open_intent(
    write: Write, actor: Actor, *, operation: str, method: str, path: str, body: Any
) -> WriteIntent:
    """Commit the intent and its audit attempt, or raise :class:`AlreadySubmitted` or :class:`Blocked`."""
    settle_stale()
    fingerprint = write.fingerprint(operation)
    _refuse_repetition(write, fingerprint)
    intent = WriteIntent(
        submit_id=write.submit_id,
        fingerprint=fingerprint,
        record_key=write.record_key,
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
    if others := [one for one in same_updates(intent) if one.actor_id != intent.actor_id]:
        raise Blocked(others[0])
    for is_last in (False, True):
        try:
            with transaction.atomic(durable=True):  # a caller's transaction could take it back after the call
                intent.save(force_insert=True)
                _append(
                    intent, actor, Entry.Phase.ATTEMPT, changes=dict(write.changes), detail={"request": body}
                )
                if write.bind:
                    write.bind(intent)
            break
        except IntegrityError:  # Another tab, or a colleague, was faster, and may be through by now.
            _refuse_repetition(write, fingerprint)
            if is_last:
                raise
    return intent


def close_intent(intent: WriteIntent, actor: Actor, state: str, *, detail: Mapping[str, Any]) -> None:
    """Give an intent that is *sending*, and locked, its one outcome, with whatever else was set on it."""
    intent.state, intent.finished_at = state, intent.finished_at or timezone.now()
    intent.save()
    _append(intent, actor, Entry.Phase.OUTCOME, result=state, detail=dict(detail))
    if state == State.CONFIRMED:
        for earlier in same_updates(intent):
            resolve(earlier, actor, State.CONFIRMED, note=f"sent again as {intent.request_id}, and confirmed")


def resolve(
    intent: WriteIntent,
    actor: Actor,
    state: str,
    *,
    note: str,
    reason: str = "",
    subject: tuple[str, str] | None = None,
    before: str = State.UNKNOWN,
) -> bool:
    """Give an unknown write the state it turned out to have; false if it is not unknown any more.

    Its one outcome in the trail stays *unknown*, as it was: what was found out later is an entry of its own. An answer
    that arrives late corrects what a person found out ``before``.
    """
    if subject:
        set_subject(intent, *subject)
    intent.state = state
    with transaction.atomic():
        unknown = WriteIntent.objects.filter(pk=intent.pk, state=before)
        found = ("state", "subject_kind", "subject_uuid", "borrower_uuid", "status", "message")
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
            changes={"state": [State(before).label, State(state).label]},
            detail={"note": note},
        )
    return True


def time_limit_seconds() -> float:
    """How long one call may take with all its waits."""
    return settings.SERVICING_TIMEOUT + 10


def set_subject(intent: WriteIntent, kind: str, uuid: str) -> None:
    """Say what a creation made."""
    intent.subject_kind, intent.subject_uuid = kind, uuid
    intent.borrower_uuid = intent.borrower_uuid or (uuid if kind == "borrower" else "")


def settle_stale() -> int:
    """A write still *sending* long after any call could last was cut off by a crash: its outcome is unknown."""
    limit = timedelta(seconds=time_limit_seconds() + STALE_SECONDS)
    stale = WriteIntent.objects.filter(state=State.SENDING).exclude(match_recent("created_at", limit))
    if not stale.exists():
        return 0
    with transaction.atomic():
        found = list(stale.select_for_update())
        for intent in found:
            note = {"note": "no outcome was recorded in time"}
            close_intent(intent, Actor.system("settle"), State.UNKNOWN, detail=note)
    return len(found)


def same_updates(intent: WriteIntent) -> list[WriteIntent]:
    """Earlier updates that asked for the same values and were never answered; no creation is the same as another."""
    if intent.method == "POST":
        return []
    lost = WriteIntent.objects.filter(state=State.UNKNOWN, operation=intent.operation, path=intent.path)
    body = json.loads(json.dumps(intent.request_body, cls=DjangoJSONEncoder))
    return [one for one in lost.exclude(pk=intent.pk) if one.request_body == body]


def _refuse_repetition(write: Write, fingerprint: str) -> None:
    if used := WriteIntent.objects.filter(submit_id=write.submit_id).first():
        raise AlreadySubmitted(used)
    equal = WriteIntent.objects.filter(fingerprint=fingerprint, state__in=WriteIntent.OPEN)
    sending = WriteIntent.objects.filter(record_key=write.record_key, state=State.SENDING)
    if fingerprint and (found := equal.first()):
        # The very same form may have been committed since the first look.
        raise AlreadySubmitted(found) if found.submit_id == write.submit_id else Blocked(found)
    if write.record_key and (found := sending.first()):
        raise AlreadySubmitted(found) if found.submit_id == write.submit_id else RecordBusy(found)


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
