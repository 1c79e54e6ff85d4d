"""What an answer says otherwise than the one that somebody saw before it. Hides where earlier answers are kept."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from portal.registry.models import Record
from servicing import codec


class Change(NamedTuple):
    """One field that says something else now; of a list only how many of its entries do."""

    field: str
    old: Any
    new: Any


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
    return [_change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _change(name: str, old: Any, new: Any) -> Change:
    if not isinstance(old, list) or not isinstance(new, list):
        return Change(name, old, new)
    if len(old) != len(new):
        return Change(name, f"{len(old)} entries", f"{len(new)} entries")
    moved = sum(before != after for before, after in zip(old, new, strict=True))
    return Change(name, f"{len(old)} entries", f"{moved} of {len(new)} entries say something else")
