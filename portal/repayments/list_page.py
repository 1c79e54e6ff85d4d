"""The list of repayments."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import attrgetter
from typing import Any

from django.db.models import Q

from portal.core.business_date import business_date
from portal.records.models import Borrower, Kind, Repayment
from portal.records.repayments import answer_of, copied_on
from portal.records.rows import with_borrowers
from portal.records.sources import REPAYMENTS_OF
from portal.repayments.sums import is_collected, was_scheduled
from portal.repayments.table import PARTS, SCHEDULED, RepaymentRow
from portal.tables.filters import amount_filters, choice_filter, date_filters, flag_filter, value_filter
from portal.tables.pages import Action, Column, ListPage
from portal.ui import wording


def is_upcoming(today: date) -> Q:
    return Q(status=SCHEDULED, effective_on__gte=today)


def load_rows(repayments: Sequence[Repayment]) -> Iterator[RepaymentRow]:
    """Load repayments, read with their accounts, and their borrowers."""
    for one, borrower in with_borrowers(repayments):
        owner = borrower or _unknown_borrower(one.borrower_uuid)
        yield RepaymentRow(answer_of(one), one.account, owner, one.why_null, copied_on(one))


def _unknown_borrower(uuid: str) -> Borrower | None:
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
    model=Repayment,
    related="account",
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
    sorts={"effective": "-effective_on", "amount": "-amount", "status": "status"},
    sort_names={"effective": "By month", "amount": "Amount", "status": "Status"},
    filters=[
        value_filter(
            Kind.REPAYMENT, "product", "Product", "product", prompt="All products", empty="not provided"
        ),
        value_filter(
            Kind.REPAYMENT,
            "status",
            "Status",
            "status",
            prompt="All statuses",
            empty="not provided",
            words=wording.status_word,
        ),
        value_filter(Kind.REPAYMENT, "type", "Type", "payment_type", prompt="All types"),
        *date_filters("effective_on", labels=("From", "Until")),
        *amount_filters("amount"),
        flag_filter("collected", "Collected", is_collected()),
        choice_filter(
            "origin",
            "Origin",
            {
                "scheduled": ("Was scheduled", lambda: Q(was_scheduled())),
                "other": ("Was never scheduled", lambda: ~Q(was_scheduled())),
            },
            prompt="Any origin",
        ),
        flag_filter("error", "Failed or with an error", Q(has_failed__in=[True])),
    ],
    presets={
        "Returned": "status=FAILED_AFTER_SUCCESS",
        "Failed or with an error": "error=yes",
        "Scheduled": "status=SCHEDULED",
    },
)
