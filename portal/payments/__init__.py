"""Payments as staff read them, whichever page shows them: one table, one repayment beside it, and its life."""

from portal.payments.table import (
    COLUMNS,
    SCHEDULED,
    SUCCEEDED,
    Count,
    Group,
    Opened,
    Row,
    Summary,
    Table,
    account_of,
    cells,
    month_of,
    opened,
    summarised,
    table,
    table_of,
)

__all__ = [
    "COLUMNS",
    "SCHEDULED",
    "SUCCEEDED",
    "Count",
    "Group",
    "Opened",
    "Row",
    "Summary",
    "Table",
    "account_of",
    "cells",
    "month_of",
    "opened",
    "summarised",
    "table",
    "table_of",
]
