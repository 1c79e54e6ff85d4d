"""What is expected in the next 30 days, and last week's forecast beside what came."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import Exists, QuerySet
from django.db.models.functions import Least

from portal.collections.models import Promise
from portal.collections.promises import current_promises
from portal.portfolio.accounts import BookAccount
from portal.portfolio.models import OPEN, AccountState, Expected, Forecast, View
from portal.portfolio.sums import add_sums, read_sum, total_of
from portal.records.models import Repayment
from portal.repayments.returns import is_dropped_from_list
from portal.repayments.table import SCHEDULED
from portal.ui import wording
from servicing.business_days import first_business_day
from servicing.figures import NOTHING, ONE_DAY
from servicing.promises import PromiseState
from servicing.schedules import HALF_CENT

DAYS: Final = 30
WEEK: Final = 7
ORIGINS: Final = {View.SCHEDULED: "scheduled", View.UNSCHEDULED: "other"}
EXPECTED: Final = (PromiseState.OPEN.name, PromiseState.PENDING.name)


# --- Written at night ---


def save_expected(accounts: Sequence[BookAccount], states: Iterable[AccountState], day: date) -> None:
    """Save what is expected of these accounts after the end of a day, and that other payments no longer are.

    Their answers and repayments are those of now, so of earlier days nobody can tell it.
    """
    keys = {one.pk: one for one in accounts if not one.archived_on or one.archived_on > day}
    on_file = Expected.objects.filter(uuid__in=[one.uuid for one in accounts], to_day=None)
    before = {_key(one): one.pk for one in on_file}
    now = {_key(one): one for one in _expected(keys, states, day)}
    gone = [pk for key, pk in before.items() if key not in now]
    Expected.objects.filter(pk__in=gone).update(to_day=day - ONE_DAY)
    Expected.objects.bulk_create(one for key, one in now.items() if key not in before)


def _key(one: Expected) -> tuple[Any, ...]:
    return one.view, one.kind, one.uuid, one.subject, one.on, one.amount


def _expected(
    accounts: Mapping[int, BookAccount], states: Iterable[AccountState], day: date
) -> Iterator[Expected]:
    last = day + timedelta(days=DAYS)
    scheduled: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
    payments: Any = Repayment.objects.filter(
        ~is_dropped_from_list(),
        account__in=list(accounts),
        status=SCHEDULED,
        effective_on__gt=day,
        effective_on__lte=last,
        amount__gt=0,
    ).values_list("account_id", "uuid", "effective_on", "amount")
    for pk, repayment, on, amount in payments:
        kind, uuid = accounts[pk].kind, accounts[pk].uuid
        scheduled[kind, uuid].append((on, amount))
        yield _new(View.SCHEDULED, kind, uuid, repayment, on, amount, day)
    kinds = {one.uuid: one.kind for one in accounts.values()}
    for one in states:
        on, amount = one.due_next_on, one.due_next_amount
        is_open = one.to_day is None and one.bucket in OPEN and one.uuid in kinds
        if not (is_open and on and day < on <= last and amount):
            continue
        pay_by = first_business_day(on)
        covered = sum((part for paid_on, part in scheduled[one.kind, one.uuid] if paid_on <= pay_by), NOTHING)
        if amount - covered >= HALF_CENT:
            yield _new(View.UNSCHEDULED, one.kind, one.uuid, "", on, amount - covered, day)
    promised = current_promises().filter(
        account_uuid__in=list(kinds), day__gt=day, day__lte=last, logged_on__lte=day, state__in=EXPECTED
    )
    for promise in promised:
        uuid = promise.account_uuid
        yield _new(View.PROMISED, kinds[uuid], uuid, str(promise.pk), promise.day, promise.amount, day)


def _new(view: View, kind: str, uuid: str, subject: str, on: date, amount: Decimal, day: date) -> Expected:
    return Expected(view=view, kind=kind, uuid=uuid, subject=subject, on=on, amount=amount, from_day=day)


def write(day: date) -> None:
    """Add up what is expected after the end of a day."""
    groups = add_sums(Expected.objects.on_day(day).order_by().values("view", "on"), "amount")
    amounts = {(one["view"], one["on"]): read_sum(one, "amount") for one in groups}
    Forecast.objects.bulk_create(
        Forecast(day=day, on=on, **{view: amounts.get((view, on), NOTHING) for view in View.values})
        for on in (day + timedelta(days=number) for number in range(1, DAYS + 1))
    )


# --- Read by the page and its lists ---


def expected_between(view: str, day: date, first: date, last: date) -> QuerySet[Expected]:
    expected = Expected.objects.on_day(day).filter(view=view, on__range=(first, last))
    # Nobody could tell what was expected on a day that was written later.
    is_written = Exists(Forecast.objects.filter(day=day))
    return expected.filter(is_written).order_by("on", "-amount", "pk")


def promises_between(first: date, last: date) -> QuerySet[Promise]:
    """The promises for these days, with what was paid of each."""
    return (
        current_promises()
        .filter(day__range=(first, last))
        .annotate(came=Least("paid", "amount"))
        .order_by("day", "pk")
    )


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
    def amounts(self) -> list[tuple[str, Decimal]]:
        return [(view.value, getattr(self, view)) for view in View]

    @property
    def words(self) -> str:
        return f"{DAYS} days" if self.is_sum else wording.days(self.first, self.last)


@dataclass
class Check:
    """What was forecast a week ago for the week since, and what came."""

    view: View
    forecast: Decimal
    paid: Decimal | None
    """None if an amount isn't known."""

    @property
    def origin(self) -> str:
        """The filter of repayments that lists what came; empty for promises."""
        return ORIGINS.get(self.view, "")

    @property
    def share(self) -> Decimal | None:
        return self.paid * 100 / self.forecast if self.forecast and self.paid is not None else None


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

    @property
    def first(self) -> date | None:
        """The day after last week's forecast."""
        return self.checked_on + ONE_DAY if self.checked_on else None


def read(day: date, came: Mapping[bool, Decimal | None]) -> Outlook | None:
    """The forecast of a day; None if there is none. ``came`` is what came in its week, scheduled before or not."""
    week_ago = day - timedelta(days=WEEK)
    rows = list(Forecast.objects.filter(day__in=[day, week_ago]).order_by("on"))
    expected = [one for one in rows if one.day == day]
    if not expected:
        return None
    periods = [_period(expected[start : start + WEEK]) for start in range(0, DAYS, WEEK)]
    earlier = [one for one in rows if one.day == week_ago and one.on <= day]
    everything = replace(_period(expected), is_sum=True)
    if not earlier:
        return Outlook(periods, everything, None, [])
    promised = read_sum(total_of(promises_between(week_ago + ONE_DAY, day), "came"), "came")
    paid = {View.SCHEDULED: came[True], View.UNSCHEDULED: came[False], View.PROMISED: promised}
    checks = [Check(view, _sum(earlier, view), paid[view]) for view in View]
    return Outlook(periods, everything, week_ago, checks)


def _period(rows: Sequence[Forecast]) -> Period:
    scheduled, unscheduled, promised = (_sum(rows, name) for name in View.values)
    return Period(rows[0].on, rows[-1].on, scheduled, unscheduled, promised)


def _sum(rows: Sequence[Forecast], name: str) -> Decimal:
    return sum((getattr(one, name) for one in rows), NOTHING)
