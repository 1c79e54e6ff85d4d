"""Keys of rows that come in an address or a form. Hides how large a number a database takes."""

from typing import Final

from django.db.models import BigIntegerField

DIGITS: Final = len(str(BigIntegerField.MAX_BIGINT))


def key_in(text: str) -> int | None:
    """The key that a text is; none where no row can have it."""
    key = int(text) if text.isdecimal() and len(text) <= DIGITS else None
    return key if key is not None and key <= BigIntegerField.MAX_BIGINT else None
