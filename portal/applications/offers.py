"""Offers side by side, in the order in which US commercial-finance disclosures are read: an application as a table.

Hides how a row is read, compared and sorted, and which offer is best in it. A figure is calculated only from values
that the service sent, and a row with a missing value has no best offer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from string import ascii_uppercase
from typing import Any, Final, Literal, NamedTuple, Self

from django.conf import settings
from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import get_text_list

from portal.applications.details import as_text
from portal.ui import wording
from portal.ui.templatetags.ui import icon, or_dash
from servicing import Application, Offer
from servicing.values import calendar_day, decimal_or_none

MAX_COLUMNS: Final = 4
MIN_TO_COMPARE: Final = 3
"""From this many offers on, only rows that differ are shown unless staff ask for all."""
MAX_IN_MENU: Final = 40
"""The number of offers in the menu; sorting brings up the others."""
LONG_TEXT: Final = 60

Value = Decimal | date | str | None


class OfferFigure(NamedTuple):
    """One offer's figure in one row: a value to compare and its text, or the inputs that are missing."""

    value: Value = None
    text: str | None = None
    missing: str = ""


Reader = Callable[[Offer, Application], OfferFigure]


class OfferLine(NamedTuple):
    """One row of the table; ``formula`` says how a figure is calculated here."""

    key: str
    name: str
    read: Reader
    best: Literal["", "lowest", "highest"] = ""
    formula: str = ""

    @property
    def in_sentence(self) -> str:
        return self.name if self.name.isupper() else self.name[:1].lower() + self.name[1:]


# --- One value ---


def reported_value(record: Application | Offer, name: str) -> Any:
    """The decoded field, or what the service sent if it can't be decoded."""
    value = getattr(record, name)
    return record.raw.get(name) if value is None else value


def _reported(name: str, write: Callable[[Decimal], str | None] | None = None) -> Reader:
    """Read a field that should be a number written by ``write``; anything else is shown as sent."""

    def read(offer: Offer, _: Application) -> OfferFigure:
        raw = reported_value(offer, name)
        number, text = decimal_or_none(raw), as_text(raw)
        if number is None:
            return OfferFigure(text, text)
        return OfferFigure(number, write(number) if write else text)

    return read


def _day(name: str) -> Reader:
    def read(offer: Offer, application: Application) -> OfferFigure:
        raw = reported_value(offer, name)
        value = raw if isinstance(raw, date) else calendar_day(raw)
        return OfferFigure(value, wording.day(value)) if value else _reported(name)(offer, application)

    return read


def _term(offer: Offer, application: Application) -> OfferFigure:
    term = _reported("term")(offer, application)
    return term._replace(text=wording.term(term.text, offer.term_frequency))


INPUTS: Final[dict[str, Callable[[Offer, Application], Any]]] = {
    "amount": lambda offer, _: offer.amount,
    "requested amount": lambda _, application: application.amount,
    "origination fee": lambda offer, _: offer.origination_fee,
    "installment": lambda offer, _: offer.installment,
    "term": lambda offer, _: offer.term,
}


def _calculated(formula: Callable[..., Decimal], *names: str) -> Reader:
    """Calculate an amount from inputs; not with an interest-only period, for which a simple product is wrong."""

    def read(offer: Offer, application: Application) -> OfferFigure:
        if "term" in names and reported_value(offer, "interest_only_period"):
            return OfferFigure(missing="Not provided for an interest-only period")
        values = {name: decimal_or_none(INPUTS[name](offer, application)) for name in names}
        if missing := [name for name, value in values.items() if value is None]:
            return OfferFigure(missing=f"Needs {get_text_list(missing, 'and')}")
        result = formula(*values.values())
        return OfferFigure(result, wording.money(result))

    return read


# --- The rows ---

REPORTED: Final = (
    OfferLine("amount", "Amount", _reported("amount", wording.money)),
    OfferLine(
        "difference",
        "Difference from requested",
        _calculated(lambda offered, requested: offered - requested, "amount", "requested amount"),
        formula="amount − requested amount",
    ),
    OfferLine("fee", "Origination fee", _reported("origination_fee", wording.money), "lowest"),
    OfferLine("apr", "APR", _reported("apr", wording.rate), "lowest"),
    OfferLine("rate", "Interest rate", _reported("interest_rate", wording.rate), "lowest"),
    OfferLine("term", "Term", _term),
    OfferLine("installment", "Installment", _reported("installment", wording.money), "lowest"),
    OfferLine("interest", "Interest amount", _reported("interest_amount", wording.money), "lowest"),
    OfferLine("interest_only", "Interest-only period", _reported("interest_only_period")),
    OfferLine(
        "interest_only_installment",
        "Interest-only installment",
        _reported("interest_only_installment", wording.money),
    ),
    OfferLine("start", "Start", _day("start_date")),
    OfferLine("maturity", "Maturity", _day("maturity_date")),
    OfferLine("explanation", "Explanation", _reported("explanation")),
)
NET_PROCEEDS: Final = OfferLine(
    "net",
    "Net proceeds",
    _calculated(lambda amount, fee: amount - fee, "amount", "origination fee"),
    "highest",
    "amount − origination fee",
)
CALCULATED: Final = (
    OfferLine(
        "total",
        "Total of payments",
        _calculated(lambda installment, term: installment * term, "installment", "term"),
        "lowest",
        "installment × term",
    ),
    OfferLine(
        "cost",
        "Cost over principal",
        _calculated(
            lambda installment, term, amount: installment * term - amount, "installment", "term", "amount"
        ),
        "lowest",
        "total of payments − amount",
    ),
)
LINES: Final = {line.key: line for line in (*REPORTED, NET_PROCEEDS, *CALCULATED)}


