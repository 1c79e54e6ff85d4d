"""Payments of the last seven days by effective date, from the repayments on file."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlencode

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.urls import reverse

from portal.gateway.reading import Coverage, coverage
from portal.records.models import Repayment
from portal.repayments.sums import dollars, is_collected, with_totals
from portal.tables.filters import NONE
from portal.ui import wording

DAYS = 7
# The chart: the height of the largest day, and the gap between its two parts.
HEIGHT, GAP = 60, 2


@dataclass
class Payments:
    """The number and the sum of some payments."""

    count: int = 0
    known_sum: Decimal = Decimal(0)
    """The sum of the known amounts."""
    is_known: bool = True

    @property
    def sum(self) -> Decimal | None:
        """The sum; None if an amount is missing."""
        return self.known_sum if self.is_known else None

    @property
    def drawn(self) -> Decimal:
        return max(self.known_sum, Decimal(0))

    def add(self, number: int, known: int, amount: Decimal) -> None:
        self.count += number
        self.known_sum += amount
        self.is_known = self.is_known and number == known


@dataclass
class Day:
    """The payments of one day or of several days up to it, by outcome; ``by_product`` has the successful ones."""

    day: date
    first: date
    succeeded: Payments = field(default_factory=Payments)
    failed: Payments = field(default_factory=Payments)
    by_product: dict[str, Payments] = field(default_factory=lambda: defaultdict(Payments))

    @property
    def drawn(self) -> Decimal:
        return self.succeeded.drawn + self.failed.drawn

    @property
    def words(self) -> str:
        """The day and its sums: "Nov 24: $310.00, $95.00 failed"."""
        paid, failed = wording.money(self.succeeded.sum), wording.money(self.failed.sum)
        day = f"{wording.short_day(self.day)}: {paid or 'not totaled'}"
        return f"{day}, {failed or 'not totaled'} failed" if self.failed.count else day

    @property
    def url(self) -> str:
        return f"{reverse('repayments:index')}?from={self.first}&to={self.day}"

    @property
    def succeeded_url(self) -> str:
        return f"{reverse('repayments:index')}?collected=yes&from={self.first}&to={self.day}"

    @property
    def failed_url(self) -> str:
        return f"{reverse('repayments:index')}?error=yes&from={self.first}&to={self.day}"

    @property
    def products(self) -> list[tuple[str, Payments, str]]:
        paid = sorted(self.by_product.items())
        return [
            (name, payments, f"{self.succeeded_url}&{urlencode({'product': name or NONE})}")
            for name, payments in paid
        ]


class Bar(NamedTuple):
    """One day of the chart: successful payments at the bottom, failed ones above."""

    day: Day
    y: int
    height: int
    failed_y: int
    failed_height: int


@dataclass(frozen=True)
class Numbers:
    """The seven days up to today, their totals, and how complete they are."""

    days: Sequence[Day]
    week: Day
    coverage: Coverage

    @property
    def highest(self) -> Decimal:
        return max(day.drawn for day in self.days)

    @property
    def bars(self) -> list[Bar]:
        """The bars of the chart; empty if there is nothing to draw."""
        return [_bar(day, self.highest) for day in self.days] if self.highest else []


def numbers(today: date) -> Numbers:
    """Add up the payments of the seven days up to today."""
    first = today - timedelta(days=DAYS - 1)
    week = Day(today, first)
    days = {day: Day(day, day) for day in (first + timedelta(days=number) for number in range(DAYS))}
    recent = Repayment.objects.filter(effective_on__gte=first, effective_on__lte=today)
    counted = recent.annotate(is_collected=ExpressionWrapper(is_collected(), BooleanField()))
    groups = counted.values_list("effective_on", "is_collected", "has_failed", "product")
    for effective, has_come, has_failed, product, number, _, known, *parts in with_totals(groups, Q()):
        for span in (days[effective], week):
            if has_come:
                span.succeeded.add(number, known, dollars(*parts))
                span.by_product[product].add(number, known, dollars(*parts))
            if has_failed:
                span.failed.add(number, known, dollars(*parts))
    return Numbers(list(days.values()), week, coverage())


def _bar(day: Day, largest: Decimal) -> Bar:
    height = int(day.succeeded.drawn / largest * HEIGHT)
    failed = int(day.failed.drawn / largest * HEIGHT)
    ground = HEIGHT - height
    gap = GAP if height and failed else 0
    failed = max(failed - gap, 1) if day.failed.drawn else 0
    return Bar(day, ground, height, max(0, ground - gap - failed), failed)
