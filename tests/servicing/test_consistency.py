"""Consistency rules: deviations beyond the tolerance break a rule, missing values never do."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pytest

from servicing import (
    Application,
    Decision,
    Loan,
    Offer,
    Repayment,
    Statement,
    StatementDocument,
    consistency,
)

START = date(2026, 12, 1)


def offer(**values: Any) -> Offer:
    numbers = ("amount", "apr", "interest_rate", "origination_fee")
    return Offer(**{key: Decimal(value) if key in numbers else value for key, value in values.items()})


def application(decision: str | None = None, **values: Any) -> Application:
    return Application(status=Decision(decision=decision), amount=Decimal(25000), **values)


def broken_rule_ids(subject: Offer, for_application: Application | None = None) -> list[str]:
    return [rule.id for rule in consistency.check_offer(subject, for_application or application())]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"amount": "25000.01"}, "offer.amount"),
        ({"amount": "500", "origination_fee": "500.01"}, "offer.fee"),
        ({"apr": "11.98", "interest_rate": "12"}, "offer.apr"),
        ({"start_date": START, "maturity_date": "2026-11-30"}, "offer.maturity"),
        ({"start_date": START, "maturity_date": "2026-11-30 00:00:00 PST"}, "offer.maturity"),
        ({"amount": "1000", "installment": 100, "term": 12, "interest_amount": "197.99"}, "offer.interest"),
        ({"amount": "1000", "installment": "100", "term": 12, "interest_amount": 203}, "offer.interest"),
    ],
)
def test_an_inconsistent_offer_breaks_one_rule(values: dict[str, Any], rule: str) -> None:
    assert broken_rule_ids(offer(**values)) == [rule]


@pytest.mark.parametrize(
    "values",
    [
        {"amount": "25000.00"},
        {"amount": "500", "origination_fee": "500"},
        {"apr": "11.99", "interest_rate": "12"},
        {"start_date": START, "maturity_date": "2026-12-01"},
        {"amount": "1000", "installment": 100, "term": 12, "interest_amount": "198.00"},
    ],
)
def test_a_deviation_within_the_tolerance_breaks_no_rule(values: dict[str, Any]) -> None:
    assert broken_rule_ids(offer(**values)) == []


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"origination_fee": "500"},
        {"interest_rate": "12"},
        {"maturity_date": "2026-11-30"},
        {"start_date": START, "maturity_date": "soon"},
        {"start_date": START, "maturity_date": ["2026-11-30"]},
        {"amount": "1000", "installment": 100, "term": 12, "interest_amount": None},
        {"amount": "1000", "installment": "a lot", "term": 12, "interest_amount": 7},
        {"amount": "1000", "installment": 100, "interest_amount": 7},
        {"amount": "1000", "installment": 100, "term": 12, "interest_amount": 7, "interest_only_period": 6},
    ],
)
def test_a_missing_or_unreadable_value_breaks_no_rule(values: dict[str, Any]) -> None:
    assert broken_rule_ids(offer(**values)) == []


def test_an_offer_for_another_product_breaks_a_rule() -> None:
    requested = application(product="LOAN")
    assert broken_rule_ids(Offer(product="BNPL"), requested) == ["offer.product"]
    assert broken_rule_ids(Offer(product="loan"), requested) == []
    assert broken_rule_ids(Offer(), requested) == []


@pytest.mark.parametrize(
    ("subject", "rules"),
    [
        (application("APPROVED"), ["application.no_offers"]),
        (application("approved", offers=(Offer(),)), []),
        (application("REJECTED", offers=(Offer(),)), ["application.rejected"]),
        (application("REJECTED"), []),
        (application("PENDING"), []),
        (application(credit_score_consent=False, credit_report_id=88214), ["application.consent"]),
        (application(credit_score_consent=True, credit_report_id=88214), []),
        (application(credit_report_id=88214), []),
        (Application(), []),
    ],
)
def test_an_inconsistent_application_breaks_rules(subject: Application, rules: list[str]) -> None:
    assert [rule.id for rule in consistency.check_application(subject)] == rules


def test_every_rule_has_a_text_and_a_unique_id() -> None:
    rules = [
        *consistency.APPLICATION_RULES,
        *consistency.OFFER_RULES,
        *consistency.LOAN_RULES,
        *consistency.LOAN_REPAYMENT_RULES,
        *consistency.LINE_RULES,
        *consistency.REPAYMENT_RULES,
    ]
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.text and rule.severity in ("notice", "warn") and rule.tolerance >= 0 for rule in rules)


TODAY = date(2026, 11, 20)
PAST = {"due_date": "2026-10-24", "total": Decimal(100), "principal": Decimal(90)}
UPCOMING = {"due_date": "2026-11-24", "total": Decimal(100), "principal": Decimal(90)}


@pytest.mark.parametrize(
    ("loan", "rules"),
    [
        (Loan(apr=Decimal("8.98"), interest_rate=Decimal(9)), ["loan.apr"]),
        (Loan(apr=Decimal("8.99"), interest_rate=Decimal(9)), []),
        (Loan(opening_date=TODAY, maturity_date=date(2026, 11, 19)), ["loan.maturity"]),
        (Loan(opening_date=TODAY, maturity_date=TODAY), []),
        (Loan(delinquent=True, installments=(UPCOMING,)), ["loan.delinquent"]),
        (Loan(delinquent=True, installments=(PAST,)), []),
        (Loan(delinquent=False, installments=(PAST,)), ["loan.overdue"]),
        (Loan(delinquent=False, installments=(UPCOMING,)), []),
        (Loan(delinquent=True, installments=({"odd": 1},)), []),
        (Loan(delinquent=False, installments=(PAST, UPCOMING | {"total": None})), ["loan.overdue"]),
        (Loan(delinquent=False, installments=(PAST | {"total": None},)), []),
        (Loan(delinquent=True, installments=(UPCOMING | {"total": None},)), ["loan.delinquent"]),
        (Loan(delinquent=True, repayments_start_date=date(2026, 11, 24)), ["loan.delinquent"]),
        (Loan(total_repayment_amount=Decimal("200.02"), installments=(PAST, UPCOMING)), ["loan.total"]),
        (Loan(total_repayment_amount="200.01", installments=(PAST, UPCOMING)), []),
        (Loan(total_repayment_amount="about 200", installments=(PAST, UPCOMING)), []),
        (Loan(amount=Decimal(181), installments=(PAST, UPCOMING)), ["loan.principal"]),
        # The service's day may begin before ours.
        (Loan(installments=(PAST | {"status": "PAID", "paid_on": "2026-11-21"},)), []),
        (Loan(installments=(PAST | {"status": "PAID", "paid_on": "2026-11-22"},)), ["loan.paid_on"]),
        (Loan(amount=Decimal(181), installments=(PAST, {"due_date": "2026-11-24"})), []),
        (Loan(), []),
    ],
)
def test_an_inconsistent_loan_breaks_rules(loan: Loan, rules: list[str]) -> None:
    assert [rule.id for rule in consistency.check_loan(loan, TODAY)] == rules


def repayment(day: str, status: str = "SUCCEEDED", amount: str = "100.00") -> Repayment:
    return Repayment(status=status, amount=Decimal(amount), effective_date=date.fromisoformat(day))


@pytest.mark.parametrize(
    ("repayments", "rules"),
    [
        ([repayment("2026-09-24")], []),
        ([repayment("2026-09-24"), repayment("2026-10-26")], []),
        ([repayment("2026-09-24"), repayment("2026-10-24")], ["loan.unpaid"]),
        ([repayment("2026-09-24"), repayment("2026-10-24", "FAILED")], []),
        ([], ["loan.paid"]),
        (
            [repayment("2026-09-24", "FAILED_AFTER_SUCCESS"), repayment("2026-09-24", amount="0")],
            ["loan.paid"],
        ),
    ],
)
def test_repayments_contradicting_the_schedule_break_rules(
    repayments: list[Repayment], rules: list[str]
) -> None:
    earlier = PAST | {"due_date": "2026-09-24", "status": "PAID"}
    loan = Loan(delinquent=True, installments=(earlier, PAST, UPCOMING))
    assert [rule.id for rule in consistency.check_loan_repayments(loan, repayments, TODAY)] == rules


def line_with_balances(
    *, available: str, principal: str, interest: str = "0", limit: str = "1000"
) -> Statement:
    return Statement(
        available_credit=Decimal(available),
        principal_balance=Decimal(principal),
        interest_balance=Decimal(interest),
        credit_limit=Decimal(limit),
    )


def statements(*days: str) -> tuple[StatementDocument, ...]:
    return tuple(StatementDocument(billing_date=date.fromisoformat(day)) for day in days)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (Statement(past_due_balance=Decimal(310), days_past_due=0), ["line.past_due"]),
        (Statement(past_due_balance=Decimal(0), days_past_due=12), ["line.past_due"]),
        (Statement(past_due_balance=Decimal(310), days_past_due=12), []),
        (Statement(past_due_balance=Decimal(310)), []),
        (Statement(available_credit=Decimal("20000.02"), credit_limit=Decimal(20000)), ["line.available"]),
        (Statement(available_credit=Decimal("20000.01"), credit_limit=Decimal(20000)), []),
        (line_with_balances(available="0", principal="670"), ["line.frozen"]),
        (line_with_balances(available="0", principal="1000"), []),
        (line_with_balances(available="0", principal="1020"), ["line.owed"]),
        (line_with_balances(available="330", principal="650", interest="20"), []),
        (line_with_balances(available="320", principal="650", interest="20"), []),
        (line_with_balances(available="319.99", principal="650", interest="20"), ["line.owed"]),
        (line_with_balances(available="1", principal="2", limit="0"), ["line.available"]),
        (Statement(statements=statements("2026-08-15", "2026-10-15")), ["line.months"]),
        (Statement(statements=statements("2026-08-31", "2026-09-01")), []),
        (Statement(statements=(StatementDocument(),)), []),
        (Statement(), []),
    ],
)
def test_an_inconsistent_line_breaks_rules(line: Statement, rules: list[str]) -> None:
    assert [rule.id for rule in consistency.check_line(line)] == rules


def test_a_gap_is_more_than_one_and_a_half_usual_cycles() -> None:
    first = date(2026, 1, 30)

    def gaps(*distances: int) -> list[int]:
        ends = accumulate(distances, initial=0)
        days = [first + timedelta(days=end) for end in ends]
        return [(later - earlier).days for earlier, later in consistency.statement_gaps(reversed(days))]

    assert gaps(30) == []  # Jan 30 to Mar 1, with no statement in February
    assert gaps(46) == []
    assert gaps(47) == [47]
    assert gaps(30, 31, 45, 30) == []
    assert gaps(30, 31, 46, 30) == [46]
    assert gaps(91, 92, 90, 136, 182) == [182]
    assert gaps(7, 7, 14, 7) == [14]
    assert gaps(0, 31, 0, 62, 28) == [62]
    assert gaps(3, 28, 31) == []  # the second one is a correction of the first
    assert gaps(31, 10, 21, 31, 30, 10, 20, 31) == []  # two corrections, ten days later each
    assert gaps(59, 61, 31) == [59, 61]
    assert gaps(91, 92) == []


def test_gaps_are_found_across_years_whatever_the_order() -> None:
    days = [date(2026, 2, 15), None, date(2025, 11, 15)]
    assert consistency.statement_gaps(days) == [(date(2025, 11, 15), date(2026, 2, 15))]


@pytest.mark.parametrize("days", [[], [None], [TODAY], [TODAY, TODAY]])
def test_one_date_has_no_gap(days: list[date | None]) -> None:
    assert consistency.statement_gaps(days) == []


@pytest.mark.parametrize(
    ("parts", "rules"),
    [
        (("90", "9", "1", "0.02"), ["repayment.split"]),
        (("90", "9", "1", "0.01"), []),
        ((Decimal(90), 9, 1, 0), []),
        (("90", "9", "1", None), []),
        (("90", "9", "1", "none"), []),
    ],
)
def test_repayment_parts_must_add_up_to_the_amount(parts: tuple[Any, ...], rules: list[str]) -> None:
    split = dict(zip(("principal", "interest", "fees", "suspense"), parts, strict=True))
    assert [rule.id for rule in consistency.check_repayment(Repayment(amount=Decimal(100), **split))] == rules
