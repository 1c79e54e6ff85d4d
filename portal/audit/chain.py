"""Appends audit entries, each hashed together with its predecessor's hash, so that later changes show."""

import hashlib
from dataclasses import replace
from datetime import UTC
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.utils import timezone

from portal.audit.guard import GENESIS_HASH
from portal.audit.models import Actor, Entry
from portal.core.database import lock_on_postgresql
from portal.records.models import Kind, Saved
from servicing.masking import HIDDEN, is_sensitive, masked, masked_text

_POSTGRES_LOCK = 7_231_904
# The fields that the hash covers, by the format that an entry names. Entries are never hashed again, so a format in
# use never changes: a new field or another encoding needs a new format.
_FORMAT_1 = (
    "at", "actor_id", "actor_name", "actor_role", "ip", "user_agent", "request_id", "action", "phase", "intent_id",
    "result", "subject_kind", "subject_uuid", "subject_label", "borrower_uuid", "reason", "changes", "detail",
    "previous_hash",
)  # fmt: skip
HASHED_FIELDS = {1: _FORMAT_1, 2: (*_FORMAT_1, "hash_format")}
HASH_FORMAT = max(HASHED_FIELDS)
# These may contain typed text, so they are masked.
FREE_TEXT_FIELDS = frozenset({"subject_label", "reason", "detail"})
_encode = DjangoJSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


class AlreadySaved(Exception):
    """The same form was posted before, and what it said then is saved."""

    def __init__(self) -> None:
        super().__init__("Already saved.")


def is_saved(actor: Actor) -> bool:
    """Whether the form of this request was posted before."""
    if not actor.save_id:
        return False
    return Entry.objects.filter(save_id=actor.save_id).exclude(request_id=actor.request_id).exists()


def append(actor: Actor, action: str, **fields: Any) -> Entry:
    """Append an entry to the chain, in the caller's transaction if there is one.

    Raises :class:`AlreadySaved` if an earlier request posted the same form, so that the transaction saves nothing.
    A write to the service doesn't use the form up: the service may reject it, and repeats of it are found elsewhere.
    """
    if fields.get("phase", Entry.Phase.EVENT) != Entry.Phase.EVENT:
        actor = replace(actor, save_id="")
    safe = {name: masked(value) if name in FREE_TEXT_FIELDS else value for name, value in fields.items()}
    changes = fields.get("changes", {})
    safe["changes"] = {masked_text(name): _masked_change(name, value) for name, value in changes.items()}
    entry = Entry(
        at=timezone.now(),
        actor_id=actor.id,
        actor_name=actor.name,
        actor_role=actor.role,
        ip=actor.ip,
        user_agent=actor.user_agent,
        request_id=actor.request_id,
        action=action,
        hash_format=HASH_FORMAT,
        save_id=actor.save_id or None,
        **safe,
    )
    with transaction.atomic():
        lock_on_postgresql(_POSTGRES_LOCK)  # Writers wait in line.
        if is_saved(actor):
            raise AlreadySaved
        last = Entry.objects.order_by("-id").values_list("id", "hash").first() or (0, GENESIS_HASH)
        entry.pk, entry.previous_hash = last[0] + 1, last[1]
        entry.hash = entry_hash(entry)
        entry.save(force_insert=True)
    return entry


def audit_subject(record: Saved) -> dict[str, Any]:
    """The fields that tie an entry, a write or a note to a record."""
    owner = record.uuid if record.kind == Kind.BORROWER else record.borrower_uuid
    return {"subject_kind": record.kind, "subject_uuid": record.uuid, "borrower_uuid": owner}


def entry_subject(record: Saved, label: str = "") -> dict[str, Any]:
    """The fields that tie an entry or a view to a record; its own name is the default label."""
    return {**audit_subject(record), "subject_label": label or str(record)}


def same_subject(row: Any, label: str) -> dict[str, Any]:
    """The fields that tie an entry or a view to the subject of an entry, a write or an approval."""
    names = ("subject_kind", "subject_uuid", "borrower_uuid")
    return {**{name: getattr(row, name) for name in names}, "subject_label": label}


def _masked_change(name: str, value: Any) -> Any:
    """The values of a changed field; for EIN, SSN and date of birth, only whether one was sent."""
    if not is_sensitive(name):
        return masked(value)
    values = value if isinstance(value, list | tuple) else [value]
    return [HIDDEN if any(map(str.isdigit, str(one))) else masked(one) for one in values]


def entry_hash(entry: Entry) -> str:
    """The SHA-256 of the predecessor's hash and the entry's other fields, in the format that it names."""
    covered = {name: getattr(entry, name) for name in HASHED_FIELDS[entry.hash_format]}
    text = _encode({**covered, "at": entry.at.astimezone(UTC).isoformat()})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
