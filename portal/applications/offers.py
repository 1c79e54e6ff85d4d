"""Offers side by side, in the order in which US commercial-finance disclosures are read: an application as a table.

Hides how a row is read, compared and sorted, who is best in it, and that a figure is calculated only from values which
the service gave. What is missing stays missing: a row with a gap has no best value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from string import ascii_uppercase
from typing import Any, Final, Literal, NamedTuple, Self

from django.conf import settings
from django.http import QueryDict

from portal.applications.details import as_text
from portal.ui import wording
from servicing import Application, Offer
from servicing.values import calendar_day, exact

SIDE_BY_SIDE: Final = 4
MENU: Final = 40
"""Of more offers than this the others are reached by sorting, not by picking them one by one."""

Value = Decimal | date | str | None


class Figure(NamedTuple):
    """What an offer says in one row: the value that is compared, its text, or which inputs it lacks."""

    value: Value = None
    text: str | None = None
    needs: str = ""


class Line(NamedTuple):
    """A row before any offer is in it; ``formula`` tells how a figure that is calculated here comes about."""

    key: str
    name: str
    read: Callable[[Offer, Application], Figure]
    best: Literal["", "lowest", "highest"] = ""
    formula: str = ""

    @property
    def in_sentence(self) -> str:
        """The name in the middle of a sentence."""
        return self.name if self.name.isupper() else self.name[:1].lower() + self.name[1:]


# --- Reading one value ---


def told(record: Application | Offer, name: str) -> Any:
    """A field as it was read or, where it could not be, as it came."""
    value = getattr(record, name)
    return record.raw.get(name) if value is None else value


def _number(write: Callable[[Decimal], str | None], name: str, offer: Offer, _: Application) -> Figure:
    value = exact(told(offer, name))
    return _as_it_came(told(offer, name)) if value is None else Figure(value, write(value))


def _day(name: str, offer: Offer, _: Application) -> Figure:
    raw = told(offer, name)
    value = raw if isinstance(raw, date) else calendar_day(raw)
    return Figure(value, wording.day(value)) if value else _as_it_came(raw)


def _anything(name: str, offer: Offer, _: Application) -> Figure:
    return _as_it_came(told(offer, name))


def _as_it_came(raw: Any) -> Figure:
    value, text = exact(raw), as_text(raw)
    return Figure(text if value is None else value, text)


def _term(offer: Offer, _: Application) -> Figure:
    term, frequency = _as_it_came(told(offer, "term")), wording.human(offer.term_frequency)
    if term.text is None and frequency is None:
        return term
    return Figure(term.value, f"{term.text or '—'}, {frequency or '—'}")


# --- Calculating one value ---


def _difference(offer: Offer, application: Application) -> Figure:
    inputs = {"amount": offer.amount, "requested amount": application.amount}
    return _calculated(lambda offered, requested: offered - requested, inputs)


def _net_proceeds(offer: Offer, _: Application) -> Figure:
    inputs = {"amount": offer.amount, "origination fee": offer.origination_fee}
    return _calculated(lambda amount, fee: amount - fee, inputs)


def _total_of_payments(offer: Offer, _: Application) -> Figure:
    return _over_the_term(offer, lambda installment, term: installment * term, {})


def _cost(offer: Offer, _: Application) -> Figure:
    amount = {"amount": offer.amount}
    return _over_the_term(offer, lambda installment, term, amount: installment * term - amount, amount)


def _over_the_term(offer: Offer, formula: Callable[..., Decimal], more: Mapping[str, Any]) -> Figure:
    """Of installment and term; where only interest is paid for a while, no simple product is the truth."""
    if told(offer, "interest_only_period"):
        return Figure(needs="Not told for an interest-only period")
    return _calculated(formula, {"installment": offer.installment, "term": offer.term, **more})


def _calculated(formula: Callable[..., Decimal], inputs: Mapping[str, Any]) -> Figure:
    values = {name: exact(value) for name, value in inputs.items()}
    if missing := [name for name, value in values.items() if value is None]:
        return Figure(needs=f"Needs {', '.join(missing[:-1])}{' and ' if missing[1:] else ''}{missing[-1]}")
    result = formula(*values.values())
    return Figure(result, wording.money(result))


# --- The rows ---


def _money(name: str) -> Callable[[Offer, Application], Figure]:
    return partial(_number, wording.money, name)


def _rate(name: str) -> Callable[[Offer, Application], Figure]:
    return partial(_number, wording.rate, name)


REPORTED: Final = (
    Line("amount", "Amount", _money("amount")),
    Line("difference", "Difference to requested", _difference, formula="amount − requested amount"),
    Line("fee", "Origination fee", _money("origination_fee"), "lowest"),
    Line("apr", "APR", _rate("apr"), "lowest"),
    Line("rate", "Interest rate", _rate("interest_rate"), "lowest"),
    Line("term", "Term", _term),
    Line("installment", "Installment", _money("installment"), "lowest"),
    Line("interest", "Interest amount", _money("interest_amount"), "lowest"),
    Line("interest_only", "Interest-only period", partial(_anything, "interest_only_period")),
    Line("interest_only_installment", "Interest-only installment", _money("interest_only_installment")),
    Line("start", "Start", partial(_day, "start_date")),
    Line("maturity", "Maturity", partial(_day, "maturity_date")),
    Line("explanation", "Explanation", partial(_anything, "explanation")),
)
NET_PROCEEDS: Final = Line("net", "Net proceeds", _net_proceeds, "highest", "amount − origination fee")
CALCULATED: Final = (
    Line("total", "Total of payments", _total_of_payments, "lowest", "installment × term"),
    Line("cost", "Cost above amount", _cost, "lowest", "total of payments − amount"),
)


def calculated_lines() -> tuple[Line, ...]:
    """What is calculated here; net proceeds only where the fee is taken from the amount, which is a setting."""
    return (NET_PROCEEDS, *CALCULATED) if settings.SERVICING_FEE_DEDUCTED else CALCULATED


LINES: Final = {line.key: line for line in (*REPORTED, NET_PROCEEDS, *CALCULATED)}


def every_line() -> tuple[Line, ...]:
    """All rows from top to bottom."""
    return (*REPORTED, *calculated_lines())


# --- The table ---


class View(NamedTuple):
    """What a person wants to see, as the query string says it; whatever is not understood is left out."""

    sort: str = ""
    differing: bool = False
    picked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        sort = query.get("sort", "")
        keys = {line.key for line in every_line()}
        return cls(
            sort=sort if sort.removeprefix("-") in keys else "",
            differing="differing" in query,
            picked=frozenset(query.getlist("offer")),
        )

    @property
    def reversed(self) -> str:
        """The row that it is sorted by from its last value, as it stands in a sentence; empty otherwise."""
        key = self.sort.removeprefix("-")
        return next((line.in_sentence for line in every_line() if line.key == key != self.sort), "")


class Figures(dict[str, Figure]):
    """What one offer says, each row read when it is asked for: of 2,000 offers four are shown."""

    def __init__(self, offer: Offer, application: Application) -> None:
        super().__init__()
        self._of = offer, application

    def __missing__(self, key: str) -> Figure:
        figure = self[key] = LINES[key].read(*self._of)
        return figure


@dataclass(frozen=True)
class Column:
    """One offer, under a letter that it keeps however the table is sorted."""

    letter: str
    offer: Offer
    figures: Mapping[str, Figure]

    @classmethod
    def of(cls, n: int, offer: Offer, application: Application) -> Self:
        return cls(letter(n), offer, Figures(offer, application))

    def order(self, key: str) -> tuple[int, Value]:
        """Numbers before days before words."""
        value = self.figures[key].value
        return ((Decimal, date, str).index(type(value)), value)


class Cell(NamedTuple):
    """A figure in the table; ``best`` says in words that no other offer is better."""

    figure: Figure
    best: str = ""


@dataclass(frozen=True)
class Row:
    """One row over the shown offers; with a gap, or where all are equal, nobody is best in it."""

    line: Line
    cells: Sequence[Cell]
    has_gap: bool
    is_even: bool
    sorted: Literal["", "ascending", "descending"]

    @property
    def next_sort(self) -> str:
        """What pressing its name sorts by."""
        return f"-{self.line.key}" if self.sorted == "ascending" else self.line.key

    @property
    def differs(self) -> bool:
        return len({cell.figure for cell in self.cells}) > 1


class Card(NamedTuple):
    """One shown offer by itself, its rows in the same order."""

    column: Column
    reported: Sequence[tuple[Line, Cell]]
    calculated: Sequence[tuple[Line, Cell]]


@dataclass(frozen=True)
class Comparison:
    """The offers of an application as they are wanted."""

    view: View
    everyone: Sequence[Column]
    columns: Sequence[Column]
    reported: Sequence[Row]
    calculated: Sequence[Row]
    left_out: int
    """How many rows are the same for all shown offers and therefore not wanted."""

    @property
    def lines(self) -> Sequence[Line]:
        """What the offers can be sorted by."""
        return every_line()

    @property
    def is_fee_deducted(self) -> bool:
        return NET_PROCEEDS in every_line()

    @property
    def menu(self) -> Sequence[Column]:
        """The offers to choose from."""
        return self.everyone[:MENU]

    @property
    def unlisted(self) -> int:
        """How many offers are not in the menu."""
        return max(0, len(self.everyone) - MENU)

    @property
    def cards(self) -> list[Card]:
        """The same offer by offer."""
        return [
            Card(
                column,
                [(row.line, row.cells[n]) for row in self.reported],
                [(row.line, row.cells[n]) for row in self.calculated],
            )
            for n, column in enumerate(self.columns)
        ]


def compare(application: Application, view: View) -> Comparison:
    """The table of an application's offers. Best values are the best of all offers, shown or not."""
    sent = [Column.of(n, offer, application) for n, offer in enumerate(application.offers)]
    everyone = _ordered(sent, view.sort)
    picked = [column for column in everyone if column.letter in view.picked]
    columns = (picked or everyone)[:SIDE_BY_SIDE]
    reported = [_row(line, everyone, columns, view.sort) for line in REPORTED]
    calculated = [_row(line, everyone, columns, view.sort) for line in calculated_lines()]
    unwanted = _same_for_all([*reported, *calculated]) if view.differing and len(columns) > 1 else []
    return Comparison(
        view=view,
        everyone=everyone,
        columns=columns,
        reported=[row for row in reported if row not in unwanted],
        calculated=[row for row in calculated if row not in unwanted],
        left_out=len(unwanted),
    )


