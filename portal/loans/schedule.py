"""The installments of a loan as a table: HTML rows for the page and for paper, plain values for the CSV file.

Hides which columns are shown, the window of a long schedule around the row that needs attention, and yearly subtotals.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from portal.loans.figures import installment_count, state_words
from portal.ui import wording
from portal.ui.templatetags.ui import badge, day, money, or_dash, status_badge, status_word
from servicing import codec
from servicing.schedules import Column, Installment, Schedule, State, total
from servicing.values import decimal_or_none
from servicing.words import normal_word

WINDOW_ROWS: Final = 12
ROWS_BEFORE_URGENT: Final = 3
ALWAYS_SHOWN: Final = ("number", "due_date", "principal", "interest", "total", "balance")
SUMMED: Final = ("principal", "interest", "fees", "total")
LABELS: Final = {
    "number": "No.",
    "due_date": "Due",
    "principal": "Principal",
    "interest": "Interest",
    "fees": "Fees",
    "total": "Total",
    "balance": "Balance",
    "status": "Reported status",
    "paid_on": "Paid on",
    "loan_amount": "Loan amount",
}
USUAL_STATUSES: Final = ("PAID", "SCHEDULED", "PAST_DUE", "")
STATE: Final = Column("Status", "text", False)
"""The column with the state calculated here; every other one comes from the service."""
_BADGES: Final = {
    State.PAID: ("ok", "check"),
    State.OVERDUE: ("bad", "alert-circle"),
    State.DUE_SINCE: ("neutral", "clock"),
    State.NEXT: ("waiting", "clock"),
    State.FUTURE: ("neutral", "minus"),
    State.UNKNOWN: ("neutral", "circle-dot"),
}


SCREEN_CLASSES: Final = {
    "money": "sd-num",
    "number": "sd-num",
    "day": "sd-nowrap",
    "status": "sd-told",
    "text": "sd-told",
}
PAPER_CLASSES: Final = {"money": "num", "number": "num no", "day": "day one-line"}


HEAD: Final = '<th scope="col" class="{}">{}</th>'
ROW_HEAD: Final = '<th scope="row" class="{}">{}</th>'
CELL: Final = '<td class="{}">{}</td>'
ROW: Final = "<tr>{}</tr>"
NEXT_ROW: Final = '<tr class="sd-selected" id="next-installment">{}</tr>'


@dataclass(frozen=True)
class ScheduleTable:
    """The shown part of a schedule; ``head``, ``rows`` and ``sums`` are table rows in HTML."""

    head: SafeString
    rows: Sequence[SafeString]
    sums: SafeString | str
    column_count: int
    count: int
    earlier: int
    later: int
    is_known: bool
    has_years: bool
    has_next: bool
    hidden: str = ""
    """The columns left out because they are the same in every row, with their values."""

    @property
    def shown(self) -> int:
        return self.count - self.earlier - self.later

    @property
    def counted(self) -> str:
        return installment_count(self.count)


def schedule_table(
    schedule: Schedule,
    today: date,
    *,
    copied_on: date | None,
    max_rows: int,
    subtotals: bool = True,
    is_paper: bool = False,
) -> ScheduleTable:
    """Build the table: the first ``max_rows`` installments, or with 0 those around the one that needs attention."""
    states = schedule.states(today, copied_on)
    columns = _columns(schedule, states)
    same = _columns_without_news(schedule, columns)
    columns = [column for column in columns if column not in same]
    table = _Rows(columns, PAPER_CLASSES if is_paper else SCREEN_CLASSES, is_paper, today)
    first, last = (0, min(max_rows, len(states))) if max_rows else _window(states)
    has_sums = any(column.name in SUMMED for column in columns)
    years = schedule.years() if has_sums else []
    ends = {id(of_year[-1]): (year, of_year) for year, of_year in years if subtotals and len(years) > 1}
    rows = []
    for row, state in zip(schedule.rows[first:last], states[first:last], strict=True):
        rows.append(table.installment(row, state))
        if id(row) in ends:
            year, of_year = ends[id(row)]
            rows.append(table.sums(f"Subtotal {year}", of_year))
    return ScheduleTable(
        head=table.head(),
        rows=rows,
        sums=table.sums("Total", schedule.rows) if has_sums else "",
        column_count=len(columns),
        count=len(states),
        earlier=first,
        later=len(states) - last,
        is_known=schedule.is_known,
        has_years=len(years) > 1,
        has_next=State.NEXT in states,
        hidden=_hidden_words(schedule, same),
    )


def csv_rows(
    schedule: Schedule, today: date, copied_on: date | None
) -> tuple[list[str], Iterator[list[Any]]]:
    """Column titles and all installments for the CSV file."""
    columns = schedule.columns
    rows = (
        [
            *(_plain(row.value(column), column.form) for column in columns),
            state_words(row, state, today),
            copied_on,
        ]
        for row, state in zip(schedule.rows, schedule.states(today, copied_on), strict=True)
    )
    return [*map(_label, columns), "Status here", "Copy of"], rows


def _window(states: Sequence[State]) -> tuple[int, int]:
    """The first row of the window and the first one after it."""
    urgent = (State.OVERDUE, State.DUE_SINCE, State.NEXT)
    needed = next((index for index, state in enumerate(states) if state in urgent), 0)
    first = max(0, min(needed - ROWS_BEFORE_URGENT, len(states) - WINDOW_ROWS))
    return first, min(first + WINDOW_ROWS, len(states))


def _columns(schedule: Schedule, states: Sequence[State]) -> list[Column]:
    """The service's columns, with our state after the due date and without statuses that add nothing to it."""
    usual = all(normal_word(row.status) in USUAL_STATUSES for row in schedule.rows)
    columns = [column for column in schedule.columns if column.name != "status" or not usual]
    if any(state is not State.UNKNOWN for state in states):
        leading = sum(column.name in ("number", "due_date") for column in columns if column.is_known)
        columns.insert(leading, STATE)
    return columns


