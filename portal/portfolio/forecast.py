"""What is expected in the next 30 days, and last week's forecast beside what came."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import Exists, OuterRef

from portal.collections.promises import current_promises
from portal.portfolio.models import OPEN, AccountState, Forecast
from portal.records.models import Repayment, RepaymentStatus
from portal.repayments.returns import is_dropped_from_list
from portal.repayments.sums import is_collected
from portal.repayments.table import SCHEDULED
from portal.ui import wording
from servicing.business_days import first_business_day
from servicing.figures import NOTHING
from servicing.promises import PromiseState
from servicing.schedules import HALF_CENT

DAYS: Final = 30
WEEK: Final = 7
EXPECTED: Final = (PromiseState.OPEN.name, PromiseState.PENDING.name)
VIEWS: Final = {"scheduled": "Scheduled", "unscheduled": "Due, unscheduled", "promised": "Promised"}


# --- Written at night ---


def write(day: date) -> None:
    """Save what is expected after the end of a day."""
    last = day + timedelta(days=DAYS)
    amounts: dict[str, dict[date, Decimal]] = {name: defaultdict(Decimal) for name in VIEWS}
    scheduled: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
    payments = Repayment.objects.filter(
        ~is_dropped_from_list(), status=SCHEDULED, effective_on__gt=day, effective_on__lte=last, amount__gt=0
    )
    planned: Any = payments.values_list("account__kind", "account__uuid", "effective_on", "amount")
    for kind, uuid, on, amount in planned:
        amounts["scheduled"][on] += amount
        scheduled[kind, uuid].append((on, amount))
    dues = AccountState.objects.on(day).filter(
        bucket__in=OPEN, due_next_on__gt=day, due_next_on__lte=last, due_next_amount__gt=0
    )
    due: Any = dues.values_list("kind", "uuid", "due_next_on", "due_next_amount")
    for kind, uuid, on, amount in due:
        pay_by = first_business_day(on)
        covered = sum((part for paid_on, part in scheduled[kind, uuid] if paid_on <= pay_by), NOTHING)
        if amount - covered >= HALF_CENT:
            amounts["unscheduled"][on] += amount - covered
    promised = current_promises().filter(day__gt=day, day__lte=last, logged_on__lte=day, state__in=EXPECTED)
    for one in promised:
        amounts["promised"][one.day] += one.amount
    Forecast.objects.bulk_create(
        Forecast(day=day, on=on, **{name: amounts[name][on] for name in VIEWS})
        for on in (day + timedelta(days=number) for number in range(1, DAYS + 1))
    )


def save_payments(day: date) -> None:
    """Save what came on each of the last seven days: what had been scheduled, what hadn't, and what was promised."""
    first = day - timedelta(days=WEEK - 1)
    paid: dict[str, dict[date, Decimal]] = {name: defaultdict(Decimal) for name in VIEWS}
    was_scheduled = RepaymentStatus.objects.filter(repayment=OuterRef("pk"), old=SCHEDULED)
    payments = Repayment.objects.filter(
        is_collected(), effective_on__gte=first, effective_on__lte=day, amount__gt=0
    )
    found = payments.annotate(was_scheduled=Exists(was_scheduled))
    made: Any = found.values_list("effective_on", "amount", "was_scheduled")
    for on, amount, was in made:
        paid["scheduled" if was else "unscheduled"][on] += amount
    for one in current_promises().filter(day__gte=first, day__lte=day):
        paid["promised"][one.day] += min(one.paid, one.amount)
    rows = list(Forecast.objects.filter(on__gte=first, on__lte=day))
    for row in rows:
        for name in VIEWS:
            setattr(row, f"{name}_paid", paid[name][row.on])
    Forecast.objects.bulk_update(rows, [f"{name}_paid" for name in VIEWS])


# --- Read by the page ---


@dataclass
class Period:
    """Some of the next 30 days. Its three amounts are views of the same days and never add up."""

    first: date
    last: date
    scheduled: Decimal = NOTHING
    unscheduled: Decimal = NOTHING
    promised: Decimal = NOTHING
    is_sum: bool = False

    @property
    def words(self) -> str:
        return f"{DAYS} days" if self.is_sum else wording.days(self.first, self.last)


@dataclass
class Check:
    """What was forecast a week ago for the week since, and what came of it."""

    label: str
    forecast: Decimal
    paid: Decimal

    @property
    def share(self) -> Decimal | None:
        return self.paid * 100 / self.forecast if self.forecast else None


@dataclass
class Outlook:
    periods: Sequence[Period]
    sum: Period
    checked_on: date | None
    """When last week's forecast was made; None if there is none."""
    checks: Sequence[Check]

    @property
    def rows(self) -> list[Period]:
        return [*self.periods, self.sum]


def read(day: date) -> Outlook | None:
    """The forecast of a day; None if there is none."""
    week_ago = day - timedelta(days=WEEK)
    rows = list(Forecast.objects.filter(day__in=[day, week_ago]).order_by("on"))
    expected = [one for one in rows if one.day == day]
    if not expected:
        return None
    periods = [_period(expected[start : start + WEEK]) for start in range(0, DAYS, WEEK)]
    earlier = [one for one in rows if one.day == week_ago and one.on <= day]
    checks = [
        Check(label, _sum(earlier, name), _sum(earlier, f"{name}_paid")) for name, label in VIEWS.items()
    ]
    everything = replace(_period(expected), is_sum=True)
    return Outlook(periods, everything, week_ago if earlier else None, checks if earlier else [])


def _period(rows: Sequence[Forecast]) -> Period:
    scheduled, unscheduled, promised = (_sum(rows, name) for name in VIEWS)
    return Period(rows[0].on, rows[-1].on, scheduled, unscheduled, promised)


def _sum(rows: Sequence[Forecast], name: str) -> Decimal:
    return sum((getattr(one, name) for one in rows), NOTHING)
