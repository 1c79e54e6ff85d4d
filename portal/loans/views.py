"""One loan with its schedule and repayments."""

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect

from portal.accounts.roles import requires
from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.core.business_date import business_date
from portal.gateway.client import StaffRequest
from portal.gateway.reading import LiveCopy
from portal.loans.chart import chart
from portal.loans.figures import figure_cards, no_schedule, terms
from portal.loans.list_page import LOANS
from portal.loans.schedule import csv_rows, schedule_table
from portal.records import store
from portal.records.figures import copy_day
from portal.records.models import Account, Kind
from portal.repayments.account_page import Lists, account_page, unrecognized_words
from portal.ui.exports import list_file
from servicing import Loan, consistency
from servicing.schedules import schedule_of, total
from servicing.values import decimal_or_none


@requires("loans.detail")
def detail(request: StaffRequest, borrower_uuid: str, loan_uuid: str) -> HttpResponse:
    record = get_object_or_404(Account.objects.select_related("answer"), kind=Kind.LOAN, uuid=loan_uuid)
    if record.borrower_uuid and record.borrower_uuid != borrower_uuid:
        return redirect(record)
    return account_page(request, LOANS, record, build_context=build_context, parts=("loan-schedule",))


def build_context(request: StaffRequest, copy: LiveCopy, lists: Lists) -> dict[str, Any]:
    """Figures, chart and schedule; nothing while only the ID is on file."""
    loan, today = copy.answer, business_date()
    if not isinstance(loan, Loan):
        return {"loan": None}
    schedule, listed = schedule_of(loan, today), lists[Kind.LOAN_REPAYMENTS]
    repayments = listed.repayments
    given_terms, missing_terms = terms(loan, origin(loan))
    repaid, promised = total(row.total for row in schedule.rows), decimal_or_none(loan.total_repayment_amount)
    return {
        "loan": loan,
        "is_late": copy.figures.is_late,
        "days_past_due": copy.figures.days_past_due(today),
        "no_schedule": no_schedule(loan, copy.figures, today),
        "figures": figure_cards(copy, loan, schedule, repayments, today),
        "chart": chart(schedule, today, copy.copied_on),
        "schedule": schedule_table(
            schedule,
            today,
            copied_on=copy.copied_on,
            max_rows=len(schedule.rows) if request.GET.get("rows") == "all" else 0,
            subtotals=request.GET.get("subtotals") != "off",
        ),
        "findings": consistency.check_account(
            loan, repayments if listed.at else None, copy.copied_on or today
        ),
        "adds_up": repaid if repaid is not None and repaid == promised else None,
        "other_owner": other_owner(loan, copy.record),
        "terms": given_terms,
        "missing_terms": missing_terms,
        "unrecognized": unrecognized_words(loan),
    }


def other_owner(loan: Loan, record: Account) -> tuple[str, Account | None] | None:
    """The owner that the loan names, if it is not the borrower on file."""
    if not loan.user_uuid or loan.user_uuid.lower() == record.borrower_uuid.lower():
        return None
    return loan.user_uuid, store.find(Kind.BORROWER, loan.user_uuid)


def origin(loan: Loan) -> Account | None:
    uuid = loan.origin_loan_uuid
    return store.find(Kind.LOAN, uuid) if isinstance(uuid, str) and uuid else None


@requires("loans.detail")
def schedule(request: StaffRequest, borrower_uuid: str, loan_uuid: str) -> HttpResponseBase:
    """Export the whole saved schedule as CSV."""
    record = get_object_or_404(
        Account.objects.select_related("answer"), kind=Kind.LOAN, uuid=loan_uuid, borrower_uuid=borrower_uuid
    )
    loan = store.last_answer(record, Loan) or Loan(uuid=loan_uuid)
    heads, rows = csv_rows(schedule_of(loan, business_date()), business_date(), copy_day(record))
    append(
        Actor.of(request),
        "loans.schedule",
        detail={"rows": len(loan.installments)},
        **entry_subject(record, f"loan {loan_uuid[:8]}"),
    )
    return list_file(request, f"schedule-{loan_uuid[:8]}", heads, rows)
