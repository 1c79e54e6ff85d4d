"""How loans and lines change: drawn, billed, paid, paid back, aged. Hides their bookkeeping.

Functions change the record they are given and store nothing. What a record must remember besides the
interface's fields (terms, what is still due, the activity of the running month) is in its ``private`` part.
"""

from datetime import date, timedelta
from decimal import Decimal
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

# Loans


def plan(loan: Record) -> list[Installment]:
    """The schedule a loan was opened with."""
    terms = loan.private
    return schedule(
        money(Decimal(loan.body["amount"])),
        Decimal(loan.body["interest_rate"]),
        terms["installments"],
        opened=date.fromisoformat(loan.body["opening_date"]),
    )


def next_installment(loan: Record) -> Installment | None:
    """The oldest installment that is not paid."""
    rows = plan(loan)
    paid = len(loan.private["paid_on"])
    return rows[paid] if paid < len(rows) else None


def pay_installment(loan: Record, on: date) -> None:
    """Mark the next installment as paid."""
    loan.private["paid_on"].append(on.isoformat())


def take_back_installment(loan: Record) -> None:
    """The last payment has been returned: its installment is owed again."""
    if loan.private["paid_on"]:
        loan.private["paid_on"].pop()


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


def pay_line(line: Record, amount: Decimal, on: date, note: str = "Payment, thank you") -> Split:
    """Use a payment: interest first, then principal; the rest waits in suspense."""
    body = line.body
    split = allocate(amount, interest=body["interest_balance"], principal=body["principal_balance"])
    body["interest_balance"] = money(body["interest_balance"] - split.interest)
    body["principal_balance"] = money(body["principal_balance"] - split.principal)
    body["suspense_balance"] = money(body["suspense_balance"] + split.suspense)
    _lower_dues(line, amount)
    _note(line, on, note, -amount)
    age_line(line, on)
    return split


def take_back_payment(line: Record, split: Split, on: date) -> None:
    """A payment was returned: everything it paid is owed again, and due at once."""
    body = line.body
    amount = split.interest + split.principal + split.suspense
    body["interest_balance"] = money(body["interest_balance"] + split.interest)
    body["principal_balance"] = money(body["principal_balance"] + split.principal)
    body["suspense_balance"] = money(max(body["suspense_balance"] - split.suspense, ZERO))
    line.private["dues"].insert(0, {"due": on.isoformat(), "amount": amount})
    _note(line, on, "Payment returned", amount)
    age_line(line, on)


def bill(line: Record, on: date) -> dict[str, Any]:
    """Close the month: charge interest, ask for the minimum payment, draw up the statement's contents."""
    body, private = line.body, line.private
    days = (on - date.fromisoformat(private["billed_on"])).days
    interest = interest_for(body["principal_balance"], Decimal(private["rate"]), days)
    if interest:
        body["interest_balance"] = money(body["interest_balance"] + interest)
        _note(line, on, f"Interest, {days} days", interest)
    minimum = minimum_payment(body["principal_balance"], body["interest_balance"])
    if minimum:
        _lower_dues(line, ZERO, keep=body["principal_balance"] + body["interest_balance"] - minimum)
        due = on + timedelta(days=DAYS_TO_PAY)
        private["dues"].append({"due": due.isoformat(), "amount": minimum})
    body["next_billing_date"] = add_months(on, 1).isoformat()
    age_line(line, on)
    return close_month(line, on)


def close_month(line: Record, on: date) -> dict[str, Any]:
    """The contents of a statement over the activity since the last one; balances stay as they are."""
    body, private = line.body, line.private
    contents = {
        "billing_date": on.isoformat(),
        "period_start": private["billed_on"],
        "opening_balance": private["opening_balance"],
        "closing_balance": money(body["principal_balance"] + body["interest_balance"]),
        "rate": private["rate"],
        "activity": private["activity"],
        **{name: body[name] for name in ("payment_amount_due", "payment_due_date", "past_due_balance")},
        **{name: body[name] for name in ("credit_limit", "available_credit", "suspense_balance")},
    }
    private |= {"billed_on": on.isoformat(), "activity": []}
    private["opening_balance"] = contents["closing_balance"]
    return contents


def age_line(line: Record, today: date) -> None:
    """Bring what follows from the balances and from the day up to date."""
    body, dues = line.body, line.private["dues"]
    days = [date.fromisoformat(due["due"]) for due in dues]
    overdue = [due["amount"] for due, day in zip(dues, days, strict=True) if day < today]
    owed = money(body["principal_balance"] + body["interest_balance"])
    body["payoff_balance"] = money(max(owed - body["suspense_balance"], ZERO))
    body["days_past_due"] = days_past_due(days, today)
    body["past_due_balance"] = money(sum(overdue, ZERO))
    body["payment_amount_due"] = money(sum((due["amount"] for due in dues), ZERO))
    body["payment_due_date"] = max(days).isoformat() if days else None
    body["current_credit"] = money(max(body["credit_limit"] - body["principal_balance"], ZERO))
    closed = body["days_past_due"] > DAYS_TO_CLOSE_CREDIT
    free = max(body["credit_limit"] - owed, ZERO)
    body["available_credit"] = ZERO if closed else money(free)


def _lower_dues(line: Record, paid: Decimal, *, keep: Decimal | None = None) -> None:
    """Take a payment off what is due, the oldest first; ``keep`` lowers the sum to at most that much."""
    dues = line.private["dues"]
    if keep is not None:
        paid = max(sum((due["amount"] for due in dues), ZERO) - keep, ZERO)
    for due in dues:
        part = min(paid, due["amount"])
        due["amount"] = money(due["amount"] - part)
        paid -= part
    line.private["dues"] = [due for due in dues if due["amount"] > 0]


def _note(line: Record, on: date, note: str, amount: Decimal) -> None:
    owed = money(line.body["principal_balance"] + line.body["interest_balance"])
    entry = {"on": on.isoformat(), "note": note, "amount": money(amount), "balance": owed}
    line.private["activity"].append(entry)
