"""Changes of the registry itself. Each appends one audit entry with its reason in the same transaction."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.jobs.queue import start_job
from portal.lookup import tasks
from portal.lookup.models import Upload
from portal.records import store
from portal.records.figures import is_account
from portal.records.models import (
    LISTED,
    SEARCHED_KINDS,
    Account,
    Answered,
    Application,
    KeyPerson,
    Kind,
    Repayment,
    Source,
)
from portal.records.rollup import roll_up
from portal.records.rows import records_of
from portal.records.spelling import save_words

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile


def add(actor: Actor, *, kind: str, uuid: str, borrower_uuid: str, label: str) -> Answered:
    item = store.Observation(kind=Kind(kind), uuid=uuid, borrower_uuid=borrower_uuid, label=label)
    with transaction.atomic():
        (record,) = store.save([item], source=Source.STAFF, by=actor.name)
        _append_entry(actor, "lookup.add", record)
    return record


def correct(actor: Actor, record: Answered, *, changes: dict[str, list[str]], reason: str) -> None:
    """Relabel a record or assign it to another borrower."""
    with transaction.atomic():
        # Another answer may have been saved since, and its words must stay in the search text.
        record.refresh_from_db(from_queryset=records_of(record.kind).select_for_update())
        for name, (_, after) in changes.items():
            setattr(record, name, after)
        if isinstance(record, Account | Application):
            record.owner_confirmed |= "borrower_uuid" in changes
        if "label" in changes:
            store.set_search_columns(record)
            save_words([record])
        record.save()
        roll_up(changes.get("borrower_uuid", []))
        _append_entry(actor, "lookup.correct", record, reason=reason, changes=changes)


def archive(actor: Actor, record: Answered, *, archived: bool, reason: str) -> bool:
    """Remove a record from lists and search, or restore it; false if that was done already."""
    with transaction.atomic():
        others = records_of(record.kind).filter(pk=record.pk, archived_at__isnull=archived)
        changed = others.update(archived_at=timezone.now() if archived else None)
        if changed:
            roll_up([record.borrower_uuid])
            _append_entry(actor, "lookup.archive" if archived else "lookup.restore", record, reason=reason)
    return bool(changed)


def dependents(record: Answered) -> dict[Kind, int]:
    """Count the records of each kind that belong to this one and are not archived with it."""
    if record.kind != Kind.BORROWER:
        number = Repayment.objects.filter(account=record).count() if is_account(record) else 0
        return {Kind.REPAYMENT: number} if number else {}
    dependent = Account.objects.filter(LISTED, borrower_uuid=record.uuid)
    counted = dependent.values_list("kind").annotate(Count("pk")).order_by()
    numbers: dict[str, int] = dict(counted)
    for model in (Application, KeyPerson):
        numbers[model.kind] = model._default_manager.filter(LISTED, borrower_uuid=record.uuid).count()
    numbers[Kind.REPAYMENT] = Repayment.objects.filter(borrower_uuid=record.uuid).count()
    return {kind: numbers[kind] for kind in SEARCHED_KINDS if numbers.get(kind)}


def upload(actor: Actor, *, what: str, file: "UploadedFile[bytes]", exported_at: datetime) -> Upload:
    """Store a file, and start the job that imports it."""
    with transaction.atomic():
        stored_file = Upload(
            what=what, name=str(file.name)[:300], exported_at=exported_at, by_name=actor.name
        )
        stored_file.file = file.read()
        stored_file.save()
        stored_file.job_id = start_job(tasks.import_file, by=actor, upload=stored_file.pk).pk
        stored_file.save(update_fields=["job_id"])
        append(
            actor, "lookup.upload", subject_label=stored_file.name, detail={"what": what, "bytes": file.size}
        )
    return stored_file


def _append_entry(actor: Actor, action: str, record: Answered, **fields: object) -> None:
    append(actor, action, **entry_subject(record), **fields)
