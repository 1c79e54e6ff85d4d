"""Repayments on paper: month by month with subtotals, of one borrower or account, or of a filtered list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Final

from django.db.models import F, QuerySet
from django.http import QueryDict

from portal.payments import SUCCEEDED, Row, Summary, month_of, summarised
from portal.readings import REPAYMENTS_OF, Reading
from portal.registry.lists import known, listing
from portal.registry.models import Kind, Record
from portal.repayments.views import FILTERS, SORTS, rows_of
from portal.summaries.documents import Document, Form
from portal.summaries.options import Options
from servicing.schedules import total

# Its rows have two lines, so half as many take as long as those of a schedule.
FORM: Final = Form(
    "SA", "Statement of account", "summaries/papers/statement_of_account.html", inline_rows=200
)
ROWS: Final = 500
LISTS: Final = 50
REPAYMENT_LISTS: Final = tuple(REPAYMENTS_OF.values())
PARTS: Final = ("principal", "interest", "fees", "amount")


@dataclass(frozen=True)
class Sums:
    """What the succeeded ones of some rows come to, part by part; None where a part is missing."""

    number: int
    parts: Sequence[Decimal | None]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Sums":
        paid = [row.repayment for row in rows if row.status == SUCCEEDED]
        return cls(len(paid), [total(getattr(one, name) for one in paid) for name in PARTS])


@dataclass(frozen=True)
class Month:
    """The repayments of a month, the earliest first."""

    title: str
    rows: Sequence[Row]
    sums: Sums

    @classmethod
    def of(cls, title: str, rows: Sequence[Row]) -> "Month":
        return cls(title, rows, Sums.of(rows))


@dataclass(frozen=True)
class StatementOfAccount:
    """What stands in the document."""

    owner: Record | None
    account: Record | None
    chips: Sequence[tuple[str, str]]
    problems: Sequence[str]
    months: Sequence[Month]
    upcoming: Sequence[Row]
    summary: Summary
    sums: Sums
    left_out: int

    @property
    def is_across(self) -> bool:
        """Whether it is of several borrowers, so that each row says whose it is."""
        return self.owner is None


def document(
    owner: Record | None, account: Record | None, query: QueryDict, options: Options, *, today: date
) -> Document:
    """The repayments that the filters of the list leave, the earliest first."""
    records = known(Kind.REPAYMENT)
    lists = Record.objects.filter(kind__in=REPAYMENT_LISTS)
    if owner:
        records, lists = records.filter(borrower_uuid=owner.uuid), lists.filter(borrower_uuid=owner.uuid)
    if account:
        records, lists = records.filter(parent_uuid=account.uuid), lists.filter(uuid=account.uuid)
    content = _content(owner, account, records, query, today)
    return Document(
        form=FORM,
        subject=account or owner or Record(kind=Kind.REPAYMENT),
        about=_about(owner, account),
        content=content,
        options=options,
        readings=[Reading(one) for one in lists[:LISTS]] if owner else [],
        rows=len(content.upcoming) + sum(len(month.rows) for month in content.months),
        missing=[f"{content.left_out} later repayments: one document takes {ROWS}."]
        if content.left_out
        else [],
    )


def _content(
    owner: Record | None, account: Record | None, records: QuerySet[Record], query: QueryDict, today: date
) -> StatementOfAccount:
    found = listing(records, query, sorts=SORTS, filters=FILTERS, kinds=[Kind.REPAYMENT])
    in_order = found.found.order_by(F("due_date").asc(nulls_first=True), "id")
    rows = list(rows_of(in_order[:ROWS]))
    past = [row for row in rows if not row.is_upcoming(today)]
    return StatementOfAccount(
        owner=owner,
        account=account,
        chips=[(chip.label, chip.words) for chip in found.chips],
        problems=found.problems,
        months=[Month.of(title, list(group)) for title, group in groupby(past, key=month_of)],
        upcoming=[row for row in rows if row.is_upcoming(today)],
        summary=summarised(rows, today),
        sums=Sums.of(past),
        left_out=in_order.count() - ROWS if len(rows) == ROWS else 0,
    )


def _about(owner: Record | None, account: Record | None) -> str:
    if account:
        return (
            f"{owner or account.borrower_uuid[:8]}, {account.get_kind_display().lower()} {account.uuid[:8]}"
        )
    return str(owner) if owner else "repayments known here"
