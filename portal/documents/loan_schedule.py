"""The whole schedule of one loan on paper: terms, chart, every installment with yearly subtotals, and totals."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

from portal.documents.document import Document, Form, account_document
from portal.documents.options import Options
from portal.gateway.reading import LiveCopy
from portal.loans.chart import Chart, chart
from portal.loans.figures import MATURITY, figure_cards
from portal.loans.schedule import schedule_table
from portal.records.models import Borrower
from servicing import Loan, Repayment
from servicing.schedules import schedule_of

FORM = Form("LS", "Loan schedule", "documents/papers/loan_schedule.html")
MAX_ROWS = 720
MAX_UPRIGHT_COLUMNS = 8
"""With more columns than this, the paper is turned to landscape."""


def document(
    copy: LiveCopy, repayments: Sequence[Repayment], owner: Borrower | None, options: Options, *, today: date
) -> Document:
    loan = copy.answer if isinstance(copy.answer, Loan) else None
    content: dict[str, Any] = {"loan": loan}
    if loan:
        schedule = schedule_of(loan, today)
        plot = chart(schedule, today, copy.copied_on)
        content |= {
            # The service reports the maturity, so it stands among the reported terms.
            "figures": [
                card
                for card in figure_cards(copy, loan, schedule, repayments, today)
                if card.label != MATURITY
            ],
            "chart": plot,
            "balance": _balance_pieces(plot),
            "table": schedule_table(
                schedule, today, copied_on=copy.copied_on, max_rows=MAX_ROWS, is_paper=True
            ),
        }
    layout: dict[str, Any] = {}
    if table := content.get("table"):
        layout = {"rows": table.shown, "is_landscape": table.column_count > MAX_UPRIGHT_COLUMNS}
    return account_document(FORM, [copy], owner, content, options=options, **layout)


def _balance_pieces(plot: Chart | None) -> list[tuple[Decimal, ...]]:
    """The chart's balance line as single segments, because WeasyPrint draws a stretched polyline too thick."""
    if plot is None:
        return []
    ends = [tuple(map(Decimal, point.split(","))) for point in plot.balance.split()]
    return [(x1, y1 + plot.top, x2, y2 + plot.top) for (x1, y1), (x2, y2) in pairwise(ends)]
