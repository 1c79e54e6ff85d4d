"""The payment history: repayments of a borrower or an account by month, with subtotals and optional filters."""

from collections.abc import Iterable
from datetime import date
from itertools import groupby
from typing import Any

from django.db.models import F, QuerySet
from django.http import QueryDict

from portal.documents.document import Document, Form
from portal.documents.options import Options
from portal.live.reading import LiveCopy
from portal.registry.models import Kind, Record
from portal.registry.records import active_records
from portal.registry.sources import REPAYMENTS_OF
from portal.repayments.list_page import REPAYMENTS
from portal.repayments.table import (
    SUCCEEDED,
    RepaymentRow,
    accounts_with_balances,
    month_title,
    summarize,
)
from servicing.schedules import total
from servicing.values import decimal_or_none

# Its rows have two lines, so half as many take as long as a schedule's.
FORM = Form("PH", "Payment history", "documents/papers/payment_history.html", inline_rows=200)
MAX_ROWS = 500
MAX_LISTS = 50


def document(
    owner: Record | None, account: Record | None, query: QueryDict, options: Options, *, today: date
) -> Document:
    """Build the history from the repayments that match the list's filters, earliest first."""
    records = active_records(Kind.REPAYMENT)
    lists = Record.objects.filter(kind__in=REPAYMENTS_OF.values())
    if owner:
        records, lists = records.filter(borrower_uuid=owner.uuid), lists.filter(borrower_uuid=owner.uuid)
    if account:
        records, lists = records.filter(parent_uuid=account.uuid), lists.filter(uuid=account.uuid)
    content = _content(records, query, today) | {
        "owner": owner,
        "has_account": account is None,
        "is_across": owner is None,
        "has_lines": _has_lines(owner, account),
    }
    left_out = content["left_out"]
    return Document(
        form=FORM,
        subject=account or owner or Record(kind=Kind.REPAYMENT),
        about=_about(owner, account),
        content=content,
        options=options,
        copies=[LiveCopy(one) for one in lists[:MAX_LISTS]] if owner else [],
        rows=content["number"],
        missing=[f"{left_out} later repayments: a document has room for {MAX_ROWS}."] if left_out else [],
    )


def _content(records: QuerySet[Record], query: QueryDict, today: date) -> dict[str, Any]:
    found = REPAYMENTS.find(query, records)
    in_order = found.found.order_by(F("key_date").asc(nulls_first=True), "id")
    rows = list(REPAYMENTS.rows(in_order[:MAX_ROWS]))
    past = [row for row in rows if not row.is_upcoming(today)]
    months = [(title, list(group)) for title, group in groupby(past, key=month_title)]
    return {
        "chips": found.chips,
        "problems": found.problems,
        "months": [{"title": title, "rows": group, "sums": _sums(group)} for title, group in months],
        "upcoming": [row for row in rows if row.is_upcoming(today)],
        "summary": summarize(rows, today),
        "sums": _sums(past),
        "balanced": (balanced := accounts_with_balances(rows)),
        "are_balances_left_out": any(
            row.repayment.ending_balance is not None
            for row in rows
            if not row.account or row.account.uuid not in balanced
        ),
        "number": len(rows),
        "left_out": in_order.count() - MAX_ROWS if len(rows) == MAX_ROWS else 0,
    }


def _has_lines(owner: Record | None, account: Record | None) -> bool:
    """Whether it covers a line of credit, whose repayments are only part of its activity."""
    if account:
        return account.kind == Kind.LINE
    lines = active_records(Kind.LINE)
    return (lines.filter(borrower_uuid=owner.uuid) if owner else lines).exists()


def _sums(rows: Iterable[RepaymentRow]) -> dict[str, Any]:
    """The sum of each column over successful repayments; ``None`` if a part is missing."""
    paid = [row.repayment for row in rows if row.status == SUCCEEDED]
    columns = ("principal", "interest", "fees", "amount")
    return {
        "number": len(paid),
        "parts": [total(decimal_or_none(getattr(one, name)) for one in paid) for name in columns],
    }


def _about(owner: Record | None, account: Record | None) -> str:
    if account is None:
        return str(owner) if owner else "repayments on file"
    return f"{owner or account.borrower_uuid[:8]}, {account.get_kind_display().lower()} {account.uuid[:8]}"
