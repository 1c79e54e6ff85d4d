"""Who looked at personal data: the first look appends an entry, looks within ten minutes after it only count."""

from datetime import timedelta

from django.db import DatabaseError, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from portal.audit import view_spool
from portal.audit.chain import append
from portal.audit.models import Actor, Sighting
from portal.clocks import match_recent
from portal.disk import is_unavailable, write_if_possible

REPEAT = timedelta(minutes=10)


def saw(
    actor: Actor, action: str, *, kind: str, uuid: str, label: str, borrower_uuid: str, shown: str = ""
) -> None:
    """Record that ``actor`` looks at a record now, and with ``shown`` which answer of it is on the screen."""
    now = timezone.now()
    recent = _looks(actor, uuid).filter(match_recent("first_at", REPEAT))
    is_counted = write_if_possible(lambda: recent.update(count=F("count") + 1, last_at=now, shown=shown))
    if is_counted or recent.exists():  # That it cannot be counted now hides nothing: its entry is there.
        return
    subject = {
        "subject_kind": kind,
        "subject_uuid": uuid,
        "subject_label": label,
        "borrower_uuid": borrower_uuid,
    }
    try:
        with transaction.atomic():
            entry = append(actor, action, **subject)
            Sighting.objects.create(
                entry=entry,
                actor_id=actor.id or 0,
                actor_name=actor.name,
                subject_uuid=uuid,
                first_at=now,
                last_at=now,
                shown=shown,
            )
    except DatabaseError as error:
        is_kept = is_unavailable(error) and not connection.in_atomic_block
        if not (is_kept and view_spool.put(actor, action, subject)):
            raise
    else:
        if not connection.in_atomic_block:
            view_spool.replay()


def shows(actor: Actor, uuid: str, shown: str) -> None:
    """A part of the page that is being looked at was drawn again, from this answer."""
    recent = _looks(actor, uuid).filter(match_recent("first_at", REPEAT)).exclude(shown=shown)
    if recent.exists():
        write_if_possible(lambda: recent.update(shown=shown))


def last_look(actor: Actor, uuid: str) -> Sighting | None:
    """The look before the present one: changes are counted from there."""
    return _looks(actor, uuid).exclude(match_recent("first_at", REPEAT)).first()


def _looks(actor: Actor, uuid: str) -> QuerySet[Sighting]:
    return Sighting.objects.filter(actor_id=actor.id or 0, subject_uuid=uuid)
