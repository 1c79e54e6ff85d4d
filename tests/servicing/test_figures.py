"""Amounts owed on loans and lines of credit, checked against figures worked out by hand."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servicing import Loan, Repayment, Statement
from servicing.figures import (
    FOREVER,
    Aging,
    Due,
    DueSince,
    Figures,
    NotKnown,
    Part,
    add_past_due,
    aging,
    is_closed_status,
    is_partly_paid,
    line_figures,
    loan_figures,
    percent_of_limit,
)
from servicing.schedules import schedule_of

TODAY = date(2026, 11, 20)
CLOSED = frozenset({"CLOSED", "PAID_OFF", "CHARGED_OFF"})


def row(due: str | None, total: str | None = "100.10", **values: Any) -> dict[str, Any]:
    """Return an unpaid installment."""
    amount = None if total is None else Decimal(total)
    return {"due_date": due, "total": amount, "status": "SCHEDULED", "paid_on": None} | values


def paid_row(due: str, balance: str | None = "900.00") -> dict[str, Any]:
    return row(due, status="PAID", paid_on=due, balance=None if balance is None else Decimal(balance))


def loan(*rows: Any, **values: Any) -> Loan:
    terms: dict[str, Any] = {"amount": Decimal("1000.00"), "delinquent": False, "status": "ACTIVE"} | values
    return Loan(uuid="l-1", installments=rows, **terms)


def figures(*rows: Any, today: date = TODAY, **values: Any) -> Figures:
    return loan_figures(loan(*rows, **values), today, closed=CLOSED)


class TestLoan:
    def test_two_unpaid_installments_are_past_due(self) -> None:
        found = figures(
            paid_row("2026-09-10", "900.50"),
            row("2026-10-10", "100.10"),
            row("2026-11-10", "100.15"),
            row("2026-12-10", "100.20"),
            row("2027-01-10", "100.25"),
        )
        assert (found.past_due, found.why_not_known, found.is_late) == (Decimal("200.25"), None, True)
        assert (found.oldest_unpaid_due, found.days_past_due(TODAY)) == (date(2026, 10, 10), 41)
        assert found.aging(TODAY) == Aging.DAYS_30_59
        assert found.due_next == Due(date(2026, 12, 10), Decimal("100.20"))
        assert found.remaining == Decimal("400.70")
        assert found.principal == Decimal("900.50")
        assert found.payoff is None
        assert found.good_through == date(2026, 12, 10)

    def test_an_installment_due_today_is_due_next_and_past_due_tomorrow(self) -> None:
        found = figures(row("2026-11-20"))
        assert (found.past_due, found.due_next) == (Decimal(0), Due(TODAY, Decimal("100.10")))
        assert found.good_through == TODAY
        later = figures(row("2026-11-20"), today=TODAY + timedelta(days=1))
        assert (later.past_due, later.due_next, later.days_past_due(date(2026, 11, 21))) == (
            Decimal("100.10"),
            None,
            1,
        )

    def test_what_falls_due_after_the_copy_is_due_since(self) -> None:
        rows = [
            row("2026-11-17", "7.00"),
            row("2026-11-18", "100.10"),
            row("2026-11-19", "100.15"),
            row("2026-11-20"),
        ]
        found = loan_figures(loan(*rows), TODAY, copied_on=date(2026, 11, 18))
        assert (found.past_due, found.oldest_unpaid_due) == (7, date(2026, 11, 17))
        assert found.due_since == DueSince(2, Decimal("200.25"), date(2026, 11, 18))
        assert found.due_next == Due(TODAY, Decimal("100.10"))
        newer = loan_figures(loan(*rows), TODAY, copied_on=TODAY)
        assert (newer.past_due, newer.due_since) == (Decimal("207.25"), None)

    @pytest.mark.parametrize("day", range(17, 22))
    def test_one_day_decides_between_past_due_and_due_since(self, day: int) -> None:
        copied_on = date(2026, 11, day)
        found = loan_figures(loan(row("2026-11-18")), TODAY, copied_on=copied_on)
        is_past_due = copied_on > date(2026, 11, 18)
        assert (found.is_late, bool(found.due_since)) == (is_past_due, not is_past_due)
        assert found.aging(TODAY) == (Aging.DAYS_1_29 if is_past_due else Aging.CURRENT)

    @pytest.mark.parametrize(
        ("rows", "due_since"),
        [
            ([row("2026-11-18", None), row("2026-11-19")], DueSince(2, None, date(2026, 11, 18))),
            ([row("2026-11-18", status="WAIVED")], DueSince(1, None, date(2026, 11, 18))),
            ([row("2026-11-18", "0.004")], None),
            ([paid_row("2026-11-18")], None),
            ([row(None), row("2026-11-18")], DueSince(1, Decimal("100.10"), date(2026, 11, 18))),
        ],
    )
    def test_due_since_without_an_amount_stays_due_since(
        self, rows: list[Any], due_since: DueSince | None
    ) -> None:
        found = loan_figures(loan(*rows), TODAY, copied_on=date(2026, 11, 10), closed=CLOSED)
        assert (found.due_since, found.is_late) == (due_since, False)
        closed = loan_figures(
            loan(*rows, status="Closed"), TODAY, copied_on=date(2026, 11, 10), closed=CLOSED
        )
        assert closed.due_since is None

    def test_less_than_half_a_cent_is_nothing(self) -> None:
        found = figures(row("2026-10-10", "0.0049"), row("2026-11-10", "0.004"))
        assert (found.past_due, found.is_late, found.days_past_due(TODAY)) == (0, False, 0)
        assert figures(row("2026-10-10", "0.005")).past_due == Decimal("0.005")

    @pytest.mark.parametrize(("age", "why"), [(30, "NO_SCHEDULE_YET"), (31, "NO_SCHEDULE")])
    def test_a_new_loan_has_no_schedule_yet(self, age: int, why: str) -> None:
        opened = TODAY - timedelta(days=age)
        found = figures(opening_date=opened)
        assert (found.past_due, found.why_not_known, found.is_late) == (None, NotKnown[why], False)
        assert found.good_through == (TODAY if age == 30 else FOREVER)
        delinquent = figures(opening_date=opened, delinquent=True)
        assert (delinquent.why_not_known, delinquent.is_late) == (NotKnown.NO_SCHEDULE, True)

    def test_a_fully_paid_loan_has_no_balance(self) -> None:
        found = figures(paid_row("2026-09-10"), paid_row("2026-10-10", "0.00"))
        assert (found.past_due, found.remaining, found.principal, found.due_next) == (0, 0, 0, None)
        assert (found.aging(TODAY), found.good_through) == (Aging.CURRENT, FOREVER)

    @pytest.mark.parametrize(
        ("rows", "values", "why"),
        [
            ([row(None), row("2026-12-10")], {}, NotKnown.NO_DATE),
            (["see the contract", row("2026-10-10")], {}, NotKnown.NO_DATE),
            ([row("2026-10-10", None)], {}, NotKnown.NO_TOTAL),
            ([row("2026-10-10", status="WAIVED")], {}, NotKnown.UNKNOWN_STATUS),
            ([{"due_date": "2026-10-10", "total": 5}], {}, NotKnown.UNKNOWN_STATUS),
            ([row("2026-12-10")], {"delinquent": True}, NotKnown.DELINQUENT),
            ([], {}, NotKnown.NO_SCHEDULE),
            ([], {"repayments_start_date": TODAY}, NotKnown.NO_SCHEDULE),
            ([], {"repayments_start_date": date(2027, 1, 1), "delinquent": True}, NotKnown.DELINQUENT),
        ],
    )
    def test_an_unknown_past_due_amount_has_a_reason(
        self, rows: list[Any], values: dict[str, Any], why: NotKnown
    ) -> None:
        found = figures(*rows, **values)
        assert (found.past_due, found.why_not_known) == (None, why)
        assert found.is_late is bool(values.get("delinquent") or found.oldest_unpaid_due)

    @pytest.mark.parametrize(
        ("rows", "values"),
        [
            ([row("2026-12-10", None)], {}),
            ([row("2026-12-10", status="WAIVED")], {}),
            ([row("2026-10-10", "0"), row("2026-10-10", "-5")], {}),
            ([row("2026-10-10", "0", status="WAIVED")], {}),
            ([], {"repayments_start_date": TODAY + timedelta(days=1)}),
        ],
    )
    def test_past_due_is_zero(self, rows: list[Any], values: dict[str, Any]) -> None:
        assert figures(*rows, **values).past_due == Decimal(0)

    def test_days_past_due_are_known_without_an_amount(self) -> None:
        unknown = figures(row("2026-10-10", None))
        assert (unknown.days_past_due(TODAY), unknown.is_late) == (41, True)
        assert not figures(row("2026-10-10", None), status="CLOSED").is_late
        assert figures(row("2026-10-10", status="WAIVED")).days_past_due(TODAY) is None
        assert figures(row("2026-12-10"), delinquent=True).days_past_due(TODAY) is None

    @pytest.mark.parametrize("status", ["PAID", "completed"])
    def test_a_paid_status_is_paid_whatever_the_payment_date_says(self, status: str) -> None:
        found = figures(row("2026-11-10", status=status, paid_on="2026-11-25", balance=Decimal("5.00")))
        assert (found.past_due, found.remaining, found.principal) == (0, 0, 5)

    def test_a_payment_date_in_the_future_alone_is_unpaid_until_then(self) -> None:
        future = row("2026-11-10", status="SCHEDULED", paid_on="2026-11-25", balance=Decimal("5.00"))
        found = figures(future)
        assert (found.past_due, found.remaining, found.principal) == (
            Decimal("100.10"),
            Decimal("100.10"),
            1000,
        )
        assert found.good_through == date(2026, 11, 24)
        assert figures(future, today=date(2026, 11, 25)).past_due == 0

    @pytest.mark.parametrize("status", [None, "SCHEDULED"])
    def test_an_unreadable_payment_date_makes_past_due_unknown(self, status: str | None) -> None:
        found = figures(row("2026-10-10", status=status, paid_on="10/12/2026"))
        assert (found.past_due, found.why_not_known) == (None, NotKnown.UNKNOWN_STATUS)
        assert figures(row("2026-12-10", status=status, paid_on="10/12/2026")).past_due == 0

    def test_is_history_marks_an_installment_as_paid(self) -> None:
        rows = [
            {"PaymentDate": "2026-09-10", "PaymentAmount": 100, "BalanceAmount": 900, "IsHistory": True},
            {"PaymentDate": "2026-10-10", "PaymentAmount": 100, "BalanceAmount": 800, "IsHistory": False},
        ]
        found = figures(*rows)
        assert (found.past_due, found.remaining, found.principal) == (100, 100, 900)

    @pytest.mark.parametrize(
        ("rows", "principal"),
        [
            ([row("2026-12-10")], "1000.00"),
            (
                [paid_row("2026-09-10", "900.00"), paid_row("2026-10-10", "800.00"), row("2026-11-10")],
                "800.00",
            ),
            ([row("2026-11-10"), paid_row("2026-10-10", "800.00")], "800.00"),
            ([paid_row("2026-09-10", None), row("2026-11-10")], None),
            ([paid_row("2026-09-10"), row("2026-10-10"), paid_row("2026-11-10")], None),
            ([paid_row("2026-09-10"), row(None)], None),
            ([row("2026-09-10", "0"), paid_row("2026-10-10", "850.00"), row("2026-12-10")], "850.00"),
            ([], None),
        ],
    )
    def test_principal_is_the_balance_after_consecutive_payments(
        self, rows: list[Any], principal: str | None
    ) -> None:
        assert figures(*rows).principal == (principal and Decimal(principal))

    def test_principal_before_repayments_start_is_the_loan_amount(self) -> None:
        assert figures(repayments_start_date=date(2027, 1, 1)).principal == Decimal("1000.00")
        assert figures(row("2026-12-10"), amount=None).principal is None

    def test_remaining_is_unknown_if_an_amount_is_missing(self) -> None:
        assert figures(row("2026-12-10"), row("2027-01-10", None)).remaining is None
        assert figures(row("2026-10-10", status="WAIVED")).remaining is None
        assert figures(row("2026-12-10"), row("2027-01-10", "-5")).remaining == Decimal("100.10")
        assert figures().remaining is None

    def test_the_next_installment_may_have_no_amount(self) -> None:
        assert figures(row("2027-01-10"), row("2026-12-10", None)).due_next == Due(date(2026, 12, 10), None)

    @pytest.mark.parametrize("status", ["closed", "Paid off", "CHARGED-OFF"])
    def test_a_closed_loan_has_figures_but_is_not_late(self, status: str) -> None:
        found = figures(row("2026-10-10"), status=status, delinquent=True)
        assert (found.past_due, found.is_closed, found.is_late) == (Decimal("100.10"), True, False)

    @pytest.mark.parametrize("status", [None, "", "ACTIVE", "FROZEN", "CLOSED_SOON"])
    def test_other_statuses_are_not_closed(self, status: str | None) -> None:
        assert not is_closed_status(status, CLOSED)

    def test_a_repayment_after_the_oldest_unpaid_date_is_partial(self) -> None:
        def repayment_on(day: date, status: str = "SUCCEEDED") -> Repayment:
            return Repayment(uuid="r-1", effective_date=day, status=status, amount=Decimal("100.10"))

        oldest = date(2026, 10, 10)
        unpaid = schedule_of(loan(row("2026-10-10")), TODAY)
        assert is_partly_paid(oldest, unpaid, [repayment_on(date(2026, 10, 11))])
        assert is_partly_paid(oldest, unpaid, [repayment_on(date(2026, 10, 11), "completed")])
        assert not is_partly_paid(
            oldest, unpaid, [repayment_on(oldest), repayment_on(date(2026, 10, 11), "FAILED")]
        )
        assert not is_partly_paid(None, unpaid, [repayment_on(date(2026, 10, 11))])

    def test_a_repayment_of_a_paid_installment_is_not_partial(self) -> None:
        def paid(amount: str, day: date) -> Repayment:
            return Repayment(uuid="r-1", effective_date=day, status="SUCCEEDED", amount=Decimal(amount))

        later = paid_row("2026-11-10") | {"paid_on": "2026-11-12"}
        schedule, oldest = schedule_of(loan(row("2026-10-10"), later), TODAY), date(2026, 10, 10)
        its_own = paid("100.10", date(2026, 11, 12))
        assert not is_partly_paid(oldest, schedule, [its_own])
        assert is_partly_paid(oldest, schedule, [its_own, its_own])
        assert is_partly_paid(oldest, schedule, [paid("100.11", date(2026, 11, 12))])
        assert is_partly_paid(oldest, schedule, [paid("100.10", date(2026, 11, 11))])


class TestLine:
    def test_figures_come_from_the_statement(self) -> None:
        line = Statement(
            principal_balance=Decimal("62162.32"),
            payoff_balance=Decimal("62500.00"),
            credit_limit=Decimal("93000.00"),
            available_credit=Decimal("0.00"),
            past_due_balance=Decimal("188.56"),
            days_past_due=12,
            payment_amount_due=Decimal("620.00"),
            payment_due_date=date(2026, 11, 24),
        )
        found = line_figures(line, TODAY)
        assert (found.past_due, found.days_past_due(TODAY), found.aging(TODAY)) == (
            Decimal("188.56"),
            12,
            Aging.DAYS_1_29,
        )
        assert (found.principal, found.payoff, found.available) == (
            line.principal_balance,
            line.payoff_balance,
            Decimal(0),
        )
        assert found.due_next == Due(date(2026, 11, 24), Decimal("620.00"))
        assert int(percent_of_limit(found.principal, found.limit) or 0) == 66
        assert found.good_through == date(2026, 11, 24)
        later = line_figures(line, date(2026, 11, 25))
        assert (later.due_next, later.days_past_due(date(2026, 11, 25)), later.good_through) == (
            None,
            12,
            FOREVER,
        )

    @pytest.mark.parametrize(
        ("copied", "today", "is_next", "is_since"),
        [
            (24, 24, True, False),
            (24, 25, False, True),
            (20, 25, False, True),
            (25, 25, False, False),
            (25, 30, False, False),
        ],
    )
    def test_a_bill_is_due_next_until_its_day_and_then_due_since_the_copy(
        self, copied: int, today: int, is_next: bool, is_since: bool
    ) -> None:
        day, amount = date(2026, 11, 24), Decimal("620.00")
        line = Statement(
            past_due_balance=Decimal(0), days_past_due=0, payment_amount_due=amount, payment_due_date=day
        )
        found = line_figures(line, date(2026, 11, today), copied_on=date(2026, 11, copied))
        assert found.due_next == (Due(day, amount) if is_next else None)
        assert found.due_since == (DueSince(1, amount, day) if is_since else None)
        assert (found.past_due, found.is_late) == (0, False)

    @pytest.mark.parametrize("amount", ["0", "0.004", "-5", None])
    def test_a_bill_of_nothing_is_never_due(self, amount: str | None) -> None:
        line = Statement(
            payment_amount_due=None if amount is None else Decimal(amount), payment_due_date=TODAY
        )
        later = line_figures(line, TODAY + timedelta(days=1), copied_on=TODAY)
        assert (line_figures(line, TODAY).due_next, later.due_since) == (None, None)

    @pytest.mark.parametrize(
        ("reported", "past_due"), [("0.004", "0"), ("-0.001", "0"), ("0.005", "0.005"), ("-0.5", "-0.5")]
    )
    def test_less_than_half_a_cent_is_nothing(self, reported: str, past_due: str) -> None:
        found = line_figures(Statement(past_due_balance=Decimal(reported), days_past_due=None), TODAY)
        assert (found.past_due, found.is_late) == (Decimal(past_due), Decimal(past_due) > 0)

    @pytest.mark.parametrize(
        ("past_due", "days", "is_late", "bucket"),
        [
            (None, None, False, Aging.UNKNOWN),
            (None, 31, True, Aging.DAYS_30_59),
            (None, 0, False, Aging.CURRENT),
            ("0", 0, False, Aging.CURRENT),
            ("0", None, False, Aging.CURRENT),
            ("0", 12, False, Aging.UNKNOWN),
            ("310", None, True, Aging.UNKNOWN),
            ("310", 0, True, Aging.UNKNOWN),
            ("-5", 0, False, Aging.CURRENT),
        ],
    )
    def test_amount_and_days_may_be_missing_or_disagree(
        self, past_due: str | None, days: int | None, is_late: bool, bucket: Aging
    ) -> None:
        amount = None if past_due is None else Decimal(past_due)
        found = line_figures(Statement(past_due_balance=amount, days_past_due=days), TODAY)
        assert (found.past_due, found.is_late, found.aging(TODAY)) == (amount, is_late, bucket)

    @pytest.mark.parametrize(
        ("amount", "day"),
        [(None, TODAY), ("0", TODAY), ("-5", TODAY), ("5", None), ("5", TODAY - timedelta(days=1))],
    )
    def test_no_payment_is_due_next(self, amount: str | None, day: date | None) -> None:
        line = Statement(payment_amount_due=None if amount is None else Decimal(amount), payment_due_date=day)
        assert line_figures(line, TODAY).due_next is None

    @pytest.mark.parametrize(
        ("principal", "limit", "percent"),
        [("50", "200", 25), ("300", "200", 150), ("50", "0", None), ("50", None, None), (None, "200", None)],
    )
    def test_principal_is_shown_as_a_percent_of_the_limit(
        self, principal: str | None, limit: str | None, percent: int | None
    ) -> None:
        assert percent_of_limit(principal and Decimal(principal), limit and Decimal(limit)) == percent


@pytest.mark.parametrize(
    ("days", "bucket"),
    [
        (1, "1–29 days"),
        (29, "1–29 days"),
        (30, "30–59 days"),
        (59, "30–59 days"),
        (60, "60–89 days"),
        (90, "90+ days"),
    ],
)
def test_days_past_due_select_the_aging_bucket(days: int, bucket: str) -> None:
    assert aging(Decimal(1), days) == bucket


class TestTotal:
    LOAN = Part(is_line=False, past_due=Decimal("18478.50"), days=40, is_late=True, is_closed=False)
    LINE = Part(is_line=True, past_due=Decimal("188.56"), days=12, is_late=True, is_closed=False)
    UNKNOWN = Part(is_line=False, past_due=None, days=None, is_late=False, is_closed=False)
    CURRENT_LINE = Part(is_line=True, past_due=Decimal(0), days=0, is_late=False, is_closed=False)

    def test_loans_and_lines_are_added(self) -> None:
        found = add_past_due([self.LOAN, self.LINE])
        assert (found.amount, found.days, found.is_late) == (Decimal("18667.06"), 40, True)

    def test_unknown_amounts_are_counted_but_never_zero(self) -> None:
        found = add_past_due([self.LOAN, self.UNKNOWN])
        assert (found.amount, found.unknown_loans, found.unknown_lines) == (Decimal("18478.50"), 1, 0)
        assert add_past_due([self.CURRENT_LINE, self.UNKNOWN]).amount is None
        assert add_past_due([]).amount is None
        assert add_past_due([self.CURRENT_LINE]).amount == 0

    def test_a_new_loan_without_a_schedule_is_not_an_unknown_amount(self) -> None:
        new = self.UNKNOWN._replace(has_no_schedule_yet=True)
        found = add_past_due([new, self.CURRENT_LINE])
        assert (found.amount, found.unknown, found.loans, found.lines) == (0, 0, 0, 1)

    def test_closed_accounts_and_credits_are_left_out(self) -> None:
        closed = self.LOAN._replace(is_closed=True, is_late=False)
        credit = self.LINE._replace(past_due=Decimal("-50.00"), is_late=False)
        found = add_past_due([closed, credit, self.LINE])
        assert (found.amount, found.closed, found.loans, found.lines) == (Decimal("188.56"), 1, 0, 2)


AMOUNTS = st.none() | st.decimals(-50, 500, places=2)
DAYS = st.none() | st.dates(TODAY - timedelta(days=70), TODAY + timedelta(days=70))
ROWS = st.fixed_dictionaries(
    {
        "due_date": DAYS.map(lambda day: day and day.isoformat()),
        "total": AMOUNTS,
        "balance": AMOUNTS,
        "status": st.sampled_from(["PAID", "SCHEDULED", "PAST_DUE", "WAIVED", None]),
        "paid_on": DAYS.map(lambda day: day and day.isoformat()),
    }
)


@pytest.mark.slow
@given(
    st.lists(ROWS | st.just("entry"), max_size=6),
    st.none() | st.booleans(),
    DAYS,
    st.sampled_from([TODAY, date(2028, 2, 28), date(2026, 12, 31)]),
)
@example([{"total": Decimal(0), "status": "SCHEDULED"}], None, date(2027, 1, 1), date(2026, 12, 31))
def test_figures_are_stable_through_their_good_through_date(
    rows: list[Any], delinquent: bool | None, starts: date | None, today: date
) -> None:
    any_loan = loan(*rows, delinquent=delinquent, repayments_start_date=starts)
    found = loan_figures(any_loan, today)
    assert found.good_through >= today
    for number in range(40):
        day = today + timedelta(days=number)
        if day <= found.good_through:
            assert loan_figures(any_loan, day) == found
    if found.past_due == 0:
        assert not delinquent
    assert (found.past_due is None) == (found.why_not_known is not None)
    assert found.past_due is None or found.past_due >= 0
