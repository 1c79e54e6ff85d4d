"""Schedules built from installments in the two known shapes and in unknown shapes."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import Client, Loan
from servicing.sandbox import Sandbox
from servicing.schedules import Column, Schedule, State, schedule_of, total

TODAY = date(2026, 11, 20)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.decimals(allow_nan=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "number",
        "due_date",
        "principal",
        "total",
        "status",
        "paid_on",
        "PaymentDate",
        "PaymentAmount",
        "IsHistory",
        "odd",
    ]
)


def build_schedule(*rows: Any) -> Schedule:
    return schedule_of(Loan(uuid="l-1", installments=rows), TODAY)


def snake_row(due: str, amount: str = "100.10", **values: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "due_date": due,
        "total": Decimal(amount),
        "status": "SCHEDULED",
        "paid_on": None,
    } | values


@pytest.mark.parametrize("shape", ["snake", "pascal"])
@pytest.mark.parametrize("count", [0, 12, 360])
def test_both_known_shapes_give_the_same_installments(
    service_client: Client, sandbox: Sandbox, shape: str, count: int
) -> None:
    owner = sandbox.world.borrower()["uuid"]
    known = sandbox.world.loan(owner, amount="12000.00", installments=count, shape=shape, paid=min(count, 2))
    found = schedule_of(service_client.loans.get(owner, known["uuid"]), date.max)

    assert (len(found.rows), found.is_known) == (count, bool(count))
    assert sum(row.is_paid for row in found.rows) == min(count, 2)
    assert total(row.principal for row in found.rows) == (Decimal(12000) if count else None)
    assert all(row.extra == {} for row in found.rows)


def test_columns_list_known_fields_before_other_keys() -> None:
    found = build_schedule(
        {"PaymentDate": "2026-12-01", "PaymentAmount": 1, "Memo": "x", "Rank": 3}, {"Until": "2027-01-01"}
    )
    assert found.columns == [
        Column("due_date", "day", True),
        Column("total", "money", True),
        Column("Memo", "text", False),
        Column("Rank", "number", False),
        Column("Until", "day", False),
    ]


def test_unreadable_values_are_stored_in_extra() -> None:
    (row,) = build_schedule(snake_row("soon", total="a lot", status=7)).rows
    assert (row.due_date, row.total) == (None, None)
    assert row.extra == {"due_date": "soon", "total": "a lot", "status": 7}


def test_an_unreadable_row_makes_the_schedule_unknown() -> None:
    found = build_schedule(snake_row("2026-12-01"), "see the contract")
    assert not found.is_known
    assert found.rows[1].extra == {"entry": "see the contract"}
    assert found.columns[-1] == Column("entry", "text", False)


def test_row_states_depend_on_due_date_and_payment() -> None:
    found = build_schedule(
        snake_row("2026-09-24", paid_on="2026-09-23"),
        snake_row("2026-10-24"),
        snake_row("2026-11-20"),
        snake_row("2026-12-24"),
        {"odd": 1},
    )
    assert found.states(TODAY) == [State.PAID, State.OVERDUE, State.NEXT, State.FUTURE, State.UNKNOWN]
    assert found.next_due(TODAY) is found.rows[2]
    assert found.overdue(TODAY) == [found.rows[1]]


@pytest.mark.parametrize(
    "row", [{"IsHistory": True}, {"status": "paid"}, {"paid_on": "2026-01-01 10:00:00 PST"}]
)
def test_a_row_can_be_marked_as_paid_in_three_ways(row: dict[str, Any]) -> None:
    assert build_schedule(row).rows[0].is_paid


def test_a_row_that_is_not_history_is_unpaid() -> None:
    assert not build_schedule({"IsHistory": False, "PaymentDate": "2026-12-01"}).rows[0].is_paid


def test_rows_are_grouped_by_year_in_order() -> None:
    days = ["2026-11-30", "2026-12-30", "2027-01-30"]
    assert [(year, len(rows)) for year, rows in build_schedule(*map(snake_row, days)).years()] == [
        (2026, 2),
        (2027, 1),
    ]


@pytest.mark.parametrize("days", [["2027-01-30", "2026-12-30"], ["2026-12-30", ""], []])
def test_rows_without_ordered_dates_are_not_grouped_by_year(days: list[str]) -> None:
    assert build_schedule(*map(snake_row, days)).years() == []


@pytest.mark.parametrize(
    ("parts", "sum_of_them"),
    [(["0.1", "0.2"], "0.3"), (["0.1", None], None), ([], None), (["0.00"], "0.00")],
)
def test_a_total_is_exact_or_none(parts: list[str | None], sum_of_them: str | None) -> None:
    assert total(part and Decimal(part) for part in parts) == (sum_of_them and Decimal(sum_of_them))


@pytest.mark.slow
@given(st.lists(st.dictionaries(KEYS, JSON_VALUES, max_size=6) | JSON_VALUES, max_size=8))
def test_any_installment_becomes_a_row_with_its_values(rows: list[Any]) -> None:
    found = build_schedule(*rows)
    assert len(found.rows) == len(rows)
    assert len(found.states(TODAY)) == len(rows)
    for row in found.rows:
        shown = [row.value(column) for column in found.columns]
        assert all(value in shown for value in row.extra.values() if value is not None)


@given(st.lists(st.dates(date(2000, 1, 1), date(2100, 1, 1)), min_size=1, max_size=40))
def test_rows_are_grouped_by_year_only_in_date_order(days: list[date]) -> None:
    found = build_schedule(*(snake_row(day.isoformat()) for day in days))
    assert sum(len(rows) for _, rows in found.years()) in (0, len(days))
    assert bool(found.years()) == (days == sorted(days))
    assert not found.next_due(max(days) + timedelta(days=1))
