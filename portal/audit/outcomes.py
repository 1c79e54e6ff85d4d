"""Records what came of a write: its row, its one outcome and the copy of the answer, all or nothing, exactly once.

Hides that an answer is safe in the spool before the database is asked, that the database is asked again on a fresh
connection for as long as a person can wait, and which of two answers becomes the copy of a record.
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from portal.audit import spool
from portal.audit.intents import State, close_intent, resolve, set_subject
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.disk import fresh_connection
from portal.registry import memory
from portal.registry.models import Kind, Source
from servicing import codec

BODY_LIMIT = 20_000
SAVE_WAIT_SECONDS = 5.0
"""How long a person waits for the database to take an answer; after that the spool keeps it."""
RETRY_SECONDS = 0.2
REPLAY_WAIT_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Place(Enum):
    """Where an answer is safe."""

    DATABASE = "database"
    SPOOL = "spool"
    LOG = "log"


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """How one write ended, masked, as it is recorded."""

    intent_id: str
    actor: Actor
    state: str
    status: int | None
    message: str
    kind: str = ""
    """Of the record that it made or changed, where the answer names one."""
    uuid: str = ""
    call: Mapping[str, Any]
    """The columns of its row, without the answer."""
    body: Any
    ids: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    """The answer's JSON as copies keep it."""
    at: datetime = field(default_factory=timezone.now)

    @classmethod
    def from_spool(cls, entry: Mapping[str, Any]) -> "WriteResult":
        actor, at = Actor(**entry["actor"]), datetime.fromisoformat(entry["at"])
        return cls(**{**entry, "actor": actor, "at": at})

    def for_spool(self) -> list[dict[str, Any]]:
        """Everything; and what must not be lost of it, where there is no room."""
        whole = asdict(self) | {"at": self.at.isoformat()}
        without_bodies = {"body": None, "answer": "", "call": {**self.call, "request_body": ""}}
        return [whole, whole | without_bodies]

    def for_stderr(self) -> dict[str, Any]:
        names = ("intent_id", "state", "status", "kind", "uuid", "at")
        called = {name: self.call.get(name) for name in ("operation", "request_id", "path")}
        return {name: getattr(self, name) for name in names} | called | {"actor": self.actor.name}

    def items(self) -> list[memory.Known]:
        """What the answer says of records; without the answer, that the record exists."""
        model = next((model for model, kind in memory.KIND_OF.items() if kind == self.kind), None)
        if self.answer and model:
            return memory.records_in_answer(
                self.call["operation"], codec.decode(model, self.answer), self.ids
            )
        if not self.uuid:
            return []
        owner = self.uuid if self.kind == Kind.BORROWER else self.ids.get("borrower_id", "")
        return [memory.Known(kind=Kind(self.kind), uuid=self.uuid, borrower_uuid=owner)]


def save(result: WriteResult, items: Sequence[memory.Known]) -> Place:
    """Record a result, or keep it where it is replayed from; the place where it is safe now."""
    ticket = spool.put(*result.for_spool())
    deadline = time.monotonic() + SAVE_WAIT_SECONDS
    is_on_stderr = False
    while not (is_saved := _try_to_record(result, items, deadline - time.monotonic())):
        if ticket is None and not is_on_stderr:
            spool.write_to_stderr(result.for_stderr())
            is_on_stderr = True
        if connection.in_atomic_block or time.monotonic() + RETRY_SECONDS >= deadline:
            break
        time.sleep(RETRY_SECONDS)
    if not is_saved:
        return Place.SPOOL if ticket else Place.LOG
    _remove(ticket)
    return Place.DATABASE


def replay() -> int:
    """Record what waits in the spool of this host; how much of it waits on."""
    waiting = _waiting()
    left = len(waiting)
    for ticket, entry in waiting:
        try:
            with fresh_connection(REPLAY_WAIT_SECONDS):
                record(WriteResult.from_spool(entry))
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database takes no answer from the spool: %s", _first_line(error))
            break  # The others would wait for it just as long.
        except Exception:  # One that cannot be recorded must not keep the others out.
            logger.exception("The answer of write %s cannot be recorded.", entry.get("intent_id"))
        else:
            _remove(ticket)
            left -= 1
    return left


