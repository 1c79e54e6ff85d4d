"""How loans and lines change: drawn, billed, paid, paid back, aged. Hides their bookkeeping.

Functions change the record they are given and store nothing. What a record must remember besides the
interface's fields is in its ``private`` part: the terms, what is due, the activity of the running month, and
``due_on``, the next day on which something happens to it.
"""

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

from servicing.sandbox import shapes
from servicing.sandbox.lending import (
    ZERO,
    Installment,
    Split,
    add_months,
    allocate,
    days_past_due,
    interest_for,
    minimum_payment,
    money,
    schedule,
)
from servicing.sandbox.store import Record

DAYS_TO_PAY = 10
DAYS_TO_CLOSE_CREDIT = 30


def opened(**terms: Any) -> dict[str, Any]:
    """The private part of a new account: its terms (``product`` among them), and no payments yet."""
    return terms | {"payments": 0, "planned": None}


def due_on(day: date | None) -> dict[str, str | None]:
    """The private field that brings a record up on a day, or no more."""
    return {"due_on": day.isoformat() if day else None}


# Either kind of account


def pay(account: Record, amount: Decimal, on: date) -> Split:
    """Use a payment that came in."""
    return pay_loan(account, amount, on) if account.kind == "loan" else pay_line(account, amount, on)


def take_back(account: Record, split: Split, on: date) -> None:
    """A payment was returned: what it paid is owed again."""
    if account.kind == "loan":
        _take_back_installment(account, split, on)
    else:
        _take_back_from_line(account, split, on)


def age(account: Record, today: date) -> None:
    """Bring what follows from the day up to date."""
    if account.kind == "loan":
        age_loan(account, today)
    else:
        age_line(account, today)


def next_payment(account: Record) -> tuple[date | None, Decimal]:
    """When and how much is drawn from the borrower's bank next, if it is drawn automatically."""
    if account.kind == "line":
        dues = account.private["dues"] if account.private["autopay"] else []
        amount = account.body["payment_amount_due"]
        return (date.fromisoformat(dues[-1]["due"]), amount) if dues else (None, ZERO)
    row = next_installment(account) if account.body["autopay_enabled"] else None
    return (row.due, row.total) if row else (None, ZERO)


def principal_left(account: Record) -> Decimal:
    """The principal still owed."""
    if account.kind == "line":
        return money(account.body["principal_balance"])
    paid = len(account.private["paid_on"])
    return plan(account)[paid - 1].balance if paid else money(Decimal(account.body["amount"]))


# Loans


def plan(loan: Record) -> tuple[Installment, ...]:
    """The schedule a loan was opened with."""
    return schedule(
        money(Decimal(loan.body["amount"])),
        Decimal(loan.body["interest_rate"]),
        loan.private["installments"],
        opened=date.fromisoformat(loan.body["opening_date"]),
    )


def next_installment(loan: Record) -> Installment | None:
    """The oldest installment that is not paid."""
    rows = plan(loan)
    paid = len(loan.private["paid_on"])
    return rows[paid] if paid < len(rows) else None


def pay_loan(loan: Record, amount: Decimal, on: date) -> Split:
    """Use a payment for the oldest installment; it counts as paid when it is covered."""
    row = next_installment(loan)
    if row is None:
        return allocate(amount, interest=ZERO, principal=ZERO)
    if amount >= row.total:
        loan.private["paid_on"].append(on.isoformat())
    age_loan(loan, on)
    return allocate(amount, interest=row.interest, principal=row.principal)


def _take_back_installment(loan: Record, split: Split, on: date) -> None:
    """The last installment is owed again, if this payment had covered it."""
    paid_on = loan.private["paid_on"]
    if paid_on and split.principal >= plan(loan)[len(paid_on) - 1].principal:
        paid_on.pop()
    age_loan(loan, on)


def age_loan(loan: Record, today: date) -> None:
    """Bring installments and delinquency up to the day."""
    rows, paid_on = plan(loan), loan.private["paid_on"]
    shape = shapes.INSTALLMENTS[loan.private["shape"]]
    loan.body["installments"] = [
        shape(row, amount=loan.body["amount"], paid_on=paid, today=today)
        for row, paid in zip(rows, paid_on + [None] * (len(rows) - len(paid_on)), strict=True)
    ]
    unpaid = [row.due for row in rows[len(paid_on) :]]
    loan.body["delinquent"] = days_past_due(unpaid, today) > 0


# Lines of credit


def draw(line: Record, amount: Decimal, on: date, note: str = "Advance") -> None:
    """Lend an amount on the line."""
    line.body["principal_balance"] = money(line.body["principal_balance"] + amount)
    _note(line, on, note, amount)
    age_line(line, on)


