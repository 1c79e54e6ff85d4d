"""Saves answers of the lending service as records, and the answers that they replace as snapshots.

:func:`save` takes live answers, imported files and IDs that staff add. :func:`last_answer` decodes a saved answer with
the codec of live ones.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.dispatch import Signal
from django.utils import timezone

import servicing
from portal.core.business_date import business_date, business_date_at
from portal.core.folding import folded_key
from portal.records.canonical import canonical_json as canonical_json
from portal.records.columns import Decoded, columns_from, non_uuid_identifier
from portal.records.figures import (
    ACCOUNTS,
    Lateness,
    copy_day,
    is_account,
    repayment_columns,
    save_changes,
)
from portal.records.models import (
    NAMED_KINDS,
    Account,
    Answer,
    Answered,
    Borrower,
    Kind,
    Named,
    PastDueChange,
    Repayment,
    Snapshot,
    Source,
)
from portal.records.repayments import AccountList, save_repayments
from portal.records.rollup import borrowers_with_totals, roll_up
from portal.records.rows import (
    answers_by_key,
    by_model,
    create_records,
    new_record,
    records_by_key,
    records_of,
    update_records,
    with_answers,
)
from portal.records.sources import KIND_OF_MODEL, LISTS, REPAYMENTS_OF, Operation, operation_named
from portal.records.spelling import save_words
from portal.records.texts import search_text, with_name
from servicing import Loan, Page, Statement, codec
from servicing.figures import FOREVER

# Records by kind and ID.
Stored = Mapping[tuple[str, str], Answered]
Model = TypeVar("Model", bound=codec.Model)

BATCH_SIZE = 2_000
ANSWERS_AT_ONCE = 50
"""Answers in one statement, because its size grows with each."""
MAX_DECODED = 100
"""Decoded answers cached per process, because a page, its panels and the next click read the same ones."""
IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,64}")
repayments_received = Signal()
"""Sent with ``account_uuids`` in the transaction that saves their lists, also if the lists are unchanged."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What to save about one thing: an answer, or only a record's ID and its owner."""

    kind: Kind
    uuid: str
    borrower_uuid: str = ""
    label: str = ""
    answer: codec.Model | Sequence[codec.Model] | None = None
    names_other_owner: bool = False
    """Whether the answer names another borrower than the request. Neither owns it until somebody confirms one."""


def observe(answer: Decoded, *, uuid: str = "", borrower_uuid: str = "") -> list[Observation]:
    """The observations in one answer: itself and, for a borrower, its key people.

    A statement has no ID of its own, so pass the line's.
    """
    uuid = getattr(answer, "uuid", "") or uuid
    owner = uuid if isinstance(answer, servicing.Borrower) else borrower_uuid
    item = Observation(kind=KIND_OF_MODEL[type(answer)], uuid=uuid, borrower_uuid=owner, answer=answer)
    people = answer.key_people or () if isinstance(answer, servicing.Borrower) else ()
    return [item, *(observe(person, borrower_uuid=uuid)[0] for person in people)]


def records_in_answer(operation: str, answer: Any, ids: Mapping[str, str]) -> list[Observation]:
    """The observations in an operation's answer, with the IDs of its call.

    A record whose ID can't be part of a URL is left out, since no page could show it. A page of a list is nothing to
    save: the answer to the last call is the whole list.
    """
    row = operation_named(operation)
    items = _observations(row, answer, ids) if row and row.kind and not isinstance(answer, Page) else []
    return [item for item in items if IDENTIFIER.fullmatch(item.uuid)]


def _observations(operation: Operation, answer: Any, ids: Mapping[str, str]) -> list[Observation]:
    owner = ids.get("borrower_id", "")
    uuid = ids.get(operation.ids[-1], "") if operation.ids else ""
    if operation.kind and operation.parent:
        return [Observation(kind=operation.kind, uuid=uuid, borrower_uuid=owner, answer=answer)]
    if isinstance(answer, Loan) and answer.user_uuid and answer.user_uuid.casefold() != owner.casefold():
        return [replace(observe(answer)[0], names_other_owner=True)]
    return observe(answer, uuid=uuid, borrower_uuid=owner)


