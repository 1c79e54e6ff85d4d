"""A schedule as a table: which rows of how many, in which columns, with what sums, and the same as a file.

Hides the window of a long schedule (it opens where somebody has to look), subtotals of years, and how a value is shown
whose meaning nobody told.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from portal.loans.figures import counted, state_words
from servicing import codec
from servicing.schedules import Column, Installment, Schedule, State, total
from servicing.values import exact

WINDOW = 12
BEFORE = 3
"""So many rows stand above the one that needs somebody."""
SUMMED = ("principal", "interest", "fees", "total")
LABELS = {
    "number": "No.",
    "due_date": "Due",
    "principal": "Principal",
    "interest": "Interest",
    "fees": "Fees",
    "total": "Total",
    "balance": "Balance",
    "status": "Status told",
    "paid_on": "Paid on",
    "loan_amount": "Loan amount",
}
USUAL = ("paid", "scheduled", "past_due", "")
LAID_OUT = {
    "money": "sd-num",
    "number": "sd-num",
    "day": "sd-nowrap",
    "status": "sd-told",
    "text": "sd-told",
}
LOOKS = {
    State.PAID: ("ok", "check"),
    State.OVERDUE: ("bad", "alert-circle"),
    State.NEXT: ("waiting", "clock"),
    State.FUTURE: ("neutral", "minus"),
    State.UNKNOWN: ("neutral", "circle-dot"),
}


class Cell(NamedTuple):
    """A value with its form, or the head of a column; a minor one goes where there is little room."""

    form: str
    value: Any
    is_minor: bool = False

    @property
    def css(self) -> str:
        """How it is set."""
        look = LAID_OUT.get(self.form, "")
        return f"{look} sd-wide" if self.is_minor else look


class Badge(NamedTuple):
    """Where a row stands."""

    look: str
    icon: str
    words: str


@dataclass(frozen=True)
class Line:
    """One line of the table: an installment, or the sums of a year."""

    cells: Sequence[Cell]
    title: str = ""
    is_next: bool = False


@dataclass(frozen=True)
class ScheduleTable:
    """What of a schedule is on the page."""

    heads: Sequence[Cell]
    lines: Sequence[Line]
    sums: Line | None
    span: int
    """How many columns the title of a line with sums takes."""
    count: int
    earlier: int
    later: int
    is_known: bool
    has_years: bool
    has_next: bool

    @property
    def shown(self) -> int:
        """How many installments are on the page."""
        return self.count - self.earlier - self.later

    @property
    def counted(self) -> str:
        return counted(self.count)


def schedule_table(schedule: Schedule, today: date, *, whole: bool, subtotals: bool) -> ScheduleTable:
    """The schedule's table: all rows, or those around the one that needs somebody."""
    states = schedule.states(today)
    columns = _shown_columns(schedule, states)
    first, last = (0, len(schedule.rows)) if whole else window(states)
    years = _year_ends(schedule) if subtotals else {}
    lines = []
    for index in range(first, last):
        lines.append(_line(schedule.rows[index], states[index], columns, today))
        if index in years:
            year, rows = years[index]
            lines.append(Line(_sums(rows, columns), f"Subtotal {year}, {counted(len(rows))}"))
    has_sums = any(column and column.name in SUMMED for column in columns)
    sums = Line(_sums(schedule.rows, columns), f"Total, {counted(len(schedule.rows))}") if has_sums else None
    return ScheduleTable(
        heads=[_head(column) for column in columns],
        lines=lines,
        sums=sums,
        span=_span(columns),
        count=len(schedule.rows),
        earlier=first,
        later=len(schedule.rows) - last,
        is_known=schedule.is_known,
        has_years=has_sums and len(schedule.years()) > 1,
        has_next=State.NEXT in states,
    )


def window(states: Sequence[State]) -> tuple[int, int]:
    """The first and the end of the rows that are shown at once."""
    urgent = (State.OVERDUE, State.NEXT)
    needed = next((index for index, state in enumerate(states) if state in urgent), 0)
    first = max(0, min(needed - BEFORE, len(states) - WINDOW))
    return first, min(first + WINDOW, len(states))


def exported(schedule: Schedule, today: date) -> tuple[list[str], Iterator[list[Any]]]:
    """Heads and rows of the whole schedule as a file."""
    columns = schedule.columns
    rows = (
        [*(_shown(row.value(column), column.form) for column in columns), state_words(row, state, today)]
        for row, state in zip(schedule.rows, schedule.states(today), strict=True)
    )
    return [*(LABELS.get(column.name, column.name) for column in columns), "State here"], rows


def _shown_columns(schedule: Schedule, states: Iterable[State]) -> list[Column | None]:
    """The columns with that of the states (``None``) behind the day; what a status says as usual goes without one."""
    told = schedule.columns
    usual = all((row.status or "").lower() in USUAL for row in schedule.rows)
    columns: list[Column | None] = [column for column in told if column.name != "status" or not usual]
    if all(state is State.UNKNOWN for state in states):
        return columns
    leading = sum(column.name in ("number", "due_date") for column in told if column.is_known)
    return [*columns[:leading], None, *columns[leading:]]


def _head(column: Column | None) -> Cell:
    return Cell("state", "State") if column is None else _cell(column, LABELS.get(column.name, column.name))


def _line(row: Installment, state: State, columns: Sequence[Column | None], today: date) -> Line:
    badge = Badge(*LOOKS[state], state_words(row, state, today))
    cells = [
        _cell(column, _shown(row.value(column), column.form)) if column else Cell("state", badge)
        for column in columns
    ]
    return Line(cells, is_next=state is State.NEXT)


def _sums(rows: Sequence[Installment], columns: Sequence[Column | None]) -> list[Cell]:
    """The sums below the columns that have one, behind those that the title takes."""
    return [
        _cell(column, total(getattr(row, column.name) for row in rows))
        if column and column.is_known and column.name in SUMMED
        else Cell("none", None, is_minor=column is not None and _is_minor(column))
        for column in columns[_span(columns) :]
    ]


def _cell(column: Column, value: Any) -> Cell:
    return Cell(column.form, value, _is_minor(column))


def _is_minor(column: Column) -> bool:
    return column.is_known and column.name not in ("number", "due_date", "total")


def _span(columns: Sequence[Column | None]) -> int:
    names = [column.name if column else "" for column in columns]
    return next((index for index, name in enumerate(names) if name in SUMMED), len(names))


def _year_ends(schedule: Schedule) -> Mapping[int, tuple[int, list[Installment]]]:
    """The index of each year's last row, with the year and its rows."""
    years = schedule.years()
    ends = accumulate(len(rows) for _, rows in years)
    return {end - 1: year for end, year in zip(ends, years, strict=True)} if len(years) > 1 else {}


def _shown(value: Any, form: str) -> Any:
    """A value as its form has it; one of a kind that nobody told as text that says exactly what came."""
    if form == "number":
        number = exact(value)
        return None if number is None else f"{number:f}"
    if value is None or isinstance(value, str | date | Decimal):
        return value
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return codec.to_json(value).decode()
