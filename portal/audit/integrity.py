"""Verifies the audit trail: walks the chain, and compares it with checkpoints, triggers and other tables.

Hides how a million entries are walked without loading all of them, and how breaks are distinguished: an entry altered,
removed, inserted, moved, or rewritten together with everything after it.
"""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.db import DatabaseError, connection, connections
from django.db.models import Exists, OuterRef, QuerySet
from django.template.defaultfilters import pluralize

from portal.audit import guard
from portal.audit.chain import HASHED_FIELDS, append, entry_hash
from portal.audit.checkpoints import (
    LOST_LINE,
    Checkpoint,
    Checkpoints,
    UnusableCheckpoints,
    read_checkpoints,
    sign_checkpoint,
    signing_lock,
)
from portal.audit.guard import GENESIS_HASH
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.jobs.models import Job
from portal.ui import wording

BATCH = 2000
CHECK_JOBS = ("operations.verify_audit", "operations.sign_audit")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ACCEPT_HINT = " If the database was restored on purpose, record that: manage.py verify_audit --accept REASON"


class TrailBroken(Exception):
    """A check found problems, a sentence each."""


# --- The whole check ---


def check_trail(copy: Path | None = None, *, only_new: bool = False) -> list[str]:
    """Check the trail and sign its end; return what was done in sentences. Raises :class:`TrailBroken`.

    With a ``copy`` of the checkpoints nothing is signed. ``only_new`` begins at the last checkpoint and skips other
    tables; after a failed check, a whole check must succeed first.
    """
    with nullcontext() if copy else signing_lock():
        checkpoints, problems, differences = Checkpoints(), [], guard.find_differences(connection)
        try:
            checkpoints = read_checkpoints(copy)
        except UnusableCheckpoints as problem:  # The chain is walked anyway.
            problems = [str(problem)]
        if only_new:
            if last := last_failed_check():
                raise TrailBroken(
                    f"Not signed, because the last check failed. {last.detail.get('problem', '')}"
                )
            if (newest := Entry.objects.first()) and checkpoints.end_with(newest) and not differences:
                return ["Nothing new to sign."]
        since = checkpoints.last_entry_id if only_new else 0
        checked = verify_chain(None if problems else checkpoints, since=since)
        found = [str(checked.found)] if checked.found else []
        problems = [*found, *problems, *differences]
        if not only_new:
            problems += cross_check_tables()
        if problems:
            # What else is wrong must be said, even if the trail takes no entry.
            with suppress(DatabaseError):
                _record_check(checked, problems)
            hint = ACCEPT_HINT if checked.found and checked.found.may_be_accepted else ""
            raise TrailBroken(f"{' '.join(problems)} {checked.entries:,} entries are intact.{hint}")
        if only_new:
            return [_sign_end(checked.last)]
        entry = _record_check(checked, [])
        words = f"{checked.entries:,} entries, one unbroken chain."
        return [words] if copy else [words, _sign_end(entry)]


def last_check() -> Entry | None:
    """The entry of the last check."""
    return Entry.objects.filter(action="audit.verify").first()


def last_checkpoint() -> Entry | None:
    """The entry of the last signed checkpoint."""
    return Entry.objects.filter(action="audit.checkpoint").first()


def last_failed_check() -> Entry | None:
    """The entry of the last check, if it failed."""
    last = last_check()
    return last if last and last.result == "broken" else None


class FailedCheck(NamedTuple):
    """A failed check and its reason. A check that could not finish is not in the trail."""

    at: datetime
    problem: str
    is_recorded: bool


def find_failed_check(last: Entry | None) -> FailedCheck | None:
    """The last check if it failed, or its job if it could not even record the result."""
    if last and last.result == "broken":
        return FailedCheck(last.at, last.detail.get("problem", ""), True)
    jobs = Job.objects.filter(name__in=CHECK_JOBS, finished_at__gt=last.at if last else EPOCH)
    job = jobs.order_by("-finished_at").first()
    if job and job.finished_at and job.state == Job.State.FAILED:
        return FailedCheck(job.finished_at, job.words, False)
    return None


def accept_trail(reason: str, actor: Actor) -> str:
    """Accept a trail that differs from the checkpoints, as after a restore: sign it, and record who accepted it."""
    with signing_lock():
        found = verify_chain().found
        if problems := [*([str(found)] if found else []), *guard.find_differences(connection)]:
            raise TrailBroken(" ".join([*problems, "This can’t be accepted. Restore an intact backup."]))
        checkpoints = read_checkpoints()
        if verify_chain(checkpoints).found is None:
            return "Nothing to accept: the checkpoints match the trail."
        keeps = checkpoints.last_match()
        void = [one for one in sorted(checkpoints.by_entry) if one > keeps]
        detail = {"keeps": keeps, "void": len(void), "first": void[:1], "last": void[-1:]}
        entry = append(actor, "audit.accept", reason=reason[:500], detail=detail)
        sign_checkpoint(entry, keeps=keeps)
        number = len(void)
        return f"Accepted: {number:,} checkpoint{pluralize(number)} no longer count{pluralize(number, 's,')}."


