"""Data-sense checks: what does not add up in the service's own answers. Hints for people; nothing is refused for one.

A rule measures by how much objects are off and is broken when that exceeds its tolerance. Where a value that it needs
is missing it measures nothing and so does not apply. The rules of a kind of object stand together, under its name.
"""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from servicing.applications import Application, Offer
from servicing.credit_lines import Statement
from servicing.loans import Loan
from servicing.repayments import Repayment
from servicing.schedules import Schedule, schedule_of, total
from servicing.values import calendar_day, exact, same_word

NOTHING: Final = Decimal(0)
CENT: Final = Decimal("0.01")
LONGEST_LINE: Final = 100  # years; a day beyond is a mistake, not a gap


class Rule(NamedTuple):
    """One thing that should hold."""

    id: str
    text: str
    """What is off when it does not hold, in a few words for staff."""
    severity: Literal["notice", "warn"]
    tolerance: Decimal
    """By how much objects may be off: dollars, points of a rate, days or cases."""
    measure: Callable[..., Decimal | int | None]
    """By how much they are off; None where the rule does not apply."""


def broken(rules: Iterable[Rule], *objects: object) -> list[Rule]:
    """The rules that do not hold for these objects, in their order."""
    measured = ((rule, rule.measure(*objects)) for rule in rules)
    return [rule for rule, off in measured if off is not None and off > rule.tolerance]


def excess(value: Decimal | None, limit: Decimal | None) -> Decimal | None:
    """By how much a value exceeds a limit; None where either is missing."""
    return None if value is None or limit is None else value - limit


