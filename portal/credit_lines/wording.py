"""A line's figures as sentences that can be read out on the phone. Every figure is the service's own."""

from datetime import date

from portal.ui import wording
from servicing import Statement
from servicing.figures import Figures


def read_aloud(line: Statement, figures: Figures) -> str:
    """Payoff, the next payment and the past due amount. A bill whose due date has passed is left out."""
    return " ".join(filter(None, (_payoff(figures), _due(line, figures), _past_due(figures))))


def past_due_words(figures: Figures, today: date) -> str:
    """``Past due $310.00, the oldest part 12 days late``, without what is unknown; empty when nothing is past due."""
    if not figures.is_late:
        return ""
    amount, days = wording.money(figures.past_due), figures.days_past_due(today) or 0
    late = f", the oldest part {wording.count(days, 'day')} late" if days > 0 else ""
    return f"Past due{f' {amount}' if amount else ', amount not known'}{late}"


def last_bill(line: Statement, figures: Figures) -> str:
    """The last bill if its due date has passed: ``$310.00, due Nov 26, 2026``; empty if it is shown otherwise."""
    if figures.due_next or figures.due_since or not line.payment_due_date or not line.payment_amount_due:
        return ""
    return f"{wording.money(line.payment_amount_due)}, due {wording.day(line.payment_due_date)}"


def _payoff(figures: Figures) -> str:
    return "" if figures.payoff is None else f"The payoff balance is {wording.money(figures.payoff)}."


def _due(line: Statement, figures: Figures) -> str:
    if figures.due_next is None:
        return "No payment is due." if line.payment_amount_due == 0 and not figures.is_late else ""
    day, amount = figures.due_next
    return f"The next payment is {wording.money(amount)}, due on {wording.day(day, weekday=True)}."


def _past_due(figures: Figures) -> str:
    if figures.past_due is None or figures.past_due <= 0:
        return "An amount is past due." if figures.is_late else ""
    days = figures.reported_days or 0
    oldest = f" The oldest part is {wording.count(days, 'day')} late." if days > 0 else ""
    return f"{wording.money(figures.past_due)} is past due.{oldest}"
