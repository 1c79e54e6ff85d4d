"""The whole schedule of one loan: its terms, a picture, every installment with yearly subtotals, and the totals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Final

from portal.loans.chart import Chart, chart
from portal.loans.figures import Figure, figures
from portal.loans.schedule import Line, ScheduleTable, schedule_table
from portal.readings import Reading
from portal.registry.models import Record
from portal.summaries.documents import Document, Form
from portal.summaries.options import Options
from servicing import Loan
from servicing.schedules import schedule_of

FORM: Final = Form("LS", "Loan schedule", "summaries/papers/loan_schedule.html")
ROWS: Final = 720
WIDE: Final = 9
"""With more columns than this the paper is turned."""


@dataclass(frozen=True)
class LoanSchedule:
    """What stands in the document."""

    record: Record
    owner: Record | None
    loan: Loan | None
    figures: Sequence[Figure]
    chart: Chart | None
    table: ScheduleTable | None
    lines: Sequence[Line]
    left_out: int

    @property
    def balance(self) -> list[tuple[Decimal, ...]]:
        """The chart's balance line in straight pieces: the document engine would draw a stretched one ever thicker."""
        if self.chart is None:
            return []
        ends = [tuple(map(Decimal, point.split(","))) for point in self.chart.balance.split()]
        top = self.chart.top
        return [(x1, y1 + top, x2, y2 + top) for (x1, y1), (x2, y2) in pairwise(ends)]


def document(reading: Reading, owner: Record | None, options: Options, *, today: date) -> Document:
    """The schedule as the last copy of the loan tells it."""
    record = reading.record
    loan = reading.answer if isinstance(reading.answer, Loan) else None
    content = _content(record, owner, loan, today)
    return Document(
        form=FORM,
        subject=record,
        about=f"{owner or record.borrower_uuid[:8]}, loan {record.uuid[:8]}",
        content=content,
        options=options,
        readings=[reading],
        rows=len(content.lines),
        is_landscape=bool(content.table and len(content.table.heads) > WIDE),
        missing=[] if loan else ["The loan was never read: only its identifier is known here."],
    )


def _content(record: Record, owner: Record | None, loan: Loan | None, today: date) -> LoanSchedule:
    if loan is None:
        return LoanSchedule(record, owner, None, (), None, None, (), 0)
    schedule = schedule_of(loan)
    table = schedule_table(schedule, today, whole=True, subtotals=True)
    lines = table.lines[:ROWS]
    return LoanSchedule(
        record=record,
        owner=owner,
        loan=loan,
        figures=figures(loan, schedule, today),
        chart=chart(schedule, today),
        table=table,
        lines=lines,
        left_out=_installments(table.lines) - _installments(lines),
    )


def _installments(lines: Sequence[Line]) -> int:
    return sum(not line.title for line in lines)