def apart(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """How far two values are apart; None where either is missing."""
    return None if one is None or other is None else abs(one - other)


# Applications


def of_application(application: Application) -> list[Rule]:
    """What is off about an application itself."""
    return broken(APPLICATION_RULES, application)


def _is_decided(application: Application, word: str) -> bool | None:
    decision = application.status.decision if application.status else None
    return None if decision is None else same_word(decision, word)


def _approved_without_offers(application: Application) -> int | None:
    is_approved = _is_decided(application, "APPROVED")
    return None if is_approved is None else int(is_approved and not application.offers)


def _rejected_with_offers(application: Application) -> int | None:
    is_rejected = _is_decided(application, "REJECTED")
    return None if is_rejected is None else int(is_rejected and bool(application.offers))


def _report_without_consent(application: Application) -> int | None:
    consent = application.credit_score_consent
    return None if consent is None else int(not consent and application.credit_report_id is not None)


APPLICATION_RULES: Final = (
    Rule("application.no_offers", "Approved without offers", "notice", NOTHING, _approved_without_offers),
    Rule("application.rejected", "Rejected with offers", "warn", NOTHING, _rejected_with_offers),
    Rule("application.consent", "Credit report without consent", "warn", NOTHING, _report_without_consent),
)


# Offers, each with the application it answers


def of_offer(offer: Offer, application: Application) -> list[Rule]:
    """What is off about an offer."""
    return broken(OFFER_RULES, offer, application)


def _other_product(offer: Offer, application: Application) -> int | None:
    if not offer.product or not application.product:
        return None
    return int(not same_word(offer.product, application.product))


def _maturity_before_start(offer: Offer, _: Application) -> int | None:
    maturity = calendar_day(offer.maturity_date)
    return (offer.start_date - maturity).days if offer.start_date and maturity else None


def _interest_off(offer: Offer, _: Application) -> Decimal | None:
    """Installments less amount, against the interest that is told; an interest-only period changes the sum."""
    installment, interest = exact(offer.installment), exact(offer.interest_amount)
    if installment is None or interest is None or offer.term is None or offer.amount is None:
        return None
    return None if offer.interest_only_period else abs(installment * offer.term - offer.amount - interest)


OFFER_RULES: Final = (
    Rule(
        "offer.amount", "Above the requested amount", "notice", NOTHING,
        lambda offer, application: excess(offer.amount, application.amount),
    ),
    Rule("offer.product", "Not the product applied for", "notice", NOTHING, _other_product),
    Rule(
        "offer.fee", "Fee above the amount", "warn", NOTHING,
        lambda offer, _: excess(offer.origination_fee, offer.amount),
    ),
    Rule(
        "offer.apr", "APR below interest rate", "warn", Decimal("0.01"),
        lambda offer, _: excess(offer.interest_rate, offer.apr),
    ),
    Rule("offer.interest", "Interest does not add up", "notice", Decimal("2.00"), _interest_off),
    Rule("offer.maturity", "Matures before it starts", "warn", NOTHING, _maturity_before_start),
)  # fmt: skip


# Loans


def of_loan(loan: Loan, today: date) -> list[Rule]:
    """What is off about a loan, its schedule included, on a day."""
    return broken(LOAN_RULES, loan, schedule_of(loan), today)


def _matures_before_opening(loan: Loan, *_: object) -> int | None:
    if loan.maturity_date is None or loan.opening_date is None:
        return None
    return (loan.opening_date - loan.maturity_date).days


def _delinquent_without_overdue(loan: Loan, schedule: Schedule, today: date) -> int | None:
    if loan.delinquent is None or not schedule.is_known:
        return None
    return int(loan.delinquent and not schedule.overdue(today))


def _overdue_without_delinquent(loan: Loan, schedule: Schedule, today: date) -> int | None:
    if loan.delinquent is None or not schedule.is_known:
        return None
    return 0 if loan.delinquent else len(schedule.overdue(today))


def _schedule_total(loan: Loan, schedule: Schedule, *_: object) -> Decimal | None:
    return apart(total(row.total for row in schedule.rows), exact(loan.total_repayment_amount))


def _schedule_principal(loan: Loan, schedule: Schedule, *_: object) -> Decimal | None:
    return apart(total(row.principal for row in schedule.rows), loan.amount)


LOAN_RULES: Final = (
    Rule(
        "loan.apr", "APR below interest rate", "warn", Decimal("0.01"),
        lambda loan, *_: excess(loan.interest_rate, loan.apr),
    ),
    Rule("loan.maturity", "Matures before it opens", "warn", NOTHING, _matures_before_opening),
    Rule("loan.delinquent", "Delinquent, nothing overdue", "notice", NOTHING, _delinquent_without_overdue),
    Rule("loan.overdue", "Overdue, not delinquent", "notice", NOTHING, _overdue_without_delinquent),
    Rule("loan.total", "Schedule is not the total repayment", "warn", CENT, _schedule_total),
    Rule("loan.principal", "Principal is not the amount", "warn", CENT, _schedule_principal),
)  # fmt: skip


# Lines of credit


def of_line(statement: Statement) -> list[Rule]:
    """What is off about where a line of credit stands."""
    return broken(LINE_RULES, statement)


def missing_months(days: Iterable[date | None]) -> list[date]:
    """The months without a statement between the first and the last that has one, each as its first day."""
    have = {day.replace(day=1) for day in days if day}
    month, last = min(have, default=date.max), max(have, default=date.min)
    missing = []
    while month < last and last.year - month.year < LONGEST_LINE:
        month = (month + timedelta(days=31)).replace(day=1)
        missing += [] if month in have else [month]
    return missing


def _past_due_without_days(statement: Statement) -> int | None:
    if statement.past_due_balance is None or statement.days_past_due is None:
        return None
    return int((statement.past_due_balance > 0) != (statement.days_past_due > 0))


LINE_RULES: Final = (
    Rule("line.past_due", "Past due days and balance disagree", "warn", NOTHING, _past_due_without_days),
    Rule(
        "line.available", "More available than the limit", "warn", CENT,
        lambda statement: excess(statement.available_credit, statement.credit_limit),
    ),
    Rule(
        "line.months", "A month has no statement", "notice", NOTHING,
        lambda statement: len(missing_months(paper.billing_date for paper in statement.statements)),
    ),
)  # fmt: skip


# Repayments


def of_repayment(repayment: Repayment) -> list[Rule]:
    """What is off about a repayment."""
    return broken(REPAYMENT_RULES, repayment)


def _split_off(repayment: Repayment) -> Decimal | None:
    parts = (repayment.principal, repayment.interest, repayment.fees, repayment.suspense)
    return apart(total(map(exact, parts)), repayment.amount)


REPAYMENT_RULES: Final = (
    Rule("repayment.split", "Parts are not the amount", "warn", CENT, _split_off),
)  # fmt: skip
