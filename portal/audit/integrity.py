"""Proves that the audit trail is complete: walks the chain and compares it with checkpoints, guard and other tables.

A checkpoint states which entry was the last one at a moment; it is signed, in a folder that the web process cannot
write. An attacker can rewrite the whole chain so that it is consistent again, but cannot sign it. Hides Ed25519, where
the key is (a checkpoint names its key, present or former), how a million entries are walked without holding them, and
how kinds of breaks are distinguished: altered, removed, inserted, moved, or rewritten together with everything after
it.
"""

import base64
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.db import connection, connections
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from portal.audit import guard
from portal.audit.chain import HASHED_FIELDS, append, entry_hash, hash_fields
from portal.audit.guard import GENESIS_HASH
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.jobs.models import Job
from portal.ui import wording

BATCH = 2000
CHECK_JOBS = ("operations.verify_audit", "operations.sign_audit")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOST_LINE = "the file of checkpoints is missing, was shortened, or is an older one"
ACCEPT_HINT = " If the database was restored on purpose, record that: manage.py verify_audit --accept REASON"


class UnusableCheckpoints(Exception):
    """A key, a file or a line that cannot be used, with the reason."""


class TrailBroken(Exception):
    """What a check found wrong, in sentences."""


# --- The whole check ---


def check_trail(copy: Path | None = None, *, only_new: bool = False) -> list[str]:
    """Check the trail and sign its end; what was done, as sentences. Raises :class:`TrailBroken`.

    With a ``copy`` of the checkpoints nothing is signed. ``only_new`` begins at the last checkpoint and leaves other
    tables alone; what a check found wrong must then first be found right by a whole check.
    """
    with nullcontext() if copy else signing_lock():
        checkpoints, problems, differences = Checkpoints(), [], guard.find_differences(connection)
        try:
            checkpoints = read_checkpoints(copy)
        except UnusableCheckpoints as problem:  # The chain is walked all the same.
            problems = [str(problem)]
        if only_new:
            if last := last_failed_check():
                raise TrailBroken(
                    f"Not signed, because the last check failed. {last.detail.get('problem', '')}"
                )
            if (newest := Entry.objects.first()) and checkpoints.names(newest) and not differences:
                return ["Nothing new to sign."]
        since = max(checkpoints.by_entry, default=0) if only_new else 0
        checked = verify_chain(None if problems else checkpoints, since=since)
        found = [str(checked.found)] if checked.found else []
        problems = [*found, *problems, *differences]
        if not only_new:
            problems += cross_check_tables()
        if problems:
            _record_check(checked, problems)
            hint = ACCEPT_HINT if checked.found and checked.found.may_be_accepted else ""
            raise TrailBroken(f"{' '.join(problems)} {checked.entries:,} entries hold.{hint}")
        if only_new:
            return [_sign_end(Entry.objects.get(pk=checked.last.id))]
        entry = _record_check(checked, [])
        words = f"{checked.entries:,} entries, one unbroken chain."
        return [words] if copy else [words, _sign_end(entry)]


def last_check() -> Entry | None:
    """The entry of the last check."""
    return Entry.objects.filter(action="audit.verify").first()


def last_failed_check() -> Entry | None:
    """The entry of the last check, if it failed."""
    last = last_check()
    return last if last and last.result == "broken" else None


class FailedCheck(NamedTuple):
    """A check that failed, and why; one that could not finish is not in the trail."""

    at: datetime
    problem: str
    is_recorded: bool


def find_failed_check(last: Entry | None) -> FailedCheck | None:
    """The last check if it failed, or its job if that could not even record it."""
    if last and last.result == "broken":
        return FailedCheck(last.at, last.detail.get("problem", ""), True)
    jobs = Job.objects.filter(name__in=CHECK_JOBS, finished_at__gt=last.at if last else EPOCH)
    job = jobs.order_by("-finished_at").first()
    if job and job.finished_at and job.state == Job.State.FAILED:
        return FailedCheck(job.finished_at, job.words, False)
    return None


def accept_trail(reason: str, actor: Actor) -> str:
    """Sign that the trail is another one than the checkpoints say, as after a restore, and record who said so."""
    with signing_lock():
        found = verify_chain().found
        if problems := [*([str(found)] if found else []), *guard.find_differences(connection)]:
            raise TrailBroken(" ".join([*problems, "That cannot be accepted: restore a sound copy."]))
        checkpoints = read_checkpoints()
        if verify_chain(checkpoints).found is None:
            return "Nothing to accept: the checkpoints fit the trail."
        keeps = checkpoints.last_match()
        void = [one for one in sorted(checkpoints.by_entry) if one > keeps]
        detail = {"keeps": keeps, "void": len(void), "first": void[:1], "last": void[-1:]}
        entry = append(actor, "audit.accept", reason=reason[:500], detail=detail)
        sign_checkpoint(entry, keeps=keeps)
        words = (
            "1 checkpoint no longer counts"
            if len(void) == 1
            else f"{len(void):,} checkpoints no longer count"
        )
        return f"Accepted: {words}."


