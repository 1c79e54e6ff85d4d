"""What an answer says otherwise than the one that somebody saw before it. Hides where earlier answers are kept."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from portal.registry.models import Record
from portal.ui import wording
from servicing import codec
from servicing.values import exact

MONEY = frozenset(
    {
        *("amount", "origination_fee", "finance_charge", "total_repayment_amount", "interest_amount"),
        *("principal_balance", "interest_balance", "payoff_balance", "past_due_balance", "suspense_balance"),
        *("payment_amount_due", "credit_limit", "available_credit", "current_credit"),
    }
)


class Change(NamedTuple):
    """One field that says something else now, in words; of a list only how many of its entries do."""

    field: str
    old: str | None
    new: str | None


def digest(record: Record) -> str:
    """Which answer a record holds, as its snapshots name theirs; empty without one."""
    return hashlib.sha256(record.answer.encode()).hexdigest() if record.answer else ""


def since(record: Record, seen: str) -> list[Change]:
    """What the record says otherwise than the answer with this digest; nothing where that is not kept any more."""
    if not seen or seen == digest(record):
        return []
    snapshot = record.snapshots.filter(digest=seen).first()
    return between(codec.parse(snapshot.answer), codec.parse(record.answer)) if snapshot else []


def between(old: Any, new: Any) -> list[Change]:
    """The fields that differ, in the order of the newer answer; none where an answer is no object."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    names = dict.fromkeys([*new, *old])
    return [
        change
        for name in names
        if old.get(name) != new.get(name)
        for change in _changes(name, old.get(name), new.get(name))
    ]


def _changes(name: str, old: Any, new: Any) -> list[Change]:
    """The change of a field; of an object in it those of its own fields, under both names."""
    field = name.replace("_", " ").capitalize()
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [one._replace(field=f"{field}: {one.field.lower()}") for one in between(old, new)]
    return [_change(field, name, old, new)]


def _change(field: str, name: str, old: Any, new: Any) -> Change:
    if not isinstance(old, list) or not isinstance(new, list):
        return Change(field, _worded(name, old), _worded(name, new))
    if len(old) != len(new):
        return Change(field, f"{len(old)} entries", f"{len(new)} entries")
    moved = sum(before != after for before, after in zip(old, new, strict=True))
    return Change(field, f"{len(old)} entries", f"{moved} of {len(new)} entries say something else")


def _worded(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return value if value is None else "Yes" if value else "No"
    if name in MONEY and (amount := exact(value)) is not None:
        return wording.money(amount)
    if isinstance(value, str):
        return wording.day(value) if name.endswith("_date") else value
    return codec.to_json(value).decode()
