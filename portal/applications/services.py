"""Acts on the offers of an application, and how they and its other acts are recorded."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from portal.applications.models import Preference
from portal.audit.chain import append, audit_subject
from portal.audit.models import Actor
from portal.registry import store
from portal.registry.models import Kind, Record
from portal.ui import wording
from servicing import Client, NotFound


def prefer(actor: Actor, record: Record, *, offer_uuid: str, reason: str) -> None:
    """Note which offer colleagues would take, or that it is none any more; nothing is sent."""
    with transaction.atomic():
        before = Preference.objects.select_for_update().filter(application_uuid=record.uuid).first()
        Preference.objects.filter(application_uuid=record.uuid).delete()
        if offer_uuid:
            Preference.objects.create(
                application_uuid=record.uuid, offer_uuid=offer_uuid, reason=reason, author_name=actor.name
            )
        changes = {"preferred offer": [before.offer_uuid if before else "", offer_uuid]}
        note(actor, "applications.prefer", record, reason=reason, changes=changes)


def follow(client: Client, actor: Actor, record: Record, offer_uuid: str) -> Record | None:
    """Look for a loan, then for a line, under an offer's ID; the answer puts what is found on file."""
    reads = {Kind.LOAN: client.loans.get, Kind.LINE: client.credit_lines.statement}
    found = next(
        (kind for kind, read in reads.items() if _exists(read, record.borrower_uuid, offer_uuid)), ""
    )
    note(actor, "applications.follow", record, detail={"offer": offer_uuid, "found": found})
    return store.find(found, offer_uuid) if found else None


def note(actor: Actor, action: str, record: Record, **fields: Any) -> None:
    """One audit entry about an application."""
    append(actor, action, subject_label=name_of(record), **audit_subject(record), **fields)


def name_of(record: Record) -> str:
    """An application in a sentence."""
    amount = wording.money(record.amount)
    return f"application {record.uuid[:8]}{f' for {amount}' if amount else ''}"


def _exists(read: Callable[[str, str], object], borrower_uuid: str, uuid: str) -> bool:
    try:
        read(borrower_uuid, uuid)
    except NotFound:
        return False
    return True
