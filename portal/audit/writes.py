"""The life of a write: committed as an intent before it is sent, given exactly one outcome afterwards.

A crash between the two leaves the intent *sending*, never a write without a row. Opening refuses a submit ID that was
used before (double click, Back, two tabs), a creation equal to one with an open outcome, an update of a record while
another one is being sent, and an update equal to somebody else's with an unknown outcome. The author of an unknown
update may send it again, because it sets the same values.

Hides that the database is retried for as long as a person can wait, that an answer it doesn't take becomes a line of a
file, and which of two answers becomes a record's saved copy.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, IntegrityError, InterfaceError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from portal.audit import unsaved
from portal.audit.chain import append, same_subject
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.records import store
from portal.records.models import Kind, Source
from portal.records.sources import operation_named
from servicing import Call, codec

State = WriteIntent.State
BODY_LIMIT = 20_000
STALE_SECONDS = 60
"""Added to a call's time limit, for a slow last read and for saving the answer."""
SAVE_WAIT_SECONDS = 5.0
"""How long a person waits for the database to save an answer, before it goes to a file."""
RETRY_SECONDS = 0.2
RESOLVE, CORRECT = "audit.resolve", "audit.correct"
"""The actions of entries about an unknown outcome: what was found to be true, and a correction of that."""
_STDERR = 2

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Write:
    """The description of a write before it is sent; the rest comes from the call itself."""

    submit_id: str
    label: str
    reason: str = ""
    subject_kind: str = ""
    subject_uuid: str = ""
    borrower_uuid: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    """The values that make two creations equal, without EIN and SSN; empty for updates, which may be repeated."""
    bind: Callable[[WriteIntent], None] | None = None
    """Runs in the transaction that commits the intent, so that what it saves exists only together with the intent."""

    @property
    def record_key(self) -> str:
        """The remote record that it changes; empty for a creation."""
        return f"{self.subject_kind}:{self.subject_uuid}" if self.subject_uuid else ""

    def fingerprint(self, operation: str) -> str:
        """A text that is the same for equal creations; empty for updates."""
        if not self.identity:
            return ""
        equal = {name: " ".join(str(value).casefold().split()) for name, value in self.identity.items()}
        text = json.dumps([operation, self.borrower_uuid, equal], cls=DjangoJSONEncoder, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class NotOpened(Exception):
    """Nothing was sent because of an earlier write (``intent``)."""

    def __init__(self, intent: WriteIntent) -> None:
        super().__init__(f"{type(self).__name__}: {intent}")
        self.intent = intent


class AlreadySubmitted(NotOpened):
    """This submit ID was used before."""


class Blocked(NotOpened):
    """An equal write has an open or unknown outcome."""


class RecordBusy(Blocked):
    """Another write to the same record is being sent."""


# --- Before the call ---


def open_intent(write: Write, actor: Actor, call: Call) -> WriteIntent:
    """Commit the intent and its audit attempt, or raise :class:`AlreadySubmitted` or :class:`Blocked`."""
    close_stale_writes()
    intent = WriteIntent(
        submit_id=write.submit_id,
        fingerprint=write.fingerprint(call.operation),
        record_key=write.record_key,
        operation=call.operation,
        label=write.label[:300],
        reason=write.reason[:500],
        subject_kind=write.subject_kind,
        subject_uuid=write.subject_uuid,
        borrower_uuid=write.borrower_uuid,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=actor.request_id,
        method=call.method,
        path=call.path,
        request_body=call.body,
    )
    _refuse_repetition(intent)
    if others := [one for one in unanswered_duplicates(intent) if one.actor_id != intent.actor_id]:
        raise Blocked(others[0])
    for is_last in (False, True):
        try:
            with transaction.atomic(durable=True):  # A caller could roll it back after the call.
                intent.save(force_insert=True)
                changes = dict(write.changes)
                _append_entry(
                    intent, actor, Entry.Phase.ATTEMPT, changes=changes, detail={"request": call.body}
                )
                if write.bind:
                    write.bind(intent)
            break
        except IntegrityError:  # Another tab or a colleague was faster, and may be done by now.
            _refuse_repetition(intent)
            if is_last:
                raise
    return intent


def unanswered_duplicates(intent: WriteIntent) -> list[WriteIntent]:
    """Earlier updates with the same values and no answer; none for creations."""
    if intent.method == "POST":
        return []
    lost = WriteIntent.objects.filter(state=State.UNKNOWN, operation=intent.operation, path=intent.path)
    body = json.loads(json.dumps(intent.request_body, cls=DjangoJSONEncoder))
    return [one for one in lost.exclude(pk=intent.pk) if one.request_body == body]


def _refuse_repetition(intent: WriteIntent) -> None:
    if used := WriteIntent.objects.filter(submit_id=intent.submit_id).first():
        raise AlreadySubmitted(used)
    equal = WriteIntent.objects.filter(fingerprint=intent.fingerprint, state__in=WriteIntent.OPEN)
    sending = WriteIntent.objects.filter(record_key=intent.record_key, state=State.SENDING)
    for reason, key, found in (
        (Blocked, intent.fingerprint, equal),
        (RecordBusy, intent.record_key, sending),
    ):
        if key and (one := found.first()):
            # The same form may have been committed since the check above.
            raise AlreadySubmitted(one) if one.submit_id == intent.submit_id else reason(one)


# --- Outcomes ---


def record_outcome(intent: WriteIntent, actor: Actor, state: str, *, detail: Mapping[str, Any]) -> None:
    """Give a locked intent in state *sending* its one outcome, and save its other changes."""
    intent.state, intent.finished_at = state, intent.finished_at or timezone.now()
    intent.save()
    _append_entry(intent, actor, Entry.Phase.OUTCOME, result=state, detail=dict(detail))
    if state == State.CONFIRMED:
        for earlier in unanswered_duplicates(intent):
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
    action: str = RESOLVE,
) -> bool:
    """Set the actual state of an unknown write; false if it is no longer in the state ``before``.

    Its one outcome in the trail stays *unknown*, and each resolution is an entry of its own. A late answer and a
    correction replace what a person recorded before.
    """
    earlier = intent.subject_uuid
    if subject:
        _set_subject(intent, *subject)
    intent.state = state
    with transaction.atomic():
        unknown = WriteIntent.objects.filter(pk=intent.pk, state=before)
        found = ("state", "subject_kind", "subject_uuid", "borrower_uuid", "status", "message")
        if not unknown.update(**{name: getattr(intent, name) for name in found}):
            return False
        changes = {"state": [State(before).label, State(state).label]}
        if action == CORRECT and earlier != intent.subject_uuid:
            changes["id"] = [earlier, intent.subject_uuid]
        why = {"reason": reason, "changes": changes, "detail": {"note": note}}
        _append_entry(intent, actor, Entry.Phase.EVENT, action, result=state, **why)
    return True