def _columns_without_news(schedule: Schedule, columns: Sequence[Column]) -> list[Column]:
    """The columns with the same value in every row, except the ones that an installment consists of."""
    others = [column for column in columns if column is not STATE and column.name not in ALWAYS_SHOWN]
    rows = schedule.rows if len(schedule.rows) > 1 else ()
    return [
        column
        for column in others
        if rows and all(row.value(column) == rows[0].value(column) for row in rows)
    ]


def _hidden_words(schedule: Schedule, columns: Sequence[Column]) -> str:
    """Such as "No fees"."""
    if not columns:
        return ""
    first = schedule.rows[0]
    if all(column.form == "money" and first.value(column) == 0 for column in columns):
        return f"No {' and '.join(_label(column).lower() for column in columns)}"
    shown = {"money": wording.money, "day": wording.day}
    values = ", ".join(
        f"{_label(column)} {shown.get(column.form, str)(_plain(first.value(column), column.form))}"
        for column in columns
    )
    return f"Same in every row: {values}"


@dataclass(frozen=True)
class _Rows:
    """Renders table rows for the page or for paper."""

    columns: Sequence[Column]
    classes: Mapping[str, str]
    is_paper: bool
    today: date

    def head(self) -> SafeString:
        return _joined(ROW, (self._cell(HEAD, one, _label(one)) for one in self.columns))

    def installment(self, row: Installment, state: State) -> SafeString:
        values = [self._value(row, state, column) for column in self.columns]
        markup = [ROW_HEAD] + [CELL] * (len(values) - 1)
        cells = map(self._cell, markup, self.columns, values)
        is_marked = state is State.NEXT and not self.is_paper
        return _joined(NEXT_ROW if is_marked else ROW, cells)

    def sums(self, title: str, rows: Sequence[Installment]) -> SafeString:
        """A row of sums whose title spans the columns before the first sum."""
        span = next(index for index, column in enumerate(self.columns) if column.name in SUMMED)
        cells = (self._cell(CELL, column, _sum(rows, column)) for column in self.columns[span:])
        html = '<tr class="{}"><th scope="row" colspan="{}">{}, {}</th>{}</tr>'
        css = "subtotal" if self.is_paper else "sd-sum"
        return format_html(html, css, span, title, installment_count(len(rows)), _joined("{}", cells))

    @cached_property
    def _css(self) -> dict[Column, str]:
        classes = {one: "" if one is STATE else self.classes.get(one.form, "") for one in self.columns}
        minor = [
            one for one in self.columns if one.is_known and one.name not in ("number", "due_date", "total")
        ]
        return classes if self.is_paper else classes | {one: f"{classes[one]} sd-wide" for one in minor}

    def _cell(self, markup: str, column: Column, value: str) -> str:
        return markup.format(self._css[column], conditional_escape(value))

    def _value(self, row: Installment, state: State, column: Column) -> str:
        if column is STATE:
            words = state_words(row, state, self.today)
            return words if self.is_paper else badge(_BADGES[state][0], words, _BADGES[state][1])
        value = _plain(row.value(column), column.form)
        if column.name == "paid_on" and value is None and state is not State.PAID:
            return ""
        if column.form == "status" and value:
            return status_word(value) if self.is_paper else status_badge(value)
        if column.form == "money":
            return money(value)
        return day(value) if column.form == "day" else str(or_dash(value))


def _joined(row: str, cells: Iterable[str]) -> SafeString:
    """Join cells that are already escaped into a row. A table has thousands of them."""
    return SafeString(row.format("".join(cells)))


def _sum(rows: Sequence[Installment], column: Column) -> str:
    is_summed = column.is_known and column.name in SUMMED
    return money(total(getattr(row, column.name) for row in rows)) if is_summed else ""


def _label(column: Column) -> str:
    return LABELS.get(column.name, column.name)


def _plain(value: Any, form: str) -> Any:
    """A value for the CSV file; anything unknown as JSON."""
    if form == "number":
        number = decimal_or_none(value)
        return None if number is None else f"{number:f}"
    if value is None or isinstance(value, str | date | Decimal):
        return value
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return codec.to_json(value).decode()
