"""Failed and returned payments by code and by day, with repeats and the next payment from the same bank account."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Q

from portal.registry import store
from portal.registry.models import Borrower, Kind, Record
from portal.registry.records import active_records, records_by_uuid, with_borrowers
from portal.registry.sources import REPAYMENTS_OF
from portal.repayments.returns import MAX_DATED, is_dropped_from_list, is_returned, returned_since
from portal.repayments.table import SCHEDULED
from portal.runtime.business_date import business_date, business_date_at
from portal.ui import wording
from servicing import Repayment
from servicing.return_codes import RETURN_CODES, describe_return_code, find_return_code
from servicing.schedules import total

PERIODS = (7, 30, 90)
REPEAT_DAYS = 90
NO_CODE = "No code"


@dataclass(frozen=True)
class ReturnedPayment:
    """One failed or returned payment."""

    record: Record
    repayment: Repayment
    borrower: Borrower | None
    account: Record | None
    day: date
    code: str
    repeats: int
    """The number of payments from its bank account that came back within 90 days; 0 without a bank account."""
    following: Repayment | None
    """The next scheduled payment from its bank account; without one, of its loan or line."""

    @property
    def bank(self) -> str:
        return self.repayment.borrower_bank_account_uuid or ""

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
    failed = active_records(Kind.REPAYMENT).filter(Q(key_date__gte=since) | Q(key_date=None), flagged=True)
    rows = failed.exclude(is_returned()).order_by("-key_date", "-pk")[:MAX_DATED]
    for pk, day, updated_at in rows.values_list("pk", "key_date", "updated_at"):
        if (on := min(day or date.max, business_date_at(updated_at))) >= since:
            dated[pk] = on
    records = Record.objects.select_related("said").in_bulk(dated)
    found = sorted(records.values(), key=lambda one: (dated[one.pk], one.pk), reverse=True)
    return _with_bank_accounts(found, dated)


def _with_bank_accounts(records: Sequence[Record], dated: dict[int, date]) -> list[ReturnedPayment]:
    owners = {one.borrower_uuid for one in records if one.borrower_uuid}
    today = business_date()
    unowned = {one.parent_uuid for one in records if not one.borrower_uuid}
    of_owners = (
        active_records(Kind.REPAYMENT)
        .select_related("said")
        .filter(Q(borrower_uuid__in=owners) | Q(parent_uuid__in=unowned))
    )
    repeats: Counter[str] = Counter()
    for one in of_owners.filter(flagged=True, key_date__gte=today - timedelta(days=REPEAT_DAYS)):
        if (repayment := store.last_answer(one, Repayment)) and repayment.borrower_bank_account_uuid:
            repeats[repayment.borrower_bank_account_uuid] += 1
    by_bank: dict[str, Repayment] = {}
    by_account: dict[str, Repayment] = {}
    upcoming = of_owners.filter(~is_dropped_from_list(), status=SCHEDULED, key_date__gte=today)
    for one in upcoming.order_by("key_date", "pk"):
        if repayment := store.last_answer(one, Repayment):
            by_account.setdefault(one.parent_uuid, repayment)
            by_bank.setdefault(repayment.borrower_bank_account_uuid or "", repayment)
    accounts = records_by_uuid(REPAYMENTS_OF, (one.parent_uuid for one in records))
    found = []
    for record, borrower in with_borrowers(records):
        repayment = store.last_answer(record, Repayment) or Repayment(uuid=record.uuid, amount=record.amount)
        bank = repayment.borrower_bank_account_uuid
        following = by_bank.get(bank) if bank else by_account.get(record.parent_uuid)
        code = code_of(repayment)
        found.append(
            ReturnedPayment(
                record,
                repayment,
                borrower,
                accounts.get(record.parent_uuid),
                dated[record.pk],
                code,
                repeats[bank] if bank else 0,
                following,
            )
        )
    return found


def code_of(repayment: Repayment) -> str:
    """The ACH return code in the service's text about a payment."""
    return find_return_code(repayment.error_description) or NO_CODE


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
