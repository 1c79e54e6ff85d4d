"""Consistency checks: figures in the service's own answers that contradict each other. They are hints, not errors.

A rule measures a deviation and is broken if that exceeds its tolerance. It does not apply if a value it needs is
missing. Rules are grouped by the kind of object they check.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Final, Literal, NamedTuple

from servicing.applications import Application, Offer
from servicing.credit_lines import Statement
from servicing.figures import ONE_DAY, NotKnown, loan_figures, percent_of_limit
from servicing.loans import Loan
from servicing.repayments import Repayment, has_succeeded
from servicing.schedules import Schedule, schedule_of, total
from servicing.values import calendar_day, decimal_or_none, is_same_word

ZERO: Final = Decimal(0)
CENT: Final = Decimal("0.01")
# Databases that keep 15 digits store smaller amounts to the cent.
MAX_AMOUNT: Final = Decimal(10) ** 13
OUT_OF_RANGE: Final = "An amount is $10 trillion or more: lists show it as not known"
# A statement that follows sooner is a corrected one.
MIN_CYCLE_DAYS: Final = 7
MONTH_DAYS: Final = 31


class Rule(NamedTuple):
    """One condition that consistent data meet."""

    id: str
    text: str
    """The contradiction, in a few words for staff."""
    severity: Literal["notice", "warn"]
    tolerance: Decimal
    """The largest acceptable deviation: dollars, percentage points, days or cases."""
    measure: Callable[..., Decimal | int | None]
    """The deviation; None if the rule does not apply."""
    describe: Callable[..., str] | None = None
    """The contradiction with the objects' own figures, in place of the text."""


def broken_rules(rules: Iterable[Rule], *objects: object) -> list[Rule]:
    """The rules that these objects break, in order."""
    measured = ((rule, rule.measure(*objects)) for rule in rules)
    return [
        rule._replace(text=rule.describe(*objects)) if rule.describe else rule
        for rule, deviation in measured
        if deviation is not None and deviation > rule.tolerance
    ]


def excess(value: Decimal | None, limit: Decimal | None) -> Decimal | None:
    """The amount by which a value exceeds a limit; None if either is missing."""
    return None if value is None or limit is None else value - limit


def difference(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """The absolute difference of two values; None if either is missing."""
    return None if one is None or other is None else abs(one - other)


# Applications


def check_application(application: Application) -> list[Rule]:
    """The rules that an application breaks."""
    return broken_rules(APPLICATION_RULES, application)


def _is_decided(application: Application, word: str) -> bool | None:
    decision = application.status.decision if application.status else None
    return None if decision is None else is_same_word(decision, word)


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
    Rule("application.no_offers", "Approved without offers", "notice", ZERO, _approved_without_offers),
    Rule("application.rejected", "Rejected with offers", "warn", ZERO, _rejected_with_offers),
    Rule("application.consent", "Credit report without consent", "warn", ZERO, _report_without_consent),
)


# Offers, each with the application it answers


def check_offer(offer: Offer, application: Application) -> list[Rule]:
    """The rules that an offer breaks."""
    return broken_rules(OFFER_RULES, offer, application)


def _product_mismatch(offer: Offer, application: Application) -> int | None:
    if not offer.product or not application.product:
        return None
    return int(not is_same_word(offer.product, application.product))


def _maturity_before_start(offer: Offer, _: Application) -> int | None:
    maturity = calendar_day(offer.maturity_date)
    return (offer.start_date - maturity).days if offer.start_date and maturity else None


def _interest_deviation(offer: Offer, _: Application) -> Decimal | None:
    """The interest that follows from the installments, compared with the reported interest."""
    installment, interest = decimal_or_none(offer.installment), decimal_or_none(offer.interest_amount)
    if installment is None or interest is None or offer.term is None or offer.amount is None:
        return None
    return None if offer.interest_only_period else abs(installment * offer.term - offer.amount - interest)


OFFER_RULES: Final = (
    Rule(
        "offer.amount", "Above the requested amount", "notice", ZERO,
        lambda offer, application: excess(offer.amount, application.amount),
    ),
    Rule("offer.product", "Not the product applied for", "notice", ZERO, _product_mismatch),
    Rule(
        "offer.fee", "Fee above the amount", "warn", ZERO,
        lambda offer, _: excess(offer.origination_fee, offer.amount),
    ),
    Rule(
        "offer.apr", "APR below interest rate", "warn", Decimal("0.01"),
        lambda offer, _: excess(offer.interest_rate, offer.apr),
    ),
    Rule("offer.interest", "Interest does not add up", "notice", Decimal("2.00"), _interest_deviation),
    Rule("offer.maturity", "Matures before it starts", "warn", ZERO, _maturity_before_start),
)  # fmt: skip


