"""Checks the trail against its own hashes and against signed checkpoints, and names the first entry that is wrong.

Hides how a million entries are walked without holding them, how kinds of breaks are distinguished (altered, removed,
inserted, moved, or rewritten together with everything after it), and which other tables know what the trail must hold.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from portal.audit.chain import HASHED_FIELDS, seal, seal_of
from portal.audit.checkpoints import Checkpoint, Checkpoints
from portal.audit.guard import FIRST
from portal.audit.models import Entry, RemoteCall, WriteIntent

BATCH = 2000
LOST_LINE = "the file of checkpoints is missing, was shortened, or is an older one"


@dataclass(frozen=True)
class Break:
    """The first entry that is wrong, and what is wrong with it."""

    entry_id: int
    problem: str
    may_be_accepted: bool = False
    """Whether only checkpoints say so, which a restored database explains."""

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


def verify(kept: Checkpoints | None = None, *, since: int = 0) -> Verified:
    """Walk the chain to its last entry, or to the first that is wrong: from its first one, or from a checkpoint."""
    signed = {number: one for number, one in (kept.by_entry if kept else {}).items() if number >= since}
    before, checked = Link(0, FIRST, ""), 0
    if since and (first := Entry.objects.filter(pk=since).first()):
        before = Link(since - 1, first.previous_hash, "")
    for fields in Entry.objects.filter(pk__gte=since).order_by("id").values().iterator(BATCH):
        link = Link(fields["id"], fields["hash"], fields["previous_hash"])
        if since and link.id > since and not checked:
            break  # The entry of the checkpoint is gone; what follows it says less than that.
        found = (
            _broken(link, before, fields)
            or _rewritten(link, signed.pop(link.id, None))
            or _unsigned(link, fields, kept)
        )
        if found:
            return Verified(checked, before, found)
        before, checked = link, checked + 1
    if signed:
        first_gone = min(signed)
        when = f"{signed[first_gone].at:%d %b %Y, %H:%M} UTC"
        return Verified(
            checked, before, Break(first_gone, f"was removed: the checkpoint of {when} names it", True)
        )
    return Verified(checked, before)


def cross_check() -> Iterator[str]:
    """What other tables recorded and the trail did not, and the other way round, as sentences."""
    phases = Entry.objects.filter(intent_id=OuterRef("pk"))
    attempted, answered = (
        Exists(phases.filter(phase=phase)) for phase in (Entry.Phase.ATTEMPT, Entry.Phase.OUTCOME)
    )
    as_recorded = Exists(phases.filter(result=OuterRef("state")))
    sent = WriteIntent.objects.exclude(state=WriteIntent.State.SENDING)
    by_write = Entry.objects.exclude(phase=Entry.Phase.EVENT)
    of_call = Exists(Entry.objects.filter(intent_id=OuterRef("intent_id"), phase=Entry.Phase.ATTEMPT))
    findings: list[tuple[QuerySet[Any], str]] = [
        (WriteIntent.objects.exclude(attempted), "a write to the service whose attempt is not in the trail"),
        (sent.exclude(answered), "a write to the service whose outcome is not in the trail"),
        (sent.filter(answered).exclude(as_recorded), "a write whose state differs from the trail"),
        (
            by_write.exclude(Exists(WriteIntent.objects.filter(pk=OuterRef("intent_id")))),
            "an entry of a write that is not recorded anywhere else",
        ),
        (
            RemoteCall.objects.filter(intent_id__isnull=False).exclude(of_call),
            "a call of the service whose write is not in the trail",
        ),
    ]
    for relation in Entry._meta.related_objects:
        model: Any = relation.related_model
        findings.append(
            (model.objects.unrecorded(), f"a row of {model._meta.verbose_name} without its entry")
        )
    for rows, words in findings:
        if first := rows.order_by("pk").first():
            yield f"There is {words}: {first.pk}."


def holds(entry: Entry) -> bool:
    """Whether one entry fits its own hash and both its neighbors; the rest of the chain is not looked at."""
    before = Entry.objects.filter(pk__lt=entry.pk).order_by("-pk").values_list("hash", flat=True).first()
    after = (
        Entry.objects.filter(pk__gt=entry.pk).order_by("pk").values_list("previous_hash", flat=True).first()
    )
    return (
        entry.hash_format in HASHED_FIELDS
        and seal(entry) == entry.hash
        and entry.previous_hash == (before or FIRST)
        and after in (None, entry.hash)
    )


def _broken(link: Link, before: Link, fields: Mapping[str, Any]) -> Break | None:
    if (number := fields["hash_format"]) not in HASHED_FIELDS:
        return Break(link.id, f"names the hash format {number}, which this version does not know")
    if seal_of(fields) != link.hash:
        return Break(link.id, "was altered: what it says does not fit its hash")
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
    return Break(before.id, f"was rewritten, hash and all: entry {link.id:,} names another hash")


def _unsigned(link: Link, fields: Mapping[str, Any], kept: Checkpoints | None) -> Break | None:
    """A checkpoint is recorded in the trail when it is signed, so a file that lost its last one shows."""
    if kept is None or fields["action"] != "audit.checkpoint":
        return None
    if kept.has_line_of(link.id, fields["detail"].get("entry", 0)):
        return None
    return Break(link.id, f"was signed, but {LOST_LINE}", True)


def _rewritten(link: Link, signed: Checkpoint | None) -> Break | None:
    if signed is None or signed.hash == link.hash:
        return None
    when = f"{signed.at:%d %b %Y, %H:%M} UTC"
    problem = f"or one before it was rewritten: the checkpoint of {when} names another hash"
    return Break(link.id, problem, True)
