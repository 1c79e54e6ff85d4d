"""Writes the columns that come from answers again, in place, after a change of how answers are read.

What staff, files and the order of events added stays as it is: keys, labels, borrowers, archived rows, first times.
"""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.records import store
from portal.records.columns import columns_from
from portal.records.figures import ACCOUNTS
from portal.records.models import NAMED_KINDS, Account, Kind, Repayment
from portal.records.recalculation import recalculate
from portal.records.repayments import answer_of, columns_of
from portal.records.rollup import roll_up
from portal.records.rows import answers_by_key, records_of, update_records, with_answers
from portal.records.sources import KIND_OF_MODEL

BATCH_SIZE = 500
MODELS: dict[str, Any] = {kind: model for model, kind in KIND_OF_MODEL.items() if kind != Kind.REPAYMENT}


def rebuild(kind: str) -> int:
    """Rebuild the rows of a kind; return how many changed."""
    changed = 0
    for batch in _batches(with_answers(records_of(kind))):
        changed += _rebuild_batch(kind, batch)
    return changed


def rebuild_repayments() -> int:
    """Rebuild the columns of repayments; return how many changed."""
    changed = 0
    for batch in _batches(Repayment.objects.exclude(body="")):
        rows = [one for one in batch if _set_columns(one, columns_of(answer_of(one)))]
        if rows:
            names = columns_of(answer_of(rows[0])).keys()
            Repayment.objects.bulk_update(rows, names, batch_size=100)
        changed += len(rows)
    return changed


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """The rows in order of their keys, each batch locked in a transaction of its own."""
    last = 0
    while True:
        with transaction.atomic():
            batch = list(rows.filter(pk__gt=last).order_by("pk").select_for_update(of=("self",))[:BATCH_SIZE])
            if not batch:
                return
            last = batch[-1].pk
            yield batch


def _rebuild_batch(kind: str, batch: list[Any]) -> int:
    lists = {}
    if kind == Kind.LOAN:
        lists = {one.uuid: one for one in answers_by_key((Kind.LOAN_REPAYMENTS, one.uuid) for one in batch)}
    names = sorted(batch[0].FROM_ANSWER)
    rows = []
    for record in batch:
        before = [getattr(record, name) for name in names]
        if answer := store.last_answer(record, MODELS[kind]):
            label = record.label
            _set_columns(record, columns_from(answer, record.answer_day))
            record.label = label or record.label  # Staff or a file may have written it after the answer.
            if kind in NAMED_KINDS:
                store.set_search_columns(record)
        if isinstance(record, Account) and kind in ACCOUNTS:
            recalculate(record, lists.get(record.uuid))
        if [getattr(record, name) for name in names] != before:
            rows.append(record)
    update_records(rows, names)
    roll_up({record.borrower_uuid for record in rows})
    return len(rows)


def _set_columns(row: Any, columns: dict[str, Any]) -> bool:
    """Set these columns; return whether one of them changed."""
    changed = {name: value for name, value in columns.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return bool(changed)