# Loans and lines of credit


def check_account(
    account: Loan | Statement | None, repayments: Iterable[Repayment] | None, copied_on: date
) -> list[Rule]:
    """The rules that a loan or a line breaks on the business date of its answer.

    ``repayments`` are None if they were never read.
    """
    match account:
        case Loan():
            of_repayments = (
                [] if repayments is None else check_loan_repayments(account, repayments, copied_on)
            )
            return check_loan(account, copied_on) + of_repayments
        case Statement():
            return check_line(account)
    return []


def _out_of_range(*amounts: Decimal | None) -> int:
    return sum(amount is not None and abs(amount) >= MAX_AMOUNT for amount in amounts)


# Loans


def check_loan(loan: Loan, copied_on: date) -> list[Rule]:
    """The rules that a loan and its schedule break on the business date of the answer."""
    return broken_rules(LOAN_RULES, loan, schedule_of(loan, copied_on), copied_on)


def _matures_before_opening(loan: Loan, *_: object) -> int | None:
    if loan.maturity_date is None or loan.opening_date is None:
        return None
    return (loan.opening_date - loan.maturity_date).days


def _delinquent_without_overdue(loan: Loan, _: Schedule, copied_on: date) -> int:
    return int(bool(loan.delinquent) and loan_figures(loan, copied_on).why_not_known == NotKnown.DELINQUENT)


def _overdue_without_delinquent(loan: Loan, schedule: Schedule, copied_on: date) -> int | None:
    """The overdue rows, whatever data the others lack."""
    if loan.delinquent is None:
        return None
    return 0 if loan.delinquent else sum(row.total is not None for row in schedule.overdue(copied_on))


def _paid_in_the_future(_: Loan, schedule: Schedule, copied_on: date) -> int:
    """Paid rows with a payment date more than a day ahead, because the service's day may begin before ours."""
    latest = copied_on + ONE_DAY
    return sum(row.is_paid and row.paid_on is not None and row.paid_on > latest for row in schedule.rows)


def _schedule_total(loan: Loan, schedule: Schedule, *_: object) -> Decimal | None:
    return difference(total(row.total for row in schedule.rows), decimal_or_none(loan.total_repayment_amount))


def _schedule_principal(loan: Loan, schedule: Schedule, *_: object) -> Decimal | None:
    return difference(total(row.principal for row in schedule.rows), loan.amount)


def _loan_out_of_range(loan: Loan, schedule: Schedule, *_: object) -> int:
    sums = (total(getattr(row, name) for row in schedule.rows) for name in ("total", "balance"))
    return _out_of_range(loan.amount, *sums)


LOAN_RULES: Final = (
    Rule(
        "loan.apr", "APR below interest rate", "warn", Decimal("0.01"),
        lambda loan, *_: excess(loan.interest_rate, loan.apr),
    ),
    Rule("loan.maturity", "Matures before it opens", "warn", ZERO, _matures_before_opening),
    Rule("loan.delinquent", "Delinquent, nothing past due", "notice", ZERO, _delinquent_without_overdue),
    Rule("loan.overdue", "Past due, not delinquent", "notice", ZERO, _overdue_without_delinquent),
    Rule("loan.paid_on", "An installment is paid on a later day", "warn", ZERO, _paid_in_the_future),
    Rule("loan.total", "Schedule differs from total repayment", "warn", CENT, _schedule_total),
    Rule("loan.principal", "Principal differs from the amount", "warn", CENT, _schedule_principal),
    Rule("loan.range", OUT_OF_RANGE, "warn", ZERO, _loan_out_of_range),
)  # fmt: skip


# Loans, with their repayments


def check_loan_repayments(loan: Loan, repayments: Iterable[Repayment], copied_on: date) -> list[Rule]:
    """The rules that a loan's schedule and repayments break together."""
    paid = [one for one in repayments if has_succeeded(one) and (one.amount or ZERO) > 0]
    return broken_rules(LOAN_REPAYMENT_RULES, schedule_of(loan, copied_on), paid)


def _unpaid_with_repayment(schedule: Schedule, paid: Sequence[Repayment]) -> int:
    days = {one.effective_date for one in paid}
    return sum(row.is_owed and row.due_date is not None and row.due_date in days for row in schedule.rows)


