"""Keys of rows that come in an address or a form. Hides how long a number a database takes."""

from typing import Final

DIGITS: Final = 18
"""Every number of so many digits fits into the key of a table."""


def key_in(text: str) -> int | None:
    """The key that a text is; none where no row can have it."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None
