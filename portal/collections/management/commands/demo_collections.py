"""Logs contacts and promises as the demo's staff, and lets the sandbox's days pass until repayments decide them."""

import json
import urllib.request
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import Actor
from portal.collections.contacts import contact_form, save_contact
from portal.collections.list_page import WORKLIST
from portal.collections.models import AccountOwner, Contact
from portal.collections.rows import WorklistRow
from portal.core.business_date import CACHE_KEY, business_date
from portal.gateway.reading import due_for_refresh, read_if_old
from portal.records.figures import ACCOUNTS
from portal.records.models import IS_LATE, Account, Repayment
from portal.repayments.table import SCHEDULED
from servicing.business_days import business_day_after

DEMO_DAYS = 10
"""How many days ago the demo's portfolio begins. These days pass here, so that its last day is today."""
PROMISE_DAYS = 4
"""The first promises fall due within this many days."""
MAX_READ = 60


class Command(BaseCommand):
    """``manage.py demo_collections``"""

    help = "Log contacts and promises in the demo, and let days pass (DEBUG only)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG or settings.BUSINESS_DATE_FROM != "sandbox":
            raise CommandError("Demo data are for local use: they need DEBUG and the sandbox’s date.")
        if Contact.objects.exists():
            return
        late = list(WORKLIST.rows(WORKLIST.records().filter(IS_LATE).order_by("-past_due_rank")[:MAX_READ]))
        paid = [
            row
            for row in late
            if row.pending and row.pending.day <= business_date() + timedelta(days=PROMISE_DAYS - 1)
        ]
        unpaid = [row for row in late if row.record.past_due and not row.pending]
        deadline = business_day_after(business_date() + timedelta(days=PROMISE_DAYS - 1), 1)
        self._promise(paid[:2], "servicer", "Will be paid by the scheduled debit.")
        self._promise(unpaid[:2], "servicer", "Waiting for a customer’s payment, then pays.")
        self._promise(unpaid[2:4], "supervisor", "Sends a check.", deadline - timedelta(days=1))
        for row in late[-3:]:
            log(row, "supervisor", outcome="left_message", note="Asked to call back.")
        for number, row in enumerate(late[:9]):
            owner = User.objects.get(username="servicer" if number % 3 else "supervisor")
            AccountOwner.objects.create(account_uuid=row.record.uuid, owner=owner)
        let_days_pass(DEMO_DAYS)
        # These accounts aren't read, so that promises past their deadline wait for an update.
        waiting = {row.record.uuid for row in unpaid[2:4]}
        for copy in due_for_refresh(ACCOUNTS, older_than=timezone.now()):
            if copy.record.uuid not in waiting:
                read_if_old(Actor.system("refresh"), [copy], force=True)
        self._promise(_with_scheduled_payments(2), "supervisor", "Knows of the scheduled debit.")
        self._promise(unpaid[4:5], "servicer", "Pays by wire today.", business_date())

    def _promise(self, rows: list[WorklistRow], username: str, note: str, day: date | None = None) -> None:
        for row in rows:
            soonest = row.pending.day if row.pending else business_date() + timedelta(days=1)
            amount = row.pending.amount if row.pending else row.record.past_due
            log(row, username, outcome="promised", note=note, amount=amount, day=day or soonest)


def let_days_pass(days: int) -> None:
    """Advance the sandbox, and with it the business date."""
    control_sandbox("advance", {"days": days})
    cache.delete(CACHE_KEY)


def control_sandbox(name: str, body: dict[str, Any]) -> None:
    """Call one of the sandbox's control endpoints."""
    request = urllib.request.Request(  # noqa: S310 - the address of the service, set by the operator
        f"{settings.SERVICING_URL}/_sandbox/{name}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()  # noqa: S310


def _with_scheduled_payments(number: int) -> list[WorklistRow]:
    payments = Repayment.objects.filter(status=SCHEDULED, effective_on__gt=business_date())
    accounts = payments.order_by("effective_on", "pk").values_list("account", flat=True)[:number]
    return list(WORKLIST.rows(Account.objects.filter(pk__in=list(accounts))))


def log(row: WorklistRow, username: str, *, day: date | None = None, **typed: Any) -> None:
    """Log a contact as this person, with the form that staff use."""
    user = User.objects.get(username=username)
    actor = Actor(id=user.pk, name=user.audit_name(), role=user.role)
    form = contact_form(row.record)
    people = [value for value, _ in form.fields["person"].choices]  # type: ignore[attr-defined]
    data = {"person": people[0], "channel": "phone", "seen": form.newest, "day": day or ""} | typed
    data["confirmed_amount"] = data.get("amount", "")
    form = contact_form(row.record, {name: str(value) for name, value in data.items()})
    if form.is_valid():
        save_contact(actor, row.record, form)
