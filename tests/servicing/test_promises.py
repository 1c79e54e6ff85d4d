"""Promises to pay: which repayments count, when a promise is kept or broken, and business days."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st

from servicing import Repayment
from servicing.business_days import business_day_after, federal_reserve_holidays, is_business_day
from servicing.promises import (
    Promise,
    PromiseState,
    SeenRepayment,
    decide,
)

LOGGED = date(2026, 11, 16)
DAY = date(2026, 11, 18)
DEADLINE = date(2026, 11, 19)
AT = datetime(2026, 11, 16, 15, tzinfo=UTC)


def promise(amount: str = "500", day: date = DAY, minutes: int = 0, **more: Any) -> Promise:
    values = {"logged_on": LOGGED, "logged_at": AT + timedelta(minutes=minutes)} | more
    return Promise(amount=Decimal(amount), day=day, **values)


def repayment(
    amount: str | None = "500",
    day: date | None = DAY,
    status: str | None = "SUCCEEDED",
    kind: str | None = None,
    seen: datetime = AT + timedelta(days=1),
    uuid: str = "r-1",
) -> SeenRepayment:
    value = None if amount is None else Decimal(amount)
    return SeenRepayment(
        Repayment(uuid=uuid, amount=value, effective_date=day, status=status, payment_type=kind), seen
    )


def states(
    promises: list[Promise],
    *repayments: SeenRepayment,
    today: date = DEADLINE + timedelta(days=1),
    read_on: date | None = DEADLINE + timedelta(days=1),
    grace_days: int = 1,
) -> list[PromiseState]:
    found = decide(promises, repayments, today=today, read_on=read_on, grace_days=grace_days)
    return [one.state for one in found]


KEPT, BROKEN, OPEN = PromiseState.KEPT, PromiseState.BROKEN, PromiseState.OPEN
PENDING, WAITING, NOT_KNOWN = PromiseState.PENDING, PromiseState.WAITING, PromiseState.NOT_KNOWN


@pytest.mark.parametrize(
    ("paid", "state"),
    [
        (repayment(), KEPT),
        (repayment("500.01"), KEPT),
        (repayment("499.99"), BROKEN),
        (repayment(kind="SINGLE_PAYMENT"), KEPT),
        (repayment(kind="payoff"), KEPT),
        *((repayment(kind=kind), KEPT) for kind in ("RECURRING", "AUTOPAY", "", "lockbox")),
        *(
            (repayment(kind=kind), BROKEN)
            for kind in ("RETURNED", "Merchant_Return", "REVERSED", "REFUNDED", "DISPUTED", "chargeback")
        ),
        *((repayment(status=status), KEPT) for status in ("succeeded", "COMPLETED", "Settled")),
        *(
            (repayment(status=status), BROKEN)
            for status in ("FAILED", "failed-late", "FAILED_AFTER_SUCCESS", "canceled")
        ),
        *((repayment(status=status), NOT_KNOWN) for status in (None, "", "POSTED", "IN_REVIEW")),
        (repayment(status="POSTED", kind="RETURNED"), BROKEN),
        (repayment("-500", status="POSTED"), BROKEN),
        (repayment(status="POSTED", day=DEADLINE + timedelta(days=1)), BROKEN),
        (repayment(amount=None), NOT_KNOWN),
        (repayment("-500"), BROKEN),
        (repayment(day=None), BROKEN),
        (repayment(day=DEADLINE), KEPT),
        (repayment(day=DEADLINE + timedelta(days=1)), BROKEN),
        (repayment(day=LOGGED), KEPT),
        (repayment(day=LOGGED, seen=AT - timedelta(minutes=1)), BROKEN),
        (repayment(day=LOGGED + timedelta(days=1), seen=AT - timedelta(days=3)), KEPT),
        (repayment(day=LOGGED - timedelta(days=1)), BROKEN),
    ],
)
def test_only_qualifying_repayments_keep_a_promise(paid: SeenRepayment, state: PromiseState) -> None:
    assert states([promise()], paid) == [state]


def test_a_promise_is_broken_only_by_data_read_after_its_deadline() -> None:
    late = DEADLINE + timedelta(days=1)
    assert states([promise()], today=DEADLINE, read_on=DEADLINE) == [OPEN]
    assert states([promise()], today=late, read_on=DEADLINE) == [WAITING]
    assert states([promise()], today=late, read_on=None) == [WAITING]
    assert states([promise()], today=late, read_on=late) == [BROKEN]
    assert states([promise()], repayment(), today=late, read_on=DEADLINE) == [KEPT]
    pending = repayment(status="SCHEDULED")
    assert states([promise()], pending, today=late, read_on=DEADLINE) == [WAITING]
    assert states([promise()], pending, today=late, read_on=late) == [PENDING]


def test_a_payment_with_an_unknown_status_matters_unless_the_others_reach_the_amount() -> None:
    unclear = repayment("100", status="POSTED", uuid="r-9")
    (found,) = decide([promise()], [repayment("400"), unclear], today=DAY, read_on=DAY, grace_days=1)
    assert (found.state, found.paid, [one.uuid for one in found.unclear]) == (NOT_KNOWN, 400, ["r-9"])
    assert states([promise()], repayment(), unclear) == [KEPT]
    assert states([promise()], repayment("499.99"), unclear) == [NOT_KNOWN]
    rest = repayment("500", status="SCHEDULED", uuid="r-2")
    assert states([promise()], rest, unclear, today=DAY, read_on=DAY) == [PENDING]
    late = DEADLINE + timedelta(days=1)
    assert states([promise()], unclear, today=late, read_on=DEADLINE) == [WAITING]


def test_a_payment_scheduled_by_the_deadline_makes_a_promise_pending() -> None:
    scheduled = repayment("100", DEADLINE, "SCHEDULED")
    assert states([promise()], scheduled, today=DAY, read_on=DAY) == [PromiseState.PENDING]
    too_late = repayment("100", DEADLINE + timedelta(days=1), "SCHEDULED")
    assert states([promise()], too_late, today=DAY, read_on=DAY) == [OPEN]


def test_a_late_promise_is_pending_only_if_scheduled_payments_cover_it() -> None:
    rest = repayment("300", DAY, "SCHEDULED", uuid="r-2")
    assert states([promise()], repayment("200"), rest) == [PromiseState.PENDING]
    assert states([promise()], repayment("199"), rest) == [BROKEN]
    assert states([promise()], rest, today=DEADLINE) == [PromiseState.PENDING]
    assert states([promise()], rest, read_on=DEADLINE) == [PromiseState.WAITING]


def test_a_repayment_counts_toward_only_one_promise() -> None:
    first, second = promise(), promise(minutes=1)
    assert states([second, first], repayment()) == [BROKEN, KEPT]
    assert states([first, second], repayment(), repayment(uuid="r-2")) == [KEPT, KEPT]
    withdrawn = promise(is_withdrawn=True)
    assert states([withdrawn, second], repayment()) == [PromiseState.WITHDRAWN, KEPT]


def test_a_decision_lists_counted_and_returned_repayments() -> None:
    paid = repayment("200", uuid="r-1")
    returned_payment = repayment("300", status="FAILED_AFTER_SUCCESS", kind="RETURNED", uuid="r-2")
    (found,) = decide([promise()], [paid, returned_payment], today=DAY, read_on=DAY, grace_days=1)
    assert (found.state, found.paid, found.deadline) == (OPEN, Decimal(200), DEADLINE)
    assert ([one.uuid for one in found.counted], [one.uuid for one in found.returned]) == (["r-1"], ["r-2"])


days = st.dates(LOGGED - timedelta(days=3), DEADLINE + timedelta(days=5))
some_repayments = st.lists(
    st.builds(
        repayment,
        amount=st.none() | st.integers(-100, 900).map(str),
        day=st.none() | days,
        status=st.sampled_from(["SUCCEEDED", "SCHEDULED", "FAILED", "FAILED_AFTER_SUCCESS", None]),
        kind=st.sampled_from([None, "SINGLE_PAYMENT", "PAYOFF", "RETURNED"]),
        uuid=st.uuids().map(str),
    ),
    max_size=8,
    unique_by=lambda one: one.repayment.uuid,
)
some_promises = st.lists(
    st.builds(
        promise,
        amount=st.integers(1, 900).map(str),
        day=st.dates(LOGGED, DEADLINE + timedelta(days=3)),
        minutes=st.integers(0, 50),
        is_withdrawn=st.booleans(),
    ),
    max_size=5,
)


@pytest.mark.slow
@for_any(some_promises, some_repayments, days, st.randoms())
def test_decisions_are_consistent_for_any_repayments(
    promises: list[Promise], paid: list[SeenRepayment], today: date, random: Any
) -> None:
    found = decide(promises, paid, today=today, read_on=today, grace_days=1)
    used = [one.uuid for decision in found for one in (*decision.counted, *decision.scheduled)]
    assert len(used) == len(set(used))
    for one, decision in zip(promises, found, strict=True):
        is_covered = decision.paid >= one.amount
        assert decision.paid == sum((each.amount or 0 for each in decision.counted), Decimal(0))
        assert (decision.state == KEPT) == (is_covered and not one.is_withdrawn)
        assert decision.state != BROKEN or today > decision.deadline
        for each in decision.counted:
            assert each.status == "SUCCEEDED"
            assert each.effective_date
            assert one.logged_on <= each.effective_date <= decision.deadline
    shuffled = random.sample(paid, len(paid))
    assert decide(promises, shuffled, today=today, read_on=today, grace_days=1) == found


HOLIDAYS = {
    2026: "1-1 1-19 2-16 5-25 6-19 9-7 10-12 11-11 11-26 12-25",  # July 4 is a Saturday.
    2027: "1-1 1-18 2-15 5-31 7-5 9-6 10-11 11-11 11-25",  # June 19 and December 25 are Saturdays.
    2021: "1-1 1-18 2-15 5-31 7-5 9-6 10-11 11-11 11-25",
    2023: "1-2 1-16 2-20 5-29 6-19 7-4 9-4 10-9 11-23 12-25",  # November 11 is a Saturday.
}


@pytest.mark.parametrize("year", HOLIDAYS)
def test_federal_reserve_holidays_match_the_calendar(year: int) -> None:
    expected = {date(year, *map(int, one.split("-"))) for one in HOLIDAYS[year].split()}
    assert federal_reserve_holidays(year) == expected


def test_business_days_skip_weekends_and_holidays() -> None:
    assert business_day_after(date(2026, 11, 25), 1) == date(2026, 11, 27)
    assert business_day_after(date(2026, 11, 27), 1) == date(2026, 11, 30)
    assert business_day_after(date(2026, 12, 24), 2) == date(2026, 12, 29)
    assert business_day_after(DAY, 0) == DAY
    assert not is_business_day(date(2026, 11, 28))
