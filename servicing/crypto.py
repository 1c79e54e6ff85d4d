"""Encryption of single fields: AES in CBC mode with PKCS#7 padding and a random IV for each value.

Hides how the key is derived from a secret, where the IV stands, and the text form. There is no integrity tag, so a
wrong key looks like a damaged value: every failure is the same `Unreadable`. A service with another cipher needs
another class with the same two methods.
"""

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable
from typing import Final, Literal

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from servicing.errors import ConfigurationError, Unreadable

KEY_SIZES = (16, 24, 32)
BLOCK = 16

ValueEncoding = Literal["base64", "base64url", "hex"]
ValueKey = Literal["text", "hex", "base64", "sha256"]


def key_bytes(secret: str, derivation: ValueKey = "text") -> bytes:
    """The key in a service secret.

    `text` means its UTF-8 bytes without dashes, `hex` and `base64` the bytes that it spells (dashes in hex are
    ignored), `sha256` the digest of the secret as given. Raises `ConfigurationError`.
    """
    if derivation not in _DERIVATIONS:
        raise ConfigurationError(f"value_key must be one of {', '.join(_DERIVATIONS)}, not {derivation!r}.")
    try:
        return _DERIVATIONS[derivation](secret)
    except ValueError:
        raise ConfigurationError(f"The secret for encrypting fields is not {derivation}.") from None


def key_from_secret(secret: str, derivation: ValueKey = "text") -> bytes:
    """The AES key in a service secret; `ConfigurationError` if it has not 16, 24 or 32 bytes."""
    key = key_bytes(secret, derivation)
    if len(key) in KEY_SIZES:
        return key
    if derivation == "text":
        raise ConfigurationError(
            f"The secret for encrypting fields has {len(key)} characters, not counting dashes; "
            "it must have 16, 24 or 32 (a UUID has 32)."
        )
    raise ConfigurationError(
        f"The secret for encrypting fields spells {len(key)} bytes in {derivation}; it must be 16, 24 or 32."
    )


class FieldCipher:
    """Encrypts and decrypts the text of one field.

    `encoding` is the text form of bytes; `base64url` is written without padding and read with or without it. `iv` is
    `before` or `after` the ciphertext, encoded together with it, or a separator: then the text is the encoded IV, the
    separator and the encoded ciphertext.
    """

    def __init__(self, key: bytes, *, encoding: ValueEncoding = "base64", iv: str = "before") -> None:
        if len(key) not in KEY_SIZES:
            raise ConfigurationError(f"The field key has {len(key)} bytes; it must have 16, 24 or 32.")
        if encoding not in _ALPHABETS:
            raise ConfigurationError(
                f"value_encoding must be one of {', '.join(_ALPHABETS)}, not {encoding!r}."
            )
        if not iv or (iv not in ("before", "after") and re.search(_ALPHABETS[encoding], iv)):
            raise ConfigurationError(
                f"value_iv must be before, after, or a separator that {encoding} never uses, such as “:”; "
                f"it is {iv!r}."
            )
        self._algorithm = algorithms.AES(key)
        self._encoding = encoding
        self._iv = iv

    def encrypt(self, text: str, *, iv: bytes | None = None) -> str:
        """The text form of IV and ciphertext. Pass an IV only to reproduce a test vector."""
        iv = os.urandom(BLOCK) if iv is None else iv
        padder = PKCS7(BLOCK * 8).padder()
        encryptor = Cipher(self._algorithm, modes.CBC(iv)).encryptor()
        padded = padder.update(text.encode()) + padder.finalize()
        ciphertext = encryptor.update(padded) + encryptor.finalize()
        match self._iv:
            case "before":
                return self._to_text(iv + ciphertext)
            case "after":
                return self._to_text(ciphertext + iv)
        return self._to_text(iv) + self._iv + self._to_text(ciphertext)

    def decrypt(self, text: str) -> str:
        """The plain text; `Unreadable` if it cannot be decrypted, whatever the cause."""
        try:
            return self._decrypted(text)
        except ValueError:
            pass  # The cause (encoding, length, padding or UTF-8) must not show: it would help an attacker.
        raise Unreadable  # This is outside the handler so that the cause is not chained.

    def _decrypted(self, text: str) -> str:
        iv, ciphertext = self._split(text)
        decryptor = Cipher(self._algorithm, modes.CBC(iv)).decryptor()
        unpadder = PKCS7(BLOCK * 8).unpadder()
        padded = decryptor.update(ciphertext) + decryptor.finalize()
        return (unpadder.update(padded) + unpadder.finalize()).decode()

    def _split(self, text: str) -> tuple[bytes, bytes]:
        match self._iv:
            case "before":
                data = self._to_bytes(text)
                return data[:BLOCK], data[BLOCK:]
            case "after":
                data = self._to_bytes(text)
                return data[-BLOCK:], data[:-BLOCK]
        iv, _, ciphertext = text.partition(self._iv)
        return self._to_bytes(iv), self._to_bytes(ciphertext)

    def _to_text(self, data: bytes) -> str:
        match self._encoding:
            case "hex":
                return data.hex()
            case "base64url":
                return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
        return base64.b64encode(data).decode("ascii")

    def _to_bytes(self, text: str) -> bytes:
        match self._encoding:
            case "hex":
                return binascii.unhexlify(text)
            case "base64url":
                return base64.b64decode(_padded(text).translate(_SWAPPED), validate=True)
        return base64.b64decode(text, validate=True)


def _padded(text: str) -> str:
    """Base64 text with its padding, if that was left out."""
    return text if text.endswith("=") else text + "=" * (-len(text) % 4)


# Each alphabet's own characters become the other's, so that standard base64 isn't read as base64url.
_SWAPPED: Final = str.maketrans("-_+/", "+/-_")
# The characters of each text form; a separator can have none of them.
_ALPHABETS: Final[dict[str, str]] = {
    "base64": r"[A-Za-z0-9+/=]",
    "base64url": r"[A-Za-z0-9_=-]",
    "hex": r"[0-9A-Fa-f]",
}
_DERIVATIONS: Final[dict[str, Callable[[str], bytes]]] = {
    "text": lambda secret: secret.replace("-", "").encode(),
    "hex": lambda secret: binascii.unhexlify(secret.replace("-", "")),
    "base64": lambda secret: base64.b64decode(_padded(secret.translate({45: "+", 95: "/"})), validate=True),
    "sha256": lambda secret: hashlib.sha256(secret.encode()).digest(),
}
