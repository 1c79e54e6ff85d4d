"""What does not add up is noticed, with tolerance, and never guessed from what is missing."""

from datetime import date
from decimal import Decimal
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
    sense,
)

START = date(2026, 12, 1)


def offer(**values: Any) -> Offer:
    numbers = ("amount", "apr", "interest_rate", "origination_fee")
    return Offer(**{key: Decimal(value) if key in numbers else value for key, value in values.items()})


def application(decision: str | None = None, **values: Any) -> Application:
    return Application(status=Decision(decision=decision), amount=Decimal(25000), **values)


def broken_by(subject: Offer, answers: Application | None = None) -> list[str]:
    return [rule.id for rule in sense.of_offer(subject, answers or application())]


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
def test_an_offer_that_does_not_add_up_breaks_one_rule(values: dict[str, Any], rule: str) -> None:
    assert broken_by(offer(**values)) == [rule]


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
def test_what_is_off_by_the_tolerance_is_not_off(values: dict[str, Any]) -> None:
    assert broken_by(offer(**values)) == []


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
    assert broken_by(offer(**values)) == []


def test_an_offer_for_another_product_is_noticed_whatever_its_case() -> None:
    asked = application(product="LOAN")
    assert broken_by(Offer(product="BNPL"), asked) == ["offer.product"]
    assert broken_by(Offer(product="loan"), asked) == []
    assert broken_by(Offer(), asked) == []


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
def test_an_application_is_checked_against_itself(subject: Application, rules: list[str]) -> None:
    assert [rule.id for rule in sense.of_application(subject)] == rules


def test_every_rule_says_what_is_off_and_has_a_name_of_its_own() -> None:
    rules = [
        *sense.APPLICATION_RULES,
        *sense.OFFER_RULES,
        *sense.LOAN_RULES,
        *sense.LINE_RULES,
        *sense.REPAYMENT_RULES,
    ]
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.text and rule.severity in ("notice", "warn") and rule.tolerance >= 0 for rule in rules)


TODAY = date(2026, 11, 20)
PAST = {"due_date": "2026-10-24", "total": Decimal(100), "principal": Decimal(90)}
TO_COME = {"due_date": "2026-11-24", "total": Decimal(100), "principal": Decimal(90)}


@pytest.mark.parametrize(
    ("loan", "rules"),
    [
        (Loan(apr=Decimal("8.98"), interest_rate=Decimal(9)), ["loan.apr"]),
        (Loan(apr=Decimal("8.99"), interest_rate=Decimal(9)), []),
        (Loan(opening_date=TODAY, maturity_date=date(2026, 11, 19)), ["loan.maturity"]),
        (Loan(opening_date=TODAY, maturity_date=TODAY), []),
        (Loan(delinquent=True, installments=(TO_COME,)), ["loan.delinquent"]),
        (Loan(delinquent=True, installments=(PAST,)), []),
        (Loan(delinquent=False, installments=(PAST,)), ["loan.overdue"]),
        (Loan(delinquent=False, installments=(TO_COME,)), []),
        (Loan(delinquent=True, installments=({"odd": 1},)), []),
        (Loan(total_repayment_amount=Decimal("200.02"), installments=(PAST, TO_COME)), ["loan.total"]),
        (Loan(total_repayment_amount="200.01", installments=(PAST, TO_COME)), []),
        (Loan(total_repayment_amount="about 200", installments=(PAST, TO_COME)), []),
        (Loan(amount=Decimal(181), installments=(PAST, TO_COME)), ["loan.principal"]),
        (Loan(amount=Decimal(181), installments=(PAST, {"due_date": "2026-11-24"})), []),
        (Loan(), []),
    ],
)
def test_a_loan_is_checked_against_itself_and_its_schedule(loan: Loan, rules: list[str]) -> None:
    assert [rule.id for rule in sense.of_loan(loan, TODAY)] == rules


def papers(*days: str) -> tuple[StatementDocument, ...]:
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
        (Statement(statements=papers("2026-08-15", "2026-10-15")), ["line.months"]),
        (Statement(statements=papers("2026-08-31", "2026-09-01")), []),
        (Statement(statements=(StatementDocument(),)), []),
        (Statement(), []),
    ],
)
def test_a_line_is_checked_against_itself(line: Statement, rules: list[str]) -> None:
    assert [rule.id for rule in sense.of_line(line)] == rules


def test_the_months_that_are_missing_are_named_over_years() -> None:
    days = [date(2026, 2, 15), None, date(2025, 11, 15)]
    assert sense.missing_months(days) == [date(2025, 12, 1), date(2026, 1, 1)]


@pytest.mark.parametrize("days", [[], [None], [TODAY], [date.min, date.max]])
def test_no_month_is_missing_where_there_is_no_span_of_statements(days: list[date | None]) -> None:
    assert sense.missing_months(days) == []


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
def test_the_parts_of_a_repayment_are_its_amount(parts: tuple[Any, ...], rules: list[str]) -> None:
    split = dict(zip(("principal", "interest", "fees", "suspense"), parts, strict=True))
    assert [rule.id for rule in sense.of_repayment(Repayment(amount=Decimal(100), **split))] == rules