def letter(n: int) -> str:
    """A, B, … Z, AA, AB, …"""
    before, last = divmod(n, len(ascii_uppercase))
    return (letter(before - 1) if before else "") + ascii_uppercase[last]


def _same_for_all(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.differs]


def _ordered(columns: list[Column], sort: str) -> list[Column]:
    """By a row's value, last first after a minus; those without one come last, equals stay in the order sent."""
    if not sort:
        return columns
    key = sort.removeprefix("-")
    known = [column for column in columns if column.figures[key].value is not None]
    unknown = [column for column in columns if column.figures[key].value is None]
    return sorted(known, key=lambda column: column.order(key), reverse=sort != key) + unknown


def _row(line: Line, everyone: Sequence[Column], columns: Sequence[Column], sort: str) -> Row:
    values = [column.figures[line.key].value for column in everyone] if line.best else []
    best, words = _best(line, values)
    figures = [column.figures[line.key] for column in columns]
    is_even, is_told = _is_even(values), any(value is not None for value in values)
    return Row(
        line=line,
        cells=[Cell(figure, words if words and figure.value == best else "") for figure in figures],
        has_gap=len(values) > 1 and is_told and not (words or is_even),
        is_even=is_even,
        sorted="ascending" if sort == line.key else "descending" if sort == f"-{line.key}" else "",
    )


def _is_even(values: Sequence[Value]) -> bool:
    return len(values) > 1 and isinstance(values[0], Decimal) and all(one == values[0] for one in values)


def _best(line: Line, values: Sequence[Value]) -> tuple[Value, str]:
    """The best value of a row and the words for it; none where one is missing, or none is better than another."""
    numbers = [value for value in values if isinstance(value, Decimal)]
    if len(values) < 2 or len(numbers) < len(values) or _is_even(values):
        return None, ""
    best = min(numbers) if line.best == "lowest" else max(numbers)
    name = " APR" if line.key == "apr" else ""
    shared = numbers.count(best)
    return best, f"{line.best}{name}{f', shared by {shared}' if shared > 1 else ''}"