def pay_line(line: Record, amount: Decimal, on: date) -> Split:
    """Use a payment: interest first, then principal; the rest waits in suspense."""
    body = line.body
    split = allocate(amount, interest=body["interest_balance"], principal=body["principal_balance"])
    body["interest_balance"] = money(body["interest_balance"] - split.interest)
    body["principal_balance"] = money(body["principal_balance"] - split.principal)
    body["suspense_balance"] = money(body["suspense_balance"] + split.suspense)
    _lower_dues(line, amount)
    _note(line, on, "Payment, thank you", -amount)
    age_line(line, on)
    return split


def _take_back_from_line(line: Record, split: Split, on: date) -> None:
    """Everything the payment paid is owed again, and due at once."""
    body = line.body
    amount = split.interest + split.principal + split.suspense
    body["interest_balance"] = money(body["interest_balance"] + split.interest)
    body["principal_balance"] = money(body["principal_balance"] + split.principal)
    body["suspense_balance"] = money(max(body["suspense_balance"] - split.suspense, ZERO))
    line.private["dues"].insert(0, {"due": on.isoformat(), "amount": amount})
    _note(line, on, "Payment returned", amount)
    age_line(line, on)


def bill(line: Record, on: date) -> dict[str, Any]:
    """Close the month: charge interest, ask for the minimum payment, give the statement's contents."""
    body, private = line.body, line.private
    days = (on - date.fromisoformat(private["billed_on"])).days
    interest = interest_for(body["principal_balance"], Decimal(private["rate"]), days)
    if interest:
        body["interest_balance"] = money(body["interest_balance"] + interest)
        _note(line, on, f"Interest, {days} days", interest)
    minimum = minimum_payment(body["principal_balance"], interest)
    still_due = sum((due["amount"] for due in private["dues"]), ZERO)
    asked = min(minimum, _owed(line) - still_due)
    if asked > 0:
        due = on + timedelta(days=DAYS_TO_PAY)
        private["dues"].append({"due": due.isoformat(), "amount": money(asked)})
    body["next_billing_date"] = add_months(on, 1).isoformat()
    private |= due_on(add_months(on, 1))
    age_line(line, on)
    return close_month(line, on)


def close_month(line: Record, on: date) -> dict[str, Any]:
    """The contents of a statement over the activity since the last one; balances stay as they are."""
    body, private = line.body, line.private
    waiting = sorted(private["activity"], key=lambda entry: str(entry["on"]))
    activity = [entry for entry in waiting if entry["on"] <= on.isoformat()]
    totals = accumulate((entry["amount"] for entry in activity), initial=private["opening_balance"])
    balances = [money(total) for total in totals]
    shown = ("payment_amount_due", "payment_due_date", "past_due_balance", "credit_limit", "available_credit")
    contents = {
        "billing_date": on.isoformat(),
        "period_start": private["billed_on"],
        "opening_balance": balances[0],
        "closing_balance": balances[-1],
        "rate": private["rate"],
        "activity": [
            entry | {"balance": balance} for entry, balance in zip(activity, balances[1:], strict=True)
        ],
        **{name: body[name] for name in shown},
    }
    private["activity"] = waiting[len(activity) :]
    private |= {"billed_on": on.isoformat(), "opening_balance": balances[-1]}
    return contents


def age_line(line: Record, today: date) -> None:
    """Bring what follows from the balances and from the day up to date."""
    body, dues = line.body, line.private["dues"]
    days = [date.fromisoformat(due["due"]) for due in dues]
    overdue = [due["amount"] for due, day in zip(dues, days, strict=True) if day < today]
    body["payoff_balance"] = money(max(_owed(line) - body["suspense_balance"], ZERO))
    body["days_past_due"] = days_past_due(days, today)
    body["past_due_balance"] = money(sum(overdue, ZERO))
    body["payment_amount_due"] = money(sum((due["amount"] for due in dues), ZERO))
    body["payment_due_date"] = max(days).isoformat() if days else None
    body["current_credit"] = money(max(body["credit_limit"] - body["principal_balance"], ZERO))
    closed = body["days_past_due"] > DAYS_TO_CLOSE_CREDIT
    body["available_credit"] = ZERO if closed else money(max(body["credit_limit"] - _owed(line), ZERO))


def _owed(line: Record) -> Decimal:
    return money(line.body["principal_balance"] + line.body["interest_balance"])


def _lower_dues(line: Record, paid: Decimal) -> None:
    """Take a payment off what is due, the oldest first."""
    for due in line.private["dues"]:
        part = min(paid, due["amount"])
        due["amount"] = money(due["amount"] - part)
        paid -= part
    line.private["dues"] = [due for due in line.private["dues"] if due["amount"] > 0]


def _note(line: Record, on: date, note: str, amount: Decimal) -> None:
    line.private["activity"].append({"on": on.isoformat(), "note": note, "amount": money(amount)})
