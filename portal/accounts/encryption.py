"""Encrypts text that is stored for later and that only the portal may read.

Hides that the key comes from ``SECRET_KEY``, and that text encrypted with one of ``SECRET_KEY_FALLBACKS`` can be
decrypted.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class CannotDecrypt(ValueError):
    """The text was not encrypted here, or its key is gone."""


def encrypt(text: str) -> str:
    """Encrypt a text."""
    return _cipher().encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """Decrypt a text; raises :class:`CannotDecrypt` if it was not encrypted here."""
    try:
        return _cipher().decrypt(encrypted.encode()).decode()
    except InvalidToken as error:
        raise CannotDecrypt("Can't be decrypted with the current SECRET_KEY.") from error


def _cipher() -> MultiFernet:
    return MultiFernet([_key(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


@lru_cache(maxsize=4)
def _key(secret: str) -> Fernet:
    key = HKDF(SHA256(), 32, salt=None, info=b"servicing-desk seal").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))