def _record_check(checked: "ChainCheck", problems: list[str]) -> Entry:
    """Record the check, so that pages and metrics show when the trail was last checked, and how far."""
    detail = {"entries": checked.entries, "last": checked.last.pk, "hash": checked.last.hash}
    return append(
        Actor.system("verify"),
        "audit.verify",
        result="broken" if problems else "unbroken",
        detail=detail | ({"problem": " ".join(problems)} if problems else {}),
    )


def _sign_end(entry: Entry) -> str:
    return f"Signed: entry {sign_checkpoint(entry).pk:,} is the last one."


# --- The database's guard, before and after migrations ---

_differences: list[str] = []


def inspect_guard(*, using: str, **_: Any) -> None:
    """Note how the triggers differ before migrations run, which may rebuild the table and lose them."""
    _differences[:] = guard.find_differences(connections[using])


def repair_guard(*, using: str, **_: Any) -> None:
    """Restore the triggers after migrations, and record what was wrong before."""
    guard.install_triggers(connections[using])
    if _differences:
        append(Actor.operator("upgrade"), "audit.guard", detail={"found": " ".join(_differences)})
        _differences.clear()


# --- The chain ---


@dataclass(frozen=True)
class Break:
    """The first wrong entry, and what is wrong with it."""

    entry_id: int
    problem: str
    may_be_accepted: bool = False
    """Whether only checkpoints disagree, which a restored database would explain."""

    def __str__(self) -> str:
        return f"Entry {self.entry_id:,} {self.problem}."


@dataclass(frozen=True)
class ChainCheck:
    """The number of intact entries, the last of them, and the break that ended the check."""

    entries: int
    last: Entry
    found: Break | None = None


def verify_chain(checkpoints: Checkpoints | None = None, *, since: int = 0) -> ChainCheck:
    """Walk the chain from its beginning or a checkpoint, to its end or the first wrong entry."""
    by_entry = checkpoints.by_entry if checkpoints else {}
    signed = {entry_id: one for entry_id, one in by_entry.items() if entry_id >= since}
    before, checked = Entry(pk=0, hash=GENESIS_HASH), 0
    if since and (first := Entry.objects.filter(pk=since).first()):
        before = Entry(pk=since - 1, hash=first.previous_hash)
    for entry in Entry.objects.filter(pk__gte=since).order_by("id").iterator(BATCH):
        if since and entry.pk > since and not checked:
            break  # The checkpoint's entry is missing, which says more than any entry after it.
        found = (
            _entry_break(entry, before)
            or _checkpoint_break(entry, signed.pop(entry.pk, None))
            or _missing_line(entry, checkpoints)
        )
        if found:
            return ChainCheck(checked, before, found)
        before, checked = entry, checked + 1
    if signed:
        gone = min(signed)
        problem = f"was removed: the checkpoint of {_utc(signed[gone].at)} lists it"
        return ChainCheck(checked, before, Break(gone, problem, True))
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


def _missing_line(entry: Entry, checkpoints: Checkpoints | None) -> Break | None:
    """Find a checkpoint that the trail recorded as signed but that is missing in the file."""
    if checkpoints is None or entry.action != "audit.checkpoint":
        return None
    if checkpoints.has_line_of(entry.pk, entry.detail.get("entry", 0)):
        return None
    return Break(entry.pk, f"was signed, but {LOST_LINE}", True)


def _utc(at: datetime) -> str:
    return f"{wording.day(at.astimezone(UTC).date())}, {wording.time_of_day(at.astimezone(UTC))} UTC"


def _checkpoint_break(entry: Entry, signed: Checkpoint | None) -> Break | None:
    if signed is None or signed.hash == entry.hash:
        return None
    when = _utc(signed.at)
    return Break(entry.pk, f"or one before it was rewritten: the checkpoint of {when} has another hash", True)


def cross_check_tables() -> Iterator[str]:
    """Compare the trail with other tables: what one recorded and the other did not, in sentences."""
    phases = Entry.objects.filter(intent_id=OuterRef("pk"))
    attempted, answered = (
        Exists(phases.filter(phase=phase)) for phase in (Entry.Phase.ATTEMPT, Entry.Phase.OUTCOME)
    )
    as_recorded = Exists(phases.filter(result=OuterRef("state")))
    sent = WriteIntent.objects.exclude(state=WriteIntent.State.SENDING)
    without_write = Entry.objects.exclude(phase=Entry.Phase.EVENT).exclude(
        Exists(WriteIntent.objects.filter(pk=OuterRef("intent_id")))
    )
    of_call = Exists(Entry.objects.filter(intent_id=OuterRef("intent_id"), phase=Entry.Phase.ATTEMPT))
    findings: dict[str, QuerySet[Any]] = {
        "a request to the service whose attempt isn’t in the trail": WriteIntent.objects.exclude(attempted),
        "a request to the service whose outcome isn’t in the trail": sent.exclude(answered),
        "a request whose state differs from the trail": sent.filter(answered).exclude(as_recorded),
        "an entry of a request that isn’t recorded anywhere else": without_write,
        "a call to the service whose request isn’t in the trail": RemoteCall.objects.filter(
            intent_id__isnull=False
        ).exclude(of_call),
    }
    for relation in Entry._meta.related_objects:
        model: Any = relation.related_model
        findings[f"a row of {model._meta.verbose_name} without its entry"] = model.unrecorded()
    for words, rows in findings.items():
        if first := rows.order_by("pk").first():
            yield f"There is {words}: {first.pk}."
