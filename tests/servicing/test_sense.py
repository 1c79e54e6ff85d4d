"""What does not add up is noticed, with tolerance, and never guessed from what is missing."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from servicing import Application, Decision, Offer, sense

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
    rules = [*sense.APPLICATION_RULES, *sense.OFFER_RULES]
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.text and rule.severity in ("notice", "warn") and rule.tolerance >= 0 for rule in rules)
