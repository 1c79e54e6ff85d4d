"""Changes of the registry itself: each leaves one audit entry with its reason, in one transaction."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.queue import start
from portal.lookup import tasks
from portal.lookup.models import Upload
from portal.registry import memory
from portal.registry.lists import roll_up
from portal.registry.models import SEARCHED_KINDS, Kind, Record, Source
from portal.registry.search import search_text

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile


def add(actor: Actor, *, kind: str, uuid: str, borrower_uuid: str, label: str) -> Record:
    """Make a record known by its uuid."""
    item = memory.Known(kind=Kind(kind), uuid=uuid, borrower_uuid=borrower_uuid, label=label)
    with transaction.atomic():
        (record,) = memory.remember([item], source=Source.STAFF, by=actor.name)
        _note(actor, "lookup.add", record)
    return record


def correct(actor: Actor, record: Record, *, changes: dict[str, list[str]], reason: str) -> None:
    """Relabel a record or give it to its right borrower."""
    with transaction.atomic():
        # An answer may come meanwhile: its words must stay in what is searched.
        record.refresh_from_db(from_queryset=Record.objects.select_for_update())
        for name, (_, after) in changes.items():
            setattr(record, name, after)
        record.owner_confirmed |= "borrower_uuid" in changes
        if "label" in changes:
            record.search_text = f"{record.search_text}\n{search_text(record.label)}"
        record.save(update_fields=[*changes, "owner_confirmed", "search_text", "updated_at"])
        roll_up(changes.get("borrower_uuid", []))
        _note(actor, "lookup.correct", record, reason=reason, changes=changes)


def archive(actor: Actor, record: Record, *, archived: bool, reason: str) -> bool:
    """Take a record out of lists and search, or bring it back; false if it is so already."""
    with transaction.atomic():
        others = Record.objects.filter(pk=record.pk, archived_at__isnull=archived)
        changed = others.update(archived_at=timezone.now() if archived else None)
        if changed:
            roll_up([record.borrower_uuid])
            _note(actor, "lookup.archive" if archived else "lookup.restore", record, reason=reason)
    return bool(changed)


def left_behind(record: Record) -> dict[Kind, int]:
    """How many records of each kind belong to this one, and stay in lists and search when it is archived."""
    own = Q(borrower_uuid=record.uuid) if record.kind == Kind.BORROWER else Q(parent_uuid=record.uuid)
    belonging = Record.objects.filter(own, kind__in=SEARCHED_KINDS, archived_at__isnull=True)
    counted = belonging.exclude(pk=record.pk).values_list("kind").annotate(Count("pk")).order_by()
    numbers: dict[str, int] = dict(counted)
    return {kind: numbers[kind] for kind in SEARCHED_KINDS if kind in numbers}


def upload(actor: Actor, *, what: str, file: "UploadedFile[bytes]", told_at: datetime) -> Upload:
    """Keep a file and have it taken in in the background."""
    with transaction.atomic():
        kept = Upload(what=what, name=str(file.name)[:300], told_at=told_at, by_name=actor.name)
        kept.file = file.read()
        kept.save()
        kept.job_id = start(tasks.import_file, by=actor, upload=kept.pk).pk
        kept.save(update_fields=["job_id"])
        append(actor, "lookup.upload", subject_label=kept.name, detail={"what": what, "bytes": file.size})
    return kept


def _note(actor: Actor, action: str, record: Record, **fields: object) -> None:
    append(
        actor,
        action,
        subject_kind=record.kind,
        subject_uuid=record.uuid,
        subject_label=str(record),
        borrower_uuid=record.borrower_uuid,
        **fields,
    )