def lock_existing(items: Iterable[Observation]) -> Stored:
    """Lock existing records until the caller's transaction ends."""
    found = records_by_key((item.kind, item.uuid) for item in items)
    return {(record.kind, record.uuid): record for record in chain.from_iterable(map(_locked, found))}


def _locked(records: QuerySet[Any]) -> QuerySet[Any]:
    """The records with their answers, whose rows need no lock: such an answer is saved only with its record locked."""
    return with_answers(records).select_for_update(of=("self",))


def save(
    items: Iterable[Observation],
    *,
    source: str,
    operation: str = "",
    at: datetime | None = None,
    by: str = "",
    stored: Stored | None = None,
) -> list[Answered]:
    """Save each item and return the records; a different answer moves the previous one into a snapshot.

    A list has an answer and no record. ``operation`` is the one that answered, if any. Pass ``stored`` if the existing
    records are already locked.
    """
    origin = _Origin(source, operation, at or timezone.now())
    items = list({(item.kind, item.uuid): item for item in items}.values())
    return [
        record
        for start in range(0, len(items), BATCH_SIZE)
        for record in _save_batch(items[start : start + BATCH_SIZE], stored, origin, by)
    ]


def last_answer(record: Answered, model: type[Model]) -> Model | None:
    """The record's last answer, or ``None`` if only its ID is on file."""
    text = saved_text(record)
    return cast(Model, decode_answer(model, text)) if text else None


def saved_text(record: Answered) -> str:
    """The record's last answer as received; empty without one. Many records are read with their answers."""
    return record.answer.body if record.answer else ""


@lru_cache(MAX_DECODED)
def decode_answer(model: Any, text: str) -> Any:
    """Decode an answer, cached: it is immutable, and so are the figures cached on it."""
    return codec.decode(model, text)


@lru_cache(MAX_DECODED)
def decode_list_answer(model: Any, text: str) -> tuple[Any, ...]:
    return tuple(codec.decode_list(model, text))


def account_answer(account: Account) -> Loan | Statement | None:
    return last_answer(account, Loan) if account.kind == Kind.LOAN else last_answer(account, Statement)


def find(kind: str, uuid: str) -> Any:
    """The row on file, archived or not; ``None`` if there is none."""
    return with_answers(records_of(kind)).filter(uuid=uuid).first()


def last_list(said: Answer, model: type[Model]) -> list[Model]:
    """The last answer of an account's list, such as its repayments; of an answer that is one object, that object."""
    if said.body.startswith("{"):
        return [decode_answer(model, said.body)]
    return list(decode_list_answer(model, said.body)) if said.body else []


def delete_old_snapshots() -> int:
    """Delete snapshots past the configured age except the newest of each answer; return how many.

    Past due changes of the same age are deleted too.
    """
    limit = timezone.now() - timedelta(days=settings.SNAPSHOT_DAYS)
    PastDueChange.objects.filter(day__lt=business_date() - timedelta(days=settings.SNAPSHOT_DAYS)).delete()
    newer = Snapshot.objects.filter(answer=OuterRef("answer"), last_at__gt=OuterRef("last_at"))
    deleted, _ = Snapshot.objects.filter(Exists(newer), last_at__lt=limit).delete()
    return deleted


def answer_version(record: Answered) -> str:
    """A short digest of the last answer, with which a form notices that the saved copy changed."""
    return hashlib.sha256(saved_text(record).encode()).hexdigest()[:16]


class _Origin(NamedTuple):
    """Who said it, and when."""

    source: str
    operation: str
    at: datetime


