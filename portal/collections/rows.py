"""The rows of the worklist: accounts with the work on them, one query for each kind of fact."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Exists, Max, OuterRef, Q, TextField
from django.db.models.functions import Cast

from portal.accounts.models import User
from portal.collections.models import AccountOwner, Contact, Promise
from portal.collections.promises import newest_promises
from portal.core.business_date import business_date
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, PastDueChange, Repayment
from portal.records.rows import with_borrowers
from portal.repayments.follows import WhatFollows, what_follows
from portal.repayments.returns import is_dropped_from_list
from portal.repayments.sums import is_collected
from portal.repayments.table import SCHEDULED
from portal.tables.pages import Row
from servicing.return_codes import PRESENTMENT_DAYS

MARK_DAYS = 7
"""How long an account is marked as newly past due or cured."""
SHOWN_OF_OWNER = ("username", "first_name", "last_name", "is_active")


class Payment(NamedTuple):
    """A repayment, as far as the worklist shows it."""

    day: date
    amount: Decimal | None


class LastContact(NamedTuple):
    """A contact, as far as the worklist shows it."""

    at: datetime
    outcome: str


@dataclass
class WorklistRow(Row):
    """A past due account and the work on it."""

    pending: Payment | None = None
    returned: WhatFollows | None = None
    """What follows a payment that came back, if another is scheduled although the code says not again."""
    last_paid: Payment | None = None
    autopay: bool | None = None
    contact: LastContact | None = None
    promise: Promise | None = None
    owner: User | None = None
    is_cured: bool | None = None
    """Whether it was cured lately or is newly past due; None without a change."""


def changed_since() -> date:
    return business_date() - timedelta(days=MARK_DAYS)


def load_rows(records: Sequence[Account]) -> Iterator[WorklistRow]:
    """Load accounts with their payments, contacts, promises and owners, with one query for each of these."""
    uuids = [record.uuid for record in records]
    payments, conflicts = _payments(uuids), _conflicts(records)
    contacts = _last_contacts(records)
    promises = newest_promises(uuids)
    owned = AccountOwner.objects.filter(account_uuid__in=uuids).select_related("owner")
    owned = owned.only("account_uuid", *(f"owner__{name}" for name in SHOWN_OF_OWNER))
    owners = {one.account_uuid: one.owner for one in owned}
    recent = PastDueChange.objects.filter(record__in=[one.pk for one in records], day__gte=changed_since())
    changes = dict(recent.order_by("id").values_list("record", "is_cured"))
    for record, borrower in with_borrowers(records):
        pending, last_paid = payments.get(record.uuid, (None, None))
        yield WorklistRow(
            record,
            borrower,
            pending=pending,
            returned=conflicts.get(record.pk),
            last_paid=last_paid,
            autopay=record.has_autopay,
            contact=contacts.get(record.pk),
            promise=promises.get(record.uuid),
            owner=owners.get(record.uuid),
            is_cured=changes.get(record.pk),
        )


def _last_contacts(records: Sequence[Account]) -> dict[int, LastContact]:
    """The last contact about each account, or about its borrower as a whole."""
    owners = {one.borrower_uuid for one in records if one.borrower_uuid}
    about = Q(account_uuid__in=[one.uuid for one in records]) | Q(account_uuid="", borrower_uuid__in=owners)
    groups = Contact.objects.filter(about).order_by().values("account_uuid", "borrower_uuid")
    newest = Contact.objects.filter(pk__in=groups.annotate(newest=Max("pk")).values("newest")).order_by("pk")
    # An account whose borrower was confirmed later has two groups.
    found = {
        account or owner: (pk, LastContact(at, outcome))
        for pk, account, owner, at, outcome in newest.values_list(
            "pk", "account_uuid", "borrower_uuid", "at", "outcome"
        )
    }
    about_each = {
        one.pk: [found[uuid] for uuid in (one.uuid, one.borrower_uuid) if uuid in found] for one in records
    }
    return {pk: max(contacts)[1] for pk, contacts in about_each.items() if contacts}


def _conflicts(records: Sequence[Account]) -> dict[int | None, WhatFollows]:
    """What follows the last payment of each account that came back and that a scheduled one contradicts."""
    since = business_date() - timedelta(days=PRESENTMENT_DAYS)
    failed = Repayment.objects.filter(account__in=records, has_failed=True, effective_on__gte=since)
    # Since a later payment came, the account has another way to pay.
    came = Repayment.objects.filter(
        is_collected(), account=OuterRef("account"), effective_on__gt=OuterRef("effective_on")
    )
    found = list(failed.exclude(Exists(came)).order_by("effective_on", "pk"))
    follows = what_follows(found)
    return {one.account_id: follows[one.pk] for one in found if follows[one.pk].is_conflict}


def _payments(uuids: Sequence[str]) -> dict[str, tuple[Payment | None, Payment | None]]:
    """The next scheduled and the last successful repayment of each account.

    Only these two are shown, so all are compared as text, and only these are converted.
    """
    repayments = Repayment.objects.filter(
        account__uuid__in=uuids, account__kind__in=ACCOUNTS, effective_on__isnull=False
    )
    is_pending = Q(~is_dropped_from_list(), status=SCHEDULED, effective_on__gte=business_date())
    listed = repayments.filter(is_pending | is_collected())
    texts = [Cast(name, TextField()) for name in ("effective_on", "amount")]
    pending: dict[str, tuple[str, str | None]] = {}
    paid: dict[str, tuple[str, str | None]] = {}
    for uuid, status, day, value in listed.values_list("account__uuid", "status", *texts):
        if status == SCHEDULED:
            pending[uuid] = min(pending.get(uuid, (day, value)), (day, value), key=itemgetter(0))
        else:
            paid[uuid] = max(paid.get(uuid, (day, value)), (day, value), key=itemgetter(0))
    return {uuid: (_payment_of(pending.get(uuid)), _payment_of(paid.get(uuid))) for uuid in {*pending, *paid}}


def _payment_of(found: tuple[str, str | None] | None) -> Payment | None:
    if found is None:
        return None
    day, value = found
    return Payment(date.fromisoformat(day), Decimal(value) if value else None)
