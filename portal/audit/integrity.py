"""Verifies the audit trail: walks the chain, and looks for the triggers that guard it.

Hides how a million entries are walked without loading all of them, and how breaks are distinguished: an entry altered,
removed, inserted, moved, or rewritten together with everything after it.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import DatabaseError, connection, connections

from portal.audit import guard
from portal.audit.chain import HASHED_FIELDS, append, entry_hash
from portal.audit.guard import GENESIS_HASH
from portal.audit.models import Actor, Entry
from portal.jobs.models import Job

BATCH = 2000
CHECK_JOB = "operations.verify_audit"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

logger = logging.getLogger(__name__)


class TrailBroken(Exception):
    """A check found problems, a sentence each."""


# --- The whole check ---


def check_trail() -> str:
    """Check the trail, and return the result as a sentence. Raises :class:`TrailBroken`."""
    checked = verify_chain()
    problems = [str(checked.found)] if checked.found else []
    problems += [
        f"The trigger {name} is missing. Run manage.py upgrade to restore it."
        for name in guard.missing_triggers(connection)
    ]
    if problems:
        # What is wrong must be said, even if the trail takes no entry.
        with suppress(DatabaseError):
            _record_check(checked, problems)
        raise TrailBroken(f"{' '.join(problems)} {checked.entries:,} entries are intact.")
    _record_check(checked, [])
    return f"{checked.entries:,} entries, one unbroken chain."


def log_head() -> None:
    """Write the last entry's number and hash to the log, whose server is the witness of a trail that is rewritten.

    The hash is in groups, because the log masks long numbers.
    """
    if last := Entry.objects.first():
        groups = ":".join(last.hash[start : start + 4] for start in range(0, len(last.hash), 4))
        logger.info("The audit trail ends with entry %s, hash %s.", f"{last.pk:,}", groups)


def last_check() -> Entry | None:
    return Entry.objects.filter(action="audit.verify").first()


class FailedCheck(NamedTuple):
    """A failed check and its reason. A check that could not finish is not in the trail."""

    at: datetime
    problem: str
    is_recorded: bool


def find_failed_check(last: Entry | None) -> FailedCheck | None:
    """The last check if it failed, or its job if it could not even record the result."""
    if last and last.result == "broken":
        return FailedCheck(last.at, last.detail.get("problem", ""), True)
    jobs = Job.objects.filter(name=CHECK_JOB, finished_at__gt=last.at if last else EPOCH)
    job = jobs.order_by("-finished_at").first()
    if job and job.finished_at and job.state == Job.State.FAILED:
        return FailedCheck(job.finished_at, job.words, False)
    return None


def _record_check(checked: "ChainCheck", problems: list[str]) -> Entry:
    """Record the check, so that pages and metrics show when the trail was last checked, and how far."""
    detail = {"entries": checked.entries, "last": checked.last.pk, "hash": checked.last.hash}
    return append(
        Actor.system("verify"),
        "audit.verify",
        result="broken" if problems else "unbroken",
        detail=detail | ({"problem": " ".join(problems)} if problems else {}),
    )


def restore_triggers(*, using: str, **_: Any) -> None:
    """Create the triggers again after migrations, which may rebuild the table and lose them."""
    database = connections[using]
    if guard.TABLE in database.introspection.table_names():
        guard.install_triggers(database)


# --- The chain ---


@dataclass(frozen=True)
class Break:
    """The first wrong entry, and what is wrong with it."""

    entry_id: int
    problem: str

    def __str__(self) -> str:
        return f"Entry {self.entry_id:,} {self.problem}."


@dataclass(frozen=True)
class ChainCheck:
    """The number of intact entries, the last of them, and the break that ended the check."""

    entries: int
    last: Entry
    found: Break | None = None


def verify_chain() -> ChainCheck:
    """Walk the chain from its beginning to its end or the first wrong entry."""
    before, checked = Entry(pk=0, hash=GENESIS_HASH), 0
    for entry in Entry.objects.order_by("id").iterator(BATCH):
        if found := _entry_break(entry, before):
            return ChainCheck(checked, before, found)
        before, checked = entry, checked + 1
    return ChainCheck(checked, before)


def is_intact(entry: Entry) -> bool:
    """Whether an entry matches its own hash and both its neighbors, without reading the rest of the chain."""
    before = Entry.objects.filter(pk__lt=entry.pk).first() or Entry(pk=0, hash=GENESIS_HASH)
    after = Entry.objects.filter(pk__gt=entry.pk).order_by("pk").first()
    return _entry_break(entry, before) is None and (after is None or after.previous_hash == entry.hash)


def _entry_break(entry: Entry, before: Entry) -> Break | None:
    if entry.hash_format not in HASHED_FIELDS:
        return Break(entry.pk, f"has hash format {entry.hash_format}, which this version doesn’t support")
    if entry_hash(entry) != entry.hash:
        return Break(entry.pk, "was altered: its content doesn’t match its hash")
    return None if entry.previous_hash == before.hash else _broken_link(entry, before)


def _broken_link(entry: Entry, before: Entry) -> Break:
    """Decide which of two entries is wrong, and how, if the second is intact but doesn't follow the first."""
    if entry.previous_hash == before.previous_hash:
        return Break(before.pk, "was inserted: the next entry follows the previous one")
    if Entry.objects.filter(previous_hash=before.hash).exclude(pk=entry.pk).exists():
        is_known = Entry.objects.filter(hash=entry.previous_hash).exists()
        return Break(entry.pk, "was moved here" if is_known else "was inserted: no entry precedes it")
    if entry.pk > before.pk + 1:
        return Break(before.pk + 1, f"was removed: entry {entry.pk:,} follows a missing entry")
    return Break(before.pk, f"was rewritten with its hash: entry {entry.pk:,} has another one")
