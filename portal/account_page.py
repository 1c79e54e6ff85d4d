"""The page of a loan or a line of credit: what both have beside their own figures, and how it is gathered."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.http import HttpResponse

from portal.accounts.roles import reason_for
from portal.audit.models import Actor
from portal.audit.sightings import last_look, saw, shows
from portal.gateway import StaffRequest
from portal.messaging.told import messages_about, messages_of
from portal.notes.models import Note
from portal.payments import table_of
from portal.portfolio import Portfolio
from portal.readings import Freshness, Reading, account, show
from portal.registry import changes, memory
from portal.registry.models import Kind, Record
from portal.ui.htmx import render_page

Told = Callable[[StaffRequest, Reading], dict[str, Any]]


def account_page(
    request: StaffRequest, of: Portfolio, record: Record, *, told: Told, panels: tuple[str, ...]
) -> HttpResponse:
    """The page from its copies, or one of its panels after asking the service.

    ``told`` gives what the page draws from the account itself. The panels ``loan`` or ``line`` and, with
    ``-repayments`` behind it, its repayments ask the service.
    """
    noun, payments = of.noun, f"{of.noun}-repayments"
    account_record, listed = account(record)
    readings = show(request, {noun: [account_record], payments: [listed]})
    reading, repayments = readings[noun][0], readings[payments][0]
    actor, shown = Actor.of(request), changes.digest(reading.record)
    look = last_look(actor, record.uuid)
    table = partial(table_of, request, repayments, covers=f"of this {noun}", messages_of=messages_of)
    context = {
        "record": reading.record,
        "owner": memory.find(Kind.BORROWER, record.borrower_uuid),
        "fresh": Freshness([reading]),
        "repayments_fresh": Freshness([repayments]),
        "table": cache(table),
        "look": look,
        "changes": changes.since(reading.record, look.shown) if look else [],
        "messages_told": cache(partial(messages_about, record)),
        "notes": Note.objects.filter(subject_uuid=record.uuid)[:50],
        "may_note": request.can("notes.add"),
        "why_no_note": reason_for("notes.add"),
    }
    if request.htmx.target != payments:
        context |= told(request, reading)
    label, is_part = f"{noun} {record.uuid[:8]}", bool(request.htmx)
    saw(
        actor,
        f"{of.area}.detail",
        kind=record.kind,
        uuid=record.uuid,
        label=label,
        borrower_uuid=record.borrower_uuid,
        shown=shown,
        is_repeat=is_part,
    )
    if request.htmx.target == noun:
        shows(actor, record.uuid, shown)
    return render_page(request, f"{of.area}/detail.html", context, partial=panels)


def about(record: Record) -> dict[str, str]:
    """What an audit entry says of an account."""
    return {"kind": record.kind, "uuid": record.uuid, "borrower_uuid": record.borrower_uuid}
