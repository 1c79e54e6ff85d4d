"""Signed statements of how the trail ended at a moment, kept outside the database.

Whoever rewrites the whole chain can make it consistent again, but cannot sign it. Hides Ed25519, the form of a line,
and that keys change: a checkpoint is checked with the key that is named in it, present or former.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.utils import timezone


class Unusable(Exception):
    """A key or a line that cannot be used, with the reason."""


@dataclass(frozen=True)
class Checkpoint:
    """At this moment the entry with this id was the last one and had this hash."""

    entry_id: int
    hash: str
    at: datetime

    @property
    def message(self) -> bytes:
        """What is signed."""
        return f"servicing-desk audit {self.entry_id} {self.hash} {self.at.isoformat()}".encode()


def new_key() -> tuple[str, str]:
    """A private key for ``AUDIT_CHECKPOINT_KEY`` and its public half, as text."""
    private = _text(Ed25519PrivateKey.generate().private_bytes_raw())
    return private, public_half(private)


def public_half(private: str) -> str:
    """What ``AUDIT_CHECKPOINT_FORMER_KEYS`` keeps of a key that is replaced."""
    return _text(_private_key(private).public_key().public_bytes_raw())


def signed(entry_id: int, digest: str) -> str:
    """A checkpoint of now as one line."""
    key = _private_key(settings.AUDIT_CHECKPOINT_KEY)
    made = Checkpoint(entry_id, digest, timezone.now())
    line = {
        "entry": made.entry_id,
        "hash": made.hash,
        "at": made.at.isoformat(),
        "key": _name(key.public_key()),
        "signature": _text(key.sign(made.message)),
    }
    return json.dumps(line)


def read(lines: Iterable[str]) -> Iterator[Checkpoint]:
    """The checkpoints of a file whose signatures hold; :class:`Unusable` at the first line that does not."""
    keys = {_name(key): key for key in _public_keys()}
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _checked(line, number, keys)


def _checked(line: str, number: int, keys: dict[str, Ed25519PublicKey]) -> Checkpoint:
    try:
        told = json.loads(line)
        made = Checkpoint(int(told["entry"]), str(told["hash"]), datetime.fromisoformat(told["at"]))
        keys[told["key"]].verify(_bytes(told["signature"]), made.message)
    except InvalidSignature:
        raise Unusable(f"Line {number}: the signature does not fit.") from None
    except (ValueError, KeyError, TypeError) as error:
        reason = "no key here has the name it gives" if isinstance(error, KeyError) else "it cannot be read"
        raise Unusable(f"Line {number}: {reason}.") from None
    return made


def _private_key(text: str) -> Ed25519PrivateKey:
    if not text:
        raise Unusable("AUDIT_CHECKPOINT_KEY is not set; verify_audit --new-key makes one.")
    try:
        return Ed25519PrivateKey.from_private_bytes(_bytes(text))
    except ValueError:
        raise Unusable("AUDIT_CHECKPOINT_KEY is no Ed25519 key; verify_audit --new-key makes one.") from None


def _public_keys() -> Iterator[Ed25519PublicKey]:
    if settings.AUDIT_CHECKPOINT_KEY:
        yield _private_key(settings.AUDIT_CHECKPOINT_KEY).public_key()
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