def _save_batch(
    items: Sequence[Observation], stored: Stored | None, origin: _Origin, by: str
) -> list[Answered]:
    with transaction.atomic():
        lists = [item for item in items if item.kind in LISTS and item.answer is not None]
        items = [item for item in items if item.kind not in LISTS]
        stored = lock_existing(items) if stored is None else stored
        saved, new, changed, answered, same = (list[Answered]() for _ in range(5))
        snapshots: list[Snapshot] = []
        owners: dict[Answered, str] = {}
        lateness: list[tuple[Account, Lateness]] = []
        for item in items:
            record = stored.get((item.kind, item.uuid))
            if record is None:
                record = new_record(item.kind, item.uuid, created_by=by)
                if is_account(record):
                    record.figures_good_through = FOREVER
                new.append(record)
                _apply(record, item, origin)
                if record.answer:
                    answered.append(record)
            elif _is_unchanged(record, item, origin.at):
                same.append(record)
            else:
                before, owners[record] = _column_values(record), record.borrower_uuid
                said_before = _answer_values(record.answer)
                if is_account(record) and record.answer_at:
                    lateness.append((record, Lateness.of(record)))
                snapshots += _apply(record, item, origin)
                if has_answer := _answer_values(record.answer) != said_before:
                    answered.append(record)
                if has_answer or _column_values(record) != before:
                    record.updated_at = origin.at
                    changed.append(record)
            saved.append(record)
        answers = {
            (record.kind, record.uuid): item.answer
            for record, item in zip(saved, items, strict=True)
            if record.answer_at == origin.at
        }
        changed_lists = _save_lists(lists, origin)
        loans = _with_repayments(new + changed, changed_lists, answers, stored)
        _save_answers([record.answer for record in answered if record.answer], origin.source)
        for record in answered:
            record.answer = record.answer  # Sets its key.
        create_records(new)
        for model, rows in by_model([*changed, *loans]).items():
            update_records(rows, [*model.FROM_ANSWER, "updated_at"])
        save_changes(lateness)
        save_words(new + changed)
        _touch(same, origin)
        Snapshot.objects.bulk_create(snapshots)
        if payments := [item for item in lists if item.kind in REPAYMENTS_OF.values()]:
            save_repayments([_repayments_in(item) for item in payments], origin.at)
            repayments_received.send(sender=Answer, account_uuids=[item.uuid for item in payments])
        released = [one for one in changed if is_account(one) and owners[one] and not one.borrower_uuid]
        _release_repayments(released)
        summed = {record.borrower_uuid for record in new + changed if _affects_totals(record)}
        unread = {record.borrower_uuid for record in new if record.kind in ACCOUNTS and not record.answer_at}
        roll_up(summed | {owners[record] for record in released} | borrowers_with_totals(unread - summed))
        return saved


def _repayments_in(item: Observation) -> AccountList:
    """What a list is about. A repayment whose ID can't be part of a URL is left out, since no page could show it."""
    rows = item.answer if isinstance(item.answer, list) else []
    shown = [one for one in rows if IDENTIFIER.fullmatch(one.uuid)]
    return AccountList(LISTS[item.kind], item.uuid, item.borrower_uuid, shown)


def _save_lists(lists: Iterable[Observation], origin: _Origin) -> list[Answer]:
    """Save the answers of lists; return those with another text than before."""
    texts = {(one.kind, one.uuid): canonical_json(one.answer) for one in lists if one.answer is not None}
    found = answers_by_key(texts).order_by("pk").select_for_update()
    stored = {(one.kind, one.uuid): one for one in found}
    changed, same, snapshots = [], [], []
    for (kind, uuid), new_text in texts.items():
        answer = stored.get((kind, uuid)) or Answer(kind=kind, uuid=uuid)
        text, times = answer.body, (answer.last_at, answer.failing_since)
        snapshots += _replace_answer(answer, new_text, origin)
        if answer.body != text:
            changed.append(answer)
        elif (answer.last_at, answer.failing_since) != times:
            same.append(answer)
    _save_answers(changed, origin.source)
    _touch_answers(same, origin)
    Snapshot.objects.bulk_create(snapshots)
    return changed


def _save_answers(answers: Sequence[Answer], source: str) -> None:
    # Only the service's own answer ends a failure, which another request may just have saved.
    columns = _COLUMNS_OF_ANSWER if source == Source.SERVICE else _COLUMNS_OF_ANSWER[:-2]
    # A request that asks for a thing may create its answer's row at the same moment.
    Answer.objects.bulk_create(
        [answer for answer in answers if not answer.pk],
        update_conflicts=True,
        unique_fields=["kind", "uuid"],
        update_fields=columns,
    )
    known = [answer for answer in answers if answer.pk]
    Answer.objects.bulk_update(known, columns, batch_size=ANSWERS_AT_ONCE)


