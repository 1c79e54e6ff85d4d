"""Acts around applications: what is told about them before they are sent, and what is noted here about their offers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.db import transaction

from portal.applications.models import Preference
from portal.audit.chain import append, audit_subject
from portal.audit.models import Actor
from portal.audit.writes import Write
from portal.registry import store
from portal.registry.models import Kind, Record
from portal.ui import wording
from servicing import Client, NotFound


def submission(borrower: Record, amount: Decimal, submit_id: str) -> Write:
    """The write that applies for a loan. One for the same borrower and amount is equal, however it was typed."""
    dollars = wording.money(amount) or ""
    return Write(
        submit_id=submit_id,
        label=f"Application for {dollars} of {borrower}",
        borrower_uuid=borrower.uuid,
        identity={"amount": dollars},
    )


def open_line(client: Client, actor: Actor, borrower: Record, uuid: str) -> Record:
    """Read an application for a line that the service has, and so make it known here."""
    application = client.applications.get_for_line(borrower.uuid, uuid)
    record = Record.objects.get(kind=Kind.APPLICATION, uuid=application.uuid)
    note(actor, "applications.open", record)
    return record


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
    """Look for a loan, then for a line, under an offer's identifier; what is found is known here from now on."""
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
