"""The borrower summary: everything on one printed page about a borrower, from saved copies.

Sections that are not chosen are ``None``, and what a borrower must not read is left out. A sum with a missing part is
left out. Long lists are cut, and the content says how many entries are missing.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, TypeVar

from django.db.models import F, Model, QuerySet
from django.template.defaultfilters import pluralize

import servicing
from portal.applications.details import details
from portal.audit.models import WriteIntent
from portal.borrowers.as_sent import profile_as_sent
from portal.borrowers.checklist import applied_at
from portal.documents.document import Document, Form
from portal.documents.line_of_credit import billing_days, credit_use
from portal.documents.options import Options
from portal.gateway.reading import LiveCopy, repayment_copies
from portal.loans.figures import STATE_WORDS
from portal.notes.models import Note
from portal.records import store
from portal.records.figures import ACCOUNTS, past_due_of
from portal.records.models import LISTED, Account, Application, Borrower, KeyPerson, Kind
from portal.records.rows import active_records
from portal.records.sources import REPAYMENTS_OF
from portal.repayments.table import RepaymentRow
from portal.ui import wording
from servicing import Loan, Repayment, Statement, consistency
from servicing.schedules import Schedule, State, schedule_of, total
from servicing.values import is_same_word

FORM = Form("BS", "Borrower summary", "documents/papers/borrower.html")
Content = dict[str, Any]
M = TypeVar("M", bound=Model)

# The number of entries of each kind in one document.
MAX_PEOPLE = 50
MAX_ACCOUNTS = 24
MAX_INSTALLMENTS = 12
MAX_SCHEDULE_ROWS = 120
MAX_STATEMENTS = 12
MAX_REPAYMENTS = 12
MAX_BORROWER_REPAYMENTS = 6
MAX_OFFERS = 12
MAX_NOTES = 20


def account_copies_of(record: Borrower) -> list[LiveCopy]:
    """The loans and lines of a summary, oldest first, each followed by its list of repayments."""
    chosen = [one for kind in ACCOUNTS for one in _oldest(_of_kind(record, kind), MAX_ACCOUNTS)]
    lists = repayment_copies(chosen)
    return [one for pair in zip(map(LiveCopy, chosen), lists, strict=True) for one in pair]


def document(record: Borrower, copies: Sequence[LiveCopy], options: Options, *, today: date) -> Document:
    """Build the summary from the copies of :func:`account_copies_of`."""
    content = _content(record, copies, options, today)
    return Document(
        form=FORM,
        subject=record,
        about=str(record),
        content=content,
        options=options,
        copies=copies,
        rows=sum(len(part["rows"]) for part in content["loans"] or ()),
        missing=_missing(content, copies),
    )


def _content(record: Borrower, copies: Sequence[LiveCopy], options: Options, today: date) -> Content:
    loans = [_loan(copy, today, options) for copy in copies if copy.kind == Kind.LOAN]
    lines = [_line(copy, options) for copy in copies if copy.kind == Kind.LINE]
    positions = [_position(part["copy"], today, options) for part in [*loans, *lines]]
    past, scheduled = _repayments(copies, today)
    most = MAX_REPAYMENTS if options.is_internal else MAX_BORROWER_REPAYMENTS
    sections: Content = {
        "people": lambda: _people(record, options),
        "position": lambda: _overview(positions),
        "loans": lambda: loans,
        "lines": lambda: lines,
        "repayments": lambda: past[:most],
        "application": lambda: _latest_application(record, options),
        "internal": lambda: _internal(record, loans, lines, copies, today),
    }
    content = {name: build() if name in options.sections else None for name, build in sections.items()}
    return content | {
        "identity": _identity(record, options),
        "stale": [one for one in positions if one["copy"].failing_since],
        "repayments_left_out": max(0, len(past) - most),
        "scheduled": scheduled if "repayments" in options.sections else (),
        "has_application": "application" in options.sections,
        "left_out": {
            "people": _left_out(_people_of(record), MAX_PEOPLE),
            "loans": _left_out(_of_kind(record, Kind.LOAN), MAX_ACCOUNTS),
            "lines": _left_out(_of_kind(record, Kind.LINE), MAX_ACCOUNTS),
        },
    }


def _missing(content: Content, copies: Sequence[LiveCopy]) -> list[str]:
    """Sentences about what a reader might miss."""
    accounts = [copy for copy in copies if copy.kind in REPAYMENTS_OF]
    failing = [one for one in accounts if one.failing_since]
    counts = [
        ("account", "never updated.", sum(copy.at is None for copy in accounts)),
        ("account", "not responding; saved copies are shown.", len(failing)),
        ("later installment", "not printed.", sum(part["left_out"] for part in content["loans"] or ())),
        ("more record", "not printed.", sum(content["left_out"].values())),
    ]
    words = [f"{number:,} {noun}{pluralize(number)} {rest}" for noun, rest, number in counts if number]
    return words if content["identity"]["is_known"] else ["No profile from the service.", *words]


def _of_kind(record: Borrower, kind: Kind) -> QuerySet[Account]:
    return active_records(kind).select_related("answer").filter(borrower_uuid=record.uuid)


def _people_of(record: Borrower) -> QuerySet[KeyPerson]:
    return KeyPerson.objects.filter(LISTED, borrower_uuid=record.uuid).select_related("answer")


def _oldest(found: QuerySet[M], limit: int) -> list[M]:
    return list(found.order_by("created_at", "id")[:limit])


def _left_out(found: QuerySet[M], limit: int) -> int:
    return max(0, found.count() - limit)


def _sums(rows: Iterable[Any], names: Iterable[str]) -> Content:
    """Each column's exact sum; ``None`` if a row lacks a value."""
    values = [row if isinstance(row, dict) else {name: getattr(row, name) for name in names} for row in rows]
    return {name: total(row[name] for row in values) for name in names}


