"""The list of repayments."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import attrgetter
from typing import Any

from django.db.models import Q

from portal.lists.filters import amount_filters, date_filters, flag_filter, value_filter
from portal.lists.pages import Action, Column, ListPage
from portal.registry import store
from portal.registry.figures import copy_day
from portal.registry.models import Borrower, Kind, Record
from portal.registry.records import records_by_uuid, with_borrowers
from portal.registry.sources import REPAYMENTS_OF
from portal.repayments.table import PARTS, SCHEDULED, RepaymentRow
from portal.runtime.business_date import business_date
from portal.ui import wording
from servicing import Repayment


def is_upcoming(today: date) -> Q:
    """The condition that a repayment is upcoming."""
    return Q(status=SCHEDULED, key_date__gte=today)


def load_rows(records: Sequence[Record]) -> Iterator[RepaymentRow]:
    """Load repayments with their accounts and borrowers."""
    accounts = records_by_uuid(REPAYMENTS_OF, (record.parent_uuid for record in records))
    for record, borrower in with_borrowers(records):
        repayment = store.last_answer(record, Repayment) or _from_columns(record)
        account = accounts.get(record.parent_uuid)
        owner = borrower or _unknown_borrower(record)
        yield RepaymentRow(repayment, account, owner, record.why_null, copy_day(record))


def _from_columns(record: Record) -> Repayment:
    """A repayment without a saved answer, from the columns of its record."""
    return Repayment(
        uuid=record.uuid,
        product=record.category or None,
        payment_type=record.subtype or None,
        effective_date=record.key_date,
        amount=record.amount,
        status=record.status or None,
    )


def _unknown_borrower(record: Record) -> Borrower | None:
    """A borrower that is not on file, with only an ID."""
    uuid = record.borrower_uuid
    return Borrower(uuid=uuid, name=uuid[:8]) if uuid else None


FILE_VALUES: dict[str, Callable[[RepaymentRow], Any]] = {
    "Repayment": attrgetter("repayment.uuid"),
    "Borrower": lambda row: row.borrower and str(row.borrower),
    "Account": lambda row: row.account and row.account.uuid,
    "Product": attrgetter("repayment.product"),
    "Effective": attrgetter("repayment.effective_date"),
    "Amount": attrgetter("repayment.amount"),
    "Status": attrgetter("repayment.status"),
    "Type": attrgetter("repayment.payment_type"),
    **{part.capitalize(): attrgetter(f"repayment.{part}") for part in PARTS},
    "Ending balance": attrgetter("repayment.ending_balance"),
    "Error": attrgetter("repayment.error_description"),
    "Bank account": attrgetter("repayment.borrower_bank_account_uuid"),
    "ACH batch": attrgetter("repayment.ach_batch_id"),
    "ACH ID": attrgetter("repayment.ach_id"),
    "Copy of": attrgetter("copied_on"),
}
"""The columns of a file; on screen repayments have a table of their own."""

REPAYMENTS = ListPage(
    kinds=[Kind.REPAYMENT],
    area="repayments",
    title="Repayments",
    noun="repayment",
    intro="All repayments on file.",
    search_hint="Borrower, ID, ACH ID, amount",
    search_scope="Search by borrower, start of the ID, ACH ID or amount.",
    empty="Repayments appear here once their loan or line is loaded.",
    covered="lists of repayments",
    covered_kinds=list(REPAYMENTS_OF.values()),
    tools=[Action("Print", "documents:payment_history", icon="printer", css="sd-btn-sm")],
    table="repayments/table.html",
    load_rows=load_rows,
    columns=[Column(name=head, head=head, value=value) for head, value in FILE_VALUES.items()],
    upcoming=lambda: is_upcoming(business_date()),
    tab_filter="status",
    sorts={"effective": "-key_date", "amount": "-amount", "status": "status"},
    sort_names={"effective": "By month", "amount": "Amount", "status": "Status"},
    filters=[
        value_filter(Kind.REPAYMENT, "product", "Product", "category", prompt="All products"),
        value_filter(
            Kind.REPAYMENT,
            "status",
            "Status",
            "status",
            prompt="All statuses",
            empty="not provided",
            words=wording.status_word,
        ),
        value_filter(Kind.REPAYMENT, "type", "Type", "subtype", prompt="All types"),
        *date_filters("key_date", labels=("From", "Until")),
        *amount_filters("amount"),
        flag_filter("error", "Failed or with an error", Q(flagged__in=[True])),
    ],
    presets={
        "Returned": "status=FAILED_AFTER_SUCCESS",
        "Failed or with an error": "error=yes",
        "Scheduled": "status=SCHEDULED",
    },
)
