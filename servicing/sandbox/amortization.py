"""Lending arithmetic and the status changes of a repayment, as pure functions of Decimal and dates.

Rates are percent per year; every amount of money is rounded to the cent, half up.
"""

import calendar
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache

CENT = Decimal("0.01")
ZERO = Decimal("0.00")
MONTHS = 12

MAX_LOAN_DOLLARS = Decimal(5_000_000)
MAX_LINE_DOLLARS = Decimal(500_000)


def money(value: Decimal) -> Decimal:
    """An amount rounded to the cent."""
    with localcontext(prec=60):
        return value.quantize(CENT, ROUND_HALF_UP)


def add_months(day: date, months: int) -> date:
    """The same day some months later, or the last day of a shorter month."""
    index = day.year * MONTHS + day.month - 1 + months
    year, month = divmod(index, MONTHS)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


# Loans


@dataclass(frozen=True, kw_only=True)
class Installment:
    """One row of a schedule; ``balance`` is the principal owed after it."""

    number: int
    due: date
    principal: Decimal
    interest: Decimal
    balance: Decimal

    @property
    def total(self) -> Decimal:
        """The amount to pay."""
        return self.principal + self.interest


def level_payment(principal: Decimal, rate: Decimal, months: int) -> Decimal:
    """The equal monthly payment that repays the principal with interest."""
    monthly = rate / 100 / MONTHS
    if not monthly:
        return money(principal / months)
    return money(principal * monthly / (1 - (1 + monthly) ** -months))


@lru_cache(maxsize=256)
def schedule(principal: Decimal, rate: Decimal, months: int, *, opened: date) -> tuple[Installment, ...]:
    """A schedule of equal payments, the first due a month after opening; the last one absorbs rounding.

    Raises `ValueError` if an installment would be less than a cent.
    """
    payment = level_payment(principal, rate, months) if months else ZERO
    rows: list[Installment] = []
    balance = principal
    for number in range(1, months + 1):
        interest = money(balance * rate / 100 / MONTHS)
        part = balance if number == months else min(payment - interest, balance)
        balance -= part
        due = add_months(opened, number)
        rows.append(Installment(number=number, due=due, principal=part, interest=interest, balance=balance))
    if any(row.total < CENT for row in rows):
        raise ValueError(f"{principal} can't be repaid in {months} payments of at least a cent.")
    return tuple(rows)


def _is_payable(principal: Decimal, rate: Decimal, months: int) -> bool:
    try:
        return bool(schedule(principal, rate, months, opened=date.min))
    except ValueError:
        return False


def apr(amount: Decimal, fee: Decimal, payment: Decimal, months: int) -> Decimal:
    """The yearly rate at which the payments are worth the amount paid out (less the fee), to three places."""
    low, high = Decimal(0), Decimal(1)
    for _ in range(40):
        monthly = (low + high) / 2
        worth = payment * (1 - (1 + monthly) ** -months) / monthly
        low, high = (monthly, high) if worth > amount - fee else (low, monthly)
    return (low * MONTHS * 100).quantize(Decimal("0.001"), ROUND_HALF_UP)


def days_past_due(unpaid: Iterable[date], today: date) -> int:
    """Days since the oldest unpaid due date, 0 when nothing is overdue."""
    oldest = min(unpaid, default=today)
    return max((today - oldest).days, 0)


# Payments


@dataclass(frozen=True, kw_only=True)
class Split:
    """The parts of a payment."""

    fees: Decimal
    interest: Decimal
    principal: Decimal
    suspense: Decimal

    def as_dict(self) -> dict[str, Decimal]:
        """The parts by their names in the interface."""
        return asdict(self)


def allocate(amount: Decimal, *, fees: Decimal = ZERO, interest: Decimal, principal: Decimal) -> Split:
    """Split a payment: fees first, then interest, then principal; the rest goes to suspense."""
    parts = []
    for owed in (fees, interest, principal):
        part = min(amount, owed)
        parts.append(part)
        amount -= part
    return Split(fees=parts[0], interest=parts[1], principal=parts[2], suspense=amount)


STATUS_AFTER = {"succeed": "SUCCEEDED", "fail": "FAILED", "reverse": "FAILED_AFTER_SUCCESS"}
ALLOWED_MOVES = {"SCHEDULED": ("succeed", "fail"), "SUCCEEDED": ("reverse",)}


def next_status(status: str, move: str) -> str:
    """The status of a repayment after a move; ``ValueError`` if the move is not possible."""
    if move not in ALLOWED_MOVES.get(status, ()):
        raise ValueError(f"a repayment that is {status} cannot {move}")
    return STATUS_AFTER[move]


# Lines of credit


def simple_interest(principal: Decimal, rate: Decimal, days: int) -> Decimal:
    """Simple interest for a number of days, in a year of 365 days."""
    return money(principal * rate / 100 * days / 365)


def minimum_payment(principal: Decimal, interest: Decimal) -> Decimal:
    """The month's interest and 2% of the principal, at least 25 dollars but at most all that is owed."""
    return min(max(money(principal / 50) + interest, Decimal("25.00")), principal + interest)


# Decisions


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of an offer."""

    amount: Decimal
    term: int
    interest_rate: Decimal
    origination_fee: Decimal
    apr: Decimal


def rejection_reasons(amount: Decimal, largest: Decimal) -> list[str]:
    """The reasons to reject an application; empty if it is approved."""
    if amount <= largest:
        return [] if offers(amount) else ["The requested amount is too small to be repaid monthly."]
    return [
        f"The requested amount is above the limit of {largest:,} for one borrower.",
        "The cash flow shown does not cover the payments on this amount.",
    ]


def offers(amount: Decimal) -> list[Terms]:
    """One to four offers: one more from 1,000, 10,000 and 25,000 dollars on, but two from 250,000 on.

    None for an amount that can't be repaid in cents.
    """
    thresholds = (Decimal(1_000), Decimal(10_000), Decimal(25_000))
    choices = 1 + sum(amount >= threshold for threshold in thresholds)
    if amount >= 250_000:
        choices = 2
    rates = {months: _rate(amount, months) for months in (12, 24, 36, 60)[:choices]}
    payable = {months: rate for months, rate in rates.items() if _is_payable(money(amount), rate, months)}
    return [_terms(amount, rate, months) for months, rate in payable.items()]


def _rate(amount: Decimal, months: int) -> Decimal:
    """The yearly rate. Smaller amounts and longer terms cost more."""
    base = Decimal("11.25") if amount < 10_000 else Decimal("8.75") if amount < 100_000 else Decimal("7.5")
    return base + Decimal(months) / 48


def _terms(amount: Decimal, rate: Decimal, months: int) -> Terms:
    fee = money(amount * Decimal("0.01") if months <= 24 else amount * Decimal("0.015"))
    yearly = apr(amount, fee, level_payment(amount, rate, months), months)
    return Terms(amount=amount, term=months, interest_rate=rate, origination_fee=fee, apr=yearly)
