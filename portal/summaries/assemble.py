"""Everything a printed summary says of one borrower, gathered from the copies that are at hand.

One frozen object for page and PDF. Every figure is one the service told, or a plain sum of such; a sum with a missing
part is no sum. Long lists are cut, and the object knows how many are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from portal.applications.details import Details, details
from portal.readings import REPAYMENTS_OF, Reading, account
from portal.registry import memory
from portal.registry.lists import known
from portal.registry.models import Kind, Record
from portal.ui import wording
from servicing import Application, Borrower, KeyPerson, Loan, Offer, Repayment, Statement
from servicing.schedules import Installment, Schedule, schedule_of, total
from servicing.values import same_word

PEOPLE = 50
ACCOUNTS = 24
INSTALLMENTS = 12
BILLS = 12
REPAYMENTS = 12
OFFERS = 12
ABSENT = "—"


@dataclass(frozen=True)
class Sums:
    """Column totals of a schedule."""

    principal: Decimal | None
    interest: Decimal | None
    fees: Decimal | None
    total: Decimal | None

    @classmethod
    def of(cls, rows: Iterable[Installment]) -> "Sums":
        """Each column's exact sum, or none where a row does not tell it."""
        rows = list(rows)
        columns = (
            [getattr(row, name) for row in rows] for name in ("principal", "interest", "fees", "total")
        )
        return cls(*map(total, columns))


@dataclass(frozen=True)
class Position:
    """Where one account stands, in one row."""

    record: Record
    reading: Reading
    state: str
    amount: Decimal | None = None
    balance: Decimal | None = None
    interest_rate: Decimal | None = None
    apr: Decimal | None = None
    due: date | None = None
    past_due: Decimal | None = None


@dataclass(frozen=True)
class LoanPart:
    """A loan's terms and what is still to be paid of it, in order."""

    record: Record
    reading: Reading
    loan: Loan | None
    schedule: Schedule
    coming: Sequence[tuple[Installment, str]]
    coming_sums: Sums
    left_out: int
    paid: int
    sums: Sums


@dataclass(frozen=True)
class LinePart:
    """A line's balances, and how much of it is used."""

    record: Record
    reading: Reading
    statement: Statement | None
    used: Decimal | None
    percent: int | None
    bills: Sequence[date]
    bills_left_out: int

    @property
    def bar(self) -> int:
        """The used share as a length from 0 to 100."""
        return max(0, min(100, self.percent or 0))


@dataclass(frozen=True)
class Paid:
    """One repayment with the account it belongs to."""

    repayment: Repayment
    account: str
    state: str


