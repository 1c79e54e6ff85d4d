"""One line of credit on paper: its balances, how much of it is used, what is due, its statements and repayments."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from portal.credit_lines.wording import past_due_words
from portal.payments import Row
from portal.readings import Reading
from portal.registry.models import Record
from portal.summaries.documents import Document, Form
from portal.summaries.options import Options
from servicing import Statement

FORM: Final = Form("LC", "Line of credit", "summaries/papers/line.html")
BILLS: Final = 36
REPAYMENTS: Final = 60


@dataclass(frozen=True)
class Use:
    """How much of a limit is used; nothing of it is guessed."""

    used: Decimal | None
    percent: int | None

    @classmethod
    def of(cls, told: Statement | None) -> "Use":
        limit, available = (told.credit_limit, told.available_credit) if told else (None, None)
        used = None if limit is None or available is None else limit - available
        return cls(used, int(used / limit * 100) if used is not None and limit and limit > 0 else None)

    @property
    def bar(self) -> int:
        """The used share as a length from 0 to 100."""
        return max(0, min(100, self.percent or 0))


@dataclass(frozen=True)
class LineSummary:
    """What stands in the document."""

    record: Record
    owner: Record | None
    line: Statement | None
    use: Use
    past_due: str
    bills: Sequence[date]
    bills_left_out: int
    repayments: Sequence[Row]
    repayments_left_out: int


def document(
    reading: Reading, listed: Reading, owner: Record | None, options: Options, *, today: date
) -> Document:
    """The line as its last copy tells it, with the list of its repayments."""
    record = reading.record
    line = reading.answer if isinstance(reading.answer, Statement) else None
    days = billing_days(line)
    rows = newest_first([Row(one) for one in listed.repayments])
    content = LineSummary(
        record=record,
        owner=owner,
        line=line,
        use=Use.of(line),
        past_due=past_due_words(line) if line else "",
        bills=days[:BILLS],
        bills_left_out=max(0, len(days) - BILLS),
        repayments=rows[:REPAYMENTS],
        repayments_left_out=max(0, len(rows) - REPAYMENTS),
    )
    return Document(
        form=FORM,
        subject=record,
        about=f"{owner or record.borrower_uuid[:8]}, line {record.uuid[:8]}",
        content=content,
        options=options,
        readings=[reading, listed],
        missing=[] if line else ["The line was never read: only its identifier is known here."],
    )


def billing_days(told: Statement | None) -> list[date]:
    """The days of its statements, the newest first."""
    papers = told.statements if told else ()
    return sorted((paper.billing_date for paper in papers if paper.billing_date), reverse=True)


def newest_first(rows: list[Row]) -> list[Row]:
    """Repayments by day; those without one come last."""
    return sorted(rows, key=lambda row: row.repayment.effective_date or date.min, reverse=True)
