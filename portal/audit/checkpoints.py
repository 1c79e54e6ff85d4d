"""Signed statements of how the trail ended at a moment, in a folder that the web process cannot write.

Whoever rewrites the whole chain can make it consistent again, but cannot sign it. Hides Ed25519, the form of a line,
where the key is, and that keys change: a checkpoint is checked with the key that it names, present or former.
"""

import base64
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
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

_FILE_NAME, _KEY_NAME = "checkpoints.jsonl", "key"


class Unusable(Exception):
    """A key, a file or a line that cannot be used, with the reason."""


@dataclass(frozen=True)
class Checkpoint:
    """At this moment the entry with this id was the last one and had this hash."""

    entry_id: int
    hash: str
    at: datetime
    keeps: int | None = None
    """Set where an operator accepted another trail: of the checkpoints before it, those up to this entry count."""

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        keeps = "" if self.keeps is None else f" keeps {self.keeps}"
        return f"servicing-desk audit {self.entry_id} {self.hash} {self.at.isoformat()}{keeps}".encode()


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a file that count, by entry."""

    by_entry: dict[int, Checkpoint] = field(default_factory=dict)
    accepted_until: int = 0
    """The entry with which an operator last accepted another trail: older entries may name lines that are gone."""

    def has_line_of(self, entry_id: int, signed_id: int) -> bool:
        """Whether the file holds what an entry of the trail says of it."""
        return entry_id <= self.accepted_until or entry_id in self.by_entry or signed_id in self.by_entry

    def kept_by(self, hashes: dict[int, str]) -> int:
        """The last entry up to which all checkpoints fit a trail with these hashes."""
        kept = 0
        for entry_id in sorted(self.by_entry):
            if hashes.get(entry_id) != self.by_entry[entry_id].hash:
                break
            kept = entry_id
        return kept


def new_key() -> tuple[str, str]:
    """A private key for ``AUDIT_CHECKPOINT_KEY`` and its public half, as text."""
    private = _text(Ed25519PrivateKey.generate().private_bytes_raw())
    return private, public_half(private)


def public_half(private: str) -> str:
    """The part of a key that ``AUDIT_CHECKPOINT_FORMER_KEYS`` keeps when the key is replaced."""
    return _text(_private_key(private).public_key().public_bytes_raw())


def default_file() -> Path:
    """The file of this deployment; :class:`Unusable` in a process that is not given it."""
    if not settings.AUDIT_CHECKPOINT_DIR:
        raise Unusable("AUDIT_CHECKPOINT_DIR is empty here. Run this where the worker runs.")
    return _folder() / _FILE_NAME


@contextmanager
def locked() -> Iterator[None]:
    """Keep other processes from signing for as long as the block lasts."""
    default_file()
    try:
        _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(_folder(), os.O_RDONLY)
    except OSError as error:
        raise Unusable(f"{_folder()} cannot be used: {os.strerror(error.errno or 0)}.") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)  # It ends the lock.


def read(file: Path) -> Checkpoints:
    """The checkpoints of a file, none where there is no file; :class:`Unusable` at the first forged line."""
    keys = {_name(key): key for key in _public_keys()}
    found: dict[int, Checkpoint] = {}
    accepted_until = 0
    for number, line in enumerate(_lines(file), 1):
        try:
            one = _checked(line, keys)
        except Unusable as reason:
            raise Unusable(f"{file.name}, line {number}: {reason}") from None
        if one.keeps is not None:
            found = {entry_id: kept for entry_id, kept in found.items() if entry_id <= one.keeps}
            accepted_until = one.entry_id
        found[one.entry_id] = one
    return Checkpoints(found, accepted_until)


def sign(entry: Entry, *, keeps: int | None = None) -> Entry:
    """Sign that the trail ends with an entry, and record it in the trail; the entry that says so.

    The last line of the file names that second entry, and the second entry names the first. So the line is missed when
    it is gone, its entry is missed when it is gone, and a process that dies in between leaves nothing that is missed.
    """
    file, key = default_file(), _private_key(settings.AUDIT_CHECKPOINT_KEY or _key_of_folder())
    lines = _lines(file)
    if keeps is not None:
        lines.append(_line(key, entry, keeps))
    _save(file, [*lines, _line(key, entry)])
    record = append(
        Actor.system("checkpoint"),
        "audit.checkpoint",
        detail={"entry": entry.pk, "key": _name(key.public_key())},
    )
    _save(file, [*lines, _line(key, record)])
    return record


def _line(key: Ed25519PrivateKey, entry: Entry, keeps: int | None = None) -> str:
    made = Checkpoint(entry.pk, entry.hash, timezone.now(), keeps)
    fields = {"entry": made.entry_id, "hash": made.hash, "at": made.at.isoformat()}
    if keeps is not None:
        fields["keeps"] = keeps
    return json.dumps(fields | {"key": _name(key.public_key()), "signature": _text(key.sign(made.message))})


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError):
        raise Unusable(f"{file} cannot be read.") from None


def _save(file: Path, lines: list[str]) -> None:
    """All of it or nothing, and on the disk: a line that was written is never half there."""
    _write(file, "".join(f"{line}\n" for line in lines))


def _write(file: Path, text: str) -> None:
    unfinished = file.with_name(f"{file.name}.part")
    try:
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
    except OSError as error:
        raise Unusable(f"{file} cannot be written: {os.strerror(error.errno or 0)}.") from None


def _folder() -> Path:
    return Path(settings.AUDIT_CHECKPOINT_DIR)


def _key_of_folder() -> str:
    """The key that lies beside the file; made the first time, where no setting names one."""
    file = _folder() / _KEY_NAME
    if not file.exists():
        _write(file, new_key()[0])
    return "".join(_lines(file))


def _checked(line: str, keys: dict[str, Ed25519PublicKey]) -> Checkpoint:
    try:
        told = json.loads(line)
        keeps = told.get("keeps")
        made = Checkpoint(
            int(told["entry"]),
            str(told["hash"]),
            datetime.fromisoformat(told["at"]),
            None if keeps is None else int(keeps),
        )
        keys[told["key"]].verify(_bytes(told["signature"]), made.message)
    except InvalidSignature:
        raise Unusable("the signature does not fit.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = "no key here has the name it gives" if isinstance(error, KeyError) else "it cannot be read"
        raise Unusable(f"{reason}.") from None
    return made


def _private_key(text: str) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(_bytes(text))
    except ValueError:
        raise Unusable(
            "The key of the checkpoints is no Ed25519 key; verify_audit --new-key makes one."
        ) from None


def _public_keys() -> Iterator[Ed25519PublicKey]:
    beside = "".join(_lines(_folder() / _KEY_NAME)) if settings.AUDIT_CHECKPOINT_DIR else ""
    for text in filter(None, (settings.AUDIT_CHECKPOINT_KEY, beside)):
        yield _private_key(text).public_key()
    for text in settings.AUDIT_CHECKPOINT_FORMER_KEYS:
        try:
            yield Ed25519PublicKey.from_public_bytes(_bytes(text))
        except ValueError:
            raise Unusable("AUDIT_CHECKPOINT_FORMER_KEYS holds something that is no public key.") from None


def _name(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