def all_lines() -> tuple[OfferLine, ...]:
    """All rows from top to bottom; net proceeds only if the fee is deducted from the amount, which is a setting."""
    return (*REPORTED, *([NET_PROCEEDS] if settings.SERVICING_FEE_DEDUCTED else []), *CALCULATED)


# --- The table ---


class OfferView(NamedTuple):
    """Order, rows and chosen offers from the query string; invalid values are ignored."""

    sort: str = ""
    rows: str = ""
    """``all`` or ``differing``; if empty, the number of offers decides."""
    has_empty: bool = False
    """Whether rows without a value for any of these offers are shown."""
    picked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        sort = query.get("sort", "")
        is_known = sort.removeprefix("-") in {line.key for line in all_lines()}
        rows = query.get("rows", "")
        return cls(
            sort if is_known else "",
            rows if rows in ("all", "differing") else "",
            "empty" in query,
            frozenset(query.getlist("offer")),
        )

    @property
    def reversed(self) -> str:
        """The name of the row that the table is sorted by in descending order; otherwise empty."""
        return LINES[self.sort[1:]].in_sentence if self.sort.startswith("-") else ""


@dataclass(frozen=True)
class OfferColumn:
    """One offer, with a letter that it keeps in any order."""

    letter: str
    offer: Offer
    application: Application

    def figure(self, key: str) -> OfferFigure:
        return LINES[key].read(self.offer, self.application)

    @property
    def summary(self) -> str:
        """Amount and APR, by which staff recognize the offer."""
        return ", ".join(self.figure(key).text or "—" for key in ("amount", "apr"))


def offer_names(application: Application) -> dict[str, str]:
    """The offers by ID as the comparison names them: ``A (10.9% APR)``."""
    columns = (OfferColumn(letter(n), offer, application) for n, offer in enumerate(application.offers))
    return {
        one.offer.uuid: f"{one.letter} ({one.figure('apr').text} APR)"
        if one.figure("apr").text
        else one.letter
        for one in columns
    }


class OfferCell(NamedTuple):
    """A figure in the table; ``best`` says in words that no other offer is better."""

    figure: OfferFigure
    best: str = ""

    @property
    def html(self) -> SafeString:
        if self.best:
            mark = format_html('<small class="sd-best">{}{}</small>', icon("star-filled", 13), self.best)
            return format_html("<b>{}</b>{}", self.figure.text, mark)
        if self.figure.missing:
            return format_html("<small>{}</small>", self.figure.missing)
        return format_html("{}", or_dash(self.figure.text))


@dataclass(frozen=True)
class OfferRow:
    """One row with the shown offers; ``remark`` says why none of them is marked as best."""

    line: OfferLine
    cells: Sequence[OfferCell]
    remark: str
    sorted: Literal["", "ascending", "descending"]

    @property
    def next_sort(self) -> str:
        """The sort order after a click on the row's name."""
        return f"-{self.line.key}" if self.sorted == "ascending" else self.line.key

    @property
    def is_empty(self) -> bool:
        return not any(cell.figure.text for cell in self.cells)

    @property
    def differs(self) -> bool:
        return len({cell.figure for cell in self.cells}) > 1

    @property
    def html(self) -> SafeString:
        cells = (
            (" class=sd-text" if len(cell.figure.text or "") > LONG_TEXT else "", cell.html)
            for cell in self.cells
        )
        return format_html_join("", "<td{}>{}</td>", cells)


