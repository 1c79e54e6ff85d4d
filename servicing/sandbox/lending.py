"""Lending arithmetic and the moves of a repayment, as pure functions of Decimal and dates.

Rates are percent a year; every amount of money is rounded to the cent, half up.
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

LARGEST_LOAN = Decimal(5_000_000)
LARGEST_LINE = Decimal(500_000)


def money(value: Decimal) -> Decimal:
    """Rounded to the cent."""
    with localcontext(prec=60):
        return value.quantize(CENT, ROUND_HALF_UP)


def add_months(day: date, months: int) -> date:
    """The same day some months later, or the last day of a month that is too short."""
    index = day.year * MONTHS + day.month - 1 + months
    year, month = divmod(index, MONTHS)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


# Loans


@dataclass(frozen=True, kw_only=True)
class Installment:
    """One row of a schedule; ``balance`` is the principal still owed after it."""

    number: int
    due: date
    principal: Decimal
    interest: Decimal
    balance: Decimal

    @property
    def total(self) -> Decimal:
        """What is to be paid."""
        return self.principal + self.interest


def level_payment(principal: Decimal, rate: Decimal, months: int) -> Decimal:
    """The equal monthly payment that repays the principal with interest."""
    monthly = rate / 100 / MONTHS
    if not monthly:
        return money(principal / months)
    return money(principal * monthly / (1 - (1 + monthly) ** -months))


@lru_cache(maxsize=256)
def schedule(principal: Decimal, rate: Decimal, months: int, *, opened: date) -> tuple[Installment, ...]:
    """A level schedule, first due a month after opening; the last installment takes what rounding left."""
    payment = level_payment(principal, rate, months) if months else ZERO
    rows: list[Installment] = []
    balance = principal
    for number in range(1, months + 1):
        interest = money(balance * rate / 100 / MONTHS)
        part = balance if number == months else min(payment - interest, balance)
        balance -= part
        due = add_months(opened, number)
        rows.append(Installment(number=number, due=due, principal=part, interest=interest, balance=balance))
    return tuple(rows)


def apr(amount: Decimal, fee: Decimal, payment: Decimal, months: int) -> Decimal:
    """The yearly rate that makes the payments worth what is paid out (amount less fee), to three places."""
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
    """How a payment was used."""

    fees: Decimal
    interest: Decimal
    principal: Decimal
    suspense: Decimal

    def as_dict(self) -> dict[str, Decimal]:
        """By the names the interface gives to the parts."""
        return asdict(self)


def allocate(amount: Decimal, *, fees: Decimal = ZERO, interest: Decimal, principal: Decimal) -> Split:
    """Fees first, then interest, then principal; what is left over waits in suspense."""
    parts = []
    for owed in (fees, interest, principal):
        part = min(amount, owed)
        parts.append(part)
        amount -= part
    return Split(fees=parts[0], interest=parts[1], principal=parts[2], suspense=amount)


SETTLES = {"succeed": "SUCCEEDED", "fail": "FAILED", "reverse": "FAILED_AFTER_SUCCESS"}
MOVES = {"SCHEDULED": ("succeed", "fail"), "SUCCEEDED": ("reverse",)}


def moved(status: str, move: str) -> str:
    """The status of a repayment after a move; ValueError when the move is not possible."""
    if move not in MOVES.get(status, ()):
        raise ValueError(f"a repayment that is {status} cannot {move}")
    return SETTLES[move]


# Lines of credit


def interest_for(principal: Decimal, rate: Decimal, days: int) -> Decimal:
    """Simple interest for some days of a 365-day year."""
    return money(principal * rate / 100 * days / 365)


def minimum_payment(principal: Decimal, interest: Decimal) -> Decimal:
    """The month's interest and a fiftieth of the principal, at least 25 but never more than everything."""
    return min(max(money(principal / 50) + interest, Decimal("25.00")), principal + interest)


# Decisions


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What one offer promises."""

    amount: Decimal
    term: int
    interest_rate: Decimal
    origination_fee: Decimal
    apr: Decimal


def refusals(amount: Decimal, largest: Decimal) -> list[str]:
    """Why an application is rejected; empty when it is approved."""
    if amount <= largest:
        return []
    return [
        f"The requested amount is above the limit of {largest:,} for one borrower.",
        "The cash flow shown does not cover the payments on this amount.",
    ]


def offers(amount: Decimal) -> list[Terms]:
    """One to four ways to borrow: more from 1,000, 10,000 and 25,000 on, two from 250,000 on."""
    thresholds = (Decimal(1_000), Decimal(10_000), Decimal(25_000))
    choices = 1 + sum(amount >= threshold for threshold in thresholds)
    if amount >= 250_000:
        choices = 2
    return [_terms(amount, months) for months in (12, 24, 36, 60)[:choices]]


def _terms(amount: Decimal, months: int) -> Terms:
    """Dearer for smaller amounts and for longer terms."""
    base = Decimal("11.25") if amount < 10_000 else Decimal("8.75") if amount < 100_000 else Decimal("7.5")
    rate = base + Decimal(months) / 48
    fee = money(amount * Decimal("0.01") if months <= 24 else amount * Decimal("0.015"))
    yearly = apr(amount, fee, level_payment(amount, rate, months), months)
    return Terms(amount=amount, term=months, interest_rate=rate, origination_fee=fee, apr=yearly)
