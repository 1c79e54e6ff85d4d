"""Lending arithmetic, compared with figures calculated by hand or from common loan tables."""

from datetime import date
from decimal import Decimal

import pytest

from servicing.sandbox import amortization
from servicing.sandbox.amortization import Split


def test_a_level_payment_repays_principal_and_interest() -> None:
    """100,000 over 30 years at 6% costs 599.55 a month in every loan table."""
    assert amortization.level_payment(Decimal(100_000), Decimal(6), 360) == Decimal("599.55")
    assert amortization.level_payment(Decimal(10_000), Decimal(12), 12) == Decimal("888.49")
    assert amortization.level_payment(Decimal(1200), Decimal(0), 12) == Decimal("100.00")


def test_a_schedule_repays_to_the_cent() -> None:
    """1,000 over 3 months at 12%: payment 340.02; interest 10.00, 6.70, 3.37."""
    rows = amortization.schedule(Decimal("1000.00"), Decimal(12), 3, opened=date(2026, 1, 31))
    assert [(row.number, row.due, row.principal, row.interest, row.balance) for row in rows] == [
        (1, date(2026, 2, 28), Decimal("330.02"), Decimal("10.00"), Decimal("669.98")),
        (2, date(2026, 3, 31), Decimal("333.32"), Decimal("6.70"), Decimal("336.66")),
        (3, date(2026, 4, 30), Decimal("336.66"), Decimal("3.37"), Decimal("0.00")),
    ]
    assert [row.total for row in rows] == [Decimal("340.02"), Decimal("340.02"), Decimal("340.03")]


@pytest.mark.parametrize("months", [12, 360])
def test_scheduled_principal_adds_up_to_the_amount(months: int) -> None:
    rows = amortization.schedule(Decimal("98765.43"), Decimal("9.875"), months, opened=date(2024, 2, 29))
    assert sum(row.principal for row in rows) == Decimal("98765.43")
    assert len(rows) == months


def test_a_term_of_zero_months_has_no_schedule() -> None:
    assert amortization.schedule(Decimal(1000), Decimal(12), 0, opened=date(2026, 1, 1)) == ()


def test_apr_without_a_fee_is_the_rate() -> None:
    payment = amortization.level_payment(Decimal(100_000), Decimal(6), 360)
    assert amortization.apr(Decimal(100_000), Decimal(0), payment, 360) == pytest.approx(
        6, abs=Decimal("0.001")
    )


def test_apr_with_a_fee_is_higher() -> None:
    """10,000 over 12 months at 12% with a fee of 200: 15.855% by the internal rate of return."""
    payment = amortization.level_payment(Decimal(10_000), Decimal(12), 12)
    assert amortization.apr(Decimal(10_000), Decimal(200), payment, 12) == Decimal("15.855")


def test_added_months_end_on_valid_days() -> None:
    assert amortization.add_months(date(2024, 1, 31), 1) == date(2024, 2, 29)
    assert amortization.add_months(date(2025, 12, 31), 2) == date(2026, 2, 28)
    assert amortization.add_months(date(2026, 3, 15), -15) == date(2024, 12, 15)


def test_a_payment_covers_fees_then_interest_then_principal() -> None:
    split = amortization.allocate(
        Decimal(100), fees=Decimal(15), interest=Decimal(30), principal=Decimal(500)
    )
    assert split == Split(fees=Decimal(15), interest=Decimal(30), principal=Decimal(55), suspense=Decimal(0))


def test_an_overpayment_goes_to_suspense() -> None:
    split = amortization.allocate(Decimal(100), interest=Decimal(1), principal=Decimal(50))
    assert (split.principal, split.suspense) == (50, 49)


def test_days_past_due_count_from_the_oldest_due_date() -> None:
    today = date(2026, 3, 1)
    assert amortization.days_past_due([date(2026, 2, 27), date(2026, 1, 30)], today) == 30
    assert amortization.days_past_due([today, date(2026, 4, 1)], today) == 0
    assert amortization.days_past_due([], today) == 0