def _with_repayments(
    records: Sequence[Answered],
    changed_lists: Sequence[Answer],
    answers: Mapping[tuple[str, str], Any],
    stored: Stored,
) -> list[Account]:
    """Set the columns that depend on accounts and their repayments; return loans of which only the repayments changed.

    ``answers`` avoid decoding what was just saved.
    """
    accounts = {record.uuid: record for record in records if is_account(record) and record.answer_at}
    lists = {one.uuid: one for one in changed_lists if one.kind == Kind.LOAN_REPAYMENTS}
    if unsaved := lists.keys() - accounts.keys():
        loans = [
            record
            for (kind, uuid), record in stored.items()
            if kind == Kind.LOAN and uuid in unsaved and is_account(record)
        ]
        found = records_of(Kind.LOAN).filter(uuid__in=unsaved - {one.uuid for one in loans})
        accounts |= {one.uuid: one for one in [*loans, *_locked(found)] if one.answer_at}
    others = [uuid for uuid, one in accounts.items() if one.kind == Kind.LOAN and uuid not in lists]
    lists |= {one.uuid: one for one in answers_by_key((Kind.LOAN_REPAYMENTS, uuid) for uuid in others)}
    before = {uuid: (one.needs_check, one.is_partly_paid) for uuid, one in accounts.items()}
    for uuid, account in accounts.items():
        set_repayment_columns(account, lists.get(uuid), answers.get((account.kind, uuid)))
    saved = {id(record) for record in records}
    return [
        one
        for uuid, one in accounts.items()
        if id(one) not in saved and (one.needs_check, one.is_partly_paid) != before[uuid]
    ]


def set_repayment_columns(
    account: Account, repayments: Answer | None, answer: Loan | Statement | None = None
) -> None:
    """Set the columns that depend on an account and its saved list of repayments."""
    if answer := answer or account_answer(account):
        listed = last_list(repayments, servicing.Repayment) if repayments and repayments.last_at else None
        for name, value in repayment_columns(answer, copy_day(account), listed).items():
            setattr(account, name, value)


def _release_repayments(loans: Iterable[Account]) -> None:
    """Remove the borrower from repayments of loans that lost their borrower."""
    if loans := list(loans):
        Repayment.objects.filter(account__in=loans).update(borrower_uuid="")


def _affects_totals(record: Answered) -> bool:
    """Whether the record counts in its borrower's totals. One without an answer makes them less certain."""
    if is_account(record):
        return record.answer_at is not None
    return record.kind in (Kind.BORROWER, Kind.APPLICATION)


def _is_unchanged(record: Answered, item: Observation, at: datetime) -> bool:
    """Whether the item repeats the saved answer and adds nothing to it."""
    if item.answer is None or item.label or _has_newer_answer(record, at):
        return False
    if _depends_on_copy_day(record, at):
        return False
    is_claimed = isinstance(record, Account) and record.borrower_uuid and not record.owner_confirmed
    if item.names_other_owner and is_claimed:
        return False
    is_same_owner = item.borrower_uuid in ("", record.borrower_uuid)
    return is_same_owner and saved_text(record) == canonical_json(item.answer)


def _depends_on_copy_day(account: Answered, at: datetime) -> bool:
    """Whether the same answer on another day means something else: what fell due since the copy is past due then."""
    if not is_account(account) or account.answer_day == business_date_at(at):
        return False
    is_outdated = account.figures_good_through is None or account.figures_good_through < business_date()
    return account.due_since_on is not None or account.needs_check or is_outdated


def _touch(records: Sequence[Answered], origin: _Origin) -> None:
    """Update only the times of unchanged copies, in one statement for each table."""
    values: dict[str, Any] = {"answer_at": origin.at, "answer_day": business_date_at(origin.at)}
    if origin.source == Source.SERVICE:
        values |= {"checked_at": origin.at}
    for model, rows in by_model(records).items():
        model._default_manager.filter(pk__in=[one.pk for one in rows]).update(**values)
    for record in records:
        for name, value in values.items():
            setattr(record, name, value)
    _touch_answers([record.answer for record in records if record.answer], origin)