def resolutions(intent: WriteIntent) -> QuerySet[Entry]:
    """The entries about a write's unknown outcome, the latest first."""
    return Entry.objects.filter(intent_id=intent.pk, action__in=(RESOLVE, CORRECT))


def correctable(intent: WriteIntent) -> Entry | None:
    """The latest resolution if a person recorded it, and no answer of the service has arrived since."""
    last = resolutions(intent).first()
    known = (State.CONFIRMED, State.REJECTED)
    is_answered = RemoteCall.objects.filter(intent_id=intent.pk, outcome__in=known).exists()
    return last if last and last.reason and not is_answered else None


def call_time_limit_seconds() -> float:
    """The longest time that a call may take, waits included."""
    return settings.SERVICING_TIMEOUT + 10


def close_stale_writes() -> int:
    """Record an unknown outcome for writes that are *sending* longer than any call can last, as after a crash."""
    limit = timedelta(seconds=call_time_limit_seconds() + STALE_SECONDS)
    stale = WriteIntent.objects.filter(state=State.SENDING, created_at__lt=timezone.now() - limit)
    return _close(stale) if stale.exists() else 0


def _close(stale: QuerySet[WriteIntent]) -> int:
    with transaction.atomic():
        found = list(stale.select_for_update())
        for intent in found:
            note = {"note": "no outcome was recorded in time"}
            record_outcome(intent, Actor.system("stale"), State.UNKNOWN, detail=note)
    return len(found)


