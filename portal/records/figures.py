"""The figures of accounts on the business date, as :mod:`servicing.figures` defines them, and their columns."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeGuard

from django.conf import settings
from django.db.models import Q

from portal.core.business_date import business_date, business_date_at
from portal.records.models import Account, Answered, Borrower, Kind, PastDueChange, Saved
from servicing import Loan, Repayment, Statement, consistency
from servicing.figures import (
    AGING_DAYS,
    Aging,
    DueSince,
    Figures,
    NotKnown,
    Part,
    PastDue,
    account_figures,
    add_past_due,
    days_past_due,
    is_closed_status,
    is_partly_paid,
)
from servicing.schedules import schedule_of

ACCOUNTS: Final = (Kind.LOAN, Kind.LINE)
MAX_DIGITS: Final = 15
"""The digits of a number that are exact on SQLite: 13 before the decimal point and 2 after it, or 11 and 4."""
CENT: Final = Decimal("0.01")
PLACES: Final = Decimal("0.0001")
NOT_KNOWN_RANK: Final = -(Decimal(10) ** 14)
"""The rank of an account that is past due by an unknown amount: below all others."""


def is_account(record: Saved) -> TypeGuard[Account]:
    return record.kind in ACCOUNTS


def figures_of(answer: object, copied_on: date | None) -> Figures:
    """Today's figures of a loan's or a line's answer from this business date; all unknown without an answer."""
    account = answer if isinstance(answer, Loan | Statement) else None
    return account_figures(account, business_date(), copied_on=copied_on, closed=settings.CLOSED_STATUSES)


def copy_day(record: Answered) -> date | None:
    if record.answer_day or not record.answer_at:
        return record.answer_day
    return business_date_at(record.answer_at)


def old_copy_day(record: Account) -> date | None:
    """The business date of a record's answer, unless that is today."""
    day = copy_day(record)
    return day if day and day < business_date() else None


def figure_columns(figures: Figures) -> dict[str, Any]:
    """The columns that store an account's figures."""
    due, since, past_due = figures.due_next, figures.due_since, stored_amount(figures.past_due)
    return {
        "past_due": past_due,
        "past_due_rank": rank(past_due, is_late=figures.is_late),
        "is_past_due": figures.is_late,
        "is_closed": figures.is_closed,
        "next_due_on": due and due.day,
        "due_amount": due and stored_amount(due.amount),
        "remaining": stored_amount(figures.remaining),
        "principal": stored_amount(figures.principal),
        "available": stored_amount(figures.available),
        "oldest_unpaid_due": figures.oldest_unpaid_due,
        "due_since_number": since and since.number,
        "due_since_amount": since and stored_amount(since.amount),
        "due_since_on": since and since.day,
        "has_no_schedule_yet": figures.why_not_known == NotKnown.NO_SCHEDULE_YET,
        "days_past_due": figures.reported_days,
        "figures_good_through": figures.good_through,
    }


def repayment_columns(
    answer: Loan | Statement, copied_on: date | None, repayments: Sequence[Repayment] | None
) -> dict[str, Any]:
    """The columns that depend on an account and its repayments (None if never read)."""
    today = business_date()
    return {
        "needs_check": bool(consistency.check_account(answer, repayments, copied_on or today)),
        "is_partly_paid": isinstance(answer, Loan)
        and is_partly_paid(
            figures_of(answer, copied_on).oldest_unpaid_due, schedule_of(answer, today), repayments or ()
        ),
    }


def stored_amount(value: Decimal | None) -> Decimal | None:
    """The amount as every database can store it: four decimals, two if very large, None if too large."""
    if value is None or abs(value) >= consistency.MAX_AMOUNT:
        return None
    rounded = value.quantize(PLACES)
    return rounded if len(rounded.normalize().as_tuple().digits) <= MAX_DIGITS else value.quantize(CENT)


def rank(past_due: Decimal | None, *, is_late: bool) -> Decimal | None:
    """The sort key of past due accounts, worst first; None for all others."""
    if not is_late:
        return None
    return NOT_KNOWN_RANK if past_due is None else past_due


class Lateness(NamedTuple):
    """Whether an account's figures say that it is past due."""

    past_due: Decimal | None
    is_late: bool

    @classmethod
    def of(cls, record: Account) -> "Lateness":
        return cls(record.past_due, record.is_past_due)

    @property
    def owes_nothing(self) -> bool:
        """Whether it is certain that nothing is past due."""
        return not self.is_late and self.past_due is not None and self.past_due <= 0


