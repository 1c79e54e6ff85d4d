"""Sealed text: what must wait somewhere but be readable by this desk alone.

Hides that the key comes from ``SECRET_KEY``, and that what was sealed under a key of ``SECRET_KEY_FALLBACKS`` opens.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Broken(ValueError):
    """This was not sealed here, or under a key that is gone."""


def seal(text: str) -> str:
    """The text, readable only with the key."""
    return _sealer(*_secrets()).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """What was sealed; :class:`Broken` if it was not."""
    try:
        return _sealer(*_secrets()).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Broken("This cannot be opened with the present SECRET_KEY.") from error


def _secrets() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


@lru_cache(maxsize=4)
def _sealer(*secrets: str) -> MultiFernet:
    keys = [
        HKDF(SHA256(), 32, salt=None, info=b"servicing-desk seal").derive(one.encode()) for one in secrets
    ]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
