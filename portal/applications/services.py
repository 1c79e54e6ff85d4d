"""Actions on an application's offers, each with its audit entry."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from portal.applications.models import Preference
from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.records import store
from portal.records.models import Account, Application, Kind
from portal.ui import wording
from servicing import Client, NotFound


def prefer(
    actor: Actor, record: Application, *, offer_uuid: str, reason: str, names: Mapping[str, str]
) -> None:
    """Save or clear the preferred offer. Nothing is sent to the service."""
    with transaction.atomic():
        before = Preference.objects.select_for_update().filter(application_uuid=record.uuid).first()
        Preference.objects.filter(application_uuid=record.uuid).delete()
        if offer_uuid:
            Preference.objects.create(
                application_uuid=record.uuid, offer_uuid=offer_uuid, reason=reason, author_name=actor.name
            )
        marked = (before.offer_uuid if before else "", offer_uuid)
        changes = {"preferred offer": [names.get(uuid, uuid) for uuid in marked]}
        append_entry(
            actor, "applications.prefer", record, reason=reason, changes=changes, detail={"offer": offer_uuid}
        )


def follow(client: Client, actor: Actor, record: Application, offer_uuid: str) -> Account | None:
    """Look for a loan, then for a line, under an offer's ID. If there is one, its answer puts it on file."""
    reads = {Kind.LOAN: client.loans.get, Kind.LINE: client.credit_lines.statement}
    found = next(
        (kind for kind, read in reads.items() if _exists(read, record.borrower_uuid, offer_uuid)), ""
    )
    append_entry(actor, "applications.follow", record, detail={"offer": offer_uuid, "found": found})
    return store.find(found, offer_uuid) if found else None


def append_entry(actor: Actor, action: str, record: Application, **fields: Any) -> None:
    append(actor, action, **entry_subject(record, application_name(record)), **fields)


def application_name(record: Application) -> str:
    amount = wording.money(record.amount)
    return f"application {record.uuid[:8]}{f' for {amount}' if amount else ''}"


def _exists(read: Callable[[str, str], object], borrower_uuid: str, uuid: str) -> bool:
    try:
        read(borrower_uuid, uuid)
    except NotFound:
        return False
    return True