def _set_subject(intent: WriteIntent, kind: str, uuid: str) -> None:
    """Set the record that a creation made."""
    if Kind.BORROWER in (kind, intent.subject_kind):
        intent.borrower_uuid = uuid
    intent.subject_kind, intent.subject_uuid = kind, uuid


def _append_entry(intent: WriteIntent, actor: Actor, phase: str, action: str = "", **fields: Any) -> None:
    about = {**same_subject(intent, intent.label), "reason": intent.reason}
    append(actor, action or intent.operation, phase=phase, intent_id=intent.pk, **about | fields)


# --- After the call: the answer, its row and the outcome ---


class SavedTo(Enum):
    """Where an answer is safe."""

    DATABASE = "database"
    FILE = "file"
    LOG = "log"


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """The result of one write, masked for recording."""

    intent_id: str
    actor: Actor
    state: str
    status: int | None
    message: str
    kind: str = ""
    """The kind of the record that was created or changed, if the answer names one."""
    uuid: str = ""
    call: Mapping[str, Any]
    """The columns of the call's row, without the answer."""
    body: Any
    ids: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    """The answer's JSON, as saved copies store it."""
    at: datetime = field(default_factory=timezone.now)

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> "WriteResult":
        """The result in a line of the file of unsaved answers."""
        actor, at = Actor(**line["actor"]), datetime.fromisoformat(line["at"])
        return cls(**{**line, "actor": actor, "at": at})

    def as_line(self) -> dict[str, Any]:
        return asdict(self) | {"at": self.at.isoformat()}

    def summary(self) -> dict[str, Any]:
        """What a person needs to enter the result by hand."""
        names = ("intent_id", "state", "status", "kind", "uuid", "at")
        called = {name: self.call.get(name) for name in ("operation", "request_id", "path")}
        return {name: getattr(self, name) for name in names} | called | {"actor": self.actor.name}

    def observations(self) -> list[store.Observation]:
        """The observations in the answer; without the answer, that the record exists."""
        operation = operation_named(self.call["operation"])
        if self.answer and operation and operation.model:
            answer = codec.decode(operation.model, self.answer)
            return store.records_in_answer(operation.name, answer, self.ids)
        if not self.uuid:
            return []
        owner = self.uuid if self.kind == Kind.BORROWER else self.ids.get("borrower_id", "")
        return [store.Observation(kind=Kind(self.kind), uuid=self.uuid, borrower_uuid=owner)]


def save_result(result: WriteResult, items: Sequence[store.Observation]) -> SavedTo:
    """Record a result, or keep it in the file of unsaved answers; return where it is saved."""
    deadline = time.monotonic() + SAVE_WAIT_SECONDS
    while not (is_saved := _try_to_record(result, items)):
        if connection.in_atomic_block or time.monotonic() + RETRY_SECONDS >= deadline:
            break
        time.sleep(RETRY_SECONDS)
    if is_saved:
        return SavedTo.DATABASE
    saved_to = SavedTo.FILE if unsaved.keep(result.as_line()) else SavedTo.LOG
    _log_unsaved(result, saved_to)
    return saved_to


def _try_to_record(result: WriteResult, items: Sequence[store.Observation]) -> bool:
    reference = result.call["request_id"]
    try:
        _record_result(result, items)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("%s: the database does not take the answer: %s", reference, _first_line(error))
    except Exception:  # The answer must not be lost, whatever the error.
        logger.exception("%s: the answer could not be recorded", reference)
    else:
        return True
    if not connection.in_atomic_block:
        connection.close()  # The next try needs a connection that isn't broken.
    return False


def _log_unsaved(result: WriteResult, saved_to: SavedTo) -> None:
    """Print one line of JSON with the ID, unmasked: on a full disk it is all that is left of the answer."""
    place = unsaved.answers_file() if saved_to == SavedTo.FILE else "this line alone"
    message = f"The answer of a write isn’t in the database. It is in {place}."
    line = {"level": "CRITICAL", "logger": __name__, "message": message} | result.summary()
    with suppress(OSError):  # The page shows the same.
        os.write(_STDERR, json.dumps(line, cls=DjangoJSONEncoder).encode() + b"\n")


