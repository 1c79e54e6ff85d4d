"""Everything a printed summary says of one borrower, gathered from the copies that are at hand.

One frozen object for page and PDF, in which only what the options want is: a part that is not wanted is ``None``, and
what a borrower must not read is not there. Every figure is one the service told, or a plain sum of such; a sum with a
missing part is no sum. Long lists are cut, and the object knows how many are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from django.db.models import F

from portal.applications.details import Details, details
from portal.audit.models import WriteIntent
from portal.notes.models import Note
from portal.readings import REPAYMENTS_OF, Reading, lists_of
from portal.registry import memory
from portal.registry.lists import known
from portal.registry.models import Kind, Record
from portal.summaries.documents import Document, Form
from portal.summaries.line import Use, billing_days
from portal.summaries.options import Options
from portal.ui import wording
from servicing import Address, Application, Borrower, KeyPerson, Loan, Offer, Repayment, Statement, sense
from servicing.schedules import Installment, Schedule, schedule_of, total
from servicing.values import same_word

FORM: Final = Form("BS", "Borrower summary", "summaries/papers/borrower.html")
PEOPLE: Final = 50
ACCOUNTS: Final = 24
INSTALLMENTS: Final = 12
SCHEDULE: Final = 120
BILLS: Final = 12
REPAYMENTS: Final = 12
OFFERS: Final = 12
NOTES: Final = 20
ABSENT: Final = "—"


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
    """A loan's terms with its next installments, or with its schedule from the start."""

    record: Record
    reading: Reading
    loan: Loan | None
    schedule: Schedule
    rows: Sequence[tuple[Installment, str]]
    row_sums: Sums
    left_out: int
    paid: int
    sums: Sums
    is_whole: bool
    """Whether the rows are the schedule, not only what comes next."""


@dataclass(frozen=True)
class LinePart:
    """A line's balances, and how much of it is used."""

    record: Record
    reading: Reading
    statement: Statement | None
    use: Use
    bills: Sequence[date] | None
    """The days of its statements; ``None`` where they are not wanted."""
    bills_left_out: int


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


@dataclass(frozen=True)
class Person:
    """A key person; how to reach them only where colleagues read it."""

    name: str
    title: str | None
    phone: str | None = None
    email: str | None = None


@dataclass(frozen=True)
class Identity:
    """Whom the summary is about."""

    name: str
    uuid: str
    """Shortened where the borrower reads it."""
    is_business: bool
    entity: str | None
    citizenship: str | None
    start_date: date | None
    phone: str | None
    email: str | None
    address: Address | None
    is_told: bool
    """Whether an answer about this borrower is known here."""


@dataclass(frozen=True)
class Internal:
    """What only colleagues read."""

    notes: Sequence[tuple[str, str, date | None]]
    """Text, author, and until when it is pinned."""
    notes_left_out: int
    checks: Sequence[tuple[str, str, str]]
    """Which account, what does not add up, by which rule."""
    unknown: Sequence[tuple[str, str, datetime]]
    """Writes whose outcome is open: what, by whom, when."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The whole of it; ``None`` is a part that is not wanted."""

    identity: Identity
    people: Sequence[Person] | None
    positions: Sequence[Position] | None
    amount: Decimal | None
    balance: Decimal | None
    past_due: Decimal | None
    loans: Sequence[LoanPart] | None
    lines: Sequence[LinePart] | None
    repayments: Sequence[Paid] | None
    repayments_left_out: int
    scheduled: Sequence[Paid]
    application: ApplicationPart | None
    has_application: bool
    """Whether the latest application is wanted; there may be none."""
    internal: Internal | None
    left_out: Mapping[str, int]

    @property
    def stale(self) -> list[Position]:
        """The accounts that the service does not give at the moment."""
        return [one for one in self.positions or () if one.reading.failing_since]


def accounts_of(record: Record) -> list[Record]:
    """The loans and lines that a summary shows, the oldest first, each with the list of its repayments."""
    chosen = [*_first(record, Kind.LOAN, ACCOUNTS), *_first(record, Kind.LINE, ACCOUNTS)]
    return [one for pair in zip(chosen, lists_of(chosen), strict=True) for one in pair]