def prepare() -> None:
    """What every process does as it starts: take the space of the spool, and record what waits there."""
    try:
        spool.allocate()
    except OSError:
        logger.exception("%s could not be prepared: answers would go to the log.", spool.path())
        return
    replay()


def record(result: WriteResult, items: Sequence[memory.Known] | None = None) -> None:
    """Row, copy and outcome in one transaction; nothing if it is recorded already."""
    items = result.items() if items is None else items
    with transaction.atomic():
        intent = WriteIntent.objects.select_for_update().get(pk=result.intent_id)
        if RemoteCall.objects.filter(intent_id=intent.pk).exists():
            return
        RemoteCall(**result.call, answer_body=json_text(result.body)).save(force_insert=True)
        stored = memory.held(items)  # From here on no other answer replaces the copies.
        newer = _newer_copies(intent, items)
        taken = [item for item in items if (item.kind, item.uuid) not in newer]
        memory.remember(taken, source=Source.SERVICE, at=result.at, by=result.actor.name, stored=stored)
        if intent.state == State.SENDING:
            _close(intent, result)
        else:
            _correct(intent, result)


def _close(intent: WriteIntent, result: WriteResult) -> None:
    if result.uuid:
        set_subject(intent, result.kind, result.uuid)
    intent.status, intent.message, intent.finished_at = result.status, result.message, result.at
    detail = {
        "answer": truncated_body(result.body),
        "duration_ms": result.call["duration_ms"],
        "status": result.status,
    }
    close_intent(intent, result.actor, result.state, detail=detail)


def _correct(intent: WriteIntent, result: WriteResult) -> None:
    """An answer that arrives after the write was taken for unknown says what became of it."""
    is_known = intent.state == result.state and result.uuid in ("", intent.subject_uuid)
    if result.state == State.UNKNOWN or is_known:
        return
    intent.status, intent.message = result.status, result.message
    subject = (result.kind, result.uuid) if result.uuid else None
    note = f"the answer of {result.at:%Y-%m-%d %H:%M:%S} UTC was recorded late"
    resolve(intent, result.actor, result.state, note=note, subject=subject, before=intent.state)


def _newer_copies(intent: WriteIntent, items: Sequence[memory.Known]) -> set[tuple[str, str]]:
    """The records whose copy is newer than this write: a write to them began later, or to a person ended later.

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


def _try_to_record(result: WriteResult, items: Sequence[memory.Known], seconds: float) -> bool:
    try:
        with fresh_connection(max(seconds, RETRY_SECONDS)):
            record(result, items)
    except (DatabaseError, InterfaceError) as error:
        logger.warning(
            "%s: the database does not take the answer: %s", result.call["request_id"], _first_line(error)
        )
        return False
    except Exception:  # Whatever it was, the answer must not be lost with it.
        logger.exception("%s: the answer could not be recorded", result.call["request_id"])
        return False
    return True


def _first_line(error: Exception) -> str:
    """The lines after it may quote a row."""
    return str(error).partition("\n")[0]


def _waiting() -> Sequence[tuple[spool.Ticket, dict[str, Any]]]:
    try:
        return spool.entries()
    except OSError:
        logger.exception("%s cannot be read.", spool.path())
        return []


def _remove(ticket: spool.Ticket | None) -> None:
    """Left in the spool it would be found recorded at the next replay."""
    try:
        if ticket:
            spool.remove(ticket)
    except OSError:
        logger.exception("An answer that is recorded could not be removed from %s.", spool.path())


def json_text(body: Any) -> str:
    """A masked body as text, cut where it would fill the database."""
    return "" if body is None else json.dumps(body, cls=DjangoJSONEncoder, ensure_ascii=False)[:BODY_LIMIT]


def truncated_body(body: Any) -> Any:
    """A masked body as an audit entry keeps it: whole, or as much of its text as is kept of any body."""
    text = json_text(body)
    return text if len(text) >= BODY_LIMIT else body
