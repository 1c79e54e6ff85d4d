"""Keeps what was told: every answer becomes the record's last known state, the one before it a snapshot.

One way in, :func:`remember`, for live answers, imported files and records that staff add by uuid; one way out,
:func:`last`, which decodes a kept answer with the codec that decodes live ones.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from django.db import transaction
from django.utils import timezone

from portal.clocks import SKEW
from portal.registry import rows
from portal.registry.lists import roll_up
from portal.registry.models import Kind, Record, Snapshot, Source
from portal.registry.query import is_uuid
from portal.registry.search import search_text
from portal.registry.sources import KIND_OF_ANSWER
from servicing import Application, Borrower, KeyPerson, Loan, Repayment, Statement, codec, rules
from servicing.schedules import schedule_of

Answer = Borrower | KeyPerson | Application | Loan | Statement | Repayment
# Records by kind and identifier.
Stored = Mapping[tuple[str, str], Record]
Model = TypeVar("Model", Borrower, KeyPerson, Application, Loan, Statement, Repayment)

KIND_OF: dict[type, Kind] = {
    Borrower: Kind.BORROWER,
    KeyPerson: Kind.KEY_PERSON,
    Application: Kind.APPLICATION,
    Loan: Kind.LOAN,
    Statement: Kind.LINE,
    Repayment: Kind.REPAYMENT,
}
BATCH = 2_000
IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOO_MUCH = Decimal(10) ** 11
"""SQLite keeps 15 digits of a number exactly: these, and four places behind the point."""
logger = logging.getLogger(__name__)
_ENCODER = msgspec.json.Encoder(decimal_format="number", order="sorted")


@dataclass(frozen=True, kw_only=True)
class Known:
    """One thing to remember: an answer, or just that a uuid exists and whose it is."""

    kind: Kind
    uuid: str
    borrower_uuid: str = ""
    parent_uuid: str = ""
    label: str = ""
    answer: Answer | list[Repayment] | None = None
    names_other_owner: bool = False
    """The answer says it belongs to another borrower than the one it was asked for under: to neither, until somebody
    confirms one."""


def known(answer: Answer, *, uuid: str = "", borrower_uuid: str = "", parent_uuid: str = "") -> list[Known]:
    """An answer and the records inside it (a borrower's key people), ready to remember.

    A statement carries no uuid of its own: the line's is given.
    """
    uuid = uuid or getattr(answer, "uuid", "")
    owner = uuid if isinstance(answer, Borrower) else borrower_uuid
    item = Known(
        kind=KIND_OF[type(answer)], uuid=uuid, borrower_uuid=owner, parent_uuid=parent_uuid, answer=answer
    )
    people = answer.key_people or () if isinstance(answer, Borrower) else ()
    return [item, *(known(person, borrower_uuid=uuid)[0] for person in people)]


def records_in_answer(operation: str, answer: Any, ids: Mapping[str, str]) -> list[Known]:
    """What the answer of an operation tells, with the ids of the call that asked.

    A record whose uuid cannot be part of an address is left out: no page could lead to it.
    """
    if operation not in KIND_OF_ANSWER:
        logger.error("%s has no kind of record; its answer is recorded as a call alone", operation)
        return []
    kind = KIND_OF_ANSWER[operation]
    items = _items(kind, answer, ids) if kind else []
    return [item for item in items if IDENTIFIER.fullmatch(item.uuid)]


def _items(kind: Kind, answer: Any, ids: Mapping[str, str]) -> list[Known]:
    owner = ids.get("borrower_id", "")
    if kind in (Kind.LOAN_REPAYMENTS, Kind.LINE_REPAYMENTS):
        account = ids["loan_id" if kind == Kind.LOAN_REPAYMENTS else "line_id"]
        whole = Known(kind=kind, uuid=account, borrower_uuid=owner, parent_uuid=account, answer=answer)
        return [whole, *(known(one, borrower_uuid=owner, parent_uuid=account)[0] for one in answer)]
    if isinstance(answer, Loan) and answer.user_uuid and answer.user_uuid.casefold() != owner.casefold():
        return [replace(known(answer)[0], names_other_owner=True)]
    return known(answer, uuid=ids["line_id"] if kind == Kind.LINE else "", borrower_uuid=owner)


def held(items: Iterable[Known]) -> Stored:
    """What is stored of the items already, locked to the end of the caller's transaction."""
    records = rows.stored_of((item.kind, item.uuid) for item in items).select_for_update()
    return {(record.kind, record.uuid): record for record in records}


def remember(
    items: Iterable[Known],
    *,
    source: str,
    at: datetime | None = None,
    by: str = "",
    stored: Stored | None = None,
) -> list[Record]:
    """Keep each item; an answer that differs pushes the one before it into a snapshot.

    Whoever asked already what is ``stored`` of them gives it.
    """
    at = at or timezone.now()
    items = list({(item.kind, item.uuid): item for item in items}.values())
    return [
        record
        for start in range(0, len(items), BATCH)
        for record in _remember_batch(items[start : start + BATCH], stored, source, at, by)
    ]


def last(record: Record, model: type[Model]) -> Model | None:
    """The record's last known answer, or ``None`` if only its uuid is known."""
    return codec.decode(model, record.answer) if record.answer else None


def find(kind: str, uuid: str) -> Record | None:
    """The known record, archived or not."""
    return Record.objects.filter(kind=kind, uuid=uuid).first()


def last_repayments(record: Record) -> list[Repayment]:
    """The last known list of an account's repayments."""
    return codec.decode_list(Repayment, record.answer) if record.answer else []


def text_of(answer: Answer | list[Repayment]) -> str:
    """The answer as it was received, in one canonical JSON text: equal answers give equal texts, numbers are exact."""
    raw = [one.raw for one in answer] if isinstance(answer, list) else answer.raw
    return _ENCODER.encode(raw).decode()


def version(record: Record) -> str:
    """A short digest of the last answer: a form carries it to notice that the copy moved meanwhile."""
    return hashlib.sha256(record.answer.encode()).hexdigest()[:16]


def _remember_batch(
    items: Sequence[Known], stored: Stored | None, source: str, at: datetime, by: str
) -> list[Record]:
    with transaction.atomic():
        items = _without_unowned_loans(items)
        stored = held(items) if stored is None else stored
        remembered, new, changed, same, snapshots = [], [], [], [], []
        owners: dict[Record, str] = {}
        for item in items:
            record = stored.get((item.kind, item.uuid))
            if record is None:
                record = rows.new(kind=item.kind, uuid=item.uuid, source=source, created_by=by)
                new.append(record)
                _absorb(record, item, source, at)
            elif _is_confirmed(record, item, at):
                same.append(record)
            else:
                before, owners[record] = _state(record), record.borrower_uuid
                snapshots += _absorb(record, item, source, at)
                if _state(record) != before:
                    record.updated_at = at
                    changed.append(record)
            remembered.append(record)
        rows.create(new)
        rows.update(changed, [*_TOLD, "updated_at"])
        _confirm(same, source, at)
        Snapshot.objects.bulk_create(snapshots)
        released = [record for record in changed if owners[record] and not record.borrower_uuid]
        _release_repayments(released)
        summed = [record for record in new + changed if _is_added_up(record)]
        roll_up({record.borrower_uuid for record in summed} | {owners[record] for record in released})
        return remembered


def _without_unowned_loans(items: Sequence[Known]) -> list[Known]:
    """Repayments of a loan that belongs to nobody belong to nobody either."""
    loans = {item.parent_uuid for item in items if item.kind == Kind.LOAN_REPAYMENTS}
    if not loans:
        return list(items)
    found = Record.objects.filter(kind=Kind.LOAN, uuid__in=loans, borrower_uuid="").exclude(answer="")
    unowned = set(found.values_list("uuid", flat=True))
    return [replace(item, borrower_uuid="") if item.parent_uuid in unowned else item for item in items]


def _release_repayments(loans: Iterable[Record]) -> None:
    """Take the repayments of loans that lost their owner away from that borrower."""
    of_loans = (Kind.LOAN_REPAYMENTS, Kind.REPAYMENT)
    if uuids := [loan.uuid for loan in loans]:
        Record.objects.filter(parent_uuid__in=uuids, kind__in=of_loans).update(borrower_uuid="")


def _is_added_up(record: Record) -> bool:
    """Whether a borrower's row may say something else now; an account of which nothing was told adds nothing to it."""
    if record.kind in (Kind.LOAN, Kind.LINE):
        return bool(record.answer)
    return record.kind in (Kind.BORROWER, Kind.APPLICATION)


def _is_confirmed(record: Record, item: Known, at: datetime) -> bool:
    """Whether the last answer was told again, later and with nothing besides."""
    if item.answer is None or item.label or _is_late(record, at):
        return False
    if item.names_other_owner and record.borrower_uuid and not record.owner_confirmed:
        return False
    owners = (item.borrower_uuid in ("", record.borrower_uuid), item.parent_uuid in ("", record.parent_uuid))
    return all(owners) and record.answer == text_of(item.answer)


def _confirm(records: Sequence[Record], source: str, at: datetime) -> None:
    """The same was told again: only the age of the copies changes, in one statement."""
    told: dict[str, Any] = {"answer_at": at, "source": source}
    if source == Source.SERVICE:
        told |= {"checked_at": at, "failing_since": None, "failure": ""}
    Record.objects.filter(pk__in=[record.pk for record in records]).update(**told)
    for record in records:
        for name, value in told.items():
            setattr(record, name, value)


# What absorbing an answer may change.
_TOLD = [
    *("borrower_uuid", "parent_uuid", "label", "search_text", "answer", "answer_at", "source", "checked_at"),
    *("product", "status", "entity", "state", "city", "phone", "email", "amount", "past_due", "due_date"),
    *("rate", "flagged", "failing_since", "failure"),
]


def _state(record: Record) -> list[Any]:
    return [getattr(record, name) for name in _TOLD]


def _absorb(record: Record, item: Known, source: str, at: datetime) -> list[Snapshot]:
    """Take the item into the record; the snapshot of what it replaces, if it replaces anything."""
    replaced = []
    if item.names_other_owner and not record.owner_confirmed:
        record.borrower_uuid = ""
    else:
        record.borrower_uuid = item.borrower_uuid or record.borrower_uuid
    record.parent_uuid = item.parent_uuid or record.parent_uuid
    record.label = item.label or record.label
    if item.answer is not None:
        replaced = _absorb_answer(record, item.answer, text_of(item.answer), source, at)
    if not isinstance(item.answer, list):
        record.search_text = record.search_text or search_text(unusual(record.uuid))
        label = search_text(record.label)
        if label not in record.search_text:  # a name given here outlives an answer
            record.search_text += label
    return replaced


def _absorb_answer(
    record: Record, answer: Answer | list[Repayment], text: str, source: str, at: datetime
) -> list[Snapshot]:
    if _is_late(record, at):  # an old file must not hide a newer answer
        late = _snapshot(record, text, at, source)
        kept = text == record.answer or record.snapshots.filter(at=at, digest=late.digest).exists()
        return [] if kept else [late]
    replaced = []
    if record.answer and record.answer_at and record.answer != text:
        replaced = [_snapshot(record, record.answer, record.answer_at, record.source)]
    record.answer, record.answer_at, record.source = text, at, source
    if source == Source.SERVICE:
        record.checked_at, record.failing_since, record.failure = at, None, ""
    for name, value in columns(answer).items():
        setattr(record, name, value)
    return replaced


def _is_late(record: Record, at: datetime) -> bool:
    """Whether the record's answer is newer, unless the clock was set back since."""
    return record.answer_at is not None and at < record.answer_at <= timezone.now() + SKEW


def _storable(name: str, value: Any) -> Any:
    """The value as its column holds it in every database: a text cut to its length, an absurd amount left out."""
    if isinstance(value, str):
        longest = getattr(Record._meta.get_field(name), "max_length", None)
        return value.replace("\0", "\ufffd")[:longest]
    return None if isinstance(value, Decimal) and abs(value) >= TOO_MUCH else value


def _snapshot(record: Record, text: str, at: datetime, source: str) -> Snapshot:
    return Snapshot(
        record=record, at=at, source=source, digest=hashlib.sha256(text.encode()).hexdigest(), answer=text
    )


def columns(answer: Answer | list[Repayment]) -> dict[str, Any]:
    """What lists filter, sort and search by, taken from an answer as the database can hold it."""
    return {name: _storable(name, value) for name, value in _columns(answer).items()}


def _columns(answer: Answer | list[Repayment]) -> dict[str, Any]:
    match answer:
        case list():
            return {"search_text": ""}
        case Borrower():
            return _person_columns(answer) | {
                "label": full_name(answer),
                "product": (answer.user_type or ("BUSINESS" if answer.is_business else "PERSON")).upper(),
                "entity": str(answer.entity or ""),
                "search_text": search_text(
                    full_name(answer),
                    unusual(answer.uuid),
                    *_contact(answer),
                    *map(full_name, answer.key_people or ()),
                ),
            }
        case KeyPerson():
            return _person_columns(answer) | {
                "label": full_name(answer),
                "product": str(answer.title or ""),
                "search_text": search_text(full_name(answer), unusual(answer.uuid), *_contact(answer)),
            }
        case Application():
            decision = answer.status.decision if answer.status else None
            return _credit_columns(answer.uuid, answer.product, decision) | {"amount": answer.amount}
        case Loan():
            return _credit_columns(answer.uuid, answer.product, answer.status) | {
                "amount": answer.amount,
                "state": answer.state or "",
                "flagged": bool(answer.delinquent),
                "due_date": schedule_of(answer).first_unpaid,
                "rate": answer.interest_rate,
                "search_text": search_text(
                    unusual(answer.uuid), *_references(answer), answer.product, answer.status
                ),
            }
        case Statement():
            return {
                "amount": answer.credit_limit,
                "past_due": answer.past_due_balance,
                "due_date": answer.payment_due_date,
                "flagged": bool(answer.past_due_balance or answer.days_past_due),
            }
        case Repayment():
            found = search_text(
                unusual(answer.uuid),
                answer.ach_id,
                answer.ach_batch_id,
                answer.borrower_bank_account_uuid,
                str(answer.amount),
            )
            has_failed = (answer.status or "").upper().startswith("FAILED")
            return _credit_columns(answer.uuid, answer.product, answer.status) | {
                "amount": answer.amount,
                "due_date": _day(answer.effective_date),
                "entity": answer.payment_type or "",
                "flagged": has_failed or bool((answer.error_description or "").strip()),
                "search_text": found,
            }


def unusual(uuid: str) -> str:
    """The identifier where it has another form than the service's, and is looked for as any other text."""
    return "" if is_uuid(uuid) else uuid


def full_name(person: Borrower | KeyPerson) -> str:
    """First, middle and last name; of a business the legal name."""
    parts = (person.first_name, person.middle_name, person.last_name)
    return " ".join(part for part in parts if part)


def _person_columns(person: Borrower | KeyPerson) -> dict[str, Any]:
    address = person.address
    return {
        "state": (address.state or "") if address else "",
        "city": (address.city or "") if address else "",
        "phone": person.phone or "",
        "email": person.email or "",
    }


def _contact(person: Borrower | KeyPerson) -> tuple[str | None, ...]:
    address = person.address
    place = (address.city, address.zip, rules.US_STATES.get(address.state or "")) if address else ()
    return (person.email, person.phone, *place)


def _references(loan: Loan) -> list[str]:
    """The other ids a loan goes by; the service does not say what shape they have."""
    return [str(one) for one in (loan.external_id, loan.origin_loan_uuid) if isinstance(one, str | int)]


def _credit_columns(uuid: str, product: str | None, status: str | None) -> dict[str, Any]:
    return {
        "product": product or "",
        "status": status or "",
        "search_text": search_text(unusual(uuid), product, status),
    }


def _day(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None