def borrower_document(
    record: Record, readings: Sequence[Reading], options: Options, *, today: date
) -> Document:
    """The summary as a document, with what it cannot say."""
    content = assemble(record, readings, options, today=today)
    return Document(
        form=FORM,
        subject=record,
        about=str(record),
        content=content,
        options=options,
        readings=readings,
        rows=sum(len(part.rows) for part in content.loans or ()),
        missing=missing(content, readings),
    )


def assemble(record: Record, readings: Sequence[Reading], options: Options, *, today: date) -> Summary:
    """The summary from the readings of :func:`accounts_of` and whatever else is known of the borrower."""
    loans = [_loan(one, today, options) for one in readings if one.record.kind == Kind.LOAN]
    lines = [_line(one, options) for one in readings if one.record.kind == Kind.LINE]
    positions = [*(_of_loan(one, today, options) for one in loans), *map(_of_line, lines)]
    past, scheduled = _repayments(readings, today)
    wanted = options.sections
    return Summary(
        identity=_identity(record, options),
        people=_people(record, options) if "people" in wanted else None,
        positions=positions if "position" in wanted else None,
        amount=total(one.amount for one in positions),
        balance=total(one.balance for one in positions),
        past_due=total(one.past_due for one in positions),
        loans=loans if "loans" in wanted else None,
        lines=lines if "lines" in wanted else None,
        repayments=past[:REPAYMENTS] if "repayments" in wanted else None,
        repayments_left_out=max(0, len(past) - REPAYMENTS),
        scheduled=scheduled if "repayments" in wanted else (),
        application=_latest_application(record, options) if "application" in wanted else None,
        has_application="application" in wanted,
        internal=_internal(record, loans, lines, today) if "internal" in wanted else None,
        left_out={
            "people": _beyond(record, Kind.KEY_PERSON, PEOPLE),
            "loans": _beyond(record, Kind.LOAN, ACCOUNTS),
            "lines": _beyond(record, Kind.LINE, ACCOUNTS),
        },
    )


def missing(summary: Summary, readings: Sequence[Reading]) -> list[str]:
    """What a reader might look for and not find, in sentences."""
    unread = sum(one.at is None for one in readings if one.record.kind in REPAYMENTS_OF)
    failing = sum(bool(one.failing_since) for one in readings if one.record.kind in REPAYMENTS_OF)
    hidden = sum(part.left_out for part in summary.loans or ())
    beyond = sum(summary.left_out.values())
    told = [
        ("The service never told its profile.", not summary.identity.is_told),
        (f"{_count(unread, 'account')} never read.", unread),
        (f"{_count(failing, 'account')} not answering now; copies are shown.", failing),
        (f"{_count(hidden, 'installment')} beyond the rows shown.", hidden),
        (f"{_count(beyond, 'record')} beyond the numbers of one document.", beyond),
    ]
    return [words for words, is_so in told if is_so]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _identity(record: Record, options: Options) -> Identity:
    told = memory.last(record, Borrower)
    return Identity(
        name=str(record),
        uuid=record.uuid if options.is_internal else record.uuid[:8],
        is_business=bool(told and told.is_business),
        entity=told.entity if told else None,
        citizenship=told.citizenship if told else None,
        start_date=told.start_date if told else None,
        phone=told.phone if told else None,
        email=told.email if told else None,
        address=told.address if told else None,
        is_told=told is not None,
    )


def _people(record: Record, options: Options) -> list[Person]:
    known_people = [(one, memory.last(one, KeyPerson)) for one in _first(record, Kind.KEY_PERSON, PEOPLE)]
    return [
        Person(str(one), told.title, told.phone, told.email)
        if told and options.is_internal
        else Person(str(one), told.title if told else None)
        for one, told in known_people
    ]