def test_money_is_rounded_half_up() -> None:
    assert amortization.money(Decimal("0.005")) == Decimal("0.01")
    assert amortization.money(Decimal("2.344999")) == Decimal("2.34")


def test_interest_on_a_line_is_simple_and_daily() -> None:
    assert amortization.simple_interest(Decimal(3650), Decimal(10), 30) == Decimal("30.00")


@pytest.mark.parametrize(
    ("principal", "interest", "minimum"),
    [("5000", "60.10", "160.10"), ("500", "5", "25.00"), ("10", "2", "12"), ("0", "0", "0")],
)
def test_the_minimum_payment_is_two_percent_plus_interest_with_a_floor(
    principal: str, interest: str, minimum: str
) -> None:
    assert amortization.minimum_payment(Decimal(principal), Decimal(interest)) == Decimal(minimum)


@pytest.mark.parametrize(
    ("amount", "terms"),
    [
        ("999.99", [12]),
        ("1000", [12, 24]),
        ("10000", [12, 24, 36]),
        ("25000", [12, 24, 36, 60]),
        ("250000", [12, 24]),
    ],
)
def test_larger_amounts_get_more_offers_up_to_a_point(amount: str, terms: list[int]) -> None:
    assert [offer.term for offer in amortization.offers(Decimal(amount))] == terms


def test_an_offer_has_a_rate_and_a_fee() -> None:
    """25,000 over 24 months: 8.75 plus half a point for the term, and a fee of one percent."""
    offer = amortization.offers(Decimal(25_000))[1]
    assert (offer.interest_rate, offer.origination_fee) == (Decimal("9.25"), Decimal("250.00"))
    assert offer.apr > offer.interest_rate


def test_only_amounts_above_the_limit_are_rejected() -> None:
    assert amortization.rejection_reasons(Decimal(5_000_000), amortization.MAX_LOAN_DOLLARS) == []
    assert len(amortization.rejection_reasons(Decimal("5000000.01"), amortization.MAX_LOAN_DOLLARS)) == 2


def test_a_repayment_status_only_moves_forward() -> None:
    assert amortization.next_status("SCHEDULED", "succeed") == "SUCCEEDED"
    assert amortization.next_status("SCHEDULED", "fail") == "FAILED"
    assert amortization.next_status("SUCCEEDED", "reverse") == "FAILED_AFTER_SUCCESS"
    for status, move in (("FAILED", "succeed"), ("SCHEDULED", "reverse"), ("SUCCEEDED", "succeed")):
        with pytest.raises(ValueError, match=status):
            amortization.next_status(status, move)


@pytest.mark.parametrize(
    ("amount", "rate", "months"),
    [("0.10", 0, 24), ("0.36", 0, 24), ("0.11", 12, 12), ("0.00", 5, 1), ("0", 0, 360)],
)
def test_a_loan_that_cannot_be_repaid_in_cents_is_refused(amount: str, rate: int, months: int) -> None:
    with pytest.raises(ValueError, match=f"can't be repaid in {months} payments"):
        amortization.schedule(Decimal(amount), Decimal(rate), months, opened=date(2026, 1, 1))


@pytest.mark.parametrize(("amount", "months"), [("0.24", 24), ("0.01", 1), ("0.12", 12), ("3.60", 360)])
def test_no_installment_is_below_a_cent(amount: str, months: int) -> None:
    rows = amortization.schedule(Decimal(amount), Decimal(0), months, opened=date(2026, 1, 1))
    assert min(row.total for row in rows) == Decimal("0.01")


@pytest.mark.parametrize("amount", ["0.004", "0.01", "0.10"])
def test_an_amount_below_a_cent_a_month_gets_no_offer(amount: str) -> None:
    assert amortization.offers(Decimal(amount)) == []
    assert amortization.rejection_reasons(Decimal(amount), Decimal(100)) == [
        "The requested amount is too small to be repaid monthly."
    ]
