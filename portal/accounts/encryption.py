"""Encrypts what is stored for later and only the portal may read.

Hides that the key comes from ``SECRET_KEY``, and that text encrypted with one of ``SECRET_KEY_FALLBACKS`` can be
decrypted.
"""

import base64
import json
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import models


class CannotDecrypt(ValueError):
    """The text was not encrypted here, or its key is gone."""


def encrypt(text: str) -> str:
    return _cipher().encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """Decrypt a text; raises :class:`CannotDecrypt` if it was not encrypted here."""
    try:
        return _cipher().decrypt(encrypted.encode()).decode()
    except InvalidToken as error:
        raise CannotDecrypt("Can't be decrypted with the current SECRET_KEY.") from error


class EncryptedField(models.TextField):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """A JSON value, stored encrypted. Read as None if it can't be decrypted."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        try:
            return None if value is None else self.load(decrypt(value))
        except CannotDecrypt:
            return None

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else encrypt(self.dump(value))

    def load(self, text: str) -> Any:
        return json.loads(text)

    def dump(self, value: Any) -> str:
        return json.dumps(value)


class EncryptedBinaryField(EncryptedField):
    """Bytes, stored encrypted."""

    def load(self, text: str) -> bytes:
        return base64.b64decode(text)

    def dump(self, value: bytes) -> str:
        return base64.b64encode(value).decode()


def _cipher() -> MultiFernet:
    return MultiFernet([_key(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


@lru_cache(maxsize=4)
def _key(secret: str) -> Fernet:
    key = HKDF(SHA256(), 32, salt=None, info=b"servicing-desk seal").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))