def save_changes(accounts: Iterable[tuple[Account, Lateness]]) -> None:
    """Save which of these accounts fell past due or were cured since their previous figures."""
    changes = []
    for record, before in accounts:
        now = Lateness.of(record)
        if (before.owes_nothing and now.is_late) or (before.is_late and now.owes_nothing):
            changes.append(PastDueChange(record=record, day=business_date(), is_cured=now.owes_nothing))
    PastDueChange.objects.bulk_create(changes)


class SavedAccount(NamedTuple):
    """The columns of an account that go into its borrower's totals."""

    kind: str
    status: str
    past_due: Decimal | None
    is_past_due: bool
    oldest_unpaid_due: date | None
    days_past_due: int | None
    due_since_number: int | None
    due_since_amount: Decimal | None
    due_since_on: date | None
    has_no_schedule_yet: bool | None
    answer_day: date | None


def due_since_of(account: "Account | SavedAccount") -> DueSince | None:
    if not account.due_since_on or not account.due_since_number:
        return None
    return DueSince(account.due_since_number, account.due_since_amount, account.due_since_on)


def days_of(record: Account | Borrower) -> int | None:
    """The days past due of a saved account; for a borrower, the maximum of its accounts."""
    today = business_date()
    if isinstance(record, Account):
        return days_past_due(record.past_due, record.oldest_unpaid_due, record.days_past_due, today)
    of_loans = (today - record.oldest_unpaid_on).days if record.oldest_unpaid_on else None
    return max((days for days in (of_loans, record.days_past_due) if days is not None), default=None)


def aging_of_kinds(kinds: Sequence[Kind], bucket: Aging) -> Q:
    """The condition for accounts of these kinds in an aging bucket."""
    if len(kinds) == 1:
        return aging_condition(kinds[0], bucket)
    return reduce(or_, (Q(kind=kind) & aging_condition(kind, bucket) for kind in kinds))


def aging_condition(kind: Kind, bucket: Aging) -> Q:
    """The condition for accounts of a kind in an aging bucket, equivalent to :func:`servicing.figures.aging`.

    For a loan the oldest unpaid due date decides alone, because it exists exactly if something is past due.
    """
    owes, owes_nothing, unknown = Q(past_due__gt=0), Q(past_due__lte=0), Q(past_due__isnull=True)
    if bucket in AGING_DAYS and bucket != Aging.CURRENT:
        first, last = AGING_DAYS[bucket]
        if kind == Kind.LINE:
            days = Q(days_past_due__gte=first) & (Q() if last is None else Q(days_past_due__lte=last))
            return days & (unknown | owes)
        today = business_date()
        due = Q(oldest_unpaid_due__lte=today - timedelta(days=first))
        return due & (Q() if last is None else Q(oldest_unpaid_due__gte=today - timedelta(days=last)))
    if kind == Kind.LOAN:
        return Q(oldest_unpaid_due__isnull=True) & (owes_nothing if bucket == Aging.CURRENT else unknown)
    no_days = Q(days_past_due__isnull=True)
    if bucket == Aging.CURRENT:
        return (Q(days_past_due=0) & (unknown | owes_nothing)) | (no_days & owes_nothing)
    contradicts = Q(days_past_due__lte=0) & owes | Q(days_past_due__gt=0) & owes_nothing
    return no_days & (unknown | owes) | contradicts | Q(days_past_due__lt=0)


def parts_of(accounts: Iterable[SavedAccount], today: date) -> Iterator[Part]:
    """What saved accounts add to their borrower's past due total."""
    for one in accounts:
        yield Part(
            is_line=one.kind == Kind.LINE,
            past_due=one.past_due,
            days=days_past_due(one.past_due, one.oldest_unpaid_due, one.days_past_due, today),
            is_late=one.is_past_due,
            is_closed=is_closed_status(one.status, settings.CLOSED_STATUSES),
            due_since=due_since_of(one),
            has_no_schedule_yet=bool(one.has_no_schedule_yet),
        )


def past_due_of(accounts: Iterable[tuple[str, Figures]]) -> PastDue:
    today = business_date()
    return add_past_due(
        Part(
            is_line=kind == Kind.LINE,
            past_due=one.past_due,
            days=one.days_past_due(today),
            is_late=one.is_late,
            is_closed=one.is_closed,
            due_since=one.due_since,
            has_no_schedule_yet=one.why_not_known == NotKnown.NO_SCHEDULE_YET,
        )
        for kind, one in accounts
    )
