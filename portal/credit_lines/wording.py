"""A line's figures as sentences that can be read out on the phone. Every figure is the service's own."""

from datetime import date

from portal.ui import wording
from servicing import Statement
from servicing.figures import Figures


def read_aloud(line: Statement, figures: Figures) -> str:
    """Payoff, the next payment and the past due amount. A payment whose due date has passed is left out."""
    return " ".join(filter(None, (_payoff(figures), _due(line, figures), _past_due(figures))))


def past_due_words(figures: Figures, today: date) -> str:
    """``Past due 12 days, $310.00``, without what is unknown; empty when nothing is past due."""
    if not figures.is_late:
        return ""
    days = figures.days_past_due(today) or 0
    parts = [
        f"{days} day{'' if days == 1 else 's'}" if days > 0 else "",
        "amount not known" if figures.past_due is None else wording.money(figures.past_due) or "",
    ]
    return f"Past due {', '.join(filter(None, parts))}"


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
    late = f", for {days} day{'' if days == 1 else 's'}" if days > 0 else ""
    return f"{wording.money(figures.past_due)} is past due{late}."