def _status_word(status: str | None) -> str:
    return wording.status_word(status) if status else "—"


# --- Who it is about ---


def _identity(record: Borrower, options: Options) -> Content:
    sent = profile_as_sent(record)
    profile = sent.profile if sent else store.last_answer(record, servicing.Borrower)
    names = ("is_business", "entity", "citizenship", "start_date", "phone", "email", "address")
    return {name: getattr(profile, name, None) for name in names} | {
        "name": str(record),
        "uuid": record.uuid if options.is_internal else record.uuid[:8],
        "is_known": profile is not None,
        "sent_at": sent.at if sent else None,
    }


def _people(record: Borrower, options: Options) -> list[Content]:
    """Key people, with contact details only for internal readers."""
    shown = ("title", "phone", "email") if options.is_internal else ("title",)
    people: list[tuple[str, servicing.KeyPerson | None]] = [
        (str(one), store.last_answer(one, servicing.KeyPerson))
        for one in _oldest(_people_of(record), MAX_PEOPLE)
    ]
    if not people and (sent := profile_as_sent(record)):
        people = list(sent.people[:MAX_PEOPLE])
    return [{"name": name} | {key: getattr(one, key, None) for key in shown} for name, one in people]


def _internal(
    record: Borrower,
    loans: Sequence[Content],
    lines: Sequence[Content],
    copies: Sequence[LiveCopy],
    today: date,
) -> Content:
    """Internal information: notes, failed data checks, writes with an unknown outcome."""
    pinned_first = F("pinned_until").desc(nulls_last=True)
    notes = Note.objects.filter(borrower_uuid=record.uuid).order_by(pinned_first, "-created_at", "-id")
    open_writes = WriteIntent.objects.filter(borrower_uuid=record.uuid, state__in=WriteIntent.OPEN)
    answered = [one for one in copies if one.kind == Kind.LOAN_REPAYMENTS and one.at]
    paid = {one.record.uuid: one.repayments for one in answered}
    return {
        "notes": [(note.text, note.author_name, note.pinned_until) for note in notes[:MAX_NOTES]],
        "notes_left_out": max(0, notes.count() - MAX_NOTES),
        "checks": [
            (f"{noun} {one['record'].uuid[:8]}", rule.text, rule.id)
            for noun, accounts in (("Loan", loans), ("Line", lines))
            for one in accounts
            for rule in consistency.check_account(
                one["copy"].answer, paid.get(one["record"].uuid), one["copy"].copied_on or today
            )
        ],
        "unknown": [(one.label, one.actor_name, one.created_at) for one in open_writes[:MAX_NOTES]],
    }


# --- Its accounts ---

_INSTALLMENT_WORDS = STATE_WORDS | {
    State.OVERDUE: "Past due",
    State.NEXT: STATE_WORDS[State.FUTURE],
    State.UNKNOWN: "Not provided",
}


def _loan(copy: LiveCopy, today: date, options: Options) -> Content:
    """A loan's terms with its next installments or its whole schedule."""
    loan = copy.answer if isinstance(copy.answer, Loan) else None
    schedule = schedule_of(loan, today) if loan else Schedule((), is_known=False)
    unpaid = [row for row in schedule.rows if not row.is_paid]
    chosen = list(schedule.rows) if options.has_schedules else unpaid
    rows = chosen[: MAX_SCHEDULE_ROWS if options.has_schedules else MAX_INSTALLMENTS]
    columns = ("principal", "interest", "fees", "total")
    states = dict(zip(map(id, schedule.rows), schedule.states(today, copy.copied_on), strict=True))
    return {
        "record": copy.record,
        "copy": copy,
        "loan": loan,
        "statement": None,
        "schedule": schedule,
        "rows": [(row, _INSTALLMENT_WORDS[states[id(row)]]) for row in rows],
        "row_sums": _sums(rows, columns),
        "left_out": len(chosen) - len(rows),
        "paid": len(schedule.rows) - len(unpaid),
        "sums": _sums(schedule.rows, columns),
        "has_fees": any(row.fees != 0 for row in schedule.rows),
        "is_whole": options.has_schedules,
    }


