"""Moves repayments from the records to their own table, in batches: an upgrade that was stopped goes on with the rest.

Their earlier copies become changes of status; the answers and copies themselves go, as the list of each account has
all of it.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import migrations, transaction

from portal.core.folding import fold
from servicing.return_codes import find_return_code
from servicing.rules import known_spelling

BATCH_SIZE = 500
ACCOUNTS = ("line", "loan")  # If both have the ID, it is the loan.


class Copy(NamedTuple):
    """What one saved answer said, from its first to its last time."""

    status: str
    payment_type: str
    reason: str
    first_at: datetime
    last_at: datetime

    @property
    def is_returned(self) -> bool:
        return self.status == "FAILED_AFTER_SUCCESS" or self.payment_type == "RETURNED"


def move_repayments(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    Answer, Record, Repayment, RepaymentStatus, Snapshot = (
        apps.get_model("registry", name)
        for name in ("Answer", "Record", "Repayment", "RepaymentStatus", "Snapshot")
    )
    records = Record.objects.using(using)
    waiting = records.filter(kind="repayment").select_related("said").order_by("pk")
    while batch := list(waiting[:BATCH_SIZE]):
        with transaction.atomic(using):
            parents = {one.parent_uuid for one in batch}
            found = records.filter(kind__in=ACCOUNTS, uuid__in=parents).order_by("kind")
            accounts = dict(found.values_list("uuid", "pk"))
            said = [one.said_id for one in batch if one.said_id]
            snapshots: dict[int, list[Any]] = defaultdict(list)
            earlier = Snapshot.objects.using(using).filter(answer__in=said)
            for snapshot in earlier.order_by("last_at", "pk"):
                snapshots[snapshot.answer_id].append(snapshot)
            rows, copies = [], {}
            for record in batch:
                copies[record.uuid] = copies_of(record, snapshots[record.said_id])
                rows.append(
                    Repayment(
                        account_id=accounts.get(record.parent_uuid), **values_of(record, copies[record.uuid])
                    )
                )
            Repayment.objects.using(using).bulk_create(rows)
            RepaymentStatus.objects.using(using).bulk_create(
                RepaymentStatus(repayment=row, **change)
                for row in rows
                for change in status_changes(copies[row.uuid])
            )
            earlier.delete()
            records.filter(pk__in=[one.pk for one in batch]).delete()
            Answer.objects.using(using).filter(pk__in=said).delete()


def values_of(record: Any, copies: Sequence[Copy]) -> dict[str, Any]:
    """The columns of a repayment but its account."""
    body = record.said.body if record.said else ""
    answer = json.loads(body) if body else {}
    ach = {name: fold(text_of(answer.get(name)))[:64] for name in ("ach_id", "ach_batch_id")}
    return ach | {
        "uuid": record.uuid,
        "borrower_uuid": record.borrower_uuid,
        "product": record.category,
        "payment_type": record.subtype,
        "status": record.status,
        "amount": record.amount,
        "effective_on": record.key_date,
        "has_failed": record.flagged,
        "bank_account": record.bank_account or "",
        "code": find_return_code(text_of(answer.get("error_description"))),
        "first_seen_at": record.created_at,
        "last_listed_at": record.answer_at,
        "last_listed_on": record.answer_day,
        "returned_at": returned_at(copies),
        "updated_at": record.updated_at,
        "body": body,
    }


def copies_of(record: Any, snapshots: Sequence[Any]) -> list[Copy]:
    """The saved answers about a repayment, oldest first; the last one is current."""
    texts = [(one.body, one.first_at or one.last_at, one.last_at) for one in snapshots]
    if record.said and record.answer_at:
        texts.append((record.said.body, record.said.first_at or record.updated_at, record.answer_at))
    copies = []
    for text, first_at, last_at in texts:
        answer = json.loads(text)
        words = [text_of(answer.get(name)) for name in ("status", "payment_type", "error_description")]
        status, payment_type = (known_spelling(word)[:40] for word in words[:2])
        copies.append(Copy(status, payment_type, words[2], first_at, last_at))
    return copies


def status_changes(copies: Sequence[Copy]) -> list[dict[str, Any]]:
    return [
        {
            "at": after.first_at,
            "old": before.status,
            "old_last_at": before.last_at,
            "old_reason": before.reason,
            "new": after.status,
        }
        for before, after in pairwise(copies)
        if before.status != after.status
    ]


def returned_at(copies: Sequence[Copy]) -> datetime | None:
    """When the first copy with the return came, after the last one without it."""
    pairs = pairwise(copies)
    moments = [after.first_at for before, after in pairs if after.is_returned and not before.is_returned]
    return moments[-1] if moments else None


def text_of(value: Any) -> str:
    """A text as every database stores it; empty for anything else."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if isinstance(value, str) else ""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0028_repayments")]

    operations = [migrations.RunPython(move_repayments, migrations.RunPython.noop, elidable=True)]
