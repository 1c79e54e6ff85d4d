"""Where a line stands as a sentence to read aloud on the phone. Calculated from nothing: every figure was told."""

from datetime import date

from portal.ui import wording
from servicing import Statement


def read_aloud(line: Statement, today: date) -> str:
    """Payoff, the payment that is due and what is past due; only what the service told is said."""
    return " ".join(filter(None, (_payoff(line), _due(line, today), _past_due(line))))


def past_due_words(line: Statement) -> str:
    """``Past due 12 days, $310.00``, with what of it is told; empty when nothing is past due."""
    days, amount = line.days_past_due or 0, line.past_due_balance or 0
    if days <= 0 and amount <= 0:
        return ""
    parts = [
        f"{days} day{'' if days == 1 else 's'}" if days > 0 else "",
        wording.money(amount) if amount > 0 else "",
    ]
    return f"Past due {', '.join(filter(None, parts))}"


def _payoff(line: Statement) -> str:
    return (
        "" if line.payoff_balance is None else f"The payoff balance is {wording.money(line.payoff_balance)}."
    )


def _due(line: Statement, today: date) -> str:
    day, amount = line.payment_due_date, wording.money(line.payment_amount_due)
    if day is None:
        return "No payment is due." if line.payment_amount_due == 0 else ""
    verb, payment = ("was", "last") if day < today else ("is", "next")
    when = f"due on {wording.day(day, weekday=True)}"
    return f"The {payment} payment {verb} {f'{amount}, ' if amount else ''}{when}."


def _past_due(line: Statement) -> str:
    amount, days = line.past_due_balance, line.days_past_due
    if not amount or amount < 0:
        return ""
    late = f", for {days} day{'' if days == 1 else 's'}" if days and days > 0 else ""
    return f"{wording.money(amount)} is past due{late}."
