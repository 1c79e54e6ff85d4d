"""Changes to loans and lines: draws, bills, payments, returns, aging. Hides their bookkeeping.

The functions change a record but do not store it. Data that the interface does not show are in its ``private`` part:
the terms, the amounts due, the activity of the current month, and ``due_on``, the next day with an event.
"""

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

from servicing.sandbox import shapes
from servicing.sandbox.amortization import (
    ZERO,
    Installment,
    Split,
    add_months,
    allocate,
    days_past_due,
    minimum_payment,
    money,
    schedule,
    simple_interest,
)
from servicing.sandbox.store import Record

DAYS_TO_PAY = 10
DAYS_TO_CLOSE_CREDIT = 30


def account_terms(**terms: Any) -> dict[str, Any]:
    """The private part of a new account: its terms, such as ``product``, and no payments."""
    return terms | {"payments": 0, "planned": None}


def due_on_field(day: date | None) -> dict[str, str | None]:
    """The private field with the day on which a record must be processed, if any."""
    return {"due_on": day.isoformat() if day else None}


# Either kind of account


def apply_payment(account: Record, amount: Decimal, on: date) -> Split:
    """Apply a payment to a loan or a line."""
    apply = apply_loan_payment if account.kind == "loan" else apply_line_payment
    return apply(account, amount, on)


def reverse_payment(account: Record, split: Split, on: date) -> None:
    """Reverse a returned payment: what it paid is owed again."""
    if account.kind == "loan":
        _reverse_installment(account, split, on)
    else:
        _reverse_line_payment(account, split, on)


def update_account(account: Record, today: date) -> None:
    """Update what depends on the date."""
    if account.kind == "loan":
        update_loan(account, today)
    else:
        update_line(account, today)


def next_payment(account: Record) -> tuple[date | None, Decimal]:
    """The date and amount of the next automatic payment; the date is None if there is none."""
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
    return loan_schedule(account)[paid - 1].balance if paid else money(Decimal(account.body["amount"]))


# Loans


def loan_schedule(loan: Record) -> tuple[Installment, ...]:
    """The original schedule of a loan."""
    return schedule(
        money(Decimal(loan.body["amount"])),
        Decimal(loan.body["interest_rate"]),
        loan.private["installments"],
        opened=date.fromisoformat(loan.body["opening_date"]),
    )


def next_installment(loan: Record) -> Installment | None:
    """The oldest unpaid installment."""
    rows = loan_schedule(loan)
    paid = len(loan.private["paid_on"])
    return rows[paid] if paid < len(rows) else None


def apply_loan_payment(loan: Record, amount: Decimal, on: date) -> Split:
    """Apply a payment to the oldest unpaid installment, which counts as paid if the amount covers it."""
    row = next_installment(loan)
    if row is None:
        return allocate(amount, interest=ZERO, principal=ZERO)
    if amount >= row.total:
        loan.private["paid_on"].append(on.isoformat())
    update_loan(loan, on)
    return allocate(amount, interest=row.interest, principal=row.principal)


def _reverse_installment(loan: Record, split: Split, on: date) -> None:
    """Mark the last paid installment as unpaid, if this payment had covered it."""
    paid_on = loan.private["paid_on"]
    if paid_on and split.principal >= loan_schedule(loan)[len(paid_on) - 1].principal:
        paid_on.pop()
    update_loan(loan, on)


def update_loan(loan: Record, today: date) -> None:
    """Update the installments and the delinquency of a loan."""
    rows, paid_on = loan_schedule(loan), loan.private["paid_on"]
    shape = shapes.INSTALLMENTS[loan.private["shape"]]
    loan.body["installments"] = [
        shape(row, amount=loan.body["amount"], paid_on=paid, today=today)
        for row, paid in zip(rows, paid_on + [None] * (len(rows) - len(paid_on)), strict=True)
    ]
    for installment in loan.body["installments"][loan.private.get("undated_from", len(rows)) :]:
        installment.update(dict.fromkeys(installment.keys() & shapes.DUE_DATES))
    unpaid = [row.due for row in rows[len(paid_on) :]]
    loan.body["delinquent"] = days_past_due(unpaid, today) > 0


# Lines of credit


def draw_on_line(line: Record, amount: Decimal, on: date, note: str = "Advance") -> None:
    """Lend an amount on the line."""
    line.body["principal_balance"] = money(line.body["principal_balance"] + amount)
    _add_activity(line, on, note, amount)
    update_line(line, on)


def apply_line_payment(line: Record, amount: Decimal, on: date) -> Split:
    """Apply a payment to a line: interest first, then principal; the rest goes to suspense."""
    body = line.body
    split = allocate(amount, interest=body["interest_balance"], principal=body["principal_balance"])
    body["interest_balance"] = money(body["interest_balance"] - split.interest)
    body["principal_balance"] = money(body["principal_balance"] - split.principal)
    body["suspense_balance"] = money(body["suspense_balance"] + split.suspense)
    _lower_dues(line, amount)
    _add_activity(line, on, "Payment, thank you", -amount)
    update_line(line, on)
    return split


