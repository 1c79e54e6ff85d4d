"""Columns that several lists share."""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from portal.records.figures import copy_day, days_of
from portal.tables import cells
from portal.tables.pages import Column
from portal.ui.exports import amount
from portal.ui.templatetags import ui
from servicing.figures import aging

DAYS_READ = ["past_due", "oldest_unpaid_due", "days_past_due"]
"""The fields behind an account's days past due."""


def value_column(
    name: str, head: str, path: str, show: Callable[[Any], Any] = ui.or_dash, css: str = "", **more: Any
) -> Column:
    """A column for an attribute of the row, such as ``record.amount``: as is in a file, by ``show`` on screen."""
    value = attrgetter(path)
    if path.startswith("record."):
        more["reads"] = [path.removeprefix("record.")]
    return Column(name=name, head=head, value=value, cell=lambda row: show(value(row)), css=css, **more)


def money_column(
    name: str, head: str, path: str, show: Callable[[Any], Any] = ui.known_money, css: str = "", **more: Any
) -> Column:
    """A column for an amount of the row, in a file with at least two decimals."""
    value = attrgetter(path)
    shown = value_column(name, head, path, show, f"sd-num {css}".strip(), **more)
    return replace(shown, value=lambda row: amount(value(row)))


def account_columns(head: str) -> tuple[Column, ...]:
    """The columns for the account under its borrower's name, and the IDs of both."""
    return (
        Column(name="record", head=head, value=lambda row: row.record.uuid, reads=["uuid"]),
        Column(
            name="borrower",
            head="Borrower",
            value=lambda row: str(row.borrower or ""),
            reads=[],
            cell=lambda row: cells.account_link(row, head),
            is_fixed=True,
        ),
        Column(
            name="borrower_uuid",
            head="Borrower ID",
            value=lambda row: row.record.borrower_uuid,
            reads=["borrower_uuid"],
        ),
    )


def due_since_columns() -> tuple[Column, ...]:
    """In a file, what fell due since the copy, and its day; on screen both are beside the past due amount."""
    return (
        Column(
            name="due_since",
            head="Due since the copy",
            value=lambda row: amount(row.record.due_since_amount),
            reads=["due_since_amount"],
            beside="past_due",
        ),
        Column(
            name="due_since_on",
            head="Oldest due since the copy",
            value=lambda row: row.record.due_since_on,
            reads=["due_since_on"],
            beside="past_due",
        ),
        COPY_OF,
    )


def past_due_columns() -> tuple[Column, ...]:
    """The columns for past due amount, days past due and next payment."""
    return (
        Column(
            name="past_due",
            head="Past due",
            value=lambda row: amount(row.record.past_due),
            reads=DAYS_READ,
            cell=cells.past_due,
            css="sd-num",
        ),
        *due_since_columns(),
        Column(
            name="days",
            head="Days past due",
            value=lambda row: days_of(row.record),
            reads=DAYS_READ,
            cell=cells.days_past_due,
            css="sd-num sd-wide",
        ),
        Column(
            name="aging",
            head="Aging",
            value=lambda row: str(aging(row.record.past_due, days_of(row.record))),
            reads=DAYS_READ,
            beside="days",
        ),
        Column(
            name="due",
            head="Due next",
            value=lambda row: row.record.next_due_on,
            cell=cells.due_next,
            reads=["next_due_on"],
        ),
        Column(
            name="due_amount",
            head="Amount due next",
            value=lambda row: amount(row.record.due_amount),
            reads=["due_amount"],
            beside="due",
        ),
    )


COPY_OF = Column(
    name="copy_of",
    head="Copy of",
    value=lambda row: copy_day(row.record),
    reads=["answer_day", "answer_at"],
)
CHECKED = Column(
    name="checked",
    head="Last updated",
    value=lambda row: row.record.checked_at,
    reads=["checked_at"],
    cell=cells.last_checked,
    css="sd-widest sd-updated",
)
