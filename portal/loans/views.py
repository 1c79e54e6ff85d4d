"""Loans that this dashboard knows: the list across borrowers, and one loan with its schedule and repayments."""

from typing import Any

from django.db.models import Q
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal import portfolio
from portal.account_page import account_page
from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.gateway import StaffRequest
from portal.loans.chart import chart
from portal.loans.figures import figures
from portal.loans.schedule import exported, schedule_table
from portal.portfolio import Column, Portfolio, only_flagged
from portal.readings import Reading
from portal.registry import memory
from portal.registry.lists import Filter
from portal.registry.models import Kind, Record
from portal.ui.exports import list_file
from portal.ui.wording import human
from servicing import Loan, sense
from servicing.schedules import schedule_of, total
from servicing.values import exact

LIST = Portfolio(
    kind=Kind.LOAN,
    area="loans",
    title="Loans",
    noun="loan",
    columns=(
        Column("product", "Product", lambda row: row.record.product, "product", "sd-widest"),
        Column("status", "Status", lambda row: row.record.status, "status"),
        Column("delinquent", "Delinquent", lambda row: True if row.record.flagged else None),
        Column("amount", "Amount", lambda row: row.record.amount, "money"),
        Column("rate", "Rate", lambda row: row.rate, "rate", "sd-wide"),
        Column("due", "Next unpaid", lambda row: row.record.due_date, "due", "sd-wide"),
        Column("checked", "Last checked", lambda row: row.record.checked_at, "checked", "sd-wide"),
    ),
    sorts={
        "created": "-created_at",
        "amount": "-amount",
        "status": "status",
        "rate": "-rate",
        "due": "due_date",
        "checked": "checked_at",
    },
    filters=(
        Filter("product", "Product", lambda value: Q(product=value), lambda value: human(value) or value),
        Filter("status", "Status", lambda value: Q(status=value), lambda value: human(value) or value),
        only_flagged("delinquent", "Delinquent"),
    ),
    views={
        "Delinquent": "delinquent=yes",
        "Next unpaid first": "sort=due",
        "Oldest copy first": "sort=checked",
    },
)
PANELS = ("loan", "loan-schedule", "loan-repayments")


@require_safe
@requires("loans.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    return portfolio.index(request, LIST)


@require_safe
@requires("loans.index")
def export(request: StaffRequest) -> HttpResponseBase:
    """The list as a file."""
    return portfolio.export(request, LIST)


@require_http_methods(["GET", "POST"])
@requires("loans.index")
def refresh(request: StaffRequest) -> HttpResponseBase:
    """Some of the list are read again."""
    return portfolio.refresh(request, LIST)


@requires("loans.detail")
def detail(request: StaffRequest, borrower_uuid: str, loan_uuid: str) -> HttpResponse:
    """The page from its copies, or one of its panels after asking the service."""
    record = get_object_or_404(Record, kind=Kind.LOAN, uuid=loan_uuid)
    if record.borrower_uuid and record.borrower_uuid != borrower_uuid:
        return redirect(record)
    return account_page(request, LIST, record, told=told, panels=PANELS)


def told(request: StaffRequest, reading: Reading) -> dict[str, Any]:
    """What the page draws from the loan itself; nothing while only its identifier is known."""
    loan, today = reading.answer, timezone.localdate()
    if not isinstance(loan, Loan):
        return {"loan": None}
    schedule = schedule_of(loan)
    repaid, promised = total(row.total for row in schedule.rows), exact(loan.total_repayment_amount)
    return {
        "loan": loan,
        "figures": figures(loan, schedule, today),
        "chart": chart(schedule, today),
        "schedule": schedule_table(
            schedule,
            today,
            whole=request.GET.get("rows") == "all",
            subtotals=request.GET.get("subtotals") != "off",
        ),
        "findings": sense.of_loan(loan, today),
        "adds_up": repaid if repaid is not None and repaid == promised else None,
        "other_owner": other_owner(loan, reading.record),
        "origin": origin(loan),
    }


def other_owner(loan: Loan, record: Record) -> tuple[str, Record | None] | None:
    """Whom the loan says it belongs to, where that is not the borrower in the address."""
    if not loan.user_uuid or loan.user_uuid.lower() == record.borrower_uuid.lower():
        return None
    return loan.user_uuid, memory.find(Kind.BORROWER, loan.user_uuid)


def origin(loan: Loan) -> Record | None:
    """The loan this one came from, where it is known here."""
    uuid = loan.origin_loan_uuid
    return memory.find(Kind.LOAN, uuid) if isinstance(uuid, str) and uuid else None


@requires("loans.detail")
def schedule(request: StaffRequest, borrower_uuid: str, loan_uuid: str) -> HttpResponseBase:
    """The whole schedule of the last copy as a CSV file."""
    record = get_object_or_404(Record, kind=Kind.LOAN, uuid=loan_uuid, borrower_uuid=borrower_uuid)
    loan = memory.last(record, Loan) or Loan(uuid=loan_uuid)
    heads, rows = exported(schedule_of(loan), timezone.localdate())
    append(
        Actor.of(request),
        "loans.schedule",
        subject_kind=record.kind,
        subject_uuid=record.uuid,
        subject_label=f"loan {loan_uuid[:8]}",
        borrower_uuid=borrower_uuid,
        detail={"rows": len(loan.installments)},
    )
    return list_file(request, f"schedule-{loan_uuid[:8]}", heads, rows)
