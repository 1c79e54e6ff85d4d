"""What was due each week, what came, and what was returned."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db import transaction
from django.db.models import BooleanField, Case, Count, ExpressionWrapper, F, Q, QuerySet, When

from portal.portfolio.accounts import BookAccount
from portal.portfolio.models import AccountState, BookDay, Due, ReturnedPayment
from portal.portfolio.sums import add_sums, read_sum
from portal.records.models import Repayment
from portal.repayments.returns import returned_since
from portal.repayments.sums import is_collected, sum_of, was_scheduled, with_totals
from portal.ui import wording
from servicing.figures import NOTHING, ONE_DAY
from servicing.schedules import total

WEEKS: Final = 8
PAID_WITHIN: Final = timedelta(days=6)
"""A payment up to this long after its due date counts as the one that was due."""
PAYMENT_DAYS: Final = timedelta(days=60)
"""How long payments and returns of a day are still looked for: they are reported days later."""


# --- Written at night ---


def save_dues(
    accounts: Sequence[BookAccount], states: Iterable[AccountState], first: date, last: date
) -> None:
    """Save what of these accounts was still due when its day began, and what was paid of it so far."""
    new = [
        Due(kind=one.kind, uuid=one.uuid, day=one.due_next_on, amount=one.due_next_amount)
        for one in states
        if one.due_next_on
        and first <= one.due_next_on <= last
        and one.from_day < one.due_next_on
        and (one.to_day is None or one.to_day >= one.due_next_on - ONE_DAY)
    ]
    Due.objects.bulk_create(new, ignore_conflicts=True)
    # Those just before the recent ones may have used a payment that is recent.
    since = last - PAYMENT_DAYS
    dues = Due.objects.filter(
        uuid__in=[one.uuid for one in accounts], day__gte=since - PAID_WITHIN, amount__isnull=False
    )
    payments = _payments(accounts, since - PAID_WITHIN)
    changed = []
    for due in dues.order_by("day"):
        paid = _take(payments[due.kind, due.uuid], due)
        if due.paid != paid and due.day >= since:
            due.paid = paid
            changed.append(due)
    Due.objects.bulk_update(changed, ["paid"], batch_size=200)


def _take(payments: list[tuple[date, Decimal]], due: Due) -> Decimal:
    """Take the payments of a due from those of its account that no earlier due took; return what they paid of it."""
    paid, amount = NOTHING, due.amount or NOTHING
    for one in [one for one in payments if due.day <= one[0] <= due.day + PAID_WITHIN]:
        if paid >= amount:
            break
        payments.remove(one)
        paid += one[1]
    return min(paid, amount)


def _payments(
    accounts: Sequence[BookAccount], since: date
) -> dict[tuple[str, str], list[tuple[date, Decimal]]]:
    """The payments of each account that were collected since a day, oldest first."""
    keys = {one.pk: (one.kind, one.uuid) for one in accounts}
    found: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
    rows: Any = Repayment.objects.filter(
        is_collected(), account__in=list(keys), effective_on__gte=since, amount__gt=0
    ).order_by("effective_on", "pk")
    for pk, day, amount in rows.values_list("account_id", "effective_on", "amount"):
        found[keys[pk]].append((day, amount))
    return found


def save_returns(last: date) -> None:
    """Save what was returned on each of the recent days, by the day on which its return was reported."""
    since = last - PAYMENT_DAYS
    found = [(one, day) for one, day in returned_since(since, limit=None).payments if since < day <= last]
    keys: Any = Repayment.objects.filter(pk__in=[one.pk for one, _ in found], account__isnull=False)
    accounts = {pk: key for pk, *key in keys.values_list("pk", "account__kind", "account__uuid")}
    rows = [
        ReturnedPayment(day=day, kind=kind, uuid=uuid, repayment_uuid=one.uuid, amount=one.amount)
        for one, day in found
        for kind, uuid in [accounts.get(one.pk, ("", ""))]
    ]
    with transaction.atomic():
        ReturnedPayment.objects.filter(day__gt=since).delete()
        ReturnedPayment.objects.bulk_create(rows)
        for written in BookDay.objects.filter(day__gt=since):
            amounts = [one.amount for one in rows if one.day == written.day]
            written.returned, written.returned_number = total(amounts) if amounts else NOTHING, len(amounts)
            written.save(update_fields=["returned", "returned_number"])


# --- Read by the page ---


@dataclass
class Week:
    """Seven days that end on the weekday of the chosen day."""

    first: date
    last: date
    due: Decimal = NOTHING
    paid: Decimal = NOTHING
    """What came of it within a week of its due date."""
    collected: Decimal | None = NOTHING
    returned: Decimal | None = NOTHING
    """Both are None if an amount or a day isn't known."""
    has_lines: bool = False
    is_known: bool = False
    """Whether the book of the day before it was written, so that what was due is known."""
    not_known: int = 0
    """Dues without an amount."""

    @property
    def share(self) -> Decimal | None:
        """The share of what was due that came, in percent; None if nothing was due."""
        return self.paid * 100 / self.due if self.due else None

    @property
    def known_from(self) -> date:
        """The first day of which it is known what was due."""
        return self.first

    @property
    def words(self) -> str:
        return wording.days(self.first, self.last)


