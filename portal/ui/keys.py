"""Primary keys in addresses and forms. Hides how large a number databases accept."""

from typing import Final

from django.db.models import BigIntegerField

MAX_DIGITS: Final = len(str(BigIntegerField.MAX_BIGINT))


def row_key(text: str) -> int | None:
    """Parse a primary key; None if no row can have it."""
    key = int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None
    return key if key is not None and key <= BigIntegerField.MAX_BIGINT else None