def _paid_without_repayment(schedule: Schedule, paid: Sequence[Repayment]) -> int:
    return sum(row.is_paid for row in schedule.rows) - len(paid)


LOAN_REPAYMENT_RULES: Final = (
    Rule(
        "loan.unpaid", "A repayment succeeded on the due date of an unpaid installment", "notice", ZERO,
        _unpaid_with_repayment,
    ),
    Rule(
        "loan.paid", "More installments paid than repayments succeeded", "notice", ZERO, _paid_without_repayment
    ),
)  # fmt: skip


# Lines of credit


def check_line(statement: Statement) -> list[Rule]:
    """The rules that a line of credit breaks."""
    return broken_rules(LINE_RULES, statement)


def statement_gaps(days: Iterable[date | None]) -> list[tuple[date, date]]:
    """The pairs of following billing dates that are more than one and a half usual cycles apart, oldest first.

    The usual cycle is the lower quartile of those known, as gaps are longer; a month if only one is known. Distances
    below half of the median don't count: those are corrected statements.
    """
    pairs = list(pairwise(sorted({day for day in days if day})))
    distances = ((later - earlier).days for earlier, later in pairs)
    cycles = sorted(distance for distance in distances if distance >= MIN_CYCLE_DAYS)
    middle = median(cycles) if cycles else 0
    cycles = [distance for distance in cycles if 2 * distance >= middle]
    usual = cycles[len(cycles) // 4] if len(cycles) > 1 else MONTH_DAYS
    return [(earlier, later) for earlier, later in pairs if 2 * (later - earlier).days > 3 * usual]


def _past_due_without_days(statement: Statement) -> int | None:
    if statement.past_due_balance is None or statement.days_past_due is None:
        return None
    return int((statement.past_due_balance > 0) != (statement.days_past_due > 0))


def _nothing_available(statement: Statement) -> int | None:
    percent = percent_of_limit(statement.principal_balance, statement.credit_limit)
    if statement.available_credit is None or percent is None:
        return None
    return int(statement.available_credit == 0 and percent < 100)


def _describe_nothing_available(statement: Statement) -> str:
    percent = percent_of_limit(statement.principal_balance, statement.credit_limit) or ZERO
    return f"Available credit is $0.00 although principal is {int(percent)}% of the limit. The line may be frozen."


def _unexplained_percent(statement: Statement) -> Decimal | None:
    """How much the limit less what is available differs from what is owed, in percent of the limit."""
    if _nothing_available(statement) or not statement.credit_limit or statement.credit_limit < 0:
        return None
    owed = total((statement.principal_balance, statement.interest_balance))
    if statement.available_credit is None or owed is None:
        return None
    return abs(statement.credit_limit - statement.available_credit - owed) / statement.credit_limit * 100


def _line_out_of_range(line: Statement) -> int:
    balances = (line.principal_balance, line.past_due_balance, line.payment_amount_due)
    return _out_of_range(line.credit_limit, line.available_credit, *balances)


LINE_RULES: Final = (
    Rule("line.past_due", "Past due days and balance disagree", "warn", ZERO, _past_due_without_days),
    Rule(
        "line.available", "More available than the limit", "warn", CENT,
        lambda statement: excess(statement.available_credit, statement.credit_limit),
    ),
    Rule(
        "line.frozen", "Available credit is $0.00 although principal is below the limit", "notice", ZERO,
        _nothing_available, _describe_nothing_available,
    ),
    Rule(
        "line.owed", "Limit minus available isn’t principal plus interest", "notice", Decimal(1),
        _unexplained_percent,
    ),
    Rule(
        "line.months", "A gap between statements", "notice", ZERO,
        lambda statement: len(statement_gaps(document.billing_date for document in statement.statements)),
    ),
    Rule("line.range", OUT_OF_RANGE, "warn", ZERO, _line_out_of_range),
)  # fmt: skip


# Repayments


def check_repayment(repayment: Repayment) -> list[Rule]:
    """The rules that a repayment breaks."""
    return broken_rules(REPAYMENT_RULES, repayment)


def _parts_deviation(repayment: Repayment) -> Decimal | None:
    parts = (repayment.principal, repayment.interest, repayment.fees, repayment.suspense)
    return difference(total(map(decimal_or_none, parts)), repayment.amount)


REPAYMENT_RULES: Final = (
    Rule("repayment.split", "Parts don’t add up to the amount", "warn", CENT, _parts_deviation),
)  # fmt: skip