def unsaved_results() -> list[WriteResult]:
    """The results in the file of unsaved answers that the database still lacks."""
    results = [WriteResult.from_line(line) for line in unsaved.kept_answers()]
    called = RemoteCall.objects.filter(intent_id__in=[one.intent_id for one in results])
    known = set(map(str, called.values_list("intent_id", flat=True)))
    return [one for one in results if one.intent_id not in known]


def save_unsaved(result: WriteResult) -> None:
    """Record a result from the file; the file goes with its last one. Raises ``WriteIntent.DoesNotExist``."""
    _record_result(result, result.observations())
    if not unsaved_results():
        unsaved.discard()


def _first_line(error: Exception) -> str:
    """The message without the lines that may quote a row."""
    return str(error).partition("\n")[0]


def _record_result(result: WriteResult, items: Sequence[store.Observation]) -> None:
    """Save call, copy and outcome in one transaction, unless they are saved already."""
    with transaction.atomic():
        intent = WriteIntent.objects.select_for_update().get(pk=result.intent_id)
        if RemoteCall.objects.filter(intent_id=intent.pk).exists():
            return
        RemoteCall(**result.call, answer_body=json_text(result.body)).save(force_insert=True)
        stored = store.lock_existing(items)  # From here on, no other answer replaces the copies.
        newer = _newer_copies(intent, items)
        wanted = [item for item in items if (item.kind, item.uuid) not in newer]
        store.save(
            wanted,
            source=Source.SERVICE,
            operation=intent.operation,
            at=result.at,
            by=result.actor.name,
            stored=stored,
        )
        if intent.state == State.SENDING:
            _record_first_outcome(intent, result)
        else:
            _correct_outcome(intent, result)


def _record_first_outcome(intent: WriteIntent, result: WriteResult) -> None:
    if result.uuid:
        _set_subject(intent, result.kind, result.uuid)
    intent.status, intent.message, intent.finished_at = result.status, result.message, result.at
    text = json_text(result.body)
    detail = {
        "answer": text if len(text) >= BODY_LIMIT else result.body,
        "duration_ms": result.call["duration_ms"],
        "status": result.status,
    }
    record_outcome(intent, result.actor, result.state, detail=detail)


def _correct_outcome(intent: WriteIntent, result: WriteResult) -> None:
    """Correct a write that was marked unknown before its answer was recorded."""
    is_known = intent.state == result.state and result.uuid in ("", intent.subject_uuid)
    if result.state == State.UNKNOWN or is_known:
        return
    intent.status, intent.message = result.status, result.message
    subject = (result.kind, result.uuid) if result.uuid else None
    note = f"the answer of {result.at:%Y-%m-%d %H:%M:%S} UTC was recorded late"
    resolve(intent, result.actor, result.state, note=note, subject=subject, before=intent.state)


def _newer_copies(intent: WriteIntent, items: Sequence[store.Observation]) -> set[tuple[str, str]]:
    """The records with copies newer than this write, because a write to them began later, or one to a person ended
    later.

    Entries of the trail are numbered in the order of their commits, whatever clocks do.
    """
    if not intent.record_key:
        return set()
    began = Entry.objects.values_list("pk").get(intent_id=intent.pk, phase=Entry.Phase.ATTEMPT)[0]
    others = Entry.objects.filter(pk__gt=began).exclude(intent_id=intent.pk)
    own = (intent.subject_kind, intent.subject_uuid)
    later = others.filter(phase=Entry.Phase.ATTEMPT, subject_kind=own[0], subject_uuid=own[1])
    answered = RemoteCall.objects.filter(
        intent_id__in=list(later.values_list("intent_id", flat=True)), outcome=State.CONFIRMED
    )
    people = [item.uuid for item in items if item.kind == Kind.KEY_PERSON and item.uuid != own[1]]
    changed = others.filter(result=State.CONFIRMED, subject_kind=Kind.KEY_PERSON, subject_uuid__in=people)
    newer = {(str(Kind.KEY_PERSON), uuid) for uuid in changed.values_list("subject_uuid", flat=True)}
    return newer | ({own} if answered.exists() else set())


def json_text(body: Any) -> str:
    """A masked body as text, cut so that it can't fill the database."""
    return "" if body is None else json.dumps(body, cls=DjangoJSONEncoder, ensure_ascii=False)[:BODY_LIMIT]