def _internal(record: Record, loans: Sequence[LoanPart], lines: Sequence[LinePart], today: date) -> Internal:
    notes = Note.objects.filter(borrower_uuid=record.uuid).order_by(
        F("pinned_until").desc(nulls_last=True), "-created_at", "-id"
    )
    open_writes = WriteIntent.objects.filter(borrower_uuid=record.uuid, state__in=WriteIntent.OPEN)
    found = [
        *((f"Loan {one.record.uuid[:8]}", sense.of_loan(one.loan, today)) for one in loans if one.loan),
        *((f"Line {one.record.uuid[:8]}", sense.of_line(one.statement)) for one in lines if one.statement),
    ]
    return Internal(
        notes=[(note.text, note.author_name, note.pinned_until) for note in notes[:NOTES]],
        notes_left_out=max(0, notes.count() - NOTES),
        checks=[(name, rule.text, rule.id) for name, rules in found for rule in rules],
        unknown=[(one.label, one.actor_name, one.created_at) for one in open_writes[:NOTES]],
    )


def _first(record: Record, kind: Kind, limit: int) -> list[Record]:
    return list(known(kind).filter(borrower_uuid=record.uuid).order_by("created_at", "id")[:limit])


def _beyond(record: Record, kind: Kind, limit: int) -> int:
    return max(0, known(kind).filter(borrower_uuid=record.uuid).count() - limit)


def _loan(reading: Reading, today: date, options: Options) -> LoanPart:
    loan = reading.answer if isinstance(reading.answer, Loan) else None
    schedule = schedule_of(loan) if loan else Schedule((), is_known=False)
    unpaid = [row for row in schedule.rows if not row.is_paid]
    wanted = list(schedule.rows) if options.has_schedules else unpaid
    rows = wanted[: SCHEDULE if options.has_schedules else INSTALLMENTS]
    return LoanPart(
        record=reading.record,
        reading=reading,
        loan=loan,
        schedule=schedule,
        rows=[(row, _row_state(row, today)) for row in rows],
        row_sums=Sums.of(rows),
        left_out=len(wanted) - len(rows),
        paid=len(schedule.rows) - len(unpaid),
        sums=Sums.of(schedule.rows),
        is_whole=options.has_schedules,
    )


def _row_state(row: Installment, today: date) -> str:
    if row.is_paid:
        return "Paid"
    return "Overdue" if row.due_date and row.due_date < today else _word(row.status or "To come")


def _of_loan(part: LoanPart, today: date, options: Options) -> Position:
    loan, schedule = part.loan, part.schedule
    if loan is None:
        return Position(part.record, part.reading, "Not read yet")
    overdue = schedule.overdue(today)
    following = schedule.next_due(today)
    nothing = Decimal(0) if schedule.is_known else None
    return Position(
        part.record,
        part.reading,
        f"{_word(loan.status)}{', delinquent' if loan.delinquent and options.is_internal else ''}",
        amount=loan.amount,
        balance=next((row.balance for row in reversed(schedule.rows) if row.is_paid), None),
        interest_rate=loan.interest_rate,
        apr=loan.apr,
        due=following.due_date if following else None,
        past_due=total(row.total for row in overdue) if overdue else nothing,
    )


def _line(reading: Reading, options: Options) -> LinePart:
    told = reading.answer if isinstance(reading.answer, Statement) else None
    days = billing_days(told) if options.has_statements else None
    return LinePart(
        record=reading.record,
        reading=reading,
        statement=told,
        use=Use.of(told),
        bills=None if days is None else days[:BILLS],
        bills_left_out=max(0, len(days or ()) - BILLS),
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


def _latest_application(record: Record, options: Options) -> ApplicationPart | None:
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
        details=details(decision.details) if decision and options.is_internal else None,
        offers=told.offers[:OFFERS] if told else (),
        offers_left_out=max(0, len(told.offers) - OFFERS) if told else 0,
    )


def _applied_at(pair: tuple[Record, Application | None]) -> datetime:
    record, told = pair
    return told.created_at.at if told and told.created_at and told.created_at.at else record.created_at


def _word(status: str | None) -> str:
    return wording.status(status).word if status else ABSENT
