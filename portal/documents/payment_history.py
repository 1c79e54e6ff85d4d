"""The payment history: repayments of a borrower or an account by month, with subtotals and optional filters."""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import QueryDict

from portal.documents.document import Document, Form
from portal.documents.options import Options
from portal.gateway.reading import repayment_copies
from portal.records.models import Account, Borrower, Kind, Repayment
from portal.records.rows import active_records
from portal.records.sources import REPAYMENTS_OF
from portal.repayments.list_page import REPAYMENTS
from portal.repayments.table import (
    SCHEDULED,
    RepaymentRow,
    accounts_with_balances,
    month_title,
    summarize,
)
from portal.ui import wording
from servicing.repayments import is_collected
from servicing.schedules import total
from servicing.values import decimal_or_none

FORM = Form("PH", "Payment history", "documents/papers/payment_history.html")
MAX_ROWS = 500
MAX_UPCOMING = 100
"""How many scheduled repayments are printed if there isn't room for all."""
MAX_LISTS = 50


def document(
    owner: Borrower | None, account: Account | None, query: QueryDict, options: Options, *, today: date
) -> Document:
    """Build the history from the repayments that match the list's filters, earliest first, the newest if many."""
    repayments = Repayment.objects.all()
    accounts: list[Account] = []
    if owner:
        repayments = repayments.filter(borrower_uuid=owner.uuid)
        of_owner = Account.objects.filter(kind__in=REPAYMENTS_OF, borrower_uuid=owner.uuid)
        accounts = [account] if account else list(of_owner.order_by("pk"))
    if account:
        repayments = repayments.filter(account=account)
    content = _content(repayments, query, today) | {
        "owner": owner,
        "has_account": account is None,
        "is_across": owner is None,
        "has_lines": _has_lines(owner, account, accounts),
    }
    left_out = content["left_out"]
    return Document(
        form=FORM,
        subject=account or owner or Repayment(),
        about=_about(owner, account),
        content=content,
        options=options,
        copies=repayment_copies(accounts[:MAX_LISTS]),
        rows=content["number"],
        missing=[f"{left_out:,} repayments. Filter the list by date to print them."] if left_out else [],
    )


def _content(repayments: QuerySet[Repayment], query: QueryDict, today: date) -> dict[str, Any]:
    found = REPAYMENTS.find(query, repayments)
    is_upcoming = Q(status__iexact=SCHEDULED, effective_on__gte=today)
    whole = found.found.select_related("account")
    scheduled = whole.filter(is_upcoming).order_by("effective_on", "id")
    newest = whole.exclude(is_upcoming).order_by(F("effective_on").desc(nulls_last=True), "-id")
    past_count, upcoming_count = newest.count(), scheduled.count()
    upcoming = list(REPAYMENTS.rows(scheduled[: max(MAX_UPCOMING, MAX_ROWS - past_count)]))
    room = MAX_ROWS - len(upcoming)
    past, first_day = _whole_days(list(REPAYMENTS.rows(newest[: room + 1])), room)
    rows = [*past, *upcoming]
    earlier, later = past_count - len(past), upcoming_count - len(upcoming)
    period = f" from {wording.day(first_day)}" if first_day else ", printed ones" if earlier else ""
    return {
        "chips": found.chips,
        "problems": found.problems,
        "months": _months(past, "" if first_day and first_day.day == 1 else period),
        "period": period,
        "upcoming": upcoming,
        "summary": summarize(rows, today),
        "sums": _sums(past),
        "balanced": (balanced := accounts_with_balances(rows)),
        "are_balances_left_out": any(
            row.repayment.ending_balance is not None
            for row in rows
            if not row.account or row.account.uuid not in balanced
        ),
        "number": len(rows),
        "left_out": earlier + later,
        "limit": _describe_limit(len(rows), earlier, later, first_day),
    }


def _whole_days(newest: list[RepaymentRow], room: int) -> tuple[list[RepaymentRow], date | None]:
    """The rows that fit, earliest first, and the day from which all are printed; None if all fit or one day doesn't.

    A day without room for all its rows is left out, so that sums are of whole days.
    """
    shown, first_day = newest[:room], None
    if len(newest) > room:
        cut_day = newest[room].repayment.effective_date
        whole = [row for row in shown if row.repayment.effective_date != cut_day]
        if whole:
            shown, first_day = whole, whole[-1].repayment.effective_date
    return shown[::-1], first_day


def _months(past: Iterable[RepaymentRow], period: str) -> list[dict[str, Any]]:
    """The rows of each month with their sums; the first month says from which day on, if earlier rows are left out."""
    months = [(title, list(group)) for title, group in groupby(past, key=month_title)]
    return [
        {"title": title if index else f"{title}{period}", "rows": group, "sums": _sums(group)}
        for index, (title, group) in enumerate(months)
    ]


def _describe_limit(number: int, earlier: int, later: int, first_day: date | None) -> list[str]:
    """What isn't printed and what the sums cover, in sentences, the first one in bold; empty if all is printed."""
    if not (earlier or later):
        return []
    sentences = [f"{number:,} of {number + earlier + later:,} repayments printed."]
    if earlier:
        sentences.append(f"{earlier:,} earlier left out.")
    if later:
        sentences.append(f"{later:,} scheduled later left out.")
    covered = f"{wording.day(first_day)} and later" if first_day else "those printed"
    return [*sentences, f"Sums cover {covered}."]


def _has_lines(owner: Borrower | None, account: Account | None, accounts: Sequence[Account]) -> bool:
    """Whether it covers a line of credit, whose repayments are only part of its activity."""
    if account:
        return account.kind == Kind.LINE
    if owner:
        return any(one.kind == Kind.LINE and not one.archived_at for one in accounts)
    return active_records(Kind.LINE).exists()


def _sums(rows: Iterable[RepaymentRow]) -> dict[str, Any]:
    """The sum of each column over successful repayments; ``None`` if a part is missing."""
    paid = [row.repayment for row in rows if is_collected(row.repayment)]
    columns = ("principal", "interest", "fees", "amount")
    return {
        "number": len(paid),
        "parts": [total(decimal_or_none(getattr(one, name)) for one in paid) for name in columns],
    }


def _about(owner: Borrower | None, account: Account | None) -> str:
    if account is None:
        return str(owner) if owner else "repayments on file"
    return f"{owner or account.borrower_uuid[:8]}, {account.get_kind_display().lower()} {account.uuid[:8]}"