def _reverse_line_payment(line: Record, split: Split, on: date) -> None:
    """Add everything that the payment had paid back to the balances, due immediately."""
    body = line.body
    amount = split.interest + split.principal + split.suspense
    body["interest_balance"] = money(body["interest_balance"] + split.interest)
    body["principal_balance"] = money(body["principal_balance"] + split.principal)
    body["suspense_balance"] = money(max(body["suspense_balance"] - split.suspense, ZERO))
    line.private["dues"].insert(0, {"due": on.isoformat(), "amount": amount})
    _add_activity(line, on, "Payment returned", amount)
    update_line(line, on)


def bill_line(line: Record, on: date) -> dict[str, Any]:
    """Charge interest, bill the minimum payment, and return the contents of the statement."""
    body, private = line.body, line.private
    days = (on - date.fromisoformat(private["billed_on"])).days
    interest = simple_interest(body["principal_balance"], Decimal(private["rate"]), days)
    if interest:
        body["interest_balance"] = money(body["interest_balance"] + interest)
        _add_activity(line, on, f"Interest, {days} days", interest)
    minimum = minimum_payment(body["principal_balance"], interest)
    still_due = sum((due["amount"] for due in private["dues"]), ZERO)
    billed = min(minimum, _total_owed(line) - still_due)
    if billed > 0:
        due = on + timedelta(days=DAYS_TO_PAY)
        private["dues"].append({"due": due.isoformat(), "amount": money(billed)})
    body["next_billing_date"] = add_months(on, 1).isoformat()
    private |= due_on_field(add_months(on, 1))
    update_line(line, on)
    return close_month(line, on)


def close_month(line: Record, on: date) -> dict[str, Any]:
    """The contents of a statement of the activity since the last one, without changing balances."""
    body, private = line.body, line.private
    unbilled = sorted(private["activity"], key=lambda entry: str(entry["on"]))
    activity = [entry for entry in unbilled if entry["on"] <= on.isoformat()]
    totals = accumulate((entry["amount"] for entry in activity), initial=private["opening_balance"])
    balances = [money(total) for total in totals]
    copied_fields = (
        "payment_amount_due",
        "payment_due_date",
        "past_due_balance",
        "credit_limit",
        "available_credit",
    )
    contents = {
        "billing_date": on.isoformat(),
        "period_start": private["billed_on"],
        "opening_balance": balances[0],
        "closing_balance": balances[-1],
        "rate": private["rate"],
        "activity": [
            entry | {"balance": balance} for entry, balance in zip(activity, balances[1:], strict=True)
        ],
        **{name: body[name] for name in copied_fields},
    }
    private["activity"] = unbilled[len(activity) :]
    private |= {"billed_on": on.isoformat(), "opening_balance": balances[-1]}
    return contents


def update_line(line: Record, today: date) -> None:
    """Update what depends on the balances and the date of a line."""
    body, dues = line.body, line.private["dues"]
    days = [date.fromisoformat(due["due"]) for due in dues]
    overdue = [due["amount"] for due, day in zip(dues, days, strict=True) if day < today]
    body["payoff_balance"] = money(max(_total_owed(line) - body["suspense_balance"], ZERO))
    body["days_past_due"] = days_past_due(days, today)
    body["past_due_balance"] = money(sum(overdue, ZERO))
    body["payment_amount_due"] = money(sum((due["amount"] for due in dues), ZERO))
    body["payment_due_date"] = max(days).isoformat() if days else None
    body["current_credit"] = money(max(body["credit_limit"] - body["principal_balance"], ZERO))
    is_closed = line.private.get("is_frozen") or body["days_past_due"] > DAYS_TO_CLOSE_CREDIT
    body["available_credit"] = (
        ZERO if is_closed else money(max(body["credit_limit"] - _total_owed(line), ZERO))
    )


def _total_owed(line: Record) -> Decimal:
    return money(line.body["principal_balance"] + line.body["interest_balance"])


def _lower_dues(line: Record, paid: Decimal) -> None:
    """Subtract a payment from the amounts due, the oldest first."""
    for due in line.private["dues"]:
        part = min(paid, due["amount"])
        due["amount"] = money(due["amount"] - part)
        paid -= part
    line.private["dues"] = [due for due in line.private["dues"] if due["amount"] > 0]


def _add_activity(line: Record, on: date, note: str, amount: Decimal) -> None:
    line.private["activity"].append({"on": on.isoformat(), "note": note, "amount": money(amount)})
