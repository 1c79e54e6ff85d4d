"""Today's payments and those of the last two weeks, by effective date, from the repayments that are known here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import QuerySet
from django.urls import reverse

from portal.payments import SUCCEEDED
from portal.readings import Coverage, coverage
from portal.registry.lists import known
from portal.registry.models import Kind
from servicing.schedules import total

DAYS = 14
# The drawing's units: one step for each day, and how tall the largest day is.
STEP, BAR, HEIGHT, GAP = 20, 15, 60, 2


@dataclass
class Payments:
    """Some payments: how many, and what they come to unless an amount was not told."""

    amounts: list[Decimal | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.amounts)

    @property
    def sum(self) -> Decimal | None:
        return total(self.amounts) if self.amounts else Decimal(0)

    @property
    def told(self) -> Decimal:
        """The sum of the amounts that were told, for a drawing."""
        return sum((max(amount, Decimal(0)) for amount in self.amounts if amount is not None), Decimal(0))


@dataclass
class Day:
    """The payments of one day, by outcome; ``by_product`` are those that succeeded."""

    day: date
    succeeded: Payments = field(default_factory=Payments)
    failed: Payments = field(default_factory=Payments)
    by_product: dict[str, Payments] = field(default_factory=dict)

    @property
    def succeeded_url(self) -> str:
        """The list that proves the first number."""
        return f"{reverse('repayments:index')}?status={SUCCEEDED}&from={self.day}&to={self.day}"

    @property
    def failed_url(self) -> str:
        """The list that proves the second."""
        return f"{reverse('repayments:index')}?error=1&from={self.day}&to={self.day}"

    @property
    def products(self) -> list[tuple[str, Payments, str]]:
        """Each product with its payments and the list that proves them."""
        return [
            (name, paid, f"{self.succeeded_url}&product={name}")
            for name, paid in sorted(self.by_product.items())
        ]


@dataclass(frozen=True)
class Bar:
    """One day's place in the drawing: succeeded from the ground up, failed above it."""

    x: int
    y: int
    height: int
    failed_y: int
    failed_height: int


@dataclass(frozen=True)
class Numbers:
    """Two weeks of days, the last is today, and how much of the truth they can be."""

    days: Sequence[Day]
    known: int
    coverage: Coverage

    @property
    def today(self) -> Day:
        return self.days[-1]

    @property
    def known_words(self) -> str:
        """How many repayments they are taken from."""
        return f"{self.known:,} repayment{'' if self.known == 1 else 's'}"

    @property
    def has_failures(self) -> bool:
        return any(day.failed.count for day in self.days)

    @property
    def bars(self) -> list[Bar]:
        """The drawing's geometry; none while there is nothing to draw."""
        largest = max(day.succeeded.told + day.failed.told for day in self.days)
        return [_bar(index, day, largest) for index, day in enumerate(self.days)] if largest else []


def numbers(today: date) -> Numbers:
    """The two weeks that end today."""
    repayments = known(Kind.REPAYMENT)
    return Numbers(_days(repayments, today), repayments.count(), coverage())


def _days(repayments: QuerySet, today: date) -> list[Day]:  # type: ignore[type-arg]
    first = today - timedelta(days=DAYS - 1)
    days = {day: Day(day) for day in (first + timedelta(days=n) for n in range(DAYS))}
    recent = repayments.filter(due_date__gte=first, due_date__lte=today)
    _sort_in(days, recent.values_list("due_date", "status", "flagged", "product", "amount"))
    return list(days.values())


def _sort_in(days: dict[date, Day], rows: Iterable[tuple[date, str, bool, str, Decimal | None]]) -> None:
    for on, status, has_failed, product, amount in rows:
        day = days[on]
        if status == SUCCEEDED:
            day.succeeded.amounts.append(amount)
            day.by_product.setdefault(product, Payments()).amounts.append(amount)
        if has_failed:
            day.failed.amounts.append(amount)


def _bar(index: int, day: Day, largest: Decimal) -> Bar:
    height = int(day.succeeded.told / largest * HEIGHT)
    failed = int(day.failed.told / largest * HEIGHT)
    ground = HEIGHT - height
    gap = GAP if height and failed else 0
    failed = max(failed - gap, 1) if day.failed.told else 0
    return Bar(index * STEP, ground, height, max(0, ground - gap - failed), failed)
