"""The tables of the page as files: a spreadsheet with a sheet for each, or one of them as CSV."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from portal.portfolio.aging import PRODUCTS
from portal.portfolio.models import LATE, View
from portal.portfolio.page import Page
from portal.ui.exports import amount

BATCH_SIZE: Final = 500


class Table(NamedTuple):
    """A table of the page: its name in an address, its title, its columns and rows."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(rows)
    return iter(lambda: list(islice(remaining, BATCH_SIZE)), [])


def tables(page: Page) -> list[Table]:
    """Every table of a day that has rows."""
    return [table for build in TABLES.values() for table in build(page) if table.rows]


def _aging(page: Page) -> Iterator[Table]:
    columns = ["Product", "Aging", "Accounts", "Principal", "Principal known", "Past due", "Past due known"]
    yield Table(
        "aging",
        "Aging by product",
        [*columns, "Due since the copy"],
        [
            [
                PRODUCTS[cell.kind],
                row.label,
                cell.sum.number,
                amount(cell.sum.principal),
                cell.sum.principal_known,
                None if cell.is_not_known else amount(cell.sum.past_due),
                cell.sum.past_due_known,
                amount(cell.sum.due_since),
            ]
            for number in range(len(PRODUCTS))
            for row in page.figures.rows
            for cell in [row.cells[number]]
        ],
    )


def _chart(page: Page) -> Iterator[Table]:
    days = page.chart.days if page.chart else []
    heads = ["Day", *(f"Principal {one.label}" for one in LATE), "Together"]
    rows = [[one.day, *map(amount, one.parts), amount(one.total)] for one in days]
    yield Table("days", "Aging by day", heads, rows)


def _roll(page: Page) -> Iterator[Table]:
    if not page.roll:
        return
    heads = ["From", *(head or "Still open" for head in page.roll.heads)]
    rows = page.roll.rows
    yield Table(
        "roll",
        "Roll by accounts",
        [*heads, "Total"],
        [
            [row.label or "Open before", *(cell.number for cell in row.cells), row.total.number]
            for row in rows
        ],
    )
    yield Table(
        "roll_principal",
        "Roll by principal",
        [*heads, "Paid, net", "Total"],
        [
            [
                row.label or "Open before",
                *(amount(cell.principal) for cell in row.cells),
                amount(row.paid),
                amount(row.total.principal),
            ]
            for row in rows
        ],
    )


def _cash(page: Page) -> Iterator[Table]:
    yield Table(
        "cash",
        "Cash by week",
        [
            "From",
            "To",
            "Due",
            "Due without an amount",
            "Of it came",
            "All collected",
            "Returned",
            "Has lines",
        ],
        [
            [
                week.first,
                week.last,
                amount(week.due) if week.is_known else None,
                week.not_known,
                amount(week.paid) if week.is_known else None,
                amount(week.collected),
                amount(week.returned),
                week.has_lines,
            ]
            for week in page.cash.weeks
        ],
    )


def _forecast(page: Page) -> Iterator[Table]:
    if not page.outlook:
        return
    yield Table(
        "next",
        "Next 30 days",
        ["From", "To", *View.labels],
        [
            [one.first, one.last, amount(one.scheduled), amount(one.unscheduled), amount(one.promised)]
            for one in page.outlook.periods
        ],
    )
    yield Table(
        "forecast",
        "Last week’s forecast",
        ["View", "Forecast", "Came"],
        [[one.view.label, amount(one.forecast), amount(one.paid)] for one in page.outlook.checks],
    )


def _owners(page: Page) -> Iterator[Table]:
    yield Table(
        "owners",
        "By owner",
        ["Owner", "Accounts", "Past due", "Reached", "Promises made", "Kept", "Decided", "Cured"],
        [
            [
                one.name,
                one.number,
                amount(one.past_due),
                one.reached,
                one.promised,
                one.kept,
                one.decided,
                one.cured,
            ]
            for one in page.owners
        ],
    )


TABLES: Final[dict[str, Callable[[Page], Iterator[Table]]]] = {
    "aging": _aging,
    "days": _chart,
    "roll": _roll,
    "cash": _cash,
    "next": _forecast,
    "owners": _owners,
}