@dataclass(frozen=True)
class ApplicationPart:
    """The latest application with its offers."""

    record: Record
    application: Application | None
    decision: str
    details: Details | None
    offers: Sequence[Offer]
    offers_left_out: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The whole of it."""

    record: Record
    borrower: Borrower | None
    prepared_at: datetime
    prepared_by: str
    people: Sequence[tuple[Record, KeyPerson | None]]
    positions: Sequence[Position]
    amount: Decimal | None
    balance: Decimal | None
    past_due: Decimal | None
    loans: Sequence[LoanPart]
    lines: Sequence[LinePart]
    repayments: Sequence[Paid]
    repayments_left_out: int
    scheduled: Sequence[Paid]
    application: ApplicationPart | None
    left_out: Mapping[str, int]

    @property
    def stale(self) -> list[Position]:
        """The accounts that the service does not give at the moment."""
        return [one for one in self.positions if one.reading.failing_since]


def accounts_of(record: Record) -> list[Record]:
    """The loans and lines that a summary shows, the oldest first, each with the list of its repayments."""
    chosen = [*_first(record, Kind.LOAN, ACCOUNTS), *_first(record, Kind.LINE, ACCOUNTS)]
    return [one for each in chosen for one in account(each)]


def assemble(record: Record, readings: Sequence[Reading], *, today: date, at: datetime, by: str) -> Summary:
    """The summary from the readings of :func:`accounts_of` and whatever else is known of the borrower."""
    loans = [_loan(one, today) for one in readings if one.record.kind == Kind.LOAN]
    lines = [_line(one) for one in readings if one.record.kind == Kind.LINE]
    positions = [*(_of_loan(one, today) for one in loans), *map(_of_line, lines)]
    past, scheduled = _repayments(readings, today)
    return Summary(
        record=record,
        borrower=memory.last(record, Borrower),
        prepared_at=at,
        prepared_by=by,
        people=[(one, memory.last(one, KeyPerson)) for one in _first(record, Kind.KEY_PERSON, PEOPLE)],
        positions=positions,
        amount=total(one.amount for one in positions),
        balance=total(one.balance for one in positions),
        past_due=total(one.past_due for one in positions),
        loans=loans,
        lines=lines,
        repayments=past[:REPAYMENTS],
        repayments_left_out=max(0, len(past) - REPAYMENTS),
        scheduled=scheduled,
        application=_latest_application(record),
        left_out={
            "people": _beyond(record, Kind.KEY_PERSON, PEOPLE),
            "loans": _beyond(record, Kind.LOAN, ACCOUNTS),
            "lines": _beyond(record, Kind.LINE, ACCOUNTS),
        },
    )


def _first(record: Record, kind: Kind, limit: int) -> list[Record]:
    return list(known(kind).filter(borrower_uuid=record.uuid).order_by("created_at", "id")[:limit])


def _beyond(record: Record, kind: Kind, limit: int) -> int:
    return max(0, known(kind).filter(borrower_uuid=record.uuid).count() - limit)


def _loan(reading: Reading, today: date) -> LoanPart:
    loan = reading.answer if isinstance(reading.answer, Loan) else None
    schedule = schedule_of(loan) if loan else Schedule((), is_known=False)
    unpaid = [row for row in schedule.rows if not row.is_paid]
    coming = unpaid[:INSTALLMENTS]
    return LoanPart(
        record=reading.record,
        reading=reading,
        loan=loan,
        schedule=schedule,
        coming=[(row, _row_state(row, today)) for row in coming],
        coming_sums=Sums.of(coming),
        left_out=len(unpaid) - len(coming),
        paid=len(schedule.rows) - len(unpaid),
        sums=Sums.of(schedule.rows),
    )


def _row_state(row: Installment, today: date) -> str:
    return "Overdue" if row.due_date and row.due_date < today else _word(row.status or "To come")


def _of_loan(part: LoanPart, today: date) -> Position:
    loan, schedule = part.loan, part.schedule
    if loan is None:
        return Position(part.record, part.reading, "Not read yet")
    overdue = schedule.overdue(today)
    following = schedule.next_due(today)
    nothing = Decimal(0) if schedule.is_known else None
    return Position(
        part.record,
        part.reading,
        ", ".join([_word(loan.status), *(["delinquent"] if loan.delinquent else [])]),
        amount=loan.amount,
        balance=next((row.balance for row in reversed(schedule.rows) if row.is_paid), None),
        interest_rate=loan.interest_rate,
        apr=loan.apr,
        due=following.due_date if following else None,
        past_due=total(row.total for row in overdue) if overdue else nothing,
    )


def _line(reading: Reading) -> LinePart:
    told = reading.answer if isinstance(reading.answer, Statement) else None
    limit, available = (told.credit_limit, told.available_credit) if told else (None, None)
    used = None if limit is None or available is None else limit - available
    days = (
        sorted((one.billing_date for one in told.statements if one.billing_date), reverse=True)
        if told
        else []
    )
    return LinePart(
        record=reading.record,
        reading=reading,
        statement=told,
        used=used,
        percent=int(used / limit * 100) if used is not None and limit and limit > 0 else None,
        bills=days[:BILLS],
        bills_left_out=max(0, len(days) - BILLS),
    )


def _of_line(part: LinePart) -> Position:
    told = part.statement
    if told is None:
        return Position(part.record, part.reading, "Not read yet")
    return Position(
        part.record,
        part.reading,
        _days_past_due(told.days_past_due),
        amount=told.credit_limit,
        balance=told.payoff_balance,
        due=told.payment_due_date,
        past_due=told.past_due_balance,
    )


def _days_past_due(days: int | None) -> str:
    if days is None:
        return ABSENT
    return f"Past due {days} day{'' if days == 1 else 's'}" if days else "Not past due"


def _repayments(readings: Sequence[Reading], today: date) -> tuple[list[Paid], list[Paid]]:
    """What was paid or failed, newest first; and what is scheduled, soonest first."""
    names = {kind: Kind(name).label for name, kind in REPAYMENTS_OF.items()}
    found = [
        Paid(one, f"{names[Kind(reading.record.kind)]} {reading.record.uuid[:8]}", _word(one.status))
        for reading in readings
        for one in reading.repayments
    ]
    found.sort(key=lambda one: one.repayment.effective_date or date.min)
    scheduled = [one for one in found if _is_scheduled(one.repayment, today)]
    past = [one for one in reversed(found) if not _is_scheduled(one.repayment, today)]
    return past, scheduled


def _is_scheduled(repayment: Repayment, today: date) -> bool:
    return same_word(repayment.status, "SCHEDULED") and (repayment.effective_date or today) >= today


def _latest_application(record: Record) -> ApplicationPart | None:
    records = known(Kind.APPLICATION).filter(borrower_uuid=record.uuid).order_by("-created_at", "-id")
    pairs = [(one, memory.last(one, Application)) for one in records[:ACCOUNTS]]
    if not pairs:
        return None
    latest, told = max(pairs, key=_applied_at)
    decision = told.status if told else None
    return ApplicationPart(
        record=latest,
        application=told,
        decision=_word(decision.decision if decision else None),
        details=details(decision.details) if decision else None,
        offers=told.offers[:OFFERS] if told else (),
        offers_left_out=max(0, len(told.offers) - OFFERS) if told else 0,
    )


def _applied_at(pair: tuple[Record, Application | None]) -> datetime:
    record, told = pair
    return told.created_at.at if told and told.created_at and told.created_at.at else record.created_at


def _word(status: str | None) -> str:
    return wording.status(status).word if status else ABSENT
