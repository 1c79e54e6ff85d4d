"""Finds the fields that changed since an earlier answer. Hides where earlier answers are saved."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from portal.records.models import Answered, Snapshot
from portal.records.store import saved_text
from portal.ui import wording
from servicing import codec
from servicing.values import decimal_or_none

MONEY = frozenset(
    {
        *("amount", "origination_fee", "finance_charge", "total_repayment_amount", "interest_amount"),
        *("principal_balance", "interest_balance", "payoff_balance", "past_due_balance", "suspense_balance"),
        *("payment_amount_due", "credit_limit", "available_credit", "current_credit"),
    }
)


class FieldChange(NamedTuple):
    """One changed field in words; for a list, only the number of entries."""

    label: str
    old: str | None
    new: str | None


def answer_digest(record: Answered) -> str:
    """The hash of a record's answer, comparable to those of its snapshots; empty without an answer."""
    text = saved_text(record)
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def changes_since(record: Answered, seen: str) -> list[FieldChange]:
    """The changes since the answer with this hash; none if it is no longer saved."""
    if not seen or seen == answer_digest(record):
        return []
    snapshot = Snapshot.objects.filter(answer=record.answer, digest=seen).first()
    return differences(codec.parse(snapshot.body), codec.parse(saved_text(record))) if snapshot else []


def differences(old: Any, new: Any) -> list[FieldChange]:
    """The fields that differ, in the newer answer's order; none unless both are objects."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    names = dict.fromkeys([*new, *old])
    return [
        change
        for name in names
        if old.get(name) != new.get(name)
        for change in _changes(name, old.get(name), new.get(name))
    ]


def _changes(name: str, old: Any, new: Any) -> list[FieldChange]:
    """The change of a field; for an object, the changes of its fields, under both names."""
    field = name.replace("_", " ").capitalize()
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [one._replace(label=f"{field}: {one.label.lower()}") for one in differences(old, new)]
    return [_change(field, name, old, new)]


def _change(field: str, name: str, old: Any, new: Any) -> FieldChange:
    if not isinstance(old, list) or not isinstance(new, list):
        return FieldChange(field, _in_words(name, old), _in_words(name, new))
    if len(old) != len(new):
        return FieldChange(field, f"{len(old)} entries", f"{len(new)} entries")
    moved = sum(before != after for before, after in zip(old, new, strict=True))
    return FieldChange(field, f"{len(old)} entries", f"{moved} of {len(new)} entries changed")


def _in_words(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return value if value is None else "Yes" if value else "No"
    if name in MONEY and (amount := decimal_or_none(value)) is not None:
        return wording.money(amount)
    if isinstance(value, str):
        return wording.day(value) if name.endswith("_date") else value
    return codec.to_json(value).decode()