def _line(copy: LiveCopy, options: Options) -> Content:
    """A line's balances and the share in use."""
    statement = copy.answer if isinstance(copy.answer, Statement) else None
    days = billing_days(statement) if options.has_statements else None
    return {
        "record": copy.record,
        "copy": copy,
        "loan": None,
        "statement": statement,
        "use": credit_use(statement),
        "bills": None if days is None else days[:MAX_STATEMENTS],
        "bills_left_out": max(0, len(days or ()) - MAX_STATEMENTS),
    }


# The figures that may be added up, by kind of account.
SUMMED = ("amount", "principal", "remaining", "payoff", "available")


def _overview(positions: Sequence[Content]) -> Content:
    """The past due total, then a table of loans and one of lines, so that different figures are never added up."""
    tables = {"loans": Kind.LOAN, "lines": Kind.LINE}
    of_kinds = {
        name: [one for one in positions if one["record"].kind == kind] for name, kind in tables.items()
    }
    open_ones = {name: [one for one in rows if not one["is_closed"]] for name, rows in of_kinds.items()}
    past_due = past_due_of((one["record"].kind, one["copy"].figures) for one in positions)
    return of_kinds | {
        "past_due": wording.past_due(past_due),
        "days": past_due.days,
        "due_since": wording.due_since_total(past_due),
        "closed": past_due.closed,
        "totals": {name: _sums(rows, SUMMED) for name, rows in open_ones.items() if len(rows) > 1},
    }


def _position(copy: LiveCopy, today: date, options: Options) -> Content:
    """One account as a row of the overview."""
    answer, figures = copy.answer, copy.figures
    is_delinquent = isinstance(answer, Loan) and bool(answer.delinquent) and options.is_internal
    status = _status_word(answer.status) if isinstance(answer, Loan) else ""
    note = f"{', delinquent' if is_delinquent else ''}{', not in totals' if figures.is_closed else ''}"
    return {
        "record": copy.record,
        "copy": copy,
        "state": f"{status}{note}" if answer else "Not loaded yet",
        "is_read": answer is not None,
        "is_closed": figures.is_closed,
        "amount": answer.amount if isinstance(answer, Loan) else figures.limit,
        "principal": figures.principal,
        "remaining": figures.remaining,
        "payoff": figures.payoff,
        "available": figures.available,
        "past_due": figures.past_due,
        "days": figures.days_past_due(today),
        "due_since": figures.due_since and wording.due_since(figures.due_since, copy.copied_on),
        "due": figures.due_next and figures.due_next.day,
        "due_amount": figures.due_next and figures.due_next.amount,
    }


def _repayments(copies: Sequence[LiveCopy], today: date) -> tuple[list[RepaymentRow], list[RepaymentRow]]:
    """Past repayments, newest first, and scheduled ones, soonest first."""
    rows = [RepaymentRow(one, copy.record) for copy in copies for one in copy.repayments]
    rows.sort(key=lambda row: row.repayment.effective_date or date.min)
    scheduled = [row for row in rows if _is_scheduled(row.repayment, today)]
    return [row for row in reversed(rows) if not _is_scheduled(row.repayment, today)], scheduled


def _is_scheduled(repayment: Repayment, today: date) -> bool:
    return is_same_word(repayment.status, "SCHEDULED") and (repayment.effective_date or today) >= today


# --- Its latest application ---


def _latest_application(record: Borrower, options: Options) -> Content | None:
    found = Application.objects.filter(LISTED, borrower_uuid=record.uuid).select_related("answer")
    newest = found.order_by("-created_at", "-id")[:MAX_ACCOUNTS]
    if not newest:
        return None
    latest = max(newest, key=applied_at)
    application = store.last_answer(latest, servicing.Application)
    status = application.status if application else None
    offers = application.offers if application else ()
    return {
        "record": latest,
        "application": application,
        "decision": _status_word(status.decision if status else None),
        "details": details(status.details) if status and options.is_internal else None,
        "offers": offers[:MAX_OFFERS],
        "offers_left_out": max(0, len(offers) - MAX_OFFERS),
    }