def _record_check(checked: "ChainCheck", problems: list[str]) -> Entry:
    """Append the check itself, so that pages and metrics say when the trail was last checked, and how far."""
    detail = {"entries": checked.entries, "last": checked.last.id, "hash": checked.last.hash}
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
    """Note how the guard differs before migrations run, which may rebuild the table and so lose it."""
    _differences[:] = guard.find_differences(connections[using])


def repair_guard(*, using: str, **_: Any) -> None:
    """Make the guard whole after migrations, and record what was wrong with it before them."""
    guard.install_triggers(connections[using])
    if _differences:
        append(Actor.operator("upgrade"), "audit.guard", detail={"found": " ".join(_differences)})
        _differences.clear()


# --- The chain ---


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
class Link:
    """What the chain knows of one entry."""

    id: int
    hash: str
    previous_hash: str


@dataclass(frozen=True)
class ChainCheck:
    """How many entries hold, the last of them, and the break that ended the check."""

    entries: int
    last: Link
    found: Break | None = None


def verify_chain(checkpoints: "Checkpoints | None" = None, *, since: int = 0) -> ChainCheck:
    """Walk the chain to its last entry or to the first that is wrong, from its first entry or from a checkpoint."""
    by_entry = checkpoints.by_entry if checkpoints else {}
    signed = {entry_id: one for entry_id, one in by_entry.items() if entry_id >= since}
    before, checked = Link(0, GENESIS_HASH, ""), 0
    if since and (first := Entry.objects.filter(pk=since).first()):
        before = Link(since - 1, first.previous_hash, "")
    for fields in Entry.objects.filter(pk__gte=since).order_by("id").values().iterator(BATCH):
        link = Link(fields["id"], fields["hash"], fields["previous_hash"])
        if since and link.id > since and not checked:
            break  # The entry of the checkpoint is gone; what follows it says less than that.
        found = (
            _entry_break(link, before, fields)
            or _checkpoint_break(link, signed.pop(link.id, None))
            or _missing_line(link, fields, checkpoints)
        )
        if found:
            return ChainCheck(checked, before, found)
        before, checked = link, checked + 1
    if signed:
        gone = min(signed)
        problem = f"was removed: the checkpoint of {_utc(signed[gone].at)} names it"
        return ChainCheck(checked, before, Break(gone, problem, True))
    return ChainCheck(checked, before)


def is_intact(entry: Entry) -> bool:
    """Whether one entry fits its own hash and both its neighbors; the rest of the chain is not read."""
    before = Entry.objects.filter(pk__lt=entry.pk).first()
    after = Entry.objects.filter(pk__gt=entry.pk).order_by("pk").first()
    return (
        entry.hash_format in HASHED_FIELDS
        and entry_hash(entry) == entry.hash
        and entry.previous_hash == (before.hash if before else GENESIS_HASH)
        and (after is None or after.previous_hash == entry.hash)
    )


def _entry_break(link: Link, before: Link, fields: Mapping[str, Any]) -> Break | None:
    if (number := fields["hash_format"]) not in HASHED_FIELDS:
        return Break(link.id, f"names the hash format {number}, which this version does not know")
    if hash_fields(fields) != link.hash:
        return Break(link.id, "was altered: what it says does not fit its hash")
    return None if link.previous_hash == before.hash else _broken_link(link, before)


def _broken_link(link: Link, before: Link) -> Break:
    """An entry is sound in itself but does not follow the one before it: which of the two is wrong, and how?"""
    if link.previous_hash == before.previous_hash:
        return Break(before.id, "was inserted: the one after it follows the one before it")
    if Entry.objects.filter(previous_hash=before.hash).exclude(pk=link.id).exists():
        is_known = Entry.objects.filter(hash=link.previous_hash).exists()
        return Break(link.id, "was moved here" if is_known else "was inserted: it follows no entry")
    if link.id > before.id + 1:
        return Break(before.id + 1, f"was removed: entry {link.id:,} followed another one")
    return Break(before.id, f"was rewritten, hash and all: entry {link.id:,} names another hash")


def _missing_line(link: Link, fields: Mapping[str, Any], checkpoints: "Checkpoints | None") -> Break | None:
    """A checkpoint is recorded in the trail when it is signed, so a file that lost its last one shows."""
    if checkpoints is None or fields["action"] != "audit.checkpoint":
        return None
    if checkpoints.has_line_of(link.id, fields["detail"].get("entry", 0)):
        return None
    return Break(link.id, f"was signed, but {LOST_LINE}", True)


