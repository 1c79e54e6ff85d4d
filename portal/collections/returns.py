"""Failed and returned payments by code and by day, with repeats and the next payment from the same bank account."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Q

import servicing
from portal.registry.models import Borrower, Repayment
from portal.registry.records import with_borrowers
from portal.registry.repayments import answer_of
from portal.repayments.returns import MAX_DATED, is_dropped_from_list, is_returned, returned_since
from portal.repayments.table import SCHEDULED
from portal.runtime.business_date import business_date, business_date_at
from portal.ui import wording
from servicing.return_codes import RETURN_CODES, describe_return_code
from servicing.schedules import total

PERIODS = (7, 30, 90)
REPEAT_DAYS = 90
NO_CODE = "No code"


@dataclass(frozen=True)
class ReturnedPayment:
    """One failed or returned payment."""

    record: Repayment
    repayment: servicing.Repayment
    borrower: Borrower | None
    day: date
    code: str
    repeats: int
    """The number of payments from its bank account that came back within 90 days; 0 without a bank account."""
    following: servicing.Repayment | None
    """The next scheduled payment from its bank account; without one, of its loan or line."""

    @property
    def bank(self) -> str:
        return self.record.bank_account

    @property
    def reason(self) -> str:
        """The service's own words, if they say more than the code."""
        words = (self.repayment.error_description or "").strip()
        return "" if self.code in RETURN_CODES else words or "No reason given"

    @property
    def next_words(self) -> str:
        """Such as "$1,827.70 on Dec 3, 2026"."""
        if self.following is None:
            return ""
        amount = wording.money(self.following.amount) or "An unknown amount"
        return f"{amount} on {wording.day(self.following.effective_date)}"


@dataclass(frozen=True)
class ReturnGroup:
    """The payments with one code or of one day."""

    title: str
    description: str
    payments: Sequence[ReturnedPayment]

    @property
    def amount(self) -> Decimal | None:
        """Their sum; None if an amount is missing."""
        return total(one.repayment.amount for one in self.payments)


def returned_payments(days: int) -> list[ReturnedPayment]:
    """The payments that failed or were reported as returned within some days, latest first.

    A payment that fails before its date counts on the day of its answer.
    """
    since = business_date() - timedelta(days=days)
    dated = {one.pk: day for one, day in returned_since(since)}
    is_recent = Q(effective_on__gte=since) | Q(effective_on=None)
    failed = Repayment.objects.filter(is_recent, has_failed__in=[True]).exclude(is_returned())
    rows = failed.order_by("-effective_on", "-pk")[:MAX_DATED]
    for pk, day, updated_at in rows.values_list("pk", "effective_on", "updated_at"):
        if (on := min(day or date.max, business_date_at(updated_at))) >= since:
            dated[pk] = on
    records = Repayment.objects.select_related("account").in_bulk(dated)
    found = sorted(records.values(), key=lambda one: (dated[one.pk], one.pk), reverse=True)
    return _with_bank_accounts(found, dated)


def _with_bank_accounts(records: Sequence[Repayment], dated: dict[int, date]) -> list[ReturnedPayment]:
    owners = {one.borrower_uuid for one in records if one.borrower_uuid}
    today = business_date()
    unowned = {one.account_id for one in records if not one.borrower_uuid}
    of_owners = Repayment.objects.filter(Q(borrower_uuid__in=owners) | Q(account__in=unowned - {None}))
    recent = of_owners.filter(has_failed=True, effective_on__gte=today - timedelta(days=REPEAT_DAYS))
    repeats = Counter(recent.exclude(bank_account="").values_list("bank_account", flat=True))
    by_bank: dict[str, servicing.Repayment] = {}
    by_account: dict[int | None, servicing.Repayment] = {}
    upcoming = of_owners.filter(~is_dropped_from_list(), status=SCHEDULED, effective_on__gte=today)
    for one in upcoming.order_by("effective_on", "pk"):
        by_account.setdefault(one.account_id, answer_of(one))
        by_bank.setdefault(one.bank_account, answer_of(one))
    found = []
    for record, borrower in with_borrowers(records):
        bank = record.bank_account
        following = by_bank.get(bank) if bank else by_account.get(record.account_id)
        found.append(
            ReturnedPayment(
                record,
                answer_of(record),
                borrower,
                dated[record.pk],
                record.code or NO_CODE,
                repeats[bank] if bank else 0,
                following,
            )
        )
    return found


def by_code(payments: Sequence[ReturnedPayment]) -> list[ReturnGroup]:
    """Group the payments by code, most frequent first."""
    groups: dict[str, list[ReturnedPayment]] = defaultdict(list)
    for one in payments:
        groups[one.code].append(one)
    found = [ReturnGroup(code, describe_return_code(code), of_code) for code, of_code in groups.items()]
    return sorted(found, key=lambda group: (-len(group.payments), group.title))


def by_day(payments: Sequence[ReturnedPayment]) -> list[ReturnGroup]:
    """Group the payments by day, latest first."""
    groups: dict[date, list[ReturnedPayment]] = defaultdict(list)
    for one in payments:
        groups[one.day].append(one)
    return [ReturnGroup(wording.day(day) or "", "", groups[day]) for day in sorted(groups, reverse=True)]
