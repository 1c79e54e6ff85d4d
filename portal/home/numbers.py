"""Payments of the last seven days by effective date, from the repayments on file."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.urls import reverse

from portal.live.reading import Coverage, coverage
from portal.registry.models import Kind
from portal.registry.records import active_records
from portal.repayments.table import SUCCEEDED
from servicing.schedules import total

DAYS = 7
# The chart: the width of a day, the height of the largest day, and the gap between its two parts.
STEP, HEIGHT, GAP = 40, 60, 2


@dataclass
class Payments:
    """The amounts of some payments."""

    amounts: list[Decimal | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.amounts)

    @property
    def sum(self) -> Decimal | None:
        """The sum; None if an amount is missing."""
        return total(self.amounts) if self.amounts else Decimal(0)

    @property
    def known_sum(self) -> Decimal:
        """The sum of the known amounts, for the chart."""
        return sum((amount for amount in self.amounts if amount and amount > 0), Decimal(0))


@dataclass
class Day:
    """The payments of one day or of several days up to it, by outcome; ``by_product`` has the successful ones."""

    day: date
    first: date
    succeeded: Payments = field(default_factory=Payments)
    failed: Payments = field(default_factory=Payments)
    by_product: dict[str, Payments] = field(default_factory=lambda: defaultdict(Payments))

    @property
    def succeeded_url(self) -> str:
        """The list of successful payments."""
        return f"{reverse('repayments:index')}?status={SUCCEEDED}&from={self.first}&to={self.day}"

    @property
    def failed_url(self) -> str:
        """The list of failed payments."""
        return f"{reverse('repayments:index')}?error=yes&from={self.first}&to={self.day}"

    @property
    def products(self) -> list[tuple[str, Payments, str]]:
        """Each product with its payments and their list."""
        paid = sorted(self.by_product.items())
        return [(name, payments, f"{self.succeeded_url}&product={name}") for name, payments in paid]


class Bar(NamedTuple):
    """One day of the chart: successful payments at the bottom, failed ones above."""

    x: int
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
    def bars(self) -> list[Bar]:
        """The bars of the chart; empty if there is nothing to draw."""
        largest = max(day.succeeded.known_sum + day.failed.known_sum for day in self.days)
        return [_bar(index, day, largest) for index, day in enumerate(self.days)] if largest else []


def numbers(today: date) -> Numbers:
    """Read the payments of the seven days up to today."""
    repayments = active_records(Kind.REPAYMENT)
    first = today - timedelta(days=DAYS - 1)
    week = Day(today, first)
    days = {day: Day(day, day) for day in (first + timedelta(days=number) for number in range(DAYS))}
    recent = repayments.filter(key_date__gte=first, key_date__lte=today)
    columns = ("key_date", "status", "flagged", "category", "amount")
    for effective, status, has_failed, product, amount in recent.values_list(*columns):
        for span in (days[effective], week):
            if status == SUCCEEDED:
                span.succeeded.amounts.append(amount)
                span.by_product[product].amounts.append(amount)
            if has_failed:
                span.failed.amounts.append(amount)
    return Numbers(list(days.values()), week, coverage())


def _bar(index: int, day: Day, largest: Decimal) -> Bar:
    height = int(day.succeeded.known_sum / largest * HEIGHT)
    failed = int(day.failed.known_sum / largest * HEIGHT)
    ground = HEIGHT - height
    gap = GAP if height and failed else 0
    failed = max(failed - gap, 1) if day.failed.known_sum else 0
    return Bar(index * STEP, ground, height, max(0, ground - gap - failed), failed)
