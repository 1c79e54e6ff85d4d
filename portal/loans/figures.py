"""The five figures of a loan in words, each with a reason if it is unknown."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from django.utils.html import format_html
from django.utils.text import capfirst

from portal.gateway.reading import LiveCopy
from portal.records.models import Account
from portal.ui import wording
from portal.ui.templatetags.ui import NOT_PROVIDED, UNSOURCED, day, money, or_dash, rate, term
from servicing import Loan, Repayment
from servicing.figures import Figures, NotKnown, is_partly_paid
from servicing.schedules import Installment, Schedule, State

NOT_KNOWN = "Not known"
STATE_WORDS = {State.PAID: "Paid", State.FUTURE: "Upcoming", State.DUE_SINCE: "Due since the copy"}
DAYS_A_YEAR = 365.2425
DAYS_A_MONTH = DAYS_A_YEAR / 12
NOT_RECOGNIZED = "Some installments lack a date, an amount or a known status"


class FigureCard(NamedTuple):
    """One figure: an amount or a day in words, and the sentence below it."""

    label: str
    words: str
    shown: str = NOT_PROVIDED
    is_bad: bool = False


MATURITY = "Maturity"
"""The label of the date that the service reports."""


def figure_cards(
    copy: LiveCopy, loan: Loan, schedule: Schedule, repayments: Sequence[Repayment], today: date
) -> list[FigureCard]:
    """Past due, due since the copy if anything is, due next, remaining payments, principal, maturity."""
    figures, copied_on = copy.figures, copy.copied_on
    return [
        _past_due(figures, schedule, repayments, today, copied_on or today),
        *_due_since(figures, copied_on),
        _due_next(figures, schedule),
        _remaining(figures, schedule),
        _principal(figures),
        _maturity(loan, schedule, today),
    ]


class NoSchedule(NamedTuple):
    """Why a loan without installments has no figures."""

    title: str
    words: str
    is_bad: bool


def no_schedule(loan: Loan, figures: Figures, today: date) -> NoSchedule | None:
    """What stands in place of the figures of a loan without installments."""
    if loan.installments:
        return None
    starts = loan.repayments_start_date
    title, words = str(NotKnown.NO_SCHEDULE_YET), "The service hasn’t provided a start date."
    if starts and starts > today:
        words = f"Repayments start on {wording.day(starts, weekday=True)}."
    elif figures.why_not_known != NotKnown.NO_SCHEDULE_YET:
        title, words = "No schedule", f"{NotKnown.NO_SCHEDULE}, so nothing is known of past due and due next."
    if loan.delinquent:
        words += " It calls the loan delinquent."
    return NoSchedule(title, words, figures.is_late)


def _past_due(
    figures: Figures, schedule: Schedule, repayments: Sequence[Repayment], today: date, copied_on: date
) -> FigureCard:
    if figures.past_due is None:
        return FigureCard("Past due", figures.why_not_known or "", NOT_KNOWN, is_bad=figures.is_late)
    if not figures.past_due:
        return FigureCard("Past due", "Nothing is past due", money(figures.past_due))
    days = figures.days_past_due(today) or 0
    words = f"{installment_count(len(schedule.overdue(copied_on)))}, {days} day{'' if days == 1 else 's'}"
    if copied_on < today:
        words += f", as of {wording.day(copied_on)}"
    if is_partly_paid(figures.oldest_unpaid_due, schedule, repayments):
        words += ", partial payments not deducted"
    if figures.is_closed:
        words += ", closed and not in totals"
    return FigureCard("Past due", words, money(figures.past_due), is_bad=figures.is_late)


def _due_since(figures: Figures, copied_on: date | None) -> list[FigureCard]:
    since = figures.due_since
    if not since:
        return []
    amount = NOT_KNOWN if since.amount is None else money(since.amount)
    return [FigureCard("Due since the copy", capfirst(wording.due_days(since, copied_on)), amount)]


def _due_next(figures: Figures, schedule: Schedule) -> FigureCard:
    if figures.due_next is None:
        if schedule.is_known:
            return FigureCard("Due next", "Nothing left to pay", "Nothing due")
        return FigureCard("Due next", NOT_RECOGNIZED)
    day, amount = figures.due_next
    words = f"{wording.day(day, weekday=True)}, {wording.ago(day)}"
    return FigureCard("Due next", words, NOT_KNOWN if amount is None else money(amount))


def _remaining(figures: Figures, schedule: Schedule) -> FigureCard:
    if figures.remaining is None:
        return FigureCard("Left to pay, with interest", NOT_RECOGNIZED, NOT_KNOWN)
    left = sum(not row.is_paid for row in schedule.rows)
    words = f"{left} of {installment_count(len(schedule.rows))} left"
    return FigureCard("Left to pay, with interest", words, money(figures.remaining))


def _principal(figures: Figures) -> FigureCard:
    words = "Not a payoff quote"
    return FigureCard(
        "Principal", words, NOT_KNOWN if figures.principal is None else money(figures.principal)
    )


def _maturity(loan: Loan, schedule: Schedule, today: date) -> FigureCard:
    if loan.maturity_date:
        return FigureCard(MATURITY, distance(loan.maturity_date, today), day(loan.maturity_date))
    if schedule.has_days and (last := schedule.rows[-1].due_date):
        return FigureCard("Last installment", f"{distance(last, today)}; no maturity date", day(last))
    return FigureCard(MATURITY, "Not provided by the service")


class Term(NamedTuple):
    label: str
    shown: str


def terms(loan: Loan, origin: Account | None) -> tuple[list[Term], list[Term]]:
    """The terms that the service provides (except those in the page's title and figures), and the missing ones."""
    maturity = Term(MATURITY, day(loan.maturity_date))
    link = (
        format_html('<a class="sd-link" href="{}">{}</a>', origin.get_absolute_url(), origin)
        if origin
        else ""
    )
    every = [
        Term("Interest rate", rate(loan.interest_rate)),
        Term("APR", rate(loan.apr)),
        Term("Term", term(loan.term, loan.term_frequency)),
        Term("Interest-only period", or_dash(loan.interest_only_period)),
        Term("Origination fee", money(loan.origination_fee)),
        Term("Finance charge", money(loan.finance_charge)),
        Term("Interest amount", money(loan.interest_amount)),
        Term("Total repayment", money(loan.total_repayment_amount)),
        Term("Opened", day(loan.opening_date)),
        Term("First repayment", day(loan.repayments_start_date)),
        Term("Final repayment", day(loan.repayments_end_date)),
        *([] if loan.installments else [maturity]),
        Term("State", or_dash(loan.state)),
        Term("Risk grade", or_dash(loan.risk_grade)),
        Term("External ID", or_dash(loan.external_id)),
        Term("Origin loan", link or or_dash(loan.origin_loan_uuid)),
    ]
    in_title = [
        Term("Amount", money(loan.amount)),
        Term("Autopay", or_dash(loan.autopay_enabled)),
        *([maturity] if loan.installments else []),
    ]
    missing = [one for one in [*in_title, *every] if UNSOURCED in str(one.shown)]
    return [one for one in every if one not in missing], missing


def distance(when: date, today: date) -> str:
    """The time to a day: in days, or if it is far away in months or years."""
    first, last = sorted((when, today))
    days = (last - first).days
    months = round(days / DAYS_A_MONTH)
    if months < 3:
        return (wording.ago(when) or "").capitalize()
    span = f"{months} months" if months < 36 else f"{round(days / DAYS_A_YEAR)} years"
    return f"In {span}" if when > today else f"{span} ago"


def installment_count(number: int) -> str:
    """``1 installment``, ``12 installments``."""
    return f"{number} installment{'' if number == 1 else 's'}"


def state_words(row: Installment, state: State, today: date) -> str:
    if row.due_date is None or state not in (State.OVERDUE, State.NEXT):
        return STATE_WORDS.get(state, "Not provided")
    days = abs((row.due_date - today).days)
    if state is State.OVERDUE:
        return f"{days} day{'' if days == 1 else 's'} past due"
    return f"Next, {wording.ago(row.due_date)}"
