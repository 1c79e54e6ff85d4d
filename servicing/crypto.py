"""Encryption of single fields. Hides the cipher, its key derivation and the text form of an encrypted value.

AES in CBC mode with PKCS#7 padding and a random IV for each value; the text is standard base64 of IV and
ciphertext. There is no integrity tag, so a wrong key looks like a damaged value: every failure is the same
`Unreadable`. A service with another cipher needs another class with the same two methods.
"""

import base64
import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from servicing.errors import ConfigurationError, Unreadable

KEY_SIZES = (16, 24, 32)
BLOCK = 16


def key_from_secret(secret: str) -> bytes:
    """The AES key in a service secret: its UTF-8 bytes without dashes."""
    size = len(secret.replace("-", "").encode())
    if size not in KEY_SIZES:
        raise ConfigurationError(
            f"The secret for encrypting fields has {size} characters, not counting dashes; "
            "it must have 16, 24 or 32 (a UUID has 32)."
        )
    return secret.replace("-", "").encode()


class FieldCipher:
    """Encrypts and decrypts the text of one field."""

    def __init__(self, key: bytes) -> None:
        if len(key) not in KEY_SIZES:
            raise ConfigurationError(f"The field key has {len(key)} bytes; it must have 16, 24 or 32.")
        self._algorithm = algorithms.AES(key)

    def encrypt(self, text: str, *, iv: bytes | None = None) -> str:
        """Base64 of IV and ciphertext. Pass an IV only to reproduce a test vector."""
        iv = os.urandom(BLOCK) if iv is None else iv
        padder = PKCS7(BLOCK * 8).padder()
        encryptor = Cipher(self._algorithm, modes.CBC(iv)).encryptor()
        padded = padder.update(text.encode()) + padder.finalize()
        return base64.b64encode(iv + encryptor.update(padded) + encryptor.finalize()).decode("ascii")

    def decrypt(self, text: str) -> str:
        """The plain text; `Unreadable` if it cannot be decrypted, whatever the cause."""
        try:
            return self._decrypted(text)
        except ValueError:
            pass  # The cause (base64, length, padding or UTF-8) must not show: it would help an attacker.
        raise Unreadable  # This is outside the handler so that the cause is not chained.

    def _decrypted(self, text: str) -> str:
        data = base64.b64decode(text.encode("ascii"), validate=True)
        decryptor = Cipher(self._algorithm, modes.CBC(data[:BLOCK])).decryptor()
        unpadder = PKCS7(BLOCK * 8).unpadder()
        padded = decryptor.update(data[BLOCK:]) + decryptor.finalize()
        return (unpadder.update(padded) + unpadder.finalize()).decode()
