"""The list of loans."""

from decimal import Decimal

from django.db.models import Q

from portal.records.models import Kind
from portal.repayments.attention import loans_without_scheduled_payment
from portal.tables import cells
from portal.tables.columns import CHECKED, account_columns, money_column, past_due_columns, value_column
from portal.tables.filters import aging_filter, choice_filter, flag_filter, value_filter
from portal.tables.pages import Action, Column, ListPage, Row
from portal.ui import wording
from portal.ui.templatetags import ui


def interest_rate(row: Row) -> Decimal | None:
    """The rate as the service sent it, without zeros that the database appended."""
    rate = row.record.rate
    return None if rate is None else Decimal(f"{rate:f}".rstrip("0"))


LOANS = ListPage(
    kinds=[Kind.LOAN],
    area="loans",
    title="Loans",
    noun="loan",
    intro="All loans on file.",
    search_hint="Borrower, ID, product, status",
    search_scope="Search by borrower, start of the ID, product or status.",
    empty="Loans appear here once they’re added by ID or imported.",
    covered="loans",
    covered_kinds=[Kind.LOAN],
    actions=[Action("Add by ID", "lookup:add", "lookup.add", "?kind=loan")],
    can_refresh=True,
    columns=[
        *account_columns("Loan"),
        value_column("opened", "Opened", "record.opened_on", ui.day, "sd-widest", is_default=False),
        money_column("amount", "Amount", "record.amount", ui.money, css="sd-widest"),
        money_column("remaining", "Remaining payments", "record.remaining", css="sd-wide"),
        *past_due_columns(),
        Column(
            name="partly_paid",
            head="Before partial payments",
            value=lambda row: row.record.is_partly_paid or None,
            reads=["is_partly_paid"],
            beside="past_due",
        ),
        money_column("principal", "Principal", "record.principal", is_default=False),
        value_column("product", "Product", "record.product", cells.word, "sd-widest", is_default=False),
        Column(
            name="rate",
            head="Rate",
            value=interest_rate,
            reads=["rate"],
            cell=lambda row: cells.rate(interest_rate(row)),
            css="sd-num sd-wide",
            is_default=False,
        ),
        value_column("status", "Status", "record.status", cells.status, "sd-wide"),
        CHECKED,
    ],
    sorts={
        "past_due": "-past_due_rank",
        "due": "next_due_on",
        "amount": "-amount",
        "status": "status",
        "rate": "-rate",
        "created": "-created_at",
        "checked": "checked_at",
    },
    filters=[
        value_filter(Kind.LOAN, "product", "Product", "product", prompt="All products"),
        value_filter(
            Kind.LOAN, "status", "Status", "status", prompt="All statuses", words=wording.status_word
        ),
        flag_filter("delinquent", "Past due", Q(flagged__in=[True])),
        aging_filter(Kind.LOAN),
        flag_filter("due_since", "Due since the copy", Q(due_since_on__isnull=False)),
        choice_filter(
            "scheduled",
            "Scheduled",
            {
                "no": (
                    "Autopay without a scheduled payment",
                    lambda: Q(pk__in=loans_without_scheduled_payment().values("pk")),
                )
            },
            prompt="Any scheduled payment",
        ),
        flag_filter("check", "Needs a data check", Q(needs_check__in=[True])),
    ],
    presets={
        "Past due": "delinquent=yes",
        "Due next first": "sort=due",
        "Needs a data check": "check=yes",
        "Oldest copy first": "sort=checked",
    },
)