def _touch_answers(answers: Sequence[Answer], origin: _Origin) -> None:
    """Update the times of answers whose text was received again."""
    source, operation, at = origin
    values: dict[str, Any] = {
        "last_at": at,
        "last_on": business_date_at(at),
        "source": source,
        "operation": operation,
    }
    if source == Source.SERVICE:
        values |= {"failing_since": None, "failure": ""}
    if answers:
        Answer.objects.filter(pk__in=[answer.pk for answer in answers]).update(**values)
    for answer in answers:
        for name, value in values.items():
            setattr(answer, name, value)


# The columns of an answer that a new one replaces; the last two, which end a failure, if the service gave it.
_COLUMNS_OF_ANSWER = [
    *("operation", "body", "source", "first_at", "first_on", "last_at", "last_on"),
    *("failing_since", "failure"),
]


def _column_values(record: Answered) -> list[Any]:
    return [getattr(record, name) for name in record.FROM_ANSWER]


def _answer_values(answer: Answer | None) -> list[Any]:
    return [getattr(answer, name, None) for name in _COLUMNS_OF_ANSWER]


def _apply(record: Answered, item: Observation, origin: _Origin) -> list[Snapshot]:
    """Write the item to the record; return a snapshot of the answer that it replaces, if any."""
    replaced = []
    if isinstance(record, Account) and item.names_other_owner and not record.owner_confirmed:
        record.borrower_uuid = ""
    elif not isinstance(record, Borrower):
        record.borrower_uuid = item.borrower_uuid or record.borrower_uuid
    record.label = item.label or record.label
    if isinstance(item.answer, Decoded):
        replaced = _apply_answer(record, item.answer, origin)
    if record.kind in NAMED_KINDS:
        set_search_columns(record)
    return replaced


def set_search_columns(record: Answered) -> None:
    """Set what finds a record by its name, which may be from staff or a file."""
    text = record.search_text or search_text(None, non_uuid_identifier(record.uuid))
    record.search_text = with_name(text, record.label)
    if isinstance(record, Named):
        record.folded_name = folded_key(record.name)[:300]


def _apply_answer(record: Answered, decoded: Decoded, origin: _Origin) -> list[Snapshot]:
    answer = record.answer or Answer(kind=record.kind, uuid=record.uuid)
    replaced = _replace_answer(answer, canonical_json(decoded), origin)
    if answer.last_at != origin.at:
        return replaced
    record.answer, record.answer_at, record.answer_day = answer, answer.last_at, answer.last_on
    if origin.source == Source.SERVICE:
        record.checked_at = origin.at
    for name, value in columns_from(decoded, record.answer_day).items():
        setattr(record, name, value)
    return replaced


def _replace_answer(answer: Answer, text: str, origin: _Origin) -> list[Snapshot]:
    """Write the text to the answer, unless that is newer; return a snapshot of the older one of different texts."""
    at = origin.at
    if answer.last_at is not None and at < answer.last_at:  # an old file must not replace a newer answer
        day = business_date_at(at)
        times: dict[str, date | None] = {"first_at": at, "last_at": at, "first_on": day, "last_on": day}
        earlier = _snapshot(answer, text, origin.source, **times)
        is_saved = text == answer.body or answer.snapshots.filter(last_at=at, digest=earlier.digest).exists()
        return [] if is_saved else [earlier]
    replaced = []
    if answer.body != text:
        if answer.body and answer.last_at:
            names = ("first_at", "last_at", "first_on", "last_on")
            times = {name: getattr(answer, name) for name in names}
            replaced = [_snapshot(answer, answer.body, answer.source, **times)]
        answer.first_at, answer.first_on = at, business_date_at(at)
    answer.body, answer.last_at, answer.last_on = text, at, business_date_at(at)
    answer.source, answer.operation = origin.source, origin.operation
    if origin.source == Source.SERVICE:
        answer.failing_since, answer.failure = None, ""
    return replaced


def _has_newer_answer(record: Answered, at: datetime) -> bool:
    return record.answer_at is not None and at < record.answer_at


def _snapshot(answer: Answer, text: str, source: str, **times: date | None) -> Snapshot:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Snapshot(answer=answer, source=source, digest=digest, body=text, **times)
