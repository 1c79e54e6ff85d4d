"""Checks the trail against its own hashes and against signed checkpoints, and names the first entry that is wrong.

Hides how a million entries are walked without holding them, and how a break is told apart: altered, removed, inserted,
moved, or rewritten together with everything after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from portal.audit.chain import SEALED, seal_of
from portal.audit.checkpoints import Checkpoint
from portal.audit.guard import FIRST
from portal.audit.models import Entry

BATCH = 2000


@dataclass(frozen=True)
class Break:
    """The first entry that is wrong, and what is wrong with it."""

    entry_id: int
    problem: str

    def __str__(self) -> str:
        return f"Entry {self.entry_id:,} {self.problem}."


@dataclass(frozen=True)
class Verified:
    """What the check found: how many entries hold, the last of them, and the break that ended it."""

    entries: int
    last: "Link"
    found: Break | None = None


@dataclass(frozen=True)
class Link:
    """What the chain knows of one entry."""

    id: int
    hash: str
    previous_hash: str


def verify(checkpoints: Sequence[Checkpoint] = ()) -> Verified:
    """Walk the chain from its first entry to the last, or to the first that is wrong."""
    signed = {one.entry_id: one for one in checkpoints}
    before, checked = Link(0, FIRST, ""), 0
    for entry_id, stored, fields in _rows():
        link = Link(entry_id, stored, fields["previous_hash"])
        if found := _broken(link, before, fields) or _rewritten(link, signed.pop(entry_id, None)):
            return Verified(checked, before, found)
        before, checked = link, checked + 1
    if signed:
        first = min(signed)
        when = f"{signed[first].at:%d %b %Y, %H:%M} UTC"
        return Verified(checked, before, Break(first, f"was removed: the checkpoint of {when} names it"))
    return Verified(checked, before)


def holds(entry: Entry) -> bool:
    """Whether one entry fits its own seal and both its neighbours; the rest of the chain is not looked at."""
    before = Entry.objects.filter(pk__lt=entry.pk).order_by("-pk").values_list("hash", flat=True).first()
    after = (
        Entry.objects.filter(pk__gt=entry.pk).order_by("pk").values_list("previous_hash", flat=True).first()
    )
    fields = {name: getattr(entry, name) for name in SEALED}
    return (
        seal_of(fields) == entry.hash
        and entry.previous_hash == (before or FIRST)
        and after in (None, entry.hash)
    )


def _rows() -> Iterator[tuple[int, str, dict[str, Any]]]:
    rows = Entry.objects.order_by("id").values_list("id", "hash", *SEALED)
    for entry_id, stored, *values in rows.iterator(BATCH):
        yield entry_id, stored, dict(zip(SEALED, values, strict=True))


def _broken(link: Link, before: Link, fields: dict[str, Any]) -> Break | None:
    if seal_of(fields) != link.hash:
        return Break(link.id, "was altered: what it says does not fit its seal")
    return None if link.previous_hash == before.hash else _misplaced(link, before)


def _misplaced(link: Link, before: Link) -> Break:
    """An entry is sound in itself but does not follow the one before it: which of the two is wrong, and how?"""
    if link.previous_hash == before.previous_hash:
        return Break(before.id, "was inserted: the one after it follows the one before it")
    if Entry.objects.filter(previous_hash=before.hash).exclude(pk=link.id).exists():
        is_known = Entry.objects.filter(hash=link.previous_hash).exists()
        return Break(link.id, "was moved here" if is_known else "was inserted: it follows no entry")
    if link.id > before.id + 1:
        return Break(before.id + 1, f"was removed: entry {link.id:,} followed another one")
    return Break(before.id, f"was rewritten, seal and all: entry {link.id:,} names another seal")


def _rewritten(link: Link, signed: Checkpoint | None) -> Break | None:
    if signed is None or signed.hash == link.hash:
        return None
    when = f"{signed.at:%d %b %Y, %H:%M} UTC"
    return Break(link.id, f"or one before it was rewritten: the checkpoint of {when} names another seal")
