"""The line of credit on paper: balances, share in use, amounts due, statements and repayments."""

from datetime import date
from typing import Any

from portal.credit_lines.wording import past_due_words
from portal.documents.document import Document, Form, account_document
from portal.documents.options import Options
from portal.gateway.reading import LiveCopy
from portal.records.figures import old_copy_day
from portal.records.models import Borrower
from portal.repayments.table import RepaymentRow, accounts_with_balances
from portal.ui import wording
from servicing import Statement
from servicing.figures import Figures, percent_of_limit

FORM = Form("LC", "Line of credit", "documents/papers/line.html")
MAX_STATEMENTS = 36
MAX_REPAYMENTS = 60


def document(
    copy: LiveCopy, repayments: LiveCopy, owner: Borrower | None, options: Options, *, today: date
) -> Document:
    """Build the document from the saved copies of the line and its repayments."""
    line = copy.answer if isinstance(copy.answer, Statement) else None
    days, figures = billing_days(line), copy.figures
    paid = sorted(repayments.repayments, key=lambda one: one.effective_date or date.min)
    has_balances = bool(accounts_with_balances(map(RepaymentRow, paid)))
    paid.reverse()
    content = {
        "line": line,
        "use": credit_use(line),
        "past_due": _past_due_as_of(figures, old_copy_day(copy.record), today),
        "due_next": figures.due_next,
        "due_since": figures.due_since and wording.due_since(figures.due_since, copy.copied_on),
        "bills": days[:MAX_STATEMENTS],
        "bills_left_out": max(0, len(days) - MAX_STATEMENTS),
        "repayments": [RepaymentRow(one) for one in paid[:MAX_REPAYMENTS]],
        "has_balances": has_balances,
        "repayments_left_out": max(0, len(paid) - MAX_REPAYMENTS),
    }
    return account_document(FORM, [copy, repayments], owner, content, options=options)


def _past_due_as_of(figures: Figures, copied_on: date | None, today: date) -> str:
    words = past_due_words(figures, today)
    return f"{words}, as of {wording.day(copied_on)}" if words and copied_on else words


def credit_use(statement: Statement | None) -> dict[str, Any]:
    """The principal as a share of the limit, in percent and as the length of a bar; ``None`` if not known."""
    principal, limit = (statement.principal_balance, statement.credit_limit) if statement else (None, None)
    percent = wording.whole_percent(percent_of_limit(principal, limit))
    return {"percent": percent, "bar": max(0, min(100, percent or 0))}


def billing_days(statement: Statement | None) -> list[date]:
    """The days of its statements, newest first."""
    papers = statement.statements if statement else ()
    return sorted((paper.billing_date for paper in papers if paper.billing_date), reverse=True)