def _utc(at: datetime) -> str:
    return f"{wording.day(at.astimezone(UTC).date())}, {wording.time_of_day(at.astimezone(UTC))} UTC"


def _checkpoint_break(link: Link, signed: "Checkpoint | None") -> Break | None:
    if signed is None or signed.hash == link.hash:
        return None
    when = _utc(signed.at)
    return Break(
        link.id, f"or one before it was rewritten: the checkpoint of {when} names another hash", True
    )


def cross_check_tables() -> Iterator[str]:
    """What other tables recorded and the trail did not, and the other way round, as sentences."""
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
        "a write to the service whose attempt is not in the trail": WriteIntent.objects.exclude(attempted),
        "a write to the service whose outcome is not in the trail": sent.exclude(answered),
        "a write whose state differs from the trail": sent.filter(answered).exclude(as_recorded),
        "an entry of a write that is not recorded anywhere else": without_write,
        "a call of the service whose write is not in the trail": RemoteCall.objects.filter(
            intent_id__isnull=False
        ).exclude(of_call),
    }
    for relation in Entry._meta.related_objects:
        model: Any = relation.related_model
        findings[f"a row of {model._meta.verbose_name} without its entry"] = model.objects.unrecorded()
    for words, rows in findings.items():
        if first := rows.order_by("pk").first():
            yield f"There is {words}: {first.pk}."


# --- Checkpoints ---


@dataclass(frozen=True)
class Checkpoint:
    """At this moment the entry with this ID was the last one and had this hash."""

    entry_id: int
    hash: str
    at: datetime
    keeps: int | None = None
    """Set if an operator accepted another trail: of the checkpoints before it, those up to this entry count."""

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        keeps = "" if self.keeps is None else f" keeps {self.keeps}"
        return f"servicing-desk audit {self.entry_id} {self.hash} {self.at.isoformat()}{keeps}".encode()

    def signed_line(self, key: Ed25519PrivateKey) -> str:
        """The line of the file, with the key's name and the signature."""
        fields = {"entry": self.entry_id, "hash": self.hash, "at": self.at.isoformat()}
        if self.keeps is not None:
            fields["keeps"] = self.keeps
        signature = _base64(key.sign(self.message))
        return json.dumps(fields | {"key": _key_name(key.public_key()), "signature": signature})

    @classmethod
    def from_line(cls, line: str, keys: Mapping[str, Ed25519PublicKey]) -> "Checkpoint":
        """Read a line and check its signature; :class:`UnusableCheckpoints` if it was forged."""
        try:
            fields = json.loads(line)
            keeps = None if fields.get("keeps") is None else int(fields["keeps"])
            at = datetime.fromisoformat(fields["at"])
            checkpoint = cls(int(fields["entry"]), str(fields["hash"]), at, keeps)
            keys[fields["key"]].verify(_from_base64(fields["signature"]), checkpoint.message)
        except InvalidSignature:
            raise UnusableCheckpoints("the signature does not fit.") from None
        except KeyError:
            raise UnusableCheckpoints("no key here has the name it gives.") from None
        except (ValueError, TypeError, AttributeError):
            raise UnusableCheckpoints("it cannot be read.") from None
        return checkpoint


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a file that count, by entry."""

    by_entry: dict[int, Checkpoint] = field(default_factory=dict)
    accepted_until: int = 0
    """The entry with which an operator last accepted another trail: older entries may name lines that are gone."""

    def names(self, entry: Entry) -> bool:
        """Whether a checkpoint names this very entry."""
        return entry.pk in self.by_entry and self.by_entry[entry.pk].hash == entry.hash

    def has_line_of(self, entry_id: int, signed_id: int) -> bool:
        """Whether the file holds the checkpoint that an entry of the trail says was signed."""
        return entry_id <= self.accepted_until or entry_id in self.by_entry or signed_id in self.by_entry

    def last_match(self) -> int:
        """The last entry up to which every checkpoint fits the trail."""
        entries = Entry.objects.filter(pk__lte=max(self.by_entry, default=0)).values_list("pk", "hash")
        hashes = {pk: digest for pk, digest in entries.iterator() if pk in self.by_entry}
        match = 0
        for entry_id in sorted(self.by_entry):
            if hashes.get(entry_id) != self.by_entry[entry_id].hash:
                break
            match = entry_id
        return match


def read_checkpoints(copy: Path | None = None) -> Checkpoints:
    """The checkpoints of this deployment, or of a copy, which must hold some."""
    file = copy or checkpoint_file()
    keys = {_key_name(key): key for key in _public_keys()}
    found: dict[int, Checkpoint] = {}
    accepted_until = 0
    for number, line in enumerate(_lines(file), 1):
        try:
            one = Checkpoint.from_line(line, keys)
        except UnusableCheckpoints as reason:
            raise UnusableCheckpoints(f"{file.name}, line {number}: {reason}") from None
        if one.keeps is not None:
            found = {entry_id: earlier for entry_id, earlier in found.items() if entry_id <= one.keeps}
            accepted_until = one.entry_id
        found[one.entry_id] = one
    if copy and not found:
        raise UnusableCheckpoints(f"{copy} is missing or empty.")
    return Checkpoints(found, accepted_until)


def sign_checkpoint(entry: Entry, *, keeps: int | None = None) -> Entry:
    """Sign that the trail ends with an entry, and record it in the trail; the entry that says so.

    Only entries that the trail gives back are signed.

    The last line of the file names that second entry, and the second entry names the first. So the line is missed when
    it is gone, its entry is missed when it is gone, and a process that dies in between leaves nothing that is missed.
    """
    file, key = checkpoint_file(), _private_key(settings.AUDIT_CHECKPOINT_KEY or _key_of_folder())
    lines = _lines(file)
    _require_stored(entry)
    if keeps is not None:
        lines.append(Checkpoint(entry.pk, entry.hash, timezone.now(), keeps).signed_line(key))
    _write(file, "\n".join([*lines, Checkpoint(entry.pk, entry.hash, timezone.now()).signed_line(key), ""]))
    detail = {"entry": entry.pk, "key": _key_name(key.public_key())}
    record = append(Actor.system("checkpoint"), "audit.checkpoint", detail=detail)
    _require_stored(record)
    _write(file, "\n".join([*lines, Checkpoint(record.pk, record.hash, timezone.now()).signed_line(key), ""]))
    return record


def _require_stored(entry: Entry) -> None:
    if not Entry.objects.filter(pk=entry.pk, hash=entry.hash).exists():
        raise UnusableCheckpoints(f"the trail does not hold entry {entry.pk:,}, which was just written.")


@contextmanager
def signing_lock() -> Iterator[None]:
    """Keep other processes from signing for as long as the block lasts."""
    folder = checkpoint_file().parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UnusableCheckpoints(f"{folder} cannot be used: {os.strerror(error.errno or 0)}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # It ends the lock.


def checkpoint_file() -> Path:
    """The file of this deployment; :class:`UnusableCheckpoints` in a process without its folder."""
    if not settings.AUDIT_CHECKPOINT_DIR:
        raise UnusableCheckpoints("AUDIT_CHECKPOINT_DIR is empty here. Run this where the worker runs.")
    return Path(settings.AUDIT_CHECKPOINT_DIR) / "checkpoints.jsonl"


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError):
        raise UnusableCheckpoints(f"{file} cannot be read.") from None


def _write(file: Path, text: str) -> None:
    """Write all of it or nothing, and wait for the disk: no line is ever half there."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
    except OSError as error:
        raise UnusableCheckpoints(f"{file} cannot be written: {os.strerror(error.errno or 0)}.") from None


