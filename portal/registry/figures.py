"""The figures of accounts on the business date, as :mod:`servicing.figures` defines them, and their columns."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from django.conf import settings

from portal.registry.models import Kind, Record
from portal.runtime.business_date import business_date
from servicing import Loan, Statement
from servicing.figures import (
    Figures,
    Part,
    PastDue,
    account_figures,
    add_past_due,
    days_past_due,
    is_closed_status,
)

ACCOUNTS: Final = (Kind.LOAN, Kind.LINE)
FIGURE_COLUMNS: Final = (
    "past_due",
    "past_due_rank",
    "flagged",
    "key_date",
    "due_amount",
    "remaining",
    "principal",
    "available",
    "oldest_unpaid_due",
    "days_past_due",
    "needs_check",
    "figures_good_through",
)
NOT_KNOWN_RANK: Final = Decimal(10) ** 11 - 1
"""The rank of an account that is past due by an amount that is not known: above all others."""


def figures_of(answer: object) -> Figures:
    """The figures of a loan's or a line's answer today; nothing is known of one that was never read."""
    account = answer if isinstance(answer, Loan | Statement) else None
    return account_figures(account, business_date(), closed=settings.CLOSED_STATUSES)


def figure_columns(figures: Figures) -> dict[str, Any]:
    """The columns that store the figures of an account."""
    due = figures.due_next
    return {
        "past_due": figures.past_due,
        "past_due_rank": rank(figures.past_due, is_late=figures.is_late),
        "flagged": figures.is_late,
        "key_date": due and due.day,
        "due_amount": due and due.amount,
        "remaining": figures.remaining,
        "principal": figures.principal,
        "available": figures.available,
        "oldest_unpaid_due": figures.oldest_unpaid_due,
        "days_past_due": figures.reported_days,
        "figures_good_through": figures.good_through,
    }


def rank(past_due: Decimal | None, *, is_late: bool) -> Decimal | None:
    """What orders the past due, worst first; None for all others."""
    if not is_late:
        return None
    return NOT_KNOWN_RANK if past_due is None else past_due


def days_of(record: Record) -> int | None:
    """The days past due of a saved account; of a borrower the most of any account."""
    today = business_date()
    if record.kind != Kind.BORROWER:
        return days_past_due(record.past_due, record.oldest_unpaid_due, record.days_past_due, today)
    of_loans = (today - record.oldest_unpaid_due).days if record.oldest_unpaid_due else None
    return max((days for days in (of_loans, record.days_past_due) if days is not None), default=None)


def part_of(record: Record) -> Part:
    """What a saved account adds to its borrower's past due."""
    is_closed = is_closed_status(record.status, settings.CLOSED_STATUSES)
    return Part(record.kind == Kind.LINE, record.past_due, days_of(record), record.flagged, is_closed)


def past_due_of(answers: Iterable[tuple[str, object]]) -> PastDue:
    """The past due total of answers, each with the kind of its account."""
    today = business_date()
    found = [(kind, figures_of(answer)) for kind, answer in answers]
    return add_past_due(
        Part(kind == Kind.LINE, one.past_due, one.days_past_due(today), one.is_late, one.is_closed)
        for kind, one in found
    )
