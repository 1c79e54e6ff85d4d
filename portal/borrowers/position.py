"""The position of a borrower over all accounts, from saved copies: the past due amount, and four cards.

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
from portal.ui import wording
from servicing import Loan, Repayment, Statement
from servicing.figures import Figures, PastDue, percent_of_limit
from servicing.schedules import total

SCHEDULED = "SCHEDULED"
MAX_LATE_NAMED = 3


class AccountsCard:
    """All loans, or all lines of credit, together. Closed ones don't count."""

    def __init__(self, copies: Sequence[LiveCopy]) -> None:
        self.copies, self.count = copies, len(copies)
        counted = [one for one in copies if not one.figures.is_closed]
        self.counted, self.closed = len(counted), self.count - len(counted)
        self.answers = [one.answer for one in counted if isinstance(one.answer, (Loan, Statement))]

    def _sum(self, name: str) -> Decimal | None:
        is_whole = len(self.answers) == self.counted
        return total(getattr(answer, name) for answer in self.answers) if is_whole else None

    def why_no_sum(self) -> str:
        """Why a sum is missing: what it waits for, or the call that didn't provide a part of it, and when."""
        unread = self.counted - len(self.answers)
        if not self.counted:
            return "closed" if self.count == 1 else "all are closed"
        if unread and self.answers:
            return f"unknown until {unread} more {'is' if unread == 1 else 'are'} loaded"
        if unread:
            return "unknown until loaded"
        if self.count == 1:
            return str(self.copies[0].record.why_null)
        part = "amount" if isinstance(self, LoansCard) else "balance"
        return f"not totaled: the service doesn’t provide the {part} of one"


class LoansCard(AccountsCard):
    @property
    def amount(self) -> Decimal | None:
        return self._sum("amount")

    @property
    def delinquent(self) -> str:
        return self._count([getattr(loan, "delinquent", None) is True for loan in self.answers], "delinquent")

    @property
    def active(self) -> str:
        return self._count(
            [(getattr(loan, "status", None) or "").upper() == "ACTIVE" for loan in self.answers], "active"
        )

    def _count(self, found: Sequence[bool], word: str) -> str:
        """The count and the word, or only the word if there is one account; empty for none."""
        number = sum(found)
        return "" if not number else word.capitalize() if self.count == 1 else f"{number} {word}"


class LinesCard(AccountsCard):
    @property
    def limit(self) -> Decimal | None:
        return self._sum("credit_limit")

    @property
    def available(self) -> Decimal | None:
        return self._sum("available_credit")

    @property
    def principal(self) -> Decimal | None:
        return self._sum("principal_balance")

    @property
    def percent_of_limit(self) -> int | None:
        return wording.whole_percent(percent_of_limit(self.principal, self.limit))


class NextPayment(NamedTuple):
    due_date: date
    record: Account
    amount: Decimal | None
    autopay: bool | None


class LastRepayment(NamedTuple):
    """The latest repayment that is not just scheduled."""

    repayment: Repayment | None = None
    copy: LiveCopy | None = None
    """The list that it is in."""


class Position:
    """The four cards, each computed when shown."""

    def __init__(
        self,
        loans: Sequence[LiveCopy],
        lines: Sequence[LiveCopy],
        lists: Sequence[LiveCopy],
        *,
        loads_itself: bool = False,
    ) -> None:
        self.loans, self.lines = LoansCard(loans), LinesCard(lines)
        self.accounts, self._lists, self._today = [*loans, *lines], lists, business_date()
        self.fresh = Freshness([*loans, *lines, *lists], has_link=False, loads_itself=loads_itself)

    @cached_property
    def next_payment(self) -> NextPayment | None:
        """The earliest upcoming payment, from loan schedules and line statements."""
        payments = [found for one in self.accounts if (found := self._next_payment_of(one))]
        return min(payments, key=lambda payment: payment.due_date, default=None)

    def _next_payment_of(self, copy: LiveCopy) -> NextPayment | None:
        figures = copy.figures
        if figures.is_closed or not figures.due_next:
            return None
        autopay = copy.answer.autopay_enabled if isinstance(copy.answer, Loan) else None
        return NextPayment(figures.due_next.day, copy.record, figures.due_next.amount, autopay)

    @cached_property
    def past_due(self) -> PastDue:
        """The past due total over all open accounts."""
        return past_due_of((one.record.kind, one.figures) for one in self.accounts)

    @cached_property
    def old_late_copy(self) -> date | None:
        """The business date of the oldest answer about a past due account, unless that is today."""
        found = (old_copy_day(one.record) for one in self.accounts if one.figures.is_late)
        return min(filter(None, found), default=None)

    @cached_property
    def late_accounts(self) -> list[tuple[Account, Figures, int | None]]:
        """The past due accounts, worst first, with their figures and days."""
        found = [(one.record, one.figures) for one in self.accounts]
        late = [
            (record, figures, figures.days_past_due(self._today))
            for record, figures in found
            if figures.is_late
        ]
        return sorted(late, key=lambda one: rank(one[1].past_due, is_late=True) or 0, reverse=True)

    @cached_property
    def named_accounts(self) -> list[LiveCopy]:
        """The accounts whose figures the cards name."""
        named = {record.uuid for record, _, _ in self.late_accounts[:MAX_LATE_NAMED]}
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