@dataclass
class TotalWeek(Week):
    due_from: date | None = None

    @property
    def known_from(self) -> date:
        return self.due_from or self.first

    @property
    def words(self) -> str:
        return f"{WEEKS} weeks"


@dataclass
class Cash:
    weeks: Sequence[Week]
    came: Mapping[bool, Decimal | None]
    """What was collected in the last week, scheduled before or not."""

    @property
    def rows(self) -> list[Week]:
        return [*self.weeks, self.sum]

    @property
    def is_loans_only(self) -> bool:
        """Whether what was due on lines isn't known in a week."""
        return any(one.is_known and not one.has_lines for one in self.weeks)

    @property
    def sum(self) -> Week:
        parts = [one for one in self.weeks if one.is_known]
        returned = [one.returned for one in self.weeks]
        return TotalWeek(
            self.weeks[0].first,
            self.weeks[-1].last,
            due=sum((one.due for one in parts), NOTHING),
            paid=sum((one.paid for one in parts), NOTHING),
            collected=total(one.collected for one in self.weeks),
            returned=total(returned),
            has_lines=all(one.has_lines for one in parts),
            is_known=bool(parts),
            not_known=sum(one.not_known for one in parts),
            due_from=parts[0].first if parts else None,
        )


def read(day: date, written: Mapping[date, BookDay]) -> Cash:
    weeks = [
        Week(day - timedelta(days=7 * number + 6), day - timedelta(days=7 * number))
        for number in reversed(range(WEEKS))
    ]
    span = (weeks[0].first, day)
    by_day = Due.objects.filter(day__range=span).order_by().values("day").annotate(number=Count("pk"))
    dues = {one["day"]: one for one in add_sums(by_day, "amount", "paid")}
    collected, came = _collected(span, weeks[-1].first)
    for week in weeks:
        days = [week.first + timedelta(days=number) for number in range(7)]
        before = written.get(week.first - ONE_DAY)
        week.is_known, week.has_lines = before is not None, bool(before and before.has_lines)
        found = [dues[one] for one in days if one in dues]
        week.due = sum((read_sum(one, "amount") for one in found), NOTHING)
        week.paid = sum((read_sum(one, "paid") for one in found), NOTHING)
        week.not_known = sum(one["number"] - one["amount_known"] for one in found)
        week.collected = total(collected.get(one, NOTHING) for one in days)
        week.returned = total(written[one].returned if one in written else None for one in days)
    return Cash(weeks, came)


def dues_between(first: date, last: date) -> QuerySet[Due]:
    """What was due on these days, the largest unpaid part first."""
    unpaid = (F("amount") - F("paid")).desc(nulls_last=True)
    return Due.objects.filter(day__range=(first, last)).order_by(unpaid, "-pk")


def returned_between(first: date, last: date) -> QuerySet[ReturnedPayment]:
    """What was reported as returned on these days, the latest first."""
    return ReturnedPayment.objects.filter(day__range=(first, last)).order_by("-day", "-pk")


def _collected(
    span: tuple[date, date], last_week: date
) -> tuple[dict[date, Decimal | None], dict[bool, Decimal | None]]:
    """What was collected on each day; and in the last week, scheduled before or not. None if an amount isn't known."""
    is_recent = When(effective_on__gte=last_week, then=ExpressionWrapper(was_scheduled(), BooleanField()))
    payments: Any = Repayment.objects.filter(is_collected(), effective_on__range=span).order_by()
    days: dict[date, list[Decimal | None]] = defaultdict(list)
    weeks: dict[bool, list[Decimal | None]] = defaultdict(list)
    split = payments.annotate(was_scheduled=Case(is_recent, default=False))
    for one in with_totals(split.values("effective_on", "was_scheduled"), Q()):
        amount = sum_of(one["wanted"], one["summed"], one["upper"], one["lower"])
        days[one["effective_on"]].append(amount)
        if one["effective_on"] >= last_week:
            weeks[one["was_scheduled"]].append(amount)
    came = {was: total(weeks[was]) if weeks[was] else NOTHING for was in (True, False)}
    return {day: total(amounts) for day, amounts in days.items()}, came
