"""Signed checkpoints of the audit trail: each states which entry was the last one at a moment.

They are in a folder that the web process can't write to. An attacker can rewrite the whole chain consistently, but
can't sign it. Hides Ed25519, and where the keys are: each checkpoint names its key, current or former.
"""

import base64
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, Entry

LOST_LINE = "the checkpoint file is missing, truncated or outdated"


class UnusableCheckpoints(Exception):
    """A key, a file or a line can't be used; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """States that at this moment the entry with this ID was the last one and had this hash."""

    entry_id: int
    hash: str
    at: datetime
    keeps: int | None = None
    """Set if an operator accepted another trail: earlier checkpoints count only up to this entry."""

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        keeps = "" if self.keeps is None else f" keeps {self.keeps}"
        return f"servicing-desk audit {self.entry_id} {self.hash} {self.at.isoformat()}{keeps}".encode()

    def signed_line(self, key: Ed25519PrivateKey) -> str:
        """The checkpoint as a line of the file, with the key's name and the signature."""
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
            raise UnusableCheckpoints("the signature doesn’t match.") from None
        except KeyError:
            raise UnusableCheckpoints("its key isn’t configured here.") from None
        except (ValueError, TypeError, AttributeError):
            raise UnusableCheckpoints("the line can’t be read.") from None
        return checkpoint


@dataclass(frozen=True)
class Checkpoints:
    """The valid checkpoints of a file, by entry."""

    by_entry: dict[int, Checkpoint] = field(default_factory=dict)
    accepted_until: int = 0
    """The entry with which an operator last accepted another trail. Older entries may name missing lines."""

    @property
    def last_entry_id(self) -> int:
        """The entry that the last checkpoint names; 0 without one."""
        return max(self.by_entry, default=0)

    def end_with(self, entry: Entry) -> bool:
        """Whether the last checkpoint names exactly this entry."""
        last = self.by_entry.get(self.last_entry_id)
        return last is not None and (last.entry_id, last.hash) == (entry.pk, entry.hash)

    def has_line_of(self, entry_id: int, signed_id: int) -> bool:
        """Whether the file has the checkpoint that an entry recorded as signed."""
        return entry_id <= self.accepted_until or entry_id in self.by_entry or signed_id in self.by_entry

    def last_match(self) -> int:
        """The last entry up to which every checkpoint matches the trail."""
        entries = Entry.objects.filter(pk__lte=self.last_entry_id).values_list("pk", "hash")
        hashes = {pk: digest for pk, digest in entries.iterator() if pk in self.by_entry}
        match = 0
        for entry_id in sorted(self.by_entry):
            if hashes.get(entry_id) != self.by_entry[entry_id].hash:
                break
            match = entry_id
        return match


def read_checkpoints(copy: Path | None = None) -> Checkpoints:
    """Read the checkpoints of this deployment, or of a copy, which must contain some."""
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
    """Sign that the trail ends with an entry, and record that in a second entry, which is returned.

    Only entries that are in the database are signed. The last line of the file names the second entry, and the second
    entry names the first. So a missing line and a missing entry are both noticed, and a process that dies in between
    leaves nothing that looks missing.
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
        raise UnusableCheckpoints(f"entry {entry.pk:,}, just written, isn’t in the trail.")


@contextmanager
def signing_lock() -> Iterator[None]:
    """Keep other processes from signing until the block ends."""
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
        os.close(descriptor)  # This releases the lock.


def checkpoint_file() -> Path:
    """The file of this deployment; raises :class:`UnusableCheckpoints` in a process without the folder."""
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
    """Write everything or nothing, and wait for the disk, so that no line is ever incomplete."""
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
    """Create a private key for ``AUDIT_CHECKPOINT_KEY``; return it and its public half as text."""
    private = _base64(Ed25519PrivateKey.generate().private_bytes_raw())
    return private, public_key_of(private)


def public_key_of(private: str) -> str:
    """The public half of a key, which ``AUDIT_CHECKPOINT_FORMER_KEYS`` needs once the key is replaced."""
    return _base64(_private_key(private).public_key().public_bytes_raw())


def _key_of_folder() -> str:
    """The configured key, or the one beside the file, created the first time."""
    file = checkpoint_file().with_name("key")
    if not file.exists():
        _write(file, new_key()[0])
    return "".join(_lines(file))


def _private_key(text: str) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(_from_base64(text))
    except ValueError:
        raise UnusableCheckpoints(
            "The checkpoint key isn’t an Ed25519 key. Run verify_audit --new-key to create one."
        ) from None


def _public_keys() -> Iterator[Ed25519PublicKey]:
    beside = "".join(_lines(checkpoint_file().with_name("key"))) if settings.AUDIT_CHECKPOINT_DIR else ""
    for text in filter(None, (settings.AUDIT_CHECKPOINT_KEY, beside)):
        yield _private_key(text).public_key()
    for text in settings.AUDIT_CHECKPOINT_FORMER_KEYS:
        yield Ed25519PublicKey.from_public_bytes(_from_base64(text))


def _key_name(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
