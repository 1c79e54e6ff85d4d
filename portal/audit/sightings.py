"""Who looked at personal data: the first look appends an entry, looks within ten minutes after it only count."""

from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, Sighting

REPEAT = timedelta(minutes=10)


def saw(actor: Actor, action: str, *, kind: str, uuid: str, label: str, borrower_uuid: str) -> None:
    """Record that ``actor`` looks at a record now."""
    now = timezone.now()
    recent = Sighting.objects.filter(actor_id=actor.id or 0, subject_uuid=uuid, first_at__gte=now - REPEAT)
    if recent.update(count=F("count") + 1, last_at=now):
        return
    with transaction.atomic():
        entry = append(
            actor,
            action,
            subject_kind=kind,
            subject_uuid=uuid,
            subject_label=label,
            borrower_uuid=borrower_uuid,
        )
        Sighting.objects.create(
            entry=entry,
            actor_id=actor.id or 0,
            actor_name=actor.name,
            subject_uuid=uuid,
            first_at=now,
            last_at=now,
        )