# --- Keys ---


def new_key() -> tuple[str, str]:
    """A private key for ``AUDIT_CHECKPOINT_KEY`` and its public half, as text."""
    private = _base64(Ed25519PrivateKey.generate().private_bytes_raw())
    return private, public_key_of(private)


def public_key_of(private: str) -> str:
    """The part of a key that ``AUDIT_CHECKPOINT_FORMER_KEYS`` needs when the key is replaced."""
    return _base64(_private_key(private).public_key().public_bytes_raw())


def _key_of_folder() -> str:
    """The key beside the file; created the first time, unless a setting names one."""
    file = checkpoint_file().with_name("key")
    if not file.exists():
        _write(file, new_key()[0])
    return "".join(_lines(file))


def _private_key(text: str) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(_from_base64(text))
    except ValueError:
        raise UnusableCheckpoints(
            "The key of the checkpoints is no Ed25519 key; verify_audit --new-key makes one."
        ) from None


def _public_keys() -> Iterator[Ed25519PublicKey]:
    beside = "".join(_lines(checkpoint_file().with_name("key"))) if settings.AUDIT_CHECKPOINT_DIR else ""
    for text in filter(None, (settings.AUDIT_CHECKPOINT_KEY, beside)):
        yield _private_key(text).public_key()
    for text in settings.AUDIT_CHECKPOINT_FORMER_KEYS:
        try:
            yield Ed25519PublicKey.from_public_bytes(_from_base64(text))
        except ValueError:
            raise UnusableCheckpoints(
                "AUDIT_CHECKPOINT_FORMER_KEYS holds something that is no public key."
            ) from None


def _key_name(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