@dataclass(frozen=True)
class Comparison:
    """An application's offers in the chosen order; ``columns`` are those side by side."""

    view: OfferView
    everyone: Sequence[OfferColumn]
    columns: Sequence[OfferColumn]
    reported: Sequence[OfferRow]
    calculated: Sequence[OfferRow]
    is_differing: bool
    """Whether rows that are the same for all shown offers are left out."""
    same: int
    """The number of rows left out because of it."""
    same_words: str
    """The amount and the start that all shown offers share, if their rows are left out."""
    empty: int
    """The number of rows without a value for any shown offer."""

    @property
    def lines(self) -> Sequence[OfferLine]:
        """The rows to sort by: those with a value for any offer."""
        lines = _lines_of(self.everyone)
        return [line for line in lines if any(column.figure(line.key).text for column in self.everyone)]

    @property
    def is_fee_deducted(self) -> bool:
        return bool(settings.SERVICING_FEE_DEDUCTED)

    @property
    def menu(self) -> Sequence[OfferColumn]:
        return self.everyone[:MAX_IN_MENU]

    @property
    def unlisted(self) -> int:
        return max(0, len(self.everyone) - MAX_IN_MENU)


def _lines_of(columns: Sequence[OfferColumn]) -> Sequence[OfferLine]:
    """The rows of these offers; none for the difference if all are for exactly what was requested."""
    has_difference = any(column.figure("difference").value != 0 for column in columns)
    return [line for line in all_lines() if has_difference or line.key != "difference"]


def compare(application: Application, view: OfferView) -> Comparison:
    """Compare an application's offers. Best values are the best of all offers, shown or not."""
    sent = [OfferColumn(letter(n), offer, application) for n, offer in enumerate(application.offers)]
    everyone = _ordered(sent, view.sort)
    picked = [column for column in everyone if column.letter in view.picked]
    columns = (picked or everyone)[:MAX_COLUMNS]
    is_differing = view.rows == "differing" or (not view.rows and len(columns) >= MIN_TO_COMPARE)
    is_differing &= len(columns) > 1
    rows = [_row(line, everyone, columns, view.sort) for line in _lines_of(columns)]
    shown = [row for row in rows if (view.has_empty if row.is_empty else row.differs or not is_differing)]
    empty = sum(row.is_empty for row in rows)
    left_out = {
        row.line.key: row.cells[0].figure.text for row in rows if row not in shown and not row.is_empty
    }
    start = left_out.get("start")
    shared = filter(None, (left_out.get("amount"), f"starts {start}" if start else ""))
    return Comparison(
        view=view,
        everyone=everyone,
        columns=columns,
        reported=[row for row in shown if row.line in REPORTED],
        calculated=[row for row in shown if row.line not in REPORTED],
        is_differing=is_differing,
        same=len(left_out),
        same_words=", ".join(shared),
        empty=empty,
    )


def column_facts(rows: Sequence[OfferRow], index: int) -> SafeString:
    """The rows of one offer as a list of terms, for narrow screens."""
    facts = (
        (
            row.line.name,
            format_html("<small>{}</small>", row.line.formula) if row.line.formula else "",
            row.cells[index].html,
        )
        for row in rows
    )
    return format_html_join("", "<div><dt>{}{}</dt><dd>{}</dd></div>", facts)


def letter(n: int) -> str:
    """A, B, … Z, AA, AB, …"""
    before, last = divmod(n, len(ascii_uppercase))
    return (letter(before - 1) if before else "") + ascii_uppercase[last]


def _ordered(columns: list[OfferColumn], sort: str) -> list[OfferColumn]:
    """Sort by a row's value, descending after a minus; offers without one come last, ties keep the service's order."""
    if not sort:
        return columns
    values = [(column.figure(sort.removeprefix("-")).value, column) for column in columns]
    present = [pair for pair in values if pair[0] is not None]
    kinds = (Decimal, date, str)  # Numbers before days before words.
    present.sort(key=lambda pair: (kinds.index(type(pair[0])), pair[0]), reverse=sort.startswith("-"))
    return [column for _, column in (*present, *(pair for pair in values if pair[0] is None))]


def _row(
    line: OfferLine, everyone: Sequence[OfferColumn], columns: Sequence[OfferColumn], sort: str
) -> OfferRow:
    values = [column.figure(line.key).value for column in everyone] if line.best else []
    numbers = [value for value in values if isinstance(value, Decimal)]
    best, words, remark = None, "", ""
    if len(values) > 1 and len(numbers) < len(values):
        remark = ""
    elif len(values) > 1 and len(set(numbers)) == 1:
        remark = "Same for all"
    elif len(values) > 1:
        best = min(numbers) if line.best == "lowest" else max(numbers)
        shared = numbers.count(best)
        words = (
            f"{line.best}{' APR' if line.key == 'apr' else ''}{f' ({shared} offers)' if shared > 1 else ''}"
        )
    figures = [column.figure(line.key) for column in columns]
    return OfferRow(
        line=line,
        cells=[OfferCell(figure, words if words and figure.value == best else "") for figure in figures],
        remark=remark,
        sorted="ascending" if sort == line.key else "descending" if sort == f"-{line.key}" else "",
    )
