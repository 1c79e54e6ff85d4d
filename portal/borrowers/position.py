"""The position of a borrower over all accounts, from saved copies: five cards, and a row for each account.

Only figures of the same kind are added up, and a sum with a missing part is left out.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from portal.core.business_date import business_date
from portal.gateway.panels import Freshness
from portal.gateway.reading import LiveCopy
from portal.records.figures import old_copy_day, past_due_of, rank
from portal.records.models import Account
from servicing import Loan, Repayment, Statement
from servicing.figures import DueSince, Figures, PastDue
from servicing.schedules import total

SCHEDULED = "SCHEDULED"


class PayoffCard:
    """The payoff of all lines of credit together. The service gives none of loans."""

    def __init__(self, copies: Sequence[LiveCopy]) -> None:
        self.copies = copies
        self._answers = [one.answer for one in copies if isinstance(one.answer, Statement)]

    @property
    def payoff(self) -> Decimal | None:
        return self._sum("payoff_balance")

    @property
    def available(self) -> Decimal | None:
        return self._sum("available_credit")

    def _sum(self, name: str) -> Decimal | None:
        return total(getattr(one, name) for one in self._answers) if not self._unread else None

    @property
    def _unread(self) -> int:
        return len(self.copies) - len(self._answers)

    def why_no_sum(self) -> str:
        """Why a sum is missing: what it waits for, or the call that didn't provide a part of it, and when."""
        if self._unread and self._answers:
            return f"unknown until {self._unread} more {'is' if self._unread == 1 else 'are'} loaded"
        if self._unread:
            return "unknown until loaded"
        if len(self.copies) == 1:
            return str(self.copies[0].record.why_null)
        return "not totaled: the service doesn’t provide the balance of one"


class NextPayment(NamedTuple):
    due_date: date
    record: Account
    amount: Decimal | None


class LateAccount(NamedTuple):
    record: Account
    figures: Figures
    days: int | None


class LastRepayment(NamedTuple):
    """The latest repayment that is not just scheduled."""

    repayment: Repayment | None = None
    copy: LiveCopy | None = None
    """The list that it is in."""


class AccountRow(NamedTuple):
    """One loan or line in the table of accounts."""

    copy: LiveCopy
    days: int | None
    """Its days past due."""

    @property
    def autopay(self) -> bool | None:
        """Whether a loan has autopay; the service doesn't say it of a line."""
        return self.copy.answer.autopay_enabled if isinstance(self.copy.answer, Loan) else None


def worst_first(copies: Sequence[LiveCopy]) -> list[LiveCopy]:
    """The accounts, the largest past due amount first; then those past due by an amount that isn't known."""

    def place(one: LiveCopy) -> tuple[bool, Decimal]:
        ranked = rank(one.figures.past_due, is_late=one.figures.is_late)
        return ranked is not None, ranked or Decimal(0)

    return sorted(copies, key=place, reverse=True)


class Position:
    """The cards, each computed when shown."""

    def __init__(
        self,
        loans: Sequence[LiveCopy],
        lines: Sequence[LiveCopy],
        lists: Sequence[LiveCopy],
        *,
        loads_itself: bool = False,
    ) -> None:
        self.payoff = PayoffCard(lines)
        self.accounts, self._lists, self._today = [*loans, *lines], lists, business_date()
        self.fresh = Freshness([*loans, *lines, *lists], has_link=False, loads_itself=loads_itself)

    @cached_property
    def rows(self) -> list[AccountRow]:
        return [AccountRow(one, one.figures.days_past_due(self._today)) for one in worst_first(self.accounts)]

    @cached_property
    def next_payment(self) -> NextPayment | None:
        """The earliest upcoming payment, from loan schedules and line statements."""
        payments = [found for one in self.accounts if (found := self._next_payment_of(one))]
        return min(payments, key=lambda payment: payment.due_date, default=None)

    def _next_payment_of(self, copy: LiveCopy) -> NextPayment | None:
        due = copy.figures.due_next
        return None if copy.figures.is_closed or not due else NextPayment(due.day, copy.record, due.amount)

    @cached_property
    def past_due(self) -> PastDue:
        """The past due total over all open accounts."""
        return past_due_of((one.record.kind, one.figures) for one in self.accounts)

    @property
    def is_partly_paid(self) -> bool:
        """Whether a part of the past due sum may be paid."""
        return any(one.record.is_partly_paid for one in self.late_accounts)

    @cached_property
    def old_late_copy(self) -> date | None:
        """The business date of the oldest answer about a past due account, unless that is today."""
        return min(filter(None, (old_copy_day(one.record) for one in self.late_accounts)), default=None)

    @cached_property
    def late_accounts(self) -> list[LateAccount]:
        """The past due accounts, oldest first."""
        found = [
            LateAccount(one.copy.record, one.copy.figures, one.days)
            for one in self.rows
            if one.copy.figures.is_late
        ]
        return sorted(found, key=lambda one: one.days or 0, reverse=True)

    @cached_property
    def due_since(self) -> list[tuple[Account, DueSince]]:
        """The accounts with something that fell due since their copies, oldest first."""
        found = [
            (one.record, since)
            for one in self.accounts
            if (since := one.figures.due_since) and not one.figures.is_closed
        ]
        return sorted(found, key=lambda one: one[1].day)

    @cached_property
    def due_since_amount(self) -> Decimal | None:
        """The sum of what fell due since the copies, as far as it is known."""
        known = [since.amount for _, since in self.due_since if since.amount is not None]
        return sum(known, Decimal(0)) if known else None

    @property
    def due_since_unknown(self) -> int:
        """The number of accounts of which it isn't known how much fell due since their copies."""
        return sum(since.amount is None for _, since in self.due_since)

    @cached_property
    def named_accounts(self) -> list[LiveCopy]:
        named = {one.record.uuid for one in self.late_accounts[:1]}
        if self.next_payment:
            named.add(self.next_payment.record.uuid)
        if self.last_repayment.copy:
            named.add(self.last_repayment.copy.record.uuid)
        return [one for one in self.accounts if one.record.uuid in named]

    @cached_property
    def last_repayment(self) -> LastRepayment:
        past = [
            (repayment.effective_date, LastRepayment(repayment, one))
            for one in self._lists
            for repayment in one.repayments
            if repayment.effective_date
            and repayment.effective_date <= self._today
            and (repayment.status or "").upper() != SCHEDULED
        ]
        return max(past, key=lambda item: item[0])[1] if past else LastRepayment()
