"""An independent calculation of what is owed on an account, from the service's plain JSON.

It uses none of the portal's code. The keys of the figures are the column names of an export.
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

CLOSED = {"CLOSED", "PAID_OFF", "CHARGED_OFF", "CANCELED", "CANCELLED"}
ZERO = Decimal(0)
HALF_CENT = Decimal("0.005")
BUCKETS = {"Current": 0, "1–29 days": 1, "30–59 days": 30, "60–89 days": 60, "90+ days": 90}


def figures(kind: str, answer: dict[str, Any], today: date, copied_on: date | None = None) -> dict[str, Any]:
    """Calculate the figures of a loan or a line from an answer of a day; an unknown amount is None."""
    calculate = loan_figures if kind == "loan" else line_figures
    found = calculate(answer, today, copied_on or today)
    owed, days = found["Past due"], found["Days past due"]
    contradicts = owed is not None and days is not None and (owed > 0) != (days > 0)
    known = [name for name, first in BUCKETS.items() if days is not None and days >= first]
    found["Aging"] = known[-1] if known and not contradicts else "Not known"
    return found


def loan_figures(loan: dict[str, Any], today: date, copied_on: date) -> dict[str, Any]:
    """Calculate what is owed on a loan from its installments, as the copy of a day has them."""
    rows = [installment(row, today) for row in loan["installments"] or []]
    owed = [row for row in rows if not row["paid"] and (row["total"] is None or row["total"] >= HALF_CENT)]
    late = [row for row in owed if row["due"] and row["due"] < copied_on]
    since = [row for row in owed if row["due"] and copied_on <= row["due"] < today]
    coming = sorted((row for row in owed if row["due"] and row["due"] >= today), key=lambda row: row["due"])
    starts_later = (day(loan.get("repayments_start_date")) or date.min) > today
    opened = day(loan.get("opening_date")) or date.min
    is_new = not rows and not loan["delinquent"] and not starts_later and today - opened <= timedelta(30)
    past_due, first = loan_past_due(loan, rows, owed, late, starts_later=starts_later)
    is_closed = (loan.get("status") or "").upper() in CLOSED
    uncertain = [row for row in owed if not row["certain"] and (row["due"] is None or row["due"] < today)]
    return {
        "Past due": past_due,
        "Days past due": (today - first).days if first else 0 if past_due == ZERO else None,
        "Due next": coming[0]["due"] if coming else None,
        "Amount due next": coming[0]["total"] if coming else None,
        "Remaining payments": total_of(owed) if rows and not uncertain else None,
        "Principal": loan_principal(loan, rows, owed, starts_later=starts_later),
        "Amount": amount(loan.get("amount")),
        "is_closed": is_closed,
        "is_new": is_new,
        "Due since the copy": None
        if is_closed or not since or not all(row["certain"] for row in since)
        else total_of(since),
        "Oldest due since the copy": min(row["due"] for row in since) if since and not is_closed else None,
        "is_late": not is_closed
        and (bool(loan["delinquent"] or first) if past_due is None else past_due > 0),
    }


def loan_past_due(
    loan: dict[str, Any], rows: list[Any], owed: list[Any], late: list[Any], *, starts_later: bool
) -> tuple[Decimal | None, date | None]:
    """Calculate what is past due, and since when."""
    if not rows:
        return (ZERO, None) if starts_later and not loan["delinquent"] else (None, None)
    if any(row["due"] is None for row in owed) or not all(row["certain"] for row in late):
        return None, None
    if not late:
        return (None, None) if loan["delinquent"] else (ZERO, None)
    return total_of(late), min(row["due"] for row in late)


def loan_principal(
    loan: dict[str, Any], rows: list[Any], owed: list[Any], *, starts_later: bool
) -> Decimal | None:
    """Return the balance after the last of an unbroken run of paid installments."""
    paid = [row for row in rows if row["paid"]]
    if not paid:
        return amount(loan.get("amount")) if owed or starts_later else None
    if any(row["due"] is None for row in paid + owed):
        return None
    last = max(row["due"] for row in paid)
    if any(row["due"] < last for row in owed):
        return None
    return [row for row in paid if row["due"] == last][-1]["balance"]


def installment(row: dict[str, Any], today: date) -> dict[str, Any]:
    """Read an installment in either of the service's formats."""
    if "PaymentNumber" in row:
        return {
            "due": day(row["PaymentDate"]),
            "total": amount(row["PaymentAmount"]),
            "balance": amount(row.get("BalanceAmount")),
            "paid": row["IsHistory"],
            "certain": True,
        }
    paid_on = day(row.get("paid_on"))
    paid = row.get("status") == "PAID" or bool(paid_on and paid_on <= today)
    return {
        "due": day(row.get("due_date")),
        "total": amount(row.get("total")),
        "balance": amount(row.get("balance")),
        "paid": paid,
        "certain": paid or row.get("status") != "WAIVED",
    }


def line_figures(line: dict[str, Any], today: date, copied_on: date) -> dict[str, Any]:
    """Read what is owed on a line, as the service reports it."""
    due, to_pay = day(line["payment_due_date"]), amount(line["payment_amount_due"])
    is_bill = bool(due and due >= copied_on and to_pay and to_pay >= HALF_CENT)
    is_coming, is_since = is_bill and due >= today, is_bill and due < today
    past_due, days, limit = (
        cents(line["past_due_balance"]),
        line["days_past_due"],
        amount(line["credit_limit"]),
    )
    principal = amount(line["principal_balance"])
    return {
        "Past due": past_due,
        "Days past due": 0 if days is None and past_due is not None and past_due <= 0 else days,
        "Due next": due if is_coming else None,
        "Amount due next": to_pay if is_coming else None,
        "Principal": principal,
        "Principal as % of limit": int(principal / limit * 100)
        if principal is not None and limit and limit > 0
        else None,
        "Available": amount(line["available_credit"]),
        "Limit": limit,
        "is_closed": False,
        "is_new": False,
        "Due since the copy": to_pay if is_since else None,
        "Oldest due since the copy": due if is_since else None,
        "is_late": (days or 0) > 0 if past_due is None else past_due > 0,
    }


def borrower_past_due(accounts: list[dict[str, Any]]) -> tuple[Decimal | None, int]:
    """Add up what is past due on open accounts, and count those where it is unknown."""
    parts = [one["Past due"] for one in accounts if not one["is_closed"] and not one["is_new"]]
    known = sum((part for part in parts if part and part > 0), ZERO)
    unknown = parts.count(None)
    return known if known or (parts and not unknown) else None, unknown


def total_of(rows: list[Any]) -> Decimal | None:
    """Add up the totals; return None if one is missing."""
    totals = [row["total"] for row in rows]
    return None if None in totals else sum(totals, ZERO)


def cents(value: Any) -> Decimal | None:
    """Return the amount; zero if it is less than half a cent."""
    found = amount(value)
    return ZERO if found is not None and abs(found) < HALF_CENT else found


def amount(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def day(value: Any) -> date | None:
    return date.fromisoformat(str(value)[:10]) if value else None
