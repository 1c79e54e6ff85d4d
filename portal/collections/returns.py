"""Failed and returned payments by code and by day, with what follows each, and the rates of returns."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Q

import servicing
from portal.core.business_date import business_date, business_date_at
from portal.records.models import Borrower, Repayment
from portal.records.repayments import RETURNED, answer_of
from portal.records.rows import with_borrowers
from portal.repayments.follows import WhatFollows, what_follows
from portal.repayments.returns import MAX_DATED, is_returned, returned_since
from portal.tables.cells import short_day
from portal.ui import wording
from servicing.repayments import SUCCEEDED
from servicing.return_codes import (
    ADMINISTRATIVE,
    FORBIDS_MORE,
    RETURN_CODES,
    UNAUTHORIZED,
    describe_return_code,
)
from servicing.schedules import total

PERIODS = (7, 30, 90)
RATED_DAYS, MIN_RATED = 60, 50
"""A rate is of the payments of so many days, and of at least so many payments."""
NO_CODE = "No code"
LONGEST_WITH_CODES = 30
"""Days of which a square has room for its code."""
CHART_WIDTH = 960


@dataclass(frozen=True)
class ReturnedPayment:
    """One failed or returned payment, and what follows it."""

    record: Repayment
    repayment: servicing.Repayment
    borrower: Borrower | None
    day: date
    follows: WhatFollows

    @property
    def code(self) -> str:
        return self.record.code or NO_CODE

    @property
    def bank(self) -> str:
        return self.record.bank_account

    @property
    def reason(self) -> str:
        """The service's own words, if they say more than the code."""
        words = (self.repayment.error_description or "").strip()
        return "" if self.code in RETURN_CODES else words or "No reason given"

    @property
    def description(self) -> str:
        return describe_return_code(self.code)

    @property
    def was_posted(self) -> bool:
        """Whether it came back after it had succeeded."""
        return self.record.status == RETURNED


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


def returned_payments(days: int) -> tuple[list[ReturnedPayment], bool]:
    """The payments that failed or were reported as returned within some days, latest first; whether some are cut.

    A payment that fails before its date counts on the day of its answer.
    """
    since = business_date() - timedelta(days=days)
    returned = returned_since(since)
    dated = {one.pk: day for one, day in returned.payments}
    is_recent = Q(effective_on__gte=since) | Q(effective_on=None)
    failed = Repayment.objects.filter(is_recent, has_failed__in=[True]).exclude(is_returned())
    columns = failed.order_by("-effective_on", "-pk").values_list("pk", "effective_on", "updated_at")
    rows = list(columns[: MAX_DATED + 1])
    for pk, day, updated_at in rows[:MAX_DATED]:
        if (on := min(day or date.max, business_date_at(updated_at))) >= since:
            dated[pk] = on
    records = Repayment.objects.select_related("account").in_bulk(dated)
    found = sorted(records.values(), key=lambda one: (dated[one.pk], one.pk), reverse=True)
    return _with_what_follows(found, dated), returned.is_cut or len(rows) > MAX_DATED


def _with_what_follows(records: Sequence[Repayment], dated: dict[int, date]) -> list[ReturnedPayment]:
    follows = what_follows(records)
    return [
        ReturnedPayment(record, answer_of(record), borrower, dated[record.pk], follows[record.pk])
        for record, borrower in with_borrowers(records)
    ]


def by_code(payments: Sequence[ReturnedPayment]) -> list[ReturnGroup]:
    """Group the payments by code, most frequent first."""
    groups: dict[str, list[ReturnedPayment]] = defaultdict(list)
    for one in payments:
        groups[one.code].append(one)
    found = [ReturnGroup(code, describe_return_code(code), of_code) for code, of_code in groups.items()]
    return sorted(found, key=lambda group: (-len(group.payments), group.title))


def by_day(payments: Sequence[ReturnedPayment]) -> list[ReturnGroup]:
    groups: dict[date, list[ReturnedPayment]] = defaultdict(list)
    for one in payments:
        groups[one.day].append(one)
    return [ReturnGroup(wording.day(day) or "", "", groups[day]) for day in sorted(groups, reverse=True)]


@dataclass(frozen=True)
class ReturnRate:
    """The share of payments that came back for reasons of one kind, beside Nacha's threshold."""

    title: str
    codes: str
    number: int
    payments: int
    threshold: Decimal
    """In percent."""

    @property
    def percent(self) -> Decimal | None:
        """In percent, to two digits; None for fewer payments than a rate needs."""
        if self.payments < MIN_RATED:
            return None
        return (Decimal(100 * self.number) / self.payments).quantize(Decimal("0.01"))

    @property
    def used(self) -> int:
        """How much of the threshold is reached, in percent, at most 100."""
        return min(100, round(100 * self.percent / self.threshold)) if self.percent is not None else 0


def return_rates() -> list[ReturnRate]:
    """The return rates of the last 60 days."""
    today = business_date()
    since = today - timedelta(days=RATED_DAYS - 1)
    dated = Repayment.objects.filter(effective_on__gte=since, effective_on__lte=today)
    attempted = Q(status__in=SUCCEEDED) | Q(has_failed=True)
    payments = dated.filter(attempted).count()
    codes = Counter(dated.filter(has_failed=True).order_by().values_list("code", flat=True))
    kinds = (
        ("Unauthorized", UNAUTHORIZED, Decimal("0.5")),
        ("Administrative", ADMINISTRATIVE, Decimal(3)),
    )
    rates = [
        ReturnRate(title, ", ".join(of_kind), sum(codes[one] for one in of_kind), payments, threshold)
        for title, of_kind, threshold in kinds
    ]
    return [*rates, ReturnRate("All returns", "every code", codes.total(), payments, Decimal(15))]


class Square(NamedTuple):
    """One payment of the chart."""

    x: int
    y: int
    middle: int
    baseline: int
    code: str
    look: str
    words: str


@dataclass(frozen=True)
class ReturnChart:
    """The payments as squares, stacked by day; colored by what follows."""

    squares: Sequence[Square]
    days: Sequence[tuple[int, str, str]]
    """Place, anchor and words of the labels below."""
    width: int
    height: int
    bottom: int
    side: int
    has_codes: bool


def chart_of(payments: Sequence[ReturnedPayment], period: int) -> ReturnChart:
    """The chart of a period; for a long one without codes."""
    has_codes = period <= LONGEST_WITH_CODES
    side = 26 if has_codes else 8
    step, first = CHART_WIDTH // (period + 1), business_date() - timedelta(days=period)
    tallest = max(Counter(one.day for one in payments).values(), default=1)
    bottom, stacked, squares = tallest * (side + 2) + 4, Counter[date](), []
    for one in reversed(payments):
        stacked[one.day] += 1
        x, y = (one.day - first).days * step, bottom - stacked[one.day] * (side + 2)
        words = (
            f"{wording.day(one.day)}: {one.code}, {wording.money(one.repayment.amount) or 'amount not known'}"
        )
        squares.append(Square(x, y, x + side // 2, y + side // 2 + 4, one.code, _look(one.follows), words))
    width = (period + 1) * step
    days = [(0, "start", short_day(first)), (width, "end", "Today")]
    return ReturnChart(squares, days, width, bottom + 20, bottom, side, has_codes)


def _look(follows: WhatFollows) -> str:
    if follows.consequence in FORBIDS_MORE:
        return "never"
    return "again" if follows.is_presented_again else "ask"
